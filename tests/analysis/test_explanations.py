"""Explanations of Pipelines."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
import sklearn
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import ranksvm.analysis
from ranksvm import QueryStandardScaler, RankSVM, make_ranking
from ranksvm.analysis import explain, feature_importance
from ranksvm.exceptions import DataError, OptionError


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(ranksvm.analysis.__path__)])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"ranksvm.analysis.{name}"))
    assert result.failed == 0


@pytest.fixture
def data():
    data = make_ranking(10, 15, 5, random_state=0)
    data.X = data.X * [1, 10, 100, 0.1, 1]
    return data


def test_a_ranker_itself(data):
    ranker = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    found = explain(ranker, data.X, data.qid)
    np.testing.assert_array_equal(found.contributions, ranker.explain(data.X, data.qid).contributions)
    importance = feature_importance(ranker, data.X, data.qid)
    np.testing.assert_array_equal(importance, ranker.feature_importance(data.X, data.qid))


def test_a_scaler_before_it(data):
    names = list("abcde")
    model = make_pipeline(StandardScaler(), RankSVM(C=0.1)).fit(data.X, data.y)
    found = explain(model, data.X, data.qid, feature_names=names)
    scaled = model[0].transform(data.X)
    np.testing.assert_allclose(found.contributions, model[-1].explain(scaled, data.qid).contributions)
    np.testing.assert_allclose(found.scores, model.predict(data.X))
    pair = found.pair(0, 1)
    assert pair.names == [names[column] for column in pair.columns]
    np.testing.assert_allclose(
        feature_importance(model, data.X, data.qid), model[-1].feature_importance(scaled, data.qid)
    )
    assert explain(model, data.X, data.qid).feature_names is None


def test_a_scaler_by_query_is_given_the_queries(data):
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(QueryStandardScaler(), RankSVM(C=0.1)).fit(data.X, data.y, qid=data.qid)
        scores = model.predict(data.X, qid=data.qid)
    np.testing.assert_allclose(explain(model, data.X, data.qid).scores, scores)
    scaled = model[0].transform(data.X, qid=data.qid)
    np.testing.assert_allclose(
        feature_importance(model, data.X, data.qid), model[-1].feature_importance(scaled, data.qid)
    )


def test_names_of_the_features_that_are_left(data):
    X = np.column_stack([data.X[:, 0], np.ones(len(data.y)), data.X[:, 1:]])
    model = Pipeline([("none", "passthrough"), ("varying", VarianceThreshold()), ("ranker", RankSVM())])
    model.fit(X, data.y)
    found = explain(model, X, data.qid, feature_names=list("abcdef"))
    assert list(found.feature_names) == list("acdef")
    with pytest.raises(DataError, match="feature_names"):
        explain(model, X, data.qid, feature_names=list("abc"))


def test_a_data_frame_with_a_column_of_query_ids(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), RankSVM()).fit(frame, data.y)
    found = explain(model, frame.assign(query=data.qid), "query")
    assert found.queries.n_queries == 10
    assert list(found.feature_names) == list("abcde")


def test_other_models(data):
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(data.X, data.y)
    with pytest.raises(OptionError, match="a linear or additive ranker such as RankSVM is needed"):
        explain(model, data.X, data.qid)
    with pytest.raises(OptionError, match="a linear or additive ranker"):
        feature_importance("model", data.X)


@pytest.mark.parametrize("top", [-1, 1.5, "all"])
def test_an_invalid_number_of_features_is_refused(top):
    data = make_ranking(n_queries=10, n_docs=8, n_features=4, random_state=0)
    model = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    explanation = explain(model, data.X, data.qid)
    weights = ranksvm.analysis.weight_intervals(model, data.X, data.y, data.qid)
    for found in (explanation.document(0), explanation.query(1), weights):
        assert len(found.to_dict(1)["features"]) == 1
        with pytest.raises(OptionError, match="top must be a whole number from 0"):
            found.to_dict(top)
