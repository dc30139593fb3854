"""The published algorithms of low-rank RankSVM with listed pairs, in NumPy, for comparison with ours.

Xu et al., IEEE TKDE 2019, with corrected signs for the dual (4): both algorithms descend, with ``- sum of alpha``.
"""

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ranksvm.datasets.ranking_data import RankingData

__all__ = ["Block", "Factors", "Query", "algorithm_2", "blocks_of", "listed"]


class Query(NamedTuple):
    """A query: its rows, their features in float64, the documents of every pair, and a matrix that marks the pairs."""

    rows: np.ndarray
    X: np.ndarray
    preferred: np.ndarray
    other: np.ndarray
    mask: np.ndarray


def listed(data: RankingData) -> list[Query]:
    """The queries that have pairs, with their pairs."""
    queries = []
    for _, rows in data.queries:
        mask = data.y[rows][:, None] > data.y[rows][None, :]
        if mask.any():
            preferred, other = np.nonzero(mask)
            queries.append(Query(rows, data.X[rows].astype(np.float64), preferred, other, mask))
    return queries


# -- Algorithm 1 -------------------------------------------------------------------------------------------------------


class Factors:
    """V and beta of the factorized dual; its methods run epochs of projected gradient descent, query by query."""

    def __init__(self, queries: list[Query], V: np.ndarray, C: float):
        self.queries, self.V, self.upper = queries, V.copy(), np.sqrt(C / V.shape[1])
        self.beta = np.zeros(queries[0].X.shape[1])
        for query in queries:
            of_query = V[query.rows]
            self._add(query, (of_query[query.preferred] * of_query[query.other]).sum(axis=1))

    def _in(self, order: Iterable[int] | None) -> Iterable[Query]:
        return self.queries if order is None else [self.queries[number] for number in order]

    def _add(self, query: Query, alpha: np.ndarray) -> None:
        size = len(query.rows)
        coefficients = np.bincount(query.preferred, alpha, size) - np.bincount(query.other, alpha, size)
        self.beta += query.X.T @ coefficients

    def epoch_of_pairs(self, step: float, order: Iterable[int] | None = None) -> None:
        """One pass over the listed pairs. It sums with bincount, because np.add.at takes twice as long."""
        for query in self._in(order):
            rows, X, i, j, _ = query
            old, scores = self.V[rows], X @ self.beta
            slope = scores[i] - scores[j] - 1.0
            gradient = np.empty_like(old)
            for k, column in enumerate(old.T):
                gradient[:, k] = np.bincount(i, slope * column[j], len(rows))
                gradient[:, k] += np.bincount(j, slope * column[i], len(rows))
            new = np.clip(old - step * gradient, 0.0, self.upper)
            self._add(query, (new[i] * new[j] - old[i] * old[j]).sum(axis=1))
            self.V[rows] = new

    def epoch_of_blocks(self, step: float, order: Iterable[int] | None = None) -> None:
        """The same pass, with the pairs of a query as a matrix of documents by documents."""
        for rows, X, _, _, mask in self._in(order):
            old, scores = self.V[rows], X @ self.beta
            slope = mask * (scores[:, None] - scores[None, :] - 1.0)
            new = np.clip(old - step * (slope @ old + slope.T @ old), 0.0, self.upper)
            change = mask * (new @ new.T - old @ old.T)
            self.beta += X.T @ (change.sum(axis=1) - change.sum(axis=0))
            self.V[rows] = new

    def objective(self) -> float:
        """Half the squared norm of beta minus the sum of alpha."""
        alpha = sum(
            float(np.sum(self.V[query.rows][query.preferred] * self.V[query.rows][query.other]))
            for query in self.queries
        )
        return 0.5 * float(self.beta @ self.beta) - alpha


# -- Algorithm 2 -------------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """The block of a query: features of its preferred and its other documents, and a matrix that marks the pairs."""

    preferred: np.ndarray
    other: np.ndarray
    pairs: np.ndarray


def blocks_of(queries: list[Query]) -> list[Block]:
    """The block of each query."""
    blocks = []
    for query in queries:
        upper, i = np.unique(query.preferred, return_inverse=True)
        lower, j = np.unique(query.other, return_inverse=True)
        pairs = np.zeros((len(upper), len(lower)))
        pairs[i, j] = 1.0
        blocks.append(Block(query.X[upper], query.X[lower], pairs))
    return blocks


def _largest_eigenvalue(blocks: list[Block]) -> float:
    """The largest eigenvalue of the quadratic part of the dual, from a smaller matrix with the same nonzero ones."""
    size = blocks[0].preferred.shape[1]
    gram = np.zeros((size, size))
    for upper, lower, pairs in blocks:
        cross = upper.T @ pairs @ lower
        gram += (upper.T * pairs.sum(axis=1)) @ upper + (lower.T * pairs.sum(axis=0)) @ lower - cross - cross.T
    return float(np.linalg.eigvalsh(gram)[-1])


def algorithm_2(
    blocks: list[Block], C: float, gamma: float, lam: float, step: float | None = None
) -> Iterator[tuple[float, float, np.ndarray]]:
    """Seconds, objective (15) and weights after every round: a projected gradient step on alpha, thresholds for A.

    By default, the step is 1 over the Lipschitz constant of the gradient, the longest fixed step that is safe. A is
    thresholded after the step, so that each objective is the lowest for its alpha. The seconds do not include the
    computation of the objective.
    """
    if step is None:
        step = 1.0 / (_largest_eigenvalue(blocks) + 2.0 * lam)
    alpha = [np.zeros_like(block.pairs) for block in blocks]
    low_rank = [np.zeros_like(block.pairs) for block in blocks]
    beta = np.zeros(blocks[0].preferred.shape[1])
    taken = 0.0
    while True:
        started = time.perf_counter()
        nuclear, new_beta = 0.0, np.zeros_like(beta)
        for number, (upper, lower, pairs) in enumerate(blocks):
            slope = (upper @ beta)[:, None] - (lower @ beta)[None, :] - 1.0
            slope += 2.0 * lam * (alpha[number] - low_rank[number])
            alpha[number] = pairs * np.clip(alpha[number] - step * slope, 0.0, C)
            new_beta += upper.T @ alpha[number].sum(axis=1) - lower.T @ alpha[number].sum(axis=0)
            left, values, right = np.linalg.svd(alpha[number], full_matrices=False)
            values = np.maximum(0.0, values - 0.5 * gamma / lam)
            low_rank[number] = (left * values) @ right
            nuclear += float(values.sum())
        beta = new_beta
        taken += time.perf_counter() - started
        apart = sum(float(np.sum((a - low) ** 2)) for a, low in zip(alpha, low_rank, strict=True))
        linear = sum(float(a.sum()) for a in alpha)
        yield taken, 0.5 * float(beta @ beta) - linear + lam * apart + gamma * nuclear, beta
