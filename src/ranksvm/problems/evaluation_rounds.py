"""A fit in rounds, evaluated after each: the trace, early stopping, and the best model."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm import _options
from ranksvm._logging import PASSING
from ranksvm._parallel import effective_n_jobs
from ranksvm.data.linear_scores import linear_scores
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import Evaluation, Metric, parse_metric
from ranksvm.problems.evaluation import EvaluationSet, evals_result, evaluation_sets, set_name
from ranksvm.problems.records import Record

logger = logging.getLogger("ranksvm.estimators")


@dataclass(frozen=True)
class Trace(Record):
    """Metrics of the rounds on evaluation sets.

    Parameters
    ----------
    evals_result : dict
        Set -> metric -> value after each round.
    best_iteration, best_score : int and float, or None
        The best round, from 1, and its value on the first set, if there is a patience.
    """

    evals_result: dict[str, dict[str, list[float]]]
    best_iteration: int | None
    best_score: float | None


class EvaluationRounds:
    """Evaluation of the linear model of each round on evaluation sets.

    Parameters
    ----------
    sets : list of EvaluationSet
        The sets; none: nothing is evaluated.
    metric : Metric
        The metric evaluated on each.
    patience : int or None
        Number of rounds without a better value on the first set after which to stop; None: never stop, and keep no
        model.
    n_threads : int
        Number of threads for the scores.
    """

    def __init__(self, sets: list[EvaluationSet], metric: Metric, patience: int | None, n_threads: int):
        self.sets = sets
        self.metric = metric
        self.patience = patience
        self.n_threads = n_threads
        self.best_model: Any = None
        self.best_round: int | None = None
        self.best_score: float | None = None
        self._rounds: list[list[Evaluation]] = []

    def record(self, coef: np.ndarray, model: Callable[[], Any]) -> bool:
        """Evaluate the weights of a round; returns whether to stop after it.

        Parameters
        ----------
        coef : ndarray of float64, shape (n_features,)
            The weights.
        model : callable
            Returns what to keep of the round; called without arguments if it is the best one so far.

        Returns
        -------
        bool
            Whether the last ``patience`` rounds brought no better value on the first set.
        """
        if not self.sets:
            return False
        self._rounds.append(
            [each.evaluate(lambda X: linear_scores(X, coef, self.n_threads), self.metric) for each in self.sets]
        )
        values = [next(iter(each.means.values())) for each in self._rounds[-1]]
        words = (f"{set_name(number)} {self.metric.name} {value:.4f}" for number, value in enumerate(values))
        logger.info("epoch %d: %s", len(self._rounds), ", ".join(words), extra=PASSING)
        if self.patience is None:
            return False
        score = values[0]
        if self.best_score is None or self.best_round is None or score > self.best_score:
            self.best_model, self.best_round, self.best_score = model(), len(self._rounds), score
        return len(self._rounds) - self.best_round >= self.patience

    def trace(self) -> "Trace":
        """The metrics of all rounds, and the best round."""
        return Trace(evals_result(self._rounds), self.best_round, self.best_score)


def evaluation_rounds(
    estimator: Any, eval_set: Any, eval_qid: Any, eval_group: Any, n_queries: int
) -> EvaluationRounds:
    """The rounds of a fit of an estimator with ``eval_metric`` and ``early_stopping_rounds``.

    ``n_queries`` is the number of queries of the training data. Raises OptionError or DataError if the sets, the metric
    or the number of rounds cannot be used.
    """
    metric, patience = parse_metric(estimator.eval_metric), estimator.early_stopping_rounds
    if patience is not None:
        _options.check(early_stopping_rounds=_options.count(patience))
        if eval_set is None:
            raise OptionError(
                f"early_stopping_rounds={patience} needs data to evaluate on: fit(..., eval_set=[(X, y)])."
            )
    sets = evaluation_sets(estimator, eval_set, eval_qid, eval_group, n_queries)
    labelled = [each for each in sets if isinstance(each, EvaluationSet) and each.event is None]
    if len(labelled) < len(sets):
        raise DataError(f"{type(estimator).__name__} evaluates rounds on labels: eval_set=[(X, y)].")
    return EvaluationRounds(labelled, metric, patience, effective_n_jobs(estimator.n_jobs))
