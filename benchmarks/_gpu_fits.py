"""Fits that `gpu.py` times on a GPU and on the CPU, each with X already on its processor."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from _common import least_seconds, seconds
from _gpu_cases import Case, chosen_cost
from _gpu_checks import streaming
from _gpu_device import READ_X, Spent, TimedDevice, launch_seconds
from _problems import linear_problem_of
from ranksvm import RankingData, RankSVM
from ranksvm._util.threads import available_cpus
from ranksvm.device import DeviceArray, names, open_device
from ranksvm.fits.linear import LinearProblem
from ranksvm.metrics import evaluate
from ranksvm.terms.device.layout import STREAM_BYTES

# Tolerances in the figure, and the tolerance in the tables.
TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
CERTIFIED = 1e-4
# A fit that takes longer is not repeated.
LONG = 1.0
EVALUATIONS = 10
TIMED = "timed"


@dataclass(frozen=True)
class Place:
    """Where a fit runs: the device's name, and the number of threads."""

    name: str
    device: str
    n_jobs: int | None


@dataclass
class Curve:
    """Seconds, objectives and certificates of fits at several tolerances."""

    tols: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    def at(self, tol: float) -> tuple[float, float, float]:
        """Seconds, objective and certificate at one tolerance."""
        place = self.tols.index(tol)
        return self.seconds[place], self.objectives[place], self.gaps[place]


@dataclass
class Measured:
    """The measurements for a data set and a C."""

    case: Case
    data: RankingData
    C: float
    tuned: bool
    curves: dict[str, Curve] = field(default_factory=dict)
    whole: dict[str, float] = field(default_factory=dict)
    accuracy: dict[str, float] = field(default_factory=dict)
    there: float = np.nan
    copy: float = np.nan
    evaluation: float = np.nan
    visits: float = np.nan
    streamed: float = np.nan
    auto: tuple[str, float] = ("", np.nan)
    published_recipe: tuple[float, float] = (np.nan, np.nan)
    profile: dict[str, Spent] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The data and C, as text."""
        return f"{self.case.name}, C = {'2^' if self.tuned else ''}{np.log2(self.C) if self.tuned else self.C:g}"

    @property
    def optimum(self) -> float:
        """The lowest objective that any fit found."""
        return min(min(curve.objectives) for curve in self.curves.values())

    @property
    def passes(self) -> float:
        """How many times a fit read X."""
        return sum(self.profile[kernel].n_bytes for kernel in READ_X if kernel in self.profile) / self.data.X.nbytes


class OnDevice:
    """An array on a GPU, with the interface of other libraries' arrays."""

    def __init__(self, array: DeviceArray):
        self.array = array
        place = {"data": (array.pointer, False), "shape": array.shape, "typestr": array.dtype.str}
        self.__cuda_array_interface__ = {**place, "strides": None, "version": 3}


def places(device: str) -> list[Place]:
    """The device, and the CPU with two threads and with all threads."""
    cores = available_cpus()
    found = [Place("GPU", device, None), Place("2 threads", "cpu", 2)]
    return found if cores <= 2 else [*found, Place(f"{cores} threads", "cpu", None)]


def measured(case: Case, device: str, repeats: int) -> Iterator[Measured]:
    """Measure a data set with C = 1, and with a C chosen by validation."""
    data = case.load()
    for tuned in (False, True):
        one = Measured(case, data, chosen_cost(data) if tuned else 1.0, tuned)
        measure(one, device, repeats)
        yield one


def measure(one: Measured, device: str, repeats: int) -> None:
    """Run all measurements for a data set and a C."""
    data = one.data
    for place in places(device):
        ranker = RankSVM(C=one.C, device=place.device, n_jobs=place.n_jobs)
        problem = linear_problem_of(ranker, data)
        one.curves[place.name] = curve(problem, one.C, repeats)
        if place.device != "cpu":
            one.copy = copy_seconds(problem, data.X)
            one.evaluation = evaluation_seconds(problem)
            one.visits = 2.0 * float(problem.objective.term.loss.pairs.pairs_per_query.sum())
            with streaming(STREAM_BYTES):
                through = linear_problem_of(ranker, data)
            one.streamed = evaluation_seconds(through)
            del through
        del problem
        one.whole[place.name] = least_seconds(
            lambda ranker=ranker: ranker.fit(data.X, data.y, qid=data.qid), repeats, LONG
        )
        found = evaluate(data.y, ranker.predict(data.X), data.qid, ["pairwise_accuracy"])
        one.accuracy[place.name] = 100.0 * found["pairwise_accuracy"]
    if device.startswith("cuda"):
        X = OnDevice(open_device(device).copy_in(data.X))
        ranker = RankSVM(C=one.C, device=device)
        one.there = least_seconds(lambda: ranker.fit(X, data.y, qid=data.qid), repeats, LONG)
        del X
    auto = RankSVM(C=one.C, device="auto")
    taken = least_seconds(lambda: auto.fit(data.X, data.y, qid=data.qid), repeats, LONG)
    one.auto = str(auto.device_), taken
    recipe = RankSVM(C=one.C, solver="tron", stopping="gradient", tol=1e-5, device=device)
    taken = least_seconds(lambda: recipe.fit(data.X.astype(np.float32), data.y, qid=data.qid), repeats, LONG)
    one.published_recipe = taken, recipe.objective_ / one.optimum - 1.0
    one.profile = profile(one, device)


def curve(problem: LinearProblem, C: float, repeats: int) -> Curve:
    """Time fits at every tolerance, after an untimed fit that does the work which later fits share."""
    found = Curve()
    for tol in (TOLS[0], *TOLS):
        problem.tol = tol
        results: list[Any] = []
        taken = least_seconds(lambda results=results: results.append(problem.solve(C)), repeats, LONG)
        if tol in found.tols:
            found = Curve()
        found.tols.append(tol)
        found.seconds.append(taken)
        found.objectives.append(float(results[-1].value))
        found.gaps.append(float(results[-1].gap))
    return found


def copy_seconds(problem: LinearProblem, X: np.ndarray) -> float:
    """Seconds to copy X to the device."""
    device = problem.objective.term.device

    def copy() -> None:
        device.copy_in(X, n_threads=available_cpus())
        device.synchronise()

    return min(seconds(copy) for _ in range(3))


def evaluation_seconds(problem: LinearProblem) -> float:
    """Seconds to evaluate value and gradient, including the copies of weights to the device and of sums back."""
    term, times = problem.objective.term, []
    for turn in range(EVALUATIONS + 1):
        w = np.full(term.n_variables, 0.01 * (turn + 1))
        started = time.perf_counter()
        term.release(term.evaluate(w, problem.loss.first_width))
        times.append(time.perf_counter() - started)
    return float(np.median(times[1:]))


def profile(one: Measured, device: str) -> dict[str, Spent]:
    """Time of every kernel in a fit with the default tolerance, measured by waiting for each launch."""
    timed = TimedDevice(open_device(device))
    names.OPENERS[TIMED] = lambda _number: timed  # type: ignore[assignment]
    ranker = RankSVM(C=one.C, device=TIMED, tol=CERTIFIED)
    data = one.data
    problem = linear_problem_of(ranker, data)
    timed = problem.objective.term.device
    timed.spent.clear()
    problem.solve(one.C)
    spent = dict(timed.spent)
    empty = launch_seconds(timed.device)
    for found in spent.values():
        found.seconds = max(found.seconds - found.launches * empty, 0.0)
    return spent
