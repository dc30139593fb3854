"""Time and memory of one kernel fit to generated data, in a separate process.

python benchmarks/_large_kernel_fit.py N_QUERIES OPTIONS: 100 documents per query and 46 features; OPTIONS are
parameters of KernelRankSVM as JSON. Prints JSON: bytes, seconds, results of the fit, and scores of 10 other queries.
"""

import json
import sys

import numpy as np

from _common import seconds
from _peak_memory import peak
from ranksvm import KernelRankSVM, make_ranking

N_DOCS, N_FEATURES, TEST_QUERIES = 100, 46, 10


def main() -> None:
    """Run from the command line."""
    n_queries, options = int(sys.argv[1]), json.loads(sys.argv[2])
    # a small fit first, so that imports and the start of threads are not measured
    small = make_ranking(20, 20, N_FEATURES, random_state=0)
    KernelRankSVM(**(options | {"n_components": 10})).fit(small.X, small.y, qid=small.qid)
    data = make_ranking(n_queries + TEST_QUERIES, N_DOCS, N_FEATURES, random_state=0)
    train, test = data.select(slice(0, n_queries * N_DOCS)), data.select(slice(n_queries * N_DOCS, None))
    before = peak()
    ranker = KernelRankSVM(**options)
    time = seconds(lambda: ranker.fit(train.X, train.y, qid=train.qid))
    found = {
        "bytes": peak() - before,
        "seconds": time,
        "objective": ranker.objective_,
        "certificate": ranker.duality_gap_ / ranker.objective_,
        "iterations": ranker.n_iter_,
        "pairs": ranker.n_pairs_,
        "scores": np.asarray(ranker.predict(test.X)).tolist(),
        "accuracy": ranker.score(test.X, test.y, qid=test.qid),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
