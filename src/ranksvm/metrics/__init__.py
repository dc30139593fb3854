"""Quality of rankings: NDCG, MAP, MRR, ERR, P@k, R@k, pairwise accuracy, Kendall's tau, and tests of differences."""

from ranksvm.metrics.conventions import CONVENTIONS, Convention
from ranksvm.metrics.cumulative import CumulativeMetrics
from ranksvm.metrics.definitions import Metric
from ranksvm.metrics.evaluation import Evaluation, evaluate
from ranksvm.metrics.names import parse_metric, parse_metrics
from ranksvm.metrics.scorers import RankingScorer, scorer
from ranksvm.metrics.significance import Comparison, compare

__all__ = [
    "evaluate",
    "Evaluation",
    "CumulativeMetrics",
    "compare",
    "Comparison",
    "scorer",
    "RankingScorer",
    "parse_metric",
    "parse_metrics",
    "Metric",
    "Convention",
    "CONVENTIONS",
]
