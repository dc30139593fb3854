"""``ranksvm vacuum``: make the log of a service smaller."""

import time

import click

from ranksvm.cli.options.shared import Number, json_option
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.tables import count, print_facts, print_json


@click.command("vacuum", short_help="Make the log of a service smaller.")
@click.argument("store")
@click.option("--retain", type=Number(), metavar="DAYS", help="Remove older events first.  [default: keep all]")
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
