"""Learning from clicks on five folds of real rankings, compared with learning from labels and with other libraries.

python benchmarks/clicks_learning.py -o benchmarks/results/clicks_learning.md --plot benchmarks/results/clicks.png

With ``--cache``, each result is stored in a file. After ``--seconds``, no further piece begins.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from _clicks_world import DATA, N_RANKS, World, first, quality, two
from _common import arguments, data_folder, page, publish, table
from _pieces import Found, Pieces, Section
from ranksvm import RankSVM
from ranksvm.clicks import ClickLog, PositionBias, fit_from_clicks, position_bias, simulate_clicks

warnings.filterwarnings("ignore")

NO_VALUE = [float("nan")] * 2


def world_of(name: str, fold: int = 1) -> World:
    """Data and weak rankers, which learn from two queries of OHSUMED, or from five of another data set."""
    return World(name, 2 if name == "OHSUMED" else 5, fold)


# -- quality against clicks --------------------------------------------------------------------------------------------

CURVES = ("naive", "known", "estimated", "relevance", "skips", "chosen")


def learned(name: str, fold: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Test values of a fold: with labels, and with growing numbers of clicks from one log."""
    world = world_of(name, fold)
    log = simulate_clicks(world.train, world.rankers, 1_000, n_ranks=N_RANKS, random_state=fold)
    n = int(1.05 * max(sizes) * 1_000 / log.clicked.sum())
    log = simulate_clicks(world.train, world.rankers, n, n_ranks=N_RANKS, random_state=fold)
    found = [learned_from(world, first(log, size)) for size in sizes]
    return {"labels": list(world.full_labels()), **{key: [one[key] for one in found] for key in CURVES}}


def learned_from(world: World, log: ClickLog) -> dict[str, list[float]]:
    """Test values of every way to learn from a log."""
    known, bias = PositionBias.power(N_RANKS), position_bias(log, n_bootstrap=0)
    estimated = (world.by_pairs(log, bias), world.by_relevance(log, bias)) if bias.identified else (NO_VALUE,) * 2
    alone = fit_from_clicks(RankSVM(), world.train, log, known)
    found = (
        world.by_pairs(log, None),
        world.by_pairs(log, known),
        *estimated,
        world.by_pairs(log, None, "skip_above"),
        quality(alone.model, world.test),
    )
    return dict(zip(CURVES, map(list, found), strict=True))


def curves_of(found: list[Found]) -> dict[str, dict[str, np.ndarray]]:
    """Test values, shape (n_folds, n_sizes, 2), by data set and way of learning."""
    curves: dict[str, dict[str, list]] = {}
    for piece in found:
        of_data = curves.setdefault(piece.key.split("/")[0], {})
        for key, values in piece.value.items():
            of_data.setdefault(key, []).append(values)
    return {name: {key: np.array(values) for key, values in of.items()} for name, of in curves.items()}


def learning(names: list[str], smoke: bool) -> Section:
    """Quality against the number of clicks."""
    sizes = (500, 2_000) if smoke else (1_000, 10_000, 100_000, 1_000_000)
    folds = range(1, 3 if smoke else 6)

    def render(found: list[Found]) -> list[str]:
        rows = []
        for name, curves in curves_of(found).items():
            rows.append([name, "labels", "", two(curves["labels"].mean(axis=0)), "", "", "", ""])
            rows += [
                [name, f"{size:,}", *(mean_of_folds(curves[key][:, place]) for key in CURVES)]
                for place, size in enumerate(sizes)
            ]
        head = ["data", "clicks", "naive", "known propensities", "estimated", "relevance, estimated"]
        head += ["Click > Skip Above", "known, C by clicks"]
        return [
            "## Learning\n\nPairwise accuracy / NDCG@10 on test queries, means of five folds with a log each; C by the "
            "labels of validation queries, except in the last column (`fit_from_clicks`). Users examine rank k with "
            "probability 1/k, click on an examined document with probability 0.1 + 0.9 (2^y - 1) / (2^max - 1), and "
            "see ten documents of one of three weak rankers. The row of labels has all labels of all documents. Where "
            "few clicks do not identify propensities in a fold, the mean is that of the others. [Five folds with the "
            "limit of infinitely many clicks](clicks_folds.md) has the goals, and lists of other lengths.\n\n"
            + table(head, rows),
            "Bands: the standard error, over the folds, of the difference from labels.\n\n"
            "![quality against clicks](clicks.png)",
        ]

    pieces = {f"{name}/{fold}": partial(learned, name, fold, sizes) for name in names for fold in folds}
    return Section("learning", pieces, render)


def mean_of_folds(values: np.ndarray) -> str:
    """Means over the folds that have values, and the number of these folds if some have none."""
    there = ~np.isnan(values[:, 0])
    if not there.any():
        return "not identified"
    return two(values[there].mean(axis=0)) + ("" if there.all() else f" ({there.sum()} folds)")


