"""From the data of an additive model to its problem: levels of features, design matrix, objective and solver."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from ranksvm._util.cached import cached_property
from ranksvm._util.checks import is_sparse
from ranksvm.additive import (
    AdditiveDesign,
    AdditiveFunction,
    AdditiveTerms,
    TrainingShares,
    codes_of,
    level_shares,
)
from ranksvm.additive.bins import described_features
from ranksvm.additive.columns import Pair
from ranksvm.additive.function import filled
from ranksvm.additive.interactions import chosen_pairs, coarse_pairs, interaction_bounds, pair_signs
from ranksvm.data import TwoBlockDesign, TwoBlocks, as_design_matrix
from ranksvm.data.design_matrix import DesignMatrix
from ranksvm.data.pair_weights import checked_weights
from ranksvm.datasets.file_data import FileData
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.additive_options import AdditiveOptions, feature_numbers
from ranksvm.fits.linear import LinearProblem
from ranksvm.fits.options import monotone_signs, threads_for
from ranksvm.fits.training_set import TrainingArguments, TrainingSet, training_set
from ranksvm.objectives.additive import AdditiveObjective
from ranksvm.objectives.linear import LinearObjective
from ranksvm.solvers import newton_cg
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.protocol import DataTerm

__all__ = [
    "AdditiveProblem",
    "AdditiveTrainingSet",
    "additive_problem",
    "additive_training_set",
    "fitted_problem",
    "fitted_terms",
]


@dataclass(frozen=True, eq=False)
class AdditiveTrainingSet(TrainingSet):
    """A training set with the levels of its features.

    Parameters
    ----------
    features : DesignMatrix
        The features, without missing values.
    codes : ndarray of uint8, shape (n_rows, n_features)
        The level of each value.
    terms : AdditiveTerms
        The variables of single features.
    ranges : ndarray of float64, shape (n_features, 2)
        The smallest and the largest value of each feature.
    means : list of ndarray of float64, each of shape (n_levels,)
        Mean of each feature at each level.
    signs : ndarray of int64, shape (n_features,), or None
        Features in which the score must increase (1) or decrease (-1).
    feature_names : sequence of str, or None
        Names of the features.
    bounds : dict of float to ndarray of float64
        Step weight -> the bounds of interactions by which a search orders them.
    """

    features: Any = None
    codes: Any = None
    terms: Any = None
    ranges: Any = None
    means: Any = None
    signs: np.ndarray | None = None
    feature_names: Sequence[str] | None = None
    bounds: dict[float, np.ndarray] = field(default_factory=dict)


def additive_training_set(
    given: TrainingArguments, options: AdditiveOptions, feature_names: Sequence[str] | None = None
) -> AdditiveTrainingSet:
    """The training set of an additive model, with the levels of its features.

    Parameters
    ----------
    given : TrainingArguments
        The arguments of ``fit``, as arrays; NaN in X is a missing value.
    options : AdditiveOptions
        The hyper-parameters.
    feature_names : sequence of str, optional
        Names of the features, by which hyper-parameters may name them.

    Returns
    -------
    AdditiveTrainingSet
        The training set.
    """
    if isinstance(given.X, FileData):
        raise OptionError(
            "the data are larger than half of the free memory, and additive models are fitted to rows in memory: load "
            "a part of them, or use RankSVM, which reads files in passes."
        )
    data = training_set(given, options)
    X, n_features = data.X, data.n_features
    categorical = feature_numbers("categorical", options.categorical or (), n_features, feature_names)
    weight = _sample_weight(given, data.n_rows)
    bins, statistics = described_features(X, options.max_bins, categorical, data.n_threads, weight)
    codes = codes_of(bins, X, data.n_threads)
    shares, scales = level_shares(bins, codes, weight), _feature_scales(statistics.ranges, categorical)
    terms = AdditiveTerms(bins, shares, scales, statistics.mean, float(options.step_weight), options.linear)
    signs = monotone_signs(options.monotone, n_features, feature_names)
    if signs is not None and (wrong := [j for j in categorical if signs[j]]):
        raise OptionError(f"monotone has a sign for feature {wrong[0]}, which is a category: these have no order.")
    return _with_terms(data, codes, terms, (statistics.ranges, statistics.level_means), signs, feature_names)


def fitted_problem(
    given: TrainingArguments, options: AdditiveOptions, function: AdditiveFunction, signs: np.ndarray | None
) -> "AdditiveProblem":
    """The problem that a function was fitted to, with its levels and interactions.

    Parameters
    ----------
    given : TrainingArguments
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
        When other shares of the rows are at the levels: these are not the data that it was fitted to.
    """
    data = training_set(given, options)
    codes = codes_of(function.bins, data.X, data.n_threads)
    terms = fitted_terms(function, options)
    shares = level_shares(function.bins, codes, _sample_weight(given, data.n_rows))
    if any(not np.allclose(one, other) for one, other in zip(shares, terms.shares, strict=True)):
        raise DataError("these are not the data that the model was fitted to: their values have another distribution.")
    assert function.training is not None
    found = _with_terms(data, codes, terms, (function.training.ranges, function.training.means), signs)
    return AdditiveProblem(found, terms, options)


def fitted_terms(function: AdditiveFunction, options: AdditiveOptions) -> AdditiveTerms:
    """The variables of the problem that a function was fitted to.

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
    scales = _feature_scales(training.ranges, categorical)
    step_weight, linear = float(options.step_weight), options.linear
    return AdditiveTerms(
        function.bins, training.shares, scales, function.fill, step_weight, linear, function.interaction_pairs
    )


