"""Fill in figures that a page quotes from pages of results: a template names the cell, so nobody copies digits.

``{speed: Beside the published solver > MQ2008, C = 1 > at its default}`` is the first number in a cell of the page
``results/speed.md``. The cell is below a heading that begins with "Beside the published solver", in the only row that
has a cell ``MQ2008, C = 1``, and in the column "at its default". If several tables have such a row, the first table
counts. ``&`` joins several cells of the row, ``C==1`` means a cell 1 in the column C, and ``#2`` at the end takes the
second number of the cell. ``least`` or ``most`` before the heading takes the smallest or largest number of several
rows. ``{speed: /limit is (\\d+)/}`` is the group of a regular expression that matches the page exactly once. ``|.2f``
at the end rounds the number.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
QUOTE = re.compile(r"\{(?P<page>[\w/-]+): (?P<place>[^{}]+?)(?: \|(?P<rounding>\.\df))?\}")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
Span = tuple[int, int]
_CHOOSE: dict[str, Callable[..., Span]] = {"least": min, "most": max}


class QuoteError(ValueError):
    """A quote names no cell, or more than one."""


@dataclass
class Row:
    """A row of a Markdown table: its cells, without markup for bold type, and their positions in the page."""

    heading: str
    table: int
    columns: list[str]
    cells: list[str]
    spans: list[Span]

    def has(self, wanted: str) -> bool:
        """Whether a cell equals ``wanted``; with ``C==1``, whether the cell in the column C equals 1."""
        column, _, value = wanted.rpartition("==")
        return value == self.cells[self.columns.index(column)] if column else value in self.cells


def page_text(name: str) -> str:
    """The text of a page of results."""
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def rendered(template: str, texts: dict[str, str] | None = None) -> str:
    """Replace the quotes of a template by figures.

    Parameters
    ----------
    template : str
        Text with quotes.
    texts : dict of str to str, optional
        Texts of pages by name, instead of those on disk.
    """

    def figure(match: re.Match[str]) -> str:
        text = (texts or {}).get(match["page"]) or page_text(match["page"])
        start, end = located(text, match["place"])
        number = text[start:end]
        return format(value(number), match["rounding"]) if match["rounding"] else number

    return QUOTE.sub(figure, template)


def located(text: str, place: str) -> Span:
    """The position in a page of the number that a quote names."""
    if place.startswith("/"):
        matches = list(re.finditer(place.strip("/"), text))
        if len(matches) != 1:
            raise QuoteError(f"{place} matches {len(matches)} times")
        return matches[0].span(1)
    path, _, which = place.partition(" #")
    heading, key, column = path.split(" > ")
    choose = _CHOOSE.get(heading.split()[0])
    heading = heading.split(maxsplit=1)[1] if choose else heading
    found = [
        row
        for row in rows(text)
        if row.heading.startswith(heading) and column in row.columns and all(map(row.has, key.split(" & ")))
    ]
    spans = [
        [number.span() for number in NUMBER.finditer(text, *row.spans[row.columns.index(column)])][int(which or 1) - 1]
        for row in found
        if row.table == found[0].table
    ]
    if not spans or (len(spans) > 1 and not choose):
        raise QuoteError(f"{place}: {len(spans)} rows")
    return choose(spans, key=lambda span: value(text[slice(*span)])) if choose else spans[0]


def value(number: str) -> float:
    """The value of a number as a page writes it."""
    return float(number.replace(",", ""))


def rows(text: str) -> Iterator[Row]:
    """The rows of all tables of a page."""
    heading, columns, n_tables, start = "", None, 0, 0
    for line in text.splitlines(keepends=True):
        if line.startswith("#"):
            heading = line.strip("# \n")
        if line.startswith("|"):
            spans = [(start + cell.start(), start + cell.end()) for cell in re.finditer(r"[^|\n]+(?=\|)", line)]
            cells = [text[slice(*span)].replace("**", "").strip() for span in spans]
            if columns is None:
                columns, n_tables = cells, n_tables + 1
            elif not set(line.strip()) <= set("|-: "):
                yield Row(heading, n_tables, columns, cells, spans)
        else:
            columns = None
        start += len(line)
