"""The comparable pairs of a data set: who is preferred to whom and with what weight, never listed."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import ranksvm._compiled.sweep as sweep
from ranksvm._parallel import parallel_map
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError, NoComparablePairsError

__all__ = ["ComparablePairs"]

# Queries of up to this many levels take the direct form of the sweep, O(k) a document, others the parting, O(log k).
# Measured by benchmarks/sweep_levels.py (benchmarks/results/sweep_levels.md).
DIRECT_LIMIT = 23

# Of how many queries a sample consists at least, if there are as many.
SAMPLE_QUERIES = 64


class ComparablePairs:
    """All pairs (i, j) of one query with ``y_i > y_j``: i is the preferred document, j the other.

    Rows are in the sorted order of `Queries`: position ``t`` is row ``rows[t]`` of the data. The weight of a pair is
    ``preferred[i] * other[j]``.

    Parameters
    ----------
    pointers : ndarray of int64, shape (n_queries + 1,)
        First position of each query.
    rows : ndarray of int64, shape (n_rows,), or None
        Row of each position; None when they are the same.
    levels : ndarray of int32, shape (n_rows,)
        Rank of each label among the distinct labels of its query, from 0.
    n_levels : ndarray of int32, shape (n_queries,)
        Number of distinct labels of each query.
    preferred, other : ndarray of float64, shape (n_rows,), or None
        The two factors of a pair's weight; None for 1.
    direct_limit : int
        Largest number of levels for which the direct form of the sweep is used.
    """

    def __init__(
        self,
        pointers: np.ndarray,
        rows: np.ndarray | None,
        levels: np.ndarray,
        n_levels: np.ndarray,
        preferred: np.ndarray | None = None,
        other: np.ndarray | None = None,
        direct_limit: int = DIRECT_LIMIT,
    ):
        self.pointers = pointers
        self.rows = rows
        self.levels = levels
        self.n_levels = n_levels
        self.preferred = preferred
        self.other = other
        self.arrays = sweep.PairArrays(pointers, levels, n_levels, preferred, other, direct_limit)
        self.pairs_per_query = np.empty(self.n_queries)
        self.weight_per_query = np.empty(self.n_queries)
        sweep.count_pairs(self.arrays, 0, self.n_queries, self.pairs_per_query, self.weight_per_query)

    @classmethod
    def from_labels(
        cls,
        queries: Queries,
        y: np.ndarray,
        *,
        sample_weight: Any = None,
        query_weight: Any = None,
        n_threads: int = 1,
    ) -> "ComparablePairs":
        """The pairs that labels imply.

        Parameters
        ----------
        queries : Queries
            Which rows belong together.
        y : ndarray of float64, shape (n_rows,)
            Relevance labels; only their order within a query counts.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row, with the meaning of repetition: a pair weighs ``v_i * v_j``.
        query_weight : array-like of shape (n_rows,), optional
            Weight of each row's query, constant within a query: it multiplies the weight of the query's pairs.
        n_threads : int
            Number of threads.

        Returns
        -------
        ComparablePairs
            The pairs.

        Raises
        ------
        NoComparablePairsError
            When no query has two different labels (or none whose pair has a positive weight).
        DataError
            When a weight is negative or not finite, or a query's weight varies within it.
        """
        levels = np.empty(queries.n_rows, dtype=np.int32)
        n_levels = np.zeros(queries.n_queries, dtype=np.int32)
        y_sorted = queries.to_sorted(y)
        compress = partial(_compress, queries.pointers, y_sorted, levels, n_levels)
        parallel_map(compress, _ranges(queries.n_queries, n_threads), n_threads)
        preferred = other = None
        if sample_weight is not None or query_weight is not None:
            document = _weights("sample_weight", sample_weight, queries)
            query = _weights("query_weight", query_weight, queries)
            _check_constant(query, queries)
            preferred, other = document * query, document
        pairs = cls(queries.pointers, queries.order, levels, n_levels, preferred, other)
        if pairs.weight <= 0:
            raise NoComparablePairsError(_why_no_pairs(queries, pairs))
        return pairs

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.pointers) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.levels)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of all queries."""
        return int(self.pairs_per_query.sum())

    @property
    def weight(self) -> float:
        """Sum of the weights of all pairs."""
        return float(self.weight_per_query.sum())

    def sample(self, n_rows: int, seed: int = 0) -> tuple["ComparablePairs", np.ndarray]:
        """A random part of the queries; of long ones a random part of their rows, weighted to stand for all pairs.

        There is at least one pair of positive weight in it.

        Parameters
        ----------
        n_rows : int
            Number of rows wanted, roughly.
        seed : int
            Seed of the choice.

        Returns
        -------
        pairs : ComparablePairs
            The pairs among the chosen rows; their weights add up to those of the chosen queries.
        positions : ndarray of int64
            Their positions here, ascending.
        """
        random = np.random.default_rng(seed)
        sizes = np.diff(self.pointers)
        candidates = random.permutation(np.flatnonzero(self.weight_per_query > 0))
        # A few long lists would say little about the others, so long ones give part of their rows.
        limit = max(2, n_rows // min(len(candidates), SAMPLE_QUERIES))
        enough = int(np.searchsorted(np.cumsum(np.minimum(sizes[candidates], limit)), n_rows)) + 1
        chosen = np.sort(candidates[:enough])
        parts, parts_levels, n_levels = [], [], self.n_levels[chosen]
        for number, query in enumerate(chosen):
            part = np.arange(self.pointers[query], self.pointers[query + 1])
            part_levels = self.levels[part[0] : part[-1] + 1]
            if len(part) > limit:
                part = self._subset(part, limit, random)
                # ranked anew: an explicit Hessian allots memory for each level
                present, part_levels = np.unique(self.levels[part], return_inverse=True)
                n_levels[number] = len(present)
            parts.append(part)
            parts_levels.append(part_levels.astype(np.int32, copy=False))
        positions = np.concatenate(parts)
        kept = np.array([len(part) for part in parts])
        pointers = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
        rows = positions if self.rows is None else self.rows[positions]
        levels = np.concatenate(parts_levels)
        preferred = None if self.preferred is None else self.preferred[positions]
        other = None if self.other is None else self.other[positions]
        pairs = ComparablePairs(pointers, rows, levels, n_levels, preferred, other)
        if np.any(kept < sizes[chosen]):
            # The pairs among the rows kept stand for all pairs of their query.
            weight = self.weight_per_query[chosen] / np.maximum(pairs.weight_per_query, 1e-300)
            scale = np.repeat(np.where(pairs.weight_per_query > 0, weight, 0.0), kept)
            preferred = scale if preferred is None else preferred * scale
            other = np.ones(len(positions)) if other is None else other
            pairs = ComparablePairs(pointers, rows, levels, n_levels, preferred, other)
        return pairs, positions

    def _subset(self, positions: np.ndarray, n_rows: int, random: np.random.Generator) -> np.ndarray:
        """Random positions of a query, with one that is preferred and one that is not, however rare these are."""
        levels = self.levels[positions]
        upper, lower = levels, levels
        if self.preferred is not None and self.other is not None:
            upper = np.where(self.preferred[positions] > 0, levels, -1)
            lower = np.where(self.other[positions] > 0, levels, levels.max() + 1)
        drawn = random.choice(len(positions), n_rows, replace=False)
        return positions[np.unique(np.append(drawn, [np.argmax(upper), np.argmin(lower)]))]


def _compress(pointers: np.ndarray, y: np.ndarray, levels: np.ndarray, n_levels: np.ndarray, part: slice) -> None:
    sweep.compress_levels(pointers, part.start, part.stop, y, levels, n_levels)


def _ranges(n_queries: int, n_threads: int) -> list[slice]:
    cuts = np.linspace(0, n_queries, 4 * n_threads + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(cuts) if b > a]


def _weights(name: str, values: Any, queries: Queries) -> np.ndarray:
    """Checked weights in sorted order."""
    if values is None:
        return np.ones(queries.n_rows)
    weights = np.asarray(values, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(queries.n_rows, float(weights))
    if weights.shape != (queries.n_rows,):
        raise DataError(f"{name} has shape {weights.shape} but X has {queries.n_rows} rows: one weight per row.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise DataError(f"{name} is {weights[bad[0]]} in row {bad[0]}: weights must be finite and not negative.")
    return np.ascontiguousarray(queries.to_sorted(weights))


def _check_constant(query_weight: np.ndarray, queries: Queries) -> None:
    filled = queries.sizes > 0
    first = query_weight[queries.pointers[:-1][filled]]
    varies = np.flatnonzero(query_weight != np.repeat(first, queries.sizes[filled]))
    if len(varies):
        query = int(np.searchsorted(queries.pointers, varies[0], side="right")) - 1
        name = queries.ids.tolist()[query]
        raise DataError(f"query_weight varies within query {name!r}: give every row of a query its weight.")


def _why_no_pairs(queries: Queries, pairs: ComparablePairs) -> str:
    if pairs.n_pairs:
        return f"All {pairs.n_pairs} comparable pairs have zero weight: there is nothing to learn from."
    if queries.n_rows == 1:
        return "No comparable pair: X has 1 sample (n_samples = 1), and ranking compares two documents of a query."
    if len(queries.ids) == queries.n_rows > 1:
        return f"No comparable pair: each of the {queries.n_rows} rows is a query of its own. Is qid the query id?"
    return (
        f"No comparable pair: within each of the {queries.n_queries} queries all labels are the same (1 class). "
        "Ranking needs two documents of one query with different labels."
    )
