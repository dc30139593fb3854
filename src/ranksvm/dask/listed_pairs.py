"""Pairs that the user lists by row numbers of the whole data, and their division among parts."""

from typing import TYPE_CHECKING, NamedTuple

import dask
import numpy as np
from numpy.typing import ArrayLike

from ranksvm.dask.rows import ROW, Rows, hashes_of
from ranksvm.data import PairList, Preferences, Queries, frames
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pair_list import groups_of_pairs, row_numbers
from ranksvm.exceptions import DataError
from ranksvm.terms.parts.part import Part

if TYPE_CHECKING:
    from ranksvm.dask.inputs import DaskFeatures

__all__ = [
    "PairsInPart",
    "Listed",
    "are_pairs",
    "groups_of_rows",
    "listed_pairs",
    "pairs_in_part",
    "part_of_pairs",
    "queries_of_pairs",
    "unpacked_preferences",
]


class Listed(NamedTuple):
    """Listed pairs.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other) in the whole data.
    weight : ndarray of float64, shape (n_pairs,)
        Weight of each pair.
    groups : ndarray of int, shape (n_pairs,), or None
        Group of each pair if there is at most one query: pairs that share rows, directly or through other pairs, are in
        one group. None: the pairs of each query are a group.
    """

    rows: np.ndarray
    weight: np.ndarray
    groups: np.ndarray | None = None

    def connected(self) -> "Listed":
        """The same pairs, with ``groups``: pairs that share rows, directly or through other pairs, are one group."""
        n_rows = int(self.rows.max()) + 1
        return self._replace(groups=groups_of_pairs(Queries.from_group([n_rows], n_rows), *self.rows.T))

    def taken(self, numbers: np.ndarray) -> "Listed":
        """The pairs with these numbers (positions)."""
        groups = None if self.groups is None else self.groups[numbers]
        return Listed(self.rows[numbers], self.weight[numbers], groups)


class PairsInPart(NamedTuple):
    """The pairs of a part.

    Attributes
    ----------
    numbers : ndarray of int64, shape (n_pairs,)
        Which of the listed pairs they are.
    places : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other) within the part.
    """

    numbers: np.ndarray
    places: np.ndarray


def unpacked_preferences(
    X: "DaskFeatures | Preferences",
    y: ArrayLike | None,
    qid: ArrayLike | None,
    group: ArrayLike | None,
    pairs: ArrayLike | None,
    pair_weight: ArrayLike | None,
) -> tuple["DaskFeatures", ArrayLike | None, ArrayLike | None, ArrayLike | None]:
    """Split X of ``fit``, which may be one `Preferences`, into X, qid, pairs and pair_weight.

    Parameters
    ----------
    X : Preferences or other features
        The data.
    y, qid, group, pairs, pair_weight : optional
        The other arguments of ``fit``; with Preferences they must be None.

    Returns
    -------
    tuple of (X, qid, pairs, pair_weight)
        What to fit to.
    """
    if not isinstance(X, Preferences):
        return X, qid, pairs, pair_weight
    # raises an error if one of these was also passed
    X.arguments(y=y, qid=qid, group=group, pairs=pairs, pair_weight=pair_weight)
    # the two answers of a pair, and the answers of a prompt, are adjacent, so that parts divide few of them
    ids = X.qid
    order = np.argsort(Queries.from_qid(ids).numbers(), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return frames.take_rows(X.X, order), ids[order], place[X.pairs], X.weight


def are_pairs(y: ArrayLike) -> bool:
    """Whether the second item of an evaluation set contains pairs of row numbers instead of labels."""
    shape = getattr(y, "shape", None) if dask.is_dask_collection(y) else np.shape(y)
    return shape is not None and len(shape) == 2 and shape[1] == 2


def listed_pairs(pairs: ArrayLike, pair_weight: ArrayLike | None, n_rows: int) -> Listed:
    """Validate pairs and their weights, as passed to ``fit``.

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
    """An id for each row, used if there are no query ids: rows that pairs connect have the same id.

    Parameters
    ----------
    listed : Listed
        The pairs, with their groups.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        The ids.
    """
    assert listed.groups is not None
    ids = n_rows + np.arange(n_rows)
    ids[listed.rows[:, 0]] = ids[listed.rows[:, 1]] = listed.groups
    return ids


def pairs_in_part(rows: Rows, listed: Listed) -> PairsInPart:
    """The listed pairs of a part.

    Parameters
    ----------
    rows : Rows
        Whole queries, with the numbers of their rows.
    listed : Listed
        All pairs.

    Returns
    -------
    PairsInPart
        The pairs of these rows.

    Raises
    ------
    DataError
        When a pair joins two queries.
    """
    numbers = rows.weights[ROW]
    order = np.argsort(numbers)
    place = np.searchsorted(numbers[order], listed.rows).clip(max=max(0, len(order) - 1))
    if len(order):
        place = order[place]
        is_in_part = numbers[place] == listed.rows
    else:
        is_in_part = np.zeros(listed.rows.shape, dtype=bool)
    split = np.flatnonzero(is_in_part.any(axis=1) & ~is_in_part.all(axis=1))
    kept = np.flatnonzero(is_in_part.all(axis=1))
    query = rows.queries.numbers()
    split = np.append(split, kept[query[place[kept, 0]] != query[place[kept, 1]]])
    if len(split):
        first = int(split.min())
        raise DataError(
            f"pairs[{first}] joins row {listed.rows[first, 0]} with row {listed.rows[first, 1]} of another query: both "
            "must be in one query."
        )
    return PairsInPart(kept, place[kept])


def queries_of_pairs(rows: Rows, listed: Listed) -> tuple[np.ndarray, np.ndarray]:
    """Which of the listed pairs a part has, and the query of each of them.

    Parameters
    ----------
    rows : Rows
        Whole queries, with the numbers of their rows.
    listed : Listed
        All pairs.

    Returns
    -------
    numbers : ndarray of int64
        Which of the listed pairs they are.
    queries : ndarray of uint64
        The hash of the query of each pair.
    """
    pairs = pairs_in_part(rows, listed)
    return pairs.numbers, hashes_of(rows.queries.ids)[rows.queries.numbers()[pairs.places[:, 0]]]


def part_of_pairs(rows: Rows, listed: Listed, weighting: str, n_features: int, in_place: bool = False) -> Part:
    """The part of the training problem that some rows make up, with the listed pairs of these rows.

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
    in_place : bool
        Whether the part uses the features of all rows without a copy, instead of a copy of the rows that pairs need.

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
    part_pairs = pairs_in_part(rows, listed)
    if not len(part_pairs.numbers):
        return Part(rows.X[:0], _none())
    weights = {name: values for name, values in rows.weights.items() if name != ROW}
    pairs = PairList.from_pairs(
        rows.queries,
        part_pairs.places,
        pair_weight=listed.weight[part_pairs.numbers],
        weighting=weighting,
        may_be_weightless=True,
        **weights,
    )
    if in_place:
        return Part(rows.X, pairs, sample_weight=rows.weights.get("sample_weight"))
    return Part(rows.X[pairs.rows], pairs.renumbered())


def _none() -> PairList:
    pointers, nothing = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    return PairList(pointers, None, pointers, nothing, nothing, np.zeros(0))
