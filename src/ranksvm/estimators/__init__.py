"""scikit-learn estimators."""

from ranksvm.estimators.factorized_rank_svm import FactorizedRankSVM
from ranksvm.estimators.kernel_rank_svm import KernelRankSVM
from ranksvm.estimators.kernel_rank_svm_cv import KernelRankSVMCV
from ranksvm.estimators.p_ranker import PRanker
from ranksvm.estimators.path import RegularizationPath, regularization_path
from ranksvm.estimators.perceptron_rankers import CommitteePerceptronRanker, PairwisePerceptronRanker
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.estimators.rank_svm_cv import RankSVMCV
from ranksvm.estimators.regularized_rank_svm import RegularizedRankSVM
from ranksvm.estimators.solar_ranker import SOLARRanker

__all__ = [
    "CommitteePerceptronRanker",
    "FactorizedRankSVM",
    "KernelRankSVM",
    "KernelRankSVMCV",
    "PRanker",
    "PairwisePerceptronRanker",
    "RankSVM",
    "RankSVMCV",
    "RegularizationPath",
    "RegularizedRankSVM",
    "SOLARRanker",
    "regularization_path",
]
