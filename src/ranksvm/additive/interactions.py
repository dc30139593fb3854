"""Which interactions to add: bounds on what each pair of features could still gain."""

import numpy as np

import ranksvm._compiled.coded as coded
from ranksvm._util.threads import parallel_map
from ranksvm.additive.bins import FeatureBins
from ranksvm.additive.columns import Pair, new_levels, variable_support
from ranksvm.additive.design import AdditiveTerms

__all__ = ["all_pairs", "chosen_pairs", "coarse_pairs", "interaction_bounds", "pair_signs"]


def all_pairs(n_features: int) -> np.ndarray:
    """All pairs (a, b) of features with a < b.

    Parameters
    ----------
    n_features : int
        Number of features.

    Returns
    -------
    ndarray of int64, shape (n_features * (n_features - 1) / 2, 2)
        The pairs, in the order of a, then b.
    """
    return np.column_stack(np.triu_indices(n_features, 1)).astype(np.int64)


def coarse_pairs(terms: AdditiveTerms, pairs: np.ndarray, n_levels: int) -> list[Pair]:
    """Pairs of features with levels of their own, fewer than those of single features.

    Parameters
    ----------
    terms : AdditiveTerms
        The variables.
    pairs : ndarray of int64, shape (n_pairs, 2)
        Numbers of the features.
    n_levels : int
        Maximum number of levels of a feature.

    Returns
    -------
    list of Pair
        The pairs.
    """
    found = {
        j: terms.bins[j].coarser(terms.shares[j], n_levels) for j in sorted(set(np.asarray(pairs).ravel().tolist()))
    }
    return [Pair(int(a), int(b), found[int(a)], found[int(b)]) for a, b in pairs]


def interaction_bounds(
    terms: AdditiveTerms,
    codes: np.ndarray,
    derivative: np.ndarray,
    n_levels: int,
    signs: np.ndarray | None = None,
    n_threads: int = 1,
) -> np.ndarray:
    """Upper bounds on what a function of each pair of features could lower the objective by.

    The objective is 1-strongly convex in the weights of each new function, which are 0 now: with the gradient g by
    them, it decreases by at most ``1/2 |g|^2``, and with all pairs at once by at most the sum of the bounds. A gradient
    is a histogram of ``derivative`` over the cells of two features, with sums from the end in both directions.

    Parameters
    ----------
    terms : AdditiveTerms
        The variables of single features.
    codes : ndarray of uint8, shape (n_rows, n_features)
        The level of each value.
    derivative : ndarray of float64, shape (n_rows,)
        Derivative of the objective by the score of each row.
    n_levels : int
        Maximum number of levels of a feature in a function of two.
    signs : ndarray of int64, shape (n_features,), optional
        Features in which the score must increase (1) or decrease (-1).
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of float64, shape (n_features * (n_features - 1) / 2,)
        The bounds, in the order of `all_pairs`.

    Notes
    -----
    With signs the weights of a function are restricted to a cone, and only the part of the gradient that points into it
    counts; a bound is 0 where the signs of both features exclude a function of both.
    """
    n = terms.n_features
    pairs = all_pairs(n)
    if not len(pairs):
        return np.empty(0)
    single = np.column_stack([np.arange(n), np.arange(n)])
    bins = [pair.first_bins for pair in coarse_pairs(terms, single, n_levels)]
    used = np.flatnonzero(derivative)
    coarse = np.empty((n, len(used)), dtype=np.uint8)
    maps = np.zeros((n, n_levels, n_levels))
    for j in range(n):
        coarse[j] = new_levels(terms.bins[j], bins[j])[codes[used, j]]
        scales = terms.pair_scales(Pair(j, j, bins[j], bins[j]), 0)
        maps[j, : bins[j].n_levels - 1, : bins[j].n_levels] = scales[:, None] * variable_support(bins[j])
    u = np.ascontiguousarray(derivative[used])
    firsts = np.repeat(np.arange(n), n - 1 - np.arange(n))
    bounds = np.empty(len(pairs))

    def bound(a: int) -> None:
        if a == n - 1:
            return
        sums = np.zeros((n - 1 - a, n_levels, n_levels))
        coded.cell_sums(coarse, u, n_levels, a, a + 1, sums)
        gradient = maps[a] @ sums @ maps[a + 1 :].transpose(0, 2, 1)
        if signs is not None:
            for b in range(a + 1, n):
                allowed = pair_signs(bins[a], bins[b], int(signs[a]), int(signs[b]))
                gradient[b - a - 1] = _into_the_cone(gradient[b - a - 1], allowed)
        bounds[firsts == a] = 0.5 * np.einsum("kij,kij->k", gradient, gradient)

    parallel_map(bound, range(n), n_threads)
    return bounds


def pair_signs(first_bins: FeatureBins, second_bins: FeatureBins, first: int, second: int) -> np.ndarray | None:
    """The sign of each weight of a function of two features, so that the score is monotone in them.

    A weight is an increment by a level of one feature at a level of the other: if the score must increase in a
    feature, no increment by its levels may be negative. That is sufficient. Opposite signs of both features leave no
    function.

    Parameters
    ----------
    first_bins, second_bins : FeatureBins
        The levels of both features.
    first, second : int
        1, -1 or 0 for any.

    Returns
    -------
    ndarray of int64, shape (first_bins.n_levels - 1, second_bins.n_levels - 1), or None
        The signs; None if there is no such function.
    """
    if first * second < 0 and first_bins.n_steps and second_bins.n_steps:
        return None
    rows = np.where(np.arange(first_bins.n_levels - 1) < first_bins.n_steps, first, 0)[:, None]
    columns = np.where(np.arange(second_bins.n_levels - 1) < second_bins.n_steps, second, 0)[None, :]
    return np.where(rows != 0, rows, columns).astype(np.int64)


def chosen_pairs(bounds: np.ndarray, count: int, n_features: int) -> np.ndarray:
    """The pairs of features with the largest bounds.

    Parameters
    ----------
    bounds : ndarray of float64, shape (n_features * (n_features - 1) / 2,)
        The bounds, in the order of `all_pairs`.
    count : int
        Number of pairs.
    n_features : int
        Number of features.

    Returns
    -------
    ndarray of int64, shape (min(count, number of positive bounds), 2)
        The pairs, the largest bound first.
    """
    order = np.argsort(-bounds, kind="stable")[:count]
    return all_pairs(n_features)[order[bounds[order] > 0.0]]


def _into_the_cone(gradient: np.ndarray, signs: np.ndarray | None) -> np.ndarray:
    """The part of a gradient that weights of the given signs, which are 0 now, can follow."""
    found = np.zeros_like(gradient)
    if signs is not None:
        rows, columns = signs.shape
        part = gradient[:rows, :columns]
        found[:rows, :columns] = np.where(signs * part <= 0.0, part, 0.0)
    return found
