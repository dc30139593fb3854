"""Estimated propensities against those of the simulation, and what the data cannot tell."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ranksvm import RankingData, make_ranking
from ranksvm.clicks import ClickLog, PositionBias, position_bias, simulate_clicks
from ranksvm.clicks.propensities import ClickCounts, fit_power, fit_propensities, harvest_by_stratum
from ranksvm.exceptions import DataError, OptionError

RANKS = np.arange(1, 7)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=80, n_docs=8, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def rankers(data):
    return {"a": data.X[:, 0], "b": data.X[:, 1], "c": -data.X[:, 0]}


def slow_counts(log):
    """Impressions and clicks by query, document and rank, one row after another."""
    found = {}
    for query, document, rank, clicked in zip(log.query, log.document, log.rank, log.clicked, strict=True):
        shown, clicks = found.get((query, document, rank), (0, 0))
        found[query, document, rank] = shown + 1, clicks + int(clicked)
    return found


def slow_pairs(log, n_ranks):
    """The table of pairs of ranks, one document after another."""
    counts, table = slow_counts(log), np.zeros((n_ranks, n_ranks))
    for (query, document, k), (n_k, c_k) in counts.items():
        for (other_query, other_document, l), (n_l, _) in counts.items():
            if (query, document) == (other_query, other_document) and k != l:
                table[k - 1, l - 1] += c_k * n_l / (n_k + n_l)
    return table


def test_the_table_of_pairs_against_loops(rankers):
    from ranksvm.clicks.propensities import harvest

    data = make_ranking(n_queries=5, n_docs=6, n_features=4, random_state=3)
    log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 150, n_ranks=5, random_state=0)
    counts = ClickCounts.of(log)
    assert {
        (q, d, k + 1): (n, c)
        for q, d, k, n, c in zip(counts.query, counts.document, counts.rank, counts.shown, counts.clicks, strict=True)
    } == slow_counts(log)
    np.testing.assert_allclose(harvest(counts).sum(axis=0), slow_pairs(log, 5), rtol=1e-12)


@settings(max_examples=25)
@given(st.integers(2, 7), st.integers(0, 10_000))
def test_exact_expectations_give_exact_propensities(n_ranks, seed):
    rng = np.random.default_rng(seed)
    p = np.concatenate(([1.0], rng.uniform(0.05, 1.0, n_ranks - 1)))
    shown = rng.integers(1, 50, (6, n_ranks)).astype(float)
    clicks = shown * rng.uniform(0.05, 1.0, (6, 1)) * p
    np.testing.assert_allclose(fit_propensities(harvest_by_stratum(shown, clicks)), p, rtol=1e-8)


@pytest.mark.parametrize(
    ("method", "swap", "error"), [("harvest", "none", 0.03), ("swap", "top", 0.05), ("swap", "shuffle", 0.03)]
)
def test_propensities_of_the_simulation(data, rankers, method, swap, error):
    ranker = rankers if method == "harvest" else rankers["a"]
    log = simulate_clicks(data, ranker, 150_000, n_ranks=6, eta=1.2, swap=swap, random_state=0)
    bias = position_bias(log, method, n_bootstrap=0)
    np.testing.assert_allclose(bias.propensity, RANKS**-1.2, rtol=error)
    assert bias.method == method
    assert bias.identified
    assert bias.low is None


@pytest.mark.parametrize("curve", ["free", "power"])
def test_ends_of_intervals_that_a_few_clicks_do_not_bound_are_unknown(curve):
    # two of the three queries have a comparable click at rank 1: some samples have none
    clicked = [1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1]
    log = ClickLog(np.repeat([1, 2, 3], 4), [1, 2, 2, 1] * 3, [1, 2] * 6, clicked, ranker=["a", "a", "b", "b"] * 3)
    bias = position_bias(log, curve=curve)
    assert bias.identified
    assert np.isnan(bias.high[1])
    assert 0 <= bias.low[1] < bias.propensity[1]


def test_expectation_maximization(data, rankers):
    log = simulate_clicks(data, rankers, 100_000, n_ranks=6, eta=1.0, random_state=0)
    free = position_bias(log, "em", n_bootstrap=3)
    np.testing.assert_allclose(free.propensity, 1 / RANKS, rtol=0.12)
    assert (free.low <= free.high).all()
    featured = position_bias(log, "em", data=data, n_bootstrap=0)
    np.testing.assert_allclose(featured.propensity, 1 / RANKS, rtol=0.25)
    assert "regression" in featured.diagnosis[0]


def test_regression_of_relevance_identifies_where_documents_have_one_rank():
    """Clicks on documents of one rank each, whose relevance is logistic in their features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    relevance = 1.0 / (1.0 + np.exp(-X @ [1.0, -1.0, 0.5] - 0.2))
    query, rank = np.repeat(np.arange(4_000), 5), np.tile(np.arange(1, 6), 4_000)
    clicked = rng.random(20_000) < relevance / rank
    log = ClickLog(query, np.arange(20_000), rank, clicked)
    found = position_bias(log, "em", data=RankingData(X, clicked, query), n_bootstrap=0)
    np.testing.assert_allclose(found.propensity, 1.0 / np.arange(1, 6), rtol=0.08)
    with pytest.raises(DataError, match="every document was shown at only one rank"):
        position_bias(log, "em")


