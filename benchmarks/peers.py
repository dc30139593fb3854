"""Compare RankSVM with other tools: times to the same objective value if the objective is the same, else test figures.

python benchmarks/peers.py --cache build/peers.jsonl -o benchmarks/results/peers.md

This takes half an hour. With --cache, each result is stored, so that the same command continues where it was stopped.
"""

import importlib.util
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.svm import LinearSVC

from _common import arguments, data_folder, letor, page, publish, read, seconds, table
from _pieces import Found, Pieces, Section
from _widening import Axis, Grid
from papers import pointwise
from papers.data_sets import Parts
from papers.lee_lin_2014 import PRINTED_QUALITY
from papers.pointwise import Scorer, boosting, forest, linear_svr
from ranksvm import RankingData, RankSVM, make_ranking
from ranksvm.metrics import Evaluation

DATASETS = ("MQ2008", "OHSUMED", "MQ2007-partial")
MEASURES = ("pairwise_accuracy", "mean_ndcg")
# Relative distance from the optimum that counts as equal.
EQUAL = 1e-4
SVC_CS = (2.0**-10, 2.0**-5, 1.0)
SVC_TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
# Seconds after which a fit of dual coordinate descent is stopped, approximately.
PATIENCE = 10.0
SEED = 0
# Lee & Lin, Neural Computation 26 (2014), Tables 5 to 7, MQ2008 fold 1: pairwise accuracy in percent, mean NDCG.
PUBLISHED = {
    "RankSVM (ours)": tuple(each.figure for each in PRINTED_QUALITY["MQ2008"].values()),
    **pointwise.PRINTED,
}


class Tried(NamedTuple):
    """Metrics of a fitted setting on the validation and the test part, and the seconds of the fit."""

    vali: Evaluation
    test: Evaluation
    seconds: float


def datasets(smoke: bool) -> dict[str, Parts]:
    """The data sets; generated data if the real data are absent, or for a smoke run."""
    if smoke or data_folder() is None:
        data = make_ranking(90, (8, 12), 8, n_levels=3, random_state=SEED)
        cuts = [data.qid <= 30, (data.qid > 30) & (data.qid <= 60), data.qid > 60]
        return {"made": Parts(*(data.select(cut) for cut in cuts))}
    return {f"{name} fold 1": Parts(*(read(name, part=part) for part in Parts._fields)) for name in DATASETS}


# -- the same objective: pairs for a classifier ------------------------------------------------------------------------


def explicit_pairs(data: RankingData) -> tuple[np.ndarray, np.ndarray]:
    """Differences of the documents of every pair in float64; every second one is negated, to get two classes."""
    blocks = []
    X = data.X.astype(np.float64)
    for _, rows in data.queries:
        upper, other = np.nonzero(data.y[rows][:, None] > data.y[rows][None, :])
        blocks.append(X[rows[upper]] - X[rows[other]])
    pairs = np.concatenate(blocks)
    sign = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)
    pairs *= sign[:, None]
    return pairs, sign


def objective(pairs: np.ndarray, sign: np.ndarray, C: float, w: np.ndarray) -> float:
    """1/2 |w|^2 + C times the sum of squared hinges."""
    hinge = np.maximum(0.0, 1.0 - sign * (pairs @ w))
    return 0.5 * float(w @ w) + C * float(hinge @ hinge)


