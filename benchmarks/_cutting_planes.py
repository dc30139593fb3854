"""The linear hinge-loss RankSVM by cutting planes, for comparison only: BMRM, and OCAS, which adds a line search.

    min over w of f(w) = 1/2 |w|^2 + C R(w),   R(w) = sum over pairs of max(0, 1 - (s_i - s_j)),   s = X w

R is bounded from below by its tangents a_t w + b_t (Joachims 2006; Teo et al. 2010). Each round minimizes
1/2 |w|^2 + C max_t (a_t w + b_t), a quadratic program with one variable for each tangent, and adds a tangent. BMRM
takes the tangent at the minimizer. OCAS (Franc and Sonnenburg 2009) improves the best point so far by a line search
towards the minimizer, and takes the tangent close to that point.

References: T. Joachims, "Training linear SVMs in linear time", KDD 2006; C. H. Teo et al., "Bundle methods for
regularized risk minimization", JMLR 2010; V. Franc, S. Sonnenburg, "Optimized cutting plane algorithm for large-scale
risk minimization", JMLR 2009.
"""

import time
from dataclasses import dataclass, field

import numpy as np

# OCAS takes the tangent at this share of the way from the best point to the minimizer (called mu by its authors, 0.1).
SHARE = 0.1
# Line search: largest number of evaluations (each is a sort, without a product with X), and the share of the first
# slope at which the search ends.
LINE_SEARCH = 4
FLAT = 0.1
# A tangent is dropped if it has not been active for this number of rounds.
IDLE_ROUNDS = 50


class PairwiseHinge:
    """R and its subgradient as functions of the scores, in O(l log l + k l) for k levels, without visiting pairs.

    Parameters
    ----------
    y, qid : array-like of shape (l,)
        Labels and query ids; rows must lie query by query.
    """

    def __init__(self, y, qid):
        qid = np.asarray(qid)
        changes = np.flatnonzero(qid[1:] != qid[:-1]) + 1
        self.starts = np.concatenate(([0], changes))
        sizes = np.diff(self.starts, append=len(qid))
        self.query = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((y, self.query))
        sorted_y = np.asarray(y)[order]
        steps = np.concatenate(([False], sorted_y[1:] != sorted_y[:-1]))
        steps[self.starts] = False
        rises = np.cumsum(steps)
        self.level = np.empty(len(qid), dtype=np.int64)
        self.level[order] = rises - rises[self.starts][self.query]
        self.rows = [np.flatnonzero(self.level == level) for level in range(self.level.max() + 1)]
        # in the sorted order, both copies of a query's rows (as preferred and as other ones) lie between these
        # positions
        self.first, self.end = 2 * self.starts[self.query], 2 * (self.starts + sizes)[self.query]

    def __call__(self, scores):
        """R and its subgradient with respect to the scores."""
        above, below = self._violators(scores)
        subgradient = above - below
        return float(scores @ subgradient + below.sum()), subgradient

    def _violators(self, scores):
        """For each row: the numbers of rows of higher level and of lower level with which it forms a violating pair.

        Each row has two positions in one sorted order of all queries: by its score, and by its score minus 1. Running
        counts along this order give the numbers, one level at a time.
        """
        n_rows = len(scores)
        low, high = np.minimum.reduceat(scores, self.starts), np.maximum.reduceat(scores, self.starts)
        # shift the scores so that the ranges of different queries are more than 1 apart
        shift = np.concatenate(([0.0], np.cumsum(high - low + 2.0)[:-1])) - low
        key = scores + shift[self.query]
        order = np.argsort(np.concatenate((key, key - 1.0)))
        place = np.empty(2 * n_rows, dtype=np.int64)
        place[order] = np.arange(2 * n_rows)
        as_other = order < n_rows
        level = self.level[np.where(as_other, order, order - n_rows)]
        above, below = np.zeros(n_rows), np.zeros(n_rows)
        for number, rows in enumerate(self.rows):
            if number > 0:
                count = np.concatenate(([0], np.cumsum(as_other & (level < number))))
                below[rows] = count[self.end[rows]] - count[place[n_rows + rows]]
            if number < len(self.rows) - 1:
                count = np.concatenate(([0], np.cumsum(~as_other & (level > number))))
                above[rows] = count[place[rows]] - count[self.first[rows]]
        return above, below


