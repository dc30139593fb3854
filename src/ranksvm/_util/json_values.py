"""Results as plain Python values, ready for JSON."""

import math
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A value as Python lists, dicts, numbers and strings; numbers that JSON cannot express (nan, inf) become None.

    Dates and times become text as in ISO 8601 ("2026-01-31", "2026-01-31T10:00:00"), and durations of NumPy become text
    such as "5 days". Other objects are returned unchanged.
    """
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M"):
        value = value.astype(str)  # tolist would make integers of nanoseconds
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
