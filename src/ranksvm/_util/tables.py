"""Results as tables: HTML for notebooks, LaTeX for papers, CSV, and DataFrames."""

import csv
import dataclasses
import html
import importlib
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from ranksvm._util.text import one_line, plain, power
from ranksvm.exceptions import MissingDependencyError, OptionError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CORRECTIONS", "LIBRARIES", "POWER", "Table", "Tabular", "facts_html", "frame_of", "without_formula"]

# Corrections for many comparisons, and the heading of the column of p-values that they give.
CORRECTIONS = {"holm": "p (Holm)", "bonferroni": "p (Bonferroni)", "tukey": "p (Tukey HSD)", "none": ""}
# in the order in which they are tried
LIBRARIES = ("pandas", "polars", "pyarrow")
# A format of `Table`: a power of 2 is shown as such, as in 2^-3.
POWER = "power"
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_"},
}


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns of equal length, and how they are shown to people (in text, HTML and LaTeX).

    Parameters
    ----------
    columns : mapping of str to sequence
        Name -> values.
    caption : str
        What the table shows.
    headings : mapping of str to str
        Headings for people that differ from the names.
    hidden : tuple of str
        Columns that are not shown to people, because a heading or the caption says the same.
    footer : sequence of mapping
        Additional rows that are shown to people, such as means: name -> value.
    formats : mapping of str to str
        Formats of numbers shown to people, such as `POWER` for values of C and gamma; floats without a format are shown
        with four decimals.
    numbers : tuple of str
        Columns of text that is to be aligned, and sorted, like numbers.
    """

    columns: Mapping[str, Any]
    caption: str
    headings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    footer: Sequence[Mapping[str, Any]] = ()
    formats: Mapping[str, str] = dataclasses.field(default_factory=dict)
    numbers: tuple[str, ...] = ()

    def head(self) -> list[str]:
        """Headings of the columns that people see."""
        return [self.headings.get(name, name) for name in self._shown()]

    def body(self) -> tuple[list[list[str]], list[list[str]]]:
        """Rows as people see them, and the rows of the footer."""
        names = self._shown()
        cells = [[shown(value, self.formats.get(name)) for value in _values(self.columns[name])] for name in names]
        rows = [list(row) for row in zip(*cells, strict=True)]
        return rows, [[shown(row.get(name, "")) for name in names] for row in self.footer]

    def is_text(self) -> list[bool]:
        """Whether a column that people see holds text."""
        return [
            name not in self.numbers and any(isinstance(value, str) for value in _values(self.columns[name]))
            for name in self._shown()
        ]

    def to_csv(self, footer: bool = False, escape_formulas: bool = False) -> str:
        """The table as CSV, with the names of all columns and all digits; ``footer`` adds the rows of the footer."""
        rows = [list(self.columns), *zip(*(plain(list(_values(each))) for each in self.columns.values()), strict=True)]
        if footer:
            rows += [[plain(row.get(name, "")) for name in self.columns] for row in self.footer]
        if escape_formulas:
            rows = [list(map(without_formula, row)) for row in rows]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue()

    def to_latex(self) -> str:
        """The table for people, as a LaTeX ``tabular``."""
        rows, footer = self.body()
        lines = [
            f"% {one_line(self.caption)}",
            rf"\begin{{tabular}}{{{''.join('l' if text else 'r' for text in self.is_text())}}}",
            r"\toprule",
            _latex_row(self.head()),
            r"\midrule",
            *map(_latex_row, rows),
            *([r"\midrule"] if footer else []),
            *map(_latex_row, footer),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def to_text(self) -> str:
        """The table for people, as text with aligned columns."""
        rows, footer = self.body()
        text = self.is_text()
        lines = [list(map(one_line, line)) for line in (self.head(), *rows, *footer)]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        aligned = [
            [
                cell.ljust(width) if left else cell.rjust(width)
                for cell, width, left in zip(line, widths, text, strict=True)
            ]
            for line in lines
        ]
        return "\n".join([one_line(self.caption), *("  ".join(cells).rstrip() for cells in aligned)])

    def to_html(self, *, classes: bool = False) -> str:
        """The table for people, as an HTML ``table``.

        Numbers are aligned by inline styles or, with ``classes``, by the class ``number`` of the page's style sheet.
        """
        rows, footer = self.body()
        text = self.is_text()
        aligned = _by_class if classes else _by_style
        kinds = [' class="number"' if classes and not is_text else "" for is_text in text]
        head = [
            f'<th scope="col"{kind}>{html.escape(name)}</th>' for name, kind in zip(self.head(), kinds, strict=True)
        ]
        cells = [aligned(is_text) for is_text in text]
        parts = [
            f"<table><caption>{html.escape(self.caption)}</caption>",
            f"<thead><tr>{''.join(head)}</tr></thead>",
            f"<tbody>{''.join(_html_row(row, cells) for row in rows)}</tbody>",
            f"<tfoot>{''.join(_html_row(row, cells) for row in footer)}</tfoot>" if footer else "",
            "</table>",
        ]
        return "".join(parts)

    def _shown(self) -> list[str]:
        return [name for name in self.columns if name not in self.hidden]


class Tabular:
    """Base of results that can be shown as a table; a subclass defines ``_table``."""

    def _table(self) -> Table:
        raise NotImplementedError

    def to_frame(self, *, library: str | None = None) -> Any:
        """The table as a DataFrame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the DataFrame; None: the first of them that is installed.

        Returns
        -------
        DataFrame
            One column per name, numbers with all digits.

        Raises
        ------
        MissingDependencyError
            When the library is not installed, or none of the three is.
        OptionError
            When the library is unknown.
        """
        return frame_of(self._table().columns, library)

    def to_csv(self, *, escape_formulas: bool = False) -> str:
        """The table as CSV: a line of names, numbers with all digits, undefined ones empty.

        Parameters
        ----------
        escape_formulas : bool, default=False
            Whether text that begins with ``=``, ``+``, ``-``, ``@``, a tab character or a carriage return gets an
            apostrophe in front, so that a spreadsheet does not take it for a formula.

        Returns
        -------
        str
            The text, in which lines end with a newline character.
        """
        return self._table().to_csv(escape_formulas=escape_formulas)

    def to_latex(self) -> str:
        r"""The table as a LaTeX ``tabular`` with the rules of the package booktabs; numbers with four decimals.

        Returns
        -------
        str
            The text, from ``\begin{tabular}`` to ``\end{tabular}``; the caption is a comment before it.
        """
        return self._table().to_latex()

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        return self._table().to_html()


def facts_html(facts: Iterable[tuple[str, str]], caption: str) -> str:
    """Names and values as a ``table``, one pair per row."""
    rows = [
        f'<tr><th scope="row" style="text-align: left">{html.escape(name)}</th>'
        f'<td style="text-align: left">{html.escape(value)}</td></tr>'
        for name, value in facts
    ]
    return f'<table class="facts"><caption>{html.escape(caption)}</caption><tbody>{"".join(rows)}</tbody></table>'


def frame_of(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """A DataFrame of the named library, or of the first library that is installed.

    Raises
    ------
    MissingDependencyError
        When it is not installed.
    OptionError
        When the library is unknown.
    """
    if library is not None and library not in LIBRARIES:
        raise OptionError(f"library must be one of {', '.join(LIBRARIES)}, got {library!r}.")
    for name in LIBRARIES if library is None else (library,):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        # not every library accepts arrays of NumPy's text
        values = {key: _values(column) for key, column in columns.items()}
        return module.table(values) if name == "pyarrow" else module.DataFrame(values)
    wanted = "pandas, polars or pyarrow" if library is None else library
    raise MissingDependencyError(f"to_frame needs {wanted}: pip install {library or 'pandas'}")


@overload
def without_formula(value: str) -> str: ...
@overload
def without_formula(value: object) -> object: ...
def without_formula(value: object) -> object:
    """Text with an apostrophe in front if a spreadsheet would take it for a formula; any other value as it is."""
    takes = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if takes else value


def shown(value: object, format_spec: str | None = None) -> str:
    """A value as text for people: a float in the given format or with four decimals, an undefined value as a dash."""
    value = plain(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if not isinstance(value, float):
        return str(value)
    return power(value) if format_spec == POWER else format(value, format_spec or ".4f")


def _values(column: "Sequence[object] | np.ndarray") -> "Sequence[object] | np.ndarray":
    """A column of text or objects as a list; an array of numbers or dates unchanged."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    return column if kind in ("i", "u", "f", "b", "M", "m") else list(column)


def _latex_row(cells: list[str]) -> str:
    return " & ".join(map(_latex_cell, cells)) + r" \\"


def _latex_cell(cell: str) -> str:
    exponent = re.fullmatch(r"2\^(-?\d+)", cell)
    return f"$2^{{{exponent[1]}}}$" if exponent else "".join(_LATEX.get(character, character) for character in cell)


def _by_style(is_text: bool) -> str:
    return f'<td style="text-align: {"left" if is_text else "right"}">'


def _by_class(is_text: bool) -> str:
    return "<td>" if is_text else '<td class="number">'


def _html_row(cells: list[str], starts: list[str]) -> str:
    found = [f"{start}{html.escape(cell)}</td>" for cell, start in zip(cells, starts, strict=True)]
    return f"<tr>{''.join(found)}</tr>"
