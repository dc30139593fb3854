"""Choose C and gamma from the grid of the paper: time, products with Q, and test figures compared with a linear model.

python benchmarks/kernel_grid.py -o benchmarks/results/kernel_grid.md
"""

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, data_folder, letor, page, publish, read, seconds, table
from _kernel_trace import problem_of
from papers.data_sets import Parts
from papers.kernel_data import CS, GAMMAS, LINEAR_CS
from papers.made import Relevance, curved, noisy, straight
from ranksvm import KernelRankSVMCV, RankingData, RankSVMCV, make_ranking, metrics
from ranksvm.estimators.path import solve_along

FOLDS = range(1, 6)
CHOSEN_BY = ("mean_ndcg", "pairwise_accuracy")
MEASURES = ("pairwise_accuracy", "mean_ndcg", "ndcg@10")
KERNEL, LINEAR = "RBF kernel", "linear"
# Generated data: documents per query, and features.
DOCS, FEATURES = 25, 10
SEED = 0


class Choice(NamedTuple):
    """The settings chosen on validation data, scores on test data, and the time and products that the choice took."""

    label: str
    test: RankingData
    scores: np.ndarray
    seconds: float
    products: int


def progress(*words: object) -> None:
    """Report the progress of the run."""
    print(*words, file=sys.stderr, flush=True)


# -- the data ----------------------------------------------------------------------------------------------------------


def made(relevance: Relevance, n_queries: int) -> Parts:
    """Generate normal features; labels 0, 1 and 2 divide a noisy relevance at its quantiles 70 % and 90 %."""
    parts = []
    for part, factor in enumerate((2, 1, 2)):
        data = make_ranking(factor * n_queries, DOCS, FEATURES, random_state=SEED + part)
        values = noisy(relevance, data.X, SEED + part)
        labels = np.searchsorted(np.quantile(values, [0.7, 0.9]), values).astype(np.float64)
        parts.append(RankingData(data.X, labels, data.qid))
    return Parts(*parts)


def data_sets(smoke: bool) -> dict[str, list[Parts]]:
    """The folds of each data set."""
    n_queries = 6 if smoke else 80
    sets = {}
    if not smoke and data_folder() is not None:
        parts = ("train", "vali", "test")
        sets["MQ2008"] = [Parts(*(read("MQ2008", fold, part) for part in parts)) for fold in FOLDS]
    sets["made, curved"] = [made(curved, n_queries)]
    sets["made, linear"] = [made(straight, n_queries)]
    return sets


# -- the choice --------------------------------------------------------------------------------------------------------


def choose(ranker: Any, parts: Parts) -> Choice:
    """Fit a ranker that chooses C and gamma on the validation part; count all its products with Q."""
    train, vali, test = parts
    problems, make = [], ranker._problem
    ranker._problem = lambda *arguments: problems.append(make(*arguments)) or problems[-1]
    taken = seconds(lambda: ranker.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid))
    label = f"2^{np.log2(ranker.C_):.0f}"
    if hasattr(ranker, "gamma_"):
        label += f", 2^{np.log2(ranker.gamma_):.0f}"
    products = sum(getattr(problem, "n_products", 0) for problem in problems)
    return Choice(label, test, ranker.predict(test.X), taken, products)


def rankers(metric: str, smoke: bool) -> dict[str, Any]:
    """The linear and the kernel ranker that choose by a metric."""
    grid = (CS[::5], GAMMAS[::3]) if smoke else (CS, GAMMAS)
    options = {"metric": metric, "convention": "letor", "n_jobs": 2}
    return {LINEAR: RankSVMCV(LINEAR_CS, **options), KERNEL: KernelRankSVMCV(*grid, **options)}


def figures(choice: Choice) -> list[float]:
    """The test figures."""
    means = letor(choice.test, choice.scores, MEASURES).means
    return [means[name] for name in MEASURES]


def figure_rows(metric: str, choices: dict[str, list[Choice]]) -> list[list[str]]:
    """Rows for each fold and model, means over the folds, and the total time."""
    rows = []
    for kind, of_folds in choices.items():
        values = np.array([figures(choice) for choice in of_folds])
        for fold, (choice, found) in enumerate(zip(of_folds, values, strict=True), start=1):
            cells = [*(f"{value:.4f}" for value in found), *_work([choice])]
            rows.append([metric, f"{fold}: {kind}", choice.label, *cells])
        if len(of_folds) > 1:
            cells = [f"**{value:.4f}**" for value in values.mean(axis=0)]
            rows.append([metric, f"**mean: {kind}**, time of all", "", *cells, *_work(of_folds)])
    return rows


def _work(choices: list[Choice]) -> tuple[str, str]:
    products = sum(choice.products for choice in choices)
    return f"{sum(choice.seconds for choice in choices):.1f}", f"{products:,}" if products else ""


def significance_rows(metric: str, choices: dict[str, list[Choice]]) -> list[list[str]]:
    """Paired tests, query by query over all test parts, of the kernel model against the linear one."""
    found = {}
    for kind, of_folds in choices.items():
        y, qid = (np.concatenate([getattr(each.test, name) for each in of_folds]) for name in ("y", "qid"))
        scores = np.concatenate([each.scores for each in of_folds])
        found[kind] = metrics.evaluate(y, scores, qid, MEASURES, convention="letor")
    rows = []
    for name in MEASURES:
        test = metrics.compare(found[LINEAR], found[KERNEL], name)
        low, high = test.confidence_interval
        cells = [f"{test.difference:+.4f} [{low:+.4f}, {high:+.4f}]", f"{test.p_value:.4f}"]
        rows.append([metric, name, *cells, f"{test.wins} / {test.losses} / {test.ties}"])
    return rows


