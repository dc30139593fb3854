"""What a log teaches: preferences between documents, relevance of documents, and models with C chosen by clicks."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from ranksvm._options import check, flag, one_of
from ranksvm._tabular import Table, Tabular
from ranksvm.clicks.log_file import ClickLogFile
from ranksvm.data import RankingData, pairs_from_clicks
from ranksvm.data.frames import take_rows
from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.metrics.click_weights import check_bias, check_log
from ranksvm.metrics.counterfactual import CounterfactualEstimate, estimate
from ranksvm.metrics.exposures import exposures

__all__ = ["ClickPairs", "ClickValidation", "click_pairs", "fit_from_clicks", "relevance"]

_RULES = ("shown", "shown_all", "skip_above")
# C times the sum of the weights of all pairs, so that it means the same for any number of clicks
_BUDGETS = 10.0 ** np.arange(6)
# Share of the queries on which values of C are compared.
_HELD_OUT = 0.25


class ClickPairs(NamedTuple):
    """Preferences between documents: arguments ``pairs`` and ``pair_weight`` of ``fit``.

    Parameters
    ----------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows (preferred, other) of the data, each pair once.
    weight : ndarray of float64, shape (n_pairs,)
        Their weights.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> from ranksvm.clicks import ClickLog, click_pairs
    >>> data = make_ranking(n_queries=1, n_docs=3, n_features=2, random_state=0)
    >>> query = data.qid[0]
    >>> log = ClickLog([query] * 3, [2, 0, 1], [1, 2, 3], [0, 1, 0])
    >>> click_pairs(log, data).pairs.tolist()
    [[0, 1], [0, 2]]
    """

    pairs: np.ndarray
    weight: np.ndarray


def click_pairs(
    log: Any, data: RankingData, bias: Any = None, *, rule: str = "shown", normalize: bool = True
) -> ClickPairs:
    """Preferences of users: clicked documents over others, each click weighted by 1 / exposure.

    The exposure of a document is the mean, over the impressions of its query and whichever ranker made them, of the
    propensity of the rank at which it was shown, 0 where it was not shown (Oosterhuis & de Rijke, "Policy-aware
    unbiased learning to rank for top-k rankings", SIGIR 2020). It is the propensity of the rank if all lists show the
    document there. Equal pairs of many impressions are added up.

    Let document i have relevance r_i, the probability of a click once examined, and let all lists of a query show the
    same documents. With the right propensities and ``rule="shown_all"``, the expected weight of the pair (i, j) is r_i
    for each impression, whatever the ranks (for lists of one ranker this is PropensitySVM-rank of Joachims, Swaminathan
    & Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017, section 5). With ``rule="shown"``
    impressions with clicks on both documents do not count, because they prefer neither.

    Parameters
    ----------
    log : ClickLog or ClickLogFile
        The log.
    data : RankingData
        The documents; labels are not used.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: those of the log's rows. None: every click weighs 1 (naive). Its ``clip``
        limits exposures.
    rule : {"shown", "shown_all", "skip_above"}, default "shown"
        Over which documents of its impression a clicked one is preferred: those without a click, all others, or those
        above it without a click, which needs no propensities (`pairs_from_clicks`).
    normalize : bool, default True
        Whether weights are divided by their mean, the self-normalised form (Swaminathan & Joachims, NeurIPS 2015): for
        one log this is another value of C, but C then means the same for any number of clicks and any factor of the
        propensities.

    Returns
    -------
    ClickPairs
        ``pairs`` and ``weight``.

    Raises
    ------
    NoComparablePairsError
        When no click prefers anything.
    DataError
        When the log does not match the data or the propensities; with trust bias, for which `relevance` is right.
    OptionError
        When an option is unknown.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.clicks import click_pairs, position_bias, simulate_clicks
    >>> data = make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 5_000, random_state=0)

    Three lines from a log to a model:

    >>> bias = position_bias(log)
    >>> pairs, weight = click_pairs(log, data, bias)
    >>> model = RankSVM(C=0.1).fit(data.X, qid=data.qid, pairs=pairs, pair_weight=weight)
    """
    check(rule=one_of(rule, _RULES), normalize=flag(normalize))
    check_log(log)
    check_bias(bias)
    if rule == "skip_above" and bias is not None:
        raise OptionError("rule='skip_above' compares examined documents only: it takes no bias.")
    if getattr(bias, "offset", None) is not None:
        raise DataError(
            "with trust bias clicks would get negative weights: learn from relevance(log, data, bias), as "
            "fit_from_clicks(..., form='relevance') does."
        )
    found: tuple[np.ndarray, np.ndarray] | None = None
    click_weight = _click_weight(log, data, bias)
    for block in log.blocks():
        rows = block.rows(data)
        pairs = rows[pairs_from_clicks(block.impression, block.rank, block.clicked, rule=rule)]
        key, weight = pairs[:, 0] * data.n_rows + pairs[:, 1], click_weight[pairs[:, 0]]
        parts = (
            (key, weight)
            if found is None
            else (np.concatenate(both) for both in zip(found, (key, weight), strict=True))
        )
        found = _added_up(*parts)
    if found is None or not len(found[0]):
        raise NoComparablePairsError("no click prefers one document to another: there is nothing to learn from.")
    key, weight = found
    pairs = np.column_stack(np.divmod(key, data.n_rows))
    return ClickPairs(pairs, weight / weight.mean() if normalize else weight)


def relevance(log: Any, data: RankingData, bias: Any = None) -> np.ndarray:
    """Relevance of documents by their clicks: the sum of ``click - offset`` over the sum of propensities.

    Sums are over the impressions of the query, whichever ranker made them. They estimate the probability of a click
    once examined, with far less variance than a mean of clicks over propensities, and correct trust bias, which has an
    offset (the affine correction of Vardasbi, Oosterhuis & de Rijke, CIKM 2020). Learn from it with
    ``RankSVM(pair_weighting="label_gap")``, which never lists pairs: of two documents the better one is preferred, by
    the difference of both.

    Parameters
    ----------
    log : ClickLog or ClickLogFile
        The log.
    data : RankingData
        The documents; labels are not used.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: those of the log's rows. None: none, which gives click rates. With a
        ``clip`` the sum of propensities is at least ``clip`` times the number of impressions of the query.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        One value for each row of the data; NaN where no user could see it.

    Raises
    ------
    DataError
        When the log does not match the data or the propensities.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> from ranksvm.clicks import ClickLog, PositionBias, relevance
    >>> data = make_ranking(n_queries=1, n_docs=3, n_features=2, random_state=0)
    >>> query = data.qid[0]
    >>> log = ClickLog([query] * 4, [2, 0, 0, 2], [1, 2, 1, 2], [0, 1, 1, 0])
    >>> relevance(log, data, PositionBias([1.0, 0.6])).tolist()
    [1.25, nan, 0.0]
    """
    check_log(log)
    check_bias(bias)
    sums = exposures(log, data, bias)
    return np.where(sums.exposure > 0, sums.per_exposure(sums.gain), np.nan)


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
        The values tried.
    estimates : list of CounterfactualEstimate
        Quality of each on the clicks of held-out queries.
    metric : str
        By which C was chosen.

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
    log: Any,
    bias: Any = None,
    *,
    form: str = "pairs",
    rule: str = "shown",
    Cs: Any = None,
    metric: str = "dcg@10",
    random_state: Any = 0,
) -> ClickValidation:
    """Fit a ranker on a log, with C chosen by clicks alone: counterfactual validation.

    A quarter of the queries is held out. For every C a model is fitted on the clicks of the others, and the quality of
    its ranking of the held-out queries is estimated by `metrics.estimate` from their clicks, with the same propensities
    (inverse propensities, ``"ips"``). The best C is used for a fit on the whole log.

    Parameters
    ----------
    estimator : RankSVM, KernelRankSVM or SOLARRanker
        The ranker, not fitted; it is cloned. An online ranker (with ``partial_fit_pairs``) learns from one impression
        after another, in the order of the log.
    data : RankingData
        The documents; labels are not used.
    log : ClickLog or ClickLogFile
        The log; a file is read into memory.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: those of the log's rows. None: none (naive).
    form : {"pairs", "relevance"}, default "pairs"
        ``"pairs"``: `click_pairs`. ``"relevance"``: labels from `relevance` with ``pair_weighting="label_gap"``, for
        trust bias and for very many pairs. Online rankers take pairs.
    rule : {"shown", "shown_all", "skip_above"}, default "shown"
        As for `click_pairs`. ``"skip_above"`` uses the propensities in the validation only.
    Cs : array-like of float, optional
        Values of C. None: 1, 10, ... 1e5 over the sum of the weights of the pairs (online rankers: 2^-8, 2^-6, ...
        2^4).
    metric : str, default "dcg@10"
        What to choose by: "dcg@k" or "mean_relevant_rank".
    random_state : int, Generator or None, default 0
        Source of the held-out queries.

    Returns
    -------
    ClickValidation
        The model, its C, and what was tried.

    Raises
    ------
    DataError
        When the log does not match the data or the propensities, or has clicks for fewer than 4 queries.
    OptionError
        When an option is unknown, or the estimator has no C.

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
    check(form=one_of(form, ("pairs", "relevance")), rule=one_of(rule, _RULES))
    if not hasattr(estimator, "C"):
        raise OptionError(f"{type(estimator).__name__} has no C to choose: call its fit with click_pairs(...).")
    check_log(log)
    log = log.read() if isinstance(log, ClickLogFile) else log
    learner = _learner(estimator, data, bias, form, rule)
    queries = np.unique(log.query[log.clicked])
    if len(queries) < 4:
        raise DataError(
            f"a choice of C needs clicks for 4 queries, and the log has them for {len(queries)}: fit a model with a C "
            f"of your own on {learner.learns_from}."
        )
    rng = np.random.default_rng(random_state)
    held = rng.permutation(queries)[: max(1, round(_HELD_OUT * len(queries)))]
    of_impression = np.isin(log.query[log.pointers[:-1]], held)
    learning, validation = log.impressions(~of_impression), log.impressions(of_impression)
    problem = learner.problem(learning)
    values = learner.grid(problem) if Cs is None else np.sort(numeric_column("Cs", Cs).reshape(-1))
    estimates = [
        estimate(validation, learner.fit(problem, C).predict(data.X), metric, bias, data=data) for C in values.tolist()
    ]
    name = next(iter(estimates[0].means))
    scores = np.array([found.means[name] for found in estimates]) * (-1.0 if name == "mean_relevant_rank" else 1.0)
    C = float(values[int(np.nanargmax(scores))])
    whole = learner.problem(log)
    if Cs is None:  # C of this sum of weights
        C *= learner.scale(problem) / learner.scale(whole)
    return ClickValidation(learner.fit(whole, C), C, values, estimates, name)


