"""The objective of a linear model: 1/2 |w|^2 + C * loss(X w), in blocks of whole queries."""

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

import ranksvm._compiled.linear as linear
from ranksvm._parallel import parallel_map
from ranksvm.data import DesignMatrix
from ranksvm.data.queries import query_ranges
from ranksvm.losses.protocol import LossSums, PairwiseLoss
from ranksvm.objectives.sharpening import Sharpened

__all__ = ["LinearObjective", "LinearPoint", "worth_threads"]

# A block's rows are read twice, for scores and for the gradient: they should still be in cache the second time.
BLOCK_BYTES = 2 << 20
# A block of an explicit Hessian: rows gathered in float64, and as many of the Laplacian times them.
HESSIAN_BLOCK_ROWS = 1024
HESSIAN_BLOCK_BYTES = 8 << 20
# Below this many multiplications a second thread costs more than it saves.
PARALLEL_WORK = 1 << 19
# Beyond this many variables an explicit Hessian is not worth its n^2 memory and n^3 factorisation.
HESSIAN_VARIABLES = 2000
# From so many variables on, adding up the gradients of many shares costs more than even shares save.
LONG_GRADIENT = 50_000
# A Hessian of all rows that costs no more multiplications than this is always worth it.
EXACT_HESSIAN_WORK = 1e8
# Where rows are sparse it is dense all the same: not worth it where it costs more passes over X than this.
SPARSE_HESSIAN_PASSES = 100
# Otherwise that of a sample: at least so many rows per variable, below which it is too noisy to be of use, at most so
# many, beyond which it hardly improves, and in between as many as cost so many passes over X. A matrix product does
# PRODUCT_SPEED multiplications in the time a pass takes for one (measured: with 136 float32 features and 2 threads, a
# Hessian of all rows costs 13.6 passes).
SAMPLE_ROWS_PER_VARIABLE = (40, 500)
SAMPLE_PASSES = 0.6
PRODUCT_SPEED = 10.0
# Where a sample proves too small, one larger by this factor takes its place.
REFINEMENT = 5.0
# the weights of a point that is no longer one
NOTHING = np.empty(0)


class Scored(Protocol):
    """Whatever has scores, and the pairs at which the loss is curved there: all that a Hessian depends on."""

    scores: np.ndarray
    state: Any


class LinearPoint:
    """Where the objective was evaluated, with what its products need.

    Parameters
    ----------
    w : ndarray of float64, shape (n_features,)
        The weights.
    scores : ndarray of float64, shape (n_rows,)
        ``X w`` by position.
    state : object
        The pairs at which the loss is curved.
    """

    def __init__(self, w: np.ndarray, scores: np.ndarray, state: Any):
        self.w = w
        self.scores = scores
        self.state = state
        self.value = np.inf
        self.loss = LossSums(np.inf)
        self.gradient = w


