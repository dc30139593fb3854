"""Base of the estimators on Dask: handles the client, the data on the cluster, and conversion to a local model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import dask.array as da
import numpy as np
from distributed import Client, Future, default_client
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ranksvm._util import checks
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import MemoryLimit, PathLike
from ranksvm.dask.backend import DaskBackend, check_devices
from ranksvm.dask.checkpoint import CheckpointedTerm
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.evaluation import HeldOut, features_of, lazy_metric, lazy_scores
from ranksvm.dask.inputs import DaskFeatures, EvalSets, EvalValues, InputParts, input_parts
from ranksvm.dask.listed_pairs import are_pairs, unpacked_preferences
from ranksvm.dask.preparation import (
    DescribeRows,
    Prepared,
    fit_arguments,
    parts_of_rows,
    prepared_rows,
    refuse_no_pairs,
)
from ranksvm.dask.rows import Columns
from ranksvm.data import Preferences
from ranksvm.device.names import device_complaint
from ranksvm.estimators.base.ranker import SCORE_METRIC, check_is_fitted, linear_options
from ranksvm.exceptions import ClusterError, DataError, OptionError
from ranksvm.fits.evaluation import (
    decided_metrics,
    names_of_sets,
    one_for_each,
    refuse_labels_of_times,
    refuse_weights_of_pairs,
)
from ranksvm.fits.options import LinearOptions, loss_of, monotone_signs
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.fits.training_set import EvalArguments, TrainingArguments
from ranksvm.losses.margin_function import MarginFunction
from ranksvm.metrics import Metric
from ranksvm.metrics.definitions import CONCORDANCE
from ranksvm.terms.parts.term import PartitionedTerm

if TYPE_CHECKING:
    import dask.dataframe as dd

__all__ = ["DaskRanker"]


class DaskRanker(BaseEstimator):
    """Base of the estimators on Dask."""

    # class of the single-process estimator, which has the same hyper-parameters except those for the cluster
    _local: ClassVar[Any]

    loss: str | MarginFunction
    huber_width: float
    pair_selection: str
    pair_weighting: str
    n_jobs: int | None
    n_partitions: int | None
    timeout: float
    device: str
    memory_limit: MemoryLimit
    solver: str
    n_features_in_: int
    qid_column_: str | None
    censored_: bool

    @property
    def client(self) -> Client:
        """The client of the cluster: the ``client`` that was set, or Dask's default."""
        if (client := vars(self).get("_client")) is not None:
            return client
        try:
            return default_client()
        except ValueError:
            raise ClusterError(
                "there is no Dask client: make one with distributed.Client(address), or Client() for processes of this "
                "machine, or set ranker.client."
            ) from None

    @client.setter
    def client(self, client: Client) -> None:
        self._client = client

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_client", None)
        return state

    def predict(self, X: DaskFeatures) -> "np.ndarray | da.Array | dd.Series":
        """Score of each document, lazily: a higher score means a better rank.

        Parameters
        ----------
        X : dask array, dask DataFrame, list of paths, or array-like
            Features.

        Returns
        -------
        dask array, dask Series or ndarray
            The scores, divided like X: a dask Series for a dask DataFrame, an ndarray for an array of this process,
            else a dask array.
        """
        import dask

        from ranksvm.dask.inputs import are_files

        model = self.to_local()
        if not are_files(X) and not dask.is_dask_collection(X):
            return model.predict(X)
        return lazy_scores(model, X)

    def score(
        self,
        X: DaskFeatures | Preferences,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
    ) -> da.Array:
        """Mean NDCG@10 of the ranking; the accuracy for listed pairs, the concordance index for censored times.

        It is computed lazily.

        Parameters
        ----------
        X, y, qid, sample_weight, pairs, pair_weight, event : optional
            As in `fit`.

        Returns
        -------
        dask array without dimensions
            The metric: ``float(ranker.score(...))`` computes it. Features stay on their workers; scores, labels and ids
            are sent to the task that evaluates their query.
        """
        X, qid, pairs, pair_weight = unpacked_preferences(X, y, qid, None, pairs, pair_weight)
        if pairs is not None and not (y is None and event is None and sample_weight is None):
            raise DataError("y, event and sample_weight apply to labels: with pairs, give pair_weight.")
        weights = {"sample_weight": sample_weight, "event": event}
        metric = SCORE_METRIC if event is None else CONCORDANCE.name
        return lazy_metric(self.to_local(), X, y, qid, weights, metric, pairs=pairs, pair_weight=pair_weight)

    def to_local(self) -> Any:
        """The model as an ordinary single-process estimator: `RankSVM`, `AdditiveRankSVM` or one of their CV classes.

        Returns
        -------
        RankSVM, RankSVMCV, AdditiveRankSVM or AdditiveRankSVMCV
            It has the same weights and duality gap, and saves the same model file.
        """
        check_is_fitted(self)
        return self._new_local()

    def save(self, path: PathLike) -> None:
        """Write the model to a file that `ranksvm.load` reads, as a single-process model.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """
        self.to_local().save(path)

    # ---- for subclasses

    def _new_local(self) -> Any:
        """The single-process estimator, with the attributes fitted so far."""
        shared = self._local().get_params(deep=False).keys()
        model = self._local(**{name: value for name, value in self.get_params(deep=False).items() if name in shared})
        model.__dict__.update(self._fitted())
        return model

    def _fitted(self) -> dict[str, Any]:
        """The fitted attributes that the single-process model also has."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name != "n_rounds_"}

    def _check_options(self) -> None:
        if not isinstance(self.device, str):
            raise OptionError(
                f"device={self.device!r}: workers have one device each, so give one name, device='cuda', and start a "
                "worker for each GPU, each with its own CUDA_VISIBLE_DEVICES."
            )
        if self.solver == "dual" and getattr(self, "checkpoint", None) is not None:
            raise OptionError(
                "checkpoint= keeps the weights between rounds, and solver='dual' has none, because it fits rows that "
                "are gathered in this process: use solver='auto', or leave checkpoint at None."
            )
        if self.memory_limit is not None and self.solver != "dual":
            raise OptionError(
                f"memory_limit={self.memory_limit!r} is for rows of one process, and these are on the workers, which "
                "write parts to disk beyond their own limit: set that (Client(memory_limit=...), or dask worker "
                "--memory-limit), or add workers. It applies only to solver='dual', which gathers the rows."
            )
        checks.check(
            memory_limit=checks.memory_limit(self.memory_limit),
            device=device_complaint(self.device),
            timeout=checks.positive(self.timeout),
            n_partitions=None if self.n_partitions is None else checks.count(self.n_partitions),
        )

    def _options(self) -> LinearOptions:
        """The validated hyper-parameters, with the device of this process: only workers use ``self.device``."""
        return linear_options(self, device="cpu", memory_limit=None)

    def _problem(self, term: PartitionedTerm, options: LinearOptions) -> PartitionedProblem:
        """The optimization problem over all parts of the data."""
        names = getattr(self, "feature_names_in_", None)
        return PartitionedProblem(term, options, monotone_signs(options.monotone, term.n_variables, names))

    def _cluster(self) -> Cluster:
        client = self.client
        if client.status == "closed":
            raise ClusterError("the client of the Dask cluster is closed: set ranker.client to an open one.")
        if client.asynchronous:
            raise ClusterError(
                "the Dask client is asynchronous, and a fit in its event loop would block the loop: fit in another "
                "thread (await asyncio.to_thread(...)), or with a client without asynchronous=True."
            )
        cluster = Cluster(client, float(self.timeout))
        cluster.check_workers()
        check_devices(cluster, self.device, loss_of(self.loss, self.huber_width))
        return cluster

    def _training_inputs(self, cluster: Cluster, training: TrainingArguments) -> InputParts:
        """The parts of the training data."""
        return input_parts(
            training.X,
            training.y,
            training.qid,
            training.weights(),
            group=training.group,
            pairs=training.pairs,
            pair_weight=training.pair_weight,
            count=cluster.computed,
            missing=self._local._takes_missing,
        )

    def _gathered(self, cluster: Cluster, inputs: InputParts) -> dict[str, Any]:
        """Gather the data in this process, as arguments of ``fit``; also store the names of the features."""
        columns, arguments = fit_arguments(cluster, inputs, self.memory_limit)
        self._learn_columns(columns, inputs)
        return arguments

    def _prepared(self, cluster: Cluster, inputs: InputParts, describe: DescribeRows | None = None) -> Prepared:
        """Prepare the rows on the cluster as `prepared_rows` does; also store the names of the features."""
        listed = inputs.listed
        if listed is not None and listed.groups is not None and self.pair_weighting == "per_query":
            raise OptionError("pair_weighting='per_query' needs queries: also give qid or group.")
        prepared = prepared_rows(cluster, inputs, self.n_partitions, describe)
        self._learn_columns(prepared.columns, inputs)
        return prepared

    def _learn_columns(self, columns: Columns, inputs: InputParts) -> None:
        assert columns.n_features is not None
        self.n_features_in_ = columns.n_features
        if columns.names is not None:
            self.feature_names_in_ = columns.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.qid_column_, self.frame_type_ = inputs.columns.qid, inputs.frame_type

    def _term(
        self, cluster: Cluster, inputs: InputParts, prepared: Prepared, checkpoint: PathLike | None = None
    ) -> PartitionedTerm:
        """Make the parts, and the loss over them."""
        how, n_partitions = (self.pair_selection, self.pair_weighting), prepared.n_partitions

        def make_parts() -> list[Future]:
            return parts_of_rows(cluster, prepared_rows(cluster, inputs, n_partitions), *how)

        backend = DaskBackend(cluster, make_parts, self.device)
        backend.put(parts_of_rows(cluster, prepared, *how))
        kind = PartitionedTerm if checkpoint is None else CheckpointedTerm
        term = kind(backend, loss_of(self.loss, self.huber_width), effective_n_jobs(self.n_jobs))
        refuse_no_pairs(term)
        return term

    def _evaluation_sets(
        self, cluster: Cluster, metrics: list[Metric], eval_set: EvalSets, *options: Any
    ) -> tuple[list[HeldOut], list[Metric]]:
        """The evaluation sets on the cluster, and the metrics to compute on them."""
        found = []
        for name, inputs, timed in self._inputs_of_sets(cluster, eval_set, *options):
            with naming_set(name):
                prepare = partial(prepared_rows, cluster, inputs, self.n_partitions)
                found.append(HeldOut(name, prepare(), prepare, timed))
        return found, decided_metrics(metrics, found) if found else metrics

    def _inputs_of_sets(
        self,
        cluster: Cluster,
        eval_set: EvalSets,
        eval_qid: EvalValues,
        eval_group: EvalValues,
        eval_names: str | Sequence[str] | None,
        eval_sample_weight: EvalValues,
    ) -> list[tuple[str, InputParts, bool]]:
        """The name of each evaluation set, its parts, and whether its labels are (censored) times."""
        if eval_set is None:
            EvalArguments(None, eval_qid, eval_group, eval_names, eval_sample_weight).refuse_without_sets()
            return []
        sets: list[Any] = [eval_set] if isinstance(eval_set, tuple | Preferences) else list(eval_set)
        sets = [(each,) if isinstance(each, Preferences) else each for each in sets]
        names = names_of_sets(eval_names, len(sets))
        by_set = {"eval_qid": eval_qid, "eval_group": eval_group, "eval_sample_weight": eval_sample_weight}
        qids, groups, weights = (one_for_each(name, values, sets) for name, values in by_set.items())
        found = []
        for name, (X, *y), qid, group, weight in zip(names, sets, qids, groups, weights, strict=True):
            with naming_set(name):
                inputs = self._held_out(cluster, X, *y, qid=qid, group=group, sample_weight=weight)
                found.append((name, inputs, len(y) == 2 and y[1] is not None))
        return found

    def _held_out(
        self,
        cluster: Cluster,
        X: DaskFeatures | Preferences,
        y: ArrayLike | None = None,
        event: ArrayLike | None = None,
        *,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> InputParts:
        """The parts of one evaluation set: rows with labels or times, or rows with listed pairs."""
        listed = isinstance(X, Preferences) or (event is None and y is not None and are_pairs(y))
        if listed and sample_weight is not None:
            refuse_weights_of_pairs()
        if not listed and event is None and self.censored_:
            refuse_labels_of_times()
        pairs = pair_weight = None
        if listed:
            X, qid, pairs, pair_weight = unpacked_preferences(X, None, qid, group, y, None)
            y = None
        return input_parts(
            X,
            y,
            qid,
            {"sample_weight": sample_weight, "event": event},
            features_of(self),
            group=group,
            pairs=pairs,
            pair_weight=pair_weight,
            count=cluster.computed,
            missing=self._local._takes_missing,
        )


@contextmanager
def naming_set(name: str) -> Iterator[None]:
    """Add the name of an evaluation set to errors about its data."""
    try:
        yield
    except DataError as error:
        raise DataError(f"eval_set, {name}: {error}") from None
