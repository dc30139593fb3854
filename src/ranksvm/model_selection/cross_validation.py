"""cross_validate, with or without metadata routing of scikit-learn; and choosing one of several models by scores."""

import dataclasses
import inspect
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import clone

from ranksvm._util.checks import check_one_per_row, is_integer, n_rows_of
from ranksvm._util.pipeline_steps import knowing_all_data
from ranksvm._util.tables import Table, Tabular
from ranksvm._util.text import plain
from ranksvm._util.threads import effective_n_jobs, parallel_map
from ranksvm._util.types import MatrixLike, Splits
from ranksvm.data import Preferences, Queries
from ranksvm.data.censoring import checked_event, strata_or_rows
from ranksvm.data.frames import column_names, refuse_reserved_columns, split_qid, take_rows
from ranksvm.data.numeric_column import checked_weights, label_column
from ranksvm.data.pair_list import groups_of_pairs, row_numbers
from ranksvm.data.queries import QID_FROM_GROUP, id_array
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import Convention, Evaluation, Metric, evaluate, evaluate_pairs, parse_metrics
from ranksvm.metrics.conventions import convention_named
from ranksvm.metrics.definitions import ACCURACY, CONCORDANCE, on_scale, only_metric, parse_metric
from ranksvm.metrics.scorers import predict_scores
from ranksvm.model_selection.splitters import QueryKFold

__all__ = [
    "RULES",
    "CrossValidation",
    "choose",
    "cross_validate",
    "mean_and_standard_error",
    "pooled",
    "query_splits",
    "standard_error_over_queries",
]
RULES = ("best", "one_standard_error")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Tabular):
    """The result of `cross_validate`.

    Parameters
    ----------
    folds : list of Evaluation
        The evaluation of each test part, with its values per query.
    fit_seconds : ndarray, shape (n_folds,)
        Wall-clock time of each fit.
    predict_seconds : ndarray, shape (n_folds,)
        Wall-clock time of each prediction.
    estimators : list or None
        The fitted estimators, on request.

    Examples
    --------
    >>> from ranksvm import RankSVM, cross_validate, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> found = cross_validate(RankSVM(C=0.01), data.X, data.y, qid=data.qid, cv=4)
    >>> found.scores["ndcg@10"].shape, found.pooled().n_queries
    ((4,), 20)
    >>> bool(found["ndcg@10"] == found.scores["ndcg@10"].mean())
    True
    """

    folds: list[Evaluation]
    fit_seconds: np.ndarray
    predict_seconds: np.ndarray
    estimators: list[Any] | None = None

    def __getitem__(self, metric: str | Metric) -> float:
        name = parse_metric(metric).name
        if name not in self.means:
            raise OptionError(f"{name!r} was not evaluated: choose from {', '.join(self.means)}.")
        return self.means[name]

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """Metric name -> its mean over each test part, shape (n_folds,); NaN where it is undefined."""
        return {name: np.array([fold.means[name] for fold in self.folds]) for name in self.folds[0].means}

    @property
    def means(self) -> dict[str, float]:
        """Metric name -> mean over the folds in which it is defined; NaN if there are none."""
        return {name: float(v.mean()) if len(v) else np.nan for name, v in self._defined_scores().items()}

    @property
    def stds(self) -> dict[str, float]:
        """Metric name -> standard deviation over the n folds in which it is defined (with n - 1; 0 for one fold)."""
        return {name: float(v.std(ddof=1)) if len(v) > 1 else 0.0 for name, v in self._defined_scores().items()}

    def _defined_scores(self) -> dict[str, np.ndarray]:
        return {name: values[~np.isnan(values)] for name, values in self.scores.items()}

    @property
    def qid(self) -> np.ndarray:
        """Ids of the test queries, fold after fold."""
        return np.concatenate([fold.qid for fold in self.folds])

    @property
    def per_query(self) -> dict[str, np.ndarray]:
        """Metric name -> value of each test query, in the order of `qid`."""
        return {name: np.concatenate([fold.per_query[name] for fold in self.folds]) for name in self.folds[0].means}

    def pooled(self) -> Evaluation:
        """All test parts as one evaluation, for `ranksvm.metrics.compare`; its means are over all queries.

        Returns
        -------
        Evaluation
            Values of the queries in the order of `qid`.
        """
        return pooled(self.folds)

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """Plain Python values, ready for JSON.

        Parameters
        ----------
        per_query : bool, default False
            Whether the values of the queries are included.

        Returns
        -------
        dict
            ``means``, ``stds``, ``folds``, ``fit_seconds`` and ``predict_seconds``.
        """

        return {
            "means": plain(self.means),
            "stds": plain(self.stds),
            "folds": [fold.to_dict(per_query) for fold in self.folds],
            "fit_seconds": self.fit_seconds.tolist(),
            "predict_seconds": self.predict_seconds.tolist(),
        }

    def _table(self) -> Table:
        convention, n_folds = self.folds[0].convention, len(self.folds)
        return Table(
            {
                "fold": list(range(n_folds)),
                "queries": [fold.n_queries for fold in self.folds],
                **self.scores,
                "fit_seconds": self.fit_seconds,
                "predict_seconds": self.predict_seconds,
                "convention": [convention] * n_folds,
            },
            f"{n_folds} folds, metrics of the convention {convention}",
            headings={
                "fold": f"fold (convention {convention})",
                "fit_seconds": "fit (s)",
                "predict_seconds": "predict (s)",
            },
            hidden=("convention",),
            footer=[{"fold": "mean", **self.means}, {"fold": "std", **self.stds}],
        )

    def __repr__(self) -> str:
        stds = self.stds
        values = ", ".join(f"{name}={value:.4f}±{stds[name]:.4f}" for name, value in self.means.items())
        return f"CrossValidation({values}; mean ± standard deviation of {len(self.folds)} folds)"


