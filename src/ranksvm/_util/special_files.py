"""Paths that stand for open descriptors, pipes or devices, which are written to and never replaced."""

import os
import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranksvm._util.types import PathLike

__all__ = ["descriptor_of", "is_special"]

_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
# maximum number of symbolic links that are followed to find a descriptor, the same as in Linux
_LINKS = 40


def descriptor_of(path: "PathLike") -> int | None:
    """The open descriptor that a path such as /dev/stdout or /dev/fd/3 stands for, also through links; else None.

    The names are known on every system, even if it has no such files.
    """
    name = os.fspath(path).replace(os.sep, "/")
    for _ in range(_LINKS):
        if name in _STANDARD:
            return _STANDARD[name]
        if match := _DESCRIPTOR.fullmatch(name):
            return int(match[1])
        if not os.path.islink(name):
            return None
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    return None


def is_special(path: "PathLike") -> bool:
    """Whether a path is a descriptor, pipe or device, which must be written to and never be replaced."""
    if descriptor_of(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
