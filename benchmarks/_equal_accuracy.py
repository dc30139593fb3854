"""Fits beside those of the published solver and of an earlier revision, each as loose as accuracy admits.

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
from _published_tron import DEFAULT_EPS, LEAST_EPS, PublishedProblem
from ranksvm import RankingData, RankSVM

DEFAULT_TOL, TIGHT_TOL = 1e-4, 1e-12
TOLS = 10.0 ** -np.arange(0.0, 9.25, 0.25)
# Objectives nearer than this are not told apart: float64 sums of very many terms differ by as much.
SAME = 1e-10
CLOSE = 1e-5
# Seconds that the rounds of a comparison may take, and the least and largest number of them.
BUDGET, FEWEST, MOST = 25.0, 3, 15


def fitted(data: RankingData, C: float, **options: Any) -> RankSVM:
    """A fit of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return RankSVM(C=C, **options).fit(data.X, data.y, qid=data.qid)


class Rivals:
    """The solvers on one problem, and how close they come with which setting.

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
        self.trace = self.problem.fit(C, eps=LEAST_EPS)
        self.exact = fitted(data, C, tol=TIGHT_TOL)
        self.optimum = min(self.problem.value(C, self.exact.coef_), self.trace.values.min())

    def distance(self, value: float) -> float:
        """How much more than the optimum an objective is, relative to it."""
        return max(value / self.optimum - 1.0, 0.0)

    def published_steps(self, distance: float) -> int | None:
        """Fewest steps with which the published solver comes so close: kinder to it than any value of its eps."""
        close = np.flatnonzero(self.trace.values <= self.optimum * (1.0 + max(distance, SAME)))
        return int(close[0]) if len(close) else None

    def loosest_tol(self, distance: float, fit: Callable[[float], np.ndarray]) -> tuple[float, float] | None:
        """Loosest tol with which fits come so close, and how close they then are."""
        for tol in TOLS:
            reached = self.distance(self.problem.value(self.C, fit(float(tol))))
            if reached <= max(distance, SAME):
                return float(tol), reached
        return None

    def our_tol(self, distance: float) -> tuple[float, float] | None:
        """That of ours."""
        return self.loosest_tol(distance, lambda tol: fitted(self.data, self.C, tol=tol).coef_)

    def earlier_tol(self, distance: float) -> float | None:
        """That of the earlier revision, if there is one that can do it."""
        earlier = self.earlier
        found = earlier and self.loosest_tol(distance, lambda tol: earlier.fit(self.C, tol))
        return found[0] if found else None

    def compare(self) -> dict[str, dict[str, Any]]:
        """Times in turns, for three accuracies: the published default, 1e-5, and our default."""
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
            if name.startswith("earlier"):  # without what it takes to ask for it
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