def _sample_weight(given: TrainingArguments, n_rows: int) -> np.ndarray | None:
    """How often each row counts; None if all count once."""
    return (
        None if given.sample_weight is None else checked_weights("sample_weight", given.sample_weight, n_rows, "rows")
    )


def _feature_scales(ranges: np.ndarray, categorical: Sequence[int]) -> np.ndarray:
    """What features are multiplied by in the linear part: their range becomes 1; categories have none."""
    extent = ranges[:, 1] - ranges[:, 0]
    scales = np.divide(1.0, extent, out=np.zeros(len(extent)), where=extent > 0.0)
    scales[list(categorical)] = 0.0
    return scales


def _with_terms(
    data: TrainingSet,
    codes: np.ndarray,
    terms: AdditiveTerms,
    statistics: tuple[np.ndarray, Sequence[np.ndarray]],
    signs: np.ndarray | None,
    feature_names: Sequence[str] | None = None,
) -> AdditiveTrainingSet:
    """A training set with the levels of its features; ``statistics`` are ranges and means."""
    kept = {field.name: getattr(data, field.name) for field in fields(TrainingSet)}
    features = _features(data.X, terms.fill if any(each.missing for each in terms.bins) else None)
    return AdditiveTrainingSet(
        **kept,
        features=features,
        codes=codes,
        terms=terms,
        ranges=statistics[0],
        means=statistics[1],
        signs=signs,
        feature_names=feature_names,
    )


def additive_problem(
    data: AdditiveTrainingSet, options: AdditiveOptions, step_weight: float | None = None, pairs: Sequence[Pair] = ()
) -> "AdditiveProblem":
    """The problem that an additive model solves for a training set.

    Parameters
    ----------
    data : AdditiveTrainingSet
        The training set.
    options : AdditiveOptions
        The hyper-parameters.
    step_weight : float, optional
        Weight of the steps, in place of that of the hyper-parameters.
    pairs : sequence of Pair
        Features with a function of both.

    Returns
    -------
    AdditiveProblem
        The problem.
    """
    terms = data.terms if step_weight is None else replace(data.terms, step_weight=float(step_weight))
    return AdditiveProblem(data, terms.with_pairs(pairs), options)


