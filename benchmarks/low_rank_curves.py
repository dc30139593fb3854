"""How low-rank models depend on K, gamma and lambda, and how they come down by iteration and by time.

python benchmarks/low_rank_curves.py --cache CACHE -o benchmarks/results/low_rank_curves.md

The cache is that of low_rank.py: parameters that do not vary are those chosen there. Beside the page goes the plot.
"""

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, page, publish, seconds, table
from _low_rank_data import FOLDS, REAL, TINY, parts_of
from _low_rank_models import MODELS
from _low_rank_published import algorithm_2, blocks_of, listed
from _low_rank_search import (
    MEASURES,
    Cache,
    Task,
    choices_of,
    chosen,
    complete,
    evaluated,
    search_options,
    search_tasks,
)
from kernel_grid import Parts
from ranksvm import FactorizedRankSVM, RankSVM, RegularizedRankSVM
from ranksvm.plotting.styles import MARKERS, line_style

# Model, parameter, its values: the published ranges.
VARIED: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("factorized", "n_components", (1, 2, 3, 5, 8, 12, 16, 20)),
    ("regularized", "gamma", (0.1, 0.5, 1, 5, 10, 25, 50)),
    ("regularized", "lam", (0.1, 0.2, 0.5, 1, 2, 5, 10)),
)
SEARCHED = ("factorized", "regularized")
SYMBOLS = {"n_components": "K", "gamma": "gamma", "lam": "lambda"}
FIXED_STEPS = (0.001, 0.01, 0.1)
SEED = 0


# -- sensitivity -------------------------------------------------------------------------------------------------------


@dataclass
class Variation:
    """The fits of a model as a parameter varies: for each value a task a fold."""

    model: str
    name: str
    tasks: dict[float, list[Task]]


def variations(cache: Cache, data: str, folds: Iterable[int], options) -> list[Variation]:
    """All fits, the other parameters as chosen in each fold."""
    found = []
    for model, name, values in VARIED:
        bases = [chosen(cache, data, fold, model, options.candidates, options.metric) for fold in folds]
        tasks = {
            value: [Task.of(data, base.fold, model, dict(base.params) | {name: value}, base.metric) for base in bases]
            for value in (values[::4] if options.smoke else values)
        }
        found.append(Variation(model, name, tasks))
    return found


def sensitivity_part(cache: Cache, variation: Variation, metric: str) -> list[str]:
    """The table of a parameter, and how much of the figures it moves."""
    rows, means = [], []
    for value, tasks in variation.tasks.items():
        results = [cache[task] for task in tasks]
        vali = float(np.mean([result.vali[metric] for result in results]))
        test = np.mean([[result.mean(name) for name in MEASURES] for result in results], axis=0)
        means.append([vali, *test])
        taken = np.mean([result.seconds for result in results])
        rows.append([f"{value:g}", f"{vali:.4f}", *(f"{each:.4f}" for each in test), f"{taken:.2f}"])
    spread, between = np.ptp(np.array(means), axis=0), _between_folds(cache, variation)
    rows.append(["**largest less least**", *(f"**{each:.4f}**" for each in spread), ""])
    symbol = SYMBOLS[variation.name]
    header = [symbol, f"validation {metric.upper()}", *(f"test {name.upper()}" for name in MEASURES), "fit, s"]
    said = (
        f"{MEASURES[0].upper()} on the test parts moves by {spread[1]:.4f} over all values of {symbol}; its standard "
        f"deviation between the folds is {between:.4f}."
    )
    return [f"### {MODELS[variation.model].label} along {symbol}", table(header, rows), said]


def _between_folds(cache: Cache, variation: Variation) -> float:
    """Standard deviation of the first measure between the folds, mean over the values."""
    figures = [[cache[task].mean(MEASURES[0]) for task in tasks] for tasks in variation.tasks.values()]
    return float(np.std(figures, axis=1, ddof=1).mean())


# -- learning curves ---------------------------------------------------------------------------------------------------


@dataclass
class Curve:
    """Points of a method: iterations, seconds, objective, test figures (by MEASURES)."""

    iterations: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    figures: list[list[float]] = field(default_factory=list)


