"""The sections of a report: on the model and its data, and on the quality of its rankings."""

import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm._util.tables import CORRECTIONS, Table
from ranksvm._util.text import aligned, count, counted, feature_label, isolated, number, plain, queries, weight_columns
from ranksvm.additive.interactions import all_pairs
from ranksvm.additive.shapes import Shape
from ranksvm.datasets.description import data_facts, described_data, level_rows
from ranksvm.estimators import AdditiveRankSVMCV, KernelRankSVMCV, RankSVM, RankSVMCV
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.estimators.base.summary import certificate_in_words, described_fit, fit_facts
from ranksvm.metrics import Comparison, Evaluation
from ranksvm.metrics.evaluation import metrics_table
from ranksvm.metrics.significance import comparison_table
from ranksvm.plotting import (
    CutoffDisplay,
    DifferenceDisplay,
    GridDisplay,
    LabelDisplay,
    PathDisplay,
    ShapeDisplay,
    WeightsDisplay,
)
from ranksvm.plotting.figures import by_rule, legend_above
from ranksvm.report.blocks import HEIGHT, Block, Code, Details, Facts, Figure, Grid, Section, Text, drawing
from ranksvm.report.subject import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "choice_section",
    "curves_section",
    "data_section",
    "fit_section",
    "metrics_section",
    "queries_section",
    "scores_section",
    "summary",
    "weights_section",
    "worst_section",
]

# Maximum number of features in the table, and in the figure.
_LISTED, _DRAWN = 300, 20
# Number of documents listed for a query: the first ones, and those with the highest labels below them.
_FIRST, _BELOW = 15, 10
# Number of features named for a document, and for the pair of documents that explains a query
_NAMED, _NAMED_OF_PAIR = 3, 5
_NOT_LINEAR = (
    "A score of this model is not a sum over the features: there are no weights, and no contributions of features."
)
# Maximum numbers of shapes and interactions that are drawn, and of rows in the table of bounds on interactions.
_SHAPES, _INTERACTIONS, _PAIRS = 10, 4, 50
# Number of shapes in a row of a figure, and the height of a row in inches.
_COLUMNS, _HEIGHT = 2, 1.75


def data_section(subject: Subject) -> Section:
    """The data that the model is measured on, and its training data."""
    blocks: list[Block] = []
    for part, data in (("test", subject.data), ("training", subject.train)):
        if data is None:
            continue
        found = described_data(data)
        blocks.append(Facts(data_facts(found), f"The {part} data"))
        columns: Sequence[Sequence[str]] = list(zip(*level_rows(found), strict=True))
        names = ("level", "documents", "share")
        labels = dict(zip(names, columns, strict=True))
        blocks.append(Grid(Table(labels, f"Labels of the {part} data", numbers=names)))
    if subject.train is None:
        blocks.append(Text("The training data were not given."))
    return Section("data", "Data", blocks)


def fit_section(subject: Subject) -> Section:
    """The model, its fit, and what its certificate proves."""
    facts = fit_facts(described_fit(subject.ranker))
    return Section(
        "fit",
        "The fit and its certificate",
        [Text(certificate_in_words(subject.ranker)), Facts(facts, "The fit"), Code(repr(subject.model))],
    )


def choice_section(subject: Subject) -> Section:
    """The scores by which C, and gamma, were chosen."""
    ranker, title = subject.ranker, "Choice of C"
    if not isinstance(ranker, RankSVMCV | KernelRankSVMCV | AdditiveRankSVMCV):
        text = "The model was fitted with the settings given: no other C was tried, so there is nothing to show here."
        return Section("path", title, [Text(text)])
    metric = ranker.fitted_params_["metric"]
    found = np.flatnonzero(~np.isnan(ranker.mean_scores_))  # early stopping leaves out the others
    error = float(ranker.standard_errors_.flat[found[(ranker.best_iteration_ or 1) - 1]])
    parts = ranker.scores_.shape[-1]
    on = f"mean over {parts} folds" if parts > 1 else "on validation data"
    tried = f"{len(found):,} settings"
    known = "" if math.isnan(error) or ranker.best_iteration_ is None else f" ± {number(error)} (one standard error)"
    gamma = getattr(ranker, "gamma_", None)
    chosen = f"C = {ranker.C_:.4g} was" if gamma is None else f"C = {ranker.C_:.4g} and gamma = {gamma:.4g} were"
    if isinstance(ranker, AdditiveRankSVMCV):
        counted = f"{ranker.n_interactions_} interaction{'s' * (ranker.n_interactions_ != 1)}"
        chosen = f"C = {ranker.C_:.4g} with step weight {ranker.step_weight_:g} and {counted} was"
    how = f"{metric}{by_rule(ranker.fitted_params_['rule'])}"
    text = f"{chosen} chosen among {tried} by {how}: {number(ranker.best_score_)}{known}, {on}."
    for name, value, values in (("C", ranker.C_, ranker.Cs_), ("gamma", gamma, getattr(ranker, "gammas_", []))):
        if len(values) > 1 and value in (values[0], values[-1]):
            text += f" {name} is at the end of its range: values beyond it may be better."
    if isinstance(ranker, AdditiveRankSVMCV):
        return Section("path", title, [Text(text), Grid(_settings_table(ranker, metric))])
    if isinstance(ranker, KernelRankSVMCV):

        def draw(axes: "Axes") -> None:
            GridDisplay.from_estimator(ranker, ax=axes)
            # the text says what was chosen, and the figure is too narrow for a legend beside the axes
            axes.set_title("")
            legend_above(axes)

        svg = drawing("path", draw, height=HEIGHT + 0.1 * len(ranker.gammas_))
        caption = f"{metric} against C; the band is for the chosen gamma."
    else:
        svg = drawing("path", lambda axes: PathDisplay.from_estimator(ranker, ax=axes))
        caption = f"{metric} against C."
    return Section("path", title, [Text(text), Figure(svg, caption)])


