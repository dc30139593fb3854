"""``ranksvm folds``: choose, train and test a model on each official fold of a data set, and show one table."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from ranksvm._util.text import power
from ranksvm.cli.files import write_text
from ranksvm.cli.options.models import check_additive_options, check_kernel_options, check_low_rank_options
from ranksvm.cli.options.paths import is_stdout
from ranksvm.cli.options.shared import (
    OUTPUT_FILE,
    TEXT_FILE,
    Number,
    check_run_name,
    given,
    json_option,
    metrics_option,
    n_jobs_option,
    qrels_option,
    quiet_option,
    reading_options,
    run_name_option,
)
from ranksvm.cli.options.training import (
    c_range_option,
    check_choice_options,
    choice_options,
    parameter_options,
    settings_option,
)
from ranksvm.cli.output.errors import EXIT_INTERRUPTED, debug_option, is_debugging
from ranksvm.cli.output.fit_report import fit_report
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import (
    count,
    counted,
    note_on_no_relevant,
    number,
    print_json,
    print_table,
    queries,
    seconds,
    tab_separated,
)
from ranksvm.cli.rankers import chooses, evaluates_while_fitting, make_ranker, with_scaler
from ranksvm.cli.terminal import say
from ranksvm.cli.training_data import WEIGHTS, training_data

if TYPE_CHECKING:
    from ranksvm._util.tables import Table
    from ranksvm.datasets.runs import Run
    from ranksvm.metrics import Evaluation

# names of the files that are written for a fold, in a subfolder of --output
MODEL, SCORES = "model.rsvm", "scores.txt"
TABLES = (".csv", ".tex", ".html")
# kind of data -> names that its file in a fold may have, without extension; LETOR 3.0 has trainingset.txt and so on
_NAMES = {
    "train": ("train", "training", "trainingset"),
    "valid": ("vali", "valid", "val", "dev", "validation", "validationset"),
    "test": ("test", "testset"),
}
_SUFFIXES = (".txt", ".letor", ".dat", ".svm", ".svmlight", ".libsvm", ".csv", ".tsv", ".parquet", ".pq", ".rsd", "")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", "")


class Fold(NamedTuple):
    """A fold: the name of its folder, and its files; ``valid`` may be None."""

    name: str
    train: Path
    valid: Path | None
    test: Path


class Tested(NamedTuple):
    """A fold that has been trained and tested."""

    fold: Fold
    report: dict[str, Any]
    validation_score: float | None
    evaluation: "Evaluation"
    run: "Run | None"


@click.command("folds", short_help="Train and test on the official folds of a data set.")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help=f"Folder for the model and the test scores of every fold: DIR/Fold1/{MODEL}, DIR/Fold1/{SCORES}, ...",
)
@click.option(
    "--table", "table_file", type=OUTPUT_FILE, metavar="FILE", help="Write the table (.csv, .tex, .html; - for CSV)."
)
@click.option("--per-query", type=TEXT_FILE, metavar="FILE", help="Write every metric of every test query (TSV).")
@click.option("--run", "run_file", type=TEXT_FILE, metavar="FILE", help="TREC run of the test queries of all folds.")
@run_name_option
@metrics_option("ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr,pairwise_accuracy")
@click.option("-C", "C", type=Number(), metavar="C", help="Weight of one pair, instead of a choice from --C-range.")
@c_range_option()
@parameter_options("pairs")
@parameter_options("additive", "kernel", "low_rank")
@settings_option
@qrels_option
@reading_options
@choice_options
@parameter_options("solver")
@n_jobs_option
@json_option
@quiet_option
@debug_option
@click.pass_context
def folds_command(ctx: click.Context, **options: Any) -> None:
    """Choose C, train and test on every fold in DIR: Fold1, Fold2, ... with train.txt, vali.txt and test.txt.

    These files may have any format of data, and DIR may be one fold.

    In each fold of DIR, C is chosen from --C-range (2^-15:2^5) by --metric: on the validation data or, if there are
    none, by cross-validation on the training queries (with --folds parts). The model is then fitted on the training
    data and tested once. Low-rank models have one C. The table has the metrics of every fold and their means over the
    folds.

    \b
    Examples:
      ranksvm folds MQ2008 --metric ndcg@10 --convention letor
      ranksvm folds OHSUMED --loss hinge --C-range 2^-10:2^0 -o results --table results.tex --run hinge.run
    """
    from ranksvm.metrics import parse_metric, parse_metrics

    names = [metric.name for metric in parse_metrics(options["metrics"])]
    options["metric"] = parse_metric(options["metric"]).name
    folds = find_folds(options["folder"])
    # options that training reads, but this command does not have
    options |= dict.fromkeys((*WEIGHTS, "pairs", "clicks", "bias")) | {
        "valid": folds[0].valid,
        "keep_on_interrupt": False,
    }
    _resolve_options(ctx, options)
    _check_outputs(folds, options)
    watch, tested = Stopwatch(), []
    with Progress(options["quiet"], iterations_from=2, fits_from=1) as progress:
        try:
            for fold in folds:
                tested.append(_test(fold, names, options, progress, watch))
                progress.line(_in_words(tested[-1]))
        except KeyboardInterrupt:
            if is_debugging(ctx) or options["output"] is None or not tested:
                raise
            done = ", ".join(each.fold.name for each in tested)
            say(f"\nInterrupted: {options['output']} has the models and scores of {done}.", err=True)
            ctx.exit(EXIT_INTERRUPTED)
    table = _table(tested, options)
    written = _write(tested, table, options)
    if options["as_json"]:
        print_json(_document(tested, written, options, watch))
        return
    _show(tested, table, options, written, watch)


def _resolve_options(ctx: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that conflict, and choose C from a range unless it is given."""
    check_run_name(options["run_file"] is not None, "--run")
    if options["Cs"] is not None and ctx.get_parameter_source("C") is ParameterSource.DEFAULT_MAP:
        options["C"] = None  # the C of a settings file
    if options["C"] is not None and options["Cs"] is not None:
        raise click.UsageError("give -C or --C-range, not both.")
    if options["C"] is None and options["Cs"] is None:
        if options["low_rank"] is None:
            options["Cs"] = [2.0**exponent for exponent in range(-15, 6)]
        else:
            options["C"] = 1.0
    check_additive_options(options)
    check_low_rank_options(ctx, options)
    if options["low_rank"] is None:
        check_kernel_options(options)
    check_choice_options(chooses(options), options["valid"] is not None)
    if given("metric") and not evaluates_while_fitting(options):
        raise click.UsageError(
            "--metric is for a choice among models, but one model is fitted: --metrics names the metrics of the table."
        )
    if options["table_file"] is not None and _kind_of(options["table_file"]) not in TABLES:
        raise click.UsageError(
            f"--table {options['table_file']}: the extension must be one of {', '.join(TABLES)}; - prints CSV."
        )


