"""Does a service that learns from the clicks on its own rankings converge? With three kinds of users.

python benchmarks/serving_clicks.py -o benchmarks/results/serving_clicks.md --plot benchmarks/results/serving_clicks.svg

With ``--cache``, each result is stored in a file. After ``--seconds``, no further piece begins.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _click_passes import N_PASSES, by_clicks, by_labels, tutorial_data
from _common import arguments, page, publish, table
from _pieces import Found, Pieces, Section
from ranksvm.serving.click_learning import ClickLearning, curve

USERS = ("position", "trust", "cascade")
LEARNERS = {"SOLAR-I": 1, "SOLAR-II": 2}
DRIFT = 4
# Goals, as shares of the NDCG from learning with labels: after all passes, and in every pass after the third.
GOAL, LOWEST, SAME = 0.97, 0.93, 0.01
Render = Callable[[list[Found]], list[str]]
WAYS: dict[str, dict[str, Any]] = {
    "estimate (default)": {"rule": "shown", **curve("estimated"), "follow_drift": True},
    "power": {"rule": "shown", **curve("power"), "follow_drift": True},
    "power:0.75": {"rule": "shown", **curve("power", 0.75), "follow_drift": True},
    "power:1.25": {"rule": "shown", **curve("power", 1.25), "follow_drift": True},
    "FairPairs": {"rule": "fair_pairs", **curve("power")},
    "over those above (before)": {"rule": "skip_above", **curve("power")},
}


class Runs(NamedTuple):
    """The size of the benchmark: kinds of users, learners, seeds and queries."""

    users: tuple[str, ...] = USERS
    learners: tuple[str, ...] = tuple(LEARNERS)
    n_seeds: int = 5
    n_queries: int = 200

    def measure(self, learner: str, users: str, way: str, noise: float, drift: int | None) -> list[list[float]]:
        """For each seed and pass: NDCG@10, divided by the NDCG@10 from learning with labels without drift."""
        explore, shares = "fair-pairs" if way == "FairPairs" else "none", []
        for seed in range(self.n_seeds):
            data, order = tutorial_data(seed, self.n_queries), LEARNERS[learner]
            how = {"explore": explore, "seed": seed, "noise": noise, "drift": drift}
            with tempfile.TemporaryDirectory() as folder:
                ndcg = by_clicks(Path(folder), order, data, users, ClickLearning(**WAYS[way]), **how)
            shares.append((ndcg / by_labels(order, data)).tolist())
        return shares

    def section(self, name: str, ways: Sequence[str], noise: float, drift: int | None, render: Render) -> Section:
        """A section with a piece for every learner, kind of users, and way."""
        pieces = {
            f"{learner}/{users}/{way}": partial(self.measure, learner, users, way, noise, drift)
            for learner in self.learners
            for users in self.users
            for way in ways
        }
        return Section(name, pieces, render)


def shares_of(found: list[Found]) -> dict[tuple[str, ...], np.ndarray]:
    """Shares, shape (n_seeds, n_passes), by learner, users and way."""
    return {tuple(piece.key.split("/")): np.array(piece.value) for piece in found}


def row(key: tuple[str, ...], shares: np.ndarray) -> list[str]:
    """A row of a table: means over the seeds, and the lowest values of single runs."""
    passes = " ".join(f"{value:.3f}" for value in shares.mean(axis=0))
    return [*key, passes, f"{shares[:, -1].min():.3f}", f"{shares[:, 3:].min():.3f}"]


HEAD = [
    "learner",
    "users",
    "propensities",
    "mean after each pass",
    "lowest run at the end",
    "lowest run, passes 4 to 8",
]


def convergence(runs: Runs, noise: float) -> Section:
    """The section with every way to learn and every kind of users."""

    def render(found: list[Found]) -> list[str]:
        shares = shares_of(found)
        default = [value.mean(axis=0) for key, value in shares.items() if key[2] == "estimate (default)"]
        end, after = min(mean[-1] for mean in default), min(mean[3:].min() for mean in default)
        ends = {key: value.mean(axis=0)[-1] for key, value in shares.items()}
        gap = max(
            abs(ends[learner, "position", way] - ends[learner, "position", "power"])
            for learner in runs.learners
            for way in ("power:0.75", "power:1.25")
        )
        text = (
            f"Mean of {runs.n_seeds} seeds, as a share of the NDCG@10 that labels give after the same pass. A user "
            f"clicks on an examined document without relevance with probability {noise:g}. With default settings the "
            f"smallest mean share is {end:.3f} at the end (goal: {GOAL}), and {after:.3f} after the third pass (goal: "
            f"{LOWEST}). With propensities that are wrong by a factor of (1/p)^.25, the shares of position-biased "
            f"users differ by at most {gap:.3f} (goal: {SAME})."
        )
        return [f"## Noise {noise:g}", text, table(HEAD, [row(key, value) for key, value in shares.items()])]

    return runs.section(f"noise {noise:g}", tuple(WAYS), noise, None, render)


def drift(runs: Runs, noise: float) -> Section:
    """The section about sudden drift, with and without forgetting."""

    def render(found: list[Found]) -> list[str]:
        shares = shares_of(found)
        text = (
            f"From pass {DRIFT + 1} on, each feature takes the place of its neighbor. The shares are relative to "
            f"labels without drift, with a noise of {noise:g}. By default, the service notices that users click as if "
            "its order had no information, forgets, and learns again from the rankings since then; with FairPairs it "
            "does not. Nothing can follow drift faster than it learns from the start, so compare pass "
            f"{DRIFT + 1} with pass 1, and pass {DRIFT + 2} with pass 2: with the default settings the largest "
            f"shortfalls are {_behind(shares, 0)} and {_behind(shares, 1)}. Users who trust the first ranks click "
            "there whatever they show, so that it takes about 50 rankings, a quarter of a pass, to notice."
        )
        return ["## Sudden drift", text, table(HEAD, [row(key, value) for key, value in shares.items()])]

    return runs.section("drift", ("estimate (default)", "FairPairs"), noise, DRIFT, render)


def _behind(shares: dict[tuple[str, ...], np.ndarray], number: int) -> str:
    """Text: the default's worst value in a pass after drift, compared with the same pass of a new service."""
    means = [value.mean(axis=0) for key, value in shares.items() if key[2] == "estimate (default)"]
    mean = max(means, key=lambda mean: mean[number] - mean[DRIFT + number])
    return f"{mean[DRIFT + number]:.3f} instead of {mean[number]:.3f}"


