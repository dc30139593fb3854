"""Speed and memory of a fit, relative to one product X @ w and to the published solver, with goals.

python benchmarks/speed.py --before build/before --cache build/speed.jsonl -o benchmarks/results/speed.md

The option --before names a checkout of an earlier revision, whose fits are timed in turns with ours:
git worktree add --detach build/before 6773543 && make -C build/before setup

The machine may be shared and noisy, so the actions that are compared take turns in every round. Each result is stored
in the cache, and the same command continues with the rest. The variable RANKSVM_INSTRUCTION_SET (baseline, avx2 or
avx512) chooses the compiled loops; the page has the results of all loops that are in the cache.
"""

import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from _beside_published import fits, processes
from _common import arguments, data_folder, interleaved, page, publish, read, summary, table, verdict
from _peak_memory import memory_of_fit
from _pieces import Found, Pieces, Section
from ranksvm import RankingData, RankSVM, make_ranking, regularization_path

SEED = 0
# goals: C -> the largest time of a default fit, divided by the time of one X @ w
UNIT_LIMITS = {1e-4: 14.0, 1.0: 18.0}
MS_LIMIT = 3.0
MEMORY_LIMIT = 0.15
GROWTH_LIMIT = 2.2
LEVELS_LIMIT = 3.0
PATH_CS = 2.0 ** np.arange(-14, 1)
COLD_FITS = 5
# Seconds after which the threads of a BLAS no longer keep a core busy while they wait.
PAUSE = 0.2
# Documents of a query and features of the generated data.
N_DOCS, N_FEATURES = 120, 136


def fitted(data: RankingData, C: float, **options: Any) -> RankSVM:
    """A default fit."""
    return RankSVM(C=C, **options).fit(data.X, data.y, qid=data.qid)


@cache
def made(n_queries: int) -> RankingData:
    """The large data that several sections use."""
    return make_ranking(n_queries, N_DOCS, N_FEATURES, random_state=SEED)


def tabulated(name: str, pieces: dict[str, Any], title: str, text: str, header: list[str]) -> Section:
    """A section with one table; each piece gives some of its rows."""

    def render(found: list[Found]) -> list[str]:
        rows = [[piece.instruction_set, *row] for piece in found for row in piece.value]
        return [f"## {title}", text, table(["instruction set", *header], rows)]

    return Section(name, pieces, render)


# -- a fit against one product -----------------------------------------------------------------------------------------


def against_product(n_queries: int, repeats: int) -> Section:
    """Times of default fits, divided by the time of one X @ w."""
    return tabulated(
        "product",
        {f"{C:g}": partial(_against_product, n_queries, C, repeats) for C in UNIT_LIMITS},
        f"A default fit in units of one X @ w: {n_queries * N_DOCS:,} x {N_FEATURES} float32, five skewed levels, "
        f"{N_DOCS} documents a query",
        f"One `X @ w` is NumPy's, in float32 with all threads, four times beside each fit, {PAUSE:g} s apart. Least / "
        f"median of {repeats} rounds; the limit is on the least in units of the least.",
        [
            *("C", "seconds", "units (least)", "units (median)", "limit", "iterations", "passes / products"),
            *("certificate", "X @ w, ms"),
        ],
    )


def _against_product(n_queries: int, C: float, repeats: int) -> list[list[str]]:
    data = made(n_queries)
    w = np.random.default_rng(SEED).standard_normal(data.n_features).astype(data.X.dtype)
    actions = {f"unit {number}": lambda: data.X @ w for number in range(4)} | {"fit": lambda: fitted(data, C)}
    interleaved(actions, 1)
    times = interleaved(actions, repeats, PAUSE)
    fit = times.pop("fit")
    unit = np.concatenate(list(times.values()))
    ranker, ratio = fitted(data, C), fit.min() / unit.min()
    return [
        [
            f"{C:g}",
            summary(fit),
            f"{ratio:.1f}",
            f"{np.median(fit) / np.median(unit):.1f}",
            verdict(ratio, UNIT_LIMITS[C]),
            str(ranker.n_iter_),
            f"{ranker.history_['evaluations'][-1]} / {ranker.history_['hessian_products'][-1]}",
            f"{ranker.duality_gap_ / ranker.objective_:.1e}",
            f"{1000 * unit.min():.1f} / {1000 * np.median(unit):.1f}",
        ]
    ]


def growth(n_queries: int, repeats: int) -> Section:
    """The growth of the time when the number of rows doubles."""
    return tabulated(
        "growth",
        {f"{C:g}": partial(_growth, n_queries, C, repeats) for C in UNIT_LIMITS},
        "Growth: twice the rows",
        f"Default fits, seconds, least / median of {repeats} rounds.",
        [
            "C",
            f"{n_queries // 2 * N_DOCS:,} rows",
            f"{n_queries * N_DOCS:,} rows",
            "ratio",
            "limit",
            "iterations of each",
        ],
    )


