"""The models that ``ranksvm tune`` compares: linear and additive ones, kernels, and models of low rank."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import click

from ranksvm._util.parameters import PARAMETERS, names_in
from ranksvm.cli.options.models import (
    ADDITIVE_OPTIONS,
    ALLOWED_IN_LOW_RANK,
    KERNEL_OPTIONS,
    LOW_RANK_OPTIONS,
    NO_SIGNS_OF_KERNELS,
    NOT_OF_LOW_RANK,
    OF_APPROXIMATIONS,
    READ_BY_KERNELS,
    check_linear_part,
)
from ranksvm.cli.options.shared import all_options, flag
from ranksvm.cli.options.training import parameter_options

__all__ = ["MODEL_SETTINGS", "check_models", "compared_models", "in_words", "model_options"]

# The settings that define a model: all settings of a combination except scaler, loss and pairs.
MODEL_SETTINGS = tuple(dict.fromkeys((*names_in("additive"), *names_in("kernel"), *names_in("low_rank"))))
# Settings that are fixed for models of low rank.
_OF_LOW_RANK = {
    each.name: ALLOWED_IN_LOW_RANK[each.name][0]
    for each in PARAMETERS
    if each.tuned and each.section == "pairs" and each.low_rank
}
# Options of kernels, which are refused if no kernel is compared.
_OF_KERNELS = tuple(name for name in KERNEL_OPTIONS if name not in ("gamma", "random_state", "memory_limit"))


def model_options(command: Callable) -> Callable:
    """Which models are compared."""
    return all_options(
        parameter_options("additive", compared=True),
        click.option("--no-linear", is_flag=True, help="Compare no linear models, only others."),
        parameter_options("kernel", "low_rank", compared=True),
    )(command)


def check_models(options: dict[str, Any]) -> None:
    """Refuse options of models that are not compared, and options that a compared model does not support."""
    kernels, low_rank = options["kernel"] or [], options["low_rank"] or []
    additive = "additive" in options["model"]
    if not (_compares_linear(options) or additive or kernels or low_rank):
        raise click.UsageError("--no-linear leaves nothing to compare: give --model additive, --kernel or --low-rank.")
    for name in ADDITIVE_OPTIONS:
        if options[name] is not None and not additive:
            raise click.UsageError(f"{flag(name)} is an option of --model additive: give that option too.")
    check_linear_part(options["linear"], options["step_weight"] or [])
    for name in (*_OF_KERNELS, "gammas"):
        if options[name] is not None and not kernels and name != "n_components":
            raise click.UsageError(f"{flag(name)} is an option of kernels: give --kernel too.")
        readers = READ_BY_KERNELS.get(name)
        if options[name] is not None and readers is not None and not set(readers) & set(kernels):
            raise click.UsageError(f"{flag(name)} is used by --kernel {' or '.join(readers)}.")
    if options["monotone"] is not None:
        _check_signs(kernels, low_rank)
    approximation = options["approximation"]
    for name, readers in OF_APPROXIMATIONS.items():
        random_too = name == "random_state" and "factorized" in low_rank
        if options[name] is not None and approximation not in readers and not random_too:
            raise click.UsageError(f"{flag(name)} is an option of --approximation {' or '.join(readers)}.")
    unknown = [kernel for kernel in kernels if kernel not in ("rbf", "laplacian")]
    if approximation == "fourier" and unknown:
        raise click.UsageError(f"--approximation fourier is known for rbf and laplacian only, not for {unknown[0]}.")
    of_low_rank = {"rank": "factorized", "gamma": "regularized", "lam": "regularized"}
    of_low_rank |= dict.fromkeys(("learning_rate", "init", "max_epochs", "early_stopping_rounds"), "factorized")
    for name, model in of_low_rank.items():
        if options[name] is not None and model not in low_rank:
            raise click.UsageError(f"{flag(name)} is an option of --low-rank {model}: give that option too.")
    if low_rank:
        for name in ("sample_weight", "query_weight", "propensity", "pairs", "clicks"):
            if options[name] is not None:
                raise click.UsageError(f"--low-rank with {flag(name)}: {NOT_OF_LOW_RANK[name]}.")
    if options["memory_limit"] is not None and not (kernels or "regularized" in low_rank):
        raise click.UsageError(
            "--memory-limit is an option of kernels, or of --low-rank regularized: tune reads TRAIN into memory. "
            "ranksvm train --C-range reads a TRAIN that is larger than memory in passes."
        )
    if options["early_stopping_rounds"] is not None and options["valid"] is None:
        raise click.UsageError("--early-stopping-rounds needs data to evaluate every epoch on: give --valid.")
    if options["early_stopping_rounds"] is not None and options["convention"] != "default":
        raise click.UsageError("--early-stopping-rounds evaluates epochs by the default convention only.")


def _check_signs(kernels: list[str], low_rank: list[str]) -> None:
    """Refuse signs of weights if a compared model cannot keep them: the comparison would not be fair."""
    if kernels:
        raise click.UsageError(NO_SIGNS_OF_KERNELS)
    if low_rank:
        raise click.UsageError(f"--low-rank with --monotone: {ALLOWED_IN_LOW_RANK['monotone'][1]}.")


def compared_models(options: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of each model: `MODEL_SETTINGS`, and loss and pairs if they are fixed for the model."""
    nothing = dict.fromkeys(MODEL_SETTINGS)
    models: list[dict[str, Any]] = [nothing] if _compares_linear(options) else []
    if "additive" in options["model"]:
        models += [nothing | settings for settings in _additive_models(options)]
    common = ("approximation", "landmarks", "random_state", "memory_limit", "kernel_dtype")
    for kernel, size in itertools.product(options["kernel"] or [], options["n_components"] or [None]):
        read = {name: options[name] for name in ("degree", "coef0") if kernel in READ_BY_KERNELS[name]}
        if options["approximation"] is None:
            read["random_state"] = None
        given = {name: options[name] for name in common}
        models.append({**nothing, **given, **read, "kernel": kernel, "n_components": size})
    for model in options["low_rank"] or []:
        given = {name: options[name] for name in LOW_RANK_OPTIONS[model] if name in MODEL_SETTINGS}
        compared = {"n_components": "rank"} if model == "factorized" else {"gamma": "gamma", "lam": "lam"}
        for values in itertools.product(*(options[source] or [None] for source in compared.values())):
            settings = given | dict(zip(compared, values, strict=True))
            models.append({**nothing, **settings, **_OF_LOW_RANK, "low_rank": model})
    return models


