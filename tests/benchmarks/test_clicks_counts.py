"""Clicks drawn as numbers against a log of impressions: the same pairs, the same propensities."""

import numpy as np

import _clicks_counts
import _clicks_world
from ranksvm.clicks import PositionBias, attractiveness, click_pairs, position_bias, relevance, simulate_clicks


def test_numbers_of_clicks_stand_for_a_log():
    world = _clicks_world.World("made")
    lists = _clicks_counts.Lists(world, 10)
    log = simulate_clicks(world.train, world.rankers, 40_000, n_ranks=10, random_state=0)
    queries = world.train.queries
    of_list = log.ranker * queries.n_queries + log.query
    place = of_list * 10 + log.rank - 1
    counted = lists.list * 10 + lists.rank
    shown = np.bincount(of_list[log.pointers[:-1]], minlength=lists.n_lists)
    clicks = _clicks_counts.Clicks(lists, shown, np.bincount(place, log.clicked, lists.n_lists * 10)[counted])
    for bias in (None, PositionBias.power(10)):
        pairs, weight = clicks.pairs(None if bias is None else bias.propensity)
        expected = click_pairs(log, world.train, bias, rule="shown_all", normalize=False)
        np.testing.assert_array_equal(pairs, expected.pairs)
        np.testing.assert_allclose(weight, expected.weight)
    bias = position_bias(log, n_bootstrap=0)
    np.testing.assert_allclose(clicks.harvested(), bias.propensity)
    np.testing.assert_allclose(clicks.relevance(bias.propensity), relevance(log, world.train, bias))


def test_the_expected_numbers():
    lists = _clicks_counts.Lists(_clicks_world.World("made"), 5)
    drawn = lists.draw(3_000_000, np.random.default_rng(0))
    pairs, weight = drawn.pairs(lists.propensity)
    limit, expected = lists.expected().pairs(lists.propensity)
    np.testing.assert_array_equal(pairs, limit)
    np.testing.assert_allclose(weight / weight.sum(), expected / expected.sum(), rtol=0.3)


def test_a_random_document_at_the_last_rank():
    world = _clicks_world.World("made")
    lists = _clicks_counts.Lists(world, 5, explored=True)
    log = simulate_clicks(world.train, world.rankers, 100_000, n_ranks=5, swap="last", random_state=0)
    shown = np.bincount(log.rows(world.train) * 5 + log.rank - 1, minlength=world.train.n_rows * 5)
    expected = np.bincount(lists.row * 5 + lists.rank, lists.share[lists.list], world.train.n_rows * 5)
    assert ((shown > 0) <= (expected > 0)).all()
    error = (shown - 100_000 * expected) / np.sqrt(np.maximum(100_000 * expected, 1.0))
    assert np.abs(error).max() < 6.0
    # what infinitely many clicks teach is the attractiveness of every document
    found = lists.expected().relevance(lists.propensity)
    np.testing.assert_allclose(found, attractiveness(world.train))
