"""C chosen by clicks: the best estimate on held-out queries, and what is said at the edges of a grid."""

import warnings

import numpy as np
import pytest

from ranksvm import AdditiveRankSVM, KernelRankSVM, RankingData, RankSVM, RankSVMCV, SOLARRanker, make_ranking, metrics
from ranksvm.clicks import ClickLog, PositionBias, fit_from_clicks, simulate_clicks
from ranksvm.exceptions import DataError, GridEdgeWarning, OptionError


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (RankSVM(), {}),
        (RankSVM(), {"form": "relevance"}),
        (RankSVM(), {"rule": "skip_above"}),
        (RankSVM(), {"Cs": [0.01, 1.0], "metric": "mean_relevant_rank"}),
        (KernelRankSVM(kernel="rbf", gamma=0.1), {"Cs": [0.01, 0.1]}),
        (SOLARRanker(random_state=0), {"Cs": [0.01, 0.1]}),
        (SOLARRanker(random_state=0), {"Cs": [0.01, 0.1], "rule": "shown_all"}),
    ],
)
@pytest.mark.filterwarnings("ignore::ranksvm.exceptions.GridEdgeWarning")
def test_fit_from_clicks(data, log, bias, estimator, options):
    small = log.impressions(np.arange(log.n_impressions) < 600)
    found = fit_from_clicks(estimator, data, small, bias, **options)
    assert len(found.estimates) == len(found.Cs)
    assert found.model.C == found.C > 0
    assert found.model.predict(data.X).shape == (data.n_rows,)
    assert found.to_csv().startswith("C,")
    if options.get("rule") != "skip_above":
        value = metrics.evaluate(data.y, found.model.predict(data.X), data.qid, "ndcg@5").means["ndcg@5"]
        assert value > 0.6
    if "Cs" in options:
        assert found.C in options["Cs"]


@pytest.mark.filterwarnings("ignore::ranksvm.exceptions.GridEdgeWarning")
def test_the_chosen_c_is_the_best_estimate(data, log, bias):
    found = fit_from_clicks(RankSVM(), data, log, bias, Cs=[1e-4, 1e-2, 1.0])
    best = int(np.argmax([one["dcg@10"] for one in found.estimates]))
    assert [1e-4, 1e-2, 1.0][best] == found.C


@pytest.mark.parametrize("form", ["pairs", "relevance"])
def test_a_value_that_is_missing_in_one_query_only(data, log, bias, form):
    """Whether the query is held out, or without impressions, or neither."""
    for row in np.flatnonzero(np.diff(data.qid, prepend=-1))[:8]:
        X = np.array(data.X, dtype=float)
        X[row, 1] = np.nan
        with_missing = RankingData(X, data.y, data.qid)
        shown = log.impressions(np.arange(log.n_impressions) < 600)
        ranker = AdditiveRankSVM(max_bins=4, step_weight=1.0, tol=0.01)
        found = fit_from_clicks(ranker, with_missing, shown, bias, form=form, Cs=[0.01])
        assert found.model.has_missing_.tolist() == (np.arange(X.shape[1]) == 1).tolist()
        assert "_all_data" not in vars(found.model)


def values_of(found):
    return [one[found.metric] for one in found.estimates]


@pytest.fixture(scope="module")
def bad_ranker():
    """A log of bad lists, from which models with a large C learn more."""
    made = make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)
    return made, simulate_clicks(made, -made.X[:, 0], 3_000, n_ranks=4, random_state=0), PositionBias.power(4)


def test_a_grid_of_our_own_goes_on_beyond_its_edge(bad_ranker, monkeypatch):
    monkeypatch.setattr("ranksvm.clicks.validation._BUDGETS", np.array([0.01, 0.1, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit_from_clicks(RankSVM(), *bad_ranker)
    assert len(found.Cs) == 6
    np.testing.assert_allclose(np.diff(np.log10(found.Cs)), 1.0)
    assert found.model.C == found.C == found.Cs[np.argmax(values_of(found))] > found.Cs[2]
    monkeypatch.setattr("ranksvm.clicks.validation._MAX_BEYOND", 1)
    with pytest.warns(GridEdgeWarning, match="the largest of the 4 values tried"):
        fit_from_clicks(RankSVM(), *bad_ranker)


def test_an_edge_of_given_values_is_said(bad_ranker):
    large = r"C = 0.01, the largest of the 2 values tried, .*: larger ones .*, such as Cs=\[0.01, 1\]\."
    with pytest.warns(GridEdgeWarning, match=large):
        assert fit_from_clicks(RankSVM(), *bad_ranker, Cs=[1e-2, 1e-4]).C == 0.01
    small = r"C = 0.001, the smallest of the 2 values tried, .*: smaller ones .*, such as Cs=\[1e-05, 0.001\]\."
    with pytest.warns(GridEdgeWarning, match=small):
        assert fit_from_clicks(SOLARRanker(random_state=0), *bad_ranker, Cs=[1e-3, 1e-1]).C == 0.001


def test_one_value_and_equal_estimates_have_no_edge(bad_ranker):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_from_clicks(RankSVM(), *bad_ranker, Cs=[1e-3]).C == 1e-3
        same = fit_from_clicks(RankSVM(), *bad_ranker, Cs=[10.0, 100.0])
    assert values_of(same)[0] == pytest.approx(values_of(same)[1], rel=1e-3)


def test_what_is_refused(data, log, bias):
    first = data.qid[0]
    with pytest.raises(DataError, match="needs clicks for 4 queries, and the log has them for 1"):
        fit_from_clicks(RankSVM(), data, ClickLog([first, first], [0, 1], [1, 2], [0, 1]))
    with pytest.raises(OptionError, match="log must be a ClickLog"):
        fit_from_clicks(RankSVM(), data, "log.parquet")
    with pytest.raises(OptionError, match="RankSVMCV has no C"):
        fit_from_clicks(RankSVMCV(), data, log, bias)
    with pytest.raises(OptionError, match="SOLARRanker with order=2 has no C to choose: call its partial_fit_pairs"):
        fit_from_clicks(SOLARRanker(order=2), data, log, bias)
    with pytest.raises(OptionError, match="Cs must be a list of numbers"):
        fit_from_clicks(RankSVM(), data, log, bias, Cs=[])
    with pytest.raises(OptionError, match="online rankers learn from pairs"):
        fit_from_clicks(SOLARRanker(), data, log, bias, form="relevance")
    with pytest.raises(OptionError, match="give no pair_weighting"):
        fit_from_clicks(RankSVM(pair_weighting="gain_gap"), data, log, bias, form="relevance")


def test_a_metric_that_is_undefined_for_every_c_is_an_error():
    data = make_ranking(n_queries=12, n_docs=6, n_features=3, random_state=0)
    log = simulate_clicks(data, data.X[:, 0], 3000, random_state=0)
    # with offsets of 0.9, the clicks show no relevance
    bias = PositionBias(np.ones(6), np.full(6, 0.9))
    with pytest.raises(DataError, match="mean_relevant_rank of the held-out clicks is undefined for every C"):
        fit_from_clicks(RankSVM(), data, log, bias, form="relevance", metric="mean_relevant_rank")
