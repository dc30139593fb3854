"""Compare RankSVM's solver for the hinge loss, which smooths it, with cutting planes: seconds to a given accuracy.

python benchmarks/cutting_plane.py -o benchmarks/results/cutting_plane.md

The cutting planes (`_cutting_planes.py`) were written for this comparison. dlib's svm_rank_trainer is also compared if
dlib is installed (`pip install dlib` builds it, which takes several minutes).
"""

import csv
import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, data_folder, least_seconds, page, power_of_two, publish, read, table
from _cutting_planes import CuttingPlanes, PairwiseHinge
from ranksvm import RankingData, RankSVM, make_ranking
from ranksvm.plotting.figures import PALETTE

try:
    import dlib
except ImportError:
    dlib = None

DATASETS = ("MQ2008", "OHSUMED")
TOLS = 10.0 ** -np.arange(1, 8)
# Relative distances from the optimum in the table.
ACCURACIES = (1e-2, 1e-3, 1e-4, 1e-6)
# Tolerance at which the cutting planes stop.
CUTTING_TOL = 3e-7
# A fit that takes longer than LONG is not repeated. After one that takes longer than TOO_LONG, no finer one is tried.
LONG, TOO_LONG = 2.0, 60.0
# Values of dlib's eps, a gap in the mean hinge loss of the pairs.
DLIB_EPS = 10.0 ** -np.arange(1, 7)
OURS, ONE_THREAD, BMRM, OCAS, DLIB = "RankSVM", "RankSVM, 1 thread", "BMRM", "OCAS", "dlib"
STYLES = {
    OURS: (PALETTE[0], "o-"),
    ONE_THREAD: (PALETTE[5], "o--"),
    BMRM: (PALETTE[1], "-"),
    OCAS: (PALETTE[4], "-."),
    DLIB: (PALETTE[2], "s-"),
}
SEED = 0


@dataclass
class Problem:
    """A training set and C, the optimum if it is known, and arrays (seconds, objective) for every solver."""

    name: str
    data: RankingData
    C: float
    optimum: float | None = None
    found: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        # the cutting planes, and the objectives of all solutions, are computed in float64
        self.X = self.data.X.astype(np.float64)
        self.hinge = PairwiseHinge(self.data.y, self.data.qid)

    def objective(self, w):
        """The hinge objective at w."""
        return 0.5 * float(w @ w) + self.C * self.hinge(self.X @ w)[0]

    def over_optimum(self, solver):
        """Relative distance of a solver's objectives from the optimum."""
        return self.found[solver][1] / self.optimum - 1.0

    def seconds_to(self, solver, accuracy):
        """Shortest time in which a solver came this close to the optimum, or None."""
        near = self.over_optimum(solver) <= accuracy
        return self.found[solver][0][near].min() if near.any() else None


def problems(smoke: bool) -> list[Problem]:
    """Problems with real data whose optimum is known, and larger ones with generated data."""
    if smoke:
        return [Problem("made", make_ranking(20, 12, 8, random_state=SEED), 2.0**-4)]
    found = []
    if data_folder() is not None:
        with open(data_folder().parent / "reference" / "linear_l1_optima.csv", newline="") as file:
            for row in csv.DictReader(file):
                if row["dataset"] in DATASETS:
                    name, data = f"{row['dataset']}, C = {row['C']}", read(row["dataset"])
                    found.append(Problem(name, data, power_of_two(row["C"]), float(row["primal_objective"])))
        found.append(Problem("WikiQA-wordpairs, C = 2^-5", read("WikiQA-wordpairs", sparse=True), 2.0**-5))
    made = make_ranking(1667, 120, 136, random_state=SEED)
    return found + [Problem(f"made, {made.n_rows:,} x 136, C = {C}", made, power_of_two(C)) for C in ("2^-16", "2^-10")]


# -- the solvers -------------------------------------------------------------------------------------------------------


def ours(problem: Problem, repeats: int) -> None:
    """Default fits at several tolerances, on all threads and on one."""
    data = problem.data
    for name, n_jobs in ((OURS, None), (ONE_THREAD, 1)):
        points = []
        for tol in TOLS:
            ranker = RankSVM(C=problem.C, loss="hinge", tol=tol, n_jobs=n_jobs)
            taken = least_seconds(lambda ranker=ranker: ranker.fit(data.X, data.y, qid=data.qid), repeats, LONG)
            points.append((taken, problem.objective(ranker.coef_)))
            if taken > TOO_LONG:
                break
        problem.found[name] = np.array(points).T


def cutting_planes(problem: Problem, repeats: int) -> dict[str, tuple[int, int]]:
    """Run both kinds several times; return each round of the fastest run, and the numbers of rounds and evaluations."""
    work = {}
    for name, line_search in ((BMRM, False), (OCAS, True)):
        runs = []
        while not runs or (len(runs) < repeats and runs[0].seconds[-1] <= LONG):
            solver = CuttingPlanes(problem.X, problem.data.y, problem.data.qid, problem.C, line_search=line_search)
            runs.append(solver.solve(CUTTING_TOL, TOO_LONG)[1])
        trace = min(runs, key=lambda trace: trace.seconds[-1])
        problem.found[name] = np.array((trace.seconds, trace.objective))
        work[name] = len(trace.seconds), trace.evaluations[-1]
    return work


