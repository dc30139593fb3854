"""``ranksvm simulate``: drive a running service with labeled data and simulated users."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.files import read, read_judgments
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    json_option,
    metrics_option,
    qrels_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, number, print_facts, print_json, print_table, queries, seconds
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    from ranksvm.serving.simulation import Connection

# number of queries from one progress line to the next
_EVERY = 100


@click.command("simulate", short_help="Drive a running service with simulated users.")
@click.argument("url")
@click.argument("data", type=EXISTING_FILE)
@click.option(
    "--clicks",
    type=click.Choice(["position", "trust", "cascade", "none"]),
    default="position",
    show_default=True,
    help="Users examine rank r with probability 1/r (position), also trust the first ranks (trust), or read down to "
    "their first click (cascade); the higher the label, the more they click. none: labels are sent.",
)
@click.option(
    "--drift",
    type=click.Choice(["none", "sudden", "gradual"]),
    default="none",
    show_default=True,
    help="Move the features to other columns: in the second half of the queries (sudden), or more and more often "
    "(gradual).",
)
@click.option(
    "--passes", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Passes over the data."
)
@click.option(
    "--in-step", is_flag=True, help="Send each query only after the service has learned from the previous one."
)
@click.option("--key", envvar="RANKSVM_KEY", metavar="KEY", help="API key.  [default: $RANKSVM_KEY]")
@click.option(
    "--random-state",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="SEED",
    help="Seed of the clicks.",
)
@metrics_option("ndcg@10")
@qrels_option
@reading_options
@json_option
@quiet_option
@debug_option
def simulate_command(url: str, data: Path, **options: Any) -> None:
    """Have the service at URL rank every query of DATA, and send it the clicks of simulated users.

    It prints the metrics of the rankings as they were shown, computed from the true labels. It also prints the
    estimates of the service, which come from clicks alone and cover all rankings that the service has ever made.

    \b
    Examples:
      ranksvm simulate http://localhost:8765 train.txt
      ranksvm simulate http://localhost:8765 train.txt --clicks none --in-step
    """
    from ranksvm.serving.simulation import Connection, each_query, simulate

    watch, feedback = Stopwatch(), "labels" if options["clicks"] == "none" else options["clicks"]
    with Progress(options["quiet"]) as progress:
        rows = read(data, progress, watch, options["reading"], qrels=read_judgments(options["qrels"]))
        stream = each_query(rows, passes=options["passes"], drift=options["drift"])
        connection, found = Connection(url, options["key"]), None
        try:
            for number_, found in enumerate(
                simulate(
                    connection,
                    stream,
                    feedback=feedback,
                    metrics=options["metrics"],
                    in_step=options["in_step"],
                    random_state=options["random_state"],
                ),
                1,
            ):
                if number_ % _EVERY == 0:
                    means = ", ".join(f"{name} {number(mean)}" for name, mean in found.metrics.means.items())
                    progress.iteration(f"{queries(number_)}: {means}")
            overview = _learned(connection, 0 if found is None else found.last)
        finally:
            connection.close()
    assert found is not None
    report = {
        "command": "simulate",
        "url": url,
        "data": str(data),
        "feedback": feedback,
        "drift": options["drift"],
        "queries": found.metrics.n_queries,
        "clicks": found.n_clicks,
        "last": found.last,
        "metrics": found.metrics.means,
        "by_clicks": overview["clicks"],
        "seconds": found.seconds,
    }
    if options["as_json"]:
        print_json(report)
        return
    rows_ = [[name, number(mean)] for name, mean in report["metrics"].items()]
    title = f"{data}: {queries(report['queries'])} as they were shown, by their true labels"
    print_table(["metric", "mean"], rows_, title=title)
    say()
    _show_estimates(report["by_clicks"])
    print_facts(
        [
            ("feedback", "labels" if feedback == "labels" else f"{count(found.n_clicks)} clicks ({feedback} model)"),
            ("last feedback", f"entry {count(found.last)} of the log"),
            ("time", seconds(found.seconds)),
        ]
    )


def _learned(connection: "Connection", last: int) -> dict[str, Any]:
    """The overview of the service, after it has learned from the last feedback, or after 10 seconds."""
    import time

    for _ in range(100):
        overview = connection.ask("GET", "/v1/models")
        if overview["learning"]["position"] >= last:
            break
        time.sleep(0.1)
    return overview


def _show_estimates(clicks: dict[str, Any]) -> None:
    """Print the quality of the models, as estimated from clicks."""
    if not clicks["estimates"]:
        return
    rows = [
        [name, f"{number(found['mean'])} [{number(found['low'])}, {number(found['high'])}]", count(found["rankings"])]
        for name, found in clicks["estimates"].items()
    ]
    heading = f"{clicks['metric']} [95 % interval]"
    title = "Estimates of the service from clicks, corrected for position"
    print_table(["model", heading, "rankings"], rows, title=title)
    say()
