"""LabelDisplay: scores within queries, by label."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data import Queries
from ranksvm.metrics import evaluate
from ranksvm.plotting.figures import axes_or_new, nth_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LabelDisplay"]

# more than 12 labels are drawn as at most 10 groups of about equally many documents
_LEVELS, _GROUPS = 12, 10
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


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
            groups = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(ends)]
        else:
            place = np.searchsorted(levels, y)
            groups = [f"{level:g}" for level in levels]
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
            medianprops={"color": nth_color(6), "linewidth": 1.5},
            whiskerprops={"color": nth_color(0)},
            capprops={"color": nth_color(0)},
        )
        named = [f"{group}\n({count:,})" for group, count in zip(self.groups, self.counts.tolist(), strict=True)]
        # names of groups are long, and would overlap
        slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if any(" to " in name for name in self.groups) else {}
        ax.set_xticks(range(len(named)), named, **slanted)
        ax.set_xlabel("label (documents)")
        ax.set_ylabel("score less the mean of its query")
        ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, ax.figure
        return self
