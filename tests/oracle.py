"""Slow, obvious computations that tests compare with: every pair is listed, in float64 NumPy."""

import numpy as np
import scipy.sparse
import scipy.special


def pairs_of(y, qid, selection="all"):
    """Row numbers (preferred, other) of every pair of rows of one query with different (or neighboring) labels."""
    y, qid = np.asarray(y), np.asarray(qid)
    upper, lower = np.nonzero((qid[:, None] == qid[None, :]) & (y[:, None] > y[None, :]))
    if selection == "adjacent":
        between = [np.any((y < y[i]) & (y > y[j]) & (qid == qid[i])) for i, j in zip(upper, lower, strict=True)]
        upper, lower = upper[~np.array(between, dtype=bool)], lower[~np.array(between, dtype=bool)]
    return upper, lower


def centered(scores, qid):
    """Scores minus the median score of their query, in float64; round-off is relative to these differences."""
    out = np.array(scores, dtype=np.float64)
    qid = np.asarray(qid)
    for query in np.unique(qid):
        rows = qid == query
        out[rows] -= np.sort(out[rows])[rows.sum() // 2]
    return out


class LogisticFunction:
    """``log(1 + exp(-m))`` as a user would write it."""

    def value(self, margins):
        return np.logaddexp(0.0, -margins)

    def derivative(self, margins):
        return -scipy.special.expit(-margins)

    def curvature(self, margins):
        return scipy.special.expit(margins) * scipy.special.expit(-margins)

    def conjugate(self, u):
        """``sup of u m - value(m)``, for u in [-1, 0]."""
        return scipy.special.xlogy(-u, -u) + scipy.special.xlogy(1.0 + u, 1.0 + u)


class ExplicitPairs:
    """A loss over explicit pairs, and the RankSVM problem with it.

    The weight of a pair is ``v_i v_j q / p_i`` (sample weights of its two rows, weight of its query, propensity of the
    preferred row) times the factor from ``weighting``. The loss is the squared hinge, the Huberized hinge of some
    width, or a function of the margin.
    """

    def __init__(
        self,
        y,
        qid,
        X=None,
        *,
        width=None,
        function=None,
        selection="all",
        weighting="uniform",
        sample_weight=None,
        query_weight=None,
        propensity=None,
        pairs=None,
        pair_weight=None,
    ):
        self.qid = np.asarray(qid)
        self.width = width
        self.function = function
        self.X = X.toarray().astype(np.float64) if scipy.sparse.issparse(X) else X
        self.X = None if X is None else np.asarray(self.X, dtype=np.float64)
        n = len(self.qid)
        v, q, p = (
            np.ones(n) if w is None else np.asarray(w, dtype=float) for w in (sample_weight, query_weight, propensity)
        )
        there = np.flatnonzero(v)  # a row of weight 0 is ignored
        if pairs is None:
            self.upper, self.lower = (
                there[rows] for rows in pairs_of(np.asarray(y)[there], self.qid[there], selection)
            )
        else:
            self.upper, self.lower = np.asarray(pairs).T
        own = np.ones(len(self.upper)) if pair_weight is None else np.asarray(pair_weight, dtype=float)
        own = own * v[self.upper] * v[self.lower]
        self.weight = own * q[self.upper] / p[self.upper]
        if weighting == "per_query":
            total = {query: own[self.qid[self.upper] == query].sum() for query in np.unique(self.qid)}
            total = np.array([total[query] for query in self.qid[self.upper]])
            self.weight = np.divide(self.weight, total, out=np.zeros(len(total)), where=total > 0)
        elif weighting == "label_gap":
            self.weight = self.weight * (np.asarray(y)[self.upper] - np.asarray(y)[self.lower])
        elif weighting == "gain_gap":
            gain = 2.0 ** (np.asarray(y, dtype=float) - np.max(np.asarray(y)[there]))
            self.weight = self.weight * (gain[self.upper] - gain[self.lower])

    @property
    def n_pairs(self):
        return len(self.upper)

    def margins(self, scores):
        z = np.array(scores, dtype=np.float64)
        return z[self.upper] - z[self.lower]

    def hinges(self, scores):
        return np.maximum(0.0, 1.0 - self.margins(scores))

    def curved(self, scores):
        """The pairs at whose margins the loss has a nonzero second derivative, and the derivative."""
        margins = self.margins(scores)
        if self.function is not None:
            return np.ones(len(margins), dtype=bool), self.function.curvature(margins)
        if self.width is None:
            return margins < 1.0, 2.0
        return (margins < 1.0) & ~(margins < 1.0 - self.width), 1.0 / self.width

    def pulls(self, scores):
        """The negative derivative of each pair's loss with respect to its margin, without the weight of the pair."""
        if self.function is not None:
            return -self.function.derivative(self.margins(scores))
        h = self.hinges(scores)
        return 2.0 * h if self.width is None else np.minimum(h / self.width, 1.0)

    def values(self, scores):
        if self.function is not None:
            return self.function.value(self.margins(scores))
        h, d = self.hinges(scores), self.width
        return h**2 if d is None else np.where(h <= d, h**2 / (2.0 * (d or 1.0)), h - 0.5 * (d or 1.0))

    def loss(self, scores):
        return float(self.weight @ self.values(scores))

    def excess(self, scores):
        """The hinge loss minus the Huberized hinge loss."""
        return float(self.weight @ (self.hinges(scores) - self.values(scores)))

    def slack(self, scores):
        """Sum of a h (1 - alpha / (C a)) over the pairs; only pairs on the quadratic part of the loss contribute."""
        return float(self.weight @ (self.hinges(scores) * (1.0 - self.pulls(scores))))

    def loss_gradient(self, scores):
        pull = self.weight * self.pulls(scores)
        gradient = np.zeros(len(self.qid))
        np.subtract.at(gradient, self.upper, pull)
        np.add.at(gradient, self.lower, pull)
        return gradient

    def loss_hessian(self, scores):
        """The Laplacian of the graph whose edges are the pairs, weighted by the second derivatives of their losses."""
        curved, curvature = self.curved(scores)
        edge = self.weight * curved * curvature
        n = len(self.qid)
        H = np.zeros((n, n))
        np.add.at(H, (self.upper, self.upper), edge)
        np.add.at(H, (self.lower, self.lower), edge)
        np.subtract.at(H, (self.upper, self.lower), edge)
        np.subtract.at(H, (self.lower, self.upper), edge)
        return H

    def value(self, w, C):
        return 0.5 * float(w @ w) + C * self.loss(self.X @ w)

    def hinge_value(self, w, C):
        return 0.5 * float(w @ w) + C * float(self.weight @ self.hinges(self.X @ w))

    def gradient(self, w, C):
        return w + C * self.X.T @ self.loss_gradient(self.X @ w)

    def hessian(self, w, C):
        return np.eye(len(w)) + C * self.X.T @ self.loss_hessian(self.X @ w) @ self.X

    def dual_value(self, w, C, hinge=False):
        """The dual objective at the dual variables that w implies, a lower bound on the optimum (of the hinge loss)."""
        pulls = self.pulls(self.X @ w)
        alpha = C * self.weight * pulls
        v = self.X.T @ (np.bincount(self.upper, alpha, len(self.qid)) - np.bincount(self.lower, alpha, len(self.qid)))
        # alpha^2 / (2 C a curvature)
        quadratic = 0.0 if hinge else float(alpha @ pulls) / (2.0 * (2.0 if self.width is None else 1.0 / self.width))
        return float(alpha.sum() - quadratic - 0.5 * v @ v)

    def solve(self, C, max_iter=200):
        """Minimize with the squared hinge, by Newton's method on the listed differences, with bisection along steps."""
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
