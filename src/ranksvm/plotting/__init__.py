"""Displays of what was fitted, in scikit-learn's style; drawn with matplotlib (``pip install 'ranksvm[plot]'``)."""

from ranksvm.plotting.path_display import PathDisplay
from ranksvm.plotting.weights import WeightsDisplay

__all__ = ["PathDisplay", "WeightsDisplay"]
