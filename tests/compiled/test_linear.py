"""Products of stored rows with vectors, against NumPy in float64."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from ranksvm._compiled import linear
from ranksvm.data import TwoBlockDesign, TwoBlocks, as_design_matrix

STORAGES = {
    "dense": lambda X: X,
    "two blocks": lambda X: TwoBlocks(X[: (len(X) + 1) // 3].copy(), X[(len(X) + 1) // 3 :].copy()),
    "csr": sp.csr_array,
    "csr-int64": lambda X: _wide(sp.csr_array(X)),
    "csr-unsorted": lambda X: _reversed(sp.csr_array(X)),
}


def _wide(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _reversed(X):
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[a:b], X.data[a:b] = X.indices[a:b][::-1].copy(), X.data[a:b][::-1].copy()
    X.has_sorted_indices = False
    return X


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=30, deadline=None)
@given(st.integers(2, 37), st.integers(1, 37), st.booleans(), st.integers(0, 2**32))
def test_products_are_those_of_numpy(storage, dtype, n_rows, n_features, gathered, seed):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.5)).astype(dtype)
    stored = STORAGES[storage](X.copy())
    design = TwoBlockDesign(stored) if isinstance(stored, TwoBlocks) else as_design_matrix(stored)
    rows = rng.permutation(n_rows) if gathered else None
    start, stop = sorted(rng.integers(0, n_rows + 1, 2))
    part = (X if rows is None else X[rows])[start:stop].astype(np.float64)
    w, u = rng.normal(size=n_features), rng.normal(size=stop - start) * (rng.random(stop - start) < 0.6)
    out = np.full(stop - start, np.nan)
    products = design.products(rows)
    products.scores(start, stop, w, out)
    np.testing.assert_allclose(out, part @ w, rtol=1e-13, atol=1e-13)
    total = np.ones(n_features)
    products.accumulate(start, stop, u, total)
    np.testing.assert_allclose(total, 1.0 + part.T @ u, rtol=1e-13, atol=1e-12)
    total = np.ones(n_features)
    design.accumulate_squares(rows, start, stop, u, total)
    np.testing.assert_allclose(total, 1.0 + (part**2).T @ u, rtol=1e-13, atol=1e-12)
    np.testing.assert_array_equal(design.largest(2), np.abs(X).max(axis=0))
    for more in (0, 3):
        block = np.full((stop - start, n_features + more), np.nan)
        design.gather(rows, start, stop, block)
        np.testing.assert_array_equal(block[:, :n_features], part)
        np.testing.assert_array_equal(block[:, n_features:], 0.0)


@pytest.mark.parametrize("storage", ["dense", "two blocks"])
@settings(max_examples=30, deadline=None)
@given(st.integers(2, 700), st.integers(1, 37), st.booleans(), st.integers(0, 2**32))
def test_products_in_float32_are_those_of_numpy_to_its_digits(storage, n_rows, n_features, gathered, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    stored = STORAGES[storage](X.copy())
    design = TwoBlockDesign(stored) if isinstance(stored, TwoBlocks) else as_design_matrix(stored)
    rows = rng.permutation(n_rows) if gathered else None
    start, stop = sorted(rng.integers(0, n_rows + 1, 2))
    part = np.abs(X if rows is None else X[rows])[start:stop].astype(np.float64)
    w, u = rng.normal(size=n_features), rng.normal(size=stop - start) * (rng.random(stop - start) < 0.6)
    exact, single = design.products(rows), design.products(rows, double=False)
    out = np.empty((2, stop - start))
    exact.scores(start, stop, w, out[0])
    single.scores(start, stop, w, out[1])
    eps = np.finfo(np.float32).eps
    assert (np.abs(out[1] - out[0]) <= n_features * eps * (part @ np.abs(w))).all()
    total = np.ones((2, n_features))
    exact.accumulate(start, stop, u, total[0])
    single.accumulate(start, stop, u, total[1])
    assert (np.abs(total[1] - total[0]) <= (stop - start + 4) * eps * (part.T @ np.abs(u))).all()


@pytest.mark.parametrize("n_features", [3, 8, 43, 64])
def test_rows_in_memory_have_the_products_of_those_in_a_cache(n_features):
    """In order, with gaps and in disorder: the scores of float64 sums are the same bit by bit."""
    rng = np.random.default_rng(n_features)
    n_rows = linear.NEAR_BYTES // (4 * n_features) + 1000
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    w, u = rng.normal(size=n_features), rng.normal(size=100)
    design = as_design_matrix(X)
    for rows in (None, np.sort(rng.permutation(n_rows)[:-9]), rng.permutation(n_rows)):
        start = n_rows // 2
        part = as_design_matrix((X if rows is None else X[rows])[start : start + 100])
        for double in (True, False):
            out, total = np.empty((2, 100)), np.zeros((2, n_features))
            products = design.products(rows, double)
            products.scores(start, start + 100, w, out[0])
            part.products(double=double).scores(0, 100, w, out[1])
            np.testing.assert_array_equal(out[0], out[1])
            products.accumulate(start, start + 100, u, total[0])
            part.products(double=double).accumulate(0, 100, u, total[1])
            np.testing.assert_array_equal(total[0], total[1])


@pytest.mark.parametrize("storage", ["csr", "csr-int64", "csr-unsorted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 3), (75, 40), (70, 200), (40, 0)])
def test_inner_products_of_sparse_rows_are_those_of_numpy(storage, dtype, shape):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=shape) * (rng.random(shape) < 0.3)).astype(dtype)
    design = as_design_matrix(STORAGES[storage](X))
    rows = rng.integers(0, shape[0], 50)
    for taken, positions in ((X, None), (X[rows], rows)):
        expected = taken.astype(np.float64) @ taken.astype(np.float64).T
        np.testing.assert_allclose(design.gram(positions), expected, rtol=1e-12, atol=1e-13)


def test_a_column_of_a_sparse_row_may_be_stored_in_parts():
    parts = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 1]), np.array([0, 2, 3])), shape=(2, 3))
    products = np.empty((2, 2))
    linear.sparse_gram(parts.data, parts.indices, parts.indptr, 3, None, products)
    np.testing.assert_array_equal(products, [[9.0, 12.0], [12.0, 16.0]])


def test_rows_in_float64_have_no_products_in_float32():
    X, w = np.random.default_rng(0).normal(size=(100, 20)), np.random.default_rng(1).normal(size=20)
    out = np.empty((2, 100))
    for double, scores in zip((True, False), out, strict=True):
        as_design_matrix(X).products(double=double).scores(0, 100, w, scores)
    np.testing.assert_array_equal(out[0], out[1])


def test_sums_of_float32_are_in_float64():
    """1e8 + 1 - 1e8 is 0 in float32."""
    X = np.array([[1e8, 1.0, -1e8], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=np.float32)
    for stored in (X, sp.csr_array(X)):
        products, out, total = as_design_matrix(stored).products(), np.empty(3), np.zeros(3)
        products.scores(0, 3, np.ones(3), out)
        assert out[0] == 1.0
        products.accumulate(0, 3, np.array([1.0, -1e8, 0.0]), total)
        assert total[0] == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_value_that_is_not_finite_is_found_wherever_it_is(dtype):
    for size in (0, 1, 31, 32, 33, 100):
        values = np.random.default_rng(size).normal(size=size).astype(dtype) * 1e30
        assert linear.all_finite(values)
        for place in range(size):
            for bad in (np.nan, np.inf, -np.inf):
                spoilt = values.copy()
                spoilt[place] = bad
                assert not linear.all_finite(spoilt)


def test_centering_takes_the_mean_row_of_each_query():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3)) + 1e6
    pointers = np.array([0, 4, 4, 5, 15], dtype=np.int64)
    out = X.copy()
    linear.center_queries(pointers, 3, 4, out)
    np.testing.assert_allclose(out, X - X.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centering_leaves_nothing_of_a_constant_column(dtype):
    """Sums of 1.5e9 + 0.1 are rounded, and so would be their mean: time stamps in seconds are such features."""
    X = np.random.default_rng(0).integers(-9, 9, (61, 10)).astype(dtype)
    X[:, 3] = 1.5e9 + 0.1
    X[:, 5] += 2**20
    expected = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    linear.center_queries(np.array([0, 61], dtype=np.int64), 0, 1, X)
    np.testing.assert_array_equal(X[:, 3], 0.0)
    np.testing.assert_allclose(np.delete(X, 3, axis=1), np.delete(expected, 3, axis=1), atol=1e-5)


def test_what_is_stored_as_it_should_be_is_not_copied():
    X = np.zeros((4, 3), dtype=np.float32)
    assert as_design_matrix(X).X is X
    sparse = sp.csr_array(np.eye(4))
    assert np.shares_memory(as_design_matrix(sparse)._csr[0], sparse.data)
    assert as_design_matrix(np.zeros((4, 3), dtype=np.int8)).X.dtype == np.float64
    assert as_design_matrix(sp.csc_array(np.eye(3, dtype=np.int64)))._csr[0].dtype == np.float64
    empty, out = as_design_matrix(sp.csr_array((4, 3))), np.ones(4)
    empty.products().scores(0, 4, np.ones(3), out)
    np.testing.assert_array_equal(out, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_largest_values_tell_what_is_not_finite(dtype, bad):
    X = np.random.default_rng(0).normal(size=(50, 7)).astype(dtype)
    for n_threads in (1, 3):
        np.testing.assert_array_equal(as_design_matrix(X).largest(n_threads), np.abs(X).max(axis=0))
    X[17, 2] = bad
    found = as_design_matrix(X).largest(3)
    assert np.isnan(found[2])
    assert np.isfinite(np.delete(found, 2)).all()
