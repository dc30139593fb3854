"""Estimates from clicks against the truth of a simulation, and against loops."""

import numpy as np
import pytest

from ranksvm import make_ranking, metrics
from ranksvm.clicks import ClickLog, PositionBias, attractiveness, simulate_clicks
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.counterfactual import ranking_value


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=6, n_features=3, random_state=0)


@pytest.fixture(scope="module")
def new(data):
    return data.X[:, 2].astype(float)


@pytest.fixture(scope="module")
def log(data):
    return simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 20_000, random_state=0)


BIAS = PositionBias.power(6)
NAMES = ["dcg@3", "dcg", "mrr@2", "mean_relevant_rank"]


def new_ranks(data, scores):
    rank = np.empty(data.n_rows, dtype=int)
    for _, rows in data.queries:
        rank[rows[np.argsort(-scores[rows], kind="stable")]] = np.arange(1, len(rows) + 1)
    return rank


def truth(data, scores):
    """The metrics over the queries, asked equally often."""
    rank, a, found = new_ranks(data, scores), attractiveness(data), {}
    sums = {"dcg@3": 0.0, "dcg": 0.0, "mrr@2": 0.0, "rank": 0.0}
    for _, rows in data.queries:
        not_above = 1.0
        for row in rows[np.argsort(rank[rows])]:
            sums["dcg"] += a[row] / np.log2(1 + rank[row])
            sums["dcg@3"] += a[row] / np.log2(1 + rank[row]) * (rank[row] <= 3)
            sums["mrr@2"] += a[row] * not_above / rank[row] * (rank[row] <= 2)
            sums["rank"] += a[row] * rank[row]
            not_above *= 1 - a[row]
    found = {name: sums[name] / data.queries.n_queries for name in NAMES[:3]}
    return found | {"mean_relevant_rank": sums["rank"] / a.sum()}


@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_the_truth_is_found(data, new, log, estimator):
    found = metrics.estimate(log, new, NAMES, BIAS, data=data, estimator=estimator, confidence=0.999)
    expected = truth(data, new)
    for name in NAMES:
        low, high = found.intervals[name]
        assert low <= expected[name] <= high
        assert found[name] == pytest.approx(expected[name], rel=0.06)
    naive = metrics.estimate(log, new, ["dcg"], data=data)
    assert naive["dcg"] < 0.6 * expected["dcg"]


def slow_relevance(log, data, bias, clip=0.0):
    """Exposure and relevance of each document of each query, impression by impression, document by document."""
    rows, shown, gain, impressions = log.rows(data), {}, {}, {}
    for start, stop in zip(log.pointers[:-1], log.pointers[1:], strict=True):
        query = int(data.queries.numbers()[rows[start]])
        impressions[query] = impressions.get(query, 0) + 1
        for place in range(start, stop):
            row, rank = int(rows[place]), log.rank[place] - 1
            offset = 0.0 if bias.offset is None else bias.offset[rank]
            shown[row] = shown.get(row, 0.0) + bias.propensity[rank]
            gain[row] = gain.get(row, 0.0) + log.clicked[place] - offset
    exposure, r = np.zeros(data.n_rows), np.zeros(data.n_rows)
    for row, total in shown.items():
        n = impressions[int(data.queries.numbers()[row])]
        exposure[row] = total / n
        r[row] = gain[row] / n / max(exposure[row], clip)
    n = np.array([impressions.get(query, 0) for query in range(data.queries.n_queries)], dtype=float)
    return n, exposure, r


def slow_metric(name, rank, r, rows):
    """One metric of one query."""
    kind, _, depth = name.partition("@")
    rows = [row for row in rows[np.argsort(rank[rows])] if rank[row] <= int(depth or 10**9)]
    if kind == "mrr":
        values, not_above = 0.0, 1.0
        for row in rows:
            values += r[row] * not_above / rank[row]
            not_above *= 1 - r[row]
        return values
    return sum(r[row] * (rank[row] if kind == "mean_relevant_rank" else 1 / np.log2(1 + rank[row])) for row in rows)


