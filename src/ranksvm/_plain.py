"""Results as plain Python values, ready for JSON."""

import math
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Lists, dicts, numbers and strings of Python; numbers that JSON cannot express (nan, inf) become None.

    Other objects are returned unchanged.
    """
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