def _settings_table(ranker: AdditiveRankSVMCV, metric: str) -> Table:
    """The best C of each step weight and number of interactions."""
    best = np.nanargmax(ranker.mean_scores_, axis=1)
    counts = ["listed" if number < 0 else str(number) for number in ranker.interaction_counts_.tolist()]
    columns = {
        "step weight": [f"{weight:g}" for weight in ranker.step_weights_.tolist()],
        "interactions": counts,
        "best C": [f"{C:.4g}" for C in ranker.Cs_[best].tolist()],
        metric: ranker.mean_scores_[np.arange(len(best)), best],
    }
    return Table(columns, "The settings tried, each with its best C", numbers=("step weight", "interactions", "best C"))


def weights_section(subject: Subject) -> Section:
    """Weights with their intervals, and the importance of each feature."""
    if isinstance(subject.ranker, AdditiveRanker):
        return _shapes_section(subject, subject.ranker)
    title = "Weights and importance"
    if subject.explanation is None or subject.importance is None:
        return Section("weights", title, [Text(_NOT_LINEAR)])
    blocks: list[Block] = []
    if subject.intervals is None:
        blocks.append(Text(_why_no_intervals(subject)))
    else:
        found, drawn = subject.intervals, min(_DRAWN, len(subject.intervals.coef))
        svg = drawing(
            "weights",
            lambda axes: WeightsDisplay.from_intervals(found, top=drawn, ax=axes),
            height=1.1 + 0.2 * drawn,
        )
        level = f"{100 * found.level:g} %"
        with_intervals = (
            f"The largest weight with its {level} interval"
            if drawn == 1
            else f"The {drawn} largest weights with their {level} intervals"
        )
        caption = f"{with_intervals}, from a jackknife over {queries(found.n_queries)}; C and scalers are kept."
        blocks.append(Figure(svg, caption))
    table, n_left = _weights_table(subject)
    text = (
        "The importance of a feature is the size of its weight times the feature's standard deviation within queries, "
        "in the unit of scores."
    )
    blocks.append(Text(f"{text} {count(n_left)} less important features are not shown." if n_left else text))
    blocks.append(Grid(table, search="features"))
    return Section("weights", title, blocks)


def _why_no_intervals(subject: Subject) -> str:
    if not isinstance(subject.ranker, RankSVM | RankSVMCV):
        return f"Only weights of a RankSVM have intervals, not weights of a {type(subject.ranker).__name__}."
    if subject.why_no_intervals:
        return f"There are no intervals of weights: {subject.why_no_intervals}"
    return "Intervals of weights need the training data (train; --train), which were not given."