@pytest.mark.parametrize("offset", [None, [0.0, 0.05, 0.02]])
@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_policy_aware_estimates_against_loops(data, new, offset, clip):
    """Lists of three of six documents by two rankers: exposures are means over the impressions of both."""
    log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 300, n_ranks=3, random_state=0)
    bias = PositionBias([1.0, 0.5, 0.4], offset=offset)
    n, exposure, r = slow_relevance(log, data, bias, clip)
    assert 0.1 < (exposure == 0).mean() < 0.9
    rank = new_ranks(data, new)
    found = metrics.estimate(log, new, NAMES, bias.clipped(clip), data=data)
    by_query = {name: np.array([slow_metric(name, rank, r, rows) for _, rows in data.queries]) for name in NAMES}
    by_query["relevant"] = np.array([r[rows].sum() for _, rows in data.queries])
    for name in NAMES[:3]:
        assert found[name] == pytest.approx(n @ by_query[name] / 300)
    ratio = n @ by_query["mean_relevant_rank"] / (n @ by_query["relevant"])
    assert found["mean_relevant_rank"] == pytest.approx(ratio)
    normal = metrics.estimate(log, new, "dcg@3", bias, data=data, estimator="snips", clip=clip)
    assert normal["dcg@3"] == pytest.approx(n @ by_query["dcg@3"] / (n @ by_query["relevant"]))
    # the mean over the queries of their sums, each as far from the mean as its impressions say
    parts = n * (by_query["dcg@3"] - found["dcg@3"])
    half = 1.959964 * np.sqrt((parts**2).sum() * len(n) / (len(n) - 1)) / 300
    whole = metrics.estimate(log, new, "dcg@3", bias.clipped(clip), data=data, unit="query")
    assert whole.intervals["dcg@3"] == pytest.approx((found["dcg@3"] - half, found["dcg@3"] + half))


def test_intervals_of_impressions_against_loops(data, new):
    log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 200, n_ranks=3, random_state=0)
    bias = PositionBias.power(3)
    n, exposure, r = slow_relevance(log, data, bias)
    rank, rows, number = new_ranks(data, new), log.rows(data), data.queries.numbers()
    found = metrics.estimate(log, new, "dcg@5", bias, data=data)
    value = np.array([slow_metric("dcg@5", rank, r, own) for _, own in data.queries])
    mean = (log.clicked.sum()) / bias.at(log.rank).sum()
    total = 0.0
    for start, stop in zip(log.pointers[:-1], log.pointers[1:], strict=True):
        query, within = number[rows[start]], 0.0
        for place in range(start, stop):
            row, p, click = rows[place], bias.propensity[log.rank[place] - 1], log.clicked[place]
            seen = n[query] * exposure[row]
            others = (seen * r[row] - click + mean) / (seen - p + 1.0)
            within += (click - p * others) / exposure[row] / np.log2(1 + rank[row]) * (rank[row] <= 5)
        total += (value[query] - found["dcg@5"]) ** 2 + (1 - 1 / n[query]) * within**2
    half = 1.959964 * np.sqrt(total * 200 / 199) / 200
    assert found.intervals["dcg@5"] == pytest.approx((found["dcg@5"] - half, found["dcg@5"] + half))


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_by_differences(data, new, name):
    """What a document adds to a metric, and so to the interval, against a small change of its relevance."""
    kind, _, depth = name.partition("@")
    rank, query, n_queries = new_ranks(data, new), data.queries.numbers(), data.queries.n_queries
    r = np.random.default_rng(0).random(data.n_rows)

    def total(relevance):
        return ranking_value(kind, int(depth) if depth else None, rank, relevance, query, n_queries)

    for row in range(12):
        step = np.zeros(data.n_rows)
        step[row] = 1e-5
        change = (total(r + step).value - total(r - step).value).sum() / 2e-5
        assert total(r).slope[row] == pytest.approx(change, abs=1e-8)


def test_lists_without_data_against_loops(data, new, log):
    """The new ranker reorders what each impression showed: every click counts 1 / propensity of its own rank."""
    some = log.impressions(np.arange(log.n_impressions) < 300)
    values = new[some.rows(data)]
    dcg, reciprocal, relevant, ranks = [], [], 0.0, 0.0
    for start, stop in zip(some.pointers[:-1], some.pointers[1:], strict=True):
        estimates = some.clicked[start:stop] / (1 / some.rank[start:stop])
        order = np.argsort(-values[start:stop], kind="stable")
        g = np.empty(stop - start)
        g[order] = np.arange(1, stop - start + 1)
        dcg.append((estimates / np.log2(1 + g) * (g <= 3)).sum())
        not_above = np.concatenate(([1.0], np.cumprod(1 - estimates[order])[:-1]))
        reciprocal.append((estimates[order] * not_above / g[order] * (g[order] <= 2)).sum())
        relevant += estimates.sum()
        ranks += (estimates * g).sum()
    found = metrics.estimate(some, values, ["dcg@3", "mrr@2", "mean_relevant_rank"], BIAS)
    assert found["dcg@3"] == pytest.approx(np.mean(dcg))
    assert found["mrr@2"] == pytest.approx(np.mean(reciprocal))
    assert found["mean_relevant_rank"] == pytest.approx(ranks / relevant)
    half = 1.959964 * np.std(dcg, ddof=1) / np.sqrt(300)
    assert found.intervals["dcg@3"] == pytest.approx((np.mean(dcg) - half, np.mean(dcg) + half))
    normal = metrics.estimate(some, values, "dcg@3", BIAS, estimator="snips")
    assert normal["dcg@3"] == pytest.approx(sum(dcg) / relevant)
    weights = some.rank[some.clicked].astype(float)
    assert found.effective_clicks == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.n_clicks == len(weights)
    top = np.sort(weights)[::-1]
    count = 0.01 * len(weights)
    assert found.top_share == pytest.approx(top[0] * max(count, 1.0) / weights.sum(), rel=1e-9)
    assert np.isnan(found.unseen_share)
    assert found.unseen_by_ranker == {}


