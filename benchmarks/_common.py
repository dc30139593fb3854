"""Functions that the benchmarks share: description of the machine, timing, the real data, and result pages."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ranksvm._compiled.instruction_set as compiled_instruction_set

import ranksvm
from _digests import seal
from papers.machine import machine, versions
from papers.results import markdown_table as table
from papers.timing import least_seconds, seconds
from ranksvm import metrics

# this list includes names that other modules import from here
__all__ = [
    "ROOT",
    "arguments",
    "data_folder",
    "instruction_set",
    "interleaved",
    "least_seconds",
    "letor",
    "machine",
    "page",
    "power_of_two",
    "publish",
    "read",
    "required_data",
    "seconds",
    "summary",
    "table",
    "verdict",
    "versions",
]

ROOT = Path(__file__).resolve().parents[1]


# -- the command line --------------------------------------------------------------------------------------------------


def arguments(doc: str | None, argv: Sequence[str] | None, *more: tuple[str, dict[str, Any]]) -> argparse.Namespace:
    """Parse the options that every benchmark has, and the additional options in ``more``."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: whether it runs, not how fast")
    parser.add_argument("-o", "--output", type=Path, help="file to write the page to; else it is printed")
    for name, options in more:
        parser.add_argument(name, **options)
    parsed = parser.parse_args(argv)
    parsed.command = shlex.join(sys.argv[1:] if argv is None else argv)
    return parsed


# -- the page ----------------------------------------------------------------------------------------------------------


def instruction_set() -> str:
    """The name of the variant of the compiled loops that this process uses."""
    return compiled_instruction_set.current()


def page(title: str, script: str, options: argparse.Namespace, parts: Iterable[str], *packages: str) -> str:
    """A result page: title, machine, versions, command, and the parts."""
    load = f" Load average when it ended: {os.getloadavg()[0]:.1f}." if hasattr(os, "getloadavg") else ""
    head = [
        f"# {title}",
        f"{machine()}. {versions(*packages)}. {time.strftime('%Y-%m-%d')}.{load}",
        f"Command: `{' '.join(['python', f'benchmarks/{script}.py', options.command]).strip()}`",
    ]
    return "\n\n".join([*head, *parts]) + "\n"


def publish(text: str, options: argparse.Namespace) -> None:
    """Write a page to the output file in one step, or print it."""
    if options.output is None:
        print(text)
        return
    options.output.parent.mkdir(parents=True, exist_ok=True)
    temporary = options.output.with_name(options.output.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, options.output)
    seal(options.output)


# -- timing ------------------------------------------------------------------------------------------------------------


def interleaved(actions: Mapping[str, Callable[[], Any]], repeats: int, pause: float = 0.0) -> dict[str, np.ndarray]:
    """Wall-clock times of several actions, which take turns in each round, so that a slow period affects all of them.

    There is a pause of ``pause`` seconds before each action, because the threads of a BLAS keep a core busy for some
    time while they wait for more work. A single round, as in a smoke run, is no comparison, and has no pauses.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            time.sleep(pause if repeats > 1 else 0.0)
            times[name].append(seconds(action))
    return {name: np.array(values) for name, values in times.items()}


def summary(times: np.ndarray) -> str:
    """Minimum and median of some times, as text."""
    return f"{times.min():.3f} / {np.median(times):.3f}"


def verdict(value: float, limit: float) -> str:
    """A text that says whether a limit is met."""
    return f"{limit:g}: met" if value <= limit else f"**{limit:g}: MISSED**"


# -- the data ----------------------------------------------------------------------------------------------------------


def data_folder() -> Path | None:
    """Folder of the real data sets (``RANKSVM_DATA``, or ``../shared/data`` beside the repository), if it is there."""
    folder = Path(os.environ.get("RANKSVM_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def required_data() -> Path:
    """The same folder; the program ends if it is absent."""
    folder = data_folder()
    if folder is None:
        sys.exit("No real data: set RANKSVM_DATA to the folder that holds them.")
    return folder


def read(dataset: str, fold: int = 1, part: str = "train", **options: Any) -> ranksvm.RankingData:
    """One part of a fold of a real data set."""
    return ranksvm.read_letor(required_data() / dataset / f"Fold{fold}" / f"{part}.txt.gz", docids=False, **options)


def letor(data: ranksvm.RankingData, scores: np.ndarray, names: Sequence[str]) -> metrics.Evaluation:
    """Evaluate as LETOR's own tool does."""
    return metrics.evaluate(data.y, scores, data.qid, names, convention="letor")


def power_of_two(text: str) -> float:
    """The value of a text such as "2^-5"."""
    base, exponent = text.split("^")
    return float(base) ** int(exponent)
