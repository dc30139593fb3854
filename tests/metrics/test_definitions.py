"""Every metric against its definition, written out over all orders of tied documents; names of metrics."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import kendalltau

from ranksvm import metrics
from ranksvm.exceptions import OptionError
from ranksvm.metrics import definitions, parse_metrics
from ranksvm.metrics.definitions import metrics_at

pytestmark = pytest.mark.filterwarnings("ignore::ranksvm.exceptions.OneQueryWarning")
NAMES = ["ndcg", "ndcg@3", "mean_ndcg", "map", "map@2", "mrr", "mrr@2", "err", "err@2", "p@2", "p@9", "r@3"]


def dcg(labels, k):
    return sum(max(0.0, 2.0**y - 1) / math.log2(1 + r) for r, y in enumerate(labels[:k], start=1))


def ndcg(labels, k):
    best = dcg(sorted(labels, reverse=True), k)
    return dcg(labels, k) / best if best > 0 else 0.0


def by_definition(name, labels, max_label):
    """Value of one list without ties, best document first."""
    kind, _, k = name.partition("@")
    n = len(labels)
    k = int(k) if k else n
    relevant = [y > 0 for y in labels]
    if kind == "ndcg":
        return ndcg(labels, k)
    if kind == "mean_ndcg":
        return sum(ndcg(labels, c) for c in range(1, n + 1)) / n
    if kind == "map":
        found = [sum(relevant[:r]) / r for r in range(1, min(k, n) + 1) if relevant[r - 1]]
        return sum(found) / sum(relevant) if any(relevant) else 0.0
    if kind == "mrr":
        return next((1 / r for r in range(1, min(k, n) + 1) if relevant[r - 1]), 0.0)
    if kind == "err":
        total, passed = 0.0, 1.0
        for r, y in enumerate(labels[:k], start=1):
            stop = max(0.0, 2.0**y - 1) / 2.0**max_label
            total += passed * stop / r
            passed *= 1 - stop
        return total
    hits = sum(relevant[:k])
    if kind == "p":
        return hits / k
    return hits / sum(relevant) if any(relevant) else 0.0


def over_all_tie_orders(name, labels, scores, max_label):
    """Mean of the definition over every order in which tied documents can come."""
    groups = [[y for y, s in zip(labels, scores, strict=True) if s == score] for score in sorted(set(scores))[::-1]]
    orders = [itertools.chain(*parts) for parts in itertools.product(*map(itertools.permutations, groups))]
    return np.mean([by_definition(name, list(order), max_label) for order in orders])


labels_and_scores = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60)
@given(st.lists(labels_and_scores, min_size=1, max_size=3))
def test_metrics_are_means_over_the_orders_of_tied_documents(queries):
    y = [label for query in queries for label, _ in query]
    scores = [score for query in queries for _, score in query]
    qid = [number for number, query in enumerate(queries) for _ in query]
    result = metrics.evaluate(y, scores, qid, NAMES, max_label=4)
    for name in NAMES:
        expected = [over_all_tie_orders(name, *zip(*query, strict=True), 4) for query in queries]
        np.testing.assert_allclose(result.per_query[name], expected, rtol=0, atol=1e-12, err_msg=name)
        assert result.means[name] == pytest.approx(np.mean(expected), abs=1e-12)
    assert result.n_without_relevant == sum(max(label for label, _ in query) <= 0 for query in queries)


@settings(deadline=None)
@given(labels_and_scores, st.sampled_from(["letor", "mslr"]))
def test_letor_conventions_by_definition(query, convention):
    y, scores = (np.array(column, dtype=float) for column in zip(*query, strict=True))
    y = np.maximum(y, 0)
    ranked = y[np.argsort(-scores, kind="stable")]
    discount = [1 / math.log2(max(2, r)) for r in range(1, 8)]

    def value(labels, k):
        return sum((2**label - 1) * d for label, d in zip(labels[:k], discount[:k], strict=False))

    result = metrics.evaluate(y, scores, metrics=["ndcg@3", "map"], convention=convention)
    best = value(np.sort(y)[::-1], 3)
    assert result.means["ndcg@3"] == pytest.approx(value(ranked, 3) / best if best > 0 and len(y) >= 3 else 0)
    relevant = ranked >= (2 if convention == "mslr" else 1)
    found = [relevant[: r + 1].mean() for r in np.flatnonzero(relevant)]
    assert result.means["map"] == pytest.approx(np.mean(found) if found else 0)


@settings(deadline=None)
@given(st.lists(labels_and_scores, min_size=1, max_size=4))
def test_pairs_and_tau_against_explicit_pairs(queries):
    qid = [number for number, query in enumerate(queries) for _ in query]
    y, scores = (list(column) for column in zip(*itertools.chain(*queries), strict=True))
    result = metrics.evaluate(y, scores, qid, ["pairwise_accuracy", "kendall_tau"])
    right = total = 0
    for number, query in enumerate(queries):
        pairs = [(a, b) for a in query for b in query if a[0] > b[0]]
        ordered = sum(a[1] > b[1] for a, b in pairs)
        right, total = right + ordered, total + len(pairs)
        accuracy, tau = (result.per_query[name][number] for name in ("pairwise_accuracy", "kendall_tau"))
        if not pairs:
            assert np.isnan(accuracy)
            assert np.isnan(tau)
        else:
            assert accuracy == ordered / len(pairs)
            expected = kendalltau(*zip(*query, strict=True)).statistic
            assert tau == pytest.approx(0.0 if np.isnan(expected) else expected)
    np.testing.assert_equal(result.means["pairwise_accuracy"], right / total if total else np.nan)


def test_pairs_of_a_long_list_against_explicit_pairs():
    rng = np.random.default_rng(0)
    for n in (15, 16, 17, 33, 500):
        y, scores = rng.integers(0, n // 3, n), rng.integers(0, n // 2, n)
        better = y[:, None] > y
        result = metrics.evaluate(y, scores, metrics=["pairwise_accuracy", "kendall_tau"])
        assert result.means["pairwise_accuracy"] == (better & (scores[:, None] > scores)).sum() / better.sum()
        assert result.means["kendall_tau"] == pytest.approx(kendalltau(y, scores).statistic)


@pytest.mark.parametrize("n_stops", [1, 40, 3000])
def test_err_of_a_long_tie_against_hypergeometric_sum(n_stops):
    n = 3000
    y = np.zeros(n)
    y[:n_stops] = 1
    # every relevant document stops with 1/2: m_c = E[2^-hits among the first c]
    from scipy.stats import hypergeom

    hits = np.arange(n_stops + 1)
    m = np.array([1.0] + [0.5**hits @ hypergeom.pmf(hits, n, n_stops, c) for c in range(1, n + 1)])
    expected = ((m[:-1] - m[1:]) / np.arange(1, n + 1)).sum()
    assert metrics.evaluate(y, np.zeros(n), metrics="err", group=[n]).means["err"] == pytest.approx(expected, rel=1e-9)


def test_gains_overflow_at_no_label():
    low = metrics.evaluate([3, 0, 2], [1, 2, 3], metrics=["ndcg", "mean_ndcg"]).means
    # far from 0 the "- 1" is lost, and only differences of labels count
    high = metrics.evaluate([1267, 1264, 1266], [1, 2, 3], metrics=["ndcg", "err"]).means
    ratio = [2.0**-1, 2.0**-3, 1]
    discount = 1 / np.log2([2, 3, 4])
    assert high["ndcg"] == pytest.approx((ratio @ discount) / (np.sort(ratio)[::-1] @ discount))
    assert 0 < high["err"] <= 1
    assert 0 < low["mean_ndcg"] < low["ndcg"] < 1
    huge = metrics.evaluate([1e308, 1, -1e308], [3, 2, 1], metrics=NAMES).means
    assert huge["ndcg"] == 1
    assert all(np.isfinite(value) for value in huge.values())


def test_labels_far_below_zero_gain_nothing():
    result = metrics.evaluate([-2000, -1e308, -3], [3, 2, 1], metrics=NAMES)
    assert set(result.means.values()) == {0.0}
    assert result.n_without_relevant == 1


def test_small_labels_keep_their_digits():
    tiny = metrics.evaluate([2e-14, 1e-14], [1, 2], metrics="ndcg").means["ndcg"]
    discount = 1 / np.log2([2, 3])
    assert tiny == pytest.approx(([1, 2] @ discount) / ([2, 1] @ discount), rel=1e-9)


@settings(deadline=None)
@given(st.lists(labels_and_scores, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_order_and_names_of_queries_do_not_matter(queries, random):
    names = [*NAMES, "pairwise_accuracy", "kendall_tau"]
    rows = [(f"q{number}", *row) for number, query in enumerate(queries) for row in query]
    shuffled = random.sample(rows, len(rows))
    first, second = (
        metrics.evaluate(y, scores, qid, names) for qid, y, scores in (zip(*r, strict=True) for r in (rows, shuffled))
    )
    place = [second.qid.tolist().index(query) for query in first.qid.tolist()]
    for name in names:
        np.testing.assert_allclose(second.per_query[name][place], first.per_query[name], atol=1e-12)


@settings(deadline=None)
@given(labels_and_scores)
def test_only_the_order_of_the_scores_matters(query):
    names = [*NAMES, "pairwise_accuracy", "kendall_tau"]
    y, scores = zip(*query, strict=True)
    plain = metrics.evaluate(y, scores, metrics=names)
    changed = metrics.evaluate(y, np.exp(3 * np.array(scores, dtype=float)) - 7, metrics=names)
    np.testing.assert_equal(changed.means, plain.means)


@pytest.mark.parametrize(
    "name", ["ndcg", "ndcg@10", "mean_ndcg", "map", "map@5", "mrr", "err", "err@10", "p@5", "r@10", "kendall_tau"]
)
def test_names_round_trip(name):
    metric = metrics.parse_metric(name.upper())
    assert metric.name == str(metric) == name
    assert metric == metrics.parse_metric(metric)
    assert hash(metric) == hash(metrics.parse_metric(name))


def test_aliases_and_lists_of_names():
    assert [m.name for m in metrics.parse_metrics("precision@5, recall@10,p@5")] == ["p@5", "r@10"]


@pytest.mark.parametrize(
    ("aliases", "name"),
    [
        ("nDCG@10,ndcg_cut_10,ndcg_cut.10,NDCG_CUT@10,ndcg_10", "ndcg@10"),
        ("AP,MAP,map", "map"),
        ("AP@100,map_cut_100,map_cut.100", "map@100"),
        ("RR,MRR,recip_rank", "mrr"),
        ("RR@10,MRR@10", "mrr@10"),
        ("P_10,P.10,P@10,pre@10,precision@10,Precision_10", "p@10"),
        ("recall_1000,recall.1000,R@1000,Recall@1000", "r@1000"),
        ("ERR@20,err_20", "err@20"),
        ("tau,kendall-tau,Kendall_Tau", "kendall_tau"),
        ("pairwise-accuracy", "pairwise_accuracy"),
        ("mean-ndcg", "mean_ndcg"),
    ],
)
def test_aliases_of_other_tools(aliases, name):
    assert [metric.name for metric in metrics.parse_metrics(aliases)] == [name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("auc", "unknown metric 'auc': choose from ndcg, ndcg@k"),
        ("ndcg@0", "whole number from 1"),
        ("ndcg@", "whole number from 1"),
        ("ndcg@ten", "whole number from 1"),
        ("p", "needs a cut-off"),
        ("kendall_tau@3", "takes no cut-off"),
        (5, "named by a string"),
        ([], "no metric"),
    ],
)
def test_bad_names(name, message):
    with pytest.raises(OptionError, match=message):
        metrics.parse_metrics([name] if isinstance(name, int) else name)


def test_a_cut_off_is_an_integer_as_in_scikit_learn():
    assert definitions.NDCG(np.int64(5)) == definitions.NDCG(5)
    assert definitions.NDCG(np.int64(5)).name == "ndcg@5"
    for wrong in (5.0, np.float64(5), 2.5, True, "5", float("nan")):
        with pytest.raises(OptionError, match="the cut-off of ndcg must be an integer, got"):
            definitions.NDCG(wrong)


def test_every_metric_has_its_names_from_its_definition():
    """A class with a label is a metric by that name, and in the list of messages."""
    kinds = [kind for kind in vars(definitions).values() if isinstance(kind, type) and hasattr(kind, "label")]
    assert [definitions.METRICS[kind.label] for kind in kinds] == kinds
    assert set(definitions.METRICS.values()) == set(kinds)
    with pytest.raises(OptionError) as raised:
        metrics.parse_metric("none of them")
    listed = str(raised.value).partition("choose from ")[2].rstrip(".").split(", ")
    assert [name for name in listed if "@" not in name] == [
        kind.label for kind in kinds if not getattr(kind, "needs_cutoff", False)
    ]
    assert {f"{kind.label}@k" for kind in kinds if issubclass(kind, definitions.AtCutoff)} <= set(listed)
    assert {metrics.parse_metric(name.replace("@k", "@3")).name for name in listed} == {
        name.replace("@k", "@3") for name in listed
    }


@pytest.mark.parametrize(
    ("names", "cutoffs", "expected"),
    [
        ("ndcg", [5, 10], ["ndcg@5", "ndcg@10"]),
        ("ndcg,map", (1, 3), ["ndcg@1", "ndcg@3", "map@1", "map@3"]),
        ("ndcg@10,kendall_tau", [5], ["ndcg@10", "kendall_tau"]),  # nothing to add
        ("ndcg,ndcg@5", [5, 5], ["ndcg@5"]),
        ("map", 3, ["map@3"]),
        ("map", np.int64(3), ["map@3"]),
        ("map,map", None, ["map"]),
    ],
)
def test_each_metric_at_each_cutoff(names, cutoffs, expected):
    assert [metric.name for metric in metrics_at(parse_metrics(names), cutoffs)] == expected


@pytest.mark.parametrize("cutoffs", [[], 0, [5, -1], 2.5, ["5"], "5"])
def test_other_cutoffs_are_refused(cutoffs):
    with pytest.raises(OptionError, match="cut-off"):
        metrics_at(parse_metrics("ndcg"), cutoffs)