def dlib_trainer(problem: Problem, repeats: int) -> None:
    """dlib's svm_rank_trainer at several eps.

    It knows relevant and other documents only and minimizes 1/2 |w|^2 + C' times the *mean* hinge of all pairs; a query
    of its own for each level against all lower ones, and C' = C times the number of pairs, make it the same problem.
    """
    queries, n_pairs = dlib.ranking_pairs(), 0
    vectors = [dlib.vector(row) for row in problem.X]
    for _, rows in problem.data.queries:
        y = problem.data.y[rows]
        for level in np.unique(y)[1:]:
            pair = dlib.ranking_pair()
            upper, lower = rows[y == level], rows[y < level]
            pair.relevant.extend([vectors[row] for row in upper])
            pair.nonrelevant.extend([vectors[row] for row in lower])
            queries.append(pair)
            n_pairs += len(upper) * len(lower)
    points = []
    for eps in DLIB_EPS:
        trainer = dlib.svm_rank_trainer()
        trainer.c, trainer.epsilon = problem.C * n_pairs, eps
        models = []
        taken = least_seconds(
            lambda trainer=trainer, models=models: models.append(trainer.train(queries)), repeats, LONG
        )
        points.append((taken, problem.objective(np.array(models[-1].weights))))
        if taken > TOO_LONG:
            break
    problem.found[DLIB] = np.array(points).T


# -- the page ----------------------------------------------------------------------------------------------------------


def plot(measured: list[Problem], path) -> None:
    """Relative distance from the optimum against seconds, a panel for each problem."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    columns = min(4, len(measured))
    shape = -(-len(measured) // columns), columns
    figure, axes = plt.subplots(*shape, figsize=(3.6 * columns, 3.3 * shape[0] + 0.4), squeeze=False, sharey=True)
    figure.set_layout_engine("constrained")
    for axis in axes.flat[len(measured) :]:
        axis.set_visible(False)
    for axis, problem in zip(axes.flat, measured, strict=False):
        for solver, (times, _) in problem.found.items():
            color, style = STYLES[solver]
            # the best objective so far; a point below the precision of the reference optimum is drawn at the bottom
            best = np.minimum.accumulate(np.maximum(problem.over_optimum(solver), 1e-8))
            axis.loglog(times, best, style, color=color, markersize=4, linewidth=1.2, label=solver)
        axis.set_title(problem.name, fontsize=9)
        axis.set_ylim(5e-9, 2)
        axis.grid(alpha=0.3)
        axis.set_xlabel("seconds")
    for row in axes:
        row[0].set_ylabel("over the optimum (relative)")
    lines = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines))
    temporary = path.with_name(path.stem + ".part.png")
    figure.savefig(temporary, dpi=80)
    temporary.replace(path)
    plt.close(figure)


def rows_of(problem: Problem, work: dict[str, tuple[int, int]]) -> list[tuple]:
    """The table's rows for a problem."""
    rows = []
    for solver in problem.found:
        times = [problem.seconds_to(solver, accuracy) for accuracy in ACCURACIES]
        cells = ["-" if taken is None else f"{taken:.3f}" for taken in times]
        passes = "{} / {}".format(*work[solver]) if solver in work else ""
        rows.append((problem.name, solver, *cells, f"{problem.over_optimum(solver).min():.1e}", passes))
    return rows


def report(options) -> str:
    """The page, and the plot beside it."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # no warnings: the last column says how close each fit came
    rows, measured, repeats = [], problems(options.smoke), 1 if options.smoke else options.repeats
    for problem in measured:
        ours(problem, repeats)
        work = cutting_planes(problem, repeats)
        if dlib is not None and isinstance(problem.X, np.ndarray):
            dlib_trainer(problem, repeats)
        if problem.optimum is None:
            problem.optimum = min(objectives.min() for _, objectives in problem.found.values())
        rows += rows_of(problem, work)
    accuracies = [f"{accuracy:.0e}" for accuracy in ACCURACIES]
    header = ["problem", "solver", *accuracies, "nearest", "rounds / evaluations"]
    parts = [
        "Seconds until the hinge objective, computed anew in float64, is within a relative distance of the optimum: "
        f"for RankSVM the least of separate fits at tol = {TOLS[0]:g}, ..., {TOLS[-1]:g} (the least of {repeats} "
        f"rounds each), for cutting planes the best point so far along the fastest of {repeats} runs to a certified "
        f"{CUTTING_TOL:g}.",
        "Optima of MQ2008 and OHSUMED are those found by brute force over explicit pairs; of the others the best that "
        "any solver found here, certified to a relative 1e-7 or so. BMRM and OCAS are NumPy (sorting on one thread, "
        "BLAS on all), written for this page: their subgradient is O(l log l), and a round of OCAS takes some five of "
        "them for one product with X and one with X'. They read X in float64, RankSVM in the float32 it comes in.",
        table(header, rows),
    ]
    if dlib is not None:
        parts.insert(
            2,
            "dlib's trainer minimizes the mean over pairs, so its C is ours times the number of pairs, and a level "
            "against all lower ones is a query of its own; its documents are converted beforehand.",
        )
    if options.output is not None:
        path = options.output.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        plot(measured, path)
        parts.insert(0, f"![distance from the optimum against seconds]({path.name})")
    return page("The hinge loss against cutting planes", "cutting_plane", options, parts, "dlib")


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 5, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
