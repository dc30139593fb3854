"""Converts arguments of ``fit`` and ``predict`` to arrays; no other module distinguishes kinds of input."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_sparse
from ranksvm._util.sparse_format import check_sparse_format, contiguous
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import Features, MatrixLike, MemoryLimit
from ranksvm.data import Preferences, Queries, frames, validation
from ranksvm.data.censoring import checked_event
from ranksvm.data.design_matrix import TwoBlocks, mapped_file
from ranksvm.data.device_features import DeviceFeatures, device_features
from ranksvm.data.numeric_column import checked_weights, is_plain_vector, label_column
from ranksvm.data.validation import as_data_error
from ranksvm.datasets.file_data import FileData, training_file, unpacked
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.device.arrays import host_sparse, host_values, is_on_device
from ranksvm.estimators.base.arguments import MetricsLike, Validated
from ranksvm.exceptions import DataError
from ranksvm.fits.evaluation import (
    EvaluationSet,
    EvaluationSets,
    PairEvaluationSet,
    decided_metrics,
    metrics_of_sets,
    names_of_sets,
    one_for_each,
    pairs_to_evaluate,
    refuse_labels_of_times,
    refuse_weights_of_pairs,
    warn_of_other_scale,
)
from ranksvm.fits.training_set import EvalArguments, TrainingArguments
from ranksvm.metrics import Convention, parse_metrics

if TYPE_CHECKING:
    from ranksvm.estimators.base.ranker import Ranker

__all__ = [
    "features_and_labels",
    "read_evaluation_sets",
    "read_training_data",
    "resolve_files",
    "validated_features",
]

logger = logging.getLogger("ranksvm.estimators")


def resolve_files(
    training: TrainingArguments,
    memory_limit: MemoryLimit,
    missing: bool = False,
    categorical: Sequence[str | int] | None = None,
) -> TrainingArguments:
    """The arguments of ``fit``, with a path or RankingData replaced by its data, for estimators that accept these.

    Parameters
    ----------
    training : TrainingArguments
        The arguments, as the user passed them.
    memory_limit : int, str or None
        The memory limit: larger data stay in their file, and X becomes `FileData`.
    missing : bool
        Whether features in a file may have missing values and text, as additive models accept them.
    categorical : sequence of str or int, optional
        The features that may hold text; None: no feature.

    Returns
    -------
    TrainingArguments
        The arguments.
    """
    if _is_plain(training.X) and memory_limit is None:
        return training
    listed = [] if categorical is None else list(categorical)
    X = training.X
    if isinstance(X, str | os.PathLike):
        X = training_file(X, memory_limit, missing, listed)
    names = X.feature_names if isinstance(X, RankingData) else None
    X, y, qid, texts = unpacked(
        X, training.y, training.qid, training.group, training.pairs, memory_limit, missing, listed
    )
    return replace(training, X=X, y=y, qid=qid, text_features=texts, feature_names=names)


def read_training_data(ranker: "Ranker", training: TrainingArguments) -> TrainingArguments:
    """The arguments of ``fit`` as arrays in memory; data in a file stay there.

    DataFrames, `Preferences`, sparse matrices and arrays on a GPU are distinguished here, once. The ranker stores the
    number and names of the features (``n_features_in_``, ``feature_names_in_``), the library of a DataFrame
    (``frame_type_``) and the column of query ids (``qid_column_``).

    Parameters
    ----------
    ranker : Ranker
        The estimator that is being fitted.
    training : TrainingArguments
        The arguments.

    Returns
    -------
    TrainingArguments
        Features are validated, and labels are finite. Weights, queries and pairs are on the host, and are validated by
        the functions that use them.
    """
    n_threads = effective_n_jobs(ranker.n_jobs)
    X, qid = training.X, training.qid
    ranker.qid_column_ = ranker.frame_type_ = None
    if not (_is_plain(X) and _is_plain(qid)):
        X, qid, ranker.qid_column_ = frames.split_qid(X, qid)
        ranker.frame_type_ = frames.library(X)
    X = ranker._learn_categories(X, training.text_features)
    if X is not training.X or qid is not training.qid:
        training = replace(training, X=X, qid=qid)
    training = _on_host(training)
    if isinstance(X, FileData):
        vars(ranker).pop("feature_names_in_", None)
        ranker.n_features_in_ = X.shape[1]
        _store_names(ranker, training)
        return training
    if isinstance(X, Preferences):
        others = {name: getattr(training, name) for name in ("y", "qid", "group", "pairs", "pair_weight")}
        qid, pairs, pair_weight = X.arguments(**others)
        training = replace(training, qid=qid, pairs=pairs, pair_weight=pair_weight)
    if not _is_plain(X):
        frames.refuse_containers(X)
    if training.y is None and training.pairs is None:
        name = type(ranker).__name__
        raise DataError(f"{name} requires y to be passed, but the target y is None (or give pairs of rows instead).")
    y = training.y
    if isinstance(X, Preferences):
        X = _features_of_preferences(ranker, X, n_threads)
    elif training.pairs is None:
        X, y = features_and_labels(ranker, X, y, n_threads=n_threads, finite=False)
    else:
        X = validated_features(ranker, X, n_threads=n_threads, reset=True, finite=False)
    _store_names(ranker, training)
    largest = None
    if not ranker._takes_missing:
        largest = validation.largest_values(X, n_threads, *_names_and_pairwise(ranker))
    return replace(training, X=X, y=y, largest=largest)


def _store_names(ranker: Any, training: TrainingArguments) -> None:
    """Store the names of the features of a file or of RankingData, which their array X does not have."""
    if training.feature_names is not None:
        ranker.feature_names_in_ = np.array(training.feature_names, dtype=object)


def read_evaluation_sets(
    ranker: "Ranker",
    evaluation: EvalArguments,
    training_X: Validated | TwoBlocks | FileData,
    n_queries: int,
    *,
    deciding: MetricsLike | None = None,
    convention: str | Convention = "default",
) -> EvaluationSets:
    """The evaluation sets passed to ``fit``, validated against the training data; none without ``eval_set``.

    Parameters
    ----------
    ranker : Ranker
        The estimator that is being fitted; it has stored the properties of the training data.
    evaluation : EvalArguments
        The arguments about evaluation sets.
    training_X : object
        Features of the training data; the scale of each set is compared with their scale.
    n_queries : int
        Number of queries of the training data.
    deciding : str, Metric or list, optional
        The estimator's own metric, or metrics, which come before the metrics of ``eval_metric``.
    convention : str or Convention
        Definition of the metrics.

    Returns
    -------
    EvaluationSets
        The sets.

    Raises
    ------
    DataError
        When a set cannot be used, or lacks query ids although the training data have several queries. The error names
        the set as in ``evals_result_``.
    """
    if evaluation.eval_set is None:
        evaluation.refuse_without_sets()
        return EvaluationSets([], [], [] if deciding is None else parse_metrics(deciding), convention)
    metrics = metrics_of_sets(evaluation.eval_metric, evaluation.eval_at, deciding)
    one = isinstance(evaluation.eval_set, tuple | Preferences)
    given = [evaluation.eval_set] if one else evaluation.eval_set
    if isinstance(given, list):
        given = [(each, None) if isinstance(each, Preferences) else each for each in given]
    if not isinstance(given, list) or not given or any(not _is_set(each) for each in given):
        raise DataError(
            "eval_set must be a list of tuples (X, y), (X, pairs) or (X, time, event), or of Preferences; "
            "or one of these."
        )
    names = names_of_sets(evaluation.eval_names, len(given))
    qids = one_for_each("eval_qid", evaluation.eval_qid, given)
    groups = one_for_each("eval_group", evaluation.eval_group, given)
    weights = one_for_each("eval_sample_weight", evaluation.eval_sample_weight, given)
    sets = []
    for name, (X, *y), qid, group, weight in zip(names, given, qids, groups, weights, strict=True):
        try:
            sets.append(_read_set(ranker, X, *y, qid=qid, group=group, sample_weight=weight, n_queries=n_queries))
            warn_of_other_scale(name, training_X, sets[-1].features)
        except DataError as error:
            raise DataError(f"eval_set, {name}: {error}") from error
    return EvaluationSets(names, sets, decided_metrics(metrics, sets), convention)


def _is_set(item: object) -> bool:
    return isinstance(item, tuple | list) and len(item) in (2, 3)


def _are_pairs(y: ArrayLike) -> bool:
    """Whether the second item of an evaluation set holds pairs of row numbers, and no labels."""
    values = np.asarray(y) if isinstance(y, list | tuple | np.ndarray) else None
    return values is not None and values.ndim == 2 and values.shape[1] == 2


def _read_set(
    ranker: "Ranker",
    X: MatrixLike | Preferences,
    y: ArrayLike,
    event: ArrayLike | None = None,
    *,
    qid: ArrayLike | None,
    group: ArrayLike | None,
    sample_weight: ArrayLike | None,
    n_queries: int,
) -> EvaluationSet | PairEvaluationSet:
    n_threads = effective_n_jobs(ranker.n_jobs)
    features: Callable[[MatrixLike], Validated] = partial(validated_features, ranker, n_threads=n_threads)
    are_pairs = isinstance(X, Preferences) or (event is None and _are_pairs(y))
    if are_pairs and sample_weight is not None:
        refuse_weights_of_pairs()
    if isinstance(X, Preferences):
        return pairs_to_evaluate(features, X, qid=qid, group=group)
    if isinstance(qid, str) or group is None:
        X, qid = ranker._split_qid(X, qid)
        if qid is None and n_queries > 1 and not are_pairs:
            raise DataError(f"the training data have {n_queries} queries: give this set's in eval_qid or eval_group.")
    X = ranker._without_qid_column(X)
    if are_pairs:
        return pairs_to_evaluate(features, X, qid=qid, group=group, pairs=y)
    if event is None and getattr(ranker, "censored_", False):
        refuse_labels_of_times()
    found, labels = features_and_labels(ranker, X, y, n_threads=n_threads, reset=False)
    queries = Queries.of(qid, group, len(labels))
    if sample_weight is not None:
        sample_weight = checked_weights("eval_sample_weight", sample_weight, len(labels), "rows")
    observed = None if event is None else checked_event(event, len(labels))
    return EvaluationSet(found, labels, queries.numbers(), sample_weight, observed)


def validated_features(
    ranker: "Ranker", X: MatrixLike, *, n_threads: int, reset: bool = False, finite: bool = True
) -> Validated:
    """X as a C-contiguous float array or CSR matrix, to which other arrays and DataFrames are converted.

    Raises DataError if X is invalid. With ``finite``, it also refuses infinite values, and NaN if the ranker does not
    take missing values; the error has the position of the value. With ``reset`` the ranker stores the number and names
    of the features; otherwise X must agree with them.
    """
    if (file := mapped_file(X)) is not None:
        file.check_whole()
    X = _from_devices(ranker, X)
    X = X if reset else ranker._coded(X)
    found: Validated | None = _features_on_device(ranker, X, reset)
    if found is not None:
        if finite:
            _check_finite(ranker, found, n_threads)
        return found
    found = _plain_features(ranker, X, reset)
    if found is None:
        with as_data_error(X):
            found = frames.validated(ranker, X, reset=reset, **validation.FEATURE_CHECKS)
    if finite:
        _check_finite(ranker, found, n_threads)
    return found


def features_and_labels(
    ranker: "Ranker", X: MatrixLike, y: ArrayLike | None, *, n_threads: int, reset: bool = True, finite: bool = True
) -> tuple[Validated, np.ndarray]:
    """X as `validated_features` gives it, and y as float64.

    With ``reset`` the ranker stores the number and names of the features; otherwise X must agree with them.
    """
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise DataError(
            f"y must hold one label for each row of X, got shape {shape}. If X and y are chosen and rejected "
            "answers, pass both as X: fit(Preferences(chosen, rejected))."
        )
    if (file := mapped_file(X)) is not None:
        file.check_whole()
    if not _is_plain(X):
        X = _from_devices(ranker, X)
        if reset:
            frames.refuse_reserved_columns(frames.column_names(X), y)
        else:
            X = ranker._coded(X)
    labels = None
    if y is not None:  # None is refused by scikit-learn, which names the estimator
        labels = label_column(y)
        if (on_device := _features_on_device(ranker, X, reset)) is not None:
            if finite:
                _check_finite(ranker, on_device, n_threads)
            return on_device, validation.checked_labels(labels, len(on_device))
    found = _plain_features(ranker, X, reset) if is_plain_vector(labels, X) else None
    if found is None or labels is None:
        with as_data_error(X):
            found, labels = frames.validated(
                ranker, X, labels, reset=reset, y_numeric=True, **validation.FEATURE_CHECKS
            )
    if finite:
        _check_finite(ranker, found, n_threads)
    return found, labels


def _from_devices(ranker: "Ranker", X: Any) -> Any:
    """X, copied to host memory if it is on a GPU and the model takes such X but computes on the host."""
    X = host_sparse(X)
    if not ranker._copies_from_devices or not is_on_device(X):
        return X
    logger.info("X is on a GPU, but %s needs it in host memory: it is copied there", type(ranker).__name__)
    return host_values(X)


def _features_on_device(ranker: "Ranker", X: MatrixLike, reset: bool) -> DeviceFeatures | None:
    """X on its GPU; None if X is elsewhere or the model cannot read it there (`frames.validated` then refuses X)."""
    if _is_plain(X) or not getattr(ranker, "_reads_devices", False):
        return None
    found = device_features(X)
    if found is None:
        return None
    n, name = found.shape[1], type(ranker).__name__
    if reset:
        vars(ranker).pop("feature_names_in_", None)
        ranker.n_features_in_ = n
    elif n != getattr(ranker, "n_features_in_", n):
        raise DataError(f"X has {n} features, but {name} is expecting {ranker.n_features_in_} features as input.")
    return found


def _features_of_preferences(ranker: "Ranker", data: Preferences, n_threads: int) -> Features | TwoBlocks:
    """The rows of chosen and rejected answers; the chosen ones determine the names of the features."""
    blocks = []
    for name, X, first in zip(("chosen", "rejected"), data.blocks, (True, False), strict=True):
        try:
            block = validated_features(ranker, X, n_threads=n_threads, reset=first)
            blocks.append(cast("Features", block))  # not on a GPU: `Preferences` has copied arrays from there
        except DataError as error:
            raise DataError(f"{name}: {error}") from error
    return TwoBlocks.joined(*blocks)


def _plain_features(ranker: "Ranker", X: MatrixLike, reset: bool) -> Features | None:
    """A float array or CSR as scikit-learn's checks would return it; None if X needs these checks.

    They are avoided because importing scikit-learn takes longer than most fits, and its checks of a few rows take
    longer than scoring them.
    """
    if not (type(X) is np.ndarray or (is_sparse(X) and X.format == "csr")):
        return None
    if len(X.shape) != 2 or 0 in X.shape or X.dtype not in validation.FEATURE_CHECKS["dtype"]:
        return None
    named = hasattr(ranker, "feature_names_in_")
    # scikit-learn warns about an array if X of the fit had names; here only if X was a DataFrame, because a file or
    # RankingData may also have names, and their X is an array
    warned = named and getattr(ranker, "frame_type_", "") is not None
    if not reset and (warned or getattr(ranker, "n_features_in_", None) != X.shape[1]):
        return None
    if is_sparse(X):
        check_sparse_format(X)
    if reset:
        if named:
            del ranker.feature_names_in_
        ranker.n_features_in_ = X.shape[1]
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else contiguous(X.tocsr())


def _on_host(training: TrainingArguments) -> TrainingArguments:
    """All arguments except X on the host, which computes the pairs."""
    names = ("y", "qid", "group", "pairs", "pair_weight", "sample_weight", "query_weight", "propensity", "event")
    values = {name: getattr(training, name) for name in names}
    elsewhere = {name: host_values(value) for name, value in values.items() if not _is_plain(value)}
    return replace(training, **elsewhere) if elsewhere else training


def _is_plain(value: object) -> bool:
    """Whether an argument needs no conversion: None or a NumPy array."""
    return value is None or type(value) is np.ndarray


def _check_finite(ranker: "Ranker", X: Validated, n_threads: int) -> None:
    validation.check_finite(
        X, n_threads, *_names_and_pairwise(ranker), missing=getattr(ranker, "_takes_missing", False)
    )


def _names_and_pairwise(ranker: "Ranker") -> tuple[Any, bool]:
    """The names of the features, and whether X is a kernel matrix, for messages about X."""
    return getattr(ranker, "feature_names_in_", None), getattr(ranker, "kernel", None) == "precomputed"
