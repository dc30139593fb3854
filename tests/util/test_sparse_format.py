"""Sparse matrices whose arrays were changed into what is no matrix are refused by all that takes features."""

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm._util.sparse_format import check_sparse_format
from ranksvm.exceptions import DataError

Y, QID = np.arange(12) % 3, np.repeat([0, 1], 6)


def matrix(kind=sp.csr_matrix):
    return kind(np.tile(np.eye(3) + 1, (4, 1)))


def spoilt(part, place, value, kind=sp.csr_matrix):
    X = matrix(kind)
    getattr(X, part)[place] = value
    return X


def with_pointers(pointers):
    X = matrix()
    X.indptr = np.asarray(pointers)
    return X


BAD = {
    "column beyond": spoilt("indices", 4, 3),
    "column far beyond": spoilt("indices", 4, 2**31 - 1),
    "negative column": spoilt("indices", 4, -1),
    "pointers that descend": spoilt("indptr", 3, 2**30),
    "negative pointer": spoilt("indptr", 3, -5),
    "last pointer": spoilt("indptr", -1, 1000),
    "first pointer": spoilt("indptr", 0, 1),
    "unsigned pointers": with_pointers(np.r_[np.arange(0, 34, 3), 2**40].astype(np.uint64)),
    "pointers of floats": with_pointers(np.arange(0, 37, 3.0)),
    "few pointers": with_pointers([0, 36]),
    "csc": spoilt("indices", 4, 12, sp.csc_matrix),
    "bsr": spoilt("indices", 0, 7, sp.bsr_matrix),
    "coo": spoilt("col", 4, 3, sp.coo_matrix),
    "coo rows": spoilt("row", 4, -1, sp.coo_matrix),
}
ENTRIES = {
    "fit": lambda X: ranksvm.RankSVM().fit(X, Y, qid=QID),
    "kernel": lambda X: ranksvm.KernelRankSVM(kernel="laplacian").fit(X, Y, qid=QID),
    "predict": lambda X: ranksvm.RankSVM().fit(matrix(), Y, qid=QID).predict(X),
    "partial_fit": lambda X: ranksvm.SOLARRanker().partial_fit(X, Y, qid=QID),
    "scaler": lambda X: ranksvm.QueryStandardScaler(with_mean=False).fit_transform(X, qid=QID),
}


@pytest.mark.parametrize("X", BAD.values(), ids=BAD)
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_no_matrix(entry, X):
    with pytest.raises(DataError, match="X is not a valid"):
        entry(X)


@pytest.mark.parametrize("form", ["coo", "csr"])
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_row_of_an_array_is_no_matrix(entry, form):
    try:
        row = matrix(sp.csr_array)[0]
    except NotImplementedError:
        pytest.skip("this version of SciPy has no rows of sparse arrays")
    with pytest.raises(DataError, match=r"got shape \(3,\): take a row by X\[\[i\]\]"):
        entry(row.asformat(form))


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.bsr_matrix, sp.coo_matrix, sp.lil_matrix])
def test_matrices(kind):
    check_sparse_format(matrix(kind))


def test_pointers_of_64_bits():
    expected, X = ranksvm.RankSVM().fit(matrix(), Y, qid=QID).coef_, matrix()
    X.indptr = X.indptr.astype(np.int64)
    np.testing.assert_array_equal(ranksvm.RankSVM().fit(X, Y, qid=QID).coef_, expected)
