"""Scorers in scikit-learn's searches and cross-validation."""

import copy
import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranksvm import RankSVM, make_ranking, metrics
from ranksvm.exceptions import DataError, OptionError
from ranksvm.model_selection import QueryKFold


class RidgeRanker(BaseEstimator):
    """Ridge regression on labels centered per query, the smallest thing that uses qid."""

    __metadata_request__fit: ClassVar = {"qid": True}

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y, *, qid=None):
        assert qid is not None
        assert len(qid) == len(y)
        y = np.asarray(y, dtype=float)
        number = np.unique(qid, return_inverse=True)[1]
        y = y - (np.bincount(number, y) / np.bincount(number))[number]
        self.coef_ = np.linalg.solve(X.T @ X + self.alpha * np.eye(X.shape[1]), X.T @ y)
        return self

    def predict(self, X):
        return X @ self.coef_


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(30), 8))
    X = rng.normal(size=(240, 5))
    y = np.digitize(X @ [3, 2, 1, 0, 0] + rng.normal(size=240), [-2, 0, 2, 4])
    return X, y, qid


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_value_is_that_of_evaluate(data):
    X, y, qid = data
    model = RidgeRanker().fit(X, y, qid=qid)
    scorer = metrics.scorer("map", convention="mslr")
    expected = metrics.evaluate(y, model.predict(X), qid, "map", convention="mslr").means["map"]
    assert scorer(model, X, y, qid=qid) == expected


@pytest.mark.usefixtures("routing")
def test_cross_val_score_and_grid_search_need_no_set_score_request(data):
    X, y, qid = data
    scorer, cv = metrics.scorer("ndcg@5"), QueryKFold(3)
    found = cross_val_score(RidgeRanker(), X, y, scoring=scorer, cv=cv, params={"qid": qid}, error_score="raise")
    expected = []
    for train, test in cv.split(X, y, qid=qid):
        model = RidgeRanker().fit(X[train], y[train], qid=qid[train])
        expected.append(metrics.evaluate(y[test], model.predict(X[test]), qid[test], "ndcg@5").means["ndcg@5"])
    np.testing.assert_allclose(found, expected)
    several = {"ndcg": scorer, "map": metrics.scorer("map")}
    table = cross_validate(RidgeRanker(), X, y, scoring=several, cv=cv, params={"qid": qid}, error_score="raise")
    np.testing.assert_allclose(table["test_ndcg"], expected)
    search = GridSearchCV(RidgeRanker(), {"alpha": [0.1, 1e6]}, scoring=scorer, cv=cv, error_score="raise")
    search.fit(X, y, qid=qid)
    assert search.best_params_ == {"alpha": 0.1}
    assert search.score(X, y, qid=qid) == scorer(search.best_estimator_, X, y, qid=qid)


@pytest.mark.usefixtures("routing")
def test_search_over_a_pipeline(data):
    X, y, qid = data
    pipeline = make_pipeline(StandardScaler(), RidgeRanker())
    search = GridSearchCV(
        pipeline, {"ridgeranker__alpha": [1, 10]}, scoring=metrics.scorer(), cv=QueryKFold(3), error_score="raise"
    )
    assert search.fit(X, y, qid=qid).best_score_ > 0.7


def test_without_qid_the_message_names_the_fix(data):
    X, y, qid = data
    model = RidgeRanker().fit(X, y, qid=qid)
    with pytest.raises(DataError, match="enable_metadata_routing=True"):
        metrics.scorer("ndcg@10")(model, X, y)


def test_scorers_are_values():
    scorer = metrics.scorer("ndcg@10", convention="letor")
    assert copy.deepcopy(scorer) == pickle.loads(pickle.dumps(scorer)) == scorer
    assert scorer != metrics.scorer("ndcg@10")
    with pytest.raises(OptionError, match="unknown metric"):
        metrics.scorer("accuracy")


@pytest.mark.parametrize("column", ["qid", "query"])
def test_the_column_of_ids_is_that_of_the_model(column):
    data = make_ranking(n_queries=12, n_docs=8, n_features=3, random_state=0)
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"]).assign(**{column: data.qid})
    ranker = RankSVM(C=0.1).fit(frame, data.y, qid=column)
    assert metrics.scorer("ndcg@10")(ranker, frame, data.y) == ranker.score(frame, data.y)
    with pytest.raises(DataError, match="was called without qid"):
        metrics.scorer("ndcg@10")(ranker, frame.drop(columns=column), data.y)
    with pytest.raises(DataError, match="qid='absent' names a column, but X has no such column"):
        metrics.scorer("ndcg@10")(ranker, frame, data.y, qid="absent")
    if column == "qid":
        values = cross_val_score(
            ranker, frame, data.y, groups=data.qid, cv=GroupKFold(3), scoring=metrics.scorer("ndcg@10")
        )
        assert np.isfinite(values).all()


def test_scale_of_err(data):
    X, y, qid = data
    model = RankSVM(C=0.01).fit(X, y, qid=qid)
    expected = metrics.evaluate(y, model.predict(X), qid, "err@5", max_label=7)["err@5"]
    assert metrics.scorer("err@5", max_label=7)(model, X, y, qid=qid) == expected
