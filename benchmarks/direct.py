"""Compare direct Newton steps with conjugate gradients and TRON: exact kernels with large C, fewer rows than features.

python benchmarks/direct.py -o benchmarks/results/direct.md
python benchmarks/direct.py --device cuda --only kernels -o benchmarks/results/direct_gpu.md
"""

import argparse
import math
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, data_folder, page, publish, read, table
from _gpu_cases import made
from _gpu_device import gpu_name
from _kernel_trace import AUTO, LANDMARKS, problem_of, traced
from ranksvm import KernelRankSVM, RankingData, RankSVM, make_ranking
from ranksvm.fits.linear import DIRECT_ROWS
from ranksvm.objectives import KernelObjective, active_pairs, device_inversion

# Seconds after which a kernel fit with conjugate gradients is stopped, on the CPU and on a device.
PATIENCE, DEVICE_PATIENCE = 30.0, 4.0
KERNEL_CS, LINEAR_CS = (1.0, 32.0, 1024.0), (1e-4, 1.0, 128.0)
LOSSES = ("squared_hinge", "hinge")
# With the kernel matrix in float32, larger C have no certificate: the problem may not be convex.
FLOAT64_FROM = {"squared_hinge": 100.0, "hinge": 10.0}
LEVELS = 5
MAX_ITER = 100
SEED = 0
PARTS = ("kernels", "rows")
INTRODUCTION = (
    "Processor time of fits with one thread, if nothing else is said; cold starts, tol = 1e-4. The certificate is the "
    "relative duality gap."
)


def kernel_rows(data: RankingData, gamma: float, Cs: tuple[float, ...], device: str) -> list[tuple]:
    """Fits of the exact RBF kernel, without direct steps, and with direct steps as soon as they cost less."""
    on_cpu, rows = device == "cpu", []
    clock = time.process_time if on_cpu else time.perf_counter
    n_jobs, patience = (1, PATIENCE) if on_cpu else (-1, DEVICE_PATIENCE)
    for loss in LOSSES:
        for C in Cs:
            dtype = "float64" if FLOAT64_FROM[loss] <= C else "float32"
            problem = problem_of(data, gamma=gamma, loss=loss, kernel_dtype=dtype, n_jobs=n_jobs, device=device)
            assert problem.matrix.n_rows
            for solver, name in ((AUTO, "auto"), (LANDMARKS, "newton")):
                with largest_factor(clock) as found:
                    begin = clock()
                    trace = traced(problem, solver, C, 1e-4, np.inf if solver == AUTO else patience)
                    seconds = clock() - begin
                result = trace.result
                assert result is not None
                cells = f"{seconds:.2f}", trace.products[-1], result.n_iter
                print(loss, C, name, *cells, *found.values(), file=sys.stderr, flush=True)
                certified = f"{result.value:.9g}", f"{result.relative_gap:.1e}"
                rows.append((loss, f"{C:g}", name, *cells, *certified, *found.values()))
    return rows


@contextmanager
def largest_factor(clock: Any) -> Iterator[dict[str, str]]:
    """Note the size of the largest factor of a fit, and the seconds that it and its inverse took."""
    found = {"rows": "", "factor": "", "inverse": ""}
    largest, taken, invert = 0, 0.0, KernelObjective._inverse

    def noted(n_rows: int, factorize: Any, *arguments: Any) -> Any:
        nonlocal largest, taken
        begin = clock()
        factor = factorize(*arguments)
        largest, taken = n_rows, clock() - begin
        return factor

    def on_host(matrix: np.ndarray, n_threads: int, factorize: Any = active_pairs.factorize) -> Any:
        return noted(len(matrix), factorize, matrix, n_threads)

    def on_device(run: Any, matrix: Any, factorize: Any = device_inversion.cholesky) -> Any:
        run.device.synchronise()  # what forms the matrix
        return noted(matrix.shape[0], factorize, run, matrix)

    def inverse(self: KernelObjective, state: object) -> Any:
        nonlocal largest
        begin, largest = clock(), 0
        solve = invert(self, state)
        if largest > int(found["rows"].replace(",", "") or 0):
            found.update(rows=f"{largest:,}", factor=f"{taken:.3f}", inverse=f"{clock() - begin:.3f}")
        return solve

    with (
        mock.patch.object(active_pairs, "factorize", on_host),
        mock.patch.object(device_inversion, "cholesky", on_device),
        mock.patch.object(KernelObjective, "_inverse", inverse),
    ):
        yield found


