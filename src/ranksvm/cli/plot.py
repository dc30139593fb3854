"""The picture of a comparison: scores along C."""

from pathlib import Path

import click

from ranksvm.cli.comparison import Comparison

__all__ = ["check_plot", "write_plot"]

# beside the best, more curves than this would be a tangle
OTHERS_SHOWN = 7


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before any work."""
    from ranksvm.plotting.figures import picture_formats

    formats = picture_formats()
    if path.suffix.lower().lstrip(".") not in formats:
        known = ", ".join(f".{name}" for name in formats)
        raise click.UsageError(f"--plot {path}: the ending says what to draw, one of {known}.")


def write_plot(comparison: Comparison, path: Path) -> None:
    """Draw the best combination with its folds and standard error, the next ones as lines."""
    from ranksvm.data.atomic_files import atomic_write
    from ranksvm.plotting import PathDisplay
    from ranksvm.plotting.figures import axes_in_memory

    best, *others = comparison.ranked
    # wider where the legend is beside the curves
    axes = axes_in_memory(figsize=(9.0, 4.5) if others else (6.4, 4.8), layout="constrained")
    display = PathDisplay.from_estimator(best.ranker, ax=axes)
    legend = axes.get_legend()
    handles = list(legend.legend_handles)
    labels = [text.get_text() for text in legend.get_texts()]
    for place, other in enumerate(others[:OTHERS_SHOWN], 1):
        (line,) = axes.plot(other.ranker.Cs_, other.ranker.mean_scores_, color=f"C{place}", linewidth=1.2)
        handles.append(line)
        labels.append(", ".join(comparison.cells(other.settings)))
    if others:
        name = ", ".join(comparison.cells(best.settings))
        axes.set_title(f"{name} (the best of {len(comparison.tried)})", fontsize="medium")
        axes.legend(handles, labels, fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    with atomic_write(path) as file:
        display.figure_.savefig(file, format=path.suffix.lower().lstrip("."), dpi=150)
