"""Quality of rankings: NDCG, MAP, MRR, ERR, P@k, R@k, pairwise accuracy, Kendall's tau, and tests of differences."""

from typing import TYPE_CHECKING

from ranksvm._lazy import lazy_names
from ranksvm.metrics.conventions import CONVENTIONS, Convention
from ranksvm.metrics.cumulative import CumulativeMetrics
from ranksvm.metrics.definitions import Metric
from ranksvm.metrics.evaluation import Evaluation, evaluate
from ranksvm.metrics.names import parse_metric, parse_metrics
from ranksvm.metrics.preferences import accuracy_interval, evaluate_pairs
from ranksvm.metrics.runs import evaluate_run
from ranksvm.metrics.significance import Comparison, SystemComparisons, adjust_p_values, compare, compare_systems

if TYPE_CHECKING:
    from ranksvm.metrics.counterfactual import CounterfactualEstimate, estimate
    from ranksvm.metrics.scorers import RankingScorer, scorer
else:
    # Scorers need scikit-learn, the slowest import; estimates are for users of clicks alone.
    __getattr__ = lazy_names(
        __name__,
        dict.fromkeys(("RankingScorer", "scorer"), "ranksvm.metrics.scorers")
        | dict.fromkeys(("CounterfactualEstimate", "estimate"), "ranksvm.metrics.counterfactual"),
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
