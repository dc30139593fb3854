"""Jin & Lin, linear RankSVM on a GPU, NPC 2014."""

from functools import partial
from typing import Any, NamedTuple

from papers.fold_1 import absent, add_counts, is_whole, letor, n_levels, n_pairs, paper_name
from papers.items import Context, Item, Paper
from papers.jin_lin_algorithms import algorithms
from papers.judgment import PERCENT, Measure
from papers.papers import PAPERS
from papers.results import Compared, Grid, Part, Picture
from papers.timing import least_seconds
from ranksvm.device import open_device
from ranksvm.estimators import RankSVM
from ranksvm.exceptions import DeviceError, MissingDependencyError

__all__ = ["PAPER", "PRINTED", "Printed"]

C = 1.0


class Printed(NamedTuple):
    """Seconds of direct counting, order-statistic trees and the GPU, and "prediction accuracy" of each in per cent."""

    direct: float
    tree: float
    gpu: float
    accuracies: tuple[float, float, float]


# Table 1, as printed; in fact MQ2007 has 3 levels, and MSLR-WEB10K has 5.
PRINTED_DATA = {
    name: dict(zip(("rows", "features", "levels", "queries", "pairs", "longest list"), counts, strict=True))
    for name, counts in {
        "MQ2007-list": (743_790.0, 46.0, 1_268.0, 1_017.0, 285_943_893.0, 1_268.0),
        "MQ2008-list": (540_679.0, 46.0, 1_831.0, 471.0, 323_151_792.0, 1_831.0),
        "MSLR-WEB10K": (723_421.0, 136.0, 2.0, 6_000.0, 31_783_391.0, 809.0),
        "MSLR-WEB30K": (2_270_296.0, 136.0, 5.0, 18_919.0, 101_312_036.0, 1_251.0),
        "MQ2007": (42_158.0, 46.0, 2.0, 1_017.0, 246_015.0, 147.0),
        "MQ2008": (9_630.0, 46.0, 3.0, 471.0, 52_325.0, 121.0),
    }.items()
}
# Times, accuracies and speed-ups as printed (Tesla C2050, eps 1e-5, C = 1), even if they contradict each other.
PRINTED = {
    "MQ2007-list": Printed(380.51, 203.02, 22.46, (81.11, 81.11, 81.11)),
    "MQ2008-list": Printed(493.12, 276.46, 37.17, (82.11, 82.11, 80.72)),
    "MSLR-WEB10K": Printed(2791.22, 2481.35, 276.11, (61.25, 61.04, 60.43)),
    "MSLR-WEB30K": Printed(19449.65, 17019.16, 939.38, (60.96, 60.79, 60.45)),
    "MQ2007": Printed(12.67, 10.18, 5.90, (70.59, 70.59, 70.60)),
    "MQ2008": Printed(0.67, 0.48, 1.37, (80.24, 80.24, 80.24)),
}
SPEED_UPS = {
    "MQ2007-list": (16.94, 9.04),
    "MQ2008-list": (11.81, 7.44),
    "MSLR-WEB10K": (10.11, 8.99),
    "MSLR-WEB30K": (20.70, 18.12),
    "MQ2007": (2.18, 1.73),
    "MQ2008": (0.49, 0.35),
}
# Number of printed digits.
SPEED_UP_DIGITS = 2
# Columns that compare with the other solvers of Table 3.
OTHER_SOLVERS = ("beside order-statistic trees, %", "beside the GPU (P-SWX), %")
DATA = ("MQ2008", "MQ2007", "MQ2007-partial", "MQ2007-list", "MQ2008-list", "MSLR-WEB10K", "MSLR-WEB30K")
TOLERANCES = tuple(10.0**-power for power in range(1, 9))


# -- Table 1 -----------------------------------------------------------------------------------------------------------


def data_sets(context: Context) -> list[Part]:
    """Table 1: the training parts of first folds; missing data sets have only the printed numbers."""
    table, here = Compared("counts", ("data, fold 1",)), context.sources.here(DATA)
    for name in [*here, *absent(PRINTED_DATA, here)]:
        printed, counts = PRINTED_DATA[paper_name(name)], dict.fromkeys(PRINTED_DATA["MQ2008"])
        if name in here:
            data = context.sources.read(name)
            lengths = [len(rows) for _, rows in data.queries]
            found = (data.n_rows, data.n_features, n_levels(data), len(lengths), n_pairs(data), max(lengths))
            counts = dict(zip(counts, map(float, found), strict=True))
        add_counts(table, name, counts, printed)
    return [
        "Training parts. Levels: most different labels of a query. The paper prints 2 levels for MQ2007 and "
        "MSLR-WEB10K; they have 3 and 5.",
        table,
    ]


