"""Analysis of fitted models: explanations, importances, intervals of weights, bands of shapes, duals, spectra."""

from ranksvm.analysis.decompositions import dual_spectra
from ranksvm.analysis.duals import dual_coef, low_rank_coef
from ranksvm.analysis.explanations import explain, feature_importance
from ranksvm.analysis.intervals import WeightIntervals
from ranksvm.analysis.online import OnlineBounds, online_bounds
from ranksvm.analysis.shape_bands import ShapeBands, shape_bands
from ranksvm.analysis.spectra import DualSpectra, compare_ranks
from ranksvm.analysis.weight_intervals import weight_intervals
from ranksvm.fits.results.dual import DualBlock, DualCoef
from ranksvm.fits.results.explanation import Explanation
from ranksvm.fits.results.score_difference import QueryExplanation, ScoreDifference

__all__ = [
    "explain",
    "feature_importance",
    "weight_intervals",
    "WeightIntervals",
    "shape_bands",
    "ShapeBands",
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
