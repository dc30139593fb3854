"""Clicks of simulated users on real rankings: errors of propensities, evaluation and interleaving.

python benchmarks/clicks.py -o benchmarks/results/clicks.md

``--only scale`` measures one part (propensities, coverage, evaluation, interleaving, scale); with ``--cache``, the page
contains the other parts from an earlier run.
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from _clicks_world import N_RANKS, Interleaved, World
from _common import arguments, data_folder, page, publish, table
from _pieces import Pieces, Section
from ranksvm import RankSVM, metrics
from ranksvm.clicks import (
    PositionBias,
    attractiveness,
    compare_credits,
    position_bias,
    simulate_clicks,
)

warnings.filterwarnings("ignore")


# -- parts -------------------------------------------------------------------------------------------------------------


def propensities(worlds: dict[str, World], smoke: bool) -> str:
    """Error of estimated propensities by method and number of impressions."""
    sizes = (2_000,) if smoke else (10_000, 100_000, 1_000_000)
    truth, rows = PositionBias.power(N_RANKS).propensity, []
    for name, world in worlds.items():
        for n in sizes:
            log = simulate_clicks(world.train, world.rankers, n, n_ranks=N_RANKS, random_state=0)
            swaps = simulate_clicks(world.train, world.rankers["a"], n, n_ranks=N_RANKS, swap="top", random_state=0)
            cells = []
            for method, used, options in (
                ("harvest", log, {}),
                ("swap", swaps, {}),
                ("em", log, {}),
                ("em", log, {"data": world.train}),
            ):
                if method == "em" and n > 100_000:
                    cells.append("-")
                    continue
                started = time.perf_counter()
                found = position_bias(used, method, n_bootstrap=0, n_ranks=N_RANKS, **options).propensity
                error = 100 * np.nanmean(np.abs(found / truth[: len(found)] - 1.0)[1:])
                cells.append(f"{error:.1f} % ({time.perf_counter() - started:.1f} s)")
            rows.append([name, f"{n:,}", *cells])
    head = ["data", "impressions", "harvest", "swap", "em", "em with features"]
    return (
        "## Propensities\n\nMean relative error of the propensities of ranks 2 to 10 (truth: 1/rank), lists of "
        "ten, noise "
        "0.1; three rankers, each trained on 5 queries, for harvesting and expectation maximization; swaps of "
        "rank 1 with "
        "a random rank in the lists of one ranker. Goal: harvest within 2 % at 100,000 impressions.\n\n"
        + table(head, rows)
    )


def coverage(worlds: dict[str, World], smoke: bool) -> str:
    """How often 95 % intervals of propensities contain the true value."""
    n_runs, n = (5, 1_000) if smoke else (200, 10_000)
    world = next(iter(worlds.values()))
    truth, rows = PositionBias.power(N_RANKS).propensity, []
    for method, swap in (("harvest", "none"), ("swap", "top")):
        inside = np.zeros((n_runs, N_RANKS))
        for seed in range(n_runs):
            ranker = world.rankers if method == "harvest" else world.rankers["a"]
            log = simulate_clicks(world.train, ranker, n, n_ranks=N_RANKS, swap=swap, random_state=seed)
            bias = position_bias(log, method, random_state=seed)
            # relative to rank 1, even if another rank has a higher estimate
            scale = bias.propensity[0]
            inside[seed] = (bias.low / scale <= truth) & (truth <= bias.high / scale)
        shares = 100 * inside.mean(axis=0)[1:]
        rows.append([method, n_runs, f"{n:,}", f"{shares.mean():.1f} %", f"{shares.min():.1f} to {shares.max():.1f} %"])
    return (
        f"## Coverage of the intervals of propensities\n\nShare of simulations ({world.name}) in which the 95 % "
        f"interval "
        "of a rank holds the true propensity. Goal: 90 to 98 %.\n\n"
        + table(["method", "simulations", "impressions each", "mean of ranks 2 to 10", "single ranks"], rows)
    )


def evaluation(worlds: dict[str, World], smoke: bool) -> str:
    """Error and coverage of the DCG@10 of a new ranker."""
    sizes = ((500, 5),) if smoke else ((3_000, 200), (30_000, 200), (300_000, 10))
    world = next(iter(worlds.values()))
    data, queries = world.train, world.train.queries
    new = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid).predict(data.X)
    number, a = queries.numbers(), attractiveness(data)
    order = np.lexsort((-new, number))
    rank = np.empty(data.n_rows)
    rank[order] = np.arange(data.n_rows) - np.repeat(queries.pointers[:-1], queries.sizes) + 1.0
    gain = np.bincount(number, a * (rank <= 10) / np.log2(1.0 + rank))
    truth, bias = gain.mean(), PositionBias.power(int(queries.sizes.max()))
    rows = []
    for n, n_runs in sizes:
        errors: dict[str, list[float]] = {}
        inside: dict[str, int] = {}
        effective = []
        for seed in range(n_runs):
            log = simulate_clicks(data, world.rankers, n, n_ranks=len(bias.propensity), random_state=seed)
            for label, used, options in (
                ("naive", None, {}),
                ("ips", bias, {}),
                ("ips, clip .1", bias, {"clip": 0.1}),
                ("dr, clip .1", bias, {"clip": 0.1, "estimator": "dr"}),
                ("dr", bias, {"estimator": "dr"}),
            ):
                if seed >= 20 and label != "ips":
                    continue
                found = metrics.estimate(log, new, "dcg@10", used, data=data, **options)
                low, high = found.intervals["dcg@10"]
                errors.setdefault(label, []).append(abs(found["dcg@10"] / truth - 1.0))
                inside[label] = inside.get(label, 0) + (low <= truth <= high)
                if label == "ips":
                    effective.append(found.effective_clicks / found.n_clicks)
        for label, values in errors.items():
            share = f"{100 * np.mean(effective):.0f} %" if label == "ips" else ""
            error, covered = f"{100 * np.mean(values):.2f} %", f"{100 * inside[label] / len(values):.1f} %"
            rows.append([f"{n:,}", label, len(values), error, covered, share])
    return (
        f"## Evaluation of a new ranker ({world.name})\n\nDCG@10 of a RankSVM trained on labels, from clicks on "
        f"the whole "
        "lists of the three weak rankers; known propensities. Goal: IPS within 1 % at 30,000 impressions, 95 % "
        "intervals "
        "that cover 90 to 98 %.\n\n"
        + table(
            ["impressions", "estimator", "simulations", "mean error", "coverage", "effective share of clicks"], rows
        )
    )


def interleaving(worlds: dict[str, World], smoke: bool) -> str:
    """False positives of A/A comparisons, and the number of impressions needed, compared with A/B tests."""
    world = next(iter(worlds.values()))
    data = world.train
    n_runs, n, pool, many = (10, 200, 3, 2_000) if smoke else (2_000, 1_000, 20, 300_000)
    scores = {name: model.predict(data.X) for name, model in world.rankers.items()}
    scores["labels"] = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid).predict(data.X)
    false = []
    for method in ("team_draft", "balanced", "probabilistic"):
        same = Interleaved(data, scores["a"], scores["a"], method, pool, 0)
        tests = [compare_credits(same.credits(n, np.random.default_rng(seed))) for seed in range(n_runs)]
        false.append(
            [
                method,
                f"{100 * np.mean([test.p_value < 0.05 for test in tests]):.1f} %",
                f"{100 * np.mean([test.decided_at is not None for test in tests]):.1f} %",
            ]
        )
    saved, z = [], 1.959964 + 0.841621
    for one, other in (("labels", "a"), ("c", "a"), ("labels", "c"), ("c", "b")):
        row = [f"{one} against {other}"]
        needed = {}
        for method in ("team_draft", "balanced", "probabilistic"):
            credits = Interleaved(data, scores[one], scores[other], method, pool, 0).credits(
                many, np.random.default_rng(1)
            )
            needed[method] = z**2 * credits.var() / credits.mean() ** 2
            sign = "" if credits.mean() > 0 else " (other sign)"
            row.append(f"{needed[method]:,.0f}{sign}")
        logs = [simulate_clicks(data, scores[name], many, n_ranks=N_RANKS, random_state=2) for name in (one, other)]
        clicks = [np.add.reduceat(log.clicked, log.pointers[:-1], dtype=np.int64) for log in logs]
        gap = clicks[0].mean() - clicks[1].mean()
        split = 2 * z**2 * (clicks[0].var() + clicks[1].var()) / gap**2
        saved.append([*row, f"{split:,.0f}", f"{split / needed['team_draft']:.1f}"])
    return (
        f"## Interleaving ({world.name})\n\nA ranker against itself, {n_runs:,} experiments of {n:,} "
        f"impressions: share "
        "declared different at the 5 % level, by the test for a fixed number of impressions (goal: 4 to 6 %), "
        "and by the "
        "sequential test, looked at after every impression (at most 5 %). The credits of balanced and probabilistic "
        "interleaving compare rankings, not teams: of equal ones they are always 0.\n\n"
        + table(["method", "fixed number", "at any time"], false)
        + "\n\nImpressions for 80 % power at the 5 % level: interleaving, and an A/B test of clicks per "
        "impression (both halves together).\n\n"
        + table(["rankers", "team draft", "balanced", "probabilistic", "A/B", "A/B over team draft"], saved)
    )


SCALE = """
import json, sys, time
from ranksvm import RankSVM, read_letor
from ranksvm.clicks import ClickLog, click_pairs, position_bias
from ranksvm import RankingData
path, cache, how, folder = sys.argv[1:]
sys.path.insert(0, folder)
from _peak_memory import peak
data = RankingData.load(cache)
started = time.perf_counter()
steps = {}
def step(name, start):
    steps[name] = time.perf_counter() - start
    return time.perf_counter()
