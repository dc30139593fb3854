"""The optimization problems of kernel models: exact, or linear with features that approximate a kernel."""

import logging
import threading
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.lazy import cached_property
from ranksvm._util.memory import memory_bytes
from ranksvm._util.threads import one_blas_thread
from ranksvm._util.types import Features
from ranksvm._util.verbosity import PASSING
from ranksvm.data import TwoBlocks
from ranksvm.data.design_matrix import stored_bytes
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.device import Device
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.device_choice import reason_against_gpu
from ranksvm.fits.kernel_options import PRECOMPUTED, KernelOptions, kernel_device, kernel_with, refuse_sparse_kernels
from ranksvm.fits.linear import LinearProblem
from ranksvm.fits.options import FitOptions, LinearOptions, threads_for
from ranksvm.fits.problem import RankSVMProblem
from ranksvm.fits.results.records import Fourier, KernelModel, KernelTerms, scattered
from ranksvm.fits.training_set import TrainingArguments, TrainingSet, training_set
from ranksvm.kernels import (
    FeatureMap,
    FourierFeatures,
    Kernel,
    KernelMatrix,
    NystroemFeatures,
    check_definite,
    check_precomputed,
    choose_landmarks,
    kernel_matrix,
    precomputed_matrix,
)
from ranksvm.kernels.expansions import Expansion, LinearFunction, expansion
from ranksvm.kernels.linear_matrix import LinearKernelMatrix
from ranksvm.losses import Pairs
from ranksvm.objectives import CoefficientObjective, KernelObjective, KernelPoint, Landmarks
from ranksvm.solvers import SolverResult, Status, newton_cg
from ranksvm.terms.feature_design import ComputedDesign, feature_design
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.protocol import DataTerm

logger = logging.getLogger("ranksvm.fits")

# Number of documents ("landmarks") whose kernel functions precondition the exact solver. Measured on MQ2008 (7,903
# rows) without landmarks, with 100 and with 300 (Q is the kernel matrix):
# - gamma 2^-5, C 1: 111, 48 and 23 products with Q; 0.66, 0.40 and 0.32 s of CPU time;
# - gamma 2^-1, C 1: 194, 131 and 98 products; 1.15, 1.01 and 1.09 s;
# - gamma 2^-1, C 32: 1313, 714 and 514 products; 9.4, 5.8 and 5.1 s.
# Measured on 30,117 rows of MQ2007 without landmarks, with 300 and with 600:
# - gamma 2^-3, C 1: 339, 122 and 85 products; 41, 14 and 14 s.
N_LANDMARKS = 300
# For fewer rows than LANDMARK_ROWS, preconditioning is not worth its cost. The landmarks' values, stored twice, may use
# the share LANDMARK_SHARE of the memory.
LANDMARK_ROWS = 3000
LANDMARK_SHARE = 0.25
# Largest number of float64 vectors, with one entry for each row, that the solver and the objective hold.
SOLVER_VECTORS = 50
# From the solution for another C, or for Q in float32, a smoothed loss starts with this multiple of the last width. At
# the last width itself the steps are too short: pairs cross the smoothed interval within a small part of a step.
# After the first solution that takes more than MANY_STEPS steps, the multiple is WIDEN_MORE. (Hinge, 11 values of
# C from 2^-5 to 2^5, seconds with two threads for the multiples 10, 30, 200, and for 10 and then 200: MQ2008, gamma =
# 2^-5 2.5, 3.1, 3.7 and 2.4; gamma = 2^-2 12.1, 10.6, 11.6 and 10.4; gamma = 2^-1 25, 14, 14 and 15. OHSUMED, gamma =
# 2^-4, 28 for 30 and then 200, 19 for 10 and then 200. Linear models keep their width, except for direct steps: their
# pairs move less, and 10 times the width took up to 7 times as long.)
WIDEN, MANY_STEPS, WIDEN_MORE = 10.0, 25, 200.0
# Largest effect of the rounding of Q on the Hessian, relative to its identity term: at 1 the problem may not be convex.
# On MQ2008 at gamma = 2^-5 it is 0.09 at C = 32; at C = 1e4 a gap of 1e-5 was reported for an objective that was 1.3 %
# too high.
ROUNDING = 0.5
# Q in float32 is clearly too coarse if, at the first point whose gap is at most EARLY times the objective, the bound on
# round-off exceeds CLEARLY times the gap to reach: from there to the solution it may still fall by a factor of 5.
# (MQ2008, hinge, CPU seconds without and with a stop at this point: gamma = 2^-1, C = 32, 14.8 and 11.0; gamma = 2^-5,
# C = 32, 3.8 and 2.5.) If the estimated effect of rounding on the objective is at most PERHAPS times the gap to reach,
# Q is taken to be fine enough, and the bound, usually 60 to 2,000 times the estimate, is not computed.
EARLY, CLEARLY, PERHAPS = 0.1, 10.0, 0.002


