"""A linear model: its training set, the term of its loss, its optimization problem, and the choice of its solver."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.lazy import cached_property
from ranksvm._util.memory import check_fits, memory_bytes
from ranksvm._util.parameters import LOSSES
from ranksvm._util.threads import one_blas_thread
from ranksvm._util.types import CSRMatrix, Features
from ranksvm.data import DenseDesign, DesignMatrix, SparseDesign, TwoBlockDesign, TwoBlocks, as_design_matrix, partition
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.data.scores import linear_scores
from ranksvm.datasets.file_data import FileData
from ranksvm.device import Device, open_device
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.device_choice import DeviceNames, check_place, devices_for, reason_against_gpu
from ranksvm.fits.options import LinearOptions, monotone_signs, threads_for
from ranksvm.fits.problem import RankSVMProblem
from ranksvm.fits.training_set import TrainingArguments, TrainingSet, training_set
from ranksvm.losses import LossSpec
from ranksvm.objectives import ConstrainedObjective, DualPoint, DualSize, LinearObjective, PairDual
from ranksvm.solvers import SolverResult, Status, dual_ascent, newton, newton_cg, projected_newton
from ranksvm.solvers.cone import SignCone
from ranksvm.terms.hessian_cost import (
    DIFFERENCES,
    Size,
    expected_products_by_cosine,
    hessian_cost,
    mean_squared_cosine,
    no_hessian,
    sampled_fraction,
    worthwhile_fraction,
)
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.protocol import DataTerm

if TYPE_CHECKING:
    from ranksvm.fits.file_training_set import FileTrainingSet
    from ranksvm.fits.work import Work
    from ranksvm.objectives import RowSpaceObjective
    from ranksvm.terms.file import FileTerm

__all__ = [
    "SolverChoice",
    "choose_constrained_solver",
    "choose_solver",
    "file_term",
    "linear_problem",
    "linear_term",
    "linear_training_set",
]

logger = logging.getLogger("ranksvm.fits")

# Epochs of the dual (smooth losses; hinge or given signs) after which "auto" switches to another solver. With smooth
# losses, WikiQA takes at most 300 epochs. With the hinge, 3,000 pairs of embeddings of 1,536 features take 305, 1,725
# and 2,285 at C = 10, 100 and 1,000.
DUAL_EPOCHS = 650, 5000
# Upper limit of the epochs after which another solver takes over. They take about 600 iterations, so that the other
# solver has iterations left before max_iter (1,000). With the hinge and weights of given signs, or after direct steps,
# TRON is much slower, and this is the limit itself. (In 3 of 96 random problems of at most 250 rows, "auto" switched
# from the dual after 665 epochs. TRON then took 1,000 steps and 39 to 47 s without reaching tol, and the dual alone up
# to 3,700 epochs and 0.3 s. Lognormal features, 300 x 1,000, squared hinge, C = 1, where round-off stops direct steps:
# the dual takes 0.2 s; TRON did not reach tol in 1,000 steps and 1.5 s.)
MAX_EPOCHS = 11_450
# For weights of given signs and at least this number of features, "auto" prefers the dual to explicit Hessians if there
# are no more rows than features, and rows have many directions (FEW_DIRECTIONS). (Independent features, labels that do
# not agree with the signs, squared hinge, C = 10: 600 x 1,800 takes 0.05 s with the dual, 5.0 s without, 400 x 600 0.07
# and 24 s. With k^-0.7 and labels that agree with the signs, 400 x 600 takes 0.3 s with the dual, 0.02 s without.)
SIGNED_FEATURES = 300
# If X has no more rows than features, and no more rows than this, direct steps take over from TRON or the dual once
# these are expected to take longer.
DIRECT_ROWS = 4000
# Q and an inverse take at most INVERSE_BYTES for each pair of rows. The free memory is looked up only if that is more
# than FEW_BYTES: it takes 0.25 ms.
INVERSE_BYTES, FEW_BYTES = 48, 1 << 26
# Direct steps are expected to take as long as this number of inverses of the Hessian with all documents: more for the
# hinge, whose smoothing is reduced step by step. (On 13 problems of 200 to 2,000 rows and five values of C, the fits
# that reached tol took, with the squared hinge, at most 2.2 times as long as the faster of TRON and direct steps, the
# median 1.1. With 15 inverses it was 4.2 times at most, with 6 inverses 2.7.)
HINGE_INVERSES, SMOOTH_INVERSES = 40, 8
# With dense rows, direct steps begin at once if conjugate gradients are expected to cost at least DIRECT_SHARE times as
# much as direct steps for the squared hinge, whose second derivative is CURVATURE. (On 12 shapes, TRON took 0.3 to 0.5
# times as long as direct steps where this ratio was at most 0.54, 0.8 to 1.4 times where it was 0.61 to 0.7, and mostly
# longer where it was larger.)
DIRECT_SHARE, CURVATURE = 0.6, 2.0
# Direct steps take over from the dual once it has taken, or is expected to take, DUAL_SHARE times as long as they: near
# the solution the gap falls faster than expected. (600 x 1,800, k^-0.4, squared hinge, C = 10: 19 ms with 2, 46 ms with
# 1, because direct steps took over.)
DUAL_SHARE = 2.0
# The dual is better than direct steps unless rows are correlated; otherwise, a visit to the pairs of a query hardly
# changes the margins of others, and the dual needs few epochs. Rows are correlated if the mean squared cosine of two
# differences is at least FEW_DIRECTIONS, or if the dual is expected to take longer than direct steps. Its expected
# number of epochs is FEW_EPOCHS plus, for each row, this mean times CORRELATION_EPOCHS (if `choose_solver` has chosen
# the dual, and if it has chosen TRON). (With features of the standard deviations k^-0.5, the dual takes 29 to 93 ms for
# 800 x 2,500, 12 to 22 ms for 700 x 1,800 and 6 to 15 ms for 200 x 3,000, direct steps 52 to 72, 31 to 41 and 7 ms.
# With 20 factors and little noise, 80 x 300, the dual does not converge in 300 iterations. With 40 documents in a query
# and k^-0.4, it takes 30 ms for 400 x 600 and 151 ms for 1,500 x 3,000, direct steps 15 and 283 ms.)
FEW_DIRECTIONS, FEW_EPOCHS, CORRELATION_EPOCHS = 1 / 16, 20.0, (7.0, 15.0)
# If round-off stops direct steps at a larger relative gap, TRON does not continue there but begins where the fit began:
# from 0 it first solves for smaller C. (Text of 410 x 410, features of very different scales, C = 1e9: 305 steps from
# 0; from the point of direct steps, 1,000 without convergence.)
NEAR = 1.0
# An epoch of the dual takes as long as reading each row EPOCH_ROW times (sparse, dense), and EPOCH_WORK bytes (smooth
# losses, hinge) for each multiplication of a cycle in which every alpha changes. (With the hinge, this is 0.6 to 1.7
# times the time that epochs of eight problems with 1,000 to 12,000 pairs take. With the squared hinge, epochs of 600 x
# 1,800 take 0.8 and 2.7 ms with 60 and 150 documents in a query, as with 7 and 5 bytes.)
EPOCH_ROW, EPOCH_WORK = (4.5, 0.6), (7.0, 2.8)

# Solver "newton" builds Hessians from the first step on, whatever the conditioning. "auto" uses it in two cases. First,
# if building a Hessian from all rows costs at most as much as this number of products of the Hessian with a vector.
# This is so for up to 57 features, and for 136, isotropic or not. (With 10,000 rows and C = 1e-4 to 100, "newton" takes
# 0.5 to 0.9 times as long as "adaptive", which builds a Hessian only once a Hessian is worth its cost.)
CHEAP_HESSIAN = 14.5
# Second, if a Hessian of all rows costs at most the first of these numbers of products, and a Hessian of a sample costs
# at most the second; this is so for many rows.
CHEAP_SAMPLED_HESSIAN = (17.5, 0.9)
# Solver "auto" uses the dual only if three conditions hold. First: the queries with pairs have at most DUAL_ROWS rows
# for each feature or, with the hinge, HINGE_PAIRS pairs for each feature. (Embeddings, pairs (preferred, other), hinge,
# C = 1, 10 and 100, ms: 900 x 768 takes 22, 89 and 267 with the dual, 141, 332 and 319 without; 3,000 x 1,536 takes
# 236, 939 and 5,193 with the dual, 869, 5,859 and 10,126 without. More pairs can be slow: 2,000 x 1,500, k^-0.7, 20
# documents per query, C = 0.1, takes 6 s without the dual and 11 s if the dual begins.)
DUAL_ROWS, HINGE_PAIRS = 1.0, 2.0
# Second: the dual stores at most DUAL_NUMBERS numbers for each stored value of these rows, which limits its memory.
# Third: a cycle over its pairs takes at most DUAL_WORK multiplications for each stored value (counted as if every alpha
# changed, although most do not).
DUAL_NUMBERS = 4.0
DUAL_WORK = 64.0
# With smooth losses, "auto" uses the dual only if documents have at most this many pairs each. (Milliseconds of one
# thread, synthetic text of 1,000 x 47,000. With 6.6 pairs per document the dual took 5, 6 and 7 at C = 0.01, 1 and 100,
# TRON 11, 36 and 47. With 34 pairs per document it took 22, 24 and 27, TRON 20, 23 and 30. At C = 1e-4 it took 4 and
# 22, TRON 3 and 4.)
DUAL_PAIRS = 8.0
# With no more rows than features, and dense rows that are not correlated, it also uses the dual for up to this number
# of pairs if conjugate gradients would need many products. (C = 1, ms with the dual, direct steps and TRON: 1,500 x
# 3,000, 16 pairs per document, 63, 237 and 864; 600 x 1,800, 24 pairs per document, 19, 28 and 118; 60 pairs per
# document, 63, 39 and 153.)
MANY_DUAL_PAIRS = 24.0
DEFAULT_LOSS = LossSpec(LOSSES[0])

Objective = TypeVar("Objective", bound=LinearObjective)
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
) -> "LinearProblem":
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
    n_features = data.n_features
    _check_n_features(n_features)
    signs = monotone_signs(options.monotone, n_features, feature_names)
    if not isinstance(data, TrainingSet):
        from ranksvm.fits.partitioned import PartitionedProblem

        return PartitionedProblem(file_term(data, options), options, signs)
    term = linear_term(data, options.loss, options.solver, options.device, n_fits)
    return LinearProblem(data, term, options, signs)


def _check_n_features(n_features: int) -> None:
    """Raise an error if there are too many features: every solver keeps vectors of this length in memory."""
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
        "cpu", the name of a GPU or several, or "auto"; see `check_device`. X on a GPU is used there.
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
    design = _linear_design(data, solver, loss)

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
    """The term of an X that is on a device; it is used there."""
    from ranksvm.terms.device.rows import DeviceDesign
    from ranksvm.terms.device.term import DeviceTerm

    return DeviceTerm(X.device, DeviceDesign(X, data.largest), loss.with_pairs(data.pairs), data.n_threads)


def _device_term(devices: list[Device], design: DesignMatrix, loss: LossSpec, data: TrainingSet) -> DataTerm:
    """The term of an X that is copied to devices: if there are several, each gets consecutive whole queries."""
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


def _linear_design(data: TrainingSet, solver: str, loss: LossSpec) -> DesignMatrix:
    """The design matrix of rows in memory, for a solver.

    The dual reads one array, so two blocks are stacked if it may be used: with solver "dual", or with so few rows that
    "auto" may choose it.
    """
    X: Features | TwoBlocks = data.X
    if not isinstance(X, TwoBlocks):
        return as_design_matrix(X.toarray() if is_sparse(X) and _is_nearly_dense(X) else X, data.largest)
    n_rows, n_features = X.shape
    may_use_dual = solver == "dual" or _rows_are_few(n_rows, data.pairs.n_pairs, n_features, loss)
    return as_design_matrix(X.stacked()) if may_use_dual else TwoBlockDesign(X)


class LinearProblem(RankSVMProblem):
    """Minimize ``1/2 |w|^2 + C * loss(X w)`` on one data set, for successive values of C.

    Parameters
    ----------
    data : TrainingSet
        Pairs, labels and options of the fit.
    term : DataTerm
        The loss over these pairs as a function of the weights; see `linear_term`.
    options : LinearOptions
        The hyper-parameters; with solver "auto", the cheapest solver is used.
    signs : ndarray of int64, shape (n_features,), optional
        Sign of each weight, 0 for any; not with stopping "gradient".
    """

    continuation = True

    def __init__(
        self,
        data: TrainingSet,
        term: DataTerm,
        options: LinearOptions,
        signs: np.ndarray | None = None,
    ):
        super().__init__(data, data.pairs, options)
        self.signs = signs
        self._stop_by(options.stopping)
        if self.solver == "direct" and _design_of(term) is None:
            raise OptionError(
                "solver='direct' is for X as one array or sparse matrix in the CPU's memory: use solver='auto'."
            )
        if self.solver == "direct" and signs is not None:
            raise OptionError("solver='direct' is for weights of any sign, without monotone: use solver='auto'.")
        self.device = device_of(term)
        self._dual: PairDual | None = None
        self._solver_was_auto = self.solver == "auto"
        # solver "direct": True: all steps use the inverse of the Hessian; None: steps use it once that costs less
        self._direct = None if self._solver_was_auto else True
        self._direct_may_follow = False  # from TRON or the dual
        self.objective = (
            self._unconstrained_objective(term) if signs is None else self._constrained_objective(term, signs)
        )

    def _unconstrained_objective(self, term: DataTerm) -> LinearObjective:
        """The objective; with solver "auto", also choose the solver."""
        fraction_of: Callable[[Size], float] = worthwhile_fraction
        dual_size = self._dual_size(term)
        design = _design_of(term)
        few_rows = design is not None and term.n_rows <= min(DIRECT_ROWS, term.n_variables)
        if self.solver == "auto":
            self.solver, fraction_of = choose_solver(term, self.loss, dual_size, few_rows)
            self._direct_may_follow = few_rows and self.solver in ("tron", "dual")
        if self.solver == "direct" or self._direct_may_follow:
            from ranksvm.objectives import RowSpaceObjective  # here, because few fits need it

            assert isinstance(term, ThreadedTerm)
            assert design is not None
            memory = FEW_BYTES if INVERSE_BYTES * term.n_rows**2 <= FEW_BYTES else memory_bytes(None)
            return RowSpaceObjective(term, design, 1.0, memory, **self.smoothing)
        return self._with_hessian(LinearObjective(term, 1.0, **self.smoothing, fraction_of=fraction_of))

    def _constrained_objective(self, term: DataTerm, signs: np.ndarray) -> ConstrainedObjective:
        """The objective for weights of given signs; with solver "auto", also choose the solver."""
        chosen = choose_constrained_solver(
            term, self.solver, self.loss, self._dual_size(term), partial(_are_many_directions, term)
        )
        self.solver = chosen.solver
        cone = SignCone(signs)
        return self._with_hessian(
            ConstrainedObjective(term, 1.0, **self.smoothing, fraction_of=chosen.fraction_of, cone=cone)
        )

    def _with_hessian(self, objective: Objective) -> Objective:
        """The objective; OptionError if the solver needs an explicit Hessian, and this objective cannot build one."""
        if self.solver == "newton" and objective.hessian_fraction == 0.0:
            term = objective.term
            raise OptionError(
                "solver='newton' builds a dense Hessian of n_features^2 numbers, too large for "
                f"{term.n_variables} features{'' if term.dense else ' of sparse X'}: use solver='tron' or 'auto'."
            )
        return objective

    def _dual_size(self, term: DataTerm) -> Callable[[], DualSize] | None:
        """A function that computes the size of the dual; None if it cannot be solved (an error for solver "dual")."""
        if self.loss.name not in PairDual.supported_losses:
            if self.solver == "dual":
                losses = ", ".join(map(repr, PairDual.supported_losses))
                given = repr(self.loss.name) if self.loss.function is None else "one of your own"
                raise OptionError(f"solver='dual' is for the losses {losses}, not for {given}: use solver='auto'.")
            return None
        return None if _design_of(term) is None else lambda: self._counts_of_dual

    @cached_property
    def _counts_of_dual(self) -> DualSize:
        return DualSize.of(self.pairs)

    def _method(self, warm: bool) -> Callable[..., SolverResult]:
        if self.solver == "direct":
            return partial(newton_cg, warm_start=warm, direct=self._direct)
        if self.solver == "tron" and self._direct_may_follow:
            most = self._cost_of_direct_steps(self._n_inverses) / self._row_space.product_cost()
            return partial(super()._method(warm), most_products=most)
        return super()._method(warm) if self.signs is None else partial(projected_newton, warm_start=warm)

    def _solve(
        self, C: float, start: np.ndarray | None, interrupted: threading.Event | None, point: Any
    ) -> SolverResult:
        """The solution for one C; the solver starts at the variables (dual: alpha) or point of another one, if given.

        If the solver that "auto" has chosen takes too long, direct steps take over if there are few rows and no signs,
        else a solver with explicit Hessians, if these are worth their cost, or TRON. If round-off stops direct steps
        near the solution, TRON continues there. If it stops them far from the solution, the next solver is the dual, if
        that is possible, or else TRON. The dual continues where it had stopped, if it has run; TRON begins where the
        fit began.
        """
        if self._direct_may_follow and point is None and (start is None or self.solver == "tron"):
            with one_blas_thread():
                self._choose_for_few_rows(max(C, self.largest_C), start)
        result = before = self._solve_alone(C, start, interrupted, point)
        first = self.solver
        begin: np.ndarray | None = None if first == "dual" else start if point is None else point.w
        if self._direct_may_follow and not self._is_done(result):
            # From a point with few active pairs, every step may end at a kink: direct steps begin where the fit began.
            # (600 x 1,800, five levels, C = 1: 76 steps from such a point, 6 from 0.)
            self._direct, self._direct_may_follow = True, False
            result = self._continue_with("direct", C, begin, interrupted, result)
        near = result.relative_gap <= (before.relative_gap if first == "dual" else NEAR)
        round_off = self._solver_was_auto and self.solver == "direct" and not near and not self._is_done(result)
        if round_off and self._dual_is_possible(np.inf):
            result = self._continue_with("dual", C, before.alpha, interrupted, result)
        if self._solver_was_auto and self.solver in ("dual", "direct") and not self._is_done(result):
            w = begin if self.solver == "direct" and not near else result.w
            result = self._continue_with(self._primal_solver, C, w, interrupted, result)
        return result

    @property
    def _primal_solver(self) -> str:
        """The solver that replaces the dual; it starts from weights."""
        by_hessian = "adaptive" if self.signs is None else "newton"
        return by_hessian if self.objective.hessian_fraction > 0.0 else "tron"

    def _choose_for_few_rows(self, C: float, start: np.ndarray | None) -> None:
        """Choose between TRON, the dual and direct steps for values up to C, from the differences of a few dense rows.

        `choose_solver` has chosen TRON or the dual, by the size of the data. (With a dense X, it chooses direct steps
        at once for losses without a dual.) The dual is kept if rows are not correlated. Otherwise, if conjugate
        gradients are expected to need few products, TRON is used, but with the hinge the solver stays. If they are
        expected to need many, direct steps are used, or the dual if rows are not correlated, there are at most
        MANY_DUAL_PAIRS pairs per row, and there is no start.
        """
        term, found = self.objective.term, _directions(self.objective.term)
        if found is None:
            return
        differences, squared_cosine = found
        direct = self._cost_of_direct_steps(SMOOTH_INVERSES)
        few_pairs = self.solver == "dual"
        n_epochs = FEW_EPOCHS + CORRELATION_EPOCHS[not few_pairs] * squared_cosine * term.n_rows
        independent = squared_cosine < FEW_DIRECTIONS and n_epochs * self._epoch_cost() < direct
        if few_pairs and independent:
            return
        # the mean of the diagonal of the Hessian if all pairs are active
        diagonal = 1.0 + C * CURVATURE * self.pairs.weight * float(np.mean(np.square(differences)))
        n_products = expected_products_by_cosine(
            squared_cosine, term.n_variables, 1.0 / diagonal, term.n_rows, -np.log(self.tol)
        )
        cost = n_products * self._row_space.product_cost()
        if cost < DIRECT_SHARE * direct:
            if not self.loss.smoothed:  # at small C, TRON is faster than the dual, except with the hinge
                self.solver = "tron"
        elif independent and start is None and self._dual_is_possible(MANY_DUAL_PAIRS):
            self.solver = "dual"
        else:
            self.solver, self._direct, self._direct_may_follow = "direct", True, False

    def _dual_is_possible(self, most_pairs: float) -> bool:
        """Whether the problem has a dual that is not too large, with at most this number of pairs per document."""
        term = self.objective.term
        size = self._dual_size(term)
        return size is not None and _dual_is_cheap(term, self.loss, size(), most_pairs)

    def _is_done(self, result: SolverResult) -> bool:
        """Whether no other solver should continue."""
        if result.status in (Status.CONVERGED, Status.INTERRUPTED) or result.n_iter >= self.max_iter:
            return True
        # With the hinge, only the dual has no smoothing, and so the least round-off. (In 47 random problems in which
        # round-off stopped it, direct steps and TRON ended at larger gaps.)
        return self.solver == "dual" and result.status is Status.PRECISION and self.loss.smoothed

    def _continue_with(
        self, solver: str, C: float, start: np.ndarray | None, interrupted: threading.Event | None, before: SolverResult
    ) -> SolverResult:
        """Run another solver, which is also used for later values of C, and append its trace to the trace so far.

        If it is interrupted, or stops at max_iter, at a higher objective, the result before is kept.
        """
        line = "%s stopped at relative gap %.2e: %s follows"
        logger.info(line, self.solver, before.relative_gap, solver)
        last, self.solver, self._dual = self.solver, solver, None
        result = self._solve_alone(C, start, interrupted, n_before=before.n_iter).after(before)
        if result.value > before.value and result.status is not Status.CONVERGED and self._is_done(result):
            self.solver = last
            result = replace(before, n_iter=result.n_iter, status=result.status, history=result.history)
        result.history.objective[-1], result.history.duality_gap[-1] = result.value, result.gap
        return result

    def _solve_alone(
        self,
        C: float,
        start: np.ndarray | None,
        interrupted: threading.Event | None,
        point: Any = None,
        n_before: int = 0,
    ) -> SolverResult:
        """The result of the current solver, after ``n_before`` iterations of others."""
        max_iter = self.max_iter - n_before
        if self.solver == "dual":
            return self._solve_dual(C, start, interrupted, point, max_iter)
        if self.loss.smoothed and point is not None and (self.solver == "direct" or self.newton is not newton):
            # At the narrow width of another solution, direct steps and steps of additive models are short. (Direct
            # steps, six paths of 12 values of C, CPU seconds: 6.0 at this width, 2.3 at the warm width; with four
            # values, each 30 times the last one, 4.9 and 1.5. Additive models, 15 values of C: MQ2008 82 and 15,
            # OHSUMED 30 and 11.)
            start, point = point.w, None
        with self._solver_from(C, start, interrupted, point) as solver:
            result = solver(max_iter=max_iter)
        result.width = self.objective.width
        return result

    def _solve_dual(
        self,
        C: float,
        start: np.ndarray | None,
        interrupted: threading.Event | None,
        last: DualPoint | None,
        max_iter: int,
    ) -> SolverResult:
        if self._dual is None:
            design, width = _design_of(self.objective.term), self.loss.width or 0.0
            assert design is not None
            cone = None if self.signs is None else SignCone(self.signs)
            self._dual = PairDual(design, self.pairs, self.loss.name, width, C, cone, self.n_threads)
        dual = self._dual
        dual.reweight(C)
        with one_blas_thread():
            point = dual.evaluate(start if last is None else last.alpha)
            result = dual_ascent(
                dual,
                point,
                tol=self.tol,
                max_iter=max_iter,
                max_epochs=self._dual_epochs(),
                interrupted=interrupted,
            )
            w = np.zeros_like(result.w) if dual.learned_nothing(point) else result.w.copy()
        # copied, so that the result shares no array with the point
        return replace(result, w=w, alpha=point.alpha.copy(), width=self.loss.width)

    def _dual_epochs(self) -> float:
        """The number of epochs after which another solver takes over from the dual; infinite if the user chose it."""
        if not self._solver_was_auto:
            return float("inf")
        if self._direct or (self.signs is not None and self.loss.smoothed):
            return MAX_EPOCHS
        if not self._direct_may_follow:
            return DUAL_EPOCHS[self.loss.smoothed or self.signs is not None]
        return float(min(MAX_EPOCHS, DUAL_SHARE * self._cost_of_direct_steps(self._n_inverses) / self._epoch_cost()))

    def _epoch_cost(self) -> float:
        """The expected time of an epoch of the dual, as a number of bytes to read."""
        dual, term = self._counts_of_dual, self.objective.term
        work = EPOCH_WORK[self.loss.smoothed] * dual.work
        return float(EPOCH_ROW[term.dense] * term.row_bytes * dual.n_rows + work)

    @property
    def _n_inverses(self) -> float:
        return HINGE_INVERSES if self.loss.smoothed else SMOOTH_INVERSES

    def _cost_of_direct_steps(self, n_inverses: float) -> float:
        """The expected time of direct steps that compute this number of inverses, as a number of bytes to read."""
        objective = self._row_space
        # a step evaluates the objective, and applies the Hessian and its inverse
        step = objective.largest_inverse_cost() + 3.0 * objective.product_cost()
        return n_inverses * step + objective.gram_cost()

    @property
    def _row_space(self) -> "RowSpaceObjective":
        return cast("RowSpaceObjective", self.objective)

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        return linear_scores(X, w, self.n_threads)

    def start_from(self, coef: np.ndarray, alpha: np.ndarray | None) -> np.ndarray | None:
        """The weights or the dual variables of an earlier solution as a starting point; None to start at 0.

        If "auto" has chosen the dual, but the earlier solution has no dual variables, another solver replaces the dual,
        unless weights have given signs.

        Raises DataError if the number of weights differs from the number of features.
        """
        n_features = self.objective.n_variables
        if coef.shape != (n_features,):
            raise DataError(f"warm_start: the last fit had {len(coef)} features, X has {n_features}.")
        if self.solver == "dual" and self._solver_was_auto and self.signs is None and alpha is None:
            # the dual cannot start from weights; with signs, it is much faster even so
            self.solver = self._primal_solver
        if self.solver != "dual":
            return coef
        return alpha if alpha is not None and len(alpha) == self.pairs.n_pairs else None

    def _origin(self) -> np.ndarray:
        return np.zeros(self.objective.n_variables)


def device_of(term: DataTerm) -> str | list[str]:
    """The device, or the devices, that compute a data term.

    Parameters
    ----------
    term : DataTerm
        A term from `linear_term`.

    Returns
    -------
    str or list of str
        "cpu", the name of a device, or the names of several.
    """
    names = getattr(term, "device_names", ["cpu"])
    return names if len(names) > 1 else names[0]


def _design_of(term: DataTerm) -> DenseDesign | SparseDesign | None:
    """The design matrix of rows in memory; None if they are elsewhere, in two arrays, or computed on access."""
    design = term.design if isinstance(term, ThreadedTerm) else None
    return design if isinstance(design, DenseDesign | SparseDesign) else None


class SolverChoice(NamedTuple):
    """A solver and its settings.

    Attributes
    ----------
    solver : str
        "newton", "adaptive", "tron", "dual" or "direct".
    fraction_of : callable
        Takes the `Size` of the data, and returns the fraction of the rows that explicit Hessians use. It is a function
        because solvers may begin with a sample, whose size differs.
    """

    solver: str
    fraction_of: Callable[[Size], float]


def choose_solver(
    size: Size,
    loss: LossSpec = DEFAULT_LOSS,
    dual_size: Callable[[], DualSize] | None = None,
    few_rows: bool = False,
) -> SolverChoice:
    """The solver that is expected to be the fastest, or nearly so, for any C and conditioning.

    Newton's method if Hessians cost little compared with products; else the dual if there are so few rows and pairs
    that it is the cheaper problem; else TRON or Newton steps if there are fewer rows than features, with inverses in
    the span of the rows once these are worth their cost; else TRON if there are more than 2,000 features; otherwise
    conjugate gradients, followed by Newton's method once Hessians are worth their cost.

    With ``few_rows`` and a dense X, `LinearProblem` chooses again once it knows C, from the differences of a few rows.

    Parameters
    ----------
    size : Size
        Size of the data.
    loss : LossSpec
        The loss.
    dual_size : callable, optional
        Computes the size of the dual, if the problem has one that can be solved; called only if it matters.
    few_rows : bool
        Whether X is one array or sparse matrix with no more rows than features, and few enough rows for direct steps.

    Returns
    -------
    SolverChoice
        The solver and its settings.
    """
    if _hessians_are_cheap(size):
        return SolverChoice("newton", worthwhile_fraction)
    if dual_size is not None and _dual_is_cheap(size, loss, dual_size()):
        return SolverChoice("dual", sampled_fraction)
    if few_rows:
        # Steps of a loss without kinks need few products. (Logistic loss, C = 1: 600 x 1,800, one list, 51 ms, TRON
        # 263 ms; but text of 1,000 x 47,700, one list, 29 ms, TRON 15 ms.)
        return SolverChoice("direct" if size.dense and dual_size is None else "tron", no_hessian)
    return SolverChoice("adaptive" if sampled_fraction(size) > 0.0 else "tron", sampled_fraction)


def choose_constrained_solver(
    size: Size,
    solver: str = "auto",
    loss: LossSpec = DEFAULT_LOSS,
    dual_size: Callable[[], DualSize] | None = None,
    many_directions: Callable[[], bool] = lambda: False,
) -> SolverChoice:
    """The solver for weights of given signs, by explicit Hessians, by products with the Hessian, or by the dual.

    Parameters
    ----------
    size : Size
        Size of the data.
    solver : str
        "newton", "tron", "dual", or "auto": explicit Hessians if they are worth their cost, else the dual if it is the
        cheaper problem. With many features in many directions, the dual comes first.
    loss, dual_size : LossSpec, callable
        As in `choose_solver`.
    many_directions : callable
        Whether the differences of a few rows have many directions; called only if it matters.

    Returns
    -------
    SolverChoice
        The solver and its settings.
    """
    if solver == "auto":
        dual = dual_size is not None and _dual_is_cheap(size, loss, dual_size())
        hessian = worthwhile_fraction(size) > 0.0
        if dual and hessian:
            dual = size.n_variables >= max(SIGNED_FEATURES, size.n_rows) and many_directions()
        solver = "dual" if dual else "newton" if hessian else "tron"
    return SolverChoice(solver, worthwhile_fraction if solver in ("newton", "dual") else no_hessian)


def _directions(term: DataTerm) -> tuple[np.ndarray, float] | None:
    """Differences of a few dense rows, and their mean squared cosine; None if it is not known."""
    differences = term.differences(DIFFERENCES) if term.dense else None
    squared_cosine = None if differences is None else mean_squared_cosine(differences)
    return None if differences is None or squared_cosine is None else (differences, squared_cosine)


def _are_many_directions(term: DataTerm) -> bool:
    found = _directions(term)
    return found is not None and found[1] < FEW_DIRECTIONS


def _hessians_are_cheap(size: Size) -> bool:
    fraction = worthwhile_fraction(size)
    of_all, of_sample = hessian_cost(size, 1.0), hessian_cost(size, fraction)
    most_of_all, most_of_sample = CHEAP_SAMPLED_HESSIAN
    return fraction > 0.0 and (of_all <= CHEAP_HESSIAN or (of_all <= most_of_all and of_sample <= most_of_sample))


def _dual_is_cheap(size: Size, loss: LossSpec, dual: DualSize, most_pairs: float = DUAL_PAIRS) -> bool:
    # a stored value takes 8 bytes, or somewhat more or less
    stored = dual.n_rows * size.row_bytes / 8.0
    few_pairs = loss.smoothed or dual.n_pairs <= most_pairs * dual.n_rows
    few_rows = _rows_are_few(dual.n_rows, dual.n_pairs, size.n_variables, loss)
    return few_pairs and few_rows and dual.n_numbers <= DUAL_NUMBERS * stored and dual.work <= DUAL_WORK * stored


def _rows_are_few(n_rows: int, n_pairs: int, n_features: int, loss: LossSpec) -> bool:
    return n_rows <= DUAL_ROWS * n_features or (loss.smoothed and n_pairs <= HINGE_PAIRS * n_features)
