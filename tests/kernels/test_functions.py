"""Kernels against their definitions, document by document."""

import numpy as np
import pytest
import scipy.sparse

from ranksvm.exceptions import DataError
from ranksvm.kernels import KERNELS, kernel_named

GAMMA, DEGREE, COEF0 = 0.3, 2, 0.7

DEFINITIONS = {
    "rbf": lambda x, z: np.exp(-GAMMA * np.sum((x - z) ** 2)),
    "laplacian": lambda x, z: np.exp(-GAMMA * np.sum(np.abs(x - z))),
    "poly": lambda x, z: (GAMMA * (x @ z) + COEF0) ** DEGREE,
    "linear": lambda x, z: x @ z,
    "cosine": lambda x, z: x @ z / np.sqrt((x @ x) * (z @ z)),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, scipy.sparse.csr_matrix])
def test_values_are_those_of_the_definition(name, storage):
    random = np.random.default_rng(0)
    X, Z = random.normal(size=(7, 4)), random.normal(size=(5, 4))
    kernel = kernel_named(name, gamma=GAMMA, degree=DEGREE, coef0=COEF0)
    expected = [[DEFINITIONS[name](x, z) for z in Z] for x in X]
    assert np.allclose(kernel.block(storage(X), storage(Z)), expected, rtol=1e-12)
    assert np.allclose(kernel.diagonal(storage(X)), [DEFINITIONS[name](x, x) for x in X], rtol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_a_common_offset_costs_no_digits(name):
    random = np.random.default_rng(1)
    # exact in binary, so that the offset itself rounds nothing
    X = np.round(random.normal(size=(20, 3)) * 1024) / 1024
    kernel = kernel_named(name, gamma=0.5)
    assert np.allclose(kernel.block(X + 2.0**30, X + 2.0**30), kernel.block(X, X), rtol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
def test_documents_near_each_other_far_from_the_rest(storage):
    # squared norms of 1e10, and so round-off of 1e-6, beside distances of 1e-8 and 0
    random = np.random.default_rng(4)
    X = np.repeat(1e5 * random.normal(size=(4, 3)), 3, axis=0)
    X[::3] += 2.0**-14 * random.integers(-1, 2, size=(4, 3))
    gamma = 1e8
    expected = np.exp(-gamma * np.square(X[:, np.newaxis] - X).sum(axis=2))
    assert 1.0 > np.min(expected[:3, :3]) > 0.0
    np.testing.assert_allclose(kernel_named("rbf", gamma=gamma).block(storage(X), storage(X)), expected, rtol=1e-3)


@pytest.mark.parametrize("far", [1.0, 1e8, 1e15])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_round_off_of_values_of_laplacian(far, dtype, sparse):
    """Two groups of documents far from each other: only for sparse rows does their distance limit the precision."""
    random, n = np.random.default_rng(5), 40
    X = (random.normal(size=(60, n)) + far * random.choice([-1.0, 1.0], (60, 1))).astype(dtype)
    exact = X.astype(np.longdouble)
    for gamma in (1e-3, 0.02, 1.0):
        expected = np.exp(-np.longdouble(gamma) * np.abs(exact[:, np.newaxis] - exact).sum(axis=2))
        kernel = kernel_named("laplacian", gamma=gamma)
        rows = scipy.sparse.csr_array(X) if sparse else X
        bound = kernel.value_error(n, float(np.square(exact).sum(axis=1).max()), sparse)
        assert np.abs(kernel.block(rows, rows) - expected).max() <= bound
        assert bound < 1e-14 or sparse


def test_a_callable_takes_and_returns_arrays():
    X = np.random.default_rng(2).normal(size=(150, 4))
    kernel = kernel_named(lambda A, B: np.tanh(A @ B.T))
    assert np.allclose(kernel.block(X, X[:5]), np.tanh(X @ X[:5].T))
    assert np.allclose(kernel.diagonal(X), np.tanh(np.sum(X * X, axis=1)))


def test_a_callable_that_returns_another_shape_is_named():
    kernel = kernel_named(lambda A, B: np.ones(len(A)))
    with pytest.raises(DataError, match=r"must have shape \(6, 2\), got \(6,\)"):
        kernel.block(np.ones((6, 3)), np.ones((2, 3)))


def test_a_row_of_zeros_has_cosine_zero():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    with_stored_zeros = scipy.sparse.csr_array((X.ravel(), [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    for rows in (X, scipy.sparse.csr_array(X), with_stored_zeros):
        assert kernel_named("cosine").diagonal(rows).tolist() == [0.0, 1.0]
        assert np.allclose(kernel_named("cosine").block(rows, rows), np.diag([0.0, 1.0]))


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
def test_cosines_of_small_and_large_rows(storage):
    random = np.random.default_rng(4)
    X = random.normal(size=(8, 3)) + 1.0
    kernel, expected = kernel_named("cosine"), [[DEFINITIONS["cosine"](x, z) for z in X] for x in X]
    scaled = storage(X * 10.0 ** np.array([0, -10, -16, -50, -200, -305, 100, 300])[:, np.newaxis])
    assert np.allclose(kernel.block(scaled, scaled), expected, rtol=1e-12)
    assert np.array_equal(kernel.diagonal(scaled), np.ones(8))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
def test_kernels_with_no_documents(name, storage):
    X = storage(np.ones((3, 2)))
    assert kernel_named(name).block(X, X[:0]).shape == (3, 0)
    assert kernel_named(name).block(X[:0], X).shape == (0, 3)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 0.5])
def test_powers_of_any_degree(degree):
    random = np.random.default_rng(3)
    X, Z = random.normal(size=(30, 4)), random.normal(size=(5, 4))
    # a fraction of a negative number is none
    coef0 = 0.3 if degree == int(degree) else 40.0
    values = kernel_named("poly", gamma=0.5, degree=degree, coef0=coef0).block(X, Z)
    np.testing.assert_allclose(values, (0.5 * X @ Z.T + coef0) ** degree, rtol=1e-12)


def test_values_that_are_not_finite_are_refused():
    X = np.array([[1.0, -2.0], [-1.0, 1.0]])
    with pytest.raises(DataError, match="kernel 'poly' is NaN for some of the documents"):
        kernel_named("poly", degree=0.5, coef0=0.0).block(X, X)
    with pytest.raises(DataError, match="kernel 'poly' is infinite"):
        kernel_named("poly", degree=3).block(X * 1e120, X)
    with pytest.raises(DataError, match="kernel 'poly' is infinite"):
        kernel_named("poly", degree=3).diagonal(X * 1e120)
    with pytest.raises(DataError, match="kernel 'callable' is NaN"):
        kernel_named(lambda A, B: np.log(A @ B.T)).block(X, X)


def test_only_some_kernels_may_be_indefinite():
    for name in KERNELS:
        assert not kernel_named(name, gamma=0.5, degree=3, coef0=0.0).may_be_indefinite
    assert kernel_named("poly", coef0=-1.0).may_be_indefinite
    assert kernel_named("poly", degree=1.5).may_be_indefinite
    assert kernel_named(lambda A, B: A @ B.T).may_be_indefinite
