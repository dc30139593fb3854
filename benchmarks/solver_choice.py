"""Compare ``solver="auto"`` with every solver on a grid of shapes, spectra and C, on few rows, and on listed pairs.

python benchmarks/solver_choice.py --cache build/solver_choice.jsonl --seconds 60 -o benchmarks/results/solver_choice.md

The grid is measured in processor time on one thread, so that other programs may run at the same time. With --cache,
each result is stored, and the same command continues with the rest.
"""

import json
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from _common import arguments, data_folder, page, publish, read, seconds, table
from _peak_memory import peak
from _pieces import Found, Pieces, Section
from ranksvm import RankSVM

SOLVERS = ("newton", "tron", "auto")
# for fewer rows than features
FEW_ROWS_SOLVERS = ("tron", "dual", "direct", "auto")
LOSSES = ("squared_hinge", "hinge")
LIMIT = 1.3
# A fit of few rows that needs more steps than this counts as not certified.
MAX_ITER = 100
SEED = 0
LEVELS = 5
# A fit that takes longer than this is not repeated, in seconds.
LONG = 1.0
# Number of rows that are generated at a time.
CHUNK = 20_000


@dataclass(frozen=True)
class Shape:
    """Generated data, in which the k-th singular value of the features is proportional to ``k ** -decay``.

    With ``density`` below 1, X is a CSR matrix with this share of the values.
    """

    rows: int
    features: int
    documents: int
    decay: float
    density: float = 1.0

    def __str__(self) -> str:
        kind = "CSR" if self.density < 1.0 else "dense"
        return f"{self.rows:,} x {self.features:,} {kind}, {self.documents} a query, {spectrum_name(self.decay)}"


def spectrum_name(decay: float) -> str:
    """The decay of singular values in words."""
    return "isotropic" if decay == 0.0 else f"k^-{decay:g}"


SHAPES = (
    *(Shape(300, features, 20, decay) for features in (10, 46) for decay in (0.0, 1.0)),
    *(Shape(1_000, features, 20, decay) for features in (46, 245) for decay in (0.0, 0.7)),
    *(Shape(2_000, 768, 20, decay) for decay in (0.0, 0.7)),
    *(Shape(10_000, features, 120, decay) for features in (46, 136, 768) for decay in (0.0, 0.7)),
    *(Shape(20_000, 300, 20, decay, 0.05) for decay in (0.0, 0.7)),
    *(Shape(20_000, 1_024, 2, decay) for decay in (0.0, 0.5)),
    Shape(5_000, 2_000, 120, 0.5),
    Shape(40_000, 136, 700, 0.5),
    Shape(100_000, 10, 20, 0.5),
    Shape(100_000, 245, 120, 0.5),
)
FEW_ROWS_SHAPES = (
    *(Shape(200, 3_000, 20, decay) for decay in (0.0, 0.7)),
    *(Shape(400, 600, 10, decay) for decay in (0.0, 0.7)),
    *(Shape(600, 1_800, documents, decay) for documents in (20, 600) for decay in (0.0, 0.7)),
    *(Shape(1_000, 1_500, 6, decay) for decay in (0.0, 0.7)),
    *(Shape(1_500, 3_000, 40, decay) for decay in (0.0, 0.7)),
    Shape(1_000, 47_000, 20, 0.0, 0.004),
)
CS = (1e-4, 1e-2, 1.0, 100.0)
# Dense real data, whose features are strongly correlated.
REAL = ("MQ2008", "OHSUMED", "MQ2007-partial", "LightGBM-rank")


@cache
def projection(features: int, decay: float) -> np.ndarray:
    """A matrix that makes independent normal features correlated; the mean of their variances is 1."""
    spectrum = np.arange(1.0, features + 1.0) ** -decay
    spectrum *= np.sqrt(features / (spectrum @ spectrum))
    rotation = np.linalg.qr(np.random.default_rng(SEED).standard_normal((features, features)))[0]
    return (spectrum[:, np.newaxis] * rotation).astype(np.float32)


def features_of(rows: int, features: int, decay: float) -> np.ndarray:
    """Rows of float32 features."""
    rng = np.random.default_rng(SEED)
    X = np.empty((rows, features), dtype=np.float32)
    for start in range(0, rows, CHUNK):
        part = X[start : start + CHUNK]
        rng.standard_normal(dtype=np.float32, out=part)
        if decay:
            part[...] = part @ projection(features, decay)
    return X


def relevance(X: Any) -> np.ndarray:
    """A linear function with standard deviation 1, plus noise with standard deviation 0.5."""
    rng = np.random.default_rng(SEED + 1)
    scores = X @ rng.standard_normal(X.shape[1]).astype(np.float32)
    return scores / scores.std() + 0.5 * rng.standard_normal(len(scores))


@cache
def made(shape: Shape) -> tuple[Any, np.ndarray, np.ndarray]:
    """Features, five levels of relevance, and queries."""
    X: Any = features_of(shape.rows, shape.features, shape.decay)
    if shape.density < 1.0:
        X *= np.random.default_rng(SEED + 2).random(X.shape, dtype=np.float32) < shape.density
        X = scipy.sparse.csr_matrix(X)
    found = relevance(X)
    y = np.searchsorted(np.quantile(found, np.arange(1, LEVELS) / LEVELS), found)
    return X, y.astype(float), np.arange(shape.rows) // shape.documents


