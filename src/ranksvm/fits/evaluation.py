"""Data on which a fit is evaluated, and the metrics: ``eval_set``, ``eval_metric`` and so on, as in LightGBM."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.values import n_rows_of
from ranksvm.data import Preferences, frames, validation
from ranksvm.data.censoring import checked_event
from ranksvm.data.pair_list import groups_of_pairs, row_numbers
from ranksvm.data.pair_weights import checked_weights
from ranksvm.data.row_scores import scores_of_rows
from ranksvm.exceptions import DataError
from ranksvm.fits.scales import warn_of_other_scale
from ranksvm.metrics import Convention, Evaluation, Metric, evaluate, evaluate_pairs, parse_metrics
from ranksvm.metrics.cutoffs import metrics_at
from ranksvm.metrics.without_labels import ACCURACY, CONCORDANCE, DEFAULT_METRIC, only_metric

# The evaluations of one model, one for each set.
Parts = Sequence[Evaluation]


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Documents with labels and queries, in the form used for scoring, validated.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Features.
    y : ndarray of float64, shape (n_rows,)
        Labels.
    numbers : ndarray of int, shape (n_rows,)
        Number of the query of each row.
    sample_weight : array-like of shape (n_rows,) or None
        A query is weighted by the mean weight of its rows.
    event : array-like of shape (n_rows,) or None
        Which of the times in ``y`` are observed: then the metric is the concordance index.
    """

    X: Any
    y: np.ndarray
    numbers: np.ndarray
    sample_weight: Any = None
    event: Any = None

    @property
    def features(self) -> Any:
        """The features."""
        return self.X

    @property
    def own_metric(self) -> Metric | None:
        """The only metric of this set; None where labels allow any."""
        return None if self.event is None else CONCORDANCE

    def metric_for(self, metric: Metric) -> Metric:
        """The metric that this set is evaluated by, if ``metric`` is what was asked for."""
        return metric if self.event is None else only_metric("censored times", CONCORDANCE, metric)

    def evaluate(
        self,
        scores: Callable[[Any], np.ndarray],
        metrics: Metric | Iterable[Metric],
        convention: str | Convention = "default",
    ) -> Evaluation:
        """The metrics of the ranking by a scoring function from features to scores."""
        if self.event is not None:
            metrics = CONCORDANCE
        options = {"convention": convention, "sample_weight": self.sample_weight, "event": self.event}
        return evaluate(self.y, scores(self.X), self.numbers, metrics, **options)


@dataclass(frozen=True, eq=False)
class PairEvaluationSet:
    """Listed preferences, evaluated by their accuracy whatever the metric.

    Parameters
    ----------
    blocks : list of ndarray or CSR matrix, of shape (n_rows, n_features)
        Features, in one block or in two (chosen and rejected), in the form used for scoring.
    rows : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other), through all blocks.
    groups : ndarray, shape (n_pairs,)
        Query of each pair.
    weight : ndarray of float64, shape (n_pairs,), or None
        Weight of each pair.
    """

    blocks: list[Any]
    rows: np.ndarray
    groups: np.ndarray
    weight: np.ndarray | None = None

    @property
    def features(self) -> Any:
        """The features of the first block."""
        return self.blocks[0]

    @property
    def own_metric(self) -> Metric:
        """The pairwise accuracy, the only metric of pairs."""
        return ACCURACY

    def metric_for(self, metric: Metric) -> Metric:
        """The pairwise accuracy, if ``metric`` allows it."""
        return only_metric("pairs", ACCURACY, metric)

    def evaluate(
        self,
        scores: Callable[[Any], np.ndarray],
        metrics: Metric | Iterable[Metric] = ACCURACY,
        convention: str | Convention = "default",
    ) -> Evaluation:
        """The pairwise accuracy of a scoring function from features to scores."""
        used = np.unique(self.rows)
        ends = np.cumsum([0, *map(n_rows_of, self.blocks)])
        parts = np.split(used, np.searchsorted(used, ends[1:-1]))
        found = np.concatenate(
            [
                scores_of_rows(scores, block, part - first)
                for block, part, first in zip(self.blocks, parts, ends[:-1], strict=True)
            ]
        )
        preferred, other = found[np.searchsorted(used, self.rows)].T
        return evaluate_pairs(preferred, other, self.groups, pair_weight=self.weight)


