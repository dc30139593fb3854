"""How many products are expected, beside how many conjugate gradients take."""

from functools import partial

import numpy as np
import pytest

from ranksvm.solvers.linear_systems import by_diagonal, conjugate_gradient
from ranksvm.terms.expected_products import DIFFERENCES, expected_products

N_VARIABLES = 200
MANY = 10**9


def hessian_of(decay, C, n_rows=MANY, seed=0):
    """``I + C M`` and differences, of so many of which M are the second moments; the spectrum is ``k^-decay``."""
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
