"""Harrell's concordance index against a loop over all pairs."""

import numpy as np
import pytest

from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import evaluate

NAME = "concordance_index"


def slow(time, event, scores, qid):
    """Concordant (ties one half) and comparable pairs."""
    good, n = 0.0, 0
    for i in range(len(time)):
        for j in range(len(time)):
            longer = time[i] > time[j] or (time[i] == time[j] and not event[i])
            if qid[i] == qid[j] and i != j and event[j] and longer:
                n += 1
                good += 1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
    return good, n


@pytest.mark.parametrize("seed", range(12))
def test_it_is_that_of_all_pairs(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 40))
    time, scores = random.integers(1, 8, n).astype(float), random.normal(size=n).round(int(random.integers(0, 3)))
    event, qid = random.random(n) < random.choice([0.0, 0.3, 0.7, 1.0]), random.integers(0, 3, n)
    found = evaluate(time, scores, qid, NAME, event=event)
    good, total = slow(time, event, scores, qid)
    assert found.weights[NAME].sum() == total
    assert found.means[NAME] == pytest.approx(good / total if total else np.nan, nan_ok=True)
    for query, value in zip(found.qid, found.per_query[NAME], strict=True):
        rows = qid == query
        part, of = slow(time[rows], event[rows], scores[rows], qid[rows])
        assert value == pytest.approx(part / of if of else np.nan, nan_ok=True)


def test_without_censored_times_it_is_the_share_of_pairs():
    random = np.random.default_rng(0)
    time, scores = random.permutation(50).astype(float), random.normal(size=50)
    found = evaluate(time, scores, None, [NAME, "pairwise_accuracy"])
    assert found[NAME] == pytest.approx(found["pairwise_accuracy"])


def test_a_published_value():
    """Three patients: the second was censored before the others died, so that one pair is comparable."""
    assert evaluate([5, 2, 9], [0.1, 0.9, 0.7], None, NAME, event=[1, 0, 1]).means[NAME] == 1.0
    assert evaluate([5, 2, 9], [0.7, 0.9, 0.1], None, NAME, event=[1, 0, 1]).means[NAME] == 0.0


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([1, 0], "event has 2 entries"),
        ([1, 0, 2], r"event is 2 in row 2 \(from 0\): it must be 1 or True"),
        ([1, None, 0], "event is None in row 1"),
        ([1, np.nan, 0], "event is nan in row 1"),
    ],
)
def test_what_is_no_event(event, message):
    with pytest.raises(DataError, match=message):
        evaluate([1, 2, 3], [1, 2, 3], None, NAME, event=event)


def test_other_metrics_are_of_labels():
    with pytest.raises(OptionError, match="'ndcg' is a metric of labels"):
        evaluate([1, 2], [1, 2], None, ["ndcg"], event=[1, 1])
