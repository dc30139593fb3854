"""Probabilities of preferences, by the model of Bradley and Terry, for rankers that are fitted to pairs."""

import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import clone

from ranksvm._util.checks import n_rows_of
from ranksvm._util.types import MatrixLike, Splits
from ranksvm.data import Preferences, Queries
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.pair_list import groups_of_pairs, row_numbers
from ranksvm.data.queries import id_array
from ranksvm.data.scores import scores_of_rows
from ranksvm.device.arrays import host_values
from ranksvm.estimators.base.arguments import TrainingFeatures
from ranksvm.estimators.base.ranker import Ranker, check_is_fitted
from ranksvm.exceptions import DataError, OptionError, UninformativeWarning
from ranksvm.fits.options import loss_of
from ranksvm.model_files.schema import Number, Schema
from ranksvm.model_selection.cross_validation import query_splits

__all__ = ["CalibratedMixin", "platt_slope"]

_NO_SLOPE = (
    "calibrate found a slope of 0, so that every probability is one half: of the held-out pairs, {}. "
    "Check whether chosen and rejected are exchanged, and whether the features distinguish them."
)


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class _WithProbabilities(Generic[Arguments, Result]):
    """A method that `hasattr` finds only on models with probabilities; on other models, the error says what to do.

    (The error of scikit-learn's ``available_if`` only says that there is no such attribute, and has the reason in its
    cause.)
    """

    def __init__(self, method: Callable[Concatenate[Any, Arguments], Result]):
        self._method = method

    def __get__(self, ranker: Any, owner: type | None = None) -> Callable[Arguments, Result]:
        if ranker is None:
            return self._method  # type: ignore[return-value]  # read from the class, for documentation
        if not hasattr(ranker, "calibration_slope_") and not ranker._minimizes_likelihood():
            raise AttributeError(
                f"{self._method.__name__} needs a calibrated model: call calibrate(Preferences), or "
                "calibrate(X, pairs=...), after every fit (or prune); or fit with loss='logistic'.",
                name=self._method.__name__,
                obj=ranker,
            )
        return MethodType(self._method, ranker)