# -- the grid ----------------------------------------------------------------------------------------------------------


def processor_seconds(ranker: RankSVM, X: Any, y: np.ndarray, qid: np.ndarray) -> float:
    """Processor time of a fit."""
    started = time.process_time()
    ranker.fit(X, y, qid=qid)
    return time.process_time() - started


def of_real(name: str, Cs: tuple[float, ...], repeats: int) -> list[dict[str, Any]]:
    """Call `of_data` for the training part of fold 1 of real data."""
    data = read(name)
    return of_data(f"{name}, {data.X.shape[0]:,} x {data.X.shape[1]}", (data.X, data.y, data.qid), Cs, repeats)


def of_grid(shape: Shape, Cs: tuple[float, ...], repeats: int) -> list[dict[str, Any]]:
    """Call `of_data` for generated data."""
    found = of_data(str(shape), made(shape), Cs, repeats)
    made.cache_clear()
    return found


def of_few_rows(shape: Shape, Cs: tuple[float, ...], repeats: int) -> list[dict[str, Any]]:
    """Call `of_data` for generated data with fewer rows than features, for each loss."""
    found = []
    for loss in LOSSES:
        options = {"loss": loss, "max_iter": MAX_ITER}
        found += of_data(f"{shape}, {loss}", made(shape), Cs, repeats, FEW_ROWS_SOLVERS, **options)
    made.cache_clear()
    return found


def of_data(
    name: str,
    data: tuple[Any, np.ndarray, np.ndarray],
    Cs: tuple[float, ...],
    repeats: int,
    solvers: tuple[str, ...] = SOLVERS,
    **options: Any,
) -> list[dict[str, Any]]:
    """For each C: the shortest time of each solver in some rounds, in which the solvers take turns."""
    found = []
    X = data[0]
    # more rounds of short fits, whose times vary more
    rounds = 1 if repeats == 1 or X.size > 3e6 else repeats if X.size > 3e5 else 5 * repeats
    if scipy.sparse.issparse(X):  # "newton" refuses CSR rows with hundreds of features
        solvers = tuple(solver for solver in solvers if solver != "newton")
    for C in Cs:
        rankers = {solver: RankSVM(C=C, solver=solver, n_jobs=1, **options) for solver in solvers}
        times: dict[str, list[float]] = {solver: [] for solver in solvers}
        for _ in range(rounds):
            for solver, ranker in rankers.items():
                if not times[solver] or times[solver][0] < LONG:
                    times[solver].append(processor_seconds(ranker, *data))
        auto = rankers["auto"]
        found.append(
            {
                "shape": name,
                "C": C,
                "seconds": {solver: min(values) for solver, values in times.items()},
                "solver": auto.solver_,
                "products": auto.history_["hessian_products"][-1],
                "converged": [solver for solver, ranker in rankers.items() if ranker.converged_],
            }
        )
    return found


def milliseconds(seconds: float, converged: bool) -> str:
    """A time, in parentheses if the fit did not reach tol."""
    text = f"{1e3 * seconds:.1f}"
    return text if converged else f"({text})"


def grid_table(found: list[Found], solvers: tuple[str, ...]) -> tuple[str, str]:
    """A sentence with the worst ratio, and the table."""
    rows, ratios = [], []
    for piece in found:
        for case in piece.value:
            took, converged = case["seconds"], case["converged"]
            cells = [milliseconds(took[solver], solver in converged) if solver in took else "-" for solver in solvers]
            ratio = ""
            if "auto" in converged:
                ratios.append(took["auto"] / min(took[solver] for solver in converged))
                ratio = f"{ratios[-1]:.2f}"
            certified = "yes" if "auto" in converged else "**NO**"
            rows.append([case["shape"], f"{case['C']:g}", *cells, case["solver"], case["products"], ratio, certified])
    heads = ["data", "C", *(f"{solver}, ms" for solver in solvers), "auto took", "products", "ratio", "certified"]
    worst = f"The worst ratio is {max(ratios):.2f}, the median {np.median(ratios):.2f}; the limit is {LIMIT}."
    return worst, table(heads, rows)


def render_grid(found: list[Found]) -> list[str]:
    """A table of the grid, with the worst ratio."""
    worst, rows = grid_table(found, SOLVERS)
    return [
        "## The grid",
        "Milliseconds of processor time on one thread, float32 features, tol 1e-4; the ratio is that of `auto` to the "
        "fastest that reached tol; times in parentheses are of fits that did not. The last rows are of real data, "
        f"dense, the training part of fold 1. {worst}",
        rows,
    ]


def render_few_rows(found: list[Found]) -> list[str]:
    """A table of the fits with fewer rows than features, with the worst ratio."""
    worst, rows = grid_table(found, FEW_ROWS_SOLVERS)
    return [
        "## Fewer rows than features",
        f"As above, with at most {MAX_ITER} iterations of each solver that runs. {worst}",
        rows,
    ]