def _weights_table(subject: Subject) -> tuple[Table, int]:
    """A table of the most important features, and the number of the features that it omits."""
    assert subject.explanation is not None
    assert subject.importance is not None
    coef, importance = subject.explanation.coef, subject.importance
    assert coef is not None
    chosen = np.argsort(-importance, kind="stable")[:_LISTED]
    total = float(importance.sum()) or 1.0
    names = subject.explanation.feature_names
    columns: dict[str, Any] = {
        "feature": [feature_label(column, names) for column in chosen.tolist()],
        "importance": aligned(importance[chosen].tolist()),
        "share": importance[chosen] / total,
    }
    weights = {"weight": coef[chosen].tolist()}
    if subject.intervals is not None:
        weights |= dict(
            zip(("low", "high"), (ends[chosen].tolist() for ends in subject.intervals.interval()), strict=True)
        )
    columns |= dict(zip(weights, weight_columns(importance[chosen].tolist(), *weights.values()), strict=True))
    if subject.intervals is not None:
        columns["interval without 0"] = np.where(subject.intervals.excludes_zero()[chosen], "yes", "no").tolist()
    table = Table(
        columns,
        "Features, the most important first",
        formats={"share": ".1%"},
        numbers=("importance", "weight", "low", "high"),
    )
    return table, len(coef) - len(chosen)


def worst_section(subject: Subject, n_worst: int) -> Section:
    """The queries with the lowest values of the first metric, document by document."""
    metric = subject.metric
    values = next(iter(subject.evaluations.values())).per_query[metric]
    grouping = subject.data.queries
    labels, starts = grouping.to_sorted(subject.data.y), grouping.pointers[:-1]
    can_be_wrong = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
    order = [int(q) for q in np.argsort(values, kind="stable") if can_be_wrong[q] and not np.isnan(values[q])][:n_worst]
    title = "The worst queries"
    if not order:
        return Section(
            "worst", title, [Text("No query has documents with different labels, so there is nothing to show.")]
        )
    blocks: list[Block] = [
        Text(f"The {queries(len(order))} with the lowest {metric}, among the queries with different labels.")
    ]
    if subject.explanation is None:
        blocks.append(Text(_NOT_LINEAR))
    elif order:
        text = "The listed features contribute most to the difference between a document's score and its query's mean."
        blocks.append(Text(text))
    return Section("worst", title, blocks + [_query(subject, q, float(values[q])) for q in order])


def _query(subject: Subject, number: int, value: float) -> Details:
    """One query: why its best document is not the first, and its documents."""
    data = subject.data
    rows = data.queries.rows(number)
    rows = rows[np.argsort(-subject.scores[rows], kind="stable")]
    ranks = {int(row): rank for rank, row in enumerate(rows.tolist(), 1)}
    below = rows[_FIRST:]
    below = below[np.argsort(-data.y[below], kind="stable")][:_BELOW]
    listed = np.concatenate([rows[:_FIRST], np.sort(below)]) if len(below) else rows
    listed = np.array(sorted(listed.tolist(), key=ranks.__getitem__))
    columns: dict[str, Any] = {
        "rank": [ranks[row] for row in listed.tolist()],
        "document": [subject.document(row) for row in listed.tolist()],
        "label": data.y[listed],
        "score": aligned(subject.scores[listed].tolist()),
    }
    if subject.explanation is not None:
        columns["mostly by"] = [_mostly_by(subject, row) for row in listed.tolist()]
    title = f"{counted(len(rows), 'document')}" + (f", {len(listed)} of them shown" * (len(listed) < len(rows)))
    query = isolated(str(data.queries.keys[number]))
    caption = f"Query {query}, documents by rank: {title}"
    table = Table(columns, caption, formats={"label": "g"}, numbers=("score",))
    blocks: list[Block] = [Text(_why(subject, rows, ranks)), Grid(table)]
    return Details(f"Query {query}: {subject.metric} {value:.4f}, {counted(len(rows), 'document')}", blocks)


def _mostly_by(subject: Subject, row: int) -> str:
    """The features that contribute most to the difference of a document's score from the mean of its query."""
    assert subject.explanation is not None
    return _contributions(subject.explanation.document(row).to_dict(_NAMED))


def _contributions(difference: dict[str, Any]) -> str:
    return (
        ", ".join(f"{isolated(item['feature'])} {item['contribution']:+.3g}" for item in difference["features"])
        or "nothing"
    )


def _why(subject: Subject, rows: np.ndarray, ranks: dict[int, int]) -> str:
    """Why the best document of a query ranks below the first worse document in the ranking, as text."""
    labels = subject.data.y

    def document(row: int) -> str:
        return isolated(subject.document(row))

    best = int(rows[np.argmax(labels[rows])])
    above = [int(row) for row in rows[: ranks[best] - 1] if labels[row] < labels[best]]
    if not above:
        return f"The best document, {document(best)} (label {labels[best]:g}), is ranked {ranks[best]}."
    worse = above[0]
    words = (
        f"{document(worse)} (label {labels[worse]:g}, rank {ranks[worse]}) is above {document(best)} "
        f"(label {labels[best]:g}, rank {ranks[best]})"
    )
    difference = float(subject.scores[worse] - subject.scores[best])
    if difference == 0.0:
        return f"{words}, although their scores are equal."
    words += f" by {difference:.4g}"
    if subject.explanation is None:
        return f"{words}."
    found = subject.explanation.pair(worse, best).to_dict(_NAMED_OF_PAIR)
    rest = f", the other features {found['rest']:+.3g}" if found["n_features"] > _NAMED_OF_PAIR else ""
    return f"{words}: {_contributions(found)}{rest}."


