"""The nuclear-norm RankSVM, split into its dual variables and a low-rank matrix for each query, with certificates."""

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ranksvm._util.threads import parallel_map
from ranksvm.data import ComparablePairs, DesignMatrix, PairBlocks
from ranksvm.exceptions import DataError
from ranksvm.losses import ShiftedHuberHinge
from ranksvm.losses.round_off import OPERATIONS, UNIT, Sizes, growth, margin_error_bound
from ranksvm.objectives.linear import STEP_ERRORS, LinearObjective
from ranksvm.objectives.low_rank.singular_values import LowRank, soft_threshold
from ranksvm.solvers import SolverResult
from ranksvm.terms.hessian_cost import MAX_VARIABLES
from ranksvm.terms.host import ThreadedTerm

__all__ = ["NuclearNormObjective", "NuclearNormPoint", "required_bytes"]

# Minimizes a `LinearObjective` from some weights, until its duality gap is at most a given fraction of its value, or
# until it is interrupted.
Minimize = Callable[[LinearObjective, np.ndarray, float, threading.Event | None], SolverResult]
Result = TypeVar("Result")

# A fit starts from the dual variables of a RankSVM with the hinge smoothed by at most START_WIDTH, solved to the
# relative gap START_TOL.
START_WIDTH = 0.25
START_TOL = 1e-3
# Relative gap of the problem in w at which round-off may begin: no smaller gap is requested.
SMALLEST_TOLERANCE = 1e-15
# The first step length is the one that would make variables and multipliers equal in size, multiplied by LENGTH, and
# divided by the fraction of singular values for which the multipliers are at their bound gamma. Eleven settings of C,
# gamma and lam across their ranges were measured on OHSUMED, MQ2008 and synthetic data: the best multiple falls from 2,
# at ranks near 0, to 0.1, at high ranks. With half or twice LENGTH, some settings take twice as many steps. Multiples
# above LONGEST gain nothing.
LENGTH, LONGEST = 0.15, 2.0
# After FIRST_CHANGE steps, and whenever the number of steps has doubled since, the length is changed so that the
# proximal point moves in a step as far as the dual variables are from it (residual balancing: Boyd et al. 2011, 3.4.1).
# One change is by a factor of at most LARGEST_CHANGE. If the ratio of the two distances is within BAND, the length is
# kept. Of 120 settings of C, gamma and lam the slowest took 82 steps instead of 246. Fits that started from the
# solution for a thousandth of C took 60 steps instead of more than a thousand.
FIRST_CHANGE, LARGEST_CHANGE, BAND = 5, 10.0, 2.0
# Multipliers up to this multiple of ``2 lam`` times the dual variables are round-off.
ROUND_OFF = 1e-14
# How many numbers are stored for each entry of the blocks: a target, and a variable of the splitting.
ENTRY_COPIES = 2
# Number of dense matrices of the size of a block that a thread holds at a time, including Gram matrices and
# eigenvectors.
BLOCK_COPIES = 8
# How often each query's matrix is stored as factors: before and after two steps, the best one, and its kept copies.
FACTOR_COPIES = 5
# Bytes of the objects of a query, with pairs or without, and of the numbers of a document (measured).
QUERY_BYTES, DOCUMENT_BYTES = 2500, 320


class NuclearNormPoint(NamedTuple):
    """The result of a step of `NuclearNormObjective`.

    Attributes
    ----------
    matrices : list of LowRank
        The matrix A of each query.
    value : float
        The objective there, with the dual variables of the same step.
    round_off : float
        Bound on its error.
    bound : float
        A lower bound on its minimum, with the error of the bound subtracted.
    w : ndarray of float64, shape (n_features,)
        The weights of the model.
    """

    matrices: list[LowRank]
    value: float
    round_off: float
    bound: float
    w: np.ndarray

    @property
    def ranks(self) -> np.ndarray:
        """Rank of the matrix of each query."""
        return np.array([matrix.rank for matrix in self.matrices])


class _Values(NamedTuple):
    """Sums over one block or all blocks, from which the objective's value and its lower bound are computed.

    ``excess`` is the sum of the absolute multipliers, times the relative excess of their spectral norm over gamma.
    """

    alpha: float
    distance: float
    nuclear: float
    multipliers: float
    hinge: float
    excess: float


