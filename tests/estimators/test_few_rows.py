"""Text of few rows and many features, in every storage that SciPy has: one answer."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm import RankSVM


def text():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 5000), density=0.01, format="lil", random_state=rng)
    X[5], X[:, 7] = 0.0, 0.0
    return sp.csr_array(X), rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(6), 10)


def wide_indices(X):
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def unsorted(X):
    X = X.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:stop], X.data[start:stop] = X.indices[start:stop][::-1].copy(), X.data[start:stop][::-1].copy()
    X.has_sorted_indices = False
    return X


def read_only(X):
    X = X.copy()
    for array in (X.data, X.indices, X.indptr):
        array.setflags(write=False)
    return X


STORAGES = {
    **{name: lambda X, name=name: X.asformat(name) for name in ("csc", "coo", "lil", "dok", "bsr")},
    "matrix": sp.csr_matrix,
    "int64 indices": wide_indices,
    "unsorted": unsorted,
    "read only": read_only,
    "float32": lambda X: X.astype(np.float32),
    "dense": lambda X: X.toarray(),
}


@pytest.mark.parametrize("storage", STORAGES)
def test_every_storage_gives_the_same(storage):
    X, y, qid = text()
    for options in ({}, {"solver": "tron"}, {"loss": "hinge"}, {"monotone": "increasing"}):
        expected = RankSVM(1.0, tol=1e-8, **options).fit(X, y, qid=qid)
        model = RankSVM(1.0, tol=1e-8, **options).fit(STORAGES[storage](X), y, qid=qid)
        assert model.converged_
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6 if storage == "float32" else 3e-8)
        np.testing.assert_allclose(model.predict(STORAGES[storage](X)), X @ model.coef_, atol=1e-6)
        assert (model.coef_[7], model.predict(X)[5]) == (0.0, 0.0)
