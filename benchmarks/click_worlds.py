"""Estimates of rankers from clicks in 200 simulated worlds: coverage of intervals, bias, and orders of rankers.

python benchmarks/click_worlds.py -o benchmarks/results/click_worlds.md
"""

import itertools
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from _click_worlds import BY_RANK, FACTORS, METRICS, World, worlds
from _common import arguments, page, publish, table
from _pieces import Found, Pieces, Section

Result = dict[str, Any]

LABELS = {
    "n_rankers": "rankers that share the traffic",
    "depth": "length of the lists",
    "swap": "swaps in the lists of rankers",
    "model": "users",
    "epsilon": "share of lists in random order",
    "n_queries": "queries",
    "n_impressions": "impressions",
}
# up to this share of unseen documents a ranker counts as seen completely; above it, `note` says that an estimate is a
# lower bound
SEEN = 0.005


def target(result: Result) -> float:
    """The true value for an estimate: for the documents that users could see, or for all if it is doubly robust."""
    return result["whole" if result["estimator"].startswith("dr") else "seen"]


def judged(result: Result) -> bool:
    """Whether the target applies: the doubly robust estimate only predicts the relevance of documents never shown."""
    return not result["estimator"].startswith("dr") or result["unseen"] == 0.0


def facts(results: Iterable[Result]) -> list[str]:
    """Number of intervals, their coverage, bias with its standard error over the worlds, and mean error."""
    chosen = [one for one in results if judged(one)]
    inside = np.array([one["low"] <= target(one) <= one["high"] for one in chosen])
    error = np.array([one["value"] / target(one) - 1.0 for one in chosen])
    world = np.unique([one["world"] for one in chosen], return_inverse=True)[1].reshape(-1)
    means = np.bincount(world, error) / np.bincount(world)
    spread = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
    return [
        f"{len(chosen):,}",
        f"{100 * inside.mean():.1f} %",
        f"{100 * means.mean():+.2f} % ± {100 * spread:.2f} %",
        f"{100 * np.abs(error).mean():.1f} %",
    ]


HEAD = ["intervals", "coverage", "bias", "mean error"]


def by_estimator(results: list[Result]) -> str:
    """A table of all worlds by estimator."""
    kinds = [f"{estimator} {name}" for estimator, names in METRICS.items() for name in names]
    rows = [[kind, *facts(one for one in results if one["estimator"] == kind)] for kind in [*kinds, BY_RANK]]
    return table(["estimate", *HEAD], rows)


def by_factor(results: list[Result], made: dict[int, World]) -> str:
    """A table of DCG@10 by inverse exposures, for each value of each factor."""
    dcg = [one for one in results if one["estimator"] == "ips dcg@10"]
    rows = []
    for factor, label in LABELS.items():
        present = {getattr(world, factor) for world in made.values()}
        for value in dict.fromkeys((*FACTORS[factor], *sorted(present))):
            part = [one for one in dcg if getattr(made[one["world"]], factor) == value]
            if part:
                rows.append([f"{label}: {value:,}" if isinstance(value, int) else f"{label}: {value}", *facts(part)])
    return table(["worlds", *HEAD], rows)


def orders(results: list[Result]) -> str:
    """Pairs of rankers of a world whose intervals do not overlap, and whether their true values have the same order."""
    rows = []
    for kind in ("ips dcg@10", BY_RANK):
        counts = np.zeros((2, 2), dtype=int)
        for _, group in itertools.groupby(
            (one for one in results if one["estimator"] == kind), key=lambda one: one["world"]
        ):
            for one, other in itertools.combinations(group, 2):
                if one["low"] <= other["high"] and other["low"] <= one["high"]:
                    continue
                higher = one["value"] > other["value"]
                counts[0] += 1, higher == (one["seen"] > other["seen"])
                if max(one["unseen"], other["unseen"]) < SEEN:
                    counts[1] += 1, higher == (one["whole"] > other["whole"])
        rows += [
            [kind, which, f"{n:,}", f"{right:,} ({100 * right / max(n, 1):.1f} %)"]
            for which, (n, right) in zip(("documents that users could see", "all documents"), counts, strict=True)
        ]
    return table(["estimate", "truth", "pairs with intervals apart", "same order"], rows)


def render(made: dict[int, World], found: list[Found]) -> list[str]:
    """The page, without its head."""
    results = [one for piece in found for one in piece.value]
    return [
        f"{len(made)} random combinations of the factors in the second table. Queries have 20 documents. Linear "
        "rankers with random weights show their first documents, with or without swaps; a share of the lists has "
        "random documents in random order. Estimates are of these rankers, and of one more that shows nothing. Users "
        "look at rank k with probability 1/k (position, trust), or read from the top and leave with the first click "
        "(cascade), as in `simulate_clicks`. Propensities are the true ones: those of the ranks, with their offsets "
        'for trust bias, and in a cascade those of the rows, given the documents above them (`bias="log"`).',
        "Clicks say nothing about documents that users never saw. The truth that judges the estimates, computed from "
        "the parameters of the simulation, therefore counts only documents with a positive exposure in the log. The "
        "doubly robust estimate predicts the others, and is judged where there are none. Bias is the mean over the "
        "worlds of estimate / truth - 1, with its standard error. Goal: 93 to 97 % of 95 % intervals hold the truth, "
        "bias below 1 %.",
        f"## By estimator\n\n`{BY_RANK}` divides each click by the propensity of the rank where it happened, as for "
        "the lists of one ranker, whatever the other lists of the query show.\n\n" + by_estimator(results),
        "## By world\n\nDCG@10 by inverse exposures (`ips`).\n\n" + by_factor(results, made),
        "## Orders of rankers\n\nGoal: the order of the truth wherever intervals are apart. The second truth is for "
        f"rankers of whose first ten ranks less than {100 * SEEN:.1f} % was never shown (`unseen_share`).\n\n"
        + orders(results),
    ]


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--worlds", {"type": int, "default": 200, "help": "how many"}),
        ("--cache", {"type": Path, "help": "file of the worlds that are done"}),
    )
    chosen = worlds(4, (1_000,)) if options.smoke else worlds(options.worlds)
    made = {world.seed: world for world in chosen}
    pieces = {f"{seed}": partial(world.estimates) for seed, world in made.items()}
    section = Section("worlds", pieces, partial(render, made))
    measured = Pieces(options.cache)
    measured.measure([section], "")
    publish(
        page("Estimates from clicks in simulated worlds", "click_worlds", options, measured.parts([section])), options
    )


if __name__ == "__main__":
    main()
