"""Elements of the sections of a report: text, facts, tables, figures; the template writes each as HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ranksvm._util.tables import Table, facts_html

__all__ = ["Block", "Code", "Details", "Facts", "Figure", "Grid", "Section", "Text"]


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
    """Names and values."""

    kind = "facts"
    facts: Sequence[tuple[str, str]]
    caption: str

    @property
    def html(self) -> str:
        """The table."""
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
        """The table."""
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
