"""Laziness: public names that are imported on first use, and attributes that are computed on first use."""

import concurrent.futures.thread  # noqa: F401  registers its fork hooks, and the hooks of logging, before ours
import importlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property", "first_import", "imported", "lazy_names"]

# A fork waits no longer than this number of seconds, in case an import waits for the thread that forks.
LONGEST_WAIT = 120.0


class _Gate:
    """Counts, for each thread, the imports on first use that have begun and not ended.

    Python locks a module while a thread imports it. If another thread forks meanwhile, the lock stays taken forever in
    the child process. So a fork waits until the imports in other threads have ended, and then holds the lock `idle`.
    An import needs `idle` only for a moment at its start and its end, so imports never wait for each other here. Hooks
    run in the reverse order of their registration: ours waits before the hooks of logging and of executors take locks
    that an import may need.
    """

    idle: threading.Condition
    _depths: Counter[int]

    def __init__(self) -> None:
        self.after_fork()

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Context of an import."""
        me = threading.get_ident()
        with self.idle:
            self._depths[me] += 1
        try:
            yield
        finally:
            with self.idle:
                self._depths[me] -= 1
                if not self._depths[me]:
                    del self._depths[me]
                    self.idle.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread imports, and let none begin."""
        self.idle.acquire()
        self.idle.wait_for(lambda: not self._depths.keys() - {threading.get_ident()}, LONGEST_WAIT)

    def after_fork_in_parent(self) -> None:
        """Let imports begin again."""
        self.idle.release()

    def after_fork(self) -> None:
        """Forget the imports of other threads, which do not exist in the child process."""
        me = threading.get_ident()
        depth = self._depths[me] if hasattr(self, "_depths") else 0
        self.idle, self._depths = threading.Condition(threading.Lock()), Counter({me: depth} if depth else {})


_gate = _Gate()
first_import = _gate.importing

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_gate.before_fork, after_in_parent=_gate.after_fork_in_parent, after_in_child=_gate.after_fork
    )


def imported(module: str) -> ModuleType:
    """The named module, which is imported if necessary; a fork in another thread waits for the import."""
    with first_import():
        return importlib.import_module(module)


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that imports some of its names on first use.

    Parameters
    ----------
    package : str
        Full name of the package.
    modules : mapping of str to str
        Full name of the module that defines each of the names.

    Returns
    -------
    callable
        The function.
    """

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(imported(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattr_


Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 (the name of functools')
    """`functools.cached_property` without its lock.

    Before Python 3.12 the original holds a lock for all objects of a class; a child process that is forked meanwhile
    waits for it forever. Here two threads may both compute the value; one result is kept.
    """

    def __init__(self, function: Callable[[Any], Value]):
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | Value:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.function(instance)
        return value
