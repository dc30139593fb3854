"""The levels of the features of a training set, and the base class of the problems that have such levels."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from ranksvm._util.lazy import cached_property
from ranksvm._util.text import feature_label
from ranksvm._util.types import Features
from ranksvm.additive import AdditiveFunction, AdditiveTerms, TrainingShares, codes_of
from ranksvm.additive.interactions import chosen_pairs, coarse_pairs, pair_signs
from ranksvm.exceptions import OptionError
from ranksvm.fits.additive_options import AdditiveOptions, feature_numbers
from ranksvm.fits.options import monotone_signs
from ranksvm.solvers import newton_cg

__all__ = ["AdditiveLevels", "AnyAdditiveProblem", "categorical_and_signs", "feature_scales", "variable_signs"]


# The codes (the level of each value) are kept for the latest validation sets, at most this many.
MAX_CODED = 8

# The class of a problem, and of its variants with other variables.
Problem = TypeVar("Problem")


@dataclass(frozen=True, eq=False)
class AdditiveLevels:
    """The levels of the features of a training set.

    Parameters
    ----------
    terms : AdditiveTerms
        The variables of the functions of single features.
    ranges : ndarray of float64, shape (n_features, 2)
        The smallest and the largest value of each feature.
    means : list of ndarray of float64, each of shape (n_levels,)
        Mean of each feature at each level.
    signs : ndarray of int64, shape (n_features,), or None
        Features in which the score must increase (1) or decrease (-1).
    feature_names : sequence of str, or None
        Names of the features.
    bounds : dict of float to ndarray of float64
        For each step weight: the bounds (`interaction_bounds`) by which a search orders the interactions.
    codes : list of (X, ndarray of uint8)
        Validation data, which a search scores many times, and their codes: the level of each value.
    """

    terms: AdditiveTerms
    ranges: np.ndarray
    means: Sequence[np.ndarray]
    signs: np.ndarray | None = None
    feature_names: Sequence[str] | None = None
    bounds: dict[float, np.ndarray] = field(default_factory=dict)
    codes: list[tuple[Features, np.ndarray]] = field(default_factory=list)

    @property
    def missing(self) -> np.ndarray:
        """Whether the missing values of each feature have a level: bool, shape (n_features,)."""
        return np.array([each.missing for each in self.terms.bins], dtype=bool)

    def codes_of(self, X: Features, n_threads: int) -> np.ndarray:
        """The level of each value of validation data, kept for the next call with the same object.

        Parameters
        ----------
        X : ndarray or CSR matrix of float32 or float64, shape (n_rows, n_features)
            The features.
        n_threads : int
            Number of threads.

        Returns
        -------
        ndarray of uint8, shape (n_rows, n_features)
            The codes.
        """
        for known, codes in self.codes:
            if known is X:
                return codes
        codes = codes_of(self.terms.bins, X, n_threads, self.feature_names)
        self.codes.append((X, codes))
        del self.codes[:-MAX_CODED]
        return codes


def categorical_and_signs(
    options: AdditiveOptions, n_features: int, feature_names: Sequence[str] | None
) -> tuple[list[int], np.ndarray | None]:
    """The categorical features, and the signs of features, as the hyper-parameters define them.

    Parameters
    ----------
    options : AdditiveOptions
        The hyper-parameters.
    n_features : int
        Number of features.
    feature_names : sequence of str, optional
        Their names.

    Returns
    -------
    categorical : list of int
        Numbers of the categorical features.
    signs : ndarray of int64, shape (n_features,), or None
        Features in which the score must increase (1) or decrease (-1).
    """
    listed = [] if options.categorical is None else list(options.categorical)
    categorical = feature_numbers("categorical", listed, n_features, feature_names)
    signs = monotone_signs(options.monotone, n_features, feature_names)
    if signs is not None and (wrong := [j for j in categorical if signs[j]]):
        label = feature_label(wrong[0], feature_names)
        raise OptionError(f"monotone has a sign for feature {label}, which is a category: these have no order.")
    return categorical, signs


def feature_scales(ranges: np.ndarray, categorical: Sequence[int]) -> np.ndarray:
    """Factors that scale each feature of the linear part to a range of length 1.

    Parameters
    ----------
    ranges : ndarray of float64, shape (n_features, 2)
        The smallest and the largest value of each feature.
    categorical : sequence of int
        Numbers of the categorical features.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        The factors; 0 for constant features, and for categorical features, which have no linear part.
    """
    extent = ranges[:, 1] - ranges[:, 0]
    scales: np.ndarray = np.divide(1.0, extent, out=np.zeros(len(extent)), where=extent > 0.0)
    scales[list(categorical)] = 0.0
    return scales


def variable_signs(terms: AdditiveTerms, signs: np.ndarray | None) -> np.ndarray | None:
    """The sign of each variable of a model whose score is monotone in some features.

    Parameters
    ----------
    terms : AdditiveTerms
        The variables.
    signs : ndarray of int64, shape (n_features,), or None
        The signs of the features.

    Returns
    -------
    ndarray of int64, shape (n_variables,), or None
        1, -1 or 0 for each variable; None if all are free.
    """
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


class AnyAdditiveProblem(Generic[Problem]):
    """Base of the problems of additive models: it turns variables into functions, and chooses interactions.

    Attributes
    ----------
    levels : AdditiveLevels
        The levels of the features.
    terms : AdditiveTerms
        The variables.
    options : AdditiveOptions
        The hyper-parameters.
    """

    levels: AdditiveLevels
    terms: AdditiveTerms
    options: AdditiveOptions
    n_threads: int
    scales_matter = False
    # the problem on a sample has the same structure, so the same method solves it
    newton = staticmethod(partial(newton_cg, solve_sampled=newton_cg))

    # ---- implemented by subclasses

    def interaction_bounds(self, w: np.ndarray, width: float | None) -> np.ndarray:
        """Bounds on how far a function of each pair of features could lower the objective; 0 for existing pairs.

        Parameters
        ----------
        w : ndarray of float64, shape (n_variables,)
            The variables of a solution for the current C.
        width : float or None
            The width of the loss in the problem that was solved.

        Returns
        -------
        ndarray of float64, shape (n_features * (n_features - 1) / 2,)
            The bounds, in the order of `all_pairs`.
        """
        raise NotImplementedError

    def _with_terms(self, terms: AdditiveTerms) -> Problem:
        """The problem with other variables."""
        raise NotImplementedError

    def _cell_counts(self) -> np.ndarray:
        """Number of rows, or sum of their weights, in each cell (pair of levels) of the functions of two features."""
        raise NotImplementedError

    # ---- shared by all subclasses

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
        """The shares of the training rows at the levels and in the cells."""
        cells, pairs = [], self.terms.pairs
        if pairs:
            ends = np.cumsum([pair.n_cells for pair in pairs])[:-1]
            for pair, counts in zip(pairs, np.split(self._cell_counts(), ends), strict=True):
                shape = pair.first_bins.n_levels, pair.second_bins.n_levels
                cells.append((counts / counts.sum()).reshape(shape))
        return TrainingShares(self.levels.ranges, self.levels.means, self.terms.shares, cells)

    def scores(self, w: np.ndarray, X: Any) -> np.ndarray:
        """Scores of validation data under a solution's variables.

        Parameters
        ----------
        w : ndarray of float64, shape (n_variables,)
            The variables.
        X : ndarray or CSR matrix
            The documents.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            Their scores.
        """
        function, n_threads = self.terms.function(w), self.n_threads
        return function.scores(X, n_threads, self.levels.codes_of(X, n_threads))

    def start_from(self, coef: Any, alpha: Any = None) -> np.ndarray | None:
        """An earlier function's variables as a starting point; None if its levels differ or there are interactions.

        Parameters
        ----------
        coef : AdditiveFunction
            The function.
        alpha : None
            Not used.

        Returns
        -------
        ndarray of float64, shape (n_variables,), or None
            The variables.
        """
        same = len(coef.bins) == len(self.terms.bins) and not coef.interactions and not self.terms.pairs
        if not same or any(
            not (np.array_equal(a.cuts, b.cuts) and a.n_levels == b.n_levels)
            for a, b in zip(coef.bins, self.terms.bins, strict=True)
        ):
            return None
        return self.terms.variables_of(coef)

    def with_pairs(self, pairs: np.ndarray) -> Problem:
        """The same problem, with a function for each of these pairs of features.

        Parameters
        ----------
        pairs : ndarray of int64, shape (n_pairs, 2)
            The two feature numbers of each pair.

        Returns
        -------
        AnyAdditiveProblem
            The problem.
        """
        return self._with_terms(self.terms.with_pairs(coarse_pairs(self.terms, pairs, self.options.interaction_bins)))

    def padded(self, w: np.ndarray) -> np.ndarray:
        """A starting point: a solution with fewer pairs of features, followed by zeros for the other pairs.

        Parameters
        ----------
        w : ndarray of float64
            Variables of the problem with only the first of the pairs, or with none.

        Returns
        -------
        ndarray of float64, shape (n_variables,)
            The variables.
        """
        return np.concatenate([w, np.zeros(self.terms.n_variables - len(w))])

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
            The two feature numbers of each pair.
        """
        return chosen_pairs(bounds, count, self.terms.n_features)

    def listed_pairs(self) -> np.ndarray:
        """The pairs that the hyper-parameter ``interactions`` lists: int64, shape (n_pairs, 2)."""
        listed, signs = self.options.interactions, self.levels.signs
        names, n = self.levels.feature_names, self.terms.n_features
        found = [tuple(sorted(feature_numbers("interactions", list(pair), n, names))) for pair in listed]
        for pair in found:
            first, second = (feature_label(number, names) for number in pair)
            if pair[0] == pair[1]:
                raise OptionError(f"interactions has a pair of feature {first} with itself.")
            if found.count(pair) > 1:
                raise OptionError(f"interactions has the pair of {first} and {second} twice.")
            if signs is not None and signs[pair[0]] * signs[pair[1]] < 0:
                raise OptionError(
                    f"interactions has the pair of {first} and {second}, whose signs in monotone are opposite: no "
                    "function of both is allowed."
                )
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    def _without_existing_pairs(self, bounds: np.ndarray) -> np.ndarray:
        """The bounds, set to 0 for the pairs that the problem already has."""
        n = self.terms.n_features
        for pair in self.terms.pairs:
            a, b = sorted((pair.first, pair.second))
            bounds[a * (2 * n - a - 1) // 2 + b - a - 1] = 0.0
        return bounds