def kernel_training_set(training: TrainingArguments, options: KernelOptions) -> TrainingSet:
    """The training set of a kernel model: documents on the host, in one array, or a precomputed kernel matrix.

    Parameters
    ----------
    training : TrainingArguments
        The arguments of ``fit``, as arrays.
    options : KernelOptions
        The hyper-parameters.

    Returns
    -------
    TrainingSet
        The training set.
    """
    precomputed = options.precomputed
    if precomputed and isinstance(training.X, TwoBlocks):
        raise DataError("kernel='precomputed' takes the kernel matrix of all rows, and pairs, not Preferences.")
    data = training_set(training, options)
    if isinstance(data.X, TwoBlocks):
        data = replace(data, X=data.X.stacked())
    if isinstance(data.X, DeviceFeatures):  # kernels prepare documents on the host
        data = replace(data, X=data.X.on_host(), place=data.X.device.name)
    if precomputed:
        refuse_sparse_kernels(options.kernel, data.X)
        check_precomputed(data.X, data.n_threads)
    return data


def kernel_problem(
    data: TrainingSet, options: KernelOptions, gamma: float | None, n_fits: int = 1
) -> "KernelOrFeatureProblem":
    """The problem that a kernel model solves.

    Parameters
    ----------
    data : TrainingSet
        The training set.
    options : KernelOptions
        The hyper-parameters.
    gamma : float or None
        The kernel's gamma, if it has one.
    n_fits : int
        Number of values of C that are solved for, one after another.

    Returns
    -------
    KernelProblem, NystroemProblem or FourierProblem
        The problem.
    """
    device = kernel_device(options, data, n_fits)
    if options.precomputed:
        return KernelProblem(data, None, None, options, device)
    kernel = kernel_with(options.kernel, gamma, options.degree, options.coef0)
    if options.approximation is None:
        return KernelProblem(data, kernel, gamma, options, device)
    if callable(options.kernel):
        data = replace(data, n_threads=1)  # a function of the user may not be thread-safe
    n_components, random_state = options.n_components, options.random_state
    if options.approximation == "fourier":
        features = FourierFeatures.drawn(kernel, data.X.shape[1], n_components, random_state)
        return FourierProblem(data, features, gamma, options, device)
    rows = np.sort(_weighted(data.pairs)[1])
    method, n_threads, X = options.landmarks, data.n_threads, _taken(data.X, rows)
    chosen = choose_landmarks(kernel, X, n_components, method=method, random_state=random_state, n_threads=n_threads)
    return NystroemProblem(data, kernel, rows[chosen], gamma, options, device)


