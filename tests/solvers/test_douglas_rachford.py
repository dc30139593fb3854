"""Douglas-Rachford splitting on problems whose solution is known: least squares with an L1 penalty."""

import threading
from typing import NamedTuple

import numpy as np
import pytest

from ranksvm.exceptions import DataError
from ranksvm.solvers import Status, douglas_rachford


class Point(NamedTuple):
    x: np.ndarray
    value: float
    bound: float
    ranks: np.ndarray
    round_off: float = 0.0


class Lasso:
    """``1/2 |A x - b|^2 + penalty |x|_1`` with the lower bound of the scaled residual."""

    def __init__(self, n=40, m=20, penalty=0.1, length=0.1, scale=1.0):
        rng = np.random.default_rng(0)
        self.A, self.b = rng.normal(size=(n, m)) * np.logspace(0, -0.7, m), scale * rng.normal(size=n)
        self.penalty, self.length, self.z, self.accuracies = penalty, length, np.zeros(m), []

    def value(self, x):
        rest = self.A @ x - self.b
        return 0.5 * rest @ rest + self.penalty * np.abs(x).sum()

    def point(self, x):
        rest = self.b - self.A @ x
        dual = rest * min(1.0, self.penalty / np.abs(self.A.T @ rest).max())
        bound = 0.5 * self.b @ self.b - 0.5 * (dual - self.b) @ (dual - self.b)
        return Point(x, self.value(x), bound, np.array([np.count_nonzero(x)]))

    def step(self, accuracy, interrupted=None):
        self.accuracies.append(accuracy)
        x = np.sign(self.z) * np.maximum(np.abs(self.z) - self.penalty * self.length, 0.0)
        H = np.eye(len(x)) + self.length * self.A.T @ self.A
        y = np.linalg.solve(H, 2.0 * x - self.z + self.length * self.A.T @ self.b)
        self.z = self.z + y - x
        return self.point(x)

    def finish(self, point, accuracy):
        self.accuracies.append(accuracy)
        return self.point(point.x)


def test_it_reaches_the_optimum_and_reports_the_best_so_far():
    objective = Lasso()
    result = douglas_rachford(objective, tol=1e-9)
    assert result.status is Status.CONVERGED
    x, history = result.point.x, result.history
    gradient = objective.A.T @ (objective.A @ x - objective.b)
    np.testing.assert_allclose(gradient[x != 0.0], -objective.penalty * np.sign(x[x != 0.0]), atol=1e-3)
    assert np.abs(gradient).max() <= objective.penalty + 1e-3
    assert (np.diff(history.objective) <= 0.0).all()
    assert (np.diff(history.duality_gap) <= 0.0).all()
    assert result.point.value == history.objective[-1] == objective.value(x)
    assert result.gap == history.duality_gap[-1] <= 1e-9 * result.point.value
    assert result.n_iter == len(objective.accuracies) == len(history.mean_rank)


def test_the_problem_within_is_solved_ever_better():
    objective = Lasso()
    douglas_rachford(objective, tol=1e-6)
    assert objective.accuracies[0] == np.inf
    assert (np.diff(objective.accuracies[1:]) <= 0.0).all()


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_limits(max_iter):
    objective = Lasso()
    result = douglas_rachford(objective, tol=1e-12, max_iter=max_iter)
    assert result.status is Status.MAX_ITERATIONS
    assert result.n_iter == len(objective.accuracies) == max(2, max_iter)


def test_interruption():
    event = threading.Event()
    event.set()
    assert douglas_rachford(Lasso(), tol=1e-12, interrupted=event).status is Status.INTERRUPTED


def test_round_off_ends_it():
    assert douglas_rachford(Lasso(), tol=1e-30).status is Status.PRECISION


def test_overflow_is_told():
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(DataError, match="overflow"):
        douglas_rachford(Lasso(scale=1e200))


def test_what_the_last_step_spoils_has_not_converged():
    class Spoiled(Lasso):
        def finish(self, point, accuracy):
            return self.point(point.x + 0.1)

    result = douglas_rachford(Spoiled(), tol=1e-9)
    assert result.status is Status.PRECISION
    assert result.gap > 1e-9 * result.point.value


def test_an_objective_of_0_has_no_relative_gap():
    class FromZero(Lasso):
        """Lower by 1,000, as values of the dual are, but for the first one."""

        def point(self, x):
            found = super().point(x)
            value = found.value - 1e3 if len(self.accuracies) > 1 else 0.0
            return found._replace(value=value, bound=found.bound - 1e3)

    assert douglas_rachford(FromZero(), tol=1e-9).status is Status.CONVERGED
