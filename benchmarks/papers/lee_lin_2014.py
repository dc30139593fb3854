"""Lee & Lin, "Large-scale linear RankSVM", Neural Computation 26 (2014)."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from papers.adjacent_pairs import adjacent
from papers.contents import CURVES, NOT_HERE, Place, contents
from papers.data_sets import Parts
from papers.fold_1 import absent, add_counts, is_whole, letor, n_levels, n_pairs, paper_name
from papers.items import Context, Item, Paper
from papers.judgment import COUNT, NDCG, PERCENT
from papers.papers import PAPERS
from papers.pointwise import pointwise
from papers.results import Compared, Grid, Part
from papers.timing import least_seconds
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.estimators import RankSVM, RankSVMCV

__all__ = ["PAPER"]

# The numbers of Table 2 that we have, for the training parts of first folds.
PRINTED_DATA = {
    "MQ2007": {"rows": 42_158.0, "pairs": 246_015.0},
    "MQ2008": {"rows": 9_630.0, "queries": 471.0, "pairs": 52_325.0},
    "MSLR-WEB30K": {"rows": 2_270_296.0, "features": 136.0, "pairs": 101_312_036.0},
    "Yahoo-set1": {"rows": 473_134.0, "features": 519.0},
    "Yahoo-set2": {},
    "MQ2007-list": {"rows": 743_790.0, "features": 46.0, "levels": 1_268.0, "pairs": 285_943_893.0},
    "MQ2008-list": {"rows": 540_679.0, "features": 46.0, "levels": 1_831.0},
}
# Seconds to train on a 2.5 GHz Xeon E5504.
PRINTED_SECONDS = {
    "MQ2007": "0.5 to 1.3",
    "MQ2008": "0.5",
    "MSLR-WEB30K": "1,601.6",
    "Yahoo-set1": "117 to 335",
    "Yahoo-set2": "not known",
    "MQ2007-list": "38.7",
    "MQ2008-list": "16.6",
}
DATA = ("MQ2008", "MQ2007", "MQ2007-partial", "MSLR-WEB30K", "Yahoo-set1", "Yahoo-set2", "MQ2007-list", "MQ2008-list")
SMALL = ("MQ2008", "MQ2007", "MQ2007-partial")


@dataclass(frozen=True)
class Quality:
    """The C that a measure on validation data chose, and the test figure with this C."""

    C: float
    figure: float


# C from Table 3 and test figures from Table 5, by pairwise accuracy (in per cent) and by mean NDCG.
PRINTED_QUALITY = {
    "MQ2008": {"pairwise_accuracy": Quality(2.0**7, 82.70), "mean_ndcg": Quality(2.0**7, 0.4571)},
    "MQ2007": {"pairwise_accuracy": Quality(2.0**-5, 70.36), "mean_ndcg": Quality(2.0**-15, 0.5211)},
}
MEASURES = {"pairwise_accuracy": PERCENT, "mean_ndcg": NDCG}
HEADS = {"pairwise_accuracy": "pairwise accuracy, %", "mean_ndcg": "mean NDCG"}
# The default of the published stopping rule: |gradient| <= EPS |gradient at 0|.
EPS = 1e-3
CS = 2.0 ** np.arange(-15, 11)
CONVENTION = (
    "Mean NDCG: gain 2^y - 1, discount 1 / log2(max(2, rank)), averaged over all cut-offs of a query, then over the "
    "queries; one without a relevant document counts 0. Pairwise accuracy pools the pairs of all queries, ties wrong."
)


# -- data and times ----------------------------------------------------------------------------------------------------


def data_sets(context: Context) -> list[Part]:
    """Rows, queries and pairs of the training parts."""
    table, here = Compared("counts", ("data, fold 1",)), context.sources.here(DATA)
    for name in here:
        data = context.sources.read(name)
        counts: dict[str, float | None] = {
            "rows": data.n_rows,
            "queries": data.queries.n_queries,
            "features": data.n_features,
            "levels": n_levels(data),
            "pairs": n_pairs(data),
        }
        add_counts(table, name, counts, PRINTED_DATA[paper_name(name)])
    for name in absent(PRINTED_DATA, here):
        for what, printed in PRINTED_DATA[name].items():
            add_counts(table, name, {what: None}, {what: printed})
    return ["Training parts. Levels: most different labels of a query.", *_partial(context), table]


def _partial(context: Context) -> list[Part]:
    used = context.sources.here(SMALL)
    return [] if "MQ2007-partial" not in used else ["MQ2007-partial is 85 % of the rows of MQ2007: not judged."]


def times(context: Context) -> list[Part]:
    """Seconds of a default fit; the machines are ten years apart, so nothing is judged."""
    rows, here = [], context.sources.here(DATA)
    for name in here:
        data = context.sources.read(name)
        C = PRINTED_QUALITY.get(paper_name(name), {}).get("pairwise_accuracy", Quality(1.0, 0.0)).C
        model = RankSVM(C)
        context.say(name)
        taken = least_seconds(partial(model.fit, data.X, data.y, qid=data.qid), 1 if context.quick else 5, 5.0)
        cells = f"{C:g}", f"{taken:.4f}", f"{model.duality_gap_ / model.objective_:.1e}"
        rows.append((name, *cells, PRINTED_SECONDS[paper_name(name)]))
    rows += [(name, "", "no data here", "", PRINTED_SECONDS[name]) for name in absent(PRINTED_SECONDS, here)]
    return [
        "A default fit, checks of the input included, least of 5, beside the printed training times (one thread of a "
        "2.5 GHz Xeon E5504 of 2009, at its own tolerance). The machines are not comparable, so the difference is not "
        "judged; `benchmarks/speed.py` times the published solver on the same machine, at equal accuracy.",
        Grid("seconds", ["data, fold 1", "C", "ours, s", "certificate (relative)", "printed, s"], rows),
    ]


# -- quality -----------------------------------------------------------------------------------------------------------


def quality(context: Context) -> list[Part]:
    """Table 5 with the C of Table 3, at the optimum and where the published rule stops; and with C chosen here."""
    table, chosen = Compared("figures", ("data, fold 1", "model", "C")), Compared("C", ("data, fold 1", "chosen by"))
    for name in context.sources.here(SMALL):
        parts, judged = context.sources.parts(name), is_whole(name)
        for measure, printed in PRINTED_QUALITY[paper_name(name)].items():
            for label, model in _models(printed.C, parts.train).items():
                value = letor(parts.test, model.predict(parts.test.X), [measure])[measure]
                labels = (name, label, f"2^{np.log2(printed.C):.0f}")
                table.add(labels, HEADS[measure], MEASURES[measure], value, printed.figure, judged=judged)
            choice, value = _chosen(parts, measure, context.quick)
            table.add(
                (name, "C chosen here", f"2^{np.log2(choice):.0f}"),
                HEADS[measure],
                MEASURES[measure],
                value,
                printed.figure,
                judged=judged,
            )
            exponents = float(np.log2(choice)), float(np.log2(printed.C))
            chosen.add((name, HEADS[measure]), "log2 of C", COUNT, *exponents, judged=judged)
    return [
        CONVENTION,
        "*Optimum*: the exact solution at the printed C, certified to 1e-8. *Published rule*: TRON's steps, stopped "
        f"where the gradient is at most {EPS:g} of that at 0, as the published program does; it ends short of the "
        "optimum (item `stopping`).",
        *_partial(context),
        table,
        "Table 3, the C that the validation part chooses, here from 2^-15 to 2^10:",
        chosen,
    ]


def _models(C: float, train: RankingData) -> dict[str, RankSVM]:
    """The exact model, and the model at which the published rule stops."""
    stopped = RankSVM(C, solver="tron", stopping="gradient", tol=EPS)
    return {
        label: model.fit(train.X, train.y, qid=train.qid)
        for label, model in (("optimum", RankSVM(C, tol=1e-8)), ("published rule", stopped))
    }


def _chosen(parts: Parts, measure: str, quick: bool) -> tuple[float, float]:
    """C chosen on the validation part, and the test figure."""
    train, vali, test = parts
    ranker = RankSVMCV(CS[::5] if quick else CS, metric=measure, convention="letor")
    ranker.fit(train.X, train.y, qid=train.qid, eval_set=(vali.X, vali.y), eval_qid=vali.qid)
    return float(ranker.C_), letor(test, ranker.predict(test.X), [measure])[measure]


# -- TRON --------------------------------------------------------------------------------------------------------------


def stopping(context: Context) -> list[Part]:
    """Quality after each of TRON's steps, where its rule stops, and at the optimum."""
    train, _, test = context.sources.parts("MQ2008")
    C, names, rows = PRINTED_QUALITY["MQ2008"]["mean_ndcg"].C, list(MEASURES), []
    options: dict[str, Any] = {"solver": "tron", "stopping": "gradient"}
    stopped = RankSVM(C, **options, tol=EPS).fit(train.X, train.y, qid=train.qid)
    optimum = RankSVM(C, tol=1e-10).fit(train.X, train.y, qid=train.qid)
    at_stop = Compared("figures", ("model",))
    for number in range(1, stopped.n_iter_ + 5):
        model = RankSVM(C, **options, tol=1e-9, max_iter=number).fit(train.X, train.y, qid=train.qid)
        history = model.history_
        size = np.sqrt(history["duality_gap"][-1] / history["duality_gap"][0])
        over = model.objective_ / optimum.objective_ - 1.0
        gap, products = f"{model.duality_gap_ / model.objective_:.1e}", history["hessian_products"][-1]
        figures = letor(test, model.predict(test.X), names)
        note = "the rule stops here" if number == stopped.n_iter_ else ""
        if note:
            for name, printed in PRINTED_QUALITY["MQ2008"].items():
                at_stop.add((f"step {number}",), HEADS[name], MEASURES[name], figures[name], printed.figure)
        cells = [f"{figures['pairwise_accuracy']:.2f}", f"{figures['mean_ndcg']:.4f}"]
        rows.append((number, products, f"{size:.1e}", gap, f"{over:.1e}", *cells, note))
    figures = letor(test, optimum.predict(test.X), names)
    cells = [f"{figures['pairwise_accuracy']:.2f}", f"{figures['mean_ndcg']:.4f}"]
    gap = f"{optimum.duality_gap_ / optimum.objective_:.1e}"
    rows.append(("optimum", "", "0", gap, "0", *cells, ""))
    header = ["step", "products", "gradient / at 0", "certificate", "over the optimum", *HEADS.values(), ""]
    return [
        'MQ2008 fold 1, C = 2^7. `RankSVM(solver="tron", stopping="gradient", tol=1e-3)` takes the steps of the '
        "published solver and stops where the gradient is at most 1e-3 of that at 0. Where it does:",
        at_stop,
        "The printed figures are those of a model well short of the optimum, as its certificate (relative to the "
        "objective) says; conjugate gradients amplify round-off, so the last digit depends on the order of sums.",
        Grid("steps", header, rows),
    ]


