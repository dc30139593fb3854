"""Displays of fitted models, in scikit-learn's style; drawn with matplotlib (``pip install "ranksvm[plot]"``)."""

from ranksvm.plotting.feature_displays import ShapeDisplay, WeightsDisplay
from ranksvm.plotting.grid_display import GridDisplay
from ranksvm.plotting.path_display import PathDisplay
from ranksvm.plotting.progressive_display import ProgressiveDisplay
from ranksvm.plotting.quality_displays import CutoffDisplay, DifferenceDisplay, LabelDisplay
from ranksvm.plotting.rank_curves import ClickRateDisplay, PropensityDisplay
from ranksvm.plotting.spectra import DimensionHistogramDisplay, DimensionsDisplay, EnergyDisplay

__all__ = [
    "PathDisplay",
    "GridDisplay",
    "ProgressiveDisplay",
    "WeightsDisplay",
    "ShapeDisplay",
    "CutoffDisplay",
    "DifferenceDisplay",
    "LabelDisplay",
    "DimensionHistogramDisplay",
    "DimensionsDisplay",
    "EnergyDisplay",
    "ClickRateDisplay",
    "PropensityDisplay",
]
