"""Displays of the quality of systems: a metric against its cut-off, differences of two systems, and scores by label."""

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data import Queries
from ranksvm.exceptions import OptionError
from ranksvm.metrics import Evaluation, evaluate
from ranksvm.metrics.definitions import parse_metric
from ranksvm.metrics.significance import differences
from ranksvm.plotting.figures import (
    GRID,
    MARKERS,
    axes_or_new,
    labels_fit,
    legend_above,
    line_style,
    nth_color,
    series_names,
    short_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CutoffDisplay", "DifferenceDisplay", "LabelDisplay"]

# The outline of the differences has at most this number of steps, which is more than a screen can show.
_STEPS = 500
# more than 12 labels are drawn as at most 10 groups of about equally many documents
_LEVELS, _GROUPS = 12, 10
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


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
        for place, (name, means) in enumerate(zip(series_names(list(self.means)), self.means.values(), strict=True)):
            style = {**line_style(place), "marker": MARKERS[place % len(MARKERS)], "markersize": 4}
            self.lines_ += ax.plot(self.cutoffs, means, label=name, **style)
        ax.fill_between(self.cutoffs, self.low, self.high, color=self.lines_[0].get_color(), alpha=0.15, linewidth=0)
        ax.locator_params(axis="x", integer=True, min_n_ticks=1)
        ax.set_xlabel("k")
        ax.set_ylabel(f"{self.metric}@k")
        ax.grid(**GRID)
        ax.set_axisbelow(True)
        legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


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
            Evaluations of the same queries.
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
        return cls(differences(a, b, metric), parse_metric(metric).name).plot(ax)

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
        ax.locator_params(axis="x", integer=True, min_n_ticks=1)
        ax.set_xlabel("queries, by difference")
        ax.set_ylabel(f"difference in {self.metric}")
        ax.grid(axis="y", **GRID)
        ax.set_axisbelow(True)
        legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class LabelDisplay:
    """The distribution of scores minus the mean score of their query: for each label, a box from quartile to quartile.

    Scores are comparable within a query only. The whiskers end at the quantiles 0.05 and 0.95; a good model moves the
    boxes apart, the higher labels up. More than 12 labels are drawn as groups of about equally many documents.

    Parameters
    ----------
    groups : list of str
        Names of the labels, or of groups of labels, ascending.
    counts : ndarray of int, shape (n_groups,)
        Number of documents in each group.
    quantiles : ndarray of float64, shape (n_groups, 5)
        Quantiles 0.05, 0.25, 0.5, 0.75 and 0.95 of their scores.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        Their figure.
    """

    def __init__(self, groups: list[str], counts: np.ndarray, quantiles: np.ndarray):
        self.groups = groups
        self.counts = counts
        self.quantiles = quantiles

    @classmethod
    def from_scores(
        cls, y: ArrayLike, scores: ArrayLike, qid: ArrayLike, *, ax: "Axes | None" = None
    ) -> "LabelDisplay":
        """Draw the scores of documents.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Labels.
        scores : array-like of shape (n_rows,)
            Scores.
        qid : array-like of shape (n_rows,)
            Query of each row.
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        LabelDisplay
            The display, drawn.

        Raises
        ------
        DataError
            When lengths differ, or labels or scores are not numbers.
        MissingDependencyError
            When matplotlib is not installed.

        Examples
        --------
        >>> from ranksvm import make_ranking
        >>> from ranksvm.plotting import LabelDisplay
        >>> data = make_ranking(n_queries=20, n_docs=10, n_features=2, random_state=0)
        >>> LabelDisplay.from_scores(data.y, data.X[:, 0], data.qid).groups
        ['0', '1', '2', '3', '4']
        """
        evaluate(y, scores, qid, "mrr")  # refuses what cannot be ranked
        y, scores = np.asarray(y, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        queries = Queries.from_qid(qid, len(scores))
        numbers = queries.numbers()
        centered = scores - (np.bincount(numbers, weights=scores) / queries.sizes)[numbers]
        levels = np.unique(y)
        if len(levels) > _LEVELS:
            # groups end at labels that occur, so that no group is empty
            ends = np.unique(np.quantile(y, np.linspace(0, 1, _GROUPS + 1), method="lower"))
            place = np.clip(np.searchsorted(ends, y, side="right") - 1, 0, len(ends) - 2)
            groups = [f"{low} to {high}" for low, high in itertools.pairwise(short_numbers(ends, 3))]
        else:
            place = np.searchsorted(levels, y)
            groups = [f"{level:.10g}" for level in levels]
        parts = [centered[place == number] for number in range(len(groups))]
        quantiles = np.array([np.quantile(part, _QUANTILES) for part in parts])
        return cls(groups, np.array([len(part) for part in parts]), quantiles).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "LabelDisplay":
        """Draw the boxes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: axes of a new figure.

        Returns
        -------
        LabelDisplay
            Itself, with ``ax_`` and ``figure_``.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        ax = axes_or_new(ax, layout="constrained")
        keys = ("whislo", "q1", "med", "q3", "whishi")
        boxes = [dict(zip(keys, row, strict=True)) for row in self.quantiles.tolist()]
        ax.bxp(
            boxes,
            positions=range(len(boxes)),
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": nth_color(5), "edgecolor": nth_color(0)},
            medianprops={"color": "black", "linewidth": 1.5},
            whiskerprops={"color": nth_color(0)},
            capprops={"color": nth_color(0)},
        )
        counts = [f"({count:,})" for count in self.counts.tolist()]
        level = labels_fit(ax, self.groups) and labels_fit(ax, counts)
        between = "\n" if level else " "
        named = [f"{group}{between}{count}" for group, count in zip(self.groups, counts, strict=True)]
        slanted: dict[str, Any] = {} if level else {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(named)), named, **slanted)
        ax.set_xlabel("label (documents)")
        ax.set_ylabel("score minus the\nmean of its query")
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        ax.grid(axis="y", **GRID)
        ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, ax.figure
        return self
