"""RankSVM and RankSVMCV as scikit-learn estimators: its checks, pipelines, searches."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranksvm import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    FactorizedRankSVM,
    PairwisePerceptronRanker,
    PerceptronCommitteeRanker,
    PRanker,
    QueryKFold,
    QueryMinMaxScaler,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SOLARRanker,
    cross_validate,
    make_ranking,
)
from ranksvm.estimators.base import choosing_ranker
from ranksvm.exceptions import DataError


@pytest.fixture
def one_query_twice(monkeypatch):
    """The checks' data are one query, which no split may divide: let both parts be all of it."""

    def splits(cv, X, y, queries):
        return [(np.arange(queries.n_rows), np.arange(queries.n_rows))]

    monkeypatch.setattr(choosing_ranker, "query_splits", splits)


@pytest.mark.usefixtures("one_query_twice")
@parametrize_with_checks(
    [
        RankSVM(solver="newton"),
        RankSVM(solver="tron"),
        RankSVMCV(Cs=[0.01, 1.0]),
        AdditiveRankSVM(max_bins=4),
        AdditiveRankSVM(interactions=2, solver="tron"),
        AdditiveRankSVMCV(Cs=[0.01, 1.0], step_weights=[1.0]),
        FactorizedRankSVM(C=0.1),
        RegularizedRankSVM(),
        SOLARRanker(order=1, C=1.0),
        SOLARRanker(order=2, gamma=1.0),
        SOLARRanker(order=2, gamma=1.0, covariance="diagonal", average=True),
        PRanker(),
        PairwisePerceptronRanker(),
        PerceptronCommitteeRanker(),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=(5, 25), n_features=6, random_state=0)


@pytest.mark.usefixtures("routing")
def test_pipelines_pass_qid_on(data):
    pipeline = make_pipeline(StandardScaler(), RankSVM(C=0.01, tol=1e-10)).fit(data.X, data.y, qid=data.qid)
    X = StandardScaler().fit_transform(data.X)
    by_hand = RankSVM(C=0.01, tol=1e-10).fit(X, data.y, qid=data.qid)
    np.testing.assert_array_equal(pipeline.predict(data.X), by_hand.predict(X))
    assert pipeline.score(data.X, data.y, qid=data.qid) == by_hand.score(X, data.y, qid=data.qid)


@pytest.mark.usefixtures("routing")
def test_query_scalers_in_a_pipeline(data):
    pipeline = make_pipeline(QueryMinMaxScaler(), RankSVM(C=0.1)).fit(data.X, data.y, qid=data.qid)
    X = QueryMinMaxScaler().fit_transform(data.X, qid=data.qid)
    by_hand = RankSVM(C=0.1).fit(X, data.y, qid=data.qid)
    np.testing.assert_array_equal(pipeline.predict(data.X, qid=data.qid), by_hand.predict(X))
    assert pipeline.score(data.X, data.y, qid=data.qid) == by_hand.score(X, data.y, qid=data.qid)


@pytest.mark.usefixtures("routing")
def test_weights_reach_the_last_step(data):
    weight = 1.0 + data.qid % 3
    pipeline = make_pipeline(StandardScaler(), RankSVM(C=0.01))
    pipeline.named_steps["standardscaler"].set_fit_request(sample_weight=False)
    pipeline.fit(data.X, data.y, qid=data.qid, sample_weight=weight, query_weight=weight)
    X = StandardScaler().fit_transform(data.X)
    by_hand = RankSVM(C=0.01).fit(X, data.y, qid=data.qid, sample_weight=weight, query_weight=weight)
    np.testing.assert_array_equal(pipeline.predict(data.X), by_hand.predict(X))


@pytest.mark.usefixtures("routing")
def test_low_rank_rankers_ask_for_qid_only(data):
    model = FactorizedRankSVM(C=0.1, random_state=0)
    requests = model.get_metadata_routing()
    assert requests.fit.requests["qid"] is True
    assert not {"sample_weight", "query_weight", "propensity", "event"} & set(requests.fit.requests)
    assert {name for name, request in requests.score.requests.items() if request} == {"qid"}
    pipeline = make_pipeline(StandardScaler(), model).fit(data.X, data.y, qid=data.qid)
    X = StandardScaler().fit_transform(data.X)
    by_hand = FactorizedRankSVM(C=0.1, random_state=0).fit(X, data.y, qid=data.qid)
    np.testing.assert_array_equal(pipeline.predict(data.X), by_hand.predict(X))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("ranker", [RegularizedRankSVM(), SOLARRanker(random_state=0)])
@pytest.mark.parametrize("name", ["sample_weight", "event"])
def test_what_fit_does_not_use_is_refused_by_searches(data, ranker, name):
    search = GridSearchCV(ranker, {"C": [0.1]}, cv=QueryKFold(2))
    with pytest.raises(UnsetMetadataPassedError, match=name):
        search.fit(data.X, data.y, qid=data.qid, **{name: np.ones(data.n_rows)})


@pytest.mark.usefixtures("routing")
def test_grid_search(data):
    Cs = [1e-4, 1e-2, 1.0]
    search = GridSearchCV(RankSVM(), {"C": Cs}, cv=QueryKFold(3)).fit(data.X, data.y, qid=data.qid)
    for C, mean in zip(Cs, search.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in QueryKFold(3).split(data.X, qid=data.qid):
            model = RankSVM(C=C).fit(data.X[train], data.y[train], qid=data.qid[train])
            scores.append(model.score(data.X[test], data.y[test], qid=data.qid[test]))
        assert mean == pytest.approx(np.mean(scores))
    assert search.best_estimator_.n_queries_ == 40


def test_cross_val_score_and_our_cross_validate_agree(data):
    ours = cross_validate(RankSVM(), data.X, data.y, qid=data.qid, metrics="ndcg@10", cv=4)
    with sklearn.config_context(enable_metadata_routing=True):
        theirs = cross_val_score(RankSVM(), data.X, data.y, params={"qid": data.qid}, cv=QueryKFold(4))
    np.testing.assert_allclose(ours.scores["ndcg@10"], theirs)
    threads = cross_validate(RankSVM(n_jobs=2), data.X, data.y, qid=data.qid, metrics="ndcg@10", cv=4, n_jobs=2)
    np.testing.assert_allclose(threads.scores["ndcg@10"], theirs)


def test_without_routing_score_says_how_to_go_on(data):
    model = RankSVM().fit(data.X, data.y, group=np.unique(data.qid, return_counts=True)[1])
    with pytest.raises(DataError, match=r"several queries: .*enable_metadata_routing=True.*cross_validate needs no"):
        model.score(data.X, data.y)


def test_fit_writes_no_hyper_parameter(data):
    for model in (RankSVM(C=0.1), RankSVMCV(Cs=[0.1, 0.01], cv=3), FactorizedRankSVM(C=0.1)):
        before = {name: (id(value), repr(value)) for name, value in model.get_params().items()}
        model.fit(data.X, data.y, qid=data.qid)
        assert {name: (id(value), repr(value)) for name, value in model.get_params().items()} == before
