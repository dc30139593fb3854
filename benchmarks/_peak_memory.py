"""Measure the memory that one fit needs in addition to its data, in a separate process.

python benchmarks/_peak_memory.py FOLDER ESTIMATOR OPTIONS: FOLDER holds X.npy (or X.npz, CSR), y.npy and qid.npy,
ESTIMATOR is a name such as RankSVM, and OPTIONS are its parameters as JSON. Prints JSON: bytes, and results of the fit.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import ranksvm

# attributes of the fitted estimator that are printed
FOUND = ("objective_", "duality_gap_", "converged_", "n_iter_", "n_kernel_products_")


def peak() -> int:
    """Largest resident size of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():  # because on Linux the value of getrusage includes the size of the parent process at the start
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def memory_of_fit(data: ranksvm.RankingData, estimator: str, **options: Any) -> dict[str, Any]:
    """Fit an estimator in a new process; return its memory and its results."""
    with tempfile.TemporaryDirectory() as name:
        if scipy.sparse.issparse(data.X):
            scipy.sparse.save_npz(Path(name) / "X.npz", data.X, compressed=False)
        else:
            np.save(Path(name) / "X.npy", data.X)
        for array in ("y", "qid"):
            np.save(Path(name) / f"{array}.npy", getattr(data, array))
        command = [sys.executable, __file__, name, estimator, json.dumps(options)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    """Run from the command line."""
    folder, kind, options = Path(sys.argv[1]), getattr(ranksvm, sys.argv[2]), json.loads(sys.argv[3])
    # a first fit, so that imports and the start of threads are not measured; so small that its memory is no peak
    small = ranksvm.make_ranking(60, 20, 50, random_state=0)
    kind(**{**options, "C": 1e-3}).fit(small.X, small.y, qid=small.qid)
    before = peak()
    # read into new arrays without copies, so that afterwards the peak is the memory that the process holds
    sparse = (folder / "X.npz").exists()
    X = scipy.sparse.load_npz(folder / "X.npz") if sparse else np.load(folder / "X.npy")
    y, qid = np.load(folder / "y.npy"), np.load(folder / "qid.npy")
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse else X.nbytes
    loaded, started = peak(), time.perf_counter()
    model = kind(**options).fit(X, y, qid=qid)
    found = {name: getattr(model, name) for name in FOUND if hasattr(model, name)}
    found |= {"X": size, "labels": y.nbytes + qid.nbytes, "loading": loaded - before, "fit": peak() - loaded}
    print(json.dumps(found | {"seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()
