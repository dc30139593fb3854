"""DimensionsDisplay: ranks of the dual variables of queries against their size."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm.analysis import DualSpectra
from ranksvm.exceptions import OptionError
from ranksvm.plotting._spectra import Spectra, by_name, count_axis, legend, series_name
from ranksvm.plotting.figures import axes_or_new
from ranksvm.plotting.styles import MARKERS, nth_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DimensionsDisplay"]

AGAINST = ("documents", "pairs")
_ALL: dict[str, Any] = {"marker": "_", "linestyle": "none", "color": "0.7", "zorder": 1, "label": "all dimensions"}


class DimensionsDisplay:
    """Number of dimensions that the dual variables of each query need, against its documents or pairs, in log scale.

    A gray dash marks the number of dimensions of each block, the upper bound of its rank. Each series has its own
    marker, and each model the same color as in `DimensionHistogramDisplay`; with one model each t has its own color.
    Queries without pairs are omitted, and queries without energy have no points. `from_spectra` creates and draws it.

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
        spectra = by_name(self.spectra)
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
                style |= {"label": series_name(name, t, len(energy) > 1)} | (line_kw or {})
                self.lines_ += ax.plot(self._sizes(of_model)[counted], of_model.dimensions(t)[counted], **style)
        count_axis(ax, "x")
        count_axis(ax, "y")
        ax.set_xlabel(f"{self.against} of the query")
        one = energy[0] if len(energy) == 1 else None
        ax.set_ylabel("dimensions" if one is None or not next(iter(spectra)) else series_name("", one, True))
        ax.grid(color="0.92")
        ax.set_axisbelow(True)
        # outside, because points may be anywhere inside
        legend(
            ax, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3 if len(self.lines_) < 3 else 2, handletextpad=0.3
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _sizes(self, spectra: DualSpectra) -> np.ndarray:
        return spectra.n_documents if self.against == "documents" else spectra.n_pairs
