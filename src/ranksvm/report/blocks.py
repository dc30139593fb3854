"""Elements of the sections of a report: text, facts, tables, figures as SVG; the template writes each as HTML."""

import io
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ranksvm._util.tables import Table, facts_html
from ranksvm.plotting.figures import axes_in_memory, default_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HEIGHT", "Block", "Code", "Details", "Facts", "Figure", "Grid", "Section", "Text", "drawing"]

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
# All threads share matplotlib's style and Python's filters of warnings, so only one thread at a time changes them.
_DRAWS = threading.Lock()
_ID = re.compile(r'(\bid="|\bhref="#|url\(#)')


@dataclass(frozen=True)
class Block:
    """A part of a section; ``kind`` says how the template writes it."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Text(Block):
    """A paragraph."""

    kind = "text"
    text: str


@dataclass(frozen=True)
class Code(Block):
    """Text in which lines and spaces are kept."""

    kind = "code"
    text: str


@dataclass(frozen=True)
class Facts(Block):
    """A table of facts, each a name and a value."""

    kind = "facts"
    facts: Sequence[tuple[str, str]]
    caption: str

    @property
    def html(self) -> str:
        """The facts as an HTML table."""
        return facts_html(self.facts, self.caption)


@dataclass(frozen=True)
class Grid(Block):
    """A table that a reader can sort.

    Parameters
    ----------
    table : Table
        The table.
    search : str, optional
        Plural noun for the rows, if they can be searched.
    signs : str, optional
        The column whose sign filters the rows.
    """

    kind = "grid"
    table: Table
    search: str | None = None
    signs: str | None = None

    @property
    def html(self) -> str:
        """The table as HTML."""
        return self.table.to_html(classes=True)

    @property
    def sign_column(self) -> int | None:
        """The position of the column ``signs`` among the visible columns."""
        return None if self.signs is None else self.table.head().index(self.signs)


@dataclass(frozen=True)
class Figure(Block):
    """A drawing.

    Parameters
    ----------
    svg : str
        The drawing, an ``svg`` element.
    caption : str
        Its caption.
    """

    kind = "figure"
    svg: str
    caption: str


@dataclass(frozen=True)
class Details(Block):
    """Blocks that are hidden until a reader opens them."""

    kind = "details"
    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Parameters
    ----------
    name : str
        Its name in links: letters and hyphens.
    title : str
        Its heading.
    blocks : sequence of Block
        Its content.
    """

    name: str
    title: str
    blocks: Sequence[Block]


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
    with _DRAWS, default_style(_STYLE), warnings.catch_warnings():
        # the browser finds a font for letters that DejaVu Sans lacks
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
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
