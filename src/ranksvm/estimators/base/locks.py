"""One lock for each model that learns while other threads read it; models stay plain objects that can be pickled."""

import threading
import weakref
from typing import Any

__all__ = ["lock_of"]

_locks: "weakref.WeakKeyDictionary[Any, threading.RLock]" = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def lock_of(estimator: object) -> "threading.RLock":
    """The lock of an estimator, acquired while it learns from a query, and while it is copied."""
    with _guard:
        return _locks.setdefault(estimator, threading.RLock())
