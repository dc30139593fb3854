"""Peak memory of whole fits of kernel models, measured in processes of their own, beside their limit."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import numpy as np
from ranksvm import KernelRankSVM
options = json.loads(sys.argv[1])
def memory(what):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(what))
rng = np.random.default_rng(0)
n_rows, n_features = options.pop("shape")
X = rng.normal(size=(n_rows, n_features))
y = np.clip(np.round(X[:, 0] + np.sin(2.0 * X[:, 1]) + rng.normal(size=n_rows) + 1.5), 0, 3)
qid = np.arange(n_rows) // 40
small = 400  # libraries, threads
KernelRankSVM(**{**options, "memory_limit": None, "n_components": 20}).fit(X[:small], y[:small], qid=qid[:small])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak begins anew
before = memory("VmRSS")
model = KernelRankSVM(**options).fit(X, y, qid=qid)
extra = memory("VmHWM") - before
print(json.dumps({
    "extra": extra, "converged": model.converged_, "objective": model.objective_, "gap": model.duality_gap_,
    "scores": model.predict(X[:200]).tolist(),
}))
"""
MB = 1_000_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")


def measured(limit, **options):
    """What a fit says of itself, its peak within the limit and a fifth."""
    options = {"C": 0.01, "n_jobs": 2, "tol": 1e-4, "memory_limit": limit, **options}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(options)], capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout)
    assert found["converged"]
    if limit is not None:
        assert found["extra"] <= 1.2 * limit, f"{found['extra'] / MB:.1f} MB with a limit of {limit / MB:.0f}"
    return found


def check_same(found, unlimited):
    assert found["objective"] == pytest.approx(unlimited["objective"], rel=2e-4)
    largest = max(map(abs, unlimited["scores"]))
    assert found["scores"] == pytest.approx(unlimited["scores"], abs=0.05 * largest)


SLOW = pytest.mark.slow
EXACT = {"shape": [5000, 30], "gamma": 0.03}
FEATURES = {"shape": [20_000, 30], "gamma": 0.03, "n_components": 300, "random_state": 0}


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        pytest.param(100 * MB, {}, marks=SLOW, id="all of Q is kept"),
        pytest.param(35 * MB, {}, id="half of Q is kept"),
        pytest.param(9 * MB, {}, marks=SLOW, id="next to nothing is kept"),
        pytest.param(35 * MB, {"solver": "tron", "tol": 1e-2}, marks=SLOW, id="tron"),
        pytest.param(35 * MB, {"kernel": "laplacian"}, marks=SLOW, id="laplacian"),
        pytest.param(35 * MB, {"kernel": "linear"}, marks=SLOW, id="linear"),
        pytest.param(70 * MB, {"kernel_dtype": "float64"}, marks=SLOW, id="float64"),
        pytest.param(35 * MB, {"loss": "hinge", "tol": 1e-3}, marks=SLOW, id="hinge"),
    ],
)
def test_an_exact_fit_stays_within_its_limit(limit, options):
    found = measured(limit, **EXACT, **options)
    check_same(found, measured(None, **EXACT, **options))


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        pytest.param(90 * MB, {"approximation": "nystroem"}, marks=SLOW, id="kept"),
        pytest.param(30 * MB, {"approximation": "nystroem"}, id="computed anew"),
        pytest.param(30 * MB, {"approximation": "fourier"}, marks=SLOW, id="fourier"),
        pytest.param(50 * MB, {"approximation": "nystroem", "solver": "newton"}, marks=SLOW, id="Hessians"),
    ],
)
def test_an_approximation_stays_within_its_limit(limit, options):
    found = measured(limit, **FEATURES, **options)
    check_same(found, measured(None, **FEATURES, **options))
