"""ProgressiveDisplay draws the means over the orders, their bands, and the times."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot

from ranksvm import ProgressiveDisplay, RankSVM, Refit, SOLARRanker, make_ranking, progressive_validation
from ranksvm.exceptions import OptionError


@pytest.fixture(scope="module")
def data():
    return make_ranking(60, 8, 5, random_state=0)


@pytest.fixture(scope="module")
def results(data):
    models = {"first": SOLARRanker(random_state=0), "second": SOLARRanker(2, random_state=0)}
    return {name: progressive_validation(model, data, n_orders=3, random_state=0) for name, model in models.items()}


def test_curves_and_bands(results):
    display = ProgressiveDisplay.from_result(results, metric="map")
    for line, band, result in zip(display.lines_, display.bands_, results.values(), strict=True):
        curve = result.cumulative["map"]
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([np.arange(1, 61), curve.mean(axis=0)]))
        corners = band.get_paths()[0].vertices
        for height in (curve.mean(axis=0) - curve.std(axis=0, ddof=1), curve.mean(axis=0) + curve.std(axis=0, ddof=1)):
            assert np.isclose(corners, [60, height[-1]]).all(axis=1).any()
            low, high = display.ax_.get_ylim()
            assert ((height[3:] > low) & (height[3:] < high)).all()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["first", "second"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("queries", "map, cumulative")
    assert display.figure_ is display.ax_.figure


def test_one_model_and_its_last_queries(results):
    ax = pyplot.subplots()[1]
    display = ProgressiveDisplay(results["first"], window=10).plot(ax, line_kw={"color": "red"})
    assert display.ax_ is ax
    assert ax.get_legend() is None
    assert ax.get_ylabel() == "ndcg@1, last 10 queries"
    assert display.lines_[0].get_color() == "red"
    np.testing.assert_allclose(display.lines_[0].get_ydata(), results["first"].curve("ndcg@1", 10).mean(axis=0))


def test_seconds(data):
    result = progressive_validation(Refit(RankSVM(C=0.01)), data, timing=True)
    display = ProgressiveDisplay.from_result(result, metric="learn_seconds")
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), result.learn_seconds[0])
    assert (display.ax_.get_yscale(), display.ax_.get_ylabel()) == ("log", "seconds to learn from a query")
    assert display.bands_ == []
    for window in (4, 5):
        medians = ProgressiveDisplay.from_result(result, metric="rank_seconds", window=window).lines_[0].get_ydata()
        last = np.sort(result.rank_seconds[0, 40 - window : 40])
        assert medians[39] == last[window // 2]
    # far apart, so that the band of one standard deviation reaches below 0
    result = replace(result, learn_seconds=np.vstack([result.learn_seconds, 100 * result.learn_seconds]))
    display = ProgressiveDisplay.from_result(result, metric="learn_seconds")
    assert display.ax_.get_ylim()[0] == 0.5 * display.lines_[0].get_ydata().min()


def test_errors(results):
    with pytest.raises(OptionError, match="queries were not timed"):
        ProgressiveDisplay.from_result(results, metric="learn_seconds")
    with pytest.raises(OptionError, match="'mrr' was not evaluated"):
        ProgressiveDisplay.from_result(results, metric="mrr")
    with pytest.raises(OptionError, match="results must come from progressive_validation"):
        ProgressiveDisplay.from_result([1])
    with pytest.raises(OptionError, match="there are no results"):
        ProgressiveDisplay.from_result({})


@pytest.mark.filterwarnings("error:Attempt to set", "error:Data has no positive")
def test_times_of_0(data):
    timed = progressive_validation(SOLARRanker(random_state=0), data, random_state=0, timing=True)
    seconds = np.full_like(timed.learn_seconds, 1e-4)
    seconds[:, 3] = 0.0
    for times, scale in ((seconds, "log"), (0.0 * seconds, "linear")):
        display = ProgressiveDisplay.from_result(replace(timed, learn_seconds=times), metric="learn_seconds")
        assert display.ax_.get_yscale() == scale
        display.figure_.draw_without_rendering()