class AdditiveProblem(LinearProblem):
    """``1/2 |w|^2 + C * loss(Z w)``, Z the scaled features and the variables of their levels and cells.

    Parameters
    ----------
    data : AdditiveTrainingSet
        The training set.
    terms : AdditiveTerms
        The variables.
    options : AdditiveOptions
        The hyper-parameters.
    """

    # the problem on a sample has the same structure
    newton = staticmethod(partial(newton_cg, solve_sampled=newton_cg))

    def __init__(self, data: AdditiveTrainingSet, terms: AdditiveTerms, options: AdditiveOptions):
        self.data = data
        self.terms = terms
        self.options = options
        self._design = AdditiveDesign.of(data.features, data.codes, terms)
        term = ThreadedTerm(self._design, options.loss.over(data.pairs), threads_for(options.loss, data.n_threads))
        super().__init__(data, term, options, _variable_signs(terms, data.signs))

    def _free_objective(self, term: DataTerm) -> LinearObjective:
        if self.solver == "auto":
            self.solver = "newton"
        assert isinstance(term, ThreadedTerm)
        return AdditiveObjective(term, self.terms, 1.0, **self.smoothing)

    def function(self, w: np.ndarray) -> AdditiveFunction:
        """The scoring function of a solution.

        Parameters
        ----------
        w : ndarray of float64, shape (n_variables,)
            Its variables.

        Returns
        -------
        AdditiveFunction
            The function.
        """
        return replace(self.terms.function(w), training=self._training)

    @cached_property
    def _training(self) -> TrainingShares:
        """Where the training rows are."""
        cells = []
        for pair, codes in zip(self.terms.pairs, self._design.codes[:, self.terms.n_features :].T, strict=True):
            shares = np.bincount(codes, minlength=pair.n_cells) / max(1, len(codes))
            cells.append(shares.reshape(pair.first_bins.n_levels, pair.second_bins.n_levels))
        return TrainingShares(self.data.ranges, self.data.means, self.terms.shares, cells)

    def certificate(self, function: AdditiveFunction, C: float, width: float | None) -> tuple[float, float]:
        """Objective and duality gap of any function with the levels and interactions of the problem.

        Parameters
        ----------
        function : AdditiveFunction
            The function.
        C : float
            Weight of a pair.
        width : float, optional
            Width of the loss, as of a solution.

        Returns
        -------
        objective, gap : float
            The objective, and by how much it exceeds the minimum at most.
        """
        self.objective.width = width
        self.objective.reweight(C)
        return self.objective.certificate(self.objective.evaluate(self.terms.variables_of(function)))

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        return self.function(w).scores(X, self.n_threads)

    def start_from(self, coef: Any, alpha: Any = None) -> np.ndarray | None:
        """The variables of an earlier function with the same levels as a starting point; None for other levels."""
        same = len(coef.bins) == len(self.terms.bins) and not coef.interactions and not self.terms.pairs
        if not same or any(
            not (np.array_equal(a.cuts, b.cuts) and a.n_levels == b.n_levels)
            for a, b in zip(coef.bins, self.terms.bins, strict=True)
        ):
            return None
        return self.terms.variables_of(coef)

    def with_pairs(self, pairs: np.ndarray) -> "AdditiveProblem":
        """The same problem with functions of some pairs of features.

        Parameters
        ----------
        pairs : ndarray of int64, shape (n_pairs, 2)
            Numbers of the features.

        Returns
        -------
        AdditiveProblem
            The problem.
        """
        found = coarse_pairs(self.terms, pairs, self.options.interaction_bins)
        return AdditiveProblem(self.data, self.terms.with_pairs(found), self.options)

    def padded(self, w: np.ndarray) -> np.ndarray:
        """Variables of the same problem with fewer pairs, as a starting point: 0 for the others.

        Parameters
        ----------
        w : ndarray of float64
            Variables of single features, and of the first of the pairs.

        Returns
        -------
        ndarray of float64, shape (n_variables,)
            The variables.
        """
        return np.concatenate([w, np.zeros(self.terms.n_variables - len(w))])

    def interaction_bounds(self, w: np.ndarray, width: float | None) -> np.ndarray:
        """What a function of each pair of features could still lower the objective by, at most; 0 for those it has.

        Parameters
        ----------
        w : ndarray of float64, shape (n_variables,)
            The variables of a solution for the current C.
        width : float or None
            The width of the loss at which it was solved.

        Returns
        -------
        ndarray of float64, shape (n_features * (n_features - 1) / 2,)
            The bounds, in the order of `all_pairs`.
        """
        objective = self.objective
        objective.width = width
        point = objective.evaluate(np.ascontiguousarray(w))
        derivative = objective.C * objective.term.score_gradient(point.at)
        rows = self.pairs.rows
        if rows is not None:
            by_row = np.zeros(self.n_rows)
            by_row[rows] = derivative
            derivative = by_row
        single = self.terms.with_pairs(())
        bounds = interaction_bounds(
            single, self.data.codes, derivative, self.options.interaction_bins, self.data.signs, self.n_threads
        )
        n = self.terms.n_features
        for pair in self.terms.pairs:
            a, b = sorted((pair.first, pair.second))
            bounds[a * (2 * n - a - 1) // 2 + b - a - 1] = 0.0
        return bounds

    def chosen_pairs(self, bounds: np.ndarray, count: int) -> np.ndarray:
        """The pairs with the largest bounds.

        Parameters
        ----------
        bounds : ndarray of float64
            The result of `interaction_bounds`.
        count : int
            Number of pairs.

        Returns
        -------
        ndarray of int64, shape (at most count, 2)
            Numbers of the features.
        """
        return chosen_pairs(bounds, count, self.terms.n_features)

    def listed_pairs(self) -> np.ndarray:
        """The pairs that the hyper-parameter ``interactions`` lists: int64, shape (n_pairs, 2)."""
        listed = self.options.interactions
        names, n = self.data.feature_names, self.terms.n_features
        found = [tuple(sorted(feature_numbers("interactions", list(pair), n, names))) for pair in listed]
        for pair in found:
            if pair[0] == pair[1]:
                raise OptionError(f"interactions has a pair of feature {pair[0]} with itself.")
            if found.count(pair) > 1:
                raise OptionError(f"interactions has the pair {pair} twice.")
            if self.data.signs is not None and self.data.signs[pair[0]] * self.data.signs[pair[1]] < 0:
                raise OptionError(
                    f"interactions has the pair {pair}, whose features have opposite signs in monotone: no function "
                    "of both is allowed."
                )
        return np.array(found, dtype=np.int64).reshape(-1, 2)


def _features(X: Any, fill: np.ndarray | None) -> DesignMatrix:
    """The design matrix of features, with ``fill`` in place of missing values."""
    if isinstance(X, TwoBlocks):
        blocks = [X.first, X.second] if fill is None else [filled(X.first, fill), filled(X.second, fill)]
        return TwoBlockDesign(TwoBlocks(*blocks))
    X = X.tocsr() if is_sparse(X) else X
    return as_design_matrix(X if fill is None else filled(X, fill))


def _variable_signs(terms: AdditiveTerms, signs: np.ndarray | None) -> np.ndarray | None:
    """The sign of each variable of a model whose score is monotone in some features."""
    if signs is None:
        return None
    found = [signs[: terms.n_linear]]
    for sign, bins in zip(signs, terms.bins, strict=True):
        found.append(np.where(np.arange(bins.n_levels - 1) < bins.n_steps, sign, 0))
    for pair in terms.pairs:
        of_pair = pair_signs(pair.first_bins, pair.second_bins, int(signs[pair.first]), int(signs[pair.second]))
        assert of_pair is not None
        found.append(of_pair.ravel())
    return np.concatenate(found).astype(np.int64)
