"""The sections of the speed page that compare with the published solver: fits, and whole processes."""

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
from _earlier import python, revision
from _equal_accuracy import Rivals
from _pieces import Found, Section
from _published_tron import DEFAULT_EPS, program
from _speed_data import SEED, Case, cases
from ranksvm import RankingData, make_ranking, write_letor

ACCURACIES = {"default": "its default", "1e-5": "1e-5", "ours": "our default"}
# Goals: the smallest ratio of the published program's time to ours, and of the earlier revision's time to ours.
MIN_RATIO, GAIN = 1.5, 2.0


# -- fits --------------------------------------------------------------------------------------------------------------


def fits(smoke: bool, before: Path | None) -> Section:
    """A section with fits of every case and C, at three accuracies."""
    pieces, wanted = {}, {}
    for case in cases(smoke):
        for C in case.Cs:
            key = f"{case.name}, C = {C:g}"
            pieces[key] = partial(_compare, case, C, before)
            wanted[key] = case
    return Section("fits", pieces, partial(_render_fits, wanted, before))


def _compare(case: Case, C: float, before: Path | None) -> dict[str, Any]:
    return Rivals(case.load(), C, before).compare()


def _verdict(case: Case, result: dict[str, Any]) -> str:
    """The ratios of times to the published solver and to the earlier revision, and whether they meet both goals."""
    place = 1 if case.all_threads else 0
    published, earlier = _ratios(result), _ratios_to_earlier(result)
    text, met = f"{published[0]:.2f} / {published[1]:.2f}", published[place] >= case.least
    if earlier is not None:
        text += f", {earlier[0]:.2f} / {earlier[1]:.2f}"
        met = met and earlier[place] >= GAIN
    return f"{text} ({'met' if met else '**MISSED**'})"


def _render_fits(wanted: dict[str, Case], before: Path | None, found: list[Found]) -> list[str]:
    summary_rows, rows = [], []
    for variant, key, result in found:
        case, cells = wanted[key], []
        for accuracy in ACCURACIES:
            if accuracy not in result:
                cells.append("not reached")
                continue
            cells.append(_verdict(case, result[accuracy]))
            rows.append((key, variant, *_detail(accuracy, result[accuracy])))
        summary_rows.append((key, variant, *cells, "all" if case.all_threads else "one"))
    return [
        "## Beside the published solver, at equal accuracy",
        "Ratios of times, published / ours with one thread / ours with all, least of the rounds; over 1 is ours. The "
        "published solver (Lee and Lin 2014; `_published_tron.cpp`, `c++ -O3`, one thread) stops at the first iterate "
        "that is close enough, ours has the loosest `tol` that is. The data of the published solver are already in its "
        "own form without zeros, ours are checked as in every fit. Accuracy is the relative distance to the optimum: "
        f"that of the published solver at its default eps of {DEFAULT_EPS:g}, 1e-5, that of ours at its default `tol`. "
        + _said_of_earlier(before)
        + "Goals are for the threads of the last column. `_speed_data.py` says how the made data are made.",
        table(["data, C", "instruction set", *(f"at {name}" for name in ACCURACIES.values()), "threads"], summary_rows),
        "## The same in full",
        "Seconds, least / median of the rounds. Steps of the published solver; `tol` of ours; distances below 1e-10 "
        "are round-off.",
        table(
            [
                *("data, C", "instruction set", "accuracy", "distance of published (steps)", "of ours (tol)"),
                *("published, s", "ours, one thread, s", "ours, all threads, s", "ratios (median)"),
                *("before, one thread, s", "before, all threads, s", "rounds"),
            ],
            rows,
        ),
    ]


def _ratios(result: dict[str, Any], which: int = 0) -> tuple[float, float]:
    return result["published"][which] / result["one"][which], result["published"][which] / result["all"][which]


def _ratios_to_earlier(result: dict[str, Any]) -> tuple[float, float] | None:
    before = result.get("before")
    return before and (before["one"][0] / result["one"][0], before["all"][0] / result["all"][0])


def _said_of_earlier(before: Path | None) -> str:
    if before is None:
        return f"The goal is a ratio of {MIN_RATIO:g}, of one list 4. "
    return (
        f"After the comma: the same of revision `{revision(before)}` of this package / this one, fitted in turns by "
        f"another process, with its own loosest `tol`. Goals: {MIN_RATIO:g} times as fast as the published solver "
        f"(one list: 4) and {GAIN:g} times as fast as that revision, in which short lists had no loops of their own "
        "and solvers were not chosen by cost. "
    )


