"""Products with one triangle of a symmetric matrix, and distances, against NumPy and SciPy in float64."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from scipy.linalg import block_diag
from scipy.spatial.distance import cdist

from ranksvm._compiled import kernel


def symmetric(n, dtype, seed):
    Q = np.random.default_rng(seed).normal(size=(n, n)).astype(dtype)
    return np.tril(Q) + np.tril(Q, -1).T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 150), st.sampled_from([1, 3, 8, 64]), st.integers(0, 2**32))
def test_products_of_panels_are_those_of_numpy(dtype, n, height, seed):
    rng = np.random.default_rng(seed)
    Q, b = symmetric(n, dtype, seed), rng.normal(size=n)
    n_panels = -(-n // height)
    bounds = [(start, min(start + height, n)) for start in range(0, n, height)]
    panels = np.concatenate([Q[start:stop, :stop].ravel() for start, stop in bounds])
    s, cuts = np.ones(n), np.sort(rng.integers(0, n_panels + 1, 2)).tolist()
    for first, last in zip([0, *cuts], [*cuts, n_panels], strict=True):
        kernel.panels_product(panels, n, height, first, last, b, s)
    np.testing.assert_allclose(s, 1.0 + Q.astype(np.float64) @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 2**32))
def test_products_of_blocks_are_those_of_numpy(dtype, n_rows, n_columns, seed):
    rng = np.random.default_rng(seed)
    n = n_rows + n_columns + 10
    row, column = n_columns + 5, 3
    Q, b = symmetric(n, dtype, seed), rng.normal(size=n)
    rows, columns = slice(row, row + n_rows), slice(column, column + n_columns)
    held = np.zeros((n, n))
    held[rows, columns] = Q[rows, columns]
    s = np.ones(n)
    kernel.block_product(np.ascontiguousarray(Q[rows, columns]), row, column, b, s)
    np.testing.assert_allclose(s, 1.0 + (held + held.T) @ b, rtol=1e-12, atol=1e-12)
    s = np.ones(n)
    kernel.square_product(np.ascontiguousarray(Q[rows, rows]), row, b, s)
    expected = np.ones(n)
    expected[rows] += Q[rows, rows].astype(np.float64) @ b[rows]
    np.testing.assert_allclose(s, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stored", [np.float32, np.float64])
@pytest.mark.parametrize("wanted", [np.float32, np.float64])
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.sampled_from([1, 3, 8, 64]), st.integers(0, 2**32))
def test_values_among_some_rows(stored, wanted, n, height, seed):
    rng = np.random.default_rng(seed)
    Q, positions = symmetric(n, stored, seed), np.flatnonzero(rng.random(n) < 0.7)
    panels = np.concatenate(
        [Q[start : start + height, : min(start + height, n)].ravel() for start in range(0, n, height)]
    )
    out, cut = np.zeros((len(positions),) * 2, dtype=wanted), int(rng.integers(0, len(positions) + 1))
    for first, last in ((0, cut), (cut, len(positions))):
        kernel.gather_rows(panels, n, height, positions, first, last, out)
    np.testing.assert_array_equal(np.tril(out), np.tril(Q[np.ix_(positions, positions)].astype(wanted)))


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3)), max_size=6), st.floats(0, 10), st.integers(0, 2**32))
def test_the_form_of_blocks_is_that_of_numpy(dtype, rtol, sizes, C, seed):
    rng = np.random.default_rng(seed)
    blocks = [np.triu(rng.normal(size=(n, n)))[: max(0, n - fewer)].astype(dtype) for n, fewer in sizes]
    U = block_diag(*blocks) if blocks else np.zeros((0, 0))
    row, column = (np.append(0, np.cumsum([b.shape[axis] for b in blocks], dtype=np.int64)) for axis in (0, 1))
    rank, n = int(row[-1]), int(column[-1])
    Q = symmetric(n, dtype, seed)
    expected = np.eye(rank) + np.float64(dtype(C)) * U.astype(np.float64) @ Q @ U.T
    values = np.concatenate([b.ravel() for b in blocks]) if blocks else np.zeros(0, dtype)
    out, held = np.zeros((rank, rank), dtype), np.tril(Q)
    cut = int(rng.integers(0, len(blocks) + 1))
    for first, last in ((0, cut), (cut, len(blocks))):
        kernel.form_blocks(held, values, row, column, first, last, C, out)
    np.testing.assert_allclose(np.tril(out), np.tril(expected), rtol=rtol, atol=rtol * (1.0 + C * n))


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 600), st.integers(1, 256), st.integers(0, 40), st.integers(0, 2**32))
def test_rows_of_a_factor_are_those_of_numpy(dtype, rtol, start, size, below, seed):
    rng, stop, n = np.random.default_rng(seed), start + size, start + size + below
    matrix = rng.normal(size=(n, n)).astype(dtype)
    inverse = np.tril(rng.normal(size=(size, size))).astype(dtype)
    exact, out = matrix.astype(np.float64), matrix.copy()
    left = kernel.packed_rows(out[start:stop, :start])
    kernel.factor_rows(out, stop, n, start, stop, left, kernel.packed_rows(inverse))
    expected = (exact[stop:, start:stop] - exact[stop:, :start] @ exact[start:stop, :start].T) @ inverse.T
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(out[stop:, start:stop], expected, rtol=0, atol=rtol * scale)
    out[stop:, start:stop] = matrix[stop:, start:stop]
    np.testing.assert_array_equal(out, matrix)  # nothing else is written
    kernel.factor_rows(out, start, stop, start, stop, left)
    expected = exact[start:stop, start:stop] - exact[start:stop, :start] @ exact[start:stop, :start].T
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(np.tril(out[start:stop, start:stop]), np.tril(expected), rtol=0, atol=rtol * scale)
    out[start:stop, start:stop] = matrix[start:stop, start:stop]
    np.testing.assert_array_equal(out, matrix)


def test_sums_of_float32_are_in_float64():
    """1e8 + 1 - 1e8 is 0 in float32."""
    block, s = np.array([[1e8, 1.0, -1e8]], dtype=np.float32), np.zeros(4)
    kernel.block_product(block, 3, 0, np.array([1.0, 1.0, 1.0, 2.0]), s)
    np.testing.assert_array_equal(s, [2e8, 2.0, -2e8, 1.0])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.floats(0, 1), st.integers(0, 2**32))
def test_distances_are_those_of_scipy(index, n_x, n_z, n_features, density, seed):
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density) for n in (n_x, n_z))
    expected = cdist(X, Z, "cityblock") if n_features else np.zeros((n_x, n_z))
    out = np.full((n_x, n_z), np.nan)
    kernel.dense_distances(X, Z, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)
    csr = []
    for rows in (sp.csr_array(X), sp.csr_array(Z)):
        csr += [rows.data, rows.indices.astype(index), rows.indptr.astype(index)]
    out = np.full((n_x, n_z), np.nan)
    kernel.sparse_distances(*csr, n_features, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)
