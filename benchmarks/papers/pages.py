"""Write the results of an item: a Markdown page, a CSV file for each table, and a file for each plot."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from papers.items import Context, Item, Paper
from papers.judgment import Judgment, in_words, rule
from papers.machine import machine, versions
from papers.results import Compared, Grid, Part, Picture, markdown_table
from ranksvm._util.atomic_files import atomic_write
from ranksvm.exceptions import UninformativeWarning

__all__ = ["Outcome", "markdown", "run_item", "write", "write_summary"]

PEERS = ("xgboost-cpu", "xgboost", "lightgbm")
DOTS = 110
SPREAD = "± is the standard deviation over folds or orders."


@dataclass(frozen=True)
class Outcome:
    """The results of an item; there are no parts if it could not run because all its data are missing."""

    paper: Paper
    item: Item
    parts: Sequence[Part]
    missing: Sequence[str]
    seconds: float
    quick: bool = False

    @property
    def judgments(self) -> list[Judgment]:
        """The judgments of all figures that are judged."""
        return [found for part in self.parts if isinstance(part, Compared) for found in part.judgments]

    @property
    def verdict(self) -> str:
        """A short text about the judgments."""
        return in_words(self.judgments) if self.parts else "data missing"


def run_item(paper: Paper, item: Item, context: Context) -> Outcome:
    """Run an item on the available data; if all its data are missing, the outcome has no parts."""
    sources = context.sources
    missing = [sources.instructions(name) for name in sources.missing(item.data)]
    started = time.perf_counter()
    runs = not item.data or bool(sources.here(item.data))
    with warnings.catch_warnings():
        # no warnings: that published settings do not converge, or that a model learns nothing, is a result on the page
        for kind in (ConvergenceWarning, UninformativeWarning):
            warnings.simplefilter("ignore", kind)
        parts = item.run(context) if runs else []
    if context.quick:
        parts = [part.unjudged() if isinstance(part, Compared) else part for part in parts]
    return Outcome(paper, item, parts, missing, time.perf_counter() - started, context.quick)


# -- Markdown ----------------------------------------------------------------------------------------------------------


def markdown(outcome: Outcome, command: str) -> str:
    """The page of an item."""
    blocks = [
        f"# {outcome.item.title}",
        f"{outcome.paper.title}.",
        f"{machine()}. {versions(*PEERS)}. {time.strftime('%Y-%m-%d')}. {outcome.seconds:.1f} s.",
        f"Command: `{command}`",
    ]
    if outcome.quick:
        blocks.append(
            "Made with `--quick`, from small grids and few repetitions: the figures are rough and are not judged."
        )
    if outcome.judgments:
        blocks.append(f"{in_words(outcome.judgments)}. {rule()}")
    if any(isinstance(part, Compared) and part.has_spreads for part in outcome.parts):
        blocks.append(SPREAD)
    blocks += [_block(outcome.item, part) for part in outcome.parts]
    if outcome.missing:
        lines = "\n".join(f"- {line}" for line in outcome.missing)
        blocks += ["## Missing data", "DIR is the folder of `--data`, or the one that `RANKSVM_DATA` names.", lines]
    return "\n\n".join(blocks) + "\n"


def _block(item: Item, part: Part) -> str:
    if isinstance(part, Picture):
        return f"![{part.title}]({_file_name(item, part)})"
    return part if isinstance(part, str) else part.markdown()


def _file_name(item: Item, part: Grid | Compared | Picture) -> str:
    ending = "png" if isinstance(part, Picture) else "csv"
    return f"{item.name}-{part.name}.{ending}"


# -- files -------------------------------------------------------------------------------------------------------------


def write(outcome: Outcome, command: str, folder: Path) -> list[Path]:
    """Write the page, the tables and the plots of an item to the folder of its paper; return their paths.

    Raises
    ------
    MissingDependencyError
        When there is a plot, but matplotlib is not installed.
    """
    place = folder / outcome.paper.name
    place.mkdir(parents=True, exist_ok=True)
    written = [_write_text(place / f"{outcome.item.name}.md", markdown(outcome, command))]
    for part in outcome.parts:
        if isinstance(part, Picture):
            written.append(_draw(part, place / _file_name(outcome.item, part)))
        elif not isinstance(part, str):
            written.append(_write_text(place / _file_name(outcome.item, part), part.csv()))
    return written


def write_summary(paper: Paper, outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write README.md of a paper, with a line for each item; items that did not run now are read from their pages."""
    place = folder / paper.name
    place.mkdir(parents=True, exist_ok=True)
    by_name = {outcome.item.name: outcome for outcome in outcomes}
    rows = []
    for item in paper.items:
        found = by_name.get(item.name)
        page = place / f"{item.name}.md"
        name = f"[{item.name}]({page.name})" if page.exists() else item.name
        rows.append((name, item.title, _verdict_of(page) if found is None else found.verdict))
    table = markdown_table(["item", "what", "found"], rows)
    command = f"python benchmarks/reproduce.py {paper.name} ITEM"
    text = f"# {paper.title}\n\nEach page is made by `{command}`.\n\n{table}\n\n{rule()}\n"
    return _write_text(place / "README.md", text)


def _verdict_of(page: Path) -> str:
    """The verdict at the beginning of a page from an earlier run."""
    if not page.exists():
        return "not run"
    lines = page.read_text(encoding="utf-8").splitlines()
    found = [line.split(". A figure is")[0] for line in lines if ". A figure is *equal*" in line]
    return found[0] if found else in_words([])


def _write_text(path: Path, text: str) -> Path:
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def _draw(picture: Picture, path: Path) -> Path:
    from ranksvm.plotting.figures import figure_in_memory

    figure = figure_in_memory(figsize=picture.size, layout="constrained")
    picture.draw(figure)
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=DOTS)
    return path
