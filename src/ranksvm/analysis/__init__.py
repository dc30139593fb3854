"""Analysis of fitted models: explanations, importances, intervals of weights, bands of shapes, and dual variables."""

from typing import TYPE_CHECKING

from ranksvm._util.lazy import lazy_names
from ranksvm.fits.results.dual import DualBlock, DualCoef
from ranksvm.fits.results.explanation import Explanation
from ranksvm.fits.results.score_difference import QueryExplanation, ScoreDifference

if TYPE_CHECKING:
    from ranksvm.analysis.bands import ShapeBands, shape_bands
    from ranksvm.analysis.duals import dual_coef, dual_spectra, low_rank_coef
    from ranksvm.analysis.explanations import explain, feature_importance
    from ranksvm.analysis.intervals import WeightIntervals, weight_intervals
    from ranksvm.analysis.online import OnlineBounds, online_bounds
    from ranksvm.analysis.spectra import DualSpectra, compare_ranks
else:
    # A program uses few of these names, and some load scikit-learn, the slowest import.
    __getattr__ = lazy_names(
        __name__,
        {
            "DualSpectra": "ranksvm.analysis.spectra",
            "OnlineBounds": "ranksvm.analysis.online",
            "ShapeBands": "ranksvm.analysis.bands",
            "WeightIntervals": "ranksvm.analysis.intervals",
            "compare_ranks": "ranksvm.analysis.spectra",
            "dual_coef": "ranksvm.analysis.duals",
            "dual_spectra": "ranksvm.analysis.duals",
            "explain": "ranksvm.analysis.explanations",
            "feature_importance": "ranksvm.analysis.explanations",
            "low_rank_coef": "ranksvm.analysis.duals",
            "online_bounds": "ranksvm.analysis.online",
            "shape_bands": "ranksvm.analysis.bands",
            "weight_intervals": "ranksvm.analysis.intervals",
        },
    )

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


def __dir__() -> list[str]:
    return sorted(__all__)
