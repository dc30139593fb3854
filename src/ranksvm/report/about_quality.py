"""Sections on quality: metrics with intervals and tests, curves of NDCG, wins and losses by query, scores by label."""

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from ranksvm._util.tables import CORRECTIONS, Table
from ranksvm._util.text import count, counted, plain, queries
from ranksvm.metrics import Comparison, Evaluation
from ranksvm.metrics.evaluation import metrics_table
from ranksvm.metrics.significance import comparison_table
from ranksvm.plotting import CutoffDisplay, DifferenceDisplay, LabelDisplay
from ranksvm.plotting.figures import short_names
from ranksvm.report.blocks import Block, Figure, Grid, Section, Text, drawing
from ranksvm.report.subject import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["curves_section", "metrics_section", "queries_section", "scores_section", "summary"]

# Maximum number of cells in the table of queries. At 35 bytes each they take less than half of the megabyte that a
# report may take.
_CELLS = 10_000
# maximum number of baselines whose differences are drawn
_DRAWN = 3


def summary(subject: Subject) -> list[str]:
    """Sentences about the result: the model's mean of the first metric, and its comparison with every baseline."""
    evaluation = next(iter(subject.evaluations.values()))
    start = (
        f"On {queries(evaluation.n_queries)} with {counted(evaluation.n_rows, 'document')} the mean {subject.metric} of"
    )
    if math.isnan(mean := evaluation[subject.metric]):
        return [f"{start} {subject.name} is undefined."]
    low, high = evaluation.interval(subject.metric)
    interval = "" if math.isnan(low) else f" (95 % interval {low:.4f} to {high:.4f})"
    sentences = [f"{start} {subject.name} is {mean:.4f}{interval}."]
    sentences += [_compared(test, _corrected(subject)) for test in subject.comparisons if test.metric == subject.metric]
    return sentences


def _compared(test: Comparison, corrected: str) -> str:
    """The difference from a baseline, and whether it may be chance."""
    low, high = test.confidence_interval
    interval = "" if math.isnan(low) else f"95 % interval {low:+.4f} to {high:+.4f}, "
    p = float(test.p_value if test.adjusted_p_value is None else test.adjusted_p_value)
    numbers = f"{test.difference:+.4f} ({interval}{corrected or 'p'} = {p:.2g})"
    if p >= 0.05:
        return f"Its difference from {test.system_a} may be chance: {numbers}."
    return f"It is {'better' if test.difference > 0 else 'worse'} than {test.system_a}: {numbers}."


def metrics_section(subject: Subject) -> Section:
    """The section with the mean of each metric for each system, confidence intervals, and paired tests."""
    first = next(iter(subject.evaluations.values()))
    caption = f"Means over {queries(first.n_queries)}, {count(first.n_without_relevant)} without a relevant document"
    table = dataclasses.replace(
        metrics_table(subject.evaluations), caption=f"{caption} (convention {first.convention})"
    )
    blocks: list[Block] = [
        Grid(table),
        Text("Intervals come from the t distribution, which treats the queries as a random sample."),
    ]
    if not subject.baselines:
        blocks.append(Text("No baseline was given, so there is nothing to compare the model with."))
    elif not subject.comparisons:
        blocks.append(Text("No metric is defined for all systems, so they cannot be compared."))
    else:
        blocks += [Grid(_tests_table(subject)), Text(_how_tested(subject))]
    return Section("metrics", "Metrics", blocks)


def _tests_table(subject: Subject) -> Table:
    table = comparison_table(subject.comparisons, _corrected(subject))
    hidden = (*table.hidden, "system_b", "mean_a", "mean_b", "n_queries")
    return dataclasses.replace(
        table,
        caption=f"{subject.name} minus each baseline, paired over queries, with 95 % intervals",
        headings={**table.headings, "system_a": "baseline"},
        hidden=hidden,
        formats={name: "+.4f" for name in ("difference", "low", "high")},
    )


def _corrected(subject: Subject) -> str:
    """Heading of corrected p-values; empty if there is one comparison for each metric, so nothing to correct."""
    return CORRECTIONS[subject.correction] if len(subject.baselines) > 1 else ""


