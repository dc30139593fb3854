"""Compare times of fits with the published solver and an earlier revision, each with the loosest sufficient tolerance.

The distance of weights w is (f(w) - f*) / f*, with f in float64 from the published solver's own sums (which are tested
against explicit pairs) and f* the lowest value found, by a fit with a relative duality gap of 1e-12 or by a trace.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import interleaved, seconds
from _earlier import Earlier
from _published_tron import DEFAULT_EPS, MIN_EPS, PublishedProblem
from ranksvm import RankingData, RankSVM

DEFAULT_TOL, TIGHT_TOL = 1e-4, 1e-12
TOLS = 10.0 ** -np.arange(0.0, 9.25, 0.25)
# Objectives with a smaller relative difference count as equal: the round-off of float64 sums can be as large.
SAME = 1e-10
CLOSE = 1e-5
# Seconds that the rounds of a comparison may take, and the smallest and largest number of rounds.
BUDGET, FEWEST, MOST = 25.0, 3, 15


def fitted(data: RankingData, C: float, **options: Any) -> RankSVM:
    """Fit a `RankSVM`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RankSVM(C=C, **options).fit(data.X, data.y, qid=data.qid)


class Rivals:
    """The solvers on one problem, and the settings with which they reach a given distance from the optimum.

    Parameters
    ----------
    data : RankingData
        Rows, labels and queries.
    C : float
        Weight of a pair.
    before : Path, optional
        Checkout of an earlier revision.
    """

    def __init__(self, data: RankingData, C: float, before: Path | None = None):
        self.data, self.C = data, C
        self.earlier = None if before is None else Earlier(before, data)
        self.problem = PublishedProblem(data)
        self.trace = self.problem.fit(C, eps=MIN_EPS)
        self.exact = fitted(data, C, tol=TIGHT_TOL)
        self.optimum = min(self.problem.value(C, self.exact.coef_), self.trace.values.min())

    def distance(self, value: float) -> float:
        """The relative distance of an objective from the optimum."""
        return max(value / self.optimum - 1.0, 0.0)

    def published_steps(self, distance: float) -> int | None:
        """Fewest steps with which the published solver reaches this distance; no value of its eps needs fewer."""
        close = np.flatnonzero(self.trace.values <= self.optimum * (1.0 + max(distance, SAME)))
        return int(close[0]) if len(close) else None

    def loosest_tol(self, distance: float, fit: Callable[[float], np.ndarray]) -> tuple[float, float] | None:
        """Largest tol with which fits reach this distance, and the distance that they then have."""
        for tol in TOLS:
            reached = self.distance(self.problem.value(self.C, fit(float(tol))))
            if reached <= max(distance, SAME):
                return float(tol), reached
        return None

    def our_tol(self, distance: float) -> tuple[float, float] | None:
        """The largest tol for `RankSVM`, and its distance."""
        return self.loosest_tol(distance, lambda tol: fitted(self.data, self.C, tol=tol).coef_)

    def earlier_tol(self, distance: float) -> float | None:
        """The largest tol for the earlier revision, if there is one and it reaches the distance."""
        earlier = self.earlier
        found = earlier and self.loosest_tol(distance, lambda tol: earlier.fit(self.C, tol))
        return found[0] if found else None

    def compare(self) -> dict[str, dict[str, Any]]:
        """Alternating times for three accuracies: of the published default, 1e-5, and of our default."""
        default_steps = int(np.flatnonzero(self.trace.gradients <= DEFAULT_EPS)[0])
        ours = self.distance(self.problem.value(self.C, fitted(self.data, self.C).coef_))
        targets = {
            "default": (self.distance(self.trace.values[default_steps]), default_steps, None),
            "1e-5": (CLOSE, None, None),
            "ours": (ours, None, (DEFAULT_TOL, ours)),
        }
        settings, actions = {}, {}
        for name, (distance, steps, tol) in targets.items():
            steps = self.published_steps(distance) if steps is None else steps
            tol = self.our_tol(distance) if tol is None else tol
            if steps is None or tol is None:
                continue
            earlier = self.earlier_tol(distance)
            settings[name] = (distance, steps, *tol, earlier)
            actions[f"published {steps}"] = lambda s=steps: self.problem.fit(self.C, eps=0.0, max_iter=s)
            for threads in (1, None):
                actions[f"ours {tol[0]} {threads}"] = lambda t=tol[0], n=threads: fitted(
                    self.data, self.C, tol=t, n_jobs=n
                )
                if earlier is not None:
                    key = f"earlier {earlier} {threads}"
                    actions[key] = lambda t=earlier, n=threads, k=key: self.earlier.fit(self.C, t, n, k)
        once = sum(seconds(action) for action in actions.values())
        times = interleaved(actions, int(np.clip(BUDGET / once, FEWEST, MOST)))
        for name in times:
            if name.startswith("earlier"):  # replace by times that exclude the communication between processes
                times[name] = self.earlier.times(name)
        if self.earlier is not None:
            self.earlier.close()
        return {name: self._result(times, *setting) for name, setting in settings.items()}

    def _result(self, times, distance, steps, tol, reached, earlier) -> dict[str, Any]:
        def least_and_median(name):
            return [float(times[name].min()), float(np.median(times[name]))]

        found = {
            "distance": distance,
            "steps": steps,
            "published_distance": self.distance(self.trace.values[steps]),
            "tol": tol,
            "our_distance": reached,
            "published": least_and_median(f"published {steps}"),
            "one": least_and_median(f"ours {tol} 1"),
            "all": least_and_median(f"ours {tol} None"),
            "rounds": len(times[f"published {steps}"]),
            "solver": self.exact.solver_,
        }
        if earlier is not None:
            before = {"one": f"earlier {earlier} 1", "all": f"earlier {earlier} None"}
            found["before"] = {threads: least_and_median(name) for threads, name in before.items()}
        return found
