"""Losses of SOLAR, of the best fixed model, and the bounds: theorems 1 and 3 of Wang et al. (ACL 2015)."""

from typing import Any

import numpy as np

from papers.items import Context
from papers.results import Grid, Part, Picture
from ranksvm.analysis import OnlineBounds, online_bounds
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.estimators import RankSVM, SOLARRanker

__all__ = ["losses"]

# Value of the right side of Theorem 3, as printed, over a pass with losses of about 29,600 in total.
PRINTED_BOUND = -16_731.0
FIRST_ORDER, SECOND_ORDER = (1e-5, 1e-3, 1e-1), (1e4, 1e2, 10.0, 1.0)


def losses(context: Context) -> list[Part]:
    """Sums of squared hinges over a pass of MQ2008, in a random order of the queries."""
    data = _stream(context.sources.read("MQ2008"))
    found: dict[str, OnlineBounds] = {}
    rows, smallest = [], np.inf
    for ranker, C in [
        *((SOLARRanker(C=C, random_state=0), C) for C in FIRST_ORDER),
        *((SOLARRanker(2, gamma=gamma, random_state=0), 0.5 / gamma) for gamma in SECOND_ORDER),
    ]:
        label = f"SOLAR-I, C = {ranker.C:g}" if ranker.order == 1 else f"SOLAR-II, gamma = {ranker.gamma:g}"
        context.say(label)
        # the fixed model with the smallest first-order bound; for SOLAR-II, the model with C = 1 / (2 gamma)
        best = RankSVM(C=C, tol=1e-6).fit(data.X, data.y, qid=data.qid)
        bounds = found[label] = online_bounds(ranker, data.X, data.y, qid=data.qid, comparator=best.coef_)
        sums = bounds.loss[-1], bounds.comparator_loss[-1], bounds.bound[-1]
        holds = "yes" if np.all(bounds.loss <= bounds.bound) else "**NO**"
        rows.append((label, *(f"{value:,.0f}" for value in sums), f"{sums[0] / best.n_pairs_:.4f}", holds))
        if ranker.order == 2:
            smallest = min(smallest, float(sums[0]))
    return [
        f"MQ2008 fold 1, one pass over the training part, queries in a random order, {best.n_pairs_:,} pairs: sums of "
        "squared hinges of the learner before each update, and of `RankSVM` fitted to the whole stream (with the same "
        "C, or 1 / (2 gamma)). The bound is that of `ranksvm.analysis.online_bounds`, with its derivation there; it "
        "must hold after every query.",
        Grid("losses", ["learner", "losses", "of the fixed model", "bound", "loss a pair", "holds throughout"], rows),
        "## Theorem 3 cannot hold as printed",
        "Theorem 3 as printed was once evaluated over such a pass: its right side was "
        f"{PRINTED_BOUND:,.0f}, and the losses added up to about 29,600. A sum of squares is never negative, so the "
        "theorem cannot hold. We do not have the printed formula, so this program does not compute the "
        f"{PRINTED_BOUND:,.0f}; it computes the losses, of which the smallest sum of SOLAR-II is {smallest:,.0f}. What "
        "holds is the bound of the table: its first order replaces Theorem 1, its second order Theorem 3.",
        Picture("regret", "losses less those of the fixed model", (11.0, 6.0), lambda figure: _draw(figure, found)),
    ]


def _stream(data: RankingData) -> RankingData:
    """The queries in a random order."""
    rows = [rows for _, rows in data.queries]
    order = np.concatenate([rows[query] for query in np.random.default_rng(0).permutation(len(rows))])
    return data.select(order)


def _draw(figure: Any, found: dict[str, OnlineBounds]) -> None:
    """Plot the regret along the stream, and the limits from the bounds."""
    from ranksvm.plotting.figures import PALETTE

    axes = figure.subplots(2, 4, sharex=True)
    # SOLAR-I in the first row, SOLAR-II in the second
    places = [*range(len(FIRST_ORDER)), *range(4, 4 + len(SECOND_ORDER))]
    for place, (label, bounds) in zip(places, found.items(), strict=True):
        axis, number = axes.flat[place], np.arange(1, len(bounds.loss) + 1)
        axis.plot(number, bounds.regret, color=PALETTE[0], label="loss less that of the fixed model")
        axis.plot(number, bounds.bound - bounds.comparator_loss, "--", color=PALETTE[1], label="bound, less the same")
        axis.plot(number, bounds.comparator_loss, ":", color="tab:gray", label="loss of the fixed model")
        axis.set_title(label, fontsize=10)
        axis.set_yscale("symlog", linthresh=100.0)
        axis.grid(alpha=0.3)
    axes.flat[3].set_axis_off()
    for axis in axes[-1]:
        axis.set_xlabel("queries so far")
    for axis in axes[:, 0]:
        axis.set_ylabel("sum of squared hinges")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
