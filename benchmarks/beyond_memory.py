"""Fits of files larger than memory: readings, seconds beside plain readings, peak memory, and the line to 100 GB.

python benchmarks/beyond_memory.py -o benchmarks/results/beyond_memory.md

Made data of 136 features are written to a folder (--folder, with room for the largest size) and removed. The limit of
memory is a quarter of each file. Before each fit the system is asked to forget the file; where it has memory for all
of it, later readings come from there.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from _common import arguments, page, publish, table, verdict
from _file_fit import fit_of_file, plain_reading
from ranksvm import RankingData, RankSVM
from ranksvm.data.atomic_files import atomic_write
from ranksvm.data.cache_writer import CacheWriter

SEED = 0
N_FEATURES = 136
QUERY_ROWS = 100
# Sizes of the files, in bytes, and the least limit, because the process takes memory without any data.
SIZES = (int(0.8e9), int(1.6e9), int(3.2e9))
SMOKE_SIZES = (int(1e6), int(2e6), int(3e6))
LEAST_LIMIT = int(1.5e8)
C = 2.0**-10
# Goals: peak memory over the limit, seconds of readings over plain readings, readings of a path of 20 C.
MEMORY_LIMIT, SECONDS_LIMIT, PATH_LIMIT = 1.15, 1.3, 6
FAR = 100e9


def write_made(path: Path, n_bytes: int) -> int:
    """Write about so many bytes of made data, some rows at a time; returns the number of rows."""
    rng = np.random.default_rng(SEED)
    w = rng.normal(size=N_FEATURES) / np.sqrt(N_FEATURES)
    step, n_rows = 200 * QUERY_ROWS, max(QUERY_ROWS, n_bytes // (4 * N_FEATURES) // QUERY_ROWS * QUERY_ROWS)
    with atomic_write(path) as file:
        writer = CacheWriter(file, str(path.parent), n_bytes)
        for start in range(0, n_rows, step):
            X = rng.standard_normal((min(step, n_rows - start), N_FEATURES), dtype=np.float32)
            y = np.digitize(X @ w + rng.normal(size=len(X)), [0.5, 1.2, 2.0]).astype(float)
            writer.append(RankingData(X, y, np.arange(start, start + len(X)) // QUERY_ROWS))
        writer.close()
    return n_rows


def measured(path: Path, n_bytes: int, n_rows: int) -> dict[str, Any]:
    """A fit, its readings, and plain ones before and after it."""
    limit = max(LEAST_LIMIT, n_bytes // 4)
    before = plain_reading(path, limit)
    fit = fit_of_file(path, C=C, memory_limit=limit)
    plain = min(before, plain_reading(path, limit))
    return {**fit, "bytes": n_bytes, "rows": n_rows, "limit": limit, "plain": plain}


def row_of(found: dict[str, Any]) -> list[str]:
    """A line of the table of sizes."""
    n_readings, seconds = len(found["readings"]), sum(found["readings"])
    ratio, memory = seconds / (n_readings * found["plain"]), found["peak"] / found["limit"]
    return [
        f"{found['bytes'] / 1e9:.3g}", f"{found['rows']:,}", f"{found['limit'] / 1e6:.0f}", f"{n_readings}",
        f"{found['gap']:.1e}", f"{found['seconds']:.2f}", f"{seconds:.2f}", f"{found['plain']:.2f}",
        f"{ratio:.2f} {verdict(ratio, SECONDS_LIMIT)}", f"{found['peak'] / 1e6:.0f}",
        f"{memory:.2f} {verdict(memory, MEMORY_LIMIT)}",
    ]  # fmt: skip


HEADER = [
    "file, GB", "rows", "limit, MB", "readings", "relative gap", "fit, s", "its readings, s", "a plain reading, s",
    "readings over plain ones", "peak, MB", "peak over limit",
]  # fmt: skip


def line_to_far(found: list[dict[str, Any]]) -> list[str]:
    """The seconds of a fit as a line in the size, and where it leads."""
    sizes, seconds = (np.array([each[name] for each in found]) for name in ("bytes", "seconds"))
    slope, begin = np.polyfit(sizes, seconds, 1)
    off = np.abs(begin + slope * sizes - seconds).max()
    return [
        f"The line through the fits: {begin:.2f} s + {slope * 1e9:.3f} s a GB, off by {off:.2f} s at most; at "
        f"{FAR / 1e9:.0f} GB it is {begin + slope * FAR:.0f} s. That takes as many readings and a disk as fast as here."
    ]


def same_optimum(path: Path) -> list[str]:
    """The optimum to nine digits, read in passes and in memory."""
    data = RankingData.load(path, mmap=False)
    ours = fit_of_file(path, C=C, tol=1e-9, memory_limit=LEAST_LIMIT)
    theirs = RankSVM(C=C, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    off = abs(ours["objective"] - theirs.objective_) / theirs.objective_
    return [
        f"At tol = 1e-9: {len(ours['readings'])} readings; the objective is off by a relative {off:.1e} from that in "
        f"memory {verdict(off, 1e-9)}."
    ]


def path_of_twenty(path: Path, limit: int) -> list[str]:
    """All values of C share the readings."""
    Cs = (2.0 ** np.linspace(-15, 4, 20)).tolist()
    found = fit_of_file(path, Cs=Cs, memory_limit=limit)
    n_readings = len(found["readings"])
    return [
        f"20 values of C, 2^-15 to 2^4: {n_readings} readings in all {verdict(n_readings, PATH_LIMIT)}, "
        f"{found['seconds']:.2f} s, largest relative gap {found['gap']:.1e}, peak {found['peak'] / 1e6:.0f} MB of "
        f"{limit / 1e6:.0f}."
    ]


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--folder", {"type": Path, "help": "where the files are written"}))
    found, notes = [], []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for number, n_bytes in enumerate(SMOKE_SIZES if options.smoke else SIZES):
            path = Path(folder) / "made.rsd"
            n_rows = write_made(path, n_bytes)
            found.append(measured(path, n_bytes, n_rows))
            if number == 0:
                notes += [*same_optimum(path), *path_of_twenty(path, found[0]["limit"])]
    parts = [
        f"{N_FEATURES} float32 features, queries of {QUERY_ROWS} documents, four levels; squared hinge, C = {C:g}, "
        "tol = 1e-4. A plain reading reads the same blocks by the same threads and does nothing.",
        table(HEADER, [row_of(each) for each in found]),
        *line_to_far(found),
        *notes,
    ]
    publish(page("Beyond memory", "beyond_memory", options, parts), options)


if __name__ == "__main__":
    main()
