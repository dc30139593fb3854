"""``ranksvm train``: read, scale, fit (C given or chosen), measure, save."""

from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.errors import debug_option
from ranksvm.cli.files import predict, read, with_features
from ranksvm.cli.options import (
    EXISTING_FILE,
    OUTPUT_FILE,
    Number,
    NumberRange,
    convention_option,
    json_option,
    n_jobs_option,
    quiet_option,
    zero_based_option,
)
from ranksvm.cli.progress import Progress, Stopwatch
from ranksvm.cli.tables import count, counted, number, print_facts, print_json, print_table, queries, seconds, weights

if TYPE_CHECKING:
    from ranksvm.data import RankingData

SCALERS = ["none", "query-minmax", "query-standard", "standard", "minmax"]
# shown at the end beside the metric that C is chosen by
SHOWN_METRICS = ["ndcg@10", "map", "mrr", "pairwise_accuracy"]


@click.command("train", short_help="Train a model.")
@click.argument("train", type=EXISTING_FILE)
@click.option("--valid", type=EXISTING_FILE, metavar="FILE", help="Validation data: C is chosen on them.")
@click.option("--test", type=EXISTING_FILE, metavar="FILE", help="Test data: measured at the end, never used before.")
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="MODEL", help="Model file to write.")
@click.option("-C", "C", type=Number(), metavar="C", help="Weight of one pair.  [default: 1.0]")
@click.option(
    "--C-range",
    "Cs",
    type=NumberRange(),
    metavar="RANGE",
    help="Values of C to choose from: 2^-15:2^5, 2^-15:2^5:2, 1e-4:1e2 or 0.01,0.1,1.",
)
@click.option("--metric", default="ndcg@10", show_default=True, help="Metric by which C is chosen.")
@convention_option
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Folds of queries to choose C by, where there are no validation data.",
)
@click.option(
    "--scaler",
    type=click.Choice(SCALERS),
    default="none",
    show_default=True,
    help="Scale features, per query or over all rows; saved with the model.",
)
@click.option("--solver", type=click.Choice(["auto", "newton", "tron"]), default="auto", show_default=True)
@click.option(
    "--tol", type=float, default=1e-4, show_default=True, help="Stop when the relative duality gap is below this."
)
@click.option(
    "--max-iter", type=click.IntRange(min=1), default=None, help="Limit of iterations.  [default: the solver's]"
)
@click.option(
    "--keep-on-interrupt", is_flag=True, help="Ctrl-C while training ends it and saves the best model so far."
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="With --C-range and no terminal: a line for every iteration, not only every C.",
)
@n_jobs_option
@zero_based_option
@json_option
@quiet_option
@debug_option
def train_command(**options: Any) -> None:
    """Train a linear RankSVM on the data file TRAIN (LETOR text, cache or Parquet).

    With --C-range the best C is chosen by --metric: on the validation data if --valid is given, else by
    cross-validation over folds of queries. The model is saved to MODEL, with its scaler.

    \b
    ranksvm train train.txt -C 0.1 -o model.rsvm
    ranksvm train train.txt --valid vali.txt --test test.txt --C-range 2^-15:2^5 -o model.rsvm
    """
    if options["C"] is not None and options["Cs"] is not None:
        raise click.UsageError("give -C or --C-range, not both.")
    if options["Cs"] is None and options["C"] is None:
        options["C"] = 1.0
    report = _train(options)
    if options["as_json"]:
        print_json(report)
    else:
        _show(report)


def _train(options: dict[str, Any]) -> dict[str, Any]:
    from ranksvm.metrics import parse_metrics
    from ranksvm.persistence import save

    # names in their usual spelling; a wrong one is told before the data are read
    metrics = [metric.name for metric in parse_metrics([options["metric"], *SHOWN_METRICS])]
    options["metric"] = metrics[0]
    watch = Stopwatch()
    # Of a range of C, every iteration would be hundreds of lines in a log.
    with Progress(options["quiet"], options["Cs"] is None or options["verbose"]) as progress:
        parts = {
            name: read(options[name], progress, watch)
            for name in ("train", "valid", "test")
            if options[name] is not None
        }
        _check_folds(parts, options)
        scaler, X = _scaled(parts, options, progress, watch)
        progress.now("Training")
        with watch("training"):
            ranker = _fit(parts, X, options)
        progress.now("Evaluating")
        with watch("evaluating"):
            means = {name: _means(ranker, X[name], data, metrics, options) for name, data in parts.items()}
        model = ranker if scaler is None else _pipeline(scaler, ranker)
        save(model, options["output"])
        progress.line(f"Saved {options['output']}")
    return _report(parts, ranker, means, watch, options)


def _check_folds(parts: dict[str, "RankingData"], options: dict[str, Any]) -> None:
    n_queries = parts["train"].queries.n_queries
    if options["Cs"] is not None and "valid" not in parts and options["folds"] > n_queries:
        raise click.UsageError(
            f"--folds {options['folds']}, but the data have only {queries(n_queries)}: give fewer folds, or --valid."
        )


def _scaled(
    parts: dict[str, "RankingData"], options: dict[str, Any], progress: Progress, watch: Stopwatch
) -> tuple[Any, dict[str, Any]]:
    """The fitted scaler (None without one) and the features of every part as the ranker sees them."""
    n_features = parts["train"].n_features
    X = {name: with_features(data.X, n_features, options[name]) for name, data in parts.items()}
    scaler = _make_scaler(options["scaler"], X["train"])
    if scaler is None:
        return None, X
    progress.now("Scaling features")
    with watch("scaling"):
        if options["scaler"].startswith("query-"):
            scaler.fit(X["train"], qid=parts["train"].qid)
            return scaler, {name: scaler.transform(X[name], qid=data.qid) for name, data in parts.items()}
        scaler.fit(X["train"])
        return scaler, {name: scaler.transform(X[name]) for name in parts}


