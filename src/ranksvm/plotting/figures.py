"""Makes figures with matplotlib, which is imported when a plot is drawn, and defines the styles of lines and bars."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import zip_longest
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import east_asian_width

import numpy as np
from sklearn.isotonic import isotonic_regression

from ranksvm._util.text import told_apart
from ranksvm.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

__all__ = [
    "BARS",
    "GRID",
    "MARKERS",
    "PALETTE",
    "axes_in_memory",
    "axes_or_new",
    "by_rule",
    "c_axis",
    "c_name",
    "default_style",
    "end_labels",
    "labels_fit",
    "figure_in_memory",
    "nth_color",
    "legend_above",
    "legend_beside",
    "line_style",
    "literal",
    "number_names",
    "picture_formats",
    "series_names",
    "short_numbers",
    "short_names",
    "spread",
]

# Colors that people with any kind of color blindness can tell apart (Okabe & Ito, "Color Universal Design", 2008),
# without the yellow, which is pale on white: blue, vermillion, bluish green, reddish purple, orange, sky blue, black.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# 6 (dashes) and 7 (colors) have no common divisor, so 42 lines have different styles, and neighbors differ in both
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5)), (0, (9, 2)), (0, (4, 1.3, 1, 1.3, 1, 1.3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
# Maximum number of letters of a name in a figure: the middle of longer names is left out, to leave room for the figure.
LETTERS = 22
# lines of a grid: pale on a light and on a dark background
GRID: dict[str, Any] = {"color": "0.5", "alpha": 0.2}
# hatches that tell the bars of several series apart
BARS = ("", "///", "...", "\\\\\\", "xxx", "---")
# axes, or an array of them
A = TypeVar("A")
# minimum vertical distance of the labels at the ends of two lines, as a multiple of the height of a letter
_LEADING = 1.35
# where these labels begin, to the right of the axes: 0 is the left end of the axes, and 1 the right end
_LEFT = 1.05


def axes_or_new(ax: A | None = None, **figure: Any) -> A:
    """Return ``ax``, or the axes of a new figure of pyplot if it is None."""
    pyplot = _pyplot()
    return pyplot.subplots(**figure)[1] if ax is None else ax


def figure_in_memory(**figure: Any) -> Any:
    """A figure that is not registered with pyplot and not shown in a window, for writing to a file."""
    _pyplot()
    from matplotlib.figure import Figure

    return Figure(**figure)


def axes_in_memory(**figure: Any) -> Any:
    """The axes of a `figure_in_memory`."""
    return figure_in_memory(**figure).subplots()


def default_style(settings: dict[str, Any]) -> AbstractContextManager[None]:
    """matplotlib's own style with some settings, whatever style the user has chosen; a context manager."""
    _pyplot()
    from matplotlib import style

    return style.context(["default", settings])


def picture_formats() -> list[str]:
    """The file formats in which figures can be saved: "png", "svg" and others."""
    _pyplot()
    from matplotlib.backend_bases import FigureCanvasBase

    return sorted(FigureCanvasBase.get_supported_filetypes())


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError('plotting needs matplotlib: pip install "ranksvm[plot]"') from None
    return pyplot


def nth_color(place: int) -> str:
    """The color of the series with this number, from 0; for black, the color of text, which may be white."""
    from matplotlib import rcParams

    color = PALETTE[place % len(PALETTE)]
    return rcParams["text.color"] if color == "#000000" else color


def line_style(place: int) -> dict[str, Any]:
    """Color and dashes of the line with this number, from 0; both differ from those of the lines next to it."""
    return {"color": nth_color(place), "linestyle": DASHES[place % len(DASHES)]}


def c_axis(ax: "Axes", values: np.ndarray) -> None:
    """Make the horizontal axis an axis of C, with ticks at powers of 2 if the values are such powers, else of 10."""
    ax.set_xscale("log", base=2 if (np.frexp(values)[0] == 0.5).all() else 10)
    ax.set_xlabel("C")


def legend_above(ax: "Axes", handles: "Sequence[Artist] | None" = None) -> None:
    """A legend above the axes, because lines may be anywhere inside.

    It ends where the axes end, so that it may begin above the labels of the vertical axis: the axes may be narrow.
    """
    for n_columns in (2, 1):
        legend = _legend(ax, handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=n_columns, frameon=False)
        if legend.get_window_extent().width <= ax.figure.bbox.width:
            return


