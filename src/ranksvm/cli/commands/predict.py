"""``ranksvm predict``: one score per row of a data file."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.files import load_scorer, model_scores_on, read, write_text
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    TEXT_FILE,
    check_run_name,
    json_option,
    quiet_option,
    reading_options,
    run_name_option,
    scoring_device,
    scoring_device_option,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import counted, print_json

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.datasets.ranking_data import RankingData


@click.command("predict", short_help="Score the rows of a data file.")
@click.argument("model", type=EXISTING_FILE)
@click.argument("data", type=EXISTING_FILE)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["scores", "trec"]),
    default="scores",
    show_default=True,
    help="scores: one per line, in the order of the data; trec: a run file of trec_eval.",
)
@run_name_option
@scoring_device_option
@click.option("-o", "--output", type=TEXT_FILE, metavar="FILE", help="File to write.  [default: stdout]")
@reading_options
@json_option
@quiet_option
@debug_option
def predict_command(
    model: Path,
    data: Path,
    layout: str,
    run_name: str,
    device: str | None,
    output: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Score every row of DATA with MODEL: one score per line, in the order of the data.

    A higher score means a better rank within the query; scores of different queries are not comparable.

    \b
    Examples:
      ranksvm predict model.rsvm test.txt -o scores.txt
      ranksvm predict model.rsvm test.txt --format trec --run-name ranksvm -o run.txt
    """
    check_run_name(layout == "trec", "--format trec")
    device = scoring_device(device)
    watch = Stopwatch()
    with Progress(quiet) as progress:
        ranker = load_scorer(model)
        rows = read(data, progress, watch, reading, require_labels=False, models=[ranker])
        with watch("predicting"):
            scores, place = model_scores_on(device, ranker, rows, data)
        lines = _lines(rows, scores, layout, run_name)
        if output is not None:
            write_text(output, lines)
            what = "score" if layout == "scores" else "document"
            progress.line(f"Wrote {output}: {counted(len(scores), what)}")
    if as_json:
        document = {
            "command": "predict",
            "model": str(model),
            "data": str(data),
            "rows": len(scores),
            "device": place or "cpu",
            "output": None if output is None else str(output),
            "scores": scores if output is None else None,
            "seconds": watch.seconds,
        }
        print_json(document)
    elif output is None:
        write_text(None, lines)


def _lines(rows: "RankingData", scores: "np.ndarray", layout: str, run_name: str) -> Iterable[str]:
    if layout == "scores":
        # repr: the shortest text that reads back as the same number
        return map(repr, scores.astype(float).tolist())
    from ranksvm.datasets.runs import Run
    from ranksvm.datasets.trec_files import run_lines

    return run_lines(Run.from_scores(rows, scores.astype(float), run_name))
