"""Problems for tests of solvers: squared hinges of listed differences, and the loss of a small ranking."""

import numpy as np

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.losses import SquaredHinge
from ranksvm.objectives import LinearObjective
from ranksvm.terms.hessian_cost import worthwhile_fraction
from ranksvm.terms.host import ThreadedTerm


class Point:
    def __init__(self, w, value, gradient, gap):
        self.w, self.value, self.gradient, self.gap = w, value, gradient, gap


class Hinges:
    """``offset + 1/2 |w|^2 + C sum max(0, 1 - D w)^2`` with a small, explicit D; implements `Objective`."""

    hessian_fraction = 1.0
    hessian_cost = 3.0
    products_since_hessian = 0
    positions_at_once = 1
    search_slope = 0.2
    reserve = 0.0

    def __init__(self, D, C, offset=0.0):
        self.D, self.C, self.offset = np.atleast_2d(np.asarray(D, dtype=float)), C, offset
        self.curvature_rank, self.n_variables = self.D.shape
        self.n_evaluations = 0

    def reweight(self, C, point=None):
        self.C = C
        if point is not None:
            again = self.evaluate(point.w)
            point.value, point.gradient, point.gap = again.value, again.gradient, again.gap

    def cost_with_hessian(self, log_reduction):
        return 5.0

    def expected_products(self, scale, log_reduction):
        return 0.0

    def evaluate(self, w, near=None):
        self.n_evaluations += 1
        hinge = np.maximum(0.0, 1.0 - self.D @ w)
        value = self.offset + 0.5 * w @ w + self.C * hinge @ hinge
        gradient = w - 2.0 * self.C * self.D.T @ hinge
        return Point(w, float(value), gradient, self.gap(w, gradient))

    def slope(self, point, direction):
        return self.inner(point.gradient, direction)

    def inner(self, u, v):
        return float(u @ v)

    def gap(self, w, gradient):
        return 0.5 * float(gradient @ gradient)

    def certificate(self, point):
        return point.value, point.gap

    def round_off(self, point, tol):
        return 0.0

    def refresh(self, point, visit_pairs=False):
        return False

    def goal(self, point, tol):
        return tol * point.value

    def smoothing_suffices(self, point, tol):
        return True

    def reduce_smoothing(self, point, tol, by_inverse=False):
        return point, 0

    def line(self, point, trial):
        step = trial.w - point.w

        def along(alphas):
            found = [self.evaluate(point.w + alpha * step) for alpha in alphas]
            return np.array([at.value for at in found]), np.array([at.gradient @ step for at in found])

        return along

    def between(self, point, trial, alpha):
        return self.evaluate(point.w + alpha * (trial.w - point.w))

    def hessian(self, point):
        active = (self.D @ point.w < 1.0).astype(float)
        return np.eye(self.n_variables) + 2.0 * self.C * (self.D.T * active) @ self.D

    def earlier_hessian(self):
        return None

    def hessian_at_zero(self):
        return None

    refined_cost = np.inf

    @property
    def first_hessian_cost(self):
        return self.hessian_cost

    def refine(self):
        return False

    def products(self, point, tolerance):
        return lambda v: self.hessian_product(point, v)

    def hessian_product(self, point, v, double=True):
        return self.hessian(point) @ v

    def hessian_diagonal(self, point):
        return np.diagonal(self.hessian(point)).copy()

    def release(self, point):
        point.gradient = None  # any later use of it is an error

    def sample(self):
        return None

    width = None

    def inverse_cost(self, point):
        return float("inf")

    def relaxed(self):
        return None

    def preconditioner(self, point):
        return np.copy


def ranking(seed=0, n=300, n_features=6, n_queries=30, C=0.1, scales=None, fraction_of=worthwhile_fraction, **weights):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (1.0 if scales is None else scales)
    y = np.digitize(X @ (rng.normal(size=n_features) / np.std(X, axis=0)) + rng.normal(size=n), [-1, 0, 2])
    qid = rng.integers(0, n_queries, n)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, n), y.astype(float), **weights)
    term = ThreadedTerm(as_design_matrix(X), SquaredHinge(pairs))
    return LinearObjective(term, C, fraction_of=fraction_of), ExplicitPairs(y, qid, X, **weights)