def _how_tested(subject: Subject) -> str:
    words = (
        "P-values come from paired randomization tests (Fisher's; 10,000 random swaps, or all of them if few "
        "queries differ), and intervals of differences come from the t distribution."
    )
    n_tests = len(subject.baselines)
    if n_tests == 1 or subject.correction == "none":
        return f"{words} They are not corrected for the number of comparisons."
    name = {"holm": "Holm's procedure", "bonferroni": "Bonferroni's correction", "tukey": "Tukey's randomized HSD test"}
    return f"{words} P-values are corrected by {name[subject.correction]} for the {n_tests} comparisons of each metric."


def curves_section(subject: Subject) -> Section:
    """The section with the curves of NDCG@k against k."""
    curves = dict(zip(short_names(list(subject.curves)), subject.curves.values(), strict=True))
    svg = drawing("curves", lambda axes: CutoffDisplay.from_evaluations(curves, "ndcg", ax=axes))
    return Section(
        "curves", "NDCG at every cut-off", [Figure(svg, f"Mean NDCG@k; the band is {subject.name}'s 95 % interval.")]
    )


def queries_section(subject: Subject) -> Section:
    """The first metric by query, and the queries on which the model wins and loses."""
    metric = subject.metric
    blocks: list[Block] = []
    model, *baselines = subject.evaluations.items()
    drawn = [test.system_a for test in subject.comparisons if test.metric == metric][:_DRAWN]
    for place, name in enumerate(drawn):
        evaluation = subject.evaluations[str(name)]

        def draw(axes: "Axes", evaluation: Evaluation = evaluation) -> None:
            DifferenceDisplay.from_evaluations(evaluation, model[1], metric, ax=axes)

        svg = drawing(f"differences-{place}", draw, height=2.6)
        blocks.append(
            Figure(svg, f"{metric} of {model[0]} minus {metric} of {name}, query by query, the largest first.")
        )
    if not baselines:
        blocks.append(Text(f"Without a baseline there are no wins and losses; the table has {metric} of every query."))
    elif len(baselines) > len(drawn):
        blocks.append(Text(f"Differences are drawn for {len(drawn)} of {counted(len(baselines), 'baseline')}."))
    table, n_left = _queries_table(subject)
    if n_left:
        by = "smallest difference" if baselines else f"highest {metric}"
        blocks.append(Text(f"The {queries(n_left)} with the {by} are not shown, to keep this page small."))
    signs = f"against {baselines[0][0]}" if baselines else None
    blocks.append(Grid(table, search="queries", signs=signs))
    title = "Wins and losses by query" if baselines else f"{metric} by query"
    return Section("queries", title, blocks)


def _queries_table(subject: Subject) -> tuple[Table, int]:
    """A table with a row per query, the worst difference or value first; and how many queries did not fit into it."""
    data, metric = subject.data, subject.metric
    values = {name: evaluation.per_query[metric] for name, evaluation in subject.evaluations.items()}
    model = values[subject.name]
    differences = {f"against {name}": model - values[name] for name in subject.baselines}
    n_columns = 3 + len(values) + len(differences)
    order = next(iter(differences.values()), model)
    # stable sorts put undefined values last
    chosen = np.argsort(-np.abs(order) if differences else order, kind="stable")[: max(1, _CELLS // n_columns)]
    chosen = chosen[np.argsort(order[chosen], kind="stable")]
    best = np.maximum.reduceat(data.queries.to_sorted(data.y.astype(np.float64)), data.queries.pointers[:-1])
    columns = {
        "query": [str(query) for query in plain(data.queries.ids[chosen])],
        **{f"{name} value": column[chosen] for name, column in values.items()},
        **{name: column[chosen] for name, column in differences.items()},
        "documents": data.queries.sizes[chosen],
        "best label": best[chosen],
    }
    table = Table(
        columns,
        f"{metric} of each query",
        headings={f"{name} value": name for name in values},
        formats={"best label": "g", **dict.fromkeys(differences, "+.4f")},
    )
    return table, len(order) - len(chosen)


def scores_section(subject: Subject) -> Section:
    """Scores within queries by label."""
    ids = subject.data.query_ids
    svg = drawing("scores", lambda axes: LabelDisplay.from_scores(subject.data.y, subject.scores, ids, ax=axes))
    caption = (
        "Scores, less the mean of their query, by label: boxes from quartile to quartile with the median, whiskers "
        "from the 5th to the 95th percentile."
    )
    return Section("scores", "Scores against labels", [Figure(svg, caption)])
