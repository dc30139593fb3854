"""The comparable pairs of a data set and their weights, derived from labels of documents, not stored as a list."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

import ranksvm._compiled.sweep as sweep
from ranksvm._util.lazy import cached_property
from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm.data.censoring import order_of_times
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError, NoComparablePairsError

__all__ = ["ComparablePairs", "PairWeights", "check_total"]

# The margin sweep computes sums over all pairs of a query of m documents in time O(m log m), without visiting pairs.
# For up to this many levels k (distinct labels of a query) it has a direct form, which takes O(k) per document; for
# more levels it uses a partition, which takes O(log k).
# Measured by benchmarks/sweep_levels.py (benchmarks/results/sweep_levels.md).
DIRECT_LIMIT = 31

# A query is visited pair by pair if its number of pairs per document is at most VISIT_LIMIT * (14 + min(levels, 40));
# other queries are swept (by the margin sweep). With 5 levels the limit is 95 pairs per document, about 240 documents.
# Measured with AVX2 by the method of benchmarks/sweep_levels.py, for an evaluation of the squared hinge plus a product
# of its Hessian with a vector: visiting and sweeping take the same time at 80 to 90 pairs per document with 2, 3 and 5
# levels, and at about 300 if all labels are distinct.
VISIT_LIMIT = 5.0

# Ranking labels takes about 5 ns per row, and waking a thread takes up to 0.4 ms, so one thread ranks the labels of
# fewer rows than this.
# (Measured with MQ2008, where a second thread doubled the time.)
PARALLEL_ROWS = 1 << 17

# Minimum number of queries in a sample, if the data have that many.
SAMPLE_QUERIES = 64
# A number above any possible number of pairs.
UNLIMITED = 1 << 62


@dataclass(frozen=True)
class PairWeights:
    """Weights per row; a pair (i, j) has weight ``v_i * v_j * query_weight / propensity_i``.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), optional
        Weight v of each row: a row of weight 2 counts like two equal rows.
    query_weight : array-like of shape (n_rows,), optional
        Weight of each row's query, constant within a query.
    propensity : array-like of shape (n_rows,), optional
        Probability, in (0, 1], with which each row's feedback was observed; only the preferred document's is used
        (Joachims, Swaminathan & Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017, equation 5).
    """

    sample_weight: ArrayLike | None = None
    query_weight: ArrayLike | None = None
    propensity: ArrayLike | None = None

    def factors(self, queries: Queries) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The factor of each row in a pair's weight: as the preferred document, and as the other one.

        Parameters
        ----------
        queries : Queries
            The rows' queries.

        Returns
        -------
        preferred, other : ndarray of float64, shape (n_rows,), or None
            For rows sorted by query; None if there are no weights.

        Raises
        ------
        DataError
            When a weight is negative or not finite, ``query_weight`` varies within a query, or a propensity is not in
            (0, 1].
        """
        if self.sample_weight is None and self.query_weight is None and self.propensity is None:
            return None, None
        document = _sorted_weights("sample_weight", self.sample_weight, queries)
        query = _sorted_weights("query_weight", self.query_weight, queries)
        _check_constant(query, queries)
        with np.errstate(over="ignore"):
            preferred = document * query / self._propensities(queries)
        bad = np.flatnonzero(~np.isfinite(preferred))
        if len(bad):
            row = bad[0] if queries.order is None else queries.order[bad[0]]
            raise DataError(
                f"the weight of the pairs in which row {row} (from 0) is preferred overflows float64: rescale the "
                "weights, or limit propensities from below."
            )
        return preferred, document

    def _propensities(self, queries: Queries) -> np.ndarray:
        propensity = _sorted_weights("propensity", self.propensity, queries)
        bad = np.flatnonzero((propensity <= 0.0) | (propensity > 1.0))
        if len(bad):
            row = bad[0] if queries.order is None else queries.order[bad[0]]
            raise DataError(
                f"propensity is {propensity[bad[0]]} in row {row}: the probability that a row's feedback is observed "
                "must be in (0, 1]."
            )
        return propensity