def _detail(accuracy: str, result: dict[str, Any]) -> tuple[str, ...]:
    times = [f"{result[name][0]:.4g} / {result[name][1]:.4g}" for name in ("published", "one", "all")]
    before = ["", ""]
    if "before" in result:
        before = [
            f"{result['before'][threads][0]:.4g} / {result['before'][threads][1]:.4g}" for threads in ("one", "all")
        ]
    medians = _ratios(result, 1)
    return (
        ACCURACIES[accuracy],
        f"{result['published_distance']:.1e} ({result['steps']})",
        f"{result['our_distance']:.1e} ({result['tol']:.1e})",
        *times,
        f"{medians[0]:.2f} / {medians[1]:.2f}",
        *before,
        str(result["rounds"]),
    )


# -- whole processes ---------------------------------------------------------------------------------------------------

# name -> C, and the largest number of seconds that it may take
PROCESSES = {"200,040 x 136": (1e-4, None), "MQ2008": (1.0, 0.5)}


def processes(smoke: bool, repeats: int, before: Path | None) -> Section:
    """Compare `ranksvm train`, from text to model, with the published solver's program and an earlier revision."""
    sets = {"200,040 x 136": lambda: make_ranking(20 if smoke else 1667, 120, 136, random_state=SEED)}
    if data_folder() is not None:
        sets["MQ2008"] = lambda: read("MQ2008")
    pieces = {name: partial(_whole, load, PROCESSES[name][0], repeats, before) for name, load in sets.items()}
    return Section("processes", pieces, partial(_render_processes, before))


def _whole(load: Any, C: float, repeats: int, before: Path | None) -> dict[str, Any]:
    # compile bytecode, which an ordinary install has, but an editable one may not
    compileall.compile_dir(Path(ranksvm.__file__).parent, quiet=2)
    if before is not None:
        compileall.compile_dir(before / "src", quiet=2)
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
        if before is not None:
            # do not run it in the root of this repository, whose package would be imported
            earlier = [python(before), *ours[1:]]
            actions["before"] = partial(subprocess.run, earlier, check=True, capture_output=True, cwd=folder)
        interleaved(actions, 1)
        times = interleaved(actions, repeats)
        found = {name: [float(values.min()), float(np.median(values))] for name, values in times.items()}
        return {"bytes": text.stat().st_size, "C": C, "repeats": repeats, **found}


def _render_processes(before: Path | None, found: list[Found]) -> list[str]:
    rows = []
    for variant, key, result in found:
        most = PROCESSES[key][1]
        ratios = _ratios(result)
        gain = result["before"][0] / result["all"][0] if "before" in result else None
        met = ratios[1] >= MIN_RATIO and (gain is None or gain >= GAIN)
        limit = "ratios: met" if met else "**ratios: MISSED**"
        if most is not None:
            limit += f"; {most:g} s: met" if result["all"][0] <= most else f"; **{most:g} s: MISSED**"
        times = [summary(np.array(result[name])) for name in ("published", "one", "all")]
        times.append(summary(np.array(result["before"])) if gain is not None else "")
        said = f"{ratios[0]:.2f} / {ratios[1]:.2f}" + ("" if gain is None else f", {gain:.2f}")
        size = f"{result['bytes'] / 1e6:.0f} MB"
        rows.append((f"{key}, {size}", variant, f"{result['C']:g}", *times, said, limit))
    return [
        "## Whole processes, from text to model",
        "`ranksvm train` at its default tolerance (interpreter, imports, reading, fit, model) beside the published "
        "solver as a program at its own (reading with the C library, fit, weights)"
        + ("" if before is None else f" and revision `{revision(before)}` with all threads")
        + f", seconds, least / median of {found[0].value['repeats']} rounds after one that warms the file. Goals: "
        f"{MIN_RATIO:g} times as fast as the program" + ("." if before is None else f", {GAIN:g} times as before."),
        table(
            [
                *("text", "instruction set", "C", "published", "ours, one thread", "ours, all threads", "before"),
                *("ratios", "limit"),
            ],
            rows,
        ),
    ]
