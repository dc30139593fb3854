"""Base of all rankers, without scikit-learn, which only estimators import; and the validation of their options."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import overflow_refused, quiet_overflow
from ranksvm._util.parameters import parameters_of
from ranksvm._util.tables import facts_html
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import DataFrame, MatrixLike, PathLike
from ranksvm._util.verbosity import verbosity
from ranksvm.data import Preferences, Queries, frames, validation
from ranksvm.data.device_features import DeviceFeatures, device_features
from ranksvm.datasets.file_data import TextFeatures
from ranksvm.device.arrays import is_on_device
from ranksvm.device.names import device_names
from ranksvm.estimators.base.arguments import TrainingFeatures, Validated
from ranksvm.estimators.base.inputs import validated_features
from ranksvm.estimators.base.summary import described_fit, fit_facts
from ranksvm.exceptions import DataError, ModelFileError, OptionError
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.device_choice import check_device
from ranksvm.fits.evaluation import pairs_to_evaluate
from ranksvm.fits.options import LinearOptions
from ranksvm.metrics import evaluate
from ranksvm.metrics.definitions import ACCURACY, CONCORDANCE, DEFAULT_METRIC
from ranksvm.model_files.persistence import save
from ranksvm.model_files.schema import Number, Schema, Text, Texts

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from ranksvm.exporting import Export

T = TypeVar("T")

# The metric of `score` for labels.
SCORE_METRIC = DEFAULT_METRIC


@contextmanager
def all_or_nothing(estimator: object, verbose: int = 0, iterations_from: int = 1) -> Iterator[None]:
    """Restore an estimator if the fit in the ``with`` block fails, so that old and new attributes are not mixed.

    Overflow in the fit is refused (`overflow_refused`), and its log is shown if ``verbose`` (`verbosity`).
    """
    before = dict(vars(estimator))
    try:
        with overflow_refused(), verbosity(verbose, iterations_from) if verbose else nullcontext():
            yield
    except BaseException:
        restore(estimator, before)
        raise


def restore(estimator: object, before: dict[str, Any]) -> None:
    """Give an estimator the attributes that it had before; another thread that predicts meanwhile misses none."""
    attributes = vars(estimator)
    attributes.update(before)
    for name in attributes.keys() - before.keys():
        del attributes[name]


def is_fitted(ranker: object) -> bool:
    """Whether a ranker has a fitted attribute."""
    return any(name.endswith("_") and not name.startswith("__") for name in vars(ranker))


def check_is_fitted(ranker: object) -> None:
    """Raise scikit-learn's NotFittedError if a ranker has no fitted attribute."""
    if not is_fitted(ranker):
        from sklearn.utils import validation as sklearn_validation

        sklearn_validation.check_is_fitted(ranker)


