"""Sums over a click log, block by block: metrics with their errors, weights of clicks, documents that were shown."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError

__all__ = ["MEAN_RANK", "Support", "Totals", "Weights", "discounts", "one_per_row"]

MEAN_RANK = "mean_relevant_rank"


def one_per_row(name: str, values: Any, n_rows: int, owner: str) -> np.ndarray:
    numbers = numeric_column(name, values)
    if numbers.shape != (n_rows,):
        raise DataError(f"{name} has shape {numbers.shape}, but {owner} has {n_rows} rows: they must agree.")
    return numbers


def discounts(kind: str, cutoff: int | None, rank: np.ndarray) -> np.ndarray:
    """What a relevant document at a new rank adds."""
    if kind == MEAN_RANK:
        return rank.astype(np.float64)
    value = 1.0 / np.log2(1.0 + rank) if kind == "dcg" else 1.0 / rank
    return value if cutoff is None else np.where(rank <= cutoff, value, 0.0)


class Totals:
    """Sums over units (impressions or queries) of metrics, of relevance, and of their squares and products."""

    def __init__(self, names: dict[str, tuple[str, int | None]], unit: str):
        self._names, self._by_query = names, unit == "query"
        self.n_impressions = 0
        # columns: one for each metric, relevance, number of impressions
        self._width = len(names) + 2
        self._sums = np.zeros((self._width, self._width))
        self._total = np.zeros(self._width)
        self._n_units = 0
        self._queries = np.zeros((0, self._width))

    def add_block(self, block: Any, rank: np.ndarray, relevance: np.ndarray) -> None:
        """Add the impressions of a block with new ranks and estimates of relevance."""
        starts = block.pointers[:-1]
        columns = []
        for kind, cutoff in self._names.values():
            terms = discounts(kind, cutoff, rank) * relevance
            if kind == "mrr":
                terms = terms * _not_above(block, rank, relevance)
            columns.append(np.add.reduceat(terms, starts))
        self.add(block, np.column_stack([*columns, np.add.reduceat(relevance, starts), np.ones(len(starts))]))

    def add(self, block: Any, values: np.ndarray) -> None:
        """Add the impressions of a block, a row of values for each."""
        self.n_impressions += block.n_impressions
        if not self._by_query:
            self._add_units(values)
            return
        codes = block.query[block.pointers[:-1]]
        most = max(len(self._queries), int(codes.max()) + 1)
        sums = [np.bincount(codes, column, most) for column in values.T]
        self._queries = np.pad(self._queries, ((0, most - len(self._queries)), (0, 0))) + np.column_stack(sums)

    def _add_units(self, values: np.ndarray) -> None:
        self._sums += values.T @ values
        self._total += values.sum(axis=0)
        self._n_units += len(values)

    def result(self, place: int, ratio: bool, confidence: float) -> tuple[float, tuple[float, float]]:
        """A metric over relevance or over the number of impressions, and its interval."""
        if len(self._queries):
            self._add_units(self._queries[self._queries[:, -1] > 0])
            self._queries = self._queries[:0]
        below = -2 if ratio else -1
        total, size = self._total[place], self._total[below]
        if not size > 0 or self._n_units == 0:
            return np.nan, (np.nan, np.nan)
        value = total / size
        if self._n_units < 2:
            return float(value), (np.nan, np.nan)
        # linearised: the mean of (v - value * w) / mean(w) over the units is 0
        sums = self._sums
        square = sums[place, place] - 2 * value * sums[place, below] + value**2 * sums[below, below]
        error = np.sqrt(max(square, 0.0) * self._n_units / (self._n_units - 1)) / size
        half = float(ndtri(0.5 + confidence / 2)) * error
        return float(value), (float(value - half), float(value + half))


def _not_above(block: Any, rank: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Product of 1 - relevance over the documents of the impression that the new ranker puts above each row."""
    impression = np.repeat(np.arange(block.n_impressions), np.diff(block.pointers))
    order = np.lexsort((rank, impression))
    place = np.arange(len(order)) - np.repeat(block.pointers[:-1], np.diff(block.pointers))
    table = np.ones((block.n_impressions, int(np.diff(block.pointers).max()) + 1))
    table[impression, place + 1] = 1.0 - relevance[order]
    out = np.empty(len(order))
    out[order] = np.cumprod(table, axis=1)[impression, place]
    return out


class Weights:
    """Weights of clicks, as counts of different values."""

    def __init__(self) -> None:
        self._values, self._counts = np.zeros(0), np.zeros(0)

    def add(self, weights: np.ndarray) -> None:
        """Add those of some clicks."""
        values, counts = np.unique(weights, return_counts=True)
        values, counts = np.concatenate((self._values, values)), np.concatenate((self._counts, counts))
        self._values, place = np.unique(values, return_inverse=True)
        self._counts = np.bincount(place.reshape(-1), weights=counts, minlength=len(self._values)).astype(np.float64)

    @property
    def n(self) -> int:
        """Number of clicks."""
        return int(self._counts.sum())

    @property
    def effective(self) -> float:
        """Effective number of clicks."""
        total = self._values @ self._counts
        return float(total**2 / (self._values**2 @ self._counts)) if total > 0 else 0.0

    @property
    def top_share(self) -> float:
        """Share of the weight in the top 1 % of the clicks."""
        if not self.n:
            return np.nan
        wanted, total = max(1.0, 0.01 * self.n), self._values @ self._counts
        counts, values = self._counts[::-1], self._values[::-1]
        taken = np.minimum(counts, np.maximum(0.0, wanted - np.concatenate(([0.0], np.cumsum(counts)[:-1]))))
        return float(values @ taken / total)


class Support:
    """Which documents some list has shown, and how often each query was asked."""

    def __init__(self, data: Any, rank: np.ndarray):
        self._data, self._rank, self._numbers = data, rank, data.queries.numbers()
        self._shown = np.zeros(data.n_rows, dtype=bool)
        self._asked = np.zeros(data.queries.n_queries)

    def add(self, block: Any) -> None:
        """Add a block of the log."""
        rows = block.rows(self._data)
        self._shown[rows] = True
        self._asked += np.bincount(self._numbers[rows[block.pointers[:-1]]], minlength=len(self._asked))

    @property
    def unseen_share(self) -> float:
        """Share of the first ten new ranks, over the impressions, whose documents were never shown."""
        first = (self._rank <= 10) * self._asked[self._numbers]
        return float(1.0 - first[self._shown].sum() / first.sum())
