"""The place of the largest value, in messages."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from ranksvm import RankSVM
from ranksvm.data.largest_value import largest_value, note_on_largest_value
from ranksvm.exceptions import DataError


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_and_place(seed, dtype):
    X = np.random.default_rng(seed).normal(size=(7, 5)).astype(dtype)
    X[np.abs(X) < 0.5] = 0.0
    row, column = np.unravel_index(np.argmax(np.abs(X)), X.shape)
    assert largest_value(X) == (abs(X[row, column]), row, column)
    assert largest_value(scipy.sparse.csr_matrix(X)) == (abs(X[row, column]), row, column)
    assert note_on_largest_value(X) == ""
    X[2, 3] = -4e7
    for stored in (X, scipy.sparse.csr_matrix(X)):
        assert note_on_largest_value(stored) == " The largest value is 4e+07, at X[2, 3]."


def test_nothing_stored():
    assert largest_value(scipy.sparse.csr_matrix((3, 2))) == (0.0, 0, 0)


@pytest.mark.parametrize("solver", ["auto", "tron", "newton"])
def test_a_wild_value_is_named(solver):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 3
    X[7, 1] = 1e40
    with pytest.warns(UserWarning, match=r"round-off .* The largest value is 1e\+40, at X\[7, 1\]\. \(relative"):
        RankSVM(solver=solver).fit(X, y, group=[20])
    X[7, 1] = 1e200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"Scale them down\. The largest value is 1e\+200, at X\[7, 1\]\."):
            RankSVM(solver=solver).fit(X, y, group=[20])
