"""The exact kernel solver: known optima, products with Q, the published method, storage, memory, and the linear kernel.

python benchmarks/kernel.py -o benchmarks/results/kernel.md
"""

import csv
import sys
import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import (
    arguments,
    data_folder,
    interleaved,
    letor,
    page,
    power_of_two,
    publish,
    read,
    required_data,
    seconds,
    summary,
    table,
    verdict,
)
from _kernel_trace import AUTO, LANDMARKS, PLAIN, SOLVERS, Trace, problem_of, traced
from _peak_memory import memory_of_fit
from ranksvm import KernelRankSVM, RankingData, RankSVM, make_ranking
from ranksvm.fits.kernel import KernelProblem

MEASURES = ("pairwise_accuracy", "mean_ndcg")
# largest allowed relative distance from a known optimum at OPTIMUM_TOL; test figures need a smaller tolerance
OPTIMUM_LIMIT, OPTIMUM_TOL, FIGURES_TOL = 1e-5, 1e-6, 1e-8
DEFAULT_TOL = KernelRankSVM().tol
# tolerance of the solutions with which others are compared
TIGHT = 1e-9
ACCURACIES = (1e-2, 1e-3, 1e-4)
# Seconds after which TRON is stopped at a setting, and after which a fit with the hinge loss is stopped.
PATIENCE, HINGE_PATIENCE = 90.0, 60.0
# Goal: the largest memory of a fit, divided by its memory limit.
OVER_LIMIT = 1.2
SEED = 0


@dataclass(frozen=True)
class Setting:
    """gamma and C, and the goal for the number of products with Q in a default fit."""

    gamma: str
    C: str
    products: float = np.inf

    @property
    def cells(self) -> tuple[str, str]:
        """The first two cells of the rows for this setting."""
        return self.gamma, self.C


SETTINGS = (Setting("2^-5", "2^0", 40), Setting("2^-1", "2^0", 250), Setting("2^-1", "2^5", 250))


def progress(*words: object) -> None:
    """Report the progress of the run."""
    print(*words, file=sys.stderr, flush=True)


def figures(problem: KernelProblem, trace: Trace, test: RankingData) -> list[str]:
    """Test figures of the solution that a trace ended with."""
    assert trace.result is not None
    found = letor(test, problem.scores(trace.result.w, test.X), MEASURES)
    return [f"{found[name]:.6f}" for name in MEASURES]


def outcome(trace: Trace) -> list[str]:
    """Seconds, products, iterations, certificate and status of a solution."""
    result = trace.result
    assert result is not None
    status = result.status.name.lower().replace("_", " ")
    work = [f"{trace.seconds[-1]:.2f}", str(trace.products[-1]), str(result.n_iter)]
    return [*work, f"{result.relative_gap:.1e}", status if status == "converged" else f"**{status}**"]


# -- against known optima ----------------------------------------------------------------------------------------------


def optima(train: RankingData, test: RankingData) -> list[str]:
    """Compare with every optimum in the reference file."""
    path = required_data().parent / "reference" / "kernel_l2_optima.csv"
    if not path.is_file():
        return ["## Against known optima", f"`{path.name}` is absent: not run."]
    rows = []
    with path.open(newline="") as file:
        reference = list(csv.DictReader(file))
    for row, tol in product(reference, (OPTIMUM_TOL, FIGURES_TOL)):
        options = {"C": power_of_two(row["C"]), "gamma": power_of_two(row["gamma"]), "loss": row["loss"]}
        model = KernelRankSVM(kernel=row["kernel"], tol=tol, n_jobs=2, **options)
        taken = seconds(lambda model=model: model.fit(train.X, train.y, qid=train.qid))
        off = model.objective_ / float(row["optimal_objective"]) - 1.0
        found = letor(test, model.predict(test.X), MEASURES)
        progress("optimum", row["gamma"], row["C"], tol, off)
        rows.append(
            (
                row["gamma"],
                row["C"],
                f"{tol:.0e}",
                f"{model.objective_:.10g}",
                f"{off:.1e}",
                verdict(abs(off), OPTIMUM_LIMIT),
                f"{model.duality_gap_ / model.objective_:.1e}",
                model.n_iter_,
                model.n_kernel_products_,
                model.kernel_dtype_,
                f"{taken:.2f}",
                f"{found['pairwise_accuracy']:.6f}",
                row["test_pairwise_accuracy"],
                f"{found['mean_ndcg']:.6f}",
                row["test_letor_mean_ndcg"],
            )
        )
    header = ["gamma", "C", "tol", "objective", "off (relative)", "limit", "certificate", "iterations", "products"]
    header += ["Q in", "fit, s", "test pairwise accuracy", "the optimum's", "test mean NDCG", "the optimum's"]
    return [
        "## Against known optima",
        "RBF kernel; off: from the optimum found in float64 over explicit pairs, whose test figures stand beside ours. "
        "The fit includes building Q, which is done again in float64 where rounding to float32 might move the "
        "objective by more than tol. Products are those of both. Test figures move by single pairs of nearly "
        "equal scores until the solution is tight.",
        table(header, rows),
    ]