def draw(found: list[Found], path: Path) -> None:
    """Quality against clicks, a column of panels for each data set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    curves = curves_of(found)
    figure, axes = plt.subplots(
        2, len(curves), figsize=(3.4 * len(curves), 5.6), squeeze=False, sharex=True, layout="constrained"
    )
    for column, (name, values) in enumerate(curves.items()):
        clicks = 10.0 ** np.arange(3, 3 + values["naive"].shape[1])
        for metric, axis in enumerate(axes[:, column]):
            labels = values["labels"][:, metric]
            axis.axhline(labels.mean(), color="black", linestyle=":", linewidth=1, label="full labels")
            for key, label, color, style in (
                ("naive", "naive", "#D55E00", "s--"),
                ("known", "known propensities", "#0072B2", "o-"),
                ("estimated", "estimated propensities", "#009E73", "^-."),
            ):
                of_folds = values[key][:, :, metric]
                # standard error of the difference from labels, because folds differ far more than models
                error = np.nanstd(of_folds - labels[:, None], axis=0, ddof=1) / np.sqrt(len(labels))
                mean = np.nanmean(of_folds, axis=0)
                axis.plot(clicks, mean, style, color=color, markersize=4, label=label)
                axis.fill_between(clicks, mean - error, mean + error, color=color, alpha=0.15, linewidth=0)
            axis.grid(alpha=0.3)
        axes[0, column].set_xscale("log")
        axes[0, column].set_title(name, fontsize=10)
        axes[1, column].set_xlabel("clicks")
    for metric, label in enumerate(("pairwise accuracy", "NDCG@10")):
        axes[metric, 0].set_ylabel(f"test {label}")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


# -- other users -------------------------------------------------------------------------------------------------------


def cases() -> Iterator[tuple[str, dict[str, Any], float]]:
    """Kinds of users: name, options of `simulate_clicks`, and the severity of position bias that the model assumes."""
    for eta in (0.0, 0.5, 1.0, 1.5, 2.0):
        yield f"eta {eta:g}", {"eta": eta}, eta
    for noise in (0.0, 0.3, 0.5):
        yield f"noise {noise:g}", {"noise": noise}, 1.0
    for eta in (0.5, 1.5, 2.0):
        yield f"assumed eta {eta:g}, true 1", {}, eta
    yield "severity drifts from 0.5 to 1.5, assumed 1", {"eta": 0.5, "drift": 1.0}, 1.0
    yield "cascade users, assumed eta 1", {"model": "cascade"}, 1.0
    yield "trust bias, assumed eta 1", {"model": "trust"}, 1.0


def of_users(name: str, n: int, options: dict[str, Any], assumed: float) -> list[str]:
    """Number of clicks, and test values: naive, with assumed and with estimated propensities."""
    world = world_of(name)
    log = simulate_clicks(world.train, world.rankers, n, n_ranks=N_RANKS, random_state=2, **options)
    affine = options.get("model") == "trust"
    bias = position_bias(log, trust=affine, n_bootstrap=0)
    if not bias.identified:
        estimated = "not identified"
    else:
        estimated = two(world.by_relevance(log, bias) if affine else world.by_pairs(log, bias))
    power = PositionBias.power(N_RANKS, assumed)
    return [f"{int(log.clicked.sum()):,}", two(world.by_pairs(log, None)), two(world.by_pairs(log, power)), estimated]


def few_clicks(name: str, n: int) -> list[list[str]]:
    """A case in which weights are harmful, few clicks with severe bias, without and with clipped propensities."""
    world, known = world_of(name), PositionBias.power(N_RANKS, 2.0)
    log = simulate_clicks(world.train, world.rankers, n, n_ranks=N_RANKS, eta=2.0, random_state=2)
    clicks = f"{int(log.clicked.sum()):,}"
    return [
        ["few clicks, eta 2", clicks, two(world.by_pairs(log, None)), two(world.by_pairs(log, known)), ""],
        ["the same, clipped at 0.1", clicks, "", two(world.by_pairs(log, known.clipped(0.1))), ""],
    ]


def severity(name: str, smoke: bool) -> Section:
    """When weights help and when they are harmful: severity of bias, noise, wrong propensities, and other users."""
    n = 3_000 if smoke else 60_000

    def render(found: list[Found]) -> list[str]:
        values = {piece.key: piece.value for piece in found}
        few, labels = values.pop("few", []), values.pop("labels", "")
        rows = [[label, *cells] for label, cells in values.items()] + few
        return [
            f"## Severity, noise, wrong propensities ({name})\n\nPairwise accuracy / NDCG@10 on the test queries of "
            f'fold 1 after {n:,} impressions; with labels {labels}. "Assumed" weights clicks by `rank ** -eta` of the '
            'assumed severity; "estimated" by harvested propensities (for trust bias: slopes and offsets, learning '
            "from relevance).\n\n" + table(["users", "clicks", "naive", "assumed", "estimated"], rows)
        ]

    pieces: dict[str, Callable[[], Any]] = {"labels": lambda: two(world_of(name).full_labels())}
    pieces |= {label: partial(of_users, name, n, options, assumed) for label, options, assumed in cases()}
    pieces["few"] = partial(few_clicks, name, max(200, n // 100))
    return Section("severity", pieces, render)


# -- other libraries ---------------------------------------------------------------------------------------------------

# All libraries use the same log of a data set.
Peer = Callable[[World, ClickLog, int], Any]


def lightgbm_fit(world: World, log: ClickLog, n_trees: int, *, debiased: bool) -> Any:
    """LightGBM's LambdaMART, which estimates position bias from the positions of the rows."""
    import lightgbm

    X, position = np.asarray(world.train.X)[log.rows(world.train)], {"position": log.rank} if debiased else {}
    data = lightgbm.Dataset(X, log.clicked.astype(int), group=np.diff(log.pointers), **position)
    return lightgbm.train({"objective": "lambdarank", "verbose": -1, "num_threads": 2}, data, n_trees)