def test_swaps_need_no_repeated_query():
    data = make_ranking(n_queries=4_000, n_docs=6, n_features=3, random_state=0)
    log = simulate_clicks(data, data.X[:, 0], 4_000, n_ranks=4, swap="shuffle", noise=0.6, random_state=0)
    np.testing.assert_allclose(position_bias(log, "swap").propensity, 1 / RANKS[:4], rtol=0.12)


def test_intervals_cover(data, rankers):
    truth, inside = 1 / RANKS, []
    for seed in range(25):
        log = simulate_clicks(data, rankers, 6_000, n_ranks=6, random_state=seed)
        bias = position_bias(log, n_bootstrap=100, random_state=seed)
        inside.append((bias.low <= truth) & (truth <= bias.high))
    assert 0.85 <= np.mean(np.array(inside)[:, 1:]) <= 1.0


def test_trust_bias(data, rankers):
    log = simulate_clicks(data, rankers, 400_000, n_ranks=6, model="trust", noise=0.0, random_state=0)
    relevant, other = 1 - (RANKS + 1) / 100, 0.65 / RANKS
    alpha, beta = (relevant - other) / RANKS, other / RANKS
    bias = position_bias(log, trust=True, n_bootstrap=50)
    offset = beta - alpha / alpha[0] * beta[0]
    np.testing.assert_allclose(bias.propensity / bias.propensity[0], alpha / alpha[0], atol=0.06)
    np.testing.assert_allclose(bias.offset, offset, atol=0.04)
    assert bias.low.shape == bias.offset_high.shape == (6,)


def test_blocks_of_a_file_give_the_same(data, rankers, tmp_path):
    log = simulate_clicks(data, rankers, 5_000, n_ranks=5, random_state=0)
    log.save(tmp_path / "log.parquet")
    whole = position_bias(log, n_bootstrap=20)
    blocks = position_bias(ClickLog.scan(tmp_path / "log.parquet", block_rows=3_000), n_bootstrap=20)
    np.testing.assert_allclose(blocks.propensity, whole.propensity, rtol=1e-10)


@settings(max_examples=5)
@given(st.integers(0, 10_000))
def test_the_order_of_rows_and_names_do_not_matter(seed):
    data = make_ranking(n_queries=10, n_docs=6, n_features=3, random_state=0)
    log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 400, n_ranks=4, random_state=0)
    order = np.random.default_rng(seed).permutation(log.n_rows)
    again = ClickLog(
        [f"query {code}" for code in log.query[order]],
        log.document[order] * -3,
        log.rank[order],
        log.clicked[order],
        impression=log.impression[order],
        ranker=log.ranker[order],
    )
    expected = position_bias(log, n_bootstrap=0).propensity
    np.testing.assert_allclose(position_bias(again, n_bootstrap=0).propensity, expected, rtol=1e-8)


def test_what_cannot_be_identified(data, rankers):
    one = simulate_clicks(data, rankers["a"], 500, n_ranks=4, random_state=0)
    with pytest.raises(DataError, match="all lists come from one ranker, 'ranker'"):
        position_bias(one)
    with pytest.raises(DataError, match="no base_rank"):
        position_bias(one, "swap")
    with pytest.raises(DataError, match="shown at only one rank"):
        position_bias(one, "em")
    with pytest.raises(DataError, match="one rank only: there is no position bias"):
        position_bias(one, n_ranks=1)
    unclicked = ClickLog(["a", "a"], [1, 2], [1, 2], [0, 0])
    with pytest.raises(DataError, match="the log has no clicks"):
        position_bias(unclicked)
    with pytest.raises(DataError, match="no rank can be compared with rank 1"):
        position_bias(ClickLog(["a", "a"], [1, 2], [1, 2], [1, 1]))
    with pytest.raises(DataError, match="trust bias is not identified"):
        position_bias(ClickLog(["a"] * 4, [1, 2, 2, 1], [1, 2, 1, 2], [1, 1, 1, 0]), trust=True)


