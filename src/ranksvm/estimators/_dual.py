"""The dual of a linear RankSVM: the optimal alpha over the pairs of one query after another, never all at once."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ranksvm.data import ComparablePairs, Queries
from ranksvm.estimators import _inputs
from ranksvm.estimators._ranker import LinearRanker
from ranksvm.exceptions import DataError

__all__ = ["DualBlock", "DualCoef", "DualMixin"]


def _twice_the_hinge(hinge: np.ndarray, C: float, width: float) -> np.ndarray:
    return 2.0 * C * hinge


def _clipped_hinge(hinge: np.ndarray, C: float, width: float) -> np.ndarray:
    return C * np.clip(hinge / width, 0.0, 1.0)


# Loss -> alpha of a pair of weight 1, -C times the loss's derivative, from its hinge max(0, 1 - (s_i - s_j)), C and the
# width of the smoothing. Of the hinge loss itself it is that of the last width of the smoothing path.
ALPHA: dict[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    "squared_hinge": _twice_the_hinge,
    "huber": _clipped_hinge,
    "hinge": _clipped_hinge,
}


@dataclass(frozen=True, eq=False, repr=False)
class DualBlock:
    """The alpha of the pairs of one query, preferred documents by other ones.

    Both are sorted by label, the highest first, so that the block is block-triangular: where a document of
    ``preferred_rows`` has no higher label than one of ``other_rows`` there is no pair, and alpha is 0. With two levels
    it is one full rectangle, relevant by irrelevant. A query without pairs has a block of shape (0, 0).

    Attributes
    ----------
    query : object
        Id of the query.
    preferred_rows : ndarray of int64, shape (n_preferred,)
        Rows of the documents that are preferred to another one.
    other_rows : ndarray of int64, shape (n_other,)
        Rows of the documents to which another one is preferred; of three levels and more, many are in both.
    alpha : ndarray of float64, shape (n_preferred, n_other)
        The dual variables.
    weights : ndarray of float64, shape (n_preferred, n_other)
        Weight ``a_ij`` of each pair; 0 where there is none.
    """

    query: Any
    preferred_rows: np.ndarray
    other_rows: np.ndarray
    alpha: np.ndarray
    weights: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of ``alpha``."""
        return len(self.preferred_rows), len(self.other_rows)

    def __repr__(self) -> str:
        n_pairs, support = np.count_nonzero(self.weights), np.count_nonzero(self.alpha)
        return (
            f"DualBlock(query {self.query!r}: {self.shape[0]} preferred x {self.shape[1]} other documents, {n_pairs} "
            f"pairs, {support} with alpha > 0)"
        )


