"""A fit that fails loses nothing: the estimator is as it was, fitted or not."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ranksvm import RankSVM, RankSVMCV
from ranksvm.exceptions import DataError, NoComparablePairsError


@pytest.mark.parametrize("make", [RankSVM, lambda: RankSVMCV(Cs=[0.1, 1.0], cv=2)])
def test_a_failed_refit_leaves_the_last_model(make):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(20, 4)), rng.integers(0, 2, 20), np.repeat([0, 1], 10)
    ranker = make().fit(X, y, qid=qid)
    before, scores = dict(vars(ranker)), ranker.predict(X)
    with pytest.raises(NoComparablePairsError):
        ranker.fit(np.ones((20, 7)), np.zeros(20), qid=qid)
    assert vars(ranker).keys() == before.keys()
    assert ranker.n_features_in_ == 4
    np.testing.assert_array_equal(ranker.predict(X), scores)
    with pytest.raises(DataError, match="7 features"):
        ranker.predict(np.ones((20, 7)))


@pytest.mark.parametrize("make", [RankSVM, RankSVMCV])
def test_a_failed_first_fit_leaves_no_model(make):
    ranker = make()
    with pytest.raises(NoComparablePairsError):
        ranker.fit(np.ones((4, 3)), np.zeros(4))
    with pytest.raises(NotFittedError):
        ranker.predict(np.ones((4, 3)))
    assert not hasattr(ranker, "n_features_in_")


def test_weights_of_another_shape_are_refused():
    ranker = RankSVM().fit(np.eye(4), [0, 1, 0, 1])
    ranker.coef_ = ranker.coef_[:2]
    with pytest.raises(DataError, match=r"4 features, but coef_ has shape \(2,\)"):
        ranker.predict(np.eye(4))


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.eye(3), [0, np.nan, 1]),
        (np.eye(3), [0, 1]),
        (np.eye(3), ["a", "b", "c"]),
        ([["a"], ["b"]], [0, 1]),
    ],
)
def test_bad_data_are_data_errors(X, y):
    with pytest.raises(DataError):
        RankSVM().fit(X, y)