def _learner(estimator: Any, data: RankingData, bias: Any, form: str, rule: str) -> "_PairLearner":
    if hasattr(estimator, "partial_fit_pairs"):
        if form != "pairs":
            raise OptionError("online rankers learn from pairs of documents: leave form='pairs'.")
        return _OnlineLearner(estimator, data, bias, rule)
    if form == "pairs":
        return _PairLearner(estimator, data, bias, rule)
    if getattr(estimator, "pair_weighting", "uniform") not in ("uniform", "label_gap"):
        raise OptionError("form='relevance' weights pairs by 'label_gap': leave pair_weighting out.")
    return _RelevanceLearner(estimator, data, bias, rule)


class _PairLearner:
    """Fits on weighted pairs."""

    learns_from = "click_pairs(log, data, bias) (`ranksvm train`: give -C)"

    def __init__(self, estimator: Any, data: RankingData, bias: Any, rule: str):
        self._estimator, self._data, self._bias, self._rule = estimator, data, bias, rule

    def problem(self, log: Any) -> Any:
        """What is learnt from a log, for any C."""
        return click_pairs(log, self._data, self._bias_of_pairs, rule=self._rule)

    @property
    def _bias_of_pairs(self) -> Any:
        return None if self._rule == "skip_above" else self._bias

    def scale(self, problem: Any) -> float:
        """Sum of the weights of the pairs."""
        return float(problem.weight.sum())

    def grid(self, problem: Any) -> np.ndarray:
        """Values of C to try."""
        return _BUDGETS / self.scale(problem)

    def fit(self, problem: Any, C: float) -> Any:
        """A fitted model."""
        data = self._data
        return self._new(C).fit(data.X, qid=data.qid, pairs=problem.pairs, pair_weight=problem.weight)

    def _new(self, C: float, **more: Any) -> Any:
        from sklearn.base import clone

        return clone(self._estimator).set_params(C=C, **more)


