"""When might low rank help? Few training queries, wrong labels, noisy queries, and documents that are nearly copies.

python benchmarks/low_rank_settings.py --cache CACHE -o benchmarks/results/low_rank_settings.md
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from _common import arguments, page, publish, table
from _low_rank_data import COPIES, FOLDS, REAL, TINY, parts_of
from papers.xu_2019.models import MODELS
from papers.xu_2019.quality import PLAIN, SIGNIFICANT, Choices
from papers.xu_2019.search import MEASURES, Search
from ranksvm.exceptions import RankSVMError

# Changes of a data set, as in names of data, with their descriptions.
CHANGES = {
    "queries 0.1": "a tenth of the training queries",
    "queries 0.1; validation 0.3": "a tenth of the training queries, and about as many for validation",
    "queries 0.2": "a fifth of the training queries",
    "labels 0.3": "labels of 30 % of the documents of each training query shuffled among them",
    "labels 0.6": "labels of 60 % of the documents of each training query shuffled among them",
    "noisy-queries 0.3": "all labels of 30 % of the training queries shuffled",
    "queries 0.2; labels 0.3": "a fifth of the training queries, labels of 30 % of their documents shuffled",
}
# Number of random draws of the queries and of the noise in each fold.
DRAWS = 3
# Fewer candidates than on other pages, because there are many settings.
CANDIDATES = 10
COMPARED = ("plain", "hinge", "refitted", "factorized", "factorized-wide", "regularized", "regularized-wide")
OURS = ("factorized", "factorized-wide", "regularized", "regularized-wide")
SHOWN = ("map", "ndcg@5")


class Win(NamedTuple):
    """A significant gain over the plain model, and the difference from the exact hinge model."""

    setting: str
    model: str
    measure: str
    difference: float
    p_value: float
    over_hinge: float


def setting_part(choices: Choices, name: str, said: str) -> tuple[list[str], list[Win], int]:
    """The table of a setting, its significant gains, and the number of comparisons."""
    rows, wins, compared = [], [], 0
    best = np.max([choices.of_folds(model).mean(axis=0) for model in choices.models], axis=0)
    for model in choices.models:
        means = choices.of_folds(model).mean(axis=0)
        cells = []
        for measure in SHOWN:
            place = MEASURES.index(measure)
            cells.append(f"**{means[place]:.4f}**" if means[place] == best[place] else f"{means[place]:.4f}")
            if model == PLAIN:
                cells.append("")
                continue
            test = choices.comparison(model, measure)
            cells.append(f"{test.difference:+.4f}, p = {test.p_value:.3f}")
            if model in OURS:
                compared += 1
                if test.p_value <= SIGNIFICANT:
                    over_hinge = choices.comparison(model, measure, "hinge").difference
                    wins.append(Win(name, model, measure, test.difference, test.p_value, over_hinge))
        rows.append([MODELS[model].label, *cells])
    header = ["model"]
    for measure in SHOWN:
        header += [f"test {measure.upper()}", "less plain"]
    return [f"## {name}", f"{said[0].upper()}{said[1:]}.", table(header, rows)], wins, compared


def summary_part(wins: list[Win], compared: int) -> list[str]:
    """A summary of all results."""
    better = [win for win in wins if win.difference > 0]
    rows = [
        (
            win.setting,
            MODELS[win.model].label,
            win.measure.upper(),
            f"{win.difference:+.4f}",
            f"{win.p_value:.4f}",
            f"{win.over_hinge:+.4f}",
        )
        for win in sorted(wins, key=lambda win: win.p_value)
    ]
    found = (
        f"Of {compared} comparisons of a low-rank model with {MODELS[PLAIN].label} (settings x models x measures), "
        f"{len(better)} are significantly better, {sum(win.over_hinge > 0 for win in better)} of which are also above "
        f"the exact hinge model, and {len(wins) - len(better)} significantly worse, at p <= {SIGNIFICANT:g}. Where "
        f"there is no difference, about {SIGNIFICANT * compared / 2:.0f} of either are to be expected by chance."
    )
    header = ["setting", "model", "measure", "less plain", "p", "less exact hinge"]
    return ["## What came of it", found, table(header, rows)]


def choices_of(text: str, known: Iterable[str]) -> list[str]:
    """Parse names separated by commas; the program ends if one is unknown."""
    names = text.split(",")
    if wrong := [name for name in names if name not in known]:
        sys.exit(f"There is no {wrong[0]!r}: there are {', '.join(known)}.")
    return names


def report(options) -> str:
    """The page."""
    if options.smoke:
        options.candidates, options.processes, options.draws = 2, 0, 2
    search = Search(
        parts_of,
        n_candidates=options.candidates,
        metric=options.metric,
        n_processes=options.processes,
        limit=options.seconds,
        cache=options.cache,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    folds = [1, 2] if options.smoke else list(FOLDS)
    models = choices_of(options.models, MODELS)
    bases = [TINY] if options.smoke else choices_of(options.data, REAL)
    changes = ["queries 0.2"] if options.smoke else list(CHANGES)
    said = {f"{base}; {change}": f"{base} with {CHANGES[change]}" for base in bases for change in changes}
    draws = {name: [f"{name}; draw {number}" for number in range(1, options.draws + 1)] for name in said}
    draws[COPIES] = [COPIES]
    said[COPIES] = (
        "made queries of 40 documents that are near copies of 5, 60 features, 20 training queries; a third of the "
        "labels are drawn anew, in the validation part too"
    )
    try:
        search.complete(
            [task for names in draws.values() for name in names for task in search.tasks(name, folds, models)]
        )
    except RankSVMError as error:
        sys.exit(str(error))
    parts, wins, compared = [], [], 0
    for name, names in draws.items():
        part, of_setting, number = setting_part(Choices(search, names, folds, models), name, said[name])
        parts += part
        wins += of_setting
        compared += number
    introduction = (
        "The training part is changed, the validation part only where it is said, the test part never. As in "
        f"`python benchmarks/reproduce.py xu-2019 quality`, of {options.candidates} random candidates of each model in "
        f"each fold the one with the best {options.metric.upper()} on the validation part is taken; means over the "
        f"folds, and over {options.draws} draws of the queries and of the noise in each; paired randomization tests "
        'over all test queries, of their means over the draws. "Any C" draws C from the range of the plain model, not '
        "from the range of the paper. "
        '"Refitted" is the plain model whose chosen C is fitted again to training and validation part together.'
    )
    title = "Low-rank RankSVM where it might help"
    return page(title, "low_rank_settings", options, [introduction, *summary_part(wins, compared), *parts])


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--data", {"default": ",".join(REAL), "help": "data sets, separated by commas"}),
        ("--models", {"default": ",".join(COMPARED), "help": f"models, separated by commas, of {', '.join(MODELS)}"}),
        ("--draws", {"type": int, "default": DRAWS, "help": "of queries and noise in each fold"}),
        ("--cache", {"type": Path, "help": "file of fits done by this version, read and added to"}),
        ("--seconds", {"type": float, "default": np.inf, "help": "begin no fit after so many; the next run goes on"}),
        ("--candidates", {"type": int, "default": CANDIDATES, "help": "budget of each model in each fold"}),
        ("--metric", {"choices": MEASURES, "default": "map", "help": "what chooses and stops"}),
        ("--processes", {"type": int, "default": 2, "help": "fits at a time; 0: one, in this process"}),
    )
    publish(report(options), options)


if __name__ == "__main__":
    main()
