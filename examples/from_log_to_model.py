"""From a click log to a deployed model: position bias, learning, evaluation, export, interleaving.

Two old rankers share the traffic of a search engine. The log of their lists and clicks, a Parquet file, is all that is
known about relevance. This program

1. writes such a log (replace it by yours): simulated users examine rank k with probability 1/k, and click on a
   document that they examine with a probability that grows with its label, from 1/10 for label 0;
2. estimates how likely users are to examine each rank, from the documents that the two rankers showed at different
   ranks;
3. trains a RankSVM on the weighted clicks, with C chosen by clicks on held-out queries;
4. estimates the DCG@10 of this model and of the old rankers from the old log, before any user has seen the model;
5. exports the model for a server;
6. lets simulated users compare the model with the better old ranker, by team-draft interleaving, until a sequential
   test decides.

python examples/from_log_to_model.py --folder out --plot out/propensities.png

Only the simulated users, and the last lines of the output, use the labels of the documents.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from ranksvm import RankingData, RankSVM, export, make_ranking, metrics
from ranksvm.clicks import (
    ClickLog,
    attractiveness,
    compare_credits,
    fit_from_clicks,
    interleave,
    position_bias,
    simulate_clicks,
)


def old_rankers(data: RankingData) -> dict[str, np.ndarray]:
    """Scores of two rankers, each of which uses only some of the features."""
    return {"title": data.X[:, :3].sum(axis=1), "freshness": data.X[:, 2] - data.X[:, 4]}


def compare(data: RankingData, new: np.ndarray, old: np.ndarray, n_most: int, rng: np.random.Generator) -> str:
    """Show interleaved lists (team draft) until the test decides, but at most ``n_most`` lists."""
    rows_of = [rows for _, rows in data.queries]
    rankings = [[rows[np.argsort(-scores[rows])].tolist() for scores in (new, old)] for rows in rows_of]
    chance, credits = attractiveness(data), []
    for _ in range(n_most):
        lists = rankings[rng.integers(len(rankings))]
        mixed = interleave(*lists, length=10, random_state=rng)
        examined = rng.random(len(mixed.documents)) < 1.0 / np.arange(1, len(mixed.documents) + 1)
        credits.append(mixed.credit(examined & (rng.random(len(examined)) < chance[mixed.documents])))
        if len(credits) % 100 == 0 and compare_credits(credits).decided_at is not None:
            break
    test = compare_credits(credits)
    winner = "the new model" if test.mean > 0 else "the old ranker"
    if test.decided_at is None:
        return f"undecided after {test.n_impressions:,} impressions"
    return f"users prefer {winner}: decided after {test.decided_at:,} impressions"


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to write the files (default: a temporary folder)")
    parser.add_argument("--impressions", type=int, default=50_000, help="size of the log")
    parser.add_argument("--plot", type=Path, help="file to draw the propensities into (needs matplotlib)")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run(folder, options.impressions, options.plot)


def run(folder: Path, n_impressions: int, plot: Path | None) -> None:
    """Run the six steps."""
    data = make_ranking(n_queries=200, n_docs=20, n_features=8, random_state=0)
    old = old_rankers(data)
    simulate_clicks(data, old, n_impressions, random_state=1).save(folder / "log.parquet")

    log = ClickLog.read(folder / "log.parquet")
    print(log)
    bias = position_bias(log)
    bias.save(folder / "bias.json")
    print(f"propensities: {bias.propensity.round(3).tolist()}")
    if plot is not None:
        bias.plot().figure_.savefig(plot)

    found = fit_from_clicks(RankSVM(), data, log, bias)
    scores = {"new": found.model.predict(data.X), **old}
    for name, values in scores.items():
        estimate = metrics.estimate(log, values, "dcg@10", bias, data=data)
        low, high = estimate.intervals["dcg@10"]
        print(f"DCG@10 of {name}, from clicks: {estimate['dcg@10']:.3f}, 95 % interval {low:.3f} to {high:.3f}")
        if estimate.note:
            print(estimate.note)
    export(found.model, folder / "model.json", to="solr", name="from_clicks")
    print("exported the model for Solr")

    print(compare(data, scores["new"], old["title"], 10_000, np.random.default_rng(2)))
    for name, values in scores.items():
        true = metrics.evaluate(data.y, values, data.qid, "ndcg@10")["ndcg@10"]
        print(f"NDCG@10 of {name}, from labels: {true:.3f}")


if __name__ == "__main__":
    main()
