"""``ranksvm info``: the contents of a data file or a model file, or the environment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ranksvm._features import feature_label
from ranksvm.cli.errors import debug_option
from ranksvm.cli.features import names_in
from ranksvm.cli.files import read
from ranksvm.cli.fit_report import (
    certificate,
    described_kernel,
    described_low_rank,
    kernel_in_words,
    loss_in_words,
    low_rank_in_words,
    size_in_words,
)
from ranksvm.cli.online_run import OnlineRun
from ranksvm.cli.options import EXISTING_FILE, json_option, quiet_option, reading_options
from ranksvm.cli.progress import Progress, Stopwatch
from ranksvm.cli.tables import (
    aligned,
    count,
    counted,
    number,
    print_facts,
    print_json,
    print_table,
    queries,
    weights,
)

# if there are more levels than this, those in the middle are not listed
LISTED_LEVELS = 20


@click.command("info", short_help="Show what is in a data or model file.")
@click.argument("file", type=EXISTING_FILE, required=False)
@click.option("--environment", is_flag=True, help="Show versions and the instruction set in use instead; without FILE.")
@click.option(
    "--weights", type=click.IntRange(min=0), default=15, show_default=True, help="Largest weights of a model to list."
)
@reading_options
@json_option
@quiet_option
@debug_option
def info_command(
    file: Path | None, environment: bool, weights: int, reading: dict[str, Any], as_json: bool, quiet: bool
) -> None:
    """Show what is in FILE: rows, queries, levels and pairs of data; parameters, certificate and weights of a model.

    Features are shown by name, or as f1, f2, ..., numbered from 1 as in LETOR text.
    """
    if environment == (file is not None):
        raise click.UsageError("give either FILE or --environment.")
    if file is None:
        report = _describe_environment()
        show = _show_environment
    elif _is_model(file):
        report = _describe_model(file, None if as_json else weights)
        show = _show_model
    else:
        with Progress(quiet) as progress:
            data = read(file, progress, Stopwatch(), reading)
        report = _describe_data(file, data)
        show = _show_data
    if as_json:
        print_json(report)
    else:
        show(report)


def _describe_environment() -> dict[str, Any]:
    from ranksvm import environment

    return {"command": "info", "kind": "environment", **environment()}


def _show_environment(report: dict[str, Any]) -> None:
    print_facts((name, value) for name, value in report.items() if name not in ("command", "kind"))


def _is_model(file: Path) -> bool:
    # A pipe can be read only once, so it is left to the reader of data.
    if not file.is_file():
        return False
    with open(file, "rb") as opened:
        return opened.read(4) == b"PK\x03\x04"


def _describe_data(file: Path, data: Any) -> dict[str, Any]:
    import numpy as np

    from ranksvm._checks import is_sparse
    from ranksvm.data import ComparablePairs, pairs_per_document

    n_rows, n_features = data.X.shape
    queries = data.queries
    pairs = ComparablePairs.from_labels(queries, data.y, may_be_empty=True)
    sparse = is_sparse(data.X)
    nonzero = data.X.count_nonzero() if sparse else np.count_nonzero(data.X)
    levels, counts = np.unique(data.y, return_counts=True)
    sizes = queries.sizes
    return {
        "command": "info",
        "kind": "data",
        "path": str(file),
        "rows": n_rows,
        "queries": queries.n_queries,
        "features": n_features,
        "storage": f"{'sparse' if sparse else 'dense'} {data.X.dtype}",
        "density": float(nonzero / max(1, n_rows * n_features)),
        "document_ids": data.docid is not None,
        "shared_documents": None if data.docid is None else _shared(data),
        "rows_per_query": {
            "min": sizes.min(initial=n_rows),
            "median": float(np.median(sizes)) if len(sizes) else 0.0,
            "mean": float(sizes.mean()) if len(sizes) else 0.0,
            "max": sizes.max(initial=0),
        },
        "levels": [{"level": float(level), "rows": int(n)} for level, n in zip(levels, counts, strict=True)],
        "pairs": pairs.n_pairs,
        "pairs_per_document": pairs_per_document(data.y, data.qid),
        "queries_without_pairs": int((pairs.pairs_per_query == 0).sum()),
    }


def _shared(data: Any) -> dict[str, Any]:
    """How many documents occur in several queries."""
    from ranksvm.data import shared_documents

    found = shared_documents(data.docid, data.qid)
    return {
        "documents": found.n_documents,
        "shared": found.n_shared,
        "queries_per_document": found.queries_per_document,
        "mean_share_per_query": float(found.share_per_query.mean()),
    }


def _show_data(report: dict[str, Any]) -> None:
    sizes = report["rows_per_query"]
    print_facts(
        [
            ("rows", count(report["rows"])),
            ("queries", count(report["queries"])),
            ("features", f"{count(report['features'])} ({report['storage']})"),
            ("density", f"{100 * report['density']:.3g} % of the values are not 0"),
            (
                "rows per query",
                f"{count(sizes['min'])} to {count(sizes['max'])}, median {sizes['median']:g}, mean {sizes['mean']:.1f}",
            ),
            ("pairs", f"{count(report['pairs'])} with different labels"),
            ("pairs per document", f"{report['pairs_per_document']:.3f}, mean over queries"),
            ("queries without pairs", count(report["queries_without_pairs"])),
            ("document ids", _documents(report["shared_documents"])),
        ],
        title=report["path"],
    )
    click.echo()
    levels = report["levels"]
    rows = [[f"{x['level']:g}", count(x["rows"]), f"{x['rows'] / report['rows']:.1%}"] for x in levels]
    if len(levels) > LISTED_LEVELS:
        half = LISTED_LEVELS // 2
        rows = [*rows[:half], [f"... {count(len(levels) - 2 * half)} more", "", ""], *rows[-half:]]
    print_table(["level", "rows", "share"], rows)


def _documents(shared: dict[str, Any] | None) -> str:
    if shared is None:
        return "no"
    text = f"of {counted(shared['documents'], 'document')}, {count(shared['shared'])} of them in several queries"
    return text + (f" ({shared['mean_share_per_query']:.1%} of a query's)" if shared["shared"] else "")


def _describe_model(file: Path, n_weights: int | None) -> dict[str, Any]:
    from ranksvm import load
    from ranksvm.persistence import read_header

    header = read_header(file)
    model = load(file)
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    ranker = steps[-1]
    report: dict[str, Any] = {
        "command": "info",
        "kind": "model",
        "path": str(file),
        "class": " + ".join(type(step).__name__ for step in steps),
        "format_version": header["version"],
        "written_by": header["written_by"],
        "parameters": {type(step).__name__: _parameters(step) for step in steps},
    }
    for key in _SHOWN:
        if hasattr(ranker, key):
            report[key.rstrip("_")] = getattr(ranker, key)
    if report.get("objective"):
        report["relative_gap"] = certificate(ranker)["relative_gap"]
    report["kernel"] = described_kernel(ranker) if hasattr(ranker, "n_kernel_products_") else None
    report["low_rank"] = described_low_rank(ranker)
    report["online"] = _stream(file)
    report["signs"] = _signs(ranker, names_in(model))
    report["bytes"] = file.stat().st_size
    if hasattr(ranker, "coef_"):
        report.update(_weights(ranker, names_in(model), n_weights))
    return report


# attributes of a fitted ranker other than its weights; an older model may lack some
_SHOWN = (
    *("solver_", "status_", "C_", "best_score_", "objective_", "duality_gap_", "converged_", "n_iter_", "width_"),
    *("n_pairs_", "n_queries_", "n_updates_"),
)


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


def _parameters(step: Any) -> dict[str, Any]:
    return {key: value for key, value in step.get_params(deep=False).items()}


def _signs(ranker: Any, names: Sequence[str] | None) -> dict[str, int] | None:
    """The features whose weights must have a sign, as they are called, and the signs; None without any."""
    signs = getattr(ranker, "monotone_", None)
    if signs is None:
        return None
    return {feature_label(place, names): int(sign) for place, sign in enumerate(signs) if sign}


def _weights(ranker: Any, names: Sequence[str] | None, n_weights: int | None) -> dict[str, Any]:
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


def _show_model(report: dict[str, Any]) -> None:
    facts = [("class", report["class"]), ("written by", f"ranksvm {report['written_by']['ranksvm']}")]
    for step, parameters in report["parameters"].items():
        if isinstance(parameters.get("monotone"), dict):
            parameters = parameters | {"monotone": report["signs"]}
        facts.append((step, ", ".join(f"{key}={_short(value)}" for key, value in parameters.items())))
    if "C" in report:
        facts.append(("C chosen", _choice(report)))
    if report.get("relative_gap") is not None:
        facts.append(("certificate", f"relative duality gap {report['relative_gap']:.1e}"))
    if "relative_gap" in report:
        facts.append(("objective", f"{report['objective']:.10g}"))
    if report["low_rank"] is not None:
        facts.append(("low rank", low_rank_in_words(report["low_rank"])))
    if report["kernel"] is not None:
        facts.append(("kernel", kernel_in_words(report["kernel"])))
        facts.append(("model size", f"{size_in_words(report['kernel'])}; {count(report['bytes'])} bytes"))
    ranker = list(report["parameters"].values())[-1]
    if "loss" in ranker:
        facts.append(("loss", loss_in_words(ranker["loss"], ranker["huber_width"], report.get("width"))))
    if "status" in report:
        facts.append(("status", str(report["status"])))
    if "n_pairs" in report:
        of = f" of {queries(report['n_queries'])}" if "n_queries" in report else ""
        # PRank learns from documents
        unit = "document" if "PRanker" in report["parameters"] else "pair"
        updates = f", {count(report['n_updates'])} of which changed it" if "n_updates" in report else ""
        facts.append(("trained on", f"{counted(report['n_pairs'], unit)}{of}{updates}"))
    if report["online"] is not None:
        facts.append(("stream", _stream_in_words(report["online"])))
    if "weights" not in report:
        print_facts(facts, title=report["path"])
        return
    facts.append(
        (
            "weights",
            f"{count(report['features'])}, of which {count(report['nonzero_weights'])} are not 0; "
            f"norm {report['norm']:.6g}",
        )
    )
    print_facts(facts, title=report["path"])
    if report["weights"]:
        click.echo()
        values = aligned([x["weight"] for x in report["weights"]])
        rows = [[x["feature"], value, f"{x['share']:.1%}"] for x, value in zip(report["weights"], values, strict=True)]
        print_table(["feature", "weight", "share of all"], rows)


def _stream_in_words(online: dict[str, Any]) -> str:
    means = ", ".join(f"{name} {number(mean)}" for name, mean in online["metrics"].items())
    so_far = f"so far {means} (convention {online['convention']})"
    return f"{queries(online['queries'])} of {online['data']} by {online['learner']}; {so_far}"


def _choice(report: dict[str, Any]) -> str:
    """The chosen C and its score."""
    ranker = list(report["parameters"].values())[-1]
    C = weights([report["C"]])[0]
    return f"{C}, by {ranker['metric']} {number(report['best_score'])}" if "best_score" in report else C


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