@pytest.mark.parametrize("n_ranks", [3, 6])
def test_two_rankers_estimate_each_other(data, new, n_ranks):
    """Documents that one ranker does not show count by their exposure in the lists of both."""
    rankers = {"a": data.X[:, 0], "b": data.X[:, 1], "c": new}
    log = simulate_clicks(data, rankers, 30_000, n_ranks=n_ranks, random_state=0)
    for scores in rankers.values():
        found = metrics.estimate(log, scores, "dcg@3", BIAS, data=data, confidence=0.999)
        low, high = found.intervals["dcg@3"]
        assert found.unseen_share < 0.25
        assert low <= truth(data, scores)["dcg@3"] <= high


def test_what_was_never_shown(data, new):
    """Shares of the discounts of the first ten ranks: of documents in no list, and in no list of each ranker."""
    rankers = {"a": data.X[:, 0], "b": data.X[:, 1]}
    log = simulate_clicks(data, rankers, 4_000, n_ranks=2, random_state=0)
    rows, rank = log.rows(data), new_ranks(data, new)
    n = np.bincount(data.queries.numbers()[rows[log.pointers[:-1]]])[data.queries.numbers()]
    weight = n / np.log2(1 + rank)
    missing = {
        name: weight[~np.isin(np.arange(data.n_rows), rows[log.ranker == code])].sum() / weight.sum()
        for code, name in enumerate(log.ranker_names)
    }
    found = metrics.estimate(log, new, "dcg@3", BIAS, data=data)
    assert found.unseen_by_ranker == pytest.approx(missing)
    assert found.unseen_share == pytest.approx(weight[~np.isin(np.arange(data.n_rows), rows)].sum() / weight.sum())
    assert 0 < found.unseen_share < min(missing.values())
    assert f"{100 * found.unseen_share:.1f} % unseen" in repr(found)
    assert repr(found).endswith("DCG and MRR are lower bounds.")
    whole = metrics.estimate(simulate_clicks(data, rankers, 4_000, random_state=0), new, "dcg@3", BIAS, data=data)
    assert whole.unseen_by_ranker == {"a": 0.0, "b": 0.0}
    assert whole.note == ""
    assert repr(whole).endswith("0.0 % unseen)")
    for estimator, words in (("snips", "they are ignored"), ("dr", "rests on predicted relevance alone")):
        assert words in metrics.estimate(log, new, "dcg@3", BIAS, data=data, estimator=estimator).note


def test_self_normalized_estimates_ignore_the_scale_of_propensities(data, new, log):
    half = PositionBias(BIAS.propensity * 0.5)
    for name in ("dcg@3", "mean_relevant_rank"):
        one, other = (metrics.estimate(log, new, name, b, data=data, estimator="snips")[name] for b in (BIAS, half))
        assert one == pytest.approx(other)


def test_the_doubly_robust_estimate_needs_one_of_two(data, new, log):
    """Right propensities with a wrong regression, and no clicks at all on half of the documents with a right one."""
    expected = truth(data, new)["dcg"]
    wrong = np.full(data.n_rows, 0.9)
    found = metrics.estimate(log, new, "dcg", BIAS, data=data, estimator="dr", relevance=wrong)
    assert found["dcg"] == pytest.approx(expected, rel=0.06)
    short = simulate_clicks(data, data.X[:, 0], 20_000, n_ranks=3, random_state=0)
    right = attractiveness(data)
    found = metrics.estimate(short, new, "dcg", BIAS, data=data, estimator="dr", relevance=right)
    assert found["dcg"] == pytest.approx(expected, rel=0.06)
    blind = metrics.estimate(short, new, "dcg", BIAS, data=data)
    assert blind["dcg"] < 0.8 * expected
    assert 0.3 < blind.unseen_share < 0.7


