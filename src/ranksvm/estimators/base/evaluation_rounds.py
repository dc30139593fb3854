"""Evaluate a model after each round of its fit, such as an epoch; call callbacks, keep the best model, stop early."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranksvm._util import checks
from ranksvm._util.verbosity import PASSING
from ranksvm.exceptions import OptionError
from ranksvm.fits.evaluation import EvaluationSets, SetEvaluations

if TYPE_CHECKING:
    from ranksvm.estimators.base.sklearn_base import BaseEstimator

logger = logging.getLogger("ranksvm.estimators")


class RoundValue(NamedTuple):
    """A metric's value on a set after a round, with the fields of ``EvalResult`` of LightGBM 4.7."""

    dataset_name: str
    metric_name: str
    metric_value: float
    maximize: bool = True

    @property
    def metric_std_dev(self) -> None:
        """None, because the value is of one model, not a mean over folds."""
        return None

    def is_cv_result(self) -> bool:
        """False, because the value is of one model, not a mean over folds."""
        return False


@dataclass
class CallbackEnv:
    """The argument of a callback, with the fields of LightGBM's ``CallbackEnv``.

    Parameters
    ----------
    model : estimator
        The estimator that is being fitted; it has no fitted attributes of this fit yet.
    params : dict
        Its hyper-parameters.
    iteration : int
        Number of the round, from 0.
    begin_iteration, end_iteration : int
        0, and the largest number of rounds.
    evaluation_result_list : list of RoundValue
        For each set and metric: their names, the value after the round, and True, because higher is better.
    """

    model: "BaseEstimator"
    params: dict[str, Any]
    iteration: int
    begin_iteration: int
    end_iteration: int
    evaluation_result_list: list[RoundValue]


Callbacks = Sequence[Callable[[CallbackEnv], object]]


class EvaluationRounds:
    """Evaluates the model of each round on evaluation sets, keeps the best model, and decides when to stop.

    Parameters
    ----------
    estimator : object
        The estimator that is being fitted.
    sets : EvaluationSets
        The sets and metrics; without sets nothing is evaluated.
    callbacks : sequence of callable
        Called with a `CallbackEnv` after each round.
    max_rounds : int
        The maximum number of rounds.
    patience : int or None
        Stop after this number of rounds without a better value on the first set. None: stop only if a callback returns
        True, and do not keep the best model.
    what : str, default "epoch"
        The name of a round in log records.
    """

    def __init__(
        self,
        estimator: "BaseEstimator",
        sets: EvaluationSets,
        callbacks: Callbacks,
        max_rounds: int,
        patience: int | None,
        what: str = "epoch",
    ):
        self.sets = sets
        self.patience = patience
        self.best_model: Any = None
        self.best_round: int | None = None
        self.best_score: float | None = None
        self.ended = False
        self._estimator, self._callbacks, self._max_rounds, self._what = estimator, callbacks, max_rounds, what
        self._rounds: list[SetEvaluations] = []

    def record(self, scores: Callable[[Any], Any], model: Callable[[], Any]) -> bool:
        """Evaluate the model of a round; returns whether to stop after it.

        Parameters
        ----------
        scores : callable
            Takes features and returns their scores.
        model : callable
            Returns the model to keep; it is called, without arguments, only if the round is the best so far.

        Returns
        -------
        bool
            Whether a callback returned True, or the last ``patience`` rounds brought no better value on the first set.
        """
        if not self.sets:
            return self.called_back(())
        parts = self.sets.evaluate(scores)
        words = (f"{name} {metric} {value:.4f}" for name, metric, value, _ in self._values(parts))
        logger.info("%s %d: %s", self._what, len(self._rounds) + 1, ", ".join(words), extra=PASSING)
        ended = self.called_back(parts)
        if self.patience is None:
            return ended
        values = [parts[0].means[self.sets.metrics[0].name] for parts in self._rounds]
        if _best(values) == len(values) - 1:
            self.best_model, self.best_round, self.best_score = model(), len(values), values[-1]
        return ended or self.exhausted(values)

    def exhausted(self, values: Sequence[float]) -> bool:
        """Whether the last ``patience`` rounds brought no better value.

        Parameters
        ----------
        values : sequence of float
            The values of the rounds; higher is better.

        Returns
        -------
        bool
            False if ``patience`` is None.
        """
        return is_exhausted(values, self.patience)

    def called_back(self, parts: SetEvaluations) -> bool:
        """Call the callbacks after a round that has been evaluated.

        Parameters
        ----------
        parts : sequence of Evaluation
            The evaluations of the round, one for each set.

        Returns
        -------
        bool
            Whether one of them returned True.
        """
        self._rounds.append(parts)
        if not self._callbacks:
            return False
        params = self._estimator.get_params(deep=False)
        values = self._values(parts)
        env = CallbackEnv(self._estimator, params, len(self._rounds) - 1, 0, self._max_rounds, values)
        answers = [callback(env) for callback in self._callbacks]
        self.ended = any(answer is True for answer in answers)
        return self.ended

    @property
    def evals_result(self) -> dict[str, dict[str, list[float]]]:
        """The values after each round, by set and then by metric."""
        return self.sets.evals_result(self._rounds)

    def _values(self, parts: SetEvaluations) -> list[RoundValue]:
        named = zip(self.sets.names, parts, strict=True) if parts else ()
        return [RoundValue(name, metric, value) for name, part in named for metric, value in part.means.items()]


def is_exhausted(values: Sequence[float], patience: int | None) -> bool:
    """Whether none of the last ``patience`` values is better (higher) than all values before them.

    Parameters
    ----------
    values : sequence of float
        The values; NaN is worse than any other.
    patience : int or None
        None: the result is always False.

    Returns
    -------
    bool
        Whether to stop.
    """
    return patience is not None and len(values) - _best(values) > patience


def _best(values: Sequence[float]) -> int:
    """Position of the best value, the first of equal ones; an undefined value (NaN) is worse than any other."""
    return int(np.argmax([-np.inf if np.isnan(value) else value for value in values]))


def checked_patience(early_stopping_rounds: int | None, eval_set: object) -> int | None:
    """``early_stopping_rounds``; OptionError if it is not a positive integer, or there is no ``eval_set``."""
    if early_stopping_rounds is None:
        return None
    checks.check(early_stopping_rounds=checks.count(early_stopping_rounds))
    if eval_set is None:
        raise OptionError(
            f"early_stopping_rounds={early_stopping_rounds} needs data to evaluate on: fit(..., eval_set=[(X, y)])."
        )
    return int(early_stopping_rounds)


def checked_callbacks(callbacks: Callbacks | None) -> Callbacks:
    """The callbacks of ``fit``; OptionError if they are not functions to call after each round."""
    if callbacks is None:
        return ()
    if not isinstance(callbacks, list | tuple | set):
        raise OptionError(f"callbacks must be a list of functions, got {callbacks!r}.")
    for callback in callbacks:
        if hasattr(callback, "stopping_rounds"):  # LightGBM's early_stopping
            raise OptionError(
                f"callbacks has LightGBM's early_stopping: give early_stopping_rounds={callback.stopping_rounds} to "
                "the constructor instead."
            )
        if not callable(callback) or getattr(callback, "before_iteration", False):
            raise OptionError(
                f"callbacks has {callback!r}: a callback is a function of one argument, called after each round with "
                "the fields of LightGBM's CallbackEnv; it returns True to stop."
            )
    return sorted(callbacks, key=lambda callback: getattr(callback, "order", 0))