class KernelProblem(RankSVMProblem):
    """Minimize ``1/2 b'Qb + C * loss(Q b)`` for successive C; Q is the kernel matrix of the queries with weight.

    Parameters
    ----------
    data : TrainingSet
        The pairs, and the documents or, for a precomputed kernel, the kernel matrix of all documents.
    kernel : Kernel or None
        The kernel; None: precomputed.
    gamma : float or None
        Its gamma, if it has one.
    options : KernelOptions
        The hyper-parameters.
    device : Device or None
        Device that computes and multiplies the kernel matrix; None: the CPU.
    """

    newton = staticmethod(newton_cg)

    def __init__(
        self,
        data: TrainingSet,
        kernel: Kernel | None,
        gamma: float | None,
        options: KernelOptions,
        device: Device | None = None,
    ):
        pairs, self.rows = _weighted(data.pairs)
        super().__init__(data, pairs, options)
        self._device = device
        self.device = "cpu" if device is None else device.name
        self._stop_by(options.stopping)
        # True: all steps use the inverse of the Hessian; False: none; None: steps use it once that costs less
        self.direct = {"direct": True, "newton": False}.get(self.solver)
        if self.solver == "auto":
            self.solver = "newton"
        self.kernel = kernel
        self.gamma = gamma
        self.X = data.X
        self.dtype = options.kernel_dtype
        self._memory = memory_bytes(options.memory_limit)
        self._earlier_products = 0
        self._widening = WIDEN

    def _solve(
        self, C: float, start: np.ndarray | None, interrupted: threading.Event | None, point: KernelPoint | None
    ) -> SolverResult:
        """The solution for one C, from this start.

        If C is so large that the problem with Q in float32 is not convex, or rounding has stopped the solver or changed
        the objective by more than a relative ``tol``, Q is recomputed in float64, and stays in float64.
        """
        if self._too_coarse(C):
            self._widen()
            start, point = None, self._switch_to_float64(C, start if point is None else point.w)
        elif point is not None and self.objective.reducible:
            self._widen()
            point = self.objective.evaluate(point.w)
        result = super()._solve(C, start, interrupted, point)
        if result.status is not Status.INTERRUPTED and self._too_coarse(C, result):
            if self.objective.smoothing_suffices(result.point, self.tol):  # the width was the last one
                self._widen()
            point = self._switch_to_float64(C, result.w)
            result = super()._solve(C, None, interrupted, point).after(result)
        if result.n_iter > MANY_STEPS:
            self._widening = WIDEN_MORE
        return result

    @cached_property
    def matrix(self) -> KernelMatrix:
        """Q, computed on first use."""
        settings: dict[str, Any] = {
            "memory": self._matrix_memory,
            "dtype": self.dtype,
            "n_threads": self.n_threads,
            "device": self._device,
        }
        if self.kernel is None:
            matrix: KernelMatrix = precomputed_matrix(self.X, self.rows, **settings)
        else:
            matrix = kernel_matrix(self.kernel, _taken(self.X, self.rows), **settings)
        if self.kernel is None or self.kernel.may_be_indefinite:
            check_definite(matrix, PRECOMPUTED if self.kernel is None else self.kernel.name)
        self._products_before = matrix.n_products
        read = matrix.product_bytes / 1e6
        line = "%skernel matrix of %d documents: a product reads %.4g MB"
        logger.info(line, self.label, len(self.rows), read, extra=PASSING)
        return matrix

    @cached_property
    def objective(self) -> KernelObjective | CoefficientObjective:
        """The objective in the form required by the solver."""
        loss, n_threads = self.loss.with_pairs(self.pairs), threads_for(self.loss, self.n_threads)
        if self.solver == "tron":
            return CoefficientObjective(self.matrix, loss, 1.0, n_threads, **self.smoothing)
        landmarks = None
        if self._n_landmarks:
            chosen = np.random.default_rng(0).permutation(len(self.rows))[: self._n_landmarks]
            with one_blas_thread():
                landmarks = self._landmarks(np.sort(chosen))
        return KernelObjective(self.matrix, loss, 1.0, n_threads, landmarks, self._inverse_memory, **self.smoothing)

    @property
    def _inverse_memory(self) -> int:
        """The host's memory that Q leaves for an inverse of the Hessian; 0 if Q is on a device."""
        if self._device is not None:
            return 0
        n = len(self.rows)
        values = 8 * n * n if isinstance(self.matrix, LinearKernelMatrix) else self.matrix.product_bytes
        return max(0, self._matrix_memory - values)

    def _method(self, warm: bool) -> Callable[..., SolverResult]:
        if self.solver == "tron":
            return super()._method(warm)
        return partial(self.newton, warm_start=warm, direct=self.direct, too_coarse=self._stops_early())

    def _landmarks(self, chosen: np.ndarray) -> Landmarks:
        """The functions of landmarks, on the device of Q if that device can evaluate the loss."""
        if self._device is None or reason_against_gpu("auto", self.loss) is not None:
            # in float32 only if Q is rounded: their round-off stays in the scores until Q is recomputed in float64
            dtype = "float32" if self._may_be_too_coarse else "float64"
            return Landmarks(self.matrix, chosen, dtype, self.n_threads)
        from ranksvm.objectives.device_landmarks import DeviceLandmarks

        return DeviceLandmarks(self.matrix, chosen, self._device)

    def _too_coarse(self, C: float, result: SolverResult | None = None) -> bool:
        """Whether float32 is too coarse for this C, judged at a solution or, without one, by a bound over all pairs."""
        if not self._may_be_too_coarse:
            return False
        if result is None:
            return self.objective.rounding(C) > ROUNDING
        if result.status is Status.PRECISION or self.objective.rounding(C, result.point) > ROUNDING:
            return True
        # the duality gap should also bound the error for the unrounded kernel
        return self.objective.value_rounding(result.point) > self.tol * result.value

    @property
    def _may_be_too_coarse(self) -> bool:
        """Whether Q in float64 would be more accurate than Q as it is stored."""
        if self.dtype == "float64" or (self.kernel is None and self.X.dtype == np.float32):
            return False  # Q is in float64 already, or was given in float32
        return not isinstance(self.matrix, LinearKernelMatrix)  # its products do not round Q

    def _stops_early(self) -> Callable[[KernelPoint], bool] | None:
        """A test that tells a solver to stop, because Q is too coarse; None if Q cannot be stored more accurately.

        With a loss whose smoothing is reduced, the solver stops at the first point near the solution if Q is clearly
        too coarse there. Steps with a narrow width would be lost: many pairs of the solution for Q in float32 are just
        at the margin, and Q in float64 moves them away from it. With any loss, the solver stops at a point at which the
        gap meets ``tol`` but the bound on round-off alone exceeds it.
        """
        if not self._may_be_too_coarse:
            return None
        tested = not self.objective.reducible

        def stops(point: KernelPoint) -> bool:
            nonlocal tested
            value, gap = self.objective.certificate(point)
            allowed = self.tol * value
            if gap > (allowed if tested else EARLY * value):
                return False
            if tested:
                return self.objective.round_off(point, self.tol) > allowed
            tested = True
            estimate = self.objective.value_rounding(point)  # costs much less than the bound
            return estimate > PERHAPS * allowed and self.objective.round_off(point, self.tol) > CLEARLY * allowed

        return stops

    def _switch_to_float64(self, C: float, w: np.ndarray | None) -> KernelPoint | None:
        """Switch to Q in float64; return the evaluation of a float32 solution, or None if the function 0 is better."""
        logger.info("%sfloat32 is too coarse for this C and tol: recomputing the kernel matrix in float64", self.label)
        coefficients = None if w is None else self.objective.coefficients(w)
        self._earlier_products = self.n_products
        width = self.objective.width
        self.release()
        self.dtype = "float64"
        self.objective.width = width
        of_vector, vector = self.objective.coefficients, self.objective.vector
        self._solutions = [(log_C, vector(of_vector(w))) for log_C, w in self._solutions]
        if coefficients is None:
            return None
        self.objective.reweight(C)
        point, origin = (self.objective.evaluate(self.objective.vector(b)) for b in (coefficients, None))
        # in directions that float32 cannot resolve, coefficients are arbitrary
        return point if point.value < origin.value else None

    def _widen(self) -> None:
        """Smooth the loss more, for a new problem; a width that is part of the loss stays the same."""
        if self.objective.reducible and self.objective.width is not None:
            self.objective.width = min(1.0, self._widening * self.objective.width)

    @property
    def _matrix_memory(self) -> int:
        """Memory for Q, and for an inverse of the Hessian."""
        return self._memory - self._other_bytes - self._landmark_bytes * self._n_landmarks

    @property
    def _other_bytes(self) -> int:
        """Memory in addition to Q: a copy of the documents, the documents of the model, and the solver's vectors.

        A precomputed kernel has no documents, so there are only the vectors.
        """
        X, n = self.X, len(self.rows)
        documents = 0
        if self.kernel is not None:
            documents = 2 * stored_bytes(X) * n // self.n_rows
        return documents + 8 * SOLVER_VECTORS * n

    @property
    def _landmark_bytes(self) -> int:
        """Bytes of the kernel values of one landmark, and of the data from which they are computed."""
        return 2 * 8 * len(self.rows)

    @property
    def _n_landmarks(self) -> int:
        if self.solver == "tron" or len(self.rows) < LANDMARK_ROWS:
            return 0
        return min(N_LANDMARKS, int(LANDMARK_SHARE * self._memory / self._landmark_bytes))

    def scores(self, w: np.ndarray, X: Features) -> np.ndarray:
        support, vectors, coef = self._terms(w)
        if vectors is None:
            return LinearFunction(scattered(coef, support, X.shape[1])).scores(X, self.n_threads)
        assert self.kernel is not None
        return expansion(self.kernel, vectors, coef).scores(X, self.n_threads)

    @property
    def n_products(self) -> int:
        """Number of products with Q so far."""
        if "matrix" in vars(self):
            self._n_products = self._earlier_products + self.matrix.n_products - self._products_before
        return self._n_products

    def release(self) -> None:
        """Free Q."""
        self._n_products = self.n_products
        del self.objective, self.matrix

    def start_from(self, function: KernelTerms | Fourier, scores: Callable[[Any], np.ndarray]) -> np.ndarray:
        """The variables of an earlier solution; ``scores`` is not used.

        Raises DataError if it was not fitted to the same rows.
        """
        if isinstance(function, Fourier):
            raise DataError(
                "warm_start: the last fit used random Fourier features and has no coefficients of documents. "
                "Start from approximation='nystroem' or an exact fit."
            )
        support, vectors = function.support, function.support_vectors
        known = (vectors is None) == (self.kernel is None) and (len(support) == 0 or support[-1] < self.n_rows)
        if known and vectors is not None and len(support):
            known = vectors.shape[1] == self.X.shape[1] and _same(self.X[support], vectors)
        if not known:
            raise DataError(
                "warm_start: X does not have the rows of the last fit, to which its coefficients belong. Fit "
                "the same rows in the same order, or set warm_start=False."
            )
        return self.objective.vector(scattered(function.dual_coef, support, self.n_rows)[self.rows])

    def _origin(self) -> np.ndarray:
        return self.objective.vector()

    def _terms(self, w: np.ndarray) -> tuple[np.ndarray, Features | None, np.ndarray]:
        """The rows with nonzero coefficients, ascending; their documents (None if precomputed); the coefficients."""
        b = w if self.solver == "tron" else w[0]
        positions = np.flatnonzero(b)
        positions = positions[np.argsort(self.rows[positions])]
        support = self.rows[positions]
        return support, None if self.kernel is None else self.X[support], b[positions]

    def model(self, w: np.ndarray) -> KernelModel:
        """The scoring function of a solution's variables."""
        support, vectors, coef = self._terms(w)
        return KernelModel(kernel_terms(self.kernel, support, vectors, coef), self.gamma, self.dtype, self.n_products)


