"""Trust bias: the click rate at a rank as an affine function of the click rate of the same document at rank 1."""

import numpy as np

from ranksvm.clicks.counts import ClickCounts, groups_of

__all__ = ["affine", "moments"]

_MOST_GROUPS = 1_000


def moments(counts: ClickCounts) -> np.ndarray:
    """Sums over documents shown at rank 1 (twice at least) and at rank k, by group of queries: (n_groups, n_ranks, 5).

    With x and y the click rates of a document at rank 1 and at k, and weight ``w = n_1 n_k / (n_1 + n_k)``: the sums of
    w, w x, w y, w x^2 and w x y. ``c (c - 1) / (n (n - 1))`` is an unbiased estimate of x^2.
    """
    item = counts.item
    group, n_groups = groups_of(counts.query, _MOST_GROUPS)
    first = np.flatnonzero((counts.rank == 0) & (counts.shown >= 2))
    place = np.full(int(item[-1]) + 1, -1)
    place[item[first]] = first
    other = np.flatnonzero((counts.rank > 0) & (place[item] >= 0))
    one = place[item[other]]
    n, c, m, d = counts.shown[one], counts.clicks[one], counts.shown[other], counts.clicks[other]
    w, x, y = n * m / (n + m), c / n, d / m
    square = c * (c - 1.0) / (n * (n - 1.0))
    index, size = group[one] * counts.n_ranks + counts.rank[other], n_groups * counts.n_ranks
    sums = [np.bincount(index, w * value, size) for value in (np.ones(len(w)), x, y, square, x * y)]
    return np.stack(sums, axis=-1).reshape(n_groups, counts.n_ranks, 5)


def affine(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset of each rank from `moments`: 1 and 0 for rank 1; NaN where they are not identified."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y, square, product = (sums[..., place] / sums[..., 0] for place in range(1, 5))
        variance = square - x * x
        slope = np.where(variance > 0, (product - x * y) / variance, np.nan)
        offset = y - slope * x
    slope[..., 0], offset[..., 0] = 1.0, 0.0
    return slope, offset