def find_folds(folder: Path) -> list[Fold]:
    """The folds in the subfolders of a folder (or the folder itself, if it is one), in the order of their numbers.

    Raises
    ------
    UsageError
        When there is no fold, or a fold has two files for one part, or only some folds have validation data.
    """
    inside = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: _natural(path.name))
    found = [fold for path in inside if (fold := _fold(path)) is not None]
    if not found and (alone := _fold(folder)) is not None:
        found = [alone]
    if not found:
        raise click.UsageError(
            f"{folder} has no folds: expected folders (Fold1, Fold2, ...) with train.txt, vali.txt and test.txt, or "
            "other formats of these (.gz, .rsd, .parquet, .csv, ...)."
        )
    without = [fold.name for fold in found if fold.valid is None]
    if without and len(without) < len(found):
        raise click.UsageError(f"{', '.join(without)} of {folder} has no validation data (vali.txt), other folds have.")
    return found


def _fold(folder: Path) -> Fold | None:
    files = {part: _file(folder, part) for part in _NAMES}
    train, test = files["train"], files["test"]
    return None if train is None or test is None else Fold(folder.name, train, files["valid"], test)


def _file(folder: Path, part: str) -> Path | None:
    possible = {
        f"{name}{suffix}{compression}" for name in _NAMES[part] for suffix in _SUFFIXES for compression in _COMPRESSIONS
    }
    found = sorted(path for path in folder.iterdir() if path.name.lower() in possible and path.is_file())
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise click.UsageError(f"{folder} has {names}: which of them is the {part} data?")
    return found[0] if found else None


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts Fold10 after Fold9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _kind_of(path: Path) -> str:
    """The extension that says how a table is written; CSV for standard output."""
    return ".csv" if is_stdout(path) else path.suffix.lower()


