"""Compare direct Newton steps with conjugate gradients and TRON: exact kernels with large C, fewer rows than features.

python benchmarks/direct.py -o benchmarks/results/direct.md
"""

import sys
import time
import warnings
from typing import Any
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, data_folder, page, publish, read, table
from _kernel_trace import AUTO, LANDMARKS, problem_of, traced
from ranksvm import RankingData, RankSVM, make_ranking
from ranksvm.fits.linear import DIRECT_ROWS

# Seconds after which a kernel fit with conjugate gradients is stopped.
PATIENCE = 30.0
KERNEL_CS, LINEAR_CS = (1.0, 32.0, 1024.0), (1e-4, 1.0, 128.0)
LOSSES = ("squared_hinge", "hinge")
# With the kernel matrix in float32, larger C have no certificate: the problem may not be convex.
FLOAT64_FROM = {"squared_hinge": 100.0, "hinge": 10.0}
LEVELS = 5
MAX_ITER = 100
SEED = 0


def kernel_rows(data: RankingData, gamma: float, Cs: tuple[float, ...]) -> list[tuple]:
    """Fits of the exact RBF kernel, without direct steps, and with direct steps as soon as they cost less."""
    rows = []
    for loss in LOSSES:
        for C in Cs:
            dtype = "float64" if FLOAT64_FROM[loss] <= C else "float32"
            problem = problem_of(data, gamma=gamma, loss=loss, kernel_dtype=dtype, n_jobs=1)
            assert problem.matrix.n_rows
            for solver, name in ((AUTO, "auto"), (LANDMARKS, "newton")):
                begin = time.process_time()
                trace = traced(problem, solver, C, 1e-4, np.inf if solver == AUTO else PATIENCE)
                result = trace.result
                assert result is not None
                cells = f"{time.process_time() - begin:.2f}", trace.products[-1], result.n_iter
                print(loss, C, name, *cells, file=sys.stderr, flush=True)
                rows.append((loss, f"{C:g}", name, *cells, f"{result.value:.9g}", f"{result.relative_gap:.1e}"))
    return rows


def wide(n: int, n_features: int, n_queries: int, factors: int) -> RankingData:
    """Five levels; features are normal, or depend on a few factors, with noise and scales from 0.1 to 10."""
    random = np.random.default_rng(SEED)
    X = random.standard_normal((n, n_features))
    if factors:
        X *= 0.3
        X += random.standard_normal((n, factors)) @ random.standard_normal((factors, n_features))
        X *= 10.0 ** random.uniform(-1.0, 1.0, n_features)
    relevance = X @ random.standard_normal(n_features)
    relevance += 0.3 * relevance.std() * random.standard_normal(n)
    y = np.digitize(relevance, np.quantile(relevance, np.arange(1, LEVELS) / LEVELS))
    return RankingData(X, y.astype(float), np.sort(random.integers(0, n_queries, n)))


def wide_rows(name: str, data: RankingData, Cs: tuple[float, ...]) -> list[tuple]:
    """Fits of a linear model, including the solver that "auto" would choose without direct steps."""
    rows = []
    for loss in LOSSES:
        for C in Cs:
            for solver in ("auto", "auto without direct", "direct", "tron"):
                how: dict[str, Any] = {"C": C, "loss": loss, "n_jobs": 1, "max_iter": MAX_ITER}
                most = 0 if solver == "auto without direct" else DIRECT_ROWS
                model = RankSVM(solver=solver.split()[0], **how)
                begin = time.process_time()
                with mock.patch("ranksvm.fits.linear.DIRECT_ROWS", most):
                    model.fit(data.X, data.y, qid=data.qid)
                seconds = time.process_time() - begin
                print(name, loss, C, solver, f"{seconds:.3f}", file=sys.stderr, flush=True)
                gap = model.duality_gap_ / model.objective_
                cells = f"{seconds:.3f}", model.n_iter_, f"{model.objective_:.8g}", f"{gap:.1e}"
                rows.append((name, loss, f"{C:g}", solver, model.solver_, *cells))
    return rows


def main(argv: list[str] | None = None) -> None:
    """Time the fits and write the page."""
    options = arguments(__doc__, argv)
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.smoke or data_folder() is None:
        name, data = "made, 200 rows", make_ranking(20, 10, 5, random_state=SEED)
    else:
        name, data = "MQ2008 fold 1, 7,903 rows with pairs", read("MQ2008")
    kernels = kernel_rows(data, 0.5, (1.0,) if options.smoke else KERNEL_CS)
    sets = {"60 x 150, one list": (60, 150, 1, 0)}
    if not options.smoke:
        sets = {
            "600 x 1,800, one list": (600, 1800, 1, 0),
            "600 x 1,800, 20 queries": (600, 1800, 20, 0),
            "600 x 1,800, 20 queries, 20 factors": (600, 1800, 20, 20),
            "400 x 1,000, one list, 20 factors": (400, 1000, 1, 20),
        }
    found: list[tuple] = []
    for title, sizes in sets.items():
        found += wide_rows(title, wide(*sizes), (1.0,) if options.smoke else LINEAR_CS)
    parts = [
        "Processor time of fits with one thread, cold starts, tol = 1e-4. The certificate is the relative duality gap.",
        "## Exact kernels",
        f"{name}, RBF kernel with gamma = 1/2; Q built beforehand. `newton` takes conjugate gradients alone, and was "
        f"ended by its first iterate after {PATIENCE:g} s.",
        table(["loss", "C", "solver", "seconds", "products", "steps", "objective", "certificate"], kernels),
        "## Fewer rows than features",
        f"Dense float64 features, five levels, at most {MAX_ITER} iterations of each solver that runs. Where auto's "
        "first solver does not reach tol, another one continues. Without direct steps is how auto chose before it had "
        "them.",
        table(["data", "loss", "C", "solver", "took", "seconds", "steps", "objective", "certificate"], found),
    ]
    publish(page("Direct Newton steps", "direct", options, parts), options)


if __name__ == "__main__":
    main()