def pairs_to_evaluate(
    features: Callable[[Any], Any],
    X: Any,
    *,
    qid: Any = None,
    group: Any = None,
    pairs: Any = None,
    pair_weight: Any = None,
) -> PairEvaluationSet:
    """`Preferences`, or X and pairs of its rows, validated; ``features`` makes what is scored of a block of X."""
    blocks = [X]
    if isinstance(X, Preferences):
        given = {"qid": qid, "group": group, "pairs": pairs, "pair_weight": pair_weight}
        qid, pairs, pair_weight = X.arguments(**given)
        blocks = list(X.blocks)
    blocks = [features(block) for block in blocks]
    queries = validation.queries(qid, group, sum(n_rows_of(block) for block in blocks))
    preferred, other = row_numbers(pairs, queries)
    weight = None if pair_weight is None else checked_weights("pair_weight", pair_weight, len(preferred), "pairs")
    groups = groups_of_pairs(queries, preferred, other)
    return PairEvaluationSet(blocks, np.column_stack([preferred, other]), groups, weight)


@dataclass(frozen=True, eq=False)
class EvaluationSets:
    """The sets to evaluate models on, and the metrics; the first metric on the first set decides where one has to.

    Parameters
    ----------
    names : list of str
        Name of each set.
    sets : list of EvaluationSet or PairEvaluationSet
        The sets; there may be none.
    metrics : list of Metric
        The metrics.
    convention : str or Convention
        Their definitions, as in `ranksvm.metrics.evaluate`.
    """

    names: list[str]
    sets: list[EvaluationSet | PairEvaluationSet]
    metrics: list[Metric]
    convention: str | Convention = "default"

    def __bool__(self) -> bool:
        return bool(self.sets)

    def evaluate(self, scores: Callable[[Any], np.ndarray]) -> list[Evaluation]:
        """The metrics of a scoring function, from features to scores, on each set."""
        return [each.evaluate(scores, self.metrics, self.convention) for each in self.sets]

    def evals_result(self, evaluations: Sequence[Parts]) -> dict[str, dict[str, list[float]]]:
        """Set -> metric -> values of consecutive models, as in LightGBM; each item holds the parts of one model."""
        if not self.sets:
            return {}
        by_set = zip(*evaluations, strict=True)
        return {
            name: {metric: [each.means[metric] for each in models] for metric in models[0].means}
            for name, models in zip(self.names, by_set, strict=True)
        }