def _check_outputs(folds: list[Fold], options: dict[str, Any]) -> None:
    """Refuse to overwrite data, and make the folder of models, before any work."""
    for name in ("table_file", "per_query", "run_file"):
        path = options[name]
        if path is not None and path.exists():
            for data in (file for fold in folds for file in fold[1:] if file is not None):
                if path.samefile(data):
                    raise click.UsageError(f"{path} would overwrite data of {data.parent.name}.")
    if options["output"] is not None:
        options["output"].mkdir(parents=True, exist_ok=True)


def _test(fold: Fold, names: list[str], options: dict[str, Any], progress: Progress, watch: Stopwatch) -> Tested:
    """Train on a fold, choose by its validation data, and evaluate on its test data."""
    from ranksvm.datasets.runs import Run
    from ranksvm.metrics import evaluate
    from ranksvm.metrics.scorers import predict_scores
    from ranksvm.model_files.persistence import save

    progress.heading = f"{fold.name}: "
    options = options | {"train": fold.train, "valid": fold.valid, "test": fold.test}
    data = training_data(options, progress, watch)
    data.check_scaler(options["scaler"])
    if chooses(options):
        data.check_choice(options["folds"])
    resolved = data.resolved(options)
    data.check_features(resolved["categorical"], options["model"] == "additive", [options["scaler"]])
    scaler, X = data.scaled(options["scaler"], watch)
    progress.now("Training")
    # the ranker is made before the timer starts, because making it imports its class
    ranker = make_ranker(resolved, only_fit=True)
    with watch("training"):
        ranker = data.fit(ranker, X, evaluates_while_fitting(options))
    test = data.parts["test"]
    with watch("evaluating"):
        scores = predict_scores(ranker, X["test"], test.query_ids)
        convention = options["convention"]
        found = evaluate(test.y, scores, test.query_ids, names, convention=convention, docid=test.docid)
    if options["output"] is not None:
        place = options["output"] / fold.name
        place.mkdir(parents=True, exist_ok=True)
        save(data.named(with_scaler(scaler, ranker)), place / MODEL)
        write_text(place / SCORES, map(repr, scores.astype(float).tolist()))
    run = None if options["run_file"] is None else Run.from_scores(test, scores, options["run_name"])
    report = fit_report(ranker, options["scaler"], {"test": found.means}, convention)
    return Tested(fold, report, getattr(ranker, "best_score_", None), found, run)


def _in_words(tested: Tested) -> str:
    means = ", ".join(f"{name} {number(mean)}" for name, mean in tested.evaluation.means.items())
    return f"{tested.fold.name}: C = {power(tested.report['C'])}, test {means}"


def _table(tested: list[Tested], options: dict[str, Any]) -> "Table":
    from ranksvm._util.tables import POWER, Table

    convention, metrics = options["convention"], list(tested[0].evaluation.means)
    columns: dict[str, Any] = {
        "fold": [each.fold.name for each in tested],
        "queries": [each.evaluation.n_queries for each in tested],
        "C": [each.report["C"] for each in tested],
    }
    if tested[0].report["kernel"] is not None and tested[0].report["kernel"]["gamma"] is not None:
        columns["gamma"] = [each.report["kernel"]["gamma"] for each in tested]
    if tested[0].report["additive"] is not None:
        columns["step weight"] = [each.report["additive"]["step_weight"] for each in tested]
        columns["interactions"] = [len(each.report["additive"]["interactions"]) for each in tested]
    columns |= {name: [each.evaluation.means[name] for each in tested] for name in metrics}
    columns["convention"] = [convention] * len(tested)
    return Table(
        columns,
        f"{options['folder'].resolve().name}: test data of {counted(len(tested), 'fold')}, metrics of the convention "
        f"{convention}",
        headings={
            "fold": f"fold (convention {convention})",
            **{name: f"{name} (chosen)" for name in ("C", "gamma") if chooses(options)},
        },
        hidden=("convention",),
        formats={"C": POWER, "gamma": POWER},
        footer=[{"fold": "mean", **_means(tested), "convention": convention}],
    )


def _means(tested: list[Tested]) -> dict[str, float]:
    """Mean over the folds, as LETOR averages."""
    names = tested[0].evaluation.means
    return {name: sum(each.evaluation.means[name] for each in tested) / len(tested) for name in names}


