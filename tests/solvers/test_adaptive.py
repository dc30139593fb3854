"""When a Hessian is built: counted on problems whose conditioning, and the cost of a Hessian, are chosen."""

import numpy as np
import pytest

from ranksvm.solvers import Status, adaptive, tron
from ranksvm.terms import hessian_cost
from solver_problems import Hinges, ranking


class Counted(Hinges):
    """Notes the number of products before each Hessian."""

    def __init__(self, D, C, cost):
        super().__init__(D, C)
        self.hessian_cost = cost
        self.n_products = 0
        self.built_after = []

    def hessian(self, point):
        self.built_after.append(self.n_products)
        return super().hessian(point)

    def hessian_diagonal(self, point):
        return np.diagonal(super().hessian(point)).copy()

    def hessian_product(self, point, v, double=True):
        self.n_products += 1
        return super().hessian(point) @ v


def correlated(n_pairs=200, n=60, condition=1e3, seed=0):
    """Differences whose singular values fall evenly in the logarithm, in random directions."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return rng.normal(size=(n_pairs, n)) * np.geomspace(1.0, 1.0 / condition, n) @ rotation


def test_no_hessian_where_conjugate_gradients_are_quick():
    objective = Counted(np.random.default_rng(0).normal(size=(200, 60)), 1e-3, cost=30.0)
    result = adaptive(objective, np.zeros(60))
    assert result.status is Status.CONVERGED
    assert objective.built_after == []
    assert objective.n_products == result.history.hessian_products[-1] < 30


@pytest.mark.parametrize("cost", [5.0, 30.0])
def test_a_hessian_once_products_have_cost_a_fifth_as_much(cost):
    objective = Counted(correlated(), 100.0, cost)
    result = adaptive(objective, np.zeros(60), tol=1e-8)
    assert result.status is Status.CONVERGED
    assert objective.built_after[0] >= max(4, 0.18 * cost)
    # and not much later, though products seemed to be few until then
    assert objective.built_after[0] <= 3 * cost
    without = Counted(correlated(), 100.0, float("inf"))
    adaptive(without, np.zeros(60), tol=1e-8)
    assert without.built_after == []
    assert objective.n_products + cost * len(objective.built_after) < without.n_products


@pytest.mark.parametrize(("share", "at_once"), [(0.7, False), (0.9, True)])
def test_a_hessian_at_once_where_that_many_products_are_expected(share, at_once):
    """Of the cost of 30 products for the Hessian and 5 after it."""
    objective = Counted(correlated(), 100.0, 30.0)
    objective.expected_products = lambda scale, log_reduction: 35.0 * share
    result = adaptive(objective, np.zeros(60), tol=1e-8)
    assert result.status is Status.CONVERGED
    assert (objective.built_after[0] == 0) is at_once


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("cost", [2.0, 20.0, 100.0])
def test_about_twice_the_work_of_the_better_choice_at_most(condition, C, cost):
    """In products: conjugate gradients alone, or a Hessian at once."""

    def work(cost_assumed, counted):
        adaptive(counted, np.zeros(60), tol=1e-6)
        return counted.n_products + cost * len(counted.built_after)

    D = correlated(condition=condition)
    alone = work(None, Counted(D, C, float("inf")))
    at_once = Counted(D, C, 0.0)
    at_once_work = work(None, at_once)
    found = work(None, Counted(D, C, cost))
    assert found <= 2.0 * min(alone, at_once_work) + cost + 10


def test_a_sample_passes_on_its_solution_and_its_preconditioner(monkeypatch):
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "PRECONDITIONER_ROWS_PER_VARIABLE", 60)
    monkeypatch.setattr(hessian_cost, "hessian_cost", lambda size, fraction: 0.0)
    objective, oracle = ranking(n=2000, n_queries=300, C=1.0, fraction_of=hessian_cost.sampled_fraction)
    assert 0.0 < objective.hessian_fraction < 0.4
    result = adaptive(objective, np.zeros(6), tol=1e-9)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(oracle.value(oracle.solve(1.0), 1.0), rel=1e-8)
    assert result.history.duality_gap[0] < 0.2 * objective.evaluate(np.zeros(6)).gap


def test_a_larger_sample_where_one_misleads(monkeypatch):
    """Few rows a variable and a large C: the sample's Hessian says little of the others'."""
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "PRECONDITIONER_ROWS_PER_VARIABLE", 2)
    objective, oracle = ranking(
        n=4000, n_features=60, n_queries=400, C=100.0, fraction_of=hessian_cost.sampled_fraction
    )
    fraction = objective.hessian_fraction
    result = adaptive(objective, np.zeros(60), tol=1e-9)
    assert result.status is Status.CONVERGED
    assert objective.hessian_fraction > fraction
    assert result.value == pytest.approx(oracle.value(result.w, 100.0), rel=1e-10)


def test_collinear_features_of_very_different_size():
    """float32 Hessians of them are singular; what is found is right all the same."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(400, 3))
    D = np.hstack([a, 1e4 * a, a @ rng.normal(size=(3, 4)) * 1e-3])
    for C in (1e-2, 1e2):
        found = adaptive(Counted(D, C, 3.0), np.zeros(10), tol=1e-8)
        assert found.status is Status.CONVERGED
        assert found.value == pytest.approx(tron(Counted(D, C, 3.0), np.zeros(10), tol=1e-8).value, rel=2e-8)


def test_a_saving_is_weighed_against_the_products_that_a_hessian_leaves():
    """A Hessian after which as many products are needed as before is not bought."""

    class Useless(Counted):
        def cost_with_hessian(self, log_reduction):
            return 1e6

    useful = Counted(correlated(condition=3.0), 1.0, 5.0)
    adaptive(useful, np.zeros(60), tol=1e-8)
    assert useful.built_after != []
    objective = Useless(correlated(condition=3.0), 1.0, 5.0)
    assert adaptive(objective, np.zeros(60), tol=1e-8).status is Status.CONVERGED
    assert objective.built_after == []


def test_the_first_hessian_is_that_at_zero_where_it_costs_less():
    class AtZero(Counted):
        def hessian_at_zero(self):
            return self.hessian(self.evaluate(np.zeros(self.n_variables)))

    objective, other = (kind(correlated(), 1.0, 20.0) for kind in (AtZero, Counted))
    found, expected = (adaptive(each, np.zeros(60), tol=1e-8) for each in (objective, other))
    assert found.status is expected.status is Status.CONVERGED
    assert found.value == pytest.approx(expected.value, rel=2e-8)
    # conjugate gradients go on from there: no other is built in this step
    assert objective.built_after[0] == other.built_after[0]
    assert len(objective.built_after) == 1 or objective.built_after[1] > objective.built_after[0]
