"""scikit-learn estimators."""

from ranksvm.estimators.factorized_rank_svm import FactorizedRankSVM
from ranksvm.estimators.kernel_rank_svm import KernelRankSVM
from ranksvm.estimators.kernel_rank_svm_cv import KernelRankSVMCV
from ranksvm.estimators.path import RegularizationPath, regularization_path
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.estimators.rank_svm_cv import RankSVMCV
from ranksvm.estimators.regularized_rank_svm import RegularizedRankSVM

__all__ = [
    "FactorizedRankSVM",
    "KernelRankSVM",
    "KernelRankSVMCV",
    "RankSVM",
    "RankSVMCV",
    "RegularizationPath",
    "RegularizedRankSVM",
    "regularization_path",
]
