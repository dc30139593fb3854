"""Validation of the columns of a click log, and the order of the rows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm.clicks._codes import Coded, Ids
from ranksvm.data import Queries
from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError

__all__ = ["impressions", "propensities", "ranks", "times"]


def ranks(name: str, values: ArrayLike, n_rows: int) -> np.ndarray:
    """Ranks as int32; DataError if they are not whole numbers from 1."""
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iu":
        numbers = numeric_column(name, values)
    check_one_per_row(name, numbers, n_rows, "clicked")
    wrong = (numbers < 1) | (numbers > np.iinfo(np.int32).max) | (numbers != np.floor(numbers))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"{name} is {numbers[row]} in row {row} (from 0): ranks are the whole numbers 1, 2, 3, ...")
    return numbers.astype(np.int32)


def propensities(values: ArrayLike, clicked: np.ndarray) -> np.ndarray:
    """Probabilities in [0, 1], above 0 for clicked rows."""
    numbers = numeric_column("propensity", values)
    check_one_per_row("propensity", numbers, len(clicked), "clicked")
    wrong = (numbers < 0.0) | (numbers > 1.0) | (clicked & (numbers == 0.0))
    if wrong.any():
        row = int(wrong.argmax())
        range_ = "in (0, 1], since it was clicked on" if clicked[row] else "in [0, 1]"
        raise DataError(
            f"propensity is {numbers[row]} in row {row} (from 0): the probability of being examined must be {range_}."
        )
    return numbers


def times(values: ArrayLike, n_rows: int) -> np.ndarray:
    """Times as float64, or unchanged if they are dates, times or durations of NumPy."""
    times = np.asarray(values)
    check_one_per_row("time", times, n_rows, "clicked")
    return times if times.dtype.kind in "mM" else numeric_column("time", times)


def impressions(
    impression: Ids | None, rank: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray | None, list[Any] | None]:
    """First row of each impression after sorting by impression and rank; the sorting order; the ids of impressions."""
    if impression is None:
        starts = np.flatnonzero(rank == 1)
        if len(starts) == 0 or starts[0] != 0:
            raise DataError(f"the log begins at rank {rank[0]}: without impression= every list begins at rank 1.")
        return np.append(starts, n_rows), None, None
    ids = impression.codes if isinstance(impression, Coded) else impression
    queries = Queries.from_qid(ids, n_rows, name="impression")
    names = impression.ids[queries.ids].tolist() if isinstance(impression, Coded) else queries.keys
    order, pointers = queries.order, queries.pointers
    ranks = queries.to_sorted(rank)
    within = np.ones(n_rows, dtype=bool)
    within[pointers[:-1]] = False
    if np.any(within[1:] & (ranks[1:] < ranks[:-1])):
        again = np.lexsort((ranks, np.repeat(np.arange(queries.n_queries), queries.sizes)))
        order = again if order is None else order[again]
    return pointers, order, names
