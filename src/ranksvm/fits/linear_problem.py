"""From the data of a linear model to its problem: term, objective and solver."""

from collections.abc import Sequence

from ranksvm.datasets.file_data import FileData
from ranksvm.fits.arguments import TrainingArguments
from ranksvm.fits.file_training_set import FileTrainingSet, file_training_set
from ranksvm.fits.linear import LinearProblem
from ranksvm.fits.linear_term import file_term, linear_term
from ranksvm.fits.options import LinearOptions
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.fits.signs import monotone_signs
from ranksvm.fits.training_set import TrainingSet, training_set

__all__ = ["linear_problem", "linear_training_set"]


def linear_training_set(given: TrainingArguments, options: LinearOptions) -> TrainingSet | FileTrainingSet:
    """The training set of a linear model, whose rows are in memory or stay in their file.

    Parameters
    ----------
    given : TrainingArguments
        The arguments of ``fit``, as arrays.
    options : LinearOptions
        The hyper-parameters.

    Returns
    -------
    TrainingSet or FileTrainingSet
        The training set.
    """
    return (file_training_set if isinstance(given.X, FileData) else training_set)(given, options)


def linear_problem(
    data: TrainingSet | FileTrainingSet,
    options: LinearOptions,
    feature_names: Sequence[str] | None = None,
    n_fits: int = 1,
) -> LinearProblem:
    """The problem that a linear model solves for a training set.

    Parameters
    ----------
    data : TrainingSet or FileTrainingSet
        The training set.
    options : LinearOptions
        The hyper-parameters.
    feature_names : sequence of str, optional
        Names of the features, by which ``monotone`` may name them.
    n_fits : int
        Number of values of C that are solved for, one after another.

    Returns
    -------
    LinearProblem
        The problem.
    """
    signs = monotone_signs(options.monotone, data.n_features, feature_names)
    if isinstance(data, FileTrainingSet):
        return PartitionedProblem(file_term(data, options), options, signs)
    term = linear_term(data, options.loss, options.solver, options.device, n_fits)
    return LinearProblem(data, term, options, signs)
