"""Base of the rankers with a kernel: it rebuilds the scoring function from fitted attributes, and prunes it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranksvm._util import checks
from ranksvm._util.checks import is_number
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import Features, MatrixLike
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.estimators.base.arguments import Validated
from ranksvm.estimators.base.ranker import Ranker, check_is_fitted, hyper_parameters
from ranksvm.estimators.base.sklearn_base import BaseEstimator
from ranksvm.exceptions import ModelFileError, OptionError
from ranksvm.fits.kernel import kernel_terms
from ranksvm.fits.kernel_options import (
    KernelOptions,
    check_kernel_device,
    gamma_error,
    is_precomputed,
    kernel_with,
    refuse_sparse_kernels,
)
from ranksvm.fits.results.records import Fourier, KernelModel, KernelTerms, scattered
from ranksvm.kernels import FourierFeatures, Kernel
from ranksvm.kernels.expansions import Expansion, LinearFunction, Pruning, ScoringFunction, expansion, smallest_terms
from ranksvm.model_files.schema import Array, Matrix, Number, PlainDict, Schema, Text

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["KernelRanker"]


# Keys of ``pruned_``: sums over all calls of `prune`, except "norm", which is from the first call.
_PRUNED = ("n_dropped", "distance", "norm")
# Fitted attributes of the scoring function; the kernel and the approximation determine which exist.
_FUNCTION = ("coef_", "dual_coef_", "support_", "support_vectors_", "frequencies_", "feature_coef_", "pruned_")


class KernelRanker(Ranker, BaseEstimator):
    """Base of the estimators whose score of a document is ``sum_j dual_coef_[j] k(x, support_vectors_[j])``."""

    _reads_devices = True
    _fitted_schema: ClassVar[Schema] = {
        "dual_coef_": Array("n_support", required=False),
        "support_": Array("n_support", dtype="int64", minimum=0, ascending=True, required=False),
        "support_vectors_": Matrix("n_support", "n_features", required=False),
        "coef_": Array("n_features", required=False),
        "frequencies_": Array("n_frequencies", "n_features", any_order=True, required=False),
        "feature_coef_": Array("2 * n_frequencies", required=False),
        "pruned_": PlainDict(required=False),
        "gamma_": Number(minimum=0.0, nullable=True),
        "kernel_dtype_": Text(),
        "n_kernel_products_": Number(integer=True, minimum=0),
    }
    kernel: str | Callable[..., Any]
    gamma_: float | None
    dual_coef_: np.ndarray
    support_: np.ndarray
    support_vectors_: Features
    coef_: np.ndarray
    frequencies_: np.ndarray
    feature_coef_: np.ndarray
    kernel_dtype_: str
    n_kernel_products_: int
    pruned_: dict[str, Any]

    def prune(self, tol: float = 1e-3) -> Pruning:
        """Drop the least important support vectors, which makes the model smaller and prediction faster.

        Terms ``dual_coef_[j] k(., support_vectors_[j])`` are dropped in ascending order of their norm, as many as
        possible while the scoring function changes by at most ``tol`` times its norm in the kernel's RKHS. This change
        is computed exactly, from half of the kernel matrix of the support vectors. The model is changed in place.
        ``objective_``, ``duality_gap_`` and ``evals_result_`` still describe the model before pruning;
        ``calibration_slope_``, which was computed for the old scores, is deleted.

        Parameters
        ----------
        tol : float, default 1e-3
            Largest change of the function relative to its norm, positive and below 1.

        Returns
        -------
        Pruning
            The number of dropped support vectors, the change of the function, and a bound on the change of any score.
            ``pruned_`` adds up the numbers and the changes of all calls of `prune` for this model.

        Raises
        ------
        OptionError
            When ``tol`` is not between 0 and 1, or the model has no support vectors: with a precomputed kernel, or
            random Fourier features.

        Examples
        --------
        >>> from ranksvm import KernelRankSVM, make_ranking
        >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
        >>> ranker = KernelRankSVM(C=0.1, gamma=0.05).fit(data.X, data.y, qid=data.qid)
        >>> lost = ranker.prune(tol=0.01)
        >>> lost.n_dropped > 0, lost.relative_distance <= 0.01, len(ranker.dual_coef_) == lost.n_support
        (True, True, True)
        """
        check_is_fitted(self)
        if not (is_number(tol) and 0.0 < float(tol) < 1.0):
            raise OptionError(f"tol must be a number between 0 and 1, got {tol!r}.")
        if not hasattr(self, "support_vectors_"):
            what = "random Fourier features" if hasattr(self, "frequencies_") else "a precomputed kernel"
            raise OptionError(f"prune drops support vectors, but a model with {what} has none.")
        kernel, vectors, coef = self._kernel(), self.support_vectors_, self.dual_coef_
        kept, pruning = smallest_terms(kernel, vectors, coef, float(tol), effective_n_jobs(self.n_jobs))
        before = getattr(self, "pruned_", {"n_dropped": 0, "distance": 0.0, "norm": pruning.norm})
        self._assign_function(kernel_terms(kernel, self.support_[kept], vectors[kept], coef[kept]))
        self.__dict__.pop("calibration_slope_", None)
        self.pruned_ = {
            "n_dropped": before["n_dropped"] + pruning.n_dropped,
            "distance": before["distance"] + pruning.distance,
            "norm": before["norm"],
        }
        return pruning

    def _kernel_options(self) -> KernelOptions:
        """The validated hyper-parameters of an estimator that is fitted with a kernel."""
        options = KernelOptions.validated(hyper_parameters(self, "kernel"), gamma=gamma_error, random_state=checks.seed)
        check_kernel_device(options)
        return options

    def _assign_model(self, model: KernelModel) -> None:
        """Set the attributes of the model of a fit."""
        self._assign_function(model.function)
        self.gamma_ = model.gamma
        self.kernel_dtype_ = model.kernel_dtype
        self.n_kernel_products_ = model.n_kernel_products

    def _assign_function(self, function: KernelTerms | Fourier) -> None:
        """Set the attributes of a scoring function; attributes of other kinds of functions are removed."""
        for name in _FUNCTION:
            self.__dict__.pop(name, None)
        if isinstance(function, Fourier):
            self.frequencies_ = function.frequencies
            self.feature_coef_ = function.feature_coef
            return
        self.dual_coef_ = function.dual_coef
        self.support_ = function.support
        if function.support_vectors is not None:
            self.support_vectors_ = function.support_vectors
        if function.coef is not None:
            self.coef_ = function.coef

    def _fitted_function(self) -> KernelTerms | Fourier:
        """The scoring function of the last fit, as a starting point."""
        if hasattr(self, "frequencies_"):
            return Fourier(self.frequencies_, self.feature_coef_)
        return KernelTerms(self.dual_coef_, self.support_, getattr(self, "support_vectors_", None))

    def _scores(self, X: Validated) -> np.ndarray:
        if isinstance(X, DeviceFeatures):
            from ranksvm.kernels.device_values import scores_on

            return scores_on(X.device, self._function(), X.on_host())
        return self._function().scores(X, effective_n_jobs(self.n_jobs))

    def _function(self) -> ScoringFunction:
        """The scoring function, from the fitted attributes."""
        if hasattr(self, "frequencies_"):
            return Expansion(FourierFeatures(self.frequencies_), self.feature_coef_)
        if hasattr(self, "coef_"):
            return LinearFunction(self.coef_)
        if not hasattr(self, "support_vectors_"):
            return LinearFunction(scattered(self.dual_coef_, self.support_, self.n_features_in_))
        return expansion(self._kernel(), self.support_vectors_, self.dual_coef_)

    def _kernel(self) -> Kernel:
        """The kernel that the model was fitted with."""
        fitted = self.fitted_params_
        return kernel_with(fitted["kernel"], self.gamma_, fitted["degree"], fitted["coef0"])

    def _features(self, X: MatrixLike, finite: bool = True) -> Validated:
        found = super()._features(X, finite)
        refuse_sparse_kernels(self.fitted_params_["kernel"], found)
        return found

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "n_features_in_"):
            return
        if not (hasattr(self, "frequencies_") and hasattr(self, "feature_coef_")):
            self._check_terms()
        if set(getattr(self, "pruned_", _PRUNED)) != set(_PRUNED) or None in getattr(self, "pruned_", {}).values():
            raise ModelFileError(f"pruned_ must have the numbers {', '.join(_PRUNED)}.")

    def _check_terms(self) -> None:
        """Refuse a sum of kernel functions that cannot be evaluated."""
        if not (hasattr(self, "dual_coef_") and hasattr(self, "support_")):
            raise ModelFileError("it has no scoring function: neither dual_coef_ and support_ nor frequencies_.")
        fitted = self.fitted_params_
        precomputed = is_precomputed(fitted["kernel"])
        if not precomputed:
            checks.check_parameters("kernel", {name: fitted[name] for name in ("kernel", "degree", "coef0")})
        if precomputed == hasattr(self, "support_vectors_"):
            raise ModelFileError(f"the kernel {fitted['kernel']!r} does not match its support vectors.")
        if precomputed and len(self.support_) and self.support_.max() >= self.n_features_in_:
            raise ModelFileError("support_ has rows that are not in the kernel matrix.")
        if fitted["kernel"] == "linear" and not hasattr(self, "coef_"):
            raise ModelFileError("coef_ of a linear kernel is missing.")

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.input_tags.sparse = not is_precomputed(self.kernel)
        return tags
