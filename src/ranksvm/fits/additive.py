"""Build the problem of an additive model from its data: levels of features, design matrix, objective and solver."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from ranksvm.additive import AdditiveDesign, AdditiveFunction, AdditiveTerms, codes_of, level_shares
from ranksvm.additive.bins import described_features
from ranksvm.additive.design import features_of
from ranksvm.additive.interactions import interaction_bounds
from ranksvm.data import DesignMatrix
from ranksvm.data.numeric_column import checked_weights
from ranksvm.datasets.file_data import FileData
from ranksvm.device import open_device
from ranksvm.exceptions import DataError
from ranksvm.fits.additive_levels import (
    AdditiveLevels,
    AnyAdditiveProblem,
    categorical_and_signs,
    feature_scales,
    variable_signs,
)
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.device_choice import devices_for
from ranksvm.fits.linear import LinearProblem
from ranksvm.fits.options import threads_for
from ranksvm.fits.training_set import TrainingArguments, TrainingSet, training_set
from ranksvm.objectives.additive import AdditiveObjective, SampledTerm
from ranksvm.objectives.linear import LinearObjective
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.protocol import DataTerm

if TYPE_CHECKING:
    from ranksvm.fits.additive_file import FileAdditiveTrainingSet
    from ranksvm.fits.additive_partitioned import PartitionedAdditiveProblem
    from ranksvm.fits.work import Work
    from ranksvm.terms.device.coded import FeatureRows
    from ranksvm.terms.parts.term import PartitionedTerm

__all__ = [
    "AdditiveParts",
    "AdditiveProblem",
    "AdditiveTrainingSet",
    "additive_problem",
    "additive_training_set",
    "fitted_problem",
    "fitted_terms",
]


class AdditiveParts(Protocol):
    """A training set whose rows are in parts, in a file or on a cluster."""

    @property
    def levels(self) -> AdditiveLevels:
        """The levels of the features."""

    def term(self, terms: AdditiveTerms, options: AdditiveOptions) -> "PartitionedTerm":
        """The data term: the loss over all rows as a function of these variables."""


@dataclass(frozen=True, eq=False)
class AdditiveTrainingSet(TrainingSet):
    """A training set with the levels of its features.

    Parameters
    ----------
    features : DesignMatrix
        The features, without missing values.
    codes : ndarray of uint8, shape (n_rows, n_features)
        The level of each value.
    levels : AdditiveLevels
        The levels of the features.
    sample_weight : ndarray of float64, shape (n_rows,), or None
        How often each row counts at the levels and in the cells; None: once.

    Attributes
    ----------
    on_devices : dict
        For each device of a fit, by its name: the features there, which all problems of the training set share.
    """

    features: DesignMatrix = field(kw_only=True)
    codes: np.ndarray = field(kw_only=True)
    levels: AdditiveLevels = field(kw_only=True)
    sample_weight: np.ndarray | None = field(kw_only=True)
    # `replace` does not copy this dict, because a training set with other pairs needs other rows on the devices
    on_devices: "dict[str, FeatureRows]" = field(default_factory=dict, init=False)


def additive_training_set(
    training: TrainingArguments,
    options: AdditiveOptions,
    feature_names: Sequence[str] | None = None,
    missing: np.ndarray | None = None,
) -> "AdditiveTrainingSet | FileAdditiveTrainingSet":
    """The training set of an additive model, with the levels of its features.

    Parameters
    ----------
    training : TrainingArguments
        The arguments of ``fit``, as arrays; NaN in X is a missing value.
    options : AdditiveOptions
        The hyper-parameters.
    feature_names : sequence of str, optional
        Names of the features, by which hyper-parameters may name them.
    missing : ndarray of bool, shape (n_features,), optional
        Whether each feature has a level for missing values; None: it has one if it has a missing value in X.

    Returns
    -------
    AdditiveTrainingSet or FileAdditiveTrainingSet
        The training set, whose rows are in memory or stay in their file.
    """
    if isinstance(training.X, FileData):
        # imported for files only: a program loads only the modules it uses
        from ranksvm.fits.additive_file import file_additive_training_set
        from ranksvm.fits.file_training_set import file_training_set

        return file_additive_training_set(file_training_set(training, options), options, feature_names, missing)
    data = training_set(training, options)
    X = data.X
    categorical, signs = categorical_and_signs(options, data.n_features, feature_names)
    weight = _sample_weight(training, data.n_rows)
    bins, statistics = described_features(X, options.max_bins, categorical, data.n_threads, weight, missing)
    codes = codes_of(bins, X, data.n_threads, feature_names)
    shares, scales = level_shares(bins, codes, weight, data.n_threads), feature_scales(statistics.ranges, categorical)
    terms = AdditiveTerms(bins, shares, scales, statistics.mean, float(options.step_weight), options.linear)
    levels = AdditiveLevels(terms, statistics.ranges, statistics.level_means, signs, feature_names)
    return _with_levels(data, codes, levels, weight)


def fitted_problem(
    training: TrainingArguments, options: AdditiveOptions, function: AdditiveFunction, signs: np.ndarray | None
) -> "AdditiveProblem":
    """The problem of an earlier fit, built again from its function and data, with its levels and interactions.

    Parameters
    ----------
    training : TrainingArguments
        The arguments of ``fit``, as arrays.
    options : AdditiveOptions
        The hyper-parameters.
    function : AdditiveFunction
        The function, with ``training``.
    signs : ndarray of int64, shape (n_features,), or None
        Features in which the score must increase (1) or decrease (-1).

    Returns
    -------
    AdditiveProblem
        The problem.

    Raises
    ------
    DataError
        When the share of the rows at some level is not the one stored in the function: it was fitted to other data.
    """
    data = training_set(training, options)
    codes = codes_of(function.bins, data.X, data.n_threads, function.names)
    terms = fitted_terms(function, options)
    weight = _sample_weight(training, data.n_rows)
    shares = level_shares(function.bins, codes, weight, data.n_threads)
    if any(not np.allclose(one, other) for one, other in zip(shares, terms.shares, strict=True)):
        raise DataError("these are not the data that the model was fitted to: their values have another distribution.")
    assert function.training is not None
    levels = AdditiveLevels(terms, function.training.ranges, function.training.means, signs)
    return AdditiveProblem(_with_levels(data, codes, levels, weight), terms, options)


def fitted_terms(function: AdditiveFunction, options: AdditiveOptions) -> AdditiveTerms:
    """The variables of the problem of an earlier fit, from the function that it found.

    Parameters
    ----------
    function : AdditiveFunction
        The function, with ``training``.
    options : AdditiveOptions
        The hyper-parameters.

    Returns
    -------
    AdditiveTerms
        The variables.
    """
    training = function.training
    assert training is not None
    categorical = [j for j, each in enumerate(function.bins) if each.categories is not None]
    scales = feature_scales(training.ranges, categorical)
    step_weight, linear = float(options.step_weight), options.linear
    return AdditiveTerms(
        function.bins, training.shares, scales, function.fill, step_weight, linear, function.interaction_pairs
    )


def _sample_weight(training: TrainingArguments, n_rows: int) -> np.ndarray | None:
    """How often each row counts; None if all count once."""
    return (
        None
        if training.sample_weight is None
        else checked_weights("sample_weight", training.sample_weight, n_rows, "rows")
    )


def _with_levels(
    data: TrainingSet, codes: np.ndarray, levels: AdditiveLevels, sample_weight: np.ndarray | None
) -> AdditiveTrainingSet:
    """A training set with the levels of its features."""
    kept = {field.name: getattr(data, field.name) for field in fields(TrainingSet)}
    features = features_of(data.X, levels.terms)
    return AdditiveTrainingSet(**kept, features=features, codes=codes, levels=levels, sample_weight=sample_weight)


def additive_problem(
    data: "AdditiveTrainingSet | AdditiveParts", options: AdditiveOptions, step_weight: float | None = None
) -> "AdditiveProblem | PartitionedAdditiveProblem":
    """The problem that an additive model without interactions solves for a training set.

    Parameters
    ----------
    data : AdditiveTrainingSet or AdditiveParts
        The training set, in memory or in parts elsewhere.
    options : AdditiveOptions
        The hyper-parameters.
    step_weight : float, optional
        Weight of the steps, in place of the weight in the hyper-parameters.

    Returns
    -------
    AdditiveProblem or PartitionedAdditiveProblem
        The problem.
    """
    terms = data.levels.terms
    terms = terms if step_weight is None else replace(terms, step_weight=float(step_weight))
    if isinstance(data, AdditiveTrainingSet):
        return AdditiveProblem(data, terms, options)
    from ranksvm.fits.additive_partitioned import PartitionedAdditiveProblem

    return PartitionedAdditiveProblem(lambda own: data.term(own, options), data.levels, terms, options)


class AdditiveProblem(AnyAdditiveProblem["AdditiveProblem"], LinearProblem):
    """Minimize ``1/2 |w|^2 + C * loss(Z w)``; Z is the design matrix of single features and of pairs of features.

    Parameters
    ----------
    data : AdditiveTrainingSet
        The training set.
    terms : AdditiveTerms
        The variables.
    options : AdditiveOptions
        The hyper-parameters.
    """

    def __init__(self, data: AdditiveTrainingSet, terms: AdditiveTerms, options: AdditiveOptions):
        self.data = data
        self.levels = data.levels
        self.terms = terms
        self.options = options
        self._design = AdditiveDesign.of(data.features, data.codes, terms)
        super().__init__(data, self._term(), options, variable_signs(terms, data.levels.signs))

    def _term(self) -> SampledTerm:
        """The data term (the loss as a function of the variables), over rows in memory or on a GPU."""
        data, options = self.data, self.options
        loss = options.loss.with_pairs(data.pairs)

        def work() -> "Work":
            from ranksvm.fits.work import additive_work  # here, because few fits need it

            return additive_work(options.loss, data.pairs, self._design)

        names = devices_for(options.device, options.solver, options.loss, data.n_threads, work)
        if names:
            from ranksvm.terms.device.coded import CodedTerm  # here, because few fits need it

            return CodedTerm(open_device(names[0]), self._design, loss, data.n_threads, data.on_devices)
        return ThreadedTerm(self._design, loss, threads_for(options.loss, data.n_threads))

    def _unconstrained_objective(self, term: DataTerm) -> LinearObjective:
        if self.solver == "auto":
            self.solver = "newton"
        return AdditiveObjective(cast(SampledTerm, term), self.terms, 1.0, **self.smoothing)

    def _with_terms(self, terms: AdditiveTerms) -> "AdditiveProblem":
        return AdditiveProblem(self.data, terms, self.options)

    def _cell_counts(self) -> np.ndarray:
        return self._design.cell_counts(self.data.sample_weight)

    def certificate(self, function: AdditiveFunction, C: float, width: float | None) -> tuple[float, float]:
        """Objective and duality gap of any function with the levels and interactions of the problem.

        Parameters
        ----------
        function : AdditiveFunction
            The function.
        C : float
            Weight of a pair.
        width : float, optional
            Width of the Huberized hinge that was minimized last; None without smoothing.

        Returns
        -------
        objective, gap : float
            The objective, and a bound on its distance from the minimum.
        """
        self.objective.width = width
        self.objective.reweight(C)
        objective, gap = self.objective.certificate(self.objective.evaluate(self.terms.variables_of(function)))
        return float(objective), float(gap)

    def interaction_bounds(self, w: np.ndarray, width: float | None) -> np.ndarray:
        objective = self.objective
        objective.width = width
        point = objective.evaluate(np.ascontiguousarray(w))
        derivative = objective.C * cast(SampledTerm, objective.term).score_gradient(point.at)
        rows = self.pairs.rows
        if rows is not None:
            by_row = np.zeros(self.n_rows)
            by_row[rows] = derivative
            derivative = by_row
        single, n_levels = self.terms.with_pairs(()), self.options.interaction_bins
        bounds = interaction_bounds(single, self.data.codes, derivative, n_levels, self.levels.signs, self.n_threads)
        return self._without_existing_pairs(bounds)