class NuclearNormObjective:
    """``1/2 |sum alpha_ij (x_i - x_j)|^2 - sum alpha_ij + lam |alpha - A|_F^2 + gamma |A|_*`` over ``0 <= alpha <= C``.

    The last two terms are sums over the queries, each of which has a matrix A of the shape of its block. The distance
    is between whole blocks: alpha is 0 for entries that are not pairs, but A need not be. Minimized over A, the last
    two terms are a smooth convex function g of alpha, the Moreau envelope of the nuclear norm. The proximal operator of
    g takes one thresholding of singular values; the proximal operator of the other terms, together with the box, is the
    dual solution of a RankSVM (`ShiftedHuberHinge`). Douglas-Rachford splitting needs only these two.

    For weights w and matrices Y of spectral norm at most gamma, ``-1/2 |w|^2 - |Y|^2 / (4 lam) - C * sum of max(0, 1 -
    (s_i - s_j) - Y_ij)`` is a lower bound of the objective; the multipliers of the splitting are such matrices Y.

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
    minimize : callable
        Solves the problem in w at each step.
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
        minimize: Minimize,
        n_threads: int = 1,
    ):
        self.pairs = pairs
        self.blocks = blocks
        self.C = C
        self.gamma = gamma
        self.lam = lam
        self.minimize = minimize
        self.n_threads = n_threads
        self.n_features = design.n_features
        self.loss = ShiftedHuberHinge(pairs, blocks, C, lam)
        # A Hessian is cheap relative to the singular values, and pairs with targets cannot be sampled.
        fraction = 1.0 if design.dense and design.n_features <= MAX_VARIABLES else 0.0
        term = ThreadedTerm(design, self.loss, n_threads)
        self.linear = LinearObjective(term, C, fraction_of=lambda _: fraction, includes_round_off=False)
        self._tasks = self._plan()
        # Variables of the splitting before each step: alpha plus the length times the multipliers. `loss.target` holds
        # the reflection, whose proximal point is alpha.
        self._variables = np.empty(blocks.n_entries)
        self._solution: Any = None
        self._length = 0.0
        self._steps, self._next_change = 0, FIRST_CHANGE
        self._moves = 0.0, 0.0
        self._matrices: list[LowRank] = []
        self._sizes: Sizes | None = None
        self._products = design.products(pairs.rows)
        self._coefficients = np.zeros(pairs.n_rows)

    def begin(
        self,
        w: np.ndarray | None = None,
        matrices: list[LowRank] | None = None,
        interrupted: threading.Event | None = None,
    ) -> None:
        """Set the first dual variables: those of a RankSVM without low rank, or those for ``matrices``.

        Parameters
        ----------
        w : ndarray of float64, shape (n_features,), optional
            Weights near the solution.
        matrices : list of LowRank, optional
            Matrix of each query near the solution.
        interrupted : threading.Event, optional
            Stops the run when set.
        """
        self._couple(matrices, self.lam if matrices else min(self.lam, START_WIDTH / (2.0 * self.C)))
        self._solve(np.zeros(self.n_features) if w is None else w, START_TOL, interrupted)

        def split(query: int) -> tuple[float, float]:
            alpha = self._alpha(query)
            multipliers = self._multipliers(alpha)
            self.blocks.block(self._variables, query)[:] = alpha
            self.blocks.block(self.loss.target, query)[:] = multipliers
            return np.vdot(alpha, alpha), np.vdot(multipliers, multipliers)

        variables, multipliers = np.sqrt(np.sum(self._by_query(split), axis=0))
        self._length = 0.5 / self.lam
        if multipliers > ROUND_OFF * 2.0 * self.lam * variables and self.gamma > 0.0:
            n_values = np.minimum(np.diff(self.blocks.rows), np.diff(self.blocks.columns)).sum()
            at_bound = (multipliers / self.gamma) ** 2 / n_values
            self._length = float(min(LENGTH / at_bound, LONGEST) * variables / multipliers)
        self._variables += self._length * self.loss.target
        self._matrices = self._by_query(self._reflect)

    def step(self, accuracy: float, interrupted: threading.Event | None = None) -> NuclearNormPoint:
        """Compute the dual variables for the present reflection, then reflect for the next step.

        Parameters
        ----------
        accuracy : float
            Largest duality gap allowed for the problem in w, in the unit of the objective.
        interrupted : threading.Event, optional
            Stops the solver of that problem when set; value and bound remain valid.

        Returns
        -------
        NuclearNormPoint
            The matrices of this step, and the value at its dual variables.

        Raises
        ------
        DataError
            When lam is so large that the length of a step underflows.
        """
        if self._length == 0.0:
            raise DataError(f"lam={self.lam:g} is too large: step lengths underflow float64. Choose a smaller lam.")
        self.loss.lam = 0.5 / self._length
        self._solve(self._solution.w, self._tolerance(accuracy), interrupted)
        last, self._length = self._length, self._balanced_length()
        found = self._by_query(lambda query: self._advance(query, last))
        matrices, self._matrices = self._matrices, [matrix for matrix, _, _ in found]
        self._moves = tuple(np.sum([moves for _, _, moves in found], axis=0).tolist())
        return NuclearNormPoint(matrices, *self._value_and_bound([values for _, values, _ in found]), self._solution.w)

    def finish(self, point: NuclearNormPoint, accuracy: float) -> NuclearNormPoint:
        """The best dual variables for the matrices of a point; the splitting cannot continue after that.

        Parameters
        ----------
        point : NuclearNormPoint
            The point.
        accuracy : float
            Largest duality gap allowed for the problem in w.

        Returns
        -------
        NuclearNormPoint
            The same matrices, and the dual variables that follow from the weights: ``C clip((1 - (s_i - s_j) + 2 lam
            A_ij) / (2 lam C), 0, 1)``.
        """
        self._matrices = []  # free memory
        self._couple(point.matrices, self.lam)
        self._solve(point.w, self._tolerance(accuracy), None)

        def values(query: int) -> _Values:
            alpha = self._alpha(query)
            multipliers = self._multipliers(alpha)
            excess = self._excess(alpha, 0.5 / self.lam)
            self._sum_up(query, alpha)
            return self._values(query, alpha, point.matrices[query], multipliers, excess)

        found = self._by_query(values)
        # the weights are summed up over alpha: w minus the gradient may belong to other alpha, if alpha has few correct
        # digits
        return NuclearNormPoint(point.matrices, *self._value_and_bound(found, self._weights()), self._solution.w)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _couple(self, matrices: list[LowRank] | None, lam: float) -> None:
        """Set up the problem in w, whose dual penalizes the distance of alpha from ``matrices`` (None: from 0)."""
        self.loss.lam = lam
        if matrices is None:
            self.loss.target[:] = 0.0
            return
        self._by_query(lambda query: matrices[query].dense(out=self.blocks.block(self.loss.target, query)))

    def _solve(self, w: np.ndarray, tolerance: float, interrupted: threading.Event | None) -> None:
        self._solution = self.minimize(self.linear, w, tolerance, interrupted)

    def _tolerance(self, accuracy: float) -> float:
        """An absolute gap, divided by the last value of the problem in w."""
        value = self._solution.value  # 0 if the targets lower all margins: no pair violates its margin
        return min(max(accuracy / value, SMALLEST_TOLERANCE), START_TOL) if value > 0.0 else START_TOL

    def _alpha(self, query: int) -> np.ndarray:
        return self.loss.alpha(self._solution.point.at.scores, query)

    def _multipliers(self, alpha: np.ndarray) -> np.ndarray:
        """Gradient of g (the last two terms of the objective, minimized over A); its spectral norm is at most gamma."""
        rest: np.ndarray = alpha - soft_threshold(alpha, self.gamma / (2.0 * self.lam)).dense()
        return 2.0 * self.lam * rest

    def _balanced_length(self) -> float:
        """The length of the next step, from the changes by the last one."""
        self._steps += 1
        if self._steps < self._next_change:
            return self._length
        self._next_change *= 2
        moved, distance = np.sqrt(self._moves)
        if moved <= BAND * distance <= BAND**2 * moved:
            return self._length
        factor = moved / distance if distance > 0.0 else np.inf
        return self._length * float(np.clip(factor, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE))

    def _advance(self, query: int, last_length: float) -> tuple[LowRank, _Values, tuple[float, float]]:
        """Advance the splitting of one query; returns its next matrix, its values, and two squared lengths.

        The values are at the new dual variables. The lengths are how far the proximal point has moved, and how far it
        is from the dual variables. The variables of the splitting and their reflection are overwritten by the
        next ones, to which the matrix belongs.
        """
        alpha = self._alpha(query)
        variables, reflection = (self.blocks.block(entries, query) for entries in (self._variables, self.loss.target))
        multipliers = (variables - reflection) / (2.0 * last_length)
        excess = self._excess(variables, last_length + 0.5 / self.lam, last_length)
        values = self._values(query, alpha, self._matrices[query], multipliers, excess)
        before = variables + reflection
        np.multiply(multipliers, self._length, out=variables)
        variables += alpha
        del multipliers  # room for the decomposition
        matrix = self._reflect(query)
        point = variables + reflection
        before -= point
        np.multiply(point, 0.5, out=point)
        alpha -= point
        return matrix, values, (0.25 * np.vdot(before, before), np.vdot(alpha, alpha))

    def _reflect(self, query: int) -> LowRank:
        """Write the reflection of the variables at the proximal operator of g; return the matrix A at its point.

        The proximal point of z is ``z - length Y``, and the reflection ``z - 2 length Y``, with ``Y = (z - A) / (length
        + 1 / (2 lam))`` where A is the matrix z with its singular values reduced by gamma times this denominator.
        """
        variables, reflection = (self.blocks.block(entries, query) for entries in (self._variables, self.loss.target))
        divisor = self._length + 0.5 / self.lam
        matrix = soft_threshold(variables, self.gamma * divisor)
        np.subtract(variables, matrix.dense(), out=reflection)
        reflection *= -2.0 * self._length / divisor
        reflection += variables
        return matrix

    def _excess(self, variables: np.ndarray, divisor: float, length: float = np.inf) -> float:
        """Bound on the relative excess, by round-off, of the multipliers' spectral norm over gamma; at most 1.

        The multipliers are what thresholding removes from the singular values of a matrix, divided by a divisor. The
        eigenvalues of the matrix's Gram matrix have the round-off of the largest one, and the difference of variables
        and reflection has the round-off of both. With an excess of 1, the lower bound also holds without multipliers.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            size = np.linalg.norm(variables) / (self.gamma * divisor)
            part = (
                growth(OPERATIONS + max(variables.shape)) * (1.0 + size * size) + 4.0 * UNIT * size * divisor / length
            )
        return float(part) if part < 1.0 else 1.0

    def _values(
        self, query: int, alpha: np.ndarray, matrix: LowRank, multipliers: np.ndarray, excess: float
    ) -> _Values:
        preferred, other = self.blocks.documents(query)
        scores = self._solution.point.at.scores
        hinge = 1.0 - (scores[preferred][:, np.newaxis] - scores[other])
        hinge -= multipliers
        np.maximum(hinge, 0.0, out=hinge)
        rest = alpha - matrix.dense()
        return _Values(
            alpha=alpha.sum(),
            distance=np.vdot(rest, rest),
            nuclear=matrix.nuclear_norm,
            multipliers=np.vdot(multipliers, multipliers),
            hinge=hinge.sum(where=self.blocks.is_pair(query)),
            excess=excess * np.abs(multipliers).sum(),
        )

    def _sum_up(self, query: int, entries: np.ndarray) -> None:
        """Write the signed sums over the pairs of each document of a query."""
        preferred, other = self.blocks.documents(query)
        self._coefficients[preferred] = 0.0
        self._coefficients[other] = 0.0
        self._coefficients[preferred] += entries.sum(axis=1)
        self._coefficients[other] -= entries.sum(axis=0)

    def _weights(self) -> np.ndarray:
        """The model's weights that belong to the dual variables which `_sum_up` has added up."""
        w = np.zeros(self.n_features)
        self._products.accumulate(0, self.pairs.n_rows, self._coefficients, w)
        return w

    def _value_and_bound(self, values: list[_Values], w: np.ndarray | None = None) -> tuple[float, float, float]:
        """Value, its error and a lower bound; w: weights of the dual variables; None: computed from the solution."""
        sums, point = _Values(*np.sum(values, axis=0).tolist()), self._solution.point
        # the weights of the dual variables: the weights of the solution minus its gradient
        w = point.w - point.gradient if w is None else w
        value = 0.5 * float(w @ w) - sums.alpha + self.lam * sums.distance + self.gamma * sums.nuclear
        bound = -0.5 * float(point.w @ point.w) - sums.multipliers / (4.0 * self.lam) - self.C * sums.hinge
        of_value, of_bound = self._round_off(sums, w)
        return value, of_value, min(bound, value) - of_bound

    def _round_off(self, sums: _Values, w: np.ndarray) -> tuple[float, float]:
        """Bounds on the errors of value and of bound, due to scores, weights, and all sums."""
        if self._sizes is None:
            self._sizes = self.linear.term.sizes()
        sizes, point = self._sizes, self._solution.point
        weights, slope = float(np.linalg.norm(point.w)), float(np.linalg.norm(point.w - w))
        margin_error = margin_error_bound(sizes.score(point.sizes()), sizes.entries, STEP_ERRORS * point.n_steps)
        terms = growth(OPERATIONS + self.blocks.n_entries + sizes.additions + sizes.entries)
        length = growth(len(point.w) + OPERATIONS)
        off_w = 4.0 * terms * sizes.longest * sums.alpha + 3.0 * UNIT * (weights + slope)
        of_value = (weights + slope + off_w) * off_w + length * (weights + slope) ** 2
        of_value += terms * (sums.alpha + self.lam * sums.distance + 4.0 * self.gamma * sums.nuclear)
        of_value += terms * self.lam * math.sqrt(sums.distance) * sums.nuclear
        of_bound = terms * (sums.multipliers / self.lam + self.C * sums.hinge) + length * weights**2
        return of_value, of_bound + self.C * (self.pairs.n_pairs * margin_error + sums.excess)

    def _by_query(self, work: Callable[[int], Result]) -> list[Result]:
        """The results of ``work`` for each query, in parallel, the most costly queries first."""
        results: list[Any] = [None] * self.blocks.n_queries

        def part(queries: np.ndarray) -> None:
            for query in queries.tolist():
                results[query] = work(query)

        parallel_map(part, self._tasks, self.n_threads)
        return results

    def _plan(self) -> list[np.ndarray]:
        """Queries in tasks of about equal cost, the largest first; a large query forms its own task."""
        shapes = np.column_stack((np.diff(self.blocks.rows), np.diff(self.blocks.columns)))
        cost = 1.0 + shapes.prod(axis=1) * shapes.min(axis=1)
        order = np.argsort(-cost, kind="stable")
        share = cost.sum() / (8 * self.n_threads)
        cuts = np.flatnonzero(np.diff(np.cumsum(cost[order]) // share)) + 1
        return np.split(order, cuts)


def required_bytes(blocks: PairBlocks, n_threads: int) -> int:
    """Memory that a fit with `NuclearNormObjective` needs beyond the data, at most.

    It grows with the entries of the blocks. No rank is higher than the smaller side of its block.

    Parameters
    ----------
    blocks : PairBlocks
        The blocks.
    n_threads : int
        Number of threads.

    Returns
    -------
    int
        Bytes.
    """
    sizes = np.sort(np.diff(blocks.offsets))[::-1]
    rows, columns = np.diff(blocks.rows), np.diff(blocks.columns)
    factors = int(((rows + columns) * np.minimum(rows, columns)).sum())
    numbers = ENTRY_COPIES * blocks.n_entries + FACTOR_COPIES * factors + BLOCK_COPIES * int(sizes[:n_threads].sum())
    return 8 * numbers + QUERY_BYTES * blocks.n_queries + DOCUMENT_BYTES * blocks.n_documents
