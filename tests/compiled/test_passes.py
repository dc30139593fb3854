"""Passes over the rows, against the same sums over whole matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm._compiled import passes
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.losses import SquaredHinge

N, N_FEATURES = 60, 7


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, N_FEATURES)), rng.integers(0, 3, N).astype(float)
    qid = np.repeat(np.arange(8), [1, 9, 20, 2, 3, 14, 1, 10])
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid), y)
    return X, SquaredHinge(pairs), rng.normal(size=N_FEATURES)


def shares_of(*shares):
    """Shares of ranges of queries."""
    ranges = np.array([queries for share in shares for queries in share], dtype=np.int64).reshape(-1, 2)
    return passes.QueryShares(ranges, np.cumsum([len(share) for share in shares], dtype=np.int64))


WHOLE = shares_of([(0, 8)])


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("rows_at_once", [1, 10, 25, 1000])
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_a_pass_is_products_operator_and_products(data, stored, rows_at_once, n_threads):
    X, loss, w = data
    scores, gradient = X @ w, np.empty(N)
    whole = loss.evaluation(loss.new_state(), None)(0, 8, scores, gradient)
    products = as_design_matrix(stored(X)).products()
    operator = loss.evaluation(loss.new_state(), None)
    pointers, v = loss.pairs.pointers, np.full(N, np.nan)
    shares = shares_of([(0, 1), (1, 3)], [(3, 3)], [(3, 8)])
    totals = np.zeros((3, N_FEATURES))
    totals[0] = 1.0
    sums = passes.pass_over(products, operator, shares, rows_at_once, w, v, totals, n_threads)
    assert sums[0] == pytest.approx(whole[0], rel=1e-13)
    np.testing.assert_allclose(v, scores, rtol=1e-13)
    np.testing.assert_allclose(totals[0], 1.0 + X.T @ gradient, rtol=1e-12)
    # scores that nobody asks for, scores that are given, and some of the queries
    for w_and_v in ((w, None), (None, scores)):
        totals = np.zeros((1, N_FEATURES))
        passes.pass_over(products, operator, WHOLE, rows_at_once, *w_and_v, totals, n_threads)
        np.testing.assert_allclose(totals[0], X.T @ gradient, rtol=1e-12)
    totals = np.zeros((2, N_FEATURES))
    passes.pass_over(products, operator, shares_of([(1, 3)], [(4, 5)]), rows_at_once, w, None, totals, n_threads)
    some = np.r_[pointers[1] : pointers[3], pointers[4] : pointers[5]]
    np.testing.assert_allclose(totals[0], X[some].T @ gradient[some], rtol=1e-12, atol=1e-12)


def test_no_shares(data):
    X, loss, w = data
    operator, totals = loss.evaluation(loss.new_state(), None), np.ones((1, 7))
    arguments = as_design_matrix(X).products(), operator, shares_of(), 10, w, None, totals, 2
    assert passes.pass_over(*arguments) == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(totals, 1.0)


def test_lengths_are_checked(data):
    X, loss, w = data
    products, operator = as_design_matrix(X).products(), loss.evaluation(loss.new_state(), None)
    for arguments, found in (
        ((w[1:], None, np.zeros((1, 7))), "features has length 6, but 7"),
        ((w, np.empty(59), np.zeros((1, 7))), "rows has length 59, but 60"),
        ((w, None, np.zeros((1, 6))), "features has length 6, but 7"),
        ((w, None, np.zeros((2, 7))), "totals has length 2, but 1"),
    ):
        with pytest.raises(ValueError, match=found):
            passes.pass_over(products, operator, WHOLE, 10, *arguments, 1)
    with pytest.raises(ValueError, match="needs w, or v"):
        passes.pass_over(products, operator, WHOLE, 10, None, None, np.zeros((1, 7)), 1)
    with pytest.raises(ValueError, match="made by a loss"):
        passes.pass_over(products, passes.QueryOperator(), WHOLE, 10, w, None, np.zeros((1, 7)), 1)
    nine = shares_of([(0, 9)])
    with pytest.raises(ValueError, match=r"0 \.\. 9 of queries"):
        passes.pass_over(products, operator, nine, 10, w, None, np.zeros((1, 7)), 1)
    few = as_design_matrix(X[:50]).products()
    with pytest.raises(ValueError, match=r"0 \.\. 60 of positions"):
        passes.pass_over(few, operator, WHOLE, 10, w, None, np.zeros((1, 7)), 1)


@pytest.mark.parametrize(
    ("ranges", "ends", "message"),
    [
        ([[0, 3], [3, 2]], [2], r"range 3 \.\. 2 of queries"),
        ([[-1, 3]], [1], r"range -1 \.\. 3 of queries"),
        ([[0, 3]], [2], r"range 0 \.\. 2 of ranges"),
        ([[0, 3], [3, 4]], [1], "ranges in shares has length 1, but 2"),
        ([[0, 3], [3, 4]], [2, 1], r"range 2 \.\. 1 of ranges"),
        ([[0, 3], [2, 4]], [2], "must be ascending"),
        ([[0, 3, 4]], [1], "a range of queries has length 3, but 2"),
    ],
)
def test_shares_are_checked(ranges, ends, message):
    with pytest.raises(ValueError, match=message):
        passes.QueryShares(np.array(ranges), np.array(ends))
