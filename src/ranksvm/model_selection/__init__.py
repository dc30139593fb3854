"""Model selection: splitters by query, cross-validation, and progressive (prequential) validation."""

from ranksvm.model_selection.cross_validation import CrossValidation, cross_validate
from ranksvm.model_selection.progressive import ProgressiveValidation, progressive_validation
from ranksvm.model_selection.refit import Refit
from ranksvm.model_selection.splitters import QueryKFold, QueryShuffleSplit

__all__ = [
    "QueryKFold",
    "QueryShuffleSplit",
    "cross_validate",
    "CrossValidation",
    "progressive_validation",
    "ProgressiveValidation",
    "Refit",
]
