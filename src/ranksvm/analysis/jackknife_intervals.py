"""Confidence intervals of the weights of a linear ranker, from one fit."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ranksvm._util import checks
from ranksvm._util.threads import one_blas_thread
from ranksvm._util.types import MatrixLike
from ranksvm.analysis._pipelines import ranker_input
from ranksvm.analysis.intervals import WeightIntervals, checked_level
from ranksvm.analysis.query_jackknife import query_jackknife
from ranksvm.data import frames, validation
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.device.arrays import host_values
from ranksvm.estimators import RankSVM, RankSVMCV
from ranksvm.exceptions import DataError, NoIntervalsError, OptionError
from ranksvm.fits.options import loss_of
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.losses import LossSpec, Pairs

__all__ = ["weight_intervals"]

# Intervals are refused beyond this interaction. In simulations, 95 % intervals cover 93 to 96 % of the expected weights
# for interactions up to 3, and 90 % for 10 (800 rows with 500 features and C = 0.001, 0.003, 0.01 and 1).
MAX_INTERACTION = 3.0


def weight_intervals(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    qid: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    pair_weight: ArrayLike | None = None,
    event: ArrayLike | None = None,
    level: float = 0.95,
    tol: float = 1e-8,
    n_jobs: int | None = None,
    feature_names: ArrayLike | None = None,
) -> WeightIntervals:
    """Confidence intervals of the weights of a linear ranker, from one fit.

    An interval is ``w_j`` plus and minus a quantile of Student's t times the standard error, whose square is the
    variance of a jackknife over queries, corrected for joint effects of pairs of queries (Efron & Stein, Annals of
    Statistics 9, 1981). The change of the weights without a query is computed by one Newton step from the optimum,
    without a refit (Miller, Annals of Statistics 2, 1974).

    The interval covers the *expected weight*: the mean weight over fits to samples from the same population, with the
    same number of queries, the same C and the same Pipeline steps before the ranker. If there are many features for the
    number of queries, this mean differs from the minimizer of the expected objective, because each fit adapts to its
    sample. Regularization shrinks both toward 0. benchmarks/results/weight_intervals.md has the coverage of both.

    Parameters
    ----------
    model : estimator
        RankSVM, fitted or not; a fitted RankSVMCV, whose chosen C is used; or a fitted Pipeline that ends with one. It
        is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features in the form expected by the model.
    y : array-like of shape (n_samples,), or None
        Labels; None if ``pairs`` are given.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them. Queries are the sampling units: they must be independent
        of each other, and documents of one query need not be.
    group : array-like of int, shape (n_queries,), optional
        Instead of ``qid``: sizes of consecutive queries.
    sample_weight, query_weight, propensity, pairs, pair_weight, event : array-like, optional
        As in `RankSVM.fit`.
    level : float, default 0.95
        Confidence level of the intervals.
    tol : float, default 1e-8
        Relative duality gap of the fit, smaller than for a model, because the solver's error must be small relative to
        the standard errors (`WeightIntervals.solver_error`).
    n_jobs : int or None, default None
        Number of threads of the fit; None or -1: the number of processors.
    feature_names : array-like of str, shape (n_features,), optional
        Names of the columns of X; None: the columns of X, if it is a DataFrame.

    Returns
    -------
    WeightIntervals
        Weights, standard errors and intervals.

    Raises
    ------
    OptionError
        When the model is of another kind, or an option has an invalid value.
    DataError
        When the data cannot be used.
    NoIntervalsError
        When fewer than two queries have pairs; when weights are 0 only because of ``monotone``; when the model fits the
        data so closely that no interval can be trusted; or when the computation needs more than half of the free
        memory.

    Notes
    -----
    The loss "hinge" has no second derivative; its expected second derivative is estimated from the pairs with margins
    between 0.5 and 1.5. The work is as much as for a few Hessians, plus an amount that is cubic in the smaller side of
    X.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.analysis import weight_intervals
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> weights = weight_intervals(RankSVM(C=0.01), data.X, data.y, data.qid)
    >>> low, high = weights.interval()
    >>> bool(((low <= weights.coef) & (weights.coef <= high)).all())
    True
    """
    checks.check(tol=checks.positive(tol))
    level = checked_level(level)
    ranker, X, qid, names = ranker_input(model, X, qid, feature_names)
    full = _unfitted(ranker, tol, n_jobs)
    X, qid, _ = frames.split_qid(X, qid)
    y, qid, group = map(host_values, (y, qid, group))
    queries = validation.queries(qid, group, checks.n_rows_of(X))
    if queries.n_queries < 2:
        raise DataError("all rows belong to one query, but intervals need several queries: give qid.")
    given: dict[str, Any] = {"sample_weight": sample_weight, "query_weight": query_weight, "propensity": propensity}
    given |= {"pairs": pairs, "pair_weight": pair_weight, "event": event}
    given = {name: host_values(value) for name, value in given.items()}
    full.fit(X, y, qid=queries.numbers(), **given)
    _check_free(full)
    names = getattr(full, "feature_names_in_", None) if names is None else np.asarray(names)
    fitted_to = full._fitted_pairs(TrainingArguments(X, y, qid=queries.numbers(), **given))
    X = fitted_to.X.on_host() if isinstance(fitted_to.X, DeviceFeatures) else fitted_to.X
    loss, scores = loss_of(full.loss, full.huber_width), np.asarray(host_values(full._scores(fitted_to.X)))
    if full.pair_alpha_ is None:
        slopes = float(full.C) * _slopes(loss, fitted_to.pairs, scores, full.width_)
    else:
        slopes = -full.dual_coef(X, y, queries.numbers(), **given).per_document()
    with one_blas_thread():
        errors = query_jackknife(X, fitted_to.pairs, queries.numbers(), scores, slopes, loss, float(full.C))
    if errors.interaction > MAX_INTERACTION:
        raise NoIntervalsError(
            f"the model fits these {errors.n_queries} queries so closely that no interval of a weight can be trusted: "
            f"pairs of queries cause {errors.interaction:.1f} times the variance of the jackknife, and intervals cover "
            f"up to {MAX_INTERACTION:g}. Use a smaller C than {float(full.C):g}, fewer features, or more queries."
        )
    error = float(np.sqrt(2.0 * full.duality_gap_))
    return WeightIntervals(
        full.coef_, errors.standard_errors, errors.n_queries, level, error, errors.interaction, names
    )


def _unfitted(ranker: BaseEstimator, tol: float, n_jobs: int | None) -> RankSVM:
    """An unfitted RankSVM with the parameters of a ranker."""
    if not isinstance(ranker, RankSVM | RankSVMCV):
        raise OptionError(f"weight_intervals needs a RankSVM or RankSVMCV, got {ranker!r}.")
    if isinstance(ranker, RankSVMCV):
        check_is_fitted(ranker, "C_")
        unfitted = ranker._with_same_params()
    else:
        unfitted = clone(ranker)
    return unfitted.set_params(tol=tol, n_jobs=n_jobs, warm_start=False, keep_on_interrupt=False, verbose=0)


def _slopes(loss: LossSpec, pairs: Pairs, scores: np.ndarray, width: float | None) -> np.ndarray:
    """Derivatives of the loss with respect to the scores."""
    compact, rows = pairs.comparable()
    loss_of_pairs, slopes, gradient = loss.with_pairs(compact), np.zeros(len(scores)), np.zeros(len(rows))
    evaluate = loss_of_pairs.evaluation(loss_of_pairs.new_state(), width)
    evaluate(0, compact.n_queries, np.ascontiguousarray(scores[rows]), gradient)
    slopes[rows] = gradient
    return slopes


def _check_free(ranker: RankSVM) -> None:
    """Refuse a fit with weights that are 0 because of ``monotone``: their distribution is not normal."""
    if ranker.monotone_ is None:
        return
    n_bound = int(np.count_nonzero((ranker.monotone_ != 0) & (ranker.coef_ == 0.0)))
    if n_bound:
        raise NoIntervalsError(
            f"{n_bound} of {len(ranker.coef_)} weights are 0 because monotone does not admit their sign, and intervals "
            "from derivatives do not hold there: drop these features, or set monotone=None."
        )
