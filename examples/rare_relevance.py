"""Rare relevance: one document in a thousand is relevant, as when a query is matched against all documents of a site.

Every model ranks each query before it learns from it. This is repeated for several random orders of the queries. The
weights that generated the labels also rank the queries, and show the best that a model can reach. Pairwise learners see
how a relevant document differs from the others, however many there are. PRank learns from single documents, and hardly
ever sees a relevant one.

python examples/rare_relevance.py
"""

import argparse

from ranksvm import (
    PairwisePerceptronRanker,
    PerceptronCommitteeRanker,
    PRanker,
    RankSVM,
    Refit,
    SOLARRanker,
    make_ranking,
    metrics,
    progressive_validation,
)

METRICS = ("map", "ndcg@10", "mrr")


def models(every: int) -> dict[str, object]:
    """All models by name; RankSVM is refitted after every ``every`` queries."""
    return {
        "SOLAR-I": SOLARRanker(random_state=0),
        "SOLAR-II": SOLARRanker(order=2, random_state=0),
        "committee perceptron": PerceptronCommitteeRanker(random_state=0),
        "RankSVM, all so far": Refit(RankSVM(C=1e-3, warm_start=True), every=every),
        "perceptron on pairs": PairwisePerceptronRanker(random_state=0),
        "PRank": PRanker([0, 1], random_state=0),
        "PRank, averaged": PRanker([0, 1], average=True, random_state=0),
    }


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=400, help="number of queries, of 1,000 documents each")
    parser.add_argument("--orders", type=int, default=10, help="random orders of the queries")
    parser.add_argument("--every", type=int, default=10, help="queries after which RankSVM is fitted again")
    options = parser.parse_args(argv)
    data, coef = make_ranking(
        options.queries, 1000, 20, n_levels=2, level_probabilities=[0.999, 0.001], return_coef=True, random_state=0
    )
    best = metrics.evaluate(data.y, data.X @ coef, data.qid, METRICS)
    print(
        f"{data.n_rows:,} documents of {options.queries} queries, {int(data.y.sum())} relevant; "
        f"{best.n_without_relevant} queries without a relevant document count as 0; mean ± standard deviation "
        f"of {options.orders} orders\n"
    )
    print(f"| model | {' | '.join(METRICS)} |\n" + "|---" * (1 + len(METRICS)) + "|")
    print("| the true weights | " + " | ".join(f"{best[name]:.4f}" for name in METRICS) + " |")
    for name, model in models(options.every).items():
        found = progressive_validation(model, data, metrics=METRICS, n_orders=options.orders, random_state=0)
        cells = " | ".join(f"{found[metric]:.4f} ± {found.stds[metric]:.4f}" for metric in METRICS)
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
