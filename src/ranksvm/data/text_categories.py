"""Columns of text in DataFrames as numbers: the place of each text in a list of categories."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ranksvm.data import frames

__all__ = ["UNKNOWN", "coded", "learned_categories"]

# The number of a text that is none of the categories.
UNKNOWN = -1.0


def learned_categories(X: Any, names: Collection[str]) -> dict[str, list[str]]:
    """The texts in some columns of a DataFrame.

    Parameters
    ----------
    X : DataFrame
        Features.
    names : collection of str
        Names of the columns that may hold text. Columns of numbers are left out.

    Returns
    -------
    dict of str to list of str
        The distinct texts of each column of text, in alphabetical order.
    """
    columns = {name: frames.texts(X, name) for name in frames.text_columns(X, names)}
    return {name: sorted({text for text in texts if text is not None}) for name, texts in columns.items()}


def coded(X: Any, categories: Mapping[str, list[str]]) -> Any:
    """A DataFrame with numbers in the place of text.

    Parameters
    ----------
    X : DataFrame
        Features.
    categories : mapping of str to list of str
        The categories of each column. Columns that X does not have are left out.

    Returns
    -------
    DataFrame
        Of the same library. A text becomes its place in the list, one that is not in the list `UNKNOWN`, and a missing
        text NaN.
    """
    numbers = {}
    for name in frames.text_columns(X, categories):
        places: dict[str | None, float] = {text: float(place) for place, text in enumerate(categories[name])}
        places[None] = np.nan
        numbers[name] = np.array([places.get(text, UNKNOWN) for text in frames.texts(X, name)])
    return frames.with_columns(X, numbers) if numbers else X
