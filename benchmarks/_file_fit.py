"""Measure one fit of a file that stays on disk, in a separate process.

python benchmarks/_file_fit.py PATH OPTIONS: PATH is a cache, and OPTIONS are parameters of RankSVM as JSON. With "Cs"
in OPTIONS, a path is computed. Prints JSON: memory, the seconds of each reading of the file, and the results of the
fit.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from _peak_memory import peak
from ranksvm.datasets.cache.reader import CacheFile, QueryRuns
from ranksvm.datasets.cache.rows import FileRows
from ranksvm.datasets.file_data import FileData
from ranksvm.estimators.base.ranker import linear_options
from ranksvm.estimators.rank_svm import RankSVMCore
from ranksvm.fits.file_training_set import block_bytes
from ranksvm.fits.linear import linear_problem, linear_training_set
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.terms.parts.file_backend import FileBackend


def fit_of_file(path: Path, **options: Any) -> dict[str, Any]:
    """Run a fit of a cache in a new process; return its memory, times and results."""
    command = [sys.executable, __file__, str(path), json.dumps(options)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def forget(path: Path) -> None:
    """Ask the system to drop the file from its page cache, if it supports this."""
    if hasattr(os, "posix_fadvise"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def plain_reading(path: Path, memory_limit: int) -> float:
    """Seconds to read all rows once, with the blocks and threads of a fit, but without computing anything."""
    rows = FileRows(file := CacheFile(path), QueryRuns.of(file))
    backend = FileBackend(rows, memory_limit, os.cpu_count() or 1, block_bytes(memory_limit))
    forget(path)
    start = time.perf_counter()
    rows.each(backend._blocks, backend.n_threads, backend._n_buffers, lambda number, X: None)
    return time.perf_counter() - start


def main() -> None:
    """Run from the command line."""
    path, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    readings: list[float] = []
    round_before = FileBackend.round

    def timed(self: Any, jobs: Any) -> Any:
        forget(path)  # because a file larger than memory would not be in the page cache
        start = time.perf_counter()
        found = round_before(self, jobs)
        readings.append(time.perf_counter() - start)
        return found

    FileBackend.round = timed  # type: ignore[method-assign]
    file = CacheFile(path)
    X = FileData(str(path), (file.n_rows, file.n_features), True)
    before = peak()
    forget(path)
    start = time.perf_counter()
    if "Cs" in options:
        # `regularization_path` is not used, because it imports scikit-learn, which takes 100 MB
        Cs = np.array(options.pop("Cs"))
        linear = linear_options(RankSVMCore(**options))
        problem: Any = linear_problem(linear_training_set(TrainingArguments(X), linear), linear)
        found = {"gap": max(result.relative_gap for result in problem.solve_path(Cs))}
    else:
        model = RankSVMCore(**options).fit(X)
        found = {"objective": model.objective_, "gap": model.duality_gap_ / model.objective_}
    found |= {"seconds": time.perf_counter() - start, "readings": readings}
    print(json.dumps(found | {"peak": peak(), "before": before}))


if __name__ == "__main__":
    main()