def curve_of(make: Callable[[int], object], parts: Parts, steps: Iterable[int], patience: float) -> Curve:
    """Fits of so many iterations, each from nothing and timed, while one takes less than the patience."""
    curve = Curve()
    train = parts.train
    for iterations in steps:
        model = make(iterations)
        taken = seconds(lambda model=model: model.fit(train.X, train.y, qid=train.qid))
        if curve.iterations and model.n_iter_ <= curve.iterations[-1]:
            continue  # a solver may count its beginning
        curve.iterations.append(model.n_iter_)
        curve.seconds.append(taken)
        # of the plain model the value of its dual variables, which the others minimise
        plain = isinstance(model, RankSVM)
        curve.objective.append(model.duality_gap_ - model.objective_ if plain else model.objective_)
        means = evaluated(parts.test, model.predict(parts.test.X)).means
        curve.figures.append([means[name] for name in MEASURES])
        print(type(model).__name__, iterations, taken, curve.objective[-1], file=sys.stderr, flush=True)
        if taken > patience or model.converged_:
            break
    return curve


def curve_of_published(parts: Parts, C: float, gamma: float, lam: float, patience: float) -> Curve:
    """Rounds 1, 2, 4, ... of Algorithm 2 in NumPy with its longest safe step."""
    curve = Curve()
    rounds = algorithm_2(blocks_of(listed(parts.train)), C, gamma, lam)
    for number, (taken, objective, weights) in enumerate(rounds, start=1):
        if taken > patience:
            break
        if number & (number - 1) == 0:
            curve.iterations.append(number)
            curve.seconds.append(taken)
            curve.objective.append(objective)
            means = evaluated(parts.test, parts.test.X @ weights).means
            curve.figures.append([means[name] for name in MEASURES])
    return curve


def curves(parts: Parts, factorized: dict, regularized: dict, smoke: bool, patience: float) -> dict[str, Curve]:
    """All methods at one C."""
    C, K = factorized["C"], factorized["n_components"]
    options = {"n_components": K, "tol": 1e-300, "random_state": SEED}
    penalties = {name: regularized[name] for name in ("gamma", "lam")}
    makers: dict[str, Callable[[int], object]] = {
        "RankSVM, hinge": lambda n: RankSVM(C, loss="hinge", max_iter=n, tol=1e-8),
        "factorised, automatic step": lambda n: FactorizedRankSVM(C, max_epochs=n, **options),
        **{
            f"factorised, step {step:g}": lambda n, step=step: FactorizedRankSVM(
                C, max_epochs=n, learning_rate=step, **options
            )
            for step in FIXED_STEPS
        },
        "regularised": lambda n: RegularizedRankSVM(C, **penalties, max_iter=n, tol=1e-8),
    }
    steps = [2**power for power in range(3 if smoke else 13)]
    found = {name: curve_of(make, parts, steps, patience) for name, make in makers.items()}
    found["Algorithm 2, NumPy"] = curve_of_published(parts, C, **penalties, patience=patience)
    return found


def over_plain(curve: Curve, optimum: float) -> np.ndarray:
    """Objectives above the plain optimum, relative to its size."""
    return (np.array(curve.objective) - optimum) / abs(optimum)


def curves_table(found: dict[str, Curve], optimum: float) -> str:
    """The last point of each method, and its best by the first measure."""
    rows = []
    for name, curve in found.items():
        best = int(np.argmax([values[0] for values in curve.figures]))
        cells = [f"{curve.objective[-1]:.6g}", f"{over_plain(curve, optimum)[-1]:.1e}"]
        last = [f"{value:.4f}" for value in curve.figures[-1]]
        rows.append([name, curve.iterations[-1], f"{curve.seconds[-1]:.3f}", *cells, *last, curve.iterations[best]])
    header = ["method", "iterations", "seconds", "objective", "above the plain optimum (relative)"]
    header += [*(f"test {name.upper()}" for name in MEASURES), f"iterations of its best {MEASURES[0].upper()}"]
    return table(header, rows)


