"""What a fitted model computes, read from its attributes: feature names, scaling, and a function of scaled features.

A scaler is a shift and a scale for each feature, or statistics of a query.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_sparse
from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.text import feature_labels
from ranksvm.data.retriever_scores import normalized_scores
from ranksvm.data.statistics import inverse
from ranksvm.exceptions import OptionError
from ranksvm.exporting.tables import ScalerOffset, Table, tables_of

if TYPE_CHECKING:  # linear models load no kernels
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    from ranksvm.additive import AdditiveFunction
    from ranksvm.kernels import Kernel

__all__ = [
    "QUERY_SCALERS",
    "Additive",
    "Fourier",
    "KernelSum",
    "Linear",
    "QueryScaling",
    "Scaling",
    "Scoring",
    "scaling_of",
    "scoring_of",
]

# Class of a per-query scaler -> its name in exported files.
QUERY_SCALERS = {"QueryMinMaxScaler": "min_max", "QueryStandardScaler": "standard"}
RETRIEVER_SCALER = "RetrieverScaler"


@dataclass(frozen=True)
class Scaling:
    """``z = (x - shift) / scale`` for every feature, the same for all queries.

    Parameters
    ----------
    shift, scale : ndarray of float64, shape (n_features,)
        The numbers; ``scale`` is positive.
    style : {"standard", "min_max"}
        How the model file of a search engine that has normalizers of both kinds describes the scaling: by mean and
        standard deviation ("standard"), or by smallest and largest value ("min_max").
    low, high : ndarray of float64, shape (n_features,), optional
        Smallest and largest value in the training data, if the scaler stores them.
    """

    shift: np.ndarray
    scale: np.ndarray
    style: str = "standard"
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The scaled features."""
        return (X - self.shift) / self.scale

    def then(self, other: "Scaling") -> "Scaling":
        """This scaling followed by another one."""
        return replace(
            self, shift=self.shift + self.scale * other.shift, scale=self.scale * other.scale, style="standard"
        )


