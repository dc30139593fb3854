"""Fits by an earlier revision of the package, which is built in a separate checkout, to compare times."""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse

from ranksvm import RankingData

# The program of the other process: for each line of its input it fits a model, and prints the time and the weights.
WORKER = """
import json, sys, time, warnings
import numpy as np, scipy.sparse
from ranksvm import RankSVM
warnings.simplefilter("ignore")
found = np.load(sys.argv[1])
X = found["X"] if "X" in found else scipy.sparse.csr_matrix(
    (found["data"], found["indices"], found["indptr"]), shape=found["shape"]
)
y, qid = found["y"], found["qid"]
for line in sys.stdin:
    options = json.loads(line)
    ranker = RankSVM(**options)
    begin = time.perf_counter()
    ranker.fit(X, y, qid=qid)
    print(json.dumps([time.perf_counter() - begin, ranker.coef_.tolist()]), flush=True)
"""


def revision(folder: Path) -> str:
    """The revision of a checkout."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def python(folder: Path) -> str:
    """The interpreter of a checkout in which ``make setup`` was run."""
    return str(Path(folder).absolute() / ".venv" / "bin" / "python")


class Earlier:
    """Fits by an earlier revision, all in one process that keeps running.

    Parameters
    ----------
    folder : Path
        Checkout of the earlier revision.
    data : RankingData
        Rows, labels and queries.
    """

    def __init__(self, folder: Path, data: RankingData):
        self._memory = tempfile.TemporaryDirectory()
        path = Path(self._memory.name) / "data.npz"
        X = data.X
        if scipy.sparse.issparse(X):
            rows = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        else:
            rows = {"X": X}
        np.savez(path, y=data.y, qid=data.qid, **rows)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([python(folder), "-c", WORKER, str(path)], cwd=self._memory.name, **pipes)
        self._times: dict[str, list[float]] = {}

    def fit(self, C: float, tol: float, n_jobs: int | None = None, name: str = "") -> np.ndarray:
        """Fit, store the time under a name, and return the weights."""
        self._process.stdin.write(json.dumps({"C": C, "tol": tol, "n_jobs": n_jobs}) + "\n")
        self._process.stdin.flush()
        seconds, weights = json.loads(self._process.stdout.readline())
        self._times.setdefault(name, []).append(seconds)
        return np.array(weights)

    def times(self, name: str) -> np.ndarray:
        """The times that were stored under a name."""
        return np.array(self._times[name])

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._memory.cleanup()
