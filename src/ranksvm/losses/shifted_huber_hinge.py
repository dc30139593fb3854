"""The Huberized hinge with a shift of the margin for each pair: the loss in a step of the nuclear-norm RankSVM."""

import numpy as np

import ranksvm._compiled.blocks as blocks
import ranksvm._compiled.linear as linear
from ranksvm.data.pair_blocks import PairBlocks
from ranksvm.data.pairs import ComparablePairs
from ranksvm.losses.protocol import LossSums, Pairs, QueryOperator
from ranksvm.losses.round_off import LossRoundOff

__all__ = ["ShiftedHuberHinge", "ShiftedState"]


class ShiftedState:
    """The state of an evaluation (see `PairwiseLoss`): the scores, from which the active pairs are found.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
        The scores.

    Attributes
    ----------
    degrees : ndarray of float64, shape (n_rows,)
        Number of active pairs of each document.
    """

    def __init__(self, scores: np.ndarray):
        self.scores = scores
        self.degrees = np.zeros(len(scores))


class ShiftedHuberHinge:
    """Huberized hinges of margins that are shifted by a number for each pair, stored as a matrix for each query.

    Minimizing ``1/2 |sum of alpha_ij (x_i - x_j)|^2 - sum of alpha_ij + lam |alpha - A|^2`` over the dual variables ``0
    <= alpha_ij <= C`` of the pairs, for given A, is equivalent to minimizing ``1/2 |w|^2 + C * loss`` over w: the
    problems are dual to each other. In the second problem, the loss of a pair is the Huberized hinge of width ``d = 2
    lam C`` of ``h_ij = 1 - (s_i - s_j) + 2 lam A_ij``: it is 0 for ``h <= 0``, ``h^2 / (2 d)`` for h from 0 to d, and
    ``h - d / 2`` for larger h. The solutions satisfy ``alpha_ij = C clip(h_ij / d, 0, 1)``. The minimum of the first
    problem is ``lam |A|^2``, summed over the pairs, minus the minimum of the second problem.

    See `PairwiseLoss` for the methods. Every pair is visited, one row of a block after another, in time O(n_pairs).

    Parameters
    ----------
    pairs : ComparablePairs
        All pairs implied by labels.
    blocks : PairBlocks
        For each query, its block: a matrix with a row for each preferred document of its pairs, and a column for each
        other document.
    C : float
        Weight of a pair.
    lam : float
        Weight of ``|alpha - A|^2``. Both lam and the target A may change between two problems.
    target : ndarray of float64, shape (blocks.n_entries,), optional
        The entries of A, referenced and not copied; None: zeros.
    """

    name = "shifted_huber"

    def __init__(
        self, pairs: ComparablePairs, blocks: PairBlocks, C: float, lam: float, target: np.ndarray | None = None
    ):
        self.pairs = pairs
        self.blocks = blocks
        self.C = C
        self.lam = lam
        self.target = np.zeros(blocks.n_entries) if target is None else target

    @property
    def width(self) -> float:
        """The width d of the Huberized hinge."""
        return 2.0 * self.lam * self.C

    def with_pairs(self, pairs: Pairs) -> "ShiftedHuberHinge":
        raise NotImplementedError("targets belong to the pairs they were given for: this loss cannot be sampled.")

    def new_state(
        self, near: ShiftedState | None = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> ShiftedState:
        return ShiftedState(np.zeros(self.pairs.n_rows) if scores is None else scores)

    def evaluation(self, state: ShiftedState, width: float | None) -> QueryOperator:
        # the width follows from lam and C: the argument exists for other losses
        def evaluate(first: int, last: int, scores_range: np.ndarray, gradient_range: np.ndarray) -> LossSums:
            state.scores[self.pairs.pointers[first] : self.pairs.pointers[last]] = scores_range
            arrays = self.blocks.arrays, first, last, state.scores
            return LossSums(blocks.shifted_hinge(*arrays, *self._shift, state.degrees, gradient_range))

        return evaluate

    def hessian(self, state: ShiftedState) -> QueryOperator:
        def multiply(first: int, last: int, v_range: np.ndarray, u_range: np.ndarray) -> LossSums:
            arrays = self.blocks.arrays, first, last, state.scores
            blocks.shifted_laplacian(*arrays, *self._shift, v_range, u_range)
            u_range /= self.width
            return LossSums(0.0)

        return multiply

    def round_off(
        self, scores: np.ndarray, sums: LossSums, width: float | None, margin_error: float, tight: bool
    ) -> LossRoundOff:
        raise NotImplementedError("the problem that this loss is a step of bounds the round-off of both together.")

    def curvature_diagonal(self, state: ShiftedState, start: int, stop: int) -> np.ndarray:
        return state.degrees[start:stop] / self.width

    def hessian_rows(self, state: ShiftedState, first: int, last: int, X_range: np.ndarray, out: np.ndarray) -> None:
        linear.center_queries(self.pairs.pointers, first, last, X_range)
        start = self.pairs.pointers[first]
        Z = out[: len(X_range)]
        np.multiply(state.degrees[start : start + len(X_range), np.newaxis], X_range, out=Z)
        for query in range(first, last):
            preferred, other = (positions - start for positions in self.blocks.documents(query))
            active = np.empty(self.blocks.shape(query))
            blocks.shifted_bends(self.blocks.arrays, query, state.scores, *self._shift, active)
            # Only one triangle of the Laplacian L is used, doubled: X'Z + Z'X, which is formed later, has both.
            Z[preferred] -= 2.0 * (active @ X_range[other])
        Z /= self.width

    def alpha(self, scores: np.ndarray, query: int, out: np.ndarray | None = None) -> np.ndarray:
        """The dual variables of the pairs of a query at some scores.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_rows,)
            Score of each position.
        query : int
            Number of the query.
        out : ndarray of float64, optional
            Output array.

        Returns
        -------
        ndarray of float64, shape (n_preferred, n_other)
            ``C clip(h_ij / d, 0, 1)``, in [0, C]; 0 for entries of the block that are not pairs.
        """
        out = np.empty(self.blocks.shape(query)) if out is None else out
        blocks.shifted_pulls(self.blocks.arrays, query, scores, *self._shift, out)
        out *= self.C
        return out

    @property
    def _shift(self) -> tuple[np.ndarray, float, float]:
        return self.target, 2.0 * self.lam, self.width
