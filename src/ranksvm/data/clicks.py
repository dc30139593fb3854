"""Preferences implied by clicks on displayed rankings."""

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError, OptionError

__all__ = ["clicked_flags", "pairs_from_clicks"]

_RULES = ("shown", "shown_all", "skip_above", "last_click_skip_above")


def pairs_from_clicks(
    qid: ArrayLike | None,
    rank: ArrayLike,
    clicked: ArrayLike,
    *,
    rule: str = "shown",
    click_time: ArrayLike | None = None,
) -> np.ndarray:
    """Pairs (preferred, other) of rows implied by a user's clicks on a displayed ranking.

    A row is one document that was shown in one impression (one answer to one query). Let an impression show its
    documents at ranks r, and let K be the rows clicked on. The rules prefer a clicked document

    - ``"shown"``: to every document shown without a click, ``{(i, j): i in K, j not in K}``. Documents near the top are
      clicked more often because users look there. Weight each pair by 1 / propensity of the rank of i to correct this.
    - ``"shown_all"``: to every other document, clicked or not, ``{(i, j): i in K, j != i}``, the pairs of
      PropensitySVM-rank (Joachims, Swaminathan & Schnabel 2017). They need the same weights.
    - ``"skip_above"``, Click > Skip Above, also the rule of Joachims (2002): to the documents above it without a click,
      ``{(i, j): i in K, j not in K, r_j < r_i}``. The rule assumes that the user has seen and skipped these documents,
      so it needs no weights. Every pair contradicts the order shown, and a click on the first document gives no pair,
      so a ranker that keeps learning from its own lists gets worse.
    - ``"last_click_skip_above"``, Last Click > Skip Above (Joachims et al. 2005): only the pairs of ``"skip_above"``
      whose i is the last click of its impression. With ``click_time``, the last click is the latest one, as in the
      paper; without ``click_time``, it is the lowest one, as for a user who reads from the top.

    Time O(n log n + pairs) for n rows, O(n + pairs) if the rows of each impression are contiguous with ascending ranks;
    memory O(n + pairs).

    Parameters
    ----------
    qid : array-like of shape (n_rows,), or None
        Id of each row's impression: any dtype, any order. A query that was answered twice is two impressions with
        different ids, because clicks in one say nothing about the other. None: all rows are one impression.
    rank : array-like of shape (n_rows,)
        Rank at which the row was shown, smaller is higher. Any finite numbers, distinct within an impression; only
        their order matters.
    clicked : array-like of bool, shape (n_rows,)
        Whether the row was clicked on; 0 and 1 are accepted. Numbers of clicks are refused, because the rules do not
        distinguish two clicks from one: pass ``clicks > 0``.
    rule : {"shown", "shown_all", "skip_above", "last_click_skip_above"}, default="shown"
        Which pairs to take.
    click_time : array-like of shape (n_rows,), optional
        When the row was clicked on: numbers or ``datetime64``; values for other rows are ignored. If two clicks have
        the same time, the lower one counts as the later. Only for ``"last_click_skip_above"``.

    Returns
    -------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other): impressions in the order in which they first appear; within each, preferred
        documents from the top, and for each of these the other documents from the top. Empty if the clicks give
        no pair.

    Raises
    ------
    DataError
        When lengths differ; when ``rank`` is not finite or occurs twice in an impression; when ``clicked`` holds values
        other than 0, 1, True and False; when a click has no time.
    OptionError
        When ``rule`` is unknown, or ``click_time`` is given for a rule that does not use it.

    References
    ----------
    T. Joachims, "Optimizing search engines using clickthrough data", KDD 2002, Algorithm 1.
    T. Joachims, L. Granka, B. Pan, H. Hembrooke, G. Gay, "Accurately interpreting clickthrough data as implicit
    feedback", SIGIR 2005, Strategies 1 and 2.
    T. Joachims, A. Swaminathan, T. Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017, section 5.

    Examples
    --------
    Four documents were shown and the first and third clicked on:

    >>> pairs = pairs_from_clicks(None, rank=range(1, 5), clicked=[1, 0, 1, 0])
    >>> (pairs + 1).tolist()
    [[1, 2], [1, 4], [3, 2], [3, 4]]

    Seven documents were shown and the first, third and seventh clicked on, as in Joachims (2002):

    >>> clicked = [1, 0, 1, 0, 0, 0, 1]
    >>> (pairs_from_clicks(None, range(1, 8), clicked, rule="skip_above") + 1).tolist()
    [[3, 2], [7, 2], [7, 4], [7, 5], [7, 6]]

    If the rows of a log refer to rows of X, map the pairs to these rows:

    >>> row_of_X = np.array([40, 41, 42, 43])
    >>> row_of_X[pairs][0].tolist()
    [40, 41]
    """
    if rule not in _RULES:
        raise OptionError(f"rule must be one of {', '.join(map(repr, _RULES))}, got {rule!r}.")
    if click_time is not None and rule != "last_click_skip_above":
        raise OptionError(f"click_time is for rule='last_click_skip_above'; rule={rule!r} does not use it.")
    flags = clicked_flags(clicked)
    ranks = _ranks(rank, len(flags))
    if qid is None and rule != "last_click_skip_above":
        order = np.argsort(ranks, kind="stable")
        if not (ranks[order[1:]] == ranks[order[:-1]]).any():
            return _pairs_in_one(order, flags[order], rule)
    queries = Queries.from_qid(qid, len(flags))
    query, rows = _from_the_top(queries, ranks)
    flags = flags[rows]
    preferred = np.flatnonzero(flags)
    if rule == "last_click_skip_above":
        time = None if click_time is None else _times(click_time, flags, rows)
        preferred = _last_of_each(preferred, query, time)
    impression = query[preferred]
    stop = queries.pointers[impression + 1] if rule in ("shown", "shown_all") else preferred
    candidates = np.ones(len(rows), dtype=bool) if rule == "shown_all" else ~flags
    return _pairs_within(preferred, rows, candidates, queries.pointers[impression], stop)


