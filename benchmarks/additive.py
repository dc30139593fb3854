"""Additive RankSVM: quality compared with boosted trees and other interpretable models, interactions, and speed.

python -m pip install --no-deps --target build/peers catboost interpret-core
python benchmarks/additive.py --cache build/additive.jsonl -o benchmarks/results/additive.md

This takes some hours, most of them for the grids of the other tools. Each result is stored in the cache, so that the
same command continues where it was stopped. CatBoost and EBM are left out if they are not installed. With
--data NAME=FOLDER, the files train, vali and test of a folder in LETOR's format (MSLR-WEB30K, Yahoo, Istella) are
measured and compared with published figures.
"""

import re
import sys
import time
import warnings
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _additive_data import parts_of, quality_sets
from _additive_methods import BAGS, HELD_OUT, PATIENCE, ROUNDS, Method, ours, peers
from _additive_planted import planted_section
from _additive_speed import speed_sections
from _additive_targets import target_sections
from _common import arguments, page, publish, table
from _pieces import Found, Pieces, Section
from _widening import Grid
from papers.data_sets import Parts
from ranksvm import metrics
from ranksvm.metrics import Evaluation

MEASURES = ("ndcg@10", "map")
CHOSEN_BY = "ndcg@10"

parts_in_memory = lru_cache(maxsize=6)(parts_of)


# -- quality -----------------------------------------------------------------------------------------------------------


class Tried(NamedTuple):
    """Metrics of a fitted setting on validation and test part, what the fit chose, and whether it ran out of rounds."""

    vali: Evaluation
    test: Evaluation
    chosen: str
    cut_off: bool


def evaluated(parts: Parts, fitted: Any) -> Tried:
    """Evaluate a fitted method."""
    vali, test = (
        metrics.evaluate(part.y, np.asarray(fitted.score(part.X)), part.qid, MEASURES)
        for part in (parts.vali, parts.test)
    )
    return Tried(vali, test, fitted.chosen, fitted.cut_off)


def one_fold(data: str, fold: int, method: Method, threads: int) -> dict[str, Any]:
    """For a fold: the metrics of the setting that is best on the validation part, and its position in the grid."""
    parts, started = parts_in_memory(data, fold), time.perf_counter()
    grid = Grid(method.axes, (CHOSEN_BY,))
    search = grid.climb if method.slow else grid.search
    search(lambda *values: evaluated(parts, method.fit(parts, threads, *values)), lambda tried: tried.vali.means)
    best = grid.best(CHOSEN_BY)
    tried = grid.found[best]
    inside = grid.where(best) if not tried.cut_off else "**no**: rounds"
    print(data, fold, grid.label(best), tried.chosen, inside, tried.vali.means, tried.test.means, file=sys.stderr)
    return {
        "setting": ", ".join(filter(None, (grid.label(best), tried.chosen))),
        "inside": inside,
        "searched": grid.ranges(),
        "n_settings": len(grid.found),
        "seconds": time.perf_counter() - started,
        "vali": tried.vali.means[CHOSEN_BY],
        "test": {name: np.round(values, 6).tolist() for name, values in tried.test.per_query.items()},
        # for choices over folds
        "grid": [
            [grid.label(place), round(each.vali.means[CHOSEN_BY], 6), *(round(each.test.means[m], 6) for m in MEASURES)]
            for place, each in grid.found.items()
        ],
    }


def quality_in_words(found: list[Found], absent: list[str]) -> list[str]:
    """The part of the page about quality."""
    parts = [
        "## Quality",
        "Settings are chosen by NDCG@10 on the validation part of each fold; figures are means over "
        "the test parts of the folds, by `ranksvm.metrics.evaluate` (gain 2^y - 1, equal scores averaged). LightGBM's "
        "example has one training and one test part: the last fifth of its training queries are the validation part. "
        "Features are as the files have them, zeros included. Grids are widened, fold by fold, until the best setting "
        "is inside, or has the least value that a parameter can have. Fits of CatBoost and EBM take longer: their "
        "search moves from the middle of the grid to the best neighbor along one parameter until no neighbor is better "
        "(CatBoost on MQ2008 and on fold 1 of MQ2007-partial: whole grids). LightGBM, XGBoost and CatBoost stop early "
        f"on the validation part ({PATIENCE} rounds without a gain of NDCG@10, up to {ROUNDS:,}); EBM learns the "
        f"labels as numbers and stops early in each of its {BAGS} bags, which hold out {HELD_OUT:.0%} of the queries. "
        "Differences are to the "
        "best of the other tools by the same measure on the same data, paired over the queries of all folds; p is of "
        "the randomization test, corrected for the rows of the table by Holm's procedure, **bold** below 0.05. "
        "`AdditiveRankSVMCV` has its own grid, which counts as one fit here. Every fit has one thread; the machine was "
        "shared, so that seconds say no more than where the time goes.",
    ]
    if absent:
        parts.append(f"Not installed here, so left out: {', '.join(absent)}.")
    by_data: dict[str, dict[str, list[Any]]] = {}
    for each in found:
        data, name, _ = each.key.split("/")
        by_data.setdefault(data, {}).setdefault(name, []).append(each.value)
    for data, rows in by_data.items():
        parts += [f"### {data}", table(QUALITY_HEADER, quality_rows(rows, absent))]
    return parts


