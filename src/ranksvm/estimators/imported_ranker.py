"""Linear models of other programs as rankers: read from their files, or converted from scikit-learn."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from ranksvm._util.checks import is_integer, is_sparse
from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.text import feature_labels
from ranksvm.estimators.base.linear_ranker import LinearRanker
from ranksvm.estimators.base.sklearn_base import BaseEstimator
from ranksvm.exceptions import DataError, ModelFileError, OptionError
from ranksvm.exporting.features import mapped_names
from ranksvm.exporting.reading import LinearFile
from ranksvm.exporting.svm_files import (
    is_liblinear,
    is_libsvm,
    is_svm_light,
    read_liblinear,
    read_libsvm,
    read_svm_light,
)
from ranksvm.exporting.xgboost import is_xgboost, read_xgboost
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Schema

__all__ = ["IMPORT_FORMATS", "ImportedRanker", "import_model"]

# Format -> (test whether a text has it, its reader).
_FORMATS: dict[str, tuple[Callable[[str], bool], Callable[[str, str, int | None], LinearFile]]] = {
    "svm-rank": (is_svm_light, read_svm_light),
    "liblinear": (is_liblinear, read_liblinear),
    "libsvm": (is_libsvm, read_libsvm),
    "xgboost": (is_xgboost, read_xgboost),
}
IMPORT_FORMATS = (*_FORMATS, "sklearn")

FeatureNames = Sequence[str] | Mapping[str, str]
Model = TypeVar("Model", bound="ImportedRanker | Pipeline")


@storable
class ImportedRanker(LinearRanker, BaseEstimator):
    """A linear ranker that another program has fitted; `import_model` makes it.

    It predicts, ranks and explains, and can be exported, evaluated, saved and loaded, like a `RankSVM`. It has no
    certificate and cannot be fitted.

    Parameters
    ----------
    source : str, default ""
        The program that fitted the model.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if they are known.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> from sklearn.linear_model import Ridge
    >>> from ranksvm import import_model
    >>> ranker = import_model(Ridge().fit(data.X, data.y))
    >>> ranker
    ImportedRanker(source='scikit-learn Ridge')
    >>> ranker.predict(data.X).shape
    (160,)
    """

    _fitted_schema: ClassVar[Schema] = {"coef_": Array("n_features")}

    def __init__(self, source: str = "", *, n_jobs: int | None = None):
        self.source = source
        self.n_jobs = n_jobs

    def fit(self, X: object, y: object = None, **options: object) -> NoReturn:
        """Raise OptionError: the weights come from elsewhere.

        Parameters
        ----------
        X, y : object
            Ignored.
        **options : optional
            Ignored.

        Raises
        ------
        OptionError
            Always.
        """
        raise OptionError("an ImportedRanker was fitted elsewhere and cannot be fitted again: fit a RankSVM.")

    @property
    def n_queries_(self) -> int:  # type: ignore[override]
        """2, which means several: the number is unknown, and `score` must ask for the queries."""
        return 2


def import_model(
    source: Any, *, format: str = "auto", names: FeatureNames | None = None, n_features: int | None = None
) -> "ImportedRanker | Pipeline":
    """A linear model of another program as a ranker.

    A ranking depends on differences of scores only, so intercepts and thresholds are ignored.

    Parameters
    ----------
    source : str, path-like, estimator or array-like of shape (n_features,)
        A file: a model of SVM-rank, SVM-light, LIBLINEAR or LIBSVM with a linear kernel, for two classes, regression or
        ranking; or a model of XGBoost (JSON) with the booster gblinear. Or an object: such a booster, a fitted linear
        model of scikit-learn (anything with one row of ``coef_``), a Pipeline of scalers that ends with one, or an
        array of the weights.
    format : {"auto", "svm-rank", "liblinear", "libsvm", "xgboost"}, default "auto"
        Format of a file; "auto" recognizes it by the first line.
    names : sequence or dict of str, optional
        Names of the features, in the order of the columns; or a dict from names in the model, or ``f1``, ``f2``, ...,
        to new names; the dict may omit features.
    n_features : int, optional
        Number of features, for files that do not say it: SVM-rank and LIBSVM omit weights of 0. None: the largest
        feature that has a weight.

    Returns
    -------
    ImportedRanker or Pipeline
        The ranker; for a Pipeline, a Pipeline of its scalers and the ranker.

    Raises
    ------
    ModelFileError
        When the file is of another format, is damaged, or holds a model that is not linear.
    OptionError
        When the model is not one of these.

    Examples
    --------
    >>> from ranksvm import RankSVM, import_model, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=3, random_state=0)
    >>> from sklearn.linear_model import Ridge
    >>> ranker = import_model(Ridge().fit(data.X, data.y), names=["bm25", "links", "age"])
    >>> bool(abs(ranker.predict(data.X) - data.X @ ranker.coef_).max() < 1e-12)
    True
    >>> ranker.source
    'scikit-learn Ridge'
    """
    if n_features is not None and not is_integer(n_features, 1):
        raise OptionError(f"n_features must be a whole number from 1, got {n_features!r}.")
    if isinstance(source, str | os.PathLike):
        return _named(_ranker(_read(os.fspath(source), format, n_features)), names)
    if format != "auto" or n_features is not None:
        raise OptionError("format and n_features are for files.")
    if hasattr(source, "steps"):
        *scalers, last = source.steps
        return _named(Pipeline([*scalers, (last[0], _from_estimator(last[1]))]), names)
    if isinstance(source, BaseEstimator) or hasattr(source, "save_raw"):
        return _named(_from_estimator(source), names)
    return _named(_ranker(LinearFile(_weights(source, "the weights"), "weights")), names)


def _read(path: str, format: str, n_features: int | None) -> LinearFile:
    if format != "auto" and format not in _FORMATS:
        raise OptionError(f"format must be 'auto' or one of {', '.join(map(repr, _FORMATS))}, got {format!r}.")
    with open(path, "rb") as file:
        text = file.read().decode(errors="replace")  # remarks may be in any encoding
    matching = [name for name, (is_it, _) in _FORMATS.items() if is_it(text)]
    if format != "auto" and matching != [format]:
        raise ModelFileError(f"{path}: by its first line this is not a model file of {format}.")
    if not matching:
        raise ModelFileError(
            f"{path}: by its first line this is not a model file of SVM-rank (SVM-light), LIBLINEAR, LIBSVM or "
            "XGBoost. A model of scikit-learn in a file of joblib or pickle has to be named (--from sklearn), or "
            "loaded first."
        )
    return _FORMATS[matching[0]][1](path, text, n_features)


def _from_estimator(estimator: Any) -> ImportedRanker:
    name = type(estimator).__name__
    booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    if hasattr(booster, "save_raw"):  # of XGBoost, whose coef_ has six digits
        return _ranker(read_xgboost(name, bytes(booster.save_raw("json")).decode()))
    if not hasattr(estimator, "coef_"):
        raise OptionError(f"a fitted linear model is needed, one with coef_, got {name}.")
    coef = estimator.coef_
    ranker = _ranker(LinearFile(_weights(coef.toarray() if is_sparse(coef) else coef, name), f"scikit-learn {name}"))
    if hasattr(estimator, "feature_names_in_"):
        ranker.feature_names_in_ = np.array(estimator.feature_names_in_, dtype=object)
    return ranker


def _weights(coef: ArrayLike, of: str) -> np.ndarray:
    try:
        weights = np.asarray(coef, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(())
    if not weights.ndim:
        raise OptionError(f"a file, a fitted linear model or an array of weights is needed, got {type(coef).__name__}.")
    if weights.ndim == 2 and weights.shape[0] == 1:
        weights = weights[0]
    if weights.ndim != 1 or not len(weights):
        raise OptionError(f"one weight for each feature is needed, but {of} has an array of shape {np.shape(coef)}.")
    if not np.isfinite(weights).all():
        raise DataError(f"{of} has a weight that is not finite.")
    return np.array(weights)


def _ranker(found: LinearFile) -> ImportedRanker:
    ranker = ImportedRanker(found.source)
    ranker.coef_ = found.coef
    ranker.n_features_in_ = len(found.coef)
    if found.names:
        ranker.feature_names_in_ = np.array(found.names, dtype=object)
    ranker.frame_type_ = ranker.qid_column_ = None
    return ranker


def _named(model: Model, names: FeatureNames | None) -> Model:
    """The model with these names of features."""
    if names is not None:
        first = steps_of(model)[0]
        known = feature_labels(model.n_features_in_, getattr(first, "feature_names_in_", None))
        first.feature_names_in_ = np.array(mapped_names(known, names), dtype=object)
    return model