class CalibratedMixin(Ranker):
    """Base of the rankers whose score differences can be calibrated on pairs."""

    _fitted_schema: ClassVar[Schema] = {"calibration_slope_": Number(minimum=0.0, required=False)}

    calibration_slope_: float

    def calibrate(
        self,
        X: TrainingFeatures,
        *,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        cv: Splits | None = 5,
    ) -> Self:
        """Learn the probability of a preference from the difference of two scores, for `predict_proba`.

        Platt scaling: ``P(i preferred to j) = 1 / (1 + exp(-calibration_slope_ * (s_i - s_j)))``, as in the model of
        Bradley and Terry. There is no intercept, so that the probabilities of (i, j) and (j, i) add up to 1. The slope
        maximizes the likelihood of pairs that the scoring model has not seen: to score each fold of ``cv``, a model
        with the same hyper-parameters (for a search: the chosen ones) is fitted to the other folds. This model itself
        does not change, and the features of the training parts are not copied.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), or Preferences
            The features that the model was fitted to; with ``cv=None``, features of other pairs.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Row numbers (preferred, other); omitted with `Preferences`.
        pair_weight : array-like of shape (n_pairs,), optional
            Weight of each of the ``pairs``.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `RankSVM.fit`.
        cv : int, splitter, iterable of (train, test) or None, default 5
            As in `cross_validate`: the pairs of one query (prompt) stay together. None: this model itself scores the
            pairs; the pairs and their queries must be new to it.

        Returns
        -------
        estimator
            This estimator, with the attribute ``calibration_slope_``. The slope is 0, and all probabilities are one
            half, if the margins of the held-out pairs do not agree with the preferences.

        Raises
        ------
        DataError
            When the pairs are not valid, or cannot be divided, or the features differ from the model's.
        NoComparablePairsError
            When no pair of a training part has a positive weight.
        OptionError
            When the models of folds cannot be fitted to pairs, because ``pair_selection`` or ``pair_weighting`` needs
            labels.

        Warns
        -----
        UninformativeWarning
            When the slope is 0.

        References
        ----------
        J. C. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood
        methods", Advances in Large Margin Classifiers, 1999.

        Examples
        --------
        >>> import numpy as np
        >>> from ranksvm import Preferences, RankSVM
        >>> random = np.random.default_rng(0)
        >>> data = Preferences(random.normal(0.3, 1.0, (400, 5)), random.normal(0.0, 1.0, (400, 5)))
        >>> ranker = RankSVM(C=0.01).fit(data).calibrate(data)
        >>> probability = ranker.predict_proba(data.chosen, data.rejected)
        >>> bool(np.allclose(probability + ranker.predict_proba(data.rejected, data.chosen), 1.0))
        True
        """
        check_is_fitted(self)
        if cv is not None:
            self._check_fits_pairs()
        held = _Pairs(self, X, pairs, pair_weight, qid)
        # refuses features other than the model's: the models of the folds would learn from any
        held.margins(self, np.arange(1))
        if cv is None:
            margins, numbers = held.margins(self, np.arange(len(held.weight))), np.arange(len(held.weight))
        else:
            found, tested = [], []
            for train, test in query_splits(cv, held.pairs, None, Queries.from_qid(held.groups)):
                found.append(held.margins(held.fit(self._with_same_params(), train), test))
                tested.append(test)
            margins, numbers = np.concatenate(found), np.concatenate(tested)
        self.calibration_slope_ = platt_slope(margins, held.weight[numbers])
        if self.calibration_slope_ == 0.0:
            warnings.warn(_NO_SLOPE.format(_order_of(margins)), UninformativeWarning, stacklevel=2)
        return self

    @_WithProbabilities
    def predict_proba(self, chosen: TrainingFeatures, rejected: MatrixLike | None = None) -> np.ndarray:
        """Probability that the document of each row of ``chosen`` is preferred to the document of ``rejected``.

        The model has to be calibrated first (`calibrate`); every `fit` needs a new calibration. A model with the loss
        "logistic" needs none: it was fitted to give the probability ``1 / (1 + exp(-(s_i - s_j)))``. If C is large for
        the data, a slope below 1 may be better for held-out pairs; `calibrate` then finds it.

        Parameters
        ----------
        chosen, rejected : array-like, sparse matrix or DataFrame of shape (n_pairs, n_features)
            Features of the two documents of each pair. (The parameters are named like the blocks of `Preferences`, but
            which document is preferred need not be known.) A single `Preferences` contains both.

        Returns
        -------
        ndarray of float64, shape (n_pairs,)
            The probabilities. If the arguments are exchanged, the result is 1 minus these probabilities.

        Raises
        ------
        DataError
            When the numbers of rows differ, or the features differ from the model's.
        """
        if isinstance(chosen, Preferences) and rejected is None:
            rejected, chosen = chosen.rejected, chosen.chosen
        if rejected is None:
            raise DataError(
                "predict_proba compares two documents: predict_proba(chosen, rejected), or predict_proba(Preferences)."
            )
        if n_rows_of(chosen) != n_rows_of(rejected):
            raise DataError(
                f"chosen has {n_rows_of(chosen)} rows and rejected {n_rows_of(rejected)}: row i of each is one pair."
            )
        margins = host_values(self.predict(chosen)) - host_values(self.predict(rejected))
        probabilities: np.ndarray = expit(getattr(self, "calibration_slope_", 1.0) * margins)
        return probabilities

    def _check_fits_pairs(self) -> None:
        """Refuse hyper-parameters for which a model can only be fitted to labels."""
        for name, allowed in (("pair_selection", ("all",)), ("pair_weighting", ("uniform", "per_query"))):
            if (value := self.fitted_params_[name]) not in allowed:
                raise OptionError(
                    f"{name}={value!r} of this model needs labels, but calibrate fits the models of its folds to "
                    "pairs: give pairs of documents that this model has not seen, and cv=None."
                )

    def _minimizes_likelihood(self) -> bool:
        """Whether the loss is minus the logarithm of a likelihood of preferences."""
        fitted = getattr(self, "fitted_params_", {})
        return "loss" in fitted and loss_of(fitted["loss"], fitted["huber_width"]).probabilistic

    def _with_same_params(self) -> Any:
        """An estimator, not fitted, with the hyper-parameters that this model was fitted with (or chose)."""
        kind: Any = getattr(self, "_with_one_c", type(self))
        names = kind().get_params()
        ranker: Any = self
        given = ranker.get_params(deep=False) | self.fitted_params_
        if getattr(ranker, "gamma_", None) is not None:
            given["gamma"] = ranker.gamma_
        if "monotone" in given:
            given["monotone"] = ranker.monotone_
        given |= {"warm_start": False, "keep_on_interrupt": False}
        return clone(kind(**{name: value for name, value in given.items() if name in names}))


