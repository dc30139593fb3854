"""CutoffDisplay: a metric of several systems against its cut-off."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.metrics import Evaluation
from ranksvm.plotting.figures import MARKERS, axes_or_new, legend_above, line_style, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CutoffDisplay"]


class CutoffDisplay:
    """A metric such as NDCG@k against k, with a line for each system, and confidence intervals for the first one.

    Parameters
    ----------
    cutoffs : ndarray of int, shape (n_cutoffs,)
        The cut-offs, ascending.
    means : mapping of str to ndarray of float64, shape (n_cutoffs,)
        System -> mean of the metric at each cut-off.
    low, high : ndarray of float64, shape (n_cutoffs,)
        Ends of the intervals of the first system.
    metric : str
        Name of the metric.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    lines_ : list of matplotlib Line2D
        The line of each system.
    """

    def __init__(
        self, cutoffs: np.ndarray, means: Mapping[str, np.ndarray], low: np.ndarray, high: np.ndarray, metric: str
    ):
        self.cutoffs = cutoffs
        self.means = means
        self.low = low
        self.high = high
        self.metric = metric

    @classmethod
    def from_evaluations(
        cls,
        evaluations: Mapping[str, Evaluation],
        metric: str = "ndcg",
        *,
        confidence: float = 0.95,
        ax: "Axes | None" = None,
    ) -> "CutoffDisplay":
        """Draw a metric at all cut-offs that the evaluations contain.

        Parameters
        ----------
        evaluations : mapping of str to Evaluation
            System -> its evaluation, with metrics such as "ndcg@1", "ndcg@2", ...
        metric : str, default "ndcg"
            Name of the metric, without cut-off.
        confidence : float, default 0.95
            Level of the intervals.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        CutoffDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When there is no evaluation, or none of the metric at a cut-off.
        MissingDependencyError
            When matplotlib is not installed.

        Examples
        --------
        >>> from ranksvm import make_ranking
        >>> from ranksvm.metrics import evaluate
        >>> from ranksvm.plotting import CutoffDisplay
        >>> data = make_ranking(n_queries=20, n_docs=10, n_features=2, random_state=0)
        >>> found = evaluate(data.y, data.X[:, 0], data.qid, [f"ndcg@{k}" for k in range(1, 11)])
        >>> CutoffDisplay.from_evaluations({"first feature": found}).ax_.get_xlabel()
        'k'
        """
        start = f"{metric}@"
        names = [name for evaluation in list(evaluations.values())[:1] for name in evaluation.means]
        cutoffs = sorted(int(name.removeprefix(start)) for name in names if name.startswith(start))
        if not cutoffs:
            raise OptionError(f"there is no evaluation of {metric} at a cut-off: ask evaluate for '{start}1', ...")
        first = next(iter(evaluations.values()))
        ends = np.array([first.interval(f"{start}{k}", confidence=confidence) for k in cutoffs])
        means = {
            name: np.array([evaluation[f"{start}{k}"] for k in cutoffs]) for name, evaluation in evaluations.items()
        }
        return cls(np.array(cutoffs), means, ends[:, 0], ends[:, 1], metric).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "CutoffDisplay":
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        CutoffDisplay
            Itself, with ``ax_``, ``figure_`` and ``lines_``.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        ax = axes_or_new(ax, layout="constrained")
        self.lines_ = []
        for place, (name, means) in enumerate(self.means.items()):
            style = {**line_style(place), "marker": MARKERS[place % len(MARKERS)], "markersize": 4}
            self.lines_ += ax.plot(self.cutoffs, means, label=literal(name), **style)
        ax.fill_between(self.cutoffs, self.low, self.high, color=self.lines_[0].get_color(), alpha=0.15, linewidth=0)
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("k")
        ax.set_ylabel(f"{self.metric}@k")
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