# -- products with Q ---------------------------------------------------------------------------------------------------


def product_speed(problem: KernelProblem, repeats: int) -> str:
    """A sentence about the speed of one product."""
    matrix = problem.matrix
    b = np.random.default_rng(SEED).standard_normal(matrix.n_rows)
    times = interleaved({"product": lambda: matrix.product(b)}, repeats)["product"]
    return (
        f"Q is of the {matrix.n_rows:,} rows of queries with pairs, one triangle of it kept, in float32: a product "
        f"reads {matrix.product_bytes / 1e6:.1f} MB in {summary(1e3 * times)} ms (least / median of {repeats}), "
        f"{matrix.product_bytes / times.min() / 1e9:.1f} GB/s at best."
    )


def seconds_and_products(trace: Trace, objective: float) -> str:
    """A table cell: seconds and products until an objective was reached."""
    place = trace.reached(objective)
    return "-" if place is None else f"{trace.seconds[place]:.2f} / {trace.products[place]}"


def products(problems: dict[str, KernelProblem], settings, patience: float) -> list[str]:
    """Fits at the default tolerance with each solver, and the work of each until the same objective."""
    fits, equal = [], []
    for setting in settings:
        problem, C = problems[setting.gamma], power_of_two(setting.C)
        tight = traced(problem, AUTO, C, TIGHT)
        optimum = min(tight.objective)
        for solver in SOLVERS:
            trace = traced(problem, solver, C, DEFAULT_TOL, np.inf if solver == AUTO else patience)
            progress("products", *setting.cells, solver, trace.products[-1], trace.seconds[-1])
            limited = solver == AUTO and np.isfinite(setting.products)
            limit = verdict(trace.products[-1], setting.products) if limited else ""
            over = f"{min(trace.objective) / optimum - 1.0:.1e}"
            fits.append((*setting.cells, solver, *outcome(trace), limit))
            cells = [seconds_and_products(trace, (1.0 + accuracy) * optimum) for accuracy in ACCURACIES]
            equal.append((*setting.cells, solver, *cells, over, f"{trace.seconds[-1]:.1f} / {trace.products[-1]}"))
    header = ["gamma", "C", "solver", "seconds", "products", "iterations", "certificate", "status", "limit, products"]
    accuracies = [f"{accuracy:.0e}" for accuracy in ACCURACIES]
    return [
        f"## Products with Q at the default tolerance, {DEFAULT_TOL:g}",
        "Squared hinge, cold starts, Q built beforehand; seconds and products are all that comes after, the choice of "
        "landmarks and the problem on them included. With landmarks is Newton by conjugate gradients alone "
        '(`solver="newton"`), preconditioned by them; without landmarks, by plain conjugate gradients in the inner '
        "product of Q. Every solver but auto was ended by its first iterate after "
        f"{patience:g} s (status: interrupted).",
        table(header, fits),
        "## At equal objective",
        "Seconds / products with Q until the objective was within a relative 1e-2, 1e-3, 1e-4 of the optimum, which is "
        f"ours at tol = {TIGHT:g}; a dash where it never was. A product with the Hessian costs the published method "
        "two products with Q, ours one; its certificate is no part of this comparison.",
        table(["gamma", "C", "solver", *accuracies, "nearest", "ended at"], equal),
    ]


# -- storage and losses ------------------------------------------------------------------------------------------------