class Ranker:
    """Base of the rankers, which define the score of a document (`_scores`).

    The estimators inherit from scikit-learn's BaseEstimator too.
    """

    n_jobs: int | None
    # whether `fit` and `predict` use X on a GPU where it is, or copy it to the host; otherwise they refuse it
    _reads_devices: ClassVar[bool] = False
    _copies_from_devices: ClassVar[bool] = False
    # whether NaN in X is a missing value
    _takes_missing: ClassVar[bool] = False
    # Hyper-parameters that define a fitted model: its methods use the values that they had in `fit`.
    _model_params: ClassVar[tuple[str, ...]] = ()
    fitted_params_: dict[str, Any]
    n_queries_: int
    n_features_in_: int
    feature_names_in_: np.ndarray
    frame_type_: str | None
    qid_column_: str | None

    _fitted_schema: ClassVar[Schema] = {
        "n_features_in_": Number(integer=True, minimum=1, size="n_features"),
        "feature_names_in_": Texts("n_features", required=False),
        "qid_column_": Text(nullable=True, default=None),
        "frame_type_": Text(nullable=True, default=None),
    }
    __metadata_request__fit: ClassVar = {
        "qid": True,
        "sample_weight": True,
        "query_weight": True,
        "propensity": True,
        "event": True,
    }
    __metadata_request__score: ClassVar[dict[str, bool | None]] = {"qid": True, "sample_weight": True, "event": True}

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Score of each document; a higher score means a better rank.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features. The column of query ids of a DataFrame, the one of `fit` or "qid", is ignored; the other columns
            must be as in `fit`.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            The scores, summed in float64; for X on a GPU, an array of the library of X on that GPU.

        Raises
        ------
        DataError
            When the features of X are not the model's, a value that must be finite is not, or a score overflows.

        Notes
        -----
        Any number of threads may call ``predict``, ``rank`` and ``score`` of one model at the same time, as long as no
        thread fits the model or lets it learn. If the model learns meanwhile, serve copies of it (``snapshot`` of the
        online rankers).
        """
        scores = self._predicted(X)
        return self._scores_like(X, scores) if is_on_device(X) else scores

    def rank(self, X: MatrixLike, qid: ArrayLike | None = None) -> dict[Any, np.ndarray]:
        """Order the documents of each query.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, in any order, or the column of X that has them; None: the column of `fit`, or "qid", if X
            has it; otherwise all rows are one query with the id 0.

        Returns
        -------
        dict
            Query id -> its row numbers, best first; equal scores in row order. Ids are Python objects, dates and times
            NumPy scalars.
        """
        X, ids = self._split_qid(X, qid)
        scores = self._predicted(X)
        grouping = Queries.from_qid(ids, len(scores))
        ordered = (rows[np.argsort(-scores[rows], kind="stable")] for _, rows in grouping)
        return dict(zip(grouping.keys, ordered, strict=True))

    def score(
        self,
        X: TrainingFeatures,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
    ) -> float:
        """Mean NDCG@10 of the ranking (convention "default" of `ranksvm.metrics.evaluate`).

        With pairs, or `Preferences`, the score is the pairwise accuracy (`ranksvm.metrics.evaluate_pairs`) instead;
        with ``event``, for censored times, it is the concordance index.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), or Preferences
            Features.
        y : array-like of shape (n_samples,)
            Labels, or times with ``event``. Omitted if ``pairs`` are given.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        sample_weight : array-like of shape (n_samples,), optional
            A query is weighted by the mean weight of its rows.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Instead of ``y``: row numbers (preferred, other), as in `RankSVM.fit`.
        pair_weight : array-like of shape (n_pairs,), optional
            Weight of each of the ``pairs``.
        event : array-like of bool, shape (n_samples,), optional
            Which of the times in ``y`` are observed, as in `RankSVM.fit`: the concordance index is 1 if every higher
            score belongs to a longer time.

        Returns
        -------
        float
            Mean NDCG@10 over the queries, pairwise accuracy, or concordance index. NaN if all weights are 0.

        Raises
        ------
        DataError
            When the model was fitted with several queries, or with ``event``, and ``qid`` or ``event`` is missing.
        """
        if pairs is not None or isinstance(X, Preferences):
            if y is not None or event is not None or sample_weight is not None:
                raise DataError("y, event and sample_weight apply to labels: with pairs, give pair_weight.")
            if not isinstance(X, Preferences):
                X, qid = self._split_qid(X, qid)
            given = {"qid": qid, "pairs": pairs, "pair_weight": pair_weight}
            return pairs_to_evaluate(lambda block: block, X, **given).evaluate(self.predict).means[ACCURACY.name]
        if pair_weight is not None:
            raise DataError("pair_weight is given without pairs.")
        if y is None:
            frames.refuse_containers(X)
            raise DataError("score needs labels y, or pairs of rows.")
        X, qid = self._split_qid(X, qid)
        scores = self._predicted(X)
        metric = SCORE_METRIC if event is None else CONCORDANCE.name
        if event is None and getattr(self, "censored_", False):
            raise DataError(
                "This model was fitted with event, but score was called without: pass event=..., np.ones(len(y)) if "
                "all times are observed. Inside scikit-learn's Pipelines and searches, "
                "sklearn.set_config(enable_metadata_routing=True) passes it on; ranksvm.cross_validate needs no "
                "routing."
            )
        if qid is None and self.n_queries_ > 1:
            raise DataError(
                "score was called without qid, but this model may have learned from several queries: pass qid=... . "
                "Inside scikit-learn's Pipelines and searches, sklearn.set_config(enable_metadata_routing=True) passes "
                "it on; ranksvm.cross_validate needs no routing."
            )
        # a model that was fitted to one query is scored on one query
        grouping = {"group": [len(scores)]} if qid is None else {"qid": qid}
        found = evaluate(y, scores, metrics=[metric], sample_weight=sample_weight, event=event, **grouping)
        return found.means[metric]

    def save(self, path: PathLike) -> None:
        """Write the model to a file that `ranksvm.load` reads.

        Parameters
        ----------
        path : str or path-like
            File to write; it is written atomically.

        Raises
        ------
        OptionError
            When a parameter cannot be stored in a file, such as a kernel function: use pickle.
        """
        check_is_fitted(self)
        save(self, path)

    def save_model(self, path: PathLike) -> None:
        """`save`, under the name that it has in XGBoost and LightGBM; `ranksvm.load` reads the file.

        Parameters
        ----------
        path : str or path-like
            File to write.

        Raises
        ------
        OptionError
            As in `save`.
        """
        self.save(path)

    def export(self, path: PathLike | None = None, *, to: str, **options: Any) -> "Export":
        """Write the model in the format of a search engine, a runtime or a programming language.

        `ranksvm.export` lists formats and options, and takes Pipelines too.

        Parameters
        ----------
        path : str or path-like, optional
            File to write; None: write no file. The result has the content in either case.
        to : str
            The format, such as "solr", "onnx" or "python".
        **options : optional
            The options of `ranksvm.export`: X, qid, names, name, store, table, query_column, non_negative, templates.

        Returns
        -------
        Export
            The content, the names of the features, and what was omitted or changed.

        Raises
        ------
        OptionError
            When the format cannot express the model, or an option does not fit it.
        """
        from ranksvm.exporting.exporter import export

        check_is_fitted(self)
        return export(self, path, to=to, **options)

    def _repr_html_(self) -> str | None:
        """HTML for a notebook: scikit-learn's diagram of the parameters, and a table of facts about the fit, if any."""
        # scikit-learn's `_repr_html_` is a property that does not exist if the user has chosen text
        diagram = getattr(super(), "_repr_html_", None)
        facts = ""
        if is_fitted(self):
            facts = facts_html(fit_facts(described_fit(self)), f"The fit of this {type(self).__name__}")
        return ("" if diagram is None else diagram()) + facts or None

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """The results of `repr` and `_repr_html_`; a notebook chooses one."""
        html = self._repr_html_()
        return {"text/plain": repr(self)} | ({} if html is None else {"text/html": html})

    def _params_now(self) -> dict[str, Any]:
        """The current hyper-parameters that define a model."""
        return {name: getattr(self, name) for name in self._model_params}

    def _complete_older_file(self) -> None:
        """Add attributes that files of earlier versions lack: they stored the hyper-parameters only once."""
        if self._model_params and hasattr(self, "n_features_in_") and not hasattr(self, "fitted_params_"):
            self.fitted_params_ = self._params_now()

    def _check_loaded(self) -> None:
        """Refuse a model from a file if its attributes are inconsistent, in addition to the checks of the schema."""
        missing = [name for name in self._model_params if name not in getattr(self, "fitted_params_", {})]
        if missing and hasattr(self, "n_features_in_"):
            raise ModelFileError(f"fitted_params_ of {type(self).__name__} lacks {missing[0]!r}.")

    def _predicted(self, X: MatrixLike) -> np.ndarray:
        """Score of each row of X, which has not been validated."""
        features = self._features(X)
        with quiet_overflow():
            return validation.check_scores(self._scores(features))

    def _scores_like(self, X: MatrixLike, scores: np.ndarray) -> Any:
        """Scores in an array like X, which is on a GPU."""
        features = device_features(X)
        assert features is not None
        return features.like(features.device.copy_in(scores))

    def _scores(self, X: Validated) -> np.ndarray:
        """Score of each row of X, which has been validated (`_features`), in float64."""
        raise NotImplementedError

    def _features(self, X: MatrixLike, finite: bool = True) -> Validated:
        """X as in `fit`, validated, without query ids; finiteness is checked only if ``finite``."""
        check_is_fitted(self)
        frames.refuse_containers(X)
        if isinstance(X, Preferences):
            raise DataError(
                "one array of features is needed, not Preferences: give data.chosen, data.rejected or data.X."
            )
        X = self._without_qid_column(X)
        return validated_features(self, X, n_threads=effective_n_jobs(self.n_jobs), finite=finite)

    def _names_or(self, feature_names: ArrayLike | None) -> Any:
        """The names of the features that a user passes, or else their names in `fit`; None if there are none."""
        names = getattr(self, "feature_names_in_", None) if feature_names is None else np.asarray(feature_names)
        if names is not None and names.shape != (self.n_features_in_,):
            raise DataError(f"feature_names has shape {names.shape}, but there are {self.n_features_in_} features.")
        return names

    def _check_labels(self, X: object, y: ArrayLike | None) -> None:
        """Refuse data without labels, for a ranker that learns from labels only."""
        frames.refuse_containers(X)
        if y is None:
            # the words that scikit-learn's tests expect
            text = f"{type(self).__name__} requires y to be passed, but the target y is None."
            also = " RankSVM, AdditiveRankSVM, KernelRankSVM and their searches learn from Preferences."
            raise DataError(text + also if isinstance(X, Preferences) else text)
        if isinstance(X, Preferences):
            np.asarray(X)  # raises the error that says what to pass instead

    def _qid_column_of(self, X: MatrixLike) -> str | None:
        """The column of X that has query ids: the one of `fit`, or else "qid", which is never a feature."""
        column = getattr(self, "qid_column_", None) or frames.QID
        return column if frames.has_column(X, column) else None

    def _without_qid_column(self, X: MatrixLike) -> MatrixLike:
        column = self._qid_column_of(X)
        return X if column is None else frames.drop_column(cast("DataFrame", X), column)

    def _learn_categories(self, X: T, text_features: TextFeatures | None) -> T:
        """X of `fit`, with categories of text replaced by numbers; X itself for models without categories."""
        return X

    def _coded(self, X: T) -> T:
        """X that is scored or evaluated, with categories of text replaced by their numbers in `fit`."""
        return X

    def _split_qid(self, X: MatrixLike, qid: ArrayLike | None) -> tuple[MatrixLike, ArrayLike | None]:
        """X without columns of query ids, and the ids: ``qid``, the column that it names, or the column of `fit`."""
        X, ids, _ = frames.split_qid(X, self._qid_column_of(X) if qid is None else qid)
        return self._without_qid_column(X), ids

    def __sklearn_tags__(self) -> "Tags":
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(sparse=True, allow_nan=self._takes_missing),
        )


