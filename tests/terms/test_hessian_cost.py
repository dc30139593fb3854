"""Costs of explicit Hessians, the part of the rows that is worth putting into them, and expected products."""

from functools import partial

import numpy as np
import pytest

from data_sizes import Size, dense
from ranksvm.solvers.linear_systems import by_diagonal, conjugate_gradient
from ranksvm.terms.hessian_cost import (
    DIFFERENCES,
    cost_with_hessian,
    expected_products,
    hessian_cost,
    sampled_fraction,
    worthwhile_fraction,
)


def test_a_hessian_costs_more_products_with_more_variables_rows_and_fewer_values():
    costs = [hessian_cost(dense(10_000, n), 1.0) for n in (10, 46, 136, 245, 768, 2000)]
    assert costs == sorted(costs)
    assert costs[0] < 8
    assert costs[-1] > 50
    fractions = [hessian_cost(dense(10_000, 245), fraction) for fraction in (0.0, 0.05, 0.3, 1.0)]
    assert fractions[0] == float("inf")
    assert fractions[1:] == sorted(fractions[1:])
    sparse = Size(10_000, 245, 12.0 * 10, dense=False)
    assert hessian_cost(sparse, 1.0) > 1.5 * hessian_cost(dense(10_000, 245), 1.0)


def test_a_preconditioner_takes_fewer_rows_than_a_hessian_built_every_few_steps():
    size = dense(400_000, 1024)
    assert 0.0 < sampled_fraction(size) < worthwhile_fraction(size) < 1.0
    assert sampled_fraction(dense(1_000, 245)) == 1.0


def test_a_preconditioner_takes_more_rows_where_they_cost_little_beside_products():
    rows = [sampled_fraction(dense(n_rows, 136)) * n_rows for n_rows in (10_000, 100_000, 1_000_000)]
    assert 10 * 136 <= rows[0] < rows[1] == pytest.approx(rows[2]) == pytest.approx(40 * 136)
    assert sampled_fraction(dense(400_000, 2_001)) == 0.0


def test_a_sample_where_there_are_very_many_rows_for_each_variable():
    """A Hessian of all of them costs little, too, but a start at the solution on a sample saves iterations."""
    assert worthwhile_fraction(dense(36_000, 46)) == 1.0
    assert worthwhile_fraction(dense(100_000, 10)) == pytest.approx(0.05)


def test_products_with_a_hessian_are_fewer_with_more_rows_and_cost_more_where_its_solutions_do():
    size = dense(1_000_000, 245)
    costs = [cost_with_hessian(size, rows * 245 / 1e6, 10.0) for rows in (10, 20, 40, 80)]
    assert costs == sorted(costs, reverse=True)
    assert cost_with_hessian(size, 1.0, 10.0) == costs[-1] == costs[-2] > 2.0
    assert cost_with_hessian(size, 1.0, 20.0) - costs[-1] == pytest.approx(costs[-1] - 2.0, rel=0.01)
    # a product with 5,000 sparse rows takes less time than a solution with 1,000 x 1,000 factors
    assert cost_with_hessian(Size(5_000, 1_000, 160.0, dense=False), 1.0, 10.0) > 2.0 * costs[-1]


N_VARIABLES = 200
MANY = 10**9


def hessian_of(decay, C, n_rows=MANY, seed=0):
    """``I + C M`` and differences. M has their second moments, of ``n_rows`` rows, and the spectrum ``k^-decay``."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(N_VARIABLES, N_VARIABLES)))[0]
    root = np.arange(1.0, N_VARIABLES + 1.0) ** (-0.5 * decay) * rotation
    differences = rng.normal(size=(DIFFERENCES, N_VARIABLES)) @ root.T
    if n_rows < MANY:
        root = root @ rng.normal(size=(N_VARIABLES, n_rows)) / np.sqrt(n_rows)
    return np.eye(N_VARIABLES) + C * root @ root.T, differences


def products_of(hessian, log_reduction):
    """Products of conjugate gradients for a random right-hand side."""
    step = conjugate_gradient(
        partial(np.matmul, hessian),
        np.random.default_rng(1).normal(size=len(hessian)),
        by_diagonal(np.diagonal(hessian)),
        np.dot,
        tolerance=np.exp(-0.5 * log_reduction),
        max_products=1000,
    )
    return step.n_products


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("n_rows", [50, 400, 2_000, MANY])
@pytest.mark.parametrize("log_reduction", [5.0, 20.0])
def test_expected_products_are_near_those_of_conjugate_gradients(decay, C, n_rows, log_reduction):
    hessian, differences = hessian_of(decay, C, n_rows)
    found = expected_products(differences, np.diagonal(hessian), n_rows, log_reduction)
    taken = products_of(hessian, log_reduction)
    assert 0.4 * taken - 3.0 <= found <= 2.0 * taken + 3.0


def test_scales_of_features_do_not_matter():
    hessian, differences = hessian_of(1.0, 1e8)
    scales, diagonal = np.geomspace(1e-2, 1e2, N_VARIABLES), np.diagonal(hessian)
    expected = expected_products(differences, diagonal, MANY, 10.0)
    assert expected_products(differences * scales, diagonal * scales**2, MANY, 10.0) == pytest.approx(expected, 1e-3)


def test_rows_that_do_not_differ_say_nothing():
    hessian, differences = hessian_of(1.0, 1.0)
    diagonal = np.diagonal(hessian)
    expected = expected_products(differences[5:], diagonal, MANY, 10.0)
    differences[:5] = 0.0
    assert expected_products(differences, diagonal, MANY, 10.0) == pytest.approx(expected, 1e-12)
    differences[1:] = 0.0
    assert expected_products(differences, diagonal, MANY, 10.0) == 0.0


def test_few_products_where_the_hessian_is_the_identity_but_for_few_directions():
    _, differences = hessian_of(1.0, 1.0)
    assert expected_products(differences, np.ones(1), MANY, 10.0) < 4.0
