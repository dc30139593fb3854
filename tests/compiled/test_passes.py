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
    for arguments, found in (
        ((w[1:], None, np.zeros(7)), "features has length 6, but 7"),
        ((w, np.empty(59), np.zeros(7)), "rows has length 59, but 60"),
        ((w, None, np.zeros(6)), "features has length 6, but 7"),
    ):
        with pytest.raises(ValueError, match=found):
            passes.pass_over(products, operator, loss.pairs.pointers, 0, 8, 10, *arguments)
    with pytest.raises(ValueError, match=r"0 \.\. 9 of queries"):
        passes.pass_over(products, operator, loss.pairs.pointers, 0, 9, 10, w, None, np.zeros(7))
    few = as_design_matrix(X[:50]).products()
    with pytest.raises(ValueError, match=r"0 \.\. 60 of positions"):
        passes.pass_over(few, operator, loss.pairs.pointers, 0, 8, 10, w, None, np.zeros(7))


def test_errors_of_python_pass_through(data):
    X, loss, w = data

    def fails(first, last, v_range, u_range):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        passes.pass_over(as_design_matrix(X).products(), fails, loss.pairs.pointers, 0, 8, 10, w, None, np.zeros(7))
