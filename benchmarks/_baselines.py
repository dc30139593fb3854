"""Short NumPy implementations of classical learning-to-rank methods, whose quality is compared with RankSVM's.

Each method yields a scoring function after every round or epoch, so that validation data can choose among them.
"""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from ranksvm import RankingData, metrics

Scorer = Callable[[np.ndarray], np.ndarray]


def pairs_of(data: RankingData) -> tuple[np.ndarray, np.ndarray]:
    """The row of the preferred document and the row of the other document, for every pair."""
    upper, lower = [], []
    for _, rows in data.queries:
        i, j = np.nonzero(data.y[rows][:, None] > data.y[rows][None, :])
        upper.append(rows[i])
        lower.append(rows[j])
    return np.concatenate(upper), np.concatenate(lower)


# -- stochastic pairwise descent ---------------------------------------------------------------------------------------


def pairwise_sgd(data: RankingData, lam: float, n_steps: int, n_rounds: int, seed: int) -> Iterator[Scorer]:
    """Stochastic pairwise descent with Pegasos steps, as sofia-ml has it.

    Sculley, "Large scale learning to rank", 2009. It minimizes ``lam / 2 |w|^2`` plus the mean hinge of the pairs; a
    step takes one pair, drawn uniformly, and has the length ``1 / (lam t)``. The weights are projected on the ball of
    radius ``1 / sqrt(lam)``.
    """
    random, X = np.random.default_rng(seed), data.X.astype(np.float64)
    upper, lower = pairs_of(data)
    w, t = np.zeros(X.shape[1]), 0
    for _ in range(n_rounds):
        chosen = random.integers(len(upper), size=n_steps)
        for z in X[upper[chosen]] - X[lower[chosen]]:
            t += 1
            violates = z @ w < 1.0
            w *= 1.0 - 1.0 / t
            if violates:
                w += z / (lam * t)
            length = lam * (w @ w)
            if length > 1.0:
                w /= np.sqrt(length)
        yield _linear(w)


# -- networks ----------------------------------------------------------------------------------------------------------


