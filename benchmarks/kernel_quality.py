"""Test quality against training time: linear model, exact kernel, approximations, the published method, SVC on pairs.

python benchmarks/kernel_quality.py -o benchmarks/results/kernel_quality.md

The plot is written to the same folder.
"""

import sys
import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from _common import arguments, data_folder, letor, page, publish, read, seconds, table
from _kernel_trace import LANDMARKS, PLAIN, TRON, problem_of, traced
from kernel_grid import made
from papers.data_sets import Parts
from papers.kernel_data import LINEAR_CS
from papers.made import curved
from ranksvm import KernelRankSVM, RankingData, RankSVM, RankSVMCV
from ranksvm.kernels import kernel_named
from ranksvm.plotting.figures import PALETTE

MEASURES = {"pairwise_accuracy": "pairwise accuracy", "mean_ndcg": "mean NDCG"}
COMPONENTS = (50, 100, 200, 500, 1000)
# Approximations are random: figures are means over this number of draws.
DRAWS = 3
TOL = 1e-6
PATIENCE = 60.0
# Number of table rows for each trace; the plot shows all points.
ROWS = 8
# Number of pairs for SVC, which needs each pair twice, and a kernel value for every two of these.
MAX_PAIRS = 4000
TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
TIGHT = 1e-7
REPEATS = 3
LINEAR, NYSTROEM, FOURIER = "linear RankSVM", "Nyström", "random Fourier features"
OURS, PAIRS = "KernelRankSVM, hinge", "SVC on explicit pairs"
STYLES = {
    LINEAR: ("black", "*"),
    LANDMARKS: (PALETTE[1], "o-"),
    PLAIN: (PALETTE[4], "o:"),
    NYSTROEM: (PALETTE[0], "s-"),
    FOURIER: (PALETTE[2], "^-"),
    TRON: ("tab:gray", ".-"),
    OURS: (PALETTE[1], "o-"),
    PAIRS: (PALETTE[3], "D-"),
}
SEED = 0


@dataclass
class Case:
    """A data set, and the gamma and C that `kernel_grid.py` chooses for it by mean NDCG on the validation part."""

    name: str
    parts: Parts
    gamma: float
    C: float


@dataclass
class Curve:
    """Points of one method: labels, seconds of training, and test figures (in the order of MEASURES)."""

    labels: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    figures: list[list[float]] = field(default_factory=list)

    def add(self, label: str, taken: float, figures: list[float]) -> None:
        """Add a point."""
        self.labels.append(label)
        self.seconds.append(taken)
        self.figures.append(figures)


def progress(*words: object) -> None:
    """Report the progress of the run."""
    print(*words, file=sys.stderr, flush=True)


def figures(test: RankingData, scores: np.ndarray) -> list[float]:
    """Test figures of some scores."""
    means = letor(test, scores, list(MEASURES)).means
    return [means[name] for name in MEASURES]


# -- on all pairs ------------------------------------------------------------------------------------------------------


def linear(case: Case) -> Curve:
    """The linear model with C chosen on validation data; the time is for one fit."""
    train, vali, test = case.parts
    choice = RankSVMCV(LINEAR_CS, metric="mean_ndcg", convention="letor", n_jobs=2)
    choice.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)
    model = RankSVM(choice.C_, n_jobs=2)
    taken = min(seconds(lambda: model.fit(train.X, train.y, qid=train.qid)) for _ in range(5))
    curve = Curve()
    curve.add(f"C = 2^{np.log2(choice.C_):.0f}", taken, figures(test, model.predict(test.X)))
    return curve


def exact(case: Case, patience: float) -> dict[str, Curve]:
    """Solve the exact problem with each solver, with a point for each iterate; times include the time to build Q."""
    train, _, test = case.parts
    problem = problem_of(train, gamma=case.gamma, n_jobs=2)
    building = seconds(lambda: problem.matrix)
    block = problem.kernel.block(test.X, train.X[problem.rows])
    curves = {}
    for solver in (LANDMARKS, PLAIN, TRON):
        trace = traced(problem, solver, case.C, TOL, patience)
        curves[solver] = Curve()
        for number, (taken, coefficients) in enumerate(zip(trace.seconds, trace.coefficients, strict=True)):
            if coefficients.any():  # before this, all scores are equal
                gap = f"certificate {trace.gap[number] / trace.objective[number]:.1e}"
                label = f"iterate {number}, {trace.products[number]} products, {gap}"
                curves[solver].add(label, building + taken, figures(test, block @ coefficients))
        progress(solver, trace.seconds[-1], trace.products[-1])
    return curves


