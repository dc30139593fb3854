"""SOLARRanker against the slow learners, query by query, with decay and means."""

import numpy as np
import pytest
import scipy.sparse as sp

from online_oracle import SolarFirst, SolarSecond, pairs_in_order
from ranksvm import SOLARRanker, make_ranking
from ranksvm.exceptions import OptionError

ORACLES = {
    "first": (lambda n: SolarFirst(n, 0.02), {"order": 1, "C": 0.02}),
    "second": (lambda n: SolarSecond(n, 5.0), {"order": 2, "gamma": 5.0}),
    "diagonal": (
        lambda n: SolarSecond(n, 5.0, diagonal=True),
        {"order": 2, "gamma": 5.0, "covariance": "diagonal"},
    ),
}


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=20, n_docs=(1, 9), n_features=5, dtype=np.float64, random_state=1)


def slow(oracle, data, decay=1.0, seed=None, weight=None):
    """The slow learner after one pass."""
    for number, query in enumerate(np.unique(data.qid)):
        if isinstance(oracle, SolarSecond):
            oracle.S = decay * oracle.S + (1.0 - decay) * np.eye(len(oracle.w))
        else:
            oracle.w = decay * oracle.w
        X, y = data.X[data.qid == query], data.y[data.qid == query]
        for i, j in pairs_in_order(y, seed is not None, seed or 0, number):
            oracle.pair(X[i] - X[j], 1.0 if weight is None else weight[data.qid == query][i])
    return oracle


