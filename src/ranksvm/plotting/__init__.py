"""Displays of models and results, drawn with matplotlib (``pip install 'ranksvm[plot]'``)."""

from ranksvm.plotting.weights import WeightsDisplay

__all__ = ["WeightsDisplay"]
