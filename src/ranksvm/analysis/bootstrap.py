"""Bootstrap of the weights: refits on queries drawn with replacement."""

import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ranksvm import _options
from ranksvm._parallel import effective_n_jobs, one_blas_thread, parallel_map
from ranksvm.analysis._pipelines import ranker_input
from ranksvm.analysis.bootstrap_weights import BootstrapWeights, checked_level
from ranksvm.data import frames, validation
from ranksvm.device.arrays import host_values
from ranksvm.estimators import RankSVM, RankSVMCV
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError

__all__ = ["bootstrap_weights"]


def bootstrap_weights(
    model: Any,
    X: Any,
    y: Any,
    qid: Any = None,
    *,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    n_resamples: int = 200,
    level: float = 0.95,
    tol: float = 1e-8,
    random_state: Any = None,
    n_jobs: int | None = None,
    feature_names: Any = None,
    **fit_params: Any,
) -> BootstrapWeights:
    """Bootstrap of the weights of a linear ranker: refits on queries drawn with replacement.

    Queries, not rows, are the sampling units, so whole queries are drawn, as many as there are (Efron & Tibshirani, "An
    Introduction to the Bootstrap", 1993, chapters 8 and 13). A query drawn m times has m times its weight: X is neither
    copied nor subset. Every refit starts from the fit to all queries.

    C, and the steps of a Pipeline before the ranker, are fixed: the intervals are conditional on both. Regularisation
    shrinks a weight towards 0, and its interval refers to the regularised weight at this C, not to an unregularised
    weight.

    Parameters
    ----------
    model : estimator
        RankSVM, fitted or not; a fitted RankSVMCV, whose chosen C is used; or a fitted Pipeline that ends with one. It
        is not changed.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features in the form expected by the model.
    y : array-like of shape (n_samples,)
        Labels.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them.
    group : array-like of int, shape (n_queries,), optional
        Instead of ``qid``: sizes of consecutive queries.
    sample_weight, query_weight : array-like of shape (n_samples,), optional
        Weights, as in `RankSVM.fit`.
    n_resamples : int, default 200
        Number of refits; 1000 and more for intervals to two digits.
    level : float, default 0.95
        Confidence level of the intervals.
    tol : float, default 1e-8
        Relative duality gap of every fit, smaller than for a model: the solver's error must be small relative to the
        standard errors (`BootstrapWeights.solver_error`).
    random_state : int, numpy.random.RandomState or None, default None
        Seed of the draws. The same seed gives the same numbers, bit for bit, for any ``n_jobs``.
    n_jobs : int or None, default None
        Number of refits at a time, each on one thread; None or -1: the number of processors. In addition to X, each
        uses the memory of a fit. A model whose ``device`` is a GPU is fitted there, one refit after another.
    feature_names : array-like of str, shape (n_features,), optional
        Names of the columns of X; None: those of X, if it is a DataFrame.
    **fit_params : optional
        Further arguments of the ranker's ``fit``.

    Returns
    -------
    BootstrapWeights
        Weights, standard errors, intervals, and how often the signs agree.

    Raises
    ------
    OptionError
        When the model is of another kind, or an option has an invalid value.
    DataError
        When the data cannot be used, or there are fewer than two queries.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.analysis import bootstrap_weights
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> found = bootstrap_weights(RankSVM(C=0.01), data.X, data.y, data.qid, n_resamples=50, random_state=0)
    >>> low, high = found.interval()
    >>> bool(((low <= found.coef) & (found.coef <= high)).all())
    True
    """
    _options.check(n_resamples=_options.count(n_resamples), tol=_options.positive(tol))
    level = checked_level(level)
    n_threads = effective_n_jobs(n_jobs)
    ranker, X, qid, names = ranker_input(model, X, qid, feature_names)
    full = _on_one_thread(ranker, tol)
    X, qid, _ = frames.split_qid(X, qid)
    queries = validation.queries(qid, group, X.shape[0] if hasattr(X, "shape") else len(X))
    if queries.n_queries < 2:
        raise DataError("all rows belong to one query, but intervals need several queries: give qid.")
    query = queries.numbers()
    weight = 1.0 if query_weight is None else np.asarray(host_values(query_weight), dtype=np.float64)

    # Held throughout: limits set and reset by several threads would be restored in the wrong order.
    with one_blas_thread():
        full.fit(X, y, qid=query, sample_weight=sample_weight, query_weight=query_weight, **fit_params)
        names = getattr(full, "feature_names_in_", None) if names is None else np.asarray(names)
        X = validation.features(full, X, n_threads=n_threads)  # converted once, not by every refit

        def refit(seed: int) -> tuple[np.ndarray, float]:
            drawn = np.random.default_rng(seed).integers(queries.n_queries, size=queries.n_queries)
            times = np.bincount(drawn, minlength=queries.n_queries)
            part = copy.copy(full)
            try:
                part.fit(X, y, qid=query, sample_weight=sample_weight, query_weight=weight * times[query], **fit_params)
            except NoComparablePairsError:
                # the sample has no pairs: 0 minimises the remaining objective 1/2 |w|^2
                return np.zeros_like(full.coef_), 0.0
            return part.coef_, part.duality_gap_

        seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_resamples)
        # a device does one fit after another
        at_a_time = n_threads if full.device_ == "cpu" else 1
        coefs, gaps = zip(*parallel_map(refit, seeds.tolist(), at_a_time), strict=True)
    error = float(np.sqrt(2.0 * max(full.duality_gap_, *gaps)))
    return BootstrapWeights(full.coef_, np.array(coefs), level, error, names)


def _on_one_thread(ranker: Any, tol: float) -> RankSVM:
    """An unfitted RankSVM with the parameters of a ranker, which starts from the ranker's fitted weights."""
    if not isinstance(ranker, RankSVM | RankSVMCV):
        raise OptionError(f"bootstrap_weights needs a RankSVM or RankSVMCV, got {ranker!r}.")
    if isinstance(ranker, RankSVMCV):
        check_is_fitted(ranker, "C_")
        unfitted = ranker._ranker().set_params(C=ranker.C_)
    else:
        unfitted = clone(ranker)
    # One thread for every fit, including the first, so that sums and results do not depend on n_jobs.
    return unfitted.set_params(tol=tol, n_jobs=1, warm_start=True, keep_on_interrupt=False, verbose=0)