QUALITY_HEADER = (
    *("method", "NDCG@10", "beside the best peer", "p", "MAP", "beside the best peer", "p"),
    *("searched in any fold", "inside", "fits", "s"),
)


def quality_rows(rows: dict[str, list[Any]], absent: list[str]) -> list[list[str]]:
    """The table of a data set."""
    evaluations = {name: joined(folds) for name, folds in rows.items()}
    of_peers = [name for name in rows if name in peers(False)]
    means = {
        name: [float(np.mean([np.mean(fold["test"][measure]) for fold in folds])) for measure in MEASURES]
        for name, folds in rows.items()
    }
    beside = {}
    for number, measure in enumerate(MEASURES):
        if not of_peers:
            continue
        best = max(of_peers, key=lambda name: means[name][number])
        others = [name for name in rows if name != best]
        tests = [metrics.compare(evaluations[best], evaluations[name], measure) for name in others]
        adjusted = metrics.adjust_p_values([test.p_value for test in tests])
        beside[measure] = {best: ("the best peer", "")} | {
            name: (f"{test.difference:+.4f}", f"**{p:.4f}**" if p < 0.05 else f"{p:.2f}")
            for name, test, p in zip(others, tests, adjusted, strict=True)
        }
    cells = []
    for name, folds in rows.items():
        row = [name]
        for number, measure in enumerate(MEASURES):
            row += [f"{means[name][number]:.4f}", *beside.get(measure, {}).get(name, ("", ""))]
        outside = [fold["inside"] for fold in folds if fold["inside"].startswith("**no")]
        inside = f"{len(folds) - len(outside)} of {len(folds)} folds" + (f" ({'; '.join(outside)})" if outside else "")
        n_settings, taken = (sum(fold[key] for fold in folds) for key in ("n_settings", "seconds"))
        row += [widest([fold["searched"] for fold in folds]), inside, f"{n_settings}", f"{taken:.0f}"]
        cells.append(row)
    left = {name: "not installed" if name in absent else "not measured" for name in peers(False) if name not in rows}
    return cells + [[name, why, *[""] * (len(QUALITY_HEADER) - 2)] for name, why in left.items()]


def widest(ranges: list[str]) -> str:
    """The ranges from the smallest to the largest value that was tried in any fold."""
    ends = np.array([re.findall(r"\((\S+) to (\S+)\)", each) for each in ranges], dtype=float)
    together = iter(zip(ends[..., 0].min(axis=0), ends[..., 1].max(axis=0), strict=True)) if ends.size else iter(())
    return re.sub(r"\(\S+ to \S+\)", lambda _: "({:g} to {:g})".format(*next(together)), ranges[0])


def joined(folds: list[Any]) -> Evaluation:
    """The test queries of all folds as one evaluation."""
    values = {name: np.concatenate([fold["test"][name] for fold in folds]) for name in MEASURES}
    n_queries = len(values[CHOSEN_BY])
    means = {name: float(each.mean()) for name, each in values.items()}
    return Evaluation(
        means, values, {name: np.ones(n_queries) for name in MEASURES}, np.arange(n_queries), 0, 0, "default"
    )


# -- the page ----------------------------------------------------------------------------------------------------------


def sections(options: Any) -> list[Section]:
    """The sections of the page, with their measurements."""
    smoke, rivals, models = options.smoke, peers(options.smoke), ours(options.smoke)
    absent = [name for name, method in rivals.items() if method is None]
    quality = {
        f"{data}/{name}/fold {fold}": partial(one_fold, data, fold, method, options.threads)
        for data, folds in quality_sets(smoke).items()
        for name, method in {**rivals, **models}.items()
        if method is not None
        for fold in folds
    }
    return [
        Section("quality", quality, partial(quality_in_words, absent=absent)),
        planted_section(smoke),
        *speed_sections(smoke),
        *target_sections(options.data, smoke),
    ]


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
        (
            "--data",
            {"action": "append", "default": [], "help": "NAME=FOLDER with train, vali and test, LETOR's format"},
        ),
        ("--threads", {"type": int, "default": 1, "help": "threads of the fits whose quality is measured (default 1)"}),
    )
    warnings.simplefilter("ignore")
    found, pieces = sections(options), Pieces(options.cache)
    pieces.measure(found, options.only)
    packages = ("xgboost-cpu", "lightgbm", "catboost", "interpret-core")
    publish(page("Additive RankSVM", "additive", options, pieces.parts(found), *packages), options)


if __name__ == "__main__":
    main()