def cross_validate(
    estimator: Any,
    X: MatrixLike | Preferences,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    pair_weight: ArrayLike | None = None,
    event: ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@10",),
    cv: Splits = 5,
    convention: str | Convention = "default",
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = 1,
    return_estimator: bool = False,
) -> CrossValidation:
    """Cross-validation over queries: fit on the training part and evaluate on the test part of each split.

    The result does not depend on scikit-learn's configuration: metadata routing is enabled while the estimator runs, so
    that the steps of a Pipeline receive the queries they request.

    All rows of X, not only those of the training part, decide whether an `AdditiveRankSVM` has a level for the missing
    values of a feature, as in `AdditiveRankSVMCV`, unless it is a step of a Pipeline.

    Parameters
    ----------
    estimator : object
        Has ``fit(X, y, qid=...)`` and ``predict(X)``, and can be cloned; the queries are also passed to ``predict`` if
        it requests them, as a Pipeline with a `QueryStandardScaler` does. If its ``fit`` has ``group`` but no ``qid``,
        like ``lightgbm.LGBMRanker``, it receives the rows query by query, and the sizes of the queries. It is not
        fitted itself.
    X : array-like, sparse matrix or DataFrame of shape (n_rows, n_features), or Preferences
        Features; for an estimator with a precomputed kernel, the kernel matrix of the rows.
    y : array-like of shape (n_rows,)
        Labels, or times with ``event``. Omitted if ``pairs`` are given.
    qid : array-like of shape (n_rows,), or str; optional only with pairs
        Query of each row, in any order, or the name of the column of a DataFrame that has them: the estimators receive
        its values separately from the other columns, so that a Pipeline needs no special step.
    pairs : array-like of int, shape (n_pairs, 2), optional
        Instead of ``y``: row numbers (preferred, other), passed to ``fit`` as ``pairs``. Folds divide the pairs:
        pairs of one query (`Preferences`: prompt) stay together; if there is only one query, pairs that share rows,
        directly or through other pairs, stay together. A training or test part has copies of the rows in its pairs, and
        no others. In a Pipeline, pairs are passed to every step whose ``fit`` has the argument.
    pair_weight : array-like of shape (n_pairs,), optional
        Weight of each of the ``pairs``, passed to ``fit`` and used in the accuracy.
    event : array-like of bool, shape (n_rows,), optional
        Which of the times in ``y`` are observed, as in `RankSVM.fit`; passed to ``fit``. Folds divide the queries
        (strata), or, if there is only one, the rows.
    metrics : str, Metric, or iterable of either, default ("ndcg@10",)
        As in `ranksvm.metrics.evaluate`. Pairs have only the metric ``pairwise_accuracy``, and censored times only
        ``concordance_index``; for them, this metric is the default. ``err`` takes the highest label of all rows as the
        highest grade in each fold.
    cv : int, splitter, or iterable of (train, test), default 5
        Number of folds of a `QueryKFold`; an object with ``split(X, y, groups)``, whose ``groups`` are not the query
        ids, but numbers of the queries, from 0, in the order in which they first appear; or row numbers, or masks of
        the rows. With pairs, the numbers in a split are numbers of pairs.
    convention : str or Convention, default "default"
        As in `ranksvm.metrics.evaluate`.
    sample_weight : array-like of shape (n_rows,), optional
        Passed to ``fit``; in the means a test query is weighted by the mean weight of its rows.
    query_weight, propensity : array-like of shape (n_rows,), optional
        Passed to ``fit``.
    fit_params : mapping, optional
        More arguments of ``fit``. Arrays with one entry per row are divided like ``X``.
    n_jobs : int or None, default 1
        Number of threads, one fold each; None: all processors. With an estimator that uses several threads, one fold at
        a time is faster.
    return_estimator : bool, default False
        Whether to keep the fitted estimators.

    Returns
    -------
    CrossValidation
        Values per fold and per query.

    Raises
    ------
    DataError
        When there are labels without queries, lengths differ, a part of a split is empty, or a query lies in both parts
        of a split.
    OptionError
        When an option, a metric or the convention is unknown, or the estimator's ``fit`` takes no queries.

    Examples
    --------
    >>> from ranksvm import RankSVM, cross_validate, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> found = cross_validate(RankSVM(C=0.01), data.X, data.y, qid=data.qid, metrics=["ndcg@5", "map"], cv=4)
    >>> len(found.folds), sorted(found.means)
    (4, ['map', 'ndcg@5'])
    """
    by_group = _takes_group(estimator)
    parsed = parse_metrics(metrics)
    rules = convention_named(convention)
    n_threads = effective_n_jobs(n_jobs)
    if isinstance(X, Preferences):
        qid, pairs, pair_weight = X.arguments(y=y, qid=qid, pairs=pairs, pair_weight=pair_weight)
        n_rows = len(qid)
    else:
        X, qid, _ = split_qid(X, qid)
        refuse_reserved_columns(column_names(X), y)
        n_rows = n_rows_of(X)
    if pair_weight is not None and pairs is None:
        raise DataError("pair_weight is given without pairs.")
    if qid is None and pairs is None and event is None:
        raise DataError(
            "cross_validate divides the data by query, but got no query ids. Pass qid= (one query id per row, or the "
            "name of a DataFrame's column); with the sizes of queries, qid=np.repeat(np.arange(len(group)), group)."
        )
    queries = Queries.from_qid(qid, n_rows)
    ids = id_array(qid).reshape(-1) if qid is not None else np.zeros(n_rows, dtype=np.int64)
    labels: np.ndarray | None = None
    listed = None if pairs is None else _Listed(pairs, pair_weight, queries)
    if listed is None:
        labels = _labels(y, n_rows)
        parsed = on_scale(parsed, labels.max)
    elif y is not None or event is not None:
        raise DataError("y and event are for labels and times: give them, or pairs.")
    else:
        parsed = [only_metric("pairs", ACCURACY, metric) for metric in parsed][:1]
    if event is not None:
        event = checked_event(event, n_rows)
        parsed = [only_metric("censored times", CONCORDANCE, metric) for metric in parsed][:1]
        queries = strata_or_rows(queries)
    given = {"sample_weight": sample_weight, "query_weight": query_weight, "propensity": propensity, "event": event}
    per_row: dict[str, Any] = {
        name: _per_row(name, value, n_rows) for name, value in given.items() if value is not None
    }
    others: dict[str, Any] = {}
    for name, value in (fit_params or {}).items():
        if name == "group":
            raise OptionError(f"fit_params holds 'group', which cannot be divided like rows: {QID_FROM_GROUP}")
        if name == "qid" or name in per_row:
            raise OptionError(f"fit_params holds {name!r}, which is an argument of cross_validate itself.")
        is_per_row = not isinstance(value, str | Mapping) and np.ndim(value) > 0 and len(value) == n_rows
        (per_row if is_per_row else others)[name] = value

    numbers = queries.numbers()

    def run(split: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Evaluation, float, float]:
        train, test = split if listed is None else map(listed.rows, split)
        queried: dict[str, Any] = {}
        if by_group:
            train = train[np.argsort(numbers[train], kind="stable")]
            queried["group"] = np.unique(numbers[train], return_counts=True)[1]
        else:
            queried["qid"] = ids[train]
        params = others | queried | {name: take_rows(value, train) for name, value in per_row.items()}
        own_labels = [] if labels is None else [labels[train]]
        if listed is not None:
            params |= listed.arguments(split[0])
        # Here, not around all folds, because the configuration is local to a thread.
        with sklearn.config_context(enable_metadata_routing=True):
            started = time.perf_counter()
            fresh = clone(estimator)
            if listed is not None:
                _request_pairs(fresh)
            with knowing_all_data(fresh, X):
                fitted = fresh.fit(_part(estimator, X, train, train), *own_labels, **params)
            middle = time.perf_counter()
            scores = predict_scores(fitted, _part(estimator, X, test, train), ids[test])
            ended = time.perf_counter()
        if listed is not None:
            result = listed.evaluate(scores, split[1])
        else:
            assert labels is not None
            weights = {name: per_row[name][test] for name in ("sample_weight", "event") if name in per_row}
            result = evaluate(labels[test], scores, ids[test], parsed, convention=rules, **weights)
        return fitted if return_estimator else None, result, middle - started, ended - middle

    estimators, folds, fit_seconds, predict_seconds = zip(
        *parallel_map(run, query_splits(cv, X, labels, queries) if listed is None else listed.splits(cv), n_threads),
        strict=True,
    )
    return CrossValidation(
        folds=list(folds),
        fit_seconds=np.array(fit_seconds),
        predict_seconds=np.array(predict_seconds),
        estimators=list(estimators) if return_estimator else None,
    )


