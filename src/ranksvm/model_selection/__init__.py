"""Model selection: splitters that never divide a query, and cross-validation that needs no metadata routing."""

from ranksvm.model_selection.cross_validation import CrossValidation, cross_validate
from ranksvm.model_selection.splitters import QueryKFold, QueryShuffleSplit

__all__ = ["QueryKFold", "QueryShuffleSplit", "cross_validate", "CrossValidation"]
