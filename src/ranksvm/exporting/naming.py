"""Names of features in an engine, mapped from their names in the model, and checked."""

import json
from collections.abc import Mapping, Sequence

from ranksvm._util.types import PathLike
from ranksvm.exceptions import DataError, OptionError

__all__ = ["FeatureNames", "duplicates_refused", "mapped_names", "read_names"]

# Name in the model -> name in the engine; or the names of all features, in order.
FeatureNames = Mapping[str, str] | Sequence[str]


def mapped_names(names: Sequence[str], given: FeatureNames | None) -> list[str]:
    """The names of the features in an engine.

    Parameters
    ----------
    names : sequence of str
        Names of the features in the model.
    given : mapping, sequence of str or None
        Name in the model -> name in the engine, for some features; or the names of all features, in the order of the
        columns; None: the names of the model.

    Returns
    -------
    list of str
        One name for each feature.

    Raises
    ------
    OptionError
        When a name is unknown, empty, not text, or the name of two features.
    """
    if given is None:
        found = list(names)
    elif isinstance(given, str):
        raise OptionError(f"names must be a list or dict of names, not text, got {given!r}; a file is read before.")
    elif isinstance(given, Mapping):
        unknown = [key for key in given if key not in set(names)]
        if unknown:
            raise OptionError(
                f"names: the model has no feature {unknown[0]!r}; its features are {_listed(names)}. Features without "
                "names are f1, f2, ..., numbered as in LETOR files."
            )
        found = [given.get(name, name) for name in names]
    else:
        found = list(given)
        if len(found) != len(names):
            raise OptionError(f"names has {len(found)} names, but the model has {len(names)} features.")
    for name, new in zip(names, found, strict=True):
        if not isinstance(new, str) or not new.strip():
            raise OptionError(f"names: the name of feature {name!r} is {new!r}: it must be text that is not empty.")
        if any(ord(character) < 32 or ord(character) == 127 for character in new):
            raise OptionError(f"names: {new!r} has a control character.")
    duplicates_refused(found)
    return found


def duplicates_refused(names: Sequence[str]) -> None:
    """Raise OptionError if two features have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in set(names[:i]))
        raise OptionError(f"names: two features are called {twice!r}.")


def read_names(path: PathLike) -> dict[str, str] | list[str]:
    """Names of features from a file: JSON (an object or a list), or lines of text.

    A line of text has the name in the model and, after a tab or spaces, the name in the engine. Or every line has one
    name, in the order of the columns. Empty lines and lines that begin with ``#`` are ignored.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict or list
        The names, for `mapped_names`.

    Raises
    ------
    DataError
        When the file has neither form.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: not text in UTF-8, as names of features are.") from None
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: not a list or an object of JSON ({error}).") from None
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.split("\t", 1) if "\t" in line else line.split(None, 1) for line in lines if line and line[0] != "#"]
    if all(len(pair) == 1 for pair in pairs):
        return [pair[0] for pair in pairs]
    wrong = [pair[0] for pair in pairs if len(pair) == 1]
    if wrong:
        raise DataError(f"{path}: the line {wrong[0]!r} has one name, others have two.")
    return {old.strip(): new.strip() for old, new in pairs}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
