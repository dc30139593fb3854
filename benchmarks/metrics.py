"""The time to evaluate a million documents, compared with tools that loop over queries.

python benchmarks/metrics.py [--rows 1000000] [-o benchmarks/results/metrics.md]
"""

import argparse
import importlib.util
import os
import platform
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from sklearn.metrics import ndcg_score

import ranksvm
from _digests import seal
from ranksvm import metrics

ALL = "ndcg@10, ndcg, mean_ndcg, map, mrr, err, p@5, r@10, pairwise_accuracy, kendall_tau"
SHAPES = {"120 documents a query": 120, "2 documents a query": 2, "one query": None}


def best_of(function, repeats=5):
    """Shortest wall-clock time of a few runs, in seconds."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def make(n_rows, per_query):
    """Generate labels with five levels of unequal frequency, and scores that are weakly correlated with them."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, n_rows, p=[0.5, 0.3, 0.12, 0.05, 0.03]).astype(float)
    qid = np.arange(n_rows) // (per_query or n_rows)
    return y, rng.normal(size=n_rows) + 0.5 * y, qid


def sklearn_by_query(y, scores, qid):
    """Mean NDCG@10 by a loop over queries."""
    starts = np.flatnonzero(np.diff(qid, prepend=-1))
    pairs = zip(np.split(y, starts[1:]), np.split(scores, starts[1:]), strict=True)
    return np.mean([ndcg_score([labels], [s], k=10) for labels, s in pairs])


def trec_eval(y, scores, qid):
    """Mean NDCG@10 and MAP by trec_eval; the time includes making the dictionaries."""
    import pytrec_eval

    qrel, run = {}, {}
    for row, (query, label, score) in enumerate(zip(qid.tolist(), y.tolist(), scores.tolist(), strict=True)):
        qrel.setdefault(str(query), {})[str(row)] = int(label)
        run.setdefault(str(query), {})[str(row)] = score
    found = pytrec_eval.RelevanceEvaluator(qrel, {"ndcg_cut.10", "map"}).evaluate(run).values()
    return np.mean([query["ndcg_cut_10"] for query in found]), np.mean([query["map"] for query in found])


def report(n_rows):
    """The result file."""
    lines = ["| data | ties | metrics | seconds |", "|---|---|---|---|"]
    for shape, per_query in SHAPES.items():
        y, scores, qid = make(n_rows, per_query)
        for ties, values in (("none", scores), ("many", np.round(scores, 1)), ("all", np.zeros(n_rows))):
            for names in ("ndcg@10, map", ALL):
                seconds = best_of(lambda s=values, m=names: metrics.evaluate(y, s, qid, m))  # noqa: B023
                lines.append(f"| {shape} | {ties} | {names} | {seconds:.3f} |")
    y, scores, qid = make(n_rows, 120)
    shuffled = np.random.default_rng(1).permutation(n_rows)
    rows = y[shuffled], scores[shuffled], qid[shuffled]
    lines.append(
        f"| 120 a query, rows shuffled | none | ndcg@10, map | {best_of(lambda: metrics.evaluate(*rows)):.3f} |"
    )
    lines += ["", "The first shape, by other tools:", "", "| tool | metrics | seconds |", "|---|---|---|"]
    seconds = best_of(lambda: sklearn_by_query(y, scores, qid), 1)
    lines.append(f"| sklearn.metrics.ndcg_score, query by query | ndcg@10 | {seconds:.2f} |")
    if importlib.util.find_spec("pytrec_eval"):
        seconds = best_of(lambda: trec_eval(y, scores, qid), 1)
        lines.append(f"| pytrec_eval, dictionaries included | ndcg@10, map | {seconds:.2f} |")
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    head = [
        f"# Evaluating {n_rows:,} documents",
        "",
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors (one is used); {versions}, "
        f"scikit-learn {sklearn.__version__}, ranksvm {ranksvm.__version__}. Least of 5 runs. Command: "
        f"`python benchmarks/metrics.py --rows {n_rows}`.",
        "",
    ]
    return "\n".join(head + lines) + "\n"


def main(arguments=None):
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    text = report(options.rows)
    if options.output:
        options.output.write_text(text)
        seal(options.output)
    print(text)


if __name__ == "__main__":
    main()