def approximate(case: Case, approximation: str, components) -> Curve:
    """Models of several sizes; means over draws."""
    train, _, test = case.parts
    options = {"gamma": case.gamma, "approximation": approximation, "n_jobs": 2}
    curve = Curve()
    for n_components in components:
        taken, found = [], []
        for draw in range(DRAWS):
            model = KernelRankSVM(case.C, n_components=n_components, random_state=SEED + draw, **options)
            taken.append(seconds(lambda model=model: model.fit(train.X, train.y, qid=train.qid)))
            found.append(figures(test, model.predict(test.X)))
        progress(approximation, n_components, taken)
        curve.add(f"r = {n_components}", float(np.median(taken)), np.mean(found, axis=0).tolist())
    return curve


def quality_table(curves: dict[str, Curve]) -> str:
    """A table of the points of all curves; of long curves, only some points."""
    rows = []
    for method, curve in curves.items():
        places = np.unique(np.linspace(0, len(curve.labels) - 1, ROWS).round().astype(int))
        for place in places:
            cells = (f"{value:.4f}" for value in curve.figures[place])
            rows.append((method, curve.labels[place], f"{curve.seconds[place]:.3f}", *cells))
    return table(["method", "model", "training, s", *(f"test {name}" for name in MEASURES.values())], rows)


# -- on the pairs of some queries --------------------------------------------------------------------------------------


def explicit_pairs(data: RankingData) -> tuple[np.ndarray, np.ndarray]:
    """The row of the preferred document and the row of the other document, for every pair."""
    upper, lower = [], []
    for _, rows in data.queries:
        above, below = np.nonzero(data.y[rows][:, None] > data.y[rows][None, :])
        upper.append(rows[above])
        lower.append(rows[below])
    return np.concatenate(upper), np.concatenate(lower)


class PairDual:
    """The hinge problem of some queries, and its dual over listed pairs, which SVC can solve.

    SVC has an intercept. So each pair is given twice: its difference in class 1, and the negative difference in class
    -1, each with half of C. Then the best intercept is 0, and the problem is the same as for the ranker.
    """

    def __init__(self, data: RankingData, gamma: float, C: float):
        self.data, self.gamma, self.C = data, gamma, C
        self.upper, self.lower = explicit_pairs(data)
        self.n_pairs = len(self.upper)

    def build(self) -> None:
        """Compute the kernel matrix of documents, and the matrix of pairs with entries Q_ik - Q_il - Q_jk + Q_jl."""
        self.kernel = kernel_named("rbf", gamma=self.gamma)
        self.Q = self.kernel.block(self.data.X, self.data.X)
        differences = self.Q[self.upper] - self.Q[self.lower]
        once = differences[:, self.upper] - differences[:, self.lower]
        self.K = np.block([[once, -once], [-once, once]])
        self.classes = np.repeat([1, -1], self.n_pairs)

    def solve(self, tol: float) -> np.ndarray:
        """Solve with SVC, and return the coefficients of the documents."""
        model = SVC(C=0.5 * self.C, kernel="precomputed", tol=tol, cache_size=1000).fit(self.K, self.classes)
        weights = np.zeros(2 * self.n_pairs)
        weights[model.support_] = model.dual_coef_[0]
        of_pairs = weights[: self.n_pairs] - weights[self.n_pairs :]
        size = self.data.n_rows
        return np.bincount(self.upper, of_pairs, size) - np.bincount(self.lower, of_pairs, size)

    def objective(self, coefficients: np.ndarray) -> float:
        """The hinge objective, in float64."""
        scores = self.Q @ coefficients
        margins = scores[self.upper] - scores[self.lower]
        return 0.5 * float(coefficients @ scores) + self.C * float(np.maximum(0.0, 1.0 - margins).sum())


def some_queries(train: RankingData, most_pairs: int) -> RankingData:
    """A random choice of queries that have at most ``most_pairs`` pairs together."""
    pairs = {qid: len(explicit_pairs(train.select(rows))[0]) for qid, rows in train.queries}
    chosen, total = [], 0
    for qid in np.random.default_rng(SEED).permutation(list(pairs)):
        if pairs[qid] > 0 and total + pairs[qid] <= most_pairs:
            chosen.append(qid)
            total += pairs[qid]
    return train.select(np.isin(train.qid, chosen))