def plot(found: dict[str, tuple[dict[str, Curve], float]], path) -> None:
    """Objective and test figure, by iteration and by time; a row for each data set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(found), 4, figsize=(18, 4.2 * len(found)), squeeze=False)
    figure.set_layout_engine("constrained")
    for row, (data, (of_data, optimum)) in zip(axes, found.items(), strict=True):
        for number, (name, curve) in enumerate(of_data.items()):
            style = line_style(number) | {"marker": MARKERS[number % len(MARKERS)]}
            # what is lower than drawn lies at the bottom
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
    temporary = path.with_name(path.stem + ".part.png")
    figure.savefig(temporary, dpi=80)
    temporary.replace(path)
    plt.close(figure)


# -- the page ----------------------------------------------------------------------------------------------------------


def sensitivity(cache: Cache, names: list[str], folds: list[int], options) -> list[str]:
    """The part of the page on K, gamma and lambda."""
    search = (folds, SEARCHED, options.candidates, options.metric)
    complete([task for name in names for task in search_tasks(name, *search)], cache, options)
    found = {name: variations(cache, name, folds, options) for name in names}
    tasks = [task for each in found.values() for one in each for of_value in one.tasks.values() for task in of_value]
    complete(tasks, cache, options)
    parts = [
        f"Each parameter varies alone; the others are, in each fold, those that {options.candidates} random candidates "
        f"and {options.metric.upper()} on the validation part chose (as in low_rank.md). Means over the folds.",
    ]
    for name, of_data in found.items():
        parts.append(f"## {name}: sensitivity")
        for variation in of_data:
            parts += sensitivity_part(cache, variation, options.metric)
    return parts


def learning(cache: Cache, names: list[str], options) -> list[str]:
    """The part of the page on learning curves, and the plot beside it."""
    found, parts = {}, []
    for name in names:
        params = {
            model: dict(chosen(cache, name, 1, model, options.candidates, options.metric).params) for model in SEARCHED
        }
        fold = parts_of(name, 1)
        of_data = curves(fold, params["factorized"], params["regularized"], options.smoke, options.patience)
        # the dual optimum of the plain model: minus its primal one
        exact = RankSVM(params["factorized"]["C"], loss="hinge", tol=1e-8)
        optimum = -exact.fit(fold.train.X, fold.train.y, qid=fold.train.qid).objective_
        title = f"{name} fold 1"
        found[title] = of_data, optimum
        said = ", ".join(f"{each} = {params['factorized'][each]:g}" for each in ("C", "n_components"))
        said += "".join(f", {each} = {params['regularized'][each]:g}" for each in ("gamma", "lam"))
        parts += [f"### {title}: {said}", curves_table(of_data, optimum)]
    if options.output is not None:
        path = options.output.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        plot(found, path)
        parts.append(f"![learning curves]({path.name})")
    return [
        "## Learning curves",
        "Fits of 1, 2, 4, ... iterations (epochs of the factorised model), each from nothing, timed with all that a "
        "fit does, at one C. The objective is that of the dual (4); of the regularised model, that of (15), which has "
        "its penalties on top; of RankSVM, whose iterations are primal, the value of the dual variables that certify "
        "it. All are told relative to the optimum of (4), which the exact model reaches: the box of the factorised "
        "model is smaller, so it need not come near.",
        *parts,
    ]


def report(options) -> str:
    """The page."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.smoke:
        options.candidates, options.processes, options.patience = 2, 0, 0.1
    cache = Cache(options.cache)
    names = [TINY] if options.smoke else choices_of(options.data, REAL)
    folds = [1, 2] if options.smoke else list(FOLDS)
    parts = sensitivity(cache, names, folds, options)
    parts += learning(cache, names, options)
    return page("Low-rank RankSVM: sensitivity and learning curves", "low_rank_curves", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--data", {"default": ",".join(REAL), "help": "data sets, separated by commas"}),
        ("--patience", {"type": float, "default": 10.0, "help": "a learning curve ends with a fit that takes longer"}),
        *search_options(),
    )
    publish(report(options), options)


if __name__ == "__main__":
    main()
