"""Concept drift: what makes a document relevant changes as queries arrive.

This script generates two streams of queries. Relevance follows a weight vector. In one stream, this vector is drawn
anew at regular intervals; in the other, it rotates a little with every query. Every model ranks each query before it
learns from it. SOLAR with a forgetting factor (`SOLARRanker(decay=...)`) adapts to the changes. Without one, it adapts
slowly, because everything that it learned before still counts. RankSVM, refitted regularly to all queries so far,
learns an average of the earlier weight vectors and the current one.

python examples/concept_drift.py --plot concept_drift.png
"""

import argparse
from pathlib import Path

from ranksvm import (
    ProgressiveDisplay,
    RankSVM,
    Refit,
    SOLARRanker,
    make_ranking_stream,
    progressive_validation,
)
from ranksvm.model_selection import ProgressiveValidation

METRIC = "ndcg@10"
# Number of queries in the moving mean that is plotted.
WINDOW = 100


def models(every: int) -> dict[str, object]:
    """All models by name; RankSVM is refitted after every ``every`` queries."""
    return {
        "SOLAR-I, decay 0.97": SOLARRanker(decay=0.97, random_state=0),
        "SOLAR-I": SOLARRanker(random_state=0),
        "SOLAR-II, decay 0.99": SOLARRanker(order=2, gamma=100.0, decay=0.99, random_state=0),
        "SOLAR-II": SOLARRanker(order=2, gamma=100.0, random_state=0),
        "RankSVM, all so far": Refit(RankSVM(C=1e-3, warm_start=True), every=every),
    }


def experiment(drift: str, n_queries: int, drift_queries: int) -> dict[str, ProgressiveValidation]:
    """Evaluate every model on the same stream."""
    found = {}
    for name, model in models(every=max(1, drift_queries // 20)).items():
        stream = make_ranking_stream(n_queries, 20, 20, drift=drift, drift_queries=drift_queries, random_state=0)
        found[name] = progressive_validation(model, stream, metrics=METRIC)
    return found


def table(results: dict[str, dict[str, ProgressiveValidation]]) -> str:
    """A Markdown table: mean NDCG@10 of each model on each stream."""
    lines = [f"| model | {' | '.join(results)} |", "|---" * (1 + len(results)) + "|"]
    for name in next(iter(results.values())):
        lines.append(f"| {name} | " + " | ".join(f"{found[name][METRIC]:.4f}" for found in results.values()) + " |")
    return "\n".join(lines)


def plot(results: dict[str, dict[str, ProgressiveValidation]], drift_queries: int, path: Path) -> None:
    """Plot NDCG@10, averaged over the last `WINDOW` queries, in a panel for each stream."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(10, 4), sharey=True, layout="constrained")
    for axis, (drift, found) in zip(axes, results.items(), strict=True):
        ProgressiveDisplay.from_result(found, metric=METRIC, window=WINDOW, ax=axis)
        n_queries = next(iter(found.values())).n_queries
        for change in range(drift_queries, n_queries, drift_queries):
            axis.axvline(change, color="0.6", linewidth=0.8, linestyle=":")
        axis.set_title(f"{drift} drift", fontsize=10)
    axes[0].get_legend().remove()
    axes[1].set_ylabel(None)
    axes[1].set_ylim(0.3, 1.0)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="file to draw the curves into (needs matplotlib)")
    parser.add_argument("--queries", type=int, default=4000, help="length of each stream")
    parser.add_argument("--drift-queries", type=int, default=1000, help="queries from a weight vector to the next")
    options = parser.parse_args(argv)
    results = {drift: experiment(drift, options.queries, options.drift_queries) for drift in ("sudden", "gradual")}
    print(table(results))
    if options.plot is not None:
        plot(results, options.drift_queries, options.plot)


if __name__ == "__main__":
    main()
