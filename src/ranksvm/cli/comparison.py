"""What ``ranksvm tune`` compares: models, and combinations of settings, each with its best C."""

import dataclasses
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import click

from ranksvm._util.parameters import PARAMETERS, names_in
from ranksvm._util.text import power
from ranksvm.cli.options.models import (
    ADDITIVE_OPTIONS,
    ALLOWED_IN_LOW_RANK,
    KERNEL_OPTIONS,
    LOW_RANK_OPTIONS,
    NO_SIGNS_OF_KERNELS,
    NOT_OF_LOW_RANK,
    OF_APPROXIMATIONS,
    READ_BY_KERNELS,
    check_interaction_options,
    check_linear_part,
    check_loss_options,
)
from ranksvm.cli.options.shared import all_options, flag
from ranksvm.cli.options.training import parameter_options
from ranksvm.cli.output.errors import warn
from ranksvm.cli.output.fit_report import score, score_heading
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import counted, seconds
from ranksvm.cli.rankers import LowRankChoice, make_ranker
from ranksvm.cli.training_data import TrainingData

if TYPE_CHECKING:
    from ranksvm._util.types import Features
    from ranksvm.cli.rankers import Estimator
    from ranksvm.estimators.base.choosing_ranker import ChoosingRanker
    from ranksvm.metrics import Evaluation

    # What chooses C for a combination.
    Choice = ChoosingRanker | LowRankChoice

__all__ = [
    "MODEL_SETTINGS",
    "Comparison",
    "Tried",
    "check_models",
    "chosen_values",
    "combinations",
    "compared_models",
    "described",
    "in_words",
    "model_options",
    "tell_cost",
]

# The settings that define a model: all settings of a combination except scaler, loss and pairs.
MODEL_SETTINGS = tuple(dict.fromkeys((*names_in("additive"), *names_in("kernel"), *names_in("low_rank"))))
# Settings that are fixed for low-rank models.
_OF_LOW_RANK = {
    each.name: ALLOWED_IN_LOW_RANK[each.name][0]
    for each in PARAMETERS
    if each.tuned and each.section == "pairs" and each.low_rank
}
# Options of kernels, which are refused if no kernel is compared.
_OF_KERNELS = tuple(name for name in KERNEL_OPTIONS if name not in ("gamma", "random_state", "memory_limit"))
# Kernels and low-rank models try every fourth value of the default range of C: on MQ2008 fold 1, one of their fits
# takes a second or more, but the fit of a linear model for the next C takes some milliseconds. Fits of additive models
# take longer than those of linear models, but not as long as those of kernels, so additive models try every second
# value.
COARSE = {"additive": 2, None: 4}
# the number of gammas that KernelRankSVMCV tries by default
DEFAULT_GAMMAS = 4


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
    check_interaction_options(options["interactions"] not in (None, [0]))
    check_loss_options(options["loss"])
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
    """The settings for each step weight and each choice of interactions; the library has the defaults."""
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


