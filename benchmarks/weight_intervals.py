"""Coverage of the intervals of weights, by repeated sampling from populations, and times compared with a bootstrap.

python benchmarks/weight_intervals.py -o benchmarks/results/weight_intervals.md

``--only`` measures the settings whose names contain a text; with ``--cache``, the page contains the other settings from
an earlier run.
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from _common import arguments, page, publish, table
from _pieces import Found, Pieces, Section
from ranksvm import RankSVM
from ranksvm.analysis import weight_intervals
from ranksvm.exceptions import NoIntervalsError

# Number of largest weights whose coverage is also counted separately, and the size of the sample that represents the
# population, relative to a data set.
N_LARGEST, N_TIMES = 20, 25
REFITS = 200


@dataclass(frozen=True)
class Population:
    """A population of queries: each query has its own weights, which vary around the weights of the population.

    Parameters
    ----------
    n_queries, n_docs, n_features : int
        Size of a data set drawn from it.
    C : float
        Weight of a pair.
    levels : int
        Number of labels.
    correlation : float
        Correlation of any two features.
    loss : str
        The loss.
    """

    n_queries: int
    n_docs: int
    n_features: int
    C: float
    levels: int = 5
    correlation: float = 0.0
    loss: str = "squared_hinge"

    @property
    def name(self) -> str:
        """Rows, features, C, and unusual properties, as text."""
        more = [f"{self.levels} labels"] * (self.levels != 5) + [self.loss] * (self.loss != "squared_hinge")
        more += [f"correlation {self.correlation:g}"] * (self.correlation > 0.0)
        size = f"{self.n_queries * self.n_docs:,} x {self.n_features:,} ({self.n_queries} queries), C = {self.C:g}"
        return ", ".join([size, *more])

    def draw(self, n_queries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw ``n_queries`` queries: features, labels and query ids."""
        weights = np.random.default_rng(0).normal(size=self.n_features)
        random = np.random.default_rng([1, seed])
        own = weights + 0.5 * random.normal(size=(n_queries, self.n_features))
        qid = np.repeat(np.arange(n_queries), self.n_docs)
        X = random.normal(size=(len(qid), self.n_features))
        if self.correlation:
            shared = random.normal(size=(len(qid), 1))
            X = np.sqrt(1.0 - self.correlation) * X + np.sqrt(self.correlation) * shared
        scale = np.sqrt(self.n_features)
        value = np.einsum("ij,ij->i", X, own[qid]) / scale + random.normal(size=len(qid))
        shares = np.linspace(0.5, 0.97, self.levels - 1) if self.levels > 2 else [0.8]
        return X, np.digitize(value, 1.5 * norm.ppf(shares)), qid

    def ranker(self, C: float, tol: float = 1e-8) -> RankSVM:
        """The unfitted ranker."""
        return RankSVM(C=C, loss=self.loss, tol=tol, max_iter=5000, n_jobs=1)


SETTINGS = (
    Population(100, 20, 15, 0.01),
    Population(15, 20, 15, 0.1),
    Population(100, 20, 136, 0.01),
    Population(100, 20, 136, 1.0),
    Population(100, 20, 136, 0.01, correlation=0.5),
    Population(50, 20, 136, 0.1, levels=2),
    Population(50, 20, 136, 0.1, loss="hinge"),
    Population(50, 8, 1000, 0.1, loss="hinge"),
    Population(100, 8, 136, 0.1),
    Population(40, 20, 500, 0.001),
    Population(40, 20, 500, 0.1),
    Population(40, 20, 2000, 0.0001),
    Population(40, 20, 2000, 0.125),
)


def measured(population: Population, smoke: bool) -> dict[str, Any]:
    """Measure coverage and times in one setting."""
    n_sets, n_booted, n_refits = (4, 1, 3) if smoke else (100, 4, 40)
    tol = 1e-5 if population.loss == "hinge" else 1e-8
    coefs, errors, halves, interactions, seconds, reasons = [], [], [], [], 0.0, []
    for seed in range(n_sets):
        X, y, qid = population.draw(population.n_queries, seed)
        ranker = population.ranker(population.C, tol)
        coefs.append(ranker.fit(X, y, qid=qid).coef_)
        started = time.perf_counter()
        try:
            found = weight_intervals(ranker, X, y, qid, tol=tol, n_jobs=1)
        except NoIntervalsError as error:
            reasons.append(str(error))
            continue
        finally:
            seconds += time.perf_counter() - started
        errors.append(found.standard_errors)
        halves.append(found.interval()[1] - found.coef)
        interactions.append(found.interaction)
    seconds /= n_sets
    centers = {"mean": np.mean(coefs, axis=0), "minimizer": _minimizer(population, smoke)}
    booted, refit_seconds = _bootstrap(population, n_booted, n_refits, tol)
    found = {"refused": len(reasons), "sets": n_sets, "seconds": seconds, "ratio": REFITS * refit_seconds / seconds}
    largest = np.argsort(-np.abs(centers["minimizer"]))[:N_LARGEST]
    for center, value in centers.items():
        for weights, chosen in (("all", slice(None)), ("largest", largest)):
            key = f"{center}, {weights}"
            found[f"bootstrap: {key}"] = _share([(low, high, value) for low, high in booted], chosen)
            if not reasons:
                ends = [(w - half, w + half, value) for w, half in zip(coefs, halves, strict=True)]
                found[key] = _share(ends, chosen)
    if not reasons:
        found["error"] = float(np.sqrt(np.mean(np.square(errors)) / np.var(coefs, axis=0, ddof=1).mean()))
        found["interaction"] = float(np.mean(interactions))
    return found