class FeatureProblem(LinearProblem):
    """Minimize ``1/2 |w|^2 + C * loss(phi(X) w)`` for features phi whose inner products approximate a kernel.

    The features are computed for the rows of queries that have pairs. Solver "auto" chooses as for linear models
    (`choose_solver`).

    Parameters
    ----------
    data : TrainingSet
        Documents and pairs.
    features : FeatureMap
        The features.
    gamma : float or None
        The kernel's gamma, if it has one.
    options : KernelOptions
        The hyper-parameters. Features that need more than the memory limit are recomputed at every pass.
    device : Device or None
        Device that computes the features and stores them in its free memory; None: the CPU.
    """

    def __init__(
        self,
        data: TrainingSet,
        features: FeatureMap,
        gamma: float | None,
        options: KernelOptions,
        device: Device | None = None,
    ):
        pairs, rows = data.pairs.comparable()
        X = _taken(data.X, rows)
        loss, dtype = options.loss, options.kernel_dtype
        if device is None:
            left = max(0, memory_bytes(options.memory_limit) - (0 if X is data.X else stored_bytes(X)))
            settings: dict[str, Any] = {"memory": left, "dtype": np.dtype(dtype), "n_threads": data.n_threads}
            design = feature_design(X, features, **settings, hessian=options.solver in ("auto", "newton"))
            if options.solver == "direct" and isinstance(design, ComputedDesign):
                raise OptionError(
                    "solver='direct' needs the features of all documents in memory: raise memory_limit, or use "
                    "solver='auto'."
                )
            term: DataTerm = ThreadedTerm(design, loss.with_pairs(pairs), threads_for(loss, data.n_threads))
        else:
            from ranksvm.terms.device.features import feature_term

            term = feature_term(device, X, features, loss.with_pairs(pairs), np.dtype(dtype), data.n_threads)
        # the problem is linear in the features, without sign constraints
        of_fit = {field.name: getattr(options, field.name) for field in fields(FitOptions)}
        linear = LinearOptions(**of_fit, stopping=options.stopping)
        super().__init__(replace(data, X=X, pairs=pairs), term, linear)
        self.features = features
        self.gamma = gamma
        self.dtype = dtype

    def scores(self, w: np.ndarray, X: Features) -> np.ndarray:
        return Expansion(self.features, self.features.coefficients(w)).scores(X, self.n_threads)

    def release(self) -> None:
        """Free the features of the documents."""
        del self.objective

    def model(self, w: np.ndarray) -> KernelModel:
        """The scoring function of a solution's variables."""
        return KernelModel(self._function(self.features.coefficients(w)), self.gamma, self.dtype, 0)

    def _function(self, coef: np.ndarray) -> KernelTerms | Fourier:
        """The function that is a sum of the features' basis functions with these coefficients."""
        raise NotImplementedError


