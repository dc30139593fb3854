"""Base of the estimators on Dask that fit one model: implements ``fit``, with evaluation sets."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from ranksvm.dask.backend import repeated_if_lost
from ranksvm.dask.base import DaskRanker
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.evaluation import HeldOut, scoring_function
from ranksvm.dask.inputs import DaskFeatures, EvalSets, EvalValues, InputParts
from ranksvm.dask.listed_pairs import unpacked_preferences
from ranksvm.dask.preparation import Prepared
from ranksvm.data import Preferences
from ranksvm.estimators.base.arguments import MetricsLike
from ranksvm.estimators.base.ranker import all_or_nothing
from ranksvm.fits.evaluation import joined_sets, metrics_of_sets
from ranksvm.fits.options import LinearOptions
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.metrics import Metric

__all__ = ["DaskSingleRanker"]


class DaskSingleRanker(DaskRanker):
    """Base of the estimators on Dask that fit one model."""

    verbose: int
    n_rounds_: int

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
        """Learn the scoring function.

        Parameters
        ----------
        X : dask array, dask DataFrame, list of paths, array-like, or Preferences
            Features. A dask array may have blocks of CSR matrices. Paths, or addresses of fsspec such as
            ``s3://...``, are files that the workers read, of any kind that `read_data` reads: text, CSV, Parquet,
            caches. They also hold labels and query ids.
        y : dask array, dask Series or array-like of shape (n_samples,)
            Labels, in the same parts as X; for files the name of the column of labels, "label" if it is None.
        qid : dask array, dask Series, array-like of shape (n_samples,), or str
            Query of each row: any type, in any order; or the name of a column of a dask DataFrame, or of files. None:
            the column "qid".
        group : array-like or dask array of int, optional
            Number of rows of each query, whose rows follow one another, instead of ``qid``.
        sample_weight, query_weight, propensity, event : dask array, dask Series or array-like, optional
            As in `RankSVM.fit`.
        pairs, pair_weight : array-like or dask array, optional
            Explicit preferences instead of ``y``, as in `RankSVM.fit`: row numbers (preferred, other) in the whole
            data, which continue from part to part. This process and every worker keep all pairs. Without ``qid``, rows
            that pairs connect are moved to the same part.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Data to evaluate the model on, in any of these forms; ``(X, pairs)`` or `Preferences` for the pairwise
            accuracy, ``(X, time, event)`` for censored times.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at : optional
            As in `RankSVM.fit`.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        DataError
            When the data are invalid: the error names the part and the row in it.
        NoComparablePairsError
            When no query has two documents with different labels.
        ClusterError
            When the cluster does not answer, has no workers, or has lost data that it cannot compute again.
        OptionError
            When a hyper-parameter has an invalid value, or there is too little memory to gather rows.

        Warns
        -----
        ConvergenceWarning
            When the certificate (the relative duality gap) does not meet ``tol``.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        options = self._options()
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
        self._check_options()
        metrics = metrics_of_sets(eval_metric, eval_at)
        with all_or_nothing(self, self.verbose):
            cluster = self._cluster()
            inputs = self._training_inputs(cluster, training)
            self.censored_ = event is not None
            sets = eval_set, eval_qid, eval_group, eval_names, eval_sample_weight
            if self.solver == "dual":
                arguments = self._gathered(cluster, inputs)
                held_out, metrics = self._evaluation_sets(cluster, metrics, *sets)
                model, n_rounds = self._new_local().set_params(memory_limit=None).fit(**arguments), 0
            else:

                def prepare() -> tuple[Prepared, list[HeldOut], list[Metric]]:
                    return self._prepared(cluster, inputs), *self._evaluation_sets(cluster, metrics, *sets)

                prepared, held_out, metrics = repeated_if_lost(prepare, "this fit")
                model, n_rounds = self._fitted_to_parts(cluster, inputs, prepared, options, held_out, metrics)
            model.evals_result_ = {}
            for each in held_out:
                (found,) = each.evaluate(cluster, [scoring_function(model)], metrics)
                model.evals_result_[each.name] = {metric: [sums.mean] for metric, sums in found.items()}
            known = {"qid_column_": self.qid_column_, "frame_type_": self.frame_type_}
            self.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")} | known)
            self.n_rounds_ = n_rounds
        return self

    def _fitted_to_parts(
        self,
        cluster: Cluster,
        inputs: InputParts,
        prepared: Prepared,
        options: LinearOptions,
        held_out: list[HeldOut],
        metrics: list[Metric],
    ) -> tuple[Any, int]:
        """Fit in rounds over the parts; return the local model and the number of rounds."""
        raise NotImplementedError
