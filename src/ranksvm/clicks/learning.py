"""Training data from a click log: preferences between documents, and relevance of documents."""

from typing import NamedTuple

import numpy as np

from ranksvm._util.checks import check, flag, one_of
from ranksvm.clicks.bias import Bias
from ranksvm.clicks.log import ClickLog
from ranksvm.clicks.log_file import Log
from ranksvm.data import pairs_from_clicks
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.metrics.click_sums import check_bias, check_log, exposures, propensities

__all__ = ["RULES", "ClickPairs", "click_pairs", "relevance", "weighted_pairs"]

RULES = ("shown", "shown_all", "skip_above")


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
    log: Log, data: RankingData, bias: Bias = None, *, rule: str = "shown", normalize: bool = True
) -> ClickPairs:
    """Preferences of clicked documents over others, each click weighted by 1 / propensity of its rank.

    Let document i have relevance r_i, the probability of a click on it once it is examined. With the right propensities
    and ``rule="shown_all"``, the expected weight of the pair (i, j) is r_i for each impression that shows both
    documents, whatever the ranks and whichever ranker made the list. This is PropensitySVM-rank (Joachims, Swaminathan
    & Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017, section 5). Its loss for one click on
    document i is the sum of the hinges of ``s_i - s_j`` over the other documents j, divided by the propensity. With
    ``rule="shown"``, impressions with clicks on both documents do not count, because they prefer neither. The
    expected weight is then ``r_i (1 - p_j r_j)``, where p_j is the propensity of the rank of j: of two almost equally
    relevant documents, this rule favors the one shown above the other. Weights of equal pairs from many impressions are
    added up.

    Unlike `relevance` and `metrics.estimate`, this function does not use exposures, which are sums of propensities over
    all impressions of a query. A pair exists only if one list shows both documents. If clicks were divided by
    exposures, a document that only few lists show would therefore win against all others in these lists.

    Parameters
    ----------
    log : ClickLog or ClickLogFile
        The log.
    data : RankingData
        The documents; labels are not used.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: propensities of the log's rows. None: every click weighs 1 (naive).
    rule : {"shown", "shown_all", "skip_above"}, default "shown"
        Documents of the same impression to which a clicked document is preferred: all without a click (``"shown"``),
        all others (``"shown_all"``), or all above it without a click (``"skip_above"``, which takes no ``bias``; see
        `pairs_from_clicks`).
    normalize : bool, default True
        Whether weights are divided by their mean, the self-normalized form (Swaminathan & Joachims, NeurIPS 2015). For
        one log this only changes the scale of C. But it makes C independent of the number of clicks, and of a constant
        factor in all propensities.

    Returns
    -------
    ClickPairs
        ``pairs`` and ``weight``.

    Raises
    ------
    NoComparablePairsError
        When no click prefers one document to another.
    DataError
        When the log does not match the data or the propensities, or ``bias`` has offsets (trust bias: use `relevance`).
    OptionError
        When an option is unknown, or ``rule="skip_above"`` gets a ``bias``.

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
    check(rule=one_of(rule, RULES), normalize=flag(normalize))
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
    for block in log.blocks():
        rows = block.rows(data)
        pairs, weight = weighted_pairs(block, bias, rule)
        key = rows[pairs[:, 0]] * data.n_rows + rows[pairs[:, 1]]
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


def relevance(log: Log, data: RankingData, bias: Bias = None) -> np.ndarray:
    """Estimate relevance of documents from clicks: the sum of ``click - offset`` divided by the sum of propensities.

    Both sums are over the impressions of the query by any ranker. The quotient estimates the probability of a click on
    an examined document, with far less variance than the mean of ``click / propensity``. The offsets correct for trust
    bias (the affine correction of Vardasbi, Oosterhuis & de Rijke, CIKM 2020). To learn from the estimates, use them as
    labels of ``RankSVM(pair_weighting="label_gap")``. It prefers the more relevant of two documents, weighted by the
    difference of their relevance, and needs no list of the pairs.

    Parameters
    ----------
    log : ClickLog or ClickLogFile
        The log.
    data : RankingData
        The documents; labels are not used.
    bias : PositionBias, "log" or None
        Propensities of the ranks; ``"log"``: propensities of the log's rows. None: no propensities, which gives click
        rates. If ``bias.clip`` is not 0, the sum of propensities is raised to at least ``bias.clip`` times the query's
        number of impressions.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        One value for each row of the data; NaN if the document has no exposure.

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


def weighted_pairs(block: ClickLog, bias: Bias, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows (clicked, other) in the impressions of a block of a log, and 1 / propensity of each click."""
    pairs = pairs_from_clicks(block.impression, block.rank, block.clicked, rule=rule)
    return pairs, 1.0 / propensities(block, bias)[pairs[:, 0]]


def _added_up(key: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, sorted, and the sums of their weights."""
    if len(key) == 0:
        return key, weight
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    starts = np.concatenate(([0], np.flatnonzero(key[1:] != key[:-1]) + 1))
    return key[starts], np.add.reduceat(weight, starts)