def storage(train: RankingData, test: RankingData, problems: dict[str, KernelProblem], settings) -> list[str]:
    """Compare float32 with float64."""
    rows = []
    for gamma in problems:
        kept = {"float32": problems[gamma]}
        kept["float64"] = problem_of(train, gamma=power_of_two(gamma), kernel_dtype="float64", n_jobs=2)
        for setting in settings:
            if setting.gamma != gamma:
                continue
            traces = {dtype: traced(kept[dtype], AUTO, power_of_two(setting.C), OPTIMUM_TOL) for dtype in kept}
            exact = traces["float64"].objective[-1]
            for dtype, trace in traces.items():
                progress("storage", *setting.cells, dtype)
                cells = [f"{trace.seconds[-1]:.2f}", trace.products[-1], f"{trace.objective[-1]:.10g}"]
                cells += ["" if dtype == "float64" else f"{trace.objective[-1] / exact - 1.0:.1e}"]
                size = f"{kept[dtype].matrix.product_bytes / 1e6:.0f}"
                rows.append((*setting.cells, dtype, size, *cells, *figures(kept[dtype], trace, test)))
    header = ["gamma", "C", "Q in", "MB", "seconds", "products", "objective", "off float64's (relative)"]
    return [
        "## Q in float32 and in float64",
        f"tol = {OPTIMUM_TOL:g}, Q built beforehand. Values are made in float64 and rounded once; all sums are in "
        "float64. Here each keeps its dtype; `KernelRankSVM` itself goes over to float64 where rounding might move the "
        "objective by more than tol.",
        table([*header, "test pairwise accuracy", "test mean NDCG"], rows),
    ]


def hinge(train: RankingData, test: RankingData, settings) -> list[str]:
    """Fits with the hinge loss at the same settings."""
    rows, problems = [], {}
    for setting in settings:
        if setting.gamma not in problems:
            problems = {setting.gamma: problem_of(train, gamma=power_of_two(setting.gamma), loss="hinge", n_jobs=2)}
        problem = problems[setting.gamma]
        for solver in (AUTO, LANDMARKS, PLAIN):
            patience = np.inf if solver == AUTO else HINGE_PATIENCE
            trace = traced(problem, solver, power_of_two(setting.C), DEFAULT_TOL, patience)
            progress("hinge", *setting.cells, solver, trace.products[-1], trace.seconds[-1])
            width = f"{trace.result.width:.1e}"
            rows.append((*setting.cells, solver, *outcome(trace), width, *figures(problem, trace, test)))
    header = ["gamma", "C", "solver", "seconds", "products", "iterations", "certificate", "status", "last width"]
    return [
        "## The hinge loss",
        f'The same settings with `loss="hinge"`, tol = {DEFAULT_TOL:g}, Q built beforehand; every solver but '
        f"auto was ended after {HINGE_PATIENCE:g} s (status: interrupted).",
        table([*header, "test pairwise accuracy", "test mean NDCG"], rows),
    ]


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(data: RankingData, name: str, limits: dict[str, int], C: float, gamma: float) -> list[str]:
    """Fits with memory limits, each in a separate process; the first limit has room for all of Q."""
    rows, first = [], None
    for limit, size in limits.items():
        found = memory_of_fit(data, "KernelRankSVM", C=C, gamma=gamma, memory_limit=limit, n_jobs=2)
        first = first or found
        progress("memory", limit, found)
        rows.append(
            (
                limit,
                f"{found['seconds']:.1f}",
                found["n_iter_"],
                found["n_kernel_products_"],
                f"{1e3 * found['seconds'] / found['n_kernel_products_']:.0f}",
                f"{found['fit'] / 1e6:,.0f}",
                f"{found['fit'] / size:.2f}",
                verdict(found["fit"] / size, OVER_LIMIT),
                f"{found['objective_']:.9g}",
                f"{found['objective_'] / first['objective_'] - 1.0:.1e}",
                f"{found['duality_gap_'] / found['objective_']:.1e}",
                "yes" if found["converged_"] else "**NO**",
            )
        )
    header = ["memory_limit", "fit, s", "iterations", "products", "ms of the fit a product", "peak, MB"]
    header += ["of memory_limit", "limit", "objective", "off the first (relative)", "certificate", "converged"]
    n_rows = problem_of(data, gamma=gamma).pairs.n_rows
    return [
        f"## Memory: {name}, {data.n_rows:,} rows, {n_rows:,} of them in queries with pairs",
        f"gamma = {gamma:g}, C = {C:g}, default tolerance; the fit includes building Q, of which a triangle takes "
        f"{2e-6 * n_rows * (n_rows + 1):,.0f} MB. Peak: largest resident size of the process less that before the fit. "
        "What does not fit in the limit is computed anew for every product.",
        table(header, rows),
    ]


# -- the linear kernel -------------------------------------------------------------------------------------------------


