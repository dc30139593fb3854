"""``ranksvm bias``: how likely users are to examine each rank, from a click log."""

from pathlib import Path
from typing import Any

import click

from ranksvm.cli.clicks import open_log
from ranksvm.cli.options.paths import titled
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    Name,
    check_reading_options,
    json_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.plot import check_plot, save_figure
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, number, print_json, print_table
from ranksvm.cli.terminal import say


@click.command("bias", short_help="Estimate the position bias of a click log.")
@click.argument("log", type=EXISTING_FILE)
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="FILE", help="JSON file to write, for --bias.")
@click.option(
    "--method",
    type=Name(["harvest", "swap", "em"]),
    default="harvest",
    show_default=True,
    help="Estimate from lists of several rankers (harvest), from ranks exchanged at random (swap), or by expectation "
    "maximization (em).",
)
@click.option(
    "--curve",
    type=Name(["free", "power"]),
    default="free",
    show_default=True,
    help="Estimate a propensity for each rank (free), or only the exponent of a power of the rank (power), which suits "
    "small logs.",
)
@click.option("--trust", is_flag=True, help="Also estimate trust bias: an offset for each rank.")
@click.option("--ranks", type=click.IntRange(min=2), metavar="N", help="Use only the first N ranks.  [default: all]")
@click.option("--features", type=EXISTING_FILE, metavar="DATA", help="Features of the documents, for --method em.")
@click.option(
    "--bootstrap",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    metavar="N",
    help="Samples of queries for the intervals; 0: none.",
)
@click.option("--plot", type=OUTPUT_FILE, metavar="FILE", help="Draw the propensities (.png, .svg, .pdf).")
@reading_options
@json_option
@quiet_option
@debug_option
def bias_command(log: Path, **options: Any) -> None:
    """Estimate the propensities of ranks from LOG, a click log: Parquet, CSV, TSV, events of Metarank, or the store of
    `ranksvm serve`.

    Columns of LOG: query, document, rank, clicked; optionally impression, ranker, base_rank (the rank before ranks were
    exchanged at random).

    \b
    Examples:
      ranksvm bias log.parquet -o bias.json
      ranksvm train train.txt --clicks log.parquet --bias bias.json -o model.rsvm
      ranksvm evaluate train.txt --clicks log.parquet --bias bias.json --model model.rsvm
    """
    from ranksvm.clicks import position_bias

    if options["features"] is not None and options["method"] != "em":
        raise click.UsageError("--features is for --method em.")
    check_reading_options(options["features"] is not None)
    if options["plot"] is not None:
        check_plot(options["plot"])
    with Progress(options["quiet"]) as progress:
        data = None
        if options["features"] is not None:
            from ranksvm.cli.files import read

            data = read(options["features"], progress, Stopwatch(), options["reading"], require_labels=False)
        progress.now(f"Reading {titled(log)}")
        bias = position_bias(
            open_log(log, policy="fair-pairs" if options["method"] == "swap" else None),
            options["method"],
            data=data,
            curve=options["curve"],
            trust=options["trust"],
            n_ranks=options["ranks"],
            n_bootstrap=options["bootstrap"],
        )
        if options["output"] is not None:
            bias.save(options["output"])
            progress.line(f"Wrote {options['output']}")
        if options["plot"] is not None:
            from ranksvm.plotting.figures import axes_in_memory

            axes = axes_in_memory(figsize=(6.4, 4.0), layout="constrained")
            bias.plot(axes)
            save_figure(axes.figure, options["plot"])
            progress.line(f"Wrote {options['plot']}")
    if options["as_json"]:
        content = bias.to_dict()
        print_json({"command": "bias", "log": str(log), "output": _text(options["output"]), **content})
        return
    columns = {name: values for name, values in bias._table().columns.items() if name != "rank"}
    rows = [
        [str(rank + 1), *(number(float(values[rank])) for values in columns.values())] for rank in range(bias.n_ranks)
    ]
    intervals = "" if bias.low is None else f", {100 * bias.confidence:g} % intervals"
    title = f"{titled(log)}: {count(bias.n_impressions)} impressions, {bias.method}{intervals}"
    print_table(["rank", *columns], rows, title=title)
    for sentence in bias.diagnosis:
        say(sentence)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
