"""DifferenceDisplay: the differences of two systems, query by query."""

from typing import TYPE_CHECKING

import numpy as np

from ranksvm.metrics import Evaluation, compare
from ranksvm.plotting.figures import axes_or_new, legend_above, nth_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DifferenceDisplay"]

# maximum number of steps of the outline, more than a screen can show
_STEPS = 500


class DifferenceDisplay:
    """The differences ``b - a`` of two systems in a metric, one for each query, the largest first.

    Parameters
    ----------
    differences : ndarray of float64, shape (n_queries,)
        The difference of each query; NaN if the metric is undefined for it.
    metric : str
        Name of the metric.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from ranksvm import make_ranking, metrics, plotting
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> a, b = (metrics.evaluate(data.y, data.X[:, column], data.qid, "ndcg@5") for column in (0, 1))
    >>> plotting.DifferenceDisplay.from_evaluations(a, b, "ndcg@5").differences.shape
    (20,)
    """

    def __init__(self, differences: np.ndarray, metric: str):
        self.differences = differences
        self.metric = metric

    @classmethod
    def from_evaluations(
        cls, a: Evaluation, b: Evaluation, metric: str, *, ax: "Axes | None" = None
    ) -> "DifferenceDisplay":
        """Draw the differences of two evaluations of the same queries.

        Parameters
        ----------
        a, b : Evaluation
            Evaluations of the same queries, in the same order.
        metric : str
            A metric that both contain.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        DifferenceDisplay
            The display, drawn.

        Raises
        ------
        DataError
            When the queries differ.
        OptionError
            When the metric was not evaluated.
        MissingDependencyError
            When matplotlib is not installed.
        """
        found = compare(a, b, metric, n_permutations=1).metric  # refuses what cannot be compared
        return cls(b.per_query[found] - a.per_query[found], found).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "DifferenceDisplay":
        """Draw the differences.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        DifferenceDisplay
            Itself, with ``ax_`` and ``figure_``.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        ax = axes_or_new(ax, layout="constrained")
        sizes = -np.sort(-self.differences[~np.isnan(self.differences)])
        # one outline with a limited number of steps: a bar for each of thousands of queries would make large files
        edges = np.unique(np.linspace(0, len(sizes), min(len(sizes), _STEPS) + 1).astype(np.int64))
        for color, chosen, word in (
            (nth_color(0), np.maximum(sizes, 0), "better"),
            (nth_color(1), np.minimum(sizes, 0), "worse"),
        ):
            label = f"{word} in {np.count_nonzero(chosen):,}"
            ax.stairs(chosen[edges[:-1]], edges, fill=True, color=color, label=label)
        ax.plot([], [], " ", label=f"the same in {np.count_nonzero(sizes == 0):,}")
        ax.axhline(0.0, color="0.3", linewidth=0.8)
        ax.set_xlim(0, max(1, len(sizes)))
        ax.set_xlabel("queries, by difference")
        ax.set_ylabel(f"difference in {self.metric}")
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
