"""How the models depend on K, gamma and lambda, and how their objectives fall by iteration and by time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from papers.data_sets import Parts
from papers.items import Context
from papers.results import Grid, Part, Picture
from papers.timing import seconds
from papers.xu_2019.models import MODELS
from papers.xu_2019.published import QUALITY
from papers.xu_2019.published_algorithms import algorithm_2, blocks_of, listed
from papers.xu_2019.quality import search_of
from papers.xu_2019.search import MEASURES, Search, Task, evaluated
from ranksvm.estimators import FactorizedRankSVM, RankSVM, RegularizedRankSVM

__all__ = ["learning_curves", "sensitivity"]

# Model, parameter, and values of the parameter in the published range.
VARIED: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("factorized", "n_components", (1, 2, 3, 5, 8, 12, 16, 20)),
    ("regularized", "gamma", (0.1, 0.5, 1, 5, 10, 25, 50)),
    ("regularized", "lam", (0.1, 0.2, 0.5, 1, 2, 5, 10)),
)
SEARCHED = ("factorized", "regularized")
SYMBOLS = {"n_components": "K", "gamma": "gamma", "lam": "lambda"}
FIXED_STEPS = (0.001, 0.01, 0.1)
# A learning curve ends with the first fit that takes longer than this, in seconds.
PATIENCE = 10.0
SEED = 0


# -- sensitivity -------------------------------------------------------------------------------------------------------


@dataclass
class Variation:
    """The fits of a model as a parameter varies: for each value, a task for each fold."""

    model: str
    name: str
    tasks: dict[float, list[Task]]


def variations(search: Search, data: str, folds: Iterable[int], quick: bool) -> list[Variation]:
    """All fits; the other parameters have the values chosen in each fold."""
    found = []
    for model, name, values in VARIED:
        bases = [search.chosen(data, fold, model) for fold in folds]
        tasks = {
            value: [Task.of(data, base.fold, model, dict(base.params) | {name: value}, base.metric) for base in bases]
            for value in (values[::4] if quick else values)
        }
        found.append(Variation(model, name, tasks))
    return found


def variation_part(search: Search, data: str, variation: Variation) -> list[Part]:
    """The table of a parameter, and a sentence that says how much it changes the figures."""
    rows, means = [], []
    cache, metric = search.cache, search.metric
    for value, tasks in variation.tasks.items():
        results = [cache[task] for task in tasks]
        vali = float(np.mean([result.vali[metric] for result in results]))
        test = np.mean([[result.mean(name) for name in MEASURES] for result in results], axis=0)
        means.append([vali, *test])
        taken = np.mean([result.seconds for result in results])
        rows.append([f"{value:g}", f"{vali:.4f}", *(f"{each:.4f}" for each in test), f"{taken:.2f}"])
    spread, between = np.ptp(np.array(means), axis=0), _between_folds(search, variation)
    rows.append(["**largest less least**", *(f"**{each:.4f}**" for each in spread), ""])
    symbol = SYMBOLS[variation.name]
    header = [symbol, f"validation {metric.upper()}", *(f"test {name.upper()}" for name in MEASURES), "fit, s"]
    said = (
        f"{MEASURES[0].upper()} on the test parts moves by {spread[1]:.4f} over all values of {symbol}; its standard "
        f"deviation between the folds is {between:.4f}."
    )
    table = Grid(f"{data}-{symbol}", header, rows)
    return [f"## {data}: {MODELS[variation.model].label} along {symbol}", table, said]


def _between_folds(search: Search, variation: Variation) -> float:
    """Standard deviation of the first measure between the folds, averaged over the values."""
    figures = [[search.cache[task].mean(MEASURES[0]) for task in tasks] for tasks in variation.tasks.values()]
    return float(np.std(figures, axis=1, ddof=1).mean())


# -- learning curves ---------------------------------------------------------------------------------------------------


@dataclass
class Curve:
    """Points of a method: iterations, seconds, objective, and test figures (in the order of MEASURES)."""

    iterations: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    figures: list[list[float]] = field(default_factory=list)


def curve_of(make: Callable[[int], Any], parts: Parts, steps: Iterable[int], patience: float) -> Curve:
    """Time cold fits with these numbers of iterations, until one takes more than ``patience`` seconds or converges."""
    curve = Curve()
    train = parts.train
    for iterations in steps:
        model = make(iterations)
        taken = seconds(partial(model.fit, train.X, train.y, qid=train.qid))
        if curve.iterations and model.n_iter_ <= curve.iterations[-1]:
            continue  # a solver may count its start as an iteration
        curve.iterations.append(model.n_iter_)
        curve.seconds.append(taken)
        # for the plain model, the negative dual value, because the other models minimize the dual
        plain = isinstance(model, RankSVM)
        curve.objective.append(model.duality_gap_ - model.objective_ if plain else model.objective_)
        means = evaluated(parts.test, model.predict(parts.test.X)).means
        curve.figures.append([means[name] for name in MEASURES])
        if taken > patience or model.converged_:
            break
    return curve


def curve_of_published(parts: Parts, C: float, gamma: float, lam: float, patience: float) -> Curve:
    """Rounds 1, 2, 4, ... of Algorithm 2 in NumPy with its longest safe step."""
    curve = Curve()
    rounds = algorithm_2(blocks_of(listed(parts.train)), C, gamma, lam)
    for number, (taken, objective, weights) in enumerate(rounds, start=1):
        if number & (number - 1) == 0:
            curve.iterations.append(number)
            curve.seconds.append(taken)
            curve.objective.append(objective)
            means = evaluated(parts.test, parts.test.X @ weights).means
            curve.figures.append([means[name] for name in MEASURES])
        # checked after the first point, so that every curve has at least one
        if taken > patience:
            break
    return curve


def curves(parts: Parts, factorized: dict[str, Any], regularized: dict[str, Any], context: Context) -> dict[str, Curve]:
    """All methods at one C."""
    C, K = factorized["C"], factorized["n_components"]
    options: dict[str, Any] = {"n_components": K, "tol": 1e-300, "random_state": SEED}
    penalties = {name: regularized[name] for name in ("gamma", "lam")}
    makers: dict[str, Callable[[int], Any]] = {
        "RankSVM, hinge": lambda n: RankSVM(C, loss="hinge", max_iter=n, tol=1e-8),
        "factorized, automatic step": lambda n: FactorizedRankSVM(C, max_epochs=n, **options),
        **{f"factorized, step {step:g}": partial(_fixed, C, step, options) for step in FIXED_STEPS},
        "regularized": lambda n: RegularizedRankSVM(C, **penalties, max_iter=n, tol=1e-8),
    }
    steps, patience = [2**power for power in range(3 if context.quick else 13)], 0.1 if context.quick else PATIENCE
    found = {}
    for name, make in makers.items():
        context.say(name)
        found[name] = curve_of(make, parts, steps, patience)
    found["Algorithm 2, NumPy"] = curve_of_published(parts, C, **penalties, patience=patience)
    return found


def _fixed(C: float, step: float, options: dict[str, Any], epochs: int) -> FactorizedRankSVM:
    return FactorizedRankSVM(C, max_epochs=epochs, learning_rate=step, **options)


def over_plain(curve: Curve, optimum: float) -> np.ndarray:
    """Differences of objectives from the plain optimum, relative to its absolute value."""
    return (np.array(curve.objective) - optimum) / abs(optimum)


def curves_table(name: str, found: dict[str, Curve], optimum: float) -> Grid:
    """The last point of each method, and its best by the first measure."""
    rows = []
    for method, curve in found.items():
        best = int(np.argmax([values[0] for values in curve.figures]))
        cells = [f"{curve.objective[-1]:.6g}", f"{over_plain(curve, optimum)[-1]:.1e}"]
        last = [f"{value:.4f}" for value in curve.figures[-1]]
        rows.append([method, curve.iterations[-1], f"{curve.seconds[-1]:.3f}", *cells, *last, curve.iterations[best]])
    header = ["method", "iterations", "seconds", "objective", "above the plain optimum (relative)"]
    header += [*(f"test {name.upper()}" for name in MEASURES), f"iterations of its best {MEASURES[0].upper()}"]
    return Grid(name, header, rows)


def draw(figure: Any, found: dict[str, tuple[dict[str, Curve], float]]) -> None:
    """Plot objective and test figure, by iteration and by time, with a row of panels for each data set."""
    from ranksvm.plotting.figures import MARKERS, line_style

    axes = figure.subplots(len(found), 4, squeeze=False)
    for row, (data, (of_data, optimum)) in zip(axes, found.items(), strict=True):
        for number, (name, curve) in enumerate(of_data.items()):
            style = line_style(number) | {"marker": MARKERS[number % len(MARKERS)]}
            # smaller values are drawn at the bottom
            over = np.clip(over_plain(curve, optimum), 1e-6, None)
            quality = [values[0] for values in curve.figures]
            for place, x in enumerate((curve.iterations, curve.seconds)):
                row[place].loglog(x, over, markersize=3, label=name, **style)
                row[2 + place].semilogx(x, quality, markersize=3, label=name, **style)
        for place, axis in enumerate(row):
            axis.set_xlabel(("iterations or epochs", "seconds")[place % 2])
            axis.set_ylabel(
                "objective above the plain optimum (relative)" if place < 2 else f"test {MEASURES[0].upper()}"
            )
            axis.set_title(data, fontsize=10)
            axis.grid(alpha=0.3)
            if place < 2:
                axis.set_ylim(top=100)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


# -- the items ---------------------------------------------------------------------------------------------------------


def sensitivity(context: Context) -> list[Part]:
    """Quality along K, gamma and lambda."""
    search = search_of(context)
    names = context.sources.here(QUALITY)
    folds = {name: context.sources.folds(name)[: 2 if context.quick else None] for name in names}
    search.complete([task for name in names for task in search.tasks(name, folds[name], SEARCHED)])
    found = {name: variations(search, name, folds[name], context.quick) for name in names}
    search.complete(
        [task for each in found.values() for one in each for of_value in one.tasks.values() for task in of_value]
    )
    parts: list[Part] = [
        f"Each parameter varies alone; the others are, in each fold, those that {search.n_candidates} random "
        f"candidates and {search.metric.upper()} on the validation part chose. Means over the folds. Tables 7 "
        "and 8 of the paper have MAP on one fold along the same parameters: item `table-7`.",
    ]
    for name, of_data in found.items():
        for variation in of_data:
            parts += variation_part(search, name, variation)
    return parts


def learning_curves(context: Context) -> list[Part]:
    """Objectives and quality by iteration and time, on the first folds."""
    search = search_of(context)
    names = context.sources.here(QUALITY)
    search.complete([task for name in names for task in search.tasks(name, [1], SEARCHED)])
    found: dict[str, tuple[dict[str, Curve], float]] = {}
    parts: list[Part] = []
    for name in names:
        chosen = {model: dict(search.chosen(name, 1, model).params) for model in SEARCHED}
        fold = context.sources.parts(name)
        of_data = curves(fold, chosen["factorized"], chosen["regularized"], context)
        # the optimum of the minimized dual of the plain model: the negative primal optimum
        exact = RankSVM(chosen["factorized"]["C"], loss="hinge", tol=1e-8)
        optimum = -exact.fit(fold.train.X, fold.train.y, qid=fold.train.qid).objective_
        title = f"{name} fold 1"
        found[title] = of_data, optimum
        said = ", ".join(f"{each} = {chosen['factorized'][each]:g}" for each in ("C", "n_components"))
        said += "".join(f", {each} = {chosen['regularized'][each]:g}" for each in ("gamma", "lam"))
        parts += [f"## {title}: {said}", curves_table(name, of_data, optimum)]
    return [
        "Fits of 1, 2, 4, ... iterations (epochs of the factorized model), each from nothing, timed with all that a "
        "fit does, at one C. The objective is that of the dual (4); of the regularized model, that of (15), which has "
        "its penalties on top; of RankSVM, whose iterations are primal, the value of the dual variables that certify "
        "it. All are told relative to the optimum of (4), which the exact model reaches: the box of the factorized "
        "model is smaller, so it need not come near.",
        Picture("curves", "learning curves", (18.0, 4.2 * len(found)), lambda figure: draw(figure, found)),
        *parts,
    ]
