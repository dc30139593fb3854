"""Simulated users: their click rates are those of the models."""

import numpy as np
import pytest

from ranksvm import RankingData, RankSVM, make_ranking
from ranksvm.clicks import attractiveness, simulate_clicks
from ranksvm.exceptions import DataError, OptionError


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=6, n_docs=6, n_features=3, random_state=0)


def test_ids_of_documents_of_several_types(data):
    ids = np.array([row if row % 2 else str(row) for row in range(data.n_rows)], dtype=object)
    log = simulate_clicks(data, data.X[:, 0], 50, random_state=0)
    named = RankingData(data.X, data.y, data.qid, ids)
    assert (simulate_clicks(named, data.X[:, 0], 50, random_state=0).rows(named) == log.rows(data)).all()


def rates(log, data, n_ranks=6):
    """Click rate and impressions of each document at each rank."""
    rows = log.rows(data)
    place = rows * n_ranks + log.rank - 1
    shown = np.bincount(place, minlength=data.n_rows * n_ranks).reshape(-1, n_ranks)
    clicks = np.bincount(place, weights=log.clicked, minlength=shown.size).reshape(-1, n_ranks)
    return clicks, shown


def check_rates(clicks, shown, expected):
    """Within 4.5 standard errors everywhere."""
    error = np.sqrt(shown * expected * (1 - expected)) + 1e-9
    assert (np.abs(clicks - shown * expected) <= 4.5 * error + 1e-6).all()


def test_the_position_model(data):
    log = simulate_clicks(data, data.X[:, 0], 60_000, n_ranks=6, swap="shuffle", eta=0.7, noise=0.2, random_state=1)
    expected = attractiveness(data, 0.2)[:, None] * np.arange(1, 7.0) ** -0.7
    clicks, shown = rates(log, data)
    assert (shown > 500).all()
    check_rates(clicks, shown, expected)


def test_the_trust_model(data):
    log = simulate_clicks(
        data, data.X[:, 0], 60_000, n_ranks=6, swap="shuffle", model="trust", noise=0.0, random_state=1
    )
    gain, rank = attractiveness(data, 0.0)[:, None], np.arange(1, 7)
    clicked = gain * (1 - (rank + 1) / 100) + (1 - gain) * 0.65 / rank
    check_rates(*rates(log, data), clicked / rank)


def test_the_cascade(data):
    log = simulate_clicks(data, data.X[:, 0], 40_000, n_ranks=6, model="cascade", random_state=1)
    assert np.add.reduceat(log.clicked, log.pointers[:-1]).max() == 1
    a = attractiveness(data)
    rows = log.rows(data)
    first = {}
    for start, stop in zip(log.pointers[:-1], log.pointers[1:], strict=True):
        first.setdefault(log.query[start], rows[start:stop])
    expected = np.zeros((data.n_rows, 6))
    for shown in first.values():
        expected[shown, np.arange(6)] = a[shown] * np.concatenate(([1.0], np.cumprod(1 - a[shown])[:-1]))
    check_rates(*rates(log, data), expected)


@pytest.mark.parametrize("model", ["position", "cascade", "trust"])
def test_propensities_are_those_of_the_users(data, model):
    options = {"model": model, "n_ranks": 6, "swap": "shuffle", "noise": 0.0, "drift": 0.5, "random_state": 1}
    plain = simulate_clicks(data, data.X[:, 0], 60_000, **options)
    log = simulate_clicks(data, data.X[:, 0], 60_000, propensities=True, **options)
    assert plain.propensity is None
    np.testing.assert_array_equal(log.clicked, plain.clicked)
    if model == "trust":
        np.testing.assert_allclose(log.propensity, log.rank ** -(1.0 + 0.5 * log.time / 59_999))
        return
    a = attractiveness(data, 0.0)[log.rows(data)]
    for rank in range(1, 7):
        here = log.rank == rank
        p, clicks = log.propensity[here] * a[here], log.clicked[here]
        assert abs(clicks.sum() - p.sum()) <= 4.5 * np.sqrt((p * (1 - p)).sum()) + 1e-6
    if model == "cascade":
        below = np.flatnonzero((a == 1.0) & (log.rank < 6)) + 1
        assert len(below) > 0
        assert not log.propensity[below].any()


def test_lists_follow_the_rankers(data):
    model = RankSVM(C=1.0).fit(data.X, data.y, qid=data.qid)
    log = simulate_clicks(data, {"svm": model, "first": data.X[:, 0]}, 300, n_ranks=4, random_state=0)
    scores = {"svm": model.predict(data.X), "first": data.X[:, 0]}
    rows = log.rows(data)
    for start, stop in zip(log.pointers[:-1], log.pointers[1:], strict=True):
        name = log.ranker_names[log.ranker[start]]
        inside = np.flatnonzero(data.qid == log.query_ids[log.query[start]])
        best = inside[np.argsort(-scores[name][inside], kind="stable")][:4]
        assert rows[start:stop].tolist() == best.tolist()


