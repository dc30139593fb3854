"""Base of the estimators on Dask that choose C: implements ``fit``, with evaluation sets or with folds."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.types import Splits
from ranksvm.dask.backend import ATTEMPTS, repeated_if_lost
from ranksvm.dask.base import DaskRanker
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.evaluation import HeldOut, Scorer, Sums, evaluated
from ranksvm.dask.inputs import DaskFeatures, EvalSets, EvalValues, InputParts
from ranksvm.dask.listed_pairs import Listed, queries_of_pairs, unpacked_preferences
from ranksvm.dask.preparation import Prepared, evaluation_set, fit_arguments, on_workers
from ranksvm.data import Preferences, Queries
from ranksvm.estimators.base.arguments import MetricsLike
from ranksvm.estimators.base.evaluation_rounds import checked_patience, is_exhausted
from ranksvm.estimators.base.ranker import all_or_nothing
from ranksvm.fits.evaluation import joined_sets, metrics_of_sets
from ranksvm.fits.options import LinearOptions
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.metrics import Convention, Metric, parse_metric
from ranksvm.metrics.conventions import convention_named
from ranksvm.metrics.definitions import ACCURACY, CONCORDANCE, only_metric
from ranksvm.model_selection.cross_validation import RULES, query_splits

__all__ = ["Choosing", "DaskChoosingRanker", "Solved"]


class Solved(NamedTuple):
    """The scores of the solutions for ascending values of C on the sets of ``eval_set``.

    Attributes
    ----------
    means, errors : ndarray of float64, shape (n_tried,)
        Mean and standard error of the metric on the set that chooses C, up to the C at which early stopping stops.
    of_sets : dict of str to list of dict
        Name of each set -> for each of these solutions, the `Sums` of each metric.
    """

    means: np.ndarray
    errors: np.ndarray
    of_sets: dict[str, list[dict[str, Sums]]]


@dataclass(frozen=True, eq=False)
class Choosing:
    """What is needed to choose C: the training rows, and the evaluation sets or folds with their metrics.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    prepared : Prepared
        The training rows.
    held_out : list of HeldOut
        The sets of ``eval_set``; if the list is empty, folds of the queries decide.
    metrics : list of Metric
        The metrics of these sets; the first one decides.
    convention : Convention
        Which definitions of the metrics to use.
    patience : int or None
        If this number of successive values of C have no better score, larger values of C are not considered.
    """

    cluster: Cluster
    prepared: Prepared
    held_out: list[HeldOut]
    metrics: list[Metric]
    convention: Convention
    patience: int | None

    def on_sets(self, models: Sequence[Scorer]) -> Solved:
        """The scores of the solutions for ascending values of C on the evaluation sets."""
        by_set = {
            each.name: each.evaluate(self.cluster, models, self.metrics, self.convention) for each in self.held_out
        }
        sums = [found[self.metrics[0].name] for found in by_set[self.held_out[0].name]]
        values = [each.mean for each in sums]
        n = next((tried for tried in range(1, len(values)) if is_exhausted(values[:tried], self.patience)), len(values))
        errors = np.array([each.standard_error for each in sums])
        return Solved(np.array(values)[:n], errors[:n], {name: found[:n] for name, found in by_set.items()})

    def on_fold(self, models: Sequence[Scorer], test: np.ndarray) -> list[float]:
        """The scores of the solutions on a test part, given as hashes of queries or as positions of listed pairs."""
        rows, listed, metric = self.prepared.rows, self.prepared.listed, self.metrics[0]
        if listed is None:
            found = evaluated(self.cluster, rows, models, [metric], self.convention, test)
        else:
            found = evaluated(self.cluster, rows, models, [metric], listed=listed.taken(test))
        return [sums[metric.name].mean for sums in found]


class DaskChoosingRanker(DaskRanker):
    """Base of the estimators on Dask that choose C, and other hyper-parameters, by a metric."""

    metric: str | Metric
    cv: Splits
    convention: str | Convention
    rule: str
    early_stopping_rounds: int | None
    keep_on_interrupt: bool
    verbose: int
    _local: ClassVar[Any]

    def fit(
        self,
        X: DaskFeatures | Preferences,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
        eval_set: EvalSets = None,
        eval_qid: EvalValues = None,
        eval_group: EvalValues = None,
        eval_names: str | Sequence[str] | None = None,
        eval_sample_weight: EvalValues = None,
        eval_metric: MetricsLike | None = None,
        eval_at: int | Iterable[int] | None = None,
        eval_X: DaskFeatures | tuple[DaskFeatures, ...] | None = None,
        eval_y: ArrayLike | tuple[ArrayLike, ...] | None = None,
    ) -> Self:
        """Choose the hyper-parameters and learn the scoring function.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, propensity, pairs, pair_weight, event : optional
            As in `DaskRankSVM.fit`. Folds divide listed pairs as in `RankSVMCV.fit`.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Validation data: C is chosen on the first set. Without it, C is chosen by folds of the queries.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at : optional
            As in `RankSVMCV.fit`.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        DataError, NoComparablePairsError, ClusterError, OptionError
            As in `DaskRankSVM.fit`.

        Warns
        -----
        ConvergenceWarning
            When the certificate of a fit (its relative duality gap) does not meet ``tol``.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        options = self._options()
        self._check_options()
        checks.check(rule=checks.one_of(self.rule, RULES))
        metric, convention = parse_metric(self.metric), convention_named(self.convention)
        X, qid, pairs, pair_weight = unpacked_preferences(X, y, qid, group, pairs, pair_weight)
        training = TrainingArguments(
            X,
            y,
            qid=qid,
            group=group,
            pairs=pairs,
            pair_weight=pair_weight,
            sample_weight=sample_weight,
            query_weight=query_weight,
            propensity=propensity,
            event=event,
        )
        training.check_pairs(self.pair_selection, self.pair_weighting)
        patience = checked_patience(self.early_stopping_rounds, eval_set)
        metrics = metrics_of_sets(eval_metric, eval_at, metric)
        with all_or_nothing(self, self.verbose, iterations_from=2):
            cluster = self._cluster()
            inputs = self._training_inputs(cluster, training)
            self.censored_ = event is not None
            sets = eval_set, eval_qid, eval_group, eval_names, eval_sample_weight
            if self.solver == "dual":
                return self._chosen_here(cluster, inputs, sets, eval_metric=eval_metric, eval_at=eval_at)
            # a choice is repeated only with the same folds: a splitter may give other folds the second time, or none
            same_folds = eval_set is not None or self.cv is None or isinstance(self.cv, Integral)

            def choose() -> tuple[Choosing, tuple[Any, list[Solved]]]:
                choosing = self._choosing(cluster, inputs, sets, metrics, metric, convention, patience)
                return choosing, self._chosen(choosing, inputs, options)

            choosing, (model, solved) = repeated_if_lost(choose, "this choice", ATTEMPTS if same_folds else 1)
            model.n_queries_ = choosing.prepared.n_queries
            model.evals_result_ = _evals_result(solved)
            model.fitted_params_ = model._params_now() | {"metric": choosing.metrics[0].name}
            self.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
        return self

    def _choosing(
        self,
        cluster: Cluster,
        inputs: InputParts,
        sets: tuple[Any, ...],
        metrics: list[Metric],
        metric: Metric,
        convention: Convention,
        patience: int | None,
    ) -> Choosing:
        """Prepare the rows and the evaluation sets on the cluster, to choose C with them."""
        prepared = self._prepared(cluster, inputs)
        held_out, metrics = self._evaluation_sets(cluster, metrics, *sets)
        if not held_out and prepared.listed is not None:
            metrics = [only_metric("pairs", ACCURACY, metric)]
        elif not held_out and self.censored_:
            metrics = [only_metric("censored times", CONCORDANCE, metric)]
        return Choosing(cluster, prepared, held_out, metrics, convention, patience)

    def _chosen(self, choosing: Choosing, inputs: InputParts, options: LinearOptions) -> tuple[Any, list[Solved]]:
        """The chosen model as a single-process estimator, and the scores of all solutions on the evaluation sets."""
        raise NotImplementedError

    def _chosen_here(self, cluster: Cluster, inputs: InputParts, sets: tuple[Any, ...], **metrics: Any) -> Self:
        """Gather the rows of all sets in this process, and let the local estimator choose."""
        arguments = self._gathered(cluster, inputs)
        set_arguments = dict(
            zip(("eval_set", "eval_qid", "eval_group", "eval_names", "eval_sample_weight"), sets, strict=True)
        )
        held_out = self._inputs_of_sets(cluster, *sets)
        if held_out:
            gathered = [fit_arguments(cluster, each, self.memory_limit)[1] for _, each, _ in held_out]
            items, qids, weights = zip(*map(evaluation_set, gathered), strict=True)
            names = [name for name, _, _ in held_out]
            set_arguments = {"eval_set": list(items), "eval_qid": list(qids), "eval_names": names}
            set_arguments["eval_sample_weight"] = list(weights)
        model = self._new_local().set_params(memory_limit=None).fit(**arguments, **set_arguments, **metrics)
        known = {"qid_column_": self.qid_column_, "frame_type_": self.frame_type_}
        self.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")} | known)
        return self

    def _splits(self, choosing: Choosing) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """The training and test part of each fold: hashes of queries, or positions of listed pairs."""
        prepared = choosing.prepared
        if prepared.listed is None:
            return self._splits_of_queries(prepared.queries)
        return self._splits_of_pairs(choosing.cluster, prepared, prepared.listed)

    def _splits_of_queries(self, queries: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The hashes of the queries of each training and test part."""
        n = len(queries)
        each = Queries(np.arange(n + 1), None, np.arange(n))
        for train, test in query_splits(self.cv, np.zeros((n, 1)), np.zeros(n), each):
            yield queries[train], queries[test]

    def _splits_of_pairs(
        self, cluster: Cluster, prepared: Prepared, listed: Listed
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The positions of the listed pairs in each training and test part."""
        if (groups := listed.groups) is None:
            groups = np.zeros(len(listed.weight), dtype=np.uint64)
            asked = cluster.mapped(queries_of_pairs, prepared.rows, on_workers(cluster, listed))
            for numbers, queries in cluster.results(asked):
                groups[numbers] = queries
        return query_splits(self.cv, listed.rows, None, Queries.from_qid(groups))


def _evals_result(solved: Sequence[Solved]) -> dict[str, dict[str, list[float]]]:
    """The metrics of all solutions on each set, in LightGBM's form."""
    found: dict[str, dict[str, list[float]]] = {}
    for along in solved:
        for name, sums in along.of_sets.items():
            for metric in sums[0]:
                values = [each[metric].mean for each in sums]
                found.setdefault(name, {}).setdefault(metric, []).extend(values)
    return found
