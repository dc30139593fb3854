"""Explicit Hessians, against the same products of whole matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm._compiled import hessian, passes
from ranksvm.data import ComparablePairs, PairList, Queries, TwoBlocks, as_design_matrix
from ranksvm.data.design_matrix import TwoBlockDesign
from ranksvm.losses import SquaredHinge

SIZES = [1, 9, 20, 2, 3, 14, 1, 10]
N = sum(SIZES)
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 9, 16, 23, 24, 31, 46, 64, 97, 128, 136])
@pytest.mark.parametrize("n_rows", [1, 31, 32, 33, 70])
def test_products_of_rows(dtype, n, n_rows):
    rng = np.random.default_rng(n)
    A, B = rng.normal(size=(2, n_rows, n)).astype(dtype)
    exact = {"A'A": A.astype(float).T @ A.astype(float), "A'B": A.astype(float).T @ B.astype(float)}
    for name, other in (("A'A", A), ("A'B", B)):
        total = np.ones((n, n))
        hessian.add_product(A, other, total)
        expected = 1.0 + 0.5 * (exact[name] + exact[name].T)
        np.testing.assert_allclose(total, expected, atol=TOLERANCE[dtype] * n_rows)
        np.testing.assert_array_equal(total, total.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_many_rows_are_summed_up_in_float64(dtype):
    A = np.full((3000, 5), 1.1, dtype=dtype)
    total = np.zeros((5, 5))
    hessian.add_product(A, A, total)
    np.testing.assert_allclose(total, 3000 * float(A[0, 0]) ** 2, rtol=20 * np.finfo(dtype).eps)
    hessian.add_product(A[:0], A[:0], total)
    hessian.add_product(A[:, :0].copy(), A[:, :0].copy(), np.zeros((0, 0)))


def loss_over(pairs_are, y, qid, rng):
    queries = Queries.from_qid(qid)
    if pairs_are == "implied":
        return SquaredHinge(ComparablePairs.from_labels(queries, y))
    n_pairs = 30 if pairs_are == "a few listed" else 600
    start = np.repeat(queries.pointers[:-1], SIZES)
    size = np.repeat(SIZES, SIZES)
    first = rng.choice(np.flatnonzero(size > 1), n_pairs)
    other = start[first] + (first - start[first] + 1 + rng.integers(0, size[first] - 1)) % size[first]
    return SquaredHinge(PairList.from_pairs(queries, np.column_stack([first, other])))


def stored(X, storage):
    if storage == "csr":
        return as_design_matrix(sp.csr_array(X))
    if storage == "two blocks":
        return TwoBlockDesign(TwoBlocks(X[:20].copy(), X[20:].copy()))
    return as_design_matrix(X)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("rows_at_once", [1, 12, 1000])
@pytest.mark.parametrize("storage", ["dense", "csr", "two blocks"])
@pytest.mark.parametrize("pairs_are", ["implied", "a few listed", "many listed"])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_the_hessian_of_shares(storage, pairs_are, rows_at_once, n_threads, scale):
    """Where all pairs are active, as at 0, and where they are not; in each precision."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(N, 7)) + 10.0, rng.integers(0, 3, N).astype(float), np.repeat(range(8), SIZES)
    loss = loss_over(pairs_are, y, qid, rng)
    pointers, rows = loss.pairs.pointers, loss.pairs.rows
    n_rows, n_queries = loss.pairs.n_rows, loss.pairs.n_queries
    state, scores = loss.new_state(), rng.normal(size=n_rows) * scale
    loss.evaluation(state, None)(0, n_queries, scores, np.empty(n_rows))
    operator = loss.hessian(state)
    H = np.empty((n_rows, n_rows))
    for i in range(n_rows):
        operator(0, n_queries, np.eye(n_rows)[i], H[i])
    chosen = X if rows is None else X[rows]
    cuts = [(0, 1), (1, 3), (3, 3), (3, n_queries)]
    shares = passes.QueryShares(np.array(cuts, dtype=np.int64), np.array([2, 3, 4], dtype=np.int64))
    # storage of float32 with float32 rows and products; of float64 with float32 products, and without
    for dtype, single, tolerance in ((np.float32, True, 1e-3), (np.float64, True, 1e-3), (np.float64, False, 1e-9)):
        design = stored(X.astype(dtype), storage)
        totals = np.zeros((3, 7, 7))
        arguments = shares, rows_at_once, single, dtype is np.float32, totals, n_threads
        hessian.hessian_over(design.products(rows), operator, *arguments)
        expected = chosen.T @ H @ chosen
        np.testing.assert_allclose(totals[0], expected, atol=tolerance * np.abs(expected).max())
        np.testing.assert_array_equal(totals[0], totals[0].T)
        diagonals = np.zeros((3, 7))
        hessian.diagonal_over(design.products(rows), operator, shares, rows_at_once, diagonals, n_threads)
        np.testing.assert_allclose(diagonals[0], np.diagonal(expected), rtol=1e-9 if dtype is np.float64 else 1e-3)
    some = np.zeros((1, 7, 7))
    part = passes.QueryShares(np.array([[1, 3]], dtype=np.int64), np.array([1], dtype=np.int64))
    hessian.hessian_over(design.products(rows), operator, part, 5, False, False, some, 1)
    span = slice(pointers[1], pointers[3])
    np.testing.assert_allclose(some[0], chosen[span].T @ H[span, span] @ chosen[span], atol=1e-9)


def test_a_hessian_that_overflows_float32_shows_it():
    X = np.full((4, 3), 1e30)
    X[0] = -1e30
    loss = SquaredHinge(ComparablePairs.from_labels(Queries.from_qid(None, 4), np.arange(4.0)))
    state = loss.new_state()
    loss.evaluation(state, None)(0, 1, np.zeros(4), np.empty(4))
    shares = passes.QueryShares(np.array([[0, 1]], dtype=np.int64), np.array([1], dtype=np.int64))
    totals = np.zeros((1, 3, 3))
    products = as_design_matrix(X.astype(np.float32)).products()
    hessian.hessian_over(products, loss.hessian(state), shares, 10, True, True, totals, 1)
    assert not np.isfinite(totals).any()