@dataclass(frozen=True)
class QueryScaling:
    """Features scaled by statistics of the documents of a query.

    A feature that is constant in the query becomes 0 by "min_max", and by "standard" unless ``with_mean`` is False.

    Parameters
    ----------
    method : str or tuple of (str, str)
        "min_max": ``(x - min) / (max - min)``; "standard": ``(x - mean) / deviation`` with the deviation of the
        population; or engine and normalizer of a RetrieverScaler, such as ("elasticsearch", "minmax").
    with_mean, with_std : bool
        Whether "standard" subtracts the mean, and divides by the deviation.
    """

    method: str | tuple[str, str]
    with_mean: bool = True
    with_std: bool = True

    @property
    def of_retrievers(self) -> bool:
        """Whether features are scores of retrievers, and NaN if a retriever did not return the document."""
        return isinstance(self.method, tuple)

    @property
    def scaler(self) -> str:
        """The scaler, for messages."""
        if isinstance(self.method, tuple):
            engine, normalizer = self.method
            return f"{RETRIEVER_SCALER}({normalizer!r}, engine={engine!r})"
        return next(name for name, method in QUERY_SCALERS.items() if method == self.method)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The scaled features of the documents of one query."""
        if isinstance(self.method, tuple):
            return normalized_scores(X, np.array([0]), np.array([len(X)]), *self.method)
        if self.method == "min_max":
            spread = np.ptp(X, axis=0)
            return (X - X.min(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        centered = X - X[:1]  # exactly 0 for a constant feature
        centered = centered - centered.mean(axis=0)
        shifted = centered if self.with_mean else X
        if not self.with_std:
            return shifted
        return shifted * inverse(np.sqrt(np.square(centered).mean(axis=0)), 0.0 if self.with_mean else 1.0)


def scaling_of(steps: list[Any]) -> Scaling | QueryScaling | None:
    """The scaling that the scalers before a ranker compute together.

    Parameters
    ----------
    steps : list of estimator
        Fitted steps of a Pipeline before its ranker.

    Returns
    -------
    Scaling, QueryScaling or None
        None without a scaler.

    Raises
    ------
    OptionError
        When a step is not a known scaler or is not linear, or when a per-query scaler is combined with another scaler.
    """
    found: Scaling | QueryScaling | None = None
    for step in steps:
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        following = _one(step)
        if found is None:
            found = following
        elif isinstance(found, Scaling) and isinstance(following, Scaling):
            found = found.then(following)
        else:
            raise OptionError("a Pipeline with a per-query scaler and another scaler cannot be exported.")
    return found


def _one(step: "TransformerMixin") -> Scaling | QueryScaling:
    name = type(step).__name__
    if name in QUERY_SCALERS:
        options = {key: getattr(step, key) for key in ("with_mean", "with_std") if hasattr(step, key)}
        return QueryScaling(QUERY_SCALERS[name], **options)
    if name == RETRIEVER_SCALER:
        return QueryScaling((step.engine, step.normalizer))
    if name not in _STATIC:
        raise OptionError(
            f"a {name} before the ranker cannot be exported. The scalers that can are {', '.join(_STATIC)}, "
            f"{', '.join(QUERY_SCALERS)} and {RETRIEVER_SCALER}."
        )
    if getattr(step, "clip", False):
        raise OptionError(f"{name}(clip=True) is not linear and cannot be exported: fit it with clip=False.")
    return _STATIC[name](step)


def _standard(step: "StandardScaler") -> Scaling:
    return _affine(step.n_features_in_, step.mean_ if step.with_mean else None, step.scale_)


def _robust(step: "RobustScaler") -> Scaling:
    return _affine(step.n_features_in_, step.center_, step.scale_)


def _max_abs(step: "MaxAbsScaler") -> Scaling:
    return _affine(step.n_features_in_, None, step.scale_)


def _min_max(step: "MinMaxScaler") -> Scaling:
    # scikit-learn computes x * scale_ + min_
    scale = 1.0 / np.asarray(step.scale_, dtype=np.float64)
    low, high = (np.asarray(values, dtype=np.float64) for values in (step.data_min_, step.data_max_))
    plain = tuple(step.feature_range) == (0, 1)
    shift = low if plain else -np.asarray(step.min_, dtype=np.float64) * scale
    return Scaling(shift, scale, "min_max", low, high)


def _affine(n_features: int, shift: ArrayLike | None, scale: ArrayLike | None) -> Scaling:
    return Scaling(
        np.zeros(n_features) if shift is None else np.asarray(shift, dtype=np.float64),
        np.ones(n_features) if scale is None else np.asarray(scale, dtype=np.float64),
    )


# Class of scikit-learn -> its scaling.
_STATIC = {"StandardScaler": _standard, "MinMaxScaler": _min_max, "MaxAbsScaler": _max_abs, "RobustScaler": _robust}


@dataclass(frozen=True)
class Linear:
    """``f(z) = <coef, z>``.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,)
        The weights.
    """

    coef: np.ndarray

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """Score of each row."""
        return Z @ self.coef


@dataclass(frozen=True)
class KernelSum:
    """``f(z) = sum_j coef_j k(z, vectors_j)``: an exact kernel model, or one with landmarks.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray of float64, shape (n_vectors, n_features)
        Documents.
    coef : ndarray of float64, shape (n_vectors,)
        Their coefficients.
    """

    kernel: "Kernel"
    vectors: np.ndarray
    coef: np.ndarray

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """Score of each row."""
        return self.kernel.block(Z, self.vectors) @ self.coef


@dataclass(frozen=True)
class Fourier:
    """``f(z) = m^-1/2 <coef, [cos(Omega z), sin(Omega z)]>``: random Fourier features.

    Parameters
    ----------
    frequencies : ndarray of float64, shape (m, n_features)
        Omega.
    coef : ndarray of float64, shape (2 m,)
        Coefficients of the features.
    """

    frequencies: np.ndarray
    coef: np.ndarray

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """Score of each row."""
        from ranksvm.kernels import FourierFeatures

        return FourierFeatures(self.frequencies).basis(Z) @ self.coef


@dataclass(frozen=True, eq=False)
class Additive:
    """``f(z) = <coef, z> + intercept + the sum of tables``.

    In ``<coef, z>``, a missing value counts as 0 if its feature has ``missing``.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,)
        Weights of the linear part.
    missing : ndarray of bool, shape (n_features,)
        Features whose table has a value for missing values. A missing value of another feature makes the score NaN.
    tables : list of Table
        Functions of one feature, then functions of two.
    intercept : float
        A constant, which is added to each score.
    """

    coef: np.ndarray
    missing: np.ndarray
    tables: list[Table]
    intercept: float = 0.0

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """Score of each row."""
        scores = np.where(np.isnan(Z) & self.missing, 0.0, Z) @ self.coef + self.intercept
        for table in self.tables:
            scores += table(Z)
        return scores

    @property
    def used(self) -> np.ndarray:
        """Whether each feature can change the score."""
        used = self.coef != 0.0
        used[[axis.feature for table in self.tables for axis in table.axes]] = True
        return used

    def of_unscaled(self, scaling: Scaling) -> "Additive":
        """The same function of the features before they are scaled.

        Parameters
        ----------
        scaling : Scaling
            The scaler.

        Returns
        -------
        Additive
            The function.
        """
        coef, tables = self.coef / scaling.scale, []
        for table in self.tables:
            axes = tuple(axis.moved(scaling.shift[axis.feature], scaling.scale[axis.feature]) for axis in table.axes)
            values = table.values
            # The new intercept subtracts `coef * shift` for each feature. A missing value counts as 0 after scaling, so
            # its value in the table adds this again.
            if len(axes) == 1 and axes[0].missing:
                values = values.copy()
                values[0] += coef[axes[0].feature] * scaling.shift[axes[0].feature]
            tables.append(replace(table, axes=axes, values=values))
        return replace(self, coef=coef, tables=tables, intercept=self.intercept - float(coef @ scaling.shift))


@dataclass(frozen=True)
class Scoring:
    """The score of a document, as a function of its features.

    Parameters
    ----------
    model : str
        Class of the ranker, for messages and headings.
    names : list of str
        Names of the features, in the order of the columns.
    scaling : Scaling, QueryScaling or None
        How the features are scaled first.
    function : Linear, Additive, KernelSum or Fourier
        The score of the scaled features.
    """

    model: str
    names: list[str]
    scaling: Scaling | QueryScaling | None
    function: Linear | Additive | KernelSum | Fourier

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Scores of the documents of one query, in float64.

        Parameters
        ----------
        X : ndarray of float64, shape (n_documents, n_features)
            The documents.

        Returns
        -------
        ndarray of float64, shape (n_documents,)
            Their scores.
        """
        return self.function(X if self.scaling is None else self.scaling(X))


