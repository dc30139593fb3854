"""Sections that explain the model: weights (or shapes), importance of features, and the worst queries."""

from typing import Any

import numpy as np

from ranksvm._util.tables import Table
from ranksvm._util.text import aligned, count, counted, feature_label, queries
from ranksvm.estimators import RankSVM, RankSVMCV
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.plotting import WeightsDisplay
from ranksvm.report.about_shapes import shapes_section
from ranksvm.report.blocks import Block, Details, Figure, Grid, Section, Text, drawing
from ranksvm.report.subject import Subject

__all__ = ["weights_section", "worst_section"]

# Maximum number of features in the table, and in the figure.
_LISTED, _DRAWN = 300, 20
# Number of documents listed for a query: the first ones, and those with the highest labels below them.
_FIRST, _BELOW = 15, 10
# Number of features named for a document, and for the pair of documents that explains a query
_NAMED, _NAMED_OF_PAIR = 3, 5
_NOT_LINEAR = (
    "A score of this model is not a sum over the features: there are no weights, and no contributions of features."
)


def weights_section(subject: Subject) -> Section:
    """Weights with their intervals, and the importance of each feature."""
    if isinstance(subject.ranker, AdditiveRanker):
        return shapes_section(subject, subject.ranker)
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
        caption = (
            f"The {counted(drawn, 'largest weight')} with {100 * found.level:g} % intervals, from a jackknife over "
            f"{queries(found.n_queries)}; C and scalers are kept."
        )
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
        return f"There are intervals of the weights of RankSVM only, not {_kind(subject)}."
    if subject.why_no_intervals:
        return f"There are no intervals of weights: {subject.why_no_intervals}"
    return "Intervals of weights need the training data (train; --train), which were not given."


def _kind(subject: Subject) -> str:
    return f"for a {type(subject.ranker).__name__}"


def _weights_table(subject: Subject) -> tuple[Table, int]:
    """The most important features, and the number of the others."""
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
    weights = {"weight": coef[chosen]}
    if subject.intervals is not None:
        weights |= dict(zip(("low", "high"), (ends[chosen] for ends in subject.intervals.interval()), strict=True))
    # all with the same number of decimals, so that they can be compared
    texts = np.array(aligned(np.concatenate(list(weights.values())).tolist()))
    columns |= {name: part.tolist() for name, part in zip(weights, np.split(texts, len(weights)), strict=True)}
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
        text = "The features named contribute most to the difference of a document's score from the mean of its query."
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
    table = Table(columns, f"Documents by rank: {title}", formats={"label": "g"}, numbers=("score",))
    blocks: list[Block] = [Text(_why(subject, rows, ranks)), Grid(table)]
    query = data.queries.keys[number]
    return Details(f"Query {query}: {subject.metric} {value:.4f}, {counted(len(rows), 'document')}", blocks)


def _mostly_by(subject: Subject, row: int) -> str:
    """The features that move a document most from the mean of its query."""
    assert subject.explanation is not None
    return _contributions(subject.explanation.document(row).to_dict(_NAMED))


def _contributions(difference: dict[str, Any]) -> str:
    return ", ".join(f"{item['feature']} {item['contribution']:+.3g}" for item in difference["features"]) or "nothing"


def _why(subject: Subject, rows: np.ndarray, ranks: dict[int, int]) -> str:
    """Why the best document of a query ranks below a worse one: the first worse document of the ranking."""
    labels, document = subject.data.y, subject.document
    best = int(rows[np.argmax(labels[rows])])
    above = [int(row) for row in rows[: ranks[best] - 1] if labels[row] < labels[best]]
    if not above:
        return f"The best document, {document(best)} (label {labels[best]:g}), is ranked {ranks[best]}."
    worse = above[0]
    words = (
        f"{document(worse)} (label {labels[worse]:g}, rank {ranks[worse]}) is above {document(best)} "
        f"(label {labels[best]:g}, rank {ranks[best]}) by {subject.scores[worse] - subject.scores[best]:.4g}"
    )
    if subject.explanation is None:
        return f"{words}."
    found = subject.explanation.pair(worse, best).to_dict(_NAMED_OF_PAIR)
    rest = f", the other features {found['rest']:+.3g}" if found["n_features"] > _NAMED_OF_PAIR else ""
    return f"{words}: {_contributions(found)}{rest}."
