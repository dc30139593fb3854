"""The optimization problems that estimators solve, for benchmarks that use a problem directly."""

from ranksvm import KernelRankSVM, RankingData
from ranksvm.estimators.base.inputs import read_training_data
from ranksvm.estimators.base.options import linear_options
from ranksvm.estimators.rank_svm import RankSVMCore
from ranksvm.fits.kernel import KernelOrFeatureProblem, kernel_problem, kernel_training_set
from ranksvm.fits.linear import LinearProblem
from ranksvm.fits.linear_problem import linear_problem, linear_training_set
from ranksvm.fits.training_set import TrainingArguments


def linear_problem_of(ranker: RankSVMCore, data: RankingData) -> LinearProblem:
    """The problem that a linear ranker solves for these data."""
    options = linear_options(ranker)
    given = read_training_data(ranker, TrainingArguments(data.X, data.y, qid=data.qid))
    return linear_problem(linear_training_set(given, options), options)


def kernel_problem_of(ranker: KernelRankSVM, data: RankingData, gamma: float) -> KernelOrFeatureProblem:
    """The problem that a kernel ranker solves for these data and this gamma."""
    options = ranker._kernel_options()
    given = read_training_data(ranker, TrainingArguments(data.X, data.y, qid=data.qid))
    return kernel_problem(kernel_training_set(given, options), options, gamma)