def test_ranks_that_no_document_shares():
    # documents 1 and 2 change places, 3 is always third
    rows = [(1, 2, 3), (2, 1, 3)] * 20
    documents = [document for row in rows for document in row]
    clicked = [1, 1, 1] * 40
    bias = position_bias(ClickLog(["q"] * 120, documents, [1, 2, 3] * 40, clicked), n_bootstrap=10)
    np.testing.assert_allclose(bias.propensity, [1.0, 1.0, np.nan])
    assert not bias.identified
    assert "Rank 3 cannot be compared with rank 1" in bias.diagnosis[0]
    with pytest.raises(DataError, match=r"the propensity of rank 3 is not known.*log.top\(2\)"):
        bias.at([1, 2, 3])


def test_bad_options(data, rankers):
    log = simulate_clicks(data, rankers, 100, random_state=0)
    for options, message in [
        ({"method": "mle"}, "method must be one of"),
        ({"n_bootstrap": -1}, "n_bootstrap"),
        ({"confidence": 1.0}, "confidence"),
        ({"method": "em", "trust": True}, "trust=True needs"),
        ({"data": data}, "data is for method 'em'"),
        ({"trust": 1}, "trust must be True or False"),
        ({"random_state": "x"}, "random_state must be None, a whole number from 0 or a numpy.random.Generator"),
    ]:
        with pytest.raises(OptionError, match=message):
            position_bias(log, **options)


def test_given_propensities(tmp_path):
    for wrong in (0.0, 1.2, -0.5):
        with pytest.raises(DataError, match=r"propensity of rank 2 is .* must be in \(0, 1\]"):
            PositionBias([1.0, wrong])
    with pytest.raises(DataError, match="2 propensities but 1 offsets"):
        PositionBias([1.0, 0.5], offset=[0.0])
    with pytest.raises(OptionError, match="clip must be between 0 and 1"):
        PositionBias([1.0]).clipped(2.0)
    bias = PositionBias.power(4, 1.0).clipped(0.3)
    np.testing.assert_allclose(bias.at([1, 2, 4]), [1.0, 0.5, 0.3])
    np.testing.assert_allclose(bias.clip_bias, [0, 0, 0, 0.25 / 0.3 - 1])
    with pytest.raises(DataError, match=r"shows rank 5, but propensities are known for 4 ranks.*log.top\(4\)"):
        bias.at([5])
    for ranks in ([1.5], [0], ["a"]):
        with pytest.raises(DataError, match="ranks are the whole numbers 1, 2, 3"):
            bias.at(ranks)
    with pytest.raises(DataError, match="shows rank 5"):
        bias.offset_at([5])
    assert bias.at([]).shape == (0,)
    with pytest.raises(DataError, match="propensity must hold one number for each rank, got 'x'"):
        PositionBias("x")
    with pytest.raises(OptionError, match="clip must be between 0 and 1"):
        PositionBias([1.0], clip=3.0)
    assert PositionBias([1.0, 0.1]).clipped(np.float32(0.5)).at([2]) == 0.5
    for ranks, clicks, message in [([1, 2], [1], "rank has 2 entries"), ([1], [3], "clicked is 3 in row 0")]:
        with pytest.raises(DataError, match=message):
            bias.relevance(ranks, clicks)
    trusted = PositionBias([1.0, 0.5], offset=[0.1, 0.2])
    np.testing.assert_allclose(trusted.relevance([1, 2, 2], [1, 1, 0]), [0.9, 1.6, -0.4])


