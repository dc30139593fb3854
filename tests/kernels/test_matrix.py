"""Kernel matrices against dense ones."""

import numpy as np
import pytest
import scipy.sparse

from ranksvm.kernels import KERNELS, kernel_matrix, kernel_named

PLENTY = 1 << 30


def documents(n_rows, n_features=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def check(matrix, expected, rtol):
    """Products, columns and the diagonal are those of a dense matrix."""
    rng = np.random.default_rng(1)
    n = len(expected)
    scale = np.abs(expected).max(initial=0.0)
    assert matrix.n_rows == n
    for made in range(1, 3):
        b = rng.normal(size=n)
        np.testing.assert_allclose(matrix.product(b), expected @ b, rtol=rtol, atol=rtol * scale * n)
        assert matrix.n_products == made
    positions = rng.permutation(n)[: max(1, n // 3)]
    np.testing.assert_allclose(matrix.columns(positions), expected[:, positions], rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(matrix.diagonal(), np.diagonal(expected), rtol=rtol, atol=rtol * scale)
    # the values are those of the product
    columns = matrix.columns(np.arange(n))
    np.testing.assert_array_equal(columns, columns.T)
    np.testing.assert_array_equal(np.diagonal(columns), matrix.diagonal())
    np.testing.assert_allclose(matrix.product(b), columns @ b, rtol=1e-12, atol=1e-12 * scale * n)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_the_dense_matrix(name, storage, dtype):
    X = documents(150)
    kernel = kernel_named(name, gamma=0.3, degree=2, coef0=0.5)
    matrix = kernel_matrix(kernel, storage(X), memory=PLENTY, dtype=dtype, n_threads=2)
    check(matrix, kernel.block(X, X), 1e-7 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 127, 128, 200, 1100])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_any_number_of_rows_and_threads(n_rows, n_threads):
    X = documents(n_rows)
    kernel = kernel_named("rbf", gamma=0.2)
    check(kernel_matrix(kernel, X, memory=PLENTY, n_threads=n_threads), kernel.block(X, X), 1e-7)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_what_does_not_fit_is_made_anew(name, storage, n_threads):
    X = storage(documents(900))
    kernel = kernel_named(name, gamma=0.3, degree=2, coef0=0.5)
    whole = kernel_matrix(kernel, X, memory=PLENTY, n_threads=n_threads)
    expected = whole.columns(np.arange(900))
    kept = set()
    for memory in (144_000 + 56_000 * n_threads, 1_000_000, 1_600_000):
        matrix = kernel_matrix(kernel, X, memory=memory, n_threads=n_threads)
        kept.add(matrix.product_bytes)
        assert matrix.product_bytes < whole.product_bytes
        check(matrix, expected, 1e-12)
    assert min(kept) == 0
    assert len(kept) == 3
