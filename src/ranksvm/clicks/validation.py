"""Models with C chosen by the clicks on held-out queries."""

import dataclasses
import warnings
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check, one_of
from ranksvm._util.pipeline_steps import knowing_all_data
from ranksvm._util.random_states import generator_of
from ranksvm._util.tables import Table, Tabular
from ranksvm.clicks.bias import Bias
from ranksvm.clicks.learning import RULES, ClickPairs, click_pairs, relevance, weighted_pairs
from ranksvm.clicks.log import ClickLog
from ranksvm.clicks.log_file import ClickLogFile, Log
from ranksvm.data.frames import take_rows
from ranksvm.data.text_categories import refuse_texts
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, GridEdgeWarning, OptionError
from ranksvm.metrics.click_sums import check_log
from ranksvm.metrics.counterfactual import CounterfactualEstimate, estimate

__all__ = ["ClickValidation", "fit_from_clicks"]

# values to try for the product of C and the sum of the weights of all pairs, which means the same for any number of
# clicks
_BUDGETS = 10.0 ** np.arange(6)
# share of the queries used to compare values of C
_HELD_OUT = 0.25
# maximum number of values added beyond the edges of the default grid, one at a time while the best value is at an edge
_MAX_BEYOND = 3
# minimum difference of two estimates that counts, as a share of the width of the confidence interval: models with small
# C rank almost alike, and their estimates differ only in the last digits
_MATERIAL = 0.02


@dataclasses.dataclass(frozen=True, eq=False)
class ClickValidation(Tabular):
    """The result of `fit_from_clicks`.

    Parameters
    ----------
    model : estimator
        The model with the chosen C, fitted on the whole log.
    C : float or None
        The chosen C; None if the model has none.
    Cs : ndarray of float64, shape (n_Cs,)
        The values tried, in ascending order. Default values are stated for the whole log. A fit on a part of the
        log used the C for which C times the sum of the weights is the same.
    estimates : list of CounterfactualEstimate
        Quality of the model for each value, by the clicks on held-out queries.
    metric : str
        The metric that chose C.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.clicks import PositionBias, fit_from_clicks, simulate_clicks
    >>> data = make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, data.X[:, 0], 3_000, random_state=0)
    >>> found = fit_from_clicks(RankSVM(), data, log, PositionBias.power(8), Cs=[0.001, 0.1])
    >>> found.Cs.tolist(), found.C in found.Cs, found.metric
    ([0.001, 0.1], True, 'dcg@10')
    """

    model: Any
    C: float | None
    Cs: np.ndarray
    estimates: list[CounterfactualEstimate]
    metric: str

    def _table(self) -> Table:
        ends = [found.intervals[self.metric] for found in self.estimates]
        columns = {
            "C": self.Cs,
            self.metric: [found.means[self.metric] for found in self.estimates],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
        }
        return Table(columns, f"C = {self.C:g} has the best {self.metric} on held-out clicks" if self.C else "no C")