# -- times -------------------------------------------------------------------------------------------------------------


def gpu() -> str | None:
    """Name of the GPU of this machine, or None."""
    try:
        open_device("cuda:0")
    except (DeviceError, MissingDependencyError):
        return None
    return "cuda:0"


def times(context: Context) -> list[Part]:
    """Seconds of a default fit on CPU and GPU; printed speed-ups, and those that follow from the printed seconds."""
    device, rows, here = gpu(), [], context.sources.here(DATA)
    for name in here:
        data, printed = context.sources.read(name), PRINTED[paper_name(name)]
        cells = []
        places: list[dict[str, Any]] = [{"n_jobs": 1}, {}, {"device": device}]
        for options in places:
            if options == {"device": None}:
                cells.append("no GPU here")
                continue
            model = RankSVM(C, **options)
            context.say(f"{name}, {options}")
            fit = partial(model.fit, data.X, data.y, qid=data.qid)
            cells.append(f"{least_seconds(fit, 1 if context.quick else 5, 5.0):.4f}")
        rows.append((name, *cells, *_printed_seconds(printed)))
    for name in absent(PRINTED_DATA, here):
        rows.append((name, "no data here", "no data here", "no data here", *_printed_seconds(PRINTED[name])))
    header = ["data, fold 1", "one thread, s", "all threads, s", "GPU, s"]
    header += ["printed: direct count, s", "tree, s", "GPU, s"]
    table = Compared("speed-ups", ("data",))
    for name, printed in PRINTED.items():
        for what, seconds, speed_up in zip(
            ("direct count / GPU", "tree / GPU"), (printed.direct, printed.tree), SPEED_UPS[name], strict=True
        ):
            ratio = seconds / printed.gpu
            # how much the rounding of the seconds can change the speed-up
            moved = ratio * 0.005 * (1.0 / seconds + 1.0 / printed.gpu)
            measure = Measure(SPEED_UP_DIGITS, 0.5 * 10.0**-SPEED_UP_DIGITS + moved, 0)
            table.add((name,), what, measure, ratio, speed_up)
    wrong = [entry for entry in table.entries if entry.verdict == "different"]
    said = ", ".join(f"{entry.labels[0]}, {entry.name}" for entry in wrong)
    return [
        f"A default fit at C = {C:g}, certified to 1e-4, checks of the input included, the least of 5; printed are the "
        "seconds of a Tesla C2050 and a Xeon E5620 at eps = 1e-5. The machines are not comparable, so the difference "
        "is not judged. `benchmarks/gpu.py` measures fits on a GPU in full, with made data of the other shapes.",
        Grid("seconds", header, rows),
        "## The printed speed-ups",
        "The first figure of a cell is the ratio of the printed seconds; the second one is the printed speed-up. "
        f"*Close* means that the rounding of the seconds explains the difference. It does not for: {said or 'none'}.",
        table,
    ]


def _printed_seconds(printed: Printed) -> list[str]:
    return [f"{value:,.2f}" for value in (printed.direct, printed.tree, printed.gpu)]


# -- accuracy ----------------------------------------------------------------------------------------------------------


