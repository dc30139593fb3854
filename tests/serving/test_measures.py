"""Means, their histories, and intervals that may be looked at at any time."""

import numpy as np
import pytest

from ranksvm.serving.measures import Measure, Wins


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


def test_points_are_the_same_whenever_they_are_looked_at():
    rng = np.random.default_rng(1)
    lazy, eager = Measure("ndcg@3"), Measure("ndcg@3")
    for number in range(16 * 450):
        query = rng.integers(0, 3, 4).astype(float), rng.normal(size=4)
        lazy.add(*query)
        eager.add(*query)
        if number % 16 == 15:
            assert eager.history()[-1][0] <= number + 1
        if number in (100, 16 * 399, 16 * 400):
            assert lazy.history() == eager.history()
    assert lazy.state == eager.state


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
