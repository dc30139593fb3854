"""Conjugate gradients and the approximate inverses they are given."""

import numpy as np
import pytest

from ranksvm.exceptions import DataError
from ranksvm.solvers.linear_systems import FEW_VARIABLES, by_cholesky, by_diagonal, by_secant, conjugate_gradient


def make_system(n=8, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    return A @ A.T + np.eye(n), rng.normal(size=n), 1.0 + rng.random(n)


def test_solves_the_system_in_as_many_products_as_variables():
    H, g, d = make_system()
    found = conjugate_gradient(lambda v: H @ v, g, by_diagonal(d), tolerance=1e-12, max_products=50)
    np.testing.assert_allclose(found.step, -np.linalg.solve(H, g), rtol=1e-8)
    np.testing.assert_allclose(found.residual, -(g + H @ found.step), atol=1e-10)
    assert found.n_products <= 10
    assert not found.on_boundary
    assert found.length == pytest.approx(np.sqrt(found.step @ (d * found.step)), rel=1e-9)


@pytest.mark.parametrize("radius", [1e-6, 0.1, 0.5])
def test_stops_on_the_boundary_in_the_norm_of_the_preconditioner(radius):
    H, g, d = make_system()
    found = conjugate_gradient(lambda v: H @ v, g, by_diagonal(d), tolerance=1e-12, max_products=50, radius=radius)
    assert found.on_boundary
    assert np.sqrt(found.step @ (d * found.step)) == pytest.approx(radius, rel=1e-9)
    np.testing.assert_allclose(found.residual, -(g + H @ found.step), atol=1e-10)
    assert found.length == radius
    assert g @ found.step + 0.5 * found.step @ H @ found.step < 0


def test_tolerance_and_number_of_products():
    H, g, d = make_system(30)
    loose, tight = (
        conjugate_gradient(lambda v: H @ v, g, by_diagonal(d), tolerance=t, max_products=500) for t in (0.5, 1e-3)
    )
    assert loose.n_products < tight.n_products
    assert conjugate_gradient(lambda v: H @ v, g, by_diagonal(d), tolerance=0.0, max_products=3).n_products == 3
    nothing = conjugate_gradient(lambda v: H @ v, 0 * g, by_diagonal(d), tolerance=0.1, max_products=3)
    assert nothing.n_products == 0
    np.testing.assert_array_equal(nothing.step, 0.0)


def test_the_exact_inverse_needs_one_product():
    H, g, _ = make_system()
    found = conjugate_gradient(lambda v: H @ v, g, by_cholesky(H.copy()), tolerance=1e-8, max_products=50)
    assert found.n_products == 1


def test_an_inverse_that_costs_a_product_is_not_applied_to_a_small_residual():
    H, g, _ = make_system()
    calls = []

    def inverse(r):
        calls.append(r)
        return np.linalg.solve(H, r)

    assert np.linalg.eigvalsh(H).min() >= 1.0
    for contracts, n_calls in ((False, 2), (True, 1)):
        calls.clear()
        found = conjugate_gradient(lambda v: H @ v, g, inverse, tolerance=0.1, max_products=9, contracts=contracts)
        assert (found.n_products, len(calls)) == (1, n_calls)
        np.testing.assert_allclose(found.step, -np.linalg.solve(H, g), rtol=1e-9)


def test_cholesky_of_features_of_very_different_size():
    H, g, _ = make_system()
    scale = np.geomspace(1e-6, 1e8, 8)
    scaled = by_cholesky(H * scale * scale[:, None])(g * scale)
    np.testing.assert_allclose(scaled * scale, np.linalg.solve(H, g), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 46, FEW_VARIABLES, FEW_VARIABLES + 1])
def test_cholesky_of_few_and_of_many_variables(n):
    """Beside LU, on either side of the number from which LAPACK is used."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(2 * n + 3, n))
    H, vector = A.T @ A + 0.1 * np.eye(n), rng.normal(size=n)
    kept, solve = vector.copy(), by_cholesky(H.copy())
    np.testing.assert_allclose(solve(vector), np.linalg.solve(H, vector), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(vector, kept)
    if n > 1:
        indefinite = np.full((n, n), 100.0)  # of which round-off has left nothing but the diagonal
        np.fill_diagonal(indefinite, 4.0)
        np.testing.assert_array_equal(by_cholesky(indefinite)(vector), vector / 4.0)
    with pytest.raises(DataError, match="The Hessian overflows float64"):
        by_cholesky(np.full((n, n), np.inf))


def test_a_secant_update_knows_the_last_step_and_remains_definite():
    H, g, d = make_system()
    step = -by_diagonal(d)(g)
    solve = by_secant(by_diagonal(d), step, H @ step, np.dot)
    np.testing.assert_allclose(solve(H @ step), step, rtol=1e-10)
    inverse = np.array([solve(e) for e in np.eye(len(g))])
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-9, atol=1e-12 * np.abs(inverse).max())
    assert np.linalg.eigvalsh(inverse).min() > 0.0
    # in another inner product
    M = np.diag(np.linspace(1.0, 3.0, len(g)))
    solve = by_secant(by_diagonal(d), step, H @ step, lambda u, v: u @ M @ v)
    np.testing.assert_allclose(solve(H @ step), step, rtol=1e-10)


@pytest.mark.parametrize("change", [0.0, -1.0, np.nan])
def test_a_change_without_curvature_updates_nothing(change):
    solve = by_diagonal(np.ones(3))
    assert by_secant(solve, np.ones(3), change * np.ones(3), np.dot) is solve
    assert by_secant(solve, np.array([1.0, 0.0, 0.0]), np.array([1e-12, 1.0, 0.0]), np.dot) is solve


@pytest.mark.parametrize("size", [1e6, 1e14, 1e20])
def test_cholesky_of_collinear_features(size):
    """Round-off makes an eigenvalue of ``I + C X'LX`` negative: a growing shift lets the factorization go through."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(50, 2))
    X = np.hstack([a, a, 3 * a, a @ rng.normal(size=(2, 3))])
    H = np.eye(9) + size * X.T @ X
    solve = by_cholesky(H.copy())
    v = rng.normal(size=9)
    assert np.isfinite(solve(v)).all()
    assert v @ solve(v) > 0  # a descent direction


def test_another_inner_product_and_vectors_of_another_shape():
    """With the inner product ``u'Kv`` a system is solved that is self-adjoint there, and not symmetric."""
    K, g, _ = make_system()
    L = make_system(seed=1)[0]
    H = np.eye(8) + L @ K
    found = conjugate_gradient(
        lambda v: (H @ v.ravel()).reshape(2, 4),
        g.reshape(2, 4),
        lambda v: v,
        lambda u, v: float(u.ravel() @ K @ v.ravel()),
        tolerance=1e-13,
        max_products=50,
    )
    np.testing.assert_allclose(found.step.ravel(), -np.linalg.solve(H, g), rtol=1e-6)
    assert found.length == pytest.approx(np.sqrt(found.step.ravel() @ K @ found.step.ravel()), rel=1e-9)
