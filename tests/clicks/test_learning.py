"""Pairs and relevance from a log against loops over impressions."""

import numpy as np
import pytest

from ranksvm import RankSVM, make_ranking, metrics
from ranksvm.clicks import (
    ClickLog,
    PositionBias,
    attractiveness,
    click_pairs,
    fit_from_clicks,
    position_bias,
    relevance,
    simulate_clicks,
)
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError


def slow_pairs(log, data, p, rule):
    rows, found = log.rows(data), {}
    for start, stop in zip(log.pointers[:-1], log.pointers[1:], strict=True):
        for i in range(start, stop):
            for j in range(start, stop):
                skipped = not log.clicked[j] and (rule == "shown" or log.rank[j] < log.rank[i])
                if log.clicked[i] and i != j and (rule == "shown_all" or skipped):
                    key = int(rows[i]), int(rows[j])
                    found[key] = found.get(key, 0.0) + 1.0 / p[log.rank[i] - 1]
    return found


@pytest.mark.parametrize("rule", ["shown", "shown_all", "skip_above"])
@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_pairs_against_loops(data, log, bias, rule, clip):
    some = log.impressions(np.arange(log.n_impressions) < 200)
    used = None if rule == "skip_above" else bias.clipped(clip)
    pairs, weight = click_pairs(some, data, used, rule=rule, normalize=False)
    expected = slow_pairs(some, data, np.ones(5) if used is None else used.at(np.arange(1, 6)), rule)
    assert dict(zip(map(tuple, pairs.tolist()), weight.tolist(), strict=True)) == pytest.approx(expected)
    normal = click_pairs(some, data, used, rule=rule)
    np.testing.assert_allclose(normal.weight, weight / weight.mean())
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_pairs_in_the_lists_of_several_rankers_weigh_relevance():
    """The weights of (i, j) and (j, i) are as the relevance of both, though one ranker alone shows some documents."""
    data = make_ranking(n_queries=4, n_docs=8, n_features=3, random_state=0)
    rankers = {name: data.X[:, column] for column, name in enumerate("abc")}
    log = simulate_clicks(data, rankers, 600_000, n_ranks=4, random_state=0)
    a = attractiveness(data)
    pairs, weight = click_pairs(log, data, PositionBias.power(4), rule="shown_all", normalize=False)
    total = np.zeros((data.n_rows, data.n_rows))
    total[pairs[:, 0], pairs[:, 1]] = weight
    preferred, other = np.nonzero((total > 0) & (total.T > 0))
    found = total[preferred, other] / total[other, preferred]
    np.testing.assert_allclose(found, a[preferred] / a[other], rtol=0.2)


def test_relevance_against_loops(data, log):
    bias = PositionBias([1.0, 0.6, 0.5, 0.4, 0.3], offset=[0.0, 0.1, 0.05, 0.02, 0.01])
    rows, clicks, exposed = log.rows(data), {}, {}
    for row, rank, clicked in zip(rows.tolist(), log.rank.tolist(), log.clicked.tolist(), strict=True):
        clicks[row] = clicks.get(row, 0.0) + clicked - bias.offset[rank - 1]
        exposed[row] = exposed.get(row, 0.0) + bias.propensity[rank - 1]
    found = relevance(log, data, bias)
    assert np.flatnonzero(~np.isnan(found)).tolist() == sorted(exposed)
    np.testing.assert_allclose(found[sorted(exposed)], [clicks[row] / exposed[row] for row in sorted(exposed)])
    n = np.bincount(data.queries.numbers()[log.rows(data)[log.pointers[:-1]]])[data.queries.numbers()]
    limited = [clicks[row] / max(exposed[row], 0.3 * n[row]) for row in sorted(exposed)]
    np.testing.assert_allclose(relevance(log, data, bias.clipped(0.3))[sorted(exposed)], limited)


def test_files_give_the_same(data, log, bias, tmp_path):
    log.save(tmp_path / "log.parquet")
    blocks = ClickLog.scan(tmp_path / "log.parquet", block_rows=1_000)
    for found, expected in zip(click_pairs(blocks, data, bias), click_pairs(log, data, bias), strict=True):
        np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(relevance(blocks, data, bias), relevance(log, data, bias))
    one, other = (fit_from_clicks(RankSVM(), data, part, bias, Cs=[0.01, 0.1]) for part in (blocks, log))
    np.testing.assert_array_equal(one.model.coef_, other.model.coef_)


def test_propensities_of_the_log(data, log, bias):
    own = ClickLog(
        log.query_ids[log.query],
        log.document_ids[log.document],
        log.rank,
        log.clicked,
        propensity=bias.at(log.rank),
    )
    np.testing.assert_allclose(click_pairs(own, data, "log").weight, click_pairs(log, data, bias).weight)
    with pytest.raises(DataError, match="which has none"):
        click_pairs(log, data, "log")


def test_weights_undo_position_bias():
    """The biased user teaches what was on top; the weights restore the ranking of full labels."""
    data = make_ranking(n_queries=150, n_docs=10, n_features=5, n_levels=2, random_state=1)
    log = simulate_clicks(
        data, -RankSVM(C=1.0).fit(data.X, data.y, qid=data.qid).predict(data.X), 40_000, random_state=0
    )
    quality = {}
    for name, bias in (("naive", None), ("weighted", PositionBias.power(10))):
        pairs, weight = click_pairs(log, data, bias)
        model = RankSVM(C=1e-3).fit(data.X, qid=data.qid, pairs=pairs, pair_weight=weight)
        quality[name] = metrics.evaluate(data.y, model.predict(data.X), data.qid, "pairwise_accuracy").means[
            "pairwise_accuracy"
        ]
    assert quality["weighted"] > quality["naive"] + 0.05
    assert quality["weighted"] > 0.9


def test_what_is_refused(data, log, bias):
    with pytest.raises(OptionError, match="rule must be one of"):
        click_pairs(log, data, rule="above")
    with pytest.raises(OptionError, match="takes no bias"):
        click_pairs(log, data, bias, rule="skip_above")
    with pytest.raises(OptionError, match="bias must be a PositionBias"):
        click_pairs(log, data, [1.0, 0.5])
    with pytest.raises(DataError, match="negative weights"):
        click_pairs(log, data, PositionBias([1.0] * 5, offset=[0.0] * 5))
    with pytest.raises(DataError, match="propensities are known for 3 ranks"):
        click_pairs(log, data, PositionBias.power(3))
    first = data.qid[0]
    with pytest.raises(NoComparablePairsError, match="no click prefers"):
        click_pairs(ClickLog([first, first], [0, 1], [1, 2], [0, 0]), data)
    for use in (position_bias, lambda log: click_pairs(log, data), lambda log: relevance(log, data)):
        with pytest.raises(OptionError, match=r"log must be a ClickLog or a ClickLogFile, got list\."):
            use([1, 2])
        with pytest.raises(OptionError, match=r"got str: read it with ClickLog.read\(path\)"):
            use("log.parquet")
    with pytest.raises(OptionError, match="log must be a ClickLog"):
        metrics.estimate("log.parquet", data.X[:, 0])
