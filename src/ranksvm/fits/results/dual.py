"""The dual variables alpha of a ranker's pairs, computed one query at a time."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ranksvm.data import Queries
from ranksvm.losses import Pairs

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["AlphaOfPairs", "DualBlock", "DualCoef", "KeptDualCoef", "WholeBlocks"]

# A function that takes the number of a query, the rows of the preferred documents of its pairs, the rows of the other
# documents, and the weights of the pairs, and returns the alpha (dual variables) of the pairs.
AlphaOfPairs = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class DualBlock:
    """The alpha of one query's pairs: a matrix with a row for each preferred and a column for each other document.

    Both kinds of documents are sorted by label, the highest first, so that the block is block-triangular: if a document
    of ``preferred_rows`` has no higher label than one of ``other_rows`` there is no pair, and alpha is 0. With two
    levels it is a full rectangle, relevant by irrelevant. For explicit pairs, without labels, the documents are sorted
    by row, and a pair listed twice has the sum of its two alpha. A query without pairs has a block of shape (0, 0).

    Attributes
    ----------
    query : object
        Id of the query.
    preferred_rows : ndarray of int64, shape (n_preferred,)
        Rows of the documents that are preferred to another one.
    other_rows : ndarray of int64, shape (n_other,)
        Rows of the documents to which another one is preferred; with three or more levels, many documents are in both
        arrays.
    alpha : ndarray of float64, shape (n_preferred, n_other)
        The dual variables.
    weights : ndarray of float64, shape (n_preferred, n_other)
        Weight ``a_ij`` of each pair; 0 if there is none.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> block = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid).dual_coef(data.X, data.y, data.qid).query(1)
    >>> block.alpha.shape == (len(block.preferred_rows), len(block.other_rows))
    True
    """

    query: object
    preferred_rows: np.ndarray
    other_rows: np.ndarray
    alpha: np.ndarray
    weights: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of ``alpha``."""
        return len(self.preferred_rows), len(self.other_rows)

    def __repr__(self) -> str:
        n_pairs, nonzero = np.count_nonzero(self.weights), np.count_nonzero(self.alpha)
        return (
            f"DualBlock(query {self.query!r}: {self.shape[0]} preferred x {self.shape[1]} other documents, {n_pairs} "
            f"pairs, {nonzero} entries of alpha not 0)"
        )


