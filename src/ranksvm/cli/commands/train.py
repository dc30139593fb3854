"""``ranksvm train``: read, scale, fit (C given or chosen), measure, save."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ranksvm._util.text import power
from ranksvm.cli.clicks import ClickChoice, check_click_choice, chooses_by_clicks
from ranksvm.cli.options.models import check_additive_options, check_kernel_options, check_low_rank_options
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    Name,
    Number,
    check_device_option,
    device_option,
    json_option,
    n_jobs_option,
    quiet_option,
    verbose_option,
)
from ranksvm.cli.options.training import (
    c_range_option,
    check_choice_options,
    choice_options,
    data_options,
    parameter_options,
    settings_option,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.fit_report import (
    by_rule,
    c_names,
    candidates,
    described_data,
    edges,
    fit_report,
    score,
    score_heading,
    show_fit,
)
from ranksvm.cli.output.plot import check_plot, write_choice
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import number, print_json, print_table
from ranksvm.cli.rankers import chooses, evaluates_while_fitting, make_ranker, with_scaler
from ranksvm.cli.terminal import say
from ranksvm.cli.training_data import TrainingData, metric_names, training_data

if TYPE_CHECKING:
    from ranksvm.cli.rankers import Estimator

# Settings that may be compared in addition to C -> how a value is displayed.
_COMPARED: dict[str, Callable[[Any], str]] = {"gamma": power, "step_weight": "{:g}".format, "interactions": str}


@click.command("train", short_help="Train a model.")
@click.argument("train", type=EXISTING_FILE)
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="MODEL", help="Model file to write.")
@click.option("-C", "C", type=Number(), metavar="C", help="Weight of one pair.  [default: 1; with --clicks: chosen]")
@click.option(
    "--plot",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Plot the scores that decided the choice of C and gamma (.png, .svg, .pdf).",
)
@c_range_option()
@parameter_options("pairs")
@parameter_options("additive", "kernel", "low_rank")
@settings_option
@data_options
@choice_options
@parameter_options("solver")
@click.option(
    "--stopping",
    type=Name(["gap", "gradient"]),
    help="gap: stop when the relative duality gap is below --tol. gradient (with --solver tron): stop when the norm "
    "of the gradient is at most --tol times its norm at weights of 0, as published programs do.  [default: gap]",
)
@click.option(
    "--keep-on-interrupt", is_flag=True, help="Ctrl-C during training stops it and saves the best model so far."
)
@click.option(
    "--cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the cache of a TRAIN larger than memory, which later runs use again.  [default: ~/.cache/ranksvm]",
)
@device_option
@verbose_option
@n_jobs_option
@json_option
@quiet_option
@debug_option
@click.pass_context
def train_command(ctx: click.Context, **options: Any) -> None:
    """Train a RankSVM on the data file TRAIN (LETOR text, CSV, TSV, Parquet or cache).

    The model is linear unless --model additive, --kernel or --low-rank is given.

    A linear or additive model can be trained on a file larger than --memory-limit: the file is converted to a cache,
    which is read in passes.

    With --C-range (and --gamma-range) the best C is chosen by --metric: on the validation data if --valid is given,
    else by cross-validation over folds of queries. With --clicks and without -C, C is chosen from --C-range, or from
    default values, by DCG@10, which is estimated from the clicks on a quarter of the queries. (With --valid and
    --C-range, C is chosen on the validation data.) The model is saved to MODEL, with its scaler.

    \b
    Examples:
      ranksvm train train.txt -C 0.1 -o model.rsvm
      ranksvm train train.txt --valid vali.txt --test test.txt --C-range 2^-15:2^5 -o model.rsvm
      ranksvm train train.txt --settings best.json -o model.rsvm
      ranksvm train big.txt.gz --memory-limit 2GB -C 0.1 -o model.rsvm
      ranksvm train train.txt --model additive --interactions auto --C-range 2^-12:2^2 -o model.rsvm
      ranksvm train train.txt --kernel rbf --gamma 0.1 -C 0.1 -o model.rsvm
      ranksvm train train.txt --clicks log.parquet --bias bias.json -o model.rsvm
      ranksvm train train.txt --low-rank factorized --valid vali.txt --early-stopping-rounds 20 -o model.rsvm
    """
    if options["Cs"] is not None and ctx.get_parameter_source("C") is ParameterSource.DEFAULT_MAP:
        options["C"] = None  # the C of a settings file
    if options["C"] is not None and options["Cs"] is not None:
        raise click.UsageError("give -C or --C-range, not both.")
    options["by_clicks"] = chooses_by_clicks(options)
    if options["by_clicks"]:
        check_click_choice(ctx, options)
    elif options["Cs"] is None and options["C"] is None:
        options["C"] = 1.0
    if options["stopping"] is not None:
        _check_stopping(options)
    check_additive_options(options)
    check_low_rank_options(ctx, options)
    if options["low_rank"] is None:
        check_kernel_options(options)
    check_device_option(options)
    if not options["by_clicks"]:
        check_choice_options(chooses(options), options["valid"] is not None)
    if options["plot"] is not None:
        if not chooses(options) or options["by_clicks"]:
            raise click.UsageError("--plot draws the scores of a range: give --C-range or --gamma-range.")
        check_plot(options["plot"])
    watch = Stopwatch()
    report = _train(options, watch)
    if options["as_json"]:
        print_json(report)
    else:
        _show(report, watch)


def _check_stopping(options: dict[str, Any]) -> None:
    if options["model"] == "additive" or any(options[name] for name in ("Cs", "gammas", "low_rank")):
        raise click.UsageError("--stopping is for one C of a linear or kernel model: give no ranges.")


def _train(options: dict[str, Any], watch: Stopwatch) -> dict[str, Any]:
    from ranksvm.model_files.persistence import save

    # an invalid metric is reported before the data are read
    metrics = metric_names(options["metric"])
    options["metric"] = metrics[0]
    by_clicks, choosing = options["by_clicks"], chooses(options) and not options["by_clicks"]
    # For a range of C, or for epochs, a line per iteration would fill a log with hundreds of lines.
    iterations_from = 2 if choosing or by_clicks else int(options["low_rank"] == "factorized")
    choice: ClickChoice | Estimator
    with Progress(options["quiet"], options["verbose"], iterations_from=iterations_from) as progress:
        data = training_data(options, progress, watch)
        data.check_scaler(options["scaler"])
        if choosing:
            data.check_choice(options["folds"])
        options = data.resolved(options)
        data.check_features(options["categorical"], options["model"] == "additive", [options["scaler"]])
        progress.now("Scaling features")
        scaler, X = data.scaled(options["scaler"], watch)
        progress.now("Training")
        if by_clicks:
            with watch("reading"):
                choice = ClickChoice(options)
            with watch("training"):
                ranker = choice.fit(data.parts["train"], X["train"]).ranker_
        else:
            # the ranker is made before the timer starts, because making it imports its class
            choice = make_ranker(options, only_fit=True)
            with watch("training"):
                ranker = data.fit(choice, X, evaluates_while_fitting(options))
        progress.now("Evaluating")
        with watch("evaluating"):
            means = data.means(ranker, X, metrics, options["convention"])
        save(data.named(with_scaler(scaler, ranker)), options["output"])
        progress.line(f"Saved {options['output']}")
        if options["plot"] is not None:
            write_choice(ranker, options["metric"], options["rule"], options["plot"])
            progress.line(f"Wrote {options['plot']}")
    report = {
        "command": "train",
        "model": str(options["output"]),
        "plot": None if options["plot"] is None else str(options["plot"]),
        **described_data(data),
        **fit_report(ranker, options["scaler"], means, options["convention"]),
        "seconds": watch.seconds,
        "selection": None,
    }
    if choosing or by_clicks:
        report["selection"] = _selection(choice, data, options)
    return report


def _selection(ranker: Any, data: TrainingData, options: dict[str, Any]) -> dict[str, Any]:
    if isinstance(ranker, ClickChoice):
        found = {"metric": ranker.metric_, "convention": None, "by": ranker.by, "rule": "best"}
        return found | {"candidates": candidates(ranker), "chosen": ranker.Cs_.tolist().index(ranker.ranker_.C)}
    return {
        "metric": options["metric"],
        "convention": options["convention"],
        "by": data.chosen_by(options["folds"]),
        "rule": options["rule"],
        "candidates": candidates(ranker),
        "chosen": ranker.best_iteration_ - 1,
    }


def _show(report: dict[str, Any], watch: Stopwatch) -> None:
    selection = report["selection"]
    tried = selection["candidates"] if selection else [{"C": report["C"], "gamma": None}]
    # a C is written the same way in the table and below it
    names = c_names(sorted({item["C"] for item in tried}))
    notes = []
    if selection:
        _show_selection(report, names)
        say()
        notes = edges(tried, report)
    files = [(name, report[name]) for name in ("model", "plot") if report[name] is not None]
    show_fit(report, names[report["C"]], notes, files, watch)


def _show_selection(report: dict[str, Any], names: dict[float, str]) -> None:
    """The score of every C; if several gammas, or settings of additive models, were tried, each has its own column."""
    selection = report["selection"]
    tried = selection["candidates"]
    compared = [name for name in _COMPARED if len({item.get(name) for item in tried}) > 1]
    how = f"by {selection['metric']} on {selection['by']}{by_rule(selection['rule'])}"
    if not compared:
        rows = [
            [names[item["C"]], score(item["score"], item["standard_error"]), "chosen" * (item["C"] == report["C"])]
            for item in tried
        ]
        convention = selection["convention"]
        metric = selection["metric"] + (f" ({convention})" if convention else "")
        heading = score_heading(metric, [item["standard_error"] for item in tried])
        print_table(["C", heading, ""], rows, f"C {how}")
        return
    settings = [tuple(_COMPARED[name](item[name]) for name in compared) for item in tried]
    cells = {
        (item["C"], settings[place]): "* " * (place == selection["chosen"]) + number(item["score"])
        for place, item in enumerate(tried)
    }
    columns = list(dict.fromkeys(settings))
    rows = [[name, *(cells[C, setting] for setting in columns)] for C, name in names.items()]
    words = [name.replace("_", " ") for name in compared]
    title = f"{', '.join(['C', *words[:-1]])} and {words[-1]} {how} (* chosen), convention {report['convention']}"
    print_table([f"C \\ {', '.join(words)}", *map(", ".join, columns)], rows, title)