def scoring_of(model: "BaseEstimator") -> Scoring:
    """The scoring function of a model.

    Parameters
    ----------
    model : estimator
        A fitted ranker, or a fitted Pipeline of scalers that ends with one.

    Returns
    -------
    Scoring
        Its function.

    Raises
    ------
    OptionError
        When ``model`` is not such an estimator, or no formula of the features gives its scores, because its kernel is
        precomputed or a Python function.
    """
    steps = steps_of(model)
    *scalers, ranker = steps
    if not hasattr(ranker, "predict") or not hasattr(ranker, "rank"):
        raise OptionError(
            f"a ranker such as RankSVM is needed, or a Pipeline that ends with one, got {type(ranker).__name__}."
        )
    if not hasattr(ranker, "n_features_in_"):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(ranker).__name__} instance is not fitted yet: call fit before export.")
    found = getattr(steps[0], "feature_names_in_", None)
    names = [str(name) for name in feature_labels(ranker.n_features_in_, found)]
    scaling = scaling_of(scalers)
    return Scoring(type(ranker).__name__, names, scaling, _function_of(ranker, scaling))


def _function_of(
    ranker: "BaseEstimator", scaling: Scaling | QueryScaling | None
) -> Linear | Additive | KernelSum | Fourier:
    if hasattr(ranker, "cuts_"):
        return _additive(ranker._trained_function(), scaling)
    if hasattr(ranker, "frequencies_"):
        return Fourier(np.asarray(ranker.frequencies_), np.asarray(ranker.feature_coef_))
    if hasattr(ranker, "coef_"):
        return Linear(np.array(ranker.coef_, dtype=np.float64).ravel())
    if not hasattr(ranker, "dual_coef_"):
        raise OptionError(f"a {type(ranker).__name__} cannot be exported: no format can express its scores.")
    if not hasattr(ranker, "support_vectors_"):
        raise OptionError(
            "a model of a precomputed kernel scores documents by kernel values, not features: it cannot be exported."
        )
    fitted = ranker.fitted_params_
    if callable(fitted["kernel"]):
        raise OptionError("a kernel that is a Python function cannot be exported: use a kernel that has a name.")
    from ranksvm.kernels import kernel_named

    parameters = {"degree": fitted["degree"], "coef0": fitted["coef0"]}
    kernel = kernel_named(fitted["kernel"], gamma=ranker.gamma_, **parameters)
    vectors = ranker.support_vectors_
    dense = vectors.toarray() if is_sparse(vectors) else np.asarray(vectors)
    return KernelSum(kernel, np.ascontiguousarray(dense, dtype=np.float64), np.asarray(ranker.dual_coef_))


def _additive(function: "AdditiveFunction", scaling: Scaling | QueryScaling | None) -> Linear | Additive:
    offset = None
    if isinstance(scaling, Scaling):
        offset = ScalerOffset(np.abs(scaling.shift) / scaling.scale, in_float32=True)
    elif scaling is not None:
        # scalers by query compute in float64, and subtract nothing or, in units of the scaled features, around 1
        offset = ScalerOffset(np.full(function.n_features, float(scaling.with_mean)), in_float32=False)
    tables = tables_of(function, offset)
    if not tables:
        return Linear(function.coef)
    return Additive(function.coef, np.array([bins.missing for bins in function.bins]), tables)
