"""scikit-learn's model selection over our estimators, no set_*_request call on them; what it says without routing."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from ranksvm import (
    QueryKFold,
    QueryMinMaxScaler,
    QueryShuffleSplit,
    RankSVM,
    RankSVMCV,
    cross_validate,
    make_ranking,
    metrics,
)
from ranksvm.exceptions import DataError, OptionError

CS = [1e-4, 1e-2, 1.0]
# before, a search inside a cross-validation passes nothing on to the score of its estimator, but only to a scorer
LACKS_NESTED_SCORE = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8)
SCORING = pytest.mark.parametrize(
    "scoring",
    [
        {"scoring": metrics.scorer()},
        pytest.param({}, marks=pytest.mark.skipif(LACKS_NESTED_SCORE, reason="scikit-learn < 1.8")),
    ],
)
routed = pytest.mark.usefixtures("routing")


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=(5, 25), n_features=6, random_state=0)


def scores_by_hand(data, C, cv, metric="ndcg@10", weight=None):
    scores = []
    for train, test in cv.split(data.X, qid=data.qid):
        weights = {} if weight is None else {"sample_weight": weight[train]}
        model = RankSVM(C=C).fit(data.X[train], data.y[train], qid=data.qid[train], **weights)
        weights = {} if weight is None else {"sample_weight": weight[test]}
        found = metrics.evaluate(data.y[test], model.predict(data.X[test]), data.qid[test], metric, **weights)
        scores.append(found.means[metric])
    return scores


@routed
def test_estimators_and_scorers_ask_for_what_can_be_routed():
    for estimator in (RankSVM(), RankSVMCV()):
        requests = get_routing_for_object(estimator)
        asked = ["qid", "sample_weight", "query_weight", "propensity"]
        assert requests.consumes("fit", [*asked, "group"]) == set(asked)
        assert requests.consumes("score", asked) == {"qid", "sample_weight"}
    assert get_routing_for_object(metrics.scorer("map")).consumes("score", ["qid"]) == {"qid"}


@routed
@pytest.mark.parametrize(
    "search",
    [
        lambda **options: GridSearchCV(RankSVM(), {"C": CS}, **options),
        lambda **options: RandomizedSearchCV(RankSVM(), {"C": CS}, n_iter=3, random_state=0, **options),
        lambda **options: HalvingGridSearchCV(
            RankSVM(), {"C": CS}, resource="max_iter", max_resources=90, min_resources=30, **options
        ),
    ],
)
@pytest.mark.parametrize("metric", [None, "map"])
def test_searches(data, search, metric):
    options = {} if metric is None else {"scoring": metrics.scorer(metric)}
    found = search(cv=QueryKFold(3), error_score="raise", **options).fit(data.X, data.y, qid=data.qid)
    means = [np.mean(scores_by_hand(data, C, QueryKFold(3), metric or "ndcg@10")) for C in CS]
    for params, mean in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        assert mean == pytest.approx(means[CS.index(params["C"])])
    assert found.best_params_["C"] == CS[int(np.argmax(means))]
    assert found.score(data.X, data.y, qid=data.qid) > 0.8


@routed
def test_weights_travel_to_fit_and_score(data):
    weight = 1.0 + data.qid % 3
    search = GridSearchCV(RankSVM(), {"C": CS}, cv=QueryKFold(3), error_score="raise")
    search.fit(data.X, data.y, qid=data.qid, sample_weight=weight, query_weight=np.ones(len(weight)))
    expected = [np.mean(scores_by_hand(data, C, QueryKFold(3), weight=weight)) for C in CS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)


@routed
@SCORING
def test_nested(data, scoring):
    inner = GridSearchCV(RankSVM(), {"C": CS}, cv=QueryKFold(2), **scoring)
    options = {"cv": QueryKFold(3), "params": {"qid": data.qid}, "error_score": "raise", **scoring}
    found = cross_val_score(inner, data.X, data.y, **options)
    ours = cross_validate(inner, data.X, data.y, qid=data.qid, cv=3)
    np.testing.assert_allclose(ours.scores["ndcg@10"], found)
    for outer, (train, test) in enumerate(QueryKFold(3).split(data.X, qid=data.qid)):
        part = data.select(train)
        C = CS[int(np.argmax([np.mean(scores_by_hand(part, C, QueryKFold(2))) for C in CS]))]
        model = RankSVM(C=C).fit(part.X, part.y, qid=part.qid)
        assert found[outer] == pytest.approx(model.score(data.X[test], data.y[test], qid=data.qid[test]))
    assert len(cross_val_score(RankSVMCV(CS, cv=2), data.X, data.y, **options)) == 3


@routed
@SCORING
def test_steps_that_scale_by_query_are_given_the_queries_wherever_a_model_is_scored(data, scoring):
    X = data.X * np.array([1, 10, 100, 0.1, 1, 1])
    pipeline = make_pipeline(QueryMinMaxScaler(), RankSVM())
    search = GridSearchCV(pipeline, {"ranksvm__C": CS}, cv=QueryKFold(3), error_score="raise", **scoring)
    search.fit(X, data.y, qid=data.qid)
    scaled = make_ranking(n_queries=40, n_docs=(5, 25), n_features=6, random_state=0)
    scaled.X = QueryMinMaxScaler().fit_transform(X, qid=data.qid)
    expected = [np.mean(scores_by_hand(scaled, C, QueryKFold(3))) for C in CS]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
    nested = cross_val_score(search, X, data.y, cv=QueryKFold(2), params={"qid": data.qid}, **scoring)
    ours = cross_validate(search, X, data.y, qid=data.qid, cv=2)
    np.testing.assert_allclose(ours.scores["ndcg@10"], nested)


@routed
def test_curves_and_predictions(data):
    options = {"cv": QueryKFold(3), "params": {"qid": data.qid}}
    predicted = cross_val_predict(RankSVM(), data.X, data.y, **options)
    for train, test in QueryKFold(3).split(data.X, qid=data.qid):
        model = RankSVM().fit(data.X[train], data.y[train], qid=data.qid[train])
        np.testing.assert_array_equal(predicted[test], model.predict(data.X[test]))
    curve = validation_curve(RankSVM(), data.X, data.y, param_name="C", param_range=CS, **options)[1]
    np.testing.assert_allclose(curve, [scores_by_hand(data, C, QueryKFold(3)) for C in CS])
    sizes, _, found = learning_curve(RankSVM(), data.X, data.y, error_score="raise", **options)
    for size, scores in zip(sizes, found, strict=True):
        for (train, test), score in zip(QueryKFold(3).split(data.X, qid=data.qid), scores, strict=True):
            rows = train[:size]
            model = RankSVM().fit(data.X[rows], data.y[rows], qid=data.qid[rows])
            assert score == pytest.approx(model.score(data.X[test], data.y[test], qid=data.qid[test]))


@routed
@pytest.mark.parametrize("make", [RankSVM, lambda: RankSVMCV(CS, cv=2)])
def test_a_frame_with_a_column_of_ids(data, make):
    frame = pd.DataFrame(data.X, columns=list("abcdef")).assign(query=data.qid)
    cv = QueryShuffleSplit(2, random_state=0)
    found = cross_val_score(make(), frame, data.y, cv=cv, params={"qid": "query"}, error_score="raise")
    expected = cross_val_score(make(), data.X, data.y, cv=cv, params={"qid": data.qid}, error_score="raise")
    np.testing.assert_allclose(found, expected)


@routed
def test_our_cross_validate_takes_the_column_out_for_a_pipeline(data):
    frame = pd.DataFrame(data.X, columns=list("abcdef")).assign(query=data.qid)
    pipeline = make_pipeline(StandardScaler(), RankSVM())
    found = cross_validate(pipeline, frame, data.y, qid="query", cv=3)
    expected = cross_validate(pipeline, data.X, data.y, qid=data.qid, cv=3)
    assert found.means == pytest.approx(expected.means)
    with pytest.raises(DataError, match="an earlier step of a Pipeline"):
        pipeline.fit(frame, data.y, qid="query")


# -- what a user sees without routing ----------------------------------------------------------------------------------


def test_a_search_without_routing_stops_at_the_splitter(data):
    search = GridSearchCV(RankSVM(), {"C": CS}, cv=QueryKFold(3))
    with pytest.raises(DataError, match=r"enable_metadata_routing=True.* ranksvm.cross_validate needs no routing"):
        search.fit(data.X, data.y, qid=data.qid)


def test_a_search_that_is_given_groups_as_well_is_warned_about_every_score(data):
    search = GridSearchCV(RankSVM(), {"C": CS[:1]}, cv=QueryKFold(3))
    with pytest.warns(UserWarning, match=r"(?s)Scoring failed.*DataError: .*enable_metadata_routing=True\) passes it"):
        search.fit(data.X, data.y, groups=data.qid, qid=data.qid)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("routing_on", [False, True])
def test_group_cannot_be_divided(data, routing_on):
    sizes = np.unique(data.qid, return_counts=True)[1]
    with sklearn.config_context(enable_metadata_routing=routing_on):
        ranker = RankSVM().set_fit_request(group=True) if routing_on else RankSVM()
        search = GridSearchCV(ranker, {"C": CS}, cv=3)
        with pytest.raises(ValueError, match=r"(?s)fits failed.*cannot divide group: give one query id per row"):
            search.fit(data.X, data.y, group=sizes)
    with pytest.raises(OptionError, match="'group', which cannot be divided like rows: give one query id per row"):
        cross_validate(RankSVM(), data.X, data.y, qid=data.qid, fit_params={"group": sizes})
