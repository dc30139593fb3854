"""RankSVMCV: RankSVM with C chosen on validation data or by query folds."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.types import Splits
from ranksvm.estimators.base.arguments import ConventionLike, LossLike, Monotone
from ranksvm.estimators.base.choosing_ranker import ChoosingRanker
from ranksvm.estimators.base.inputs import resolve_files
from ranksvm.estimators.base.linear_ranker import SIGNS_SCHEMA, LinearRanker
from ranksvm.estimators.base.ranker import linear_options
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.fits.linear import LinearProblem, linear_problem, linear_training_set
from ranksvm.fits.options import LinearOptions
from ranksvm.fits.training_set import TrainingArguments, TrainingSet
from ranksvm.metrics import Metric
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Schema

__all__ = ["RankSVMCV"]


@storable
class RankSVMCV(ChoosingRanker, LinearRanker):
    """RankSVM with C chosen by a ranking metric, on validation data or by cross-validation over queries.

    On each training part, models are fitted for ascending C, each starting from the previous solution
    (`regularization_path`). With validation data (``eval_set``) the chosen solution is the model; with folds, the model
    is refitted on all data. Ties go to the smallest C, the most regularized; ``rule="one_standard_error"`` chooses the
    smallest C whose score is within one standard error of the best.

    Parameters
    ----------
    Cs : array-like of float or None, default None
        Values of C to try; None: the powers of 2 from 2^-15 to 2^5. A single number is the only value tried, not the
        number of values as in scikit-learn's ``LogisticRegressionCV``.
    metric : str or Metric, default "ndcg@10"
        The metric to maximize, as in `ranksvm.metrics.evaluate`. Pairs and `Preferences` are always evaluated by the
        pairwise accuracy, and censored times by the concordance index: leave the default for them.
    cv : int, splitter, or iterable of (train, test), default 5
        Number of folds of a `QueryKFold`; or an object with ``split(X, y, groups)``, whose ``groups`` are not the query
        ids, but numbers of the queries, from 0, in the order in which they first appear; or numbers of rows, or masks
        of the rows. If pairs are given, they are split instead of the rows, and if a file is read in passes, its
        queries, in this order. Unused with ``eval_set``.
    convention : str or Convention, default "default"
        As in `ranksvm.metrics.evaluate`.
    rule : {"best", "one_standard_error"}, default "best"
        "best": the C of the highest mean score. "one_standard_error": the smallest C whose mean score is at least the
        highest mean score minus its standard error (see the notes).
    early_stopping_rounds : int or None, default None
        With an ``eval_set``: stop after this number of ascending values of C without a better score on its first set.
    loss, huber_width, pair_selection, pair_weighting, monotone, solver, tol, max_iter : optional
        As in `RankSVM`.
    device, memory_limit, n_jobs : optional
        As in `RankSVM`. All values of C share each pass over a file larger than ``memory_limit``.
    keep_on_interrupt : bool, default False
        As in `RankSVM`. If True, Ctrl-C ends the comparison on validation data, and the model is the best one so far.
        With folds there is no model to keep during the comparison, and KeyboardInterrupt is raised.
    verbose : int, default 0
        1 shows the score of each C on each fold, and a progress bar if stderr is a terminal; 2 also shows the
        iterations of every fit. On stderr, or wherever `logging` is configured to send the logger "ranksvm".

    Attributes
    ----------
    C_ : float
        The chosen C.
    best_score_ : float
        The mean score of this C.
    best_iteration_ : int
        The number of this C, from 1, among the values tried: ``C_`` is ``Cs_[best_iteration_ - 1]``.
    mean_scores_ : ndarray of float64, shape (n_Cs,)
        Mean of ``scores_`` for each C over the test parts where the metric is defined.
    standard_errors_ : ndarray of float64, shape (n_Cs,)
        Standard error of each mean: over the test parts, or over the queries if there is one test part. NaN if there
        are fewer than two values.
    Cs_ : ndarray of float64, shape (n_Cs,)
        The values tried, ascending, without the values that early stopping skipped.
    scores_ : ndarray of float64, shape (n_Cs, n_folds)
        The metric of each C on each test part (one column with ``eval_set``: its first set).
    evals_result_ : dict
        The metrics on each set of ``eval_set`` for each C, in LightGBM's form: ``{"valid_0": {"ndcg@10": [...]}}``.
    coef_, monotone_, fitted_params_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_,
    pair_alpha_, history_, n_pairs_, n_queries_, censored_, device_
        As in `RankSVM`, for the chosen C.
    n_features_in_, feature_names_in_, frame_type_, qid_column_
        As in `RankSVM`.

    See Also
    --------
    RankSVM : For one C.
    PathDisplay : Plots the scores along C.

    Notes
    -----
    The one-standard-error rule is from Breiman, Friedman, Olshen & Stone, Classification and Regression Trees
    (1984), section 3.4.3; see Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, 2nd ed. (2009),
    section 7.10. With K folds the standard error is the standard deviation of the K fold means (with K - 1) divided by
    the square root of K. With one test part it is the standard deviation of its queries' values (with n - 1) divided by
    the square root of their number n, weighted like the mean; queries for which the metric is undefined do not count.

    Examples
    --------
    >>> from ranksvm import RankSVMCV, make_ranking
    >>> data = make_ranking(n_queries=60, n_docs=20, n_features=10, random_state=0)
    >>> ranker = RankSVMCV(Cs=[1e-4, 1e-2, 1.0], metric="ndcg@5", cv=3).fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape
    (3, 3)
    """

    _with_one_c = RankSVM
    _reads_devices = True
    _fitted_schema: ClassVar[Schema] = {
        "coef_": Array("n_features"),
        **SIGNS_SCHEMA,
        "scores_": Array("n_Cs", "n_folds", finite=False),
        "mean_scores_": Array("n_Cs", finite=False),
        "standard_errors_": Array("n_Cs", finite=False),
    }
    _model_params = ("loss", "huber_width", "pair_selection", "pair_weighting", "rule")

    def __init__(
        self,
        Cs: ArrayLike | None = None,
        *,
        metric: str | Metric = "ndcg@10",
        cv: Splits = 5,
        convention: ConventionLike = "default",
        rule: str = "best",
        early_stopping_rounds: int | None = None,
        loss: LossLike = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        keep_on_interrupt: bool = False,
        device: str | list[str] = "cpu",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.Cs = Cs
        self.metric = metric
        self.cv = cv
        self.convention = convention
        self.rule = rule
        self.early_stopping_rounds = early_stopping_rounds
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.monotone = monotone
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _resolved(self, training: TrainingArguments) -> TrainingArguments:
        return resolve_files(training, self.memory_limit)

    def _options(self) -> LinearOptions:
        return linear_options(self)

    def _training_set(self, training: TrainingArguments, options: Any) -> Any:
        return linear_training_set(training, options)

    def _settings(self, data: TrainingSet) -> list[None]:
        return [None]

    def _problem(self, data: Any, options: Any, setting: None, n_fits: int = 1) -> LinearProblem:
        return linear_problem(data, options, getattr(self, "feature_names_in_", None), n_fits)

    def _assign_solution(self, problem: Any, w: np.ndarray) -> None:
        self.coef_ = np.array(w)
        self.monotone_ = problem.signs

    def _assign_scores(self, settings: list[Any], scores: np.ndarray, means: np.ndarray, errors: np.ndarray) -> None:
        self.scores_ = scores[0]
        self.mean_scores_ = means[0]
        self.standard_errors_ = errors[0]
