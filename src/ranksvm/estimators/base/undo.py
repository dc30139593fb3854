"""Learning in place: a lock for each model, a warning about very large features, and undo if learning fails."""

import functools
import math
import os
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

import ranksvm._compiled.linear as linear
from ranksvm._util.checks import is_sparse, level_of_caller
from ranksvm._util.text import feature_label
from ranksvm._util.types import Features
from ranksvm.data.validation import largest_value
from ranksvm.estimators.base.ranker import restore
from ranksvm.exceptions import DataError, ScaleWarning
from ranksvm.model_files.schema import Array, schema_of

if TYPE_CHECKING:
    from ranksvm.estimators.base.online_ranker import OnlineRanker

__all__ = ["undone_if_refused", "lock_of", "undone_if_not_finite"]

_locks: "weakref.WeakKeyDictionary[Any, threading.RLock]" = weakref.WeakKeyDictionary()
_guard = threading.Lock()

# If features, weights and hyper-parameters are at most this large, and hyper-parameters are at least the inverse of
# this number, the covariance of a second-order model cannot overflow, because its eigenvalues only decrease. So it is
# copied only in other cases.
MODERATE = 1e60
# If a sum in float64 has a value of this size, terms of ordinary size are lost.
LARGE = 1e15
# A full covariance begins at I, so its entries have round-off of 1e-16. If features are linearly dependent, ``z'S z``
# then has round-off of 1e-16 times the squared features. If features exceed this number times the root of gamma, that
# is not small relative to gamma, and updates may go in wrong directions.
LARGE_FOR_COVARIANCE = 1e6


def lock_of(estimator: object) -> "threading.RLock":
    """The lock of an estimator, acquired while it learns from a query, and while it is copied."""
    with _guard:
        return _locks.setdefault(estimator, threading.RLock())


def _before_fork() -> None:
    # The child must not begin with the lock of a thread of its parent, or with a model that has half learned a query.
    # Hooks before a fork run in the reverse order of their registration: this one runs before the hooks
    # of `lazy` and `threads`, which take locks for which a thread that learns may wait.
    with _guard:
        locks = list(_locks.values())
    _forking.held = []
    for lock in locks:
        lock.acquire()
        _forking.held.append(lock)


def _after_fork_in_parent() -> None:
    for lock in _forking.held:
        lock.release()


def _after_fork_in_child() -> None:
    global _locks, _guard
    _locks, _guard = weakref.WeakKeyDictionary(), threading.Lock()


# For each thread that forks: the locks that it has acquired for this.
_forking = threading.local()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


@contextmanager
def undone_if_not_finite(estimator: "OnlineRanker", X: Features, weights: np.ndarray | None) -> Iterator[None]:
    """Restore an online ranker's arrays, and raise DataError, if the ``with`` block makes them infinite or NaN.

    Warn about a value above 1e15: in a sum with it, the other features are lost to round-off. For a full covariance,
    warn about values that are too large relative to gamma.

    Parameters
    ----------
    estimator : OnlineRanker
        The ranker; its arrays change in place.
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        Features of the documents that it learns from.
    weights : ndarray of shape (n,), or None
        Weights of documents or pairs.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if large := _exceeds(X, _limit(estimator)):
        _warn_of_large_value(estimator, X, names)
    columns = _columns_that_change(estimator, X)
    extreme = _is_extreme(estimator, X if large else None, weights)
    state = _state(estimator, extreme)
    # arrays with one number for each feature change in these columns only
    parts = {name: columns if of_features else slice(None) for name, (_, of_features) in state.items()}
    before = {name: values[parts[name]].copy() for name, (values, _) in state.items()}
    # only extreme numbers overflow; `snapshot` then waits until the model is finite or restored
    with np.errstate(over="ignore", invalid="ignore"), lock_of(estimator) if extreme else nullcontext():
        yield
        finite = all(_all_finite(values[parts[name]]) for name, (values, _) in state.items())
        # weights of a committee, or a mean, may overflow even if the state does not
        if finite and _all_finite(estimator.coef_[columns]):
            return
        with lock_of(estimator):
            for name, (values, _) in state.items():
                values[parts[name]] = before[name]
    raise DataError(_reason(X, weights, names))


@contextmanager
def undone_if_refused(estimator: object) -> Iterator[None]:
    """Restore an estimator's attributes if the ``with`` block raises DataError: a model that was new is new again."""
    before = dict(vars(estimator))
    try:
        yield
    except DataError:
        restore(estimator, before)
        raise


