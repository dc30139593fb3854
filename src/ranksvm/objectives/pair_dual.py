"""The dual of a linear model over listed pairs, one alpha for each pair; fast for far fewer rows than features."""

from functools import partial
from typing import NamedTuple

import numpy as np

from ranksvm._compiled.dual_descent import PairArrays
from ranksvm._util.lazy import cached_property
from ranksvm._util.threads import parallel_map
from ranksvm.data import DenseDesign, SparseDesign
from ranksvm.data.scores import scores_by_threads
from ranksvm.losses.protocol import Pairs
from ranksvm.losses.round_off import OPERATIONS, growth, margin_error_bound
from ranksvm.solvers.cone import SignCone

__all__ = ["DualPoint", "DualSize", "PairDual"]

# A task of a thread computes the margins of SHARED_ROWS rows, or a share of the Gram matrices, which are divided into
# SHARES shares for each thread.
SHARED_ROWS = 2048
SHARES = 2
# Maximum number of steps of an alpha in one visit to its query (kCycles of dual_descent.hpp).
STEPS_OF_VISIT = 10
TINY = float(np.finfo(np.float64).tiny)


class DualPoint:
    """A feasible point of the dual, with the weights that belong to it.

    Parameters
    ----------
    alpha : ndarray of float64, shape (n_pairs,)
        The dual variables.
    z : ndarray of float64, shape (n_features,)
        ``sum of alpha_ij (x_i - x_j)``.
    w : ndarray of float64, shape (n_features,)
        The weights: z itself, or its projection onto a cone.

    Attributes
    ----------
    margins : ndarray of float64, shape (n_pairs,)
        Margins of the pairs at w.
    value, gap : float
        Value of the primal problem at w, and how far it is above the value of the dual at alpha.
    distance : float
        Sum of the absolute steps that have led to alpha from 0.
    additions : int
        Upper bound, for each of these steps, on the number of additions to z since that step.
    """

    def __init__(self, alpha: np.ndarray, z: np.ndarray, w: np.ndarray):
        self.alpha = alpha
        self.z = z
        self.w = w
        self.margins = np.zeros_like(alpha)
        self.value = np.inf
        self.gap = np.inf
        self.distance = float(alpha.sum())
        self.additions = 0


