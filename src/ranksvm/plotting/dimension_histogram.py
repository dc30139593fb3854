"""DimensionHistogramDisplay: histogram of the share of dimensions that the dual variables of queries need."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.plotting._spectra import Spectra, by_name, legend, percent
from ranksvm.plotting.figures import axes_or_new
from ranksvm.plotting.styles import BARS, nth_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DimensionHistogramDisplay"]


class DimensionHistogramDisplay:
    """Histograms of ``Dim_t`` over the queries, side by side for each t, with a bar for each model.

    ``Dim_t`` of a query is the share of its dimensions that is needed for the share t of the energy (as in Fig. 2 of Xu
    et al., IEEE TKDE 2019). `from_spectra` creates and draws the display.

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
        spectra = by_name(self.spectra)
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
                legend(ax)
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
        title = f"{percent(t)} of the energy" + (": numerical rank" if t == 1.0 else "")
        ax.set_title(title, fontsize="medium")
        ax.locator_params(axis="y", integer=True)
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