@dataclass
class PairFits:
    """Fits by both methods at several tolerances."""

    curves: dict[str, Curve]
    # hinge objectives, and the optimum
    objectives: dict[str, list[float]]
    optimum: float
    building: float

    def over(self, method: str) -> np.ndarray:
        """Relative distances of a method's objectives from the optimum."""
        return np.array(self.objectives[method]) / self.optimum - 1.0


def against_pairs(dual: PairDual, test: RankingData) -> PairFits:
    """Fit with both methods at several tolerances."""
    data = dual.data
    building = seconds(dual.build)
    block = dual.kernel.block(test.X, data.X)
    options = {"gamma": dual.gamma, "loss": "hinge", "kernel_dtype": "float64", "n_jobs": 2}

    def ours(tol: float) -> np.ndarray:
        model = KernelRankSVM(dual.C, tol=tol, **options)
        model.fit(data.X, data.y, qid=data.qid)
        return np.bincount(model.support_, model.dual_coef_, data.n_rows)

    fits = PairFits({OURS: Curve(), PAIRS: Curve()}, {OURS: [], PAIRS: []}, dual.objective(ours(TIGHT)), building)
    for method, solve in ((OURS, ours), (PAIRS, dual.solve)):
        for tol in TOLS:
            found: list[np.ndarray] = []
            taken = min(seconds(lambda s=solve, t=tol, f=found: f.append(s(t))) for _ in range(REPEATS))
            fits.objectives[method].append(dual.objective(found[0]))
            fits.curves[method].add(f"{tol:g}", taken, figures(test, block @ found[0]))
            progress(method, tol, taken, fits.over(method)[-1])
    return fits


def pairs_part(dual: PairDual, fits: PairFits) -> list[str]:
    """The part of the page about both methods."""
    rows, data = [], dual.data
    for method, curve in fits.curves.items():
        for place, over in enumerate(fits.over(method)):
            cells = [f"{curve.seconds[place]:.3f}", f"{fits.objectives[method][place]:.8g}", f"{over:.1e}"]
            rows.append((method, curve.labels[place], *cells, *(f"{value:.4f}" for value in curve.figures[place])))
    header = ["method", "tol", "training, s", "objective", "over the optimum (relative)"]
    return [
        "### The pair dual, where it still fits",
        f"{data.queries.n_queries} queries of the training part, {data.n_rows:,} rows, {dual.n_pairs:,} pairs; hinge "
        'loss, the same gamma and C. scikit-learn\'s `SVC(kernel="precomputed")` is given the kernel of all pairs, '
        "each pair twice with half of C so that its intercept is 0 (`k(ij, kl) = Q_ik - Q_il - Q_jk + Q_jl`): "
        f"{dual.K.nbytes / 1e6:,.0f} MB, built in {fits.building:.2f} s, which is not in its times; ours include "
        f"building Q; the least of {REPEATS} each. Objectives are computed anew in float64; the optimum is ours at "
        f"tol = {TIGHT:g}. A tol means something else to each: ours certifies the objective, SVC's bounds the "
        "violation of the dual's conditions.",
        table([*header, *(f"test {name}" for name in MEASURES.values())], rows),
    ]


# -- the page ----------------------------------------------------------------------------------------------------------


@dataclass
class Measured:
    """All measurements of one data set."""

    case: Case
    curves: dict[str, Curve]
    dual: PairDual
    fits: PairFits


def measure(case: Case, options) -> Measured:
    """Run everything on a data set."""
    train, _, test = case.parts
    components, most_pairs = ((6, 10), 300) if options.smoke else (COMPONENTS, MAX_PAIRS)
    curves = {LINEAR: linear(case), **exact(case, options.patience)}
    curves[NYSTROEM] = approximate(case, "nystroem", components)
    curves[FOURIER] = approximate(case, "fourier", components)
    dual = PairDual(some_queries(train, most_pairs), case.gamma, case.C)
    fits = against_pairs(dual, test)
    return Measured(case, curves, dual, fits)


