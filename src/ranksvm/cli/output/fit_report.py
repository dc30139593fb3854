"""Report of a trained model, as part of a command's JSON document and as tables for people."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ranksvm.cli.output.progress import Stopwatch
from ranksvm.cli.output.tables import count, counted, number, print_facts, print_table, seconds, weights
from ranksvm.cli.terminal import say
from ranksvm.cli.training_data import TrainingData
from ranksvm.estimators.base.summary import (
    additive_in_words,
    certificate,
    described_additive,
    described_kernel,
    described_low_rank,
    kernel_in_words,
    loss_in_words,
    low_rank_in_words,
    size_in_words,
)

if TYPE_CHECKING:
    from ranksvm.cli.clicks import ClickChoice
    from ranksvm.cli.comparison import Choice
    from ranksvm.cli.rankers import Estimator

__all__ = [
    "by_rule",
    "c_names",
    "candidates",
    "described_data",
    "edges",
    "fit_report",
    "score",
    "score_heading",
    "show_fit",
]


def described_data(data: TrainingData) -> dict[str, Any]:
    """The path and size of each data set (training, validation, test), and the sources of weights and pairs."""
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
        "pairs_from": "labels" if data.from_labels else str(data.paths.get("pairs", data.paths.get("clicks"))),
    }


def fit_report(ranker: "Estimator", scaler: str, means: dict[str, dict[str, float]], convention: str) -> dict[str, Any]:
    """The fitted model, its certificate, and its metrics on the training, validation and test data."""
    return {
        "C": float(ranker.fitted_params_["C"]),
        "kernel": described_kernel(ranker),
        "low_rank": described_low_rank(ranker),
        "additive": described_additive(ranker),
        **_loss_and_pairs(ranker),
        "monotone": _signs(ranker),
        "scaler": scaler,
        "solver": getattr(ranker, "solver_", None),
        "device": getattr(ranker, "device_", "cpu"),
        "iterations": int(ranker.n_iter_),
        "pairs": int(ranker.n_pairs_),
        "objective": float(ranker.objective_),
        **certificate(ranker),
        "tol": ranker.tol,
        "width": getattr(ranker, "width_", None),
        "converged": bool(ranker.converged_),
        "status": str(ranker.status_),
        "convention": convention,
        "metrics": means,
    }


def _loss_and_pairs(ranker: "Estimator") -> dict[str, Any]:
    """The loss and its pairs; low-rank models have only one choice, which is not a parameter."""
    fitted = ranker.fitted_params_
    loss = fitted.get("loss", "hinge")
    return {
        "loss": loss,
        "huber_width": float(fitted["huber_width"]) if loss == "huber" else None,
        "pair_selection": fitted.get("pair_selection", "all"),
        "pair_weighting": fitted.get("pair_weighting", "uniform"),
    }


def _device(device: str | list[str]) -> str:
    return device if isinstance(device, str) else ", ".join(device)


def _signs(ranker: "Estimator") -> dict[str, int] | None:
    """How many weights must not be negative, and how many not positive; None if all are free."""
    signs = getattr(ranker, "monotone_", None)
    if signs is None:
        return None
    return {"increasing": int((signs > 0).sum()), "decreasing": int((signs < 0).sum())}


def candidates(ranker: "Choice | ClickChoice") -> list[dict[str, Any]]:
    """The values of C, and of gamma or of an additive model's settings, that were tried, with their scores."""
    settings = _settings(ranker)
    shape = len(settings), len(ranker.Cs_)
    means, errors = ranker.mean_scores_.reshape(shape), ranker.standard_errors_.reshape(shape)
    scores = ranker.scores_.reshape(*shape, -1)
    return [
        {
            "C": float(C),
            **setting,
            "score": float(means[row, column]),
            "standard_error": float(errors[row, column]),
            "fold_scores": scores[row, column].tolist(),
        }
        for row, setting in enumerate(settings)
        for column, C in enumerate(ranker.Cs_)
    ]


def _settings(ranker: Any) -> list[dict[str, Any]]:
    """The settings that were compared besides C, one for each row of the scores."""
    if hasattr(ranker, "step_weights_"):
        # interactions given as a list are the same in all settings, so None stands for them
        return [
            {"gamma": None, "step_weight": float(weight), "interactions": None if n < 0 else int(n)}
            for weight, n in zip(ranker.step_weights_, ranker.interaction_counts_, strict=True)
        ]
    gammas = getattr(ranker, "gammas_", [])
    return [{"gamma": float(gamma)} for gamma in gammas] or [{"gamma": None}]


