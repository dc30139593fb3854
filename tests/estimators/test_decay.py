"""SOLARRanker with decay follows weights that change; what it does before each query is as documented."""

import numpy as np
import pytest

from ranksvm import SOLARRanker, make_ranking_stream, progressive_validation


@pytest.mark.parametrize(
    "options",
    [{"order": 1}, {"order": 2, "gamma": 100.0}, {"order": 2, "gamma": 100.0, "covariance": "diagonal"}],
    ids=["first", "second", "diagonal"],
)
@pytest.mark.parametrize("drift", ["sudden", "gradual"])
def test_decay_follows(options, drift):
    def quality(decay):
        stream = make_ranking_stream(450, 15, 10, drift=drift, drift_queries=150, random_state=1)
        return progressive_validation(SOLARRanker(**options, decay=decay, random_state=0), stream)["ndcg@10"]

    assert quality(0.97) > quality(1.0) + 0.05


@pytest.mark.parametrize("average", [False, True])
def test_first_order_learns_from_decayed_weights(average):
    rng = np.random.default_rng(0)
    X, pairs = rng.standard_normal((6, 4)), np.array([[0, 1], [2, 1], [5, 3]])
    model = SOLARRanker(C=0.1, decay=0.7, average=average)
    w, shown = np.zeros(4), []
    for _ in range(3):
        model.partial_fit_pairs(X, pairs)
        w = 0.7 * w
        for i, j in pairs:
            z = X[i] - X[j]
            w = w + z * max(0.0, 1.0 - w @ z) / (z @ z + 1.0 / (2 * 0.1))
            shown.append(w)
    np.testing.assert_allclose(model.weights_, w, rtol=1e-12)
    if average:
        np.testing.assert_allclose(model.coef_, np.mean(shown, axis=0), rtol=1e-10)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_second_order_learns_from_a_covariance_on_its_way_back(covariance):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 4))
    model = SOLARRanker(order=2, gamma=1.0, decay=0.7, covariance=covariance)
    model.partial_fit_pairs(X, [[0, 1], [2, 1], [5, 3]])
    before, w = model.covariance_.copy(), model.weights_.copy()
    model.partial_fit_pairs(X, [[0, 1]], weight=[0.0])
    one = np.eye(4) if covariance == "full" else np.ones(4)
    np.testing.assert_allclose(model.covariance_, 0.7 * before + 0.3 * one, rtol=1e-12)
    np.testing.assert_array_equal(model.weights_, w)