def linear(sets: dict[str, tuple[RankingData, float]], repeats: int) -> list[str]:
    """Compare `kernel="linear"` with RankSVM at the same tolerance."""
    rows = []
    for name, (data, C) in sets.items():
        models = {
            "KernelRankSVM": KernelRankSVM(C, kernel="linear", tol=OPTIMUM_TOL, n_jobs=2),
            "RankSVM": RankSVM(C, tol=OPTIMUM_TOL, n_jobs=2),
        }
        actions = {
            kind: lambda model=model, data=data: model.fit(data.X, data.y, qid=data.qid)
            for kind, model in models.items()
        }
        times = interleaved(actions, repeats)
        objective = models["RankSVM"].objective_
        progress("linear", name)
        for kind, model in models.items():
            rows.append(
                (
                    f"{name}: {data.n_rows:,} x {data.n_features:,}, C = 2^{np.log2(C):.0f}",
                    kind,
                    model.solver_,
                    summary(times[kind]),
                    model.n_iter_,
                    f"{model.objective_:.9g}",
                    f"{model.objective_ / objective - 1.0:.1e}",
                    f"{model.duality_gap_ / model.objective_:.1e}",
                )
            )
    header = ["data", "estimator", "solver", "seconds", "iterations", "objective", "off RankSVM's", "certificate"]
    return [
        "## The linear kernel",
        f'`KernelRankSVM(kernel="linear")`, one variable a document, beside `RankSVM`, one a feature; tol = '
        f"{OPTIMUM_TOL:g}; least / median of {repeats} rounds in turns.",
        table(header, rows),
    ]


# -- the page ----------------------------------------------------------------------------------------------------------


def made_parts() -> list[str]:
    """The parts of the page for a smoke run: the same measurements with generated data."""
    data = make_ranking(40, (6, 12), 6, n_levels=3, random_state=SEED)
    train, test = data.select(data.qid <= 20), data.select(data.qid > 20)
    settings = (Setting("2^-5", "2^0", 40), Setting("2^-1", "2^2"))
    problems = {setting.gamma: problem_of(train, gamma=power_of_two(setting.gamma), n_jobs=2) for setting in settings}
    parts = [product_speed(problems["2^-5"], 2), *products(problems, settings, 1.0)]
    parts += [*storage(train, test, problems, settings), *hinge(train, test, settings)]
    parts += memory(train, "made", {"4GB": 4 * 10**9, "2MB": 2 * 10**6}, 1.0, 2.0**-5)
    return [*parts, *linear({"made": (train, 2.0**-4)}, 2)]


def real_parts(options) -> list[str]:
    """The page."""
    train, test = read("MQ2008"), read("MQ2008", part="test")
    gammas = dict.fromkeys(setting.gamma for setting in SETTINGS)
    problems = {gamma: problem_of(train, gamma=power_of_two(gamma), n_jobs=2) for gamma in gammas}
    built = {gamma: seconds(lambda gamma=gamma: problems[gamma].matrix) for gamma in gammas}
    parts = [
        f"MQ2008 fold 1, {train.n_rows:,} rows, two threads. {product_speed(problems['2^-5'], 25)} It was built in "
        f"{' / '.join(f'{taken:.2f}' for taken in built.values())} s (gamma {' / '.join(gammas)}).",
        *optima(train, test),
        *products(problems, SETTINGS, options.patience),
        *storage(train, test, problems, SETTINGS),
    ]
    problems.clear()
    parts += hinge(train, test, SETTINGS)
    limits = {"4GB": 4 * 10**9, "500MB": 5 * 10**8}
    parts += memory(read("MQ2007-partial"), "MQ2007-partial fold 1", limits, 1.0, 2.0**-5)
    sets = {"MQ2008 fold 1": (train, 2.0**-5)}
    sets["WikiQA-wordpairs fold 1"] = read("WikiQA-wordpairs", sparse=True), 2.0**-5
    return [*parts, *linear(sets, 5)]


def report(options) -> str:
    """The page."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # the tables say which fits did not converge
    smoke = options.smoke or data_folder() is None
    parts = made_parts() if smoke else real_parts(options)
    return page("The exact kernel solver", "kernel", options, parts)


def main(argv=None):
    """Run from the command line."""
    patience = {"type": float, "default": PATIENCE, "help": "seconds after which TRON is given up"}
    options = arguments(__doc__, argv, ("--patience", patience))
    publish(report(options), options)


if __name__ == "__main__":
    main()
