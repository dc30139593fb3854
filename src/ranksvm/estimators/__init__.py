"""scikit-learn estimators."""

from ranksvm.estimators.path import RegularizationPath, regularization_path
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.estimators.rank_svm_cv import RankSVMCV

__all__ = ["RankSVM", "RankSVMCV", "RegularizationPath", "regularization_path"]
