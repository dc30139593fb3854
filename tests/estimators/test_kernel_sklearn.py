"""KernelRankSVM and KernelRankSVMCV as scikit-learn estimators: its checks, pipelines, searches."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranksvm import KernelRankSVM, KernelRankSVMCV, QueryKFold, cross_validate, make_ranking
from ranksvm.estimators.base import choosing_ranker

# The checks compare predictions to seven digits, more than the default tolerance is for.
EXACT = {"gamma": 0.1, "tol": 1e-14, "kernel_dtype": "float64"}


def expected_failures(estimator):
    """Check -> why it cannot hold."""
    why = {}
    if estimator.kernel == "precomputed":
        changed = "what the check turns the kernel matrix into is not a kernel matrix: "
        why["check_positive_only_tag_during_fit"] = changed + "the mean is subtracted, as from features"
        why["check_estimators_dtypes"] = changed + "its values are rounded to integers"
        why["check_estimators_nan_inf"] = changed + "it has fewer columns than there were documents"
    if estimator.approximation == "nystroem":
        why["check_sample_weight_equivalence_on_dense_data"] = "landmarks are drawn among other rows"
        why["check_sample_weight_equivalence_on_sparse_data"] = "landmarks are drawn among other rows"
    elif estimator.tol > 1e-8 and estimator.kernel == "rbf" and isinstance(estimator, KernelRankSVM):
        inexact = "gamma='scale' is computed from all rows, as in SVC, and predictions agree only within tol"
        why["check_sample_weight_equivalence_on_dense_data"] = inexact
        why["check_sample_weight_equivalence_on_sparse_data"] = inexact
    return why


@pytest.fixture
def one_query_twice(monkeypatch):
    """The checks' data are one query, which no split may divide: let both parts be all of it."""

    def splits(cv, X, y, queries):
        return [(np.arange(queries.n_rows), np.arange(queries.n_rows))]

    monkeypatch.setattr(choosing_ranker, "query_splits", splits)


ESTIMATORS = [
    KernelRankSVM(),
    KernelRankSVM(**EXACT),
    KernelRankSVM(solver="tron", loss="huber"),
    KernelRankSVM(kernel="poly", degree=2, **EXACT),
    KernelRankSVM(kernel="precomputed"),
    KernelRankSVM(approximation="nystroem", n_components=20, random_state=0),
    KernelRankSVM(approximation="fourier", n_components=20, random_state=0, **EXACT),
    KernelRankSVMCV(Cs=[0.01, 1.0], gammas=[0.01, 0.1]),
]


@pytest.mark.usefixtures("one_query_twice")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=24, n_docs=(5, 15), n_features=6, random_state=0)


@pytest.mark.usefixtures("routing")
def test_grid_search_over_C_and_gamma(data):
    grid = {"C": [1e-2, 1.0], "gamma": [0.01, 0.1]}
    search = GridSearchCV(KernelRankSVM(), grid, cv=QueryKFold(3)).fit(data.X, data.y, qid=data.qid)
    for parameters, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in QueryKFold(3).split(data.X, qid=data.qid):
            model = KernelRankSVM(**parameters).fit(data.X[train], data.y[train], qid=data.qid[train])
            scores.append(model.score(data.X[test], data.y[test], qid=data.qid[test]))
        assert mean == pytest.approx(np.mean(scores))
    assert search.best_estimator_.n_queries_ == 24


@pytest.mark.usefixtures("routing")
def test_pipelines_pass_qid_and_weights_on(data):
    weight = 1.0 + data.qid % 3
    pipeline = make_pipeline(StandardScaler(), KernelRankSVM(C=0.1))
    pipeline.fit(data.X, data.y, qid=data.qid, query_weight=weight)
    X = StandardScaler().fit_transform(data.X)
    by_hand = KernelRankSVM(C=0.1).fit(X, data.y, qid=data.qid, query_weight=weight)
    np.testing.assert_array_equal(pipeline.predict(data.X), by_hand.predict(X))
    assert pipeline.score(data.X, data.y, qid=data.qid) == by_hand.score(X, data.y, qid=data.qid)


def test_precomputed_kernels_are_cut_by_rows_and_columns(data):
    K = np.exp(-0.1 * ((data.X[:, None] - data.X) ** 2).sum(axis=2))
    with sklearn.config_context(enable_metadata_routing=True):
        theirs = cross_val_score(
            KernelRankSVM(0.1, kernel="precomputed"), K, data.y, params={"qid": data.qid}, cv=QueryKFold(4)
        )
        features = cross_val_score(
            KernelRankSVM(0.1, gamma=0.1), data.X, data.y, params={"qid": data.qid}, cv=QueryKFold(4)
        )
    np.testing.assert_allclose(theirs, features, atol=1e-3)
    ours = cross_validate(KernelRankSVM(0.1, kernel="precomputed"), K, data.y, qid=data.qid, cv=4)
    np.testing.assert_allclose(ours.scores["ndcg@10"], theirs)


def test_fit_writes_no_hyper_parameter(data):
    for model in (KernelRankSVM(), KernelRankSVMCV(Cs=[0.1, 0.01], cv=3)):
        before = {name: (id(value), repr(value)) for name, value in model.get_params().items()}
        model.fit(data.X, data.y, qid=data.qid)
        assert {name: (id(value), repr(value)) for name, value in model.get_params().items()} == before
