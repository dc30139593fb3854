"""Features of a data file matched with those of a model or of the training data: by name, or else by position."""

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ranksvm._util.pipeline_steps import steps_of, takes_missing
from ranksvm._util.text import feature_labels
from ranksvm.cli.options.paths import titled
from ranksvm.cli.output.errors import warn
from ranksvm.cli.output.tables import count, counted

if TYPE_CHECKING:
    import numpy as np
    from sklearn.pipeline import Pipeline

    from ranksvm._util.types import Features
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.estimators.base.ranker import Ranker

    # A fitted ranker, or a Pipeline that ends with one.
    Model: TypeAlias = Ranker | Pipeline

__all__ = [
    "for_model",
    "known_texts",
    "matched",
    "name_features",
    "names_in",
    "refuse_new_missing",
    "refuse_not_finite",
]

T = TypeVar("T")
# maximum number of names that a message lists
_LISTED = 5
# The names that stand for missing feature names. (Nine digits are enough for every file.)
_NUMBERED = re.compile("f[1-9][0-9]{0,8}")


def for_model(model: "Model", data: "RankingData", path: Path) -> "tuple[Model, Features, Sequence[str] | None]":
    """The model without feature names, the features of a file in the model's order, and the names of these features.

    The model is returned without names, because scikit-learn would warn that the array of features has none.
    """
    from ranksvm.data.text_categories import categories_of

    names, n_features = names_in(model), model.n_features_in_
    X = matched(data, names, n_features, path, "the model", categories_of(model))
    if names is not None:
        model = _by_position(model)
    elif data.n_features == n_features and not _are_numbered(data.feature_names):
        names = data.feature_names
    refuse_not_finite(X, names, path, missing=takes_missing(model))
    _refuse_new_missing(model, X, names, path)
    return model, X, names


def refuse_not_finite(X: "Features", names: Sequence[str] | None, path: Path, missing: bool) -> None:
    """Raise DataError, with the names of the file and of the feature, for a value that is infinite or NaN.

    With ``missing``, values may be NaN.
    """
    from ranksvm._util.threads import effective_n_jobs
    from ranksvm.data.validation import check_finite

    with _naming_file(path):
        check_finite(X, effective_n_jobs(None), names, missing=missing)


def _refuse_new_missing(model: "Model", X: "Features", names: Sequence[str] | None, path: Path) -> None:
    """Raise DataError, as `refuse_not_finite` does, for NaN in features that had none when the model was trained."""
    *scalers, ranker = steps_of(model)
    if not hasattr(ranker, "has_missing_") or any(hasattr(step, "_takes_missing") for step in scalers):
        return
    refuse_new_missing(ranker.has_missing_.astype(bool), X, names, path)


def refuse_new_missing(known: "np.ndarray", X: "Features", names: Sequence[str] | None, path: Path) -> None:
    """Raise DataError, as `refuse_not_finite` does, for NaN in features whose missing values are not known."""
    from ranksvm.additive.bins import check_missing

    with _naming_file(path):
        check_missing(known, X, names)


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """A context whose DataErrors name a file."""
    from ranksvm.exceptions import DataError

    try:
        yield
    except DataError as error:
        raise DataError(f"{titled(path)}: {error}") from None


def matched(
    data: "RankingData",
    names: Sequence[str] | None,
    n_features: int,
    path: Path,
    of: str,
    categories: Mapping[str, list[str]],
) -> "Features":
    """The features of a file in the order of the wanted ones: by name if both have names, else by position.

    Features without names are called f1, f2, ... everywhere; a column with such a name is matched with them by name. If
    features are matched by position, missing ones are 0 and additional ones are ignored: LETOR text omits zeros, so a
    file may lack the last features of another one.

    Parameters
    ----------
    data : RankingData
        The content of the file.
    names : sequence of str or None
        Names of the wanted features.
    n_features : int
        Number of the wanted features.
    path : Path
        The file, for messages.
    of : str
        What the wanted features belong to, in words, such as "the model".
    categories : mapping of str to list of str
        The texts of the wanted features that hold text.

    Raises
    ------
    DataError
        When a wanted name is missing, or a feature holds text in the file but numbers in what it is matched with, or
        the other way round.
    """
    X = _in_order(data, names, n_features, path, of)
    return _with_places(X, data.categories, names, path, of, categories)


def _in_order(data: "RankingData", names: Sequence[str] | None, n_features: int, path: Path, of: str) -> Any:
    if names is None and _are_numbered(data.feature_names):
        names = feature_labels(n_features)
    if names is not None and data.feature_names is not None:
        return _by_name(data, names, path, of)
    if names is not None and all(map(_NUMBERED.fullmatch, names)):
        numbers = [int(name[1:]) for name in names]
        return _by_place(data.X, max(numbers), path)[:, [number - 1 for number in numbers]]
    if (names is None) != (data.feature_names is None) and data.n_rows:
        named, unnamed = (titled(path), of) if names is None else (of, titled(path))
        warn(f"{named} has feature names, but {unnamed} has none: features are matched by position.")
    return _by_place(data.X, n_features, path)


