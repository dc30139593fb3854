"""The data term (the loss as a function of the weights) of rows in memory; threads share the queries."""

from collections.abc import Iterator
from functools import partial, reduce
from heapq import heapreplace
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

import ranksvm._compiled.hessian as hessian
import ranksvm._compiled.linear as linear
import ranksvm._compiled.passes as passes
from ranksvm._util.lazy import cached_property
from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm.data import ComparablePairs, DenseDesign, DesignMatrix
from ranksvm.data.design_matrix import RowProducts
from ranksvm.data.pairs import SAMPLE_QUERIES
from ranksvm.data.queries import query_ranges
from ranksvm.losses import SquaredHinge
from ranksvm.losses.margin_loss import MarginLoss
from ranksvm.losses.protocol import LossSums, PairwiseLoss, QueryOperator
from ranksvm.losses.round_off import LossRoundOff, Sizes

__all__ = ["ThreadedPoint", "ThreadedTerm", "worth_threads"]

# Number of bytes of a block of rows, which a thread processes in one call.
BLOCK_BYTES = 2 << 20
# Number of bytes of rows (or a whole query) that are read for the scores, and then again for the gradient: the second
# time, they should still be in a cache near the core. (700,080 x 136: 256 and 512 KiB take 0.9 of the time of 2 MiB,
# 0.98 of 32 KiB.)
CACHE_BYTES = 256 << 10
# An explicit Hessian takes this many bytes of rows (or a whole query) at a time, and as many for the Laplacian times
# them or for squares: they should stay in a cache near the core.
HESSIAN_BYTES = 32 << 10
# Number of rows processed at a time if Python or NumPy computes a Hessian, its factors or its diagonal.
PYTHON_HESSIAN_ROWS = 1024
# A Hessian is computed in shares of the queries, each with a matrix of its own, and then added up. A thread has several
# shares if a matrix has at most this many numbers, otherwise one.
SMALL_HESSIAN = 1 << 12
# Number of rows that estimate the diagonal of a Hessian well enough to precondition. (With 2,000 TRON took 0.7 to 1.3
# times as many products on MQ2008, OHSUMED and LightGBM's example, 3,005 x 300, where a tenth of the time went here.)
# These rows are from at least DIAGONAL_QUERIES queries. (Rows of 64 queries are slow to draw, and TRON took 0.8 to 1.5
# times as many products.)
DIAGONAL_ROWS, DIAGONAL_QUERIES = 1000, 16
# Below this many multiplications in a pass, a second thread saves little time there, and costs as much in the rest of a
# fit (fits of 1,500, 3,000, 6,000 rows of 46 take 2.09, 2.46, 3.78 ms on one thread and 2.17, 2.37, 3.25 ms on two).
PARALLEL_WORK = 1 << 18
# The same for threads that run Python, which start late or have other work. (A product of 3,005 x 300 took 0.32
# ms on one thread and 0.58 ms on two of these, a fit of 35,969 x 46 three quarters of the time on two.)
PARALLEL_PYTHON = 1 << 20
# Minimum number of multiplications that a thread does at a time for a query that all threads share: Python needs some
# microseconds to hand it out.
CHUNK_WORK = 1 << 17
# Computing with the pairs of one row takes as long as reading this many bytes of a row (CPU_ROW and CPU_BYTE of
# fits/work.py).
PAIR_BYTES = 170.0
# From this number of variables on, adding up the gradients of many shares takes more time than their even sizes save.
LONG_GRADIENT = 50_000
# Minimum number of whole queries that each of many parts contributes to a sample. (A reading of 800 MB in 113
# parts took 0.76 s of CPU time, with rows of 64 queries of each part 0.92: one profiled run each.)
PART_QUERIES = 4
# Maximum number of pairs that are visited one by one only because the sums of a sweep over sorted scores are too
# inaccurate. (Of 9.7 million pairs an evaluation takes 8 ms instead of 1.2 with the squared hinge, 12 instead of 3 with
# the hinge.)
MAX_VISITS = 1e7
# Seed for the rows that estimate a diagonal: fits are reproducible.
SEED = 0
# Multiples of this and of its square, modulo 1, are spread evenly over a square (the reciprocal of the plastic number).
PLASTIC = 0.7548776662466927
# the gradient of a released point
NOTHING = np.empty(0)

