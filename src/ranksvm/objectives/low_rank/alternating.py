"""The nuclear-norm RankSVM by Algorithm 2 of its publication: gradient steps on alpha, then thresholding."""

import threading
from typing import NamedTuple, NoReturn

import numpy as np

from ranksvm.data import ComparablePairs, DesignMatrix, PairBlocks
from ranksvm.objectives.linear import LinearPoint
from ranksvm.objectives.low_rank.nuclear_norm import NuclearNormObjective, NuclearNormPoint, _Values
from ranksvm.objectives.low_rank.singular_values import LowRank, soft_threshold

__all__ = ["AlternatingNuclearNorm"]

# Number of power iterations for the largest eigenvalue. The estimate is too low by at most a few percent if
# eigenvalues are close, and the objective decreases with any step below twice the inverse of the Lipschitz constant.
POWER_ITERATIONS = 30


class _AtDual(NamedTuple):
    """A substitute for a solution of the problem in w: the weights that the dual variables imply."""

    point: LinearPoint


class AlternatingNuclearNorm(NuclearNormObjective):
    """The problem of `NuclearNormObjective` with stored dual variables; these and the matrices start at 0.

    Parameters
    ----------
    design : DesignMatrix
        The features.
    pairs : ComparablePairs
        All pairs that labels imply.
    blocks : PairBlocks
        For each query its block, a matrix: a row for each preferred, a column for each other document of its pairs.
    C, gamma, lam : float
        Weights of a pair, of the nuclear norms, and of the distance.
    length : float or None
        Length of the gradient steps; None: 1 over an estimate of the Lipschitz constant of the gradient.
    n_threads : int
        Number of threads.
    """

    def __init__(
        self,
        design: DesignMatrix,
        pairs: ComparablePairs,
        blocks: PairBlocks,
        C: float,
        gamma: float,
        lam: float,
        length: float | None = None,
        n_threads: int = 1,
    ):
        super().__init__(design, pairs, blocks, C, gamma, lam, _no_problem_in_w, n_threads)
        self._variables[:] = 0.0
        self.loss.target[:] = 0.0
        self._place(np.zeros(self.n_features))
        self._matrices = self._by_query(lambda query: soft_threshold(self._alpha(query), 0.0))
        self.length = 1.0 / (self._largest_eigenvalue() + 2.0 * lam) if length is None else length

    def step(self, accuracy: float = 0.0, interrupted: threading.Event | None = None) -> NuclearNormPoint:
        """A projected gradient step on alpha of all queries at once, then thresholding of singular values.

        Parameters
        ----------
        accuracy, interrupted : optional
            Unused: nothing is solved within a step.

        Returns
        -------
        NuclearNormPoint
            The variables of this step.
        """
        self._matrices = self._by_query(self._descend)
        w = self._weights()
        self._place(w)

        def values(query: int) -> _Values:
            alpha, matrix = self._alpha(query), self._matrices[query]
            multipliers = 2.0 * self.lam * (alpha - matrix.dense())
            return self._values(query, alpha, matrix, multipliers, self._excess(alpha, 0.5 / self.lam))

        return NuclearNormPoint(self._matrices, *self._value_and_bound(self._by_query(values)), w)

    def pair_alpha(self) -> np.ndarray:
        """The dual variables of the pairs, query by query in the order of ``pairs.explicit``."""
        found = []
        for query in range(self.blocks.n_queries):
            preferred, other, _ = self.pairs.explicit(query)
            sides = self.blocks.documents(query)
            if len(preferred):
                i, j = (_places(side, chosen) for side, chosen in zip(sides, (preferred, other), strict=True))
                found.append(self._alpha(query)[i, j])
        return np.concatenate(found)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _alpha(self, query: int) -> np.ndarray:
        return self.blocks.block(self._variables, query)

    def _place(self, w: np.ndarray) -> None:
        point = self.linear.evaluate(w)
        point.gradient = np.zeros_like(w)  # w is exactly the sum over alpha
        self._solution = _AtDual(point)

    def _descend(self, query: int) -> LowRank:
        preferred, other = self.blocks.documents(query)
        alpha, scores = self._alpha(query), self._solution.point.at.scores
        slope = scores[preferred][:, np.newaxis] - scores[other] - 1.0
        slope += 2.0 * self.lam * (alpha - self._matrices[query].dense())
        np.clip(alpha - self.length * slope, 0.0, self.C, out=alpha)
        alpha *= self.blocks.is_pair(query)
        self._sum_up(query, alpha)
        return soft_threshold(alpha, self.gamma / (2.0 * self.lam))

    def _largest_eigenvalue(self) -> float:
        """Estimate the largest eigenvalue of ``sum of (x_i - x_j) (x_i - x_j)'`` over the pairs."""
        v, size = np.random.default_rng(0).standard_normal(self.n_features), 0.0
        scores = np.empty(self.pairs.n_rows)
        for _ in range(POWER_ITERATIONS):
            v /= np.linalg.norm(v)
            self._products.scores(0, self.pairs.n_rows, v, scores)

            def differences(query: int, scores: np.ndarray = scores) -> None:
                preferred, other = self.blocks.documents(query)
                self._sum_up(query, self.blocks.is_pair(query) * (scores[preferred][:, np.newaxis] - scores[other]))

            self._by_query(differences)
            v = self._weights()
            size = float(np.linalg.norm(v))
            if size == 0.0:  # constant features
                return 0.0
        return size


def _no_problem_in_w(*_: object) -> NoReturn:
    raise NotImplementedError("gradient steps on the dual variables solve no problem in w.")


def _places(documents: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Position of each chosen document in ``documents``."""
    order = np.argsort(documents)
    return order[np.searchsorted(documents, chosen, sorter=order)]