def svc(pairs: np.ndarray, sign: np.ndarray, C: float, dual: bool, optimum: float) -> tuple[str, str, str]:
    """Time, tolerance and distance from the optimum of the LinearSVC fit with the largest sufficient tolerance."""

    def fit(tol: float, max_iter: int) -> LinearSVC:
        model = LinearSVC(
            C=C, loss="squared_hinge", fit_intercept=False, dual=dual, tol=tol, max_iter=max_iter, random_state=SEED
        )
        return model.fit(pairs, sign)

    # the dual solver gets the number of epochs that fit into PATIENCE; the primal solver needs few iterations
    max_iter = 1000
    if dual:
        epoch = (seconds(lambda: fit(1e-12, 11)) - seconds(lambda: fit(1e-12, 1))) / 10
        max_iter = int(np.clip(PATIENCE / max(epoch, 1e-9), 100, 100_000))
    for tol in SVC_TOLS:
        models = []
        taken = seconds(lambda tol=tol: models.append(fit(tol, max_iter)))  # noqa: B023
        over = objective(pairs, sign, C, models[0].coef_[0]) / optimum - 1
        if over <= EQUAL:
            return f"{taken:.2f}", f"{tol:.0e}", f"{over:.1e}"
        if models[0].n_iter_ >= max_iter or taken > 10 * PATIENCE:
            return f"{taken:.1f}, not reached", f"{tol:.0e}", f"{over:.1e}"
    return f"{taken:.1f}, not reached", f"{tol:.0e}", f"{over:.1e}"


def equal_objective(name: str, train: RankingData) -> list[list[str]]:
    """Measure times to equal objectives; return rows of the table."""
    built = []
    building = seconds(lambda: built.append(explicit_pairs(train)))
    pairs, sign = built[0]
    rows = []
    for C in SVC_CS:
        optimum = RankSVM(C=C, tol=1e-10).fit(train.X, train.y, qid=train.qid).objective_
        ranker = RankSVM(C=C)
        ours = min(seconds(lambda r=ranker: r.fit(train.X, train.y, qid=train.qid)) for _ in range(5))
        over = objective(pairs, sign, C, ranker.coef_) / optimum - 1
        cells = [name, f"2^{np.log2(C):.0f}", f"{len(pairs):,} ({pairs.nbytes / 2**20:.0f} MiB)", f"{ours:.4f}"]
        cells += [f"{over:.1e}", f"{building:.2f}"]
        for dual in (False, True):
            cells += svc(pairs, sign, C, dual, optimum)
        rows.append(cells)
        print(*cells, file=sys.stderr)
    return rows


# -- other objectives --------------------------------------------------------------------------------------------------


class Method(NamedTuple):
    """A way to learn to rank: its parameters, and a function that takes them and returns a fit."""

    axes: tuple[Axis, ...]
    fit: Callable[..., Callable[[RankingData], Scorer]]


def methods(smoke: bool) -> dict[str, Method]:
    """The methods, each with an initial grid, and the values by which the grid may be extended."""
    found = {"RankSVM (ours)": Method((_powers(-15, 5, smoke),), lambda power: _rank_svm(2.0**power))}
    if importlib.util.find_spec("xgboost"):
        values = (0, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000)
        penalties = Axis("lambda = {}", values, 0, 0.1, bounded=True)
        rounds = Axis("{} rounds", (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000), 20, 500, bounded=True)
        found["XGBoost gblinear, rank:pairwise"] = Method((_short(penalties, smoke), _short(rounds, smoke)), _xgboost)
    if importlib.util.find_spec("lightgbm"):
        leaves = Axis("{} leaves", (2, 3, 4, 7, 10, 15, 31, 63, 127, 255), 4, 31, bounded=True)
        trees = Axis("{} trees", (1, 5, 12, 25, 50, 100, 200, 400, 800, 1600), 25, 200, bounded=True)
        found["LightGBM lambdarank"] = Method((_short(leaves, smoke), _short(trees, smoke)), _lightgbm)
    # The initial grid is wide and fine, because the absolute loss has a second, lower maximum at small C, and from 2^6
    # on its fits stop at max_iter, so that neighboring values differ (MQ2008: 77.4 % at 2^8, 60.8 % at 2^10).
    for loss, name in (("squared_epsilon_insensitive", "squared"), ("epsilon_insensitive", "absolute")):
        found[f"LinearSVR, {name}"] = Method(
            (_powers(-15, 15, smoke),), lambda power, loss=loss: linear_svr(2.0**power, loss)
        )
    trees = 4 if smoke else 40
    sizes = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
    leaf = Axis("leaves of {} or more", sizes, 1, 50, bounded=True)
    found["random forest, 40 trees"] = Method((_short(leaf, smoke),), lambda size: forest(trees, size))
    rounds = 10 if smoke else 100
    depth = Axis("depth {}", (1, 2, 3, 4, 5, 6, 7, 8, 10), 2, 3, bounded=True)
    found["gradient boosting, 100 trees"] = Method((_short(depth, smoke),), lambda depth: boosting(rounds, depth))
    return found