def fit_from_clicks(
    estimator: Any,
    data: RankingData,
    log: Log,
    bias: Bias = None,
    *,
    form: str = "pairs",
    rule: str = "shown",
    Cs: ArrayLike | None = None,
    metric: str = "dcg@10",
    random_state: int | np.random.Generator | None = 0,
) -> ClickValidation:
    """Fit a ranker on a log, with C chosen by clicks alone: counterfactual validation.

    A quarter of the queries is held out. For every C, a model is fitted on the clicks of the other queries. Then
    `metrics.estimate` estimates how well this model ranks the held-out queries, from the clicks on those queries and
    with the same propensities (by inverse exposures, ``"ips"``). The best C is used for a fit on the whole log.

    Parameters
    ----------
    estimator : RankSVM, KernelRankSVM or SOLARRanker
        The ranker, not fitted; it is cloned. An online ranker (with ``partial_fit_pairs``) learns from one impression
        after another, in the order of the log; `SOLARRanker` with ``order=2`` has no C.
    data : RankingData
        The documents; labels are not used.
    log : ClickLog or ClickLogFile
        The log; a file is read into memory.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: propensities of the log's rows. None: no propensities (naive).
    form : {"pairs", "relevance"}, default "pairs"
        ``"pairs"``: `click_pairs`. ``"relevance"``: labels from `relevance` with ``pair_weighting="label_gap"``, for
        trust bias and for very many pairs. Online rankers take pairs.
    rule : {"shown", "shown_all", "skip_above"}, default "shown"
        As for `click_pairs`. ``"skip_above"`` uses the propensities in the validation only.
    Cs : array-like of float, optional
        Values of C. None: 1, 10, ... 1e5, divided by the sum of the weights of the pairs (online rankers: 2^-8,
        2^-6, ... 2^4), and up to three more if the best one is at an edge.
    metric : str, default "dcg@10"
        The metric that C is chosen by: "dcg@k" or "mean_relevant_rank".
    random_state : int, Generator or None, default 0
        Source of randomness for the choice of the held-out queries.

    Returns
    -------
    ClickValidation
        The model, its C, and what was tried.

    Raises
    ------
    DataError
        When the log does not match the data or the propensities, or has clicks for fewer than 4 queries, or the metric
        of the held-out clicks is undefined for every C.
    OptionError
        When an option is unknown, ``Cs`` is empty or not positive, or the estimator has no C.

    Warns
    -----
    GridEdgeWarning
        When the best C is the smallest or largest one tried, and its estimate is above its neighbor's by more
        than 2 % of the width of the interval.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.clicks import fit_from_clicks, position_bias, simulate_clicks
    >>> data = make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 5_000, random_state=0)
    >>> found = fit_from_clicks(RankSVM(), data, log, position_bias(log))
    >>> found.model.coef_.shape
    (3,)
    """
    from ranksvm.estimators.path import c_values  # imports scikit-learn

    check(form=one_of(form, ("pairs", "relevance")), rule=one_of(rule, RULES))
    if not hasattr(estimator, "C") or getattr(estimator, "order", 1) == 2:
        ranker = type(estimator).__name__ + (" with order=2" if hasattr(estimator, "order") else "")
        method = "partial_fit_pairs" if hasattr(estimator, "partial_fit_pairs") else "fit"
        raise OptionError(f"{ranker} has no C to choose: call its {method} with click_pairs(...).")
    check_log(log)
    log = log.read() if isinstance(log, ClickLogFile) else log
    refuse_texts(data, "learning from clicks takes numbers")
    learner = _learner(estimator, data, bias, form, rule)
    queries = np.unique(log.query[log.clicked])
    if len(queries) < 4:
        raise DataError(
            f"a choice of C needs clicks for 4 queries, and the log has them for {len(queries)}: fit a model with a C "
            f"of your own on {learner.learns_from}."
        )
    rng = generator_of(random_state)
    held_out = rng.permutation(queries)[: max(1, round(_HELD_OUT * len(queries)))]
    is_held_out = np.isin(log.query[log.pointers[:-1]], held_out)
    learning, validation = log.impressions(~is_held_out), log.impressions(is_held_out)
    problem = learner.problem(learning)

    def measured(C: float) -> CounterfactualEstimate:
        return estimate(validation, learner.fit(problem, C).predict(data.X), metric, bias, data=data)

    values = learner.grid(problem) if Cs is None else np.sort(c_values(Cs))
    estimates = [measured(C) for C in values.tolist()]
    if np.isnan(_scores(estimates)).all():
        name = next(iter(estimates[0].means))
        raise DataError(
            f"the {name} of the held-out clicks is undefined for every C: choose another metric, or a C of your own."
        )
    for _ in range(_MAX_BEYOND if Cs is None else 0):
        if (beyond := _beyond(values, estimates)) is None:
            break
        place = 0 if beyond < values[0] else len(values)
        values = np.insert(values, place, beyond)
        estimates.insert(place, measured(beyond))
    full_problem = learner.problem(log)
    if Cs is None:  # C times the sum of the weights stays the same for the whole log
        values = values * (learner.scale(problem) / learner.scale(full_problem))
    C = float(values[_best(estimates)])
    if (beyond := _beyond(values, estimates)) is not None:
        which, other = ("smallest", "smaller") if beyond < C else ("largest", "larger")
        low, high = sorted((beyond, C))
        warnings.warn(
            f"C = {C:.3g}, the {which} of the {len(values)} values tried, has the best estimate on held-out clicks: "
            f"{other} ones may be better. Give values beyond it, such as Cs=[{low:.3g}, {high:.3g}].",
            GridEdgeWarning,
            stacklevel=2,
        )
    return ClickValidation(learner.fit(full_problem, C), C, values, estimates, next(iter(estimates[0].means)))


