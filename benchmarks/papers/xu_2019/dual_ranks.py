"""Ranks and energy of the dual variables: Fig. 2 and Table 6."""

from typing import Any

import numpy as np

from papers.items import Context
from papers.judgment import COUNT, OTHER
from papers.results import Compared, Grid, Part, Picture
from papers.xu_2019.published import FEW_DIMENSIONS, RANKS
from ranksvm.analysis import DualSpectra, compare_ranks, dual_spectra
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.estimators import FactorizedRankSVM, RankSVM, RegularizedRankSVM

__all__ = ["FIGURE_2_DATA", "figure_2", "table_6"]

FIGURE_2_DATA = ("OHSUMED", "MQ2008", "MQ2007", "MQ2007-partial")
# From strong regularization, which validation data choose, to the range of the paper.
CS = (2.0**-10, 0.1, 1.0, 10.0)
FEW, MOST = 0.3, 0.9
BINS = 10
SEED = 0


def spectra_of(model: RankSVM, data: RankingData) -> DualSpectra:
    """Spectra of the dual variables of a model."""
    return dual_spectra(model.dual_coef(data.X, data.y, data.qid))


# -- Fig. 2 ------------------------------------------------------------------------------------------------------------


def figure_2(context: Context) -> list[Part]:
    """Shares of the dimensions (the smaller side of a block) that hold 90 % of the energy, and ranks as such shares."""
    rows, histograms, verdicts, drawn = [], [], [], {}
    printed = Compared("few-dimensions", ("data", "loss", "dimensions"))
    for dataset in context.sources.here(FIGURE_2_DATA):
        data, name = context.sources.read(dataset), f"{dataset} fold 1"
        for loss in ("hinge", "squared_hinge"):
            for C in CS[2:3] if context.quick else CS:
                context.say(f"{name}, {loss}, C = {C:g}")
                model = RankSVM(C, loss=loss, tol=1e-6).fit(data.X, data.y, qid=data.qid)
                found = spectra_of(model, data)
                rows.append((name, loss, f"{C:.3g}", *_energy_and_ranks(found)))
                if C == 1.0:
                    share = found.share_below(FEW, MOST)
                    verdicts.append(f"{name}, {loss}: {'yes' if share > 0.5 else '**no**'}, {share:.0%}")
                    drawn[f"{dataset}, {loss}"] = found
                    if dataset == "OHSUMED":
                        _add_few_dimensions(printed, (name, loss), found)
                    for t in (MOST, 1.0):
                        counts = found.histogram(t, BINS)[0]
                        histograms.append((name, loss, f"{t:.0%}", *counts.astype(int)))
    header = ["data", "loss", "C", "queries", "smaller side (median)", f"queries with {MOST:.0%} in < {FEW:.0%} of it"]
    header += ["dimensions for it, share (median)", "rank, share (median)", "of full rank", "largest share"]
    edges = [f"{(number + 1) / BINS:.0%}" for number in range(BINS)]
    return [
        "A query's block of dual variables has the preferred documents for rows and the others for columns; its rank "
        "is at most the smaller side. Fig. 2a of the paper counts the queries by the share of dimensions that hold "
        "90 % of the energy (the sum of squares), and says that for most it is below 30 %; Fig. 2b counts them by "
        "rank, and says that blocks are nearly of full rank. Queries whose alpha are all 0 are left out. The alpha of "
        "the hinge are not unique, those of the squared hinge are.",
        f"For most queries 90 % of the energy is in less than 30 % of the dimensions: {'; '.join(verdicts)} (C = 1).",
        "Fig. 2a prints one number, for OHSUMED: of 16 queries at most 10 % of the dimensions hold 90 % of the energy. "
        "We count dimensions by the smaller side of the block; by its documents, as the ranks of Table 6 suggest that "
        "the paper does, the shares are smaller.",
        *([printed] if printed.entries else []),
        Grid("shares", header, rows),
        Picture("histograms", "queries by share of dimensions", (9.6, 4.2), lambda figure: _draw(figure, drawn)),
        "The histograms at C = 1: number of queries by the share of dimensions, up to the edge that heads the column, "
        "that hold 90 % of the energy (2a) and all of it (2b).",
        Grid("histograms", ["data", "loss", "energy", *edges], histograms),
    ]