def evaluation_sets(
    estimator: Any,
    training_X: Any,
    n_queries: int,
    eval_set: Any,
    eval_qid: Any,
    eval_group: Any,
    eval_names: Any,
    eval_sample_weight: Any,
    eval_metric: Any,
    eval_at: Any,
    *,
    deciding: Any = None,
    convention: str | Convention = "default",
) -> EvaluationSets:
    """The evaluation sets passed to ``fit``, validated against the training data; none without ``eval_set``.

    ``deciding`` is the estimator's own metric, or metrics, which come before those of ``eval_metric``. Raises
    DataError, with the set's name as in ``evals_result_``, if a set cannot be used, or lacks query ids although the
    training data have ``n_queries`` queries. Warns of features of another scale than those of ``training_X``.
    """
    options = {"eval_qid": eval_qid, "eval_group": eval_group, "eval_names": eval_names}
    options |= {"eval_sample_weight": eval_sample_weight, "eval_metric": eval_metric, "eval_at": eval_at}
    if eval_set is None:
        refuse_without_sets(**options)
        return EvaluationSets([], [], [] if deciding is None else parse_metrics(deciding), convention)
    metrics = metrics_of_sets(eval_metric, eval_at, deciding)
    pairs = [eval_set] if isinstance(eval_set, tuple | Preferences) else eval_set
    if isinstance(pairs, list):
        pairs = [(each, None) if isinstance(each, Preferences) else each for each in pairs]
    if not isinstance(pairs, list) or not pairs or any(not _is_set(pair) for pair in pairs):
        raise DataError(
            "eval_set must be a list of tuples (X, y), (X, pairs) or (X, time, event), or of Preferences; "
            "or one of these."
        )
    names = names_of_sets(eval_names, len(pairs))
    qids = one_for_each("eval_qid", eval_qid, pairs)
    groups = one_for_each("eval_group", eval_group, pairs)
    weights = one_for_each("eval_sample_weight", eval_sample_weight, pairs)
    sets = []
    for name, (X, *y), qid, group, weight in zip(names, pairs, qids, groups, weights, strict=True):
        try:
            sets.append(_checked(estimator, X, *y, qid=qid, group=group, sample_weight=weight, n_queries=n_queries))
            warn_of_other_scale(name, training_X, sets[-1].features)
        except DataError as error:
            raise DataError(f"eval_set, {name}: {error}") from error
    return EvaluationSets(names, sets, decided_metrics(metrics, sets), convention)


def refuse_without_sets(**options: Any) -> None:
    """Raise DataError for the first option of evaluation sets that is given although there is no set.

    Parameters
    ----------
    **options : optional
        The arguments of ``fit``, by name.
    """
    for name, value in options.items():
        if value is not None:
            raise DataError(f"{name} is given without eval_set=[(X, y)].")


def metrics_of_sets(eval_metric: Any, eval_at: Any, deciding: Any = None) -> list[Metric]:
    """The estimator's own metrics, then those that ``fit`` was asked for; a default if there are none.

    Parameters
    ----------
    eval_metric, eval_at
        The arguments of ``fit``.
    deciding : optional
        The estimator's own metric, or metrics.

    Returns
    -------
    list of Metric
        Each once.
    """
    own = [] if deciding is None else parse_metrics(deciding)
    if eval_metric is None and eval_at is None:
        return own or parse_metrics(DEFAULT_METRIC)
    asked = metrics_at(parse_metrics("ndcg" if eval_metric is None else eval_metric), eval_at)
    return list(dict.fromkeys(own + asked))


def decided_metrics(metrics: Sequence[Metric], sets: Sequence[Any]) -> list[Metric]:
    """The metrics of evaluation sets: the first one is that of the first set, which may have only one of its own.

    Parameters
    ----------
    metrics : sequence of Metric
        What was asked for.
    sets : sequence of EvaluationSet, PairEvaluationSet or an object like them
        The sets, with ``own_metric`` and ``metric_for``.

    Returns
    -------
    list of Metric
        The metrics, the first replaced by that of the first set.

    Raises
    ------
    OptionError
        When no set is evaluated by one of them: without labels each set has one metric of its own.
    """
    own = [each.own_metric for each in sets]
    if None not in own:
        for metric in metrics[1:]:
            if metric not in own:
                sets[0].metric_for(metric)
    return [sets[0].metric_for(metrics[0]), *metrics[1:]]


def refuse_labels_of_times() -> NoReturn:
    """Raise the DataError of a set of labels whose training data are censored times."""
    raise DataError(
        "the training data are censored times: give this set as (X, time, event), "
        "with np.ones(len(time)) for event if all its times are observed."
    )


def refuse_weights_of_pairs() -> NoReturn:
    """Raise the DataError of weights by row beside a set of pairs."""
    raise DataError("eval_sample_weight is of labels: give pairs as Preferences(..., weight=...).")


