"""Counts of 12 named fits, one line a case and version: what a change costs or saves, on any machine.

python benchmarks/track.py -o benchmarks/results/track.csv

Evaluations, iterations and Hessian products come from the fit. Instructions are callgrind's, of the fit alone, after one
that has imported all it needs: one thread, the AVX2 loops (valgrind knows no AVX-512), OpenBLAS's Haswell loops and a
fixed hash seed, so that they are the same on any x86-64 Linux machine with the same versions of the dependencies. Where
valgrind or its headers are absent, their column stays empty and the program says so. Lines of the same version and case
are replaced.
"""

import csv
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _common import ROOT, arguments, versions
from _published_tron import compiler
from _track_cases import CASES, counts, fit, relative_gap

SOURCE = Path(__file__).with_name("_callgrind.cpp")
COLUMNS = (
    "version",
    "case",
    "evaluations",
    "iterations",
    "products",
    "instructions",
    "objective",
    "certificate",
    "with",
)
# What makes instructions repeatable.
ENVIRONMENT = {
    "RANKSVM_INSTRUCTION_SET": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
SMOKE = ("real-labels", "kernel-rbf")


def version() -> str:
    """Of the working tree: the nearest tag and the commit, and whether it was changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--tags"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


# -- in the process under valgrind -------------------------------------------------------------------------------------


def run_cases(names: list[str], library: str | None) -> None:
    """Fit every case, twice: the second time counted. Prints a line of JSON for each."""
    control = None if library is None else ctypes.CDLL(library)
    for name in names:
        case = CASES[name]
        data = case.load()
        fit(case, data)
        if control is not None:
            control.counting_start()
        model = fit(case, data)
        if control is not None:
            control.counting_stop(name.encode())
        found = {**counts(model)._asdict(), "objective": model.objective_, "certificate": relative_gap(model)}
        print(json.dumps({"case": name, **found}), flush=True)


# -- in the one that starts it -----------------------------------------------------------------------------------------


def counting_library(folder: Path) -> Path | None:
    """The entry that starts and stops callgrind, if there are valgrind, its headers and a compiler."""
    if shutil.which("valgrind") is None or compiler() is None:
        return None
    library = folder / "callgrind.so"
    command = [str(compiler()), "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    return library if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def measured(names: list[str]) -> list[dict[str, Any]]:
    """What the fits took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = counting_library(folder)
        command = [sys.executable, __file__, "--run", ",".join(names)]
        if library is None:
            print("valgrind, its headers or a C++ compiler are absent: instructions are not counted.", file=sys.stderr)
        else:
            prefix = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts"]
            command = [*prefix, *command, "--library", str(library)]
        environment = {**os.environ, **ENVIRONMENT}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"The fits ended with status {done.returncode}:\n{done.stderr}")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        instructions = instructions_of(folder)
        return [{**row, "instructions": instructions.get(row["case"], "")} for row in rows]


def instructions_of(folder: Path) -> dict[str, int]:
    """Instructions by the reason that a file of counts names."""
    found = {}
    for path in folder.glob("counts*"):
        text = path.read_text(errors="replace")
        reason = re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if reason and total:
            found[reason[1]] = int(total[1])
    return found


def merged(path: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of a file, those of the same version and case replaced."""
    before = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            before = list(csv.DictReader(file))
    new = {(row["version"], row["case"]) for row in rows}
    return [row for row in before if (row["version"], row["case"]) not in new] + rows


def write(rows: list[dict[str, Any]], path: Path | None) -> None:
    """Write a file whole, or print it."""
    if path is None:
        _write_csv(rows, sys.stdout)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    with temporary.open("w", newline="", encoding="utf-8") as file:
        _write_csv(merged(path, rows), file)
    os.replace(temporary, path)


def _write_csv(rows: list[dict[str, Any]], file: Any) -> None:
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--cases", {"default": ",".join(CASES), "help": "names, with commas between them"}),
        ("--run", {"help": "for the program itself: fit these cases"}),
        ("--library", {"help": "for the program itself: what starts and stops counting"}),
    )
    if options.run is not None:
        run_cases(options.run.split(","), options.library)
        return
    names = [name for name in (SMOKE if options.smoke else options.cases.split(","))]
    absent = [name for name in names if not CASES[name].available()]
    if absent:
        print(f"No data for {', '.join(absent)}: left out.", file=sys.stderr)
    rows = measured([name for name in names if name not in absent])
    made_with = versions().replace(",", ";")
    for row in rows:
        row |= {"version": version(), "with": made_with}
        row |= {"objective": f"{row['objective']:.9g}", "certificate": f"{row['certificate']:.1e}"}
    write(rows, options.output)


if __name__ == "__main__":
    main()