class LinearObjective(Sharpened):
    """``f(w) = 1/2 |w|^2 + C * loss(X w)``, with value and gradient in one pass over X.

    Hessian ``I + C X' H X``, H that of the loss with respect to the scores. The pairs' derivatives at w are a feasible
    point of the dual, ``alpha = -C * loss'``, and the duality gap there is exactly ``1/2 |grad f(w)|^2``. Where the
    loss smooths another one, alpha is feasible for the problem with that one, too, and its gap has C times the loss's
    slack more.

    Parameters
    ----------
    design : DesignMatrix
        The features.
    loss : PairwiseLoss
        The loss over the pairs of the same rows.
    C : float
        Weight of a pair.
    n_threads : int
        Number of threads.
    hessian_fraction : float, optional
        Part of the rows that explicit Hessians take, 0 for none; the part that is worth its cost, unless given.
    """

    def __init__(
        self,
        design: DesignMatrix,
        loss: PairwiseLoss,
        C: float,
        n_threads: int = 1,
        hessian_fraction: float | None = None,
    ):
        self.design = design
        self.loss = loss
        self.C = C
        self.pairs = loss.pairs
        self.n_variables = design.n_features
        self.curvature_rank = min(self.pairs.n_pairs, self.pairs.n_rows)
        self.n_threads = n_threads if worth_threads(design, self.pairs.n_rows) else 1
        self.hessian_fraction = self._worthwhile_fraction() if hessian_fraction is None else hessian_fraction
        self._curvature: np.ndarray | None = None  # of the loss, when it was last asked for
        self._probe: LinearPoint | None = None  # for the scores along a line
        self._spare: list[LinearPoint] = []
        self._sampled: tuple[LinearObjective, np.ndarray] | None = None
        self._tasks, self._large = self._plan()

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, near: LinearPoint | None = None) -> LinearPoint:
        """Value and gradient at w, X read once; documents are sorted beginning from their order at ``near``."""
        point = self._new_point(w, near)

        def loss(first: int, last: int, start: int, stop: int, scores: np.ndarray, gradient: np.ndarray) -> LossSums:
            point.scores[start:stop] = scores
            return self.loss.evaluate(point.scores, point.state, first, last, gradient)

        return self._finish(point, *self._pass(w, loss))

    def between(self, point: LinearPoint, trial: LinearPoint, alpha: float) -> LinearPoint:
        """The point at ``alpha`` on the segment; X is read for the gradient only."""
        new = self._new_point(point.w + alpha * (trial.w - point.w), point)

        def loss(first: int, last: int, start: int, stop: int, _: np.ndarray, gradient: np.ndarray) -> LossSums:
            new.scores[start:stop] = _interpolate(point, trial, alpha, start, stop)
            return self.loss.evaluate(new.scores, new.state, first, last, gradient)

        return self._finish(new, *self._pass(None, loss))

    def line(self, point: LinearPoint, trial: LinearPoint) -> Callable[[float], tuple[float, float]]:
        """Value and slope along the segment, from the scores alone: X is not read."""
        step = trial.w - point.w
        if self._probe is None:
            self._probe = self._new_point(point.w, point)
        probe = self._probe

        def along(alpha: float) -> tuple[float, float]:
            def part(blocks: list[tuple[int, int, int, int]]) -> tuple[float, float]:
                value = slope = 0.0
                for first, last, start, stop in blocks:
                    probe.scores[start:stop] = _interpolate(point, trial, alpha, start, stop)
                    gradient = np.empty(stop - start)
                    value += self.loss.evaluate(probe.scores, probe.state, first, last, gradient).value
                    slope += gradient @ (trial.scores[start:stop] - point.scores[start:stop])
                return value, slope

            sums = parallel_map(part, [*self._tasks, *([block] for block in self._large)], self.n_threads)
            w = point.w + alpha * step
            value = 0.5 * (w @ w) + self.C * sum(value for value, _ in sums)
            return value, w @ step + self.C * sum(slope for _, slope in sums)

        return along

    def reweight(self, C: float, point: LinearPoint | None = None) -> None:
        """Go on with another C; the value and gradient of a point are reckoned anew without a pass over X."""
        factor = C / self.C
        if self._sampled is not None:
            sampled = self._sampled[0]
            sampled.reweight(sampled.C * factor)
        self.C = C
        self._sharpened = None
        if point is not None:
            point.value = self._value(point)
            point.gradient = point.w + factor * (point.gradient - point.w)

    def inner(self, u: np.ndarray, v: np.ndarray) -> float:
        """``u'v``."""
        return float(u @ v)

    def gap(self, point: LinearPoint) -> float:
        """Duality gap ``1/2 |grad f(w)|^2`` of the problem with the loss as it is evaluated."""
        return 0.5 * float(point.gradient @ point.gradient)

    def release(self, point: LinearPoint) -> None:
        """Say that a point is no longer needed: its arrays over rows serve the next one."""
        point.w = point.gradient = NOTHING
        self._spare.append(point)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def hessian_product(self, point: LinearPoint, v: np.ndarray) -> np.ndarray:
        """``v + C X' H X v``, X read once."""

        def product(first: int, last: int, start: int, stop: int, Xv: np.ndarray, out: np.ndarray) -> LossSums:
            self.loss.curvature_product(point.state, first, last, Xv, out)
            return LossSums(0.0)

        _, total = self._pass(v, product)
        total *= self.C
        total += v
        return total

    def hessian(self, point: Scored) -> np.ndarray:
        """The Hessian at some scores of the rows, or its estimate from ``hessian_fraction`` of the rows."""
        if self.hessian_fraction < 1.0:
            sampled, positions = self._sample()
            part = sampled._new_point(NOTHING)
            part.scores[:] = point.scores[positions]
            gradient = np.empty(sampled.pairs.n_rows)
            sampled.loss.evaluate(part.scores, part.state, 0, sampled.pairs.n_queries, gradient)
            self._curvature = sampled._loss_hessian(part)
            self._curvature *= sampled.C / self.C
            sampled.release(part)
        else:
            self._curvature = self._loss_hessian(point)
        return self._weigh_hessian(self._curvature)

    def earlier_hessian(self) -> np.ndarray | None:
        """The Hessian for this C with the violating pairs of the point where `hessian` was last called, if it was."""
        return None if self._curvature is None else self._weigh_hessian(self._curvature)

    def refine(self) -> bool:
        """Put more of the rows into explicit Hessians from now on; False where all of them are in already."""
        if self.hessian_fraction >= 1.0:
            return False
        self.hessian_fraction = _part(REFINEMENT * self.hessian_fraction)
        self._sampled = None
        return True

    def _weigh_hessian(self, curvature: np.ndarray) -> np.ndarray:
        hessian = self.C * curvature
        hessian[np.diag_indices_from(hessian)] += 1.0
        return hessian

    def hessian_diagonal(self, point: LinearPoint) -> np.ndarray:
        """Diagonal of the Hessian; of sparse data, that of ``I + C X' D X`` with D the diagonal of the loss's Hessian.

        The two differ by pairs whose documents share a feature, rare in sparse data.
        """
        part = self._dense_diagonal if self.design.dense else self._sparse_diagonal
        blocks = list(_blocks(self.pairs.pointers, self._hessian_rows()))
        shares = _shares(blocks, self.n_threads, 4)
        parts = parallel_map(lambda blocks: part(point, blocks), shares, self.n_threads)
        return 1.0 + self.C * _add_up(parts)

    def sample(self) -> "LinearObjective | None":
        """The problem on the rows of the sampled Hessian, C raised so that all pairs together weigh as much as here."""
        return self._sample()[0] if 0.0 < self.hessian_fraction < 1.0 else None

    def from_sample(self, w: np.ndarray) -> np.ndarray:
        """The same weights."""
        return w

    # -- inner workings ----------------------------------------------------------------------------------------------

    def _pass(self, w: np.ndarray | None, middle: Callable[..., LossSums]) -> tuple[LossSums, np.ndarray]:
        """One pass over X, block by block: ``v = X w``, ``middle(first, last, start, stop, v, u)`` writes u, ``X' u``.

        Returns the sums of what `middle` returns and of ``X' u``.
        """
        rows = self.pairs.rows

        def part(blocks: list[tuple[int, int, int, int]]) -> tuple[LossSums, np.ndarray]:
            total, sums = np.zeros(self.n_variables), LossSums(0.0)
            size = max(stop - start for _, _, start, stop in blocks)
            v_memory, u_memory = np.empty(size), np.empty(size)
            for first, last, start, stop in blocks:
                v, u = v_memory[: stop - start], u_memory[: stop - start]
                if w is not None:
                    self.design.scores(rows, start, stop, w, v)
                sums = sums.plus(middle(first, last, start, stop, v, u))
                self.design.accumulate(rows, start, stop, u, total)
            return sums, total

        parts = parallel_map(part, self._tasks, self.n_threads)
        parts += [self._large_query(w, middle, block) for block in self._large]
        return reduce(LossSums.plus, [sums for sums, _ in parts]), _add_up([total for _, total in parts])

    def _large_query(
        self, w: np.ndarray | None, middle: Callable[..., LossSums], block: tuple
    ) -> tuple[LossSums, np.ndarray]:
        """The same for one query that outweighs a thread's share: the products in parallel, row by row."""
        first, last, start, stop = block
        rows = self.pairs.rows
        cuts = np.linspace(start, stop, 4 * self.n_threads + 1).astype(int)
        chunks = list(pairwise(cuts.tolist()))
        v, u = np.empty(stop - start), np.empty(stop - start)

        def scores(chunk: tuple[int, int]) -> None:
            assert w is not None
            self.design.scores(rows, *chunk, w, v[chunk[0] - start : chunk[1] - start])

        def accumulate(chunk: tuple[int, int]) -> np.ndarray:
            total = np.zeros(self.n_variables)
            self.design.accumulate(rows, *chunk, u[chunk[0] - start : chunk[1] - start], total)
            return total

        if w is not None:
            parallel_map(scores, chunks, self.n_threads)
        sums = middle(first, last, start, stop, v, u)
        return sums, _add_up(parallel_map(accumulate, chunks, self.n_threads))

    def _loss_hessian(self, point: Scored) -> np.ndarray:
        def part(blocks: list[tuple[int, int, int, int]]) -> np.ndarray:
            total = np.zeros((self.n_variables, self.n_variables))
            for X, Z in self._curvature_rows(point, blocks):
                total += X.T @ Z
            return total

        blocks = list(_blocks(self.pairs.pointers, self._hessian_rows()))
        total = _add_up(parallel_map(part, _shares(blocks, self.n_threads, 1), self.n_threads))
        return 0.5 * (total + total.T)

    def _dense_diagonal(self, point: LinearPoint, blocks: list[tuple[int, int, int, int]]) -> np.ndarray:
        total = np.zeros(self.n_variables)
        for X, Z in self._curvature_rows(point, blocks):
            total += np.einsum("ij,ij->j", X, Z)
        return total

    def _sparse_diagonal(self, point: LinearPoint, blocks: list[tuple[int, int, int, int]]) -> np.ndarray:
        total = np.zeros(self.n_variables)
        for _, _, start, stop in blocks:
            degrees = self.loss.curvature_diagonal(point.state, start, stop)
            self.design.accumulate_squares(self.pairs.rows, start, stop, degrees, total)
        return total

    def _curvature_rows(
        self, point: Scored, blocks: list[tuple[int, int, int, int]]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows X, centred by query, and Z with ``X'Z + Z'X = 2 X' H X``, block by block in the same memory."""
        size = max(stop - start for _, _, start, stop in blocks)
        X_memory, Z_memory = np.empty((size, self.n_variables)), np.empty((size, self.n_variables))
        for first, last, start, stop in blocks:
            X, Z = X_memory[: stop - start], Z_memory[: stop - start]
            self.design.gather(self.pairs.rows, start, stop, X)
            linear.centre_queries(self.pairs.pointers, first, last, X)
            self.loss.curvature_rows(point.state, first, last, X, Z)
            yield X, Z

    def _hessian_rows(self) -> int:
        return max(1, min(HESSIAN_BLOCK_ROWS, HESSIAN_BLOCK_BYTES // (8 * max(1, self.n_variables))))

    def _new_point(self, w: np.ndarray, near: LinearPoint | None = None) -> LinearPoint:
        if self._spare:
            point = self._spare.pop()
            point.w = w
            return point
        return LinearPoint(w, np.empty(self.pairs.n_rows), self.loss.new_state(near.state if near else None))

    def _finish(self, point: LinearPoint, loss: LossSums, loss_gradient: np.ndarray) -> LinearPoint:
        point.loss = loss
        point.value = self._value(point)
        point.gradient = loss_gradient
        point.gradient *= self.C
        point.gradient += point.w
        return point

    def _value(self, point: LinearPoint) -> float:
        return float(0.5 * (point.w @ point.w) + self.C * point.loss.value)

    def _worthwhile_fraction(self) -> float:
        n, n_rows = self.n_variables, self.pairs.n_rows
        if n > HESSIAN_VARIABLES:
            return 0.0
        if n_rows * n * n <= EXACT_HESSIAN_WORK:
            return 1.0
        cost_in_passes = n * n / (PRODUCT_SPEED * self.design.row_bytes / 4)
        fewest, most = (rows * n / n_rows for rows in SAMPLE_ROWS_PER_VARIABLE)
        fraction = min(max(SAMPLE_PASSES / cost_in_passes, fewest), most)
        fraction = _part(fraction)
        costly = not self.design.dense and fraction * cost_in_passes > SPARSE_HESSIAN_PASSES
        return 0.0 if costly else fraction

    def _sample(self) -> "tuple[LinearObjective, np.ndarray]":
        if self._sampled is None:
            pairs, positions = self.pairs.sample(int(self.hessian_fraction * self.pairs.n_rows) + 1)
            scale = self.pairs.weight / pairs.weight
            objective = LinearObjective(self.design, self.loss.over(pairs), self.C * scale, self.n_threads)
            self._sampled = objective, positions
        return self._sampled

    def _plan(self) -> tuple[list[list[tuple[int, int, int, int]]], list[tuple[int, int, int, int]]]:
        """Blocks of whole queries shared out into tasks, and the queries too large for one thread."""
        pointers = self.pairs.pointers
        block_rows = max(1, int(BLOCK_BYTES / self.design.row_bytes))
        if self.n_threads > 1:  # small enough for even shares, too
            block_rows = min(block_rows, max(1, self.pairs.n_rows // (4 * self.n_threads)))
        large_rows = max(block_rows, self.pairs.n_rows // (2 * self.n_threads)) if self.n_threads > 1 else np.inf
        blocks: list[tuple[int, int, int, int]] = []
        large: list[tuple[int, int, int, int]] = []
        for block in _blocks(pointers, block_rows):
            (large if block[3] - block[2] > large_rows else blocks).append(block)
        # every share has a gradient of its own: not many of them where that is long
        return _shares(blocks, self.n_threads, 4 if self.n_variables < LONG_GRADIENT else 1), large


def worth_threads(design: DesignMatrix, n_rows: int) -> bool:
    """Whether passes over so many rows are long enough for more than one thread.

    Parameters
    ----------
    design : DesignMatrix
        The features.
    n_rows : int
        Number of rows that are read.

    Returns
    -------
    bool
        Whether they are.
    """
    return n_rows * design.row_bytes / 4 > PARALLEL_WORK


def _part(fraction: float) -> float:
    """The part of the rows to put into a Hessian; of nearly half of them and more, all."""
    return 1.0 if fraction > 0.4 else fraction


def _add_up(parts: list[np.ndarray]) -> np.ndarray:
    """The sum of what threads have found, in the memory of the first."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def _interpolate(point: LinearPoint, trial: LinearPoint, alpha: float, start: int, stop: int) -> np.ndarray:
    there, here = trial.scores[start:stop], point.scores[start:stop]
    return here + alpha * (there - here)


def _blocks(pointers: np.ndarray, rows: int) -> Iterator[tuple[int, int, int, int]]:
    """Whole queries in blocks of up to so many rows (a larger query is a block): first, last query, start, stop."""
    for first, last in query_ranges(pointers, rows):
        yield first, last, int(pointers[first]), int(pointers[last])


def _shares(blocks: list, n_threads: int, per_thread: int) -> list[list]:
    """Consecutive blocks in shares of about equal numbers of rows, ``per_thread`` for each thread."""
    n_shares = min(len(blocks), n_threads * per_thread if n_threads > 1 else 1)
    if n_shares <= 1:
        return [blocks] if blocks else []
    ends = np.cumsum([stop - start for _, _, start, stop in blocks])
    share = np.minimum((ends - 1) * n_shares // ends[-1], n_shares - 1)
    cuts = np.searchsorted(share, np.arange(n_shares + 1))
    return [blocks[a:b] for a, b in pairwise(cuts) if b > a]