def edges(tried: Sequence[dict[str, Any]], chosen: dict[str, Any]) -> list[tuple[str, str]]:
    """Notes if a chosen value is the smallest or largest of those tried, so that a better one may lie outside."""
    gamma = None if chosen["kernel"] is None else chosen["kernel"]["gamma"]
    notes = []
    for name, value, option in (("C", chosen["C"], "--C-range"), ("gamma", gamma, "--gamma-range")):
        values = sorted({item[name] for item in tried} - {None})
        if len(values) < 2 or value not in (values[0], values[-1]):
            continue
        which, beyond = ("smallest", "smaller") if value == values[0] else ("largest", "larger")
        notes.append(("note", f"the {which} {name} tried was chosen: {beyond} ones may be better ({option})"))
    return notes


def by_rule(rule: str) -> str:
    """Text about the rule that chooses C; empty for the rule "best"."""
    return "" if rule == "best" else f", {rule.replace('_', ' ')} rule"


def score(mean: float, error: float | None) -> str:
    """A mean and its standard error, if there is one; `score_heading` says what follows the ±."""
    return f"{number(mean)} ± {number(error)}" if _is_known(error) else number(mean)


def score_heading(metric: str, errors: Iterable[float | None]) -> str:
    """The heading of a column of scores."""
    return f"{metric} ± standard error" if any(map(_is_known, errors)) else metric


def _is_known(error: float | None) -> bool:
    return error is not None and not math.isnan(error)


def show_fit(
    report: dict[str, Any],
    C_name: str,
    notes: Sequence[tuple[str, str]],
    files: Sequence[tuple[str, str]],
    watch: Stopwatch,
) -> None:
    """Print the metrics by part, then the fitted model, with ``notes`` on the choice and the ``files`` written."""
    means, kernel, low_rank = report["metrics"], report["kernel"], report["low_rank"]
    if means:
        names = list(next(iter(means.values())))
        rows = [[name, *(number(means[part][name]) for part in means)] for name in names]
        print_table([f"metric ({report['convention']})", *means], rows)
        say()
    print_facts(
        [
            ("C", C_name),
            *notes,
            *([] if report["relative_gap"] is None else [("certificate", _certificate(report))]),
            ("status", report["status"]),
            ("objective", f"{report['objective']:.10g}"),
            *([("kernel", kernel_in_words(kernel)), ("model size", size_in_words(kernel))] if kernel else []),
            *([("low rank", low_rank_in_words(low_rank))] if low_rank else []),
            *([("additive", additive_in_words(report["additive"]))] if report["additive"] else []),
            ("loss", loss_in_words(report["loss"], report["huber_width"], report["width"])),
            ("pairs", _pairs(report)),
            *([("monotone", _signs_in_words(report["monotone"]))] if report["monotone"] else []),
            *([("scaler", report["scaler"])] if report["scaler"] != "none" else []),
            ("solver", _solver(report)),
            *([("device", _device(report["device"]))] if report["device"] != "cpu" else []),
            ("time", ", ".join(f"{name} {seconds(value)}" for name, value in watch.seconds.items())),
            *files,
        ]
    )


def _signs_in_words(signs: dict[str, int]) -> str:
    return ", ".join(f"{word} in {counted(number, 'feature')}" for word, number in signs.items() if number)


def _certificate(report: dict[str, Any]) -> str:
    return f"relative duality gap {report['relative_gap']:.1e} (tol {report['tol']:.0e})"


def _solver(report: dict[str, Any]) -> str:
    factorized = report["low_rank"] is not None and report["low_rank"]["model"] == "factorized"
    words = [counted(report["iterations"], "epoch" if factorized else "iteration")]
    if report["solver"] is not None:
        words.insert(0, report["solver"])
    if report["kernel"] is not None and report["kernel"]["products"]:
        words.append(counted(report["kernel"]["products"], "kernel product"))
    return ", ".join(words)


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
    """The text of each value of C, the same in a table and below it."""
    return dict(zip(Cs, weights(Cs), strict=True))
