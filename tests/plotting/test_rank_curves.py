"""ClickRateDisplay and PropensityDisplay."""

import numpy as np

from ranksvm.clicks import PositionBias
from ranksvm.plotting import ClickRateDisplay, PropensityDisplay


def texts(display):
    legend = display.ax_.get_legend()
    return None if legend is None else [text.get_text() for text in legend.get_texts()]


def test_a_rank_where_nothing_was_shown_has_no_click_rate():
    shown = {"old": np.array([10, 0, 5]), "_new": np.array([4, 4])}
    clicks = {"old": np.array([4, 0, 0]), "_new": np.array([2, 1])}
    display = ClickRateDisplay(shown, clicks).plot()
    old, new = display.ax_.lines
    np.testing.assert_array_equal(old.get_ydata(), [0.4, np.nan, 0.0])
    np.testing.assert_array_equal(new.get_ydata(), [0.5, 0.25])
    assert texts(display) == ["old", " _new"]
    # colors are not all that tells lines apart
    assert old.get_marker() != new.get_marker()
    assert all(tick == int(tick) for tick in display.ax_.get_xticks())


def test_one_curve_needs_no_legend():
    assert texts(ClickRateDisplay({"all": np.array([10])}, {"all": np.array([4])}).plot()) is None
    assert texts(PositionBias.power(3).plot()) is None


def test_the_legend_names_everything_that_is_drawn():
    ends = np.array([0.9, 0.4]), np.array([1.1, 0.6])
    display = PropensityDisplay(np.array([1.0, 0.5]), *ends, offset=np.array([0.1, 0.1]), clip=0.2).plot()
    assert texts(display) == ["propensity", "interval", "offset", "lower limit"]


def test_the_legend_has_the_level_of_estimated_intervals():
    bias = PositionBias(np.array([1.0, 0.5]), low=np.array([1.0, 0.4]), high=np.array([1.0, 0.6]), confidence=0.9)
    assert texts(bias.plot()) == ["propensity", "90 % interval"]
