"""Displays of dual spectra: numbers of singular values that hold a share of the energy, and its cumulative sum."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm.analysis import DualSpectra
from ranksvm.exceptions import OptionError
from ranksvm.plotting.figures import BARS, DASHES, GRID, MARKERS, axes_or_new, literal, nth_color, series_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DimensionHistogramDisplay", "DimensionsDisplay", "EnergyDisplay"]

Spectra = DualSpectra | Mapping[str, DualSpectra]
AGAINST = ("documents", "pairs")
_ALL: dict[str, Any] = {"marker": "_", "linestyle": "none", "color": "0.7", "zorder": 1, "label": "all dimensions"}
_OTHER_QUERY: dict[str, Any] = {"color": "0.8", "linewidth": 0.7, "zorder": 1}


def _by_name(spectra: Spectra) -> dict[str, DualSpectra]:
    """Spectra of one model or of several, by name; the name of a single one is empty."""
    if isinstance(spectra, DualSpectra):
        return {"": spectra}
    if not isinstance(spectra, Mapping) or not all(isinstance(item, DualSpectra) for item in spectra.values()):
        raise OptionError(f"spectra must be a result of dual_spectra, or a dict of results by name, got {spectra!r}.")
    if not spectra:
        raise OptionError("there are no spectra to draw.")
    return dict(zip(series_names(list(spectra)), spectra.values(), strict=True))


def _percent(t: float) -> str:
    """A share of the energy as a label."""
    return f"{100 * t:g} %"


def _series_name(name: str, t: float, several_t: bool) -> str:
    """The legend's name for a series: the numbers of dimensions that hold the share t of the energy of a model."""
    what = "rank" if t == 1.0 else f"dimensions for {_percent(t)}"
    return f"{name}: {what}" if name and several_t else name or what


def _legend(ax: "Axes", **options: Any) -> None:
    """Add a legend if there are several series."""
    if any(ax.get_legend_handles_labels()[1]):
        ax.legend(frameon=False, fontsize="small", **options)


def _count_axis(ax: "Axes", which: str) -> None:
    """Make the axis "x" or "y" logarithmic, with numbers at powers of ten and, on a short axis, 2 and 5 times these."""
    from matplotlib.ticker import NullLocator

    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    low, high = axis.get_view_interval()
    if high < 1000 * low:
        axis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
    axis.set_major_formatter("{x:,.0f}")
    axis.set_minor_locator(NullLocator())