def _scores(estimates: list[CounterfactualEstimate]) -> np.ndarray:
    """The estimates of the metric, with a sign such that larger ones are better."""
    name = next(iter(estimates[0].means))
    return np.array([one.means[name] for one in estimates]) * (-1.0 if name == "mean_relevant_rank" else 1.0)


def _best(estimates: list[CounterfactualEstimate]) -> int:
    return int(np.nanargmax(_scores(estimates)))


def _beyond(values: np.ndarray, estimates: list[CounterfactualEstimate]) -> float | None:
    """The next value beyond the grid, if the best value is at an edge and clearly beats its neighbor; else None."""
    best = _best(estimates)
    if len(values) < 2 or 0 < best < len(values) - 1:
        return None
    neighbor = 1 if best == 0 else best - 1
    low, high = next(iter(estimates[best].intervals.values()))
    scores = _scores(estimates)
    if not scores[best] - scores[neighbor] > _MATERIAL * (high - low):
        return None
    return float(values[best] ** 2 / values[neighbor])


def _learner(estimator: Any, data: RankingData, bias: Bias, form: str, rule: str) -> "_Learner[Any]":
    if hasattr(estimator, "partial_fit_pairs"):
        if form != "pairs":
            raise OptionError("online rankers learn from pairs of documents: leave form='pairs'.")
        return _OnlineLearner(estimator, data, bias, rule)
    if form == "pairs":
        return _PairLearner(estimator, data, bias, rule)
    if getattr(estimator, "pair_weighting", "uniform") not in ("uniform", "label_gap"):
        raise OptionError("form='relevance' weights pairs by 'label_gap': give no pair_weighting.")
    return _RelevanceLearner(estimator, data, bias, rule)


Problem = TypeVar("Problem")
# Rows of the data, their labels or pairs, and weights.
Weighted = tuple[np.ndarray, np.ndarray, np.ndarray]


class _Learner(Generic[Problem]):
    """Fits a ranker on a log."""

    learns_from = "click_pairs(log, data, bias) (`ranksvm train`: give -C)"

    def __init__(self, estimator: Any, data: RankingData, bias: Bias, rule: str):
        self._estimator, self._data, self._bias, self._rule = estimator, data, bias, rule

    def problem(self, log: ClickLog) -> Problem:
        """Training data from a log, for any C."""
        raise NotImplementedError

    def scale(self, problem: Problem) -> float:
        """Sum of the weights of the pairs."""
        raise NotImplementedError

    def grid(self, problem: Problem) -> np.ndarray:
        """Values of C to try."""
        return _BUDGETS / self.scale(problem)

    def fit(self, problem: Problem, C: float) -> Any:
        """A fitted model."""
        raise NotImplementedError

    @property
    def _bias_of_pairs(self) -> Bias:
        return None if self._rule == "skip_above" else self._bias

    def _new(self, C: float, **more: str) -> Any:
        from sklearn.base import clone

        return clone(self._estimator).set_params(C=C, **more)


