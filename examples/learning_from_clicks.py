"""Learning to rank from clicks: users mostly look at the top, so raw clicks favor what was shown at the top.

A weak production ranker, trained on the labels of 1 % of the queries, orders the documents of each query. Simulated
users look at rank r with probability 1/r. They click on each relevant document that they look at, and on one in ten of
the others that they look at. Three models learn to rank:

- from the labels of all documents (an upper limit for learning from clicks),
- from the raw clicks: a clicked document is preferred to the others of its list,
- from the same clicks, each divided by its propensity, the probability that users look at its rank:
  `RankSVM.fit(..., propensity=...)`. Then the sum over clicks is an unbiased estimate of the sum over relevant
  documents (Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017).

python examples/learning_from_clicks.py --plot learning_from_clicks.png

The first data set is generated. LETOR data sets are added if the folder that RANKSVM_DATA names contains them.
"""

import argparse
import os
from pathlib import Path

import numpy as np

from ranksvm import RankingData, RankSVM, make_ranking, metrics, read_letor

LETOR = ("MQ2007-partial", "MQ2008", "OHSUMED")
CLICKS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
# Users look at rank r with probability r^-EYE, and click on NOISE of the irrelevant documents that they look at.
EYE, NOISE = 1.0, 0.1
# Values of C times the sum of the pairs' weights: C itself would have to shrink as the number of clicks grows.
BUDGETS = 10.0 ** np.arange(6)
METRIC = "pairwise_accuracy"


# -- data and simulated users ------------------------------------------------------------------------------------------


def data_sets(names: list[str]) -> dict[str, list[RankingData]]:
    """Training, validation and test parts by name; relevant documents have label 1, others 0."""
    made = make_ranking(2_000, 25, 25, n_levels=2, level_probabilities=[0.9, 0.1], random_state=0)
    ends = made.qid <= 1_000, (made.qid > 1_000) & (made.qid <= 1_300), made.qid > 1_300
    found = {"made": [made.select(rows) for rows in ends]}
    folder = Path(os.environ.get("RANKSVM_DATA", "nowhere"))
    for name in names:
        if (folder / name).is_dir():
            parts = [read_letor(folder / name / "Fold1" / f"{part}.txt.gz") for part in ("train", "vali", "test")]
            found[name] = [RankingData(part.X, (part.y >= 1).astype(float), part.qid) for part in parts]
    return found