def _add_few_dimensions(table: Compared, labels: tuple[str, str], found: DualSpectra) -> None:
    """Queries in which at most 10 % of the dimensions hold 90 % of the energy, for two definitions of dimensions."""
    held = found.dimensions(MOST)[found.counted]
    for size, n in (("smaller side", found.n_dimensions), ("documents", found.n_documents)):
        count = int(np.sum(held <= n[found.counted] / BINS))
        table.add((*labels, size), "queries", COUNT, float(count), float(FEW_DIMENSIONS))


def _energy_and_ranks(found: DualSpectra) -> list[str]:
    ratio = found.dimension_ratio(MOST)[found.counted]
    rank = (found.rank / np.maximum(found.n_dimensions, 1))[found.counted]
    sides = np.median(found.n_dimensions[found.counted])
    return [
        *(f"{len(ratio)}", f"{sides:.0f}", f"{found.share_below(FEW, MOST):.0%}", f"{np.median(ratio):.2f}"),
        *(f"{np.median(rank):.2f}", f"{np.mean(rank >= 1.0):.0%}", f"{rank.max():.2f}"),
    ]


def _draw(figure: Any, spectra: dict[str, DualSpectra]) -> None:
    """Plot Fig. 2a and Fig. 2b side by side."""
    from ranksvm.plotting.figures import MARKERS, line_style

    centers = (np.arange(BINS) + 0.5) / BINS
    for axis, t in zip(figure.subplots(1, 2, sharey=True), (MOST, 1.0), strict=True):
        for number, (name, found) in enumerate(spectra.items()):
            counts = found.histogram(t, BINS)[0]
            style = line_style(number) | {"marker": MARKERS[number % len(MARKERS)]}
            axis.plot(centers, counts / max(counts.sum(), 1), markersize=4, label=name, **style)
        axis.set_xlabel("share of the dimensions")
        axis.set_title("2a: 90 % of the energy" if t == MOST else "2b: all of it, the rank", fontsize=10)
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("share of the queries")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)


# -- Table 6 -----------------------------------------------------------------------------------------------------------


def table_6(context: Context) -> list[Part]:
    """Ranks of three queries for three models."""
    data = context.sources.read("OHSUMED")
    models: dict[str, Any] = {
        "factorized": FactorizedRankSVM(1.0, n_components=5, random_state=SEED),
        "regularized": RegularizedRankSVM(1.0),
        "plain": RankSVM(1.0, loss="hinge", tol=1e-6),
    }
    given = (data.X, data.y, data.qid)
    spectra = {}
    for name, model in models.items():
        model.fit(data.X, data.y, qid=data.qid)
        spectra[name] = dual_spectra((model.dual_coef if name == "plain" else model.low_rank_coef)(*given))
    known = {int(query): query for query in spectra["plain"].ids}
    # data other than the paper's have other queries
    queries = [known[query] for query in RANKS if query in known] or list(spectra["plain"].ids[:3])
    sides = dict(zip(spectra["plain"].ids, spectra["plain"].n_dimensions, strict=True))
    table = Compared("ranks", ("query", "documents", "pairs", "smaller side", "twice that"))
    for entry in compare_ranks(spectra, queries=queries):
        query = entry["query"]
        printed = RANKS.get(int(query))
        is_theirs = printed is not None and printed[:2] == (int(entry["documents"]), int(entry["pairs"]))
        labels = (str(query), str(entry["documents"]), f"{entry['pairs']:,}", str(sides[query]), str(2 * sides[query]))
        for place, name in enumerate(models):
            theirs = float(printed[2 + place]) if printed is not None and is_theirs else None
            table.add(labels, name, OTHER, float(entry[name]), theirs)
    return [
        "OHSUMED fold 1, C = 1, K = 5, gamma = lambda = 1 (those of the paper are not known, so other ranks are to be "
        "expected).",
        table,
        "The printed ranks of the plain model are twice the smaller side of the block, which no block can have: the "
        "rank of a matrix is at most its smaller side. They may be those of symmetric matrices of documents by "
        "documents, with every alpha on both sides of the diagonal.",
    ]
