"""The dual of a RankSVM whose alpha are inner products of factors, one vector per document: alpha_ij = <v_i, v_j>."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

import ranksvm._compiled.factorized as factorized
from ranksvm._util.threads import parallel_map
from ranksvm.data import ComparablePairs
from ranksvm.data.design_matrix import DenseDesign, SparseDesign
from ranksvm.data.queries import query_ranges
from ranksvm.terms.host import BLOCK_BYTES, worth_threads

__all__ = ["FactorizedDual"]

# Bytes of X that a part of an epoch reads: a part takes about 50 ms, and between two of them a fit can be interrupted.
PART_BYTES = 1 << 28
# A pass over all rows is divided into this number of shares, whatever the number of threads, so that sums do not depend
# on it. Each share has its own sums, which must not cost more than its rows: few or very sparse rows are divided into
# fewer shares.
SHARES = 8
SHARE_BYTES = 1 << 20
# Number of epochs after which w, which steps only update, is recomputed.
REFRESH_EPOCHS = 50


class FactorizedDual:
    """``D(V) = 1/2 |w|^2 - sum of <v_i, v_j>`` over the pairs, with ``w = sum of <v_i, v_j> (x_i - x_j)``; it holds V.

    Each document has a vector v_i of K entries in ``[0, sqrt(C / K)]``. The pairs are never listed. Let A_i be the sum
    of v_j over the documents of the same query with a lower label than i, minus the sum of v_j over those with a higher
    label. Then ``w = X'c`` with ``c_i = <v_i, A_i>``. With the scores ``s = X w``, the gradient is ``dD/dv_i = s_i A_i
    - B_i``, where B_i is the sum of ``(1 + s_j) v_j`` over the documents with a lower label, plus the sum of ``(1 -
    s_j) v_j`` over those with a higher label.

    Along a direction, w is a quadratic function of the step and D a quartic, whose minimum is computed exactly: no
    step increases D, except one of fixed length.

    Parameters
    ----------
    design : DenseDesign or SparseDesign
        The features.
    pairs : ComparablePairs
        All pairs of the same rows, each of weight 1.
    C : float
        Upper bound of alpha.
    n_components : int
        K.
    random : numpy.random.RandomState
        Draws the order in which each epoch visits the queries.
    fixed_step : float or None
        Length of all steps, as in Algorithm 1 of Xu et al. (IEEE TKDE 2019); None: spectral step
        lengths with line searches, and after each epoch one step of all queries together.
    n_threads : int
        Number of threads for passes over all rows; the visits use one thread.

    Attributes
    ----------
    w : ndarray of float64, shape (n_features,)
        The weights at V.
    upper : float
        ``sqrt(C / K)``.
    """

    def __init__(
        self,
        design: DenseDesign | SparseDesign,
        pairs: ComparablePairs,
        C: float,
        n_components: int,
        random: np.random.RandomState,
        fixed_step: float | None = None,
        n_threads: int = 1,
    ):
        self.design = design
        self.pairs = pairs
        self._products = design.products(pairs.rows)
        self.n_components = n_components
        self.fixed_step = fixed_step
        self.upper = float(np.sqrt(C / n_components))
        self.n_threads = n_threads if worth_threads(design, pairs.n_rows) else 1
        self.w = np.zeros(design.n_features)
        self._random = random
        self._with_pairs = np.flatnonzero(pairs.n_levels > 1)
        self._positions = slice(None) if pairs.rows is None else pairs.rows
        stride = -(-n_components // factorized.LANES) * factorized.LANES
        self._V, self._previous = np.zeros((2, pairs.n_rows, stride))
        self._step, self._pair_sums = np.zeros((2, pairs.n_queries))
        self._arrays = factorized.QueryFactors(
            pairs.pointers, pairs.rows, pairs.levels, pairs.n_levels, self._V, self._step, self._pair_sums
        )
        stored = pairs.n_rows * design.row_bytes
        n_shares = min(SHARES, max(1, int(stored / max(SHARE_BYTES, 64 * design.n_features))))
        self._shares = list(query_ranges(pairs.pointers, -(-pairs.n_rows // n_shares)))
        self._n_epochs = 0

    @property
    def value(self) -> float:
        """D at V."""
        return 0.5 * _length2(self.w) - float(self._pair_sums.sum())

    @property
    def scale(self) -> float:
        """``1/2 |w|^2``.

        If D, as a function of w, has a minimum at w_0, D exceeds this minimum by ``1/2 |w - w_0|^2``.
        """
        return 0.5 * _length2(self.w)

    @property
    def factors(self) -> np.ndarray:
        """V, shape (n_rows, K), in the order of the rows of the data: 0 for documents of queries without pairs."""
        out = np.empty((self.pairs.n_rows, self.n_components))
        out[self._positions] = self._V[:, : self.n_components]
        return out

    # -- starting point ----------------------------------------------------------------------------------------------

    def start(self, factors: np.ndarray) -> None:
        """Set the factors to given ones, in the order of the rows of the data, clipped to the box."""
        self._start(factors, self.upper)

    def start_along(self, factors: np.ndarray) -> None:
        """Start at the best multiple of given factors (clipped to [0, 1]), because V = 0 is a stationary point.

        With ``alpha = sigma^2 alpha_0`` the objective is ``sigma^4 |w_0|^2 / 2 - sigma^2 sum of alpha_0``, minimal if
        ``sigma^2 = sum of alpha_0 / |w_0|^2``, or at the edge of the box.
        """
        self._start(factors, 1.0)
        length2 = _length2(self.w)
        if np.isfinite(length2):
            ratio = float(self._pair_sums.sum()) / length2 if length2 > 0.0 else np.inf
            self._V *= min(self.upper, float(np.sqrt(ratio)))
        self.refresh()
        self._previous[:] = self._V

    def _start(self, factors: np.ndarray, upper: float) -> None:
        without_pairs = np.repeat(self.pairs.n_levels < 2, np.diff(self.pairs.pointers))
        self._V[:, : self.n_components] = np.clip(factors[self._positions], 0.0, upper)
        self._V[without_pairs] = 0.0
        self._previous[:] = self._V
        self._step[:] = 0.0
        self.refresh()

    # -- steps -------------------------------------------------------------------------------------------------------

    def epoch(self) -> Iterator[float]:
        """Visit each query once, in random order, then take a joint step in the direction of their changes.

        Between two items of this generator, w and the factors agree. An item is the sum of ``|P(V - G) - V|^2`` over
        the queries of a part, computed for each query when it is visited. G is the gradient, and P is the projection
        onto the box.
        """
        for part in self._parts(self._random.permutation(self._with_pairs)):
            yield self.visit(part)
        if self.fixed_step is None:
            self._follow()
            yield 0.0
        self._n_epochs += 1
        if self._n_epochs % REFRESH_EPOCHS == 0:
            self.refresh()

    def visit(self, queries: np.ndarray) -> float:
        """Take a projected gradient step for one query after another; return the sum of ``|P(V - G) - V|^2``."""
        return float(self.design.visit_factors(self._arrays, queries, self.upper, self.fixed_step or 0.0, self.w))

    def remaining_decrease(self) -> float:
        """Decrease of D by one visit of each query with an exact line search, from V, which is restored.

        Steps go along the projected gradients, so it is 0 at stationary points only. If epochs have line searches, 0 is
        returned, because the last epoch has shown the decrease.
        """
        if self.fixed_step is None:
            return 0.0
        changing = self._V, self._step, self._pair_sums, self.w
        kept = [array.copy() for array in changing]
        before = self.value
        self._step[:] = 0.0
        self.design.visit_factors(self._arrays, self._with_pairs, self.upper, 0.0, self.w)
        decrease = before - self.value
        for array, values in zip(changing, kept, strict=True):
            array[:] = values
        return decrease

    def refresh(self) -> None:
        """Compute w from V, without the round-off of many steps."""

        def block(first: int, last: int, start: int, stop: int, sums: np.ndarray) -> None:
            c = np.empty(stop - start)
            factorized.coefficients(self._arrays, first, last, c)
            self._products.accumulate(start, stop, c, sums[0])

        self.w[:] = self._pass(block, 1)[0]

    def gradient(self) -> np.ndarray:
        """dD/dV, shape (n_rows, K), in the order of the rows of the data."""
        scores, G = np.empty(self.pairs.n_rows), np.empty_like(self._V)
        self._products.scores(0, self.pairs.n_rows, self.w, scores)
        factorized.gradient(self._arrays, 0, self.pairs.n_queries, scores, G)
        out = np.empty((self.pairs.n_rows, self.n_components))
        out[self._positions] = G[:, : self.n_components]
        return out

    def _follow(self) -> None:
        """A joint step of all queries, in the direction of their change by the last joint step and the visits since.

        Queries that are visited one by one partly undo each other's change of w, so steps are short if features are
        correlated; the joint step replaces many such steps, like the momentum of heavy-ball methods (Polyak, 1964),
        with the length that minimizes the objective.
        """
        pairs1, pairs2 = np.zeros((2, self.pairs.n_queries))

        def block(first: int, last: int, start: int, stop: int, sums: np.ndarray) -> None:
            c1, c2 = np.empty((2, stop - start))
            factorized.momentum(self._arrays, first, last, self.upper, self._previous, c1, c2, pairs1, pairs2)
            self._products.accumulate(start, stop, c1, sums[0])
            self._products.accumulate(start, stop, c2, sums[1])

        p, r = self._pass(block, 2)
        slope, bend = self.w @ p - pairs1.sum(), self.w @ r + 0.5 * (p @ p) - pairs2.sum()
        t = 0.0
        if slope < 0.0:
            t, change = factorized.least_of_quartic(slope, bend, p @ r, 0.5 * (r @ r))
            t = t if change < 0.0 else 0.0
        for first, last in self._shares:
            rows = slice(self.pairs.pointers[first], self.pairs.pointers[last])
            factorized.move(self._V[rows], self._previous[rows], self.upper, t)
        self.w += t * (p + t * r)
        self._pair_sums += t * (pairs1 + t * pairs2)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _parts(self, queries: np.ndarray) -> list[np.ndarray]:
        """Queries in parts of about ``PART_BYTES`` bytes of X."""
        bytes_read = np.cumsum(np.diff(self.pairs.pointers)[queries]) * self.design.row_bytes
        cuts = np.flatnonzero(np.diff(bytes_read // PART_BYTES)) + 1
        return [queries[first:last] for first, last in pairwise([0, *cuts, len(queries)])]

    def _pass(self, block: Callable[[int, int, int, int, np.ndarray], None], n_sums: int) -> np.ndarray:
        """Sums over blocks of whole queries; each block adds to ``n_sums`` vectors of the shape of w."""
        rows = max(1, int(BLOCK_BYTES // self.design.row_bytes))

        def share(queries: tuple[int, int]) -> np.ndarray:
            sums = np.zeros((n_sums, self.design.n_features))
            first_query, last_query = queries
            for first, last in query_ranges(self.pairs.pointers[first_query : last_query + 1], rows):
                first, last = first_query + first, first_query + last
                block(first, last, int(self.pairs.pointers[first]), int(self.pairs.pointers[last]), sums)
            return sums

        total: np.ndarray = np.sum(parallel_map(share, self._shares, self.n_threads), axis=0)
        return total


def _length2(w: np.ndarray) -> float:
    """``|w|^2``, infinite if it overflows, which the minimizer checks."""
    with np.errstate(over="ignore"):
        return float(w @ w)
