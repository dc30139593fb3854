"""Checks that every kernel matrix must pass, and the documents that they use."""

import numpy as np
import scipy.sparse

PLENTY = 1 << 30
STORAGES = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": lambda X: scipy.sparse.csr_matrix(X * (np.abs(X) > 2.0)),
    "sparse, mostly full": scipy.sparse.csr_array,
    "sparse, values in two": lambda X: in_two(scipy.sparse.csr_array(X * (np.abs(X) > 2.0))),
}


def in_two(X):
    """The same CSR matrix, with each value stored as two halves, and columns not in order."""
    backwards = np.repeat(np.arange(X.nnz)[::-1], 2)
    rows = X.tocoo().row[backwards]
    order = np.argsort(rows, kind="stable")
    return type(X)((X.data[backwards][order] / 2, X.indices[backwards][order], X.indptr * 2), shape=X.shape)


def documents(n_rows, n_features=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def full(X):
    return np.asarray(X.todense(), dtype=np.float64) if scipy.sparse.issparse(X) else X.astype(np.float64)


def check(matrix, expected, rtol):
    """Check that products, columns and the diagonal equal those of the dense matrix ``expected``."""
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


def check_columns_are_those_of_the_product(matrix):
    columns = matrix.columns(np.arange(matrix.n_rows))
    np.testing.assert_array_equal(columns, columns.T)
    np.testing.assert_array_equal(np.diagonal(columns), matrix.diagonal())
    b = np.random.default_rng(2).normal(size=matrix.n_rows)
    scale = np.abs(columns).max() * matrix.n_rows
    np.testing.assert_allclose(matrix.product(b), columns @ b, rtol=1e-13, atol=1e-13 * scale)