class _RelevanceLearner(_PairLearner):
    """Fits on estimated relevance."""

    learns_from = "relevance(log, data, bias), with pair_weighting='label_gap'"

    def problem(self, log: Any) -> Any:
        """Rows that were shown, their relevance, and how many impressions their query had."""
        label = relevance(log, self._data, self._bias)
        rows = np.flatnonzero(~np.isnan(label))
        number = self._data.queries.numbers()
        asked = np.bincount(number[log.rows(self._data)[log.pointers[:-1]]], minlength=self._data.queries.n_queries)
        weight = asked[number[rows]].astype(np.float64)
        return rows, label[rows], weight / weight.mean()

    def scale(self, problem: Any) -> float:
        """Sum of the differences of labels over the pairs, weighted."""
        rows, label, weight = problem
        number = self._data.queries.numbers()[rows]
        order = np.lexsort((label, number))
        number, label, weight = number[order], label[order], weight[order]
        sizes = np.bincount(number)[number]
        place = np.arange(len(number)) - np.searchsorted(number, number)
        # of m sorted labels, the i-th (from 0) is the larger of i pairs and the smaller of m - 1 - i
        return float(weight @ (label * (2 * place - sizes + 1)))

    def fit(self, problem: Any, C: float) -> Any:
        """A fitted model."""
        rows, label, weight = problem
        qid = None if self._data.qid is None else self._data.qid[rows]
        model = self._new(C, pair_weighting="label_gap")
        return model.fit(take_rows(self._data.X, rows), label, qid=qid, query_weight=weight)


