"""``ranksvm tune``: compare models, losses, weightings and scalers, each along C; choose, refit, save the choice."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ranksvm._util.text import power
from ranksvm.cli.comparison import (
    Comparison,
    Tried,
    check_models,
    chosen_values,
    combinations,
    described,
    model_options,
    tell_cost,
)
from ranksvm.cli.files import write_text
from ranksvm.cli.options.models import LOW_RANK_OPTIONS, pairs_as_text
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    OUTPUT_FILE,
    check_device_option,
    device_option,
    json_option,
    n_jobs_option,
    quiet_option,
    verbose_option,
)
from ranksvm.cli.options.training import (
    SETTINGS,
    c_range_option,
    check_choice_options,
    choice_options,
    data_options,
    parameter_options,
    settings_lines,
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
from ranksvm.cli.output.plot import check_plot, write_plot
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import print_json, print_table, seconds
from ranksvm.cli.rankers import with_scaler
from ranksvm.cli.terminal import say
from ranksvm.cli.training_data import TrainingData, metric_names, training_data


@click.command("tune", short_help="Compare settings, and choose the best.")
@click.argument("train", type=EXISTING_FILE)
@click.option("-o", "--output", type=OUTPUT_FILE, metavar="MODEL", help="Model file to write.")
@click.option(
    "--save-choice", type=OUTPUT_FILE, metavar="FILE", help="Write the best settings, for ranksvm train --settings."
)
@click.option("--plot", type=OUTPUT_FILE, metavar="FILE", help="Plot the scores against C (.png, .svg, .pdf).")
@c_range_option("2^-15:2^5")
@model_options
@parameter_options("pairs", compared=True)
@data_options
@choice_options
@parameter_options("solver")
@device_option
@verbose_option
@n_jobs_option
@json_option
@quiet_option
@debug_option
@click.pass_context
def tune_command(ctx: click.Context, **options: Any) -> None:
    """Choose how to train on TRAIN: the best combination of the models, losses, pairs and scalers given, and its C.

    Every combination is fitted for each C of --C-range and measured by --metric: on the validation data if --valid is
    given, else by cross-validation over folds of queries. The model of the best combination, fitted on all of TRAIN,
    is saved to MODEL.

    \b
    Examples:
      ranksvm tune train.txt --loss squared_hinge,hinge --pair-weighting uniform,per_query --save-choice best.json
      ranksvm tune train.txt --valid vali.txt --test test.txt --scaler none,query-minmax -o model.rsvm --plot c.png
      ranksvm tune train.txt --model linear,additive --step-weight 0.5,2 --interactions 0,8,32 -o model.rsvm
      ranksvm tune train.txt --valid vali.txt --kernel rbf,laplacian --low-rank factorized --rank 2,5 -o model.rsvm
    """
    from ranksvm._util.threads import effective_n_jobs

    # errors in any of these are reported before the data are read
    metrics = metric_names(options["metric"])
    options["metric"] = metrics[0]
    effective_n_jobs(options["n_jobs"])
    check_models(options)
    check_choice_options(True, options["valid"] is not None)
    check_device_option(options)
    options["Cs_given"] = ctx.get_parameter_source("Cs") is not ParameterSource.DEFAULT
    if options["plot"] is not None:
        check_plot(options["plot"])
    watch = Stopwatch()
    with Progress(options["quiet"], options["verbose"], iterations_from=2, fits_from=1) as progress:
        data = training_data(options, progress, watch)
        data.check_choice(options["folds"])
        for scaler in options["scaler"]:
            data.check_scaler(scaler)
        compared = combinations(options)
        listed = data.resolved(options | compared[0])["categorical"]
        data.check_features(listed, all(each["model"] == "additive" for each in compared), options["scaler"])
        comparison = Comparison(data, options, compared)
        comparison.check()
        tell_cost(comparison, data, options, progress)
        report = {"command": "tune", **described_data(data), **_choice(data, options)}
        ended_by = _compared(comparison, progress, watch)
        if ended_by is None:
            report |= _conclude(comparison, data, metrics, options, progress, watch)
    report |= {"interrupted": ended_by is not None, "seconds": watch.seconds}
    report["combinations"] = [_described(tried, comparison.ranked[0]) for tried in comparison.ranked]
    if comparison.tried:
        if options["as_json"]:
            print_json(report)
        else:
            _show(comparison, report, watch)
    if ended_by is not None:
        raise ended_by


def _compared(comparison: Comparison, progress: Progress, watch: Stopwatch) -> BaseException | None:
    """Compare all combinations; return the exception that ended the comparison, so that its results can be shown."""
    from ranksvm.exceptions import RankSVMError

    try:
        comparison.run(progress, watch)
    except (KeyboardInterrupt, RankSVMError) as error:
        return error
    return None


def _choice(data: TrainingData, options: dict[str, Any]) -> dict[str, Any]:
    """How the choice is made."""
    by = data.chosen_by(options["folds"])
    return {"metric": options["metric"], "convention": options["convention"], "by": by, "rule": options["rule"]}


def _conclude(
    comparison: Comparison,
    data: TrainingData,
    metrics: list[str],
    options: dict[str, Any],
    progress: Progress,
    watch: Stopwatch,
) -> dict[str, Any]:
    """Evaluate the chosen model, and write the requested files."""
    from ranksvm.model_files.persistence import save

    best = comparison.ranked[0]
    progress.now("Comparing the best with the second best")
    against = comparison.against_runner_up(watch)
    progress.now("Evaluating")
    scaler, X = data.scaled(best.settings["scaler"], watch)
    with watch("evaluating"):
        means = data.means(best.model, X, metrics, options["convention"])
    if options["plot"] is not None:
        write_plot(comparison, options["metric"], options["rule"], options["plot"])
    settings = _settings(best, options, data.parts["train"].feature_names)
    if options["save_choice"] is not None:
        found = {**_choice(data, options), "score": best.score, "standard_error": best.standard_error}
        write_text(options["save_choice"], settings_lines(settings, found))
    if options["output"] is not None:
        save(data.named(with_scaler(scaler, best.model)), options["output"])
    written = {name: options[name] for name in ("output", "save_choice", "plot")}
    for path in filter(None, written.values()):
        progress.line(f"Wrote {path}")
    return {
        "against_runner_up": against,
        "settings": settings,
        "chosen": fit_report(best.model, best.settings["scaler"], means, options["convention"]),
        "files": {
            "model": _name(written["output"]),
            "settings": _name(written["save_choice"]),
            "plot": _name(written["plot"]),
        },
    }


def _settings(best: Tried, options: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """The settings with which `ranksvm train` trains the best model again."""
    values = {**options, **best.settings, **chosen_values(best)}
    if best.settings["interactions"]:
        # the chosen interactions by name: at another C, the same number could choose other ones
        values["interactions"] = pairs_as_text(best.model.interactions_.tolist(), names) or 0
    low_rank = best.settings["low_rank"]
    if low_rank is not None:
        # the model does not take these options of `ranksvm train`
        values |= dict.fromkeys(("huber_width", "solver", "loss", "pair_selection", "pair_weighting"))
        if "max_iter" not in LOW_RANK_OPTIONS[low_rank]:
            values["max_iter"] = None
    if values["early_stopping_rounds"] is not None:
        # with this number of epochs, `ranksvm train` fits the same model without validation data
        values |= {"early_stopping_rounds": None, "max_epochs": best.model.best_iteration_}
    return {name: values[name] for name in SETTINGS if values[name] is not None}


def _described(tried: Tried, best: Tried) -> dict[str, Any]:
    return {
        **described(tried.settings),
        **chosen_values(tried),
        "score": tried.score,
        "standard_error": tried.standard_error,
        "seconds": tried.seconds,
        "chosen": tried is best,
        "candidates": candidates(tried.ranker),
    }


def _show(comparison: Comparison, report: dict[str, Any], watch: Stopwatch) -> None:
    _show_table(comparison, report)
    if report["interrupted"]:
        return
    say()
    best = comparison.ranked[0]
    fit = {**report["chosen"], "weights": report["weights"], "pairs_from": report["pairs_from"]}
    notes = edges(candidates(best.ranker), fit)
    if (against := report["against_runner_up"]) is not None:
        low, high, mean = (f"{value + 0.0:+.4f}" for value in (*against["confidence_interval"], against["difference"]))
        notes.append(("over runner-up", f"{mean} (95 % {low} to {high}, p = {against['p_value']:.2g})"))
    files = [(name, path) for name, path in report["files"].items() if path is not None]
    show_fit(fit, c_names([best.C])[best.C], notes, files, watch)


def _show_table(comparison: Comparison, report: dict[str, Any]) -> None:
    ranked = comparison.ranked
    columns = comparison.columns
    with_gamma = any(tried.gamma is not None for tried in ranked)
    rows = [
        [
            # the mark is in front of the first cell, so it needs no column of its own
            f"{'*' if tried is ranked[0] else ' '} {first}",
            *others,
            power(tried.C),
            *(["-" if tried.gamma is None else power(tried.gamma)] if with_gamma else []),
            score(tried.score, tried.standard_error),
            seconds(tried.seconds),
        ]
        for tried in ranked
        for first, *others in [comparison.cells(tried.settings)]
    ]
    total = len(comparison.combinations)
    compared = f"{len(ranked)} of {total} compared" if len(ranked) < total else "best first"
    title = f"By {report['metric']} on {report['by']}{by_rule(report['rule'])}: {compared} (* chosen)"
    metric = score_heading(f"{report['metric']} ({report['convention']})", [tried.standard_error for tried in ranked])
    headings = [f"  {columns[0]}", *columns[1:], "C", *["gamma"] * with_gamma, metric, "time"]
    print_table(headings, rows, title, left=len(columns))


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)
