"""The data term (loss) of an additive model on a device, which stores level codes; the host computes the Hessians."""

from typing import cast

import numpy as np

from ranksvm._util.lazy import cached_property
from ranksvm.additive import AdditiveDesign
from ranksvm.device.launcher import LANES, Launcher, as_int32
from ranksvm.device.protocol import Argument, Device, DeviceArray, Variant
from ranksvm.losses.protocol import PairwiseLoss
from ranksvm.terms.device.dense_pass import LOSS_COLUMNS
from ranksvm.terms.device.pairs import order_on_device
from ranksvm.terms.device.rows import SPARSE_SPAN, DenseRows, rows_on
from ranksvm.terms.device.sparse_rows import SparseRows
from ranksvm.terms.device.term import DevicePoint, DeviceSample, DeviceTerm
from ranksvm.terms.host import DIAGONAL_ROWS, SEED, ThreadedPoint, ThreadedTerm

__all__ = ["CodedRows", "CodedTerm", "FeatureRows"]

# The rows of the linear part.
FeatureRows = DenseRows | SparseRows
# The histograms (a sum for each level of a feature) are computed from parts of the rows. Each part has at least this
# many rows, so that a histogram adds up at least as many numbers as it has sums.
PART_ROWS = 256
# How many values of float64 shared memory reads at a time.
BANKS = 16


