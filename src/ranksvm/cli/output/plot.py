"""Plots of how settings were chosen: scores against C."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ranksvm.cli.comparison import Comparison

__all__ = ["check_plot", "save_figure", "write_choice", "write_plot"]

# number of curves that are drawn in addition to the best one; more would be hard to read
OTHERS_SHOWN = 7


def check_plot(path: Path) -> None:
    """Refuse a plot that cannot be drawn, before any work."""
    from ranksvm.plotting.figures import picture_formats

    formats = picture_formats()
    if path.suffix.lower().lstrip(".") not in formats:
        known = ", ".join(f".{name}" for name in formats)
        raise click.UsageError(f"--plot {path}: the file name extension must be one of {known}.")


def write_choice(ranker: Any, metric: str, rule: str, path: Path) -> None:
    """Plot the scores by which a ranker chose C, and gamma."""
    from ranksvm.plotting.figures import axes_in_memory

    axes = axes_in_memory(figsize=(7.4, 4.8), layout="constrained")
    _draw(ranker, metric, rule, axes)
    save_figure(axes.figure, path)


def write_plot(comparison: "Comparison", metric: str, rule: str, path: Path) -> None:
    """Plot the best combination with its folds and standard error, and the next ones as lines.

    If the best combination is a kernel, it has a line for each gamma. For other kernels, the best score at each C is
    drawn.
    """
    import numpy as np

    from ranksvm.plotting.figures import MARKERS, axes_in_memory, line_style

    best, *others = comparison.ranked
    if not others:
        write_choice(best.ranker, metric, rule, path)
        return
    # the figure is wide, because the legend is next to the curves
    axes = axes_in_memory(figsize=(9.0, 4.8), layout="constrained")
    n_drawn = _draw(best.ranker, metric, rule, axes)
    legend = axes.get_legend()
    handles = list(legend.legend_handles)
    labels = [text.get_text() for text in legend.get_texts()]
    for place, other in enumerate(others[:OTHERS_SHOWN], n_drawn):
        scores = np.nanmax(np.atleast_2d(other.ranker.mean_scores_), axis=0)
        style = {**line_style(place), "marker": MARKERS[place % len(MARKERS)], "markersize": 3.5, "linewidth": 1.2}
        (line,) = axes.plot(other.ranker.Cs_, scores, **style)
        handles.append(line)
        labels.append(", ".join(comparison.cells(other.settings)))
    name = ", ".join(comparison.cells(best.settings))
    axes.set_title(f"The best of {len(comparison.tried)}: {name}", fontsize="medium")
    axes.legend(handles, labels, fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save_figure(axes.figure, path)


def _draw(ranker: Any, metric: str, rule: str, axes: "Axes") -> int:
    """Draw the scores of a ranker that chose C, and gamma; returns the number of its lines."""
    from ranksvm.plotting import GridDisplay, PathDisplay

    if hasattr(ranker, "gammas_"):
        return len(GridDisplay.from_estimator(ranker, ax=axes).lines_)
    if hasattr(ranker, "step_weights_"):
        PathDisplay.from_estimator(ranker, ax=axes)
        return 1
    names = ("scores", "mean_scores", "standard_errors")
    scores = {name: getattr(ranker, f"{name}_") for name in names}
    PathDisplay(ranker.Cs_, **scores, metric=metric, chosen_C=ranker.C_, rule=rule).plot(axes)
    return 1


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure to a file, in the format of its extension."""
    from ranksvm._util.atomic_files import atomic_write

    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower().lstrip("."), dpi=150)