class _OnlineLearner(_PairLearner):
    """Learns from one impression after another."""

    def problem(self, log: Any) -> Any:
        """For each impression with clicks its rows, and pairs of these with weights."""
        found = []
        rows, starts = log.rows(self._data), log.pointers
        pairs = pairs_from_clicks(log.impression, log.rank, log.clicked, rule=self._rule)
        weight = _click_weight(log, self._data, self._bias_of_pairs)[rows[pairs[:, 0]]]
        weight = weight / weight.mean() if len(weight) else weight
        # pairs are in the order of the rows preferred
        impression = log.impression[pairs[:, 0]]
        borders = np.searchsorted(impression, np.arange(log.n_impressions + 1))
        for number in np.flatnonzero(np.diff(borders)).tolist():
            part = slice(borders[number], borders[number + 1])
            first, last = starts[number], starts[number + 1]
            found.append((rows[first:last], pairs[part] - first, weight[part]))
        return found

    def scale(self, problem: Any) -> float:
        """C of an online ranker is that of one pair: it does not depend on their number."""
        return 1.0

    def grid(self, problem: Any) -> np.ndarray:
        """Values of C to try."""
        return 2.0 ** np.arange(-8, 5, 2)

    def fit(self, problem: Any, C: float) -> Any:
        """A model that has seen every impression once."""
        model = self._new(C)
        for rows, pairs, weight in problem:
            model.partial_fit_pairs(take_rows(self._data.X, rows), pairs, weight)
        return model


def _click_weight(log: Any, data: RankingData, bias: Any) -> np.ndarray:
    """Weight of a click on each row of the data."""
    return np.ones(data.n_rows) if bias is None else exposures(log, data, bias).click_weight


def _added_up(key: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different keys, sorted, and the sums of their weights."""
    if len(key) == 0:
        return key, weight
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    starts = np.concatenate(([0], np.flatnonzero(key[1:] != key[:-1]) + 1))
    return key[starts], np.add.reduceat(weight, starts)