def _write(tested: list[Tested], table: "Table", options: dict[str, Any]) -> list[Path]:
    """Write the requested files; return their paths."""
    if options["table_file"] is not None:
        kind = _kind_of(options["table_file"])
        text = table.to_csv(footer=True) if kind == ".csv" else table.to_latex() if kind == ".tex" else table.to_html()
        write_text(options["table_file"], [text.rstrip("\n")])
    if options["per_query"] is not None:
        write_text(options["per_query"], _per_query_lines(tested))
    if options["run_file"] is not None:
        import numpy as np

        from ranksvm.datasets.runs import Run
        from ranksvm.datasets.trec_files import write_run

        parts = [each.run for each in tested]
        qid, docid, score = (
            np.concatenate([getattr(run, name) for run in parts]) for name in ("qid", "docid", "score")
        )
        write_run(options["run_file"], Run(qid, docid, score, options["run_name"]))
    return [options[name] for name in ("output", "table_file", "per_query", "run_file") if options[name] is not None]


def _per_query_lines(tested: list[Tested]) -> list[str]:
    from ranksvm._util.text import plain

    names = list(tested[0].evaluation.means)
    lines = [tab_separated(["fold", "query", *names])]
    for each in tested:
        columns = [each.evaluation.per_query[name].tolist() for name in names]
        for query, *values in zip(plain(each.evaluation.qid), *columns, strict=True):
            lines.append(tab_separated([each.fold.name, str(query), *map(repr, values)]))
    return lines


def _document(tested: list[Tested], written: list[Path], options: dict[str, Any], watch: Stopwatch) -> dict[str, Any]:
    return {
        "command": "folds",
        "data": str(options["folder"]),
        "convention": options["convention"],
        "metric": options["metric"] if chooses(options) else None,
        "folds": [
            {
                "name": each.fold.name,
                "train": str(each.fold.train),
                "valid": None if each.fold.valid is None else str(each.fold.valid),
                "test": str(each.fold.test),
                "queries": each.evaluation.n_queries,
                "queries_without_relevant": each.evaluation.n_without_relevant,
                "validation_score": each.validation_score,
                **each.report,
                "metrics": each.evaluation.means,
            }
            for each in tested
        ],
        "means": _means(tested),
        "files": [str(path) for path in written],
        "seconds": watch.seconds,
    }


def _open_fits(tested: list[Tested]) -> dict[str, list[str]]:
    """For each status of fits that did not converge, such as early stopping: the folds with such a fit."""
    found: dict[str, list[str]] = {}
    for each in tested:
        if not each.report["converged"]:
            found.setdefault(each.report["status"], []).append(each.fold.name)
    return found


def _show(tested: list[Tested], table: "Table", options: dict[str, Any], written: list[Path], watch: Stopwatch) -> None:
    # the title shows the convention once, so that columns of numbers stay narrow
    names = [name for name in table.columns if name != "convention"]
    rows = [
        [each.fold.name, count(each.evaluation.n_queries), power(each.report["C"])]
        + ([power(each.report["kernel"]["gamma"])] if "gamma" in names else [])
        + [f"{table.columns[name][place]:g}" for name in ("step weight", "interactions") if name in names]
        + [number(mean) for mean in each.evaluation.means.values()]
        for place, each in enumerate(tested)
    ]
    blank = [""] * (len(names) - 1 - len(tested[0].evaluation.means))
    rows.append(["mean", *blank, *(number(mean) for mean in _means(tested).values())])
    n_queries = sum(each.evaluation.n_queries for each in tested)
    found = f"{counted(len(tested), 'fold')}, {queries(n_queries)}"
    title = f"{options['folder']}: {found}; test metrics ({options['convention']})"
    print_table(names, rows, title=title)
    say()
    if chooses(options):
        by = "on the validation data" if tested[0].fold.valid is not None else f"by {options['folds']} folds of queries"
        say(f"C was chosen by {options['metric']} {by} of each fold.")
    if note := note_on_no_relevant([each.evaluation for each in tested]):
        say(note)
    for status, names in _open_fits(tested).items():
        say(f"{', '.join(names)}: {status}")
    say(", ".join(f"{name} {seconds(value)}" for name, value in watch.seconds.items()))
    for path in [] if options["quiet"] else written:
        say(f"Wrote {path}", err=True)
