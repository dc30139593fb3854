"""Means, their histories, and intervals that may be looked at at any time."""

import numpy as np
import pytest

from ranksvm.serving.measures import Measure, Wins, win_interval


def test_a_measure_continues_from_its_state():
    rng = np.random.default_rng(0)
    queries = [(rng.integers(0, 3, 6).astype(float), rng.normal(size=6)) for _ in range(50)]
    whole, parts = Measure("ndcg@3"), Measure("ndcg@3")
    for number, query in enumerate(queries):
        whole.add(*query)
        parts.add(*query)
        if number % 7 == 0:
            parts = Measure("ndcg@3", parts.state)
    assert parts.state == whole.state
    n_queries, mean, half = whole.history()[-1]
    assert (n_queries, mean) == (48, pytest.approx(whole.mean, abs=0.05))
    assert half > 0


def test_a_history_has_bounded_memory():
    measure = Measure("ndcg@3")
    for _ in range(16 * 800):
        measure.add(np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    assert 200 <= len(measure.history()) <= 400
    assert measure.history()[-1][1:] == (1.0, 0.0)


def test_a_mean_of_nothing_is_unknown():
    assert Measure("ndcg@3").mean is None
    assert Measure("ndcg@3").history() == []


def test_wins_are_of_the_model_with_more_clicks():
    wins = Wins()
    for clicked in ([1, 0], [0, 1], [1, 1], [0, 0]):
        wins.add(["champion", "challenger"], np.array(clicked, dtype=bool))
    assert wins.counts == {"champion": 1, "challenger": 1, "ties": 2}
    assert wins.verdict()["better"] is None
    assert Wins({"champion": 2, "challenger": 60, "ties": 0}).verdict()["better"] == "challenger"


def test_an_interval_solves_its_equation():
    from scipy.special import betaln

    low, high = win_interval(30, 10, 0.9)
    for p in (low, high):
        ratio = betaln(30.5, 10.5) - betaln(0.5, 0.5) - 30 * np.log(p) - 10 * np.log1p(-p)
        assert ratio == pytest.approx(np.log(10), abs=1e-6)
    assert low < 0.75 < high
    assert win_interval(0, 0) == (0.0, 1.0)
    assert win_interval(0, 5)[0] == 0.0
    assert win_interval(5, 0)[1] == 1.0


def test_an_interval_covers_at_all_times_at_once():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        won = np.cumsum(rng.random(300) < 0.5)
        checks = [win_interval(int(w), n + 1 - int(w)) for n, w in enumerate(won) if n % 10 == 9]
        missed += any(not low <= 0.5 <= high for low, high in checks)
    assert missed <= 0.05 * 200 + 5