class NystroemProblem(FeatureProblem):
    """`FeatureProblem` whose features span the same space as the kernel functions of landmarks (rows of X).

    Parameters
    ----------
    data : TrainingSet
        Documents and pairs.
    kernel : Kernel
        The kernel.
    landmarks : ndarray of int64
        Rows of the landmarks, ascending.
    gamma : float or None
        The kernel's gamma, if it has one.
    options : KernelOptions
        The hyper-parameters.
    device : Device or None
        As in `FeatureProblem`.
    """

    def __init__(
        self,
        data: TrainingSet,
        kernel: Kernel,
        landmarks: np.ndarray,
        gamma: float | None,
        options: KernelOptions,
        device: Device | None = None,
    ):
        self.kernel = kernel
        self.landmarks = landmarks
        self.vectors = data.X[landmarks]
        super().__init__(data, NystroemFeatures(kernel, self.vectors), gamma, options, device)

    def start_from(  # type: ignore[override]
        self, function: KernelTerms | Fourier, scores: Callable[[Any], np.ndarray]
    ) -> np.ndarray | None:
        """The orthogonal projection, in the RKHS, of an earlier function as a starting point; None for the dual.

        Raises DataError if the earlier fit had another number of columns of X, or a precomputed kernel: such a function
        cannot be evaluated at documents.
        """
        known = function.frequencies if isinstance(function, Fourier) else function.support_vectors
        if known is None or known.shape[1] != self.vectors.shape[1]:
            raise DataError("warm_start: the last fit had another number of features than X, or a precomputed kernel.")
        return None if self.solver == "dual" else self.features.gathered(scores(self.vectors))

    def _function(self, coef: np.ndarray) -> KernelTerms:
        return kernel_terms(self.kernel, self.landmarks, self.vectors, coef)


