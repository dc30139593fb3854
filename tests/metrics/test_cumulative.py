"""CumulativeMetrics: queries one by one give what `evaluate` gives of all at once."""

import numpy as np
import pytest

from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import CONVENTIONS, CumulativeMetrics, evaluate

METRICS = "ndcg@1,ndcg@5,ndcg,mean_ndcg,map,map@3,mrr,err,p@2,r@2,pairwise_accuracy,kendall_tau"


def stream(n_queries, seed=0):
    """Queries of 1 to 12 documents with tied scores; some have no relevant document."""
    rng = np.random.default_rng(seed)
    for _ in range(n_queries):
        size = rng.integers(1, 13)
        y = rng.integers(0, 3, size) * (rng.random() < 0.8)
        yield y, rng.integers(0, 5, size) / 4, rng.permutation(size).astype(str)


def at_once(queries, convention):
    y, scores, docid = (np.concatenate([query[part] for query in queries]) for part in range(3))
    qid = np.repeat(np.arange(len(queries)), [len(query[0]) for query in queries])
    return evaluate(y, scores, qid, METRICS, convention=convention, max_label=2, docid=docid)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_means_are_those_of_all_queries_at_once(convention):
    queries = list(stream(700))
    cumulative = CumulativeMetrics(METRICS, convention, max_label=2)
    for query in queries:
        cumulative.add(*query)
    expected = at_once(queries, convention)
    assert cumulative.means == pytest.approx(expected.means, abs=1e-13)
    assert (cumulative.n_queries, cumulative.n_rows) == (700, expected.n_rows)
    assert cumulative.n_without_relevant == expected.n_without_relevant


def test_looking_at_the_means_and_going_on_elsewhere_change_no_bit():
    whole, parts = CumulativeMetrics(METRICS, max_label=2), CumulativeMetrics(METRICS, max_label=2)
    for number, query in enumerate(stream(600)):
        whole.add(*query)
        parts.add(*query)
        if number % 7 == 0:
            assert parts.means.keys() == whole.means.keys() or number
        if number % 50 == 0:
            state = parts.state
            parts = CumulativeMetrics(METRICS, max_label=2)
            parts.restore(state)
    np.testing.assert_array_equal(list(parts.means.values()), list(whole.means.values()))
    assert parts.n_rows == whole.n_rows
    assert parts.n_without_relevant == whole.n_without_relevant


def test_what_is_added_may_change_afterwards():
    cumulative = CumulativeMetrics("mrr")
    y, scores = np.array([1.0, 0.0]), np.array([2.0, 1.0])
    cumulative.add(y, scores)
    y[:], scores[:] = y[::-1].copy(), 0.0
    assert cumulative.means == {"mrr": 1.0}


def test_no_query_has_no_means():
    cumulative = CumulativeMetrics("map,kendall_tau")
    assert np.isnan(list(cumulative.means.values())).all()
    cumulative.add([1, 1], [0, 0])
    assert cumulative.means["map"] == 1.0
    assert np.isnan(cumulative.means["kendall_tau"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (([], []), "nothing to add"),
        (([1, 0], [1]), "scores has 1 entries"),
        (([1, np.nan], [1, 2]), "no value|finite"),
        (([1, 0], [1, np.nan]), "number"),
        (([1, 0], [1, 2], ["a"]), "docid"),
    ],
)
def test_what_is_refused_is_not_added(query, message):
    cumulative = CumulativeMetrics("map")
    with pytest.raises(DataError, match=message):
        cumulative.add(*query)
    assert cumulative.n_queries == cumulative.n_rows == 0


def test_options():
    with pytest.raises(OptionError, match="give max_label"):
        CumulativeMetrics("err@5")
    with pytest.raises(OptionError, match="there is a label 3"):
        CumulativeMetrics("err", max_label=2).add([3], [0])
    state = CumulativeMetrics("map").state
    with pytest.raises(OptionError, match="so far are map, not mrr"):
        CumulativeMetrics("mrr").restore(state)
    with pytest.raises(OptionError, match="so far is default, not letor"):
        CumulativeMetrics("map", "letor").restore(state)
    with pytest.raises(OptionError, match="max_label so far is None"):
        CumulativeMetrics("map", max_label=4).restore(state)


def test_marked_sums_are_those_after_each_number_of_queries():
    rng = np.random.default_rng(0)
    marked, read = CumulativeMetrics("ndcg@3,mrr"), CumulativeMetrics("ndcg@3,mrr")
    expected = []
    for number in range(600):  # more than are buffered
        query = rng.integers(0, 3, 5), rng.normal(size=5)
        marked.add(*query)
        read.add(*query)
        if number % 50 == 5 or number == 255:
            marked.mark()
            expected.append((number + 1, read.state["sums"]))
    marked.mark()
    expected.append((600, read.state["sums"]))
    found = marked.take_marked()
    assert [n_queries for n_queries, _ in found] == [n_queries for n_queries, _ in expected]
    for (_, sums), (_, same) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(sums, same)
    assert marked.take_marked() == []
