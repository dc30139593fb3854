"""Accuracy of listed preferences, and its interval, against plain sums, Wilson's formula and resampled prompts."""

import numpy as np
import pytest
from scipy import special

from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import accuracy_interval, evaluate, evaluate_pairs

NAME = "pairwise_accuracy"


def wilson(share, n, confidence):
    z = special.ndtri(0.5 + confidence / 2)
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return center - half, center + half


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_of_pairs(weighted):
    random = np.random.default_rng(0)
    first, second = random.integers(0, 4, (2, 200)).astype(float)
    qid = random.integers(0, 20, 200)
    weight = random.integers(0, 3, 200) if weighted else np.ones(200)
    found = evaluate_pairs(first, second, qid, pair_weight=weight if weighted else None)
    assert found.means[NAME] == pytest.approx(np.average(first > second, weights=weight))
    for query, value, total in zip(found.qid, found.per_query[NAME], found.weights[NAME], strict=True):
        rows = qid == query
        assert total == weight[rows].sum()
        assert value == pytest.approx(np.average((first > second)[rows], weights=weight[rows]))


def test_the_accuracy_is_that_of_labels():
    random = np.random.default_rng(1)
    y, scores, qid = random.integers(0, 3, 60), random.normal(size=60).round(1), random.integers(0, 6, 60)
    i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    pairs, labels = evaluate_pairs(scores[i], scores[j], qid[i]), evaluate(y, scores, qid, NAME)
    assert pairs.means[NAME] == pytest.approx(labels.means[NAME])
    assert accuracy_interval(pairs) == pytest.approx(accuracy_interval(labels))


def test_a_pair_of_its_own_is_its_own_query():
    assert evaluate_pairs([1.0, 2.0], [0.0, 3.0]).per_query[NAME].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_of_independent_pairs_is_wilsons(confidence):
    found = evaluate_pairs([1.0] * 70 + [0.0] * 30, [0.5] * 100)
    assert accuracy_interval(found, confidence) == pytest.approx(wilson(0.7, 99, confidence))


@pytest.mark.parametrize("right", [True, False])
def test_prompts_count_where_all_pairs_are_alike(right):
    found = evaluate_pairs([1.0 * right] * 60, [0.5] * 60, np.arange(60) // 3)
    low, high = accuracy_interval(found)
    assert (low, high) == pytest.approx(wilson(1.0 * right, 20, 0.95))
    assert 0.0 <= low < high <= 1.0


def test_queries_of_equal_accuracy():
    """The interval is not of width 0 only because of round-off."""
    random = np.random.default_rng(1)
    for n_queries in range(2, 30):
        qid, weight = np.repeat(np.arange(n_queries), 3), np.repeat(random.random(n_queries), 3)
        found = evaluate_pairs(np.tile([1.0, 1.0, 0.0], n_queries), np.full(len(qid), 0.5), qid, pair_weight=weight)
        effective = weight[::3].sum() ** 2 / np.square(weight[::3]).sum()
        assert accuracy_interval(found) == pytest.approx(wilson(2 / 3, effective, 0.95))


def test_pairs_of_a_prompt_are_not_independent():
    """Ten equal pairs a prompt say no more than one, and the interval is that of resampled prompts."""
    random = np.random.default_rng(0)
    right = random.random(300) < 0.7
    one = accuracy_interval(evaluate_pairs(right, np.full(300, 0.5)))
    ten = evaluate_pairs(np.repeat(right, 10), np.full(3000, 0.5), np.repeat(np.arange(300), 10))
    assert accuracy_interval(ten) == pytest.approx(one)
    # prompts of several sizes, and of several difficulties
    sizes, p = random.integers(1, 12, 300), random.beta(4, 2, 300)
    qid = np.repeat(np.arange(300), sizes)
    found = evaluate_pairs(random.random(len(qid)) < p[qid], np.full(len(qid), 0.5), qid)
    counts = random.multinomial(300, np.full(300, 1 / 300), 4000)
    values, weights = found.per_query[NAME], found.weights[NAME]
    resampled = np.quantile(counts @ (weights * values) / (counts @ weights), [0.025, 0.975])
    assert accuracy_interval(found) == pytest.approx(resampled, abs=0.006)


def test_the_interval_covers_as_often_as_it_says():
    random = np.random.default_rng(0)
    qid, within = np.repeat(np.arange(60), 4), 0
    for _ in range(400):
        p = random.beta(6, 3, 60)
        low, high = accuracy_interval(evaluate_pairs(random.random(240) < p[qid], np.full(240, 0.5), qid))
        within += low <= 2 / 3 <= high
    assert 0.92 <= within / 400 <= 0.98


def test_what_has_no_interval():
    assert np.isnan(accuracy_interval(evaluate_pairs([1.0, 0.0], [0.5, 0.5], ["a", "a"]))).all()
    with pytest.raises(OptionError, match="was not evaluated"):
        accuracy_interval(evaluate([1, 0], [1, 0], metrics="ndcg"))
    with pytest.raises(OptionError, match="confidence"):
        accuracy_interval(evaluate_pairs([1.0, 0.0], [0.5, 0.5]), 95)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0, 2.0]), "one score for each pair"),
        (([], []), "no pairs"),
        (([1.0, np.nan], [0.0, 1.0]), "preferred is nan in row 1"),
        (([1.0], [0.0], ["a", "b"]), "qid has 2 entries"),
    ],
)
def test_what_cannot_be_evaluated(arguments, message):
    with pytest.raises(DataError, match=message):
        evaluate_pairs(*arguments)


def test_a_negative_weight_is_refused():
    with pytest.raises(DataError, match=r"pair_weight is -1\.0 in row 0"):
        evaluate_pairs([1.0], [0.0], pair_weight=[-1.0])


def test_the_interval_of_a_number_is_refused():
    with pytest.raises(
        OptionError, match=r"the values of each query: give the result of evaluate_pairs, .* not a float"
    ):
        accuracy_interval(0.8)
