"""Displays of what features add to the scores: weights of a linear ranker, and shapes of an additive model."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm._util.checks import check_top
from ranksvm._util.text import feature_label
from ranksvm.additive.shapes import Cells, Shape
from ranksvm.analysis import WeightIntervals
from ranksvm.analysis.bands import ShapeBands
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.exceptions import OptionError
from ranksvm.plotting.figures import (
    GRID,
    PALETTE,
    axes_or_new,
    labels_fit,
    legend_above,
    literal,
    nth_color,
    short_names,
    short_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

__all__ = ["ShapeDisplay", "WeightsDisplay"]

# The height of the row of one weight, and the height of both margins together, in inches.
ROW_HEIGHT, MARGIN = 0.26, 1.1
# Width and height of the axes of one shape, in inches.
WIDTH, HEIGHT = 3.0, 2.3
# Height of the strip below the shapes in which bars show the training rows, as a share of the height of the axes, and
# the largest height of a bar, as a share of the strip.
STRIP, BARS = 0.2, 0.8
# Space for missing values, as a share of the width of the axes.
MISSING = 0.14
# Levels have the same width if half of them are within this part of the range of the values.
CROWDED = 0.1
_N_BARS = 40
# The largest number of letters of a category, and the width of a label that is rotated, in inches.
CATEGORY_LETTERS, TICK = 14, 0.12
# The largest number of letters of each of the two names in the title of an interaction; its axes have longer names.
PAIR_LETTERS = 14
_CURVE: dict[str, Any] = {"color": PALETTE[0], "linewidth": 1.5, "zorder": 3}
_POINTS: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4.5, "color": PALETTE[0], "zorder": 3}
_GAP: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 5, "color": PALETTE[1], "zorder": 3}
_BAND: dict[str, Any] = {"color": PALETTE[0], "alpha": 0.2, "linewidth": 0}
_ROWS: dict[str, Any] = {"color": "0.82", "zorder": 0.5}
_ZERO: dict[str, Any] = {"color": "0.6", "linewidth": 0.8, "zorder": 1}
# The band of a shape: an array for the points of its curve, and one for its levels. The two rows of each array are the
# lower and upper ends.
Band = tuple[np.ndarray, np.ndarray]


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
            When level or ``top`` is invalid.
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
        OptionError
            When ``top`` is not a whole number from 0.
        MissingDependencyError
            When matplotlib is not installed.
        """
        check_top(top)
        largest = np.argsort(-np.abs(self.coef), kind="stable")[:top]
        ax = axes_or_new(ax, figsize=(6.4, MARGIN + ROW_HEIGHT * len(largest)), layout="constrained")
        places = np.arange(len(largest))
        coef, low, high = (np.asarray(values)[largest] for values in (self.coef, self.low, self.high))
        without_zero = (low > 0) | (high < 0)
        ax.axvline(0.0, color="0.4", linewidth=1.0, zorder=1)
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
        ax.grid(axis="x", **GRID)
        ax.set_axisbelow(True)
        if len(largest):
            legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ShapeDisplay:
    """Shapes of the features of an additive model, and its interactions (as grids of cells), the largest first.

    A shape is the sum of the linear part and the steps of a feature, with mean 0 over the training rows; all shapes
    have the same vertical axis. If each level of a feature is a single value, the feature is drawn as a point for each
    level. A categorical feature is drawn as a bar for each category. Missing values have a separate mark at the right.
    Gray bars at the bottom show where the training rows are. The cells of all interactions have one color scale; cells
    without training rows are gray. The values of an interaction are added to the shapes of its features.

    Parameters
    ----------
    terms : sequence of Shape or Cells
        Shapes, and cells of interactions, in the order in which to draw them.
    bands : ShapeBands, optional
        Bands of the shapes.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        The axes of each shape and interaction.
    figure_ : matplotlib Figure
        Their figure.

    See Also
    --------
    ranksvm.analysis.shape_bands : Bands of shapes.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking, plotting
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = AdditiveRankSVM(C=0.01, interactions=1).fit(data.X, data.y, qid=data.qid)
    >>> len(plotting.ShapeDisplay.from_estimator(ranker, top=3).axes_)
    3
    """

    def __init__(self, terms: Sequence[Shape | Cells], *, bands: ShapeBands | None = None):
        self.terms = terms
        self.bands = bands

    @classmethod
    def from_estimator(
        cls,
        estimator: AdditiveRanker,
        features: Sequence[Any] | None = None,
        *,
        top: int | None = 9,
        bands: ShapeBands | None = None,
        ax: "Axes | Sequence[Axes] | np.ndarray | None" = None,
        **options: Any,
    ) -> "ShapeDisplay":
        """Draw shapes and interactions of a model.

        Parameters
        ----------
        estimator : AdditiveRankSVM or AdditiveRankSVMCV
            A fitted model.
        features : sequence of str, int or pair, optional
            Names or numbers (from 0) of features, and pairs of them for interactions; None: the shapes and
            interactions whose values vary most over the training rows.
        top : int or None, default 9
            Without ``features``: the maximum number of shapes and interactions; None: all that are not 0.
        bands : ShapeBands, optional
            The result of `ranksvm.analysis.shape_bands`.
        ax : matplotlib Axes, or sequence of them, optional
            Axes for each shape and interaction; None: axes of a new figure.
        **options : dict
            Options of `plot`.

        Returns
        -------
        ShapeDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When the estimator is of another kind, there are no such features or interactions, or ``top`` is invalid.
        NotFittedError
            When it is not fitted.
        MissingDependencyError
            When matplotlib is not installed.
        """
        check_top(top)
        if not isinstance(estimator, AdditiveRanker):
            raise OptionError(
                f"ShapeDisplay shows an AdditiveRankSVM or AdditiveRankSVMCV, got a {type(estimator).__name__}. For a "
                "Pipeline pass the last step, pipeline[-1]."
            )
        terms: list[Shape | Cells] = [*estimator.shapes(), *estimator.interaction_shapes()]
        if features is not None:
            terms = [_chosen(terms, feature) for feature in features]
        else:
            terms = [term for term in sorted(terms, key=lambda term: -term.spread) if term.spread > 0.0][:top]
        return cls(terms, bands=bands).plot(ax, **options)

    def plot(
        self,
        ax: "Axes | Sequence[Axes] | np.ndarray | None" = None,
        *,
        n_columns: int = 3,
        by_levels: bool | None = None,
    ) -> "ShapeDisplay":
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            Axes for each shape and interaction; None: axes of a new figure.
        n_columns : int, default 3
            Maximum number of columns of a new figure.
        by_levels : bool or None, default None
            Whether all levels of a feature have the same width, instead of the width of their interval. None: only if
            half of the levels are within a tenth of the range of the values.

        Returns
        -------
        ShapeDisplay
            Itself, with ``axes_`` and ``figure_``.

        Raises
        ------
        OptionError
            When the number of axes is not the number of shapes and interactions.
        MissingDependencyError
            When matplotlib is not installed.
        """
        n = len(self.terms)
        if ax is None:
            columns = max(1, min(n_columns, n))
            rows = max(1, math.ceil(n / columns))
            size = (WIDTH * columns + 0.4, HEIGHT * rows)
            grid: np.ndarray = axes_or_new(
                None, nrows=rows, ncols=columns, squeeze=False, figsize=size, layout="constrained"
            )
            axes = grid.ravel().tolist()
            for empty in axes[n:]:
                empty.set_axis_off()
            axes = axes[:n]
        else:
            axes = np.asarray(ax, dtype=object).ravel().tolist()
            columns = 1
            if len(axes) != n:
                raise OptionError(f"ax has {len(axes)} axes, but {n} terms are drawn: give one for each.")
        shapes = [term for term in self.terms if isinstance(term, Shape)]
        limits = _value_limits(shapes, self.bands)
        cells = [np.abs(term.values).max() for term in self.terms if isinstance(term, Cells)]
        for place, (each, term) in enumerate(zip(axes, self.terms, strict=True)):
            if isinstance(term, Cells):
                mesh = _draw_cells(each, term, max(cells) or 1.0)
                bar = each.figure.colorbar(mesh, ax=each)
                # as vectors, because pages that load no files do not show a bitmap within an SVG
                bar.solids.set_rasterized(False)
                bar.solids.set_edgecolor("face")  # else browsers show gaps between them
                bar.set_label("added to the score", fontsize="x-small")
                bar.ax.tick_params(labelsize="x-small")
                each.set_title(literal(" x ".join(short_names(term.names, PAIR_LETTERS))), fontsize="medium")
            else:
                band = (
                    None if self.bands is None else (self.bands.curves[term.feature], self.bands.values[term.feature])
                )
                _draw_shape(each, term, limits, band, by_levels)
                each.set_title(literal(short_names([term.name])[0]), fontsize="medium")
                each.tick_params(labelsize="small")
                if place % columns == 0:
                    each.set_ylabel("added to the score", fontsize="small")
        self.axes_ = axes
        self.figure_ = axes[0].figure if axes else grid.ravel()[0].figure
        return self


def _chosen(terms: list[Shape | Cells], feature: Any) -> Shape | Cells:
    """The shape of a feature, or the cells of a pair of features, which are given by name or number."""
    wanted = [feature] if isinstance(feature, str) or np.isscalar(feature) else list(feature)
    for term in terms:
        if isinstance(term, Shape):
            found = [(term.feature, term.name)]
        else:
            found = [(term.first, term.names[0]), (term.second, term.names[1])]
        if len(found) == len(wanted) and all(any(each in one for one in found) for each in wanted):
            return term
    raise OptionError(f"the model has no term of {feature!r}.")


def _value_limits(shapes: list[Shape], bands: ShapeBands | None) -> tuple[float, float]:
    """The limits of the vertical axis that some shapes share, with room for the strip of rows below them."""
    found = [0.0]
    for shape in shapes:
        found += shape.values[shape.shares > 0.0].tolist()
        if not shape.is_categorical:
            found += shape.curve()[1].tolist()
        if bands is not None:
            found += bands.values[shape.feature].ravel().tolist() + bands.curves[shape.feature].ravel().tolist()
    low, high = min(found), max(found)
    extent = (high - low) or 1.0
    return low - extent * (0.05 + STRIP), high + 0.05 * extent


def _draw_shape(
    ax: "Axes", shape: Shape, limits: tuple[float, float], band: Band | None, by_levels: bool | None
) -> None:
    """Draw one shape, with the ends of its band, if any; for ``by_levels`` see `ShapeDisplay.plot`."""
    ax.set_ylim(limits)
    ax.axhline(0.0, **_ZERO)
    if shape.is_categorical:
        left, right = _draw_categories(ax, shape, band)
    elif _has_one_value_a_level(shape):
        left, right = _draw_values(ax, shape, band)
    else:
        left, right = _draw_curve(ax, shape, band, by_levels)
    if shape.bins.missing:
        place = right + 0.5 * MISSING * (right - left)
        _points(ax, np.array([place]), shape.values[-1:], None if band is None else band[1][:, -1:], _GAP)
        _bars(ax, np.array([place]), shape.shares[-1:], 0.3 * MISSING * (right - left), max(shape.shares))
        ax.axvline(right, color="0.6", linestyle=":", linewidth=0.8)
        value = float(shape.values[-1])
        above = value < sum(limits) / 2.0
        text: dict[str, Any] = {"ha": "center", "va": "bottom" if above else "top", "fontsize": "x-small"}
        text |= {"xytext": (0, 6 if above else -6), "textcoords": "offset points"}
        ax.annotate("missing", (place, value), rotation=90, **text)
        right += MISSING * (right - left)
    ax.set_xlim(left, right)


def _draw_cells(ax: "Axes", cells: Cells, largest: float) -> "QuadMesh":
    """Draw the cells of an interaction, with colors from ``-largest`` to ``largest``; cells without rows stay empty."""
    values = np.ma.masked_where(cells.shares == 0.0, cells.values)
    ax.set_facecolor("0.8")
    mesh = ax.pcolormesh(values, cmap="PuOr_r", vmin=-largest, vmax=largest, edgecolors="white", linewidth=0.5)
    for axis, bins, name, labels in (
        (ax.yaxis, cells.first_bins, cells.names[0], cells.labels[0]),
        (ax.xaxis, cells.second_bins, cells.names[1], cells.labels[1]),
    ):
        if bins.categories is None:
            # ticks are at the cuts, which separate neighboring levels
            places = [*range(1, bins.n_steps + 1), *([bins.n_levels - 0.5] if bins.missing else [])]
            axis.set_ticks(places, [*short_numbers(bins.cuts, 3), *labels[len(labels) - int(bins.missing) :]])
        else:
            axis.set_ticks(np.arange(bins.n_levels) + 0.5, _category_ticks(labels))
        axis.set_label_text(literal(short_names([name])[0]), fontsize="small")
        axis.set_tick_params(labelsize="x-small")
    ax.tick_params(axis="x", labelrotation=90)
    return mesh


def _draw_curve(ax: "Axes", shape: Shape, band: Band | None, by_levels: bool | None) -> tuple[float, float]:
    """Draw a feature of many values as a line."""
    x, values = shape.curve()
    ends = shape.ends
    shares = shape.shares[: len(ends) - 1]
    if by_levels is None:
        by_levels = _is_crowded(ends)
    if by_levels:
        places = np.arange(len(ends), dtype=np.float64)
        x = np.repeat(places, 2)[1:-1]
        marked = np.unique(np.linspace(0, len(ends) - 1, 4).round().astype(np.int64))
        ax.set_xticks(marked, short_numbers(ends[marked], 2))
        ends = places
    elif ends[-1] == ends[-2]:
        # the last level is one value, and would have no width
        ends = np.append(ends[:-1], ends[-1] + 0.03 * (ends[-1] - ends[0]))
        x = np.append(x[:-1], ends[-1])
    formatter = ax.xaxis.get_major_formatter()
    if hasattr(formatter, "set_powerlimits"):  # not on a logarithmic axis, nor by levels
        formatter.set_powerlimits((-2, 5))  # longer labels would overlap
    ax.plot(x, values, **_CURVE)
    if band is not None:
        ax.fill_between(x, *band[0], **_BAND)
    n_bars = len(shares) if by_levels else _N_BARS
    edges = np.linspace(ends[0], ends[-1], n_bars + 1) if ends[-1] > ends[0] else ends[0] + np.array([-0.5, 0.5])
    inside = np.diff(np.interp(edges, ends, np.concatenate([[0.0], np.cumsum(shares)])))
    _bars(ax, (edges[:-1] + edges[1:]) / 2.0, inside, edges[1] - edges[0], inside.max())
    return float(edges[0]), float(edges[-1])


def _draw_values(ax: "Axes", shape: Shape, band: Band | None) -> tuple[float, float]:
    """Draw a feature of few values: a point for each."""
    n = shape.bins.n_steps + 1
    x = shape.means[:n]
    gap = np.diff(x).min() if n > 1 else 1.0
    ax.plot(x, shape.values[:n], color=PALETTE[0], linewidth=0.8, linestyle=":", zorder=2)
    _points(ax, x, shape.values[:n], None if band is None else band[1][:, :n], _POINTS)
    margin = max(0.5 * gap, 0.04 * (x[-1] - x[0]))
    width = 0.6 * max(gap, 0.03 * (x[-1] - x[0]))
    _bars(ax, x, shape.shares[:n], width, max(shape.shares))
    if n <= 6:
        ax.set_xticks(x, short_numbers(x, 4))
    return float(x[0] - margin), float(x[-1] + margin)


def _draw_categories(ax: "Axes", shape: Shape, band: Band | None) -> tuple[float, float]:
    """Draw the categories that training rows have, each as a bar."""
    assert shape.bins.categories is not None
    shown = np.arange(1 + len(shape.bins.categories))
    shown = shown[shape.shares[shown] > 0.0]
    x, labels = np.arange(len(shown)), _category_ticks([shape.labels[level] for level in shown])
    ax.bar(x, shape.values[shown], width=0.7, color=PALETTE[0], alpha=0.75, zorder=2)
    if band is not None:
        low, high = band[1][:, shown]
        ax.vlines(x, low, high, color=nth_color(6), linewidth=1.0, zorder=3)
    _bars(ax, x, shape.shares[shown], 0.7, max(shape.shares))
    rotation = 0 if labels_fit(ax, labels, "small") else 90
    every = max(1, math.ceil(len(shown) * TICK * ax.figure.dpi / ax.bbox.width))
    ax.set_xticks(x[::every], labels[::every], rotation=rotation)
    return -0.6, len(shown) - 0.4


def _category_ticks(labels: list[str]) -> list[str]:
    return [literal(label) for label in short_names(labels, CATEGORY_LETTERS)]


def _points(ax: "Axes", x: np.ndarray, values: np.ndarray, band: np.ndarray | None, style: dict[str, Any]) -> None:
    ax.plot(x, values, **style)
    if band is not None:
        ax.vlines(x, *band, color=style["color"], alpha=0.5, linewidth=2.0, zorder=2)


def _bars(ax: "Axes", x: np.ndarray, shares: np.ndarray, width: float, largest: float) -> None:
    """Shares of the training rows, at the bottom of the axes."""
    room = BARS * STRIP / (1.1 + STRIP)
    ax.bar(x, room * shares / (largest or 1.0), width=width, transform=ax.get_xaxis_transform(), **_ROWS)


def _has_one_value_a_level(shape: Shape) -> bool:
    """Whether each level of a feature is one value."""
    x = shape.means[: shape.bins.n_steps + 1]
    ends = np.concatenate([x[:1], (x[:-1] + x[1:]) / 2.0, x[-1:]])
    return bool(np.allclose(ends, shape.ends, rtol=0.0, atol=1e-12 * (shape.high - shape.low)))


def _is_crowded(ends: np.ndarray) -> bool:
    """Whether half of the levels are within a small part of the range of the values."""
    half = len(ends) // 2
    return len(ends) > 4 and bool((ends[half:] - ends[:-half]).min() < CROWDED * (ends[-1] - ends[0]))