class _PairLearner(_Learner[ClickPairs]):
    """Fits on weighted pairs."""

    def problem(self, log: ClickLog) -> ClickPairs:
        """Weighted pairs of rows of the data."""
        return click_pairs(log, self._data, self._bias_of_pairs, rule=self._rule)

    def scale(self, problem: ClickPairs) -> float:
        """Sum of the weights of the pairs."""
        return float(problem.weight.sum())

    def fit(self, problem: ClickPairs, C: float) -> Any:
        """A fitted model."""
        data = self._data
        return self._new(C).fit(data.X, qid=data.qid, pairs=problem.pairs, pair_weight=problem.weight)


class _RelevanceLearner(_Learner[Weighted]):
    """Fits on estimated relevance."""

    learns_from = "relevance(log, data, bias), with pair_weighting='label_gap'"

    def problem(self, log: ClickLog) -> Weighted:
        """Rows that were shown, their relevance, and weights in proportion to the impressions of their query."""
        label = relevance(log, self._data, self._bias)
        rows = np.flatnonzero(~np.isnan(label))
        queries = self._data.queries
        number = queries.numbers()
        n_impressions = np.bincount(number[log.rows(self._data)[log.pointers[:-1]]], minlength=queries.n_queries)
        weight = n_impressions[number[rows]].astype(np.float64)
        return rows, label[rows], weight / weight.mean()

    def scale(self, problem: Weighted) -> float:
        """Sum of the differences of labels over the pairs, weighted."""
        rows, label, weight = problem
        number = self._data.queries.numbers()[rows]
        order = np.lexsort((label, number))
        number, label, weight = number[order], label[order], weight[order]
        sizes = np.bincount(number)[number]
        place = np.arange(len(number)) - np.searchsorted(number, number)
        # the i-th (from 0) of m sorted labels is the larger one in i pairs, and the smaller one in m - 1 - i pairs
        return float(weight @ (label * (2 * place - sizes + 1)))

    def fit(self, problem: Weighted, C: float) -> Any:
        """A fitted model."""
        rows, label, weight = problem
        qid = None if self._data.qid is None else self._data.qid[rows]
        model = self._new(C, pair_weighting="label_gap")
        with knowing_all_data(model, self._data.X):
            return model.fit(take_rows(self._data.X, rows), label, qid=qid, query_weight=weight)


class _OnlineLearner(_Learner[list[Weighted]]):
    """Learns from one impression after another."""

    def problem(self, log: ClickLog) -> list[Weighted]:
        """Rows of each impression with clicks, pairs of them, and the weights of the pairs."""
        found = []
        rows, starts = log.rows(self._data), log.pointers
        pairs, weight = weighted_pairs(log, self._bias_of_pairs, self._rule)
        weight = weight / weight.mean() if len(weight) else weight
        # pairs are in the order of the preferred rows
        impression = log.impression[pairs[:, 0]]
        borders = np.searchsorted(impression, np.arange(log.n_impressions + 1))
        for number in np.flatnonzero(np.diff(borders)).tolist():
            part = slice(borders[number], borders[number + 1])
            first, last = starts[number], starts[number + 1]
            found.append((rows[first:last], pairs[part] - first, weight[part]))
        return found

    def scale(self, problem: list[Weighted]) -> float:
        """1: C of an online ranker applies to one pair, so it does not depend on the number of pairs."""
        return 1.0

    def grid(self, problem: list[Weighted]) -> np.ndarray:
        """Values of C to try."""
        return 2.0 ** np.arange(-8, 5, 2)

    def fit(self, problem: list[Weighted], C: float) -> Any:
        """A model that has seen every impression once."""
        model = self._new(C)
        for rows, pairs, weight in problem:
            model.partial_fit_pairs(take_rows(self._data.X, rows), pairs, weight)
        return model
