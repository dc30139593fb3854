"""Online learners on data in which about one document in a thousand is relevant.

python benchmarks/imbalance.py -o benchmarks/results/imbalance.md
"""

import numpy as np
from sklearn.base import clone

from _common import arguments, page, publish, table
from papers.online_pass import FULL, LEARNERS, MEASURES, cumulative
from ranksvm import PRanker, RankingData, RankSVM, SOLARRanker, make_ranking, metrics


def imbalance(n_orders: int, n_queries: int, n_docs: int) -> list[str]:
    """Evaluate all learners on generated data in which about one document in a thousand is relevant."""
    share = 1.0 / n_docs
    data = make_ranking(
        n_queries, n_docs, 20, n_levels=2, level_probabilities=[1.0 - share, share], noise=0.2, random_state=0
    )
    rows = [rows for _, rows in data.queries if data.y[rows].any()]
    kept = np.concatenate(rows)
    data = RankingData(data.X[kept], data.y[kept], data.qid[kept])
    learners = {**LEARNERS, "SOLAR-II, diagonal": SOLARRanker(2, gamma=1e4, covariance="diagonal")}
    lines = []
    for name, model in learners.items():
        model = clone(model).set_params(**({"levels": [0, 1]} if isinstance(model, PRanker) else {}))
        found = cumulative(model, data, n_orders)
        lines.append(
            (name, *(f"{value:.4f}" for value in found.mean(axis=0)), f"{found.std(axis=0, ddof=1).max():.4f}")
        )
    best = RankSVM(C=1e-3).fit(data.X, data.y, qid=data.qid)
    means = metrics.evaluate(data.y, best.predict(data.X), data.qid, MEASURES, convention=FULL).means
    hindsight = (f"{means[name]:.4f}" for name in MEASURES)
    lines.append(("RankSVM in hindsight, C = 1e-3", *hindsight, ""))
    return [
        f"{len(rows)} made queries of {n_docs} documents, {int(data.y.sum())} of them relevant, 20 features; one pass, "
        f"cumulative, {n_orders} orders. RankSVM has learnt from all queries, those it ranks among them.",
        table(["learner", *MEASURES, "largest standard deviation"], lines),
    ]


def report(options) -> str:
    """The page."""
    size = (2, 12, 50) if options.smoke else (options.orders, 300, 1000)
    return page("Online learners with severe imbalance", "imbalance", options, imbalance(*size))


def main(argv=None):
    """Run from the command line."""
    options = arguments(
        __doc__, argv, ("--orders", {"type": int, "default": 10, "help": "random orders of the queries"})
    )
    publish(report(options), options)


if __name__ == "__main__":
    main()
