"""How long do the commands for linear models take as processes, compared with the imports that they need?

    python benchmarks/commands.py --pythons .venv/bin/python       training part of MQ2008, fold 1, as text
    python benchmarks/commands.py --pythons NEW/python OLD/python  the same for two installed versions, in turns

Use environments with an ordinary install, because an editable install checks for changed sources on each import.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import _common as common
from ranksvm import make_ranking, write_letor

IMPORTS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "numpy, scipy.linalg": "import numpy, scipy.linalg",
    "sklearn.base": "import sklearn.base",
}


def process(*command):
    """An action that runs a command; Python may write bytecode, as in an ordinary install."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run(list(map(str, command)), env=environment, check=True, capture_output=True)


def actions(python, data, folder):
    """The actions for one environment, by name."""
    model, ranksvm = folder / "model", (python, "-m", "ranksvm")
    return {
        **{f"import {name}": process(python, "-c", code) for name, code in IMPORTS.items()},
        "`ranksvm train -C 1`": process(*ranksvm, "train", data, "-C", "1", "-o", model),
        "`ranksvm predict`": process(*ranksvm, "predict", model, data, "-o", folder / "scores"),
        "`ranksvm evaluate`": process(*ranksvm, "evaluate", data, "-m", model),
    }


def main(argv=None):
    """Measure and write the page."""
    pythons = ("--pythons", {"nargs": "+", "default": [sys.executable], "help": "their Python, one per environment"})
    options = common.arguments(__doc__, argv, pythons)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = make_ranking(20, 10, 5, random_state=0) if options.smoke else common.read("MQ2008")
        write_letor(folder / "train.txt", data)
        found = {}
        for number, python in enumerate(options.pythons):
            own = folder / str(number)
            own.mkdir()
            for label, action in actions(python, folder / "train.txt", own).items():
                action()  # the first run is not timed: it compiles bytecode and brings files into the page cache
                found[label, number] = action
        times = common.interleaved(found, 1 if options.smoke else 5)
        size = (folder / "train.txt").stat().st_size / 1e6
    labels = dict.fromkeys(label for label, _ in found)
    rows = [[label, *(common.summary(times[label, n]) for n in range(len(options.pythons)))] for label in labels]
    header = ["whole process", *(f"s, {python}" for python in options.pythons)]
    text = f"{data.n_rows} rows of {data.n_features} features, {size:.1f} MB of text. Least / median of the rounds."
    common.publish(common.page("Whole commands", "commands", options, [text, common.table(header, rows)]), options)


if __name__ == "__main__":
    main()