def _order_of(margins: np.ndarray) -> str:
    """The number of positive margins, and the number of margins that are 0, as text."""
    n_right, n_tied = np.count_nonzero(margins > 0.0), np.count_nonzero(margins == 0.0)
    return f"{n_right:,} of {len(margins):,} are in the right order and {n_tied:,} have equal scores"


class _Pairs:
    """The validated pairs of a calibration; models are fitted to some of them and score others."""

    def __init__(
        self,
        ranker: Ranker,
        X: TrainingFeatures,
        pairs: ArrayLike | None,
        pair_weight: ArrayLike | None,
        qid: ArrayLike | None,
    ):
        self._X, self._qid = X, qid
        if isinstance(X, Preferences):
            qid, pairs, pair_weight = X.arguments(qid=qid, pairs=pairs, pair_weight=pair_weight)
            n_rows = len(qid)
        elif pairs is None:
            raise DataError("calibrate needs pairs of rows, or Preferences.")
        else:
            self._X, self._qid = ranker._split_qid(X, qid)
            qid, n_rows = self._qid, n_rows_of(self._X)
        queries = Queries.from_qid(None if qid is None else id_array(qid), n_rows)
        preferred, other = row_numbers(pairs, queries)
        self.pairs = np.column_stack([preferred, other])
        self.weight = checked_weights("pair_weight", pair_weight, len(preferred), "pairs")
        self.groups = groups_of_pairs(queries, preferred, other)

    def fit(self, ranker: Any, numbers: np.ndarray) -> Any:
        """A ranker fitted to some pairs; features are not copied."""
        if isinstance(self._X, Preferences):
            return ranker.fit(self._X.taken(numbers))
        arguments = {"pairs": self.pairs[numbers], "pair_weight": self.weight[numbers], "qid": self._qid}
        return ranker.fit(self._X, **arguments)

    def margins(self, ranker: Ranker, numbers: np.ndarray) -> np.ndarray:
        """Score of the preferred document minus score of the other one, for some pairs, by a ranker."""
        if isinstance(self._X, Preferences):
            rows, places = np.unique(self.pairs[numbers, 0], return_inverse=True)
            first, second = (scores_of_rows(ranker.predict, block, rows)[places] for block in self._X.blocks)
        else:
            rows, places = np.unique(self.pairs[numbers], return_inverse=True)
            first, second = scores_of_rows(ranker.predict, self._X, rows)[places.reshape(-1, 2)].T
        margins: np.ndarray = first - second
        return margins


def platt_slope(margins: np.ndarray, weight: np.ndarray) -> float:
    """The slope of the sigmoid that converts score differences to probabilities, by maximum likelihood.

    Minimizes ``-sum of weight * (t log p + (1 - t) log(1 - p))``, ``p = 1 / (1 + exp(-slope * margin))``, over slopes
    of at least 0. Platt's target ``t = (n + 1) / (n + 2)`` for n pairs, instead of 1, keeps the slope finite if all
    margins are positive. There is no intercept: exchanging the two documents of a pair has to give ``1 - p``.

    Parameters
    ----------
    margins : ndarray of float64, shape (n_pairs,)
        Score of the preferred document minus score of the other one, by a model that has not seen the pair.
    weight : ndarray of float64, shape (n_pairs,)
        Weight of each pair.

    Returns
    -------
    float
        The slope; 0, for which all probabilities are one half, if the margins do not agree with the preferences
        (their weighted sum is not positive).

    References
    ----------
    J. C. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods",
    Advances in Large Margin Classifiers, 1999.
    R. A. Bradley, M. E. Terry, "Rank analysis of incomplete block designs", Biometrika 39, 1952.
    """
    from scipy import optimize, special

    n_pairs = np.count_nonzero(weight)
    target = (n_pairs + 1.0) / (n_pairs + 2.0)
    scale = np.abs(margins).max(initial=0.0)
    if n_pairs == 0 or scale == 0.0 or weight @ (margins / scale) <= 0.0:
        return 0.0
    unit = margins / scale

    def derivative(slope: float) -> float:
        return float(weight @ (unit * (special.expit(slope * unit) - target)))

    above = 1.0
    while derivative(above) <= 0.0:
        above *= 2.0
    return float(optimize.brentq(derivative, 0.0, above, xtol=1e-300, rtol=1e-13)) / float(scale)