def hyper_parameters(estimator: object, model: str) -> dict[str, Any]:
    """The hyper-parameters of an estimator that belong to a kind of model, by name."""
    names = [each.name for each in parameters_of(model)]
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def linear_options(estimator: Any, **fixed: Any) -> LinearOptions:
    """The validated hyper-parameters of a linear estimator.

    Parameters
    ----------
    estimator : RankSVM or an estimator with its hyper-parameters
        The estimator.
    **fixed : object
        Values that replace hyper-parameters.

    Returns
    -------
    LinearOptions
        The options.

    Raises
    ------
    OptionError
        When a hyper-parameter is invalid, or the device cannot do the requested work.
    """
    options = LinearOptions.validated(hyper_parameters(estimator, "linear") | fixed)
    check_device(options.device, options.solver, options.loss)
    return options


def additive_options(estimator: Any, **fixed: Any) -> AdditiveOptions:
    """The validated hyper-parameters of an additive estimator.

    Parameters
    ----------
    estimator : AdditiveRankSVM or an estimator with its hyper-parameters
        The estimator.
    **fixed : object
        Values that replace hyper-parameters.

    Returns
    -------
    AdditiveOptions
        The options.

    Raises
    ------
    OptionError
        When a hyper-parameter is invalid, or the device cannot do the requested work.
    """
    options = AdditiveOptions.validated(hyper_parameters(estimator, "additive") | fixed)
    names = device_names(options.device)
    if len(names) > 1:
        raise OptionError(f"device={options.device!r}: an additive model is fitted on one GPU: name one.")
    check_device(options.device, options.solver, options.loss)
    return options


def predicted_on(name: str, ranker: Ranker, X: MatrixLike) -> np.ndarray:
    """Scores of documents in host memory, computed on a device, whatever device the model was fitted on.

    Parameters
    ----------
    name : str
        Full name of the device.
    ranker : Ranker
        A fitted linear or kernel model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        The scores, as `predict` gives them.

    Raises
    ------
    OptionError
        When the model is of another kind, or its kernel is a Python function.
    DataError
        When the features of X are not the model's, a value that must be finite is not, or a score overflows.
    """
    from ranksvm.device import open_device
    from ranksvm.kernels.device_values import scores_on
    from ranksvm.kernels.expansions import Expansion, LinearFunction

    function_of = getattr(ranker, "_function", None)
    function = None if function_of is None else function_of()
    if not isinstance(function, LinearFunction | Expansion):
        raise OptionError(f"{type(ranker).__name__} computes its scores on the processor: use device='cpu'.")
    rows = ranker._features(X)
    assert not isinstance(rows, DeviceFeatures)  # X is in host memory
    return validation.check_scores(scores_on(open_device(name), function, rows))
