"""Rankings: labels in the order of the scores, and quantities that several metrics need, computed once."""

import numpy as np

import ranksvm._compiled.metrics as _loops
from ranksvm._util.lazy import cached_property
from ranksvm.data import Queries
from ranksvm.data.censoring import order_of_times
from ranksvm.data.queries import descending_within_ties
from ranksvm.metrics.conventions import Convention

__all__ = ["Rankings"]


class Rankings:
    """The documents of every query, best score first.

    Position p of the ranked order belongs to query q if ``pointers[q] <= p < pointers[q + 1]``. Arrays "per position"
    have shape (n_rows,), arrays "per query" shape (n_queries,).

    Parameters
    ----------
    y : ndarray of float64, shape (n_rows,)
        Labels.
    scores : ndarray of float64, shape (n_rows,)
        Scores; the higher, the better.
    queries : Queries
        The grouping of the rows.
    convention : Convention
        How ties, gains and discounts are treated.
    max_label : float
        Highest grade of the scale of the labels, used by ERR.
    docid : ndarray, shape (n_rows,), optional
        Document ids, for conventions that break ties by them.
    event : ndarray of float64, shape (n_rows,), optional
        0 if the label is a right-censored time, 1 if it is the time of an event; None: 1 for all rows.
    """

    def __init__(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        queries: Queries,
        convention: Convention,
        max_label: float,
        docid: np.ndarray | None = None,
        event: np.ndarray | None = None,
    ):
        self.convention = convention
        self.max_label = max_label
        self.pointers = queries.pointers
        self.sizes = queries.sizes
        self._labels = np.ascontiguousarray(queries.to_sorted(y))
        scores = queries.to_sorted(scores)
        if convention.float32_scores:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        order = _loops.descending_order(np.ascontiguousarray(scores), self.pointers)
        self._scores = scores[order]
        if convention.ties == "docid" and docid is not None and self.equal_scores.any():
            order = descending_within_ties(order, self.equal_scores.view(bool), queries.to_sorted(docid))
        self.labels = self._labels[order]
        self._event = np.ones(len(order)) if event is None else queries.to_sorted(event)[order]

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.sizes)

    @cached_property
    def rank(self) -> np.ndarray:
        """Rank within the query, from 1, per position (float64)."""
        return np.arange(1.0, len(self.labels) + 1) - self.per_position(self.pointers[:-1])

    @cached_property
    def equal_scores(self) -> np.ndarray:
        """Whether a position has the score of the one before it in its query, per position (uint8)."""
        tied = np.zeros(len(self._scores), dtype=np.uint8)
        np.equal(self._scores[1:], self._scores[:-1], out=tied[1:].view(bool))
        tied[self.pointers[:-1]] = 0
        return tied

    @cached_property
    def tied(self) -> np.ndarray:
        """`equal_scores` if the convention averages over ties, else all 0."""
        return self.equal_scores if self.convention.ties == "average" else np.zeros_like(self.equal_scores)

    @cached_property
    def tie_starts(self) -> np.ndarray | None:
        """First position of each group of tied positions (one or more); None if nothing is tied."""
        return np.flatnonzero(self.tied == 0) if self.tied.any() else None

    def averaged(self, values: np.ndarray) -> np.ndarray:
        """Values replaced by the mean of their tie: the expected value at a position.

        Parameters
        ----------
        values : ndarray, shape (n_rows,)
            One value per position.

        Returns
        -------
        ndarray
            The means, per position.
        """
        if self.tie_starts is None:
            return values
        lengths = np.diff(self.tie_starts, append=len(values))
        return np.repeat(np.add.reduceat(values, self.tie_starts) / lengths, lengths)

    @cached_property
    def top_label(self) -> np.ndarray:
        """Highest label, per query."""
        return np.maximum.reduceat(self._labels, self.pointers[:-1])

    @cached_property
    def gains(self) -> np.ndarray:
        """Gain of each document, per position, in units that differ from query to query.

        Only ratios of gains within a query matter. So 2^y - 1 is divided by 2^top, where top is the highest label of
        the query: computed as 2^(y - top) (1 - 2^-y), it cannot overflow.
        """
        return self._gain(self.labels)

    @cached_property
    def ideal_gains(self) -> np.ndarray:
        """The gains in the best order, per position."""
        gains = self._gain(self._labels)
        return gains[_loops.descending_order(gains, self.pointers)]

    def _gain(self, labels: np.ndarray) -> np.ndarray:
        positive = np.maximum(labels, 0.0)
        if self.convention.gain == "linear":
            return positive
        top = np.maximum(self.top_label, 0.0)
        return np.exp2(positive - self.per_position(top)) * -np.expm1(-np.log(2.0) * positive)

    @cached_property
    def discounts(self) -> np.ndarray:
        """Discount of each rank, per position."""
        longest = int(self.sizes.max())
        rank = np.arange(1.0, longest + 1)
        shifted = np.maximum(rank, 2.0) if self.convention.discount == "letor" else rank + 1.0
        return (1.0 / np.log2(shifted))[self.rank.astype(np.int64) - 1]

    @cached_property
    def relevant(self) -> np.ndarray:
        """1.0 where a document is relevant, else 0.0, per position."""
        return (self.labels >= self.convention.relevance).astype(np.float64)

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant documents, per query."""
        return self.sums(self.relevant)

    @cached_property
    def pair_counts(self) -> np.ndarray:
        """Comparable, concordant and discordant pairs, and pairs with different scores: shape (4, n_queries)."""
        return _loops.pair_counts(self.labels, self.equal_scores, self.pointers)

    @cached_property
    def concordance_counts(self) -> np.ndarray:
        """Comparable, concordant and discordant pairs of times, of which some are censored: shape (3, n_queries)."""
        labels, observed = order_of_times(self.labels, self._event), self._event.astype(np.uint8)
        return _loops.concordance_counts(labels, observed, self.equal_scores, self.pointers)

    def ideal_dcg(self, cutoff: int | None) -> np.ndarray:
        """The largest possible discounted gain of the first ``cutoff`` positions.

        Parameters
        ----------
        cutoff : int or None
            Number of positions that count; None: all.

        Returns
        -------
        ndarray
            The sums, per query.
        """
        return self.sums(self.ideal_gains * self.discounts, cutoff)

    def per_position(self, values: np.ndarray) -> np.ndarray:
        """A value of each query at all its positions.

        Parameters
        ----------
        values : ndarray, shape (n_queries,)
            One value per query.

        Returns
        -------
        ndarray
            The same, per position.
        """
        return np.repeat(values, self.sizes)

    def sums(self, values: np.ndarray, cutoff: int | None = None) -> np.ndarray:
        """Sum over the first ``cutoff`` positions of each query.

        Parameters
        ----------
        values : ndarray, shape (n_rows,)
            One value per position.
        cutoff : int, optional
            Number of positions that count; None: all.

        Returns
        -------
        ndarray
            The sums, per query.
        """
        if cutoff is not None:
            values = np.where(self.rank <= cutoff, values, 0.0)
        return np.add.reduceat(values, self.pointers[:-1])

    def running_sums(self, values: np.ndarray) -> np.ndarray:
        """Cumulative sum over the positions of each query.

        Parameters
        ----------
        values : ndarray, shape (n_rows,)
            One value per position.

        Returns
        -------
        ndarray
            The sums, per position.
        """
        return _loops.running_sums(np.ascontiguousarray(values), self.pointers)

    def expected_reciprocal_rank(self, stop: np.ndarray, cutoff: int | None) -> np.ndarray:
        """Expected 1/rank at which a user who reads down the list stops; ranks beyond the cut-off count as 0.

        Parameters
        ----------
        stop : ndarray, shape (n_rows,)
            Probability that a document stops the user, per position.
        cutoff : int or None
            Last rank that counts.

        Returns
        -------
        ndarray
            The expected value over users and over the orders of tied documents, per query.
        """
        depth = int(self.sizes.max()) if cutoff is None else cutoff
        return _loops.expected_reciprocal_rank(np.ascontiguousarray(stop), self.tied, self.pointers, depth)
