"""A query without preferences teaches nothing, and is no error: such come in every stream of clicks."""

import numpy as np
import pytest

from ranksvm import Preferences, SOLARRanker
from ranksvm.exceptions import DataError


@pytest.mark.parametrize("pairs", [[], np.empty((0, 2), dtype=np.int64)])
@pytest.mark.parametrize("weight", [None, []])
def test_no_pairs(pairs, weight):
    X = np.eye(3)
    model = SOLARRanker().partial_fit_pairs(X, pairs, weight=weight)
    assert not model.coef_.any()
    model.partial_fit_pairs(X, [[0, 1]])
    w = model.coef_.copy()
    model.partial_fit_pairs(X, pairs, weight=weight)
    np.testing.assert_array_equal(model.coef_, w)
    assert (model.n_pairs_, model.n_queries_) == (1, 3)
    with pytest.raises(DataError):
        model.partial_fit_pairs(np.full((3, 3), np.nan), pairs)


def test_preferences_are_refused():
    X = np.eye(4)
    with pytest.raises(DataError, match=r"Preferences are not an array of features: give their arrays, X=data.X"):
        SOLARRanker().partial_fit_pairs(Preferences(X[:2], X[2:]), [[0, 1]])
