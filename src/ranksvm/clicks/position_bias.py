"""Estimation of position bias from a click log."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ranksvm._util.checks import check, count, flag, one_of
from ranksvm._util.random_states import generator_of
from ranksvm.clicks.bias import PositionBias
from ranksvm.clicks.log_file import Log
from ranksvm.clicks.propensities import (
    FEW_CLICKS,
    MAX_NUMBERS,
    ClickCounts,
    comparable_clicks,
    connected_ranks,
    expectation_maximization,
    fit_power,
    fit_propensities,
    groups_of,
    harvest,
    harvest_by_stratum,
    swap_counts,
)
from ranksvm.data.text_categories import refuse_texts
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.click_sums import check_log

__all__ = ["position_bias"]

_METHODS = ("harvest", "swap", "em")
_CURVES = ("free", "power")
_MAX_TRUST_GROUPS = 1_000
# If a bootstrap sample has no comparable clicks at rank 1, its likelihood has no maximum, and the ratios of
# propensities depend on where the iterations stop. No log has enough clicks for finite ratios above this.
_UNBOUNDED = 1e6


def position_bias(
    log: Log,
    method: str = "harvest",
    *,
    data: RankingData | None = None,
    curve: str = "free",
    trust: bool = False,
    n_ranks: int | None = None,
    n_bootstrap: int = 200,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> PositionBias:
    """Propensities of ranks, from clicks on documents that were shown at several ranks.

    All methods assume the position-based model: a user clicks on a document if she examines its rank k, with
    probability p_k, and the document attracts her, with a probability r that depends on the query and the document.
    Then the expected click rates of a document at two ranks k and l have the ratio ``p_k / p_l``, whatever r is.

    - ``"harvest"``: intervention harvesting (Agarwal, Zaitsev, Wang, Li, Najork & Joachims, "Estimating position bias
      without intrusive interventions", WSDM 2019, estimator AllPairs): several rankers placed the same documents at
      different ranks. Let n_k be the number of impressions of a query that showed a document at k, and c_k the clicks
      there. Sums ``C_kl`` of ``c_k n_l / (n_k + n_l)`` over all documents shown at k and l have the expectations ``p_k
      R_kl`` with ``R_kl = R_lk``, and p maximizes ``sum over k, l of C_kl log(p_k / (p_k + p_l))``. This differs from
      the paper in two ways. First, the paper's weights ``1 / w(q, d, k)`` need the ranks that every ranker would give
      in every query. Here the numbers n_k in the log replace them. So the division of traffic among the rankers may
      depend on the query. Click rates then have the weight ``n_k n_l / (n_k + n_l)``, which is larger for documents
      with precise click rates (Mantel & Haenszel 1959). Second, the paper maximizes a binomial likelihood over p and R.
      Here, conditioning on ``C_kl + C_lk`` eliminates R and leaves a concave likelihood (a Bradley-Terry model). Both
      estimators are consistent.
    - ``"swap"``: ranks were exchanged at random, and ``base_rank`` is the rank of a document before the exchange
      (as Joachims, Swaminathan & Schnabel, WSDM 2017, section 5, exchange rank 1 with rank k). The method is the same,
      but click rates are compared among documents with the same base rank, over all queries, instead of for each
      document. So queries need not repeat. The choice of the exchanged ranks must not depend on the query or the
      ranker: if ranks were exchanged in lists of one ranker only, keep only its impressions (``log.impressions``).
    - ``"em"``: expectation maximization of examination and relevance (Wang, Golbandi, Bendersky, Metzler & Najork,
      "Position bias estimation for unbiased learning to rank in personal search", WSDM 2018). With ``data``, relevance
      is a logistic regression on the features (regression EM; the paper uses boosted trees), and the estimate is only
      as good as that regression. Without ``data``, relevance is a separate number for each document of a query, which
      needs documents at several ranks; the estimate is biased if documents have few impressions (by 6 to 14 % with 200
      impressions of each query of MQ2008). The intervals do not include these errors, so prefer the other methods if
      they apply.

    Intervals are percentiles of a bootstrap over queries. If there are many queries, ``"harvest"`` and ``"swap"`` use
    at most 1,000 random groups of queries instead. If the samples do not bound a propensity, because too many of them
    have no comparable clicks at rank 1, the end of its interval is NaN.

    Parameters
    ----------
    log : ClickLog or ClickLogFile
        The log; a log in a file is read in blocks.
    method : {"harvest", "swap", "em"}, default "harvest"
        How to estimate.
    data : RankingData, optional
        Features for ``"em"``.
    curve : {"free", "power"}, default "free"
        ``"free"``: a propensity of its own for each rank. ``"power"``, for ``"harvest"`` and ``"swap"``: ``k ** -eta``
        for one exponent eta, by the same likelihood. A small log suffices, and no rank remains unidentified, but the
        estimate is only as good as the assumed curve.
    trust : bool, default False
        Whether to estimate trust bias too, for ``"harvest"`` and ``"swap"``. The click rate of a document at rank k is
        then an affine function of its click rate at rank 1. Its slope and offset are estimated from documents shown at
        both ranks, by moments that are corrected for the noise of click rates. This needs queries that repeat. If there
        is trust bias, ratios of click rates depend on relevance, and propensities without offsets are wrong.
    n_ranks : int, optional
        Number of ranks to use, from the top; None: all ranks of the log.
    n_bootstrap : int, default 200
        Number of bootstrap samples; 0: no intervals.
    confidence : float, default 0.95
        Level of the intervals.
    random_state : int, Generator or None, default 0
        Source of the bootstrap samples.

    Returns
    -------
    PositionBias
        Propensities relative to rank 1, intervals, and a diagnosis of what the log does not identify (NaN). If
        another rank has a larger propensity, they are relative to the largest.

    Raises
    ------
    DataError
        When the log cannot identify anything: it has only one ranker (``"harvest"``), no ``base_rank`` (``"swap"``), no
        document at two ranks, or no clicks.
    OptionError
        When an option is out of range.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> from ranksvm.clicks import position_bias, simulate_clicks
    >>> data = make_ranking(n_queries=50, n_docs=10, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 100_000, random_state=0)
    >>> position_bias(log).propensity[:3].round(1).tolist()
    [1.0, 0.5, 0.3]
    """
    check_log(log)
    check(
        method=one_of(method, _METHODS),
        curve=one_of(curve, _CURVES),
        n_bootstrap=count(n_bootstrap, 0),
        trust=flag(trust),
        n_ranks=None if n_ranks is None else count(n_ranks),
    )
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    if method == "em" and trust:
        raise OptionError("trust=True needs documents seen at rank 1 and below: use method 'harvest' or 'swap'.")
    if curve == "power" and (method == "em" or trust):
        raise OptionError("curve='power' is for the methods 'harvest' and 'swap' without trust=True.")
    if method != "em" and data is not None:
        raise OptionError(f"data is for method 'em'; method={method!r} does not use features.")
    counts = ClickCounts.of(log, n_ranks)
    _check_identifiable(counts, method)
    rng = generator_of(random_state)
    tables, diagnosis, estimate = _estimator(counts, method, curve, trust, log, data)
    found, offset = estimate(np.ones((1, tables)))
    samples = None
    if n_bootstrap:
        weights = rng.multinomial(tables, np.full(tables, 1.0 / tables), size=n_bootstrap).astype(np.float64)
        # a few samples at a time if rankings are long: each has a table with a number for each pair of ranks
        n_parts = min(n_bootstrap, -(-n_bootstrap * counts.n_ranks**2 // MAX_NUMBERS))
        sampled, offsets = zip(*map(estimate, np.array_split(weights, n_parts)), strict=True)
        samples = np.concatenate(sampled), None if offset is None else np.concatenate(offsets)
    name = method if curve == "free" else f"{method}, power curve"
    return _result(found[0], None if offset is None else offset[0], samples, counts, name, confidence, diagnosis)


# Function: weights of groups of queries, shape (n_samples, n_groups) -> propensities and offsets, shape (n_samples,
# n_ranks)
Estimate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]


def _estimator(
    counts: ClickCounts, method: str, curve: str, trust: bool, log: Log, data: RankingData | None
) -> tuple[int, list[str], Estimate]:
    """Number of groups of queries, diagnosis of unidentified ranks, and the estimate as a function of group weights."""
    by_document = counts.by_document() if counts.has_base_rank else counts
    if method == "em":
        return _em_estimator(by_document, log, data)
    if trust:
        return _trust_estimator(by_document)
    if method == "swap":
        shown, clicks = swap_counts(counts)
        flat = [table.reshape(len(table), -1) for table in (shown, clicks)]

        def table_of(weights: np.ndarray) -> np.ndarray:
            return harvest_by_stratum(*((weights @ table).reshape(-1, *shown.shape[1:]) for table in flat))
    else:
        shown = harvest(by_document)

        def table_of(weights: np.ndarray) -> np.ndarray:
            return (weights @ shown.reshape(len(shown), -1)).reshape(-1, *shown.shape[1:])

    wins = table_of(np.ones((1, len(shown))))[0]
    if curve == "power":
        return len(shown), _check_power(wins), lambda weights: (_power_curve(table_of(weights)), None)
    linked = connected_ranks(wins)
    if counts.n_ranks > 1 and linked.sum() < 2:
        raise DataError(
            "no rank can be compared with rank 1: no document was clicked on at rank 1 and at another rank. More "
            "rankers, randomized ranks (simulate_clicks(swap=...)) or more traffic would identify propensities."
        )
    diagnosis = [] if linked.all() else [_unlinked(linked)]
    few = linked & (comparable_clicks(wins) < FEW_CLICKS)
    if few.any():
        times = np.ceil(FEW_CLICKS / comparable_clicks(wins)[few].min())
        diagnosis.append(
            f"{_ranks(few)} {'rests' if few.sum() == 1 else 'rest'} on fewer than {FEW_CLICKS} comparable clicks each: "
            "propensities there are rough, and clicks may get far too much weight. A log about "
            f"{times:.0f} times as long would have enough; a power curve (curve='power', --curve power) needs fewer."
        )

    def estimate(weights: np.ndarray) -> tuple[np.ndarray, None]:
        table = table_of(weights)[:, linked][:, :, linked]
        out = np.full((len(weights), counts.n_ranks), np.nan)
        out[:, linked] = fit_propensities(table)
        return out, None

    return len(shown), diagnosis, estimate


def _check_power(wins: np.ndarray) -> list[str]:
    """Diagnosis of the limits of a power curve; DataError if there are no data to fit it to."""
    clicks = float(comparable_clicks(wins).sum())
    if not clicks:
        raise DataError(
            "no document was shown at two ranks and clicked on: a power curve cannot be fitted. More rankers, ranks "
            "exchanged at random, or more traffic for the same queries would identify it."
        )
    if clicks < FEW_CLICKS:
        return [f"The curve rests on {clicks:.0f} comparable clicks, fewer than {FEW_CLICKS}: it is rough."]
    return []


def _power_curve(wins: np.ndarray) -> np.ndarray:
    return np.arange(1.0, wins.shape[-1] + 1.0) ** -fit_power(wins)[..., np.newaxis]


def _trust_estimator(counts: ClickCounts) -> tuple[int, list[str], Estimate]:
    """As `_estimator`, with trust bias: click rates at a rank are an affine function of click rates at rank 1."""
    sums = _trust_moments(counts)

    def estimate(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slope, offset = _trust_bias((weights @ sums.reshape(len(sums), -1)).reshape(-1, *sums.shape[1:]))
        bad = ~(slope > 0)
        return np.where(bad, np.nan, slope), np.where(bad, np.nan, offset)

    slope = estimate(np.ones((1, len(sums))))[0][0]
    if np.isnan(slope[1:]).all():
        raise DataError(
            "trust bias is not identified: it needs documents of different relevance that were each shown at rank 1 "
            "(twice at least) and at another rank."
        )
    missing = np.isnan(slope)
    diagnosis = [_unlinked(~missing)] if missing.any() else []
    diagnosis += [
        "Slopes and offsets are relative to rank 1. At rank 1 itself, clicks because of trust cannot be told from "
        "clicks because of relevance."
    ]
    return len(sums), diagnosis, estimate


def _trust_moments(counts: ClickCounts) -> np.ndarray:
    """Five sums for each group of queries and rank k, shape (n_groups, n_ranks, 5).

    Let x and y be the click rates of a document at rank 1 and at k, and ``w = n_1 n_k / (n_1 + n_k)`` its weight. The
    sums of w, w x, w y, w x^2 and w x y are over the documents that were shown at k, and at least twice at rank 1.
    ``c (c - 1) / (n (n - 1))`` is an unbiased estimate of x^2.
    """
    item = counts.item
    group, n_groups = groups_of(counts.query, _MAX_TRUST_GROUPS)
    first = np.flatnonzero((counts.rank == 0) & (counts.shown >= 2))
    place = np.full(int(item[-1]) + 1, -1)
    place[item[first]] = first
    other = np.flatnonzero((counts.rank > 0) & (place[item] >= 0))
    one = place[item[other]]
    n, c, m, d = counts.shown[one], counts.clicks[one], counts.shown[other], counts.clicks[other]
    w, x, y = n * m / (n + m), c / n, d / m
    square = c * (c - 1.0) / (n * (n - 1.0))
    index, size = group[one] * counts.n_ranks + counts.rank[other], n_groups * counts.n_ranks
    sums = [np.bincount(index, w * value, size) for value in (np.ones(len(w)), x, y, square, x * y)]
    return np.stack(sums, axis=-1).reshape(n_groups, counts.n_ranks, 5)


def _trust_bias(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset of each rank from `_trust_moments`: 1 and 0 for rank 1; NaN if they are not identified."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y, square, product = (sums[..., place] / sums[..., 0] for place in range(1, 5))
        variance = square - x * x
        slope = np.where(variance > 0, (product - x * y) / variance, np.nan)
        offset = y - slope * x
    slope[..., 0], offset[..., 0] = 1.0, 0.0
    return slope, offset


def _em_estimator(counts: ClickCounts, log: Log, data: RankingData | None) -> tuple[int, list[str], Estimate]:
    """As `_estimator`, by expectation maximization."""
    item = counts.item
    diagnosis = []
    X = None
    if data is None:
        linked = connected_ranks(harvest(counts).sum(axis=0))
        if linked.sum() < 2:
            raise DataError(
                "every document was shown at only one rank, so low relevance and low examination look the same: give "
                "features (data=) or use several rankers."
            )
        if not linked.all():
            diagnosis.append(_unlinked(linked))
    else:
        X = _features(counts, log, data)
        diagnosis.append("The propensities are only as accurate as the regression of relevance on the features.")
    queries, group = np.unique(counts.query, return_inverse=True)
    group = group.reshape(-1)
    first = expectation_maximization(item, counts.rank, counts.shown, counts.clicks, counts.n_ranks, X)
    if not first.converged:
        diagnosis.append("The iterations had not converged: the propensities still change in the sixth digit.")

    def estimate(weights: np.ndarray) -> tuple[np.ndarray, None]:
        found = []
        for weight in weights:
            if (weight == 1.0).all():
                found.append(first.propensity)
                continue
            w = weight[group]
            shown, clicks = w * counts.shown, w * counts.clicks
            again = expectation_maximization(
                item, counts.rank, shown, clicks, counts.n_ranks, X, first.start, max_iter=10, tol=1e-4
            )
            found.append(again.propensity)
        out = np.array(found)
        if data is None:
            out[:, ~linked] = np.nan
        return out, None

    return len(queries), diagnosis, estimate


def _features(counts: ClickCounts, log: Log, data: RankingData) -> np.ndarray:
    """Standardized features of the documents in ``counts``, in the order of `ClickCounts.item`."""
    refuse_texts(data, "the method 'em' takes numbers")
    key_of: dict[int, int] = {}
    n_documents = int(counts.document.max()) + 1
    for block in log.blocks():
        key = block.query.astype(np.int64) * n_documents + block.document
        keys, first = np.unique(key, return_index=True)
        rows = block.rows(data)[first]
        key_of.update(zip(keys.tolist(), rows.tolist(), strict=True))
    starts = np.concatenate(([0], np.flatnonzero(np.diff(counts.item)) + 1))
    keys = counts.query[starts] * n_documents + counts.document[starts]
    X = data.X[np.array([key_of[key] for key in keys.tolist()])]
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _check_identifiable(counts: ClickCounts, method: str) -> None:
    if not counts.clicks.any():
        raise DataError("the log has no clicks: position bias cannot be estimated from it.")
    if counts.n_ranks < 2:
        raise DataError("the log has one rank only: there is no position bias to estimate.")
    if method == "harvest" and len(counts.rankers) == 1:
        raise DataError(
            f"all lists come from one ranker, {next(iter(counts.rankers))!r}: harvesting compares the ranks that "
            "several rankers, or several versions of a model that learns, gave to one document. Show the same queries "
            "once more after the ranking changed (one more pass of `ranksvm simulate`), exchange ranks at random "
            "(method 'swap'), or use expectation maximization with features (method 'em')."
        )
    if method == "swap" and not counts.has_base_rank:
        raise DataError("the log has no base_rank (the rank before ranks were exchanged at random): 'swap' needs it.")


def _unlinked(linked: np.ndarray) -> str:
    which = _ranks(~linked)
    return f"{which} cannot be compared with rank 1: no chain of documents with clicks at two ranks links it to rank 1."


def _ranks(ranks: np.ndarray) -> str:
    """The ranks, from 1, as text; at most ten of them."""
    found = (np.flatnonzero(ranks) + 1).tolist()
    return (
        ("Rank " if len(found) == 1 else "Ranks ")
        + ", ".join(map(str, found[:10]))
        + (", ..." if len(found) > 10 else "")
    )


def _result(
    found: np.ndarray,
    offset: np.ndarray | None,
    samples: tuple[np.ndarray, np.ndarray | None] | None,
    counts: ClickCounts,
    method: str,
    confidence: float,
    diagnosis: list[str],
) -> PositionBias:
    scale = float(np.nanmax(found))
    if scale > 1.0:
        largest = int(np.nanargmax(found)) + 1
        diagnosis = [*diagnosis, f"Rank {largest} is examined most, by the estimate: propensities are relative to it."]
    ends: dict[str, Any] = {}
    if samples is not None:
        levels = 50 * (1 - confidence), 50 * (1 + confidence)
        with np.errstate(invalid="ignore"):  # infinite samples
            low_high = _percentiles(np.where(samples[0] > _UNBOUNDED, np.inf, samples[0]), levels)
        low_high[np.isinf(low_high)] = np.nan
        ends["low"], ends["high"] = low_high / scale
        if samples[1] is not None:
            ends["offset_low"], ends["offset_high"] = _percentiles(samples[1], levels)
    return PositionBias(
        found / scale,
        offset,
        **ends,
        confidence=confidence,
        method=method,
        n_impressions=counts.n_impressions,
        diagnosis=tuple(diagnosis),
    )


def _percentiles(samples: np.ndarray, levels: tuple[float, float]) -> np.ndarray:
    """Percentiles of each rank; NaN if a rank has no sample."""
    some = ~np.isnan(samples).all(axis=0)
    out = np.full((2, samples.shape[1]), np.nan)
    out[:, some] = np.nanpercentile(samples[:, some], levels, axis=0)
    return out
