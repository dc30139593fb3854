"""Missing features: an imputer before the ranker in a Pipeline, with query ids, arrays and DataFrames."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from ranksvm import RankSVM, cross_validate, make_ranking
from ranksvm.exceptions import DataError

pd = pytest.importorskip("pandas")


@pytest.fixture
def data():
    made = make_ranking(n_queries=20, n_docs=10, n_features=4, random_state=0)
    X = np.array(made.X, dtype=float)
    X[::7, 2] = np.nan
    return X, made.y, made.qid


def test_missing_features_are_counted_by_name(data):
    X, y, qid = data
    named = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(DataError, match=r"NaN at X\[0, 2\] \(feature c\) \(29 NaN in all: 29 in c\).*SimpleImputer"):
        RankSVM().fit(named, y, qid=qid)
    model = RankSVM().fit(named.fillna(0.0), y, qid=qid)
    with pytest.raises(DataError, match=r"29 in c"):
        model.predict(named)
    named.iloc[0, 2] = np.inf  # SimpleImputer refuses it
    with pytest.raises(DataError, match=r"infinity at X\[0, 2\].*.*replace infinite values by finite numbers"):
        RankSVM().fit(named, y, qid=qid)


@pytest.mark.parametrize("frame", [False, True])
def test_a_pipeline_with_an_imputer(data, frame):
    X, y, qid = data
    imputed = SimpleImputer().fit_transform(X)
    expected = RankSVM(C=0.1).fit(imputed, y, qid=qid)
    X = pd.DataFrame(X, columns=list("abcd")) if frame else X
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(SimpleImputer(), RankSVM(C=0.1)).fit(X, y, qid=qid)
        assert model.score(X, y, qid=qid) == expected.score(imputed, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X), expected.predict(imputed))
    without_routing = make_pipeline(SimpleImputer(), RankSVM(C=0.1)).fit(X, y, ranksvm__qid=qid)
    np.testing.assert_array_equal(without_routing.predict(X), expected.predict(imputed))
    # without routing, scikit-learn's Pipeline does not hand qid on
    with pytest.raises(DataError, match="Pipelines and searches"):
        without_routing.score(X, y)
    assert cross_validate(model, X, y, qid=qid, cv=3).scores["ndcg@10"].min() > 0.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_names_pass_through_to_signs(data):
    X, y, qid = data
    named = pd.DataFrame(X, columns=list("abcd")).assign(query=qid)
    steps = SimpleImputer(add_indicator=True).set_output(transform="pandas"), RankSVM(monotone={"c": -1})
    model = make_pipeline(*steps).fit(named, y, ranksvm__qid="query")
    assert list(model[-1].feature_names_in_) == [*"abcd", "missingindicator_c"]
    np.testing.assert_array_equal(model[-1].monotone_, [0, 0, -1, 0, 0])
    model.predict(named)
