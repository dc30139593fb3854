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


MODELS = [
    RankSVM(),
    RankSVMCV(Cs=[1e-2], cv=3),
    ranksvm.KernelRankSVM(),
    ranksvm.FactorizedRankSVM(random_state=0),
    ranksvm.RegularizedRankSVM(),
    ranksvm.SOLARRanker(random_state=0),
]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_column_named_qid_is_taken_without_being_named(model, library, data):
    columns = dict(zip("abc", data.X.T, strict=True)) | {"qid": [f"q{n}" for n in data.qid]}
    module = pytest.importorskip(library)
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    model.fit(frame, data.y, eval_set=[(frame, data.y)]) if hasattr(model, "loss") else model.fit(frame, data.y)
    assert (model.qid_column_, model.n_features_in_, model.n_queries_) == ("qid", 3, 30)
    scores = model.predict(frame)
    plain = pd.DataFrame(dict(zip("abc", data.X.T, strict=True)))
    np.testing.assert_array_equal(model.predict(plain), scores)
    assert list(model.rank(frame)) == list(dict.fromkeys(columns["qid"]))
    assert model.score(frame, data.y) == pytest.approx(model.score(plain, data.y, qid=data.qid))
    np.testing.assert_array_equal(
        type(model)(**model.get_params()).fit(plain, data.y, qid=data.qid).predict(plain), scores
    )


def test_a_column_named_qid_of_data_to_rank_is_no_feature(data, frame):
    plain = frame.drop(columns="query")
    both = plain.assign(qid=frame["query"])
    for X in (plain, data.X):  # ids given apart, features with names and without
        model = RankSVM().fit(X, data.y, qid=data.qid)
        np.testing.assert_array_equal(model.predict(both), model.predict(plain))
        assert list(model.rank(both)) == list(dict.fromkeys(frame["query"]))
    wide = RankSVM().fit(np.c_[data.X, data.X[:, 0]], data.y, qid=data.qid)
    with pytest.raises(DataError, match="X has 3 features, but RankSVM is expecting 4"):
        wide.predict(both)


def test_two_sources_of_ids(data, frame):
    both = frame.drop(columns="query").assign(qid=frame["query"])
    with pytest.raises(DataError, match=r"X has a column 'qid'.* or drop it if the ids are given apart"):
        RankSVM().fit(both, data.y, qid=data.qid)
    with pytest.raises(DataError, match="or a column 'qid' of a DataFrame"):
        RankSVM().fit(both, data.y, group=np.unique(data.qid, return_counts=True)[1])
    named = RankSVM().fit(both.rename(columns={"qid": "query"}), data.y, qid="query")
    found = RankSVM().fit(both, data.y)
    np.testing.assert_array_equal(named.coef_, found.coef_)


def test_the_column_elsewhere(data, frame):
    both = frame.drop(columns="query").assign(qid=frame["query"])
    by_qid = cross_validate(RankSVM(), data.X, data.y, qid=data.qid, cv=3)
    found = cross_validate(RankSVM(), both, data.y, qid=None, cv=3)
    np.testing.assert_allclose(found.scores["ndcg@10"], by_qid.scores["ndcg@10"], atol=1e-6)
    assert regularization_path(both, data.y, Cs=[0.1]).coefs.shape == (1, 3)
    scaled = ranksvm.QueryMinMaxScaler().fit_transform(both)
    np.testing.assert_allclose(scaled, ranksvm.QueryMinMaxScaler().fit_transform(data.X, qid=data.qid), atol=1e-6)
    folds = list(ranksvm.QueryKFold(3).split(both))
    for (_, rows), (_, expected) in zip(folds, ranksvm.QueryKFold(3).split(data.X, groups=data.qid), strict=True):
        np.testing.assert_array_equal(rows, expected)
    online = ranksvm.SOLARRanker(random_state=0).partial_fit(both, data.y).partial_fit(both, data.y)
    assert online.n_queries_ == 60


@pytest.mark.parametrize("column", [None, "query"])
def test_data_to_rank_may_name_another_column_than_fit(data, frame, column):
    """The column that fit took, if any, may be in X too; it is no feature either."""
    X, given = (frame.drop(columns="query"), data.qid) if column is None else (frame, column)
    model, additive, ids = RankSVM(), ranksvm.AdditiveRankSVM(), data.qid
    other = X.assign(session=ids)
    for ranker in (model, additive, ranksvm.KernelRankSVM()):
        ranker.fit(X, data.y, qid=given)
        expected = ranker.rank(X, ids)
        assert {query: rows.tolist() for query, rows in ranker.rank(other, "session").items()} == {
            query: rows.tolist() for query, rows in expected.items()
        }
        assert ranker.score(other, data.y, qid="session") == ranker.score(X, data.y, qid=ids)
        assert ranker.score(other, pairs=[[0, 1]], qid="session") == ranker.score(X, pairs=[[0, 1]], qid=ids)
        assert ranker.dual_coef(other, data.y, qid="session").per_document().shape == (data.n_rows,)
    for ranker in (model, additive):
        assert ranker.explain(other, "session").pair(1, 0).difference == ranker.explain(X, ids).pair(1, 0).difference
        np.testing.assert_array_equal(ranker.feature_importance(other, "session"), ranker.feature_importance(X, ids))
    edited = additive.edit_shape(0, {0: 0.1}, other, data.y, qid="session")
    assert edited.objective_ == additive.edit_shape(0, {0: 0.1}, X, data.y, qid=ids).objective_
    pairs = [[rows[0], rows[1]] for rows in expected.values()]
    slope = model.calibrate(other, pairs=pairs, qid="session", cv=2).calibration_slope_
    assert slope == model.calibrate(X, pairs=pairs, qid=ids, cv=2).calibration_slope_


def test_no_such_column(data, frame):
    for X in (frame, data.X):
        with pytest.raises(DataError, match="qid='session' names a column, but X "):
            RankSVM().fit(X, data.y, qid="session")