class DualCoef:
    """The alpha of a fitted model over all pairs, as a sequence of `DualBlock`, one for each query.

    A block is computed on access and not stored. In addition to the model, a block takes 16 bytes of memory for each
    entry and, during its computation, about 90 bytes for each pair (measured on 2,000 documents of five levels).

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs.
    queries : Queries
        The grouping of the rows.
    labels : ndarray of float64, shape (n_samples,), or None
        Label of each row; None: documents stay in the order of rows.
    alpha : callable
        Function that takes the number of a query, the rows of the preferred documents of its pairs, the rows of the
        other documents, and the weights of the pairs, and returns the alpha of each pair.

    Attributes
    ----------
    pairs_per_query : ndarray of int64, shape (n_queries,)
        Number of pairs of each query.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> import numpy as np
    >>> ranker = RankSVM(C=0.01, tol=1e-10).fit(data.X, data.y, qid=data.qid)
    >>> dual = ranker.dual_coef(data.X, data.y, data.qid)
    >>> bool(np.allclose(data.X.T @ dual.per_document(), ranker.coef_, atol=1e-4))
    True
    """

    def __init__(
        self,
        pairs: Pairs,
        queries: Queries,
        labels: np.ndarray | None,
        alpha: AlphaOfPairs,
    ):
        self._pairs = pairs
        self._queries = queries
        self._ids = queries.keys
        self._labels = np.zeros(queries.n_rows) if labels is None else labels
        self._alpha = alpha
        # Explicit pairs are grouped into connected components of queries.
        filled = pairs.pointers[:-1] < pairs.pointers[1:]
        first_rows = pairs.pointers[:-1][filled] if pairs.rows is None else pairs.rows[pairs.pointers[:-1][filled]]
        query_of_part = queries.numbers()[first_rows]
        self._parts = np.flatnonzero(filled)[np.argsort(query_of_part, kind="stable")]
        self._first_part = np.searchsorted(np.sort(query_of_part), np.arange(len(self) + 1))
        n_pairs = pairs.pairs_per_query[np.flatnonzero(filled)]
        self._query_of_part = query_of_part
        self.pairs_per_query = np.bincount(query_of_part, weights=n_pairs, minlength=len(self)).astype(np.int64)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of all queries."""
        return int(self.pairs_per_query.sum())

    @property
    def entries_per_query(self) -> np.ndarray:
        """Maximum number of entries of each query's block (documents of weight 0 count): int64, shape (n_queries,).

        With two levels this is the number of pairs; if most documents have an intermediate level it is far larger.
        """
        pairs, counts = self._pairs, []
        filled = pairs.pointers[:-1] < pairs.pointers[1:]
        for side in pairs.sides():
            of_part = np.diff(np.concatenate(([0], np.cumsum(side)))[pairs.pointers])[filled]
            counts.append(np.bincount(self._query_of_part, weights=of_part, minlength=len(self)).astype(np.int64))
        return counts[0] * counts[1]

    def query(self, query: object) -> DualBlock:
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
        return self[self._queries.number(query)]

    def per_document(self) -> np.ndarray:
        """Sum over the pairs of each document: ``beta_i = sum over j of (alpha_ij - alpha_ji)``, block by block.

        The weights of a linear model are ``X' beta`` (with ``monotone``, after projection onto the required signs). For
        a low-rank model this is exact. For a model with a duality gap, the distance in the Euclidean norm is at most
        ``sqrt(2 * duality_gap_)``. For a kernel model ``sum of beta_i k(x_i, .)`` is the scoring function, up to the
        same distance in the norm of its RKHS.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            The sums.
        """
        beta = np.zeros(self._queries.n_rows)
        for block in self:
            beta[block.preferred_rows] += block.alpha.sum(axis=1)
            beta[block.other_rows] -= block.alpha.sum(axis=0)
        return beta

    def to_coo(self) -> "sparse.coo_array":
        """All alpha as one sparse matrix: alpha_ij in row i (the preferred document), column j.

        Returns
        -------
        coo_array of float64, shape (n_samples, n_samples)
            The nonzero alpha, 24 bytes each.
        """
        from scipy import sparse

        data, preferred, other = [], [], []
        for block in self:
            i, j = np.nonzero(block.alpha)
            data.append(block.alpha[i, j])
            preferred.append(block.preferred_rows[i])
            other.append(block.other_rows[j])
        n = self._queries.n_rows
        places = (np.concatenate(preferred), np.concatenate(other))
        return sparse.coo_array((np.concatenate(data), places), shape=(n, n))

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
        return f"DualCoef({len(self)} queries, {self.n_pairs} pairs): one block for each query, computed on access"

    def _block(self, number: int) -> DualBlock:
        preferred, other, weights = self._explicit(number)
        preferred_rows, i = self._by_label(preferred)
        other_rows, j = self._by_label(other)
        dense_weights = np.zeros((len(preferred_rows), len(other_rows)))
        # summed, because a user may list a pair twice
        np.add.at(dense_weights, (i, j), weights)
        frame = DualBlock(self._ids[number], preferred_rows, other_rows, np.zeros_like(dense_weights), dense_weights)
        self._fill(number, frame, (i, j), preferred, other, weights)
        return frame

    def _fill(
        self,
        number: int,
        block: DualBlock,
        places: tuple[np.ndarray, np.ndarray],
        preferred: np.ndarray,
        other: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        """Write the alpha of the pairs into a block of zeros, given the positions, rows and weights of the pairs."""
        np.add.at(block.alpha, places, self._alpha(number, preferred, other, weights))

    def _explicit(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs of a query as a list: preferred rows, other rows, weights."""
        parts = self._parts[self._first_part[number] : self._first_part[number + 1]]
        if len(parts) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        written = [self._pairs.explicit(part) for part in parts]
        preferred, other, weights = (np.concatenate(each) for each in zip(*written, strict=True))
        rows = self._pairs.rows
        return (preferred, other, weights) if rows is None else (rows[preferred], rows[other], weights)

    def _by_label(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The documents among some rows, highest label first, and the position of each row among them."""
        documents, place = np.unique(rows, return_inverse=True)
        order = np.argsort(-self._labels[documents], kind="stable")
        places = np.empty(len(documents), dtype=np.int64)
        places[order] = np.arange(len(documents))
        return documents[order], places[place]


class KeptDualCoef(DualCoef):
    """Like `DualCoef`, for alpha that a fit has stored.

    Parameters
    ----------
    pairs, queries, labels : optional
        As in `DualCoef`.
    kept : ndarray of float64, shape (pairs.n_pairs,)
        The alpha, query by query in the order of the pairs.
    """

    def __init__(self, pairs: Pairs, queries: Queries, labels: np.ndarray | None, kept: np.ndarray):
        super().__init__(pairs, queries, labels, lambda *_: kept)
        self._kept = np.split(kept, np.cumsum(pairs.pairs_per_query.astype(np.int64))[:-1])

    def _fill(
        self,
        number: int,
        block: DualBlock,
        places: tuple[np.ndarray, np.ndarray],
        preferred: np.ndarray,
        other: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        parts = self._parts[self._first_part[number] : self._first_part[number + 1]]
        if len(parts):
            np.add.at(block.alpha, places, np.concatenate([self._kept[part] for part in parts]))


class WholeBlocks(DualCoef):
    """Like `DualCoef`, with values also for entries that are not pairs; ``weights`` shows which are pairs.

    The parameters are the same as for `DualCoef`; its ``alpha`` is called for all entries.
    """

    def _fill(
        self,
        number: int,
        block: DualBlock,
        places: tuple[np.ndarray, np.ndarray],
        preferred: np.ndarray,
        other: np.ndarray,
        weights: np.ndarray,
    ) -> None:
        i, j = np.indices(block.shape)
        rows = block.preferred_rows[i.ravel()], block.other_rows[j.ravel()]
        block.alpha[:] = self._alpha(number, *rows, block.weights.ravel()).reshape(block.shape)
