"""RankSVMCV: RankSVM with C chosen on validation data or by query folds."""

import logging
from typing import Any

import numpy as np
import scipy.sparse

from ranksvm.data import Queries
from ranksvm.estimators import _inputs, _options
from ranksvm.estimators._dual import DualMixin
from ranksvm.estimators._linear_problem import keep_result, linear_problem
from ranksvm.estimators.path import c_values, solve_along
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.metrics import evaluate, parse_metric
from ranksvm.model_selection.cross_validation import query_splits, take_rows
from ranksvm.solvers import Status

__all__ = ["RankSVMCV"]

logger = logging.getLogger("ranksvm.estimators")


class RankSVMCV(DualMixin):
    """RankSVM with C chosen by a ranking metric, on validation data or by cross-validation over queries.

    For each training part the solutions along C are computed one from the other (`regularization_path`). With
    validation data (``eval_set``) the chosen solution is the model; with folds, the model is refitted on all data.
    Of equally good values the smallest C, the most regularised, is taken.

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
    Cs_ : ndarray of float64, shape (n_Cs,)
        The values tried, ascending.
    scores_ : ndarray of float64, shape (n_Cs, n_folds)
        The metric for each on each test part (one column with ``eval_set``).
    coef_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, history_, n_pairs_, n_queries_
        As in `RankSVM`, for the chosen C.

    See Also
    --------
    RankSVM : For one C.

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
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> "RankSVMCV":
        """Choose C and learn the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels.
        qid, group : array-like (or for qid str), optional
            Queries, as in `RankSVM.fit`.
        sample_weight, query_weight : array-like of shape (n_samples,), optional
            Weights, as in `RankSVM.fit`. In the score of a fold a query counts with the mean sample weight of its rows.
        eval_set : tuple (X, y), optional
            Validation data; a list of one such tuple, as LightGBM has it, will do.
        eval_qid, eval_group : array-like, optional
            Queries of the validation data.

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
        metric = parse_metric(self.metric)
        with _inputs.all_or_nothing(self), _options.verbosity(self.verbose):
            X, qid, self.qid_column_ = _inputs.split_qid(X, qid)
            self.Cs_ = np.sort(c_values(self.Cs))
            problem = linear_problem(
                self, X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
            )
            if eval_set is not None:
                X_eval, y_eval = _validation_pair(eval_set)
                eval_qid = self._query_ids(X_eval, eval_qid) if eval_group is None else eval_qid
                grouping = _inputs.queries(eval_qid, eval_group, len(y_eval))
                self._choose_on_validation(problem, metric, X_eval, y_eval, grouping)
            elif eval_qid is not None or eval_group is not None:
                raise DataError("eval_qid or eval_group is given without eval_set=(X, y).")
            else:
                weights = {"sample_weight": sample_weight, "query_weight": query_weight}
                grouping = _inputs.queries(qid, group, problem.pairs.n_rows)
                self._choose_by_folds(problem, metric, X, np.asarray(y), grouping, weights)
        return self

    def _choose_on_validation(self, problem: Any, metric: Any, X: Any, y: Any, grouping: Queries) -> None:
        ids = grouping.numbers()
        results, scores = [], []
        with problem.interruptible() as interrupted:
            for C, result in solve_along(problem, self.Cs_, interrupted):
                self.coef_ = result.w
                scores.append(self._score(metric, y, self.predict(X), ids))
                logger.info("C = %.6g: %s %.4f on validation data", C, metric.name, scores[-1])
                results.append(result)
        self.Cs_ = self.Cs_[: len(scores)]
        self.scores_ = np.array(scores)[:, np.newaxis]
        keep_result(self, results[self._choose()], problem)
        if interrupted is not None and interrupted.is_set():
            self.status_ = Status.INTERRUPTED.value

    def _choose_by_folds(
        self, problem: Any, metric: Any, X: Any, y: np.ndarray, grouping: Queries, weights: dict[str, Any]
    ) -> None:
        X = X.tocsr() if scipy.sparse.issparse(X) else X
        columns = []
        ids = grouping.numbers()
        for number, (train, test) in enumerate(query_splits(self.cv, X, y, grouping)):
            shared = set(RankSVM().get_params()) & set(self.get_params()) - {"keep_on_interrupt", "verbose"}
            ranker = RankSVM(**{name: getattr(self, name) for name in shared})
            part = {name: None if value is None else take_rows(value, train) for name, value in weights.items()}
            try:
                fold = linear_problem(ranker, take_rows(X, train), y[train], qid=ids[train], group=None, **part)
            except NoComparablePairsError as error:
                raise NoComparablePairsError(f"training part of fold {number + 1}: {error}") from None
            test_weight = weights["sample_weight"]
            test_weight = None if test_weight is None else take_rows(test_weight, test)
            X_test, column = take_rows(X, test), []
            for C, result in solve_along(fold, self.Cs_):
                ranker.coef_ = result.w
                column.append(self._score(metric, y[test], ranker.predict(X_test), ids[test], test_weight))
                logger.info("C = %.6g: %s %.4f on fold %d", C, metric.name, column[-1], number + 1)
            columns.append(column)
        self.scores_ = np.array(columns).T
        best = float(self.Cs_[self._choose()])
        with problem.interruptible() as interrupted:
            keep_result(self, problem.solve(best, interrupted=interrupted), problem)

    def _score(
        self, metric: Any, y: np.ndarray, scores: np.ndarray, ids: np.ndarray, sample_weight: Any = None
    ) -> float:
        result = evaluate(y, scores, ids, [metric], convention=self.convention, sample_weight=sample_weight)
        return result.means[metric.name]

    def _choose(self) -> int:
        means = self.scores_.mean(axis=1)
        if np.isnan(means).all():
            raise OptionError(f"{self.metric!r} is not defined for any query of the validation data.")
        best = int(np.nanargmax(means))
        self.C_ = float(self.Cs_[best])
        self.best_score_ = float(means[best])
        return best


def _validation_pair(eval_set: Any) -> tuple[Any, Any]:
    if isinstance(eval_set, list) and len(eval_set) == 1:
        eval_set = eval_set[0]
    if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
        raise DataError("eval_set must be a tuple (X, y).")
    return eval_set[0], np.asarray(eval_set[1])
