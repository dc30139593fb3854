"""Speed of an epoch of FactorizedRankSVM, compared with listed pairs in NumPy and with one product X @ w.

python benchmarks/factorized.py -o benchmarks/results/factorized.md

The machine may be shared and noisy, so the actions that are compared take turns in every round.
"""

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from _common import arguments, data_folder, interleaved, page, publish, read, summary, table, verdict
from papers.xu_2019.published_algorithms import Factors, listed
from ranksvm import FactorizedRankSVM, RankingData, make_ranking

SEED = 0
COMPONENTS = 5
C = 1.0
# The same fixed step for all methods, short enough that the objective falls from the first epoch on.
STEP = 1e-7
# Goals: an epoch over listed pairs takes at least PAIRS_LIMIT times as long as ours, which takes at most PRODUCT_LIMIT
# times as long as X @ w.
PAIRS_LIMIT = 50.0
PRODUCT_LIMIT = 20.0


def fitted(data: RankingData, epochs: int, **options) -> FactorizedRankSVM:
    """A model after exactly ``epochs`` epochs."""
    model = FactorizedRankSVM(C, n_components=COMPONENTS, max_epochs=epochs, tol=1e-300, random_state=SEED, **options)
    return model.fit(data.X, data.y, qid=data.qid)


def epoch_actions(data: RankingData, epochs: int, **options) -> dict[str, Callable]:
    """Fits of one epoch and of more epochs; the difference of their times is the time of epochs alone."""
    return {"one": lambda: fitted(data, 1, **options), "more": lambda: fitted(data, 1 + epochs, **options)}


def epoch_times(times: dict[str, np.ndarray], name: str, epochs: int) -> np.ndarray:
    """Seconds of an epoch, from the shortest times of the fits, and from their medians."""
    one, more = times[f"{name} one"], times[f"{name} more"]
    return np.array([more.min() - one.min(), np.median(more) - np.median(one)]) / epochs


def _both(values: np.ndarray) -> str:
    return " / ".join(f"{value:.3f}" for value in values)


# -- against the pairs -------------------------------------------------------------------------------------------------


def equal_epochs(data: RankingData) -> list[str]:
    """Compare objective and factors with NumPy's, after the same epochs with the same fixed step and the same start."""
    ours = FactorizedRankSVM(C, n_components=COMPONENTS, learning_rate=STEP, random_state=SEED, warm_start=True)
    ours.set_params(max_epochs=1, tol=1e-300).fit(data.X, data.y, qid=data.qid)
    queries = listed(data)
    theirs = {name: Factors(queries, ours.factors_, C) for name in ("pairs", "blocks")}
    rows = [["0", f"{ours.objective_:.10g}", *(f"{each.objective():.10g}" for each in theirs.values()), ""]]
    for epoch in range(1, 4):
        ours.fit(data.X, data.y, qid=data.qid)
        # the first that a warm start draws
        order = np.random.RandomState(SEED).permutation(len(queries))
        theirs["pairs"].epoch_of_pairs(STEP, order)
        theirs["blocks"].epoch_of_blocks(STEP, order)
        off = np.abs(ours.factors_ - theirs["pairs"].V).max() / np.abs(ours.factors_).max()
        found = [f"{each.objective():.10g}" for each in theirs.values()]
        rows.append([epoch, f"{ours.objective_:.10g}", *found, f"{off:.1e}"])
    header = ["epoch", "objective, ours", "NumPy, pairs", "NumPy, blocks", "largest difference of factors (relative)"]
    return [
        f"The same start, the same fixed step ({STEP:g}), queries in the same order: objectives after each epoch.",
        table(header, rows),
    ]


