"""The result of the readers of model files, and functions that they share."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ranksvm.exceptions import ModelFileError

__all__ = [
    "LinearFile",
    "broken",
    "for_larger_label",
    "number",
    "settings_until",
    "sum_of_vectors",
    "support_vectors",
]

# A larger feature id means a damaged file, unless the number of features is given: the weights would fill the memory.
MAX_FEATURES = 100_000_000


@dataclass(frozen=True)
class LinearFile:
    """A linear model of another program.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,)
        The weights, in the order of the feature ids of the file, from 1.
    source : str
        The program or class that wrote it, for display.
    names : list of str, optional
        Names of the features, if the file has them.
    """

    coef: np.ndarray
    source: str
    names: list[str] | None = None


def broken(path: str, line: int, reason: str) -> ModelFileError:
    """The error for a line, from 1, of a file."""
    return ModelFileError(f"{path}:{line}: {reason}")


def number(path: str, line: int, text: str) -> float:
    """A finite number, in a form that C reads."""
    try:
        if not text.isascii() or "_" in text:  # only Python reads digits of other scripts, and 1_000
            raise ValueError
        value = float(text)
    except ValueError:
        raise broken(path, line, f"{text[:40]!r} is not a number.") from None
    if not np.isfinite(value):
        raise broken(path, line, f"{text[:40]!r} is not finite.")
    return value


def _entries(path: str, line: int, words: Iterable[str]) -> list[tuple[int, float]]:
    """``id:value`` pairs, ids from 1."""
    found = []
    for word in words:
        label, separator, value = word.partition(":")
        # more than 18 digits may exceed 64 bits, and int() refuses thousands of digits
        valid = label.isascii() and label.isdigit() and len(label) <= 18 and int(label) >= 1
        if not separator or not valid:
            raise broken(path, line, f"expected ID:VALUE with an id from 1, got {word[:40]!r}.")
        found.append((int(label), number(path, line, value)))
    return found


def settings_until(path: str, lines: list[str], last: str) -> tuple[dict[str, list[str]], int]:
    """Settings, one per line (``name value ...``), up to the line after which the numbers follow.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    lines : list of str
        Its lines.
    last : str
        The word on the line after which the numbers follow.

    Returns
    -------
    settings : dict
        Name -> words.
    first : int
        Index of the line after ``last``.
    """
    settings: dict[str, list[str]] = {}
    for place, line in enumerate(lines):
        words = line.split()
        if words == [last]:
            _check_two_classes(path, settings)
            return settings, place + 1
        if words:
            settings[words[0]] = words[1:]
    raise ModelFileError(f"{path}: it has no line {last!r}, after which the numbers follow: is it truncated?")


def _check_two_classes(path: str, settings: dict[str, list[str]]) -> None:
    if settings.get("nr_class") != ["2"]:
        raise ModelFileError(
            f"{path}: a model of {' '.join(settings.get('nr_class', ['?']))} classes is not a ranking model."
        )


def for_larger_label(path: str, coef: np.ndarray, settings: dict[str, list[str]]) -> np.ndarray:
    """The weights that give the larger of two labels a higher score; the files give the first label a higher score."""
    labels = [number(path, 1, word) for word in settings.get("label", [])]
    return -coef if len(labels) == 2 and labels[0] < labels[1] else coef


def support_vectors(path: str, lines: list[str], first: int) -> list[tuple[float, list[tuple[int, float]]]]:
    """Coefficient and entries of each support vector; comments after ``#`` are ignored.

    Parameters
    ----------
    path : str
        Name of the file, for messages.
    lines : list of str
        Its lines.
    first : int
        Index of the first line that may hold a support vector.

    Returns
    -------
    list of tuple
        The coefficient, and ``(id, value)`` of each entry.
    """
    found = []
    for place, line in enumerate(lines[first:], first + 1):
        words = line.split("#", 1)[0].split()
        if words:
            found.append((number(path, place, words[0]), _entries(path, place, words[1:])))
    return found


def sum_of_vectors(path: str, terms: list[tuple[float, list[tuple[int, float]]]], n_features: int | None) -> np.ndarray:
    """``sum of alpha * vector`` of sparse vectors; its length is ``n_features``, or if that is None, the largest id."""
    largest = max((label for _, vector in terms for label, _ in vector), default=0)
    if largest < 1 and n_features is None:
        raise ModelFileError(f"{path}: the model has no weights.")
    if n_features is None and largest > MAX_FEATURES:
        raise ModelFileError(f"{path}: it has a feature {largest}. If the file is not damaged, say how many there are.")
    coef = np.zeros(max(1, largest if n_features is None else n_features))
    if largest > len(coef):
        raise ModelFileError(f"{path}: the model has a feature {largest}, but {len(coef)} features were asked for.")
    for alpha, vector in terms:
        for label, value in vector:
            coef[label - 1] += alpha * value
    if not np.isfinite(coef).all():
        raise ModelFileError(f"{path}: the weight of feature {np.flatnonzero(~np.isfinite(coef))[0] + 1} overflows.")
    return coef