def draw(pieces: Pieces, path: Path) -> None:
    """Plot curves of SOLAR-II by kind of users and way to learn."""
    from ranksvm.plotting.figures import MARKERS, axes_in_memory, line_style

    axes = axes_in_memory(figsize=(7.2, 4.0), layout="constrained")
    passes = np.arange(1, N_PASSES + 1)
    curves = {
        ("noise 0.05", "position", "estimate (default)"): "position-biased users",
        ("noise 0.05", "trust", "estimate (default)"): "trust-biased users",
        ("noise 0.05", "cascade", "estimate (default)"): "cascade users",
        ("noise 0.05", "position", "FairPairs"): "position-biased users, FairPairs",
        ("noise 0.05", "position", "over those above (before)"): "position-biased users, over those above",
        ("drift", "position", "estimate (default)"): f"position-biased users, drift from pass {DRIFT + 1} on",
    }
    for place, ((section, users, way), label) in enumerate(curves.items()):
        shares = shares_of(pieces.found(section)).get(("SOLAR-II", users, way))
        if shares is not None:
            style = line_style(place) | {"marker": MARKERS[place], "markersize": 4}
            axes.plot(passes, shares.mean(axis=0), **style, label=label)
    axes.axhline(GOAL, color="0.7", linewidth=0.8)
    axes.set(xlabel="passes over 200 queries", ylabel="NDCG@10, share of what labels give", xticks=passes)
    axes.legend(fontsize=8, frameon=False)
    axes.figure.savefig(path)


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--plot", {"type": Path, "help": "file to draw the curves into"}),
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
        ("--seconds", {"type": float, "help": "begin no piece after so many seconds"}),
    )
    runs = Runs(("position",), ("SOLAR-II",), 1, 20) if options.smoke else Runs()
    sections = [convergence(runs, 0.05), convergence(runs, 0.1), drift(runs, 0.05)]
    pieces = Pieces(options.cache, options.seconds)
    pieces.measure(sections, options.only)
    if pieces.left:
        sys.exit(f"{pieces.left} pieces are left: run the same command again.")
    parts = [
        "The tutorial of docs/serving.md, in step: 200 queries of 20 documents with 10 features are ranked in turn, a "
        "simulated user clicks, and the service learns before it ranks the next query. Position-biased users examine "
        "rank k with probability 1/k. Trust-biased users also click on the first ranks without reason, and cascade "
        "users read down to their first click (`ranksvm.clicks.simulate_clicks`). The learners have their default "
        "settings."
    ]
    if options.plot is not None:
        draw(pieces, options.plot)
        parts.append(f"![NDCG@10 after each pass, as a share of what labels give]({options.plot.name})")
    publish(page("Serving from clicks", "serving_clicks", options, [*parts, *pieces.parts(sections)]), options)


if __name__ == "__main__":
    main()
