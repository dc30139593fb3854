"""Figures that a page quotes, found where they were measured: a template names the cell, nobody copies digits.

``{speed: Beside the published solver > MQ2008, C = 1 > at its default}`` is the first number in a cell of the page
``results/speed.md``: under the heading that begins so, in the one row that has the cell ``MQ2008, C = 1``, in that column of
the first table with such a row. Several cells of the row are joined by ``&``, ``C==1`` is the cell 1 in the column C, and
``#2`` at the end takes the second number of the cell. ``least`` or ``most`` before the heading takes the smallest or the
largest (by amount) of several rows. ``{speed: /limit is (\\d+)/}`` is the group of a regular expression that matches the
page once.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
QUOTE = re.compile(r"\{(?P<page>\w+): (?P<place>.+?)\}")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


class QuoteError(ValueError):
    """A quote names no cell, or several."""


@dataclass
class Row:
    """A row of a table of Markdown."""

    heading: str
    table: int
    columns: list[str]
    cells: list[str]

    def __getitem__(self, column: str) -> str:
        return self.cells[self.columns.index(column)]

    def has(self, wanted: str) -> bool:
        """Whether a cell is ``wanted``, or, as in ``C==1``, the cell of a column."""
        column, _, value = wanted.rpartition("==")
        return value == self[column] if column else value in self.cells


def _value(number: str) -> float:
    return float(number.replace(",", ""))


_CHOOSE: dict[str, Callable[..., str]] = {"least": min, "most": max}


def page_text(name: str) -> str:
    """The text of a page of results."""
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def rendered(template: str, texts: dict[str, str] | None = None) -> str:
    """A template with its figures in place.

    Parameters
    ----------
    template : str
        Text with quotes.
    texts : dict of str to str, optional
        Pages by name, where they are not those on disk.
    """
    texts = texts or {}
    return QUOTE.sub(lambda match: quoted(texts.get(match["page"]) or page_text(match["page"]), match["place"]), template)


def quoted(text: str, place: str) -> str:
    """The number at a place of a page."""
    if place.startswith("/"):
        found = re.findall(place.strip("/"), text)
        if len(found) != 1:
            raise QuoteError(f"{place} matches {len(found)} times")
        return found[0]
    place, _, which = place.partition(" #")
    heading, key, column = place.split(" > ")
    choose = _CHOOSE.get(heading.split()[0])
    heading = heading.split(maxsplit=1)[1] if choose else heading
    found = [
        row
        for row in rows(text)
        if row.heading.startswith(heading) and column in row.columns and all(map(row.has, key.split(" & ")))
    ]
    numbers = [NUMBER.findall(row[column])[int(which or 1) - 1] for row in found if row.table == found[0].table]
    if not numbers or (len(numbers) > 1 and not choose):
        raise QuoteError(f"{place}: {len(numbers)} rows")
    return choose(numbers, key=_value) if choose else numbers[0]


def rows(text: str) -> Iterator[Row]:
    """The rows of all tables of a page, without the marks of bold type."""
    heading, columns, n_tables = "", None, 0
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        if not line.startswith("|"):
            columns = None
            continue
        cells = [cell.replace("**", "").strip() for cell in line.strip().strip("|").split("|")]
        if columns is None:
            columns, n_tables = cells, n_tables + 1
        elif not set(line) <= set("|-: "):
            yield Row(heading, n_tables, columns, cells)
