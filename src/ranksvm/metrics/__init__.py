"""Quality of rankings: NDCG, MAP, MRR, ERR, P@k, R@k, pairwise accuracy, Kendall's tau, and tests of differences."""

from typing import TYPE_CHECKING

from ranksvm._util.lazy import lazy_names
from ranksvm.metrics.conventions import CONVENTIONS, Convention
from ranksvm.metrics.definitions import Metric, parse_metric, parse_metrics
from ranksvm.metrics.evaluation import Evaluation, accuracy_interval, evaluate, evaluate_pairs

if TYPE_CHECKING:
    from ranksvm.metrics.counterfactual import CounterfactualEstimate, estimate
    from ranksvm.metrics.cumulative import CumulativeMetrics
    from ranksvm.metrics.runs import evaluate_run
    from ranksvm.metrics.scorers import RankingScorer, scorer
    from ranksvm.metrics.significance import Comparison, SystemComparisons, adjust_p_values, compare, compare_systems
else:
    # Most programs use none of them; scorers load scikit-learn, the slowest import.
    __getattr__ = lazy_names(
        __name__,
        {
            "Comparison": "ranksvm.metrics.significance",
            "CounterfactualEstimate": "ranksvm.metrics.counterfactual",
            "CumulativeMetrics": "ranksvm.metrics.cumulative",
            "RankingScorer": "ranksvm.metrics.scorers",
            "SystemComparisons": "ranksvm.metrics.significance",
            "adjust_p_values": "ranksvm.metrics.significance",
            "compare": "ranksvm.metrics.significance",
            "compare_systems": "ranksvm.metrics.significance",
            "estimate": "ranksvm.metrics.counterfactual",
            "evaluate_run": "ranksvm.metrics.runs",
            "scorer": "ranksvm.metrics.scorers",
        },
    )

__all__ = [
    "evaluate",
    "evaluate_pairs",
    "accuracy_interval",
    "evaluate_run",
    "estimate",
    "CounterfactualEstimate",
    "Evaluation",
    "CumulativeMetrics",
    "compare",
    "compare_systems",
    "adjust_p_values",
    "Comparison",
    "SystemComparisons",
    "scorer",
    "RankingScorer",
    "parse_metric",
    "parse_metrics",
    "Metric",
    "Convention",
    "CONVENTIONS",
]
