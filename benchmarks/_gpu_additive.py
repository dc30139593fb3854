"""Additive models on a device and on the CPU, which `gpu.py` times."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from _common import data_folder, least_seconds, read
from _gpu_cases import REAL, made
from _gpu_device import Spent, TimedDevice, launch_seconds
from _gpu_fits import LONG, TIMED, evaluation_seconds, places
from _problems import additive_problem_of
from ranksvm import AdditiveRankSVM, RankingData, make_ranking
from ranksvm.device import names, open_device

SEED = 0


@dataclass
class AdditiveFit:
    """Times of a fit on each processor, and the kernels of the fit on the device."""

    name: str
    shape: tuple[int, int]
    options: dict[str, object]
    whole: dict[str, float] = field(default_factory=dict)
    solver: dict[str, float] = field(default_factory=dict)
    evaluation: dict[str, float] = field(default_factory=dict)
    objectives: dict[str, float] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)
    levels: float = np.nan
    bytes: float = np.nan
    profile: dict[str, Spent] = field(default_factory=dict)


def additive_fits(device: str, smoke: bool, repeats: int) -> Iterator[AdditiveFit]:
    """Time additive models of small real data, and of generated data of the shape of MSLR-WEB10K."""
    for name, load, many in _cases(smoke):
        data = load()
        for options in many:
            found = AdditiveFit(name, data.X.shape, options)
            for place in places(device):
                ranker = AdditiveRankSVM(**options, device=place.device, n_jobs=place.n_jobs)
                fit = partial(ranker.fit, data.X, data.y, qid=data.qid)
                if place.device != "cpu":
                    fit()  # compiles the kernels
                found.whole[place.name] = least_seconds(fit, repeats, LONG)
                started = time.perf_counter()
                problem = additive_problem_of(ranker, data)
                found.levels = time.perf_counter() - started
                started = time.perf_counter()
                problem.solve(ranker.C)
                found.solver[place.name] = time.perf_counter() - started
                found.evaluation[place.name] = evaluation_seconds(problem)
                found.bytes = problem.objective.term.n_rows * problem.objective.term.row_bytes
                found.objectives[place.name], found.gaps[place.name] = ranker.objective_, ranker.duality_gap_
                del problem
            found.profile = _profile(options, data, device)
            yield found


def _cases(smoke: bool) -> list[tuple[str, Callable[[], RankingData], list[dict[str, object]]]]:
    """Name of the data, a function that loads them, and the options of each fit."""
    if smoke:
        return [("tiny", lambda: make_ranking(12, 15, 10, random_state=SEED), [{"interactions": [(0, 1)]}])]
    found = []
    for shape, name in REAL.items():
        folder = data_folder()
        real = folder is not None and (folder / name).is_dir()
        load = (lambda name=name: read(name)) if real else (lambda shape=shape: made(shape))
        found.append((f"{name} fold 1" if real else f"{shape}'s shape, made", load, [{"max_bins": 16, "C": 1.0}]))
    return [*found, ("MSLR-WEB10K's shape, made", lambda: made("MSLR-WEB10K"), [{"C": 0.001}, {"C": 1.0}])]


def _profile(options: dict[str, object], data: RankingData, device: str) -> dict[str, Spent]:
    """Time of every kernel in a fit, measured by waiting for each launch."""
    timed = TimedDevice(open_device(device))
    names.OPENERS[TIMED] = lambda _number: timed  # type: ignore[assignment]
    problem = additive_problem_of(AdditiveRankSVM(**options, device=TIMED), data)
    timed = problem.objective.term.device
    timed.spent.clear()
    problem.solve(float(str(options.get("C", 1.0))))
    spent = dict(timed.spent)
    empty = launch_seconds(timed.device)
    for found in spent.values():
        found.seconds = max(found.seconds - found.launches * empty, 0.0)
    return spent
