"""A sparse fit of very many features: WikiQA with hashed word pairs, by the trust-region solver.

python benchmarks/sparse.py -o benchmarks/results/sparse.md
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, data_folder, page, publish, read, seconds, table
from ranksvm import RankingData, RankSVM, make_ranking, metrics

CS = (1e-3, 2.0**-5, 1.0, 4.0)
# Where the certificate cannot be met in so many iterations, the page says so.
MAX_ITER = 200
# A fit that takes longer than this is not repeated.
LONG = 2.0


def datasets(smoke: bool) -> dict[str, tuple[RankingData, RankingData]]:
    """Training and test parts."""
    if smoke or data_folder() is None:
        made = [make_ranking(40, 10, 3000, density=0.01, random_state=seed) for seed in (0, 1)]
        return {"made": (made[0], made[1])}
    train = read("WikiQA-wordpairs", sparse=True)
    return {
        "WikiQA-wordpairs": (train, read("WikiQA-wordpairs", part="test", sparse=True, n_features=train.n_features))
    }


def fits(train: RankingData, test: RankingData, repeats: int) -> str:
    """Seconds, work and certificate of a fit for each C and solver, and what the model ranks."""
    rows = []
    for C in CS:
        for solver, tol in (("auto", 1e-4), ("tron", 1e-4), ("tron", 1e-8)):
            ranker = RankSVM(C=C, solver=solver, tol=tol, max_iter=MAX_ITER)

            def fit(ranker=ranker):
                ranker.fit(train.X, train.y, qid=train.qid)

            first = seconds(fit)
            times = np.array([first] if first > LONG else [first, *(seconds(fit) for _ in range(repeats - 1))])
            found = metrics.evaluate(test.y, ranker.predict(test.X), test.qid, ["map", "mrr"]).means
            rows.append(
                (
                    f"{C:g}",
                    solver if solver == ranker.solver_ else f"{solver} ({ranker.solver_})",
                    f"{tol:.0e}",
                    f"{times.min():.3f} / {np.median(times):.3f}",
                    ranker.n_iter_,
                    ranker.history_["hessian_products"][-1],
                    f"{ranker.objective_:.9g}",
                    f"{ranker.duality_gap_ / ranker.objective_:.1e}",
                    "yes" if ranker.converged_ else "**NO**",
                    f"{found['map']:.4f}",
                    f"{found['mrr']:.4f}",
                )
            )
    header = ["C", "solver", "tol", "seconds, least / median", "iterations", "Hessian products", "objective"]
    return table([*header, "certificate", "converged", "test MAP", "test MRR"], rows)


def memory(train: RankingData) -> str:
    """What a fit needs beyond its data, in a process of its own."""
    rows = []
    for C in CS[:-1]:
        with tempfile.TemporaryDirectory() as name:
            scipy.sparse.save_npz(Path(name) / "X.npz", train.X, compressed=False)
            np.save(Path(name) / "y.npy", train.y)
            np.save(Path(name) / "qid.npy", train.qid)
            command = [sys.executable, str(Path(__file__).with_name("_peak_memory.py")), name, str(C)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        sizes = (f"{found[key] / 2**20:.1f}" for key in ("X", "labels", "fit"))
        rows.append((f"{C:g}", *sizes, f"{found['fit'] / found['X']:.2f}"))
    return table(["C", "CSR, MiB", "y and qid, MiB", "the fit's own, MiB", "in units of the CSR"], rows)


def report(options) -> str:
    """The page."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # the table says which
    parts = []
    for name, (train, test) in datasets(options.smoke).items():
        shape = f"{train.n_rows:,} rows, {train.n_features:,} features, {train.X.nnz:,} stored values"
        n_pairs = RankSVM(C=1e-6).fit(train.X, train.y, qid=train.qid).n_pairs_
        parts += [
            f"## {name}",
            f"Training part: {shape} ({train.X.dtype} CSR), {train.queries.n_queries:,} queries, {n_pairs:,} pairs. "
            f"A row that says NO did not meet its tol in {MAX_ITER} iterations. MAP and MRR "
            "under the default convention (ties averaged, queries without a relevant document count 0).",
            fits(train, test, 1 if options.smoke else 5),
            "Peak memory of a default fit beyond its data, in a process of its own; a part of it is vectors of one "
            "number a feature, which do not depend on the number of stored values:",
            memory(train),
        ]
    return page("A sparse fit with the trust-region solver", "sparse", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    publish(report(options), options)


if __name__ == "__main__":
    main()