class DualCoef:
    """The optimal alpha of a fitted model over all pairs, as a sequence of `DualBlock`, one for each query.

    A block is computed when it is asked for and not kept: beyond the scores this takes about 60 bytes for each pair of
    one query while its block is made, and 16 bytes for each entry of the block.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs.
    ids : ndarray, shape (n_queries,)
        The query ids.
    scores : ndarray of float64, shape (n_samples,)
        Scores by position.
    alpha : callable
        From the hinges of pairs of weight 1 to their alpha.

    Attributes
    ----------
    pairs_per_query : ndarray of int64, shape (n_queries,)
        Number of pairs of each query.
    """

    def __init__(
        self, pairs: ComparablePairs, ids: np.ndarray, scores: np.ndarray, alpha: Callable[[np.ndarray], np.ndarray]
    ):
        self.pairs_per_query = pairs.pairs_per_query.astype(np.int64)
        self._pairs = pairs
        self._ids = ids.tolist()
        self._scores = scores
        self._alpha = alpha

    @property
    def n_pairs(self) -> int:
        """Number of pairs of all queries."""
        return int(self.pairs_per_query.sum())

    def query(self, query: Any) -> DualBlock:
        """The block of a query.

        Parameters
        ----------
        query : object
            Its id, as in ``qid``.

        Returns
        -------
        DualBlock
            The block.

        Raises
        ------
        DataError
            When there is no such query.
        """
        if query not in self._ids:
            raise DataError(f"there is no query {query!r}; the first one is {self._ids[0]!r}.")
        return self[self._ids.index(query)]

    def per_document(self) -> np.ndarray:
        """What each document has in all: ``beta_i = sum over j of (alpha_ij - alpha_ji)``, block by block.

        The weights are ``X' beta``, up to ``sqrt(2 * duality_gap_)`` in the Euclidean norm.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            The sums.
        """
        beta = np.zeros(self._pairs.n_rows)
        for block in self:
            beta[block.preferred_rows] += block.alpha.sum(axis=1)
            beta[block.other_rows] -= block.alpha.sum(axis=0)
        return beta

    def to_coo(self) -> scipy.sparse.coo_array:
        """All at once, as a sparse matrix: alpha_ij in row i (the preferred document), column j.

        Returns
        -------
        coo_array of float64, shape (n_samples, n_samples)
            The alpha that are not 0: 24 bytes for each.
        """
        data, preferred, other = [], [], []
        for block in self:
            i, j = np.nonzero(block.alpha)
            data.append(block.alpha[i, j])
            preferred.append(block.preferred_rows[i])
            other.append(block.other_rows[j])
        n = self._pairs.n_rows
        places = (np.concatenate(preferred), np.concatenate(other))
        return scipy.sparse.coo_array((np.concatenate(data), places), shape=(n, n))

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, number: int) -> DualBlock:
        number = operator.index(number)
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no query number {number}: there are {len(self)} queries.")
        return self._block(number % len(self))

    def __iter__(self) -> Iterator[DualBlock]:
        return map(self._block, range(len(self)))

    def __repr__(self) -> str:
        return f"DualCoef({len(self)} queries, {self.n_pairs} pairs): one block for each query, made when asked for"

    def _block(self, number: int) -> DualBlock:
        preferred, other, weights = explicit_pairs(self._pairs, number)
        preferred_documents, i = self._by_label(preferred)
        other_documents, j = self._by_label(other)
        alpha = np.zeros((len(preferred_documents), len(other_documents)))
        dense_weights = np.zeros_like(alpha)
        hinges = np.maximum(0.0, 1.0 - (self._scores[preferred] - self._scores[other]))
        alpha[i, j] = weights * self._alpha(hinges)
        dense_weights[i, j] = weights
        rows = self._pairs.rows
        return DualBlock(
            query=self._ids[number],
            preferred_rows=preferred_documents if rows is None else rows[preferred_documents],
            other_rows=other_documents if rows is None else rows[other_documents],
            alpha=alpha,
            weights=dense_weights,
        )

    def _by_label(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The documents among some positions, highest label first, and the place of each position among them."""
        documents, place = np.unique(positions, return_inverse=True)
        order = np.argsort(-self._pairs.levels[documents], kind="stable")
        places = np.empty(len(documents), dtype=np.int64)
        places[order] = np.arange(len(documents))
        return documents[order], places[place]


class DualMixin(LinearRanker):
    """What the estimators fitted to pairs share: the dual of their problem."""

    def dual_coef(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
    ) -> DualCoef:
        """The optimal dual variables: one alpha for each pair, query by query, computed when they are asked for.

        With the hinges ``h_ij = max(0, 1 - (s_i - s_j))`` and the weights ``a_ij`` of the pairs they are ``alpha_ij =
        2 C a_ij h_ij`` for the squared hinge, and ``alpha_ij = C a_ij clip(h_ij / width_, 0, 1)`` for the hinge (with
        the width at which its smoothing ended) and the Huber loss. They are feasible for the dual, whose objective
        there is ``objective_ - duality_gap_``, and ``sum of alpha_ij (x_i - x_j)`` is ``coef_`` less the gradient of
        the objective, ``sqrt(2 * duality_gap_)`` long for the squared hinge: fit with a small ``tol`` where digits
        matter.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features that the model was fitted to.
        y : array-like of shape (n_samples,)
            Their labels.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        group, sample_weight, query_weight : array-like, optional
            As in ``fit``, and the same.

        Returns
        -------
        DualCoef
            A sequence with a `DualBlock` for each query, in order of appearance. A block takes 16 bytes for each of
            its entries (alpha and weight) and is not kept.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X is not what the model was fitted to, or lengths differ.

        Examples
        --------
        >>> import numpy as np
        >>> from ranksvm import RankSVM, make_ranking
        >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
        >>> ranker = RankSVM(C=0.01, tol=1e-10).fit(data.X, data.y, qid=data.qid)
        >>> dual = ranker.dual_coef(data.X, data.y, data.qid)
        >>> np.linalg.svd(dual[0].alpha, compute_uv=False).shape == (min(dual[0].shape),)
        True
        >>> bool(np.allclose(data.X.T @ dual.per_document(), ranker.coef_, atol=1e-4))
        True
        """
        X, ids = self._features(X), self._query_ids(X, qid)
        queries: Queries = _inputs.queries(ids, group, X.shape[0])
        pairs = ComparablePairs.from_labels(
            queries, _inputs.labels(y, X.shape[0]), sample_weight=sample_weight, query_weight=query_weight
        )
        C = self.C_ if hasattr(self, "C_") else self.C
        width = getattr(self, "width_", 1.0)
        formula = ALPHA[self.loss]
        return DualCoef(pairs, queries.ids, queries.to_sorted(self._scores(X)), lambda h: formula(h, C, width))


def explicit_pairs(pairs: ComparablePairs, query: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of one query, written out.

    Parameters
    ----------
    pairs : ComparablePairs
        The pairs of all queries.
    query : int
        Number of the query, from 0.

    Returns
    -------
    preferred, other : ndarray of int64, shape (n_pairs,)
        Positions of the documents of each pair.
    weights : ndarray of float64, shape (n_pairs,)
        Their weights.
    """
    start, stop = pairs.pointers[query], pairs.pointers[query + 1]
    levels = pairs.levels[start:stop]
    preferred, other = np.nonzero(levels[:, None] > levels[None, :])
    preferred, other = preferred + start, other + start
    if pairs.preferred is None or pairs.other is None:
        return preferred, other, np.ones(len(preferred))
    return preferred, other, pairs.preferred[preferred] * pairs.other[other]
