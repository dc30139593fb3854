"""qid as the name of a DataFrame's column."""

import numpy as np
import pandas as pd
import pytest

import ranksvm
from ranksvm import RankSVM, RankSVMCV, cross_validate, make_ranking, regularization_path
from ranksvm.exceptions import DataError


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=(5, 20), n_features=3, random_state=0)


@pytest.fixture(scope="module")
def frame(data):
    frame = pd.DataFrame(data.X, columns=list("abc"))
    frame.insert(1, "query", [f"q{n}" for n in data.qid])
    return frame


def test_the_column_is_the_qid_and_no_feature(data, frame, tmp_path):
    model, plain = RankSVM().fit(frame, data.y, qid="query"), RankSVM().fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    assert model.feature_names_in_.tolist() == list("abc")
    model.save(tmp_path / "model")
    for ranker in (model, ranksvm.load(tmp_path / "model")):
        np.testing.assert_array_equal(ranker.predict(frame), ranker.predict(frame.drop(columns="query")))
        for ranking in (ranker.rank(frame), ranker.rank(frame, "query"), ranker.rank(frame, frame["query"])):
            assert list(ranking) == list(dict.fromkeys(frame["query"]))
        expected = plain.score(data.X, data.y, qid=data.qid)
        assert ranker.score(frame, data.y) == pytest.approx(expected)
        assert ranker.score(frame.drop(columns="query"), data.y, qid=data.qid) == pytest.approx(expected)
    model.fit(data.X, data.y, qid=data.qid)  # the column is forgotten
    assert model.qid_column_ is None


def test_choosing_C(data, frame):
    options = {"Cs": [1e-3, 1.0], "cv": 3}
    model, plain = (
        RankSVMCV(**options).fit(frame, data.y, qid="query"),
        RankSVMCV(**options).fit(data.X, data.y, qid=data.qid),
    )
    np.testing.assert_allclose(model.scores_, plain.scores_, atol=1e-6)
    by_name = RankSVMCV(**options).fit(frame, data.y, qid="query", eval_set=(frame, data.y))
    by_qid = RankSVMCV(**options).fit(data.X, data.y, qid=data.qid, eval_set=(data.X, data.y), eval_qid=data.qid)
    np.testing.assert_allclose(by_name.scores_, by_qid.scores_, atol=1e-6)
    path = regularization_path(frame, data.y, qid="query", Cs=[0.1])
    assert path.coefs.shape == (1, 3)


def test_cross_validate(data, frame):
    by_name = cross_validate(RankSVM(), frame, data.y, qid="query", cv=3)
    by_qid = cross_validate(RankSVM(), data.X, data.y, qid=data.qid, cv=3)
    np.testing.assert_allclose(by_name.scores["ndcg@10"], by_qid.scores["ndcg@10"], atol=1e-6)


def test_no_such_column(data, frame):
    for X in (frame, data.X):
        with pytest.raises(DataError, match="qid='session' names a column, but X "):
            RankSVM().fit(X, data.y, qid="session")
