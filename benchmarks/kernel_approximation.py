"""Approximated kernels: error, quality and time, by method and number of features, and a large fit.

python benchmarks/kernel_approximation.py -o benchmarks/results/kernel_approximation.md
"""

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from _common import arguments, data_folder, letor, page, publish, read, table, verdict
from ranksvm import KernelRankSVM, RankingData, RankSVM, make_ranking
from ranksvm.kernels import LANDMARK_METHODS, FourierFeatures, NystroemFeatures, choose_landmarks, kernel_named

METHODS = (*LANDMARK_METHODS, "fourier")
SIZES = (100, 300, 1000)
SEEDS = (0, 1)
GAMMAS = (-5, -3, -1)
# exponents of gamma and C, for RBF kernels whose exact optima are known
PROBLEMS = ((-5, 0), (-3, -3), (-1, 0))
MEASURES = ("pairwise_accuracy", "mean_ndcg")
# goal: the largest memory of a large fit, divided by its memory limit
LARGE_LIMIT = 1.2


# -- the error of the approximation ------------------------------------------------------------------------------------


def features_of(method: str, kernel, X: np.ndarray, n_features: int, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """A function that maps documents to features."""
    if method == "fourier":
        return FourierFeatures.drawn(kernel, X.shape[1], n_features, seed).transform
    landmarks = choose_landmarks(kernel, X, n_features, method=method, random_state=seed, n_threads=2)
    return NystroemFeatures(kernel, X[landmarks]).transform


def spectral_norm(Q: np.ndarray, phi: np.ndarray) -> float:
    """Largest absolute eigenvalue of ``Q - phi phi'``."""
    error = LinearOperator(Q.shape, matvec=lambda v: Q @ v - phi @ (v @ phi), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(len(Q))
    return float(abs(eigsh(error, k=1, which="LM", v0=start, tol=1e-2, return_eigenvectors=False)[0]))


def errors(X: np.ndarray, sizes: tuple[int, ...], seeds: tuple[int, ...]) -> list[str]:
    """Errors of the approximated kernel matrix, and the times to choose and to compute the features."""
    rows = []
    for exponent in GAMMAS:
        kernel = kernel_named("rbf", gamma=2.0**exponent)
        Q = kernel.block(X, X)
        largest = spectral_norm(Q, np.zeros((len(X), 1)))
        for size in sizes:
            for method in METHODS:
                found = []
                for seed in seeds:
                    started = time.perf_counter()
                    phi = features_of(method, kernel, X, size, seed)(X)
                    elapsed = time.perf_counter() - started
                    missing = 1.0 - np.einsum("ij,ij->i", phi, phi).mean()
                    found.append((missing, spectral_norm(Q, phi) / largest, elapsed))
                missing, spectral, elapsed = np.mean(found, axis=0)
                cells = "-" if method == "fourier" else f"{missing:.2e}", f"{spectral:.2e}", f"{elapsed:.2f}"
                rows.append((f"2^{exponent}", size, method, *cells))
    return [
        "## Error of the approximation",
        f"{len(X):,} documents of MQ2008 fold 1, `train.txt`, RBF kernel. Trace: what the features miss of `k(x, x)`, "
        "mean over the documents (random Fourier features miss nothing of it). Spectral: norm of the difference of the "
        f"kernel matrices over that of the exact one. Seeds: {len(seeds)}, of which figures are means; seconds for "
        "choosing and computing the features.",
        table(["gamma", "features", "method", "trace", "spectral", "seconds"], rows),
    ]


# -- quality and time --------------------------------------------------------------------------------------------------


def quality(train: RankingData, test: RankingData, sizes: tuple[int, ...], seeds: tuple[int, ...]) -> list[str]:
    """Test figures and time of linear, approximated and exact models."""
    rows = []

    def fit(ranker) -> tuple[float, ...]:
        started = time.perf_counter()
        ranker.fit(train.X, train.y, qid=train.qid)
        elapsed = time.perf_counter() - started
        found = letor(test, ranker.predict(test.X), MEASURES)
        return ranker.objective_, *(found[name] for name in MEASURES), elapsed

    for gamma, C in PROBLEMS:
        names, values = (f"2^{gamma}", f"2^{C}"), {"gamma": 2.0**gamma, "C": 2.0**C}
        _, *figures = fit(RankSVM(values["C"]))
        rows.append((*names, "linear", train.n_features, "-", *cells(figures)))
        optimum, *figures = fit(KernelRankSVM(**values))
        rows.append((*names, "exact", train.n_rows, "0", *cells(figures)))
        for size in sizes:
            for method in METHODS:
                how = {"approximation": "nystroem", "landmarks": method}
                if method == "fourier":
                    how = {"approximation": "fourier"}
                found = [fit(KernelRankSVM(**values, **how, n_components=size, random_state=seed)) for seed in seeds]
                objective, *figures = np.mean(found, axis=0)
                above = "-" if method == "fourier" else f"{objective / optimum - 1.0:.1e}"
                rows.append((*names, method, size, above, *cells(figures)))
    header = ["gamma", "C", "model", "size", "objective above", "test pairwise accuracy", "mean NDCG", "seconds"]
    return [
        "## Quality and time",
        "MQ2008 fold 1, LETOR's convention, `tol=1e-4`; objectives relative to that of the exact fit, of which a "
        f"Nyström model is a restriction. Seeds: {len(seeds)}, of which figures are means.",
        table(header, rows),
    ]


def cells(figures) -> tuple[str, ...]:
    """Accuracy, NDCG and seconds, as text."""
    accuracy, ndcg, elapsed = figures
    return f"{100 * accuracy:.2f} %", f"{ndcg:.4f}", f"{elapsed:.2f}"


# -- a large fit -------------------------------------------------------------------------------------------------------


def large(n_queries: int, n_components: int, methods: tuple[str, ...], limits: dict[str, int]) -> list[str]:
    """Fits to hundreds of thousands of rows, with stored features, and with features that every pass computes again."""
    rows, scores = [], {}
    for method, stored in itertools.product(methods, limits):
        how = {"approximation": "nystroem", "landmarks": method}
        if method == "fourier":
            how = {"approximation": "fourier"}
        options = {"gamma": "auto", "C": 1.0, "n_components": n_components, "random_state": 0, **how}
        options["memory_limit"] = limits[stored]
        command = [sys.executable, str(Path(__file__).with_name("_large_kernel_fit.py")), str(n_queries)]
        done = subprocess.run([*command, json.dumps(options)], check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        scores[method, stored] = np.array(found["scores"])
        off = "-"
        if stored == "computed":
            other = scores[method, "kept"]
            off = f"{np.abs(scores[method, stored] - other).max() / np.abs(other).max():.1e}"
        allowed = found["bytes"] / options["memory_limit"]
        rows.append(
            (
                method,
                stored,
                f"{found['seconds']:.1f}",
                f"{options['memory_limit'] / 2**20:.0f} / {found['bytes'] / 2**20:.0f} MiB",
                verdict(round(allowed, 2), LARGE_LIMIT),
                f"{found['objective']:.6g}",
                f"{found['certificate']:.1e}",
                found["iterations"],
                f"{found['accuracy']:.4f}",
                off,
            )
        )
    header = ["method", "features", "seconds", "memory: limit / used", "limit", "objective", "certificate"]
    header += ["iterations", "test NDCG@10", "scores off by"]
    return [
        f"## A large fit: {100 * n_queries:,} x 46, {n_components:,} features",
        f"`make_ranking`, 100 documents a query, {found['pairs']:,} pairs, `gamma='auto'`, C = 1, `tol=1e-4`. Each in "
        "a process of its own; memory is the largest resident size less that before the fit. Off by: the largest "
        "difference of a score from that with features kept, relative to the largest score.",
        table(header, rows),
    ]


def report(options) -> str:
    """The page."""
    smoke = options.smoke
    seeds = SEEDS[:1] if smoke else SEEDS
    if smoke:
        data = make_ranking(30, 20, 6, random_state=0)
        train, test = data.select(slice(0, 400)), data.select(slice(400, 600))
    elif data_folder() is None:
        sys.exit("No real data: set RANKSVM_DATA to the folder that holds them.")
    else:
        train, test = (read("MQ2008", part=part, dtype=np.float64) for part in ("train", "test"))
    sizes = (10, 50) if smoke else SIZES
    X = np.asarray(train.X, dtype=np.float64)
    parts = errors(X[:: 2 if smoke else 1], sizes, seeds)
    parts += quality(train, test, sizes, seeds)
    if smoke:
        parts += large(4, 20, ("uniform",), {"kept": 2**28, "computed": 2**20})
    else:
        parts += large(5000, 1000, ("uniform", "fourier"), {"kept": 3 * 2**30, "computed": 2**29})
    return page("Approximated kernels", "kernel_approximation", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    publish(report(options), options)


if __name__ == "__main__":
    main()
