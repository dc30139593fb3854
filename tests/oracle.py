"""The slow, obvious answers: every pair written out, in float64 NumPy."""

import numpy as np
import scipy.sparse


def pairs_of(y, qid):
    """Row numbers (preferred, other) of every pair of rows of one query with different labels."""
    y, qid = np.asarray(y), np.asarray(qid)
    return np.nonzero((qid[:, None] == qid[None, :]) & (y[:, None] > y[None, :]))


def centred(scores, qid):
    """Scores less the middle one (of the sorted ones) of their query, in float64: what the margin is measured on."""
    out = np.array(scores, dtype=np.float64)
    qid = np.asarray(qid)
    for query in np.unique(qid):
        rows = qid == query
        out[rows] -= np.sort(out[rows])[rows.sum() // 2]
    return out


class ExplicitPairs:
    """Squared hinge loss over explicit pairs, and the RankSVM problem with it.

    A pair weighs ``v_i v_j q``: sample weights of its two rows and the weight of its query.
    """

    def __init__(self, y, qid, X=None, sample_weight=None, query_weight=None):
        self.qid = np.asarray(qid)
        self.X = X.toarray().astype(np.float64) if scipy.sparse.issparse(X) else X
        self.X = None if X is None else np.asarray(self.X, dtype=np.float64)
        self.upper, self.lower = pairs_of(y, qid)
        v = np.ones(len(self.qid)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        q = np.ones(len(self.qid)) if query_weight is None else np.asarray(query_weight, dtype=float)
        self.weight = v[self.upper] * v[self.lower] * q[self.upper]

    @property
    def n_pairs(self):
        return len(self.upper)

    def hinges(self, scores):
        z = centred(scores, self.qid)
        return np.maximum(0.0, 1.0 - (z[self.upper] - z[self.lower]))

    def violators(self, scores):
        z = centred(scores, self.qid)
        return z[self.upper] - z[self.lower] < 1.0

    def loss(self, scores):
        return float(self.weight @ self.hinges(scores) ** 2)

    def loss_gradient(self, scores):
        pull = 2.0 * self.weight * self.hinges(scores)
        gradient = np.zeros(len(self.qid))
        np.subtract.at(gradient, self.upper, pull)
        np.add.at(gradient, self.lower, pull)
        return gradient

    def laplacian(self, scores):
        """Of the graph whose edges are the violating pairs."""
        edge = self.weight * self.violators(scores)
        n = len(self.qid)
        L = np.zeros((n, n))
        np.add.at(L, (self.upper, self.upper), edge)
        np.add.at(L, (self.lower, self.lower), edge)
        np.subtract.at(L, (self.upper, self.lower), edge)
        np.subtract.at(L, (self.lower, self.upper), edge)
        return L

    def value(self, w, C):
        return 0.5 * float(w @ w) + C * self.loss(self.X @ w)

    def gradient(self, w, C):
        return w + C * self.X.T @ self.loss_gradient(self.X @ w)

    def hessian(self, w, C):
        return np.eye(len(w)) + 2.0 * C * self.X.T @ self.laplacian(self.X @ w) @ self.X

    def solve(self, C, max_iter=200):
        """Minimiser by Newton's method on the pairs' own differences, with bisection for the slope along each step."""
        D = self.X[self.upper] - self.X[self.lower]

        def gradient(w):
            return w - 2.0 * C * D.T @ (self.weight * np.maximum(0.0, 1.0 - D @ w))

        w = np.zeros(D.shape[1])
        best = w, np.inf
        for _ in range(max_iter):
            g = gradient(w)
            if g @ g < best[1]:
                best = w, float(g @ g)
            edge = self.weight * (1.0 - D @ w > 0.0)
            H = np.eye(len(w)) + 2.0 * C * (D.T * edge) @ D
            scale = 1.0 / np.sqrt(np.diagonal(H))
            step = -scale * np.linalg.solve(H * scale * scale[:, None], scale * g)
            if np.linalg.norm(step) <= 1e-15 * np.linalg.norm(w):
                break
            low, high = 0.0, 1.0
            if gradient(w + step) @ step > 0.0:
                for _ in range(60):
                    middle = 0.5 * (low + high)
                    low, high = (middle, high) if gradient(w + middle * step) @ step < 0.0 else (low, middle)
            w = w + high * step
        return best[0]
