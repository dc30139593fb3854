"""Public names that are imported on first use: a program then loads only the modules it uses."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


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
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattr_