def _make_scaler(name: str, X: Any) -> Any:
    import scipy.sparse
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    from ranksvm.data import QueryMinMaxScaler, QueryStandardScaler

    sparse = scipy.sparse.issparse(X)
    if name == "standard":
        # The mean cancels in every difference of two documents, so sparse data do without it.
        return StandardScaler(with_mean=not sparse)
    if name == "query-standard":
        return QueryStandardScaler(with_mean=not sparse)
    if name == "none":
        return None
    if sparse:
        raise click.UsageError(f"--scaler {name} would fill sparse data; use --scaler standard or query-standard.")
    return MinMaxScaler() if name == "minmax" else QueryMinMaxScaler()


def _fit(parts: dict[str, "RankingData"], X: dict[str, Any], options: dict[str, Any]) -> Any:
    from ranksvm import RankSVM, RankSVMCV

    common = {name: options[name] for name in ("solver", "tol", "n_jobs", "keep_on_interrupt")}
    if options["max_iter"] is not None:
        common["max_iter"] = options["max_iter"]
    data = parts["train"]
    if options["Cs"] is None:
        return RankSVM(C=options["C"], **common).fit(X["train"], data.y, qid=data.qid)
    ranker = RankSVMCV(
        Cs=options["Cs"], metric=options["metric"], convention=options["convention"], cv=options["folds"], **common
    )
    if "valid" not in parts:
        return ranker.fit(X["train"], data.y, qid=data.qid)
    valid = parts["valid"]
    return ranker.fit(X["train"], data.y, qid=data.qid, eval_set=(X["valid"], valid.y), eval_qid=valid.qid)


def _means(ranker: Any, X: Any, data: "RankingData", metrics: list[str], options: dict[str, Any]) -> dict[str, float]:
    from ranksvm.metrics import evaluate

    scores = predict(ranker, X, data.qid)
    return evaluate(data.y, scores, data.qid, metrics, convention=options["convention"], docid=data.docid).means


def _pipeline(scaler: Any, ranker: Any) -> Any:
    from sklearn.pipeline import Pipeline

    return Pipeline([("scaler", scaler), ("ranker", ranker)])


def _report(
    parts: dict[str, "RankingData"], ranker: Any, means: dict[str, Any], watch: Stopwatch, options: dict[str, Any]
) -> dict[str, Any]:
    chosen = options["Cs"] is not None
    report: dict[str, Any] = {
        "command": "train",
        "model": str(options["output"]),
        "data": {
            name: {
                "path": str(options[name]),
                "rows": data.n_rows,
                "queries": data.queries.n_queries,
                "features": data.n_features,
            }
            for name, data in parts.items()
        },
        "C": float(ranker.C_ if chosen else ranker.C),
        "selection": None,
        "scaler": options["scaler"],
        "solver": ranker.solver_,
        "iterations": int(ranker.n_iter_),
        "pairs": int(ranker.n_pairs_),
        "objective": float(ranker.objective_),
        "duality_gap": float(ranker.duality_gap_),
        "relative_gap": float(ranker.duality_gap_ / ranker.objective_) if ranker.objective_ else 0.0,
        "tol": options["tol"],
        "converged": bool(ranker.converged_),
        "status": str(ranker.status_),
        "convention": options["convention"],
        "metrics": means,
        "seconds": watch.seconds,
    }
    if chosen:
        scores = [[float(score) for score in row] for row in ranker.scores_]
        report["selection"] = {
            "metric": options["metric"],
            "by": "validation data" if "valid" in parts else f"{options['folds']} folds of queries",
            "candidates": [
                {"C": float(C), "score": sum(row) / len(row), "fold_scores": row}
                for C, row in zip(ranker.Cs_, scores, strict=True)
            ],
        }
    return report


def _show(report: dict[str, Any]) -> None:
    selection = report["selection"]
    candidates = selection["candidates"] if selection else [{"C": report["C"]}]
    # written alike in the table and below it
    names = {item["C"]: name for item, name in zip(candidates, weights([x["C"] for x in candidates]), strict=True)}
    if selection:
        rows = [
            [names[item["C"]], number(item["score"]), "chosen" if item["C"] == report["C"] else ""]
            for item in candidates
        ]
        print_table(["C", selection["metric"], ""], rows, title=f"C by {selection['metric']} on {selection['by']}")
        click.echo()
    means = report["metrics"]
    rows = [[name, *(number(means[part][name]) for part in means)] for name in means["train"]]
    print_table([f"metric ({report['convention']})", *means], rows)
    click.echo()
    spent = report["seconds"]
    print_facts(
        [
            ("C", names[report["C"]]),
            ("certificate", f"relative duality gap {report['relative_gap']:.1e} (tol {report['tol']:.0e})"),
            ("status", report["status"]),
            ("objective", f"{report['objective']:.10g}"),
            ("pairs", count(report["pairs"])),
            ("solver", f"{report['solver']}, {counted(report['iterations'], 'iteration')}"),
            ("time", ", ".join(f"{name} {seconds(value)}" for name, value in spent.items())),
            ("model", report["model"]),
        ]
    )
