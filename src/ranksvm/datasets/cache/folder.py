"""Caches of files in a folder, for use by later runs."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from ranksvm._util.atomic_files import remove_abandoned
from ranksvm._util.types import PathLike

__all__ = ["cache_of", "default_cache_folder"]

# changes when a new version would read the same file differently
_VERSION = 2


def default_cache_folder() -> Path:
    """The folder for caches of this user: ``$XDG_CACHE_HOME/ranksvm``, or ``~/.cache/ranksvm``.

    Returns
    -------
    Path
        The folder, which may not exist.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ranksvm")


def cache_of(path: PathLike, folder: PathLike, options: Mapping[str, object], *others: PathLike) -> Path:
    """Path of a file's cache, which may not exist; the path is another one if the file or the options change.

    Files in the folder that killed processes left behind are removed.

    Parameters
    ----------
    path : path-like
        The file.
    folder : path-like
        The folder of caches.
    options : mapping
        How the file is read: numbers, text and lists of them.
    *others : path-like
        Further files that the cache depends on.

    Returns
    -------
    Path
        The cache, which may not exist.
    """
    remove_abandoned(folder)
    states = [(os.path.realpath(each), *_state(each)) for each in (path, *others)]
    key = json.dumps([_VERSION, states, sorted(options.items())], default=str)
    stem = Path(path).name.split(".")[0] or "data"
    return Path(folder, f"{stem}-{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}.rsd")


def _state(path: PathLike) -> tuple[int, int]:
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns
