"""scikit-learn estimators."""

from ranksvm.estimators.rank_svm import RankSVM

__all__ = ["RankSVM"]