def against_pairs(name: str, data: RankingData, repeats: int, epochs: int) -> list[str]:
    """Compare our epochs with epochs over listed pairs."""
    queries = listed(data)
    start = fitted(data, 1, learning_rate=STEP).factors_
    pairs, blocks = Factors(queries, start, C), Factors(queries, start, C)
    actions: dict[str, Callable] = {
        "pairs": lambda: pairs.epoch_of_pairs(STEP),
        "blocks": lambda: blocks.epoch_of_blocks(STEP),
    }
    rates: dict[str, float | str] = {"fixed step": STEP, "auto": "auto"}
    for rate, value in rates.items():
        found = epoch_actions(data, epochs, learning_rate=value)
        actions |= {f"{rate} {which}": action for which, action in found.items()}
    interleaved(actions, 1)
    times = interleaved(actions, repeats)
    least = {which: times[which].min() for which in ("pairs", "blocks")}
    rows = [
        ["NumPy, listed pairs", summary(1e3 * times["pairs"]), "1", ""],
        ["NumPy, blocks of documents", summary(1e3 * times["blocks"]), f"{least['pairs'] / least['blocks']:.1f}", ""],
    ]
    for rate in rates:
        of_epoch = epoch_times(times, rate, epochs)
        ratio = least["pairs"] / of_epoch[0]
        limit = f"at least {PAIRS_LIMIT:g}: met" if ratio >= PAIRS_LIMIT else f"**at least {PAIRS_LIMIT:g}: MISSED**"
        if rate == "auto":
            limit = "none: it does more"
        rows.append([f"ours, {rate}", _both(1e3 * of_epoch), f"{ratio:.0f}", limit])
    n_pairs = sum(len(query.preferred) for query in queries)
    return [
        f"## Against explicit pairs: {name}, {data.n_rows:,} x {data.n_features}, {n_pairs:,} pairs, "
        f"{COMPONENTS} components",
        "Algorithm 1 in NumPy (float64), every sum over pairs at once for a query: over the listed pairs (gathers and "
        "`bincount`), and with the pairs of a query as a matrix of documents by documents (products with BLAS, which "
        "is less work for each pair and more memory). Finding the pairs is not in their times. Ours: the difference of "
        f"fits of 1 and of {1 + epochs} epochs, divided by {epochs}; with the fixed step it is the same algorithm, "
        "for which the limit is; the automatic one adds line searches and a step of all queries together. Milliseconds "
        f"of an epoch, of the least / of the median of {repeats} rounds.",
        table(["epoch", "ms", "times as fast as listed pairs", "limit"], rows),
        *equal_epochs(data),
    ]


# -- against one product -----------------------------------------------------------------------------------------------


def against_product(data: RankingData, repeats: int, epochs: int) -> list[str]:
    """Epochs in units of one X @ w."""
    w = np.random.default_rng(SEED).standard_normal(data.n_features).astype(data.X.dtype)
    # X @ w is timed several times near each fit; the unit is the shortest of all times
    actions: dict[str, Callable] = {f"unit {number}": lambda: data.X @ w for number in range(4)}
    rates: dict[str, float | str] = {"fixed step": STEP, "auto": "auto"}
    for rate, value in rates.items():
        found = epoch_actions(data, epochs, learning_rate=value)
        actions |= {f"{rate} {which}": action for which, action in found.items()}
    times = interleaved(actions, repeats)
    unit = np.concatenate([times[f"unit {number}"] for number in range(4)])
    rows = []
    for rate in rates:
        of_epoch = epoch_times(times, rate, epochs)
        ratio, median = of_epoch[0] / unit.min(), of_epoch[1] / np.median(unit)
        cells = [_both(of_epoch), f"{ratio:.1f}", f"{median:.1f}", verdict(ratio, PRODUCT_LIMIT)]
        rows.append([rate, *cells, summary(times[f"{rate} one"])])
    model = fitted(data, 3)
    trace = ", ".join(f"{value:.8g}" for value in model.history_["objective"])
    return [
        f"## In units of one X @ w: {data.n_rows:,} x {data.n_features} {data.X.dtype}, five skewed levels, 120 "
        f"documents a query, {model.n_pairs_:,} pairs",
        f"One `X @ w` (NumPy, {data.X.dtype}, all threads), {len(unit)} times among the fits: "
        f"{1000 * unit.min():.1f} ms at best, {1000 * np.median(unit):.1f} ms in the median. An epoch goes over X "
        f"twice, query by query: scores, and the change of beta; {COMPONENTS} components. Ours: the difference of fits "
        f"of 1 and of {1 + epochs} epochs, divided by {epochs}; least / median of {repeats} rounds, in seconds.",
        table(["step", "epoch, s", "units (least)", "units (median)", "limit", "fit of one epoch, all told, s"], rows),
        f"Objective of the first epochs, step chosen automatically: {trace}.",
    ]


def report(options) -> str:
    """The page."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    smoke, repeats = options.smoke, 2 if options.smoke else options.repeats
    small = smoke or data_folder() is None
    name, data = ("made", make_ranking(12, 30, 8, n_levels=3, random_state=SEED)) if small else ("OHSUMED fold 1", None)
    parts = against_pairs(name, read("OHSUMED") if data is None else data, repeats, 3 if smoke else 50)
    made = make_ranking(20 if smoke else 6025, 120, 136, random_state=SEED)
    parts += against_product(made, min(repeats, 5), 2 if smoke else 12)
    return page("Epochs of the factorized model", "factorized", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 9, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
