"""Metrics of rankings as functions of the relevance of their documents, with their derivatives."""

from typing import NamedTuple

import numpy as np

__all__ = ["MEAN_RANK", "RankingValue", "discounts", "ranking_value"]

MEAN_RANK = "mean_relevant_rank"


class RankingValue(NamedTuple):
    """A metric of each query, and its derivative by the relevance of each row."""

    value: np.ndarray
    slope: np.ndarray


def discounts(kind: str, cutoff: int | None, rank: np.ndarray) -> np.ndarray:
    """What a relevant document at a rank adds to a metric that is a sum over documents."""
    if kind == MEAN_RANK:
        return rank.astype(np.float64)
    value = 1.0 / np.log2(1.0 + rank)
    return value if cutoff is None else np.where(rank <= cutoff, value, 0.0)


def ranking_value(
    kind: str, cutoff: int | None, rank: np.ndarray, relevance: np.ndarray, query: np.ndarray, n_queries: int
) -> RankingValue:
    """Value of the ranking of each query: DCG, the sum of the ranks of relevant documents, or MRR."""
    if kind == "mrr":
        return _reciprocal_rank(cutoff, rank, relevance, query, n_queries)
    slope = discounts(kind, cutoff, rank)
    return RankingValue(np.bincount(query, slope * relevance, n_queries), slope)


def _reciprocal_rank(
    cutoff: int | None, rank: np.ndarray, relevance: np.ndarray, query: np.ndarray, n_queries: int
) -> RankingValue:
    """Expected 1 / rank of the first relevant document, if documents are relevant independently of each other.

    Let V_g be the value of a user who goes on at rank g: ``V_g = r_g / g + (1 - r_g) V_(g + 1)``. The metric is V_1,
    and its derivative by r_g is ``(1 / g - V_(g + 1))`` times the probability of going on to g.
    """
    order = np.argsort(rank, kind="stable")
    borders = np.searchsorted(rank[order], np.arange(1, int(rank.max(initial=0)) + 2))
    depth = len(borders) - 1 if cutoff is None else min(cutoff, len(borders) - 1)
    value, reached = np.zeros(n_queries), np.ones(n_queries)
    below, slope = np.zeros(len(rank)), np.zeros(len(rank))
    ranks = [(g, order[borders[g - 1] : borders[g]]) for g in range(1, depth + 1)]
    for g, rows in reversed(ranks):
        below[rows] = value[query[rows]]
        value[query[rows]] = relevance[rows] / g + (1.0 - relevance[rows]) * below[rows]
    for g, rows in ranks:
        slope[rows] = reached[query[rows]] * (1.0 / g - below[rows])
        reached[query[rows]] *= 1.0 - relevance[rows]
    return RankingValue(value, slope)
