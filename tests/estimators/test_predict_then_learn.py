"""predict_then_learn is predict and then partial_fit, query by query."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm import PairwisePerceptronRanker, PerceptronCommitteeRanker, PRanker, SOLARRanker, make_ranking

MODELS = [
    SOLARRanker(C=0.01, decay=0.9, random_state=0),
    SOLARRanker(order=2, gamma=10, average=True, random_state=0),
    SOLARRanker(order=2, covariance="diagonal", random_state=0),
    PairwisePerceptronRanker(random_state=0),
    PerceptronCommitteeRanker(3, random_state=0),
    PRanker(range(5), random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("density", [1.0, 0.2])
def test_is_predict_and_partial_fit_in_turn(model, density):
    data = make_ranking(12, (1, 9), 6, density=density, random_state=1)
    mixed = data.select(np.random.default_rng(0).permutation(data.n_rows))
    assert sp.issparse(mixed.X) == (density < 1)
    one, many = (type(model)(**model.get_params()) for _ in range(2))
    expected = np.zeros(mixed.n_rows)
    for number, (_, rows) in enumerate(mixed.queries):
        if number:
            expected[rows] = one.predict(mixed.X[rows])
        one.partial_fit(mixed.X[rows], mixed.y[rows])
    half = np.isin(mixed.qid, mixed.queries.ids[:5])
    scores = np.zeros(mixed.n_rows)
    for rows in (half, ~half):
        scores[rows] = many.predict_then_learn(mixed.X[rows], mixed.y[rows], qid=mixed.qid[rows])
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(many.coef_, one.coef_)
    assert many.n_queries_ == 12


def test_weights_are_those_of_partial_fit():
    data = make_ranking(5, 8, 4, random_state=0)
    propensity = np.random.default_rng(0).uniform(0.2, 1, data.n_rows)
    one, other = SOLARRanker(random_state=0), SOLARRanker(random_state=0)
    one.predict_then_learn(data.X, data.y, qid=data.qid, propensity=propensity)
    other.partial_fit(data.X, data.y, qid=data.qid, propensity=propensity)
    np.testing.assert_array_equal(one.coef_, other.coef_)
