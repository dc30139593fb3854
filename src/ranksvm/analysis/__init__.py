"""What fitted models tell: explanations, importances, how sure the weights are, the dual."""

from ranksvm.analysis.explanations import explain, feature_importance
from ranksvm.estimators._dual import DualBlock, DualCoef
from ranksvm.estimators._explanation import Explanation
from ranksvm.estimators._score_difference import QueryExplanation, ScoreDifference

__all__ = [
    "explain",
    "feature_importance",
    "Explanation",
    "QueryExplanation",
    "ScoreDifference",
    "DualCoef",
    "DualBlock",
]