def legend_beside(ax: "Axes", handles: "Sequence[Artist]") -> None:
    """A legend to the right of the axes, because lines may be anywhere inside."""
    _legend(ax, handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _legend(ax: "Axes", handles: "Sequence[Artist] | None", **outside: Any) -> "Legend":
    """A legend outside of the axes; inside if the figure is the user's and has no layout engine to make room for it."""
    place = outside if ax.figure.get_layout_engine() is not None else {"loc": "best"}
    named: dict[str, Any] = {} if handles is None else {"handles": handles}
    return ax.legend(**named, **place, fontsize="small")


def literal(name: str) -> str:
    """A name with escaped dollar signs, so that matplotlib does not read it as mathematical text."""
    return name.replace("$", r"\$")


def series_names(names: Sequence[Any]) -> list[str]:
    """Names of series, of any type, for a legend: short and literal.

    A name that begins with an underscore gets a space before it, because matplotlib leaves out labels that begin so.
    """
    texts = map(literal, short_names([str(name) for name in names]))
    return [f" {text}" if text.startswith("_") else text for text in texts]


def number_names(values: np.ndarray | list[float]) -> list[str]:
    """Values of C, in matplotlib's mathematical text: as powers of 2 if all are powers of 2 and not all are 1."""
    exponents = np.log2(values)
    if (exponents == np.round(exponents)).all() and exponents.any():
        return [f"$2^{{{exponent:.0f}}}$" for exponent in exponents]
    return [f"{value:.3g}" for value in values]


def c_name(C: float) -> str:
    """The text "C = ..." for a value of C."""
    power = number_names([C])[0]
    return f"$C = {power[1:]}" if power.startswith("$") else f"C = {power}"


def short_numbers(values: np.ndarray, digits: int) -> list[str]:
    """Rounded numbers that differ from each other; 2.15e+04 is written as 21500, which is shorter."""
    return [min(text, f"{float(text):.15g}", key=len) for text in told_apart(values.tolist(), digits)]


def labels_fit(ax: "Axes", labels: Sequence[str], size: str = "medium") -> bool:
    """Whether labels of this size, at equal distances, fit side by side below the axes."""
    from matplotlib.font_manager import FontProperties

    letters = len(labels) * (1 + max(map(len, labels), default=0))
    # a letter is about 0.6 times as wide as high
    return letters * 0.6 * FontProperties(size=size).get_size_in_points() <= ax.bbox.width * 72.0 / ax.figure.dpi


def by_rule(rule: str | None) -> str:
    """Text about the rule by which a value was chosen; empty for the rule "best"."""
    return " (one-standard-error rule)" if rule == "one_standard_error" else ""


def short_names(names: Sequence[str], letters: int = LETTERS) -> list[str]:
    """Names shortened to at most ``letters`` letters; different names remain different.

    The middle of a long name is left out. If several names would become the same, their common ends are left out
    instead. East Asian letters count as two, because they are twice as wide; ends of lines become spaces.
    """
    names = [" ".join(name.splitlines()).replace("\t", " ") for name in names]
    rooms = [letters * len(name) // max(1, _width(name)) for name in names]
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for name, room in zip(names, rooms, strict=True):
        alike[_ends(name, room)].add(name)
    common = {short: _common_ends(group) for short, group in alike.items() if len(group) > 1}
    times: Counter[str] = Counter()
    found = []
    for name, room in zip(names, rooms, strict=True):
        short = _ends(name, room)
        if short in common:
            short = _middle(name, *common[short], room)
        times[short] += 1
        found.append(short if times[short] == 1 else f"{short} ({times[short]})")
    return found


def _width(name: str) -> int:
    """The width of a name, as a multiple of the width of a Latin letter."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in name)


def _ends(name: str, letters: int) -> str:
    """A name without the middle, if it is long."""
    return name if len(name) <= letters else f"{name[: letters // 2]}…{name[-(letters // 2 - 1) :]}"


def _common_ends(names: set[str]) -> tuple[int, int]:
    """Lengths of the longest common prefix and of the longest common suffix of several different names."""

    def n_common(names: list[str]) -> int:
        # the first and the last name in alphabetical order share the common prefix of all names
        pairs = zip_longest(min(names), max(names))
        return next(place for place, (a, b) in enumerate(pairs) if a != b)

    return n_common(list(names)), n_common([name[::-1] for name in names])


def _middle(name: str, first: int, last: int, letters: int) -> str:
    """A name without its ``first`` and ``last`` letters; some of the first ones remain if there is room."""
    stop = min(len(name), max(len(name) - last, first + 1))
    start = max(0, stop - (letters - 2), min(first, stop - letters // 2))
    text = name[start : min(stop, start + letters - 2)]
    return f"{'…' if start else ''}{text}{'…' if start + len(text) < len(name) else ''}"


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
    """Write the name of each line to the right of the axes, and connect it to the end of the line.

    This fixes the limits of the axes, because the positions of the names depend on them.

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
