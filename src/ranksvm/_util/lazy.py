"""Public names that are imported on first use: a program then loads only the modules it uses."""

import concurrent.futures.thread  # noqa: F401  registers its hooks before ours, as logging does, which it imports
import importlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

__all__ = ["first_import", "imported", "lazy_names"]

# A fork waits no longer than this number of seconds, in case that an import itself waits for the thread that forks.
LONGEST_WAIT = 120.0


class _Gate:
    """Imports on first use that threads have begun.

    A module that is being imported has a lock, which a child process would find taken for ever if the thread that
    imports it is not the one that forks. So a fork waits until the others have ended. It begins while it holds `idle`,
    which an import needs only to begin and to end: imports never wait for each other here. Hooks run in the reverse
    order of their registration: ours waits before those of logging and of executors take locks that an import may need.
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
        """Begin with no other thread's imports: those threads are not in the child."""
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
    """A module, imported if it is not yet: a fork in another thread waits for the import.

    Parameters
    ----------
    module : str
        Full name.

    Returns
    -------
    module
        The module.
    """
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