def names_of_sets(eval_names: Any, n_sets: int) -> list[str]:
    """A name for each set: those given, or ``valid_0``, ``valid_1``, ... as in LightGBM.

    Parameters
    ----------
    eval_names : str or list of str, or None
        The argument of ``fit``.
    n_sets : int
        Number of sets.

    Returns
    -------
    list of str
        The names.

    Raises
    ------
    DataError
        When they are not so many different strings.
    """
    if eval_names is None:
        return [f"valid_{number}" for number in range(n_sets)]
    names = [eval_names] if isinstance(eval_names, str) else list(eval_names)
    if len(set(names)) != n_sets or len(names) != n_sets or not all(isinstance(name, str) for name in names):
        raise DataError(f"eval_names must be {n_sets} different strings, one for each set in eval_set; got {names}.")
    return names


def _is_set(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) in (2, 3)


def one_for_each(name: str, values: Any, pairs: list) -> list[Any]:
    """What is given for each set: as a list with one item for each, or, for one set, directly.

    Parameters
    ----------
    name : str
        Name of the argument.
    values : object
        The argument; None and a string are for all sets.
    pairs : list of tuple
        The sets, features first.

    Returns
    -------
    list
        One item for each set.

    Raises
    ------
    DataError
        When there is not one for each.
    """
    if values is None or isinstance(values, str):
        return [values] * len(pairs)
    if (
        isinstance(values, list | tuple)
        and len(values) == len(pairs)
        and all(_may_belong(X, value) for value, (X, *_) in zip(values, pairs, strict=True))
    ):
        return list(values)
    if len(pairs) > 1:
        raise DataError(f"{name} must be a list of {len(pairs)}, one for each set in eval_set.")
    return [values]


def _may_belong(X: Any, value: Any) -> bool:
    """Whether something is what one set is given: None, the name of a column, or values."""
    if isinstance(value, str):  # a dask DataFrame is no frame, but has columns
        return frames.has_column(X, value) or value in getattr(X, "columns", ())
    return value is None or np.ndim(value) > 0


def _are_pairs(y: Any) -> bool:
    """Whether the second item of an evaluation set holds pairs of row numbers, and no labels."""
    values = np.asarray(y) if isinstance(y, list | tuple | np.ndarray) else None
    return values is not None and values.ndim == 2 and values.shape[1] == 2


def _checked(
    estimator: Any,
    X: Any,
    y: Any,
    event: Any = None,
    *,
    qid: Any,
    group: Any,
    sample_weight: Any,
    n_queries: int,
) -> EvaluationSet | PairEvaluationSet:
    n_threads = effective_n_jobs(estimator.n_jobs)
    features = partial(validation.features, estimator, n_threads=n_threads)
    are_pairs = isinstance(X, Preferences) or (event is None and _are_pairs(y))
    if are_pairs and sample_weight is not None:
        refuse_weights_of_pairs()
    if isinstance(X, Preferences):
        return pairs_to_evaluate(features, X, qid=qid, group=group)
    if isinstance(qid, str):
        X, qid, _ = frames.split_qid(X, qid)
    elif group is None:
        qid = estimator._query_ids(X, qid)
        if qid is None and n_queries > 1 and not are_pairs:
            raise DataError(f"the training data have {n_queries} queries: give this set's in eval_qid or eval_group.")
    X = estimator._without_qid_column(X)
    if are_pairs:
        return pairs_to_evaluate(features, X, qid=qid, group=group, pairs=y)
    if event is None and getattr(estimator, "censored_", False):
        refuse_labels_of_times()
    X, y = validation.features_and_labels(estimator, X, y, n_threads=n_threads, reset=False)
    queries = validation.queries(qid, group, len(y))
    if sample_weight is not None:
        sample_weight = checked_weights("eval_sample_weight", sample_weight, len(y), "rows")
    observed = None if event is None else checked_event(event, len(y))
    return EvaluationSet(X, y, queries.numbers(), sample_weight, observed)
