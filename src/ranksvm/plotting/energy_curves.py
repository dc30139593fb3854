"""EnergyDisplay: cumulative energy of dual variables against the number of dimensions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm.plotting._spectra import Spectra, by_name, count_axis, legend
from ranksvm.plotting.figures import axes_or_new
from ranksvm.plotting.styles import DASHES, MARKERS, nth_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EnergyDisplay"]

_OTHER_QUERY: dict[str, Any] = {"color": "0.8", "linewidth": 0.7, "zorder": 1}


class EnergyDisplay:
    """Share of the energy of the dual variables in the first dimensions, with a curve for each query.

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
        spectra = by_name(self.spectra)
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
            label = f"query {query}, {name}" if name else f"query {query}"
            style: dict[str, Any] = {"color": nth_color(place), "linestyle": DASHES[model % len(DASHES)]}
            # only some points have markers, evenly on the logarithmic axis, so that curves remain visible
            marks = np.unique(np.geomspace(1, max(1, len(points[0])), 7).round().astype(int) - 1)
            style |= {"marker": MARKERS[place % len(MARKERS)], "markersize": 5, "markevery": marks.tolist()}
            style |= {"linewidth": 1.6, "label": label}
            self.lines_ += ax.plot(*points, **style | (line_kw or {}))
        count_axis(ax, "x")
        ax.set_xlim(left=1)
        ax.set_ylim(top=1.01)
        ax.set_xlabel("dimensions")
        ax.set_ylabel("share of the energy")
        legend(ax, loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _points(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of dimensions, from 1 (the axis is logarithmic), and the share of the energy in them."""
    return np.arange(1, len(curve)), curve[1:]
