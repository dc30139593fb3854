"""Passes over the rows, against the same sums over whole matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm._compiled import passes
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.losses import SquaredHinge

N, N_FEATURES = 60, 7


class InPython:
    """Compiled products or a compiled operator behind a plain object, which takes the other way through a pass."""

    def __init__(self, compiled):
        self.compiled = compiled

    def __call__(self, *arguments):
        return self.compiled(*arguments)

    def __getattr__(self, name):
        return getattr(self.compiled, name)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, N_FEATURES)), rng.integers(0, 3, N).astype(float)
    qid = np.repeat(np.arange(8), [1, 9, 20, 2, 3, 14, 1, 10])
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid), y)
    return X, SquaredHinge(pairs), rng.normal(size=N_FEATURES)


@pytest.mark.parametrize("rows_at_once", [1, 10, 25, 1000])
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("wrap", [lambda part: part, InPython])
def test_a_pass_is_products_operator_and_products(data, stored, rows_at_once, wrap):
    X, loss, w = data
    scores, gradient = X @ w, np.empty(N)
    whole = loss.evaluation(loss.new_state(), None)(0, 8, scores, gradient)
    products = wrap(as_design_matrix(stored(X)).products())
    operator = wrap(loss.evaluation(loss.new_state(), None))
    pointers, total, v = loss.pairs.pointers, np.ones(N_FEATURES), np.full(N, np.nan)
    value = 0.0
    for first, last in ((0, 3), (3, 3), (3, 8)):
        v_range = v[pointers[first] : pointers[last]]
        value += passes.pass_over(products, operator, pointers, first, last, rows_at_once, w, v_range, total)[0]
    assert value == pytest.approx(whole[0], rel=1e-13)
    np.testing.assert_allclose(v, scores, rtol=1e-13)
    np.testing.assert_allclose(total, 1.0 + X.T @ gradient, rtol=1e-12)
    # scores that nobody asks for, and scores that are given
    for arguments in ((w, None), (None, scores)):
        total = np.zeros(N_FEATURES)
        passes.pass_over(products, operator, pointers, 0, 8, rows_at_once, *arguments, total)
        np.testing.assert_allclose(total, X.T @ gradient, rtol=1e-12)


def test_lengths_are_checked(data):
    X, loss, w = data
    products, operator = as_design_matrix(X).products(), loss.evaluation(loss.new_state(), None)
    pointers = loss.pairs.pointers
    with pytest.raises(ValueError, match="6 weights for 7 features"):
        products.scores(0, 10, w[1:], np.empty(10))
    with pytest.raises(ValueError, match="9 rows for the positions 0 to 10 of 60"):
        products.accumulate(0, 10, np.empty(9), np.zeros(7))
    with pytest.raises(ValueError, match="rows for the positions 55 to 61 of 60"):
        products.scores(55, 61, w, np.empty(10))
    with pytest.raises(ValueError, match="queries 0 to 9 of 8"):
        operator(0, 9, np.empty(60), np.empty(60))
    with pytest.raises(ValueError, match="9 rows for the 10 of these queries"):
        operator(0, 2, np.empty(10), np.empty(9))
    for arguments in ((w[1:], None, np.zeros(7)), (w, np.empty(59), np.zeros(7)), (w, None, np.zeros(6))):
        with pytest.raises(ValueError, match=r"rows for the|weights for"):
            passes.pass_over(products, operator, pointers, 0, 8, 10, *arguments)


def test_errors_of_python_pass_through(data):
    X, loss, w = data

    def fails(first, last, v_range, u_range):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        passes.pass_over(as_design_matrix(X).products(), fails, loss.pairs.pointers, 0, 8, 10, w, None, np.zeros(7))
