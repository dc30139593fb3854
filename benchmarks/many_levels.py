"""Convergence with many levels of labels: our solvers, the published solver with its trees, and listed pairs.

python benchmarks/many_levels.py -o benchmarks/results/many_levels.md
"""

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _baselines import pairs_of
from _common import arguments, page, publish, table
from _published_tron import PublishedProblem, compiler
from ranksvm import RankingData, RankSVM, make_ranking

LEVELS = (3, 100, 1000)
FEATURES = 46
# The sum of the weights of all pairs is this many times the number of documents.
WEIGHT = 100.0
TOLS = (1e-1, 1e-2, 1e-4, 1e-6)
EPSS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
DISTANCES = (1e-1, 1e-2, 1e-4, 1e-6)
SEED = 0


def processor_seconds(action: Callable[[], Any]) -> tuple[float, Any]:
    """The shorter processor time of two calls, and the result; other programs disturb it less than wall-clock time."""
    taken = []
    for _ in range(2):
        started = time.process_time()
        result = action()
        taken.append(time.process_time() - started)
    return min(taken), result


def runs(data: RankingData, C: float) -> dict[str, list[tuple[float, float, int, int]]]:
    """By method: seconds, objective, steps and products of fits with several tolerances."""
    pairs = np.column_stack(pairs_of(data))

    def ours(tol: float, solver: str, of_labels: bool) -> tuple[float, float, int, int]:
        model = RankSVM(C, solver=solver, tol=tol, n_jobs=1)
        given = {"y": data.y} if of_labels else {"pairs": pairs}
        taken, _ = processor_seconds(lambda: model.fit(data.X, qid=data.qid, **given))
        return taken, model.objective_, model.n_iter_, model.history_["hessian_products"][-1]

    found = {
        "ours, auto": [ours(tol, "auto", True) for tol in TOLS],
        "ours, TRON": [ours(tol, "tron", True) for tol in TOLS],
        "ours, TRON, pairs listed": [ours(tol, "tron", False) for tol in TOLS],
    }
    if compiler() is not None:
        problem = PublishedProblem(data)
        trees = []
        for eps in EPSS:
            taken, fit = processor_seconds(lambda eps=eps: problem.fit(C, eps))
            trees.append((taken, fit.values[-1], fit.n_iter, fit.n_products))
        found["published solver, trees"] = trees
    return found


def report(options) -> str:
    """The page."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_queries, n_docs, levels = (3, 40, LEVELS[:2]) if options.smoke else (options.queries, 1000, LEVELS)
    rows = []
    for k in levels:
        data = make_ranking(n_queries, n_docs, FEATURES, n_levels=k, noise=1.0, dtype=np.float64, random_state=SEED)
        # features have unequal sizes and share a direction, so that conjugate gradients need many products
        shared = data.X @ np.random.default_rng(SEED).standard_normal((FEATURES, 1)) / np.sqrt(FEATURES)
        data = RankingData((data.X + shared) * np.geomspace(1.0, 0.03, FEATURES), data.y, data.qid)
        n_pairs = RankSVM(1e-12, max_iter=1).fit(data.X, data.y, qid=data.qid).n_pairs_
        C = WEIGHT * data.n_rows / n_pairs
        optimum = RankSVM(C, tol=1e-10).fit(data.X, data.y, qid=data.qid).objective_
        for method, fits in runs(data, C).items():
            cells = []
            for distance in DISTANCES:
                near = [fit for fit in fits if fit[1] / optimum - 1.0 <= distance]
                cells.append(f"{near[0][0]:.3f} ({near[0][2]}, {near[0][3]})" if near else "-")
            rows.append((k, f"{n_pairs:,}", f"{C:.2g}", method, *cells))
            print(*rows[-1], file=sys.stderr, flush=True)
    parts = [
        f"{n_queries} made queries of {n_docs} documents, {FEATURES} features (float64, correlated, of sizes 1 to "
        "0.03), k levels with equally many documents, squared hinge, C such that all pairs together weigh as much as "
        f"{WEIGHT:g} times the documents. "
        "Processor seconds (least of two, one thread) until the objective is as near as the head of the column says, "
        "relatively, to the optimum (ours at tol = 1e-10); in brackets steps and Hessian products. Fits begin at 0; of "
        f"the fits to tolerances of {', '.join(f'{tol:g}' for tol in TOLS)} (ours) and eps of "
        f"{', '.join(f'{eps:g}' for eps in EPSS)} (published) the first that is near enough is shown. "
        '"Pairs listed" is our solver with `fit(X, pairs=...)`: the same steps, O(pairs) each, their listing '
        "beforehand not counted. The published solver is `_published_tron.cpp`: a selection tree, O(log k) a document.",
        table(["k", "pairs", "C", "method", *(f"to {distance:g}" for distance in DISTANCES)], rows),
    ]
    return page("Convergence with many levels", "many_levels", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--queries", {"type": int, "default": 4, "help": "queries of 1,000 documents"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