def _takes_group(estimator: object) -> bool:
    """Whether ``fit`` has the argument ``group`` but not ``qid``; OptionError if it takes no queries at all."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise OptionError(f"estimator must be an object with fit and predict, such as RankSVM(), got {estimator!r}.")
    parameters = inspect.signature(estimator.fit).parameters
    if "qid" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return False
    if "group" not in parameters:
        raise OptionError(
            f"{type(estimator).__name__}.fit takes neither qid nor group, so it cannot learn to rank by queries. To "
            "measure scores that something else has learned, use ranksvm.metrics.evaluate(y, scores, qid)."
        )
    return True


class _Listed:
    """Pairs given as row numbers; the rows of each training or test part are renumbered from 0."""

    def __init__(self, pairs: ArrayLike, pair_weight: ArrayLike | None, queries: Queries):
        preferred, other = row_numbers(pairs, queries)
        self._pairs = np.column_stack([preferred, other])
        self._weight = None
        if pair_weight is not None:
            self._weight = checked_weights("pair_weight", pair_weight, len(preferred), "pairs")
        self._groups = groups_of_pairs(queries, preferred, other)

    def splits(self, cv: Splits) -> list[tuple[np.ndarray, np.ndarray]]:
        """Numbers of the pairs of each training and test part."""
        return query_splits(cv, self._pairs, None, Queries.from_qid(self._groups))

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """The rows in some pairs, ascending."""
        return np.unique(self._pairs[numbers])

    def arguments(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """The arguments of ``fit`` for some pairs; row numbers are places in the result of `rows`."""
        places = {"pairs": np.searchsorted(self.rows(numbers), self._pairs[numbers])}
        return places if self._weight is None else places | {"pair_weight": self._weight[numbers]}

    def evaluate(self, scores: np.ndarray, numbers: np.ndarray) -> Evaluation:
        """The accuracy of some pairs from the scores of their rows."""
        found = self.arguments(numbers)
        places, groups = found.pop("pairs"), self._groups[numbers]
        return evaluate_pairs(scores[places[:, 0]], scores[places[:, 1]], groups, **found)


def _request_pairs(estimator: object) -> None:
    """Let pairs reach an estimator, or the steps of a Pipeline, whose fit has such an argument.

    Estimators do not request pairs by default, because searches of scikit-learn would divide them like rows.
    """
    params = estimator.get_params().values() if hasattr(estimator, "get_params") else []
    for step in (estimator, *params):
        if hasattr(step, "set_fit_request") and "pairs" in inspect.signature(step.fit).parameters:
            step.set_fit_request(pairs=True, pair_weight=True)


def pooled(parts: Sequence[Evaluation]) -> Evaluation:
    """The evaluations of several sets of queries as one; its means are over all of them.

    Parameters
    ----------
    parts : sequence of Evaluation
        The evaluations, of the same metrics.

    Returns
    -------
    Evaluation
        Values of the queries, part after part.
    """
    names = parts[0].means
    per_query, weights = (
        {name: np.concatenate([getattr(part, of)[name] for part in parts]) for name in names}
        for of in ("per_query", "weights")
    )
    means = {
        name: float(np.nansum(weights[name] * values) / weights[name].sum()) if weights[name].any() else np.nan
        for name, values in per_query.items()
    }
    return Evaluation(
        means=means,
        per_query=per_query,
        weights=weights,
        qid=np.concatenate([part.qid for part in parts]),
        n_rows=sum(part.n_rows for part in parts),
        n_without_relevant=sum(part.n_without_relevant for part in parts),
        convention=parts[0].convention,
    )


def query_splits(
    cv: Splits, X: MatrixLike, y: ArrayLike | None, queries: Queries
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Row numbers of the training and the test part of each split, validated before the first fit.

    Parameters
    ----------
    cv : int, splitter, or iterable of (train, test)
        As in `cross_validate`.
    X, y : array-like
        Passed to the splitter.
    queries : Queries
        The rows' queries.

    Returns
    -------
    list of (ndarray of int, ndarray of int)
        The splits.

    Raises
    ------
    DataError
        When a part is empty, a mask has another length, or a query lies in both parts of a split.
    OptionError
        When ``cv`` is not one of these or gives no split.
    """
    number = queries.numbers()
    if hasattr(cv, "split") and not isinstance(cv, str | type):
        splits = cv.split(X, y, groups=number)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        splits = cv
    elif is_integer(cv):
        splits = QueryKFold(cv).split(X, groups=number)
    else:
        raise OptionError(f"cv must be a number of folds, a splitter, or pairs (train, test) of rows, got {cv!r}.")
    found = [_split(place, split, len(number)) for place, split in enumerate(splits)]
    if not found:
        raise OptionError("cv gives no split.")
    for place, (train, test) in enumerate(found):
        if len(train) == 0 or len(test) == 0:
            raise DataError(f"split {place} of cv has an empty part.")
        divided = np.intersect1d(number[train], number[test])
        if len(divided):
            query = queries.ids[divided[:1]].tolist()[0]
            raise DataError(
                f"split {place} of cv divides query {query!r}: its rows lie in the training and in "
                "the test part. Use QueryKFold or QueryShuffleSplit."
            )
    return found


