"""Track the counts of 12 named fits, with a line for each case and version, to see what a change costs or saves.

python benchmarks/track.py -o benchmarks/results/track.csv

The counts are evaluations, iterations and Hessian products of the fit, and instructions that callgrind counts in the
fit. An uncounted fit comes first, to import everything. For repeatable instructions, the process has one thread, the
AVX2 loops (valgrind does not support AVX-512), OpenBLAS's Haswell loops, and a fixed hash seed. With the same compiler
and the versions in the last column, instructions repeat to 0.1 % (two runs of seven cases), and the other counts
exactly. If valgrind, its headers or a C++ compiler are absent, the column of instructions stays empty, and the program
says so. Lines of the same version and case are replaced.
"""

import csv
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _common import ROOT, arguments, versions
from _published_tron import compiler
from _track_cases import CASES

FITS = Path(__file__).with_name("_track_fits.py")
CONTROL = Path(__file__).with_name("_callgrind.cpp")
COLUMNS = (
    "version",
    "date",
    "case",
    "iterations",
    "evaluations",
    "products",
    "instructions",
    "certificate",
    "with",
)
# Environment variables that make the number of instructions repeatable.
ENVIRONMENT = {
    "RANKSVM_INSTRUCTION_SET": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
# Number of processes that count fits at the same time; this does not change the counts.
PROCESSES = 2
SMOKE = ("real-labels", "kernel-rbf")

Row = dict[str, Any]


def version() -> tuple[str, str]:
    """The nearest tag and the commit, with "-dirty" if files differ from it, and the date of the commit."""

    def git(*command: str) -> str:
        found = subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=False)
        return found.stdout.strip() or "unknown"

    return git("describe", "--always", "--dirty", "--tags"), git("log", "-1", "--format=%cs")


# -- counting ----------------------------------------------------------------------------------------------------------


def counting_library(folder: Path) -> Path | None:
    """Compile the library that starts and stops callgrind; None without valgrind, its headers or a compiler."""
    if shutil.which("valgrind") is None or compiler() is None:
        return None
    library = folder / "callgrind.so"
    command = [str(compiler()), "-O1", "-shared", "-fPIC", "-o", str(library), str(CONTROL)]
    return library if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def measured(names: Sequence[str]) -> list[Row]:
    """The counts of the named fits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = counting_library(folder)
        if library is None:
            print("valgrind, its headers or a C++ compiler are absent: instructions are not counted.", file=sys.stderr)
        for case in names:
            (folder / f"{case}.pickle").write_bytes(pickle.dumps(CASES[case].load()))
        parts = [names[first::PROCESSES] for first in range(min(PROCESSES, len(names)))]
        processes = [started(part, folder, library) for part in parts]
        rows = [json.loads(line) for process in processes for line in finished(process).splitlines()]
        instructions = instructions_of(folder)
        found = {row["case"]: {**row, "instructions": instructions.get(row["case"], "")} for row in rows}
        return [found[case] for case in names]


def started(names: Sequence[str], folder: Path, library: Path | None) -> subprocess.Popen[str]:
    """Start a process that fits these cases."""
    command = [sys.executable, str(FITS), str(folder), ",".join(names)]
    if library is not None:
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts.%p"]
        command = [*valgrind, *command, str(library)]
    environment = {**os.environ, **ENVIRONMENT}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> str:
    """Wait for a process, and return its output; the program ends if the process failed."""
    output, errors = process.communicate()
    if process.returncode != 0:
        sys.exit(f"The fits ended with status {process.returncode}:\n{errors}")
    return output


def instructions_of(folder: Path) -> dict[str, int]:
    """The number of instructions by case, from callgrind's files, each of which names its case."""
    found = {}
    for path in folder.glob("counts.*"):
        text = path.read_text(errors="replace")
        case = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.MULTILINE)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
        if case and total:
            found[case[1]] = int(total[1])
    return found


# -- the file ----------------------------------------------------------------------------------------------------------


def merged(path: Path, rows: list[Row]) -> list[Row]:
    """The lines of the file, then the new lines; a new line replaces an old one of the same version and case."""
    before: list[Row] = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            before = list(csv.DictReader(file))
    new = {(row["version"], row["case"]) for row in rows}
    return [row for row in before if (row["version"], row["case"]) not in new] + rows


def write(rows: list[Row], path: Path | None) -> None:
    """Write the file in one step, or print the lines."""
    if path is None:
        _write_csv(rows, sys.stdout)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        _write_csv(merged(path, rows), file)
    os.replace(temporary, path)


def _write_csv(rows: list[Row], file: Any) -> None:
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def main(argv=None):
    """Run from the command line."""
    names = {"default": ",".join(CASES), "help": "names of cases, with commas between them"}
    options = arguments(__doc__, argv, ("--cases", names))
    wanted = SMOKE if options.smoke else options.cases.split(",")
    if unknown := set(wanted) - set(CASES):
        sys.exit(f"There is no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}.")
    for name in wanted:
        if not CASES[name].available():
            print(f"{name} is left out: {CASES[name].dataset} is not there (RANKSVM_DATA).", file=sys.stderr)
    commit, date = version()
    made_with = versions().replace(", ", "; ")
    rows = []
    for row in measured([name for name in wanted if CASES[name].available()]):
        certificate = f"{row['certificate']:.1e}"
        rows.append({**row, "version": commit, "date": date, "certificate": certificate, "with": made_with})
    write(rows, options.output)


if __name__ == "__main__":
    main()