@pytest.mark.parametrize("decay", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("which", ORACLES)
def test_a_pass_is_that_of_the_slow_learner(which, decay, data):
    make, options = ORACLES[which]
    model = SOLARRanker(**options, decay=decay, random_state=0).fit(data.X, data.y, qid=data.qid)
    oracle = slow(make(5), data, decay, model.seed_)
    np.testing.assert_allclose(model.coef_, oracle.w, rtol=1e-9, atol=1e-12)
    assert model.n_pairs_ == len(oracle.past)
    if which == "first":
        with pytest.raises(AttributeError, match="covariance"):
            _ = model.covariance_
    else:
        expected = np.diag(oracle.S) if which == "diagonal" else oracle.S
        np.testing.assert_allclose(model.covariance_, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("decay", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("which", ORACLES)
def test_the_mean_is_that_of_all_weights(which, decay, data):
    """``coef_`` is the mean of w after each pair; learning itself goes on from the last w."""
    make, options = ORACLES[which]
    options = {**options, "decay": decay, "shuffle_pairs": False}
    last = SOLARRanker(**options).fit(data.X, data.y, qid=data.qid)
    model = SOLARRanker(**options, average=True).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(model.weights_, last.weights_, rtol=1e-12)
    np.testing.assert_allclose(model.coef_, np.mean(slow(make(5), data, decay).past, axis=0), rtol=1e-9, atol=1e-12)


def test_weights_count_as_C_and_gamma_do(data):
    weight = 1.0 + data.qid % 3
    for which in ORACLES:
        make, options = ORACLES[which]
        model = SOLARRanker(**options, shuffle_pairs=False)
        model.fit(data.X, data.y, qid=data.qid, query_weight=weight)
        oracle = slow(make(5), data, weight=weight)
        np.testing.assert_allclose(model.coef_, oracle.w, rtol=1e-9, atol=1e-12)
    doubled = SOLARRanker(C=0.01, shuffle_pairs=False)
    doubled.fit(data.X, data.y, qid=data.qid, query_weight=np.full(len(data.y), 2.0))
    twice = SOLARRanker(C=0.02, shuffle_pairs=False).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(doubled.coef_, twice.coef_, rtol=1e-14)


def test_many_sparse_features_cost_what_is_not_zero():
    """Columns that no document of the stream has stay untouched, and so does their variance."""
    X = sp.random_array((60, 200_000), density=1e-4, format="csr", random_state=np.random.default_rng(0))
    y, qid = np.arange(60) % 3, np.repeat(np.arange(6), 10)
    used = np.unique(X.indices)
    for options in ({"order": 1, "C": 1.0}, {"order": 2, "gamma": 1.0, "covariance": "diagonal"}):
        wide = SOLARRanker(**options, random_state=0).fit(X, y, qid=qid)
        narrow = SOLARRanker(**options, random_state=0).fit(X[:, used].toarray(), y, qid=qid)
        np.testing.assert_allclose(wide.coef_[used], narrow.coef_, rtol=1e-12)
        assert np.count_nonzero(wide.coef_) == np.count_nonzero(narrow.coef_)
        if options["order"] == 2:
            np.testing.assert_allclose(wide.covariance_[used], narrow.covariance_, rtol=1e-12)
            assert np.count_nonzero(wide.covariance_ != 1.0) == np.count_nonzero(narrow.covariance_ != 1.0)


def test_the_covariance_shrinks_with_updates_only(data):
    """A pair in order by the margin leaves S as it is, unlike the published equation (7)."""
    model = SOLARRanker(2, gamma=1.0).partial_fit_pairs([[2.0], [0.0]], [(0, 1)])
    before = model.covariance_
    for _ in range(100):
        model.partial_fit_pairs([[2.0], [0.0]], [(0, 1)])
    learnt = model.n_updates_
    model.partial_fit_pairs([[200.0], [0.0]], [(0, 1)])
    assert model.n_updates_ == learnt
    assert 0.0 < model.covariance_[0, 0] < before[0, 0] == pytest.approx(1.0 / 5.0)


def test_the_second_order_beats_the_first_on_features_of_different_scale():
    """What the covariance is for."""
    data = make_ranking(n_queries=300, n_docs=10, n_features=10, noise=0.1, random_state=0)
    X = data.X * 10.0 ** np.linspace(-1, 1, 10)
    scores = {
        order: SOLARRanker(order, C=1.0, gamma=1.0, random_state=0)
        .fit(X[:2000], data.y[:2000], qid=data.qid[:2000])
        .score(X[2000:], data.y[2000:], qid=data.qid[2000:])
        for order in (1, 2)
    }
    assert scores[2] > scores[1]


@pytest.mark.parametrize("gamma", [1e-2, 10.0, 1e4])
@pytest.mark.parametrize("options", [{"order": 1}, {"order": 2}, {"order": 2, "covariance": "diagonal"}], ids=str)
def test_forgetting_keeps_the_ranking_and_makes_room(options, gamma):
    data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    ranker = SOLARRanker(**options, C=0.1, gamma=gamma, random_state=0).fit(data.X, data.y, qid=data.qid)
    w, before = ranker.coef_.copy(), ranker.rank(data.X, qid=data.qid)
    factor = 0.25
    if options["order"] == 2:
        full = not options.get("covariance")
        S = ranker.covariance_.copy() if full else np.diag(ranker.covariance_)
        P = np.linalg.inv(S)
        Q = np.eye(4) + 0.25 * (P - np.eye(4))
        factor = np.linalg.norm(0.25 * np.linalg.solve(Q, P @ w)) / np.linalg.norm(w)
        assert 0.25 <= factor < 1.0
    assert ranker.forget(np.float32(0.25)) is ranker
    np.testing.assert_allclose(ranker.coef_, factor * w, rtol=1e-6)
    after = ranker.rank(data.X, qid=data.qid)
    assert all(np.array_equal(before[query], after[query]) for query in before)
    if options["order"] == 2:
        expected = np.linalg.inv(Q)
        np.testing.assert_allclose(ranker.covariance_, expected if full else np.diag(expected), rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(ranker.forget(0.0).covariance_, np.eye(4) if full else np.ones(4), atol=1e-12)
    assert not ranker.forget(0.0).coef_.any()


def test_what_cannot_be_forgotten():
    assert not hasattr(SOLARRanker().forget(0.5), "weights_")  # nothing was learned yet
    for keep in (-0.1, 1.5, "half", True, float("nan")):
        with pytest.raises(OptionError, match="keep must be between 0 and 1"):
            SOLARRanker().forget(keep)
    with pytest.raises(OptionError, match="mean of past weights"):
        SOLARRanker(average=True).learn_one_query([[1.0], [0.0]], [1, 0]).forget(0.5)
