"""Suspect values and their places, in messages."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from ranksvm import RankSVM
from ranksvm.data import validation
from ranksvm.data.validation import largest_value, note_on_largest_value, where_not_finite
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


def test_nothing_to_find():
    assert where_not_finite(np.ones((3, 2))) is None
    assert where_not_finite(scipy.sparse.csr_array(np.eye(3))) is None


@pytest.mark.parametrize("make", [np.array, scipy.sparse.csr_array, scipy.sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_value(make, dtype):
    X = np.ones((5, 3))
    X[3, 1] = np.nan
    assert where_not_finite(make(X.astype(dtype))) == "NaN at X[3, 1] (feature f2)"
    X[3, 1] = -np.inf
    assert where_not_finite(make(X.astype(dtype)), ["a", "b", "c"]) == "infinity at X[3, 1] (feature b)"


@pytest.mark.parametrize("rows", [1, 2, 4096])
def test_many_values_are_counted_by_column(rows, monkeypatch):
    monkeypatch.setattr(validation, "ROWS", rows)
    X = np.ones((5, 3))
    X[1:, 2], X[3, 0] = np.nan, np.inf
    assert where_not_finite(X) == ("NaN at X[1, 2] (feature f3) (4 NaN and 1 infinite in all: 4 in f3, 1 in f1)")
    found = where_not_finite(scipy.sparse.csr_array(X), np.array(["a", "b", "c"], dtype=object))
    assert found == ("NaN at X[1, 2] (feature c) (4 NaN and 1 infinite in all: 4 in c, 1 in a)")


def test_many_columns_are_not_all_listed():
    found = where_not_finite(np.full((2, 1000), np.nan))
    assert found.endswith("2 in f5 and others in 995 more)")
    assert "2,000 NaN in all" in found