class FourierProblem(FeatureProblem):
    """`FeatureProblem` with random Fourier features."""

    features: FourierFeatures

    def start_from(  # type: ignore[override]
        self, function: KernelTerms | Fourier, scores: Callable[[Any], np.ndarray]
    ) -> np.ndarray | None:
        """The variables of an earlier solution; None for the dual.

        Raises DataError if the earlier solution does not have the same random features.
        """
        if not isinstance(function, Fourier) or not np.array_equal(function.frequencies, self.features.frequencies):
            raise DataError(
                "warm_start: the last fit has other features, or none. Random Fourier features are equal for the "
                "same gamma, n_components and integer random_state; or set warm_start=False."
            )
        return None if self.solver == "dual" else function.feature_coef

    def _function(self, coef: np.ndarray) -> Fourier:
        return Fourier(self.features.frequencies, coef)


KernelOrFeatureProblem = KernelProblem | NystroemProblem | FourierProblem


def kernel_terms(kernel: Kernel | None, support: np.ndarray, vectors: Features | None, coef: np.ndarray) -> KernelTerms:
    """The function ``sum_j coef_j k(., vectors_j)``; for a precomputed kernel (None) there are no vectors."""
    linear = kernel is not None and kernel.name == "linear"
    weights = vectors.T @ coef if linear and vectors is not None else None
    return KernelTerms(coef, support, vectors, weights)


def _weighted(pairs: Pairs) -> tuple[Pairs, np.ndarray]:
    """The pairs of the queries that have weight, with rows numbered by position, and the row of each position."""
    found: tuple[Pairs, np.ndarray] = pairs.of_queries(np.flatnonzero(pairs.weight_per_query > 0.0)).comparable()
    return found


def _taken(X: Features, rows: np.ndarray) -> Features:
    """The given rows of X; X itself if they are all its rows in order."""
    return X if np.array_equal(rows, np.arange(X.shape[0])) else X[rows]


def _same(X: Features, Z: Features) -> bool:
    """Whether two sets of documents have the same values."""
    if is_sparse(X) and is_sparse(Z):
        unequal: Any = X != Z  # a sparse matrix
        return bool(unequal.nnz == 0)
    return not is_sparse(X) and not is_sparse(Z) and np.array_equal(X, Z)
