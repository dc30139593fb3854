"""Build the problem of a linear model from its data: the data term (its loss), the objective and the solver."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.memory import check_fits
from ranksvm._util.types import CSRMatrix, Features
from ranksvm.data import DesignMatrix, TwoBlockDesign, TwoBlocks, as_design_matrix, partition
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.datasets.file_data import FileData
from ranksvm.device import Device, open_device
from ranksvm.fits.device_choice import DeviceNames, check_place, devices_for, reason_against_gpu
from ranksvm.fits.linear import LinearProblem
from ranksvm.fits.options import LinearOptions, monotone_signs, threads_for
from ranksvm.fits.training_set import TrainingArguments, TrainingSet, training_set
from ranksvm.losses import LossSpec
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.protocol import DataTerm

if TYPE_CHECKING:
    from ranksvm.fits.file_training_set import FileTrainingSet
    from ranksvm.fits.work import Work
    from ranksvm.terms.file import FileTerm

__all__ = ["file_term", "linear_problem", "linear_term", "linear_training_set"]

# A sparse X that stores at least DENSE_PART of all values is converted to a dense array, if the number of bytes of that
# array is in the range DENSE_BYTES. In a pass, a stored value of a sparse row takes 1.4 ns, any value of a dense row
# 0.3 ns. (With 52,000 x 44 values, 40 % of them stored, fits take 0.6 to 0.75 times as long.) Below the range it makes
# no difference.
DENSE_PART = 1 / 3
DENSE_BYTES = 2 << 20, 64 << 20
# Every solver needs at least VECTORS vectors with a number for each feature: the dual takes 2, TRON 11. The memory is
# only looked up for MANY_FEATURES or more.
VECTORS = 2
MANY_FEATURES = 1 << 24


def linear_training_set(training: TrainingArguments, options: LinearOptions) -> "TrainingSet | FileTrainingSet":
    """The training set of a linear model, whose rows are in memory or stay in their file.

    Parameters
    ----------
    training : TrainingArguments
        The arguments of ``fit``, as arrays.
    options : LinearOptions
        The hyper-parameters.

    Returns
    -------
    TrainingSet or FileTrainingSet
        The training set.
    """
    if not isinstance(training.X, FileData):
        return training_set(training, options)
    # imported for files only: a program loads only the modules it uses
    from ranksvm.fits.file_training_set import file_training_set

    return file_training_set(training, options)


def linear_problem(
    data: "TrainingSet | FileTrainingSet",
    options: LinearOptions,
    feature_names: Sequence[str] | None = None,
    n_fits: int = 1,
) -> LinearProblem:
    """The problem that a linear model solves for a training set.

    Parameters
    ----------
    data : TrainingSet or FileTrainingSet
        The training set.
    options : LinearOptions
        The hyper-parameters.
    feature_names : sequence of str, optional
        Names of the features, by which ``monotone`` may name them.
    n_fits : int
        Number of values of C that are solved for, one after another.

    Returns
    -------
    LinearProblem
        The problem.
    """
    _check_weights(data.n_features)
    signs = monotone_signs(options.monotone, data.n_features, feature_names)
    if not isinstance(data, TrainingSet):
        from ranksvm.fits.partitioned import PartitionedProblem

        return PartitionedProblem(file_term(data, options), options, signs)
    term = linear_term(data, options.loss, options.solver, options.device, n_fits)
    return LinearProblem(data, term, options, signs)


def _check_weights(n_features: int) -> None:
    """Refuse so many features that the vectors of any solver do not fit in memory."""
    if n_features < MANY_FEATURES:
        return
    check_fits(
        VECTORS * 8 * n_features,
        None,  # memory_limit has no effect on X in memory
        f"X has {n_features:,} features, counted up to the largest feature number, and a fit needs at least {VECTORS} "
        "numbers for each",
        "If few of them occur, number those consecutively.",
    )


def linear_term(
    data: TrainingSet, loss: LossSpec, solver: str, device: DeviceNames = "cpu", n_fits: int = 1
) -> DataTerm:
    """The data term of a linear model: the loss over the rows as a function of the weights.

    Only this function distinguishes the backends; objectives and solvers use the methods of `DataTerm`.

    Parameters
    ----------
    data : TrainingSet
        Features and pairs.
    loss : LossSpec
        The loss.
    solver : str
        The solver, or "auto". The dual reads single rows of one array in memory, so it needs a `ThreadedTerm`.
    device : str or list of str
        "cpu", the name of a GPU or several, or "auto"; see `check_device`. X that lies on a GPU is used there.
    n_fits : int
        Number of values of C that are solved for, one after another; for "auto".

    Returns
    -------
    DataTerm
        The term, over rows in memory that are divided among threads, or over rows on one or several devices.
    """
    if isinstance(data.X, DeviceFeatures):
        check_place(device, data.X.device.name, reason_against_gpu(solver, loss))
        return _resident_term(data.X, loss, data)
    design = _linear_design(data.X, solver, data.largest)

    def work() -> "Work":
        from ranksvm.fits.work import linear_work  # here, because few fits need it

        return linear_work(loss, data.pairs, design).repeated(n_fits)

    names = devices_for(device, solver, loss, data.n_threads, work)
    if names:
        return _device_term([open_device(name) for name in names], design, loss, data)
    return ThreadedTerm(design, loss.with_pairs(data.pairs), threads_for(loss, data.n_threads))


def file_term(data: "FileTrainingSet", options: LinearOptions) -> "FileTerm":
    """The data term of a linear model whose rows stay in their file.

    Parameters
    ----------
    data : FileTrainingSet
        Features and pairs.
    options : LinearOptions
        The hyper-parameters.

    Returns
    -------
    FileTerm
        The term.

    Raises
    ------
    OptionError
        When there is not enough memory for a part of the file.
    NoComparablePairsError
        When there is no pair.
    """
    from ranksvm.fits.file_training_set import SAMPLE_SHARE, check_sample, file_backend, planned_bytes
    from ranksvm.terms.file import FileTerm

    limit, loss = options.memory_limit, options.loss
    backend = file_backend(data.rows, limit, threads_for(loss, data.n_threads))
    sample_bytes = int(SAMPLE_SHARE * planned_bytes(limit))
    term = FileTerm(backend, loss, data.n_threads, sample_bytes, options.solver != "tron")
    check_sample(int(term.sample_rows * term.row_bytes), limit)
    return term


def _resident_term(X: DeviceFeatures, loss: LossSpec, data: TrainingSet) -> DataTerm:
    """The term of rows that lie on a device."""
    from ranksvm.terms.device.rows import DeviceDesign
    from ranksvm.terms.device.term import DeviceTerm

    return DeviceTerm(X.device, DeviceDesign(X, data.largest), loss.with_pairs(data.pairs), data.n_threads)


def _device_term(devices: list[Device], design: DesignMatrix, loss: LossSpec, data: TrainingSet) -> DataTerm:
    """The term of rows on devices: if there are several, each gets consecutive whole queries."""
    from ranksvm.terms.device.sum import DevicesTerm
    from ranksvm.terms.device.term import DeviceTerm

    if len(devices) == 1:
        return DeviceTerm(devices[0], design, loss.with_pairs(data.pairs), data.n_threads)
    terms = []
    for device, part in zip(devices, partition(data.pairs, len(devices)), strict=True):
        rows = np.arange(part.n_rows) if part.rows is None else part.rows
        terms.append(DeviceTerm(device, design.taken(rows), loss.with_pairs(part.renumbered()), data.n_threads))
    return DevicesTerm(terms)


def _is_nearly_dense(X: CSRMatrix) -> bool:
    """Whether dense rows would be read faster than these sparse ones, and need little memory."""
    if X.shape[0] <= X.shape[1]:
        return False
    n_values = X.shape[0] * X.shape[1]
    fewest, most = DENSE_BYTES
    return X.nnz >= DENSE_PART * n_values and fewest <= n_values * X.dtype.itemsize <= most


def _linear_design(X: Features | TwoBlocks, solver: str, largest: np.ndarray | None) -> DesignMatrix:
    """The design matrix of rows in memory, for a solver.

    The dual reads one array, so two blocks are stacked if it may be used: with solver "dual", or with no more rows than
    features, because then "auto" may choose it.
    """
    if not isinstance(X, TwoBlocks):
        return as_design_matrix(X.toarray() if is_sparse(X) and _is_nearly_dense(X) else X, largest)
    n_rows, n_features = X.shape
    return as_design_matrix(X.stacked()) if solver == "dual" or n_rows <= n_features else TwoBlockDesign(X)
