"""Where values are NaN or infinite, in words."""

import numpy as np
import pytest
import scipy.sparse

from ranksvm.data import _finite
from ranksvm.data._finite import where_not_finite


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
    monkeypatch.setattr(_finite, "ROWS", rows)
    X = np.ones((5, 3))
    X[1:, 2], X[3, 0] = np.nan, np.inf
    assert where_not_finite(X) == ("NaN at X[1, 2] (feature f3) (4 NaN and 1 infinite in all: 4 in f3, 1 in f1)")
    found = where_not_finite(scipy.sparse.csr_array(X), np.array(["a", "b", "c"], dtype=object))
    assert found == ("NaN at X[1, 2] (feature c) (4 NaN and 1 infinite in all: 4 in c, 1 in a)")


def test_many_columns_are_not_all_listed():
    found = where_not_finite(np.full((2, 1000), np.nan))
    assert found.endswith("2 in f5 and others in 995 more)")
    assert "2,000 NaN in all" in found
