"""``ranksvm keys``, ``replay`` and ``vacuum``: commands on the log of a service, their argument STORE."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.features import name_features
from ranksvm.cli.options.paths import EXISTING_STORE, OUTPUT_FILE
from ranksvm.cli.options.shared import CommaList, Number, json_option, list_option, quiet_option
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress
from ranksvm.cli.output.tables import count, number, print_facts, print_json, print_table, seconds
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    from ranksvm.serving.replay import Replay


@click.command("keys", short_help="List, create and revoke API keys of a service.")
@click.argument("store")
@click.option("--add", metavar="NAME", help="Create a key. It is printed once; only its hash is stored.")
@list_option(
    "--scopes",
    type=CommaList(),
    metavar="S,S,...",
    help="What the new key allows: rank, feedback, read (page, metrics, explanations), admin (roll-back).  "
    "[default: rank,feedback]",
)
@click.option("--revoke", metavar="NAME", help="Revoke a key.")
@json_option
@debug_option
def keys_command(store: str, add: str | None, scopes: list[str] | None, revoke: str | None, as_json: bool) -> None:
    """List the API keys of the service whose log is in STORE, create one, or revoke one.

    A running service applies a change within seconds. Once a key has been created, every request needs one, even after
    the last key is revoked.

    \b
    Examples:
      ranksvm keys events.db --add shop
      ranksvm keys events.db --add operator --scopes read,admin
    """
    from ranksvm.exceptions import OptionError
    from ranksvm.serving.access import add_key
    from ranksvm.serving.store import open_store

    if scopes is not None and add is None:
        raise click.UsageError("--scopes says what a new key allows: give --add too.")
    opened = open_store(store, create=add is not None)
    try:
        key = None if add is None else add_key(opened, add, scopes or ["rank", "feedback"])
        if revoke is not None and not opened.remove_key(revoke):
            raise OptionError(f"{store} has no key {revoke!r}.")
        had_keys = opened.had_keys()
        known = [(name, allowed.split(",")) for name, _, allowed in opened.api_keys()]
    finally:
        opened.close()
    if as_json:
        listed = [{"name": name, "scopes": allowed} for name, allowed in known]
        print_json({"command": "keys", "store": store, "keys": listed, "key": key})
    elif key is not None:
        say(key)
    elif known:
        print_table(["key", "scopes"], [[name, ", ".join(allowed)] for name, allowed in known], left=2)
    else:
        text = "There are no keys: the service answers only requests from its own machine."
        if had_keys:
            text = "No keys are left, so that nobody has access: make one with --add, or serve with --insecure."
        say(text, err=True)


@click.command("replay", short_help="Rebuild any past model of a service.")
@click.argument("store", type=EXISTING_STORE)
@click.option(
    "--until",
    type=click.IntRange(min=0),
    metavar="SEQ",
    help="Number of the last entry of the log to learn from.  [default: the newest]",
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
    report = _replay_report(store, found, output)
    if as_json:
        print_json(report)
    else:
        _show_replay(report)


def _replay_report(store: str, found: "Replay", output: Path | None) -> dict[str, Any]:
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


def _show_replay(report: dict[str, Any]) -> None:
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


@click.command("vacuum", short_help="Make the log of a service smaller.")
@click.argument("store", type=EXISTING_STORE)
@click.option(
    "--retain", type=Number(), metavar="DAYS", help="First remove events that are older.  [default: keep all]"
)
@json_option
@debug_option
def vacuum_command(store: str, retain: float | None, as_json: bool) -> None:
    """Give back the disk space of removed events in STORE (a file, or postgresql://...) of `ranksvm serve`.

    `ranksvm serve --retain` removes events every hour, and uses their space again; the file stays as large as it was.
    This command copies everything that is left. The copies need free disk space for a while: up to twice the size of a
    file, part of it in the folder of temporary files. A running service ranks during this time, but cannot store
    feedback: with SQLite it answers 503 after five seconds; with PostgreSQL, `VACUUM FULL` locks each table while it
    copies it, so feedback waits until the table is copied.

    \b
    Examples:
      ranksvm vacuum events.db
      ranksvm vacuum events.db --retain 30
    """
    from ranksvm.serving.learner import begin
    from ranksvm.serving.store import open_store

    opened = open_store(store, create=False)
    try:
        before, removed = opened.size(), 0
        if retain is not None and opened.checkpoint() is not None:
            spare = begin(opened, None, None, at=0.0).settings.looks_back
            removed = opened.remove_before(time.time() - 86_400.0 * retain, spare=spare)
        opened.vacuum()
        after = opened.size()
    finally:
        opened.close()
    if as_json:
        found = {"command": "vacuum", "store": store, "removed": removed, "bytes_before": before, "bytes": after}
        print_json(found)
    else:
        sizes = [("before", f"{before / 1e6:,.1f} MB"), ("after", f"{after / 1e6:,.1f} MB")]
        print_facts([("events removed", count(removed)), *sizes])