def _state(estimator: "OnlineRanker", with_covariance: bool) -> dict[str, tuple[np.ndarray, bool]]:
    """The arrays that learning changes, and whether they hold one number for each feature."""
    found: dict[str, tuple[np.ndarray, bool]] = {}
    kind: type = type(estimator)
    for name, of_features in _arrays_of(kind).items():
        values = getattr(estimator, name, None)
        if values is not None and (with_covariance or name != "_covariance_"):
            found[name] = values, of_features
    return found


@functools.cache
def _arrays_of(kind: type) -> dict[str, bool]:
    """Names of the arrays of a class of rankers, and whether they hold one number for each feature."""
    fields = {name: field for name, field in schema_of(kind).items() if isinstance(field, Array)}
    return {name: field.shape == ("n_features",) for name, field in fields.items()}


def _all_finite(values: np.ndarray) -> bool:
    # takes a quarter of the time of np.isfinite(values).all() for a hundred numbers
    return bool(linear.all_finite(np.ascontiguousarray(values).reshape(-1)))


def _columns_that_change(estimator: "OnlineRanker", X: Features) -> np.ndarray | slice:
    """Columns of the weights that learning from X can change: those with stored values, or all if the model forgets."""
    if is_sparse(X) and X.nnz < X.shape[1] and getattr(estimator, "decay", 1.0) == 1.0:
        return np.unique(X.indices)
    return slice(None)


def _is_extreme(estimator: "OnlineRanker", X: Features | None, weights: np.ndarray | None) -> bool:
    parameters = [float(getattr(estimator, name)) for name in ("C", "gamma") if hasattr(estimator, name)]
    if any(not 1.0 / MODERATE <= parameter <= MODERATE for parameter in parameters):
        return True
    return any(_exceeds(values, MODERATE) for values in (X, weights, estimator.weights_))


def _exceeds(values: Features | None, limit: float) -> bool:
    """Whether an absolute value is larger than a limit >= 1."""
    if type(values) is np.ndarray and values.flags.c_contiguous:
        # for nearly all data the sum of squares decides, in a quarter of the time
        flat = values.reshape(-1)
        if float(np.vdot(flat, flat)) <= limit * limit:
            return False
    return _largest(values) > limit


def _limit(estimator: "OnlineRanker") -> float:
    """The largest absolute value of features that needs no warning."""
    covariance = getattr(estimator, "_covariance_", None)
    if covariance is None or len(covariance) == len(estimator.weights_):
        return LARGE
    return min(max(1.0, LARGE_FOR_COVARIANCE * math.sqrt(getattr(estimator, "gamma", 1.0))), LARGE)


def _warn_of_large_value(estimator: "OnlineRanker", X: Features, names: np.ndarray | None) -> None:
    harm = "Such a value hides all other features, and one update may ruin the model"
    if not _exceeds(X, LARGE):
        gamma = getattr(estimator, "gamma", 1.0)
        harm = f"With gamma={gamma:g} this may ruin the covariance if features are linearly dependent"
    warnings.warn(
        f"Row {_largest_in_words(X, names)}. {harm}: check the value, or scale the features.",
        ScaleWarning,
        stacklevel=level_of_caller(),
    )


def _largest(values: Features | None) -> float:
    """The largest absolute value; 0 if there are no values."""
    if values is not None and not isinstance(values, np.ndarray):
        values = values.data
    return 0.0 if values is None or values.size == 0 else max(float(values.max()), -float(values.min()))


def _reason(X: Features, weights: np.ndarray | None, names: np.ndarray | None) -> str:
    text = "Learning from these documents overflows float64, and the model is as it was before: "
    if _largest(weights) > max(MODERATE, _largest(X)):
        return (
            f"{text}weights are as large as {_largest(weights):g}. Rescale weights, or limit propensities from below."
        )
    return f"{text}row {_largest_in_words(X, names)}. Scale the features."


def _largest_in_words(X: Features, names: np.ndarray | None) -> str:
    """The row and the feature of the largest absolute value of X, with the value, as text."""
    value, row, column = largest_value(X)
    name = feature_label(column) if names is None else str(names[column])
    return f"{row} (from 0) has the value {value:g} in feature {name}"
