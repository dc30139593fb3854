"""Fig. 2 of Wang et al. (ACL 2015): MAP of the queries so far, along a pass."""

from typing import Any

import numpy as np
from sklearn.base import clone

from papers.items import Context
from papers.online_pass import FULL, LEARNERS, progressive, test_parts
from papers.results import Grid, Part, Picture
from ranksvm import metrics

__all__ = ["FIGURE_2_DATA", "figure_2"]

FIGURE_2_DATA = ("OHSUMED", "MQ2008", "MQ2007", "MQ2007-partial")
# The learners of the paper.
DRAWN = [label for label in LEARNERS if not label.startswith("the same")]
SHARES = (0.1, 0.25, 0.5, 1.0)


def figure_2(context: Context) -> list[Part]:
    """MAP of the queries so far, averaged over random orders."""
    n_orders, curves = 2 if context.quick else context.settings.orders, {}
    for name in context.sources.here(FIGURE_2_DATA):
        data = test_parts(context.sources, name)
        for label in DRAWN:
            context.say(f"{name}, {label}")
            found = []
            for seed in range(n_orders):
                order = np.random.default_rng(seed).permutation(data.queries.n_queries)
                scores = progressive(clone(LEARNERS[label]).set_params(random_state=seed), data, order)
                evaluation = metrics.evaluate(data.y, scores, data.qid, ["map"], convention=FULL)
                found.append(so_far(evaluation.per_query["map"][order]))
            curves[name, label] = np.mean(found, axis=0)
    rows = [
        (name, label, *(f"{curve[int(np.ceil(share * len(curve))) - 1]:.4f}" for share in SHARES))
        for (name, label), curve in curves.items()
    ]
    header = ["data", "learner", *(f"after {share:.0%} of the queries" for share in SHARES)]
    return [
        f"A query is ranked, then learned from; MAP is the mean over the queries so far, and over {n_orders} random "
        "orders of the queries of all test parts. The paper draws it for eight data sets and prints no numbers, so "
        "nothing is judged.",
        Grid("map", header, rows),
        Picture("map", "MAP of the queries so far", (12.0, 4.2), lambda figure: _draw(figure, curves)),
    ]


def so_far(values: np.ndarray) -> np.ndarray:
    """The running mean: the mean of the first value, of the first two values, and so on."""
    return np.cumsum(values) / np.arange(1, len(values) + 1)


def _draw(figure: Any, curves: dict[tuple[str, str], np.ndarray]) -> None:
    from ranksvm.plotting.figures import line_style

    names = list(dict.fromkeys(name for name, _ in curves))
    for axis, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for number, label in enumerate(DRAWN):
            curve = curves[name, label]
            axis.plot(np.arange(1, len(curve) + 1), curve, label=label, **line_style(number))
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("queries so far")
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("MAP of the queries so far")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(DRAWN))