def _growth(n_queries: int, C: float, repeats: int) -> list[list[str]]:
    data = made(n_queries)
    half = data.select(slice(0, n_queries // 2 * N_DOCS))
    times = interleaved({"half": lambda: fitted(half, C), "all": lambda: fitted(data, C)}, repeats)
    ratio = times["all"].min() / times["half"].min()
    iterations = f"{fitted(half, C).n_iter_} / {fitted(data, C).n_iter_}"
    cells = [summary(times["half"]), summary(times["all"]), f"{ratio:.2f}", verdict(ratio, GROWTH_LIMIT), iterations]
    return [[f"{C:g}", *cells]]


def small_fit(smoke: bool) -> Section:
    """Milliseconds of a fit to MQ2008."""
    pieces = {} if data_folder() is None else {"MQ2008": partial(_small_fit, 5 if smoke else 200)}
    return tabulated(
        "small",
        pieces,
        "A small fit: MQ2008 fold 1, C = 1",
        "Default fits, milliseconds, least / median of all rounds; the limit is on the least.",
        ["threads", "ms", "limit", "passes / products", "certificate", "rounds"],
    )


def _small_fit(repeats: int) -> list[list[str]]:
    data = read("MQ2008")
    threads = {"one": 1, "all": None}
    times = interleaved({name: lambda n=n: fitted(data, 1.0, n_jobs=n) for name, n in threads.items()}, repeats)
    ranker = fitted(data, 1.0)
    work = f"{ranker.history_['evaluations'][-1]} / {ranker.history_['hessian_products'][-1]}"
    certificate = f"{ranker.duality_gap_ / ranker.objective_:.1e}"
    return [
        [name, summary(1000 * values), verdict(1000 * values.min(), MS_LIMIT), work, certificate, str(repeats)]
        for name, values in times.items()
    ]


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(n_queries: int, C: float, orders: tuple[str, ...]) -> Section:
    """Peak memory of a fit, in a separate process, with sorted or shuffled rows."""
    return tabulated(
        "memory",
        {order: partial(_memory, n_queries, C, order) for order in orders},
        "Peak memory of a fit",
        f"Largest resident size of a process that loads X, y and qid and fits (C = {C:g}), less that before the fit.",
        ["qid", "X", "y and qid", "the fit's own", "(X + the fit's own) / X", "limit"],
    )


def _memory(n_queries: int, C: float, order: str) -> list[list[str]]:
    data = made(n_queries)
    if order == "unsorted":
        data = data.select(np.random.default_rng(SEED).permutation(data.n_rows))
    found = memory_of_fit(data, "RankSVM", C=C)
    ratio = found["fit"] / found["X"]
    sizes = [f"{found['X'] / 2**20:.0f} MiB", f"{found['labels'] / 2**20:.0f} MiB", f"{found['fit'] / 2**20:.1f} MiB"]
    return [[order, *sizes, f"{1 + ratio:.3f}", verdict(1 + ratio, 1 + MEMORY_LIMIT)]]


# -- many levels, long lists -------------------------------------------------------------------------------------------


def many_levels(n_queries: int, n_docs: int, n_features: int, repeats: int) -> Section:
    """Compare labels that all differ within a query with labels of three levels, on the same X."""
    return tabulated(
        "levels",
        {f"2^{power}": partial(_many_levels, n_queries, n_docs, n_features, power, repeats) for power in (-12, 0)},
        f"All labels distinct: {n_queries * n_docs:,} x {n_features}, {n_docs} documents a query",
        f"Three levels (60, 30, 10 % of each query) against all distinct, seconds; least / median of {repeats} rounds.",
        ["C", "three levels", "distinct", "ratio", "limit", "pairs of each", "iterations", "solver"],
    )


def _many_levels(n_queries: int, n_docs: int, n_features: int, power: int, repeats: int) -> list[list[str]]:
    C = 2.0**power
    distinct = make_ranking(n_queries, n_docs, n_features, n_levels=None, random_state=SEED)
    share = distinct.y / n_docs
    three = RankingData(distinct.X, np.where(share >= 0.9, 2.0, np.where(share >= 0.6, 1.0, 0.0)), distinct.qid)
    times = interleaved({"three": lambda: fitted(three, C), "distinct": lambda: fitted(distinct, C)}, repeats)
    ratio = times["distinct"].min() / times["three"].min()
    models = [fitted(three, C), fitted(distinct, C)]
    return [
        [
            f"2^{power}",
            summary(times["three"]),
            summary(times["distinct"]),
            f"{ratio:.2f}",
            verdict(ratio, LEVELS_LIMIT),
            " / ".join(f"{model.n_pairs_:,}" for model in models),
            " / ".join(str(model.n_iter_) for model in models),
            " / ".join(model.solver_ for model in models),
        ]
    ]


def one_query(n_docs: int, n_features: int, repeats: int) -> Section:
    """Fits to one query with very many documents and distinct labels."""
    return tabulated(
        "one query",
        {f"{C:g}": partial(_one_query, n_docs, n_features, C, repeats) for C in (1e-10, 1e-8)},
        f"One query of {n_docs:,} documents x {n_features}, distinct labels",
        f"Least / median of {repeats} rounds.",
        ["C", "pairs", "seconds", "iterations", "certificate", "solver"],
    )


def _one_query(n_docs: int, n_features: int, C: float, repeats: int) -> list[list[str]]:
    data = make_ranking(1, n_docs, n_features, n_levels=None, random_state=SEED)
    times = interleaved({"fit": lambda: fitted(data, C)}, repeats)["fit"]
    model = fitted(data, C)
    certificate = f"{model.duality_gap_ / model.objective_:.1e}"
    return [[f"{C:g}", f"{model.n_pairs_:,}", summary(times), str(model.n_iter_), certificate, model.solver_]]


# -- the path ----------------------------------------------------------------------------------------------------------


def paths(smoke: bool, repeats: int) -> Section:
    """Compare a path of 15 values of C with 5 cold fits."""
    names = ["MQ2008"] if smoke else ["MQ2008", "OHSUMED", "MQ2007-partial"]
    sets = {f"{name} fold 1": partial(read, name) for name in names} if data_folder() is not None else {}
    n_queries = 10 if smoke else 1667
    sets[f"made, {n_queries * N_DOCS:,} x {N_FEATURES}"] = partial(made, n_queries)
    return tabulated(
        "paths",
        {name: partial(_path, name, load, repeats) for name, load in sets.items()},
        f"A path of {len(PATH_CS)} values of C against {COLD_FITS} cold fits",
        f"C = 2^-14, 2^-13, ..., 2^0, each from the solution before (`regularization_path`), against {COLD_FITS} times "
        f"the mean of separate fits for the same values. Least / median of {repeats} rounds, seconds.",
        ["data", "path", f"{COLD_FITS} cold fits", "ratio", "limit", "iterations, path / 15 cold fits"],
    )


def _path(name: str, load: Any, repeats: int) -> list[list[str]]:
    data = load()
    actions = {
        "path": lambda: regularization_path(data.X, data.y, qid=data.qid, Cs=PATH_CS),
        "cold": lambda: [fitted(data, C) for C in PATH_CS],
    }
    times = interleaved(actions, repeats)
    cold = times["cold"] / len(PATH_CS) * COLD_FITS
    ratio = times["path"].min() / cold.min()
    work = f"{actions['path']().n_iter.sum()} / {sum(fitted(data, C).n_iter_ for C in PATH_CS)}"
    return [[name, summary(times["path"]), summary(cold), f"{ratio:.2f}", verdict(ratio, 1.0), work]]


# -- the page ----------------------------------------------------------------------------------------------------------


def sections(smoke: bool, repeats: int, before: Path | None) -> list[Section]:
    """All sections of the page, in order."""
    few, large = min(repeats, 5), 20 if smoke else 5834
    return [
        fits(smoke, before),
        against_product(large, repeats),
        small_fit(smoke),
        processes(smoke, few, before),
        growth(large, few),
        memory(large, 1.0, ("sorted",) if smoke else ("sorted", "unsorted")),
        many_levels(*((6, 40, 10) if smoke else (1014, 730, 46)), few),
        one_query(*((2000, 5) if smoke else (1_000_000, 20)), few),
        paths(smoke, few),
    ]


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--repeats", {"type": int, "default": 9, "help": "rounds"}),
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
        ("--before", {"type": Path, "help": "checkout of an earlier revision, in which 'make setup' was run"}),
        ("--seconds", {"type": float, "help": "begin no piece after so many seconds"}),
    )
    parts, pieces = (
        sections(options.smoke, 1 if options.smoke else options.repeats, options.before),
        Pieces(options.cache, options.seconds),
    )
    pieces.measure(parts, options.only)
    if pieces.left:
        sys.exit(f"{pieces.left} pieces are left: run the same command again.")
    publish(page("Speed and memory of a fit", "speed", options, pieces.parts(parts)), options)


if __name__ == "__main__":
    main()
