"""The sections of the speed page that stand beside the published solver: fits, and whole processes."""

import compileall
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ranksvm
from _common import data_folder, interleaved, read, summary, table
from _equal_accuracy import Rivals
from _pieces import Found, Section
from _published_tron import DEFAULT_EPS, program
from _speed_data import SEED, Case, cases
from ranksvm import RankingData, make_ranking, write_letor

ACCURACIES = {"default": "its default", "1e-5": "1e-5", "ours": "our default"}
# No row may be under this, and all at least this many times what they were.
LEAST_RATIO, GAIN = 1.5, 2.0


# -- fits --------------------------------------------------------------------------------------------------------------


def fits(smoke: bool) -> Section:
    """Every case and C, at three accuracies."""
    pieces, wanted = {}, {}
    for case in cases(smoke):
        for number, C in enumerate(case.Cs):
            key = f"{case.name}, C = {C:g}"
            pieces[key] = partial(_compare, case, C)
            wanted[key] = (case, number)
    return Section("fits", pieces, partial(_render_fits, wanted))


def _compare(case: Case, C: float) -> dict[str, Any]:
    return Rivals(case.load(), C).compare()


def goal(case: Case, number: int, accuracy: str) -> float:
    """Least ratio that a row is held to."""
    values = case.before.get(accuracy, ())
    before = values[number] if number < len(values) else None
    return LEAST_RATIO if before is None else max(LEAST_RATIO, GAIN * before)


def _render_fits(wanted: dict[str, tuple[Case, int]], found: list[Found]) -> list[str]:
    summary_rows, rows = [], []
    for variant, key, result in found:
        case, number = wanted[key]
        cells = []
        for accuracy in ACCURACIES:
            if accuracy not in result:
                cells.append("not reached")
                continue
            ratios = _ratios(result[accuracy])
            least, compared = goal(case, number, accuracy), ratios[1 if case.all_threads else 0]
            met = f"{least:.2g}: met" if compared >= least else f"**{least:.2g}: MISSED**"
            cells.append(f"{ratios[0]:.2f} / {ratios[1]:.2f} ({met})")
            rows.append((key, variant, *_detail(accuracy, result[accuracy])))
        summary_rows.append((key, variant, *cells, "all" if case.all_threads else "one"))
    return [
        "## Beside the published solver, at equal accuracy",
        "Ratios of times, published / ours with one thread / ours with all, least of the rounds; over 1 is ours. The "
        "published solver (Lee and Lin 2014; `_published_tron.cpp`, `c++ -O3`, one thread) stops at the first iterate "
        "that is close enough, ours has the loosest `tol` that is. The data of the published solver are already in its "
        "own form without zeros, ours are checked as in every fit. Accuracy is the relative distance to the optimum: "
        f"that of the published solver at its default eps of {DEFAULT_EPS:g}, 1e-5, that of ours at its default `tol`. "
        "In brackets is the goal: twice the ratio measured before short lists had loops of their own and solvers were "
        f"chosen by cost, and at least {LEAST_RATIO:g}, with the threads of the last column. `_speed_data.py` says how "
        "the made data are made.",
        table(["data, C", "instruction set", *(f"at {name}" for name in ACCURACIES.values()), "threads"], summary_rows),
        "## The same in full",
        "Seconds, least / median of the rounds. Steps of the published solver; `tol` of ours; distances below 1e-10 "
        "are round-off.",
        table(
            [
                *("data, C", "instruction set", "accuracy", "distance of published (steps)", "of ours (tol)"),
                *("published, s", "ours, one thread, s", "ours, all threads, s", "ratios (median)", "rounds"),
            ],
            rows,
        ),
    ]


def _ratios(result: dict[str, Any], which: int = 0) -> tuple[float, float]:
    return result["published"][which] / result["one"][which], result["published"][which] / result["all"][which]


def _detail(accuracy: str, result: dict[str, Any]) -> tuple[str, ...]:
    times = [f"{result[name][0]:.4g} / {result[name][1]:.4g}" for name in ("published", "one", "all")]
    medians = _ratios(result, 1)
    return (
        ACCURACIES[accuracy],
        f"{result['published_distance']:.1e} ({result['steps']})",
        f"{result['our_distance']:.1e} ({result['tol']:.1e})",
        *times,
        f"{medians[0]:.2f} / {medians[1]:.2f}",
        str(result["rounds"]),
    )


# -- whole processes ---------------------------------------------------------------------------------------------------

# name -> C, ratio before there were loops for short lists, most seconds it may take
PROCESSES = {"200,040 x 136": (1e-4, 4.4, None), "MQ2008": (1.0, 0.12, 0.5)}


def processes(smoke: bool, repeats: int) -> Section:
    """`ranksvm train` from text to model, against the published solver as a program."""
    sets = {"200,040 x 136": lambda: make_ranking(20 if smoke else 1667, 120, 136, random_state=SEED)}
    if data_folder() is not None:
        sets["MQ2008"] = lambda: read("MQ2008")
    pieces = {name: partial(_whole, load, PROCESSES[name][0], repeats) for name, load in sets.items()}
    return Section("processes", pieces, _render_processes)


def _whole(load: Any, C: float, repeats: int) -> dict[str, Any]:
    # as an ordinary install has it: an editable one keeps no bytecode
    compileall.compile_dir(Path(ranksvm.__file__).parent, quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder) / "train.txt", Path(folder) / "model"
        data: RankingData = load()
        write_letor(text, data.X, data.y, qid=data.qid)
        ours = [sys.executable, "-m", "ranksvm", "train", str(text), "-C", str(C), "-o", f"{model}.rsvm"]
        published = [str(program()), str(C), str(DEFAULT_EPS), str(text), str(model)]
        one = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        actions = {
            "published": partial(subprocess.run, published, check=True, capture_output=True),
            "one": partial(subprocess.run, [*ours, "--n-jobs", "1"], check=True, capture_output=True, env=one),
            "all": partial(subprocess.run, ours, check=True, capture_output=True),
        }
        interleaved(actions, 1)
        times = interleaved(actions, repeats)
        found = {name: [float(values.min()), float(np.median(values))] for name, values in times.items()}
        return {"bytes": text.stat().st_size, "C": C, "repeats": repeats, **found}


def _render_processes(found: list[Found]) -> list[str]:
    rows = []
    for variant, key, result in found:
        _, before, most = PROCESSES[key]
        ratios = _ratios(result)
        least = max(LEAST_RATIO, GAIN * before)
        limit = f"ratio {least:.2g}: met" if ratios[1] >= least else f"**ratio {least:.2g}: MISSED**"
        if most is not None:
            limit += f"; {most:g} s: met" if result["all"][0] <= most else f"; **{most:g} s: MISSED**"
        times = [summary(np.array(result[name])) for name in ("published", "one", "all")]
        size = f"{result['bytes'] / 1e6:.0f} MB"
        rows.append(
            (f"{key}, {size}", variant, f"{result['C']:g}", *times, f"{ratios[0]:.2f} / {ratios[1]:.2f}", limit)
        )
    return [
        "## Whole processes, from text to model",
        "`ranksvm train` at its default tolerance (interpreter, imports, reading, fit, model) beside the published "
        "solver as a program at its own (reading with the C library, fit, weights), seconds, least / median of "
        f"{found[0].value['repeats']} rounds after one that warms the file.",
        table(
            ["text", "instruction set", "C", "published", "ours, one thread", "ours, all threads", "ratios", "limit"],
            rows,
        ),
    ]