def warm(device: str) -> None:
    """Compile the kernels of fits on a device."""
    data = make_ranking(20, 10, 5, random_state=SEED)
    X = data.X.astype(np.float64)
    RankSVM(device=device).fit(X, data.y, qid=data.qid)
    for dtype in ("float32", "float64"):
        for C in (1.0, 1e5):
            model = KernelRankSVM(C, solver="direct", kernel_dtype=dtype, device=device, max_iter=2)
            model.fit(X, data.y, qid=data.qid)


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
    time.sleep(0.5)  # the threads of BLAS that made the data wait actively for a while, which is processor time
    for loss in LOSSES:
        for C in Cs:
            for solver in ("auto", "auto without direct", "direct", "tron"):
                how: dict[str, Any] = {"C": C, "loss": loss, "n_jobs": 1, "max_iter": MAX_ITER}
                most = 0 if solver == "auto without direct" else DIRECT_ROWS
                model = RankSVM(solver=solver.split()[0], **how)
                seconds = math.inf
                for _ in range(2):  # the first fit may load libraries
                    begin = time.process_time()
                    with mock.patch("ranksvm.fits.linear.DIRECT_ROWS", most):
                        model.fit(data.X, data.y, qid=data.qid)
                    seconds = min(seconds, time.process_time() - begin)
                print(name, loss, C, solver, f"{seconds:.3f}", file=sys.stderr, flush=True)
                gap = model.duality_gap_ / model.objective_
                cells = f"{seconds:.3f}", model.n_iter_, f"{model.objective_:.8g}", f"{gap:.1e}"
                rows.append((name, loss, f"{C:g}", solver, model.solver_, *cells))
    return rows


def main(argv: list[str] | None = None) -> None:
    """Time the fits and write the page."""
    device: dict[str, Any] = {"default": "cpu", "help": "where the exact kernels are fitted, such as cuda"}
    only: dict[str, Any] = {"choices": PARTS, "help": "one part alone"}
    options = arguments(__doc__, argv, ("--device", device), ("--only", only))
    warnings.simplefilter("ignore", ConvergenceWarning)
    parts = {"kernels": kernels_part, "rows": rows_part}
    chosen = [parts[part](options) for part in PARTS if options.only in (None, part)]
    publish(page("Direct Newton steps", "direct", options, [INTRODUCTION, *chosen]), options)


def kernels_part(options: argparse.Namespace) -> str:
    """The fits of exact kernels, as a table."""
    if options.smoke:
        name, data = "made, 200 rows", make_ranking(20, 10, 5, random_state=SEED)
    elif data_folder() is None:
        name, data = "MQ2008's shape, made", made("MQ2008")
    else:
        name, data = "MQ2008 fold 1, 7,903 rows with pairs", read("MQ2008")
    patience, where = PATIENCE, ""
    if options.device != "cpu":
        where = f" On a GPU ({gpu_name()}): seconds of the clock, with all threads of the host."
        warm(options.device)
        patience = DEVICE_PATIENCE
    rows = kernel_rows(data, 0.5, (1.0,) if options.smoke else KERNEL_CS, options.device)
    heads = "loss", "C", "solver", "seconds", "products", "steps", "objective", "certificate"
    return (
        f"## Exact kernels\n\n{name}, RBF kernel with gamma = 1/2; Q built beforehand.{where} `newton` takes conjugate "
        f"gradients alone, and was ended by its first iterate after {patience:g} s. The last columns are about the "
        "largest factor of the fit: its rows, its seconds, and the seconds of the inverse of the Hessian by it.\n\n"
        + table([*heads, "rows", "factor, s", "inverse, s"], rows)
    )


def rows_part(options: argparse.Namespace) -> str:
    """The fits of linear models with fewer rows than features, as a table."""
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
    return (
        f"## Fewer rows than features\n\nDense float64 features, five levels, at most {MAX_ITER} iterations of each "
        "solver that runs; seconds of the faster of two fits. If auto's first solver takes too long, another one "
        "continues. Without direct steps is how auto chose before it had them.\n\n"
        + table(["data", "loss", "C", "solver", "took", "seconds", "steps", "objective", "certificate"], found)
    )


if __name__ == "__main__":
    main()
