"""Snapshots of models that another thread teaches: each is the model between two queries."""

import pickle
import threading

import numpy as np
import pytest

import ranksvm

MODELS = [
    ranksvm.SOLARRanker(average=True, random_state=0),
    ranksvm.SOLARRanker(2, random_state=0),
    ranksvm.PRanker([0, 1, 2, 3, 4], random_state=0),
    ranksvm.PerceptronCommitteeRanker(3, random_state=0),
]


@pytest.mark.parametrize("model", MODELS)
def test_a_snapshot_is_the_model_between_two_queries(model):
    data = ranksvm.make_ranking(n_queries=200, n_docs=20, n_features=64, random_state=0)
    expected = {}
    for _, rows in data.queries:
        model.partial_fit(data.X[rows], data.y[rows])
        expected[model.n_queries_] = model.coef_.copy()
    learner = type(model)(**model.get_params())
    learner.partial_fit(data.X[data.queries.rows(0)], data.y[data.queries.rows(0)])
    rest = data.select(np.arange(len(data.queries.rows(0)), len(data)))
    thread = threading.Thread(target=learner.partial_fit, args=(rest.X, rest.y), kwargs={"qid": rest.qid})
    thread.start()
    copies = []
    while thread.is_alive():
        copies.append(learner.snapshot())
    thread.join()
    copies.append(learner.snapshot())
    assert copies[-1].n_queries_ == 200
    for copied in copies:
        np.testing.assert_array_equal(copied.coef_, expected[copied.n_queries_])
        assert copied.n_features_in_ == 64


def test_a_snapshot_does_not_learn_on_and_models_can_be_pickled():
    X, y = np.eye(3), [2, 1, 0]
    model = ranksvm.SOLARRanker().partial_fit(X, y)
    copied = model.snapshot()
    weights = copied.coef_.copy()
    model.partial_fit(X[::-1], y)
    np.testing.assert_array_equal(copied.coef_, weights)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    assert not hasattr(ranksvm.SOLARRanker().snapshot(), "weights_")