class DimensionsDisplay:
    """Number of dimensions that hold a share of the energy of each query's dual variables, against documents or pairs.

    Both axes are logarithmic. For each query, a gray dash marks the shorter side of its matrix of dual variables, the
    upper bound of the rank. Each series has its own marker, and each model the same color as in
    `DimensionHistogramDisplay`; with one model each t has its own color. Queries without pairs are omitted, and queries
    without energy have no points. `from_spectra` creates and draws the display.

    Parameters
    ----------
    spectra : DualSpectra, or mapping of str to DualSpectra
        The result of `ranksvm.analysis.dual_spectra`, for one model or for several by name.
    energy : sequence of float, optional
        Shares t of the energy, each a series of points; 1.0 is the rank. None: the shares of the (first) spectra.
    against : {"documents", "pairs"}, default "documents"
        Quantity on the horizontal axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        The points of each model and t, models first.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking, plotting
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> spectra = analysis.dual_spectra(ranker.dual_coef(data.X, data.y, data.qid))
    >>> len(plotting.DimensionsDisplay.from_spectra(spectra, energy=[0.9]).lines_)
    1
    """

    def __init__(self, spectra: Spectra, *, energy: Sequence[float] | None = None, against: str = "documents"):
        self.spectra = spectra
        self.energy = energy
        self.against = against

    @classmethod
    def from_spectra(
        cls,
        spectra: Spectra,
        *,
        energy: Sequence[float] | None = None,
        against: str = "documents",
        ax: "Axes | None" = None,
    ) -> "DimensionsDisplay":
        """Draw the dimensions.

        Parameters
        ----------
        spectra : DualSpectra, or mapping of str to DualSpectra
            For one model, or for several by name.
        energy : sequence of float, optional
            Shares t of the energy; None: the shares of the (first) spectra.
        against : {"documents", "pairs"}, default "documents"
            Quantity on the horizontal axis.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        DimensionsDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When spectra, energy or against are invalid.
        MissingDependencyError
            When matplotlib is not installed.
        """
        return cls(spectra, energy=energy, against=against).plot(ax)

    def plot(self, ax: "Axes | None" = None, *, line_kw: dict[str, Any] | None = None) -> "DimensionsDisplay":
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.
        line_kw : dict, optional
            Passed to ``ax.plot`` for the points.

        Returns
        -------
        DimensionsDisplay
            Itself, with ``ax_``, ``figure_`` and ``lines_``.

        Raises
        ------
        OptionError
            When spectra, energy or against are invalid.
        MissingDependencyError
            When matplotlib is not installed.
        """
        if self.against not in AGAINST:
            raise OptionError(f"against must be one of {', '.join(map(repr, AGAINST))}, got {self.against!r}.")
        spectra = _by_name(self.spectra)
        first = next(iter(spectra.values()))
        energy = first.energy if self.energy is None else tuple(self.energy)
        ax = axes_or_new(ax, figsize=(5.6, 4.2), layout="constrained")
        with_pairs = first.n_dimensions > 0
        ax.plot(self._sizes(first)[with_pairs], first.n_dimensions[with_pairs], **_ALL)
        self.lines_ = []
        for model, (name, of_model) in enumerate(spectra.items()):
            counted = of_model.counted
            for place, t in enumerate(energy):
                color = nth_color(model if len(spectra) > 1 else place)
                marker = MARKERS[(model * len(energy) + place) % len(MARKERS)]
                style: dict[str, Any] = {"marker": marker, "linestyle": "none", "color": color, "alpha": 0.75}
                # the points of several models may coincide: later ones are smaller
                size = 4.0 + min(1.25 * (len(spectra) - 1 - model), 4.0)
                style |= {"markersize": size, "markeredgewidth": 0, "zorder": 2 + model}
                style |= {"label": _series_name(name, t, len(energy) > 1)} | (line_kw or {})
                self.lines_ += ax.plot(self._sizes(of_model)[counted], of_model.dimensions(t)[counted], **style)
        _count_axis(ax, "x")
        _count_axis(ax, "y")
        ax.set_xlabel(f"{self.against} of the query")
        one = energy[0] if len(energy) == 1 else None
        ax.set_ylabel("dimensions" if one is None or not next(iter(spectra)) else _series_name("", one, True))
        ax.grid(**GRID)
        ax.set_axisbelow(True)
        # outside, because points may be anywhere inside
        _legend(
            ax, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3 if len(self.lines_) < 3 else 2, handletextpad=0.3
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _sizes(self, spectra: DualSpectra) -> np.ndarray:
        return spectra.n_documents if self.against == "documents" else spectra.n_pairs


class DimensionHistogramDisplay:
    """Histograms of ``Dim_t`` over the queries, side by side for each t, with a bar for each model.

    ``Dim_t`` of a query is the smallest share of its dimensions (singular values) that holds the share t of its energy,
    the sum of their squares (as in Fig. 2 of Xu et al., IEEE TKDE 2019). `from_spectra` creates and draws the display.

    Parameters
    ----------
    spectra : DualSpectra, or mapping of str to DualSpectra
        The result of `ranksvm.analysis.dual_spectra`, for one model or for several by name.
    energy : sequence of float, optional
        Shares t of the energy; None: the shares of the (first) spectra.
    bins : int, default 10
        Number of equal parts of [0, 1].

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, shape (n_energy,)
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    counts_ : ndarray of int64, shape (n_energy, n_models, bins)
        Numbers of queries, the heights of the bars.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.analysis import dual_spectra
    >>> from ranksvm.plotting import DimensionHistogramDisplay
    >>> data = make_ranking(n_queries=20, n_docs=30, n_features=5, random_state=0)
    >>> ranker = RankSVM(C=0.1, loss="hinge").fit(data.X, data.y, qid=data.qid)
    >>> spectra = dual_spectra(ranker.dual_coef(data.X, data.y, data.qid))
    >>> display = DimensionHistogramDisplay.from_spectra(spectra)
    >>> display.counts_.sum(axis=2).tolist()
    [[20], [20]]
    """

    def __init__(self, spectra: Spectra, *, energy: Sequence[float] | None = None, bins: int = 10):
        self.spectra = spectra
        self.energy = energy
        self.bins = bins

    @classmethod
    def from_spectra(
        cls,
        spectra: Spectra,
        *,
        energy: Sequence[float] | None = None,
        bins: int = 10,
        axes: "Sequence[Axes] | np.ndarray | None" = None,
    ) -> "DimensionHistogramDisplay":
        """Draw the histograms.

        Parameters
        ----------
        spectra : DualSpectra, or mapping of str to DualSpectra
            For one model, or for several by name.
        energy : sequence of float, optional
            Shares t of the energy; None: the shares of the (first) spectra.
        bins : int, default 10
            Number of equal parts of [0, 1].
        axes : sequence of matplotlib Axes, optional
            Axes to draw on, one for each t; None: axes of a new figure.

        Returns
        -------
        DimensionHistogramDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When spectra, energy or bins are invalid, or the number of axes is not the number of shares t.
        MissingDependencyError
            When matplotlib is not installed.
        """
        return cls(spectra, energy=energy, bins=bins).plot(axes)

    def plot(
        self, axes: "Sequence[Axes] | np.ndarray | None" = None, *, bar_kw: dict[str, Any] | None = None
    ) -> "DimensionHistogramDisplay":
        """Draw the plot.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            Axes to draw on, one for each t; None: axes of a new figure.
        bar_kw : dict, optional
            Passed to ``ax.bar``.

        Returns
        -------
        DimensionHistogramDisplay
            Itself, with ``axes_``, ``figure_`` and ``counts_``.

        Raises
        ------
        OptionError
            When spectra, energy or bins are invalid, or the number of axes is not the number of shares t.
        MissingDependencyError
            When matplotlib is not installed.
        """
        spectra = _by_name(self.spectra)
        energy = next(iter(spectra.values())).energy if self.energy is None else tuple(self.energy)
        counts = [[of_model.histogram(t, self.bins)[0] for of_model in spectra.values()] for t in energy]
        size = (1.0 + 3.6 * len(energy), 3.4)
        figure: dict[str, Any] = {"nrows": 1, "ncols": len(energy), "sharey": True, "figsize": size}
        each = np.atleast_1d(np.asarray(axes_or_new(axes, layout="constrained", **figure), dtype=object))
        if each.shape != (len(energy),):
            raise OptionError(f"there are {len(energy)} shares of the energy: give as many axes, got {each.size}.")
        for place, (ax, t) in enumerate(zip(each, energy, strict=True)):
            self._plot_one(ax, t, counts[place], list(spectra), bar_kw or {})
            if place == 0:
                ax.set_ylabel("queries")
                _legend(ax)
        self.axes_, self.figure_, self.counts_ = each, each[0].figure, np.array(counts)
        return self

    def _plot_one(
        self, ax: "Axes", t: float, counts: list[np.ndarray], names: list[str], bar_kw: dict[str, Any]
    ) -> None:
        # a small gap between bins, none between the models of one bin
        width = 0.88 / self.bins / len(names)
        middles = (np.arange(self.bins) + 0.5) / self.bins
        for model, (name, heights) in enumerate(zip(names, counts, strict=True)):
            places = middles + (model - (len(names) - 1) / 2) * width
            style: dict[str, Any] = {"color": nth_color(model), "hatch": BARS[model % len(BARS)], "label": name or None}
            style |= {"edgecolor": "white", "linewidth": 0} | bar_kw
            ax.bar(places, heights, width, **style)
        ax.set_xlim(0, 1)
        ax.set_xticks(np.linspace(0, 1, 6), [f"{100 * x:.0f}" for x in np.linspace(0, 1, 6)])
        ax.set_xlabel("share of the dimensions (%)")
        title = f"{_percent(t)} of the energy" + (": numerical rank" if t == 1.0 else "")
        ax.set_title(title, fontsize="medium")
        ax.locator_params(axis="y", integer=True, min_n_ticks=1)
        ax.grid(axis="y", **GRID)
        ax.set_axisbelow(True)


class EnergyDisplay:
    """Share of the energy of the dual variables in the first 1, 2, ... dimensions, with a curve for each query.

    For one model, all queries are drawn: the chosen ones in color, the others in gray. For several models, only the
    chosen queries are drawn, with a color and a marker for each query, and dashes for each model. `from_spectra`
    creates and draws it.

    Parameters
    ----------
    spectra : DualSpectra, or mapping of str to DualSpectra
        The result of `ranksvm.analysis.dual_spectra`, for one model or for several by name.
    queries : iterable of query ids, optional
        The queries to name; None: the three with the most pairs.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        The curves of the named queries, the curves of the first model first.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking, plotting
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> spectra = analysis.dual_spectra(ranker.dual_coef(data.X, data.y, data.qid))
    >>> len(plotting.EnergyDisplay.from_spectra(spectra, queries=[1, 2]).lines_)
    2
    """

    def __init__(self, spectra: Spectra, *, queries: Iterable[Any] | None = None):
        self.spectra = spectra
        self.queries = queries

    @classmethod
    def from_spectra(
        cls, spectra: Spectra, *, queries: Iterable[Any] | None = None, ax: "Axes | None" = None
    ) -> "EnergyDisplay":
        """Draw the curves.

        Parameters
        ----------
        spectra : DualSpectra, or mapping of str to DualSpectra
            For one model, or for several by name.
        queries : iterable of query ids, optional
            The queries to name; None: the three with the most pairs.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        EnergyDisplay
            The display, drawn.

        Raises
        ------
        DataError
            When there is no such query.
        OptionError
            When spectra are invalid.
        MissingDependencyError
            When matplotlib is not installed.
        """
        return cls(spectra, queries=queries).plot(ax)

    def plot(self, ax: "Axes | None" = None, *, line_kw: dict[str, Any] | None = None) -> "EnergyDisplay":
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.
        line_kw : dict, optional
            Passed to ``ax.plot`` for the queries named.

        Returns
        -------
        EnergyDisplay
            Itself, with ``ax_``, ``figure_`` and ``lines_``.

        Raises
        ------
        DataError
            When there is no such query.
        OptionError
            When spectra are invalid.
        MissingDependencyError
            When matplotlib is not installed.
        """
        spectra = _by_name(self.spectra)
        first = next(iter(spectra.values()))
        if self.queries is None:
            largest = np.argsort(-first.n_pairs, kind="stable")[:3]
            queries = first.ids[largest[first.counted[largest]]].tolist()
        else:
            queries = list(self.queries)
        named = {(name, query): of_model.energy_curve(query) for name, of_model in spectra.items() for query in queries}
        ax = axes_or_new(ax, figsize=(5.6, 4.2), layout="constrained")
        if len(spectra) == 1:
            for query in first.ids[first.counted].tolist():
                ax.plot(*_points(first.energy_curve(query)), **_OTHER_QUERY)
        for t in first.energy:
            ax.axhline(t, color="0.5", linewidth=0.8, linestyle=":", zorder=1)
        self.lines_ = []
        for (name, query), curve in named.items():
            place, model = queries.index(query), list(spectra).index(name)
            points = _points(curve)
            label = literal(f"query {query}") + (f", {name}" if name else "")
            style: dict[str, Any] = {"color": nth_color(place), "linestyle": DASHES[model % len(DASHES)]}
            # only some points have markers, evenly on the logarithmic axis, so that curves remain visible
            marks = np.unique(np.geomspace(1, max(1, len(points[0])), 7).round().astype(int) - 1)
            style |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 5, "markevery": marks.tolist()}
            style |= {"linewidth": 1.6, "label": label}
            self.lines_ += ax.plot(*points, **style | (line_kw or {}))
        _count_axis(ax, "x")
        ax.set_xlim(left=1)
        ax.set_ylim(top=1.01)
        ax.set_xlabel("dimensions")
        ax.set_ylabel("share of the energy")
        _legend(ax, loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _points(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of dimensions, from 1 (the axis is logarithmic), and the share of the energy in them."""
    return np.arange(1, len(curve)), curve[1:]
