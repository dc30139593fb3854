"""ProgressiveDisplay: quality or time of models in progressive (prequential) validation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import median_filter

from ranksvm.exceptions import OptionError
from ranksvm.model_selection import ProgressiveValidation
from ranksvm.plotting.figures import GRID, MARKERS, axes_or_new, line_style, series_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ProgressiveDisplay"]

SECONDS = {"rank_seconds": "seconds to rank a query", "learn_seconds": "seconds to learn from a query"}
# The share of the first queries whose values may lie outside the axes, because means of a few queries vary strongly.
_BEGINNING = 0.05
Results = ProgressiveValidation | Mapping[str, ProgressiveValidation]


class ProgressiveDisplay:
    """Progressive (prequential) validation: a metric, or the time per query, against the number of queries.

    Each line is a mean over several orders of the queries, with a band of one standard deviation to each side (Figs. 2
    and 3 of Wang et al., ACL 2015). `from_result` creates and draws the display.

    Parameters
    ----------
    results : ProgressiveValidation, or mapping of str to ProgressiveValidation
        The result of `progressive_validation`, for one model or for several by name.
    metric : str, optional
        Quantity to draw: a metric, or on a logarithmic axis ``"learn_seconds"`` or ``"rank_seconds"``; None: the first
        metric.
    window : int, optional
        Number of most recent queries in the moving mean of a metric, or in the moving median of seconds; None: the mean
        over all queries so far, or the seconds of each query.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        The line of each model.
    bands_ : list of matplotlib PolyCollection
        The bands of the models that were run with several orders.

    Examples
    --------
    >>> from ranksvm import ProgressiveDisplay, SOLARRanker, make_ranking, progressive_validation
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> found = progressive_validation(SOLARRanker(random_state=0), data, n_orders=2, random_state=0)
    >>> ProgressiveDisplay.from_result({"SOLAR": found}).ax_.get_ylabel()
    'ndcg@1, cumulative'
    """

    def __init__(
        self,
        results: Results,
        *,
        metric: str | None = None,
        window: int | None = None,
    ):
        self.results = results
        self.metric = metric
        self.window = window

    @classmethod
    def from_result(
        cls,
        results: Results,
        *,
        metric: str | None = None,
        window: int | None = None,
        ax: "Axes | None" = None,
    ) -> "ProgressiveDisplay":
        """Draw the plot.

        Parameters
        ----------
        results : ProgressiveValidation, or mapping of str to ProgressiveValidation
            For one model, or for several by name.
        metric : str, optional
            A metric, ``"learn_seconds"`` or ``"rank_seconds"``; None: the first metric.
        window : int, optional
            Number of most recent queries in the moving mean of a metric, or in the moving median of seconds; None: the
            mean over all queries so far, or the seconds of each query.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        ProgressiveDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When results are invalid, a metric was not evaluated, or queries were not timed.
        MissingDependencyError
            When matplotlib is not installed.
        """
        return cls(results, metric=metric, window=window).plot(ax)

    def plot(self, ax: "Axes | None" = None, *, line_kw: dict[str, Any] | None = None) -> "ProgressiveDisplay":
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.
        line_kw : dict, optional
            Passed to ``ax.plot`` for the lines.

        Returns
        -------
        ProgressiveDisplay
            Itself, with ``ax_``, ``figure_``, ``lines_`` and ``bands_``.

        Raises
        ------
        OptionError
            When results are invalid, a metric was not evaluated, or queries were not timed.
        MissingDependencyError
            When matplotlib is not installed.
        """
        results = _by_name(self.results)
        metric = next(iter(next(iter(results.values())).per_query)) if self.metric is None else self.metric
        curves = {name: _curve(result, metric, self.window) for name, result in results.items()}
        ax = axes_or_new(ax, figsize=(6.0, 4.2), layout="constrained")
        self.lines_, self.bands_, limits = [], [], []
        for place, (name, curve) in enumerate(zip(series_names(list(curves)), curves.values(), strict=True)):
            queries, mean = np.arange(1, curve.shape[1] + 1), curve.mean(axis=0)
            style = {**line_style(place), "linewidth": 1.4, "label": name or None}
            if len(curves) > 1:
                # dashes of jagged lines are hard to tell apart, so lines also have markers, at alternating places
                step = max(1, len(mean) // 8)
                style |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 7, "markeredgecolor": "white"}
                style |= {"markevery": (min(place * step // len(curves), len(mean) - 1), step)}
            self.lines_ += ax.plot(queries, mean, **style | (line_kw or {}))
            off = curve.std(axis=0, ddof=1) if len(curve) > 1 else np.zeros(len(mean))
            if len(curve) > 1:
                band: dict[str, Any] = {"color": self.lines_[-1].get_color(), "alpha": 0.18, "linewidth": 0}
                self.bands_.append(ax.fill_between(queries, mean - off, mean + off, **band))
            settled = slice(int(_BEGINNING * len(mean)), None)
            limits += [np.nanmin((mean - off)[settled]), np.nanmax((mean + off)[settled])]
        if metric in SECONDS:
            # half of the smallest mean, because the band may reach 0, which a logarithmic axis cannot show
            drawn = np.concatenate([line.get_ydata() for line in self.lines_])
            if (drawn > 0).any():  # a coarse clock may measure 0
                ax.set_yscale("log", nonpositive="clip")
                ax.set_ylim(bottom=0.5 * drawn[drawn > 0].min())
            ax.set_ylabel(SECONDS[metric])
        else:
            if np.isfinite(limits).all():
                room = 0.05 * max(max(limits) - min(limits), 1e-3)
                ax.set_ylim(min(limits) - room, max(limits) + room)
            ax.set_ylabel(f"{metric}, {'cumulative' if self.window is None else f'last {self.window} queries'}")
        ax.set_xlabel("queries")
        ax.margins(x=0.01)
        ax.grid(**GRID)
        ax.set_axisbelow(True)
        if any(results):
            ax.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _by_name(results: Results) -> dict[str, ProgressiveValidation]:
    """Results of one model or of several, by name; the name of a single one is empty."""
    if isinstance(results, ProgressiveValidation):
        return {"": results}
    if not isinstance(results, Mapping) or not all(isinstance(one, ProgressiveValidation) for one in results.values()):
        raise OptionError(f"results must come from progressive_validation, one or a dict by name, got {results!r}.")
    if not results:
        raise OptionError("there are no results to draw.")
    return dict(results)


def _curve(result: ProgressiveValidation, metric: str, window: int | None) -> np.ndarray:
    """The drawn values of a model, shape (n_orders, n_queries)."""
    if metric not in SECONDS:
        return result.curve(metric, window)
    seconds = getattr(result, metric)
    if seconds is None:
        raise OptionError("queries were not timed: give progressive_validation(..., timing=True).")
    if window is None:
        return seconds
    # a moving median, because other work of the machine disturbs some timings
    return median_filter(seconds, size=(1, window), origin=(0, (window - 1) // 2), mode="mirror")
