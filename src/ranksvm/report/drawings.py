"""Figures as SVG elements of one page: the same bytes for the same numbers, and unique ids."""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ranksvm.plotting.figures import axes_in_memory, default_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["drawing"]

# Narrow, so that letters stay readable on a phone, where the figure is as wide as the screen.
WIDTH, HEIGHT = 4.2, 3.0
_STYLE = {
    # text stays text, which can be searched and copied
    "svg.fonttype": "none",
    # ids of clip paths are not random
    "svg.hashsalt": "ranksvm",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
}
# Without these matplotlib writes a date and its own version.
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')


def drawing(name: str, draw: Callable[["Axes"], object], *, height: float = HEIGHT) -> str:
    """The SVG element of a figure.

    Parameters
    ----------
    name : str
        A name that no other figure of the page has: all ids of the element begin with it.
    draw : callable
        Draws on the axes that it receives, or on others of their figure.
    height : float, default 3.0
        Height of the figure, in inches.

    Returns
    -------
    str
        The element.

    Raises
    ------
    MissingDependencyError
        When matplotlib is not installed.
    """
    with default_style(_STYLE):
        axes = axes_in_memory(figsize=(WIDTH, height), layout="constrained")
        figure = axes.figure
        draw(axes)
        figure.set_facecolor("none")
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=_NO_METADATA)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    # the page's style sheet sets width and height; viewBox keeps the shape
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return _ID.sub(rf"\g<1>{name}-", text).strip()
