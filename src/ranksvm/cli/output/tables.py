"""Results on stdout: tables for people, with notes on metrics, and one JSON document for machines."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ranksvm._util.text import aligned, count, counted, number, plain, power, queries, seconds, visible, weights

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from ranksvm.metrics import Evaluation

__all__ = [
    "ANSWERED",
    "aligned",
    "count",
    "counted",
    "json_text",
    "note_on_no_relevant",
    "notes_on",
    "number",
    "power",
    "print_bars",
    "print_facts",
    "print_json",
    "print_table",
    "queries",
    "seconds",
    "tab_separated",
    "weights",
]

# length of the longest bar, in characters: with five columns of numbers, the table still fits into 80 characters
BAR_WIDTH = 24
# a terminal narrower than this breaks the lines
NARROWEST = 20
# a table with headings is not squeezed below this width, in characters: a narrower terminal breaks its lines
MIN_WIDTH = 80
# key in the context of click: whether the current command has printed its document
ANSWERED = "ranksvm.answered"
# characters that begin a column or a line of tab-separated text, replaced by spaces
_SEPARATORS = str.maketrans("\t\n\r", "   ")
_UNPRINTABLE = re.compile("[\x7f-\x9f\ud800-\udfff]")


def tab_separated(cells: Iterable[str]) -> str:
    """A line of tab-separated text; tab characters and line ends in a cell, such as an id, become spaces."""
    return "\t".join(cell.translate(_SEPARATORS) for cell in cells)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None, left: int = 1) -> None:
    """A table whose first ``left`` columns are aligned to the left, the others (numbers) to the right."""

    table = _table(columns, left)
    for row in rows:
        table.add_row(*map(_cell, row))
    _print(title, table)


def print_bars(
    columns: Sequence[str], rows: Iterable[Sequence[str]], values: Sequence[float | None], title: str | None = None
) -> None:
    """A table with a bar at the end of each row: to the right for a positive value, to the left for a negative one."""
    from rich.bar import Bar
    from rich.text import Text

    known = [value for value in values if value is not None]
    reach = max(map(abs, known), default=0.0) or 1.0
    # Without negative values all bars go to the right. Lengths are in whole eighths of a character, as rich draws
    # them: rich truncates, so round-off could cost an eighth.
    origin = 8 * BAR_WIDTH // 2 if min(known, default=0.0) < 0 else 0
    lengths = [None if value is None else round(value / reach * (8 * BAR_WIDTH - origin)) for value in values]
    bars = [
        Text()
        if length is None
        else Bar(
            8 * BAR_WIDTH,
            origin + min(length, 0),
            origin + max(length, 0),
            width=BAR_WIDTH,
            color="red" if length < 0 else "green",
        )
        for length in lengths
    ]
    table = _table([*columns, ""])
    table.columns[-1].justify = "left"
    for column in table.columns[1:-1]:
        column.no_wrap = True
    for row, bar in zip(rows, bars, strict=True):
        table.add_row(*map(_cell, row), bar)
    _print(title, table)


def print_facts(facts: Iterable[tuple[str, str]], title: str | None = None) -> None:
    """Names and values, one pair per line."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(_text(name), _text(value))
    _print(title, table)


def print_json(document: dict[str, Any]) -> None:
    """Print the document on stdout, as `json_text` writes it, in UTF-8."""
    click.echo(json_text(document).encode())
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        ctx.find_root().meta[ANSWERED] = True


def json_text(document: dict[str, Any]) -> str:
    """The document as JSON; numbers that JSON cannot express (nan, inf) become null."""
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    # these occur only in strings: control characters of a terminal, and bytes of file names that are not UTF-8
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _text(words: str, style: str = "") -> "Text":
    """Text, not str: file names may hold square brackets, which rich would take for markup."""
    from rich.text import Text

    return Text(visible(words), style=style)


def _cell(words: str) -> "Text":
    """The text of a cell on one line: names of features may have line breaks and tab characters."""
    return _text(words.replace("\n", "\\n").replace("\t", "\\t"))


def _table(columns: Sequence[str], left: int = 1) -> "Table":
    """An empty table whose first ``left`` columns are aligned to the left, the others to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, column in enumerate(columns):
        table.add_column(_text(column), justify="left" if i < left else "right", overflow="fold")
    return table


def _print(title: str | None, table: "Table") -> None:
    from rich.console import Console
    from rich.measure import Measurement

    # Tables written to a file or a pipe are not cut, however wide.
    width = max(NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 200
    # the height is also given: otherwise rich assumes 80 columns for a dumb terminal
    console = Console(width=width, height=25, highlight=False)

    def needed() -> int:
        return Measurement.get(console, console.options.update(max_width=10_000), table).maximum

    if table.box is not None and needed() > width:
        # columns closer together are easier to read than cells in two lines
        table.padding = 0
    with console.capture() as capture:
        if title:
            console.print(_text(title, style="bold"))
        if table.box is not None:
            # a narrow terminal breaks the lines: rich would cut numbers, and leave out columns
            console.width = max(width, min(needed(), MIN_WIDTH))
        console.print(table)
    # rich pads lines with spaces
    for line in capture.get().splitlines():
        click.echo(line.rstrip(), file=sys.stdout)


def notes_on(results: "Mapping[str, Evaluation]", missing: str = "zero") -> list[str]:
    """Notes for a reader who compares the numbers of several systems with those of another tool."""
    notes = [note_on_no_relevant([next(iter(results.values()))])]
    for name, result in results.items():
        if result.n_missing:
            what = "counted as 0" if missing == "zero" else "ignored"
            notes.append(f"{name} lacks {queries(result.n_missing)} of the judgments, {what}.")
    return [note for note in notes if note]


def note_on_no_relevant(parts: "Sequence[Evaluation]") -> str:
    """How queries without a relevant document count, here and in other tools, in the mean over some evaluations.

    Of 156 test queries of MQ2008, fold 1, 51 have no relevant document: a linear model has NDCG@10 0.4841 under the
    convention "default", and 0.8110 = 0.4841 + 51/156 in XGBoost (`tests/metrics/test_conventions.py`).
    """
    from ranksvm.metrics import CONVENTIONS, parse_metric
    from ranksvm.metrics.definitions import NDCG, AveragePrecision, MeanNDCG, Recall

    convention = parts[0].convention
    # if some positive labels are not relevant, a query without a relevant document may still have an NDCG above 0
    above_1 = CONVENTIONS[convention].relevance > 1.0
    kinds = (AveragePrecision, Recall) if above_1 else (NDCG, MeanNDCG, AveragePrecision, Recall)
    n, of = sum(part.n_without_relevant for part in parts), sum(part.n_queries for part in parts)
    if n == 0 or not any(isinstance(parse_metric(name), kinds) for name in parts[0].means):
        return ""
    have = f"{count(n)} of {queries(of)} {'has' if n == 1 else 'have'} no relevant document"
    share = f"{sum(part.n_without_relevant / part.n_queries for part in parts) / len(parts):.4f}"
    if above_1:
        least = CONVENTIONS[convention].relevance
        return f"{have} (label {least:g} or higher): in map and r they count as 0 here. ndcg uses all labels."
    if CONVENTIONS[convention].no_relevant:
        return (
            f"{have}: in ndcg, map and r they count as 1 here, as in {convention}. LETOR, trec_eval and the default "
            f"convention count them as 0: {share} less by that alone."
        )
    return (
        f"{have}: in ndcg, map and r they count as 0 here. XGBoost and LightGBM count them as 1: {share} more by that "
        "alone (--convention xgboost)."
    )
