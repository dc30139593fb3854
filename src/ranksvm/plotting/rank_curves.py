"""Curves over the ranks of a click log: click rates, and propensities with their intervals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ranksvm.plotting.figures import GRID, MARKERS, axes_or_new, legend_above, line_style, nth_color, series_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ClickRateDisplay", "PropensityDisplay"]


class ClickRateDisplay:
    """Click rate of each rank, with a curve for all rankers together or for each ranker.

    A rank at which nothing was shown has no point.

    Parameters
    ----------
    shown, clicks : dict of str to ndarray, shape (n_ranks,)
        For each curve, by name: the number of impressions at each rank, and the number of clicks.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.plotting import ClickRateDisplay
    >>> display = ClickRateDisplay({"old": np.array([10, 10])}, {"old": np.array([4, 1])}).plot()
    >>> display.ax_.lines[0].get_ydata().tolist()
    [0.4, 0.1]
    """

    def __init__(self, shown: Mapping[str, np.ndarray], clicks: Mapping[str, np.ndarray]):
        self.shown = shown
        self.clicks = clicks

    def plot(self, ax: "Axes | None" = None) -> "ClickRateDisplay":
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        ClickRateDisplay
            Itself, with ``ax_`` and ``figure_``.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        ax = axes_or_new(ax, layout="constrained")
        labels = series_names(list(self.shown))
        for number, (name, shown) in enumerate(self.shown.items()):
            rate = np.where(shown > 0, self.clicks[name] / np.maximum(shown, 1), np.nan)
            style = {**line_style(number), "marker": MARKERS[number % len(MARKERS)], "label": labels[number]}
            ax.plot(np.arange(1, len(shown) + 1), rate, **style)
        if len(self.shown) > 1:
            legend_above(ax)
        _over_ranks(ax, "click rate")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class PropensityDisplay:
    """Propensity of each rank with its interval, and the offset if there is one.

    Parameters
    ----------
    propensity : ndarray of shape (n_ranks,)
        Propensities of the ranks from 1.
    low, high : ndarray of shape (n_ranks,), optional
        Their intervals.
    offset : ndarray of shape (n_ranks,), optional
        With trust bias: the click rate of a document without relevance at each rank.
    clip : float, default 0.0
        Lower limit of propensities, drawn as a line; 0: none.
    level : float, optional
        Confidence level of the intervals, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from ranksvm.clicks import PositionBias
    >>> PositionBias.power(3).plot().ax_.get_xlabel()
    'rank'
    """

    def __init__(
        self,
        propensity: np.ndarray,
        low: np.ndarray | None = None,
        high: np.ndarray | None = None,
        offset: np.ndarray | None = None,
        clip: float = 0.0,
        level: float | None = None,
    ):
        self.propensity = propensity
        self.low = low
        self.high = high
        self.offset = offset
        self.clip = clip
        self.level = level

    def plot(self, ax: "Axes | None" = None) -> "PropensityDisplay":
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        PropensityDisplay
            Itself, with ``ax_`` and ``figure_``.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        ax = axes_or_new(ax, layout="constrained")
        rank = np.arange(1, len(self.propensity) + 1)
        ax.plot(rank, self.propensity, marker="o", color=nth_color(0), label="propensity")
        if self.low is not None and self.high is not None:
            label = "interval" if self.level is None else f"{100 * self.level:g} % interval"
            ax.fill_between(rank, self.low, self.high, color=nth_color(0), alpha=0.2, linewidth=0, label=label)
        if self.offset is not None:
            ax.plot(rank, self.offset, marker="s", linestyle="--", color=nth_color(1), label="offset")
        if self.clip > 0:
            ax.axhline(self.clip, color="0.5", linestyle=":", linewidth=1, label="lower limit")
        if len(ax.get_legend_handles_labels()[1]) > 1:
            ax.legend()
        _over_ranks(ax, "propensity, relative to rank 1")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _over_ranks(ax: "Axes", what: str) -> None:
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    ax.set_xlabel("rank")
    ax.set_ylabel(what)
    ax.grid(**GRID)
    ax.set_axisbelow(True)