def plot(measured: list[Measured], path) -> None:
    """Plot both measures, and the objective of the pair dual, against seconds; a row of panels for each data set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(measured), 3, figsize=(14, 4.5 * len(measured)), squeeze=False)
    figure.set_layout_engine("constrained")
    for row, each in zip(axes, measured, strict=True):
        for place, name in enumerate(MEASURES.values()):
            _plot_quality(row[place], each, place)
            row[place].set_ylabel(f"test {name}")
        _plot_objectives(row[2], each)
        for axis in row:
            axis.set_xlabel("training, seconds")
            axis.grid(alpha=0.3)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    temporary = path.with_name(path.stem + ".part.png")
    figure.savefig(temporary, dpi=90)
    temporary.replace(path)
    plt.close(figure)


def _plot_quality(axis, measured: Measured, place: int) -> None:
    for method, curve in measured.curves.items():
        color, style = STYLES[method]
        values = np.array(curve.figures)[:, place]
        size = 12 if style == "*" else 5
        axis.semilogx(curve.seconds, values, style, color=color, markersize=size, label=method, alpha=0.85)
    best = measured.curves[LANDMARKS].figures[-1][place]
    axis.axhline(best, color=PALETTE[1], linewidth=0.8, linestyle="--", alpha=0.5)
    axis.set_title(f"{measured.case.name}, all training queries", fontsize=10)


def _plot_objectives(axis, measured: Measured) -> None:
    for method, curve in measured.fits.curves.items():
        color, style = STYLES[method]
        # a point below the precision of the optimum is drawn at the bottom
        over = np.maximum(measured.fits.over(method), TIGHT)
        axis.loglog(curve.seconds, over, style, color=color, markersize=5, label=method)
    # limits at powers of 10: otherwise the labels of minor ticks would overlap
    decades = np.log10(np.concatenate([curve.seconds for curve in measured.fits.curves.values()]))
    axis.set_xlim(10.0 ** np.floor(decades.min()), 10.0 ** np.ceil(decades.max()))
    axis.set_ylabel("hinge objective over the optimum (relative)")
    queries = measured.dual.data.queries.n_queries
    axis.set_title(f"{measured.case.name}, {measured.dual.n_pairs:,} pairs of {queries} queries", fontsize=10)
    axis.legend(fontsize=8)


def cases(smoke: bool) -> list[Case]:
    """The data sets."""
    n_queries = 10 if smoke else 80
    found = [Case("made, curved", made(curved, n_queries), 2.0**-4, 2.0**2)]
    if not smoke and data_folder() is not None:
        parts = Parts(*(read("MQ2008", part=part) for part in Parts._fields))
        found.insert(0, Case("MQ2008 fold 1", parts, 2.0**-5, 2.0**-2))
    return found


def part(measured: Measured) -> list[str]:
    """The part of the page about one data set."""
    case, train = measured.case, measured.case.parts.train
    n_pairs = len(explicit_pairs(train)[0])
    return [
        f"## {case.name}",
        f"{train.n_rows:,} training rows, {n_pairs:,} pairs: a kernel matrix of them, each twice, would take "
        f"{4e-9 * 8 * n_pairs**2:,.1f} GB. RBF kernel with gamma = 2^{np.log2(case.gamma):.0f} and C = "
        f"2^{np.log2(case.C):.0f}, squared hinge; the linear model with the C that mean NDCG on the validation part "
        "chooses.",
        quality_table(measured.curves),
        *pairs_part(measured.dual, measured.fits),
    ]


def report(options) -> str:
    """Make the page, and write the plot."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # the tables have the certificates
    measured = [measure(case, options) for case in cases(options.smoke)]
    parts = [
        "Two threads. Training is one fit, without the choice of C and gamma. Exact solvers: the model after each "
        f"iteration, building Q included in every time (in the tables some of the iterates), to tol = {TOL:g}; TRON "
        f"ended by its first iterate after {options.patience:g} s. Nyström (uniform landmarks) and random Fourier "
        f"features: r components, default tolerance, means of {DRAWS} draws (of times the median). Dashed: the exact "
        "solution.",
    ]
    for each in measured:
        parts += part(each)
    if options.output is not None:
        path = options.output.with_suffix(".png")
        path.parent.mkdir(parents=True, exist_ok=True)
        plot(measured, path)
        parts.insert(0, f"![test quality against training time]({path.name})")
    return page("Test quality against training time", "kernel_quality", options, parts)


def main(argv=None):
    """Run from the command line."""
    patience = {"type": float, "default": PATIENCE, "help": "seconds after which TRON is given up"}
    options = arguments(__doc__, argv, ("--patience", patience))
    publish(report(options), options)


if __name__ == "__main__":
    main()
