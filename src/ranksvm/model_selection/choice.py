"""Choosing one of several models, from the most to the least regularized, by their scores on test data."""

import numpy as np

__all__ = ["RULES", "choose", "mean_and_standard_error", "standard_error_over_queries"]

RULES = ("best", "one_standard_error")


def mean_and_standard_error(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the n folds, and its standard error: the standard deviation (with n - 1) divided by sqrt(n).

    Parameters
    ----------
    scores : ndarray of float64, shape (n_models, n_folds)
        A metric's mean over the queries of each test part; folds with NaN, where it is undefined, are ignored.

    Returns
    -------
    means : ndarray of float64, shape (n_models,)
        The means; NaN without a value.
    errors : ndarray of float64, shape (n_models,)
        The standard errors; NaN with fewer than two values.
    """
    has_value = ~np.isnan(scores)
    n = has_value.sum(axis=1)
    values = np.where(has_value, scores, 0.0)
    means = np.divide(values.sum(axis=1), n, out=np.full(len(scores), np.nan), where=n > 0)
    squares = np.where(has_value, np.square(scores - means[:, np.newaxis]), 0.0).sum(axis=1)
    variances = np.divide(squares, n * (n - 1.0), out=np.full(len(scores), np.nan), where=n > 1)
    return means, np.sqrt(variances)


def standard_error_over_queries(values: np.ndarray, weights: np.ndarray) -> float:
    """Standard error of the mean of a metric over queries: sqrt(n / (n - 1) * sum w^2 (v - mean)^2) / sum w.

    With equal weights this is the standard deviation divided by the square root of n, the number of queries of positive
    weight. With other weights (of rows, or of a metric whose mean is over pairs) it is the square root of the
    linearized variance of a ratio, with queries as clusters (Cochran, Sampling Techniques, 3rd ed. 1977, section 6.4).

    Parameters
    ----------
    values : ndarray of float64, shape (n_queries,)
        The metric for each query; NaN where it is undefined.
    weights : ndarray of float64, shape (n_queries,)
        Weight of each query in the mean.

    Returns
    -------
    float
        The standard error; NaN with fewer than two values.
    """
    counts = (weights > 0) & ~np.isnan(values)
    n = int(counts.sum())
    if n < 2:
        return float("nan")
    values, weights = values[counts], weights[counts] / weights[counts].sum()
    return float(np.sqrt(n / (n - 1) * np.square(weights * (values - weights @ values)).sum()))


def choose(means: np.ndarray, errors: np.ndarray, rule: str) -> int:
    """Choose one of several models, ordered from the most to the least regularized.

    Parameters
    ----------
    means : ndarray of float64, shape (n_models,)
        Mean score of each model, NaN if it has no score. At least one is not NaN.
    errors : ndarray of float64, shape (n_models,)
        Standard errors of the means.
    rule : {"best", "one_standard_error"}
        The first model with the highest mean, or the first whose mean is at least the highest minus its standard error
        (0 if undefined).

    Returns
    -------
    int
        Number of the model.
    """
    best = int(np.nanargmax(means))
    if rule == "best":
        return best
    with np.errstate(invalid="ignore"):
        return int(np.flatnonzero(means >= means[best] - np.nan_to_num(errors[best]))[0])