def test_trust_bias_is_corrected(data, new):
    log = simulate_clicks(
        data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 60_000, model="trust", noise=0.0, random_state=0
    )
    rank = np.arange(1, 7)
    relevant, other = 1 - (rank + 1) / 100, 0.65 / rank
    bias = PositionBias((relevant - other) / rank, offset=other / rank)
    gain = attractiveness(data, 0.0)
    expected = np.sum(gain / np.log2(1 + new_ranks(data, new))) / data.queries.n_queries
    found = metrics.estimate(log, new, "dcg", bias, data=data, confidence=0.999)
    assert found.intervals["dcg"][0] <= expected <= found.intervals["dcg"][1]
    plain = metrics.estimate(log, new, "dcg", PositionBias.power(6), data=data)
    assert abs(plain["dcg"] - expected) > 3 * abs(found["dcg"] - expected)


def test_intervals_cover(data, new):
    expected, inside = truth(data, new)["dcg@3"], 0
    for seed in range(60):
        log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 500, random_state=seed)
        low, high = metrics.estimate(log, new, "dcg@3", BIAS, data=data).intervals["dcg@3"]
        inside += low <= expected <= high
    assert 51 <= inside <= 60


def test_files_give_the_same(data, new, log, tmp_path):
    some = log.impressions(np.arange(log.n_impressions) < 2_000)
    some.save(tmp_path / "log.parquet")
    blocks = ClickLog.scan(tmp_path / "log.parquet", block_rows=1_500)
    for options in ({}, {"estimator": "dr"}, {"unit": "query"}, {"estimator": "snips"}):
        one, other = (metrics.estimate(part, new, "dcg@3", BIAS, data=data, **options) for part in (some, blocks))
        assert one["dcg@3"] == pytest.approx(other["dcg@3"])
        assert one.intervals["dcg@3"] == pytest.approx(other.intervals["dcg@3"])
        assert one.unseen_by_ranker == pytest.approx(other.unseen_by_ranker)
    lists = new[some.rows(data)]
    one, other = (metrics.estimate(part, lists, "dcg@3", BIAS) for part in (some, blocks))
    assert one.intervals["dcg@3"] == pytest.approx(other.intervals["dcg@3"])


def test_queries_as_units_have_wider_intervals(data, new, log):
    widths = []
    for unit in ("impression", "query"):
        low, high = metrics.estimate(log, new, "dcg", BIAS, data=data, unit=unit).intervals["dcg"]
        widths.append(high - low)
    assert widths[1] > 2 * widths[0]


def test_clipping(data, new, log):
    free, clipped = (metrics.estimate(log, new, "dcg", BIAS, data=data, clip=clip) for clip in (0.0, 0.4))
    assert clipped["dcg"] < free["dcg"]
    assert clipped.effective_clicks > free.effective_clicks
    assert clipped.clip == 0.4


def test_results(data, new, log):
    found = metrics.estimate(log, new, "dcg@3,mean_relevant_rank", BIAS, data=data)
    assert found.to_dict()["means"] == found.means
    assert found.to_csv().splitlines()[0] == "metric,estimate,low,high"
    assert "effective of" in repr(found)
    with pytest.raises(OptionError, match="'dcg@4' was not estimated"):
        found["dcg@4"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "ndcg@10"}, "unknown metric 'ndcg@10'"),
        ({"metrics": "dcg@0"}, "unknown metric 'dcg@0'"),
        ({"metrics": []}, "no metric is given"),
        ({"metrics": "mrr", "estimator": "snips"}, "mrr is not a sum over documents"),
        ({"estimator": "dm"}, "estimator must be one of"),
        ({"unit": "user"}, "unit must be one of"),
        ({"confidence": 2}, "confidence must lie"),
        ({"clip": 0.1, "bias": None}, "clip is a limit of the propensities"),
        ({"clip": 2.0}, "clip must be between 0 and 1"),
        ({"estimator": "dr", "data": None}, "give data="),
        ({"relevance": [1.0]}, "relevance is the regression"),
        ({"bias": [1.0]}, "bias must be a PositionBias"),
    ],
)
def test_bad_options(data, new, log, options, message):
    arguments = {"metrics": "dcg@3", "bias": BIAS, "data": data} | options
    with pytest.raises(OptionError, match=message):
        metrics.estimate(log, new, **arguments)


def test_bad_data(data, new, log):
    with pytest.raises(DataError, match=r"scores has shape \(3,\), but the data has 180 rows"):
        metrics.estimate(log, [1.0, 2.0, 3.0], "dcg", BIAS, data=data)
    with pytest.raises(DataError, match="propensities are known for 2 ranks"):
        metrics.estimate(log, new, "dcg", PositionBias.power(2), data=data)
