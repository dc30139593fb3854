"""DataFrames from fit to coef_table: the same numbers as from arrays, and the names kept."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ranksvm
from ranksvm import (
    KernelRankSVM,
    QueryKFold,
    QueryMinMaxScaler,
    QueryShuffleSplit,
    RankSVM,
    RankSVMCV,
    SOLARRanker,
    cross_validate,
    make_ranking,
    regularization_path,
)
from ranksvm.exceptions import DataError

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
ANY_LIBRARY = pytest.mark.parametrize("library", LIBRARIES)
NAMES = ["bm25", "length", "clicks"]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=(5, 20), n_features=3, random_state=0)


@pytest.fixture
def frame(data, library):
    columns = {name: data.X[:, place] for place, name in enumerate(NAMES)}
    return LIBRARIES[library]({"query": [f"q{n}" for n in data.qid]} | columns)


@ANY_LIBRARY
def test_a_frame_with_its_ids_is_the_arrays(data, frame, library, tmp_path):
    plain = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    y = pl.Series(data.y) if library == "polars" else data.y
    model = RankSVM(C=0.1).fit(frame, y, qid="query")
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.feature_names_in_.tolist() == NAMES
    model.save(tmp_path / "model")
    for ranker in (model, ranksvm.load(tmp_path / "model")):
        np.testing.assert_array_equal(ranker.predict(frame), plain.predict(data.X))
        assert ranker.score(frame, y) == pytest.approx(plain.score(data.X, data.y, qid=data.qid))
        assert [rows.tolist() for rows in ranker.rank(frame).values()] == [
            rows.tolist() for rows in plain.rank(data.X, data.qid).values()
        ]
        assert ranker.frame_type_ == library


@ANY_LIBRARY
def test_choosing_C_and_cross_validation(data, frame):
    options = {"Cs": [1e-3, 1.0], "cv": 3}
    expected = RankSVMCV(**options).fit(data.X, data.y, qid=data.qid)
    model = RankSVMCV(**options).fit(frame, data.y, qid="query")
    np.testing.assert_array_equal(model.scores_, expected.scores_)
    assert model.feature_names_in_.tolist() == NAMES
    expected = cross_validate(RankSVM(), data.X, data.y, qid=data.qid, cv=3).means
    assert cross_validate(RankSVM(), frame, data.y, qid="query", cv=3).means == expected
    path = regularization_path(frame, data.y, qid="query", Cs=[0.1, 1.0])
    assert path.coefs.shape == (2, 3)
    for cv in (QueryKFold(3), QueryShuffleSplit(3, random_state=0)):
        for found, split in zip(cv.split(frame, qid="query"), cv.split(data.X, qid=data.qid), strict=True):
            np.testing.assert_array_equal(found[1], split[1])


@ANY_LIBRARY
def test_other_features_than_those_of_fit_are_refused(data, frame, library):
    model = RankSVM().fit(frame, data.y, qid="query")
    others = LIBRARIES[library]({name: data.X[:, 0] for name in ["length", "bm25", "pagerank"]})
    with pytest.raises(DataError, match="feature names should match"):
        model.predict(others)


@ANY_LIBRARY
def test_columns_in_another_order_or_beside_others_are_refused_with_the_expression_that_selects_them(data, library):
    values = dict(zip(NAMES, data.X.T, strict=True))
    X = LIBRARIES[library](values)
    select = "select" if library == "pyarrow" else "__getitem__"
    models = [
        RankSVM().fit(X, data.y, qid=data.qid),
        KernelRankSVM().fit(X, data.y, qid=data.qid),
        SOLARRanker().partial_fit(X, data.y, qid=data.qid),
    ]
    for columns in (list(reversed(NAMES)), [*NAMES, "url"]):
        other = LIBRARIES[library]({name: values.get(name, data.y) for name in columns})
        for model in models:
            with pytest.raises(DataError, match=r"(?s)feature names should match.*select these with X.*_names_in_"):
                model.predict(other)
            selected = getattr(other, select)(model.feature_names_in_)
            np.testing.assert_array_equal(model.predict(selected), model.predict(X))
        with pytest.raises(DataError, match=r"(?s)eval_set.*feature names should match.*_names_in_"):
            RankSVM().fit(X, data.y, qid=data.qid, eval_set=(other, data.y), eval_qid=data.qid)
        with pytest.raises(DataError, match=r"feature_names_in_"):
            QueryMinMaxScaler().fit(X, qid=data.qid).transform(other, qid=data.qid)


def test_columns_that_lack_a_feature_are_refused(data):
    model = RankSVM().fit(pd.DataFrame(data.X, columns=NAMES), data.y, qid=data.qid)
    with pytest.raises(DataError, match=r"(?s)now missing:\n- bm25\nX must have the columns of the fit"):
        model.predict(pd.DataFrame(data.X[:, :2], columns=[name for name in NAMES if name != "bm25"]))


@ANY_LIBRARY
def test_the_table_is_of_the_library(data, frame, library):
    model = RankSVM(C=0.1).fit(frame, data.y, qid="query")
    table = model.coef_table()
    assert isinstance(table, LIBRARIES[library] if library != "pyarrow" else pa.Table)
    order = np.argsort(-np.abs(model.coef_))
    assert np.asarray(table["feature"]).tolist() == [NAMES[place] for place in order]
    np.testing.assert_array_equal(np.asarray(table["weight"]), model.coef_[order])
    assert np.asarray(table["rank"]).tolist() == [1, 2, 3]


def test_the_table_of_an_array(data):
    model = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    table = model.coef_table()
    assert table.dtype.names == ("feature", "weight", "rank")
    assert sorted(table["feature"]) == ["f1", "f2", "f3"]
    assert np.all(np.diff(np.abs(table["weight"])) <= 0)
    assert pd.DataFrame(table).shape == (3, 3)


@pytest.mark.parametrize("library", ["polars"])
def test_the_table_where_the_library_is_missing(data, frame, monkeypatch):
    model = RankSVM().fit(frame, data.y, qid="query")
    monkeypatch.setitem(sys.modules, "polars", None)
    assert set(model.coef_table()["feature"]) == set(NAMES)