def _shapes_section(subject: Subject, ranker: AdditiveRanker) -> Section:
    """The shapes of an additive model, its interactions, and the importance of both."""
    assert subject.explanation is not None
    assert subject.importance is not None
    importance, n = subject.importance, ranker.n_features_in_
    named = _with_names(ranker, subject.explanation.feature_names)
    shapes, cells = named.shapes(), named.interaction_shapes()
    names = [*(shape.name for shape in shapes), *(each.name for each in cells)]
    blocks: list[Block] = []
    drawn = [shapes[j] for j in _largest(importance[:n])[:_SHAPES]]
    if drawn:
        adds = "most important feature adds" if len(drawn) == 1 else f"{len(drawn)} most important features add"
        caption = f"What the {adds} to scores, 0 on average over the training rows. Gray: where the training rows are."
        blocks.append(Figure(_drawn_together("shapes", drawn), caption))
    for place, k in enumerate(_largest(importance[n:])[:_INTERACTIONS]):
        each = cells[k]
        svg = drawing(f"interaction{place}", ShapeDisplay([each]).plot)
        caption = f"What {' and '.join(map(isolated, each.names))} add together, in addition to their shapes."
        blocks.append(Figure(svg, caption))
    order = np.argsort(-importance, kind="stable")[:_LISTED]
    total = float(importance.sum()) or 1.0
    columns = {
        "term": [names[term] for term in order],
        "importance": aligned(importance[order].tolist()),
        "share": importance[order] / total,
    }
    text = (
        "The importance of a feature, or of an interaction, is the standard deviation within queries of what it adds."
    )
    left = len(importance) - len(order)
    blocks.append(Text(f"{text} {count(left)} less important ones are not shown." if left else text))
    caption = "Features and interactions, the most important first"
    formats, numbers = {"share": ".1%"}, ("importance",)
    blocks.append(Grid(Table(columns, caption, formats=formats, numbers=numbers), search="features"))
    if ranker.candidate_bounds_ is not None and ranker.interaction_bounds_ is not None:
        blocks += _bounds(ranker, names)
    return Section("weights", "Shapes and importance", blocks)


def _with_names(ranker: AdditiveRanker, names: Sequence[str] | None) -> AdditiveRanker:
    """The model with the feature names of the data, by which it finds the texts of its categories."""
    if names is None:
        return ranker
    named = copy.copy(ranker)
    named.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
    return named


def _largest(importance: np.ndarray) -> list[int]:
    """The numbers of the features or interactions whose importance is above 0, the most important first."""
    order = np.argsort(-importance, kind="stable")
    return order[importance[order] > 0.0].tolist()


