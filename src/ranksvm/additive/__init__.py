"""Additive models: levels (bins or categories) of features, functions of one or two features, and the design matrix."""

from ranksvm.additive.bins import FeatureBins, codes_of, feature_bins, level_shares
from ranksvm.additive.design import AdditiveDesign, AdditiveTerms
from ranksvm.additive.function import AdditiveFunction, Interaction, TrainingShares

__all__ = [
    "AdditiveDesign",
    "AdditiveFunction",
    "AdditiveTerms",
    "FeatureBins",
    "Interaction",
    "TrainingShares",
    "codes_of",
    "feature_bins",
    "level_shares",
]