class _Network:
    """A linear function or one hidden layer of tanh units, on standardized features, trained with Adam."""

    def __init__(self, X: np.ndarray, n_hidden: int, rate: float, seed: int):
        random, n = np.random.default_rng(seed), X.shape[1]
        self.center, self.spread = X.mean(axis=0), X.std(axis=0) + 1e-9
        self.hidden = n_hidden > 0
        self.weights = [random.standard_normal((n, n_hidden or 1)) / np.sqrt(n) * (1.0 if n_hidden else 0.0)]
        if n_hidden:
            self.weights += [np.zeros(n_hidden), random.standard_normal((n_hidden, 1)) / np.sqrt(n_hidden)]
        self.rate, self.number = rate, 0
        self.first = [np.zeros_like(weight) for weight in self.weights]
        self.second = [np.zeros_like(weight) for weight in self.weights]

    def scores(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores, standardized features and hidden units."""
        X = (X - self.center) / self.spread
        if not self.hidden:
            return (X @ self.weights[0])[:, 0], X, X
        units = np.tanh(X @ self.weights[0] + self.weights[1])
        return (units @ self.weights[2])[:, 0], X, units

    def step(self, X: np.ndarray, units: np.ndarray, slope: np.ndarray) -> None:
        """One step along the gradient, given the derivatives of the loss with respect to the scores."""
        slope = slope[:, None]
        gradients = [X.T @ slope]
        if self.hidden:
            inner = (slope @ self.weights[2].T) * (1.0 - units**2)
            gradients = [X.T @ inner, inner.sum(axis=0), units.T @ slope]
        self.number += 1
        for weight, first, second, gradient in zip(self.weights, self.first, self.second, gradients, strict=True):
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            size = np.sqrt(second / (1.0 - 0.999**self.number)) + 1e-8
            weight -= self.rate * first / (1.0 - 0.9**self.number) / size

    def scorer(self) -> Scorer:
        """The current scoring function, unchanged by later steps."""
        frozen = object.__new__(_Network)
        frozen.__dict__ = self.__dict__ | {"weights": [weight.copy() for weight in self.weights]}
        return lambda X: frozen.scores(X)[0]


def network(data: RankingData, loss: str, n_hidden: int, rate: float, n_epochs: int, seed: int) -> Iterator[Scorer]:
    """RankNet or ListNet: one step for each query, with queries in random order.

    RankNet has the logistic loss of pairs (Burges et al., ICML 2005), ListNet the top-one cross-entropy (Cao et al.,
    ICML 2007).
    """
    random, X = np.random.default_rng(seed), data.X.astype(np.float64)
    queries = [rows for _, rows in data.queries if len(np.unique(data.y[rows])) > 1]
    slope_of = {"ranknet": _ranknet, "listnet": _listnet}[loss]
    model = _Network(X, n_hidden, rate, seed)
    for _ in range(n_epochs):
        for query in random.permutation(len(queries)):
            rows = queries[query]
            scores, standardized, units = model.scores(X[rows])
            model.step(standardized, units, slope_of(data.y[rows], scores))
        yield model.scorer()


def _ranknet(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    better = y[:, None] > y[None, :]
    pull = better / (1.0 + np.exp(np.clip(scores[:, None] - scores[None, :], -50.0, 50.0)))
    return (pull.sum(axis=0) - pull.sum(axis=1)) / better.sum()


def _listnet(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return _softmax(scores) - _softmax(y)


def _softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values - values.max())
    return powers / powers.sum()


# -- boosting ----------------------------------------------------------------------------------------------------------


def adarank(data: RankingData, metric: str, n_rounds: int) -> Iterator[Scorer]:
    """AdaRank (Xu & Li, SIGIR 2007): weak rankers are single features; badly ranked queries get more weight."""
    X, n = data.X.astype(np.float64), data.X.shape[1]
    keep = np.array([len(np.unique(data.y[rows])) > 1 for _, rows in data.queries])

    def per_query(scores: np.ndarray) -> np.ndarray:
        found = metrics.evaluate(data.y, scores, data.qid, [metric], convention="letor")
        return found.per_query[metric][keep]

    weak = np.array([per_query(column) for column in X.T])
    share, w = np.full(keep.sum(), 1.0 / keep.sum()), np.zeros(n)
    for _ in range(n_rounds):
        best = int(np.argmax(weak @ share))
        w[best] += 0.5 * np.log((share @ (1.0 + weak[best])) / max(share @ (1.0 - weak[best]), 1e-12))
        share = np.exp(-per_query(X @ w))
        share /= share.sum()
        yield _linear(w)


def rankboost(data: RankingData, n_thresholds: int, n_rounds: int) -> Iterator[Scorer]:
    """RankBoost (Freund et al., JMLR 2003): weak rankers are thresholds of a feature, pairs are weighted."""
    X, (upper, lower) = data.X.astype(np.float64), pairs_of(data)
    cuts = [np.unique(np.quantile(column, np.linspace(0.0, 1.0, n_thresholds + 1)[:-1])) for column in X.T]
    bins = np.array([np.searchsorted(cut, column, side="left") for cut, column in zip(cuts, X.T, strict=True)])
    scores, chosen = np.zeros(len(X)), []
    for _ in range(n_rounds):
        share = np.exp(np.clip(scores[lower] - scores[upper], -50.0, 50.0))
        share /= share.sum()
        potential = np.bincount(upper, share, len(X)) - np.bincount(lower, share, len(X))
        # sum of the potential of the documents above each threshold
        gains = [
            np.cumsum(np.bincount(b, potential, len(c) + 1)[::-1])[::-1][1:] for b, c in zip(bins, cuts, strict=True)
        ]
        feature = int(np.argmax([np.abs(gain).max() for gain in gains]))
        place = int(np.argmax(np.abs(gains[feature])))
        r = float(np.clip(gains[feature][place], -1.0 + 1e-9, 1.0 - 1e-9))
        chosen.append((feature, cuts[feature][place], 0.5 * np.log((1.0 + r) / (1.0 - r))))
        scores += chosen[-1][2] * (X[:, feature] > chosen[-1][1])
        yield _thresholds(list(chosen))


def _thresholds(chosen: list[tuple[int, float, float]]) -> Scorer:
    return lambda X: sum(height * (X[:, feature] > cut) for feature, cut, height in chosen)


# -- a linear program --------------------------------------------------------------------------------------------------


def ranking_vectors(data: RankingData, kernel: Callable[[np.ndarray, np.ndarray], np.ndarray], C: float) -> Scorer:
    """RV-SVM (Yu & Kim et al., "RV-SVM", PAKDD 2009): ``min sum beta + C sum xi`` by HiGHS.

    ``f(x) = sum of beta_k k(x_k, x)`` over all documents x_k, ``beta >= 0``, and ``f(x_i) - f(x_j) >= 1 - xi_ij`` for
    every pair. Few beta are not 0.
    """
    X, (upper, lower) = data.X.astype(np.float64), pairs_of(data)
    Q = kernel(X, X)
    constraints = scipy.sparse.hstack(
        [scipy.sparse.csr_matrix(Q[lower] - Q[upper]), -scipy.sparse.identity(len(upper), format="csr")], format="csr"
    )
    costs = np.concatenate([np.ones(len(X)), np.full(len(upper), C)])
    solved = linprog(costs, constraints, -np.ones(len(upper)), bounds=(0.0, None), method="highs")
    beta = solved.x[: len(X)]
    kept = beta > 1e-9 * beta.max(initial=0.0)
    return RankingVectors(X[kept], beta[kept], kernel)


class RankingVectors:
    """A scoring function, defined by some documents, their coefficients, and the kernel."""

    def __init__(self, vectors: np.ndarray, beta: np.ndarray, kernel: Callable[[np.ndarray, np.ndarray], np.ndarray]):
        self.vectors, self.beta, self.kernel = vectors, beta, kernel

    @property
    def n_vectors(self) -> int:
        """Number of documents with a nonzero coefficient; without any, all scores are 0."""
        return len(self.beta)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        if not self.n_vectors:
            return np.zeros(len(X))
        return self.kernel(X.astype(np.float64), self.vectors) @ self.beta


def _linear(w: np.ndarray) -> Scorer:
    w = w.copy()
    return lambda X: X @ w
