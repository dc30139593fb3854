"""Confidence intervals of the weights of a linear ranker: a jackknife with one Newton step for each query."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.special import stdtrit
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ranksvm._util import checks
from ranksvm._util.memory import in_words, memory_bytes
from ranksvm._util.text import feature_label, plain
from ranksvm._util.threads import one_blas_thread
from ranksvm._util.types import Features
from ranksvm.analysis.explanations import ranker_input
from ranksvm.data import Preferences, Queries
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.device.arrays import host_values
from ranksvm.estimators import RankSVM, RankSVMCV
from ranksvm.estimators.base.arguments import TrainingFeatures
from ranksvm.exceptions import NoIntervalsError, OptionError
from ranksvm.fits.options import loss_of
from ranksvm.fits.results.score_difference import LISTED, aligned
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.losses import LossSpec, Pairs

__all__ = ["WeightIntervals", "weight_intervals"]

# Intervals are refused if `WeightIntervals.interaction` is larger than this. In simulations, 95 % intervals cover 93 to
# 96 % of the expected weights for interactions up to 3, and 90 % for 10 (800 rows with 500 features and C = 0.001,
# 0.003, 0.01 and 1).
MAX_INTERACTION = 3.0
# The loss "hinge" has no second derivative. Its expected second derivative is estimated by a Huberized hinge that is
# curved for margins from 0.5 to 1.5: the one of width 2/3, evaluated at 2/3 of the scores. (Simulated intervals have a
# coverage of 95 to 97 % with this band, and of 93 to 97 % with a band of a tenth of its width, which contains few
# pairs.)
HINGE_SCALE = 2.0 / 3.0
# Maximum number of entries in the array of weight changes for pairs of queries: 64 MiB.
PAIR_NUMBERS = 1 << 23
# Leverages are at most 1 - MIN_ONE_MINUS_LEVERAGE, so that round-off cannot make them 1.
MIN_ONE_MINUS_LEVERAGE = 1e-12
# A function that converts coordinates of the weights to the weights.
ToWeights = Callable[[np.ndarray], np.ndarray]


class WeightIntervals:
    """Weights of a linear ranker, with standard errors and confidence intervals.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,)
        Weights of the fit to all queries.
    standard_errors : ndarray of float64, shape (n_features,)
        Standard error of each weight.
    n_queries : int
        Number of queries that have pairs, at least 2.
    level : float
        Default confidence level of the intervals.
    solver_error : float
        The largest distance of ``coef`` from the exact weights, proven by the duality gap: ``sqrt(2 * gap)``. It
        should be small relative to the standard errors.
    interaction : float
        Variance caused by joint effects of pairs of queries, relative to the variance of a plain jackknife: near 0 for
        many queries and few features, above 1 if the model can fit nearly everything.
    feature_names : ndarray of str, shape (n_features,), or None
        Names of the features.

    Attributes
    ----------
    coef, standard_errors, n_queries, level, solver_error, interaction, feature_names
        As passed to the constructor.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> weights = analysis.weight_intervals(RankSVM(C=0.01), data.X, data.y, data.qid)
    >>> low, high = weights.interval(0.9)
    >>> bool((low <= high).all()), weights.excludes_zero().shape
    (True, (4,))
    """

    def __init__(
        self,
        coef: np.ndarray,
        standard_errors: np.ndarray,
        n_queries: int,
        level: float = 0.95,
        solver_error: float = 0.0,
        interaction: float = 0.0,
        feature_names: Any = None,
    ):
        self.coef = coef
        self.standard_errors = standard_errors
        self.n_queries = n_queries
        self.level = level
        self.solver_error = solver_error
        self.interaction = interaction
        self.feature_names = feature_names

    def interval(self, level: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Confidence interval of each weight.

        It is the weight plus and minus its standard error times a quantile of Student's t with ``n_queries - 1``
        degrees of freedom.

        Parameters
        ----------
        level : float, optional
            Confidence level in (0, 1); None: ``level``.

        Returns
        -------
        low, high : ndarray of float64, shape (n_features,)
            The ends.

        Raises
        ------
        OptionError
            When level is invalid.
        """
        level = checked_level(self.level if level is None else level)
        half = stdtrit(self.n_queries - 1, 0.5 * (1.0 + level)) * self.standard_errors
        return self.coef - half, self.coef + half

    def excludes_zero(self, level: float | None = None) -> np.ndarray:
        """Whether the interval of each weight excludes 0.

        Parameters
        ----------
        level : float, optional
            Confidence level in (0, 1); None: ``level``.

        Returns
        -------
        ndarray of bool, shape (n_features,)
            True if the whole interval has the sign of the weight.

        Raises
        ------
        OptionError
            When level is invalid.
        """
        low, high = self.interval(level)
        return (low > 0.0) | (high < 0.0)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Weights and intervals as plain Python values, ready for JSON.

        Parameters
        ----------
        top : int, optional
            Number of features to return, the ones with the largest weights; None: all.

        Returns
        -------
        dict
            ``n_queries``, ``level``, ``solver_error``, ``interaction``, and ``features``: a list of dicts, the largest
            weight first. Each has ``feature`` (the name, or ``f1``, ``f2``, ...), ``column`` (of X, from 0), ``name``
            (None if not known), ``weight``, ``standard_error``, ``low``, ``high`` and ``excludes_zero``.

        Raises
        ------
        OptionError
            When ``top`` is not a whole number from 0.
        """
        checks.check_top(top)
        largest = np.argsort(-np.abs(self.coef), kind="stable")[:top]
        names = [None] * len(largest) if self.feature_names is None else [str(self.feature_names[f]) for f in largest]
        columns = {
            "feature": [feature_label(column, self.feature_names) for column in largest.tolist()],
            "column": largest.tolist(),
            "name": names,
            "weight": self.coef[largest].tolist(),
            "standard_error": self.standard_errors[largest].tolist(),
            **{end: values[largest].tolist() for end, values in zip(("low", "high"), self.interval(), strict=True)},
            "excludes_zero": self.excludes_zero()[largest].tolist(),
        }
        return plain(
            {
                "n_queries": self.n_queries,
                "level": self.level,
                "solver_error": self.solver_error,
                "interaction": self.interaction,
                "features": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            }
        )

    def __repr__(self) -> str:
        numbers = ("weight", "standard_error", "low", "high")
        rows = [
            (x["feature"], *(format(x[key], ".4g") for key in numbers), "yes" if x["excludes_zero"] else "no")
            for x in self.to_dict(LISTED)["features"]
        ]
        if len(self.coef) > LISTED:
            rows.append((f"{len(self.coef) - LISTED} more", *[""] * 5))
        title = f"Weights, {self.n_queries} queries, intervals at level {self.level:g}"
        header = ("feature", "weight", "std. error", "low", "high", "without 0")
        return "\n".join([title, *aligned([header, *rows])])


def checked_level(level: object) -> float:
    """A validated confidence level; OptionError if it is invalid."""
    if not isinstance(level, float) or not 0.0 < level < 1.0:
        raise OptionError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}.")
    return level


def weight_intervals(
    model: BaseEstimator,
    X: TrainingFeatures,
    y: ArrayLike | None = None,
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
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), or Preferences
        Features in the form expected by the model. Preferences are copied.
    y : array-like of shape (n_samples,), optional
        Labels; None for Preferences, or if ``pairs`` are given.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them. Queries (prompts of Preferences) are the sampling units:
        they must be independent of each other, but documents of one query need not be.
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
    between 0.5 and 1.5. It costs as much as a few Hessians, plus a term that is cubic in the smaller dimension of X.

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
    if isinstance(X, Preferences):
        data = X
        data.arguments(y=y, qid=qid, group=group, pairs=pairs, pair_weight=pair_weight)  # refuses what is given twice
        X, qid, pairs, pair_weight = data.X, data.qid, data.pairs, data.weight
    ranker, X, qid, names = ranker_input(model, X, qid, feature_names)
    full = _unfitted(ranker, tol, n_jobs)
    X, qid = ranker._split_qid(X, qid)
    y, qid, group = map(host_values, (y, qid, group))
    queries = Queries.of(qid, group, checks.n_rows_of(X))
    if queries.n_queries < 2:
        advice = ": give qid" if qid is None and group is None else ""
        raise NoIntervalsError(f"all rows belong to one query, but intervals need several queries{advice}.")
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
        errors = _query_jackknife(X, fitted_to.pairs, queries.numbers(), scores, slopes, loss, float(full.C))
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


class _JackknifeErrors(NamedTuple):
    """The results of a jackknife over queries.

    Attributes
    ----------
    standard_errors : ndarray of float64, shape (n_features,)
        Standard error of each weight.
    n_queries : int
        Number of queries that have pairs.
    interaction : float
        Variance caused by pairs of queries, which the jackknife counts twice, relative to the jackknife's variance.
    """

    standard_errors: np.ndarray
    n_queries: int
    interaction: float


def _query_jackknife(
    X: Features, pairs: Pairs, query: np.ndarray, scores: np.ndarray, slopes: np.ndarray, loss: LossSpec, C: float
) -> _JackknifeErrors:
    """Standard errors of the weights that minimize ``1/2 |w|^2 + C * loss(X w)``, from the optimum alone.

    Let ``g_q`` and ``H_q`` be the gradient and the Hessian of the part of query q in ``C * loss``, and ``H = I + sum of
    H_q``. One Newton step gives the change of the weights without q, ``d_q = (H - H_q)^-1 g_q`` (Miller, Annals of
    Statistics 2, 1974; it is the correction CR3 of clustered standard errors). Their variance about the mean, times
    ``(n - 1) / n``, is the jackknife's variance. It counts joint effects of k queries k times (Efron & Stein, Annals of
    Statistics 9, 1981, eq. 2.5 and 4.1), and these are large if a model overfits. The change without two queries
    differs from the sum of the changes without each by ``P_q d_r + P_r d_q`` with ``P_q = (H - H_q)^-1 H_q``. Let s be
    the sum of the squares of this difference over the pairs of queries, relative to the jackknife's variance. If the
    variance caused by k queries falls geometrically with k, the true variance is the jackknife's variance divided by
    ``1 + s``.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (n_rows, n_features)
        Features.
    pairs : ComparablePairs or PairList
        The pairs of the rows.
    query : ndarray of int64, shape (n_rows,)
        Number of the query of each row.
    scores : ndarray of float64, shape (n_rows,)
        ``X w`` at the optimum.
    slopes : ndarray of float64, shape (n_rows,)
        Derivatives of ``C * loss`` with respect to the scores; at the optimum ``w = -X' slopes``.
    loss : LossSpec
        The loss.
    C : float
        Weight of a pair.

    Returns
    -------
    _JackknifeErrors
        Standard errors of the weights.

    Raises
    ------
    NoIntervalsError
        When there is too little memory, or fewer than two queries have pairs.
    """
    parts = _QueryParts(pairs, query, scores, slopes, loss, C)
    if parts.n_queries < 2:
        raise NoIntervalsError("1 query has pairs, but intervals need several: give more labeled queries.")
    n_rows, n_features = len(parts.rows), X.shape[1]
    n_columns = min(n_rows, n_features)
    needed = 8 * (6 * n_columns**2 + 3 * n_rows * n_columns + n_features * parts.n_queries)
    if needed > memory_bytes(None):
        raise NoIntervalsError(
            f"intervals of the weights of {n_features:,} features from {n_rows:,} rows need {in_words(needed)}, more "
            f"than {in_words(memory_bytes(None))} (half of the free memory): give a sample of the queries."
        )
    X = X[parts.rows]
    columns, to_weights = _centered_columns(X, parts.starts) if n_features <= n_rows else _few_columns(X, parts.starts)
    factors = [parts.factor(q, columns) for q in range(parts.n_queries)]
    hessian = np.eye(columns.shape[1]) + sum(factor.T @ factor for factor in factors)
    gradients = np.column_stack([parts.gradient(q, columns) for q in range(parts.n_queries)])
    changes, interaction = _changes(factors, gradients, linalg.cho_factor(hessian, lower=True))
    changes -= changes.mean(axis=1, keepdims=True)
    variance = np.sum(to_weights(changes) ** 2, axis=1) * (parts.n_queries - 1) / parts.n_queries
    total = float(np.sum(changes**2)) * (parts.n_queries - 1) / parts.n_queries
    s = interaction / total if total > 0.0 else 0.0
    return _JackknifeErrors(np.sqrt(variance / (1.0 + s)), parts.n_queries, s)


def _changes(
    factors: list[np.ndarray], gradients: np.ndarray, hessian: tuple[np.ndarray, bool]
) -> tuple[np.ndarray, float]:
    """The changes ``d_q``, one per column, and the sum of the squared joint changes over all pairs of queries.

    ``hessian`` is a Cholesky factor. The sum is extrapolated from the pairs among some evenly spread queries, as many
    as memory allows.
    """
    n_variables, n = gradients.shape
    n_chosen = min(n, max(2, math.isqrt(PAIR_NUMBERS // max(1, n_variables))))
    chosen = np.linspace(0, n - 1, n_chosen).astype(np.int64).tolist()
    in_pairs = set(chosen)
    changes, carried = linalg.cho_solve(hessian, gradients), {}
    for q, factor in enumerate(factors):
        towards = linalg.cho_solve(hessian, factor.T)
        leverages, axes = np.linalg.eigh(factor @ towards)
        one_minus_leverages = np.maximum(1.0 - leverages, MIN_ONE_MINUS_LEVERAGE)
        towards = ((towards @ axes) / one_minus_leverages) @ axes.T  # (H - H_q)^-1 F_q' by the identity of Woodbury
        changes[:, q] += towards @ (factor @ changes[:, q])
        if q in in_pairs:
            carried[q] = towards
    moved = np.stack([carried[q] @ (factors[q] @ changes[:, chosen]) for q in chosen])
    both = np.einsum("qvr,qvr->qr", moved, moved) + np.einsum("qvr,rvq->qr", moved, moved)
    np.fill_diagonal(both, 0.0)
    return changes, float(both.sum()) * n * (n - 1) / (n_chosen * (n_chosen - 1))


class _QueryParts:
    """Gradients and Hessians of the loss, query by query, at the given scores."""

    def __init__(
        self, pairs: Pairs, query: np.ndarray, scores: np.ndarray, slopes: np.ndarray, loss: LossSpec, C: float
    ):
        # queries of weight 0 are no observations
        compact, self.rows = pairs.of_queries(np.flatnonzero(pairs.weight_per_query > 0.0)).comparable()
        scale, width = 1.0, loss.width
        if loss.smoothed:
            loss, scale, width = LossSpec("huber", HINGE_SCALE), HINGE_SCALE, HINGE_SCALE
        loss_of_pairs = loss.with_pairs(compact)
        state = loss_of_pairs.new_state()
        given = np.ascontiguousarray(scale * scores[self.rows])
        loss_of_pairs.evaluation(state, width)(0, compact.n_queries, given, np.empty(len(self.rows)))
        self._slopes, self._C, self._curvature = slopes[self.rows], C * scale, loss_of_pairs.hessian(state)
        # a query may have several parts: listed pairs are grouped into connected components
        filled = np.flatnonzero(np.diff(compact.pointers))
        self.starts, self._stops = compact.pointers[filled], compact.pointers[filled + 1]
        self._numbers = filled
        _, query_of_part = np.unique(query[self.rows[self.starts]], return_inverse=True)
        self._parts = np.split(np.argsort(query_of_part, kind="stable"), np.cumsum(np.bincount(query_of_part))[:-1])
        self.n_queries = len(self._parts)

    def gradient(self, q: int, columns: np.ndarray) -> np.ndarray:
        """Gradient of query q with respect to the coefficients of the columns."""
        return sum(
            (columns[a:b].T @ self._slopes[a:b] for a, b in self._ranges(q)),
            start=np.zeros(columns.shape[1]),
        )

    def factor(self, q: int, columns: np.ndarray) -> np.ndarray:
        """A matrix F for which ``F'F`` is the Hessian of query q, with no more rows than the query or the columns."""
        found = [
            self._factor(number, columns[a:b])
            for number, (a, b) in zip(self._numbers[self._parts[q]], self._ranges(q), strict=True)
        ]
        return np.concatenate(found)

    def _ranges(self, q: int) -> list[tuple[int, int]]:
        return [(int(self.starts[part]), int(self._stops[part])) for part in self._parts[q]]

    def _factor(self, number: int, columns: np.ndarray) -> np.ndarray:
        n_rows, n_columns = columns.shape
        inputs = np.eye(n_rows) if n_rows <= n_columns else np.ascontiguousarray(columns.T)
        products = np.zeros_like(inputs)
        for v, u in zip(inputs, products, strict=True):
            self._curvature(int(number), int(number) + 1, v, u)
        small = products if n_rows <= n_columns else products @ columns
        values, axes = np.linalg.eigh(self._C * (small + small.T) / 2.0)
        root = np.sqrt(np.maximum(values, 0.0))[:, np.newaxis] * axes.T
        return root @ columns if n_rows <= n_columns else root


