"""Speed of additive models compared with RankSVM and LightGBM, their memory, and their Hessian products."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from _common import data_folder, interleaved, read, summary, table
from _peak_memory import memory_of_fit
from _pieces import Found, Section
from ranksvm import AdditiveRankSVM, RankingData, RankSVM, make_ranking
from ranksvm.additive.interactions import all_pairs
from ranksvm.estimators.base.ranker import additive_options
from ranksvm.fits.additive import additive_problem, additive_training_set
from ranksvm.fits.training_set import TrainingArguments

SEED = 0
N_DOCS, N_FEATURES, FEW_FEATURES = 120, 136, 46
THREADS = 2
# of LightGBM
TREES, LEAVES = 300, 31
CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
PATH_CS = 2.0 ** np.arange(-13, 2)


@cache
def made(n_queries: int, n_features: int) -> RankingData:
    """Generated data with normally distributed float32 features."""
    return make_ranking(n_queries, N_DOCS, n_features, random_state=SEED)


def additive(data: RankingData, threads: int, C: float = 1.0, max_bins: int = 32, **options: Any) -> AdditiveRankSVM:
    """Fit an additive model."""
    model = AdditiveRankSVM(C=C, max_bins=max_bins, n_jobs=threads, **options)
    return model.fit(data.X, data.y, qid=data.qid)


def linear(data: RankingData, threads: int) -> RankSVM:
    """Fit a linear model."""
    return RankSVM(C=1.0, n_jobs=threads).fit(data.X, data.y, qid=data.qid)


def boosted(data: RankingData, threads: int, trees: int = TREES, leaves: int = LEAVES) -> Any:
    """Fit boosted trees, including the histograms of the data; None if LightGBM is not installed."""
    try:
        import lightgbm
    except ImportError:
        return None
    options = {"objective": "lambdarank", "num_leaves": leaves, "num_threads": threads, "seed": SEED, "verbose": -1}
    return lightgbm.train(options, lightgbm.Dataset(data.X, data.y, group=data.queries.sizes), trees)


def compared(actions: dict[str, Callable[[], Any]], repeats: int, reference: str, unit: float = 1.0) -> list[list[str]]:
    """Time actions in turns; return rows with name, minimum and median, and the minimum relative to the reference."""
    times = interleaved(actions, repeats, 0.2)
    least = times[reference].min()
    return [[name, summary(unit * each), f"{each.min() / least:.2f}"] for name, each in times.items()]


# -- fits --------------------------------------------------------------------------------------------------------------


def large_fit(n_queries: int, repeats: int, trees: int) -> list[list[str]]:
    """Time fits with 136 features, as in data of web search."""
    data = made(n_queries, N_FEATURES)
    what = f"{data.n_rows:,} x {data.n_features} float32"
    actions = {
        "additive, 32 bins, C = 1": lambda: additive(data, THREADS),
        "additive, 32 bins, C = 1, steps only": lambda: additive(data, THREADS, linear=False),
        "additive, 16 bins, C = 0.001": lambda: additive(data, THREADS, 1e-3, 16),
        "RankSVM, C = 1": lambda: linear(data, THREADS),
        f"LightGBM, {trees} trees of {LEAVES} leaves": lambda: boosted(data, THREADS, trees),
    }
    rows = compared(actions, repeats, "additive, 32 bins, C = 1")
    return [[what, str(THREADS), *row] for row in rows]


def small_fit(repeats: int, smoke: bool) -> list[list[str]]:
    """Time fits to real data with one thread."""
    if data_folder() is None:
        return []
    data = read("MQ2007-partial")
    actions: dict[str, Callable[[], Any]] = {
        f"additive, 16 bins, C = {C:g}": partial(additive, data, 1, C, 16) for C in (1e-3, 1.0)
    }
    actions["RankSVM, C = 1"] = lambda: linear(data, 1)
    for trees, leaves in ((5, 2),) if smoke else ((800, 2), (300, 15)):
        actions[f"LightGBM, {trees} trees of {leaves} leaves"] = partial(boosted, data, 1, trees, leaves)
    rows = compared(actions, repeats, "additive, 16 bins, C = 0.001")
    return [["MQ2007-partial fold 1", "1", *row] for row in rows]


# -- paths -------------------------------------------------------------------------------------------------------------


def path(name: str, loss: str, smoke: bool) -> list[list[str]]:
    """Time a path along C and separate fits for the same values, with one thread; count products with the Hessian."""
    if data_folder() is None:
        return []
    data, Cs = read(name), PATH_CS[::7] if smoke else PATH_CS
    model = AdditiveRankSVM(loss=loss, n_jobs=1)
    actions = {
        "path": lambda: model.path(data.X, data.y, qid=data.qid, Cs=Cs).models,
        "fits": lambda: [additive(data, 1, C, loss=loss) for C in Cs],
    }
    times = interleaved(actions, 1 if loss == "hinge" or smoke else 3)
    products = [str(sum(each.history_["hessian_products"][-1] for each in solve())) for solve in actions.values()]
    ratio = times["fits"].min() / times["path"].min()
    return [[f"{name} fold 1", loss, *map(summary, times.values()), f"{ratio:.2f}", *products]]


# -- the bounds of all pairs -------------------------------------------------------------------------------------------


def bounds(n_queries: int, repeats: int) -> list[list[str]]:
    """Time the bounds of all pairs of features at a solution, and compare with the time of the fit."""
    data = made(n_queries, FEW_FEATURES)
    model = AdditiveRankSVM(C=1e-3, n_jobs=THREADS)
    options = additive_options(model)
    given = TrainingArguments(data.X, data.y, qid=data.qid)
    problem = additive_problem(additive_training_set(given, options), options)
    result = problem.solve(1e-3)
    what = f"{data.n_rows:,} x {data.n_features} float32, {len(all_pairs(data.n_features)):,} pairs"
    actions = {
        "the bounds": lambda: problem.interaction_bounds(result.w, result.width),
        "the fit, C = 0.001": lambda: additive(data, THREADS, 1e-3),
        "the fit with 16 interactions": lambda: additive(data, THREADS, 1e-3, interactions=16),
    }
    return [[what, str(THREADS), *row] for row in compared(actions, repeats, "the bounds")]


# -- prediction --------------------------------------------------------------------------------------------------------


def prediction(n_queries: int, n_rows: int, repeats: int, n_trees: int) -> list[list[str]]:
    """Milliseconds to score many rows, and to score one query."""
    data = made(n_queries, N_FEATURES)
    X = np.random.default_rng(SEED).standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    steps = additive(data, THREADS, 1e-3)
    both = additive(data, THREADS, 1e-3, interactions=16)
    line, trees = linear(data, THREADS), boosted(data, THREADS, n_trees)
    rows = []
    for part, threads in ((X, THREADS), (X[:100], 1)):
        for model in (steps, both, line):
            model.n_jobs = threads
        actions = {
            "additive": partial(steps.predict, part),
            "additive with 16 interactions": partial(both.predict, part),
            "RankSVM": partial(line.predict, part),
        }
        if trees is not None:
            actions[f"LightGBM, {n_trees} trees of {LEAVES} leaves"] = partial(trees.predict, part, num_threads=threads)
        interleaved(actions, 1)
        found = compared(actions, repeats if part is X or repeats == 1 else 20 * repeats, "additive", 1000.0)
        rows += [[f"{len(part):,} x {N_FEATURES}", str(threads), *row] for row in found]
    return rows


# -- memory and products -----------------------------------------------------------------------------------------------


def memory(n_queries: int, smoke: bool) -> list[list[str]]:
    """Memory that a fit needs in addition to X, measured in a separate process for each fit."""
    data = made(n_queries, N_FEATURES)
    rows = []
    fits: list[tuple[str, dict[str, int]]] = [
        ("AdditiveRankSVM", {"max_bins": 32}),
        ("AdditiveRankSVM", {"max_bins": 32, "interactions": 16}),
        ("RankSVM", {}),
    ]
    for name, options in fits[:1] if smoke else fits:
        found = memory_of_fit(data, name, C=1e-3, n_jobs=THREADS, **options)
        codes = data.n_rows * (N_FEATURES + options.get("interactions", 0)) if name != "RankSVM" else 0
        label = f"{name}, {options.get('interactions', 0)} interactions" if codes else name
        mib = [f"{each / 2**20:.0f}" for each in (found["X"], codes, found["fit"])]
        rows.append([f"{data.n_rows:,} x {N_FEATURES}", label, *mib, f"{found['fit'] / found['X']:.2f}"])
    return rows


def products(n_queries: int, smoke: bool) -> list[list[str]]:
    """Number of Hessian products in fits with many values of C."""
    sets = {f"made, {n_queries * N_DOCS:,} x {N_FEATURES}": made(n_queries, N_FEATURES)}
    if data_folder() is not None and not smoke:
        sets |= {f"{name} fold 1": read(name) for name in ("MQ2008", "MQ2007-partial", "OHSUMED")}
    rows = []
    for name, data in sets.items():
        for C in CS[:2] if smoke else CS:
            model = additive(data, THREADS, C)
            counts = [str(model.history_[each][-1]) for each in ("evaluations", "hessian_products")]
            certificate = f"{model.duality_gap_ / model.objective_:.1e}"
            rows.append([name, f"{C:g}", str(model.n_iter_), *counts, certificate, "yes" if model.converged_ else "no"])
    return rows


# -- the parts of the page ---------------------------------------------------------------------------------------------


def speed_sections(smoke: bool) -> list[Section]:
    """The sections with their measurements; a smoke run has tiny sizes."""
    n_queries, few, repeats, trees = (5, 5, 1, 5) if smoke else (5834, 840, 5, TREES)
    timed = ["data", "threads", "what", "s, least / median", "ratio"]
    scored = ["rows", "threads", "model", "ms, least / median", "ratio"]

    def part(name: str, pieces: dict[str, Callable[[], Any]], header: list[str], *text: str) -> Section:
        def render(found: list[Found]) -> list[str]:
            return [*text, table(header, [row for each in found for row in each.value])]

        return Section(name, pieces, render)

    fits = {"large": partial(large_fit, n_queries, min(repeats, 3), trees), "small": partial(small_fit, repeats, smoke)}
    return [
        part(
            "fits",
            fits,
            timed,
            "## Speed",
            "What is compared is timed in turns, 0.2 s apart, in one process. Fits are from rows and labels to the "
            "fitted model: levels, codes, solution and certificate; LightGBM's are with its histograms of the data and "
            "without early stopping. Ratios are of the least times, to the first row of the same data.",
            "### Fits",
        ),
        part(
            "paths",
            {
                f"{name}, {loss}": partial(path, name, loss, smoke)
                for name in ("MQ2008", "OHSUMED", "MQ2007-partial")[: 1 if smoke else 3]
                for loss in ("squared_hinge", "hinge", "logistic")[: 1 if smoke else 3]
            },
            ["data", "loss", "path, s", "separate fits, s", "ratio", "products, path", "separate fits"],
            "### Paths",
            f"`AdditiveRankSVM.path` for {len(PATH_CS)} values of C from 2^-13 to 2, and separate fits for the same "
            "values; one thread.",
        ),
        part(
            "bounds",
            {"made": partial(bounds, n_queries, repeats)},
            timed,
            "### The bounds of all pairs of features",
            "What a function of each pair could lower the objective by at most, at a solution.",
        ),
        part(
            "prediction",
            {"made": partial(prediction, few, 2000 if smoke else 1_000_000, repeats, trees)},
            scored,
            "### Prediction",
            f"Models are fitted to {few * N_DOCS:,} rows.",
        ),
        part(
            "memory",
            {"made": partial(memory, n_queries, smoke)},
            ["data", "fit", "X, MiB", "codes, MiB", "peak beyond X, MiB", "of X"],
            "### Memory",
            "Peak resident memory of a process beyond what it has after X is read. A code has one byte: one for each "
            "value of X, and one for each row and interaction.",
        ),
        part(
            "products",
            {"all": partial(products, few, smoke)},
            ["data", "C", "iterations", "evaluations", "Hessian products", "certificate", "certified to 1e-4"],
            "### Products with the Hessian",
            "Default fits from 0: 32 bins, linear part and steps.",
        ),
    ]
