"""TRON as published: its rule, its steps, and each way to stop."""

import threading

import numpy as np
import pytest

from oracle import ExplicitPairs
from ranksvm.solvers import Status, plain_tron
from solver_problems import Hinges, ranking


def gradients(result):
    """Norms of the gradient at every iterate, relative to the first: the gap is half the square."""
    norms = np.sqrt(2.0 * np.array(result.history.duality_gap))
    return norms / norms[0]


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-5])
def test_it_stops_at_the_first_iterate_whose_gradient_meets_the_rule(C, tol):
    objective = Hinges(np.random.default_rng(0).normal(size=(30, 4)), C)
    result = plain_tron(objective, np.zeros(4), tol=tol)
    assert result.status is Status.GRADIENT
    assert np.flatnonzero(gradients(result) <= tol)[0] == result.n_iter
    assert np.all(np.diff(result.history.objective) < 0)


def test_a_quadratic_is_solved():
    rng = np.random.default_rng(0)
    D = rng.normal(size=(20, 5)) * 1e-2
    exact = np.linalg.solve(np.eye(5) + 100.0 * D.T @ D, 100.0 * D.sum(axis=0))
    assert (D @ exact < 1).all()
    np.testing.assert_allclose(plain_tron(Hinges(D, 50.0), np.zeros(5), tol=1e-7).w, exact, rtol=1e-6)


def test_the_rule_is_relative_to_the_gradient_at_0_wherever_it_begins():
    objective = Hinges(np.random.default_rng(0).normal(size=(30, 4)), 10.0)
    solution = plain_tron(objective, np.zeros(4), tol=1e-4)
    again = plain_tron(objective, solution.w, tol=1e-4)
    assert again.status is Status.GRADIENT
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.w, solution.w)


def test_steps_that_rise_are_rejected():
    """Just beyond the start a pair that is a hundred million times steeper becomes active."""
    objective = Hinges([[1.0]], 1e8)
    result = plain_tron(objective, np.array([1.0 + 1e-9]), tol=1e-9)
    assert result.status in (Status.GRADIENT, Status.PRECISION)
    assert result.w[0] == pytest.approx(2e8 / (1 + 2e8), rel=1e-8)
    assert np.all(np.diff(result.history.objective) <= 0)


def test_a_rule_beyond_round_off_ends_all_the_same():
    objective = Hinges(np.random.default_rng(0).normal(size=(30, 4)), 1e3, offset=1e6)
    result = plain_tron(objective, np.zeros(4), tol=1e-300)
    assert result.status is Status.PRECISION


def test_max_iter_and_interruption():
    objective = Hinges(np.random.default_rng(0).normal(size=(30, 4)), 1e3)
    assert plain_tron(objective, np.zeros(4), tol=1e-9, max_iter=2).status is Status.MAX_ITERATIONS
    event = threading.Event()
    event.set()
    stopped = plain_tron(objective, np.zeros(4), tol=1e-9, interrupted=event)
    assert (stopped.status, stopped.n_iter) == (Status.INTERRUPTED, 0)


def test_a_ranking_is_solved():
    objective, oracle = ranking()
    assert isinstance(oracle, ExplicitPairs)
    result = plain_tron(objective, np.zeros(objective.n_variables), tol=1e-10)
    optimum = oracle.value(oracle.solve(objective.C), objective.C)
    assert result.value == pytest.approx(optimum, rel=1e-10)
