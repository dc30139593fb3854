"""Pairs listed by the user: preferences, for instance from clicks, instead of labels."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._compiled.pair_list import ListArrays
from ranksvm._util.checks import is_integer
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pairs import SAMPLE_QUERIES, PairWeights, check_total, choose_queries
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError, NoComparablePairsError

__all__ = ["PairList", "groups_of_pairs", "row_numbers"]


class PairList:
    """A list of pairs (i, j), document i preferred to document j.

    The rows are grouped into connected *components*, with no pair between components. The components are used as
    queries. Rows without a pair are omitted. A *position* is the place of a row when rows are sorted by component.

    Parameters
    ----------
    pointers : ndarray of int64, shape (n_components + 1,)
        First position of each component.
    rows : ndarray of int64, shape (n_positions,), or None
        Row of each position; None when position and row are the same.
    pair_pointers : ndarray of int64, shape (n_components + 1,)
        First pair of each component.
    preferred, other : ndarray of int32, shape (n_pairs,)
        The two documents of each pair, numbered within their component.
    pair_weight : ndarray of float64, shape (n_pairs,)
        Weight of each pair.

    Attributes
    ----------
    n_queries : int
        Number of components.
    n_rows : int
        Number of rows that are in a pair.
    n_pairs : int
        Number of pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import PairList, Queries
    >>> pairs = PairList.from_pairs(Queries.from_qid([1, 1, 1]), np.array([[0, 1], [0, 2]]))
    >>> pairs.n_pairs
    2
    """

    # weights are not differences of gains: see `ComparablePairs.gain_parts`
    gain_parts = ()

    def __init__(
        self,
        pointers: np.ndarray,
        rows: np.ndarray | None,
        pair_pointers: np.ndarray,
        preferred: np.ndarray,
        other: np.ndarray,
        pair_weight: np.ndarray,
    ):
        self.n_queries = len(pointers) - 1
        self.n_rows = int(pointers[-1])
        self.n_pairs = len(pair_weight)
        self.pointers = pointers
        self.rows = rows
        self.pair_pointers = pair_pointers
        self.preferred = preferred
        self.other = other
        self.pair_weight = pair_weight
        self.arrays = ListArrays(pointers, pair_pointers, preferred, other, pair_weight)
        self.pairs_per_query = np.diff(pair_pointers).astype(float)
        # reduceat, not cumulative sums: a component of large weights would reduce the precision of the next ones
        self.weight_per_query = np.add.reduceat(pair_weight, pair_pointers[:-1])

    def __reduce__(self):
        # the compiled view of the arrays is created again
        parts = self.pair_pointers, self.preferred, self.other, self.pair_weight
        return PairList, (self.pointers, self.rows, *parts)

    @classmethod
    def from_pairs(
        cls,
        queries: Queries,
        pairs: ArrayLike,
        *,
        pair_weight: ArrayLike | None = None,
        weighting: str = "uniform",
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        may_be_weightless: bool = False,
    ) -> "PairList":
        """Create the list from pairs of row numbers.

        Parameters
        ----------
        queries : Queries
            Which rows belong together: no pair may join two queries.
        pairs : array-like of int, shape (n_pairs, 2)
            Row numbers (preferred, other). A pair that is listed twice counts twice.
        pair_weight : array-like of shape (n_pairs,), optional
            Weight of each pair.
        weighting : {"uniform", "per_query"}
            "per_query" divides the weight of a pair by the sum of the weights of all pairs of its query, before
            ``query_weight`` and ``propensity`` apply.
        sample_weight, query_weight, propensity : array-like of shape (n_rows,), optional
            Factors of the weight of a pair, by row: see `PairWeights`.
        may_be_weightless : bool
            Whether all pairs may have zero weight: they may be one part of the pairs of a fit.

        Returns
        -------
        PairList
            The pairs.

        Raises
        ------
        DataError
            When a row number is out of range, a row is paired with itself or with a row of another query, a weight is
            negative or not finite, or the weights of the pairs overflow.
        NoComparablePairsError
            When there is no pair, or no pair of positive weight unless ``may_be_weightless``.
        """
        preferred, other = row_numbers(pairs, queries)
        weight = checked_weights("pair_weight", pair_weight, len(preferred), "pairs")
        upper, document = PairWeights(sample_weight, query_weight, propensity).factors(queries)
        upper, document = (np.ones(queries.n_rows) if v is None else queries.to_rows(v) for v in (upper, document))
        if weighting == "per_query":
            number = queries.numbers()[preferred]
            total = np.bincount(number, weight * document[preferred] * document[other])[number]
            weight = np.divide(weight, total, out=np.zeros(len(weight)), where=total > 0.0)
        weight = weight * upper[preferred] * document[other]
        check_total(float(weight.sum()))
        if not (may_be_weightless or weight.any()):
            raise NoComparablePairsError(f"All {len(weight)} pairs have zero weight: there is nothing to learn from.")
        return cls._grouped(preferred, other, weight)

    @classmethod
    def _grouped(cls, preferred: np.ndarray, other: np.ndarray, weight: np.ndarray) -> "PairList":
        """Pairs of row numbers, ordered by connected component."""
        present = np.zeros(max(preferred.max(), other.max()) + 1, dtype=bool)
        present[preferred] = present[other] = True
        rows = np.flatnonzero(present)
        number = np.cumsum(present) - 1
        preferred, other = number[preferred], number[other]
        n_components, component = _components(preferred, other, len(rows))
        # stable: rows stay in order, so that they are read sequentially
        order = np.argsort(component, kind="stable")
        pointers = np.concatenate(([0], np.cumsum(np.bincount(component, minlength=n_components)))).astype(np.int64)
        position = np.empty(len(rows), dtype=np.int64)
        position[order] = np.arange(len(rows))
        by_component = np.argsort(component[preferred], kind="stable")
        preferred, other, weight = preferred[by_component], other[by_component], weight[by_component]
        own = component[preferred]
        pair_pointers = np.concatenate(([0], np.cumsum(np.bincount(own, minlength=n_components)))).astype(np.int64)
        first = pointers[own]
        return cls(
            pointers,
            rows[order],
            pair_pointers,
            (position[preferred] - first).astype(np.int32),
            (position[other] - first).astype(np.int32),
            np.ascontiguousarray(weight),
        )

    @property
    def weight(self) -> float:
        """Sum of the weights of all pairs."""
        return float(self.pair_weight.sum())

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Two masks of documents: those preferred to another one, and those to which another one is preferred.

        Returns
        -------
        is_preferred, is_other : ndarray of bool, shape (n_rows,)
            By position.
        """
        is_preferred, is_other = np.zeros((2, self.n_rows), dtype=bool)
        start = np.repeat(self.pointers[:-1], np.diff(self.pair_pointers))
        is_preferred[start + self.preferred] = is_other[start + self.other] = True
        return is_preferred, is_other

    def explicit(self, first: int, last: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs of one component or of several, in the order of the list.

        Parameters
        ----------
        first : int
            Number of the component, from 0.
        last : int, optional
            The components are ``first`` to ``last - 1``; None: only component ``first``.

        Returns
        -------
        preferred, other : ndarray of int64, shape (n_pairs,)
            Positions of the two documents of each pair.
        weight : ndarray of float64, shape (n_pairs,)
            Weight of each pair.
        """
        last = first + 1 if last is None else last
        pointers = self.pair_pointers[first : last + 1]
        part, begin = slice(pointers[0], pointers[-1]), np.repeat(self.pointers[first:last], np.diff(pointers))
        return self.preferred[part] + begin, self.other[part] + begin, self.pair_weight[part]

    def chunks(self, first: int, last: int, limit: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The pairs of a range of components, one part at a time: see `ComparablePairs.chunks`.

        Parameters
        ----------
        first, last : int
            The components are ``first`` to ``last - 1``.
        limit : int
            Maximum number of pairs in a part.

        Yields
        ------
        preferred, other : ndarray of int64
            Positions of the two documents of each pair.
        weight : ndarray of float64
            Weight of each pair.
        """
        start, stop = int(self.pair_pointers[first]), int(self.pair_pointers[last])
        for at in range(start, stop, limit):
            part = slice(at, min(at + limit, stop))
            component = np.searchsorted(self.pair_pointers, np.arange(part.start, part.stop), side="right") - 1
            begin = self.pointers[component]
            yield self.preferred[part] + begin, self.other[part] + begin, self.pair_weight[part]

    def comparable(self) -> tuple["PairList", np.ndarray]:
        """The same pairs with rows numbered by position: see `ComparablePairs.comparable`.

        Returns
        -------
        pairs : PairList
            The pairs.
        rows : ndarray of int64, shape (pairs.n_rows,)
            The row of each position.
        """
        return self.renumbered(), np.arange(self.n_rows) if self.rows is None else self.rows

    def of_queries(self, queries: np.ndarray) -> "PairList":
        """The pairs of some components.

        Parameters
        ----------
        queries : ndarray of int64
            Numbers of the components, ascending.

        Returns
        -------
        PairList
            Their pairs; there may be none.
        """
        chosen = np.zeros(self.n_queries, dtype=bool)
        chosen[queries] = True
        sizes, n_pairs = np.diff(self.pointers), np.diff(self.pair_pointers)
        positions, kept = np.flatnonzero(np.repeat(chosen, sizes)), np.repeat(chosen, n_pairs)
        pointers, pair_pointers = (
            np.concatenate(([0], np.cumsum(each[chosen]))).astype(np.int64) for each in (sizes, n_pairs)
        )
        rows = positions if self.rows is None else self.rows[positions]
        return PairList(pointers, rows, pair_pointers, self.preferred[kept], self.other[kept], self.pair_weight[kept])

    def renumbered(self) -> "PairList":
        """The same pairs with rows numbered by position, for X whose rows are taken in that order.

        Returns
        -------
        PairList
            The pairs.
        """
        return PairList(self.pointers, None, self.pair_pointers, self.preferred, self.other, self.pair_weight)

    def sample(self, n_rows: int, seed: int = 0, n_queries: int = SAMPLE_QUERIES) -> tuple["PairList", np.ndarray]:
        """A random subset of the components; for large ones a random subset of their pairs, weighted to represent all.

        Parameters
        ----------
        n_rows : int
            Approximate number of rows to choose.
        seed : int
            Seed of the choice.
        n_queries : int
            Minimum number of components, if there are that many.

        Returns
        -------
        pairs : PairList
            The chosen pairs.
        positions : ndarray of int64
            Positions, in this object, of the rows of the chosen pairs.
        """
        random = np.random.default_rng(seed)
        chosen, limit = choose_queries(np.diff(self.pointers), self.weight_per_query, n_rows, random, n_queries)
        is_long = (np.diff(self.pointers)[chosen] > limit) & (2 * np.diff(self.pair_pointers)[chosen] > limit)
        # a loop over millions of short components would take longer than the sample saves
        is_chosen = np.zeros(self.n_queries, dtype=bool)
        is_chosen[chosen[~is_long]] = True
        component = np.repeat(np.arange(self.n_queries), np.diff(self.pair_pointers))
        part = np.flatnonzero(is_chosen[component])
        first = self.pointers[component[part]]
        parts = [(self.preferred[part] + first, self.other[part] + first, self.pair_weight[part])]
        for query in chosen[is_long]:
            preferred, other, weight = self.explicit(query)
            share = weight / weight.sum()
            wanted = min(max(1, limit // 2), int(np.count_nonzero(share)))
            kept = random.choice(len(weight), wanted, replace=False, p=share)
            # the pairs were drawn with probabilities proportional to their weights, so now they have equal weights
            weight = np.full(len(kept), self.weight_per_query[query] / len(kept))
            parts.append((preferred[kept], other[kept], weight))
        pairs = PairList._grouped(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        _, positions = pairs.comparable()
        pairs.rows = positions if self.rows is None else self.rows[positions]
        return pairs, positions


def groups_of_pairs(queries: Queries, preferred: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Groups of pairs that have to stay together in folds.

    Parameters
    ----------
    queries : Queries
        The rows' queries.
    preferred, other : ndarray of int64, shape (n_pairs,)
        Row numbers.

    Returns
    -------
    ndarray, shape (n_pairs,)
        An id for each pair: its query's id; if there is only one query, the number of its connected component.
    """
    if queries.n_queries > 1:
        return queries.ids[queries.numbers()[preferred]]
    return _components(preferred, other, queries.n_rows)[1][preferred]


def _components(preferred: np.ndarray, other: np.ndarray, n_rows: int) -> tuple[int, np.ndarray]:
    """Number of connected components, and the component of each row."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(preferred), dtype=bool), (preferred, other)), shape=(n_rows, n_rows))
    return connected_components(graph, directed=False)


def row_numbers(pairs: ArrayLike, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
    """The two columns of ``pairs``, validated.

    Parameters
    ----------
    pairs : array-like of int, shape (n_pairs, 2)
        Row numbers (preferred, other).
    queries : Queries
        The rows' queries.

    Returns
    -------
    preferred, other : ndarray of int64, shape (n_pairs,)
        The row numbers.

    Raises
    ------
    DataError
        When a pair does not consist of the numbers of two different rows of one query.
    NoComparablePairsError
        When there is no pair.
    """
    given = np.asarray(pairs)
    if given.size == 0:
        raise NoComparablePairsError("pairs is empty: there is nothing to learn from.")
    if given.ndim != 2 or given.shape[1] != 2:
        advice = " Pass np.column_stack(pairs)." if given.ndim == 2 and given.shape[0] == 2 else ""
        raise DataError(
            f"pairs has shape {given.shape}: it must have one row (preferred, other) for each pair.{advice}"
        )
    if given.dtype == object and all(map(is_integer, given.reshape(-1))):  # from columns of Int64 in pandas
        given = given.astype(np.int64)
    if not np.issubdtype(given.dtype, np.integer):
        raise DataError(f"pairs holds {given.dtype} values: row numbers must be whole numbers.")
    preferred, other = given[:, 0].astype(np.int64), given[:, 1].astype(np.int64)
    if given.min() < 0 or given.max() >= queries.n_rows:
        outside = np.flatnonzero(((given < 0) | (given >= queries.n_rows)).any(axis=1))
        pair = tuple(given[outside[0]].tolist())
        raise DataError(f"pairs[{outside[0]}] is {pair}, but X has rows 0 to {queries.n_rows - 1}.")
    if (same := preferred == other).any():
        first = int(np.argmax(same))
        raise DataError(f"pairs[{first}] compares row {preferred[first]} with itself.")
    if queries.n_queries == 1:
        return preferred, other
    number = queries.numbers()
    apart = np.flatnonzero(number[preferred] != number[other])
    if len(apart):
        i, j = preferred[apart[0]], other[apart[0]]
        a, b = queries.ids[[number[i], number[j]]].tolist()
        raise DataError(
            f"pairs[{apart[0]}] joins row {i} of query {a!r} with row {j} of query {b!r}: both must be in one query."
        )
    return preferred, other
