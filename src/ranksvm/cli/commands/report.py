"""``ranksvm report``: all about a model, in one HTML file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm._util.tables import CORRECTIONS
from ranksvm.cli.features import for_model
from ranksvm.cli.files import (
    is_model,
    load_model,
    load_scorer,
    model_scores,
    names_of,
    read,
    read_judgments,
    read_numbers,
    read_rankings,
    trec_kind,
)
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    Name,
    convention_option,
    given,
    json_option,
    metrics_option,
    n_jobs_option,
    qrels_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import command_line, debug_option
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, print_json

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.cli.features import Model
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.report import Report


@click.command("report", short_help="Write a report on a model: one HTML file.")
@click.argument("model", type=EXISTING_FILE)
@click.option("--test", type=EXISTING_FILE, required=True, metavar="DATA", help="Data to measure the model on.")
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="FILE", help="HTML file to write.")
@click.option(
    "--train", type=EXISTING_FILE, metavar="DATA", help="Training data of the model, for intervals of its weights."
)
@click.option(
    "--baseline",
    "baselines",
    type=EXISTING_FILE,
    multiple=True,
    metavar="FILE",
    help="Another model, a TREC run, or a file with one score per line, to compare the model with; may be repeated.",
)
@metrics_option("ndcg@10,ndcg@1,ndcg@5,map,mrr,pairwise_accuracy")
@convention_option()
@click.option(
    "--correction",
    type=Name(list(CORRECTIONS)),
    default="holm",
    show_default=True,
    help="Correction of the p-values for the number of baselines.",
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of the worst queries to explain document by document.",
)
@click.option("--title", metavar="TITLE", help="Title of the report.  [default: Report on MODEL]")
@n_jobs_option
@qrels_option
@reading_options
@json_option
@quiet_option
@debug_option
@click.pass_context
def report_command(ctx: click.Context, **options: Any) -> None:
    """Write a report on MODEL to one HTML file, which opens offline in any browser and can be printed.

    It describes the data, the fit and its certificate, the choice of C, metrics with intervals and paired tests, NDCG@k
    curves, wins and losses by query, weights (or shapes) and importance, the worst queries, and scores by label.
    Queries are compared by the first of the --metrics. Needs pip install "ranksvm[report]".

    \b
    Examples:
      ranksvm report model.rsvm --test test.txt -o report.html
      ranksvm report model.rsvm --test test.txt --baseline old.rsvm --baseline bm25.run -o report.html
    """
    from ranksvm.metrics import parse_metrics
    from ranksvm.report.report import check_jinja

    if given("correction") and not options["baselines"]:
        raise click.UsageError("--correction is for comparisons with baselines: give --baseline too.")
    check_jinja()
    parse_metrics(options["metrics"])
    watch = Stopwatch()
    with Progress(options["quiet"], iterations_from=1) as progress:
        report = _report(options, command_line(ctx), progress, watch)
        report.save(options["output"])
        progress.line(f"Wrote {options['output']}: {count(len(report.html.encode()))} bytes")
    if options["as_json"]:
        print_json(
            {
                "command": "report",
                "report": str(options["output"]),
                "model": str(options["model"]),
                "data": str(options["test"]),
                "train": None if options["train"] is None else str(options["train"]),
                "convention": options["convention"],
                "systems": [{"name": name, "metrics": found.means} for name, found in report.evaluations.items()],
                "comparisons": [test.to_dict() for test in report.comparisons],
                "correction": options["correction"],
                "bytes": len(report.html.encode()),
                "seconds": watch.seconds,
            }
        )


def _report(options: dict[str, Any], command: str, progress: Progress, watch: Stopwatch) -> "Report":
    """The report; features of data and models are matched by name."""
    from ranksvm.report import make_report

    loaded, path = load_model(options["model"]), options["test"]
    name, *names = names_of([options["model"], *options["baselines"]])
    others = [load_scorer(file) if is_model(file) else None for file in options["baselines"]]
    qrels = read_judgments(options["qrels"])
    models = [loaded, *(scorer for scorer in others if scorer is not None)]
    test = read(path, progress, watch, options["reading"], qrels=qrels, models=models)
    baselines = {}
    for other, scorer, file in zip(names, others, options["baselines"], strict=True):
        progress.now(f"Scoring with {file}")
        baselines[other] = _given_scores(file, test) if scorer is None else model_scores(scorer, test, path)
    train = None
    if options["train"] is not None:
        train = read(options["train"], progress, watch, options["reading"], qrels=qrels, models=[loaded])
    progress.now("Measuring")
    with watch("reporting"):
        model, data = _matched(loaded, test, path)
        return make_report(
            model,
            data,
            train=None if train is None else _matched(loaded, train, options["train"])[1],
            baselines=baselines,
            metrics=options["metrics"],
            convention=options["convention"],
            correction=options["correction"],
            n_worst=options["worst"],
            name=name,
            title=options["title"],
            command=command,
            n_jobs=options["n_jobs"],
        )


def _given_scores(path: Path, test: "RankingData") -> "np.ndarray":
    """The scores in a file, or those that rank the test data as a run does."""
    from ranksvm.exceptions import DataError

    if trec_kind(path) != "run":
        return read_numbers(path, test.n_rows, "score")
    try:
        return read_rankings(path).scores_of(test)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _matched(model: "Model", data: "RankingData", path: Path) -> "tuple[Model, RankingData]":
    """The model without feature names, and the data with their features in the model's order."""
    from ranksvm.datasets.ranking_data import RankingData

    model, X, names = for_model(model, data, path)
    return model, RankingData(X, data.y, data.qid, data.docid, None if names is None else tuple(names))