now = started
log = ClickLog.read(path) if how == "memory" else ClickLog.scan(path)
now = step("read", now)
bias = position_bias(log)
now = step("bias", now)
pairs, weight = click_pairs(log, data, bias)
now = step("pairs", now)
model = RankSVM(C=1000.0 / weight.sum()).fit(data.X, qid=data.qid, pairs=pairs, pair_weight=weight)
now = step("train", now)
print(json.dumps({"steps": steps, "total": now - started, "peak": peak() / 2**30, "pairs": len(weight)}))
"""


def scale(worlds: dict[str, World], smoke: bool) -> str:
    """Time and memory from a file of 10^7 rows to a model."""
    n = 2_000 if smoke else 1_130_000
    world, rows = next(iter(worlds.values())), []
    with tempfile.TemporaryDirectory() as folder:
        log = simulate_clicks(world.train, world.rankers, n, n_ranks=N_RANKS, random_state=0)
        n_rows, n_clicks = log.n_rows, int(log.clicked.sum())
        path, cache = Path(folder) / "log.parquet", Path(folder) / "train.rsd"
        log.save(path)
        del log
        world.train.save(cache)
        for how in ("memory", "blocks"):
            done = subprocess.run(
                [sys.executable, "-c", SCALE, str(path), str(cache), how, str(Path(__file__).parent)],
                capture_output=True,
                text=True,
                check=True,
            )
            found = json.loads(done.stdout)
            steps = [f"{found['steps'][name]:.1f}" for name in ("read", "bias", "pairs", "train")]
            rows.append([how, *steps, f"{found['total']:.1f}", f"{found['peak']:.2f}"])
        size = path.stat().st_size / 1e6
    return (
        f"## Scale\n\nA Parquet file of {n_rows:,} rows ({n:,} impressions, {n_clicks:,} clicks, {size:.0f} MB; "
        f'{world.name}): read, propensities harvested with 200 bootstrap samples, pairs, one RankSVM. "blocks" reads '
        "the file twice, in blocks of 1,048,576 rows. Goal: 60 s and 4 GB on two cores.\n\n"
        + table(["log", "read, s", "bias, s", "pairs, s", "train, s", "total, s", "peak memory, GiB"], rows)
    )


PARTS: dict[str, Callable[[dict[str, World], bool], str]] = {
    part.__name__: part for part in (propensities, coverage, evaluation, interleaving, scale)
}


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--data", {"default": "MQ2008,OHSUMED", "help": "folders of RANKSVM_DATA; parts after the first take one"}),
        ("--only", {"default": "", "help": "measure only parts whose name has this in it"}),
        ("--cache", {"type": Path, "help": "file of the parts that are done"}),
    )
    names = ["made"] if options.smoke or data_folder() is None else options.data.split(",")
    worlds = {name: World(name, 5 if name != "OHSUMED" else 2) for name in names}
    sections = [
        Section(name, {"all": partial(part, worlds, options.smoke)}, lambda found: [one.value for one in found])
        for name, part in PARTS.items()
    ]
    pieces = Pieces(options.cache)
    pieces.measure(sections, options.only)
    publish(page("Clicks", "clicks", options, pieces.parts(sections), "pyarrow"), options)


if __name__ == "__main__":
    main()
