"""GridDisplay: the scores by which a KernelRankSVMCV chose C and gamma."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranksvm._util import checks
from ranksvm.estimators import KernelRankSVMCV
from ranksvm.exceptions import OptionError
from ranksvm.plotting.figures import (
    MARKERS,
    PALETTE,
    axes_or_new,
    by_rule,
    c_axis,
    c_name,
    legend_beside,
    line_style,
    number_names,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

__all__ = ["GridDisplay"]

KINDS = ("lines", "heatmap")
# Size of a cell of the heat map, and of the space for labels around all cells, in inches.
_CELL, _AROUND = (0.56, 0.42), (2.2, 1.3)
# The least width of a heat map, which has room for its title.
_WIDTH = 5.0
_CHOSEN: dict[str, Any] = {"color": "0.4", "linestyle": "--", "linewidth": 1.0, "zorder": 1}


class GridDisplay:
    """Scores over C and gamma: a line along C for each gamma, or a heat map with numbers; the choice is marked.

    `from_estimator` creates and draws it; the constructor takes the scores as arrays.

    Parameters
    ----------
    Cs : ndarray of float64, shape (n_Cs,)
        The values of C, ascending.
    gammas : ndarray of float64, shape (n_gammas,)
        The values of gamma; empty if the kernel has no gamma, and then the arrays below have one row.
    mean_scores : ndarray of float64, shape (n_gammas, n_Cs)
        The mean score for each gamma and C; NaN if there is none.
    standard_errors : ndarray of float64, shape (n_gammas, n_Cs), optional
        Their standard errors, drawn as a band for the chosen gamma.
    metric : str, optional
        Name of the metric.
    chosen_C, chosen_gamma : float, optional
        The values to mark.
    rule : {"best", "one_standard_error"}, optional
        The rule by which they were chosen.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes drawn on.
    figure_ : matplotlib.figure.Figure
        Their figure.
    lines_ : list of matplotlib.lines.Line2D
        The line of each gamma.
    fill_between_ : matplotlib.collections.PolyCollection or None
        The band of one standard error.
    image_ : matplotlib.image.AxesImage or None
        The heat map.
    texts_ : list of matplotlib.text.Text
        The numbers in the heat map.

    See Also
    --------
    KernelRankSVMCV : Chooses C and gamma.
    PathDisplay : The same for linear models.

    Examples
    --------
    >>> from ranksvm import KernelRankSVMCV, make_ranking
    >>> from ranksvm.plotting import GridDisplay
    >>> data = make_ranking(n_queries=40, n_docs=10, n_features=10, random_state=0)
    >>> ranker = KernelRankSVMCV([0.01, 0.1, 1.0], [0.01, 0.1], cv=3).fit(data.X, data.y, qid=data.qid)
    >>> display = GridDisplay.from_estimator(ranker)
    >>> len(display.lines_)
    2
    >>> GridDisplay.from_estimator(ranker, kind="heatmap").ax_.get_ylabel()
    'gamma'
    """

    def __init__(
        self,
        Cs: np.ndarray,
        gammas: np.ndarray,
        mean_scores: np.ndarray,
        *,
        standard_errors: np.ndarray | None = None,
        metric: str | None = None,
        chosen_C: float | None = None,
        chosen_gamma: float | None = None,
        rule: str | None = None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.mean_scores = mean_scores
        self.standard_errors = standard_errors
        self.metric = metric
        self.chosen_C = chosen_C
        self.chosen_gamma = chosen_gamma
        self.rule = rule

    @classmethod
    def from_estimator(
        cls, estimator: KernelRankSVMCV, *, kind: str = "lines", ax: "Axes | None" = None, **options: Any
    ) -> "GridDisplay":
        """Draw the scores by which a KernelRankSVMCV chose C and gamma.

        Parameters
        ----------
        estimator : KernelRankSVMCV
            A fitted estimator.
        kind : {"lines", "heatmap"}, default "lines"
            A line for each gamma, or a cell with a number for each gamma and C.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; None: axes of a new figure. The legend is outside of the axes if their figure has a layout
            engine (``plt.subplots(layout="constrained")``).
        **options : dict
            Options of `plot`.

        Returns
        -------
        GridDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When the estimator is not a KernelRankSVMCV, or there is no such kind of plot.
        NotFittedError
            When it is not fitted.
        MissingDependencyError
            When matplotlib is not installed.
        """
        if not isinstance(estimator, KernelRankSVMCV):
            raise OptionError(
                f"GridDisplay.from_estimator shows how a KernelRankSVMCV chose C and gamma, got a "
                f"{type(estimator).__name__}. For a Pipeline pass the last step, pipeline[-1]; PathDisplay shows a "
                "RankSVMCV."
            )
        check_is_fitted(estimator, "scores_")
        display = cls(
            estimator.Cs_,
            estimator.gammas_,
            estimator.mean_scores_,
            standard_errors=estimator.standard_errors_,
            metric=estimator.fitted_params_["metric"],
            chosen_C=estimator.C_,
            chosen_gamma=estimator.gamma_,
            rule=estimator.fitted_params_["rule"],
        )
        return display.plot(ax, kind=kind, **options)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        kind: str = "lines",
        line_kw: dict[str, Any] | None = None,
        image_kw: dict[str, Any] | None = None,
    ) -> "GridDisplay":
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; None: axes of a new figure. The legend is outside of the axes if their figure has a layout
            engine (``plt.subplots(layout="constrained")``).
        kind : {"lines", "heatmap"}, default "lines"
            A line for each gamma, or a cell with a number for each gamma and C.
        line_kw : dict, optional
            Passed to ``ax.plot``.
        image_kw : dict, optional
            Passed to ``ax.imshow``.

        Returns
        -------
        GridDisplay
            Itself.

        Raises
        ------
        OptionError
            When there is no such kind of plot.
        MissingDependencyError
            When matplotlib is not installed.
        """
        checks.check(kind=checks.one_of(kind, KINDS))
        size = max(_WIDTH, _AROUND[0] + _CELL[0] * len(self.Cs)), _AROUND[1] + _CELL[1] * len(self.mean_scores)
        if kind == "lines":
            size = (7.4, 4.6)
        self.ax_ = axes_or_new(ax, figsize=size, layout="constrained")
        self.figure_ = self.ax_.figure
        self.lines_: list[Line2D] = []
        self.texts_: list[Text] = []
        self.fill_between_: PolyCollection | None = None
        self.image_: AxesImage | None = None
        if kind == "lines":
            self._plot_lines(line_kw or {})
        else:
            self._plot_cells(image_kw or {})
        return self

    @property
    def _chosen_row(self) -> int | None:
        """The row of the scores of the chosen gamma (0 if the kernel has none); None if no gamma was chosen."""
        if len(self.gammas) == 0:
            return 0
        found = np.flatnonzero(np.asarray(self.gammas) == self.chosen_gamma)
        return int(found[0]) if len(found) else None

    def _chosen_name(self, C: float) -> str:
        gamma = f", gamma = {self.chosen_gamma:.3g}" if self.chosen_gamma is not None else ""
        return f"chosen: {c_name(C)}{gamma}{by_rule(self.rule)}"

    def _plot_lines(self, line_kw: dict[str, Any]) -> None:
        c_axis(self.ax_, self.Cs)
        names = [f"gamma = {gamma:.3g}" for gamma in self.gammas] or ["mean"]
        for place, (name, scores) in enumerate(zip(names, self.mean_scores, strict=True)):
            style = {**line_style(place), "marker": MARKERS[place % len(MARKERS)], "markersize": 4, "linewidth": 1.3}
            self.lines_ += self.ax_.plot(self.Cs, scores, **(style | {"label": name} | line_kw))
        named: list[Artist] = list(self.lines_)
        row = self._chosen_row
        if row is not None and self.standard_errors is not None and not np.isnan(self.standard_errors[row]).all():
            low, high = (self.mean_scores[row] + sign * self.standard_errors[row] for sign in (-1, 1))
            style = {"color": self.lines_[row].get_color(), "alpha": 0.18, "linewidth": 0}
            self.fill_between_ = self.ax_.fill_between(self.Cs, low, high, **style, label="± one standard error")
            named.append(self.fill_between_)
        if self.chosen_C is not None:
            named.append(self.ax_.axvline(self.chosen_C, **_CHOSEN, label="chosen"))
            self.ax_.set_title(self._chosen_name(self.chosen_C), fontsize="medium")
            if row is not None and self.chosen_C in self.Cs:
                score = self.mean_scores[row][np.flatnonzero(self.Cs == self.chosen_C)[0]]
                self.ax_.plot(self.chosen_C, score, "o", markersize=10, markerfacecolor="none", color="0.4", zorder=4)
        self.ax_.set_ylabel(self.metric or "score")
        legend_beside(self.ax_, named)

    def _plot_cells(self, image_kw: dict[str, Any]) -> None:
        from matplotlib.patches import Rectangle

        # a color map for color-blind people, which runs from dark to light also in gray
        style = {"cmap": "cividis", "aspect": "auto", "origin": "lower"} | image_kw
        self.image_ = self.ax_.imshow(self.mean_scores, **style)
        shades = self.image_.norm(self.mean_scores)
        # relative luminance and the contrasts with white and with black, as WCAG defines them
        colors = np.asarray(self.image_.cmap(shades))[..., :3]
        luminance = ((colors + 0.055) / 1.055) ** 2.4 @ [0.2126, 0.7152, 0.0722]
        for row, column in np.argwhere(~np.isnan(self.mean_scores)):
            dark = 1.05 / (luminance[row, column] + 0.05) > (luminance[row, column] + 0.05) / 0.05
            text = f"{self.mean_scores[row, column]:.4f}".removeprefix("0")
            style = {"ha": "center", "va": "center", "fontsize": 8, "color": "white" if dark else "black"}
            self.texts_.append(self.ax_.text(column, row, text, **style))
        row = self._chosen_row
        if row is not None and self.chosen_C is not None and self.chosen_C in self.Cs:
            column = int(np.flatnonzero(self.Cs == self.chosen_C)[0])
            frame = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, color=PALETTE[1], lw=2.5)
            self.ax_.add_patch(frame).set_clip_on(False)
            self.ax_.set_title(self._chosen_name(self.chosen_C), fontsize="medium")
        self.ax_.set_xticks(range(len(self.Cs)), number_names(self.Cs))
        self.ax_.set_yticks(range(len(self.mean_scores)), [f"{gamma:.3g}" for gamma in self.gammas] or [""])
        self.ax_.set_xlabel("C")
        self.ax_.set_ylabel("gamma" if len(self.gammas) else "")
        self.figure_.colorbar(self.image_, ax=self.ax_, label=self.metric or "score")
