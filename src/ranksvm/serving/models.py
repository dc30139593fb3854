"""Reads models of a service from bytes, and calls them; they take features by position, without names."""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.text import feature_labels
from ranksvm.estimators.base.linear_ranker import SAVED_LINEAR_RANKERS, SAVED_ONLINE_RANKERS
from ranksvm.exceptions import OptionError
from ranksvm.model_files.persistence import load_as, save
from ranksvm.serving.feedback import Lesson

if TYPE_CHECKING:
    from ranksvm.fits.results.explanation import Explanation

__all__ = [
    "Model",
    "explained_by",
    "feature_names",
    "learn",
    "learns",
    "model_bytes",
    "model_from",
    "ranking_model_from",
    "scales_by_query",
    "scores",
    "make_deterministic",
]

# Scalers that transform query by query, by name: importing their classes would import scikit-learn.
_BY_QUERY = ("QueryMinMaxScaler", "QueryStandardScaler", "RetrieverScaler")


class Model(Protocol):
    """A ranker, or a Pipeline that ends with one."""

    def predict(self, X: np.ndarray, /) -> np.ndarray: ...


M = TypeVar("M", bound=Model)


def scales_by_query(step: object) -> bool:
    """Whether a step of a Pipeline scales features query by query."""
    return type(step).__name__ in _BY_QUERY


def model_from(content: bytes) -> Model:
    """Read a model, which takes features by position, not by name."""
    return _loaded(content, {})


def ranking_model_from(content: bytes) -> Model:
    """Read a model, which takes features by position and cannot learn; no scikit-learn is needed for a linear model."""
    return _loaded(content, SAVED_LINEAR_RANKERS | SAVED_ONLINE_RANKERS)


def _loaded(content: bytes, classes: Mapping[str, type]) -> Model:
    model = load_as(io.BytesIO(content), classes)
    if not hasattr(model, "predict"):
        raise OptionError(f"the model file holds a {type(model).__name__}, which cannot rank.")
    return by_position(model)


def by_position(model: M) -> M:
    """Remove the names of features from a model and its steps, so that it takes features by position; return it.

    Hyper-parameters get numbers instead of names: otherwise the model could not be fitted again.
    """
    for step in steps_of(model):
        names = vars(step).pop("feature_names_in_", None)
        if names is None:
            continue
        numbers = {str(name): number for number, name in enumerate(names)}
        for parameter in ("monotone", "categorical", "interactions"):
            if hasattr(step, parameter):
                setattr(step, parameter, _numbered(getattr(step, parameter), numbers))
    return model


def _numbered(given: Any, numbers: Mapping[str, int]) -> Any:
    """The value of a hyper-parameter, with numbers instead of names in the keys of a dict, in a list, or in pairs."""
    if isinstance(given, Mapping):
        return {numbers.get(feature, feature): value for feature, value in given.items()}
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple):
        return given
    return [numbers.get(one, one) if isinstance(one, str) else _numbered(one, numbers) for one in given]


def make_deterministic(model: M) -> M:
    """Give a model one thread, and seed 0 if it has none, so that replays of a log learn the same; return the model."""
    for step in steps_of(model):
        if getattr(step, "random_state", 0) is None:
            step.random_state = 0
        if hasattr(step, "n_jobs"):
            # the last bits of a fit may depend on the number of threads, and a second thread hardly helps for one query
            step.n_jobs = 1
    return model


def model_bytes(model: Model) -> bytes:
    """The bytes of a model's file; the same model gives the same bytes."""
    buffer = io.BytesIO()
    save(model, buffer)
    return buffer.getvalue()


def feature_names(model: Model, n_features: int | None = None) -> list[str]:
    """Names of a model's features: from the DataFrame that it was fitted to, or f1, f2, ... as in LETOR files.

    Parameters
    ----------
    model : estimator
        The model.
    n_features : int, optional
        Number of features of a new model.

    Returns
    -------
    list of str
        The names.

    Raises
    ------
    OptionError
        When the number is unknown, or differs from the model's.
    """
    first, *others = steps_of(model)
    known = getattr(first, "n_features_in_", None)
    if known is None and others:
        raise OptionError("the steps of a Pipeline have to be fitted before its ranker can learn from feedback.")
    if known is None and n_features is None:
        raise OptionError("a new model has no number of features yet: give --n-features.")
    if known is not None and n_features not in (None, known):
        raise OptionError(f"the model has {known} features, not {n_features}.")
    return feature_labels(int(known or n_features or 0), getattr(first, "feature_names_in_", None))


def learns(model: Model) -> bool:
    """Whether a model learns from one query after another."""
    return hasattr(steps_of(model)[-1], "partial_fit_pairs")


def scores(model: Model, X: np.ndarray) -> np.ndarray:
    """Score of each document of one query; all 0 for a model that has learned nothing."""
    *_, ranker = steps_of(model)
    if not hasattr(ranker, "n_features_in_"):
        return np.zeros(len(X))
    return ranker.predict(_transformed(model, X))


def _transformed(model: Model, X: np.ndarray) -> np.ndarray:
    """Documents of one query in the form that the last step receives."""
    for step in steps_of(model)[:-1]:
        if step is None or step == "passthrough":
            continue
        by_query = scales_by_query(step)
        X = step.transform(X, qid=np.zeros(len(X), dtype=np.int64)) if by_query else step.transform(X)
    return X


def learn(model: Model, lesson: Lesson) -> None:
    """Teach an online ranker, or the one at the end of a Pipeline."""
    ranker, X = steps_of(model)[-1], _transformed(model, lesson.X)
    if lesson.pairs is None:
        ranker.partial_fit(X, lesson.y)
    elif X is not lesson.X or not _learn_again(ranker, X, lesson.pairs, lesson.weight):
        ranker.partial_fit_pairs(X, lesson.pairs, lesson.weight)


def _learn_again(ranker: Any, X: np.ndarray, pairs: np.ndarray, weight: np.ndarray | None) -> bool:
    """Learn without checking the documents, which were checked when they were ranked; False if the ranker cannot."""
    from ranksvm.estimators.base.online_ranker import learn_checked_pairs  # not needed in a process that only ranks

    return learn_checked_pairs(ranker, X, pairs, weight)


def explained_by(model: Model, X: np.ndarray, names: list[str]) -> "Explanation | None":
    """The explanation of a ranking of one query; None for a model whose score is not a sum over features."""
    ranker = steps_of(model)[-1]
    if not hasattr(ranker, "explain") or not hasattr(ranker, "n_features_in_"):
        return None
    X = _transformed(model, X)
    return ranker.explain(
        X, np.zeros(len(X), dtype=np.int64), feature_names=names if X.shape[1] == len(names) else None
    )
