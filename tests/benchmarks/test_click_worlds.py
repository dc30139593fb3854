"""Estimates in a few of the simulated worlds: the truth lies in their intervals as often as they say."""

import numpy as np
import pytest

import _click_worlds


@pytest.fixture(scope="module")
def results():
    return [one for world in _click_worlds.worlds(30, (5_000,)) for one in world.estimates()]


@pytest.mark.parametrize("kind", ["ips dcg@10", "ips mrr@10", "ips mean_relevant_rank", "snips dcg@10", "dr dcg@10"])
def test_intervals_hold_the_truth(results, kind):
    truth = "whole" if kind.startswith("dr") else "seen"
    chosen = [one for one in results if one["estimator"] == kind and (truth == "seen" or one["unseen"] == 0.0)]
    assert len(chosen) > 40
    inside = np.mean([one["low"] <= one[truth] <= one["high"] for one in chosen])
    bias = np.mean([one["value"] / one[truth] - 1.0 for one in chosen])
    assert 0.88 <= inside <= 0.99
    assert abs(bias) < 0.03


def test_rankers_have_the_order_of_the_truth_where_intervals_are_apart(results):
    dcg = [one for one in results if one["estimator"] == "ips dcg@10"]
    apart = right = 0
    for one in dcg:
        for other in dcg:
            if one["world"] == other["world"] and one["low"] > other["high"]:
                apart += 1
                right += one["seen"] > other["seen"]
    assert apart > 50
    assert right >= 0.98 * apart


def test_the_propensity_of_the_rank_alone_is_wrong_for_several_rankers(results):
    """What the worlds are for: here the estimates of one ranker's lists are far off."""
    chosen = [one for one in results if one["estimator"] == "rank dcg@10"]
    assert np.mean([one["low"] <= one["seen"] <= one["high"] for one in chosen]) < 0.6
