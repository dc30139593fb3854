"""Pairs that the user lists, by row numbers of the whole data, and what of them is in a part."""

from typing import Any, NamedTuple

import numpy as np

from ranksvm.dask.rows import ROW, Rows
from ranksvm.data import PairList, Queries
from ranksvm.data.pair_list import groups_of_pairs, row_numbers
from ranksvm.data.pair_weights import checked_weights
from ranksvm.exceptions import DataError, NoComparablePairsError
from ranksvm.objectives import Part

__all__ = ["Listed", "groups_of_rows", "listed_pairs", "part_of_pairs"]


class Listed(NamedTuple):
    """Listed pairs.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other) in the whole data.
    weight : ndarray of float64, shape (n_pairs,)
        Weight of each.
    """

    rows: np.ndarray
    weight: np.ndarray


def listed_pairs(pairs: Any, pair_weight: Any, n_rows: int) -> Listed:
    """The arguments of ``fit``, validated.

    Parameters
    ----------
    pairs : array-like of int or dask array, shape (n_pairs, 2)
        Row numbers (preferred, other).
    pair_weight : array-like or dask array, shape (n_pairs,), optional
        Weight of each.
    n_rows : int
        Number of rows.

    Returns
    -------
    Listed
        The pairs.

    Raises
    ------
    DataError
        When there is no such row, a row is paired with itself, or a weight is negative or not finite.
    NoComparablePairsError
        When there is no pair.
    """
    columns = row_numbers(np.asarray(pairs), Queries.from_group([n_rows], n_rows))
    weight = None if pair_weight is None else np.asarray(pair_weight)
    return Listed(np.column_stack(columns), checked_weights("pair_weight", weight, len(columns[0]), "pairs"))


def groups_of_rows(listed: Listed, n_rows: int) -> np.ndarray:
    """An id for each row, the same for rows that pairs connect: what takes the place of a query where none is given.

    Parameters
    ----------
    listed : Listed
        The pairs.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        The ids.
    """
    ids = n_rows + np.arange(n_rows)
    group = groups_of_pairs(Queries.from_group([n_rows], n_rows), *listed.rows.T)
    ids[listed.rows[:, 0]] = ids[listed.rows[:, 1]] = group
    return ids


def part_of_pairs(rows: Rows, listed: Listed, weighting: str, n_features: int) -> Part:
    """The part of the problem that some rows are: the listed pairs of these rows.

    Parameters
    ----------
    rows : Rows
        Whole queries, with the numbers of their rows.
    listed : Listed
        All pairs.
    weighting : str
        As in `PairList.from_pairs`.
    n_features : int
        Number of features of all parts.

    Returns
    -------
    Part
        The part.

    Raises
    ------
    DataError
        When a pair joins two queries.
    """
    rows = rows.with_features(n_features)
    weights = dict(rows.weights)
    numbers = weights.pop(ROW)
    order = np.argsort(numbers)
    place = np.searchsorted(numbers[order], listed.rows).clip(max=max(0, len(order) - 1))
    if len(order):
        place = order[place]
        here = numbers[place] == listed.rows
    else:
        here = np.zeros(listed.rows.shape, dtype=bool)
    apart = np.flatnonzero(here.any(axis=1) & ~here.all(axis=1))
    own = np.flatnonzero(here.all(axis=1))
    query = rows.queries.numbers()
    apart = np.append(apart, own[query[place[own, 0]] != query[place[own, 1]]])
    if len(apart):
        first = int(apart.min())
        raise DataError(
            f"pairs[{first}] joins row {listed.rows[first, 0]} with row {listed.rows[first, 1]} of another query: both "
            "must be in one query."
        )
    try:
        pairs = PairList.from_pairs(
            rows.queries, place[own], pair_weight=listed.weight[own], weighting=weighting, **weights
        )
    except NoComparablePairsError:
        pairs = _none()
    taken = np.zeros(0, dtype=np.int64) if pairs.rows is None else pairs.rows
    return Part(rows.X[taken], pairs.renumbered())


def _none() -> PairList:
    pointers, nothing = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    return PairList(pointers, None, pointers, nothing, nothing, np.zeros(0))