@pytest.mark.parametrize("swap", ["top", "adjacent", "shuffle"])
def test_swaps_permute_the_base_list(data, swap):
    log = simulate_clicks(data, data.X[:, 0], 400, n_ranks=5, swap=swap, random_state=0)
    moved = set()
    for start, stop in zip(log.pointers[:-1], log.pointers[1:], strict=True):
        base = log.base_rank[start:stop]
        assert sorted(base) == [1, 2, 3, 4, 5]
        changed = np.flatnonzero(base != np.arange(1, 6))
        moved.add(tuple(changed.tolist()))
        if swap == "top":
            assert len(changed) == 0 or changed[0] == 0
            assert len(changed) in (0, 2)
        if swap == "adjacent":
            assert len(changed) == 0 or changed[1] == changed[0] + 1
    assert len(moved) > 4


def test_the_last_rank_explores(data):
    scores = data.X[:, 0]
    log = simulate_clicks(data, scores, 6_000, n_ranks=4, swap="last", random_state=0)
    rows = log.rows(data)
    numbers = data.queries.numbers()
    order = np.lexsort((-scores, numbers))
    place = np.empty(data.n_rows, dtype=int)
    place[order] = np.arange(data.n_rows) - data.queries.pointers[numbers[order]] + 1
    np.testing.assert_array_equal(log.base_rank, place[rows])
    above = log.rank < 4
    np.testing.assert_array_equal(log.rank[above], log.base_rank[above])
    # all documents that the ranks above leave over are equally likely
    shown = np.bincount(rows[~above], minlength=data.n_rows)
    assert not shown[place < 4].any()
    of_query = np.bincount(numbers, np.where(place >= 4, shown, 0))[numbers]
    left = (data.queries.sizes - 3)[numbers]
    np.testing.assert_allclose(shown[place >= 4], (of_query / left)[place >= 4], rtol=0.6)
    shorter = simulate_clicks(data, scores, 100, n_ranks=50, swap="last", random_state=0)
    np.testing.assert_array_equal(shorter.rank, shorter.base_rank)


def test_drift_lowers_later_clicks(data):
    log = simulate_clicks(data, data.X[:, 0], 20_000, n_ranks=6, eta=0.0, drift=2.0, random_state=0)
    late = log.time >= 10_000
    low = log.rank > 1
    assert log.clicked[late & low].mean() < 0.6 * log.clicked[~late & low].mean()


def test_popular_queries(data):
    log = simulate_clicks(data, data.X[:, 0], 500, query_popularity=[0, 1, 0, 0, 3, 0], random_state=0)
    asked = np.bincount(log.query[log.rank == 1], minlength=6)
    assert asked[[0, 2, 3, 5]].sum() == 0
    assert asked[4] > 2 * asked[1]


def test_thresholds(data):
    binary = attractiveness(data, 0.1, relevance=2)
    np.testing.assert_allclose(binary, np.where(data.y >= 2, 1.0, 0.1))
    graded = attractiveness(data, 0.1)
    np.testing.assert_allclose(graded, 0.1 + 0.9 * (2**data.y - 1) / (2 ** data.y.max() - 1))
    large = RankingData([[0.0]] * 4, [-1, 3, 1999, 2000])
    np.testing.assert_allclose(attractiveness(large, 0.0), [0.0, 0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "dbn"}, "model must be one of"),
        ({"swap": "all"}, "swap must be one of"),
        ({"noise": 1.0}, "noise must be below 1"),
        ({"eta": 1.0, "drift": -2.0}, r"eta \+ drift must be a finite number from 0"),
        ({"drift": "fast"}, "drift = 'fast'"),
        ({"relevance": "high"}, "relevance must be None or a number"),
        ({"random_state": -1}, "random_state must be"),
        ({"n_ranks": 0}, "n_ranks must be"),
    ],
)
def test_bad_options(data, options, message):
    with pytest.raises(OptionError, match=message):
        simulate_clicks(data, data.X[:, 0], 10, **options)


def test_bad_data(data):
    with pytest.raises(DataError, match=r"scores of shape \(3,\)"):
        simulate_clicks(data, [1.0, 2.0, 3.0], 10)
    with pytest.raises(DataError, match="no document is relevant"):
        attractiveness(data, relevance=99)
    with pytest.raises(OptionError, match="noise must be below 1"):
        attractiveness(data, noise=1.0)
    with pytest.raises(DataError, match="query_popularity must hold 6"):
        simulate_clicks(data, data.X[:, 0], 10, query_popularity=[1.0])