def test_saving(data, rankers, tmp_path):
    log = simulate_clicks(data, rankers, 2_000, random_state=0)
    bias = position_bias(log, n_bootstrap=20).clipped(0.1)
    bias.save(tmp_path / "bias.json")
    back = PositionBias.load(tmp_path / "bias.json")
    for name in ("propensity", "low", "high"):
        np.testing.assert_array_equal(getattr(back, name), getattr(bias, name))
    assert (back.clip, back.method, back.diagnosis) == (0.1, "harvest", bias.diagnosis)
    assert back.offset is None
    gap = PositionBias([1.0, np.nan], diagnosis=("Rank 2 is not known.",))
    gap.save(tmp_path / "gap.json")
    assert np.isnan(PositionBias.load(tmp_path / "gap.json").propensity[1])
    for text in ("[1]", "{}", '{"ranksvm": "settings"}', "no JSON", '{"ranksvm": "position bias", "version": 9}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(DataError, match=r"was not written by PositionBias\.save"):
            PositionBias.load(tmp_path / "other.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="it has another format"):
        PositionBias.load(tmp_path / "other.json")
    (tmp_path / "other.json").write_text('{"ranksvm": "position bias", "version": 1, "propensity": [1, 0]}')
    with pytest.raises(DataError, match=r"other\.json: the propensity of rank 2 is 0"):
        PositionBias.load(tmp_path / "other.json")


def test_plot():
    pytest.importorskip("matplotlib").use("agg")
    bias = PositionBias([1.0, 0.5], offset=[0.0, 0.1], low=[1, 0.4], high=[1, 0.6]).clipped(0.2)
    display = bias.plot()
    assert len(display.ax_.lines) == 3
    assert "0.5" in repr(bias)
    assert "clip_bias" in bias.to_csv().splitlines()[0]


def wins_of(propensity, relevance):
    """Expected clicks of pairs of ranks on documents that were shown as often at each."""
    p = np.asarray(propensity)
    wins = np.outer(p, np.full(len(p), relevance * 500.0))
    np.fill_diagonal(wins, 0.0)
    return wins


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 2.0])
def test_a_power_curve_is_the_most_likely_one(eta):
    from scipy.optimize import minimize_scalar

    k = np.arange(1.0, 9.0)
    exact = wins_of(k**-eta, 0.4)
    noisy = np.random.default_rng(0).poisson(exact).astype(float)
    assert fit_power(exact[None]) == pytest.approx([eta], abs=1e-9)

    def loss(eta):
        log_p = -eta * np.log(k)
        return (noisy * np.logaddexp(0.0, log_p[None, :] - log_p[:, None])).sum()

    expected = minimize_scalar(loss, bracket=(0.0, 2.0), tol=1e-10).x
    assert fit_power(np.stack([noisy, exact])) == pytest.approx([expected, eta], abs=1e-6)


@pytest.mark.parametrize(("method", "swap"), [("harvest", "none"), ("swap", "adjacent")])
def test_a_power_curve_needs_few_clicks(method, swap):
    data = make_ranking(n_queries=100, n_docs=10, n_features=3, random_state=0)
    log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 3_000, swap=swap, random_state=0)
    found = position_bias(log, method, curve="power", random_state=0)
    assert found.identified
    assert found.low[9] < 0.1 < found.high[9] < 0.2
    eta = -np.log(found.propensity[1:]) / np.log(np.arange(2, 11))
    assert eta == pytest.approx(eta[0])
    assert found.method == f"{method}, power curve"


def test_a_power_curve_without_comparable_clicks():
    log = ClickLog([0, 0, 1, 1], [0, 1, 2, 3], [1, 2, 1, 2], [1, 0, 0, 1], ranker=["a", "a", "b", "b"])
    with pytest.raises(DataError, match="no document was shown at two ranks and clicked on"):
        position_bias(log, curve="power")
    log = ClickLog([0, 0, 0, 0], [0, 1, 1, 0], [1, 2, 1, 2], [1, 0, 0, 1], ranker=["a", "a", "b", "b"])
    assert "fewer than 100" in position_bias(log, curve="power", n_bootstrap=0).diagnosis[0]
    for options in ({"method": "em"}, {"trust": True}):
        with pytest.raises(OptionError, match="curve='power' is for"):
            position_bias(log, curve="power", **options)


@pytest.mark.parametrize("options", [{}, {"curve": "power"}, {"trust": True}, {"method": "em"}])
def test_samples_of_long_rankings_are_estimated_in_parts(data, rankers, monkeypatch, options):
    module, sizes = sys.modules["ranksvm.clicks.position_bias"], []
    log = simulate_clicks(data, rankers, 20_000, n_ranks=6, random_state=0)
    whole = position_bias(log, n_bootstrap=25, **options)

    def estimator(*arguments, make=module._estimator):
        tables, diagnosis, estimate = make(*arguments)
        return tables, diagnosis, lambda weights: sizes.append(len(weights)) or estimate(weights)

    monkeypatch.setattr(module, "_estimator", estimator)
    monkeypatch.setattr(module, "MAX_NUMBERS", 200)
    found = position_bias(log, n_bootstrap=25, **options)
    assert sizes == [1, 5, 5, 5, 5, 5]
    for name in ("low", "high", "offset_low", "offset_high"):
        if (values := getattr(whole, name)) is not None:
            np.testing.assert_allclose(getattr(found, name), values, rtol=1e-9, atol=1e-12)