# -- listed pairs ------------------------------------------------------------------------------------------------------


def listed(n_pairs: int, features: int, decay: float) -> tuple[np.ndarray, np.ndarray]:
    """Features with two rows for each pair, and the pairs, with the preferred row first."""
    X = features_of(2 * n_pairs, features, decay)
    found = relevance(X)
    first = np.arange(0, 2 * n_pairs, 2)
    preferred = np.where(found[first] > found[first + 1], first, first + 1)
    return X, np.column_stack([preferred, 2 * first + 1 - preferred])


def fit_of_pairs(n_pairs: int, features: int, decay: float, C: float, who: str) -> dict[str, Any]:
    """Seconds and memory of a fit, in this process."""
    X, pairs = listed(n_pairs, features, decay)
    qid = np.repeat(np.arange(n_pairs), 2)
    few = min(n_pairs, 500)
    small = X[: 2 * few].copy()

    def fit(X: np.ndarray, n: int) -> Any:
        if who == "RankSVM":
            return RankSVM(C=C).fit(X, pairs=pairs[:n], qid=qid[: 2 * n])
        sign = np.where(np.arange(n) % 2, 1.0, -1.0).astype(np.float32)
        differences = X[pairs[:n, 0]]
        differences -= X[pairs[:n, 1]]
        differences *= sign[:, np.newaxis]
        return LogisticRegression(C=C, fit_intercept=False, max_iter=1000).fit(differences, sign > 0)

    fit(small, few)
    before, model = peak(), []
    took = seconds(lambda: model.append(fit(X, n_pairs)))
    found = {"seconds": took, "memory": max(0, peak() - before) / X.nbytes}
    if who == "RankSVM":
        found |= {"solver": model[0].solver_, "gap": model[0].duality_gap_ / model[0].objective_}
    return found


def in_a_process(*what: Any) -> dict[str, Any]:
    """Call `fit_of_pairs` in a separate process, to measure its memory."""
    command = [sys.executable, __file__, "--pairs", json.dumps(what)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def render_pairs(found: list[Found]) -> list[str]:
    """A table of the fits of listed pairs."""
    rows = []
    for piece in found:
        value = piece.value
        cells = [f"{value['seconds']:.2f}", f"{1 + value['memory']:.2f}"]
        rows.append([piece.key, *cells, value.get("solver", "lbfgs"), f"{value['gap']:.1e}" if "gap" in value else ""])
    return [
        "## Listed pairs",
        "Pairs (preferred, other) of rows of their own, float32 features, all threads. Seconds of a fit, and the "
        "memory that features and fit take at the peak, as multiples of the features. Logistic regression, with the "
        "same C, works on the differences, and making them counts.",
        table(["fit", "seconds", "memory / features", "solver", "relative gap"], rows),
    ]


def sections(smoke: bool, repeats: int) -> list[Section]:
    """The page."""
    shapes = (Shape(300, 10, 20, 0.0), Shape(300, 245, 20, 0.5)) if smoke else SHAPES
    Cs = (0.01,) if smoke else CS
    grid = {str(shape): partial(of_grid, shape, Cs, repeats) for shape in shapes}
    few_shapes = (Shape(60, 100, 20, 0.0),) if smoke else FEW_ROWS_SHAPES
    few_rows = {str(shape): partial(of_few_rows, shape, Cs, repeats) for shape in few_shapes}
    if not smoke and data_folder() is not None:
        grid |= {name: partial(of_real, name, Cs, repeats) for name in REAL}
    n_pairs, features = (200, 160) if smoke else (200_000, 1024)
    pairs = {}
    for who, decay, C in product(("RankSVM", "LogisticRegression"), (0.5,) if smoke else (0.0, 0.5), (1e-3,)):
        key = f"{who}, {n_pairs:,} pairs x {features:,}, {spectrum_name(decay)}, C = {C:g}"
        pairs[key] = partial(in_a_process, n_pairs, features, decay, C, who)
    return [
        Section("grid", grid, render_grid),
        Section("few rows", few_rows, render_few_rows),
        Section("pairs", pairs, render_pairs),
    ]


def main(argv=None):
    """Run from the command line."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # the page says which fits did not converge
    options = arguments(
        __doc__,
        argv,
        ("--repeats", {"type": int, "default": 3, "help": "rounds"}),
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
        ("--seconds", {"type": float, "help": "begin no piece after so many seconds"}),
        ("--pairs", {"help": "for the process of a fit of listed pairs"}),
    )
    if options.pairs:
        print(json.dumps(fit_of_pairs(*json.loads(options.pairs))))
        return
    parts = sections(options.smoke, 1 if options.smoke else options.repeats)
    pieces = Pieces(options.cache, options.seconds)
    pieces.measure(parts, options.only)
    if pieces.left:
        sys.exit(f"{pieces.left} pieces are left: run the same command again.")
    publish(page("The solver that is chosen", "solver_choice", options, pieces.parts(parts)), options)


if __name__ == "__main__":
    main()