def combinations(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the models and the settings given as lists; those with the same scaler are adjacent.

    The width applies only to the Huberized hinge.
    """
    names = [each.name for each in PARAMETERS if each.section == "pairs" and each.tuned and each.models]
    found: list[dict[str, Any]] = []
    every = itertools.product(options["scaler"], compared_models(options), *(options[name] for name in names))
    for scaler, model, *values in every:
        # if a model has a fixed loss and fixed pairs, these take precedence
        settings = {"scaler": scaler} | dict(zip(names, values, strict=True)) | model
        if settings["loss"] != "huber":
            settings["huber_width"] = None
        if settings not in found:
            found.append(settings)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Tried:
    """A combination of settings, and the estimator that chose its C.

    Parameters
    ----------
    settings : dict
        The combination.
    ranker : RankSVMCV, AdditiveRankSVMCV, KernelRankSVMCV or LowRankChoice
        Fitted with these settings.
    seconds : float
        Wall-clock time of the fit.
    """

    settings: dict[str, Any]
    ranker: "Choice"
    seconds: float

    @property
    def C(self) -> float:  # noqa: N802 (the usual symbol)
        """The chosen C."""
        return self.ranker.C_

    @property
    def gamma(self) -> float | None:
        """The chosen gamma of a kernel, or of a low-rank model."""
        return getattr(self.ranker, "gamma_", self.settings["gamma"])

    @property
    def model(self) -> Any:
        """The fitted model."""
        return getattr(self.ranker, "ranker_", self.ranker)

    @property
    def score(self) -> float:
        """The mean score of this C."""
        return self.ranker.best_score_

    @property
    def standard_error(self) -> float:
        """The standard error of this score."""
        import numpy as np

        errors = np.atleast_2d(self.ranker.standard_errors_)
        gammas = getattr(self.ranker, "gammas_", ())
        row = int(np.flatnonzero(gammas == self.gamma)[0]) if len(gammas) else 0
        return float(errors[row, self.ranker.Cs_ == self.C][0])


HEADINGS = {"model": "model"} | {each.name: each.heading for each in PARAMETERS if each.heading}


def _cell(settings: dict[str, Any], name: str) -> str:
    """A setting as it is displayed; the model in words, the loss with its width."""
    if name == "model":
        return in_words(settings)
    width = settings["huber_width"] if name == "loss" else None
    return str(settings[name]) if width is None else f"{settings[name]} {width:g}"


class Comparison:
    """Combinations tried one after another, or several at once.

    Parameters
    ----------
    data : TrainingData
        The training data, and validation data if there are any.
    options : dict
        Options of the command that apply to all combinations.
    combinations : list of dict
        The settings to compare.
    """

    def __init__(self, data: TrainingData, options: dict[str, Any], combinations: list[dict[str, Any]]):
        self.combinations = combinations
        self.tried: list[Tried] = []
        self._data = data
        self._options = options

    @property
    def ranked(self) -> list[Tried]:
        """The combinations tried, best first; ties keep the order in which they were given."""
        return sorted(self.tried, key=lambda tried: (-tried.score, self.combinations.index(tried.settings)))

    @property
    def columns(self) -> list[str]:
        """Headings of the settings that differ between combinations; the loss if none does."""
        values = {name: {_cell(each, name) for each in self.combinations} for name in HEADINGS}
        return [HEADINGS[name] for name in HEADINGS if len(values[name]) > 1] or [HEADINGS["loss"]]

    def cells(self, settings: dict[str, Any]) -> list[str]:
        """The values of a combination in the columns that `columns` names."""
        columns = self.columns
        return [_cell(settings, name) for name, heading in HEADINGS.items() if heading in columns]

    def fits(self, settings: dict[str, Any]) -> int:
        """Number of fits needed to choose C, and gamma, for a combination."""
        parts = 1 if "valid" in self._data.parts else self._options["folds"]
        return len(self.values_of_C(settings)) * _n_gammas(settings, self._options["gammas"]) * parts

    def values_of_C(self, settings: dict[str, Any]) -> list[float]:  # noqa: N802 (the usual symbol)
        """The values of C to try: for models that are slower to fit than linear ones, some of the default values."""
        Cs = self._options["Cs"]
        return Cs if is_linear(settings) or self._options["Cs_given"] else Cs[:: COARSE[settings["model"]]]

    def check(self) -> None:
        """Before the first fit, refuse selections and weightings of pairs that contradict listed pairs."""
        from ranksvm.fits.training_set import TrainingArguments

        for settings in self.combinations:
            # making the ranker also imports its class: `run` then does not count the import as training time
            ranker = self._ranker(settings)
            if isinstance(ranker, LowRankChoice):
                continue
            TrainingArguments(None, pairs=self._data.pairs).check_pairs(ranker.pair_selection, ranker.pair_weighting)

    def run(self, progress: Progress, watch: Stopwatch) -> None:
        """Try every combination; finished ones are kept if Ctrl-C ends it."""
        progress.n_fits = sum(map(self.fits, self.combinations))
        with _not_converged_counted():
            for scaler, group in itertools.groupby(self.combinations, key=lambda settings: settings["scaler"]):
                progress.now("Scaling features")
                _, X = self._data.scaled(scaler, watch)
                self._try(list(group), X, progress, watch)
        progress.heading = ""

    def _try(self, combinations: list[dict[str, Any]], X: dict[str, Any], progress: Progress, watch: Stopwatch) -> None:
        """Try the combinations of one scaler; X are the scaled features."""
        from ranksvm._util.threads import effective_n_jobs, one_blas_thread, parallel_map

        lock = threading.Lock()

        def try_one(settings: dict[str, Any]) -> None:
            ranker = self._ranker(settings)
            start = time.perf_counter()
            self._data.fit(ranker, X, evaluating=True)
            tried = Tried(settings, ranker, time.perf_counter() - start)
            with lock:
                self.tried.append(tried)
                self._tell(tried, progress)

        self._head(progress)
        linear = [settings for settings in combinations if is_linear(settings)]
        n_threads = effective_n_jobs(self._options["n_jobs"]) if _one_thread_each(X["train"]) else 1
        with watch("training"):
            with one_blas_thread():
                parallel_map(try_one, linear, n_threads)
            # one after another, so that only one kernel matrix is in memory; each fit uses all threads
            for settings in combinations:
                if not is_linear(settings):
                    try_one(settings)

    def against_runner_up(self, watch: Stopwatch) -> dict[str, Any] | None:
        """Compare the best with the second best, query by query, on the data that decided the choice."""
        from sklearn.exceptions import ConvergenceWarning

        from ranksvm.metrics import compare

        if len(self.tried) < 2:
            return None
        first, second = self.ranked[:2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported before
            evaluations = self._evaluation(second, watch), self._evaluation(first, watch)
        found = compare(*evaluations, metric=self._options["metric"])
        return {"runner_up": described(second.settings) | chosen_values(second), **dataclasses.asdict(found)}

    def _ranker(self, settings: dict[str, Any]) -> "Choice":
        """The estimator that chooses C of a combination."""
        Cs, options = self.values_of_C(settings), self._data.resolved(self._options | settings)
        if settings["low_rank"] is None:
            return cast("ChoosingRanker", make_ranker(options, Cs=Cs))
        how = {name: self._options[name] for name in ("metric", "convention", "rule")}

        def make(C: float) -> "Estimator":
            return make_ranker(options, Cs=None, gammas=None, C=C)

        make(Cs[0])  # imports the class now, so that the import does not count as training time
        return LowRankChoice(make, Cs, cv=self._options["folds"], label=in_words(settings), **how)

    def _evaluation(self, tried: Tried, watch: Stopwatch) -> "Evaluation":
        """The metric of each query at the chosen C, on the validation data or on the held-out folds."""
        from ranksvm.metrics import evaluate
        from ranksvm.model_selection import cross_validate

        metric, convention = self._options["metric"], self._options["convention"]
        weights: dict[str, Any] = self._data.weights
        _, X = self._data.scaled(tried.settings["scaler"], watch)
        if "valid" in self._data.parts:
            valid = self._data.parts["valid"]
            scores = tried.ranker.predict(X["valid"])
            return evaluate(valid.y, scores, valid.query_ids, [metric], convention=convention)
        train = self._data.parts["train"]
        options = self._data.resolved(self._options | tried.settings)
        with watch("comparing"):
            return cross_validate(
                make_ranker(options, Cs=None, gammas=None, **chosen_values(tried)),
                X["train"],
                train.y,
                qid=train.query_ids,
                metrics=[metric],
                cv=self._options["folds"],
                convention=convention,
                **weights,
            ).pooled()

    def _tell(self, tried: Tried, progress: Progress) -> None:
        metric = score_heading(self._options["metric"], [tried.standard_error])
        found = f"{metric} {score(tried.score, tried.standard_error)} at C = {power(tried.C)}"
        place = f"{len(self.tried)} of {len(self.combinations)}"
        progress.line(f"{place}: {', '.join(self.cells(tried.settings))}: {found}, {seconds(tried.seconds)}")
        self._head(progress)

    def _head(self, progress: Progress) -> None:
        progress.heading = f"{len(self.tried)} of {len(self.combinations)} compared "


def tell_cost(comparison: Comparison, data: TrainingData, options: dict[str, Any], progress: Progress) -> None:
    """Say how many fits are coming, and warn of kernel matrices that do not fit into memory."""
    from ranksvm._util import checks
    from ranksvm._util.memory import in_words as size_in_words, memory_bytes

    checks.check(memory_limit=checks.memory_limit(options["memory_limit"]))
    costly = [settings for settings in comparison.combinations if not is_linear(settings)]
    if not costly:
        return
    n_rows = data.parts["train"].n_rows
    first, last = power(options["Cs"][0]), power(options["Cs"][-1])
    for model, names, which in (
        ("additive", "Additive models", "second"),
        (None, "Kernels and low-rank models", "fourth"),
    ):
        these = [settings for settings in costly if settings["model"] == model]
        if these:
            fits = counted(sum(map(comparison.fits, these)), "fit")
            few = "" if options["Cs_given"] else f", with every {which} C from {first} to {last}"
            progress.line(f"{names}: {fits} on {counted(n_rows, 'row')}{few}")
    exact = any(settings["kernel"] is not None and settings["approximation"] is None for settings in costly)
    # the matrix is symmetric: only one triangle is stored
    needed = n_rows * n_rows // 2 * (8 if options["kernel_dtype"] == "float64" else 4)
    if exact and needed > (allowed := memory_bytes(options["memory_limit"])):
        warn(
            f"a kernel matrix of {counted(n_rows, 'row')} takes {size_in_words(needed)}, more than "
            f"{size_in_words(allowed)} (--memory-limit): what does not fit is computed again for every product, which "
            "is slow. --approximation nystroem is faster, and so are fewer values in --C-range and --gamma-range."
        )


def is_linear(settings: dict[str, Any]) -> bool:
    """Whether the model of a combination is the plain linear one, which is fitted fast."""
    return all(settings[name] is None for name in ("model", "kernel", "low_rank"))


def described(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a combination, without those that its model does not have."""
    always = ("scaler", "kernel", "low_rank", "loss", "huber_width", "pair_selection", "pair_weighting")
    return {name: value for name, value in settings.items() if value is not None or name in always}


def chosen_values(tried: Tried) -> dict[str, Any]:
    """The values of C, and of gamma if the model has one, that were chosen for a combination."""
    return {"C": tried.C} | ({} if tried.gamma is None else {"gamma": tried.gamma})


def _n_gammas(settings: dict[str, Any], gammas: list[float] | None) -> int:
    if settings["kernel"] not in READ_BY_KERNELS["gammas"]:
        return 1
    return DEFAULT_GAMMAS if gammas is None else len(gammas)


def _one_thread_each(X: "Features") -> bool:
    """Whether a fit is so small that its threads are better used to fit other combinations at the same time.

    Eight combinations on MQ2008 fold 1, with five folds, take 0.99 s this way on two idle cores, and 1.43 s one by one.
    """
    from ranksvm.data import as_design_matrix
    from ranksvm.terms.host import worth_threads

    return not worth_threads(as_design_matrix(X), X.shape[0])


@contextmanager
def _not_converged_counted() -> Iterator[None]:
    """Replace the warnings of single fits, possibly hundreds, by one with the number that did not converge."""
    from sklearn.exceptions import ConvergenceWarning

    found: list[str] = []
    with warnings.catch_warnings():
        show = warnings.showwarning

        def count(message: Warning | str, category: type[Warning], *others: Any, **named: Any) -> None:
            if issubclass(category, ConvergenceWarning):
                found.append(str(message))
            else:
                show(message, category, *others, **named)

        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = count
        yield
    if found:
        warn(f"{counted(len(found), 'fit')} did not converge; the first message was: {found[0]}")