def _split(place: int, split: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The row numbers of both parts of a split."""
    if not isinstance(split, Iterable) or isinstance(split, str) or len(parts := list(split)) != 2:
        raise OptionError(f"split {place} of cv must be a pair (train, test) of rows, got {split!r}.")
    return _row_numbers(parts[0], n_rows), _row_numbers(parts[1], n_rows)


def _row_numbers(part: ArrayLike, n_rows: int) -> np.ndarray:
    """Row numbers, from row numbers or from a mask of the rows."""
    rows = np.asarray(part)
    if rows.dtype != bool:
        if rows.ndim != 1 or (rows.size and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_rows)):
            raise DataError(f"the parts of cv must be numbers from 0 to {n_rows - 1}, or masks of {n_rows} values.")
        return rows
    if rows.size != n_rows:
        raise DataError(f"a mask in cv has {rows.size} values instead of {n_rows}.")
    return np.flatnonzero(rows)


def _part(estimator: object, X: MatrixLike | Preferences, rows: np.ndarray, training_rows: np.ndarray) -> MatrixLike:
    """Rows of X; for a precomputed kernel, their kernel values with the training documents."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    if tags is not None and tags().input_tags.pairwise:
        return np.asarray(X)[np.ix_(rows, training_rows)]
    return X.rows(rows) if isinstance(X, Preferences) else take_rows(X, rows)


def _labels(y: ArrayLike | None, n_rows: int) -> np.ndarray:
    if y is None:
        raise DataError("cross_validate needs labels y, or pairs of rows.")
    labels = label_column(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    check_one_per_row("y", labels, n_rows)
    return labels


def _per_row(name: str, values: ArrayLike, n_rows: int) -> np.ndarray:
    column = np.asarray(values)
    check_one_per_row(name, column, n_rows)
    return column


def mean_and_standard_error(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the n folds, and its standard error: the standard deviation (with n - 1) divided by sqrt(n).

    Parameters
    ----------
    scores : ndarray of float64, shape (n_models, n_folds)
        A metric's mean over the queries of each test part; folds with NaN, where it is undefined, are ignored.

    Returns
    -------
    means : ndarray of float64, shape (n_models,)
        The means; NaN without a value.
    errors : ndarray of float64, shape (n_models,)
        The standard errors; NaN with fewer than two values.
    """
    has_value = ~np.isnan(scores)
    n = has_value.sum(axis=1)
    values = np.where(has_value, scores, 0.0)
    means = np.divide(values.sum(axis=1), n, out=np.full(len(scores), np.nan), where=n > 0)
    squares = np.where(has_value, np.square(scores - means[:, np.newaxis]), 0.0).sum(axis=1)
    variances = np.divide(squares, n * (n - 1.0), out=np.full(len(scores), np.nan), where=n > 1)
    return means, np.sqrt(variances)


def standard_error_over_queries(values: np.ndarray, weights: np.ndarray) -> float:
    """Standard error of the mean of a metric over queries: sqrt(n / (n - 1) * sum w^2 (v - mean)^2) / sum w.

    With equal weights this is the standard deviation divided by the square root of n, the number of queries of positive
    weight. With other weights (of rows, or of a metric whose mean is over pairs) it is the square root of the
    linearized variance of a ratio, with queries as clusters (Cochran, Sampling Techniques, 3rd ed. 1977, section 6.4).

    Parameters
    ----------
    values : ndarray of float64, shape (n_queries,)
        The metric for each query; NaN where it is undefined.
    weights : ndarray of float64, shape (n_queries,)
        Weight of each query in the mean.

    Returns
    -------
    float
        The standard error; NaN with fewer than two values.
    """
    counts = (weights > 0) & ~np.isnan(values)
    n = int(counts.sum())
    if n < 2:
        return float("nan")
    values, weights = values[counts], weights[counts] / weights[counts].sum()
    return float(np.sqrt(n / (n - 1) * np.square(weights * (values - weights @ values)).sum()))


def choose(means: np.ndarray, errors: np.ndarray, rule: str) -> int:
    """Choose one of several models, ordered from the most to the least regularized.

    Parameters
    ----------
    means : ndarray of float64, shape (n_models,)
        Mean score of each model, NaN if it has no score. At least one is not NaN.
    errors : ndarray of float64, shape (n_models,)
        Standard errors of the means.
    rule : {"best", "one_standard_error"}
        The first model with the highest mean, or the first whose mean is at least the highest minus its standard error
        (0 if undefined).

    Returns
    -------
    int
        Number of the model.
    """
    best = int(np.nanargmax(means))
    if rule == "best":
        return best
    with np.errstate(invalid="ignore"):
        return int(np.flatnonzero(means >= means[best] - np.nan_to_num(errors[best]))[0])