def name_features(model: T, names: Sequence[str] | None, categories: Mapping[str, list[str]] | None = None) -> T:
    """Store the names of the columns in the model; in a Pipeline, in its first step, which takes the columns.

    The texts of columns that hold text are stored in the last step.
    """
    if names is not None:
        import numpy as np

        steps_of(model)[0].feature_names_in_ = np.array(names, dtype=object)
    if categories:
        steps_of(model)[-1].categories_ = dict(categories)
    return model


def known_texts(models: Iterable["Model"]) -> dict[str, list[str]]:
    """For each column that held text when some models were trained: the texts that at least one of the models knows."""
    from ranksvm.data.text_categories import categories_of

    known: dict[str, list[str]] = {}
    for model in models:
        for name, texts in categories_of(model).items():
            known[name] = [*known.get(name, ()), *(text for text in texts if text not in known.get(name, ()))]
    return known


def names_in(model: "Model") -> Sequence[str] | None:
    """Names of the columns that a model was trained on, if they are known."""
    names = getattr(steps_of(model)[0], "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _are_numbered(names: Sequence[str] | None) -> bool:
    """Whether columns have the names that are given to features without names: f1, f2, ..., and no f0."""
    return names is not None and "f0" not in names and any(map(_NUMBERED.fullmatch, names))


def _by_name(data: "RankingData", names: Sequence[str], path: Path, of: str) -> "Features":
    from ranksvm.exceptions import DataError

    found = list(data.feature_names or ())
    if found == list(names):
        return data.X
    place = {name: column for column, name in enumerate(found)}
    missing = [name for name in names if name not in place]
    if missing:
        raise DataError(f"{titled(path)} lacks {counted(len(missing), 'feature')} of {of}: {_listed(missing)}.")
    further = sorted(set(found) - set(names), key=found.index)
    if further:
        warn(f"{titled(path)} has {counted(len(further), 'feature')} that {of} lacks, ignored: {_listed(further)}.")
    return data.X[:, [place[name] for name in names]]


def _with_places(
    X: "Features",
    found: Mapping[str, list[str]],
    names: Sequence[str] | None,
    path: Path,
    of: str,
    categories: Mapping[str, list[str]],
) -> "Features":
    """The features, with each text coded as its position in ``categories`` instead of its position in ``found``."""
    from ranksvm.data.text_categories import placed
    from ranksvm.exceptions import DataError

    own = {name: texts for name, texts in found.items() if names is None or name in names}
    for name in {**own, **categories}:
        if (name in own) != (name in categories) and not _is_missing(X, names or (), name):
            text, numbers = (titled(path), of) if name in own else (of, titled(path))
            raise DataError(f"feature {name!r} holds text in {text}, and numbers in {numbers}: use one kind in both.")
    return placed(X, names or (), own, categories)


def _is_missing(X: "Features", names: Sequence[str], name: str) -> bool:
    """Whether a feature has no value in any row, so that its column in the file looks like numbers."""
    import numpy as np

    from ranksvm._util.checks import is_sparse

    return name in names and not is_sparse(X) and bool(np.isnan(X[:, list(names).index(name)]).all())


def _by_place(X: Any, n_features: int, path: Path) -> "Features":
    found = X.shape[1]
    if found == n_features:
        return X
    import numpy as np

    from ranksvm._util.checks import is_sparse

    if found > n_features:
        warn(
            f"{titled(path)} has {counted(found, 'feature')}, but the training data have {count(n_features)}: "
            "the additional ones are ignored."
        )
        return X[:, :n_features]
    if not is_sparse(X):  # in sparse data the last features may all be 0
        warn(
            f"{titled(path)} has {counted(found, 'feature')}, but the training data have {count(n_features)}: "
            "the missing ones are 0."
        )
    if is_sparse(X):
        X = X.copy()
        X.resize(X.shape[0], n_features)
        return X
    wider = np.zeros((X.shape[0], n_features), dtype=X.dtype)
    wider[:, :found] = X
    return wider


def _by_position(model: "Model") -> "Model":
    steps = list(model.steps) if hasattr(model, "steps") else [("", model)]
    first = copy.copy(steps[0][1])
    del first.feature_names_in_
    if not hasattr(model, "steps"):
        return first
    unnamed = copy.copy(model)
    unnamed.steps = [(steps[0][0], first), *steps[1:]]
    return unnamed


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_LISTED])) + (", ..." if len(names) > _LISTED else "")
