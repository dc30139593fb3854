"""Reproduce the published tables and figures of a paper, and compare them with the printed ones."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from papers.papers import PAPERS, paper
from ranksvm.cli.options.shared import Name, json_option, quiet_option
from ranksvm.cli.output.errors import OneSentenceErrors, command_line, debug_option
from ranksvm.cli.output.progress import Progress
from ranksvm.cli.output.tables import print_json, print_table, seconds
from ranksvm.cli.terminal import say
from ranksvm.exceptions import OptionError

if TYPE_CHECKING:
    from papers.data_sets import Sources
    from papers.items import Item, Paper
    from papers.pages import Outcome


PROGRAM = "python benchmarks/reproduce.py"


@click.command(
    "reproduce",
    cls=OneSentenceErrors,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.argument("name", metavar="PAPER", required=False, type=Name(list(PAPERS)))
@click.argument("items", metavar="[ITEM]...", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="List the items of PAPER, or the papers, and run nothing.")
@click.option(
    "--data",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the data sets: DIR/MQ2008/Fold1/train.txt and so on.  [default: $RANKSVM_DATA, or data]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write a page (Markdown), its tables (CSV) and plots (PNG) to DIR/PAPER instead of printing the page.",
)
@click.option("--all", "everything", is_flag=True, help="Also run the items that take more than about two minutes.")
@click.option(
    "--quick", is_flag=True, help="Small grids and few repetitions: shows that an item runs; figures are not judged."
)
@click.option(
    "--orders",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="Random orders of the queries of a stream (wang-2015).",
)
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Random settings that a search tries for each model and fold (xu-2019).",
)
@click.option(
    "--processes",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Fits of a search that run at the same time; 0: one, in this process (xu-2019).",
)
@click.option(
    "--cache",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the fits of a search in FILE, so that the next run goes on where this one ended (xu-2019).",
)
@click.option(
    "--seconds",
    "limit",
    type=click.FloatRange(min=0.0),
    default=math.inf,
    metavar="S",
    help="Begin no further fit of a search after S seconds (xu-2019).  [default: no limit]",
)
@json_option
@quiet_option
@debug_option
@click.pass_context
def main(
    ctx: click.Context,
    name: str | None,
    items: tuple[str, ...],
    only_list: bool,
    folder: Path | None,
    output: Path | None,
    everything: bool,
    as_json: bool,
    quiet: bool,
    limit: float,
    **settings: Any,
) -> None:
    """Measure the published tables and figures of PAPER again: figures of this package beside the printed ones.

    Without ITEM every item of the paper runs that takes at most about two minutes on two cores. The difference from
    each printed figure is judged by a rule that the page states. Where data are missing, the page says what to get and
    where to put it.

    \b
    Examples:
      python benchmarks/reproduce.py --list
      python benchmarks/reproduce.py lee-lin-2014 --list --data letor
      python benchmarks/reproduce.py lee-lin-2014 quality --data letor
      python benchmarks/reproduce.py wang-2015 --data letor -o results
      python benchmarks/reproduce.py xu-2019 quality --data letor --cache fits.jsonl -o results
    """
    if name is None:
        if items or not only_list:
            raise click.UsageError(f"name a paper: one of {', '.join(PAPERS)}; --list describes them.")
        _list_papers(as_json)
        return
    from papers.data_sets import Sources, default_folder

    chosen = paper(name)
    sources = Sources(default_folder() if folder is None else folder)
    wanted = _wanted(chosen, items, everything)
    if only_list:
        _list_items(chosen, sources, as_json)
        return
    if folder is not None and not folder.is_dir():
        raise click.UsageError(f"--data {folder}: there is no such folder.")
    from papers.items import Context, Settings
    from papers.pages import markdown, run_item, write, write_summary

    if output is not None:
        if any(item.draws for item in wanted):
            _check_plots()
        output.mkdir(parents=True, exist_ok=True)
    outcomes, written = [], []
    with Progress(quiet, iterations_from=2, fits_from=2) as progress:
        context = Context(sources, Settings(**settings, seconds=limit), progress.iteration)
        for item in wanted:
            progress.heading = f"{name} {item.name}: "
            progress.now(item.title)
            outcomes.append(run_item(chosen, item, context))
            progress.line(f"{name} {item.name}: {outcomes[-1].verdict}, {seconds(outcomes[-1].seconds)}")
            if output is not None:
                written += write(outcomes[-1], command_line(ctx, PROGRAM), output)
        if output is not None:
            written.append(write_summary(chosen, outcomes, output))
            progress.line(f"Wrote {len(written)} files to {output / name}")
    if as_json:
        print_json(_document(chosen, outcomes, written))
    elif output is None:
        say("\n".join(markdown(outcome, command_line(ctx, PROGRAM)) for outcome in outcomes).removesuffix("\n"))


def _wanted(chosen: "Paper", items: tuple[str, ...], everything: bool) -> "list[Item]":
    """The named items, or all items that do not take long; a name that the paper does not have is an error."""
    try:
        named = [chosen.item(item) for item in items]
    except OptionError as error:
        raise click.UsageError(str(error)) from None
    return named or [item for item in chosen.items if everything or not item.long]


def _check_plots() -> None:
    """Stop before the computation if plots could not be drawn at the end."""
    from ranksvm.plotting.figures import picture_formats

    picture_formats()


# -- lists -------------------------------------------------------------------------------------------------------------


def _list_papers(as_json: bool) -> None:
    if as_json:
        print_json({"command": "reproduce", "papers": PAPERS})
        return
    print_table(["paper", "title"], [[name, title] for name, title in PAPERS.items()], left=2)


def _list_items(chosen: "Paper", sources: "Sources", as_json: bool) -> None:
    if as_json:
        document = {"command": "reproduce", "paper": chosen.name, "title": chosen.title}
        items = [
            {
                "name": item.name,
                "title": item.title,
                "long": item.long,
                "data": list(item.data),
                "missing": sources.missing(item.data),
                "runs": not item.data or bool(sources.here(item.data)),
            }
            for item in chosen.items
        ]
        print_json({**document, "items": items})
        return
    rows = [[item.name, item.title, _at_hand(item, sources), "long" if item.long else ""] for item in chosen.items]
    print_table(["item", "what", "data", ""], rows, title=chosen.title, left=4)
    missing = dict.fromkeys(name for item in chosen.items for name in sources.missing(item.data))
    if missing:
        say(f"\nMissing (DIR is {sources.folder}):")
        for name in missing:
            say(f"- {sources.instructions(name)}")


def _at_hand(item: "Item", sources: "Sources") -> str:
    if not item.data:
        return "made"
    return ", ".join(sources.here(item.data)) or "missing"


# -- JSON --------------------------------------------------------------------------------------------------------------


def _document(chosen: "Paper", outcomes: "list[Outcome]", written: list[Path]) -> dict[str, Any]:
    return {
        "command": "reproduce",
        "paper": chosen.name,
        "title": chosen.title,
        "items": [_item(outcome) for outcome in outcomes],
        "files": [str(path) for path in written],
    }


def _item(outcome: "Outcome") -> dict[str, Any]:
    from papers.results import Compared, Grid

    return {
        "name": outcome.item.name,
        "title": outcome.item.title,
        "ran": bool(outcome.parts),
        "found": outcome.verdict,
        "missing": list(outcome.missing),
        "text": [part for part in outcome.parts if isinstance(part, str)],
        "figures": [
            {
                "table": part.name,
                **dict(zip(part.labels, entry.labels, strict=True)),
                "measure": entry.name,
                "ours": entry.ours,
                "published": entry.published,
                "verdict": entry.verdict,
            }
            for part in outcome.parts
            if isinstance(part, Compared)
            for entry in part.entries
        ],
        "tables": [
            {"table": part.name, "columns": list(part.header), "rows": [list(map(str, row)) for row in part.rows]}
            for part in outcome.parts
            if isinstance(part, Grid)
        ],
        "seconds": outcome.seconds,
    }


if __name__ == "__main__":
    main(prog_name=PROGRAM)
