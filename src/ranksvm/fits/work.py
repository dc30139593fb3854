"""Work of a fit, computed from the sizes of its data, and the estimated time on the CPU and on a GPU."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ranksvm.data import PairList
from ranksvm.device.calibration import DeviceCosts
from ranksvm.device.protocol import Variant
from ranksvm.losses import LossSpec, Pairs
from ranksvm.terms.device.layout import OTHER_BYTES
from ranksvm.terms.device.long_queries import is_long

if TYPE_CHECKING:
    from ranksvm.additive import AdditiveDesign

__all__ = ["Rows", "Work", "additive_work", "feature_work", "kernel_work", "linear_work"]

# Number of passes over X in a fit, for evaluations and for products with the Hessian: a constant plus a number for each
# feature. Above FEW_ROWS rows, the latter decreases with their number. Counted in fits to 1,000 to 400,000 x 10 to 400
# synthetic features with C = 1 and 0.001 and the default tolerance: 12 to 92 passes and 1 to 3 explicit Hessians for
# smooth losses, 20 to 1,100 passes and 1 to 34 explicit Hessians for the hinge.
SMOOTH, HINGE = (12.0, 0.1), (25.0, 1.0)
FEW_ROWS, MAX_FEATURES = 2e4, 1000
PASSES_OF_HESSIAN = 6.0
# Maximum number of rows for each variable of an explicit Hessian, and maximum number of its variables
# (hessian_cost.py).
HESSIAN_ROWS, HESSIAN_VARIABLES = 500, 2000
# Seconds on one core of an AMD EPYC, measured with lists of 20 to 1,000 documents. A pass takes CPU_PASS, plus CPU_BYTE
# for each byte of X and CPU_ROW for each row; a multiplication while a Hessian is built takes CPU_MULTIPLICATION. Fits
# of 10,000 to 400,000 x 10 to 136 features then take 0.7 to 1.6 times the estimate. A byte takes the same time on a
# Xeon (PRODUCT_BYTE and MEMORY_BYTE of hessian_cost.py).
CPU_PASS, CPU_BYTE, CPU_ROW, CPU_MULTIPLICATION = 4e-5, 1.0e-10, 1.7e-8, 3.5e-11
# n threads are n**THREADS times as fast: two took 0.5 to 0.73 of the time of one for 400,000 rows, and 16 took 0.14 to
# 0.24 of the time of two for 500,000 to 2,300,000 rows (times of solvers in benchmarks/results/gpu.md).
THREADS = 0.77

# The same for additive models: passes for smooth losses and for the hinge, and CPU seconds for each byte of X and of
# the codes. CODED_READ_RATIO: the READ_RATIO (see below) of additive models. (For 720,033 x 136 float32 features of 32
# levels an evaluation took 130 and 25 ms on 2 and 16 threads of a Xeon, and 1.5 ms on an H100; fits with the squared
# hinge took 27 passes.)
SMOOTH_ADDITIVE, HINGE_ADDITIVE = 25.0, 60.0
CPU_CODED_BYTE, CODED_READ_RATIO = 2.7e-10, 10.0

# Products with the kernel matrix Q of an exact fit: 23 to 514 on MQ2008, 85 to 340 on MQ2007.
PRODUCTS = 100.0
# CPU_VALUE: CPU seconds of a product with Q for each value of Q. With 30,117 rows, a product with the stored
# triangle took 43 ms on two threads. CPU_MADE and CPU_MADE_FEATURE: CPU seconds to compute a value of the triangle, and
# in addition for each feature. On two threads the triangle took 2.9 s for an rbf kernel of 46 features, and 0.76 s for
# a cosine (benchmarks/results/kernel_product.md).
CPU_VALUE, CPU_MADE, CPU_MADE_FEATURE = 9.5e-11, 9e-9, 7e-11
# Seconds that an exact fit takes in addition, which more threads hardly reduce: on the CPU, CPU_KERNEL times a power of
# the number of rows; on the host of a GPU, GPU_KERNEL_ROW for each row. On an H100 and 16 threads of a Xeon, fits of
# 500 to 10,000 rows took 0.04 to 1.3 s on the CPU and 0.04 to 0.4 s on the GPU (benchmarks/results/gpu.md).
CPU_KERNEL, CPU_KERNEL_POWER, GPU_KERNEL_ROW = 5.2e-6, 1.36, 4e-5

# Costs on a GPU, as multiples of those that `device/calibration.py` measures. READ_RATIO: reading X in an evaluation,
# as a multiple of a plain reading. VISIT_RATIO: the computation for a pair with its level and weights ("visit"), as a
# multiple of a plain visit. Not yet measured: MULTIPLICATION, of float64, as a multiple of a plain visit; and
# EXPONENTIAL, as a multiple of a multiplication. COMPILATION and COMPILATION_OF_KERNELS: the compilation for a fit, as
# a multiple of the compilation for the calibration. They took 0.75 and 1.6 s, compared with 0.15 to 0.18 s (without a
# GPU, on a core of the EPYC).
READ_RATIO, VISIT_RATIO, MULTIPLICATION, EXPONENTIAL = 1.5, 2.7, 0.25, 20.0
COMPILATION, COMPILATION_OF_KERNELS = 5.0, 10.0
# Additional seconds of a fit on a GPU, apart from the copy of X: per fit, and for each row. These values, READ_RATIO
# and VISIT_RATIO were chosen to match the times of evaluations and of fits to 1,000 to 1,000,000 rows, on an H100 and a
# Xeon.
PREPARATION, PREPARATION_OF_ROW = 2.4e-4, 6.6e-8
# Share of the free memory that X may take to stay there (terms/device/layout.py).
RESIDENT_SHARE = 0.8


class Rows(Protocol):
    """The sizes of a design matrix that determine the work."""

    @property
    def n_features(self) -> int: ...
    @property
    def row_bytes(self) -> float: ...
    @property
    def dense(self) -> bool: ...
    @property
    def dtype(self) -> np.dtype: ...


class Work(NamedTuple):
    """The work of a fit.

    Attributes
    ----------
    cpu : float
        Seconds on one thread of the CPU, of work that threads share.
    cpu_serial, gpu_serial : float
        Seconds of work on the host that threads do not share: of a fit on the CPU, and of a fit on a GPU.
    passes : float
        Number of passes over the data, each of which is a round of launches of kernels.
    read, moved : float
        Bytes that a GPU reads in a pass, and bytes that are copied to the GPU and back in a pass.
    visits : float
        Number of times that pairs are visited in all passes, including other work in this unit.
    rows : float
        Number of rows that the host puts in the order of the GPU.
    resident : float
        Bytes that should stay on the GPU.
    copied, visits_to_compute_resident : float
        Bytes of the resident data that are copied to the GPU; and the work of computing the other resident data there,
        expressed as the number of visits of pairs that take as long.
    streams : bool
        Whether the resident data, if they do not fit, may be copied or computed again in every pass.
    variant : Variant
        Variant of the kernels.
    kernel : str
        The kernel that takes longest to compile.
    """

    cpu: float
    cpu_serial: float
    gpu_serial: float
    passes: float
    read: float
    moved: float
    visits: float
    rows: float
    resident: float
    copied: float
    visits_to_compute_resident: float
    streams: bool
    variant: Variant
    kernel: str

    def repeated(self, n_fits: int) -> "Work":
        """The work of several fits to the same data, which are copied to the GPU once.

        Parameters
        ----------
        n_fits : int
            Number of fits.

        Returns
        -------
        Work
            The work.
        """
        return self._replace(
            cpu=n_fits * self.cpu,
            cpu_serial=n_fits * self.cpu_serial,
            gpu_serial=n_fits * self.gpu_serial,
            passes=n_fits * self.passes,
            visits=n_fits * self.visits,
        )

    def on_cpu(self, n_threads: int) -> float:
        """Estimated seconds on the CPU.

        Parameters
        ----------
        n_threads : int
            Number of threads.

        Returns
        -------
        float
            Seconds.
        """
        return self.cpu_serial + self.cpu / float(n_threads**THREADS)

    def on_gpu(self, costs: DeviceCosts, free: float = np.inf, compiled: bool = True) -> float:
        """Estimated seconds on a GPU, without the time to open it.

        Parameters
        ----------
        costs : DeviceCosts
            The costs measured on the GPU.
        free : float
            Bytes of its memory that are free.
        compiled : bool
            Whether the kernels are compiled.

        Returns
        -------
        float
            Seconds; infinite if its memory is too small.
        """
        fits = self.resident <= RESIDENT_SHARE * free
        if not fits and not self.streams:
            return np.inf
        ratio = COMPILATION_OF_KERNELS if self.kernel == "pair_values" else COMPILATION
        of_pass = costs.round + costs.read_byte * self.read + costs.copy_byte * self.moved
        put_there = costs.copy_byte * self.copied + costs.visit * self.visits_to_compute_resident
        return (
            PREPARATION
            + self.gpu_serial
            + PREPARATION_OF_ROW * self.rows
            + self.passes * of_pass
            + costs.visit * self.visits
            + put_there * (1.0 if fits else self.passes)
            + (0.0 if compiled else ratio * costs.compilation)
        )


def linear_work(loss: LossSpec, pairs: Pairs, design: Rows) -> Work:
    """The work of a fit of a linear model.

    Parameters
    ----------
    loss : LossSpec
        The loss.
    pairs : ComparablePairs or PairList
        The pairs.
    design : Rows
        The features.

    Returns
    -------
    Work
        The work.
    """
    n_rows, n = pairs.n_rows, design.n_features
    size = n_rows * design.row_bytes
    constant, per_feature = HINGE if loss.smoothed else SMOOTH
    passes = constant + per_feature * min(n, MAX_FEATURES) * min(1.0, FEW_ROWS / max(1, n_rows))
    multiplications = 0.0
    if n <= HESSIAN_VARIABLES:
        multiplications = passes / PASSES_OF_HESSIAN * min(n_rows, HESSIAN_ROWS * n) * float(n) ** 2
    listed = isinstance(pairs, PairList)
    device_bytes = size if design.dense else 2.0 * size  # a sparse X is stored by rows and by columns
    variant = Variant(listed, not design.dense, "float" if design.dtype == np.float32 else "double")
    return Work(
        cpu=passes * (CPU_PASS + CPU_BYTE * size + CPU_ROW * n_rows) + CPU_MULTIPLICATION * multiplications,
        cpu_serial=0.0,
        gpu_serial=0.0,
        passes=passes,
        read=READ_RATIO * size,
        moved=0.0,
        visits=passes * _visits_of_pass(pairs) + MULTIPLICATION * multiplications,
        rows=float(n_rows),
        resident=device_bytes + OTHER_BYTES * n_rows,
        copied=device_bytes,
        visits_to_compute_resident=0.0,
        streams=design.dense,
        variant=variant,
        kernel="fused_loss" if design.dense else "loss",
    )


def additive_work(loss: LossSpec, pairs: Pairs, design: "AdditiveDesign") -> Work:
    """The work of a fit of an additive model, without the levels and codes, which are computed on the CPU.

    Parameters
    ----------
    loss : LossSpec
        The loss.
    pairs : ComparablePairs or PairList
        The pairs.
    design : AdditiveDesign
        The features, with their codes.

    Returns
    -------
    Work
        The work.
    """
    passes = HINGE_ADDITIVE if loss.smoothed else SMOOTH_ADDITIVE
    size, n_rows = pairs.n_rows * design.row_bytes, pairs.n_rows
    features, linear = design.features, design.terms.linear
    again = 0.0 if features.dense or not linear else n_rows * features.row_bytes  # stored by rows and by columns
    real = "float" if linear and features.dtype == np.float32 else "double"
    return Work(
        cpu=passes * (CPU_PASS + CPU_CODED_BYTE * size + CPU_ROW * n_rows),
        cpu_serial=0.0,
        gpu_serial=0.0,
        passes=passes,
        read=CODED_READ_RATIO * size,
        moved=0.0,
        visits=passes * _visits_of_pass(pairs),
        rows=float(n_rows),
        resident=size + again + OTHER_BYTES * n_rows,
        copied=size + again,
        visits_to_compute_resident=0.0,
        streams=False,
        variant=Variant(False, False, real),
        kernel="add_values",
    )


def _visits_of_pass(pairs: Pairs) -> float:
    """Visits of pairs in a pass: each pair is visited from both documents, unless the host handles its query."""
    n_pairs = pairs.n_pairs if isinstance(pairs, PairList) else int(pairs.pairs_per_query[~is_long(pairs)].sum())
    return 2.0 * VISIT_RATIO * n_pairs


def feature_work(loss: LossSpec, pairs: Pairs, features: Rows, n_values: int) -> Work:
    """The work of a fit on features that approximate a kernel, including their computation.

    Parameters
    ----------
    loss : LossSpec
        The loss.
    pairs : ComparablePairs or PairList
        The pairs.
    features : Rows
        The features as they are stored.
    n_values : int
        Number of multiplications that compute one value of a feature.

    Returns
    -------
    Work
        The work.
    """
    fit, values = linear_work(loss, pairs, features), float(pairs.n_rows) * features.n_features
    return fit._replace(
        cpu=fit.cpu + values * (CPU_MADE + CPU_MADE_FEATURE * n_values),
        copied=0.0,
        visits_to_compute_resident=MULTIPLICATION * values * (EXPONENTIAL + n_values),
        streams=False,
        kernel="pair_values",
    )


def kernel_work(n_rows: int, n_features: int, item: int, precomputed: bool) -> Work:
    """The work of an exact fit of a kernel model: computing the kernel matrix Q, and products with Q.

    Parameters
    ----------
    n_rows : int
        Number of rows with pairs.
    n_features : int
        Number of features of a document; ignored for a precomputed matrix.
    item : int
        Bytes of a value of Q.
    precomputed : bool
        Whether the kernel matrix is precomputed.

    Returns
    -------
    Work
        The work.
    """
    values = float(n_rows) ** 2
    computed = 0.0 if precomputed else values
    return Work(
        cpu=PRODUCTS * CPU_VALUE * values + 0.5 * computed * (CPU_MADE + CPU_MADE_FEATURE * n_features),
        cpu_serial=CPU_KERNEL * n_rows**CPU_KERNEL_POWER,
        gpu_serial=GPU_KERNEL_ROW * n_rows,
        passes=PRODUCTS,
        read=item * values,
        moved=16.0 * n_rows,
        visits=0.0,
        rows=float(n_rows),
        resident=item * values,
        copied=item * (values - computed),
        visits_to_compute_resident=MULTIPLICATION * computed * (EXPONENTIAL + n_features),
        streams=True,
        variant=Variant(False, False, "float" if item == 4 else "double"),
        kernel="pair_values",
    )
