"""Fits of sparse data with very many features, with both losses, by the trust-region solver.

python benchmarks/sparse_rows.py -o benchmarks/results/sparse_rows.md
"""

import warnings
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, data_folder, page, publish, read, seconds, summary, table
from _peak_memory import memory_of_fit
from ranksvm import RankingData, RankSVM, metrics

LOSSES = ("squared_hinge", "hinge")
# If a fit does not reach the certificate in this number of iterations, the page says so.
MAX_ITER = 200
# A fit that takes longer than this is not repeated.
LONG = 2.0
# Goal: the largest memory of data and fit together, divided by the size of the CSR matrix.
MEMORY_LIMIT = 3.0
# Number of stored values in a generated row, and the rank from which the frequencies of columns fall by a power law;
# the most frequent column occurs in one row of thirty.
PER_ROW, HEAD = 30, 100
SEED = 0


@dataclass
class Case:
    """Training and test parts, and the values of C and tol to fit."""

    name: str
    train: RankingData
    test: RankingData
    Cs: tuple[float, ...]
    tols: tuple[float, ...]


def cases(smoke: bool) -> list[Case]:
    """Real text if it is available, and generated data."""
    size, Cs = (3_000, (0.01,)) if smoke else (1_000_000, (0.01, 0.1))
    test = made(size // 20, size, SEED + 2)
    found = [Case(f"made, {size:,} x {size:,}", made(size, size, SEED + 1), test, Cs, (1e-4,))]
    if not smoke and data_folder() is not None:
        train = read("WikiQA-wordpairs", sparse=True)
        test = read("WikiQA-wordpairs", part="test", sparse=True, n_features=train.n_features)
        found.insert(0, Case("WikiQA-wordpairs", train, test, (1e-3, 2.0**-5, 1.0), (1e-4, 1e-6)))
    return found


# -- made data ---------------------------------------------------------------------------------------------------------


def made(n_rows: int, n_features: int, seed: int) -> RankingData:
    """Generate rows of 30 values with norm 1, in queries of about 20; columns follow a power law, as words do.

    The relevance of a row is a sparse linear function of it, which does not depend on the seed, plus noise; 60, 30 and
    10 % of the rows have label 0, 1 and 2.
    """
    truth, rng = np.random.default_rng(SEED), np.random.default_rng(seed)
    column_of = truth.permutation(n_features).astype(np.int32)
    coef = np.zeros(n_features, dtype=np.float32)
    weighted = np.unique(_popular(truth, n_features, n_features // 100))
    coef[column_of[weighted]] = truth.standard_normal(len(weighted))
    columns = np.empty((n_rows, PER_ROW), dtype=np.int32)
    values = np.empty((n_rows, PER_ROW), dtype=np.float32)
    for rows in np.array_split(np.arange(n_rows), max(1, n_rows // 100_000)):
        # sort the draws of a row and add 0, 1, 2, ..., so that no column occurs twice in a row
        drawn = np.sort(_popular(rng, n_features, (len(rows), PER_ROW)), axis=1) + np.arange(PER_ROW)
        columns[rows] = np.sort(column_of[drawn], axis=1)
        block = rng.random(drawn.shape, dtype=np.float32) + np.float32(0.5)
        values[rows] = block / np.linalg.norm(block, axis=1, keepdims=True)
    pointers = np.arange(0, n_rows * PER_ROW + 1, PER_ROW, dtype=np.int32)
    X = scipy.sparse.csr_matrix((values.reshape(-1), columns.reshape(-1), pointers), shape=(n_rows, n_features))
    relevance = X @ coef
    relevance = relevance / relevance.std() + 0.5 * rng.standard_normal(n_rows)
    y = np.searchsorted(np.quantile(relevance, (0.6, 0.9)), relevance).astype(np.float64)
    ends = np.cumsum(rng.integers(10, 30, size=n_rows // 10, endpoint=True))
    return RankingData(X, y, np.searchsorted(ends, np.arange(n_rows), side="right"))


def _popular(rng: np.random.Generator, n_features: int, shape) -> np.ndarray:
    """Draw ranks of features by frequency, from 0, with probability proportional to 1 / (HEAD + rank)."""
    return (HEAD * ((n_features - PER_ROW + HEAD) / HEAD) ** rng.random(shape) - HEAD).astype(np.int64)


# -- what is measured --------------------------------------------------------------------------------------------------


def fits(case: Case, repeats: int) -> str:
    """Seconds, work, certificate and test figures of a fit for each C, loss and tol."""
    train, test, rows = case.train, case.test, []
    for C in case.Cs:
        for loss, tol in product(LOSSES, case.tols):
            ranker = RankSVM(C=C, loss=loss, tol=tol, max_iter=MAX_ITER)

            def fit(ranker=ranker):
                ranker.fit(train.X, train.y, qid=train.qid)

            first = seconds(fit)
            times = np.array([first] if first > LONG else [first, *(seconds(fit) for _ in range(repeats - 1))])
            found = metrics.evaluate(test.y, ranker.predict(test.X), test.qid, ["map", "mrr", "pairwise_accuracy"])
            rows.append(
                (
                    loss,
                    f"{C:g}",
                    ranker.solver_,
                    f"{tol:.0e}",
                    summary(times),
                    ranker.n_iter_,
                    ranker.history_["hessian_products"][-1],
                    f"{ranker.objective_:.9g}",
                    f"{ranker.duality_gap_ / ranker.objective_:.1e}",
                    "yes" if ranker.converged_ else "**NO**",
                    *(f"{value:.4f}" for value in found.means.values()),
                )
            )
    header = ["loss", "C", "solver", "tol", "seconds, least / median", "iterations", "Hessian products", "objective"]
    return table([*header, "certificate", "converged", "test MAP", "test MRR", "test pairwise accuracy"], rows)


def memory(case: Case) -> str:
    """Memory that a default fit needs in addition to its data, in a separate process."""
    rows, train = [], case.train
    for C, loss in product(case.Cs, LOSSES):
        found = memory_of_fit(train, "RankSVM", C=C, loss=loss)
        total = 1 + found["fit"] / found["X"]
        verdict = f"{MEMORY_LIMIT:g}: met" if total <= MEMORY_LIMIT else f"**{MEMORY_LIMIT:g}: MISSED**"
        sizes = (f"{found[key] / 2**20:.1f}" for key in ("X", "labels", "fit"))
        rows.append((loss, f"{C:g}", *sizes, f"{total - 1:.2f}", f"{total:.2f}", verdict))
    header = ["loss", "C", "CSR, MiB", "y and qid, MiB", "the fit's own, MiB", "in units of the CSR"]
    return table([*header, "CSR and fit together", "limit"], rows)


def report(options) -> str:
    """The page."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # the table says which fits did not converge
    parts = [
        f"A row that says NO did not meet its tol in {MAX_ITER} iterations. MAP and MRR under the default convention "
        "(ties averaged, queries without a relevant document count 0).",
    ]
    for case in cases(options.smoke):
        train = case.train
        n_pairs = RankSVM(C=1e-6).fit(train.X, train.y, qid=train.qid).n_pairs_
        parts += [
            f"## {case.name}",
            f"Training part: {train.n_rows:,} rows, {train.n_features:,} features, {train.X.nnz:,} stored values "
            f"({train.X.dtype} CSR), {train.queries.n_queries:,} queries, {n_pairs:,} pairs.",
            fits(case, 1 if options.smoke else 5),
            "Peak memory of a default fit beside its data, in a process of its own; a part of it is vectors of one "
            "number a feature, which do not depend on the number of stored values:",
            memory(case),
        ]
    return page("Sparse fits with the trust-region solver", "sparse_rows", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv)
    publish(report(options), options)


if __name__ == "__main__":
    main()
