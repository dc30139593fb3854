"""``ranksvm info``: the contents of a data file or a model file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.text import feature_label, feature_labels, weight_columns
from ranksvm.cli.features import names_in
from ranksvm.cli.files import is_model, read, read_judgments, read_rankings, trec_kind
from ranksvm.cli.online_run import OnlineRun
from ranksvm.cli.options.models import texts_option
from ranksvm.cli.options.paths import titled
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    check_reading_options,
    given,
    json_option,
    qrels_option,
    quiet_option,
    reading_options,
)
from ranksvm.cli.output.errors import debug_option
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, number, print_facts, print_json, print_table, queries
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.estimators.base.additive_ranker import AdditiveRanker
    from ranksvm.estimators.base.kernel_ranker import KernelRanker
    from ranksvm.estimators.base.linear_ranker import LinearRanker
    from ranksvm.estimators.base.ranker import Ranker


@click.command("info", short_help="Show what is in a data or model file.")
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--weights",
    type=click.IntRange(min=0),
    default=15,
    show_default=True,
    metavar="N",
    help="Largest weights of a model to list, or curves and interactions of an additive one.",
)
@qrels_option
@reading_options
@texts_option
@json_option
@quiet_option
@debug_option
def info_command(
    file: Path, weights: int, qrels: Path | None, reading: dict[str, Any], as_json: bool, quiet: bool
) -> None:
    """Show what is in FILE: rows, queries, levels and pairs of data; parameters, certificate and weights of a model;
    queries and documents of a TREC run or of relevance judgments.

    Features are shown by name, or as f1, f2, ..., numbered from 1 as in LETOR text.

    \b
    Examples:
      ranksvm info train.txt
      ranksvm info features.txt --qrels qrels.txt
      ranksvm info model.rsvm --weights 30
    """
    trec = trec_kind(file)
    if qrels is not None and (trec is not None or is_model(file)):
        raise click.UsageError(f"--qrels gives labels to a data file, but {file} is not one.")
    check_reading_options(trec is None and not is_model(file))
    if given("categorical") and (trec is not None or is_model(file)):
        raise click.UsageError(f"--categorical lists features of a data file, but {file} is not one.")
    if given("weights") and not is_model(file):
        raise click.UsageError(f"--weights is for a model, but {file} is not one.")
    if is_model(file):
        report = _describe_model(file, None if as_json else weights)
        show = _show_model
    elif trec is not None:
        report = _describe_trec(file, trec)
        show = _show_trec
    else:
        with Progress(quiet) as progress:
            data = read(file, progress, Stopwatch(), reading, qrels=read_judgments(qrels))
        report = _describe_data(file, data)
        show = _show_data
    if as_json:
        print_json(report)
    else:
        show(report)


def _describe_data(file: Path, data: "RankingData") -> dict[str, Any]:
    from ranksvm.datasets.description import described_data

    return {"command": "info", "kind": "data", "path": str(file), **described_data(data)}


def _show_data(report: dict[str, Any]) -> None:
    from ranksvm.datasets.description import data_facts, level_rows

    print_facts(data_facts(report), title=titled(Path(report["path"])))
    say()
    print_table(["level", "rows", "share"], level_rows(report))


def _describe_trec(file: Path, kind: str) -> dict[str, Any]:
    """Counts of the queries and documents of a run or of judgments."""
    import numpy as np

    run = read_rankings(file) if kind == "run" else None
    qrels = None if run is not None else read_judgments(file)
    found = run or qrels
    assert found is not None
    sizes = found.queries.sizes
    report = {
        "command": "info",
        "kind": kind,
        "path": str(file),
        "rows": len(found),
        "queries": len(sizes),
        "rows_per_query": {
            "min": sizes.min(),
            "median": float(np.median(sizes)),
            "mean": float(sizes.mean()),
            "max": sizes.max(),
        },
    }
    if run is not None:
        report["name"] = run.name
    if qrels is not None:
        levels, counts = np.unique(qrels.label, return_counts=True)
        n_with_relevant = len(np.unique(qrels.qid[qrels.label > 0]))
        report["queries_without_relevant"] = len(sizes) - n_with_relevant
        report["levels"] = [{"level": float(level), "rows": int(n)} for level, n in zip(levels, counts, strict=True)]
    return report


def _show_trec(report: dict[str, Any]) -> None:
    from ranksvm.datasets.description import level_rows, sizes_in_words

    run = report["kind"] == "run"
    facts = [("TREC run", report["name"])] if run else []
    facts += [
        ("ranked documents" if run else "judgments", count(report["rows"])),
        ("queries", count(report["queries"])),
        ("documents per query", sizes_in_words(report["rows_per_query"])),
    ]
    if not run:
        facts.append(("queries without a relevant document", count(report["queries_without_relevant"])))
    print_facts(facts, title=report["path"])
    if not run:
        say()
        print_table(["level", "judgments", "share"], level_rows(report))


def _describe_model(file: Path, n_weights: int | None) -> dict[str, Any]:
    from ranksvm.estimators.base.summary import described_fit
    from ranksvm.estimators.rank_svm import RankSVMCore
    from ranksvm.model_files.persistence import load_as, parameters_of_object, read_header

    header = read_header(file)
    model = load_as(file, {"RankSVM": RankSVMCore})  # this class does not import scikit-learn
    steps = steps_of(model)
    ranker = steps[-1]
    report: dict[str, Any] = {
        "command": "info",
        "kind": "model",
        "path": str(file),
        "class": " + ".join(type(step).__name__ for step in steps),
        "format_version": header["version"],
        "written_by": header["written_by"],
        "parameters": {type(step).__name__: parameters_of_object(step) for step in steps},
    }
    report |= described_fit(ranker)
    report["online"] = _stream(file)
    report["signs"] = _signs(ranker, names_in(model))
    report["bytes"] = file.stat().st_size
    if report["additive"]:
        report["curves"] = _curves(ranker, names_in(model), n_weights)
    elif hasattr(ranker, "coef_"):
        report.update(_weights(ranker, names_in(model), n_weights))
    return report


def _stream(file: Path) -> dict[str, Any] | None:
    """The state of `ranksvm online` when it wrote a model."""
    notes = OnlineRun.notes(file)
    if notes is None:
        return None
    state = notes["metrics"]
    sums, weights = state["sums"].tolist()
    means = {name: x / w if w > 0 else None for name, x, w in zip(state["metrics"], sums, weights, strict=True)}
    return {
        "learner": notes["learner"],
        "data": notes["data"],
        "queries": state["n_queries"],
        "convention": state["convention"],
        "metrics": means,
    }


def _signs(ranker: "Ranker", names: Sequence[str] | None) -> dict[str, int] | None:
    """Names of the features whose weights must have a sign, with the signs; None if there are none."""
    signs = getattr(ranker, "monotone_", None)
    if signs is None:
        return None
    return {feature_label(place, names): int(sign) for place, sign in enumerate(signs) if sign}


def _weights(
    ranker: "LinearRanker | KernelRanker", names: Sequence[str] | None, n_weights: int | None
) -> dict[str, Any]:
    """The largest weights (all if ``n_weights`` is None), largest first, and totals over all weights."""
    import numpy as np

    coef = np.ravel(ranker.coef_)
    largest = np.argsort(-np.abs(coef), kind="stable")[:n_weights]
    total = float(np.abs(coef).sum())
    return {
        "features": len(coef),
        "nonzero_weights": int(np.count_nonzero(coef)),
        "norm": float(np.linalg.norm(coef)),
        "weights": [
            {
                "feature": feature_label(int(j), names),
                "column": int(j),
                "name": None if names is None else str(names[j]),
                "weight": float(coef[j]),
                "share": float(abs(coef[j]) / total) if total else 0.0,
            }
            for j in largest
        ],
    }


def _curves(ranker: "AdditiveRanker", names: Sequence[str] | None, n_curves: int | None) -> list[dict[str, Any]]:
    """The curves and interactions that vary most, largest first (all if ``n_curves`` is None)."""
    import numpy as np

    labels = feature_labels(ranker.n_features_in_, names)
    terms: list[dict[str, Any]] = [
        *({"feature": label, "column": j, "name": None if names is None else label} for j, label in enumerate(labels)),
        *({"feature": f"{labels[a]} x {labels[b]}", "column": None, "name": None} for a, b in ranker.interactions_),
    ]
    of_pairs = [cells.spread for cells in ranker.interaction_shapes()]
    spreads = np.array([*(shape.spread for shape in ranker.shapes()), *of_pairs])
    total = float(spreads.sum())
    return [
        terms[k] | {"spread": float(spreads[k]), "share": float(spreads[k] / total) if total else 0.0}
        for k in np.argsort(-spreads, kind="stable")[:n_curves]
    ]


def _show_model(report: dict[str, Any]) -> None:
    from ranksvm.estimators.base.summary import fit_facts

    facts = [("class", report["class"]), ("written by", f"ranksvm {report['written_by']['ranksvm']}")]
    for step, parameters in report["parameters"].items():
        if isinstance(parameters.get("monotone"), dict):
            parameters = parameters | {"monotone": report["signs"]}
        facts.append((step, ", ".join(f"{key}={_short(value)}" for key, value in parameters.items())))
    for name, words in fit_facts(report):
        facts.append((name, f"{words}; {count(report['bytes'])} bytes" if name == "model size" else words))
    if report["online"] is not None:
        facts.append(("stream", _stream_in_words(report["online"])))
    if "weights" in report:
        nonzero = f"of which {count(report['nonzero_weights'])} are not 0; norm {report['norm']:.6g}"
        facts.append(("weights", f"{count(report['features'])}, {nonzero}"))
    print_facts(facts, title=report["path"])
    for key, value_of in (("weights", "weight"), ("curves", "spread")):
        if report.get(key):
            say()
            values = [each[value_of] for each in report[key]]
            (texts,) = weight_columns([value != 0 for value in values], values)
            rows = [[x["feature"], text, f"{x['share']:.1%}"] for x, text in zip(report[key], texts, strict=True)]
            print_table(["feature", value_of, "share of all"], rows)


def _stream_in_words(online: dict[str, Any]) -> str:
    means = ", ".join(f"{name} {number(mean)}" for name, mean in online["metrics"].items())
    so_far = f"so far {means} (convention {online['convention']})"
    return f"{queries(online['queries'])} of {online['data']} by {online['learner']}; {so_far}"


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