class ComparablePairs:
    """All pairs (i, j) of one query with ``y_i > y_j``: i is the preferred document, j the other.

    Rows are in the sorted order of `Queries`: position ``t`` is row ``rows[t]`` of the data. The weight of a pair is
    ``preferred[i] * other[j]``, times ``gain[i] - gain[j]`` if there are gains.

    Parameters
    ----------
    pointers : ndarray of int64, shape (n_queries + 1,)
        First position of each query.
    rows : ndarray of int64, shape (n_rows,), or None
        Row of each position; None when position and row are the same.
    levels : ndarray of int32, shape (n_rows,)
        Rank of each label among the distinct labels of its query, from 0.
    n_levels : ndarray of int32, shape (n_queries,)
        Number of distinct labels of each query.
    preferred, other : ndarray of float64, shape (n_rows,), or None
        The two factors of a pair's weight; None for 1.
    gain : ndarray of float64, shape (n_rows,), or None
        Gain of each document, ascending with its level; None if pairs are not weighted by a difference.
    adjacent : bool
        Whether only the pairs of adjacent levels count.
    direct_limit : int
        Maximum number of levels for which the direct form of the sweep is used.
    visit_limit : float
        A query is visited pair by pair if its number of pairs per document is at most
        ``visit_limit * (14 + min(levels, 40))``; other queries are swept.

    Attributes
    ----------
    n_queries, n_rows : int
        Number of queries, and of rows.
    by_level : ndarray of int32, shape (n_rows,)
        Documents of each query, numbered within it, the lowest level first; those of one level keep their order.
    n_swept : int
        Number of queries that are swept, not visited pair by pair.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import ComparablePairs, Queries
    >>> pairs = ComparablePairs.from_labels(Queries.from_qid([1, 1, 1, 2, 2]), np.array([2.0, 0.0, 1.0, 1.0, 0.0]))
    >>> pairs.n_pairs, pairs.n_queries
    (4, 2)
    """

    def __init__(
        self,
        pointers: np.ndarray,
        rows: np.ndarray | None,
        levels: np.ndarray,
        n_levels: np.ndarray,
        preferred: np.ndarray | None = None,
        other: np.ndarray | None = None,
        gain: np.ndarray | None = None,
        adjacent: bool = False,
        direct_limit: int = DIRECT_LIMIT,
        visit_limit: float = VISIT_LIMIT,
    ):
        if gain is not None and (preferred is None or other is None):
            preferred = other = np.ones(len(levels))
        self.n_queries = len(pointers) - 1
        self.n_rows = len(levels)
        self.pointers = pointers
        self.rows = rows
        self.levels = levels
        self.n_levels = n_levels
        self.preferred = preferred
        self.other = other
        self.gain = gain
        self.adjacent = adjacent
        self.direct_limit = direct_limit
        self.visit_limit = visit_limit
        self.arrays = sweep.PairArrays(pointers, levels, n_levels, preferred, other, gain, adjacent, direct_limit)
        self.pairs_per_query = np.empty(self.n_queries)
        self.weight_per_query = np.empty(self.n_queries)
        sweep.count_pairs(self.arrays, 0, self.n_queries, self.pairs_per_query, self.weight_per_query)
        self.by_level = np.empty(len(levels), dtype=np.int32)
        self.visited = np.empty(self.n_queries, dtype=np.uint8)
        self.n_swept = self.arrays.choose(self.pairs_per_query, visit_limit, self.by_level, self.visited)
        # a document with a censored time may be preferred to others, but no document is preferred to it
        self._never_other = other is not None and not other.all()
        if self._never_other:
            self.pairs_per_query = self._counts_without_zeros(np.asarray(other))

    def __reduce__(self):
        # the compiled view of the arrays is created again
        parts = self.pointers, self.rows, self.levels, self.n_levels, self.preferred, self.other, self.gain
        return ComparablePairs, (*parts, self.adjacent, self.direct_limit, self.visit_limit)

    def _counts_without_zeros(self, other: np.ndarray) -> np.ndarray:
        """Number of pairs of each query, without pairs whose other document has a zero factor."""
        ones, may = np.ones(len(other)), (other > 0.0).astype(float)
        parts = self.pointers, self.levels, self.n_levels, ones, may, None, self.adjacent, self.direct_limit
        listed, counts = np.empty((2, self.n_queries))
        sweep.count_pairs(sweep.PairArrays(*parts), 0, self.n_queries, listed, counts)
        return np.rint(counts)

    @classmethod
    def from_labels(
        cls,
        queries: Queries,
        y: np.ndarray,
        *,
        selection: str = "all",
        weighting: str = "uniform",
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        event: np.ndarray | None = None,
        largest_label: float | None = None,
        may_be_empty: bool = False,
        n_threads: int = 1,
    ) -> "ComparablePairs":
        """The pairs implied by labels.

        Parameters
        ----------
        queries : Queries
            Which rows belong together.
        y : ndarray of float64, shape (n_rows,)
            Relevance labels; only their order within a query counts, unless the weighting uses them.
        selection : {"all", "adjacent"}
            All pairs of different labels, or only pairs whose labels are adjacent among the query's distinct labels
            (Lee & Lin 2014, section 5).
        weighting : {"uniform", "per_query", "label_gap", "gain_gap"}
            Factor of a pair's weight: 1 ("uniform"); 1 divided by the sum of the weights of all pairs of its query
            ("per_query"); ``y_i - y_j`` ("label_gap"); or ``(2^y_i - 2^y_j) / 2^max(y)``, with the maximum over all
            rows ("gain_gap"). Rows with a ``sample_weight`` of 0 are ignored.
        sample_weight, query_weight, propensity : array-like of shape (n_rows,), optional
            Factors of the weight of a pair, by row: see `PairWeights`.
        event : ndarray of float64, shape (n_rows,), optional
            If given, the labels are times: 1 for the time of an observed event, 0 for a right-censored time. Then
            (i, j) is a pair only if the event of j was observed; a censored time is longer than an equal observed one.
        largest_label : float, optional
            The largest label of all data, if these rows are a part of the data; by default, the largest of these rows.
        may_be_empty : bool
            Whether there may be no pair, for instance in a part of the data.
        n_threads : int
            Number of threads.

        Returns
        -------
        ComparablePairs
            The pairs.

        Raises
        ------
        NoComparablePairsError
            When no query has two different labels (or no such pair has a positive weight).
        DataError
            When a weight is negative or not finite, ``query_weight`` varies within a query, a propensity is not in
            (0, 1], or the weights of the pairs overflow.
        """
        pointers, rows, y_sorted = queries.pointers, queries.order, queries.to_sorted(y)
        preferred, other = PairWeights(sample_weight, query_weight, propensity).factors(queries)
        observed = None if event is None else queries.to_sorted(event)
        if other is not None and not other.all():
            # A row of weight 0 is ignored: its label does not form a level, and does not count as the largest label.
            kept = np.flatnonzero(other)
            rows = kept if rows is None else rows[kept]
            pointers = np.searchsorted(kept, pointers)
            y_sorted, other = y_sorted[kept], other[kept]
            preferred = None if preferred is None else preferred[kept]
            observed = None if observed is None else observed[kept]
        ordered = y_sorted if observed is None else order_of_times(y_sorted, observed)
        levels = np.empty(len(y_sorted), dtype=np.int32)
        n_levels = np.zeros(queries.n_queries, dtype=np.int32)
        n_threads = n_threads if len(y_sorted) >= PARALLEL_ROWS else 1
        compress = partial(_compress, pointers, ordered, levels, n_levels, n_threads)
        parallel_map(compress, _ranges(queries.n_queries, n_threads), n_threads)
        adjacent = selection == "adjacent"
        parts = pointers, rows, levels, n_levels
        if weighting == "per_query":
            preferred, other = _shares_of_queries(
                preferred,
                other,
                pointers,
                lambda v: cls(*parts, v, v if observed is None else v * observed, None, adjacent),
            )
        if observed is not None:
            # if the time of the other document is censored, the pair is not comparable: its weight is 0
            preferred = np.ones(len(observed)) if preferred is None else preferred
            other = observed if other is None else other * observed
        pairs = cls(*parts, preferred, other, _gains(weighting, y_sorted, pointers, largest_label), adjacent)
        check_total(pairs.weight)
        if pairs.weight <= 0 and not may_be_empty:
            raise NoComparablePairsError(_why_no_pairs(queries, pairs, event))
        return pairs

    @cached_property
    def n_pairs(self) -> int:
        """Number of pairs of all queries."""
        return int(self.pairs_per_query.sum())

    @cached_property
    def weight(self) -> float:
        """Sum of the weights of all pairs."""
        return float(self.weight_per_query.sum())

    @cached_property
    def gain_parts(self) -> tuple["ComparablePairs", ...]:
        """The same pairs twice: weighted by the gain of one document, then by the gain of the other; () without gains.

        The round-off of a weight that is a difference of gains is relative to the sum of both gains, not to the weight;
        the same holds for sums of such weights.
        """
        if self.gain is None:
            return ()
        preferred, other = np.asarray(self.preferred), np.asarray(self.other)
        parts = self.pointers, self.rows, self.levels, self.n_levels
        choice = self.adjacent, self.direct_limit, self.visit_limit
        return (
            ComparablePairs(*parts, preferred * self.gain, other, None, *choice),
            ComparablePairs(*parts, preferred, other * self.gain, None, *choice),
        )

    def explicit(self, first: int, last: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs of one or more queries, sorted by the position of the preferred, then of the other document.

        Parameters
        ----------
        first : int
            Number of the query, from 0.
        last : int, optional
            The queries are ``first`` to ``last - 1``; None: only query ``first``.

        Returns
        -------
        preferred, other : ndarray of int64, shape (n_pairs,)
            Positions of the two documents of each pair.
        weight : ndarray of float64, shape (n_pairs,)
            Weight of each pair.
        """
        last = first + 1 if last is None else last
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        i, j, weight = next(self.chunks(first, last, UNLIMITED), nothing)
        if self.n_levels[first:last].max(initial=0) <= 2:  # already in this order
            return i, j, weight
        order = np.lexsort((j, i))
        return i[order], j[order], weight[order]

    def weights_of(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Weights of the pairs (i, j).

        Parameters
        ----------
        i, j : ndarray of int64, shape (n,)
            Positions of the preferred and of the other document of each pair.

        Returns
        -------
        ndarray of float64, shape (n,)
            Their weights.
        """
        weight = np.ones(len(i))
        if self.preferred is not None and self.other is not None:
            weight = self.preferred[i] * self.other[j]
        if self.gain is not None:
            weight = weight * (self.gain[i] - self.gain[j])
        return weight

    def chunks(self, first: int, last: int, limit: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The pairs of a range of queries, listed one part at a time.

        Parameters
        ----------
        first, last : int
            The queries are ``first`` to ``last - 1``.
        limit : int
            Number of pairs of a part, roughly; the pairs of one preferred document stay together.

        Yields
        ------
        preferred, other : ndarray of int64
            Positions of the two documents of each pair.
        weight : ndarray of float64
            Weight of each pair.
        """
        start, stop = int(self.pointers[first]), int(self.pointers[last])
        sizes = np.diff(self.pointers[first : last + 1])
        query = np.repeat(np.arange(len(sizes)), sizes)
        # Once the documents of a query are sorted by level, those to which a document is preferred are contiguous.
        order = np.lexsort((self.levels[start:stop], query))
        level, places = self.levels[start:stop][order], np.arange(stop - start)
        new_query = np.diff(query, prepend=-1) != 0
        new_level = new_query | (np.diff(level, prepend=-1) != 0)
        level_begin = np.maximum.accumulate(np.where(new_level, places, 0))
        begin = np.maximum.accumulate(np.where(new_query, places, 0))
        if self.adjacent:
            # start of the previous level; for the lowest level its own start
            begin = np.maximum(begin, level_begin[np.maximum(level_begin - 1, 0)])
        ends = np.concatenate(([0], np.cumsum(level_begin - begin)))
        order += start
        at = 0
        while at < len(places):
            until = max(at + 1, int(np.searchsorted(ends, ends[at] + limit, side="right")) - 1)
            counts = np.diff(ends[at : until + 1])
            lower = np.arange(ends[until] - ends[at]) + np.repeat(begin[at:until] - (ends[at:until] - ends[at]), counts)
            i, j = np.repeat(order[at:until], counts), order[lower]
            at = until
            if self._never_other:
                kept = np.asarray(self.other)[j] > 0.0
                i, j = i[kept], j[kept]
            if len(i):
                yield i, j, self.weights_of(i, j)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Two masks of documents: those preferred to another one, and those to which another one is preferred.

        Returns
        -------
        is_preferred, is_other : ndarray of bool, shape (n_rows,)
            By position; a document of an intermediate level is both. With censored times a document may be counted as
            preferred although all shorter times are censored.
        """
        is_other = self.levels < np.repeat(self.n_levels - 1, np.diff(self.pointers))
        if self._never_other:
            is_other &= np.asarray(self.other) > 0.0
        return self.levels > 0, is_other

    def comparable(self) -> tuple["ComparablePairs", np.ndarray]:
        """The same pairs without rows of queries that have no pair, for work that is quadratic in the number of rows.

        Returns
        -------
        pairs : ComparablePairs
            The pairs, with rows numbered by position.
        rows : ndarray of int64, shape (pairs.n_rows,)
            The row of each position.
        """
        pairs = self.of_queries(np.flatnonzero(self.pairs_per_query > 0.0))
        return pairs.renumbered(), np.arange(pairs.n_rows) if pairs.rows is None else pairs.rows

    def of_queries(self, queries: np.ndarray) -> "ComparablePairs":
        """The pairs of some queries.

        Parameters
        ----------
        queries : ndarray of int64
            Numbers of the queries, ascending.

        Returns
        -------
        ComparablePairs
            Their pairs; there may be none.
        """
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        sizes = np.diff(self.pointers)
        positions = np.flatnonzero(np.repeat(chosen, sizes))
        pointers = np.concatenate(([0], np.cumsum(sizes[chosen]))).astype(np.int64)
        preferred, other, gain = (
            None if values is None else values[positions] for values in (self.preferred, self.other, self.gain)
        )
        rows = positions if self.rows is None else self.rows[positions]
        parts = pointers, rows, self.levels[positions], self.n_levels[chosen]
        return ComparablePairs(*parts, preferred, other, gain, self.adjacent, self.direct_limit, self.visit_limit)

    def all_visited(self) -> "ComparablePairs":
        """The same pairs, visited one by one in all queries: no query is swept.

        Returns
        -------
        ComparablePairs
            The pairs.
        """
        parts = self.pointers, self.rows, self.levels, self.n_levels, self.preferred, self.other, self.gain
        return ComparablePairs(*parts, self.adjacent, self.direct_limit, visit_limit=np.inf)

    def renumbered(self) -> "ComparablePairs":
        """The same pairs with rows numbered by position, for X whose rows are taken in that order.

        Returns
        -------
        ComparablePairs
            The pairs.
        """
        parts = self.pointers, None, self.levels, self.n_levels, self.preferred, self.other, self.gain
        return ComparablePairs(*parts, self.adjacent, self.direct_limit, self.visit_limit)

    def sample(
        self, n_rows: int, seed: int = 0, n_queries: int = SAMPLE_QUERIES
    ) -> tuple["ComparablePairs", np.ndarray]:
        """A random subset of the queries; for long ones a random subset of their rows, weighted to represent all pairs.

        The sample has at least one pair of positive weight.

        Parameters
        ----------
        n_rows : int
            Approximate number of rows to choose.
        seed : int
            Seed of the choice.
        n_queries : int
            Minimum number of queries, if there are that many.

        Returns
        -------
        pairs : ComparablePairs
            The pairs among the chosen rows; their weights add up to the sum of the weights of all pairs of the chosen
            queries.
        positions : ndarray of int64
            Positions of these rows in this object, ascending.
        """
        random = np.random.default_rng(seed)
        sizes = np.diff(self.pointers)
        chosen, limit = choose_queries(sizes, self.weight_per_query, n_rows, random, n_queries)
        whole = np.zeros(self.n_queries, dtype=bool)
        whole[chosen] = sizes[chosen] <= limit
        taken = np.repeat(whole, sizes)
        for query in chosen[~whole[chosen]]:
            taken[self._subset(int(query), limit, random)] = True
        positions = np.flatnonzero(taken)
        pointers = np.concatenate(([0], np.searchsorted(positions, self.pointers[chosen + 1]))).astype(np.int64)
        kept = np.diff(pointers)
        rows = positions if self.rows is None else self.rows[positions]
        levels, n_levels = self.levels[positions], self.n_levels[chosen]
        if np.any(kept < sizes[chosen]):
            # levels are ranked again: an explicit Hessian allocates memory for each level
            sweep.compress_levels(pointers, 0, len(chosen), levels.astype(float), levels, n_levels)
        preferred, other, gain = (
            None if values is None else values[positions] for values in (self.preferred, self.other, self.gain)
        )
        pairs = ComparablePairs(pointers, rows, levels, n_levels, preferred, other, gain, self.adjacent)
        if np.any(kept < sizes[chosen]):
            # The pairs among the chosen rows represent all pairs of their query.
            weight = self.weight_per_query[chosen] / np.maximum(pairs.weight_per_query, 1e-300)
            scale = np.repeat(np.where(pairs.weight_per_query > 0, weight, 0.0), kept)
            preferred = scale if preferred is None else preferred * scale
            other = np.ones(len(positions)) if other is None else other
            pairs = ComparablePairs(pointers, rows, levels, n_levels, preferred, other, gain, self.adjacent)
        return pairs, positions

    def _subset(self, query: int, n_rows: int, random: np.random.Generator) -> np.ndarray:
        """Random positions of a query, with at least one preferred and one other document, even if these are rare."""
        positions = np.arange(self.pointers[query], self.pointers[query + 1])
        levels = self.levels[positions[0] : positions[-1] + 1]
        if self.adjacent:
            # Few random rows would have adjacent levels, so all rows of some adjacent levels are chosen.
            by_level = positions[np.argsort(levels, kind="stable")]
            pairs_below = np.cumsum(self._pairs_with_next_level(query))
            center = int(np.searchsorted(pairs_below, random.uniform(0.0, pairs_below[-1]), side="right"))
            first = int(np.count_nonzero(levels < center))
            both = int(np.count_nonzero(levels <= center + 1)) - first
            if both <= 2 * n_rows:
                last = max(first + both, min(first + n_rows, len(positions)))
                first = max(min(first, last - n_rows), 0)
                return by_level[first:last]
            levels = np.where((levels == center) | (levels == center + 1), levels, -1)
            positions, levels = positions[levels >= 0], levels[levels >= 0]
        upper, lower = levels, levels
        if self.preferred is not None and self.other is not None:
            upper = np.where(self.preferred[positions] > 0, levels, -1)
            lower = np.where(self.other[positions] > 0, levels, levels.max() + 1)
        drawn = random.choice(len(positions), n_rows, replace=False, shuffle=False)
        return positions[np.append(drawn, (upper.argmax(), lower.argmin()))]

    def _pairs_with_next_level(self, query: int) -> np.ndarray:
        """For each level of a query except the last, the weight of its pairs with the next level."""
        part = slice(self.pointers[query], self.pointers[query + 1])
        levels, k = self.levels[part], int(self.n_levels[query])
        sums = [
            np.bincount(levels, None if values is None else values[part], minlength=k).astype(float)
            for values in (self.other, self.preferred)
        ]
        weight = sums[0][:-1] * sums[1][1:]
        if self.gain is None:
            return weight
        gain = np.empty(k)
        gain[levels] = self.gain[part]
        return weight * np.diff(gain)


def choose_queries(
    sizes: np.ndarray,
    weights: np.ndarray,
    n_rows: int,
    random: np.random.Generator,
    n_queries: int = SAMPLE_QUERIES,
) -> tuple[np.ndarray, int]:
    """Random queries of positive weight with about ``n_rows`` rows in total, and the maximum number of rows for each.

    At least ``n_queries`` queries are chosen, if there are that many.
    """
    candidates = random.permutation(np.flatnonzero(weights > 0))
    # A few long queries would not represent the other queries, so only a part of their rows is used.
    limit = max(2, n_rows // min(len(candidates), n_queries))
    enough = int(np.searchsorted(np.cumsum(np.minimum(sizes[candidates], limit)), n_rows)) + 1
    return np.sort(candidates[:enough]), limit


def _compress(
    pointers: np.ndarray, y: np.ndarray, levels: np.ndarray, n_levels: np.ndarray, n_threads: int, part: slice
) -> None:
    sweep.compress_levels(pointers, part.start, part.stop, y, levels, n_levels, n_threads)


def _ranges(n_queries: int, n_threads: int) -> list[slice]:
    if n_threads == 1:
        return [slice(0, n_queries)]
    return [slice(*part) for part in even_ranges(0, n_queries, 4 * n_threads)]


def _shares_of_queries(
    preferred: np.ndarray | None,
    other: np.ndarray | None,
    pointers: np.ndarray,
    pairs_with: Callable[[np.ndarray], ComparablePairs],
) -> tuple[np.ndarray, np.ndarray]:
    """Factors whose product for a pair is ``v_i * v_j`` over the sum of all ``v_i * v_j`` in its query.

    ``other`` has the weights v, and ``pairs_with`` returns the pairs with given weights v.
    """
    sizes = np.diff(pointers)
    if preferred is None or other is None:
        preferred = other = np.ones(pointers[-1])
    # relative to the largest weight of each query, so that no sum of products over- or underflows
    unit = np.repeat(_reduce_per_query(np.maximum, other, pointers), sizes)
    document = other / unit
    total = np.repeat(pairs_with(document).weight_per_query, sizes)
    share = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
    return preferred / unit * share, document


def _gains(weighting: str, y: np.ndarray, pointers: np.ndarray, largest: float | None) -> np.ndarray | None:
    """The gain of each position, if pairs are weighted by differences of gains; otherwise None."""
    if weighting == "label_gap":
        return y - np.repeat(_reduce_per_query(np.minimum, y, pointers), np.diff(pointers))
    if weighting == "gain_gap":
        return _powers(y, y.max() if largest is None else largest) if len(y) else np.empty(0)
    return None


def _powers(y: np.ndarray, largest: float) -> np.ndarray:
    """``2^(y - largest)``, computed without the difference, whose round-off would change digits of the power."""
    whole, top = np.floor(y), np.floor(largest)
    exponents = np.maximum(whole - top, -2000.0).astype(np.int64)
    return np.ldexp(np.exp2(y - whole), exponents) / np.exp2(largest - top)


def _reduce_per_query(operation: np.ufunc, values: np.ndarray, pointers: np.ndarray) -> np.ndarray:
    """The largest or smallest value of each query; 0 for a query without values."""
    out, filled = np.zeros(len(pointers) - 1), np.diff(pointers) > 0
    if filled.any():
        out[filled] = operation.reduceat(values, pointers[:-1][filled])
    return out


def _why_no_pairs(queries: Queries, pairs: ComparablePairs, event: np.ndarray | None) -> str:
    if event is not None and not pairs.n_pairs:
        return (
            "No comparable pair: the smaller of two times must have an observed event, and "
            f"{int(event.sum())} of the {queries.n_rows} rows have one."
        )
    if pairs.n_pairs:
        return f"All {pairs.n_pairs} comparable pairs have zero weight: there is nothing to learn from."
    if absent := queries.n_rows - pairs.n_rows:
        return f"No comparable pair is left: {absent} of the {queries.n_rows} rows have zero sample_weight."
    if queries.n_rows == 1:
        return "No comparable pair: X has 1 sample (n_samples = 1), and ranking compares two documents of a query."
    if len(queries.ids) == queries.n_rows > 1:
        return f"No comparable pair: each of the {queries.n_rows} rows is a separate query. Is qid the query id?"
    where = "in the only query" if queries.n_queries == 1 else f"within each of the {queries.n_queries:,} queries"
    return (
        f"No comparable pair: {where} all labels are the same (1 class). Ranking needs two documents of one query with "
        "different labels."
    )


def check_total(weight: float) -> None:
    """Refuse pairs whose weights, or their sum, overflow."""
    if not np.isfinite(weight):
        raise DataError(
            "The weights of the pairs overflow float64: rescale the weights (or, if pairs are weighted by label gaps, "
            "the labels) closer to 1."
        )


def _sorted_weights(name: str, values: ArrayLike | None, queries: Queries) -> np.ndarray:
    return np.ascontiguousarray(queries.to_sorted(checked_weights(name, values, queries.n_rows, "X")))


def _check_constant(query_weight: np.ndarray, queries: Queries) -> None:
    filled = queries.sizes > 0
    first = query_weight[queries.pointers[:-1][filled]]
    varies = np.flatnonzero(query_weight != np.repeat(first, queries.sizes[filled]))
    if len(varies):
        query = int(np.searchsorted(queries.pointers, varies[0], side="right")) - 1
        name = queries.keys[query]
        raise DataError(f"query_weight varies within query {name!r}: give every row of a query the same weight.")
