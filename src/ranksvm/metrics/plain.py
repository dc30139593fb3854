"""Results as plain Python values, ready for JSON."""

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Lists, dicts and numbers of Python; a number that is not defined (NaN) becomes None."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return None if np.isnan(value) else float(value)
    return value
