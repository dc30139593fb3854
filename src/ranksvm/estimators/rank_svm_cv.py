"""RankSVMCV: RankSVM with C chosen on validation data or by query folds."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ranksvm._parallel import effective_n_jobs
from ranksvm.data import Queries, _frames
from ranksvm.estimators import _inputs, _options
from ranksvm.estimators._dual import DualMixin
from ranksvm.estimators._evaluation import EvaluationSet, evals_result, evaluation_sets
from ranksvm.estimators._linear_problem import LinearProblem, linear_problem
from ranksvm.estimators._linear_ranker import LinearRanker
from ranksvm.estimators.path import c_values, solve_along
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.metrics import Convention, Evaluation, Metric, parse_metric
from ranksvm.metrics.conventions import convention_named
from ranksvm.model_selection.choice import RULES, choose, mean_and_standard_error, standard_error_over_queries
from ranksvm.model_selection.cross_validation import query_splits
from ranksvm.solvers import Status

__all__ = ["RankSVMCV"]

logger = logging.getLogger("ranksvm.estimators")


class RankSVMCV(DualMixin, LinearRanker):
    """RankSVM with C chosen by a ranking metric, on validation data or by cross-validation over queries.

    For each training part the solutions along C are computed one from the other (`regularization_path`). With
    validation data (``eval_set``) the chosen solution is the model; with folds, the model is refitted on all data.
    Of equally good values the smallest C, the most regularised, is taken; ``rule="one_standard_error"`` goes further
    and takes the smallest of those that the data cannot tell from the best.

    Parameters
    ----------
    Cs : array-like of float or None, default None
        Values of C to try; None: the powers of 2 from 2^-15 to 2^5.
    metric : str or Metric, default "ndcg@10"
        What to maximise, as in `ranksvm.metrics.evaluate`.
    cv : int or splitter, default 5
        Number of folds of a `QueryKFold`, or an object with ``split(X, y, groups)``; unused with ``eval_set``.
    convention : str or Convention, default "default"
        As in `ranksvm.metrics.evaluate`.
    rule : {"best", "one_standard_error"}, default "best"
        "best": the C of the highest mean score. "one_standard_error": the smallest C whose mean score is at least the
        highest less its standard error (see the notes).
    loss, huber_width, pair_selection, pair_weighting, solver, tol, max_iter, n_jobs, verbose : optional
        As in `RankSVM`.
    keep_on_interrupt : bool, default False
        As in `RankSVM`. With ``keep_on_interrupt``, Ctrl-C ends the comparison on validation data and keeps the best of
        the values tried; while folds are compared there is no model to keep, and KeyboardInterrupt is raised.

    Attributes
    ----------
    C_ : float
        The chosen C.
    best_score_ : float
        Its mean score.
    mean_scores_ : ndarray of float64, shape (n_Cs,)
        Mean of ``scores_`` for each C over the test parts where the metric is defined.
    standard_errors_ : ndarray of float64, shape (n_Cs,)
        Standard error of each mean: over the test parts, or where there is one, over its queries. NaN where there are
        fewer than two values.
    Cs_ : ndarray of float64, shape (n_Cs,)
        The values tried, ascending.
    scores_ : ndarray of float64, shape (n_Cs, n_folds)
        The metric for each on each test part (one column with ``eval_set``: its first set).
    evals_result_ : dict
        The metric on each set of ``eval_set`` for each C, in LightGBM's form: ``{"valid_0": {"ndcg@10": [...]}}``.
    coef_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, history_, n_pairs_, n_queries_
        As in `RankSVM`, for the chosen C.

    See Also
    --------
    RankSVM : For one C.
    PathDisplay : Plots the scores along C.

    Notes
    -----
    The one-standard-error rule is that of Breiman, Friedman, Olshen & Stone, Classification and Regression Trees
    (1984), section 3.4.3; see Hastie, Tibshirani & Friedman, The Elements of Statistical Learning, 2nd ed. (2009),
    section 7.10. With K folds the standard error is the standard deviation of the K fold means (with K - 1) over the
    root of K. With one test part it is that of its queries' values (with n - 1) over the root of their number n,
    weighted as the mean is; queries for which the metric is not defined do not count.

    Examples
    --------
    >>> from ranksvm import RankSVMCV, make_ranking
    >>> data = make_ranking(n_queries=60, n_docs=20, n_features=10, random_state=0)
    >>> ranker = RankSVMCV(Cs=[1e-4, 1e-2, 1.0], metric="ndcg@5", cv=3).fit(data.X, data.y, qid=data.qid)
    >>> ranker.scores_.shape
    (3, 3)
    """

    def __init__(
        self,
        Cs: Any = None,
        *,
        metric: Any = "ndcg@10",
        cv: Any = 5,
        convention: Any = "default",
        rule: str = "best",
        loss: str = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        keep_on_interrupt: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.Cs = Cs
        self.metric = metric
        self.cv = cv
        self.convention = convention
        self.rule = rule
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.keep_on_interrupt = keep_on_interrupt
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
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> "RankSVMCV":
        """Choose C and learn the weights.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        qid, group : array-like (or for qid str), optional
            Queries, as in `RankSVM.fit`.
        sample_weight, query_weight, propensity : array-like of shape (n_samples,), optional
            Weights, as in `RankSVM.fit`. In the score of a fold a query counts with the mean sample weight of its rows.
        pairs, pair_weight : array-like, optional
            Explicit preferences instead of ``y``, as in `RankSVM.fit`; they need an ``eval_set`` with labels.
        eval_set : list of tuple (X, y), or one such tuple, optional
            Validation data, as LightGBM and XGBoost have it. C is chosen on the first set; on others the metric is only
            recorded (``evals_result_``).
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. Where ``qid`` named a column, that column of the sets.

        Returns
        -------
        RankSVMCV
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query (of a training part) has two documents with different labels.
        DataError
            When the data are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has a value it cannot have.

        Warns
        -----
        ConvergenceWarning
            When a certificate does not meet ``tol``.
        """
        metric, convention = parse_metric(self.metric), convention_named(self.convention)
        _options.check(rule=_options.one_of(self.rule, RULES))
        with _inputs.all_or_nothing(self), _options.verbosity(self.verbose):
            X, qid, self.qid_column_ = _frames.split_qid(X, qid)
            self.Cs_ = np.sort(c_values(self.Cs))
            weights = {"sample_weight": sample_weight, "query_weight": query_weight, "propensity": propensity}
            problem = linear_problem(self, X, y, qid=qid, group=group, pairs=pairs, pair_weight=pair_weight, **weights)
            sets = evaluation_sets(self, eval_set, eval_qid, eval_group, problem.n_queries)
            if sets:
                self._choose_on_validation(problem, metric, convention, sets)
            elif pairs is not None:
                raise DataError("With pairs there are no labels to choose C by folds: give validation data (eval_set).")
            else:
                grouping = _inputs.queries(qid, group, problem.n_rows)
                self._choose_by_folds(problem, metric, convention, X, y, grouping, weights)
        return self

    def _choose_on_validation(
        self, problem: LinearProblem, metric: Metric, convention: Convention, sets: list[EvaluationSet]
    ) -> None:
        results, evaluations = [], []
        with problem.interruptible() as interrupted:
            for C, result in solve_along(problem, self.Cs_, interrupted):
                results.append(result)
                scores = partial(problem.scores, result.w)
                evaluations.append([each.evaluate(scores, metric, convention) for each in sets])
                value = evaluations[-1][0].means[metric.name]
                logger.info("C = %.6g: %s %.4f on validation data", C, metric.name, value)
        self.Cs_ = self.Cs_[: len(results)]
        self.evals_result_ = evals_result(evaluations)
        problem.keep_result(self, results[self._choose(metric, [each[:1] for each in evaluations])])
        if interrupted is not None and interrupted.is_set():
            self.status_ = Status.INTERRUPTED.value

    def _choose_by_folds(
        self,
        problem: LinearProblem,
        metric: Metric,
        convention: Convention,
        X: Any,
        y: Any,
        grouping: Queries,
        weights: dict[str, Any],
    ) -> None:
        n_threads = effective_n_jobs(self.n_jobs)
        X, y = _inputs.features_and_labels(self, X, y, n_threads=n_threads, reset=False)
        numbers = grouping.numbers()

        def divided(rows: np.ndarray) -> dict[str, Any]:
            there = {name: value for name, value in weights.items() if value is not None}
            return weights | {name: np.broadcast_to(np.asarray(value), len(y))[rows] for name, value in there.items()}

        folds = []
        for number, (train, test) in enumerate(query_splits(self.cv, X, y, grouping)):
            part = {"qid": numbers[train], "group": None, **divided(train)}
            try:
                fold = linear_problem(self._ranker(), X[train], y[train], **part)
            except NoComparablePairsError as error:
                raise NoComparablePairsError(f"training part of fold {number + 1}: {error}") from None
            held_out = EvaluationSet(X[test], y[test], numbers[test], divided(test)["sample_weight"])
            evaluations = []
            for C, result in solve_along(fold, self.Cs_):
                evaluations.append(held_out.evaluate(partial(fold.scores, result.w), metric, convention))
                value = evaluations[-1].means[metric.name]
                logger.info("C = %.6g: %s %.4f on fold %d", C, metric.name, value, number + 1)
            folds.append(evaluations)
        self.evals_result_ = {}
        best = self._choose(metric, list(zip(*folds, strict=True)))
        with problem.interruptible() as interrupted:
            problem.keep_result(self, problem.solve(float(self.Cs_[best]), interrupted=interrupted))

    def _ranker(self) -> RankSVM:
        """A RankSVM with the parameters that both have, to take note of a fold's features in place of this one."""
        shared = RankSVM().get_params().keys()
        return RankSVM(**{name: value for name, value in self.get_params(deep=False).items() if name in shared})

    def _choose(self, metric: Metric, evaluations: Sequence[Sequence[Evaluation]]) -> int:
        """Number of the C chosen, from the evaluation for each C on each test part; keeps what it is chosen by."""
        name = metric.name
        self.scores_ = np.array([[part.means[name] for part in parts] for parts in evaluations])
        self.mean_scores_, self.standard_errors_ = mean_and_standard_error(self.scores_)
        if self.scores_.shape[1] == 1:
            self.standard_errors_ = np.array(
                [standard_error_over_queries(part.per_query[name], part.weights[name]) for (part,) in evaluations]
            )
        if np.isnan(self.mean_scores_).all():
            raise OptionError(f"{self.metric!r} is not defined for any query of the validation data.")
        chosen = choose(self.mean_scores_, self.standard_errors_, self.rule)
        self.C_ = float(self.Cs_[chosen])
        self.best_score_ = float(self.mean_scores_[chosen])
        return chosen