def _minimizer(population: Population, smoke: bool) -> np.ndarray:
    """The minimizer of the expected objective, from a large sample with the same total weight of the pairs."""
    times = 2 if smoke else N_TIMES
    X, y, qid = population.draw(times * population.n_queries, 10**6)
    return population.ranker(population.C / times, 1e-6).fit(X.astype(np.float32), y, qid=qid).coef_


def _bootstrap(population: Population, n_sets: int, n_refits: int, tol: float) -> tuple[list[Any], float]:
    """Percentile intervals from refits to queries drawn with replacement, and seconds of a refit."""
    found, seconds = [], 0.0
    for seed in range(n_sets):
        X, y, qid = population.draw(population.n_queries, seed)
        ranker = population.ranker(population.C, tol).fit(X, y, qid=qid).set_params(warm_start=True)
        random, refits = np.random.default_rng(seed), []
        started = time.perf_counter()
        for _ in range(n_refits):
            drawn = random.integers(population.n_queries, size=population.n_queries)
            times = np.bincount(drawn, minlength=population.n_queries).astype(float)
            refits.append(ranker.fit(X, y, qid=qid, query_weight=times[qid]).coef_)
        seconds += (time.perf_counter() - started) / (n_sets * n_refits)
        found.append(np.quantile(refits, [0.025, 0.975], axis=0))
    return found, seconds


def _share(intervals: list[Any], chosen: Any) -> float:
    """Percentage of the chosen weights that are in their intervals."""
    return 100.0 * float(np.mean([((low <= value) & (value <= high))[chosen] for low, high, value in intervals]))


def _rendered(found: list[Found]) -> list[str]:
    keys = [f"{center}, {weights}" for center in ("mean", "minimizer") for weights in ("all", "largest")]
    coverage, before = [], []
    for one in found:
        values = one.value
        shown = [f"{values[key]:.1f}" if key in values else "refused" for key in keys]
        error = [f"{values['error']:.2f}", f"{values['interaction']:.2f}"] if "error" in values else ["", ""]
        coverage.append([one.key, *shown, *error])
        times = [f"{1e3 * values['seconds']:.0f}", f"{values['ratio']:.0f}"]
        before.append([one.key, *(f"{values[f'bootstrap: {key}']:.1f}" for key in keys), *times])
    head = [*(f"{center}, {weights}" for center in ("expected", "minimizer") for weights in ("all", "20 largest"))]
    n_sets = found[0].value["sets"]
    return [
        "## Coverage\n\nPercentage of the 95 % intervals of `ranksvm.analysis.weight_intervals` that contain the "
        f"expected weight (mean of {n_sets} fits to as many data sets), which they are for, and the minimizer of the "
        f"expected objective (fit to {N_TIMES} times as many queries with C in proportion): of all weights, and of the "
        "20 that are largest in the minimizer. Standard error: relative to the standard deviation over the data sets. "
        "Interaction: variance by pairs of queries relative to the jackknife's; from 3 on there are no intervals, and "
        "an error says so. Goal: 92 to 97 % of the expected weights.\n\n"
        + table(["rows x features", *head, "standard error", "interaction"], coverage),
        f"## Beside a bootstrap\n\nThe same for percentiles of 40 refits to queries drawn with replacement, on 4 data "
        f"sets; milliseconds of `weight_intervals` (with its fit), and how many times as long {REFITS} refits take.\n\n"
        + table(["rows x features", *head, "intervals, ms", f"{REFITS} refits, times"], before),
    ]


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--only", {"default": "", "help": "measure only settings whose name has this in it"}),
        ("--cache", {"type": Path, "help": "file of the settings that are done"}),
    )
    settings = (Population(6, 8, 4, 0.1), Population(6, 8, 60, 0.001)) if options.smoke else SETTINGS
    pieces = {one.name: partial(measured, one, options.smoke) for one in settings}
    sections = [Section("coverage", pieces, _rendered)]
    measurements = Pieces(options.cache)
    measurements.measure(sections, options.only)
    publish(page("Intervals of weights", "weight_intervals", options, measurements.parts(sections)), options)


if __name__ == "__main__":
    main()