def shown_ranks(train: RankingData, rng: np.random.Generator) -> np.ndarray:
    """The rank, from 1, at which a ranker trained on 1 % of the queries shows each document."""
    query = train.queries.numbers()
    while True:
        few = rng.choice(train.queries.n_queries, max(2, train.queries.n_queries // 100), replace=False)
        sample = train.select(np.isin(query, few))
        if len(np.unique(sample.y)) > 1:
            break
    scores = RankSVM(C=0.01).fit(sample.X, sample.y, qid=sample.qid).predict(train.X)
    order = np.lexsort((-scores, query))
    rank = np.empty(train.n_rows)
    rank[order] = np.arange(train.n_rows) - train.queries.pointers[query[order]] + 1
    return rank


def simulate_clicks(train: RankingData, rank: np.ndarray, n_clicks: int, rng: np.random.Generator) -> np.ndarray:
    """Number of clicks on each document, about ``n_clicks`` in total; all queries are equally likely."""
    click_rate = rank**-EYE * np.where(train.y > 0, 1.0, NOISE)
    n_queries = train.queries.n_queries
    asked = rng.multinomial(round(n_clicks / click_rate.sum() * n_queries), np.full(n_queries, 1.0 / n_queries))
    return rng.binomial(asked[train.queries.numbers()], click_rate)


# -- learning ----------------------------------------------------------------------------------------------------------


def clicked_over_others(train: RankingData, clicks: np.ndarray) -> np.ndarray:
    """Pairs (preferred, other): each clicked document with every other document of its list."""
    pairs = []
    for _, rows in train.queries:
        clicked = rows[clicks[rows] > 0]
        every = np.column_stack((np.repeat(clicked, len(rows)), np.tile(rows, len(clicked))))
        pairs.append(every[every[:, 0] != every[:, 1]])
    return np.concatenate(pairs)


def best_on_validation(fits, valid: RankingData, test: RankingData) -> float:
    """Test accuracy of the model with the best accuracy on validation data; ``fits`` has a model for each C."""
    scored = [[quality(ranker, part) for part in (valid, test)] for ranker in fits]
    return max(scored, key=lambda pair: pair[0])[1]


def quality(ranker: RankSVM, data: RankingData) -> float:
    """Share of the pairs of a relevant and an irrelevant document that are ranked correctly."""
    return metrics.evaluate(data.y, ranker.predict(data.X), data.qid, METRIC)[METRIC]


def experiment(parts: list[RankingData], n_clicks: tuple[int, ...], seed: int) -> tuple[float, np.ndarray]:
    """Test accuracy with full labels, and with naive and weighted clicks for each number of clicks."""
    train, valid, test = parts
    rng = np.random.default_rng(seed)
    n_pairs = RankSVM(C=1e-6).fit(train.X, train.y, qid=train.qid).n_pairs_
    full = (RankSVM(C=budget / n_pairs).fit(train.X, train.y, qid=train.qid) for budget in BUDGETS)
    skyline = best_on_validation(full, valid, test)

    rank = shown_ranks(train, rng)
    propensity = rank**-EYE
    found = np.empty((len(n_clicks), 2))
    for place, number in enumerate(n_clicks):
        clicks = simulate_clicks(train, rank, number, rng)
        pairs = clicked_over_others(train, clicks)
        weight = clicks[pairs[:, 0]].astype(np.float64)
        for column, p in enumerate((np.ones(train.n_rows), propensity)):
            total = (weight / p[pairs[:, 0]]).sum()
            fits = (
                RankSVM(C=budget / total).fit(train.X, qid=train.qid, pairs=pairs, pair_weight=weight, propensity=p)
                for budget in BUDGETS
            )
            found[place, column] = best_on_validation(fits, valid, test)
    return skyline, found


# -- table and plot ----------------------------------------------------------------------------------------------------


def table(name: str, n_clicks: tuple[int, ...], skyline: float, found: np.ndarray) -> str:
    """A Markdown table; found has shape (seeds, numbers of clicks, 2)."""
    lines = [
        f"**{name}**: full labels {skyline:.4f}; mean ± standard deviation",
        "",
        "| clicks | naive | propensity-weighted |",
        "|---|---|---|",
    ]
    for number, means, spread in zip(n_clicks, found.mean(axis=0), found.std(axis=0), strict=True):
        cells = " | ".join(f"{mean:.4f} ± {off:.4f}" for mean, off in zip(means, spread, strict=True))
        lines.append(f"| {number:,} | {cells} |")
    return "\n".join(lines)


def plot(results: dict[str, tuple[float, np.ndarray]], n_clicks: tuple[int, ...], path: Path) -> None:
    """Plot test accuracy against the number of clicks, with its standard deviation over seeds, by data set."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(3.8 * len(results), 3.6), squeeze=False)
    for axis, (name, (skyline, found)) in zip(axes[0], results.items(), strict=True):
        axis.axhline(skyline, color="black", linestyle=":", linewidth=1, label="full labels")
        for column, (label, color, style) in enumerate(
            (("naive clicks", "#D55E00", "s--"), ("propensity-weighted", "#0072B2", "o-"))
        ):
            mean, off = found[:, :, column].mean(axis=0), found[:, :, column].std(axis=0)
            axis.plot(n_clicks, mean, style, color=color, markersize=4, label=label)
            axis.fill_between(n_clicks, mean - off, mean + off, color=color, alpha=0.2, linewidth=0)
        axis.set_xscale("log")
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("clicks")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("test pairwise accuracy")
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="file to draw the curves into (needs matplotlib)")
    parser.add_argument("--seeds", type=int, default=5, help="production rankers and click logs to average over")
    parser.add_argument("--clicks", type=int, nargs="+", default=CLICKS, help="numbers of clicks")
    parser.add_argument("--letor", nargs="*", default=list(LETOR), help="folders of RANKSVM_DATA to add")
    options = parser.parse_args(argv)
    n_clicks, results = tuple(options.clicks), {}
    for name, parts in data_sets(options.letor).items():
        runs = [experiment(parts, n_clicks, seed) for seed in range(options.seeds)]
        results[name] = runs[0][0], np.array([found for _, found in runs])
        print(table(name, n_clicks, *results[name]), end="\n\n", flush=True)
    if options.plot is not None:
        plot(results, n_clicks, options.plot)


if __name__ == "__main__":
    main()
