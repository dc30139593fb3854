"""``ranksvm replay``: rebuild any past model of a service from its log."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.features import name_features
from ranksvm.cli.options.shared import OUTPUT_FILE, json_option, quiet_option
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress
from ranksvm.cli.output.tables import count, number, print_facts, print_json, seconds

if TYPE_CHECKING:
    from ranksvm.serving.replay import Replay


@click.command("replay", short_help="Rebuild any past model of a service.")
@click.argument("store")
@click.option(
    "--until", type=click.IntRange(min=0), metavar="SEQ", help="Last feedback to learn from.  [default: the newest]"
)
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="MODEL", help="Model file to write.  [default: only check]")
@json_option
@quiet_option
@debug_option
def replay_command(store: str, until: int | None, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Learn again from the log in STORE (a file, or postgresql://...) of `ranksvm serve`, which may be running.

    The digests of the log are checked on the way. Whenever the replay reaches a stored checkpoint, its models must have
    the same bytes as the checkpoint.

    \b
    Examples:
      ranksvm replay events.db
      ranksvm replay events.db --until 1000 -o model.rsvm
    """
    from ranksvm.serving.learning import CHAMPION
    from ranksvm.serving.replay import replay
    from ranksvm.serving.store import open_store

    opened = open_store(store, create=False)
    try:
        with Progress(quiet) as progress:
            found = replay(
                opened, until=until, tell=lambda seq, last: progress.now(f"Entry {count(seq)} of {count(last)}")
            )
            if output is not None:
                from ranksvm.model_files.persistence import save

                learning = found.learning
                save(name_features(learning.models[CHAMPION], learning.names_given), output)
                progress.line(f"Wrote {output}")
    finally:
        opened.close()
    report = _report(store, found, output)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _report(store: str, found: "Replay", output: Path | None) -> dict[str, Any]:
    learning = found.learning
    return {
        "command": "replay",
        "store": store,
        "model": None if output is None else str(output),
        "first": found.first,
        "last": learning.position,
        "checkpoints_compared": len(found.compared),
        "metric": learning.settings.metric,
        "measures": {name: {"queries": one.n_queries, "mean": one.mean} for name, one in learning.measures.items()},
        "seconds": found.seconds,
    }


def _show(report: dict[str, Any]) -> None:
    entries = f"{count(report['first'])} to {count(report['last'])}" if report["last"] else "none yet"
    means = [
        (f"{report['metric']} ({name})", f"{number(one['mean'])}, {count(one['queries'])} queries")
        for name, one in report["measures"].items()
        if one["mean"] is not None
    ]
    print_facts(
        [
            ("entries", f"{entries}; every digest is right"),
            ("checkpoints", f"{count(report['checkpoints_compared'])} on the way, with the same bytes"),
            *means,
            ("time", seconds(report["seconds"])),
            ("model", report["model"] or "not written: -o MODEL writes it"),
        ]
    )