def _centered_columns(X: Features, starts: np.ndarray) -> tuple[np.ndarray, ToWeights]:
    """Features centered in each part of a query, which changes no margin, and the map from coefficients to weights."""
    dense = X.toarray() if checks.is_sparse(X) else X
    return _centered(np.array(dense, dtype=np.float64), starts), lambda changes: changes


def _few_columns(X: Features, starts: np.ndarray) -> tuple[np.ndarray, ToWeights]:
    """Coordinates of the centered rows in an orthonormal basis of their span, and a map from coordinates to weights."""
    X = X.astype(np.float64)
    products = (X @ X.T).toarray() if checks.is_sparse(X) else X @ X.T
    gram = _centered(_centered(products, starts).T, starts)
    values, axes = np.linalg.eigh((gram + gram.T) / 2.0)
    real = values > len(values) * np.finfo(np.float64).eps * max(values.max(initial=0.0), 0.0)
    sizes, axes = np.sqrt(values[real]), axes[:, real]

    def to_weights(changes: np.ndarray) -> np.ndarray:
        return X.T @ _centered(axes @ (changes / sizes[:, np.newaxis]), starts)

    return axes * sizes, to_weights


def _centered(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Rows minus the mean row of their part."""
    counts = np.diff(starts, append=len(values))
    means = np.add.reduceat(values, starts, axis=0) / counts[:, np.newaxis]
    return values - np.repeat(means, counts, axis=0)
