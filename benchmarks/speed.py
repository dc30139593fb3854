"""Speed and memory of a fit, in units of one product X @ w, with the limits they are held to.

python benchmarks/speed.py -o benchmarks/results/speed.md

The machine may be shared and noisy: what is compared is measured in turns, round after round.
"""

import numpy as np

from _common import arguments, data_folder, interleaved, page, publish, read, summary, table, verdict
from _peak_memory import memory_of_fit
from ranksvm import RankingData, RankSVM, make_ranking, regularization_path

SEED = 0
# C -> most times one X @ w that the default fit may take
UNIT_LIMITS = {1e-4: 30.0, 1.0: 60.0}
MEMORY_LIMIT = 0.15
GROWTH_LIMIT = 2.2
LEVELS_LIMIT = 3.0
PATH_CS = 2.0 ** np.arange(-14, 1)
COLD_FITS = 5


def fitted(data: RankingData, C: float, **options) -> RankSVM:
    """A default fit."""
    return RankSVM(C=C, **options).fit(data.X, data.y, qid=data.qid)


# -- a fit against one product -----------------------------------------------------------------------------------------


def against_product(data: RankingData, repeats: int) -> list[str]:
    """Default fits in units of one X @ w, and of half the rows."""
    n_rows = data.n_rows
    half = data.select(slice(0, n_rows // 240 * 120))
    w = np.random.default_rng(SEED).standard_normal(data.n_features).astype(data.X.dtype)
    actions = {}
    for C in UNIT_LIMITS:
        # the unit is measured several times beside each fit: the best of all counts
        actions |= {f"unit {C} {number}": lambda: data.X @ w for number in range(4)}
        actions |= {C: lambda C=C: fitted(data, C), f"half {C}": lambda C=C: fitted(half, C)}
    interleaved(actions, 1)
    times = interleaved(actions, repeats)
    unit = np.concatenate([values for name, values in times.items() if str(name).startswith("unit")])
    rows, growth = [], []
    for C, limit in UNIT_LIMITS.items():
        ranker = fitted(data, C)
        ratio = times[C].min() / unit.min()
        rows.append(
            (
                f"{C:g}",
                summary(times[C]),
                f"{ratio:.1f}",
                f"{np.median(times[C]) / np.median(unit):.1f}",
                verdict(ratio, limit),
                ranker.n_iter_,
                f"{ranker.history_['evaluations'][-1]} / {ranker.history_['hessian_products'][-1]}",
                f"{ranker.duality_gap_ / ranker.objective_:.1e}",
            )
        )
        ratio = times[C].min() / times[f"half {C}"].min()
        growth.append(
            (
                f"{C:g}",
                summary(times[f"half {C}"]),
                summary(times[C]),
                f"{ratio:.2f}",
                verdict(ratio, GROWTH_LIMIT),
                f"{fitted(half, C).n_iter_} / {ranker.n_iter_}",
            )
        )
    shape = f"{n_rows:,} x {data.n_features} {data.X.dtype}, five skewed levels, 120 documents a query"
    return [
        f"## A default fit in units of one X @ w: {shape}",
        f"One `X @ w` (NumPy, {data.X.dtype}, all threads), {len(unit)} times among the fits: "
        f"{1000 * unit.min():.1f} ms at best, {1000 * np.median(unit):.1f} ms in the median. "
        f"Fits: least / median of {repeats} rounds; the limit is on the least in units of the least.",
        table(
            [
                "C",
                "seconds",
                "units (least)",
                "units (median)",
                "limit",
                "iterations",
                "passes / products",
                "certificate",
            ],
            rows,
        ),
        "## Growth: twice the rows",
        table(
            ["C", f"{half.n_rows:,} rows, s", f"{n_rows:,} rows, s", "ratio", "limit", "iterations of each"],
            growth,
        ),
    ]


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(data: RankingData, C: float) -> list[str]:
    """Peak memory of a fit, in a process of its own, with rows in order and shuffled."""
    rows = []
    for order in ("sorted", "unsorted"):
        if order == "unsorted":
            data = data.select(np.random.default_rng(SEED).permutation(data.n_rows))
        found = memory_of_fit(data, "RankSVM", C=C)
        ratio = found["fit"] / found["X"]
        rows.append(
            (
                order,
                f"{found['X'] / 2**20:.0f} MiB",
                f"{found['labels'] / 2**20:.0f} MiB",
                f"{found['fit'] / 2**20:.1f} MiB",
                f"{1 + ratio:.3f}",
                verdict(1 + ratio, 1 + MEMORY_LIMIT),
            )
        )
    return [
        "## Peak memory of a fit",
        f"Largest resident size of a process that loads X, y and qid and fits (C = {C:g}), less that before the fit.",
        table(["qid", "X", "y and qid", "the fit's own", "(X + the fit's own) / X", "limit"], rows),
    ]


# -- many levels, long lists -------------------------------------------------------------------------------------------


def many_levels(n_queries: int, n_docs: int, n_features: int, repeats: int) -> list[str]:
    """All labels of a query distinct, against three levels over the same X."""
    distinct = make_ranking(n_queries, n_docs, n_features, n_levels=None, random_state=SEED)
    share = distinct.y / n_docs
    three = RankingData(distinct.X, np.where(share >= 0.9, 2.0, np.where(share >= 0.6, 1.0, 0.0)), distinct.qid)
    rows = []
    for C in (2.0**-12, 1.0):
        actions = {"three": lambda C=C: fitted(three, C), "distinct": lambda C=C: fitted(distinct, C)}
        times = interleaved(actions, repeats)
        ratio = times["distinct"].min() / times["three"].min()
        fits = [fitted(three, C), fitted(distinct, C)]
        rows.append(
            (
                f"2^{np.log2(C):.0f}",
                summary(times["three"]),
                summary(times["distinct"]),
                f"{ratio:.2f}",
                verdict(ratio, LEVELS_LIMIT),
                " / ".join(f"{fit.n_pairs_:,}" for fit in fits),
                " / ".join(str(fit.n_iter_) for fit in fits),
                " / ".join(fit.solver_ for fit in fits),
            )
        )
    return [
        f"## All labels distinct: {distinct.n_rows:,} x {n_features}, {n_docs} documents a query",
        f"Three levels (60, 30, 10 % of each query) against all distinct, seconds; least / median of {repeats} rounds.",
        table(["C", "three levels", "distinct", "ratio", "limit", "pairs of each", "iterations", "solver"], rows),
    ]


def one_query(n_docs: int, n_features: int, repeats: int) -> list[str]:
    """One query of very many documents with distinct labels."""
    data = make_ranking(1, n_docs, n_features, n_levels=None, random_state=SEED)
    rows = []
    for C in (1e-10, 1e-8):
        times = interleaved({"fit": lambda C=C: fitted(data, C)}, repeats)["fit"]
        fit = fitted(data, C)
        certificate = f"{fit.duality_gap_ / fit.objective_:.1e}"
        rows.append((f"{C:g}", f"{fit.n_pairs_:,}", summary(times), fit.n_iter_, certificate, fit.solver_))
    return [
        f"## One query of {n_docs:,} documents x {n_features}, distinct labels",
        f"Least / median of {repeats} rounds.",
        table(["C", "pairs", "seconds", "iterations", "certificate", "solver"], rows),
    ]


# -- the path ----------------------------------------------------------------------------------------------------------


def paths(smoke: bool, repeats: int) -> list[str]:
    """A path of 15 values of C against 5 cold fits."""
    if data_folder() is None:
        sets = {}
    else:
        names = ["MQ2008"] if smoke else ["MQ2008", "OHSUMED", "MQ2007-partial"]
        sets = {f"{name} fold 1": read(name) for name in names}
    n_queries = 10 if smoke else 1667
    made = make_ranking(n_queries, 120, 136, random_state=SEED)
    sets[f"made, {made.n_rows:,} x 136"] = made
    rows = []
    for name, data in sets.items():
        actions = {
            "path": lambda data=data: regularization_path(data.X, data.y, qid=data.qid, Cs=PATH_CS),
            "cold": lambda data=data: [fitted(data, C) for C in PATH_CS],
        }
        times = interleaved(actions, repeats)
        cold = times["cold"] / len(PATH_CS) * COLD_FITS
        ratio = times["path"].min() / cold.min()
        path = actions["path"]()
        iterations = sum(fitted(data, C).n_iter_ for C in PATH_CS)
        work = f"{path.n_iter.sum()} / {iterations}"
        rows.append((name, summary(times["path"]), summary(cold), f"{ratio:.2f}", verdict(ratio, 1.0), work))
    return [
        f"## A path of {len(PATH_CS)} values of C against {COLD_FITS} cold fits",
        f"C = 2^-14, 2^-13, ..., 2^0, each from the solution before (`regularization_path`), against {COLD_FITS} times "
        f"the mean of separate fits for the same values. Least / median of {repeats} rounds, seconds.",
        table(["data", "path", f"{COLD_FITS} cold fits", "ratio", "limit", "iterations, path / 15 cold fits"], rows),
    ]


def report(options) -> str:
    """The page."""
    smoke, repeats = options.smoke, 2 if options.smoke else options.repeats
    data = make_ranking(20 if smoke else 5834, 120, 136, random_state=SEED)
    parts = against_product(data, repeats)
    parts += memory(data, 1.0)
    del data
    parts += many_levels(*((6, 40, 10) if smoke else (1014, 730, 46)), min(repeats, 5))
    parts += one_query(*((2000, 5) if smoke else (1_000_000, 20)), min(repeats, 5))
    parts += paths(smoke, min(repeats, 5))
    return page("Speed and memory of a fit", "speed", options, parts)


def main(argv=None):
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--repeats", {"type": int, "default": 9, "help": "rounds"}))
    publish(report(options), options)


if __name__ == "__main__":
    main()