def _powers(first: int, last: int, smoke: bool) -> Axis:
    """An axis of C from 2^first to 2^last, which can be extended by 20 powers of 2 at each end."""
    return _short(Axis("C = 2^{}", range(first - 20, last + 21), first, last), smoke)


def _short(axis: Axis, smoke: bool) -> Axis:
    """The axis; for a smoke run, an axis with three values."""
    if not smoke:
        return axis
    start = list(axis.values).index(axis.first)
    values = tuple(axis.values[start : start + 3])
    return axis._replace(values=values, first=values[0], last=values[1], bounded=False)


def _rank_svm(C: float) -> Callable[[RankingData], Scorer]:
    return lambda data: RankSVM(C=C).fit(data.X, data.y, qid=data.qid).predict


def _xgboost(reg: float, rounds: int) -> Callable[[RankingData], Scorer]:
    def fit(data: RankingData) -> Scorer:
        import xgboost

        options = {"booster": "gblinear", "objective": "rank:pairwise", "lambda": reg, "seed": SEED, "verbosity": 0}
        # on a shared machine, many threads waited for each other, and a fit took 100 times as long
        options |= {"nthread": 1}
        matrix = xgboost.DMatrix(data.X, data.y, qid=data.queries.numbers())
        model = xgboost.train(options, matrix, rounds)
        return lambda X: model.predict(xgboost.DMatrix(X))

    return fit


def _lightgbm(leaves: int, trees: int) -> Callable[[RankingData], Scorer]:
    def fit(data: RankingData) -> Scorer:
        import lightgbm

        options = {"objective": "lambdarank", "num_leaves": leaves, "verbose": -1, "seed": SEED}
        options |= {"num_threads": 1}  # one thread, as for XGBoost
        matrix = lightgbm.Dataset(data.X, data.y, group=data.queries.sizes)
        return lightgbm.train(options, matrix, trees).predict

    return fit


def side_by_side(data_name: str, parts: Parts, name: str, method: Method) -> list[str]:
    """The table row of a method whose settings are chosen on validation data, separately for each measure."""

    def try_out(*values: float) -> Tried:
        fit, scorers = method.fit(*values), []
        taken = seconds(lambda: scorers.append(fit(parts.train)))
        vali, test = (letor(part, scorers[0](part.X), MEASURES) for part in (parts.vali, parts.test))
        return Tried(vali, test, taken)

    grid = Grid(method.axes, MEASURES)
    grid.search(try_out, lambda tried: tried.vali)
    cells, inside = [name], []
    for measure in MEASURES:
        best = grid.best(measure)
        test = grid.found[best].test[measure]
        cells += [f"{100 * test:.2f} %" if measure == "pairwise_accuracy" else f"{test:.4f}", grid.label(best)]
        inside.append(grid.where(best))
    cells += [grid.ranges(), "; ".join(dict.fromkeys(inside))]
    taken, fit = grid.found[best].seconds, method.fit(*grid.values(best))
    again = [seconds(lambda: fit(parts.train)) for _ in range(3 if taken < 2 else 1)]
    total = sum(tried.seconds for tried in grid.found.values())
    published = PUBLISHED.get(name) if data_name.startswith("MQ2008") else None
    cells += [f"{min(taken, *again):.4f}", f"{total:.2f} for {len(grid.found)}"]
    print(data_name, *cells, file=sys.stderr)
    return [*cells, f"{published[0]:.2f} % / {published[1]:.4f}" if published else ""]


# -- the page ----------------------------------------------------------------------------------------------------------


