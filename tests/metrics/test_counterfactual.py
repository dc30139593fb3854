"""Estimates from clicks against the truth of a simulation, and against loops."""

import numpy as np
import pytest

from ranksvm import make_ranking, metrics
from ranksvm.clicks import ClickLog, PositionBias, attractiveness, simulate_clicks
from ranksvm.exceptions import DataError, OptionError


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
    names = NAMES if estimator == "ips" else ["dcg@3", "dcg", "mean_relevant_rank"]
    found = metrics.estimate(log, new, names, BIAS, data=data, estimator=estimator, confidence=0.999)
    expected = truth(data, new)
    for name in names:
        low, high = found.intervals[name]
        assert low <= expected[name] <= high
        assert found[name] == pytest.approx(expected[name], rel=0.06)
    naive = metrics.estimate(log, new, ["dcg"], data=data)
    assert naive["dcg"] < 0.6 * expected["dcg"]


def test_inverse_propensities_against_loops(data, new, log):
    some = log.impressions(np.arange(log.n_impressions) < 300)
    rank, rows = new_ranks(data, new), some.rows(data)
    dcg, reciprocal, relevant, ranks = [], [], 0.0, 0.0
    for start, stop in zip(some.pointers[:-1], some.pointers[1:], strict=True):
        estimates = some.clicked[start:stop] / (1 / some.rank[start:stop])
        g = rank[rows[start:stop]]
        dcg.append((estimates / np.log2(1 + g) * (g <= 3)).sum())
        order = np.argsort(g)
        not_above = np.concatenate(([1.0], np.cumprod(1 - estimates[order])[:-1]))
        reciprocal.append((estimates[order] * not_above / g[order] * (g[order] <= 2)).sum())
        relevant += estimates.sum()
        ranks += (estimates * g).sum()
    found = metrics.estimate(some, new, ["dcg@3", "mrr@2", "mean_relevant_rank"], BIAS, data=data)
    assert found["dcg@3"] == pytest.approx(np.mean(dcg))
    assert found["mrr@2"] == pytest.approx(np.mean(reciprocal))
    assert found["mean_relevant_rank"] == pytest.approx(ranks / relevant)
    half = 1.959964 * np.std(dcg, ddof=1) / np.sqrt(300)
    assert found.intervals["dcg@3"] == pytest.approx((np.mean(dcg) - half, np.mean(dcg) + half))
    normal = metrics.estimate(some, new, "dcg@3", BIAS, data=data, estimator="snips")
    assert normal["dcg@3"] == pytest.approx(sum(dcg) / relevant)
    weights = some.rank[some.clicked].astype(float)
    assert found.effective_clicks == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.n_clicks == len(weights)
    top = np.sort(weights)[::-1]
    count = 0.01 * len(weights)
    assert found.top_share == pytest.approx(top[0] * max(count, 1.0) / weights.sum(), rel=1e-9)


def test_self_normalised_estimates_ignore_the_scale_of_propensities(data, new, log):
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
    some.write(tmp_path / "log.parquet")
    blocks = ClickLog.scan(tmp_path / "log.parquet", block_rows=1_500)
    for options in ({}, {"estimator": "dr"}, {"unit": "query"}):
        one, other = (metrics.estimate(part, new, "dcg@3", BIAS, data=data, **options) for part in (some, blocks))
        assert one["dcg@3"] == pytest.approx(other["dcg@3"])
        assert one.intervals["dcg@3"] == pytest.approx(other.intervals["dcg@3"])


def test_queries_as_units_have_wider_intervals(data, new, log):
    widths = []
    for unit in ("impression", "query"):
        low, high = metrics.estimate(log, new, "dcg", BIAS, data=data, unit=unit).intervals["dcg"]
        widths.append(high - low)
    assert widths[1] > 2 * widths[0]


def test_scores_of_the_rows_of_the_log(data, new, log):
    inside = metrics.estimate(log, new[log.rows(data)], "dcg@3", BIAS)
    assert inside["dcg@3"] == pytest.approx(metrics.estimate(log, new, "dcg@3", BIAS, data=data)["dcg@3"])
    assert np.isnan(inside.unseen_share)


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
        ({"metrics": "mrr", "estimator": "snips"}, "mrr is no sum over documents"),
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
