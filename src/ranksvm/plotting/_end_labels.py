"""Names of lines, written beside their right ends without overlapping."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.isotonic import isotonic_regression

from ranksvm.plotting.figures import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

__all__ = ["end_labels", "spread"]

# distance of two labels, in heights of a letter
_LEADING = 1.35
# start of the names, right of the axes, as a share of the width of the axes
_LEFT = 1.05


def spread(places: np.ndarray, distance: float) -> np.ndarray:
    """The positions in [0, 1], at least ``distance`` apart, with the smallest squared distances from ``places``.

    Parameters
    ----------
    places : ndarray of float64, shape (n,)
        The desired positions, in any order.
    distance : float
        The minimum distance of two positions; it is reduced if n positions do not fit into [0, 1].

    Returns
    -------
    ndarray of float64, shape (n,)
        The positions, in the order of ``places``.
    """
    n = len(places)
    distance = min(distance, 1.0 / max(1, n - 1))
    order = np.argsort(places, kind="stable")
    offsets = distance * np.arange(n)
    # positions are at least `distance` apart if they ascend after the offsets are subtracted
    found = isotonic_regression(places[order] - offsets, y_min=0.0, y_max=max(0.0, 1.0 - distance * (n - 1)))
    out = np.empty(n)
    out[order] = found + offsets
    return out


def end_labels(
    ax: "Axes", lines: Sequence["Line2D"], names: Sequence[str], fontsize: float = 8.0
) -> list["Annotation"]:
    """Write the name of each line to the right of the axes, joined to the end of the line.

    This fixes the limits of the axes, because the places of the names depend on them.

    Parameters
    ----------
    ax : matplotlib Axes
        The axes.
    lines : sequence of matplotlib Line2D
        Lines with the same right end.
    names : sequence of str
        Their names.
    fontsize : float
        Size of the letters, in points.

    Returns
    -------
    list of matplotlib Annotation
        The names, in the order of the lines.
    """
    # getting the limits adapts them to the data; setting them fixes them
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    ends = np.array([np.array(line.get_data())[:, -1] for line in lines])
    if len(ends) == 0:
        return []
    in_axes = ax.transAxes.inverted().transform(ax.transData.transform(ends))[:, 1]
    height = ax.get_window_extent().height * 72.0 / ax.figure.dpi
    places = spread(in_axes, _LEADING * fontsize / height)
    return [
        ax.annotate(
            literal(name),
            xy=end,
            xytext=(_LEFT, place),
            textcoords="axes fraction",
            va="center",
            fontsize=fontsize,
            annotation_clip=False,
            # the connecting line has the style of the line
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linestyle": line.get_linestyle(),
                "linewidth": 0.8,
                "shrinkA": 1.0,
                "shrinkB": 0.0,
            },
        )
        for line, name, end, place in zip(lines, names, ends, places, strict=True)
    ]
