"""WeightsDisplay."""

import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from ranksvm.analysis import WeightIntervals
from ranksvm.exceptions import MissingDependencyError, OptionError
from ranksvm.plotting import WeightsDisplay


@pytest.fixture(autouse=True)
def no_window():
    backend = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    plt.close("all")
    matplotlib.use(backend)


@pytest.fixture
def weights():
    coef = np.array([0.1, -2.0, 1.0, 0.0])
    errors = np.array([0.3, 0.3, 0.3, 0.0])
    return WeightIntervals(coef, errors, 20, 0.9, feature_names=np.array(["a", "b", "c", "d"]))


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_largest_weights_on_top_with_their_intervals(weights):
    display = WeightsDisplay.from_intervals(weights, top=3)
    assert labels(display) == ["b", "c", "a"]
    without_zero, open_ = display.ax_.collections
    low, high = weights.interval()
    ends = [(segment[0, 0], segment[1, 0]) for segment in without_zero.get_segments()]
    np.testing.assert_allclose(ends, [(low[1], high[1]), (low[2], high[2])])
    assert len(open_.get_segments()) == 1
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["interval without 0", "interval contains 0"]
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    assert display.ax_.get_xlabel() == "weight, 90 % interval"
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()


def test_another_level_axes_and_columns_for_names(weights):
    _, ax = plt.subplots()
    weights.feature_names = None
    display = WeightsDisplay.from_intervals(weights, level=0.5, top=None, ax=ax)
    assert display.ax_ is ax
    assert labels(display) == ["f2", "f3", "f1", "f4"]
    assert display.ax_.get_ylabel() == "feature"
    assert "50 %" in display.ax_.get_xlabel()
    np.testing.assert_array_equal(display.low, weights.interval(0.5)[0])
    with pytest.raises(OptionError, match="level"):
        WeightsDisplay.from_intervals(weights, level=2)


def test_without_matplotlib_the_message_says_what_to_install(weights, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(MissingDependencyError, match=r"pip install 'ranksvm\[plot\]'"):
        WeightsDisplay.from_intervals(weights)