def equal_objectives_in_words(found: list[Found]) -> list[str]:
    """The part of the page about tools with the same objective."""
    header = ["data, fold 1", "C", "explicit pairs (float64)", "ours, s", "over optimum", "building the pairs, s"]
    for variant in ("primal", "dual"):
        header += [f"LinearSVC {variant}, s", "its tol", "over optimum"]
    rows = [row for each in found for row in each.value]
    return [
        "## The same objective: pairs for LinearSVC",
        '`LinearSVC(loss="squared_hinge", fit_intercept=False)` on the differences of all pairs minimizes the same '
        f"function. Its tolerance is tightened by powers of ten until its objective is within {EQUAL:g} (relative) of "
        "the optimum; the time is that of the first such fit alone, without those before it and without building the "
        f"pairs; dual coordinate descent is given up after about {PATIENCE:g} s. Ours: default tolerance, least of 5, "
        "from rows and labels, float32 features. The optimum is ours at tol = 1e-10 (certified; published.md has those "
        "found by brute force).",
        table(header, rows),
    ]


def figures_in_words(found: list[Found]) -> list[str]:
    """The part of the page about tools with other objectives."""
    parts = [
        "## Other objectives: time and test figures",
        "Settings are chosen on the validation part, once for each measure; test figures as LETOR's tool counts them, "
        "pairwise accuracy pooled over all pairs, ties wrong. Seconds: the fit that mean NDCG chose (least of 2 to 4), "
        "and all fits of the grid. Ours and the forest use all processors; XGBoost and LightGBM one, because their "
        "threads wait for each other where other programs run.",
        "Every grid is widened, at the end where the best setting lies, until the best ones of both measures are "
        "inside it, or have the least value that a parameter can have (no penalty, depth 1). Of settings that "
        "validate equally, one inside is taken. The ranges are those that were searched in the end. "
        "LinearSVR stops at 1,000 epochs, its default: with the absolute loss and large C it is not converged.",
        "What is not comparable: only the rows above minimize the same function. XGBoost's gblinear takes logistic "
        "losses of sampled pairs and stops after a number of rounds; LightGBM's lambdarank weighs pairs by what they "
        "move NDCG and grows trees, not a linear function; LinearSVR, the forest and the boosted trees are pointwise, "
        "fit labels as numbers and know no queries. Grids differ in size; the published column is of "
        "other programs on the same split with grids of their own (Lee & Lin 2014, Tables 5 to 7, chosen by the same "
        "two measures). MQ2007-partial is 85 % of the rows of MQ2007: no published figure is for it.",
    ]
    if missing := [name for name in ("xgboost", "lightgbm") if not importlib.util.find_spec(name)]:
        parts.append(f"Not installed here, so left out: {', '.join(missing)}.")
    header = [
        "method",
        "pairwise accuracy",
        "setting",
        "mean NDCG",
        "setting",
        "searched",
        "inside",
        "fit, s",
        "grid, s",
        "published",
    ]
    by_data: dict[str, list] = {}
    for each in found:
        by_data.setdefault(each.key.partition("/")[0], []).append(each.value)
    for name, rows in by_data.items():
        parts += [f"### {name}", table(header, rows)]
    return parts


def sections(smoke: bool) -> list[Section]:
    """The sections of the page, with their measurements."""
    sets, found = datasets(smoke), methods(smoke)
    objectives = {name: partial(equal_objective, name, parts.train) for name, parts in sets.items()}
    figures = {
        f"{data}/{name}": partial(side_by_side, data, parts, name, method)
        for data, parts in sets.items()
        for name, method in found.items()
    }
    return [
        Section("objectives", objectives, equal_objectives_in_words),
        Section("figures", figures, figures_in_words),
    ]


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
    )
    warnings.simplefilter("ignore")
    found, pieces = sections(options.smoke), Pieces(options.cache)
    pieces.measure(found, options.only)
    text = page(
        "RankSVM beside other tools", "peers", options, pieces.parts(found), "xgboost-cpu", "xgboost", "lightgbm"
    )
    publish(text, options)


if __name__ == "__main__":
    main()