def _drawn_together(name: str, shapes: list[Shape]) -> str:
    rows = -(-len(shapes) // _COLUMNS)

    def draw(axes: "Axes") -> None:
        figure = axes.figure
        axes.remove()
        several = figure.subplots(rows, _COLUMNS, squeeze=False).ravel().tolist()
        for empty in several[len(shapes) :]:
            empty.set_axis_off()
        ShapeDisplay(shapes).plot(several[: len(shapes)])
        for place, each in enumerate(several):
            each.title.set_fontsize("small")
            each.set_ylabel("added" if place % _COLUMNS == 0 else "", fontsize="small")

    return drawing(name, draw, height=0.2 + _HEIGHT * rows)


def _bounds(ranker: AdditiveRanker, names: list[str]) -> list[Block]:
    """A table of how much functions of two features could lower the objective."""
    before, after = ranker.candidate_bounds_, ranker.interaction_bounds_
    assert before is not None
    assert after is not None
    pairs, chosen = all_pairs(ranker.n_features_in_), {tuple(pair) for pair in ranker.interactions_.tolist()}
    order = np.argsort(-before, kind="stable")[:_PAIRS]
    columns = {
        "first": [names[a] for a in pairs[order, 0]],
        "second": [names[b] for b in pairs[order, 1]],
        "gain at most": aligned(before[order].tolist()),
        "left": aligned(after[order].tolist()),
        "chosen": ["yes" if tuple(pair) in chosen else "no" for pair in pairs[order].tolist()],
    }
    text = (
        'A bound is the most by which a function of two features can lower the objective: "gain at most" before '
        'the model had any such function, "left" for the model as it is. All pairs without a function can together '
        f"lower its objective, {ranker.objective_:.4g}, by at most {after.sum():.4g}, in addition to the duality gap."
    )
    caption = "Pairs of features, the largest bound first"
    return [Text(text), Grid(Table(columns, caption, numbers=("gain at most", "left")))]


# Maximum number of cells in the table of queries. At 35 bytes each they take less than half of the megabyte that a
# report may take.
_CELLS = 10_000
# maximum number of baselines whose differences are drawn
_BASELINES_DRAWN = 3


def summary(subject: Subject) -> list[str]:
    """Sentences about the result: the model's mean of the first metric, and its comparison with every baseline."""
    evaluation = next(iter(subject.evaluations.values()))
    start = (
        f"On {queries(evaluation.n_queries)} with {counted(evaluation.n_rows, 'document')} the mean {subject.metric} of"
    )
    if math.isnan(mean := evaluation[subject.metric]):
        return [f"{start} {isolated(subject.name)} is undefined."]
    low, high = evaluation.interval(subject.metric)
    interval = "" if math.isnan(low) else f" (95 % interval {low:.4f} to {high:.4f})"
    sentences = [f"{start} {isolated(subject.name)} is {mean:.4f}{interval}."]
    sentences += [_compared(test, _corrected(subject)) for test in subject.comparisons if test.metric == subject.metric]
    return sentences


def _compared(test: Comparison, corrected: str) -> str:
    """The difference from a baseline, and whether it may be chance."""
    low, high = test.confidence_interval
    interval = "" if math.isnan(low) else f"95 % interval {low:+.4f} to {high:+.4f}, "
    p = float(test.p_value if test.adjusted_p_value is None else test.adjusted_p_value)
    numbers = f"{test.difference:+.4f} ({interval}{corrected or 'p'} = {p:.2g})"
    baseline = isolated(str(test.system_a))
    if test.wins == test.losses == 0:
        return f"No query has a different {test.metric} with {baseline}."
    if p >= 0.05:
        return f"Its difference from {baseline} may be chance: {numbers}."
    return f"It is {'better' if test.difference > 0 else 'worse'} than {baseline}: {numbers}."


def metrics_section(subject: Subject) -> Section:
    """The section with the mean of each metric for each system, confidence intervals, and paired tests."""
    first = next(iter(subject.evaluations.values()))
    caption = f"Means over {queries(first.n_queries)}, {count(first.n_without_relevant)} without a relevant document"
    table = dataclasses.replace(
        metrics_table(subject.evaluations), caption=f"{caption} (convention {first.convention})"
    )
    text = "Intervals come from the t distribution, which treats the queries as a random sample."
    if "pairwise_accuracy" in subject.metrics:
        text += " The pairwise accuracy is a mean over the pairs of all queries."
    blocks: list[Block] = [Grid(table), Text(text)]
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
        caption=f"{isolated(subject.name)} minus each baseline, paired over queries, with 95 % intervals",
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
    # long names of systems are in one column of the legend
    height = HEIGHT + 0.15 * max(0, len(subject.curves) - 4)
    svg = drawing("curves", lambda axes: CutoffDisplay.from_evaluations(subject.curves, "ndcg", ax=axes), height=height)
    return Section(
        "curves",
        "NDCG at every cut-off",
        [Figure(svg, f"Mean NDCG@k; the band is {isolated(subject.name)}'s 95 % interval.")],
    )


def queries_section(subject: Subject) -> Section:
    """The first metric by query, and the queries on which the model wins and loses."""
    metric = subject.metric
    blocks: list[Block] = []
    model, *baselines = subject.evaluations.items()
    drawn = [test.system_a for test in subject.comparisons if test.metric == metric][:_BASELINES_DRAWN]
    for place, name in enumerate(drawn):
        evaluation = subject.evaluations[str(name)]

        def draw(axes: "Axes", evaluation: Evaluation = evaluation) -> None:
            DifferenceDisplay.from_evaluations(evaluation, model[1], metric, ax=axes)

        svg = drawing(f"differences-{place}", draw, height=2.6)
        blocks.append(
            Figure(
                svg,
                f"{metric} of {isolated(model[0])} minus {metric} of {isolated(str(name))}, query by query, the "
                "largest first.",
            )
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
        "Scores minus the mean of their query, by label: boxes from quartile to quartile with the median, whiskers "
        "from the 5th to the 95th percentile."
    )
    return Section("scores", "Scores against labels", [Figure(svg, caption)])
