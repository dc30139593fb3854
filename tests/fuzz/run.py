"""Fuzz the readers and the estimators: ``python tests/fuzz/run.py [targets] --seconds 180``, or ``make fuzz``.

The target and a number determine a case, so ``--first NUMBER --cases 1`` repeats a finding. A worker process runs the
cases of a target. If a case ends the worker (by a crash, a report of a sanitizer, or because it takes more than a
minute), it is reported, and a new worker continues with the next case. A finding is an exception that is not a
`RankSVMError`, or the end of a worker. The exit status is 1 if there were findings. To check many certificates in
extended precision, use ``certificates --cases 20000 --seconds 3600``. To send 100,000 requests to services that are
killed at random, use ``serving --cases 100 --seconds 7200``.
"""

import argparse
import importlib
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

TARGETS = ("models", "imported", "caches", "parquet", "letor_text", "trec_files", "labels", "certificates", "serving")
HANG = 60.0  # seconds after which a case counts as endless; a service may take longer under sanitizers
HANGS = {"serving": 300.0}


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=[], help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=180.0, help="time for all targets together")
    parser.add_argument("--cases", type=int, default=10**9, help="largest number of cases of each target")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = options.targets or list(TARGETS)
    if options.worker:
        return work(targets[0], options.first, options.cases, options.seconds)
    finds = sum(fuzz(target, options.first, options.cases, options.seconds / len(targets)) for target in targets)
    print(f"{finds} finds")
    return min(finds, 1)


def fuzz(target, first, cases, seconds):
    """Run cases of a target in workers and return the number of findings."""
    finds, number, until = 0, first, time.monotonic() + seconds
    while number < first + cases and time.monotonic() < until:
        left = [str(first + cases - number), str(max(1.0, until - time.monotonic()))]
        python = [sys.executable, *(["-S"] if sys.flags.no_site else [])]
        command = [*python, __file__, target, "--worker", "--first", str(number), "--cases", left[0]]
        worker = subprocess.Popen([*command, "--seconds", left[1]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            stdout, stderr = worker.communicate(timeout=until - time.monotonic() + HANGS.get(target, HANG))
        except subprocess.TimeoutExpired:
            worker.kill()
            stdout, stderr = worker.communicate()
        lines = stdout.decode(errors="replace").splitlines()
        finds += sum(line.startswith("FIND") for line in lines)
        print("\n".join(line for line in lines if not line.startswith("CASE")), flush=True)
        begun = [int(line.split()[1]) for line in lines if line.startswith("CASE")]
        number = (begun[-1] if begun else number) + 1
        if worker.returncode != 0:
            finds += 1
            print(f"FIND {target} {number - 1}: the worker ended with status {worker.returncode}")
            print(stderr.decode(errors="replace")[-6000:], flush=True)
            if not begun:
                return finds
    print(f"{target}: {number - first} cases", flush=True)
    return finds


def target_named(target, folder):
    """The target of this name; it writes its files to ``folder``."""
    return importlib.import_module(f"fuzz.{target}" if target in TARGETS else target).Target(folder)


def work(target, first, cases, seconds):
    """Run cases in this process; print the number of each before it begins."""
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        case = target_named(target, pathlib.Path(folder))
        for number in range(first, first + cases):
            if time.monotonic() > until and number > first:
                break
            print(f"CASE {number}", flush=True)
            try:
                case.run(np.random.default_rng([*target.encode(), number]))
            except Exception:
                where = traceback.format_exc().strip().replace("\n", "\n    ")
                print(f"FIND {target} {number}: {where}", flush=True)
        if hasattr(case, "figures"):
            print(f"{target}: {case.figures}", flush=True)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
    sys.exit(main())
