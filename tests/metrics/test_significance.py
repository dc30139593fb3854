"""Paired tests against SciPy's and against all swaps, by hand."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from ranksvm import metrics
from ranksvm.exceptions import DataError, OptionError


def two_evaluations(n_queries, noise=(1.0, 0.5), seed=0, names=("ndcg@10", "pairwise_accuracy")):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(2, 12, n_queries))
    y = rng.integers(0, 4, len(qid))
    return [metrics.evaluate(y, y + level * rng.normal(size=len(y)) * 3, qid, names) for level in noise]


def test_randomisation_tries_all_swaps_of_few_queries():
    a, b = two_evaluations(9)
    gap = b.per_query["ndcg@10"] - a.per_query["ndcg@10"]
    sums = [abs(np.dot(signs, gap)) for signs in itertools.product((-1, 1), repeat=9)]
    result = metrics.compare(a, b, "ndcg@10")
    assert result.p_value == np.mean(np.array(sums) >= abs(gap.sum()) - 1e-12)
    assert result.difference == pytest.approx(gap.mean())
    assert (result.wins, result.losses, result.ties) == ((gap > 0).sum(), (gap < 0).sum(), (gap == 0).sum())


def test_t_test_and_interval_are_scipys():
    a, b = two_evaluations(60)
    result = metrics.compare(a, b, "ndcg@10", confidence=0.9)
    found = stats.ttest_rel(b.per_query["ndcg@10"], a.per_query["ndcg@10"])
    assert result.t_p_value == pytest.approx(found.pvalue)
    interval = found.confidence_interval(0.9)
    assert result.confidence_interval == pytest.approx((interval.low, interval.high))
    # both tests ask the same question of many queries
    assert result.p_value == pytest.approx(result.t_p_value, abs=0.02)
    assert metrics.compare(a, b, "ndcg@10") == metrics.compare(a, b, "ndcg@10")


def test_difference_is_that_of_the_means_also_where_they_pool_pairs():
    a, b = two_evaluations(50)
    for name in a.means:
        result = metrics.compare(a, b, name)
        assert result.mean_a == pytest.approx(a.means[name])
        assert result.difference == pytest.approx(b.means[name] - a.means[name])
        low, high = result.confidence_interval
        assert low < result.difference < high


def test_swapped_arguments_swap_the_sign():
    a, b = two_evaluations(40)
    there, back = metrics.compare(a, b, "ndcg@10"), metrics.compare(b, a, "ndcg@10")
    assert there.difference == -back.difference
    assert there.p_value == back.p_value
    assert (there.wins, there.losses) == (back.losses, back.wins)


def test_no_difference():
    a, _ = two_evaluations(20)
    result = metrics.compare(a, a, "ndcg@10")
    assert (result.p_value, result.t_p_value, result.confidence_interval) == (1, 1, (0, 0))
    assert result.ties == 20


def test_random_p_values_are_uniform_without_a_difference():
    p_values = [metrics.compare(*two_evaluations(30, (1, 1), seed), "ndcg@10").p_value for seed in range(150)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_queries_are_matched_by_id():
    rng = np.random.default_rng(1)
    qid, y = np.repeat(list("abcdefgh"), 5), rng.integers(0, 3, 40)
    one, two = rng.normal(size=(2, 40))
    order = rng.permutation(40)
    a, b = metrics.evaluate(y, one, qid), metrics.evaluate(y, two, qid)
    shuffled = metrics.evaluate(y[order], two[order], qid[order])
    assert metrics.compare(a, shuffled, "map").difference == pytest.approx(metrics.compare(a, b, "map").difference)


def test_queries_without_pairs_are_left_out_and_json():
    a = metrics.evaluate([1, 0, 1], [1, 2, 3], [1, 1, 2], ["kendall_tau"])
    b = metrics.evaluate([1, 0, 1], [2, 1, 3], [1, 1, 2], ["kendall_tau"])
    result = metrics.compare(a, b, "kendall_tau")
    assert (result.n_queries, result.difference, result.p_value) == (1, 2, 1)
    assert json.loads(json.dumps(result.to_dict()))["confidence_interval"] == [None, None]


def test_refused():
    a, b = two_evaluations(10)
    with pytest.raises(OptionError, match="'map' was not evaluated"):
        metrics.compare(a, b, "map")
    with pytest.raises(DataError, match="same queries: query 9 is in one only"):
        metrics.compare(a, two_evaluations(9)[0], "ndcg@10")
    with pytest.raises(DataError, match="weight the queries differently"):
        metrics.compare(a, two_evaluations(10, seed=1)[0], "pairwise_accuracy")
    with pytest.raises(OptionError, match="confidence must lie between"):
        metrics.compare(a, b, "ndcg@10", confidence=95)
    with pytest.raises(OptionError, match="n_permutations must be at least 1"):
        metrics.compare(a, b, "ndcg@10", n_permutations=0)
