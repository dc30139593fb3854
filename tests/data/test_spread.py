"""Variance of features within queries."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm.data import Queries, spread
from ranksvm.data.spread import within_query_variance


def brute_force(X, qid):
    X = X.toarray() if sp.issparse(X) else X
    X, qid = X.astype(np.longdouble), np.asarray(qid)
    squares = sum(((X[qid == q] - X[qid == q].mean(axis=0)) ** 2).sum(axis=0) for q in np.unique(qid))
    return (squares / (len(qid) - len(np.unique(qid)))).astype(float)


@pytest.fixture(params=[1 << 18, 50, 7], ids=["one block", "several blocks", "long queries in chunks"])
def block(request, monkeypatch):
    monkeypatch.setattr(spread, "BLOCK", request.param)


def rows_and_queries(seed, shuffled, n_rows=60, n_features=4):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.choice([0, 0, 1, 2, 3, 4], n_rows))
    if shuffled:
        rng.shuffle(qid)
    X = rng.normal(size=(n_rows, n_features)) * [1.0, 1e-3, 1e3, 0.0] + [0.0, 1.0, 5.0, 0.1]
    return X, qid


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.usefixtures("block")
def test_dense_against_the_definition(shuffled, dtype, n_threads):
    X, qid = rows_and_queries(0, shuffled)
    X = X.astype(dtype)
    found = within_query_variance(X, Queries.from_qid(qid), n_threads)
    np.testing.assert_allclose(found, brute_force(X, qid), rtol=1e-12)
    assert found[3] == 0.0


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("block")
def test_sparse_against_the_definition(shuffled, dtype):
    rng = np.random.default_rng(1)
    qid = rng.integers(6, size=50) if shuffled else np.sort(rng.integers(6, size=50))
    X = sp.random_array((50, 30), density=0.2, random_state=rng, format="csr", dtype=dtype)
    found = within_query_variance(X, Queries.from_qid(qid), 2)
    np.testing.assert_allclose(found, brute_force(X, qid), rtol=1e-6 if dtype is np.float32 else 1e-12)


def test_entries_of_one_place_add_up_and_X_stays_as_it_is():
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_allclose(within_query_variance(X, Queries.from_qid([1, 1])), [12.5, 4.5])
    assert X.nnz == 3


@pytest.mark.usefixtures("block")
def test_a_large_mean_costs_no_digits():
    rng = np.random.default_rng(2)
    offsets = np.repeat([1e8, -1e8, 3e8], 20)[:, None]
    small = rng.integers(8, size=(60, 3)).astype(float)
    qid = np.repeat([0, 1, 2], 20)
    found = within_query_variance(small + offsets, Queries.from_qid(qid))
    np.testing.assert_allclose(found, brute_force(small, qid), rtol=1e-13)
    found = within_query_variance(sp.csr_matrix(small + offsets), Queries.from_qid(qid))
    np.testing.assert_allclose(found, brute_force(small, qid), rtol=1e-13)


def test_queries_of_one_row_count_for_nothing():
    X = np.array([[1.0], [3.0], [100.0], [-50.0]])
    assert within_query_variance(X, Queries.from_qid([1, 1, 2, 3])).tolist() == [2.0]
    assert within_query_variance(X, Queries.from_qid([1, 2, 3, 4])).tolist() == [0.0]
    assert within_query_variance(X, Queries.from_group([0, 2, 0, 1, 1, 0], 4)).tolist() == [2.0]