def accuracy(context: Context) -> list[Part]:
    """Table 3: the printed "prediction accuracy" of the three solvers, and our accuracy on training and test part."""
    table, here = Compared("figures", ("data, fold 1",)), context.sources.here(DATA)
    verdicts = []
    for name in here:
        printed = PRINTED[paper_name(name)].accuracies
        train, test = context.sources.read(name), context.sources.read(name, part="test")
        model = RankSVM(C, tol=1e-8).fit(train.X, train.y, qid=train.qid)
        found = {}
        for label, data in (("training", train), ("test", test)):
            value = letor(data, model.predict(data.X), ["pairwise_accuracy"])["pairwise_accuracy"]
            theirs = printed[0] if label == "training" else None
            table.add((name,), f"of the {label} part, %", PERCENT, value, theirs, judged=is_whole(name))
            found[label] = value
        for solver, theirs in zip(OTHER_SOLVERS, printed[1:], strict=True):
            table.add((name,), solver, PERCENT, found["training"], theirs, judged=is_whole(name))
        if is_whole(name):
            near = min(found, key=lambda label: abs(found[label] - printed[0]))
            verdicts.append(
                f"{name}: printed {printed[0]:.2f} %, training part {found['training']:.2f} %, test part "
                f"{found['test']:.2f} %: it is that of the {near} part."
            )
    for name in absent(PRINTED_DATA, here):
        for head, theirs in zip(("of the training part, %", *OTHER_SOLVERS), PRINTED[name].accuracies, strict=True):
            table.add((name,), head, PERCENT, None, theirs)
    return [
        f'The paper prints a "prediction accuracy" of each of its three solvers, at C = {C:g}. In the first column the '
        "printed figure is that of direct counting; the last two columns set our training accuracy beside the printed "
        "ones of the other solvers. Ours is the exact model, certified to 1e-8. Pairwise accuracy, ties wrong.",
        table,
        "\n".join(f"- {verdict}" for verdict in verdicts),
        "The three solvers minimize one function, so their figures should be equal: on MQ2008-list the GPU has "
        f"{PRINTED['MQ2008-list'].accuracies[2]:.2f} % and the others {PRINTED['MQ2008-list'].accuracies[0]:.2f} %.",
    ]


# -- Fig. 1 ------------------------------------------------------------------------------------------------------------


def figure_1(context: Context) -> list[Part]:
    """Fig. 1: relative distance from the optimum against time."""
    device, curves = gpu(), {}
    for name in context.sources.here(DATA):
        data = context.sources.read(name)
        options: dict[str, Any] = {"qid": data.qid}
        best = RankSVM(C, tol=1e-10).fit(data.X, data.y, **options).objective_
        for place in ("cpu",) if device is None else ("cpu", device):
            context.say(f"{name}, {place}")
            found = curves[name, place] = []
            for tol in TOLERANCES[::4] if context.quick else TOLERANCES:
                model = RankSVM(C, tol=tol, device=place)
                taken = least_seconds(partial(model.fit, data.X, data.y, **options), 1 if context.quick else 3, 5.0)
                found.append((tol, taken, abs(model.objective_ - best) / abs(best)))
    rows = [
        (name, place, f"{tol:.0e}", f"{taken:.4f}", f"{distance:.1e}")
        for (name, place), found in curves.items()
        for tol, taken, distance in found
    ]
    return [
        "Fig. 1 of the paper draws |f - f*| / |f*| against seconds, for three solvers and six data sets. It prints no "
        "numbers, so nothing is judged: the paper says that its GPU is the fastest on all but MQ2008. Ours: fits at "
        f"C = {C:g}, each from nothing, that stop at the `tol` of the first column; f* is the objective at "
        f"`tol=1e-10`.{'' if device else ' There is no GPU here.'}",
        Grid("curves", ["data, fold 1", "device", "tol", "seconds", "relative distance from the optimum"], rows),
        Picture("curves", "relative distance from the optimum against time", (7.0, 4.5), partial(_draw, curves=curves)),
    ]


def _draw(figure: Any, curves: dict[tuple[str, str], list[tuple[float, float, float]]]) -> None:
    from ranksvm.plotting.figures import MARKERS, line_style

    axis = figure.subplots()
    for number, (key, found) in enumerate(curves.items()):
        style = line_style(number) | {"marker": MARKERS[number % len(MARKERS)]}
        _, taken, distance = zip(*found, strict=True)
        # smaller distances are drawn at the bottom
        axis.loglog(taken, [max(value, 1e-12) for value in distance], label=", ".join(key), **style)
    axis.set_xlabel("seconds")
    axis.set_ylabel("relative distance from the optimum")
    axis.grid(alpha=0.3)
    axis.legend()


PAPER = Paper(
    "jin-lin-2014",
    PAPERS["jin-lin-2014"],
    (
        Item(
            "algorithms", "Algorithms and claims: what is done instead, why, and where", algorithms, also=("contents",)
        ),
        Item("data", "Table 1: the data sets", data_sets, DATA, ("table-1",)),
        Item("times", "Table 2: training times, and speed-ups by the GPU", times, DATA, ("table-2",)),
        Item("accuracy", 'Table 3: "prediction accuracy" is that of the training data', accuracy, DATA, ("table-3",)),
        Item("figure-1", "Fig. 1: distance from the optimum against time", figure_1, DATA, ("fig-1",), draws=True),
    ),
)
