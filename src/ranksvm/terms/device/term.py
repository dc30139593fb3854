"""The data term (loss of X w) of rows on a device: see `ranksvm.device` and the kernels in ``_compiled/device``."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.lazy import cached_property
from ranksvm.data import DesignMatrix
from ranksvm.data.design_matrix import Basis
from ranksvm.data.queries import query_ranges
from ranksvm.device.launcher import LANES, TILE, TILE_SHARED, Launcher
from ranksvm.device.protocol import Argument, Device, DeviceArray, Variant
from ranksvm.exceptions import OptionError
from ranksvm.losses.margin_loss import MarginLoss
from ranksvm.losses.protocol import LossSums, PairwiseLoss
from ranksvm.losses.round_off import LossRoundOff, Sizes, SumLengths
from ranksvm.terms.device.dense_pass import LOSS_COLUMNS
from ranksvm.terms.device.layout import layout_of_rows, layout_on
from ranksvm.terms.device.long_queries import LongPoint, is_long
from ranksvm.terms.device.pairs import DeviceOrder, order_on_device
from ranksvm.terms.device.rows import DenseRows, DeviceDesign, StreamedRows
from ranksvm.terms.device.sparse_rows import SparseRows
from ranksvm.terms.host import DIAGONAL_ROWS, SEED

__all__ = ["DevicePoint", "DeviceSample", "DeviceTerm"]

# HESSIAN_BYTES: maximum number of bytes of the rows that an explicit Hessian gathers at a time, together with their
# products with the Laplacian. PARTS_BYTES: maximum number of bytes of the partial results of a matrix product.
HESSIAN_BYTES = 512 << 20
PARTS_BYTES = 128 << 20
# Each partial result of a matrix product is computed from at least this number of rows.
PART_ROWS = 64


class DevicePoint:
    """The result of an evaluation: see `Term`.

    Parameters
    ----------
    scores : DeviceArray of float64, shape (n_rows,)
        ``X w`` in the order of the device.
    width : float or None
        Width of the loss.
    """

    def __init__(self, scores: DeviceArray, width: float | None):
        self.scores = scores
        self.width = width
        self.sums = self.visited_sums = LossSums(0.0)
        self.gradient = np.zeros(0)
        self.long: LongPoint | None = None  # of the queries that the host handles


class DeviceSample(NamedTuple):
    """A term over a sample of the rows, their places on the device, and the arguments with which it was drawn."""

    term: "DeviceTerm"
    places: DeviceArray | None
    key: tuple[int, int]

    def at(self, at: DevicePoint) -> DevicePoint:
        """The point of this sample at which its rows have the same scores as at ``at``."""
        point = self.term._new_point(at.width)
        self.term._run("take", at.scores, self.places, self.term.n_rows, point.scores, work=self.term.n_rows)
        return point


class DeviceTerm:
    """``loss(X w)`` with rows, scores and pairs on a device: see `DataTerm` for the methods.

    An evaluation copies one number per weight to the device, and one number per weight plus 4 sums back. Dense X is
    read in one pass (`QueryPass`). Every pair is visited from both of its documents, except in queries with too many
    pairs (`LongQueries`). Sums are in float64, and their order depends only on the device and the data, so that a fit
    gives the same bits every time.

    Parameters
    ----------
    device : Device
        The device.
    design : DesignMatrix or DeviceDesign
        The features.
    loss : SquaredHinge, HuberHinge or Hinge
        The loss over pairs of its rows.
    n_threads : int
        Number of threads for work on the host.
    rows : DenseRows or SparseRows, optional
        The rows of the pairs, if they are on the device already.
    order : DeviceOrder, optional
        Their order there: the result of `order_on_device`, which is computed if it is not given.
    basis : Basis, optional
        The map from weights to the vectors that the products of ``rows`` take; by default the weights themselves.
    """

    # the losses of _compiled/device/losses.hpp
    supported_losses = ("squared_hinge", "hinge", "huber")
    # the device evaluates the positions of a line search one after another
    positions_at_once = 1
    max_fraction = 1.0
    curvature_with_value = False
    squares_at_zero = False
    sample_rows = 0

    def __init__(
        self,
        device: Device,
        design: DesignMatrix | DeviceDesign,
        loss: PairwiseLoss,
        n_threads: int = 1,
        rows: DenseRows | SparseRows | None = None,
        order: DeviceOrder | None = None,
        basis: Basis | None = None,
    ):
        self.device = device
        self.device_names = [device.name]
        self.design = design
        if not isinstance(loss, MarginLoss) or loss.name not in self.supported_losses:
            raise OptionError(
                f"the kernels of a device have the losses {', '.join(map(repr, self.supported_losses))}, "
                f"not {loss.name!r}."
            )
        self.loss = loss
        self.pairs = pairs = loss.pairs
        self.n_variables = design.n_features
        self.n_rows = pairs.n_rows
        self.curvature_rank = min(pairs.n_pairs, pairs.n_rows)
        self.row_bytes = design.row_bytes
        self.dense = design.dense
        self.weight = pairs.weight
        real = "float" if design.dtype == np.float32 else "double"
        listed = hasattr(pairs, "pair_pointers")
        self._run = Launcher(device, Variant(listed, not design.dense, real)) if rows is None else rows.launcher
        device.compile(self._run.variant)
        self._basis = basis
        n_numbers = self.n_variables if self._basis is None else self._basis.n_numbers
        self._weights = device.empty((n_numbers,), np.float64)
        # the sums of a loss, then a gradient
        self._results = device.empty((LOSS_COLUMNS + n_numbers,), np.float64)
        if rows is None:
            there = layout_on(self._run, design, loss, n_threads)
        else:
            there = layout_of_rows(rows, order_on_device(pairs) if order is None else order, loss, n_threads)
        self._order, self._rows, self._pairs, self._long, self._pass, self._block_bytes = there
        self._is_long = is_long(pairs)
        self._spare: list[DeviceArray] = []
        self._sample: DeviceSample | None = None
        self._diagonal_sample: DeviceSample | None = None

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, width: float | None, near: DevicePoint | None = None) -> DevicePoint:
        """Value and gradient; ``near`` is not used, because nothing is sorted."""
        point = self._new_point(width)
        if self._pass is not None:
            self._pass.evaluate(self._copied(w), self._kernel_width(width), point.scores, self._results)
            return self._found(point)
        self._multiply_rows(w, point.scores)
        return self._evaluated(point)

    def between(self, a: DevicePoint, b: DevicePoint, alpha: float, width: float | None) -> DevicePoint:
        """Value and gradient on a segment; X is read for the gradient only."""
        point = self._new_point(width)
        self._step(a, b, alpha, point.scores)
        return self._evaluated(point)

    def along(
        self, a: DevicePoint, b: DevicePoint, alphas: np.ndarray, width: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes, from the scores alone: X is not read."""
        values, slopes = np.zeros((2, len(alphas)))
        if self.n_rows:
            found = self._run.scratch("line", LOSS_COLUMNS * len(alphas))
            for place, alpha in enumerate(alphas):
                probe = self._run.scratch("probe", self.n_rows)
                self._step(a, b, float(alpha), probe)
                out = found.part(LOSS_COLUMNS * place, LOSS_COLUMNS * (place + 1))
                self._evaluate_loss(probe, width, None, out, (a.scores, b.scores))
            table = self.device.copy_out(found.part(0, LOSS_COLUMNS * len(alphas))).reshape(-1, LOSS_COLUMNS)
            values[:], slopes[:] = table[:, 0], table[:, 3]
        if self._long is not None:
            for place, alpha in enumerate(alphas):
                value, slope = self._long.along(self._long_at(a), self._long_at(b), float(alpha), width)
                values[place] += value
                slopes[place] += slope
        return values, slopes

    def point_at(self, scores: np.ndarray, width: float | None) -> DevicePoint:
        """A point for Hessians at scores that are on the host, by position, without value and gradient."""
        point = self._new_point(width)
        self.device.copy_in(scores[self._order.positions], point.scores.part(0, self.n_rows))
        return point

    def scores(self, w: np.ndarray) -> np.ndarray:
        """``X w`` by position, shape (n_rows,), on the host."""
        found = np.empty(self.n_rows)
        if self.n_rows:
            scores = self._run.scratch("probe", self.n_rows)
            self._multiply_rows(w, scores)
            found[self._order.positions] = self.device.copy_out(scores.part(0, self.n_rows))
        return found

    def sizes(self) -> Sizes:
        """Sizes of the rows."""
        additions = self._rows.additions() if self.n_rows else 0
        if self._pass is not None:
            additions = max(additions, self._pass.additions())
        return Sizes(self._rows.largest, self._rows.most_entries, additions)

    def round_off(self, at: DevicePoint, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        """Bounds on the round-off of an evaluation; the sums over scores that they need are computed on the device."""
        visited, short = self.loss, None
        if self._long is not None:
            visited = self.loss.with_pairs(self.pairs.of_queries(np.flatnonzero(~self._is_long)))
            short = np.repeat(~self._is_long, np.diff(self.pairs.pointers))
        bounded: Any = copy.copy(visited)
        bounded.sums = _SumsForBounds(self, visited)
        scores = _OnHost(self, at.scores, short)
        found: LossRoundOff = bounded.round_off(scores, at.visited_sums, width, margin_error, tight)
        if self._long is None:
            return found
        return found.plus(self._long.round_off(self._long_at(at), width, margin_error, tight))

    def visit_pairs(self) -> bool:
        """Return False: the device always sums over pairs in the same way."""
        return False

    def release(self, at: DevicePoint) -> None:
        """Mark an evaluation as no longer needed: the memory of its scores is used again."""
        self._spare.append(at.scores)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def curvature_product(self, at: DevicePoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``X' H X v``; all sums in float64."""
        if not self.n_rows:
            return np.zeros(self.n_variables)
        gradient = self._results.part(LOSS_COLUMNS, self._results.size)
        if self._pass is not None:
            factor = self.loss.curvature(at.width)
            self._pass.product(self._copied(v), at.scores, *self._ring(at.width), factor, self._results)
            return self._contracted(self.device.copy_out(gradient))
        moved, flows = (self._run.scratch(name, self.n_rows) for name in ("probe", "slopes"))
        self._multiply_rows(v, moved)
        ring = self._ring(at.width)
        factor = self.loss.curvature(at.width)
        arguments = *self._pairs.arguments, 0, self.n_rows, at.scores, *ring, factor, moved, flows
        self._run("laplacian", *arguments, work=self.n_rows)
        if self._long is not None:
            self._long.put(self._long.multiply(self._long_at(at), self._long.taken(moved)), flows)
        self._rows.accumulate(flows, gradient)
        return self._contracted(self.device.copy_out(gradient))

    def curvature(self, at: DevicePoint, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        """``X' H X``, or its estimate from a fraction of the rows; always in float64."""
        n = self.n_variables
        if fraction >= 1.0:
            return self._curvature(at)
        sampled = self._sampled(int(fraction * self.n_rows) + 1, seed)
        if sampled is None:
            return np.zeros((n, n))
        part = sampled.at(at)
        curvature = self.weight / sampled.term.weight * sampled.term._curvature(part)
        sampled.term.release(part)
        return curvature

    def curvature_diagonal(self, at: DevicePoint) -> np.ndarray:
        """The diagonal of ``X' H X``; an estimate from a sample of many dense rows, or from H's diagonal if sparse."""
        if not self.n_rows:
            return np.zeros(self.n_variables)
        if isinstance(self._rows, SparseRows):
            degrees = self._run.scratch("slopes", self.n_rows)
            self._sum_degrees(at.scores, self._ring(at.width), self.loss.curvature(at.width), degrees)
            if self._long is not None:
                self._long.put(self._long.degrees(self._long_at(at)), degrees)
            gradient = self._results.part(LOSS_COLUMNS, self._results.size)
            self._rows.accumulate(degrees, gradient, squares=True)
            return self.device.copy_out(gradient)
        if self.n_rows > 2 * DIAGONAL_ROWS:
            if self._diagonal_sample is None:
                self._diagonal_sample = self._drawn(DIAGONAL_ROWS, SEED)
            sampled = self._diagonal_sample
            part = sampled.at(at)
            diagonal = self.weight / sampled.term.weight * sampled.term._dense_diagonal(part)
            sampled.term.release(part)
            return diagonal
        return self._dense_diagonal(at)

    def differences(self, count: int) -> np.ndarray | None:
        """Return None: the rows stay on the device."""
        return None

    def sample(self, n_rows: int, seed: int) -> "DeviceTerm | None":
        """A term over a sample of about ``n_rows`` rows, which are not copied."""
        sampled = self._sampled(n_rows, seed)
        return None if sampled is None else sampled.term

    # -- private methods ---------------------------------------------------------------------------------------------

    def _new_point(self, width: float | None) -> DevicePoint:
        scores = self._spare.pop() if self._spare else self.device.empty((max(1, self.n_rows),), np.float64)
        return DevicePoint(scores, width)

    def _multiply_rows(self, w: np.ndarray, out: DeviceArray) -> None:
        if self.n_rows:
            self._rows.multiply(self._copied(w), out)

    def _copied(self, w: np.ndarray) -> DeviceArray:
        """A copy on the device of the vector that X is multiplied by if the weights are w."""
        return self.device.copy_in(w if self._basis is None else self._basis.expanded(w), self._weights)

    def _contracted(self, total: np.ndarray) -> np.ndarray:
        """The gradient for the weights, from the gradient for the vector that X is multiplied by."""
        return total if self._basis is None else self._basis.contracted(total)

    def _step(self, a: DevicePoint, b: DevicePoint, alpha: float, out: DeviceArray) -> None:
        if self.n_rows:
            self._run("step_between", a.scores, b.scores, float(alpha), self.n_rows, out, work=self.n_rows)

    def _evaluated(self, point: DevicePoint) -> DevicePoint:
        """Sums and gradient at the scores of a point."""
        if not self.n_rows:
            point.gradient = np.zeros(self.n_variables)
            return point
        slopes = self._run.scratch("slopes", self.n_rows)
        self._evaluate_loss(point.scores, point.width, slopes, self._results.part(0, LOSS_COLUMNS))
        if self._long is not None:
            self._long.put(self._long_at(point).slopes, slopes)
        self._rows.accumulate(slopes, self._results.part(LOSS_COLUMNS, self._results.size))
        return self._found(point)

    def _found(self, point: DevicePoint) -> DevicePoint:
        """The results of an evaluation."""
        found = self.device.copy_out(self._results)
        sums = LossSums(*found[:3].tolist())
        point.sums = point.visited_sums = sums if self.loss.smoothed else LossSums(sums.value)
        if self._long is not None:
            point.sums = point.visited_sums.plus(self._long_at(point).sums)
        point.gradient = self._contracted(found[LOSS_COLUMNS:].copy())
        return point

    def _long_at(self, point: DevicePoint) -> LongPoint:
        """The evaluation of the queries that the host handles."""
        assert self._long is not None
        if point.long is None:
            point.long = self._long.evaluate(point.scores, point.width)
        return point.long

    def _evaluate_loss(
        self,
        scores: DeviceArray,
        width: float | None,
        slopes: DeviceArray | None,
        out: DeviceArray,
        step: tuple[DeviceArray | None, DeviceArray | None] = (None, None),
    ) -> None:
        """Write the loss's sums and slope along a step to ``out``, its derivatives by the scores to ``slopes``."""
        run = self._run
        n_blocks = run.blocks_for(self.n_rows)
        sums = run.scratch("loss sums", n_blocks * LOSS_COLUMNS)
        arguments = *self._pairs.arguments, 0, self.n_rows, scores, self._kernel_width(width), slopes, *step, sums
        run("loss", *arguments, n_blocks=n_blocks, shared=LOSS_COLUMNS * run.n_threads)
        run.add_rows(sums, n_blocks, LOSS_COLUMNS, out)

    def _kernel_width(self, width: float | None) -> float:
        """The width that kernels take: 0 for the squared hinge."""
        given = 0.0 if width is None else float(width)
        if (given == 0.0) != (self.loss.name == "squared_hinge"):
            raise ValueError(f"The loss {self.loss.name!r} cannot have the width {width}.")
        return given

    def _ring(self, width: float | None) -> tuple[float, float]:
        """The margins between which the loss is curved."""
        return (-np.inf, 1.0) if width is None else (1.0 - width, 1.0)

    def _sum_degrees(
        self, scores: DeviceArray, ring: tuple[float, float], factor: float, degrees: DeviceArray | None = None
    ) -> DeviceArray:
        """Write, by document, ``factor`` times the weight of its pairs in a ring (margin interval); return the sum."""
        run = self._run
        n_blocks = run.blocks_for(self.n_rows)
        sums, total = run.scratch("loss sums", n_blocks * LOSS_COLUMNS), run.scratch("total", 1)
        arguments: tuple[Argument, ...] = *self._pairs.arguments, self.n_rows, scores, *ring, factor, degrees, sums
        run("degrees", *arguments, n_blocks=n_blocks, shared=run.n_threads)
        run.add_rows(sums, n_blocks, 1, total)
        return total.part(0, 1)

    def _curvature(self, at: DevicePoint) -> np.ndarray:
        """``X' H X`` from all rows, blocks of whole queries at a time."""
        n, run = self.n_variables, self._run
        total = np.zeros((n, n))
        for n_rows, A, Z in self._laplacian_blocks(at):
            n_tiles = (-(-n // TILE)) ** 2
            n_parts = min(
                -(-run.device.n_blocks // n_tiles), -(-n_rows // PART_ROWS), max(1, PARTS_BYTES // (8 * n * n))
            )
            parts, product = run.scratch("parts", n_parts * n * n), run.scratch("product", n * n)
            work = run.n_threads * n_tiles * n_parts
            run("multiply_tiles", A, Z, n_rows, n, n_parts, parts, work=work, shared=TILE_SHARED)
            run.add_rows(parts, n_parts, n * n, product)
            total += self.device.copy_out(product.part(0, n * n)).reshape(n, n)
        for B, Z_B in self._long_blocks(at):
            total += B.T @ Z_B
        return 0.5 * (total + total.T)

    def _dense_diagonal(self, at: DevicePoint) -> np.ndarray:
        n, run = self.n_variables, self._run
        total = np.zeros(n)
        for n_rows, A, Z in self._laplacian_blocks(at):
            n_blocks = run.blocks_for(n_rows)
            sums, diagonal = run.scratch("parts", n_blocks * n), run.scratch("product", n)
            run("multiply_columns", A, Z, n_rows, n, sums, n_blocks=n_blocks)
            run.add_rows(sums, n_blocks, n, diagonal)
            total += self.device.copy_out(diagonal.part(0, n))
        for B, Z_B in self._long_blocks(at):
            total += np.einsum("ij,ij->j", B, Z_B)
        return total

    def _laplacian_blocks(self, at: DevicePoint) -> Iterator[tuple[int, DeviceArray, DeviceArray]]:
        """For each block of queries: A, its rows minus a row of their query, and the Hessian times A, in reused memory.

        The Hessian of the queries that the host handles is 0 here.
        """
        n, run, pointers = self.n_variables, self._run, self._order.pointers
        ring, factor = self._ring(at.width), self.loss.curvature(at.width)
        most = HESSIAN_BYTES if self._block_bytes is None else min(HESSIAN_BYTES, self._block_bytes)
        for first, last in query_ranges(pointers, max(1, most // (16 * n))):
            start, stop = int(pointers[first]), int(pointers[last])
            if stop == start or (last == first + 1 and self._is_long[self._order.queries[first]]):
                continue
            A, Z = (run.scratch(name, (stop - start) * n) for name in ("rows", "Laplacian rows"))
            work = run.n_threads * (stop - start)
            run("gather", *self._pairs.arguments, *self._rows.resident(start, stop), start, stop, A, work=work)
            run("laplacian_rows", *self._pairs.arguments, start, stop, at.scores, *ring, factor, n, A, Z, work=work)
            yield stop - start, A, Z

    def _long_blocks(self, at: DevicePoint) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """B and Z of `LongQueries.hessian_factors`, on the host, for each query that the host handles."""
        if self._long is None:
            return
        for number, start, stop in self._long.ranges():
            A = self._run.scratch("rows", (stop - start) * self.n_variables)
            work = self._run.n_threads * (stop - start)
            arguments = *self._pairs.arguments, *self._rows.resident(start, stop), start, stop
            self._run("gather", *arguments, A, work=work)
            rows = self.device.copy_out(A.part(0, (stop - start) * self.n_variables)).reshape(stop - start, -1)
            yield self._long.hessian_factors(self._long_at(at), number, rows)

    @cached_property
    def _places(self) -> np.ndarray:
        """Place of each position in the order of the device."""
        place = np.empty(self.n_rows, dtype=np.int32)
        place[self._order.positions] = np.arange(self.n_rows, dtype=np.int32)
        return place

    def _sampled(self, n_rows: int, seed: int) -> DeviceSample | None:
        if self.weight <= 0.0:
            return None
        if self._sample is None or self._sample.key != (n_rows, seed):
            self._sample = self._drawn(n_rows, seed)
        return self._sample

    def _drawn(self, n_rows: int, seed: int) -> DeviceSample:
        pairs, positions = self.pairs.sample(n_rows, seed)
        place, rows, order = self._places, None, None
        if not isinstance(self._rows, StreamedRows):
            order = order_on_device(pairs)
            rows = self._rows.taken(place[positions[order.positions]])
        term = DeviceTerm(self.device, self.design, self.loss.with_pairs(pairs), rows=rows, order=order)
        places = place[positions[term._order.positions]]
        return DeviceSample(term, self._run.copy_in(places), (n_rows, seed))


class _OnHost:
    """Scores on a device. `np.asarray` copies the scores at the ``chosen`` positions (None: all) to the host."""

    def __init__(self, term: DeviceTerm, scores: DeviceArray, chosen: np.ndarray | None):
        self.term = term
        self.scores = scores
        self.chosen = chosen

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        found = np.empty(self.term.n_rows)
        found[self.term._order.positions] = self.term.device.copy_out(self.scores.part(0, self.term.n_rows))
        return found if self.chosen is None else found[self.chosen]


class _WeightBelow:
    """The weight of the pairs below a margin, half the sum of ``degrees``; used in place of a loss's state."""

    def __init__(self) -> None:
        self.degrees = np.zeros(1)


class _SumsForBounds:
    """The methods of `PairSums` that round-off bounds need, computed from the pairs on a device."""

    def __init__(self, term: DeviceTerm, visited: MarginLoss):
        self.term = term
        self.visited = visited

    @property
    def lengths(self) -> SumLengths:
        """How many terms each sum has; no sum is a difference of running sums."""
        term = self.term
        lengths, run = self.visited.sums.lengths, term._run
        longest = int(np.max(self.visited.pairs.pairs_per_query, initial=0))
        of_document = min(longest, max(lengths.of_document, lengths.swept))
        n_blocks = run.blocks_for(term.n_rows)
        of_thread = of_document + -(-term.n_rows // (n_blocks * run.n_threads))
        of_all = of_thread + run.n_threads + n_blocks + run.n_threads // LANES
        if term._pass is not None:
            of_all = max(of_all, of_document + term._pass.loss_additions())
        return lengths._replace(of_document=of_document, of_all=of_all, swept=0)

    def new_state(self, ring: bool) -> _WeightBelow:
        return _WeightBelow()

    def squared_hinge(self, state: _WeightBelow, threshold: float) -> Callable[[int, int, "_OnHost", np.ndarray], None]:
        """An operator that stores in the state the weight of the pairs whose margins are below a threshold."""

        def below(first: int, last: int, scores: _OnHost, gradient: np.ndarray) -> None:
            if self.term.n_rows:
                total = self.term._sum_degrees(scores.scores, (-np.inf, threshold), 1.0)
                state.degrees = self.term.device.copy_out(total)

        return below
