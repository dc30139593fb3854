"""Scalers as formulas of an exported model: a shift and a scale for each feature, or statistics of a query."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data.retriever_scores import normalized_scores
from ranksvm.data.statistics import inverse
from ranksvm.exceptions import OptionError

if TYPE_CHECKING:
    from sklearn.base import TransformerMixin
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

__all__ = ["QUERY_SCALERS", "QueryScaling", "Scaling", "scaling_of"]

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