def quality(name: str, folds: list[Parts], smoke: bool) -> list[str]:
    """The part of the page about one data set."""
    rows, tests, grid = [], [], ""
    for metric in CHOSEN_BY:
        choices: dict[str, list[Choice]] = {LINEAR: [], KERNEL: []}
        for number, parts in enumerate(folds, start=1):
            for kind, ranker in rankers(metric, smoke).items():
                choices[kind].append(choose(ranker, parts))
                progress(name, metric, number, kind, choices[kind][-1].label, choices[kind][-1].seconds)
                if kind == KERNEL and number == 1 and metric == CHOSEN_BY[0]:
                    grid = validation_table(ranker)
        rows += figure_rows(metric, choices)
        tests += significance_rows(metric, choices)
    train = folds[0].train
    header = ["chosen by", "fold: model", "C, gamma", *MEASURES, "choosing, s", "products with Q"]
    difference = "kernel less linear [95 %]"
    return [
        f"## {name}",
        f"{train.n_rows:,} training rows of fold 1, {train.n_features} features. Test figures:",
        table(header, rows),
        "Paired tests over the queries of all test parts:",
        table(["chosen by", "measure", difference, "p (randomization)", "wins / losses / ties"], tests),
        f"Fold 1, {CHOSEN_BY[0]} on the validation part over the grid:",
        grid,
    ]


def validation_table(ranker: KernelRankSVMCV) -> str:
    """The validation scores of a kernel model, with a row for each gamma and a column for each C."""
    rows = []
    for gamma, values in zip(ranker.gammas_, ranker.mean_scores_, strict=True):
        cells = [f"**{value:.4f}**" if value == ranker.best_score_ else f"{value:.4f}" for value in values]
        rows.append([f"2^{np.log2(gamma):.0f}", *cells])
    return table(["gamma \\ C", *(f"2^{np.log2(C):.0f}" for C in ranker.Cs_)], rows)


# -- warm and cold -----------------------------------------------------------------------------------------------------


def warm_and_cold(name: str, train: RankingData, smoke: bool) -> list[str]:
    """Solve the grid with warm starts along C, and with cold starts; both compute Q once for each gamma."""
    Cs, rows = CS[::5] if smoke else CS, []
    for gamma in GAMMAS[::3] if smoke else GAMMAS:
        cells = []
        for solve in (_along, _each):
            problem = problem_of(train, gamma=float(gamma), n_jobs=2)
            cells.append(f"{seconds(lambda problem=problem: problem.objective):.2f}")
            cells += [f"{seconds(lambda s=solve, p=problem: s(p, Cs)):.2f}", str(problem.n_products)]
        progress(name, "warm and cold", gamma, *cells)
        rows.append([f"2^{np.log2(gamma):.0f}", *cells])
    sums = [sum(float(row[place]) for row in rows) for place in range(1, 7)]
    digits = (2, 2, 0, 2, 2, 0)
    rows.append(["**all**", *(f"**{value:.{places}f}**" for value, places in zip(sums, digits, strict=True))])
    return [
        f"## Warm and cold: {name}",
        f"Solutions for {len(Cs)} values of C at the default tolerance without the validation scores, each from the "
        "one before (warm), and each from the function 0 (cold, which begins with the landmarks' problem where there "
        "are landmarks).",
        table(["gamma", "Q and landmarks, s", "warm, s", "products", "again, s", "cold, s", "products"], rows),
    ]


def _along(problem: Any, Cs: np.ndarray) -> None:
    for _ in solve_along(problem, Cs):
        pass


def _each(problem: Any, Cs: np.ndarray) -> None:
    for C in Cs:
        problem.solve(float(C))


# -- the page ----------------------------------------------------------------------------------------------------------


def report(options) -> str:
    """The page."""
    warnings.simplefilter("error", ConvergenceWarning)
    sets = data_sets(options.smoke)
    parts = [
        f"The grid of the paper: C = 2^-5, ..., 2^5 and gamma = 2^-6, ..., 2^-1 ({len(CS)} x {len(GAMMAS)} models of "
        "each fold), default tolerance, two threads: one Q for each gamma, solutions along C one from the other, "
        "chosen on validation data by either measure in LETOR's convention (`KernelRankSVMCV`). Beside it the linear "
        f"model with C from 2^-15 to 2^10 ({len(LINEAR_CS)} values, `RankSVMCV`). Seconds are all that choosing takes: "
        "kernels, solutions, validation scores.",
        "What is made has normal features, labels 0, 1, 2 cut from a relevance with noise: once a product, a wave and "
        "the distance from a shell, of which a linear function knows nothing, once a linear relevance.",
    ]
    for name, folds in sets.items():
        parts += quality(name, folds, options.smoke)
    name, folds = next(iter(sets.items()))
    parts += warm_and_cold(f"{name}, fold 1", folds[0].train, options.smoke)
    return page("Kernel and linear, chosen on validation data", "kernel_grid", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    publish(report(options), options)


if __name__ == "__main__":
    main()
