"""Summary of a fitted model for the command line, notebooks and reports: functions, loss, duality gap.

NumPy is imported on first use, so that the command line shows help and usage errors at once.
"""

import math
from typing import Any

from ranksvm._util.text import count, counted, number, power, queries, weights

__all__ = [
    "certificate",
    "additive_in_words",
    "certificate_in_words",
    "described_additive",
    "described_fit",
    "described_kernel",
    "described_low_rank",
    "fit_facts",
    "kernel_in_words",
    "loss_in_words",
    "low_rank_in_words",
    "size_in_words",
]

# Fitted attributes that describe a fit, without the weights. Some kinds of models, and files of earlier versions, lack
# some of them.
_DESCRIBED = (
    *("solver_", "status_", "C_", "best_score_", "objective_", "duality_gap_", "converged_", "n_iter_", "width_"),
    *("n_pairs_", "n_queries_", "n_updates_"),
)


def described_fit(ranker: Any) -> dict[str, Any]:
    """The facts of a fit: the attributes that the ranker has, its loss, certificate, functions, kernel and rank."""
    found = {name.rstrip("_"): getattr(ranker, name) for name in _DESCRIBED if hasattr(ranker, name)}
    fitted = getattr(ranker, "fitted_params_", {})
    found |= {name: fitted[name] for name in ("C", "loss", "huber_width") if name in fitted}
    if hasattr(ranker, "Cs_"):
        from ranksvm.metrics import parse_metric

        # earlier versions did not store the metric
        found["metric"] = parse_metric(fitted.get("metric", ranker.metric)).name
    if found.get("objective"):
        found["relative_gap"] = certificate(ranker)["relative_gap"]
    found["kernel"] = described_kernel(ranker) if hasattr(ranker, "n_kernel_products_") else None
    found["low_rank"] = described_low_rank(ranker)
    found["additive"] = described_additive(ranker)
    # an imported model
    found |= {"source": ranker.source} if hasattr(ranker, "source") else {}
    # PRank learns from documents
    found["learnt_from"] = "document" if hasattr(ranker, "thresholds_") else "pair"
    return found


def fit_facts(fit: dict[str, Any]) -> list[tuple[str, str]]:
    """The name and the text of each fact of `described_fit`."""
    facts = []
    if "metric" in fit:
        facts.append(("C chosen", f"{weights([fit['C']])[0]}, by {fit['metric']} {number(fit['best_score'])}"))
    elif "C" in fit:
        facts.append(("C", weights([float(fit["C"])])[0]))
    if fit.get("relative_gap") is not None:
        facts.append(("certificate", f"relative duality gap {fit['relative_gap']:.1e}"))
    if "relative_gap" in fit:
        facts.append(("objective", f"{fit['objective']:.10g}"))
    if fit.get("source"):
        facts.append(("fitted by", fit["source"]))
    if fit["low_rank"] is not None:
        facts.append(("low rank", low_rank_in_words(fit["low_rank"])))
    if fit["additive"] is not None:
        facts.append(("additive", additive_in_words(fit["additive"])))
    if fit["kernel"] is not None:
        facts.append(("kernel", kernel_in_words(fit["kernel"])))
        facts.append(("model size", size_in_words(fit["kernel"])))
    if "loss" in fit:
        facts.append(("loss", loss_in_words(fit["loss"], fit.get("huber_width"), fit.get("width"))))
    if "status" in fit:
        facts.append(("status", str(fit["status"])))
    if "n_pairs" in fit:
        of = f" of {queries(fit['n_queries'])}" if "n_queries" in fit else ""
        updates = f", {count(fit['n_updates'])} of which changed it" if "n_updates" in fit else ""
        facts.append(("trained on", f"{counted(fit['n_pairs'], fit['learnt_from'])}{of}{updates}"))
    return facts


def certificate_in_words(ranker: Any) -> str:
    """Sentences on what the duality gap of a fit proves; for a model without a gap, the reason."""
    gap = getattr(ranker, "duality_gap_", None)
    if gap is None:
        name = type(ranker).__name__
        if hasattr(ranker, "source"):
            return f"The model was fitted by another program ({ranker.source}): nothing is known about its fit."
        if hasattr(ranker, "n_updates_"):
            return f"A {name} learns from one query after another: there is no optimum from which to measure it."
        return f"The problem of a {name} is not convex: the fit has no certificate, and may be a local minimum."
    edited = getattr(ranker, "edited_", None)
    if not math.isfinite(gap):
        if edited:
            return "Shapes were edited by hand, without the training data: nothing is known about what that costs."
        return "No finite duality gap was found: nothing is proven about the distance from the minimum."
    from ranksvm.solvers import relative_gap

    objective = float(ranker.objective_)
    words = [
        f"The objective is {objective:.10g}, and the duality gap proves that no model of this kind has an objective "
        f"lower by more than {gap:.3g} (relative: {relative_gap(gap, objective):.1e})."
    ]
    if not hasattr(ranker, "ranks_"):
        # the objective is strongly convex with modulus 1, so the gap also bounds the distance from the optimum
        what = "weight vector" if hasattr(ranker, "coef_") else "scoring function"
        words.append(f"So the distance of the {what} from the optimal one is at most {math.sqrt(2.0 * gap):.3g}.")
    if edited:
        words.append(f"Shapes were edited by hand; the objective was {edited['objective'][0]:.10g} before.")
    elif not ranker.converged_:
        words.append("This does not meet the tolerance of the fit.")
    return " ".join(words)