class PairDual:
    """``max sum of (alpha - ridge / 2 * alpha^2) - 1/2 |sum of alpha_ij (x_i - x_j)|^2``, ``0 <= alpha <= upper``.

    A pair of weight a has the upper bound C a and no ridge if the loss is the hinge; C a and the ridge ``d / (C a)`` if
    it is the Huberized hinge of width d; no upper bound and the ridge ``1 / (2 C a)`` if it is the squared hinge. ``w =
    sum of alpha_ij (x_i - x_j)`` is a point of the primal problem ``1/2 |w|^2 + C * loss(X w)``, and the duality gap of
    the two is the certificate. For this certificate, w need be only as accurate as the primal value requires, even if C
    is large; ``1/2 |grad f(w)|^2`` would then require more.

    For weights in a cone the dual has ``1/2 |proj(z)|^2`` instead of ``1/2 |z|^2``, where z is the sum, and ``w =
    proj(z)`` (`SignCone`). Its slopes are the slopes at w. Its curvature is at most the curvature without a cone, and
    steps are computed with the latter.

    The object stores alpha, the weights of the pairs, and a Gram matrix for each query. `DualSize` gives their sizes.

    Parameters
    ----------
    design : DenseDesign or SparseDesign
        The features.
    pairs : ComparablePairs or PairList
        The pairs.
    loss : str
        Loss of a pair, one of ``supported_losses``.
    width : float
        Width of the Huberized hinge; other losses ignore it.
    C : float
        Weight of a pair.
    cone : SignCone, optional
        The cone of the weights; None: they are free.
    n_threads : int
        Number of threads for Gram matrices and margins; the ascent uses one thread.
    """

    reserve = 0.0
    # the losses whose dual is a quadratic function of alpha
    supported_losses = ("squared_hinge", "hinge", "huber")

    def __init__(
        self,
        design: DenseDesign | SparseDesign,
        pairs: Pairs,
        loss: str,
        width: float,
        C: float = 1.0,
        cone: SignCone | None = None,
        n_threads: int = 1,
    ):
        self.design = design
        self._n_threads = n_threads
        self._cone = cone
        self._signs = None if cone is None else cone.signs.astype(np.int8)
        with_pairs = np.flatnonzero(pairs.pairs_per_query > 0.0)
        if len(with_pairs) < pairs.n_queries:  # scores of the other queries' rows are not needed
            pairs = pairs.of_queries(with_pairs)
        self.pairs = pairs
        self._products = design.products(pairs.rows)
        self.loss = loss
        self.width = width
        self.C = C
        counts = pairs.pairs_per_query.astype(np.int64)
        self._preferred, self._other, self._weights = pairs.explicit(0, pairs.n_queries)
        self._upper, self._ridge = np.empty((2, len(self._weights)))
        self._queries = np.flatnonzero(pairs.weight_per_query > 0.0).astype(np.int64)
        present = np.zeros(len(counts), dtype=bool)
        present[self._queries] = True
        sizes = np.where(present, np.diff(pairs.pointers), 0)
        self._gram_sizes = sizes
        self._gram_pointers = np.concatenate(([0], np.cumsum(sizes * sizes))).astype(np.int64)
        self._grams = np.empty(max(1, self._gram_pointers[-1]))
        starts = np.repeat(pairs.pointers[:-1], counts)
        self._arrays = PairArrays(
            pairs.pointers,
            pairs.rows,
            np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            (self._preferred - starts).astype(np.int32),
            (self._other - starts).astype(np.int32),
            self._upper,
            self._ridge,
            self._gram_pointers,
            self._grams,
        )
        n_shares = min(SHARES * n_threads, max(1, int(sizes.sum()) // SHARED_ROWS)) if n_threads > 1 else 1
        shares = np.array_split(self._queries, n_shares)
        parallel_map(partial(design.query_grams, self._arrays), shares, n_threads)
        self._additions = STEPS_OF_VISIT * int(counts.max())  # additions of the steps within a visit
        self._random = np.random.default_rng(0)
        self.reweight(C)

    def reweight(self, C: float) -> None:
        """Switch to another C."""
        self.C = C
        weights, present = self._weights, self._weights > 0.0
        self._upper[:] = np.where(present, np.inf, 0.0) if self.loss == "squared_hinge" else C * weights
        stiffness = {"squared_hinge": 0.5 / C, "huber": self.width / C, "hinge": 0.0}[self.loss]
        with np.errstate(over="ignore"):
            self._ridge[:] = np.divide(stiffness, weights, out=np.zeros(len(weights)), where=present)
        negligible = np.isinf(self._ridge)  # weights so small that alpha may as well be 0
        self._upper[negligible] = self._ridge[negligible] = 0.0
        self._arrays.pauses[:] = 0

    def evaluate(self, alpha: np.ndarray | None = None) -> DualPoint:
        """The point with these alpha, moved into their bounds; None: all 0."""
        own, z = np.zeros(len(self._weights)), np.zeros(self.design.n_features)
        if alpha is not None:
            np.clip(alpha, 0.0, self._upper, out=own)
            self._products.accumulate(0, self.pairs.n_rows, self._per_document(own), z)
        point = DualPoint(own, z, z if self._cone is None else self._cone.project(z))
        point.additions = self._additions + self.pairs.n_rows
        self._certify(point)
        return point

    def ascend(self, point: DualPoint, epochs: int) -> None:
        """Visit all queries ``epochs`` times, each time in a random order, and update the point."""
        for _ in range(epochs):
            order = self._random.permutation(self._queries)
            distance = self.design.dual_ascent(self._arrays, order, point.alpha, point.z, self._signs, point.w)
            point.distance += distance
            point.additions += self.pairs.n_rows
        self._certify(point)

    def certificate(self, point: DualPoint) -> tuple[float, float]:
        """Value of the primal problem at the point's weights, and how far it is above the value of the dual."""
        return point.value, point.gap

    def smoothing_suffices(self, point: DualPoint, tol: float) -> bool:
        """Return True: nothing is smoothed."""
        return True

    def refresh(self, point: DualPoint, visit_pairs: bool = False) -> bool:
        """Evaluate alpha again, in place, if that may be more accurate than the steps so far; return whether it was.

        It may be if alpha was much larger before, as at the start of a fit that continues one with a larger C.
        """
        again = self.evaluate(point.alpha)
        if 2.0 * again.distance * again.additions > point.distance * point.additions:
            return False
        vars(point).update(vars(again))
        return True

    def round_off(self, point: DualPoint, tol: float) -> float:
        """Bound on the errors of both values, due to margins, sums, and z, which is the result of many additions.

        Let e be the error of z, so that ``z - e`` belongs to alpha. Half the squared length of ``z - e``, or of its
        projection, is at most ``1/2 |w|^2 - w'e + 1/2 |e|^2``: half the squared length, as a function of z, is
        differentiable with the gradient w, which changes by at most as much as z. As w'z is ``|w|^2``, w'e is ``|w|^2``
        minus the sum of alpha times the margins. So the bound on the length of e, which grows with the steps and
        additions, enters only squared. Near the margin the loss of a pair changes by at most its slope times the error
        of the margin. Weights that are differences of gains are only as accurate as the gains, so alpha are lowered to
        the upper bounds that the exact weights allow.
        """
        alpha, weights, margins = point.alpha, self._weights, point.margins
        n_pairs, total = len(alpha), float(alpha.sum())
        length, norm = growth(len(point.z) + OPERATIONS), float(np.linalg.norm(point.w))
        of_sums, longest, margin_error = growth(n_pairs + OPERATIONS), self._longest, self._margin_error(point)
        hinge = np.maximum(0.0, 1.0 - margins + margin_error)
        of_value = self.C * margin_error * float(weights @ self._slopes(hinge)) + of_sums * point.value
        # the exact weights may be smaller, so that alpha must be lowered, which also lowers the ridge term
        of_weights = growth(OPERATIONS + self.pairs.n_rows)
        gains = sum((part.weights_of(self._preferred, self._other) for part in self.pairs.gain_parts), weights)
        of_value += self.C * of_weights * float(gains @ self._losses(hinge))
        part = of_weights * np.divide(gains, weights, out=np.zeros(n_pairs), where=weights > 0.0)
        lowered = np.minimum(part, 1.0) * alpha
        drift = 2.0 * growth(point.additions + OPERATIONS) * longest * point.distance
        shift = 2.0 * longest * float(lowered.sum())
        of_alpha = float(lowered @ (1.0 + np.abs(margins) + margin_error)) + (0.5 * shift + drift) * shift
        ridge = 0.5 * float((self._ridge * alpha) @ alpha)
        along = abs(norm**2 - float(alpha @ margins)) + margin_error * total + of_sums * float(alpha @ np.abs(margins))
        of_dual = of_sums * (total + ridge) + along + 0.5 * drift**2 + 2.0 * length * norm**2
        return of_value + of_dual + of_alpha

    def learned_nothing(self, point: DualPoint) -> bool:
        """Whether all margins are 0 but for round-off, as when the two documents of each pair are equal."""
        return bool((np.abs(point.margins) <= self._margin_error(point)).all())

    def _margin_error(self, point: DualPoint) -> float:
        """Bound on the round-off of a margin."""
        # the sum of the absolute products in a score is at most the product of both lengths
        products = self._longest * float(np.linalg.norm(point.w)) * (1.0 + growth(len(point.z) + OPERATIONS))
        return margin_error_bound(products, self.design.most_entries)

    @cached_property
    def _longest(self) -> float:
        """Upper bound on the length of any row with pairs."""
        sizes, n_entries = self._gram_sizes, self.design.most_entries
        places = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        begins, steps = (np.repeat(numbers, sizes) for numbers in (self._gram_pointers[:-1], sizes + 1))
        # squares that are too small for floats count as the smallest
        most = float(self._grams[begins + places * steps].max(initial=0.0)) + n_entries * TINY
        return float(np.sqrt(most)) * (1.0 + growth(n_entries + OPERATIONS))

    def _certify(self, point: DualPoint) -> None:
        if point.w.any():
            scores = scores_by_threads(self._products, self.pairs.n_rows, point.w, self._n_threads, SHARED_ROWS)
            point.margins = scores[self._preferred] - scores[self._other]
        else:  # where fits begin
            point.margins = np.zeros_like(point.alpha)
        hinge = np.maximum(0.0, 1.0 - point.margins)
        norm = 0.5 * float(point.w @ point.w)
        point.value = norm + self.C * float(self._weights @ self._losses(hinge))
        alpha = point.alpha
        dual = float(alpha.sum()) - 0.5 * float((self._ridge * alpha) @ alpha) - norm
        # by round-off it may be negative
        gap = point.value - dual
        point.gap = 0.0 if gap < 0.0 else gap  # NaN stays

    def _losses(self, hinge: np.ndarray) -> np.ndarray:
        losses = hinge
        if self.loss == "squared_hinge":
            losses = hinge * hinge
        elif self.loss == "huber":
            inner = np.minimum(hinge, self.width)
            losses = inner * (hinge - 0.5 * inner) / self.width
        return losses

    def _slopes(self, hinge: np.ndarray) -> np.ndarray:
        """The slopes of `_losses`."""
        if self.loss == "squared_hinge":
            return 2.0 * hinge
        return np.minimum(hinge / self.width, 1.0) if self.loss == "huber" else (hinge > 0.0).astype(float)

    def _per_document(self, alpha: np.ndarray) -> np.ndarray:
        n = self.pairs.n_rows
        return np.bincount(self._preferred, alpha, n) - np.bincount(self._other, alpha, n)


class DualSize(NamedTuple):
    """The numbers that determine the cost of a `PairDual`.

    Attributes
    ----------
    n_rows : int
        Number of rows of queries that have pairs.
    n_pairs : int
        Number of pairs.
    n_numbers : int
        Number of entries of the queries' Gram matrices and of the arrays over pairs.
    work : float
        Number of multiplications of a cycle over all pairs in which every alpha changes.
    """

    n_rows: int
    n_pairs: int
    n_numbers: int
    work: float

    @classmethod
    def of(cls, pairs: Pairs) -> "DualSize":
        """The size of the dual over some pairs.

        Parameters
        ----------
        pairs : ComparablePairs or PairList
            The pairs.

        Returns
        -------
        DualSize
            The size.
        """
        sizes = np.where(pairs.weight_per_query > 0.0, np.diff(pairs.pointers), 0).astype(float)
        counts = np.asarray(pairs.pairs_per_query, dtype=float)
        numbers = float(sizes @ sizes) + 6.0 * float(counts.sum())
        return cls(int(sizes.sum()), pairs.n_pairs, int(min(numbers, 2**62)), float(counts @ sizes))
