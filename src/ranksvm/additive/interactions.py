"""Which interactions to add: bounds on how much a function of each pair of features could lower the objective."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

import ranksvm._compiled.coded as coded
from ranksvm._util.threads import parallel_map
from ranksvm.additive.bins import FeatureBins
from ranksvm.additive.columns import Pair, new_levels, variable_support

if TYPE_CHECKING:
    from ranksvm.additive.design import AdditiveTerms

__all__ = [
    "all_pairs",
    "bounds_of_sums",
    "chosen_pairs",
    "coarse_pairs",
    "interaction_bounds",
    "pair_signs",
    "pair_sums",
]


# Number of rows whose coarser levels are in memory at a time, and bytes of the sums over cells in memory at a time.
ROWS = 1 << 15
SUMS_BYTES = 64 << 20


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


def coarse_pairs(terms: "AdditiveTerms", pairs: np.ndarray, n_levels: int) -> list[Pair]:
    """Pairs of features, with the levels of each feature merged into at most ``n_levels``.

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
    terms: "AdditiveTerms",
    codes: np.ndarray,
    derivative: np.ndarray,
    n_levels: int,
    signs: np.ndarray | None = None,
    n_threads: int = 1,
) -> np.ndarray:
    """Upper bounds on how much a function of each pair of features could lower the objective.

    The objective is 1-strongly convex in the weights of each new function, which are 0 now. If g is the gradient
    with respect to these weights, the objective decreases by at most ``1/2 |g|^2``; with all pairs at once, by at most
    the sum of the bounds. A gradient is a histogram of ``derivative`` over the cells (pairs of levels) of two
    features, cumulated from the end in both directions.

    Parameters
    ----------
    terms : AdditiveTerms
        The variables of single features.
    codes : ndarray of uint8, shape (n_rows, n_features)
        The level of each value.
    derivative : ndarray of float64, shape (n_rows,)
        Derivative of the objective with respect to the score of each row.
    n_levels : int
        Maximum number of levels of a feature in a function of two features.
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
    counts; a bound is 0 if the signs of both features exclude a function of both.
    """
    to_bounds, found = _Gradients(terms, n_levels, signs), [np.empty(0)]
    step = max(1, SUMS_BYTES // (8 * n_levels**2 * max(1, terms.n_features)))
    for first in range(0, terms.n_features - 1, step):
        firsts = range(first, min(first + step, terms.n_features - 1))
        sums = _sums(terms, codes, derivative, n_levels, firsts, n_threads)
        found += [to_bounds(a, own) for a, own in zip(firsts, sums, strict=True)]
    return np.concatenate(found)


def pair_sums(terms: "AdditiveTerms", codes: np.ndarray, derivative: np.ndarray, n_levels: int) -> np.ndarray:
    """The sums over rows from which `interaction_bounds` computes bounds; sums over parts of the rows can be added.

    Parameters
    ----------
    terms, codes, derivative, n_levels
        As in `interaction_bounds`.

    Returns
    -------
    ndarray of float64, shape (n_features * (n_features - 1) / 2, n_levels, n_levels)
        The sum of the derivative over the rows of each cell of every two features, in the order of `all_pairs`.
    """
    found = _sums(terms, codes, derivative, n_levels, range(terms.n_features - 1), 1)
    return np.concatenate([np.empty((0, n_levels, n_levels)), *found])


def bounds_of_sums(
    terms: "AdditiveTerms", sums: np.ndarray, n_levels: int, signs: np.ndarray | None = None
) -> np.ndarray:
    """The bounds of `interaction_bounds`, from sums over all rows.

    Parameters
    ----------
    terms, n_levels, signs
        As in `interaction_bounds`.
    sums : ndarray of float64, shape (n_features * (n_features - 1) / 2, n_levels, n_levels)
        The total of `pair_sums`.

    Returns
    -------
    ndarray of float64, shape (n_features * (n_features - 1) / 2,)
        The bounds.
    """
    n = terms.n_features
    to_bounds, ends = _Gradients(terms, n_levels, signs), np.cumsum(np.arange(n - 1, 0, -1))
    parts: Iterable[np.ndarray] = np.split(sums, ends[:-1]) if n > 1 else []
    return np.concatenate([np.empty(0), *(to_bounds(a, part) for a, part in enumerate(parts))])


class _Gradients:
    """Converts sums over cells to gradients for the weights of a function of two features, and gradients to bounds."""

    def __init__(self, terms: "AdditiveTerms", n_levels: int, signs: np.ndarray | None):
        n = terms.n_features
        self._bins, self._signs = _single_bins(terms, n_levels), signs
        self._maps = np.zeros((n, n_levels, n_levels))
        for j, bins in enumerate(self._bins):
            scales = terms.pair_scales(Pair(j, j, bins, bins), 0)
            self._maps[j, : bins.n_levels - 1, : bins.n_levels] = scales[:, None] * variable_support(bins)

    def __call__(self, a: int, sums: np.ndarray) -> np.ndarray:
        """The bounds of the pairs of feature ``a`` with each feature after it."""
        gradient = self._maps[a] @ sums @ self._maps[a + 1 :].transpose(0, 2, 1)
        if self._signs is not None:
            for b in range(a + 1, len(self._bins)):
                allowed = pair_signs(self._bins[a], self._bins[b], int(self._signs[a]), int(self._signs[b]))
                gradient[b - a - 1] = _into_the_cone(gradient[b - a - 1], allowed)
        return 0.5 * np.einsum("kij,kij->k", gradient, gradient)


def _single_bins(terms: "AdditiveTerms", n_levels: int) -> list[FeatureBins]:
    """The coarser levels of each feature."""
    single = np.arange(terms.n_features)
    return [pair.first_bins for pair in coarse_pairs(terms, np.column_stack([single, single]), n_levels)]


def _sums(
    terms: "AdditiveTerms", codes: np.ndarray, derivative: np.ndarray, n_levels: int, firsts: range, n_threads: int
) -> list[np.ndarray]:
    """The sums of a derivative over the cells of pairs: each feature in ``firsts`` with each feature after it."""
    new = [new_levels(own, bins) for own, bins in zip(terms.bins, _single_bins(terms, n_levels), strict=True)]
    sums = [np.zeros((terms.n_features - 1 - a, n_levels, n_levels)) for a in firsts]
    used = np.flatnonzero(derivative)
    for start in range(0, len(used), ROWS):
        rows = used[start : start + ROWS]
        u, own = derivative[rows], codes[rows]
        # one row of the array per feature, so that memory is read sequentially
        coarse = np.array([levels[own[:, j]] for j, levels in enumerate(new)])

        def add(a: int, coarse: np.ndarray = coarse, u: np.ndarray = u) -> None:
            coded.cell_sums(coarse, u, n_levels, a, a + 1, sums[a - firsts.start])

        parallel_map(add, firsts, n_threads)
    return sums


def pair_signs(first_bins: FeatureBins, second_bins: FeatureBins, first: int, second: int) -> np.ndarray | None:
    """The sign of each weight of a function of two features, so that the score is monotone in them.

    If the score must increase in a feature, it suffices that no weight of a step of this feature is negative; if the
    score must decrease, it suffices that none is positive. If the signs of the two features are opposite, there is no
    such function.

    Parameters
    ----------
    first_bins, second_bins : FeatureBins
        The levels of both features.
    first, second : int
        Sign of each feature: 1, -1, or 0 for any.

    Returns
    -------
    ndarray of int64, shape (first_bins.n_levels - 1, second_bins.n_levels - 1), or None
        The signs; None if there is no such function.
    """
    if first * second < 0:
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