def _pairs_in_one(rows: np.ndarray, clicked: np.ndarray, rule: str) -> np.ndarray:
    """Like `_pairs_within`, for a single impression (services learn from one at a time): a third of the NumPy calls."""
    places = np.flatnonzero(clicked)
    others = rows if rule == "shown_all" else rows[~clicked]
    if rule != "skip_above":
        pairs = np.empty((len(places) * len(others), 2), dtype=np.int64)
        pairs[:, 0] = np.repeat(rows[places], len(others))
        pairs[:, 1] = np.tile(others, len(places))
        return _without_self_pairs(pairs) if rule == "shown_all" else pairs
    counts = places - np.arange(len(places))
    pairs = np.empty((int(counts.sum()), 2), dtype=np.int64)
    pairs[:, 0] = np.repeat(rows[places], counts)
    pairs[:, 1] = np.concatenate([others[:count] for count in counts.tolist()]) if len(counts) else 0
    return pairs


def _pairs_within(
    preferred: np.ndarray, rows: np.ndarray, candidates: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> np.ndarray:
    """All pairs of a preferred position with one of the candidates between its own ``start`` and ``stop``.

    The pairs are counted first, then filled in: the candidates at the positions ``start`` to ``stop - 1``
    have the numbers ``before[start]`` to ``before[stop] - 1``.
    """
    others = np.flatnonzero(candidates)
    before = np.concatenate(([0], np.cumsum(candidates)))
    first = before[start]
    counts = before[stop] - first
    stops = np.cumsum(counts)
    pairs = np.empty((int(stops[-1]) if len(stops) else 0, 2), dtype=np.int64)
    pairs[:, 0] = np.repeat(rows[preferred], counts)
    # number of the pair, minus the number of the first pair of its preferred row, plus that row's first candidate
    pairs[:, 1] = rows[others[np.arange(len(pairs)) + np.repeat(first - (stops - counts), counts)]]
    return _without_self_pairs(pairs) if candidates[preferred].any() else pairs


def _without_self_pairs(pairs: np.ndarray) -> np.ndarray:
    """The pairs without pairs of a row with itself."""
    return pairs[pairs[:, 0] != pairs[:, 1]]


def _from_the_top(queries: Queries, rank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Impression (from 0) and row at each position, if rows are sorted by impression, then from the top."""
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    rows = np.arange(queries.n_rows) if queries.order is None else queries.order
    sorted_rank = queries.to_sorted(rank)
    within = query[1:] == query[:-1]
    if np.any(within & (sorted_rank[1:] <= sorted_rank[:-1])):
        order = np.lexsort((sorted_rank, query))
        rows, sorted_rank = rows[order], sorted_rank[order]
        twice = np.flatnonzero(within & (sorted_rank[1:] == sorted_rank[:-1]))
        if len(twice):
            one, other = sorted(rows[twice[0] : twice[0] + 2].tolist())
            name = queries.keys[query[twice[0]]]
            raise DataError(
                f"Rows {one} and {other} of impression {name!r} were both shown at rank {sorted_rank[twice[0]]}: ranks "
                "must differ within an impression. qid must be the id of the impression, not of the query."
            )
    return query, rows


def _last_of_each(preferred: np.ndarray, query: np.ndarray, time: np.ndarray | None) -> np.ndarray:
    """The last preferred position of each impression: the latest one if there are times, otherwise the lowest one."""
    query = query[preferred]
    if time is not None:  # stable: if two clicks have the same time, the lower one stays last
        preferred = preferred[np.lexsort((time, query))]
    return preferred[np.append(query[1:] != query[:-1], True)] if len(preferred) else preferred


def clicked_flags(clicked: ArrayLike) -> np.ndarray:
    """Whether each row was clicked on, as booleans; DataError for anything but 0, 1, True and False."""
    values = _one_dimensional("clicked", clicked)
    if values.dtype == bool:
        return values
    if values.dtype == object:
        right = np.fromiter((isinstance(value, int | float | np.number | np.bool_) for value in values), bool)
        right[right] = np.isin(values[right].astype(np.float64), (0, 1))
    else:
        right = np.isin(values, (0, 1)) if values.dtype.kind in "iuf" else np.zeros(len(values), dtype=bool)
    if not right.all():
        row = int(np.argmin(right))
        raise DataError(
            f"clicked is {values[row]!s} in row {row}, but must be True or False (1 or 0). For numbers of clicks, pass "
            "clicks > 0."
        )
    return values.astype(bool)


def _ranks(rank: ArrayLike, n_rows: int) -> np.ndarray:
    values = _one_dimensional("rank", rank)
    check_one_per_row("rank", values, n_rows, "clicked")
    if values.dtype.kind not in "iuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"rank must be numbers, got {values.dtype}: {error}.") from None
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise DataError(f"rank is {values[row]} in row {row}: drop rows that were not shown.")
    return values


def _times(click_time: ArrayLike, clicked: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Times of the clicked positions."""
    values = _one_dimensional("click_time", click_time)
    check_one_per_row("click_time", values, len(rows), "clicked")
    if values.dtype.kind not in "iufmM":
        raise DataError(f"click_time must be numbers or datetime64, got {values.dtype}.")
    times = values[rows[clicked]]
    missing = np.isnat(times) if times.dtype.kind in "mM" else ~np.isfinite(times)
    if missing.any():
        row = int(rows[clicked][missing].min())
        raise DataError(f"click_time is {values[row]} in row {row}, which was clicked on: every click needs a time.")
    return times


def _one_dimensional(name: str, values: ArrayLike) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, got shape {array.shape}.")
    return array
