"""WeightsDisplay: weights of a linear ranker with their intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm._util.text import feature_label
from ranksvm.analysis import WeightIntervals
from ranksvm.plotting.figures import axes_or_new, legend_above, literal, nth_color, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WeightsDisplay"]

# The height of the row of one weight, and the height of both margins together, in inches.
ROW_HEIGHT, MARGIN = 0.26, 1.1


class WeightsDisplay:
    """Weights of a linear ranker with their confidence intervals, the largest on top.

    A weight whose interval contains 0 is drawn hollow and gray: it may have either sign.

    Parameters
    ----------
    coef, low, high : ndarray of float64, shape (n_features,)
        Weights and the ends of their intervals.
    feature_names : array-like of str, shape (n_features,), or None
        Names of the features; None: ``f1``, ``f2``, ..., numbered as in LETOR files.
    level : float or None
        Confidence level of the intervals, for the label.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking, plotting
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> weights = analysis.weight_intervals(RankSVM(C=0.01), data.X, data.y, data.qid)
    >>> len(plotting.WeightsDisplay.from_intervals(weights).ax_.get_yticks())
    4
    """

    def __init__(
        self,
        coef: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        *,
        feature_names: Any = None,
        level: float | None = None,
    ):
        self.coef = coef
        self.low = low
        self.high = high
        self.feature_names = feature_names
        self.level = level

    @classmethod
    def from_intervals(
        cls,
        weights: WeightIntervals,
        *,
        level: float | None = None,
        top: int | None = 20,
        ax: "Axes | None" = None,
    ) -> "WeightsDisplay":
        """Draw the result of `ranksvm.analysis.weight_intervals`.

        Parameters
        ----------
        weights : WeightIntervals
            Weights and standard errors.
        level : float, optional
            Confidence level; None: the level of ``weights``.
        top : int or None, default 20
            Number of weights to draw, the largest in absolute value; None: all.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        WeightsDisplay
            The display, drawn.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        OptionError
            When level is invalid.
        """
        low, high = weights.interval(level)
        level = weights.level if level is None else level
        return cls(weights.coef, low, high, feature_names=weights.feature_names, level=level).plot(top=top, ax=ax)

    def plot(self, *, top: int | None = 20, ax: "Axes | None" = None) -> "WeightsDisplay":
        """Draw the weights.

        Parameters
        ----------
        top : int or None, default 20
            Number of weights to draw, the largest in absolute value; None: all.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        WeightsDisplay
            Itself, with ``ax_`` and ``figure_``.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        largest = np.argsort(-np.abs(self.coef), kind="stable")[:top]
        ax = axes_or_new(ax, figsize=(6.4, MARGIN + ROW_HEIGHT * len(largest)), layout="constrained")
        places = np.arange(len(largest))
        coef, low, high = (np.asarray(values)[largest] for values in (self.coef, self.low, self.high))
        without_zero = (low > 0) | (high < 0)
        ax.axvline(0.0, color="0.3", linewidth=1.0, zorder=1)
        for chosen, color, face, text in (
            (without_zero, nth_color(0), nth_color(0), "interval without 0"),
            (~without_zero, "0.6", "white", "interval contains 0"),
        ):
            if chosen.any():
                ax.hlines(places[chosen], low[chosen], high[chosen], color=color, linewidth=2)
                ax.plot(coef[chosen], places[chosen], "o", color=color, markerfacecolor=face, markersize=5, label=text)
        names = short_names([feature_label(column, self.feature_names) for column in range(len(self.coef))])
        ax.set_yticks(places, [literal(names[column]) for column in largest])
        ax.set_ylim(len(largest) - 0.4, -0.6)
        ax.set_ylabel("feature")
        ax.set_xlabel("weight" if self.level is None else f"weight, {100 * self.level:g} % interval")
        ax.grid(axis="x", color="0.9", zorder=-1)
        ax.set_axisbelow(True)
        legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