def xgboost_fit(world: World, log: ClickLog, n_trees: int, *, debiased: bool) -> Any:
    """XGBoost's LambdaMART; Unbiased LambdaMART takes the order of the rows as their positions."""
    import xgboost

    X = np.asarray(world.train.X)[log.rows(world.train)]
    model = xgboost.XGBRanker(n_estimators=n_trees, lambdarank_unbiased=debiased, n_jobs=2)
    return model.fit(X, log.clicked.astype(int), qid=log.impression)


def ours(world: World, log: ClickLog, _n_trees: int, *, debiased: bool) -> Any:
    """Fit a RankSVM."""
    return fit_from_clicks(RankSVM(), world.train, log, position_bias(log, n_bootstrap=0) if debiased else None).model


PEERS: dict[str, Peer] = {
    "LightGBM, naive": partial(lightgbm_fit, debiased=False),
    "LightGBM, position debiasing": partial(lightgbm_fit, debiased=True),
    "XGBoost, naive": partial(xgboost_fit, debiased=False),
    "XGBoost, unbiased": partial(xgboost_fit, debiased=True),
    "RankSVM, naive, C by clicks": partial(ours, debiased=False),
    "RankSVM, harvested propensities, C by clicks": partial(ours, debiased=True),
}


def beside(name: str, fit: Peer, n: int, n_trees: int) -> list[str] | None:
    """Test values and seconds of a model on the log of a data set; None if its library is not installed."""
    world = world_of(name)
    log = simulate_clicks(world.train, world.rankers, n, n_ranks=N_RANKS, random_state=3)
    started = time.perf_counter()
    try:
        model = fit(world, log, n_trees)
    except ImportError:
        return None
    took = time.perf_counter() - started
    return [two(np.array(quality(model, world.test))), f"{took:.1f}"]


def peers(names: list[str], smoke: bool) -> Section:
    """LightGBM's and XGBoost's own position debiasing on the same clicks."""
    n, n_trees = (500, 5) if smoke else (30_000, 100)

    def render(found: list[Found]) -> list[str]:
        rows = [[*piece.key.split("/"), *piece.value] for piece in found if piece.value is not None]
        return [
            f"## Beside LightGBM and XGBoost\n\nThe same log of {n:,} impressions of fold 1; {n_trees} trees, other "
            "settings theirs. Boosted trees get each impression as a query, its clicks as labels, and (LightGBM: "
            "`position`, XGBoost: `lambdarank_unbiased`, rows in the order shown) estimate position bias while they "
            "learn. Pairwise accuracy / NDCG@10 on test queries; seconds on a machine that others used, too.\n\n"
            + table(["data", "model", "quality", "s"], rows)
        ]

    pieces: dict[str, Callable[[], Any]] = {}
    for name in names:
        pieces |= {f"{name}/{label}": partial(beside, name, fit, n, n_trees) for label, fit in PEERS.items()}
        pieces[f"{name}/RankSVM, labels, C by validation data"] = lambda name=name: [
            two(world_of(name).full_labels()),
            "",
        ]
    return Section("peers", pieces, render)


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--data", {"default": ",".join(DATA), "help": "folders of RANKSVM_DATA"}),
        ("--plot", {"type": Path, "help": "file to draw the curves of learning into"}),
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
        ("--seconds", {"type": float, "help": "begin no piece after so many seconds"}),
    )
    names = ["made"] if options.smoke or data_folder() is None else options.data.split(",")
    sections = [learning(names, options.smoke), severity(names[0], options.smoke), peers(names, options.smoke)]
    pieces = Pieces(options.cache, options.seconds)
    pieces.measure(sections, options.only)
    if pieces.left:
        sys.exit(f"{pieces.left} pieces are left: run the same command again.")
    if options.plot is not None:
        draw(pieces.found("learning"), options.plot)
    publish(
        page("Learning from clicks", "clicks_learning", options, pieces.parts(sections), "lightgbm", "xgboost-cpu"),
        options,
    )


if __name__ == "__main__":
    main()
