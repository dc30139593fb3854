"""Extra memory of a fit, measured in a process of its own."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import numpy as np
from ranksvm import RankSVM
n, n_features, unsorted, C = 300_000, 136, sys.argv[1] == "unsorted", float(sys.argv[2])
rng = np.random.default_rng(0)
X = np.empty((n, n_features), dtype=np.float32)
for start in range(0, n, 10_000):
    X[start : start + 10_000] = rng.standard_normal((10_000, n_features), dtype=np.float32)
w = rng.standard_normal(n_features, dtype=np.float32) / 12
y = np.digitize(X @ w + rng.standard_normal(n, dtype=np.float32) / 2, [0.0, 0.6, 1.2, 1.7]).astype(np.float32)
qid = np.arange(n) // 120
if unsorted:
    qid = rng.permutation(qid)
small = 12_000
RankSVM(C=C, n_jobs=2).fit(X[:small], y[:small], qid=np.arange(small) // 120)  # libraries, threads
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = RankSVM(C=C, n_jobs=2).fit(X, y, qid=qid)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / X.nbytes, model.n_iter_, model.converged_)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
@pytest.mark.parametrize("C", ["1e-4", "1"])
def test_a_fit_needs_little_more_than_X(order, C):
    run = subprocess.run([sys.executable, "-c", SCRIPT, order, C], capture_output=True, text=True, check=True)
    extra, _, converged = run.stdout.split()
    assert converged == "True"
    assert float(extra) <= 0.15, f"{100 * float(extra):.1f} % of X"