class CodedRows:
    """Rows of an additive model on a device: see `RowsOnDevice` for the methods.

    Products are with the vectors of `AdditiveTerms.level_basis`: weights of the features, then a value for each level.
    Sums are in float64, and their order depends only on the device and the data.

    Parameters
    ----------
    features : DenseRows, SparseRows or None
        The rows of the linear part, if there is one.
    launcher : Launcher
        The device, and the variant of its kernels.
    design : AdditiveDesign
        The rows on the host.
    rows : ndarray of int64, shape (n_rows,)
        The row of the design matrix at each position.
    n_threads : int
        Number of threads that copy rows and look for the largest values.
    """

    def __init__(
        self,
        features: FeatureRows | None,
        launcher: Launcher,
        design: AdditiveDesign,
        rows: np.ndarray,
        n_threads: int = 1,
    ):
        self.launcher = launcher
        self.n_rows = len(rows)
        self.most_entries = design.most_entries
        self.largest: np.ndarray = design.largest(n_threads)  # type: ignore[no-untyped-call]
        self._features = features
        self._n_linear = design.terms.n_linear
        self.basis = design.terms.level_basis
        self._n_columns, self._n_entries = design.codes.shape[1], self.basis.n_numbers - self._n_linear
        begin = np.append(design.terms.columns[:, 6], self._n_entries)
        self._most: int = int(np.diff(begin).max(initial=1))
        self._begin = launcher.copy_in(begin.astype(np.int64))
        # the kernels of codes are the same for all variants
        self._run = Launcher(launcher.device, Variant(False, False, launcher.variant.real))
        all_rows = len(design.codes) <= SPARSE_SPAN * len(rows)
        self._codes = launcher.copy_in(design.codes if all_rows else design.codes[rows], n_threads)
        self._rows = launcher.copy_in(as_int32(rows)) if all_rows else None

    def multiply(self, w: DeviceArray, out: DeviceArray) -> None:
        if self._features is None:
            self._run("take", None, None, self.n_rows, out, work=self.n_rows)
        else:
            self._features.multiply(w.part(0, self._n_linear), out)
        if self._n_entries:
            table, capacity = w.part(self._n_linear, w.size), self._capacity
            arguments = *self._arguments, table, capacity, out
            shared = min(capacity, self._n_entries)
            self._run("add_values", *arguments, n_blocks=self._n_blocks(LANES * self.n_rows), shared=shared)

    def accumulate(self, u: DeviceArray, out: DeviceArray) -> None:
        if self._features is not None:
            self._features.accumulate(u, out.part(0, self._n_linear))
        if self._n_entries:
            run, width, n_parts = self._run, self._width, self._n_parts
            parts = run.scratch("parts of histograms", n_parts * self._n_entries)
            n_blocks = min(run.device.n_large_blocks, -(-n_parts * self._n_columns // width))
            arguments = *self._arguments, u, n_parts, width, self._most, parts
            run("sum_by_code", *arguments, n_blocks=n_blocks, shared=width * self._most)
            run.add_rows(parts, n_parts, self._n_entries, out.part(self._n_linear, self._n_linear + self._n_entries))

    def additions(self) -> int:
        of_features = 0 if self._features is None else self._features.additions()
        n_threads, n_parts = self._run.n_threads, self._n_parts
        of_parts = -(-n_parts * LANES // n_threads) + n_threads // LANES
        # a variable's derivative is the sum over the levels above its step
        return max(of_features, -(-self.n_rows // n_parts) + of_parts + self._most)

    # -- private methods ---------------------------------------------------------------------------------------------

    @property
    def _arguments(self) -> tuple[Argument, ...]:
        return self._codes, self._rows, self._n_columns, self._begin, self.n_rows

    @property
    def _capacity(self) -> int:
        """How many float64 values the shared memory of a block holds if ``n_large_blocks`` blocks run at a time."""
        return max(self._most, self._run.device.large_block_bytes // 8)

    @property
    def _width(self) -> int:
        """Number of threads of a block that keep a histogram each: if large, a multiple of the number of banks."""
        width = max(1, min(self._run.n_threads, self._capacity // self._most))
        return width - width % BANKS if width > BANKS else width

    @property
    def _n_parts(self) -> int:
        """Number of parts of the rows, so that all threads of the device have one column of one part."""
        wanted: int = -(-self._run.device.n_large_blocks * self._width // max(1, self._n_columns))
        return max(1, min(wanted, self.n_rows // PART_ROWS))

    def _n_blocks(self, work: int) -> int:
        return max(1, min(self._run.device.n_large_blocks, -(-work // self._run.n_threads)))


class CodedTerm(DeviceTerm):
    """``loss(Z w)`` of an additive model on a device, with scores, pairs and gradients; the host computes Hessians.

    Parameters
    ----------
    device : Device
        The device.
    design : AdditiveDesign
        The features and the codes of their levels.
    loss : SquaredHinge, HuberHinge or Hinge
        The loss over pairs of its rows.
    n_threads : int
        Number of threads for work on the host.
    on_devices : dict, optional
        For each device, by its name: the features there, for the same pairs. Those of this device are added if missing.
    """

    def __init__(
        self,
        device: Device,
        design: AdditiveDesign,
        loss: PairwiseLoss,
        n_threads: int = 1,
        on_devices: dict[str, FeatureRows] | None = None,
    ):
        pairs = loss.pairs
        listed, linear = hasattr(pairs, "pair_pointers"), design.terms.linear
        sparse = linear and not design.features.dense
        real = "float" if linear and design.features.dtype == np.float32 else "double"
        run = Launcher(device, Variant(listed, sparse, real))
        order = order_on_device(pairs)
        taken = order.rows_of(pairs)
        features = _features_on(run, design, taken, n_threads, {} if on_devices is None else on_devices)
        rows = CodedRows(features, run, design, taken, n_threads)
        # only products are computed there: methods that read single rows are overridden
        super().__init__(device, design, loss, n_threads, cast(DenseRows, rows), order, rows.basis)
        self.design: AdditiveDesign = design
        self._n_threads = n_threads

    def score_gradient(self, at: DevicePoint) -> np.ndarray:
        """Derivative of the loss by the score of each row: see `ThreadedTerm.score_gradient`."""
        found = np.zeros(self.n_rows)
        if self.n_rows:
            slopes = self._run.scratch("slopes", self.n_rows)
            self._evaluate_loss(at.scores, at.width, slopes, self._results.part(0, LOSS_COLUMNS))
            if self._long is not None:
                self._long.put(self._long_at(at).slopes, slopes)
            found[self._order.positions] = self.device.copy_out(slopes.part(0, self.n_rows))
        return found

    def sample_at(self, at: DevicePoint, n_rows: int, seed: int) -> tuple[ThreadedTerm, ThreadedPoint]:
        """A term of the host over some of the rows, or all: see `ThreadedTerm.sample_at`."""
        scores = np.empty(self.n_rows)
        scores[self._order.positions] = self.device.copy_out(at.scores.part(0, self.n_rows))
        if n_rows >= self.n_rows or self.weight <= 0.0:
            return self._on_host, self._on_host.point_at(scores, at.width)
        return self._on_host.sample_at(ThreadedPoint(scores, None, at.width), n_rows, seed)

    def curvature(self, at: DevicePoint, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        n_rows = self.n_rows if fraction >= 1.0 else int(fraction * self.n_rows) + 1
        term, there = self.sample_at(at, n_rows, seed)
        curvature = term.curvature(there, 1.0, seed, double)
        curvature *= self._represented(term)
        return curvature

    def curvature_diagonal(self, at: DevicePoint) -> np.ndarray:
        term, there = self.sample_at(at, DIAGONAL_ROWS, SEED)
        return self._represented(term) * term.curvature_diagonal(there)

    def _represented(self, term: ThreadedTerm) -> float:
        """The number of pairs that a pair of a sample represents."""
        return self.weight / term.weight if term.weight > 0.0 else 1.0

    def _drawn(self, n_rows: int, seed: int) -> DeviceSample:
        pairs, positions = self.pairs.sample(n_rows, seed)
        term = CodedTerm(self.device, self.design, self.loss.with_pairs(pairs), self._n_threads)
        places = self._run.copy_in(self._places[positions[term._order.positions]])
        return DeviceSample(term, places, (n_rows, seed))

    @cached_property
    def _on_host(self) -> ThreadedTerm:
        """The same term on the host."""
        return ThreadedTerm(self.design, self.loss, self._n_threads)


def _features_on(
    run: Launcher, design: AdditiveDesign, rows: np.ndarray, n_threads: int, known: dict[str, FeatureRows]
) -> FeatureRows | None:
    """The rows of the linear part, with scratch memory of their own; None without a linear part."""
    if not design.terms.linear:
        return None
    name = run.device.name
    if name not in known:
        # without blocks, so that all rows stay on the device
        known[name] = cast(FeatureRows, rows_on(run.again(), design.features, rows, None, n_threads))
    return known[name].taken(np.arange(len(rows)))