class Model:
    """The tangents, and the minimizer of 1/2 |w|^2 + C max(0, max_t (a_t w + b_t)).

    An active-set method solves the dual problem, starting from the previous solution: maximize b beta - 1/2 |A' beta|^2
    over beta >= 0 whose sum is C. The weights are w = -A' beta.
    """

    def __init__(self, n_features, C):
        self.C = C
        # the first tangent is R >= 0
        self.A, self.b, self.gram = np.zeros((1, n_features)), np.zeros(1), np.zeros((1, 1))
        self.beta, self.idle = np.array([C]), np.zeros(1, dtype=np.int64)

    def add(self, a, b):
        """Add a tangent."""
        products = self.A @ a
        self.gram = np.block([[self.gram, products[:, None]], [products[None, :], np.array([[a @ a]])]])
        self.A, self.b = np.vstack((self.A, a)), np.append(self.b, b)
        self.beta, self.idle = np.append(self.beta, 0.0), np.append(self.idle, 0)

    def minimize(self):
        """The minimizer, and the dual value, which is a lower bound on f even if the dual is not solved exactly."""
        active = self.beta > 0
        active[-1] = True
        small = 1e-13 * self.C * np.abs(self.b).max()
        for _ in range(10 * len(self.b)):
            self._solve_on(active)
            slope = self.gram @ self.beta - self.b
            slope[active] = np.inf
            entering = int(np.argmin(slope))
            if self.b @ self.beta - self.beta @ self.gram @ self.beta + self.C * slope[entering] >= -small:
                break
            active[entering] = True
        w = -(self.beta @ self.A)
        bound = float(self.b @ self.beta - 0.5 * (w @ w))
        self._drop_idle()
        return w, bound

    def _solve_on(self, active):
        """Find the best beta that is 0 outside the active set; tangents whose beta would be negative leave the set."""
        while True:
            index = np.flatnonzero(active)
            size = len(index)
            system = np.empty((size + 1, size + 1))
            system[:size, :size] = self.gram[np.ix_(index, index)]
            scale = max(np.trace(system[:size, :size]) / size, 1e-300)
            system[:size, :size].flat[:: size + 1] += 1e-13 * scale  # tangents may be linearly dependent
            system[size, :size] = system[:size, size] = np.sqrt(scale)
            system[size, size] = 0.0
            wanted = np.linalg.solve(system, np.append(self.b[index], self.C * np.sqrt(scale)))[:size]
            now = self.beta[index]
            blocking = wanted <= 0
            if not blocking.any():
                self.beta[index] = wanted * (self.C / wanted.sum())
                return
            room = np.full(size, np.inf)
            room[blocking] = now[blocking] / np.maximum(now[blocking] - wanted[blocking], 1e-300)
            step = min(1.0, room.min())
            leaving = index[room <= step]
            self.beta[index] = np.maximum(now + step * (wanted - now), 0.0)
            self.beta[leaving] = 0.0
            active[leaving] = False

    def _drop_idle(self):
        self.idle = np.where(self.beta > 0, 0, self.idle + 1)
        kept = self.idle < IDLE_ROUNDS
        kept[0] = True
        if not kept.all():
            self.A, self.b, self.gram = self.A[kept], self.b[kept], self.gram[np.ix_(kept, kept)]
            self.beta, self.idle = self.beta[kept], self.idle[kept]


@dataclass
class Point:
    """A weight vector, its scores, the values of f and R, and the subgradient of R with respect to the scores."""

    w: np.ndarray
    scores: np.ndarray
    objective: float
    risk: float
    subgradient: np.ndarray


@dataclass
class Trace:
    """The best objective and the lower bound after each round."""

    seconds: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    evaluations: list[int] = field(default_factory=list)


class CuttingPlanes:
    """Minimize f.

    Parameters
    ----------
    X : ndarray of float64, shape (l, n)
        Features; rows lie query by query.
    y, qid : array-like of shape (l,)
        Labels and query ids.
    C : float
        Weight of one pair.
    line_search : bool
        Whether to use OCAS instead of BMRM.
    """

    def __init__(self, X, y, qid, C, *, line_search=True):
        self.X, self.C, self.line_search = X, C, line_search
        self.hinge = PairwiseHinge(y, qid)
        self.evaluations = 0

    def solve(self, tol=1e-6, max_seconds=np.inf):
        """Weights with f at most tol (relative) above the lower bound, and the trace."""
        started = time.perf_counter()
        model, trace = Model(self.X.shape[1], self.C), Trace()
        best = self._at(np.zeros(self.X.shape[1]))
        self._add_tangent(model, best)
        while True:
            w, bound = model.minimize()
            trace.seconds.append(time.perf_counter() - started)
            trace.objective.append(best.objective)
            trace.bound.append(bound)
            trace.evaluations.append(self.evaluations)
            if best.objective - bound <= tol * best.objective or trace.seconds[-1] > max_seconds:
                return best.w, trace
            if self.line_search:
                scores = self.X @ w
                best = self._search(best, w, scores)
                new = self._at(best.w + SHARE * (w - best.w), best.scores + SHARE * (scores - best.scores))
            else:
                new = self._at(w)
            self._add_tangent(model, new)
            if new.objective < best.objective:
                best = new

    def _at(self, w, scores=None):
        scores = self.X @ w if scores is None else scores
        risk, subgradient = self.hinge(scores)
        self.evaluations += 1
        return Point(w, scores, 0.5 * float(w @ w) + self.C * risk, risk, subgradient)

    def _add_tangent(self, model, point):
        a = point.subgradient @ self.X
        model.add(a, point.risk - float(a @ point.w))

    def _search(self, best, w, scores):
        """Search a few points on the ray from the best point through w, and return the best of them."""
        direction, change = w - best.w, scores - best.scores

        def slope(point):
            return float(point.w @ direction + self.C * (point.subgradient @ change))

        first = slope(best)
        low, low_slope, high, high_slope, step = 0.0, first, None, None, 1.0
        found = best
        for _ in range(LINE_SEARCH):
            point = self._at(best.w + step * direction, best.scores + step * change)
            if point.objective < found.objective:
                found = point
            at_point = slope(point)
            if abs(at_point) <= FLAT * abs(first):
                break
            if at_point < 0:
                low, low_slope = step, at_point
            else:
                high, high_slope = step, at_point
            if high is None:
                step *= 2.0
            else:
                share = 0.5 if low_slope >= 0 else np.clip(low_slope / (low_slope - high_slope), 0.1, 0.9)
                step = low + share * (high - low)
        return found
