"""What a trained model is and does, as one part of a command's document, and for people."""

import math
from collections.abc import Sequence
from typing import Any

import click

from ranksvm.cli.progress import Stopwatch
from ranksvm.cli.tables import count, counted, number, print_facts, print_table, seconds, weights
from ranksvm.cli.training_data import TrainingData

__all__ = [
    "by_rule",
    "c_names",
    "candidates",
    "described_data",
    "edge",
    "fit_report",
    "loss_in_words",
    "score",
    "show_fit",
]


def described_data(data: TrainingData) -> dict[str, Any]:
    """Path and size of every part, and where weights and pairs come from."""
    return {
        "data": {
            name: {
                "path": str(data.paths[name]),
                "rows": part.n_rows,
                "queries": part.queries.n_queries,
                "features": part.n_features,
            }
            for name, part in data.parts.items()
        },
        "weights": {name: str(data.paths[name]) for name in data.weights},
        "pairs_from": "labels" if data.pairs is None else str(data.paths["pairs"]),
    }


def fit_report(ranker: Any, scaler: str, means: dict[str, dict[str, float]], convention: str) -> dict[str, Any]:
    """What was fitted, its certificate, and what it gives on every part."""
    return {
        "C": float(ranker.C_ if hasattr(ranker, "C_") else ranker.C),
        "loss": ranker.loss,
        "huber_width": float(ranker.huber_width) if ranker.loss == "huber" else None,
        "pair_selection": ranker.pair_selection,
        "pair_weighting": ranker.pair_weighting,
        "scaler": scaler,
        "solver": ranker.solver_,
        "iterations": int(ranker.n_iter_),
        "pairs": int(ranker.n_pairs_),
        "objective": float(ranker.objective_),
        "duality_gap": float(ranker.duality_gap_),
        "relative_gap": float(ranker.duality_gap_ / ranker.objective_) if ranker.objective_ else 0.0,
        "tol": ranker.tol,
        "width": ranker.width_,
        "converged": bool(ranker.converged_),
        "status": str(ranker.status_),
        "convention": convention,
        "metrics": means,
    }


def candidates(ranker: Any) -> list[dict[str, Any]]:
    """The values of C that a RankSVMCV tried, with their scores."""
    columns = (ranker.Cs_, ranker.mean_scores_, ranker.standard_errors_, ranker.scores_)
    return [
        {"C": float(C), "score": float(mean), "standard_error": float(error), "fold_scores": scores.tolist()}
        for C, mean, error, scores in zip(*columns, strict=True)
    ]


def edge(tried: Sequence[dict[str, Any]], C: float) -> list[tuple[str, str]]:
    """A note where the C chosen is the smallest or largest of those tried, so that the best may lie beyond."""
    if len(tried) < 2 or C not in (tried[0]["C"], tried[-1]["C"]):
        return []
    which, beyond = ("smallest", "smaller") if tried[0]["C"] == C else ("largest", "larger")
    return [("note", f"the {which} C tried was chosen: {beyond} ones may be as good or better (--C-range)")]


def by_rule(rule: str) -> str:
    """The rule that C is chosen by, where it is not that the best one is taken."""
    return "" if rule == "best" else f", {rule.replace('_', ' ')} rule"


def score(mean: float, error: float | None) -> str:
    """A mean and its standard error, where there is one."""
    known = error is not None and not math.isnan(error)
    return f"{number(mean)} ± {number(error)}" if known else number(mean)


def show_fit(
    report: dict[str, Any],
    C_name: str,
    notes: Sequence[tuple[str, str]],
    files: Sequence[tuple[str, str]],
    watch: Stopwatch,
) -> None:
    """The metrics by part, and below them what was fitted; ``notes`` on the choice, ``files`` that were written."""
    means = report["metrics"]
    if means:
        names = list(next(iter(means.values())))
        rows = [[name, *(number(means[part][name]) for part in means)] for name in names]
        print_table([f"metric ({report['convention']})", *means], rows)
        click.echo()
    print_facts(
        [
            ("C", C_name),
            *notes,
            ("certificate", f"relative duality gap {report['relative_gap']:.1e} (tol {report['tol']:.0e})"),
            ("status", report["status"]),
            ("objective", f"{report['objective']:.10g}"),
            ("loss", loss_in_words(report["loss"], report["huber_width"], report["width"])),
            ("pairs", _pairs(report)),
            *([("scaler", report["scaler"])] if report["scaler"] != "none" else []),
            ("solver", f"{report['solver']}, {counted(report['iterations'], 'iteration')}"),
            ("time", ", ".join(f"{name} {seconds(value)}" for name, value in watch.seconds.items())),
            *files,
        ]
    )


def loss_in_words(loss: str, huber_width: float | None, width: float | None) -> str:
    """The loss, with the width that it was given, or that it was smoothed over."""
    if loss == "huber":
        return f"huber of width {huber_width:g}"
    return loss if width is None else f"{loss}, smoothed over a width of {width:.1e}"


def _pairs(report: dict[str, Any]) -> str:
    words = [count(report["pairs"])]
    if report["pair_selection"] != "all":
        words.append(f"{report['pair_selection']} ones only")
    if report["pair_weighting"] != "uniform":
        words.append(f"weighted {report['pair_weighting']}")
    words += [f"times {name}" for name in report["weights"]]
    if report["pairs_from"] != "labels":
        words.append(f"from {report['pairs_from']}")
    return ", ".join(words)


def c_names(Cs: Sequence[float]) -> dict[float, str]:
    """How values of C are written, alike in a table and below it."""
    return dict(zip(Cs, weights(Cs), strict=True))
