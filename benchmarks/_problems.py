"""The optimization problems that estimators solve, for benchmarks that use a problem directly."""

from ranksvm import AdditiveRankSVM, KernelRankSVM, RankingData
from ranksvm.estimators.base.inputs import read_training_data
from ranksvm.estimators.base.ranker import additive_options, linear_options
from ranksvm.estimators.rank_svm import RankSVMCore
from ranksvm.fits.additive import additive_problem, additive_training_set
from ranksvm.fits.additive_levels import AnyAdditiveProblem
from ranksvm.fits.kernel import KernelOrFeatureProblem, kernel_problem, kernel_training_set
from ranksvm.fits.linear import LinearProblem, linear_problem, linear_training_set
from ranksvm.fits.training_set import TrainingArguments


def linear_problem_of(ranker: RankSVMCore, data: RankingData) -> LinearProblem:
    """The problem that a linear ranker solves for these data."""
    options = linear_options(ranker)
    given = read_training_data(ranker, TrainingArguments(data.X, data.y, qid=data.qid))
    return linear_problem(linear_training_set(given, options), options)


def additive_problem_of(ranker: AdditiveRankSVM, data: RankingData) -> AnyAdditiveProblem:
    """The problem that an additive ranker solves for these data, with its levels and the pairs of features it lists."""
    options = additive_options(ranker)
    given = read_training_data(ranker, TrainingArguments(data.X, data.y, qid=data.qid))
    problem = additive_problem(additive_training_set(given, options), options)
    return problem.with_pairs(problem.listed_pairs()) if ranker.interactions else problem


def kernel_problem_of(ranker: KernelRankSVM, data: RankingData, gamma: float) -> KernelOrFeatureProblem:
    """The problem that a kernel ranker solves for these data and this gamma."""
    options = ranker._kernel_options()
    given = read_training_data(ranker, TrainingArguments(data.X, data.y, qid=data.qid))
    return kernel_problem(kernel_training_set(given, options), options, gamma)
