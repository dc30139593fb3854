"""What changes nothing about a kernel model: the order of rows, names of queries, rows without pairs, repetition."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from ranksvm import KernelRankSVM

KERNELS = st.sampled_from(["rbf", "poly", "linear", "laplacian", "cosine"])
LOSSES = st.sampled_from(["squared_hinge", "hinge", "huber"])
SEEDS = st.integers(0, 2**32 - 1)
TOL = 1e-7


def fitted(kernel, loss, X, y, qid, **weights):
    options = {"gamma": 0.2, "degree": 2, "tol": TOL, "kernel_dtype": "float64"}
    return KernelRankSVM(0.3, kernel=kernel, loss=loss, **options).fit(X, y, qid=qid, **weights)


def make(seed):
    """Small data with some equal documents, equal labels and a pair."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 25))
    X = rng.normal(size=(n, 3))[rng.integers(0, n, n)] + 0.01
    y, qid = rng.integers(0, 3, n).astype(float), rng.integers(0, 4, n)
    y[:2], qid[:2] = [0.0, 1.0], 0
    return rng, X, y, qid


def check_same(model, other, X):
    """The same optimum: objectives within their gaps, functions within what the strong convexity leaves of those."""
    slack = model.duality_gap_ + other.duality_gap_ + 1e-12 * model.objective_
    assert abs(model.objective_ - other.objective_) <= slack
    norms = np.sqrt(2.0 * model.duality_gap_) + np.sqrt(2.0 * other.duality_gap_)
    # |f(x) - g(x)| <= |f - g| sqrt(k(x, x))
    largest = np.sqrt(max(1.0, (0.2 * (X * X).sum(axis=1).max() + 1.0) ** 2, (X * X).sum(axis=1).max()))
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=largest * norms + 1e-7)


@given(SEEDS, KERNELS, LOSSES)
@settings(max_examples=25, deadline=None)
def test_order_of_rows_and_names_of_queries(seed, kernel, loss):
    rng, X, y, qid = make(seed)
    plain = fitted(kernel, loss, X, y, qid)
    order = rng.permutation(len(y))
    names = np.array(["d", "a", "c", "b"])[rng.permutation(4)]
    other = fitted(kernel, loss, X[order], y[order], names[qid[order]])
    check_same(plain, other, X)
    assert other.n_pairs_ == plain.n_pairs_
    assert other.n_queries_ == plain.n_queries_


@given(SEEDS, KERNELS, LOSSES)
@settings(max_examples=25, deadline=None)
def test_rows_of_queries_without_pairs(seed, kernel, loss):
    rng, X, y, qid = make(seed)
    plain = fitted(kernel, loss, X, y, qid)
    place = rng.integers(0, len(y) + 1, 5)
    more_X = np.insert(X, place, rng.normal(size=(5, 3)), axis=0)
    more_y, more_qid = np.insert(y, place, 1.0), np.insert(qid, place, [8, 8, 8, 9, 9])
    other = fitted(kernel, loss, more_X, more_y, more_qid)
    check_same(plain, other, X)
    assert (more_qid[other.support_] < 8).all()
    assert other.n_queries_ == plain.n_queries_ + 2


@given(SEEDS, KERNELS, LOSSES)
@settings(max_examples=25, deadline=None)
def test_a_weighted_row_is_a_repeated_one(seed, kernel, loss):
    rng, X, y, qid = make(seed)
    times = np.r_[1, 1, rng.integers(0, 4, len(y) - 2)]
    weighted = fitted(kernel, loss, X, y, qid, sample_weight=times)
    repeated = fitted(kernel, loss, *(np.repeat(each, times, axis=0) for each in (X, y, qid)))
    check_same(weighted, repeated, X)


@given(SEEDS, KERNELS, LOSSES)
@settings(max_examples=15, deadline=None)
def test_labels_count_by_their_order_only(seed, kernel, loss):
    _, X, y, qid = make(seed)
    check_same(fitted(kernel, loss, X, y, qid), fitted(kernel, loss, X, np.exp(3.0 * y) - 7.0, qid), X)


@pytest.mark.parametrize(("kernel", "stored"), [("laplacian", np.asarray), ("rbf", sp.csr_matrix)])
@pytest.mark.parametrize("n_different", [5, 7, 11])
def test_equal_documents_have_equal_scores(kernel, stored, n_different):
    """Metrics treat ties in their own way: round-off that depends on the place of a row would break these ties."""
    rng = np.random.default_rng(n_different)
    document = rng.integers(0, n_different, 43)
    X, y = stored(rng.normal(size=(n_different, 4))[document]), rng.integers(0, 3, 43)
    scores = KernelRankSVM(kernel=kernel).fit(X, y, qid=np.zeros(43)).predict(X)
    assert len(np.unique(scores)) == len(np.unique(document))
