"""Labels of features in tables, plots and messages: their names, or numbers from 1 as in LETOR files."""

from collections.abc import Sequence
from typing import Any

__all__ = ["feature_label", "feature_labels", "place_in_words"]


def feature_label(column: int, names: Sequence[Any] | None = None) -> str:
    """The name of a feature; ``f1``, ``f2``, ... without names.

    Numbers begin at 1, as in a LETOR file: column 0 of X is feature ``f1``, and is called so in Parquet. In a file
    whose ids begin at 0, the feature with id 0 is ``f1``.

    Parameters
    ----------
    column : int
        Column of X, from 0.
    names : sequence of str, optional
        Names of all features.

    Returns
    -------
    str
        What tables, plots and messages show.
    """
    return f"f{column + 1}" if names is None else str(names[column])


def feature_labels(n_features: int, names: Sequence[Any] | None = None) -> list[str]:
    """The labels of all features, in the order of the columns."""
    return [feature_label(column, names) for column in range(n_features)]


def place_in_words(row: int, column: int, names: Sequence[Any] | None = None) -> str:
    """A place of X as Python indexes it, and the feature there: ``X[3, 40] (feature f41)``."""
    return f"X[{row}, {column}] (feature {feature_label(column, names)})"