FIGURES = (4, 5, 6, 7)
PLACES = (
    Place(
        "Table 2",
        "data sets",
        "`data`",
        "some numbers of queries, levels and pairs, and the column k_q / l_q: " + NOT_HERE,
    ),
    Place("Table 3", "C of RankSVM", "`quality`", "data sets other than MQ2007 and MQ2008: " + NOT_HERE),
    Place("Table 4", "C of both support vector regressions", "ours: `pointwise`", NOT_HERE),
    Place(
        "Table 5",
        "accuracy, NDCG and seconds of RankSVM and the regressions",
        "`quality`, `pointwise`, `times`",
        "regression with the absolute loss, seconds of the regressions, and data sets other than MQ2007 and MQ2008: "
        + NOT_HERE,
    ),
    Place("Table 6", "forest and boosting", "`pointwise`", "data sets other than MQ2008: " + NOT_HERE),
    Place("Table 7", "1,000 trees", "none", NOT_HERE),
    Place("Tables 8, 9", "not known here", "none", NOT_HERE),
    Place("Table 10", "all pairs or adjacent levels", "`adjacent`", "its C: " + NOT_HERE),
    Place("Fig. 4", "ways to sum over pairs", "`benchmarks/sweep_levels.py`", CURVES),
    Place("Fig. 5", "trees for many levels", "`benchmarks/many_levels.py`", CURVES),
    Place("Fig. 6", "cutting planes", "`benchmarks/cutting_plane.py`", CURVES),
    Place("Fig. 7", "speed", "`benchmarks/speed.py`", CURVES),
)

PAPER = Paper(
    "lee-lin-2014",
    PAPERS["lee-lin-2014"],
    (
        contents(PLACES, ("table-4", "table-7", "table-8", "table-9", *(f"figure-{number}" for number in FIGURES))),
        Item("data", "Table 2: the data sets", data_sets, DATA, ("table-2",)),
        Item("times", "Training times", times, DATA),
        Item(
            "quality",
            "Tables 3 and 5: C, pairwise accuracy and mean NDCG of RankSVM",
            quality,
            SMALL,
            ("table-3", "table-5"),
        ),
        Item("stopping", "Where the published stopping rule ends", stopping, ("MQ2008",)),
        Item(
            "pointwise",
            "Tables 5 and 6: regression, forest and boosting on MQ2008",
            pointwise,
            ("MQ2008",),
            ("table-6",),
        ),
        Item("adjacent", "Table 10: all pairs against adjacent levels", adjacent, (), ("table-10",)),
    ),
)