# A block of whole queries: first and last query, and first and last position (place among the rows sorted by query).
Block = tuple[int, int, int, int]


class Scored(Protocol):
    """An object with scores and the pairs at which the loss is curved: all that a Hessian depends on."""

    scores: np.ndarray
    state: object
    width: float | None


class ThreadedPoint:
    """The result of an evaluation: see `Term`.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
        ``X w``, for the rows sorted by query: the place of a row in this order is its position.
    state : object
        The pairs at which the loss is curved.
    width : float or None
        Width of the loss.
    """

    def __init__(self, scores: np.ndarray, state: object, width: float | None):
        self.scores = scores
        self.state = state
        self.width = width
        self.sums = LossSums(np.inf)
        self.gradient = NOTHING


class _Sample(NamedTuple):
    """A term over a sample of the rows, the positions of these rows, and the arguments with which it was drawn."""

    term: "ThreadedTerm"
    positions: np.ndarray
    key: tuple[int, int]

    def at(self, at: "Scored") -> "ThreadedPoint":
        """The point of this sample at which its rows have the same scores as at ``at``."""
        return self.term.point_at(at.scores[self.positions], at.width)


class ThreadedTerm:
    """``loss(X w)`` with value and gradient in one pass over X: see `DataTerm` for the methods.

    Parameters
    ----------
    design : DesignMatrix
        The features.
    loss : PairwiseLoss
        The loss over pairs of its rows.
    n_threads : int
        Number of threads.
    repeatable : bool
        Whether every result has the same bits whatever was evaluated before. Otherwise sorting of documents starts from
        an earlier order, which is faster, but also decides in which order documents of equal scores are added. A
        repeatable term is one of many parts of the data, so that a sample of it needs fewer queries.
    shared_by : int, optional
        The rows are divided for this number of threads, by default ``n_threads``. The bits of the results depend on it,
        not on ``n_threads``.
    """

    # evaluating several positions on a line in one call saves nothing
    positions_at_once = 1
    max_fraction = 1.0
    curvature_with_value = False
    sample_rows = 0

    def __init__(
        self,
        design: DesignMatrix,
        loss: PairwiseLoss,
        n_threads: int = 1,
        repeatable: bool = False,
        shared_by: int | None = None,
    ):
        self.design = design
        self.loss = loss
        self.pairs = loss.pairs
        self.n_variables = design.n_features
        self.n_rows = self.pairs.n_rows
        self.curvature_rank = min(self.pairs.n_pairs, self.pairs.n_rows)
        self.row_bytes = design.row_bytes
        self.dense = design.dense
        self._products = design.products(self.pairs.rows)
        # float32 takes 0.85 to 0.9 of the time if rows come from memory; for short rows from a cache, the same time
        far = self.n_rows * design.row_bytes > linear.NEAR_BYTES
        single = far and design.dense and design.dtype == np.float32
        self._single_products = design.products(self.pairs.rows, double=False) if single else None
        self._cache_rows = max(1, int(CACHE_BYTES / design.row_bytes))
        self.weight = self.pairs.weight
        alike = isinstance(self.pairs, ComparablePairs) and self.pairs.preferred is None and not self.pairs.adjacent
        # fewer pairs than rows: queries have about two documents, and their Hessians are always computed from squares
        self.squares_at_zero = alike and isinstance(loss, SquaredHinge) and self.pairs.n_pairs >= self.n_rows
        self.n_threads = n_threads if worth_threads(design, self.n_rows, PARALLEL_WORK) else 1
        self._python_threads = n_threads if worth_threads(design, self.n_rows) else 1
        shared_by = n_threads if shared_by is None else shared_by
        self._shared_by = shared_by if worth_threads(design, self.n_rows, PARALLEL_WORK) else 1
        self._python_shared_by = shared_by if worth_threads(design, self.n_rows) else 1
        self.repeatable = repeatable
        self._probe: ThreadedPoint | None = None  # for the scores along a line
        self._spare: list[ThreadedPoint] = []
        self._sample: _Sample | None = None
        self._diagonal_sample: _Sample | None = None
        self._sizes: Sizes | None = None
        # every share has a gradient of its own, so there are few shares if gradients are long
        self._per_thread = 4 if self.n_variables < LONG_GRADIENT else 1
        self._large = self._large_queries()
        self._shares = self._query_shares(self._per_thread)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # a pickled term has neither scratch memory nor plans, nor the rows that no pair needs
        design, loss = self.design, self.loss
        if self.pairs.rows is not None:
            design, loss = design.taken(self.pairs.rows), loss.with_pairs(self.pairs.renumbered())
        return ThreadedTerm, (design, loss, self.n_threads, self.repeatable, self._shared_by)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, width: float | None, near: ThreadedPoint | None = None) -> ThreadedPoint:
        """Value and gradient, X read once; sorting of documents starts from their order at ``near``."""
        point = self._new_point(width, near)
        loss = self.loss.evaluation(point.state, width)
        if w.any():
            point.sums, point.gradient = self._pass(w, loss, point.scores)
        else:  # w is 0, where fits begin
            point.scores[:] = 0.0
            point.sums, point.gradient = self._pass(None, loss, point.scores)
        return point

    def between(self, a: ThreadedPoint, b: ThreadedPoint, alpha: float, width: float | None) -> ThreadedPoint:
        """Value and gradient on a segment; X is read for the gradient only."""
        point = self._new_point(width, a)
        point.scores[:] = _interpolate(a, b, alpha, 0, self.n_rows)
        point.sums, point.gradient = self._pass(None, self.loss.evaluation(point.state, width), point.scores)
        return point

    def along(
        self, a: ThreadedPoint, b: ThreadedPoint, alphas: np.ndarray, width: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes, from the scores alone: X is not read."""
        probe = self._new_point(width, a) if self._probe is None else self._probe
        self._probe = None if self.repeatable else probe
        loss = self.loss.evaluation(probe.state, width)

        def part(blocks: list[Block]) -> np.ndarray:
            found = np.zeros((2, len(alphas)))
            for first, last, start, stop in blocks:
                gradient, step = np.empty(stop - start), b.scores[start:stop] - a.scores[start:stop]
                for place, alpha in enumerate(alphas):
                    probe.scores[start:stop] = _interpolate(a, b, alpha, start, stop)
                    found[0, place] += loss(first, last, probe.scores[start:stop], gradient)[0]
                    found[1, place] += gradient @ step
            return found

        found = parallel_map(part, self._tasks, self._python_threads)
        found += [part([block]) for block in self._large]  # all threads share each large query
        values, slopes = sum(found, start=np.zeros((2, len(alphas))))
        return values, slopes

    def point_at(self, scores: np.ndarray, width: float | None) -> ThreadedPoint:
        """A point for Hessians at given scores, by position, without value and gradient."""
        point = self._new_point(width)
        point.scores[:] = scores
        self.loss.evaluation(point.state, width)(0, self.pairs.n_queries, point.scores, np.empty(self.n_rows))
        return point

    def scores(self, w: np.ndarray) -> np.ndarray:
        """``X w`` by position, shape (n_rows,)."""
        if self.design.file is not None:
            self.design.file.check_whole()
        out = np.empty(self.n_rows)
        if self.design.vector_basis is not None:
            w = self.design.vector_basis.expanded(w)

        def part(blocks: list[Block]) -> None:
            for _, _, start, stop in blocks:
                self._products.scores(start, stop, w, out[start:stop])

        parallel_map(part, self._all_tasks(), self._python_threads)
        return out

    def transposed_product(self, u: np.ndarray) -> np.ndarray:
        """``X'u`` for a vector u with a number for each position, shape (n_variables,)."""
        if self.design.file is not None:
            self.design.file.check_whole()
        out = np.zeros(self.n_variables)
        self._products.accumulate(0, self.n_rows, u, out)
        return out

    def score_gradient(self, at: ThreadedPoint) -> np.ndarray:
        """Derivative of the loss with respect to each row's score, for rows sorted by query; X is not read."""
        gradient = np.empty(self.n_rows)
        self.loss.evaluation(at.state, at.width)(0, self.pairs.n_queries, at.scores, gradient)
        return gradient

    def sizes(self) -> Sizes:
        """Sizes of the rows: X is read on the first call."""
        if self._sizes is None:
            design = self.design
            self._sizes = Sizes(design.largest(self.n_threads), design.most_entries, self._additions())
        return self._sizes

    def round_off(self, at: ThreadedPoint, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        """Bounds on the round-off of an evaluation, from its scores."""
        return self.loss.round_off(at.scores, at.sums, width, margin_error, tight)

    def visit_pairs(self) -> bool:
        """Visit pairs one by one from now on, unless there are too many; False if nothing changes."""
        pairs = self.pairs
        if not isinstance(pairs, ComparablePairs) or pairs.n_pairs > MAX_VISITS:
            return False
        if not isinstance(self.loss, MarginLoss) or not self.loss.sums.lengths.swept:
            return False
        self.pairs = pairs.all_visited()
        self.loss = self.loss.with_pairs(self.pairs)
        self._probe = None
        return True

    def release(self, at: ThreadedPoint) -> None:
        """Mark an evaluation as no longer needed: its arrays over rows are reused by the next one."""
        at.gradient = NOTHING
        if not self.repeatable:
            self._spare.append(at)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def curvature_product(self, at: ThreadedPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``X' H X v``, X read once."""
        operator = self.loss.hessian(at.state)
        if not double and self._single_products is not None:
            largest = float((self.sizes().largest * np.abs(v)).max(initial=0.0))  # v / largest has scores of about 1
            with np.errstate(over="ignore", invalid="ignore"):  # overflow of float32 shows in the sum
                product = self._pass(v / (largest or 1.0), operator, products=self._single_products)[1]
                product *= largest
            if np.isfinite(product).all():
                return product
        return self._pass(v, operator)[1]

    def curvature(self, at: Scored, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        """``X' H X`` at some scores of the rows, or its estimate from a fraction of them."""
        if fraction >= 1.0:
            curvature = self._curvature(at, np.float64 if double else np.float32)
            return curvature if double or np.isfinite(curvature).all() else self._curvature(at, np.float64)
        sampled = self._sampled(int(fraction * self.n_rows) + 1, seed)
        if sampled is None:
            return np.zeros((self.n_variables, self.n_variables))
        term, part = sampled.term, sampled.at(at)
        curvature = term.curvature(part, 1.0, seed, double)
        curvature *= self.weight / term.weight
        term.release(part)
        return curvature

    def sample_at(self, at: ThreadedPoint, n_rows: int, seed: int) -> "tuple[ThreadedTerm, ThreadedPoint]":
        """The loss over a sample of about ``n_rows`` rows (all if there are fewer), evaluated at the scores of ``at``.

        The ratio of both terms' ``weight`` is the number of pairs that a pair of the sample represents.
        """
        if n_rows >= self.n_rows or self.weight <= 0.0:
            return self, at
        sampled = self._sampled(n_rows, seed)
        assert sampled is not None
        return sampled.term, sampled.at(at)

    def curvature_over(self, at: ThreadedPoint, Z: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """``Z' H Z`` for other features Z of the rows, by position: shape (n_rows, n), float64."""
        loss = self.loss if self.pairs.rows is None else self.loss.with_pairs(self.pairs.renumbered())
        return ThreadedTerm(DenseDesign(Z), loss, n_threads).curvature(at, 1.0, SEED)

    def curvature_diagonal(self, at: ThreadedPoint) -> np.ndarray:
        """The diagonal of ``X' H X``; for many dense rows an estimate from some of them.

        For sparse data it is the diagonal of ``X' D X``, D the diagonal of H. They differ by pairs whose documents have
        a common feature, rare in sparse data.
        """
        if self.dense and self.n_rows > 2 * DIAGONAL_ROWS:
            # drawn once for all points, and for every C of a path
            if self._diagonal_sample is None:
                self._diagonal_sample = self._drawn(DIAGONAL_ROWS, SEED, DIAGONAL_QUERIES)
            term, sampled = self._diagonal_sample.term, self._diagonal_sample.at(at)
            diagonal = self.weight / term.weight * term.curvature_diagonal(sampled)
            term.release(sampled)
            return diagonal
        if self.dense:
            return self._dense_diagonal(at)
        parts = parallel_map(partial(self._sparse_diagonal, at), self._row_shares(4), self._python_threads)
        return _add_up(parts, self.n_variables)

    def differences(self, count: int) -> np.ndarray | None:
        """Differences of ``count`` pairs of rows, in queries spread evenly over the weight of all pairs."""
        pairs, k = self.pairs, np.arange(0.5, count)
        weights = np.cumsum(pairs.weight_per_query)
        query = np.searchsorted(weights, k * (weights[-1] / count), side="right")
        start = pairs.pointers[query]
        size = pairs.pointers[query + 1] - start
        first = (k * PLASTIC % 1.0 * size).astype(np.int64)
        second = (first + 1 + (k * PLASTIC**2 % 1.0 * (size - 1)).astype(np.int64)) % size
        positions = np.concatenate((start + first, start + second))
        X = np.empty((2 * count, self.n_variables))
        self.design.gather(positions if pairs.rows is None else pairs.rows[positions], 0, 2 * count, X)
        return X[:count] - X[count:]

    def sample(self, n_rows: int, seed: int) -> "ThreadedTerm | None":
        """A term over a sample of about ``n_rows`` rows; the same arguments give the same sample."""
        sampled = self._sampled(n_rows, seed)
        return None if sampled is None else sampled.term

    # -- private methods ---------------------------------------------------------------------------------------------

    def _pass(
        self,
        w: np.ndarray | None,
        operator: QueryOperator,
        v: np.ndarray | None = None,
        products: RowProducts | None = None,
    ) -> tuple[LossSums, np.ndarray]:
        """One pass over X: ``v = X w`` (v is an input if ``w`` is None), and ``X' u`` with ``u = operator(v)``.

        Returns the sums of the operator and ``X' u``.
        """
        basis = self.design.vector_basis
        if basis is None:
            return self._plain_pass(w, operator, v, self._products if products is None else products)
        expanded = None if w is None else basis.expanded(w)
        sums, total = self._plain_pass(expanded, operator, v, self._products, basis.n_numbers)
        return sums, basis.contracted(total)

    def _plain_pass(
        self,
        w: np.ndarray | None,
        operator: QueryOperator,
        v: np.ndarray | None,
        products: RowProducts,
        n_totals: int | None = None,
    ) -> tuple[LossSums, np.ndarray]:
        """`_pass` for ``w`` in the form that the products take; the result has ``n_totals`` numbers."""
        if self.design.file is not None:
            self.design.file.check_whole()
        n_totals = self.n_variables if n_totals is None else n_totals
        if isinstance(products, passes.RowProducts) and isinstance(operator, passes.QueryOperator):
            totals = np.zeros((max(1, self._shares.n_shares), n_totals))
            arguments = self._shares, self._cache_rows, w, v, totals, self.n_threads
            sums = LossSums(*passes.pass_over(products, operator, *arguments))
            total = totals[0] if len(totals) == 1 else totals[0].copy()  # the other totals need not stay in memory
        else:
            share = partial(self._python_share, products, n_totals, w, operator, v)
            found = parallel_map(share, self._tasks, self._python_threads)
            sums = reduce(LossSums.plus, [sums for sums, _ in found], LossSums(0.0))
            total = _add_up([total for _, total in found], n_totals)
        for block in self._large:
            more, part = self._large_query(products, n_totals, w, operator, v, block)
            sums, total = sums.plus(more), total + part
        return sums, total

    def _python_share(
        self,
        products: RowProducts,
        n_totals: int,
        w: np.ndarray | None,
        operator: QueryOperator,
        v: np.ndarray | None,
        blocks: list[Block],
    ) -> tuple[LossSums, np.ndarray]:
        """`_pass` over some blocks, if the products or the operator are Python objects."""
        sums, total = LossSums(0.0), np.zeros(n_totals)
        for first, last, start, stop in blocks:
            v_range, u = np.empty(stop - start) if v is None else v[start:stop], np.empty(stop - start)
            if w is not None:
                products.scores(start, stop, w, v_range)
            sums = sums.plus(LossSums(*operator(first, last, v_range, u)))
            products.accumulate(start, stop, u, total)
        return sums, total

    def _all_tasks(self) -> list[list[Block]]:
        """All queries, divided into tasks for work on scores; each large query is a task of its own."""
        return [*self._tasks, *([block] for block in self._large)]

    def _large_query(
        self,
        products: RowProducts,
        n_totals: int,
        w: np.ndarray | None,
        operator: QueryOperator,
        v_kept: np.ndarray | None,
        block: Block,
    ) -> tuple[LossSums, np.ndarray]:
        """`_pass` over one large query: all threads share its rows."""
        first, last, start, stop = block
        work = int((stop - start) * self.row_bytes) // 4
        chunks = even_ranges(start, stop, min(4 * self._shared_by, max(1, work // CHUNK_WORK)))
        v, u = np.empty(stop - start) if v_kept is None else v_kept[start:stop], np.empty(stop - start)

        def scores(chunk: tuple[int, int]) -> None:
            assert w is not None
            products.scores(*chunk, w, v[chunk[0] - start : chunk[1] - start])

        def accumulate(chunk: tuple[int, int]) -> np.ndarray:
            total = np.zeros(n_totals)
            products.accumulate(*chunk, u[chunk[0] - start : chunk[1] - start], total)
            return total

        if w is not None:
            parallel_map(scores, chunks, self._python_threads)
        sums = LossSums(*operator(first, last, v, u))
        return sums, _add_up(parallel_map(accumulate, chunks, self._python_threads), n_totals)

    def _curvature(self, at: Scored, dtype: type) -> np.ndarray:
        """``X' H X``, the products in float64 or float32 and their sum in float64."""
        if self.design.file is not None:
            self.design.file.check_whole()
        operator, n = self.loss.hessian(at.state), self.n_variables
        rows_dtype = dtype if self.design.dtype == dtype else np.float64
        if isinstance(self._products, passes.RowProducts) and isinstance(operator, passes.QueryOperator):
            shares = self._hessian_shares
            totals = np.zeros((max(1, shares.n_shares), n, n))
            rows = self._hessian_block(np.dtype(rows_dtype).itemsize)
            precision = dtype is np.float32, rows_dtype is np.float32
            hessian.hessian_over(self._products, operator, shares, rows, *precision, totals, self.n_threads)
            curvature: np.ndarray = totals[0]
            return curvature if len(totals) == 1 else curvature.copy()  # the other totals need not stay in memory

        def part(blocks: list[Block]) -> np.ndarray:
            total = np.zeros((n, n))
            with np.errstate(over="ignore", invalid="ignore"):  # overflow of float32 shows in the sum
                for A, B in self._hessian_factors(at, blocks, rows_dtype):
                    left: np.ndarray = A.astype(dtype, copy=False)
                    hessian.add_product(left, left if A is B else B.astype(dtype, copy=False), total)
            return total

        return _add_up(parallel_map(part, self._row_shares(1), self._python_threads), (n, n))

    def _hessian_block(self, value_bytes: int) -> int:
        """Number of rows that an explicit Hessian processes at a time."""
        return max(1, HESSIAN_BYTES // (max(1, self.n_variables) * value_bytes))

    @cached_property
    def _hessian_shares(self) -> passes.QueryShares:
        """The queries, including the large ones, divided into shares for threads."""
        small = self.n_variables**2 <= SMALL_HESSIAN
        if small and not self._large:
            return self._shares
        return self._query_shares(self._per_thread if small else 1, with_large=True)

    def _query_shares(self, per_thread: int, with_large: bool = False) -> passes.QueryShares:
        """Shares of consecutive queries, with about equal numbers of rows, with or without the large queries."""
        if self._shared_by == 1:  # then no query counts as large
            return passes.QueryShares(np.array([[0, self.pairs.n_queries]], dtype=np.int64), np.ones(1, dtype=np.int64))
        ranges = self._ranges(per_thread, [] if with_large else [first for first, _, _, _ in self._large])
        places = np.arange(1, len(ranges) + 1, dtype=np.int64)
        return passes.QueryShares(np.array(ranges, dtype=np.int64).reshape(-1, 2), places)

    def _ranges(self, per_thread: int, left_out: list[int]) -> list[tuple[int, int]]:
        """Consecutive queries of about equal numbers of rows, in the order in which threads take them."""
        pointers, n_shares = self.pairs.pointers, per_thread * self._shared_by
        even = np.searchsorted(pointers, self.n_rows * np.arange(1, n_shares) // n_shares)
        cuts = sorted({0, self.pairs.n_queries, *even.tolist(), *left_out, *(first + 1 for first in left_out)})
        return [both for both in pairwise(cuts) if both[0] not in left_out]

    def _row_shares(self, per_thread: int, rows: int = PYTHON_HESSIAN_ROWS) -> list[list[Block]]:
        """Blocks for work on rows by Python, shared out among threads."""
        most = _even(self.n_rows, min(rows, PYTHON_HESSIAN_ROWS), self._python_shared_by)
        return _shares(list(_blocks(self.pairs.pointers, most)), self._python_shared_by, per_thread)

    def _hessian_factors(
        self, at: Scored, blocks: list[Block], dtype: type = np.float64
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Matrices A and B with ``A'B + B'A = 2 X' H X``, block by block; the same matrix twice if ``X' H X = A'A``."""
        n_rows = max(stop - start for _, _, start, stop in blocks)
        X_memory: np.ndarray = np.empty((n_rows, self.n_variables), dtype)
        memory: np.ndarray = np.empty((2 * n_rows, self.n_variables), dtype)
        for first, last, start, stop in blocks:
            X = X_memory[: stop - start]
            self.design.gather(self.pairs.rows, start, stop, X)
            n_squares = self.loss.hessian_rows(at.state, first, last, X, memory[: 2 * len(X)])
            D = memory[: len(X) if n_squares is None else n_squares]
            yield (X if n_squares is None else D), D

    def _dense_diagonal(self, at: Scored) -> np.ndarray:
        """The diagonal of ``X' H X`` of dense rows."""
        operator, n = self.loss.hessian(at.state), self.n_variables
        if isinstance(self._products, passes.RowProducts) and isinstance(operator, passes.QueryOperator):
            shares, rows = self._hessian_shares, self._hessian_block(8)
            totals = np.zeros((max(1, shares.n_shares), n))
            hessian.diagonal_over(self._products, operator, shares, rows, totals, self.n_threads)
            diagonal: np.ndarray = totals[0]
            return diagonal

        def part(blocks: list[Block]) -> np.ndarray:
            total = np.zeros(n)
            for A, B in self._hessian_factors(at, blocks):
                total += np.einsum("ij,ij->j", A, B)
            return total

        return _add_up(parallel_map(part, self._row_shares(4), self._python_threads), n)

    def _sparse_diagonal(self, at: Scored, blocks: list[Block]) -> np.ndarray:
        total = np.zeros(self.n_variables)
        for _, _, start, stop in blocks:
            degrees = self.loss.curvature_diagonal(at.state, start, stop)
            self.design.accumulate_squares(self.pairs.rows, start, stop, degrees, total)
        return total

    def _additions(self) -> int:
        """Maximum number of additions that the summand of one row goes through in a gradient; it bounds round-off."""
        if not isinstance(self.design, DenseDesign):
            return self.n_rows
        # a block takes whole queries, about ``rows_at_once`` rows in all, and never less than half of that
        rows_at_once = min(self._cache_rows, linear.SUM_ROWS)
        if rows_at_once < linear.FEW_ROWS:
            return self.n_rows
        n_parts = self._shares.n_shares + 4 * self._shared_by * len(self._large)
        depth: int = linear.SUM_DEPTH + 2 * (self.n_rows // rows_at_once) + 3 * n_parts
        return depth

    def _new_point(self, width: float | None, near: ThreadedPoint | None = None) -> ThreadedPoint:
        if self._spare:
            point = self._spare.pop()
            point.width = width
            return point
        scores = np.empty(self.n_rows)
        state = self.loss.new_state(near.state if near and not self.repeatable else None, self.n_threads, scores)
        return ThreadedPoint(scores, state, width)

    def _sampled(self, n_rows: int, seed: int) -> _Sample | None:
        if self.weight <= 0.0:
            return None
        if self._sample is None or self._sample.key != (n_rows, seed):
            self._sample = self._drawn(n_rows, seed)
        return self._sample

    def _drawn(self, n_rows: int, seed: int, fewest: int = SAMPLE_QUERIES) -> _Sample:
        pairs, positions = self.pairs.sample(n_rows, seed, min(fewest, PART_QUERIES) if self.repeatable else fewest)
        term = ThreadedTerm(self.design, self.loss.with_pairs(pairs), self.n_threads, shared_by=self._shared_by)
        return _Sample(term, positions, (n_rows, seed))

    @cached_property
    def _tasks(self) -> list[list[Block]]:
        """Blocks of all queries except the large ones, shared out among threads that run Python."""
        block_rows = max(1, int(BLOCK_BYTES / self.row_bytes))
        if self._shared_by > 1:  # blocks should also be small enough to be divided evenly
            block_rows = min(block_rows, max(1, self.n_rows // (4 * self._shared_by)))
        blocks = [block for block in _blocks(self.pairs.pointers, block_rows) if block not in self._large]
        return _shares(blocks, self._shared_by, self._per_thread)

    def _large_queries(self) -> list[Block]:
        """Large queries whose rows all threads share, one query after another; their number makes a pass shortest.

        One thread visits the pairs of such a query while the others wait. Sharing therefore pays only if whole queries
        cannot be divided evenly among the threads.
        """
        if self._shared_by == 1:
            return []
        n_threads, pointers, sizes = self._shared_by, self.pairs.pointers, np.diff(self.pairs.pointers)
        of_a_share: list[int] = np.flatnonzero(sizes > self.n_rows // (2 * n_threads)).tolist()
        candidates = [query for query in of_a_share if worth_threads(self.design, int(sizes[query]))]
        if not candidates:
            return []
        candidates.sort(key=lambda query: -int(sizes[query]))
        alone = PAIR_BYTES / (PAIR_BYTES + self.row_bytes)

        def seconds(n_shared: int) -> float:
            """The time of a pass, in units of the time of a row on one thread."""
            shared, free = candidates[:n_shared], [0] * n_threads
            for first, last in self._ranges(self._per_thread, shared):
                heapreplace(free, free[0] + int(pointers[last] - pointers[first]))
            return max(free) + int(sizes[shared].sum()) * (alone + (1.0 - alone) / n_threads)

        large = sorted(candidates[: min(range(len(candidates) + 1), key=seconds)])
        return [(query, query + 1, int(pointers[query]), int(pointers[query + 1])) for query in large]


def worth_threads(design: DesignMatrix, n_rows: int, least: int | None = None) -> bool:
    """Whether work on ``n_rows`` rows is enough for more than one thread.

    Parameters
    ----------
    design : DesignMatrix
        The features.
    n_rows : int
        Number of rows that are read.
    least : int, optional
        Multiplications that are enough; None: enough for threads that run Python.

    Returns
    -------
    bool
        True if it is.
    """
    return n_rows * design.row_bytes / 4 > (PARALLEL_PYTHON if least is None else least)


def _even(n_rows: int, most: int, n_threads: int) -> int:
    """Number of rows of a block, at most ``most``, so that threads have about equal numbers of blocks."""
    n_blocks = max(1, -(-n_rows // most))
    return -(-n_rows // (-(-n_blocks // n_threads) * n_threads))


def _add_up(parts: list[np.ndarray], shape: int | tuple[int, ...]) -> np.ndarray:
    """The sum of the results of threads, in the memory of the first."""
    if not parts:
        return np.zeros(shape)
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def _interpolate(a: ThreadedPoint, b: ThreadedPoint, alpha: float, start: int, stop: int) -> np.ndarray:
    there, here = b.scores[start:stop], a.scores[start:stop]
    between: np.ndarray = here + alpha * (there - here)
    return between


def _blocks(pointers: np.ndarray, rows: int) -> Iterator[Block]:
    """Whole queries in blocks of up to ``rows`` rows (a larger query is a block)."""
    for first, last in query_ranges(pointers, rows):
        yield first, last, int(pointers[first]), int(pointers[last])


def _shares(blocks: list[Block], n_threads: int, per_thread: int) -> list[list[Block]]:
    """Consecutive blocks in shares of about equal numbers of rows, ``per_thread`` for each thread."""
    n_shares = min(len(blocks), n_threads * per_thread if n_threads > 1 else 1)
    if n_shares <= 1:
        return [blocks] if blocks else []
    ends = np.cumsum([stop - start for _, _, start, stop in blocks])
    share = np.minimum((ends - 1) * n_shares // ends[-1], n_shares - 1)
    cuts = np.searchsorted(share, np.arange(n_shares + 1))
    return [blocks[a:b] for a, b in pairwise(cuts) if b > a]
