"""RankSVM without the interface of scikit-learn, whose import takes longer than most fits.

It is for programs that fit, score and save, such as the command line.
"""

from typing import Any, ClassVar, Self

from ranksvm._util import checks
from ranksvm._util.memory import memory_complaint
from ranksvm._util.verbosity import verbosity
from ranksvm.data import frames
from ranksvm.datasets.file_data import unpacked
from ranksvm.estimators.base.dual_mixin import DualMixin
from ranksvm.estimators.base.linear_ranker import SIGNS_SCHEMA, LinearRanker
from ranksvm.estimators.base.ranker import all_or_nothing
from ranksvm.fits.evaluation import evaluation_sets
from ranksvm.fits.linear import linear_problem
from ranksvm.fits.problem import interruptible_if
from ranksvm.model_files.registry import savable
from ranksvm.model_files.schema import Array, Schema

__all__ = ["RankSVM"]


@savable
class RankSVM(DualMixin, LinearRanker):
    """All of `ranksvm.RankSVM` but scikit-learn's BaseEstimator; its model file is that of a `ranksvm.RankSVM`."""

    _reads_devices = True
    _model_params = ("C", "loss", "huber_width", "pair_selection", "pair_weighting")
    _fitted_schema: ClassVar[Schema] = {"coef_": Array("n_features"), **SIGNS_SCHEMA}

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Any = None,
        solver: str = "auto",
        stopping: str = "gap",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        device: Any = "cpu",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.monotone = monotone
        self.solver = solver
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        propensity: Any = None,
        pairs: Any = None,
        pair_weight: Any = None,
        event: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_names: Any = None,
        eval_sample_weight: Any = None,
        eval_metric: Any = None,
        eval_at: Any = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), Preferences, RankingData, or path
            Features, or the features of chosen and rejected answers, which bring their pairs. C-contiguous float32 or
            float64 arrays and CSR matrices are used without a copy; sums are in float64 for any storage type. Dense
            arrays on a GPU (of torch, CuPy and others) are used without a copy.
            RankingData have their own labels and query ids. If `RankingData.load` mapped them from a file larger than
            ``memory_limit``, X stays in the file and is read in passes. A path is that of a file that `read_data` reads
            with its default options; Parquet or text that may take more than ``memory_limit`` gets a cache in
            ``$XDG_CACHE_HOME/ranksvm`` (``~/.cache/ranksvm``), which later fits find, and is read in passes from there.
            DataFrames (pandas, polars, pyarrow and others supported by narwhals) are converted to one such array:
            float32 if that holds all their columns.
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query matters, unless ``pair_weighting`` uses
            them. Omitted if ``pairs`` are given, or if the labels of RankingData are to be used.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row: any dtype, in any order. The name of a column of a DataFrame X: that column, which is
            then not a feature, here and in `predict`. None: the column "qid" of a DataFrame, as in XGBoost. Without it
            all rows are one query, with a `OneQueryWarning`. More than 1,000 rows are refused then, because they are
            plausibly of several queries, whose rows must not be compared; ``group=[n_samples]`` says that they are one
            query.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries, as in LightGBM.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, equivalent to repeating it: a pair has weight ``v_i * v_j``. A row of weight 0 is
            ignored.
        query_weight : array-like of shape (n_samples,), optional
            Weight of each row's query, constant within a query; it multiplies the weight of the query's pairs.
        propensity : array-like of shape (n_samples,), optional
            Probability, in (0, 1], with which feedback on the row was observed. A pair's weight is divided by that of
            its preferred document, which makes learning from clicks unbiased where preferred documents are clicked
            ones (Joachims, Swaminathan & Schnabel, WSDM 2017).
        pairs : array-like of int, shape (n_pairs, 2), optional
            Instead of ``y``: row numbers (preferred, other) of explicit preferences (Joachims, KDD 2002). Both rows
            must be of one query. Only in this case is the work proportional to the number of pairs.
        pair_weight : array-like of shape (n_pairs,), optional
            Weight of each of the ``pairs``; other weights multiply it.
        event : array-like of bool, shape (n_samples,), optional
            ``y`` holds times: True (or 1) where the event was observed then, False (0) where the time is right-censored
            (the event had not happened by then). A HIGHER SCORE MEANS A LONGER TIME, not a higher risk: documents are
            ranked by their times, the longest first, as by labels. A pair is comparable, and learnt from, if the
            smaller time is that of an observed event (of equal times, a censored one is longer); such pairs are not
            listed. Without ``qid`` all rows are one query; with it, only times of one query (stratum) are compared.
        eval_set : list of tuple (X, y), or one such tuple, optional
            Data to evaluate the model on, as in LightGBM and XGBoost. The values are stored in ``evals_result_`` and do
            not affect the fit. An item may also be ``(X, pairs)`` or `Preferences`, for the pairwise accuracy, or ``(X,
            time, event)``, for the concordance index.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. If ``qid`` named a column, the same column of the sets.
        eval_names : list of str, or one for a single set, optional
            Names of the sets in ``evals_result_``; None: ``valid_0``, ``valid_1``, ...
        eval_sample_weight : list of array-like, or one for a single set, optional
            Weight of each row of the sets: a query is weighted by the mean weight of its rows.
        eval_metric : str, Metric, or list of either, optional
            What to evaluate on the sets, as in `ranksvm.metrics.evaluate`; None: NDCG@10.
        eval_at : int or list of int, optional
            Cut-offs of the metrics that have none: "ndcg" (or None) with ``[5, 10]`` is NDCG@5 and NDCG@10.

        Returns
        -------
        RankSVM
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X or y are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value.

        Warns
        -----
        ConvergenceWarning
            When the certificate does not meet ``tol``.
        """
        checks.check(C=checks.positive(self.C), memory_limit=memory_complaint(self.memory_limit))
        with all_or_nothing(self):
            X, y, qid = unpacked(X, y, qid, group, pairs, self.memory_limit)
            X, qid, self.qid_column_ = frames.split_qid(X, qid)
            self.frame_type_ = frames.library(X)
            weights = {"sample_weight": sample_weight, "query_weight": query_weight, "propensity": propensity}
            weights["event"], self.censored_ = event, event is not None
            problem = linear_problem(self, X, y, qid=qid, group=group, pairs=pairs, pair_weight=pair_weight, **weights)
            sets = evaluation_sets(
                self,
                X,
                problem.n_queries,
                eval_set,
                eval_qid,
                eval_group,
                eval_names,
                eval_sample_weight,
                eval_metric,
                eval_at,
            )
            start = problem.start_from(self) if self.warm_start and hasattr(self, "coef_") else None
            with verbosity(self.verbose), interruptible_if(self.keep_on_interrupt) as interrupted:
                result = problem.solve(float(self.C), start, interrupted)
            self._assign(problem.model(result.w), problem.outcome(result))
            self.fitted_params_ = self._params_now()
            self.evals_result_ = sets.evals_result([sets.evaluate(self._scores)])
        return self
