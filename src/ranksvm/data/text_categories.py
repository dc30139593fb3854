"""Columns of text in DataFrames as numbers: the place of each text in a list of categories."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np

from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.types import DataFrame, Features
from ranksvm.data import frames
from ranksvm.exceptions import DataError

__all__ = [
    "UNKNOWN",
    "are_texts",
    "categories_of",
    "coded",
    "features_for",
    "learned_categories",
    "placed",
    "recoded",
    "refuse_texts",
    "texts_at",
]

# The number of a text that is none of the categories.
UNKNOWN = -1.0


class Data(Protocol):
    """What the functions here need of RankingData."""

    X: Any
    feature_names: tuple[str, ...] | None
    categories: dict[str, list[str]]


def learned_categories(X: DataFrame, names: Collection[str]) -> dict[str, list[str]]:
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


def coded(X: DataFrame, categories: Mapping[str, list[str]]) -> DataFrame:
    """A DataFrame with numbers in place of text.

    Parameters
    ----------
    X : DataFrame
        Features.
    categories : mapping of str to list of str
        The categories of each column. Columns that X does not have are left out.

    Returns
    -------
    DataFrame
        A DataFrame of the same library. A text becomes its place in the list; a text that is not in the list becomes
        `UNKNOWN`, and a missing one NaN.
    """
    numbers = {}
    columns = frames.text_columns(X, categories)
    for name in categories:
        if name not in columns and frames.has_column(X, name) and not frames.is_missing(X, name):
            raise DataError(
                f"column {name!r} of X held text when the model was trained, and holds numbers now: read it as text."
            )
    for name in columns:
        places: dict[str | None, float] = {text: float(place) for place, text in enumerate(categories[name])}
        places[None] = np.nan
        numbers[name] = np.array([places.get(text, UNKNOWN) for text in frames.texts(X, name)])
    return frames.with_columns(X, numbers) if numbers else X


def recoded(places: np.ndarray, own: Sequence[str], others: Sequence[str]) -> np.ndarray:
    """Convert places of texts in one list of categories to their places in another list.

    Parameters
    ----------
    places : ndarray of float, shape (n_rows,)
        Places in ``own``; NaN where the text is missing.
    own, others : sequence of str
        The list that ``places`` refers to, and the list that the result refers to.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        The places in ``others``, `UNKNOWN` for a text that is not among them.
    """
    wanted = {text: float(place) for place, text in enumerate(others)}
    return np.array([*(wanted.get(text, UNKNOWN) for text in own), np.nan])[_whole(places, len(own))]


def features_for(model: object, data: Data) -> Features:
    """The features of data for a model, with texts numbered as in the model's own lists of categories.

    Parameters
    ----------
    model : estimator
        The model that takes the features.
    data : RankingData
        The data.

    Returns
    -------
    ndarray or CSR matrix, shape (n_rows, n_features)
        X itself if the number of every text stays the same.

    Raises
    ------
    DataError
        When the features have other names than in training, or one holds text and the model learned from numbers.
    """
    trained, names = getattr(steps_of(model)[0], "feature_names_in_", None), data.feature_names
    if trained is not None and names is not None and len(trained) == len(names):
        for column, (own, other) in enumerate(zip(map(str, trained), names, strict=True)):
            if own != other:
                raise DataError(
                    f"column {column} of the data is {other!r}, but the model was trained with {own!r} there: give the "
                    "features the names and the order of feature_names_in_."
                )
    known = categories_of(model)
    refuse_texts(data, "the model was trained on numbers", known)
    return placed(data.X, data.feature_names or (), data.categories, known)


def placed(
    X: Features, names: Sequence[str], found: Mapping[str, list[str]], wanted: Mapping[str, list[str]]
) -> Features:
    """Features whose texts are renumbered for other lists of categories.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The features.
    names : sequence of str
        Their names.
    found, wanted : mapping of str to list of str
        The lists of categories, by name of the feature: those that X refers to, and those that the result refers to.

    Returns
    -------
    ndarray or CSR matrix, shape (n_rows, n_features)
        X itself if the number of every text stays the same.
    """
    result: Any = X
    for name, texts in found.items():
        if texts != wanted[name]:
            result, column = result.copy() if result is X else result, list(names).index(name)
            result[:, column] = recoded(result[:, column], texts, wanted[name])
    return result


def categories_of(model: object) -> dict[str, list[str]]:
    """The texts of the features that held text when a model was trained, by name."""
    return getattr(steps_of(model)[-1], "categories_", {})


def are_texts(given: object) -> TypeGuard[list[str]]:
    """Whether a value that was read from a file is a list of texts."""
    return isinstance(given, list) and all(isinstance(text, str) for text in given)


def refuse_texts(data: Data, why: str, known: Collection[str] = ()) -> None:
    """Raise DataError if features of RankingData, other than those in ``known``, hold text."""
    if texts := [name for name in data.categories if name not in known]:
        raise DataError(f"the features {', '.join(map(repr, texts))} hold text, but {why}: encode them, or drop them.")


def texts_at(places: np.ndarray, categories: Sequence[str]) -> np.ndarray:
    """The texts at some places of a list of categories; None where the place is NaN.

    Parameters
    ----------
    places : ndarray of float, shape (n_rows,)
        Places in ``categories``.
    categories : sequence of str
        The categories.

    Returns
    -------
    ndarray of object, shape (n_rows,)
        The texts.
    """
    return np.array([*categories, None], dtype=object)[_whole(places, len(categories))]


def _whole(places: np.ndarray, n_categories: int) -> np.ndarray:
    """Places as whole numbers; ``n_categories`` where one is missing."""
    missing = np.isnan(places)
    whole = np.where(missing, n_categories, places).astype(np.int64)
    if len(bad := np.flatnonzero(~missing & ((whole != places) | (whole < 0) | (whole >= n_categories)))):
        raise DataError(
            f"a feature with {n_categories} categories has the value {places[bad[0]]:g} in row {bad[0]}: expected the "
            "place of a category, from 0."
        )
    return whole
