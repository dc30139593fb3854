"""Products with the kernel matrix Q: bytes read and speed, compared with reading memory, and the time to build Q.

python benchmarks/kernel_product.py -o benchmarks/results/kernel_product.md
"""

import os

import numpy as np

from _common import arguments, interleaved, page, publish, read, seconds, summary, table
from ranksvm import make_ranking
from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm.data import ComparablePairs, Queries
from ranksvm.kernels import kernel_matrix, kernel_named

DATA = ("MQ2008", "MQ2007-partial")
GAMMA = 2.0**-1
# memory limits, as shares of the memory that all of Q needs in float32
SHARES = (1.1, 0.5, 0.25, 0.05)
SEED = 0


def documents(data) -> np.ndarray:
    """The rows of queries that have pairs, in the order of queries: the documents of Q."""
    queries = Queries.from_qid(data.qid, len(data.y))
    pairs = ComparablePairs.from_labels(queries, np.asarray(data.y, dtype=np.float64))
    kept = np.repeat(pairs.pairs_per_query > 0, np.diff(pairs.pointers))
    rows = np.arange(len(data.y)) if pairs.rows is None else pairs.rows
    return np.ascontiguousarray(np.asarray(data.X)[rows[kept]])


def plain_read(values: np.ndarray, n_threads: int):
    """An action that reads an array with all threads, by dot products, NumPy's fastest sums of float32 values."""
    parts = np.array_split(values, 8 * n_threads)
    return lambda: parallel_map(lambda part: np.dot(part, part), parts, n_threads)


def cases(n_rows: int, n_features: int) -> list[tuple[str, str, str, int]]:
    """Tuples (kernel, dtype, text about the stored part of Q, memory limit)."""
    size = 2 * n_rows * n_rows
    # what a small matrix needs in addition: sums of threads, tiles, and rows of documents
    scratch = 200 * n_rows + 2_000_000 + 40_000 * n_features
    found = [("rbf", "float32", f"{100 * min(share, 1.0):.0f} %", int(share * size) + scratch) for share in SHARES]
    found += [("rbf", "float64", "100 %", int(2.2 * size) + scratch)]
    found += [(kernel, "float32", "100 %", int(1.1 * size) + scratch) for kernel in ("poly", "laplacian", "cosine")]
    return [*found, ("linear", "float32", "not formed", scratch)]


def measure(X: np.ndarray, repeats: int, n_threads: int) -> str:
    """The table of one set of documents."""
    b, rows = np.random.default_rng(SEED).normal(size=len(X)), []
    for name, dtype, kept, memory in cases(*X.shape):
        kernel, built = kernel_named(name, gamma=GAMMA, degree=3), []
        build = seconds(
            lambda kernel=kernel, memory=memory, dtype=dtype, built=built: built.append(
                kernel_matrix(kernel, X, memory=memory, dtype=dtype, n_threads=n_threads)
            )
        )
        matrix = built[0]
        values = np.ones(max(1 << 16, matrix.product_bytes // 4), dtype=np.float32)
        actions = {"product": lambda matrix=matrix: matrix.product(b), "read": plain_read(values, n_threads)}
        few = repeats if kept in ("100 %", "not formed") else 3
        with one_blas_thread():
            times = interleaved(actions, few)
        speed = matrix.product_bytes / times["product"] / 1e9
        share = np.median(times["read"] / times["product"]) * matrix.product_bytes / values.nbytes
        rows.append(
            (
                name,
                dtype,
                kept,
                f"{memory / 1e6:,.0f}",
                f"{build:.2f}",
                f"{matrix.product_bytes / 1e6:,.1f}",
                summary(1e3 * times["product"]),
                f"{speed.max():.1f} / {np.median(speed):.1f}",
                f"{100 * share:.0f} %",
            )
        )
    header = [
        "kernel",
        "storage",
        "kept",
        "memory given, MB",
        "built in, s",
        "read by a product, MB",
        "product, ms",
        "GB/s",
        "of a plain read",
    ]
    return table(header, rows)


def report(options) -> str:
    """The page."""
    n_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    sets = {"generated": make_ranking(20, 20, 10, random_state=SEED)} if options.smoke else {}
    if not options.smoke:
        sets = {name: read(name) for name in DATA}
    parts = [
        "Q holds one triangle. Products: least / median of the rounds, in turn with a plain read (`np.dot(x, x)`, "
        f"float32, all threads) of as many bytes; speed: best / median, and median of the quotients. gamma = {GAMMA}. "
        "Where memory is short, what is not kept is made anew by every product.",
    ]
    for name, data in sets.items():
        X = documents(data)
        title = (
            f"## {name}{'' if options.smoke else ', fold 1, train'}: {len(X):,} rows with pairs, {X.shape[1]} features"
        )
        parts += [title, measure(X, 2 if options.smoke else 15, n_threads)]
    return page("Products with the kernel matrix", "kernel_product", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    publish(report(options), options)


if __name__ == "__main__":
    main()
