"""Fits of files larger than memory: number of readings, seconds, peak memory, and an extrapolation to 100 GB.

python benchmarks/beyond_memory.py --folder build/beyond --cache build/beyond_memory.jsonl -o \
    benchmarks/results/beyond_memory.md

The script writes generated data with 136 features to --folder, which must have room for all sizes; files that exist
already are used again. The memory limit is a quarter of each file. Before each reading the script asks the system to
drop the file from its page cache. With --cache, each result is stored, so that runs may be short.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from _common import arguments, page, publish, table, verdict
from _file_fit import fit_of_file, plain_reading
from _pieces import Found, Pieces, Section
from ranksvm import RankingData, RankSVM
from ranksvm._util.atomic_files import atomic_write
from ranksvm.datasets.cache.reader import CacheFile
from ranksvm.datasets.cache.writer import CacheWriter

SEED = 0
N_FEATURES = 136
QUERY_ROWS = 100
# Sizes of the files in bytes, and the smallest memory limit, because a process needs memory even without data.
SIZES = (int(0.8e9), int(1.6e9), int(3.2e9))
SMOKE_SIZES = (int(1e6), int(2e6), int(3e6))
MIN_LIMIT = int(1.5e8)
C = 2.0**-10
# Goals: peak memory divided by the limit, seconds of readings divided by seconds of plain readings, and number of
# readings for a path of 20 values of C.
MEMORY_LIMIT, SECONDS_LIMIT, PATH_LIMIT = 1.15, 1.3, 6
FAR = 100e9
ROUNDS = 3
# The goal for paths applies only to the first loss: the second one is smoothed, which needs more readings.
LOSSES = ("squared_hinge", "hinge")


def write_made(path: Path, n_bytes: int) -> int:
    """Write about ``n_bytes`` bytes of generated data, some rows at a time, and return the number of rows."""
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


def made(folder: Path, n_bytes: int) -> tuple[Path, int]:
    """The path and number of rows of the file with about ``n_bytes`` bytes, which is written if it is absent."""
    path = folder / f"made_{n_bytes // 1_000_000}.rsd"
    if not path.exists():
        return path, write_made(path, n_bytes)
    return path, CacheFile(path).n_rows


def limit_of(n_bytes: int) -> int:
    """The memory limit for a file."""
    return max(MIN_LIMIT, n_bytes // 4)


def measured(folder: Path, n_bytes: int) -> dict[str, Any]:
    """Run fits with plain readings before and after each, and return the fit whose ratio of times is the median."""
    path, n_rows = made(folder, n_bytes)
    limit = limit_of(n_bytes)
    found = []
    for _ in range(ROUNDS):
        plain = [plain_reading(path, limit) for _ in range(2)]
        fit = fit_of_file(path, C=C, memory_limit=limit)
        plain += [plain_reading(path, limit) for _ in range(2)]
        found.append(fit | {"bytes": n_bytes, "rows": n_rows, "limit": limit, "plain": float(np.mean(plain))})
    found.sort(key=over_plain)
    return found[ROUNDS // 2] | {"ratios": [over_plain(found[0]), over_plain(found[-1])]}


def over_plain(found: dict[str, Any]) -> float:
    """Seconds of the readings of a fit, divided by the seconds of as many plain readings."""
    return sum(found["readings"]) / (len(found["readings"]) * found["plain"])


def row_of(found: dict[str, Any]) -> list[str]:
    """A line of the table of sizes."""
    n_readings, seconds = len(found["readings"]), sum(found["readings"])
    ratio, memory = over_plain(found), found["peak"] / found["limit"]
    least, most = found["ratios"]
    return [
        f"{found['bytes'] / 1e9:.3g}", f"{found['rows']:,}", f"{found['limit'] / 1e6:.0f}", f"{n_readings}",
        f"{found['gap']:.1e}", f"{found['seconds']:.2f}", f"{seconds:.2f}", f"{found['plain']:.2f}",
        f"{ratio:.2f} ({least:.2f} to {most:.2f}) {verdict(ratio, SECONDS_LIMIT)}", f"{found['peak'] / 1e6:.0f}",
        f"{memory:.2f} {verdict(memory, MEMORY_LIMIT)}",
    ]  # fmt: skip


HEADER = [
    "file, GB", "rows", "limit, MB", "readings", "relative gap", "fit, s", "its readings, s", "a plain reading, s",
    "readings over plain ones", "peak, MB", "peak over limit",
]  # fmt: skip


def line_to_far(found: list[dict[str, Any]]) -> list[str]:
    """Fit the seconds as a linear function of the size, and extrapolate to the far size."""
    sizes, seconds = (np.array([each[name] for each in found]) for name in ("bytes", "seconds"))
    slope, begin = np.polyfit(sizes, seconds, 1)
    off = np.abs(begin + slope * sizes - seconds).max()
    return [
        f"The line through the fits: {begin:.2f} s + {slope * 1e9:.3f} s a GB, off by {off:.2f} s at most; at "
        f"{FAR / 1e9:.0f} GB it is {begin + slope * FAR:.0f} s. That takes as many readings and a disk as fast as here."
    ]


def same_optimum(folder: Path, n_bytes: int) -> dict[str, Any]:
    """Compare the optimum from a file that is read in passes with the optimum in memory, to nine digits."""
    path, _ = made(folder, n_bytes)
    data = RankingData.load(path, mmap=False)
    ours = fit_of_file(path, C=C, tol=1e-9, memory_limit=MIN_LIMIT)
    theirs = RankSVM(C=C, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    off = abs(ours["objective"] - theirs.objective_) / theirs.objective_
    return {"bytes": n_bytes, "readings": len(ours["readings"]), "off": off}


def optimum_in_words(found: list[Found]) -> list[str]:
    """The result of `same_optimum` as text."""
    return [
        f"{value['bytes'] / 1e9:.3g} GB, tol = 1e-9, a limit of {MIN_LIMIT / 1e6:.0f} MB: {value['readings']} "
        f"readings; the objective is off by a relative {value['off']:.1e} from that in memory "
        f"{verdict(value['off'], 1e-9)}."
        for _, _, value in found
    ]


def path_of_twenty(folder: Path, n_bytes: int, loss: str) -> dict[str, Any]:
    """Measure a path of 20 values of C, which share the readings."""
    path, _ = made(folder, n_bytes)
    Cs = (2.0 ** np.linspace(-15, 4, 20)).tolist()
    found = fit_of_file(path, Cs=Cs, loss=loss, memory_limit=limit_of(n_bytes))
    return {**found, "bytes": n_bytes, "readings": len(found["readings"]), "loss": loss}


def paths_in_words(found: list[Found]) -> list[str]:
    """A line for each loss."""
    rows = [
        [
            value["loss"], f"{value['bytes'] / 1e9:.3g}",
            f"{value['readings']}" + f" ({verdict(value['readings'], PATH_LIMIT)})" * (value["loss"] == LOSSES[0]),
            f"{value['seconds']:.2f}", f"{value['gap']:.1e}", f"{value['peak'] / 1e6:.0f}",
            f"{limit_of(value['bytes']) / 1e6:.0f}",
        ]
        for _, _, value in found
    ]  # fmt: skip
    header = ["loss", "file, GB", "readings in all", "s", "largest relative gap", "peak, MB", "limit, MB"]
    return ["20 values of C, 2^-15 to 2^4, tol = 1e-4.", table(header, rows)]


def sizes_in_words(found: list[Found]) -> list[str]:
    """The table of sizes, and the extrapolation."""
    values = [each.value for each in found]
    line = line_to_far(values) if len(values) > 1 else []
    return [table(HEADER, [row_of(value) for value in values]), *line]


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--folder", {"type": Path, "help": "where the files are written, and stay"}),
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
    )
    sizes = SMOKE_SIZES if options.smoke else SIZES
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if options.folder is None else options.folder
        folder.mkdir(parents=True, exist_ok=True)
        least = min(sizes)
        sections = [
            Section("sizes", {f"{size:.1e}": partial(measured, folder, size) for size in sizes}, sizes_in_words),
            Section("optimum", {"1e-9": partial(same_optimum, folder, least)}, optimum_in_words),
            Section(
                "path",
                {loss: partial(path_of_twenty, folder, least, loss) for loss in LOSSES[: 1 if options.smoke else 2]},
                paths_in_words,
            ),
        ]
        pieces = Pieces(options.cache)
        pieces.measure(sections, options.only)
        parts = pieces.parts(sections)
    about = (
        f"{N_FEATURES} float32 features, queries of {QUERY_ROWS} documents, four levels; squared hinge, C = {C:g}, "
        "tol = 1e-4, where nothing else is said. A plain reading reads the same blocks by the same threads and does "
        "nothing; the mean of two before and two after the fit is shown. Each size is fitted "
        f"{ROUNDS} times; the fit whose readings over plain ones are the median is shown, with the least and the "
        "largest of these ratios. The system is asked to forget the file before each reading."
    )
    publish(page("Beyond memory", "beyond_memory", options, [about, *parts]), options)


if __name__ == "__main__":
    main()
