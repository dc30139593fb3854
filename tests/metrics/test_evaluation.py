"""evaluate: what goes in, what comes out, what is refused."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ranksvm import RankSVM, make_ranking, metrics
from ranksvm.exceptions import DataError, LikelyMistakeWarning, OneQueryWarning, OptionError

pytestmark = pytest.mark.filterwarnings("ignore::ranksvm.exceptions.OneQueryWarning")


def test_values_come_in_order_of_first_appearance():
    result = metrics.evaluate([0, 1, 1, 0], [1, 2, 1, 3], ["b", "a", "b", "a"], ["mrr", "p@1"])
    assert result.qid.tolist() == ["b", "a"]
    assert result.per_query["mrr"].tolist() == [0.75, 0.5]  # b is a tie
    assert result.per_query["p@1"].tolist() == [0.5, 0.0]
    assert result["MRR"] == 0.625
    assert list(result.means) == ["mrr", "p@1"]
    assert result.n_queries == 2


def test_defaults_and_one_query():
    result = metrics.evaluate([1, 0], [2, 1])
    assert result.means == {"ndcg@10": 1.0, "map": 1.0}
    assert "ndcg@10=1.0000" in repr(result)
    assert "1 queries, 0 without a relevant document" in repr(result)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_queries_without_rows_are_left_out(place):
    random = np.random.default_rng(0)
    y, scores, weight = random.integers(0, 4, 20), random.normal(size=20), random.random(20)
    names = ["ndcg@10", "map", "mrr", "err", "p@3", "r@3", "pairwise_accuracy", "kendall_tau", "concordance_index"]
    group = [10, 10]
    expected = metrics.evaluate(y, scores, metrics=names, group=group, sample_weight=weight)
    group.insert(place, 0)
    found = metrics.evaluate(y, scores, metrics=names, group=group, sample_weight=weight)
    assert found.means == expected.means
    assert found.qid.tolist() == [number for number in range(3) if number != place]


def test_no_query_ids_are_one_query_with_a_warning_and_many_rows_are_refused():
    with pytest.warns(OneQueryWarning, match="evaluate got no query ids, so all 2 rows are one query") as caught:
        metrics.evaluate([1, 0], [2, 1])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    y = np.arange(1001) % 3
    with pytest.raises(DataError, match=r"evaluate got 1,001 rows without query ids.*group=\[1001\], or qid=np.zeros"):
        metrics.evaluate(y, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics.evaluate([1], [2])
        one = metrics.evaluate(y, -y, group=[1001])
        assert one.means == metrics.evaluate(y, -y, np.zeros(1001)).means
        sizes = metrics.evaluate(y[:5], -y[:5], group=[2, 3])
    assert sizes.means == metrics.evaluate(y[:5], -y[:5], [7, 7, 1, 1, 1]).means
    with pytest.raises(DataError, match="not both"):
        metrics.evaluate([1, 0], [2, 1], [1, 1], group=[2])


def test_dates_in_query_ids_are_text_in_json():
    days = np.array(["2026-01-31", "2026-02-01", "2026-01-31"], dtype="M8[D]")
    found = metrics.evaluate([1, 0, 0], [3, 2, 1], days).to_dict(per_query=True)
    assert json.loads(json.dumps(found))["qid"] == ["2026-01-31", "2026-02-01"]


def test_inputs_of_many_kinds_agree():
    frame = pd.DataFrame({"y": [2, 0, 1], "s": np.float32([0.1, 0.2, 0.3]), "q": ["x", "x", "y"]})
    expected = metrics.evaluate([2, 0, 1], np.float32([0.1, 0.2, 0.3]).astype(float), [1, 1, 2]).means
    assert metrics.evaluate(frame["y"], frame["s"], frame["q"]).means == expected
    assert metrics.evaluate(frame[["y"]], frame[["s"]], frame[["q"]]).means == expected


def test_infinite_scores_are_scores():
    assert metrics.evaluate([1, 0, 0], [np.inf, 3, -np.inf], metrics="mrr").means["mrr"] == 1
    assert metrics.evaluate([1, 0], [-np.inf, -np.inf], metrics="mrr").means["mrr"] == 0.75


def test_queries_without_a_relevant_document_are_counted():
    y, scores, qid = [0, 0, 1, -2], [1, 2, 3, 4], [1, 1, 2, 3]
    result = metrics.evaluate(y, scores, qid, ["ndcg@10", "map", "r@1"])
    assert result.n_without_relevant == 2
    assert result.means == {"ndcg@10": 1 / 3, "map": 1 / 3, "r@1": 1 / 3}
    assert metrics.evaluate(y, scores, qid, ["ndcg@10", "map"], convention="lightgbm").means["map"] == 1


def test_relevance_and_max_label():
    y, scores = [1, 2, 3], [3, 2, 1]
    assert metrics.evaluate(y, scores, metrics="mrr").means["mrr"] == 1
    assert metrics.evaluate(y, scores, metrics="mrr", relevance=2).means["mrr"] == 1 / 2
    assert metrics.evaluate(y, scores, metrics="mrr", convention="mslr").means["mrr"] == 1 / 2
    assert metrics.evaluate([1], [1], metrics="err").means["err"] == 0.5
    assert metrics.evaluate([1], [1], metrics="err", max_label=4).means["err"] == 1 / 16


def test_weights_of_rows_weigh_queries():
    y, scores, qid = [1, 0, 1, 0, 1], [2, 1, 1, 2, 0], [1, 1, 2, 2, 3]
    weight = [1, 3, 4, 4, 0]
    result = metrics.evaluate(y, scores, qid, ["mrr", "pairwise_accuracy"], sample_weight=weight)
    assert result.means["mrr"] == (2 * 1 + 4 * 0.5) / 6
    assert result.means["pairwise_accuracy"] == 2 / 6


def test_to_dict_is_json():
    result = metrics.evaluate([1, 0, 0], [1, 2, 3], ["a", "a", "b"], ["kendall_tau", "map"], convention="letor")
    short = json.loads(json.dumps(result.to_dict()))
    assert short == {
        "convention": "letor",
        "n_queries": 2,
        "n_rows": 3,
        "n_without_relevant": 1,
        "n_missing": 0,
        "means": {"kendall_tau": -1.0, "map": 0.25},
    }
    full = json.loads(json.dumps(result.to_dict(per_query=True)))
    assert full["qid"] == ["a", "b"]
    assert full["per_query"] == {"kendall_tau": [-1.0, None], "map": [0.5, 0.0]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1.0, np.nan]), r"scores is nan in row 1"),
        (([1, np.nan], [1, 2]), r"y is nan in row 1"),
        (([np.inf, 1], [1, 2]), r"y is inf in row 0 .*finite"),
        (([1, 0], [1, 2, 3]), r"scores has 3 entries but y has 2"),
        (([1, 0], [1, 2], [1]), r"qid has 1 entries but y has 2"),
        (([1, 0], [[1, 2], [3, 4]]), r"scores must be one-dimensional, got shape \(2, 2\)"),
        ((["a", "b"], [1, 2]), r"y must hold numbers"),
        (([], []), r"nothing to evaluate"),
        (([1, 0], [1, 2], [1, None]), r"qid is missing in row 1|qid is NaN in row 1"),
    ],
)
def test_data_that_cannot_be_used(arguments, message):
    with pytest.raises(DataError, match=message):
        metrics.evaluate(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_label": 1}, OptionError, "max_label is 1 but there is a label 2"),
        ({"max_label": "x"}, OptionError, "max_label must be a finite number"),
        ({"relevance": np.nan}, OptionError, "relevance must be a finite number"),
        ({"sample_weight": [1, -1]}, DataError, "sample_weight is -1.0 in row 1"),
        ({"sample_weight": [1]}, DataError, "sample_weight has 1 entries but y has 2"),
        ({"docid": ["a"]}, DataError, "docid has 1 entries but y has 2 rows"),
    ],
)
def test_options_that_cannot_be(options, error, message):
    with pytest.raises(error, match=message):
        metrics.evaluate([2, 0], [1, 2], **options)


def test_a_metric_not_evaluated():
    with pytest.raises(OptionError, match=r"'mrr' was not evaluated: choose from ndcg@10, map"):
        metrics.evaluate([1], [1])["mrr"]


def test_a_function_is_no_metric():
    with pytest.raises(OptionError, match="a metric is named by a string such as 'ndcg@10', got <function"):
        metrics.evaluate([1, 0], [1, 0], [0, 0], lambda labels, scores: 1.0)


def test_the_interval_of_a_mean_is_that_of_the_t_distribution():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), rng.integers(2, 9, 40))
    y = rng.integers(0, 3, len(qid))
    found = metrics.evaluate(y, y + 3 * rng.normal(size=len(y)), qid, ["ndcg@10", "pairwise_accuracy"])
    values = found.per_query["ndcg@10"]
    expected = stats.t.interval(0.9, 39, values.mean(), stats.sem(values))
    assert found.interval("ndcg@10", confidence=0.9) == pytest.approx(expected)
    # pooled over pairs: a ratio of sums over queries, by linearisation
    mean, weight, values = (getattr(found, name)["pairwise_accuracy"] for name in ("means", "weights", "per_query"))
    weight, values = weight[weight > 0], values[weight > 0]
    n = len(weight)
    variance = n / (n - 1) * np.sum((weight / weight.sum() * (values - mean)) ** 2)
    expected = stats.t.interval(0.95, n - 1, mean, np.sqrt(variance))
    assert found.interval("pairwise_accuracy") == pytest.approx(expected)


def test_an_interval_needs_two_queries_and_a_level():
    found = metrics.evaluate([1, 0], [2, 1], ["a", "a"])
    assert np.isnan(found.interval("map")).all()
    with pytest.raises(OptionError, match="'mrr' was not evaluated"):
        found.interval("mrr")
    with pytest.raises(OptionError, match=r"confidence must lie between 0 and 1, got 1\."):
        found.interval("map", confidence=1.0)
    assert np.isnan(metrics.evaluate([0, 0], [2, 1], ["a", "a"], "pairwise_accuracy").interval("pairwise_accuracy")[0])


def test_labels_and_scores_that_look_swapped():
    """They were evaluated, with an NDCG of .9."""
    random = np.random.default_rng(0)
    y, qid = random.integers(0, 3, 60), np.repeat([1, 2, 3], 20)
    scores = y + random.normal(size=60)
    with pytest.warns(LikelyMistakeWarning, match="scores that are 3 grades, and labels y .* look swapped") as shown:
        metrics.evaluate(scores, y, qid)
    assert shown[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics.evaluate(y, scores, qid)
        metrics.evaluate(y, y, qid)
        metrics.evaluate(y / 2, y, qid)
        metrics.evaluate(scores, np.arange(60), qid)  # ranks
        metrics.evaluate(scores, np.zeros(60), qid)
        metrics.evaluate(np.abs(scores), y, qid, "concordance_index", event=np.ones(60))


def test_means_are_nan_if_all_weights_are_0():
    data = make_ranking(n_queries=3, n_docs=5, n_features=2, random_state=0)
    model, nothing = RankSVM().fit(data), np.zeros(15)
    result = metrics.evaluate(data.y, model.predict(data.X), data.qid, sample_weight=nothing)
    assert np.isnan(list(result.means.values())).all()
    assert not np.isnan(result.per_query["ndcg@10"]).any()
    assert np.isnan(model.score(data.X, data.y, qid=data.qid, sample_weight=nothing))
    assert np.isnan(model.score(data.X, pairs=[[0, 1]], pair_weight=[0.0]))