def _compares_linear(options: dict[str, Any]) -> bool:
    return "linear" in options["model"] and not options["no_linear"]


def _additive_models(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The settings for each step weight and each choice of interactions; defaults are those of the library."""
    from ranksvm.estimators.additive_rank_svm_cv import AUTO_COUNTS, STEP_WEIGHTS

    given = {name: options[name] for name in ADDITIVE_OPTIONS} | {"model": "additive"}
    weights = options["step_weight"]
    if weights is None:
        weights = [weight for weight in STEP_WEIGHTS if weight or options["linear"] is not False]
    interactions: list[Any] = []
    for each in options["interactions"] or [0]:
        interactions += AUTO_COUNTS if each == "auto" else [each]
    for weight, functions in itertools.product(weights, dict.fromkeys(interactions)):
        yield given | {"step_weight": weight, "interactions": functions}


def in_words(settings: dict[str, Any]) -> str:
    """The model of a combination as it is displayed."""
    if settings["low_rank"] is not None:
        named = {"n_components": "rank", "gamma": "gamma", "lam": "lam"}
        values = [f"{word} {settings[name]:g}" for name, word in named.items() if settings[name] is not None]
        return " ".join([settings["low_rank"], *values])
    if settings["model"] == "additive":
        functions = f" interactions {settings['interactions']}" if settings["interactions"] else ""
        return f"additive step weight {settings['step_weight']:g}{functions}"
    if settings["kernel"] is None:
        return "linear"
    words = [settings["kernel"], settings["approximation"], settings["n_components"]]
    return " ".join(str(word) for word in words if word is not None)
