"""What fitted models tell: explanations, importances, how sure weights are, the dual, its spectra, online losses."""

from ranksvm.analysis.bootstrap import bootstrap_weights
from ranksvm.analysis.bootstrap_weights import BootstrapWeights
from ranksvm.analysis.decompositions import dual_spectra
from ranksvm.analysis.duals import dual_coef, low_rank_coef
from ranksvm.analysis.explanations import explain, feature_importance
from ranksvm.analysis.online import OnlineBounds, online_bounds
from ranksvm.analysis.spectra import DualSpectra, compare_ranks
from ranksvm.problems.dual import DualBlock, DualCoef
from ranksvm.problems.explanation import Explanation
from ranksvm.problems.score_difference import QueryExplanation, ScoreDifference

__all__ = [
    "explain",
    "feature_importance",
    "bootstrap_weights",
    "BootstrapWeights",
    "Explanation",
    "QueryExplanation",
    "ScoreDifference",
    "dual_coef",
    "low_rank_coef",
    "dual_spectra",
    "DualSpectra",
    "compare_ranks",
    "online_bounds",
    "OnlineBounds",
    "DualCoef",
    "DualBlock",
]