def certificate(ranker: Any) -> dict[str, float | None]:
    """The duality gap, absolute and relative to the objective; None for a model without a certificate."""
    gap = getattr(ranker, "duality_gap_", None)
    if gap is None:
        return {"duality_gap": None, "relative_gap": None}
    from ranksvm.solvers import relative_gap

    return {"duality_gap": float(gap), "relative_gap": float(relative_gap(gap, ranker.objective_))}


def described_low_rank(ranker: Any) -> dict[str, Any] | None:
    """The kind of low-rank model, and its ranks; None for any other model."""
    if hasattr(ranker, "factors_"):
        from ranksvm.metrics import parse_metric

        best = ranker.best_iteration_
        return {
            "model": "factorized",
            "n_components": ranker.fitted_params_["n_components"],
            "best_iteration": best,
            "best_score": ranker.best_score_,
            "metric": None if best is None else parse_metric(ranker.eval_metric).name,
        }
    if hasattr(ranker, "ranks_"):
        return {
            "model": "regularized",
            "gamma": float(ranker.fitted_params_["gamma"]),
            "lam": float(ranker.fitted_params_["lam"]),
            "mean_rank": float(ranker.ranks_.mean()),
            "largest_rank": int(ranker.ranks_.max()),
        }
    return None


def low_rank_in_words(low_rank: dict[str, Any]) -> str:
    """The low-rank model and its ranks, as text."""
    if low_rank["model"] == "factorized":
        words = f"factorized, {counted(low_rank['n_components'], 'component')}"
        if low_rank["best_iteration"] is None:
            return words
        score = f"{low_rank['metric']} {number(low_rank['best_score'])} on validation data"
        return f"{words}; epoch {low_rank['best_iteration']} kept: {score}"
    return (
        f"regularized, gamma {power(low_rank['gamma'])}, lam {power(low_rank['lam'])}; mean rank of a query "
        f"{low_rank['mean_rank']:.1f}, largest {low_rank['largest_rank']}"
    )


def described_additive(ranker: Any) -> dict[str, Any] | None:
    """The facts about the functions of an additive model; None for any other model."""
    if not hasattr(ranker, "shape_values_"):
        return None
    fitted = ranker.fitted_params_
    return {
        "step_weight": float(fitted["step_weight"]),
        "linear": bool(fitted["linear"]),
        "levels": len(ranker.shape_values_),
        "categorical": int(ranker.is_categorical_.sum()),
        "with_missing": int(ranker.has_missing_.sum()),
        "interactions": ranker.interactions_.tolist(),
        "cells": len(ranker.interaction_values_),
    }


def additive_in_words(additive: dict[str, Any]) -> str:
    """The functions of an additive model, as text."""
    words = [f"step weight {additive['step_weight']:g}", counted(additive["levels"], "level")]
    if not additive["linear"]:
        words.append("no linear part")
    if additive["categorical"]:
        words.append(f"categories in {counted(additive['categorical'], 'feature')}")
    if additive["with_missing"]:
        words.append(f"missing values in {counted(additive['with_missing'], 'feature')}")
    if additive["interactions"]:
        functions = counted(len(additive["interactions"]), "function")
        words.append(f"{functions} of two features with {counted(additive['cells'], 'cell')}")
    return ", ".join(words)


def described_kernel(ranker: Any) -> dict[str, Any] | None:
    """The kernel of a model and its size; None for a linear model."""
    if not hasattr(ranker, "kernel"):
        return None
    fitted = ranker.fitted_params_
    kernel = fitted["kernel"]
    name = kernel if isinstance(kernel, str) else getattr(kernel, "__qualname__", "callable")
    approximation = fitted["approximation"]
    coef = ranker.feature_coef_ if approximation == "fourier" else ranker.dual_coef_
    return {
        "name": name,
        "gamma": ranker.gamma_,
        "degree": fitted["degree"] if name == "poly" else None,
        "coef0": float(fitted["coef0"]) if name == "poly" else None,
        "approximation": approximation,
        "n_components": None if approximation is None else fitted["n_components"],
        "landmarks": fitted["landmarks"] if approximation == "nystroem" else None,
        "terms": len(coef),
        "products": ranker.n_kernel_products_,
        "pruned": getattr(ranker, "pruned_", {}).get("n_dropped", 0),
    }


def kernel_in_words(kernel: dict[str, Any]) -> str:
    """The kernel, its parameters and its approximation, as text."""
    words = [kernel["name"] if kernel["gamma"] is None else f"{kernel['name']} gamma {power(kernel['gamma'])}"]
    words += [f"{name} {kernel[name]:g}" for name in ("degree", "coef0") if kernel[name] is not None]
    if kernel["approximation"] is not None:
        words.append(f"approximated by {kernel['approximation']}")
    return ", ".join(words)


def size_in_words(kernel: dict[str, Any]) -> str:
    """How many terms a score is the sum of, and their kind, such as support vectors."""
    if kernel["approximation"] == "fourier":
        return counted(kernel["terms"], "random feature")
    words = f"{kernel['landmarks']} landmark" if kernel["approximation"] == "nystroem" else "support vector"
    return counted(kernel["terms"], words) + (f", {count(kernel['pruned'])} pruned" if kernel["pruned"] else "")


def loss_in_words(loss: str, huber_width: float | None, width: float | None) -> str:
    """The loss, with its own width, or the width over which it was smoothed."""
    if loss == "huber":
        return f"huber of width {huber_width:g}"
    return loss if width is None else f"{loss}, smoothed over a width of {width:.1e}"
