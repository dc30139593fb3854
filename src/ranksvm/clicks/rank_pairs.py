"""Relative propensities from documents that were shown at several ranks: pairs of ranks, and a Bradley-Terry model."""

import numpy as np

from ranksvm.clicks.counts import ClickCounts, groups_of

__all__ = ["FEW_CLICKS", "against", "comparable", "connected", "fitted", "fitted_power", "harvested", "swapped"]

# If a rank has fewer comparable clicks than this, the error of its propensity exceeds about 10 %. (This was measured on
# 10 logs of 10^5 clicks on whole rankings of MQ2008, OHSUMED and MQ2007-partial. With estimated instead of known
# propensities, the mean pairwise accuracy was lower by .03 to .09 if such ranks were used, with C chosen for each log.
# Without these ranks, with the same C, it was lower by less than .002. See benchmarks/clicks_folds.py.)
FEW_CLICKS = 100

# Maximum size of a table of groups and pairs of ranks: 64 MB.
_NUMBERS = 8_000_000
_MAX_GROUPS = 1_000
_STEPS = 50


def harvested(counts: ClickCounts) -> np.ndarray:
    """Clicks of each rank against each other rank, by group of queries: shape (n_groups, n_ranks, n_ranks).

    A document that was shown n_k and n_l times at the ranks k and l, and clicked on c_k and c_l times, adds
    ``c_k n_l / (n_k + n_l)`` to [k, l] and ``c_l n_k / (n_k + n_l)`` to [l, k]. Given the numbers of impressions, the
    expectations of these two terms are p_k and p_l times the same number.
    """
    n_ranks = counts.n_ranks
    group, n_groups = groups_of(counts.query, min(_MAX_GROUPS, max(20, _NUMBERS // n_ranks**2)))
    item, size = counts.item, n_ranks * n_ranks
    found = np.zeros(n_groups * size)
    for offset in range(1, n_ranks):
        one = np.flatnonzero(item[offset:] == item[:-offset])
        if len(one) == 0:
            break
        other = one + offset
        shown_one, shown_other = counts.shown[one], counts.shown[other]
        total = shown_one + shown_other
        start, k, l = group[one] * size, counts.rank[one], counts.rank[other]
        found += np.bincount(start + k * n_ranks + l, counts.clicks[one] * shown_other / total, len(found))
        found += np.bincount(start + l * n_ranks + k, counts.clicks[other] * shown_one / total, len(found))
    return found.reshape(n_groups, n_ranks, n_ranks)


def swapped(counts: ClickCounts) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks by group of queries, rank before randomization and rank shown."""
    n_base = int(counts.base_rank.max()) + 1
    size = n_base * counts.n_ranks
    group, n_groups = groups_of(counts.query, min(_MAX_GROUPS, max(20, _NUMBERS // size)))
    place = group * size + counts.base_rank * counts.n_ranks + counts.rank
    shape = n_groups, n_base, counts.n_ranks
    shown, clicks = (np.bincount(place, values, n_groups * size) for values in (counts.shown, counts.clicks))
    return shown.reshape(shape), clicks.reshape(shape)


def against(shown: np.ndarray, clicks: np.ndarray) -> np.ndarray:
    """The table of `harvested` from impressions and clicks by stratum and rank, the last two axes."""
    n_ranks = shown.shape[-1]
    found = np.zeros((*shown.shape[:-2], n_ranks, n_ranks))
    for stratum in range(shown.shape[-2]):
        n, c = shown[..., stratum, :], clicks[..., stratum, :]
        total = n[..., :, None] + n[..., None, :]
        found += c[..., :, None] * n[..., None, :] / np.where(total > 0, total, 1.0)
    found[..., np.arange(n_ranks), np.arange(n_ranks)] = 0.0
    return found


def comparable(wins: np.ndarray) -> np.ndarray:
    """Clicks at each rank that can be compared with clicks at other ranks, and so determine its propensity."""
    return wins.sum(axis=1)


def connected(wins: np.ndarray) -> np.ndarray:
    """Whether each rank can be compared with rank 1: edges (k, l) with ``wins[k, l] > 0`` lead to rank 1 and back."""
    from scipy.sparse.csgraph import connected_components

    return _same_as_first(connected_components(wins > 0, directed=True, connection="strong")[1])


def _same_as_first(component: np.ndarray) -> np.ndarray:
    return component == component[0]


def fitted(wins: np.ndarray) -> np.ndarray:
    """Maximum-likelihood propensities relative to rank 1, from the clicks of pairs of ranks, shape (..., n_ranks).

    ``sum over k, l of wins[k, l] log(p_k / (p_k + p_l))`` is concave in log p. Newton's method maximizes it, for
    all tables at once.
    """
    n_ranks = wins.shape[-1]
    log_p = np.zeros(wins.shape[:-1])
    both = wins + np.swapaxes(wins, -1, -2)
    for _ in range(_STEPS):
        share = 1.0 / (1.0 + np.exp(log_p[..., None, :] - log_p[..., :, None]))
        gradient = (wins - both * share).sum(axis=-1)[..., 1:]
        weight = both * share * (1.0 - share)
        hessian = -weight
        hessian[..., np.arange(n_ranks), np.arange(n_ranks)] += weight.sum(axis=-1)
        # the tiny addition makes the matrix regular even if some rank has no clicks
        reduced = hessian[..., 1:, 1:] + 1e-10 * np.eye(n_ranks - 1)
        step = np.linalg.solve(reduced, gradient[..., None])[..., 0]
        log_p[..., 1:] += np.clip(step, -1.0, 1.0)
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return np.exp(log_p)


def fitted_power(wins: np.ndarray) -> np.ndarray:
    """Maximum-likelihood exponents eta of ``p_k = k ** -eta`` from the clicks of pairs of ranks, shape (...).

    The likelihood of `fitted` as a function of eta is concave. Newton's method maximizes it, for all tables at once.
    """
    log_rank = np.log(np.arange(1.0, wins.shape[-1] + 1.0))
    distance = log_rank[None, :] - log_rank[:, None]  # log p_k - log p_l = eta * distance[k, l]
    both = wins + np.swapaxes(wins, -1, -2)
    eta = np.ones(wins.shape[:-2])
    for _ in range(_STEPS):
        share = 1.0 / (1.0 + np.exp(-eta[..., None, None] * distance))
        gradient = ((wins - both * share) * distance).sum(axis=(-1, -2))
        curvature = (both * share * (1.0 - share) * distance**2).sum(axis=(-1, -2))
        step = np.clip(gradient / np.maximum(curvature, 1e-300), -1.0, 1.0)
        eta = eta + step
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return eta
