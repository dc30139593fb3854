"""The section on an additive model: shapes of features, interactions and their bounds, and importance."""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksvm._util.tables import Table
from ranksvm._util.text import aligned, count, counted
from ranksvm.additive.interactions import all_pairs
from ranksvm.additive.shapes import Shape
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.plotting import ShapeDisplay
from ranksvm.report.blocks import Block, Figure, Grid, Section, Text, drawing
from ranksvm.report.subject import Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["shapes_section"]

# Maximum numbers of shapes and interactions that are drawn, and of rows in the two tables.
_SHAPES, _INTERACTIONS, _LISTED, _PAIRS = 10, 4, 300, 50
# Number of shapes in a row of a figure, and the height of a row in inches.
_COLUMNS, _HEIGHT = 2, 1.75


def shapes_section(subject: Subject, ranker: AdditiveRanker) -> Section:
    """The shapes of an additive model, its interactions, and the importance of both.

    Parameters
    ----------
    subject : Subject
        The model and its data.
    ranker : AdditiveRanker
        The model itself, or the last step of the Pipeline.

    Returns
    -------
    Section
        The section.
    """
    assert subject.explanation is not None
    assert subject.importance is not None
    importance, n = subject.importance, ranker.n_features_in_
    named = _with_names(ranker, subject.explanation.feature_names)
    shapes, cells = named.shapes(), named.interaction_shapes()
    names = [*(shape.name for shape in shapes), *(each.name for each in cells)]
    blocks: list[Block] = []
    drawn = [shapes[j] for j in _largest(importance[:n])[:_SHAPES]]
    if drawn:
        caption = (
            f"What the {counted(len(drawn), 'most important feature')} add to scores, 0 on average over the training "
            "rows. Gray: where the training rows are."
        )
        blocks.append(Figure(_drawn_together("shapes", drawn), caption))
    for place, k in enumerate(_largest(importance[n:])[:_INTERACTIONS]):
        each = cells[k]
        svg = drawing(f"interaction{place}", ShapeDisplay([each]).plot)
        caption = f"What {each.names[0]} and {each.names[1]} add together, in addition to their shapes."
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
    """The terms with an importance above 0, the most important first."""
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
        "A function of two features could have lowered the objective by at most its bound, before any was added; what "
        "is left is the same for this model. All pairs that it has no function of could gain at most "
        f"{after.sum():.4g} together, of an objective of {ranker.objective_:.4g}, in addition to the duality gap."
    )
    caption = "Pairs of features, the largest bound first"
    return [Text(text), Grid(Table(columns, caption, numbers=("gain at most", "left")))]
