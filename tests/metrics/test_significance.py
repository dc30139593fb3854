"""Paired tests against SciPy's and against all swaps, by hand."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from ranksvm import RankSVM, cross_validate, metrics
from ranksvm.exceptions import DataError, OptionError


def two_evaluations(n_queries, noise=(1.0, 0.5), seed=0, names=("ndcg@10", "pairwise_accuracy")):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(2, 12, n_queries))
    y = rng.integers(0, 4, len(qid))
    return [metrics.evaluate(y, y + level * rng.normal(size=len(y)) * 3, qid, names) for level in noise]


def test_randomization_tries_all_swaps_of_few_queries():
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


def test_round_off_is_no_difference():
    y, qid = np.tile([0.1, 0.1, 0.1, 0.7, 0.7, 0.7, 0.3, 0.0], 50), np.repeat(np.arange(50), 8)
    tied, untied = ([3, 3, 3, 2, 2, 2, 1, 0], [3.2, 3.1, 3, 2.2, 2.1, 2, 1, 0])
    names = ["ndcg", "err", "mean_ndcg"]
    a, b = (metrics.evaluate(y, np.tile(scores, 50), qid, names) for scores in (tied, untied))
    for name in names:
        assert np.any(a.per_query[name] != b.per_query[name])
        result = metrics.compare(a, b, name)
        assert (result.difference, result.p_value, result.t_p_value, result.ties) == (0.0, 1.0, 1.0, 50)


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
    with pytest.raises(OptionError, match="n_permutations must be a whole number from 1"):
        metrics.compare(a, b, "ndcg@10", n_permutations=0)
    a, b = two_evaluations(60)
    with pytest.raises(OptionError, match="random_state must be"):
        metrics.compare(a, b, "ndcg@10", random_state="x")


def several(n_queries, noise, seed=0, names=("ndcg@10", "pairwise_accuracy")):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(2, 12, n_queries))
    y = rng.integers(0, 4, len(qid))
    return {
        f"s{number}": metrics.evaluate(y, y + 3 * level * rng.normal(size=len(y)), qid, names)
        for number, level in enumerate(noise)
    }


def test_holm_and_bonferroni_by_hand():
    p = [0.01, 0.04, 0.03, 0.005]
    np.testing.assert_allclose(metrics.adjust_p_values(p), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(metrics.adjust_p_values(p, "bonferroni"), [0.04, 0.16, 0.12, 0.02])
    np.testing.assert_allclose(metrics.adjust_p_values([0.5, 0.9, 0.4]), [1, 1, 1])
    assert metrics.adjust_p_values(p, "none").tolist() == p
    assert metrics.adjust_p_values([]).tolist() == []
    with pytest.raises(OptionError, match="numbers from 0 to 1"):
        metrics.adjust_p_values([1.5])
    with pytest.raises(OptionError, match="correction must be holm, bonferroni or none"):
        metrics.adjust_p_values(p, "sidak")


def test_tukey_against_all_permutations_within_queries():
    evaluations = several(4, (1.0, 0.6, 0.2), seed=3)
    values = np.stack([found.per_query["ndcg@10"] for found in evaluations.values()])
    ranges = [
        np.ptp(np.stack([values[list(order), query] for query, order in enumerate(orders)]).mean(axis=0))
        for orders in itertools.product(itertools.permutations(range(3)), repeat=4)
    ]
    found = metrics.compare_systems(evaluations, "ndcg@10", correction="tukey", n_permutations=20_000)
    assert len(found) == 3
    for test in found:
        expected = np.mean(np.array(ranges) >= abs(test.difference) - 1e-12)
        error = 5 * np.sqrt(expected * (1 - expected) / 20_000) + 1e-4
        assert test.adjusted_p_value == pytest.approx(expected, abs=error)


def test_tukey_of_two_systems_is_the_randomization_test():
    for metric in ("ndcg@10", "pairwise_accuracy"):
        (test,) = metrics.compare_systems(several(50, (1.0, 0.7)), metric, correction="tukey")
        assert 0.001 < test.p_value < 0.9
        assert test.adjusted_p_value == pytest.approx(test.p_value, abs=0.02)


def test_corrections_of_many_comparisons():
    evaluations = several(60, (1.0, 1.0, 0.9, 0.5, 0.5))
    plain = metrics.compare_systems(evaluations, "ndcg@10", correction="none")
    assert len(plain) == 10
    assert plain.means == {name: found.means["ndcg@10"] for name, found in evaluations.items()}
    alone = metrics.compare(evaluations["s1"], evaluations["s3"], "ndcg@10")
    assert plain["s1", "s3"].p_value == alone.p_value == plain["s1", "s3"].adjusted_p_value
    holm, tukey = (metrics.compare_systems(evaluations, "ndcg@10", correction=each) for each in ("holm", "tukey"))
    p = [test.p_value for test in plain]
    np.testing.assert_allclose([test.adjusted_p_value for test in holm], metrics.adjust_p_values(p))
    for corrected in (holm, tukey):
        assert all(test.adjusted_p_value >= test.p_value - 0.01 for test in corrected)
        assert corrected["s0", "s3"].adjusted_p_value < 0.05 < corrected["s0", "s1"].adjusted_p_value
    against = metrics.compare_systems(evaluations, "ndcg@10", baseline="s2")
    assert [(test.system_a, test.system_b) for test in against] == [("s2", f"s{other}") for other in (0, 1, 3, 4)]
    document = json.loads(json.dumps(tukey.to_dict()))
    assert (document["correction"], document["comparisons"][0]["system_b"]) == ("tukey", "s1")
    printed = str(tukey).splitlines()
    assert len(printed) == 2 + len(tukey)
    assert "p (Tukey HSD)" in printed[1]
    assert "np.float64" not in repr(tukey)


def test_few_false_alarms_in_families_of_equal_systems():
    alarms = {"holm": 0, "tukey": 0}
    for seed in range(60):
        evaluations = several(20, (1, 1, 1, 1), seed, ("ndcg@10",))
        for correction in alarms:
            found = metrics.compare_systems(evaluations, "ndcg@10", correction=correction, n_permutations=500)
            alarms[correction] += any(test.adjusted_p_value < 0.05 for test in found)
    # 0.05 * 60 = 3 are expected; more than 10 have a probability below 0.001
    assert max(alarms.values()) <= 10


def test_equal_systems_and_refusals():
    evaluations = several(10, (1.0, 0.5))
    same = {"a": evaluations["s0"], "b": evaluations["s0"], "c": evaluations["s0"]}
    for correction in ("holm", "tukey"):
        found = metrics.compare_systems(same, "ndcg@10", correction=correction)
        assert {test.adjusted_p_value for test in found} == {1.0}
    with pytest.raises(OptionError, match="two systems or more"):
        metrics.compare_systems({"a": evaluations["s0"]}, "ndcg@10")
    with pytest.raises(OptionError, match="baseline 'x' is not a system: choose from 's0', 's1'"):
        metrics.compare_systems(evaluations, "ndcg@10", baseline="x")
    with pytest.raises(OptionError, match="correction must be one of holm, bonferroni, tukey, none"):
        metrics.compare_systems(evaluations, "ndcg@10", correction="fdr")
    with pytest.raises(OptionError, match=r"no comparison \('s1', 's0'\)"):
        metrics.compare_systems(evaluations, "ndcg@10")["s1", "s0"]


def test_the_interval_holds_plain_floats():
    found = [metrics.evaluate([1, 0, 1, 0], scores, [0, 0, 1, 1], "ndcg") for scores in ([1, 0, 1, 0], [1, 0, 0, 1])]
    assert [type(end) for end in metrics.compare(*found, "ndcg").confidence_interval] == [float, float]


def test_the_other_side_of_a_comparison():
    a, b = two_evaluations(20)
    found = metrics.compare(a, b, "ndcg@10")
    assert found.swapped() == metrics.compare(b, a, "ndcg@10")
    same = metrics.compare(a, a, "ndcg@10").swapped()
    assert [f"{number:+}" for number in (same.difference, *same.confidence_interval)] == ["+0.0"] * 3
    assert found.swapped().swapped() == found


def test_what_is_no_evaluation_is_refused():
    a, b = two_evaluations(5)
    for pair in ((1, 2), (a, a.means)):
        with pytest.raises(OptionError, match=r"results of metrics\.evaluate; got (int|dict)"):
            metrics.compare(*pair, "ndcg@10")
    X = np.random.default_rng(0).normal(size=(40, 2))
    found = cross_validate(RankSVM(C=0.01), X, np.arange(40) % 2, qid=np.arange(40) // 4, cv=2)
    with pytest.raises(OptionError, match=r"got CrossValidation: pass its pooled\(\)"):
        metrics.compare(found, found, "ndcg@10")
    with pytest.raises(OptionError, match="a dict from names of systems, got list"):
        metrics.compare_systems([a, b], "ndcg@10")
    for options in ({"n_permutations": 1.5}, {"n_permutations": "x"}, {"confidence": "x"}, {"confidence": 95}):
        with pytest.raises(OptionError, match=f"{next(iter(options))} must "):
            metrics.compare(a, b, "ndcg@10", **options)
