"""The parts of an item: paragraphs, tables, figures compared with published ones, and plots."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from papers.judgment import Judgment, Measure

__all__ = ["Compared", "Entry", "Grid", "Part", "Picture", "csv_text", "markdown_table"]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV; lines end with a newline character."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


@dataclass(frozen=True)
class Grid:
    """A table of cells.

    Parameters
    ----------
    name : str
        Last part of the name of its CSV file, after the name of the item.
    header : sequence of str
        Headings.
    rows : sequence of sequences
        Cells.
    """

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def markdown(self) -> str:
        """The table in Markdown."""
        return markdown_table(self.header, self.rows)

    def csv(self) -> str:
        """The table as CSV, without Markdown's asterisks."""
        return csv_text(self.header, [[str(cell).replace("**", "") for cell in row] for row in self.rows])


class Entry(NamedTuple):
    """A figure found here, the published one, and whether both are about the same data."""

    labels: tuple[str, ...]
    name: str
    measure: Measure
    ours: float | None
    published: float | None
    spread: float | None
    error: float | None
    judged: bool

    @property
    def judgment(self) -> Judgment | None:
        """The judgment; None if a figure is missing or the data differ."""
        if self.ours is None or self.published is None or not self.judged:
            return None
        return Judgment(self.ours, self.published, self.measure, self.error or 0.0)

    @property
    def verdict(self) -> str | None:
        """The verdict; None without a judgment."""
        return None if self.judgment is None else self.judgment.verdict


@dataclass
class Compared:
    """Figures found here, compared with published ones and judged one by one.

    Parameters
    ----------
    name : str
        Name of its CSV file, after that of the item.
    labels : sequence of str
        Headings of the columns that identify a row, such as ("data", "model").
    """

    name: str
    labels: Sequence[str]
    entries: list[Entry] = field(default_factory=list)

    def add(
        self,
        labels: Sequence[str],
        name: str,
        measure: Measure,
        ours: float | None,
        published: float | None = None,
        *,
        spread: float | None = None,
        error: float | None = None,
        judged: bool = True,
    ) -> None:
        """Add a figure; it is not judged if one of the two is missing, or if the data are not the paper's.

        The spread is the standard deviation over folds or orders; the error is the `error` of `Judgment`.
        """
        self.entries.append(Entry(tuple(labels), name, measure, ours, published, spread, error, judged))

    @property
    def has_spreads(self) -> bool:
        """Whether a cell shows a standard deviation after ±."""
        return any(entry.ours is not None and entry.spread is not None for entry in self.entries)

    def unjudged(self) -> "Compared":
        """The same figures, without judgments."""
        return replace(self, entries=[entry._replace(judged=False) for entry in self.entries])

    @property
    def judgments(self) -> list[Judgment]:
        """The judgments of all figures that are judged."""
        return [entry.judgment for entry in self.entries if entry.judgment is not None]

    def markdown(self) -> str:
        """The table in Markdown, with a row for each label and a column for each measure."""
        names = list(dict.fromkeys(entry.name for entry in self.entries))
        rows: dict[tuple[str, ...], dict[str, str]] = {}
        for entry in self.entries:
            rows.setdefault(entry.labels, {})[entry.name] = _cell(entry)
        return markdown_table(
            [*self.labels, *names], [[*key, *(cells.get(name, "") for name in names)] for key, cells in rows.items()]
        )

    def csv(self) -> str:
        """The table as CSV, with a row for each figure."""
        rows = []
        for entry in self.entries:
            found = entry.judgment
            values = [entry.ours, entry.spread, entry.published, None if found is None else found.difference]
            cells = ["" if value is None else f"{value:.10g}" for value in values]
            rows.append([*entry.labels, entry.name, *cells, "" if found is None else found.verdict])
        header = [*self.labels, "measure", "ours", "standard deviation", "published", "difference", "verdict"]
        return csv_text(header, rows)


def _cell(entry: Entry) -> str:
    show = entry.measure.shown
    if entry.ours is None:
        return "" if entry.published is None else f"published {show(entry.published)}"
    ours = show(entry.ours) + ("" if entry.spread is None else f" ± {show(entry.spread)}")
    if entry.published is None:
        return ours
    verdict = "" if entry.verdict is None else f": {entry.verdict}"
    return f"{ours} (published {show(entry.published)}{verdict})"


@dataclass(frozen=True)
class Picture:
    """A plot.

    Parameters
    ----------
    name : str
        Name of its file, after that of the item.
    title : str
        What it shows.
    size : tuple of float
        Width and height in inches.
    draw : callable
        Draws the plot on a figure of matplotlib.
    """

    name: str
    title: str
    size: tuple[float, float]
    draw: Callable[[Any], None]


Part = str | Grid | Compared | Picture
