"""Simulated clicks of users on rankings of labeled documents, with known examination probabilities and noise."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check, count, flag, is_number, not_negative, one_of
from ranksvm._util.random_states import generator_of
from ranksvm._util.types import Features
from ranksvm.clicks._ids import Coded, coded
from ranksvm.clicks.log import ClickLog
from ranksvm.data import Queries
from ranksvm.data.numeric_column import numeric_column
from ranksvm.data.text_categories import features_for
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError

__all__ = ["attractiveness", "clicks_on_lists", "examination", "simulate_clicks"]

# Number of impressions simulated at a time: 16 MB for lists of ten.
_BLOCK = 200_000
_MODELS = ("position", "cascade", "trust")
_SWAPS = ("none", "top", "adjacent", "shuffle", "last")


class Predictor(Protocol):
    """A fitted ranker."""

    def predict(self, X: Features) -> np.ndarray: ...


RankerOrScores = Predictor | ArrayLike


def simulate_clicks(
    data: RankingData,
    ranker: RankerOrScores | Mapping[str, RankerOrScores],
    n_impressions: int = 10_000,
    *,
    model: str = "position",
    n_ranks: int = 10,
    eta: float = 1.0,
    noise: float = 0.1,
    relevance: float | None = None,
    drift: float = 0.0,
    swap: str = "none",
    query_popularity: ArrayLike | None = None,
    propensities: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> ClickLog:
    """Clicks of simulated users on rankings of labeled documents.

    Each impression shows the first ``n_ranks`` documents of a random query, in the order of a randomly chosen ranker.
    A user examines rank k with probability ``k ** -eta``. The probability of a click on an examined document is its
    attractiveness ``a = noise + (1 - noise) g``, where ``g = (2^y - 1) / (2^max(y) - 1)``; if ``relevance`` is given, g
    is 1 for labels of at least ``relevance``, and 0 for others.

    - ``"position"``: the position-based model; ranks are examined independently of each other.
    - ``"cascade"``: the user reads from the top and leaves with the first click (Craswell et al., "An experimental
      comparison of click position-bias models", WSDM 2008, section 3.4): examination depends on the clicks above, so
      propensities that depend only on the rank are wrong. ``eta`` is not used.
    - ``"trust"``: examined documents near the top are clicked more often than their relevance deserves (Agarwal et al.,
      "Addressing trust bias for unbiased learning-to-rank", WWW 2019): relevant ones with probability
      ``1 - (min(k, 20) + 1) / 100``, others with ``max(noise, 0.65 / min(k, 10))``, as simulated by Vardasbi,
      Oosterhuis & de Rijke (CIKM 2020); for grades in between, the probability is interpolated linearly in g.

    Parameters
    ----------
    data : RankingData
        Labeled documents.
    ranker : fitted ranker, array-like of shape (n_rows,), or dict of str to either
        A model with ``predict``, or a score for each row. In a dict, each ranker has a name, and all get equal traffic.
        Ties are ordered by row.
    n_impressions : int, default 10000
        Number of lists that are shown.
    model : {"position", "cascade", "trust"}, default "position"
        How users click.
    n_ranks : int, default 10
        Length of the lists; shorter if a query has fewer documents.
    eta : float, default 1.0
        Severity of position bias, at least 0.
    noise : float, default 0.1
        Probability, in [0, 1), of a click on an examined document that is not relevant.
    relevance : float, optional
        Smallest label of relevant documents; None: relevance is graded by the labels.
    drift : float, default 0.0
        Severity changes linearly during the log, from ``eta`` to ``eta + drift``.
    swap : {"none", "top", "adjacent", "shuffle", "last"}, default "none"
        Randomization of the lists; ``base_rank`` is the rank before it. ``"top"`` exchanges rank 1 with a random rank
        (itself included) in each list (the swaps of Joachims, Swaminathan & Schnabel 2017), ``"adjacent"`` exchanges
        a random pair of neighbors with probability 1/2, ``"shuffle"`` orders the list at random. ``"last"`` fills the
        last rank with a random document that the ranks above do not show, so that every document is shown at some time;
        its ``base_rank`` may be greater than ``n_ranks``.
    query_popularity : array-like of shape (n_queries,), optional
        Relative frequency of each query, in the order of the queries' first rows. None: all are equally frequent.
    propensities : bool, default False
        Whether the log has the true probability that each row was examined, which ``bias="log"`` uses. In a cascade it
        is the probability that no document above was clicked on, 0 below a document that everybody clicks on. It does
        not include the offsets of trust bias.
    random_state : int, Generator or None, default None
        Source of randomness.

    Returns
    -------
    ClickLog
        The impressions in the order of time (``time`` is the number of the impression). Documents are the ids of the
        data, or row numbers if there are none; queries are the data's queries.

    Raises
    ------
    DataError
        When no document is relevant, or scores do not match the rows.
    OptionError
        When an option is out of range.

    Examples
    --------
    >>> from ranksvm import make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=12, n_features=3, random_state=0)
    >>> log = simulate_clicks(data, data.X[:, 0], 1_000, random_state=0)
    >>> log.n_impressions, log.n_rows
    (1000, 10000)
    """
    check(
        n_impressions=count(n_impressions),
        n_ranks=count(n_ranks),
        model=one_of(model, _MODELS),
        swap=one_of(swap, _SWAPS),
        propensities=flag(propensities),
        eta=not_negative(eta),
        noise=_noise_error(noise),
    )
    if not is_number(drift) or not 0.0 <= eta + drift < np.inf:
        raise OptionError(f"eta + drift must be a finite number from 0, got eta = {eta!r} and drift = {drift!r}.")
    rng = generator_of(random_state)
    queries = data.queries
    rankers = ranker if isinstance(ranker, Mapping) else {"ranker": ranker}
    if not rankers:
        raise OptionError("ranker is an empty dict: give at least one ranker.")
    depth = None if swap == "last" else n_ranks  # only "last" needs complete rankings, which take more memory
    full_lists = np.stack([_lists(_scores(data, one), queries, depth) for one in rankers.values()])
    lists = full_lists[:, :, :n_ranks]
    gain = attractiveness(data, 0.0, relevance)
    popularity = _popularity(query_popularity, queries.n_queries)
    parts = []
    for start in range(0, n_impressions, _BLOCK):
        size = min(_BLOCK, n_impressions - start)
        query = rng.choice(queries.n_queries, size, p=popularity)
        who = rng.integers(len(rankers), size=size)
        rows = lists[who, query]
        if swap == "last":
            rows, base = _with_random_last(rows, full_lists, (who, query), queries.sizes[query], rng)
        else:
            rows, base = _swapped(rows, swap, rng)
        severity = eta + drift * (start + np.arange(size)) / max(1, n_impressions - 1)
        gains = np.where(rows >= 0, gain[rows], 0.0)
        examined = examination(model, gains, severity, noise)
        clicked = clicks_on_lists(model, gains, rows >= 0, examined, noise, rng)
        parts.append((start + np.arange(size), query, who, rows, base, clicked, examined))
    time, query, who, rows, base, clicked, examined = (np.concatenate(column) for column in zip(*parts, strict=True))
    optional = base if swap != "none" else None, examined if propensities else None
    return _log(data, list(rankers), time, query, who, rows, clicked, *optional)


def attractiveness(data: RankingData, noise: float = 0.1, relevance: float | None = None) -> np.ndarray:
    """Probability of a click on each document if it is examined: ``noise + (1 - noise) g``.

    Parameters
    ----------
    data : RankingData
        Labeled documents.
    noise : float, default 0.1
        Attractiveness, in [0, 1), of a document that is not relevant.
    relevance : float, optional
        Smallest label of relevant documents; None: relevance is graded by the labels, as in `simulate_clicks`.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        The probabilities: the true values that `metrics.estimate` estimates from simulated clicks.

    Raises
    ------
    DataError
        When no label is above 0 (or none reaches ``relevance``).
    OptionError
        When ``noise`` or ``relevance`` is invalid.

    Examples
    --------
    >>> from ranksvm import RankingData
    >>> from ranksvm.clicks import attractiveness
    >>> attractiveness(RankingData([[0.0], [1.0], [2.0]], [0, 1, 2]), noise=0.1).tolist()
    [0.1, 0.4, 1.0]
    """
    y = numeric_column("y", data.y)
    check(noise=_noise_error(noise))
    if relevance is not None:
        if not is_number(relevance):
            raise OptionError(f"relevance must be None or a number, got {relevance!r}.")
        gain = (y >= relevance).astype(np.float64)
    else:
        y, top = np.maximum(y, 0.0), max(float(y.max()), np.nextafter(0.0, 1.0))
        # (2^y - 1) / (2^top - 1), without the overflow of 2^top
        gain = np.exp2(y - top) * np.expm1(-np.log(2.0) * y) / np.expm1(-np.log(2.0) * top)
    if not gain.any():
        raise DataError("no document is relevant, so that every click would be noise: the data need labels above 0.")
    return noise + (1.0 - noise) * gain


def _noise_error(noise: float) -> str | None:
    """The error message for a probability of noise; None if it is valid."""
    return not_negative(noise) or (f"must be below 1, got {noise!r}" if noise >= 1 else None)


def _scores(data: RankingData, ranker: RankerOrScores) -> np.ndarray:
    scores = ranker.predict(features_for(ranker, data)) if hasattr(ranker, "predict") else ranker
    scores = numeric_column("scores of a ranker", scores)
    if scores.shape != (data.n_rows,):
        raise DataError(f"a ranker has scores of shape {scores.shape}, but the data have {data.n_rows} rows.")
    return scores


def _lists(scores: np.ndarray, queries: Queries, depth: int | None) -> np.ndarray:
    """Rows of the ranking of each query down to a depth, shape (n_queries, ranks); -1 after the last document."""
    numbers = queries.numbers()
    order = np.lexsort((-scores, numbers))
    place = np.arange(len(order)) - np.repeat(queries.pointers[:-1], queries.sizes)
    width = max(1, int(queries.sizes.max(initial=1)))
    lists = np.full((queries.n_queries, width if depth is None else min(depth, width)), -1, dtype=np.int64)
    kept = place < lists.shape[1]
    lists[numbers[order][kept], place[kept]] = order[kept]
    return lists


def _popularity(given: ArrayLike | None, n_queries: int) -> np.ndarray | None:
    if given is None:
        return None
    weights = numeric_column("query_popularity", given)
    if weights.shape != (n_queries,) or (weights < 0).any() or not weights.any():
        raise DataError(f"query_popularity must hold {n_queries} numbers from 0, one for each query.")
    return weights / weights.sum()


def _swapped(rows: np.ndarray, swap: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Lists with ranks exchanged, and the rank that each document had before, from 1."""
    n, width = rows.shape
    place = np.broadcast_to(np.arange(width), rows.shape).copy()
    sizes = (rows >= 0).sum(axis=1)
    each = np.arange(n)
    if swap == "top":
        other = rng.integers(sizes)
        place[each, other], place[each, 0] = 0, other
    elif swap == "adjacent":
        upper = rng.integers(np.maximum(sizes - 1, 1))
        lower = np.minimum(upper + 1, sizes - 1)
        chosen = rng.random(n) < 0.5
        place[each[chosen], upper[chosen]], place[each[chosen], lower[chosen]] = lower[chosen], upper[chosen]
    elif swap == "shuffle":
        key = np.where(rows >= 0, rng.random(rows.shape), 2.0)
        place = np.argsort(key, axis=1)
    return np.take_along_axis(rows, place, axis=1), place + 1


def _with_random_last(
    rows: np.ndarray,
    full_lists: np.ndarray,
    which: tuple[np.ndarray, np.ndarray],
    sizes: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Lists with a random document at the last rank, and the rank of each document in the whole ranking, from 1."""
    n, width = rows.shape
    each, last = np.arange(n), np.minimum((rows >= 0).sum(axis=1), width) - 1
    chosen = rng.integers(last, sizes)
    rows, place = rows.copy(), np.broadcast_to(np.arange(width), rows.shape).copy()
    rows[each, last], place[each, last] = full_lists[(*which, chosen)], chosen
    return rows, place + 1


def examination(model: str, gain: np.ndarray, severity: np.ndarray, noise: float) -> np.ndarray:
    """Probability that each rank is examined, shape (n_lists, n_ranks), by a model of `simulate_clicks`.

    Parameters
    ----------
    model : str
        "position", "cascade" or "trust".
    gain : ndarray of shape (n_lists, n_ranks)
        Relevance g of the document at each rank, from the top.
    severity : ndarray of shape (n_lists,)
        Severity eta of position bias.
    noise : float
        Probability of a click on an examined document that is not relevant.

    Returns
    -------
    ndarray of float64, shape (n_lists, n_ranks)
        The probabilities.
    """
    if model != "cascade":
        return np.arange(1, gain.shape[1] + 1) ** -severity[:, None]
    passed = np.cumprod(1.0 - (noise + (1.0 - noise) * gain), axis=1)
    return np.column_stack((np.ones(len(gain)), passed[:, :-1]))


def clicks_on_lists(
    model: str, gain: np.ndarray, has_document: np.ndarray, examined: np.ndarray, noise: float, rng: np.random.Generator
) -> np.ndarray:
    """Clicks of users on lists, by a model of `simulate_clicks`.

    Parameters
    ----------
    model : str
        "position", "cascade" or "trust".
    gain : ndarray of shape (n_lists, n_ranks)
        Relevance g of the document at each rank, from the top.
    has_document : ndarray of bool, shape (n_lists, n_ranks)
        Whether there is a document: lists may be shorter.
    examined : ndarray of shape (n_lists, n_ranks)
        Probabilities of `examination`.
    noise : float
        Probability of a click on an examined document that is not relevant.
    rng : Generator
        Source of randomness.

    Returns
    -------
    ndarray of bool, shape (n_lists, n_ranks)
        The clicks.
    """
    rank = np.arange(1, gain.shape[1] + 1)
    attractive = noise + (1.0 - noise) * gain
    if model == "cascade":
        would = (rng.random(gain.shape) < attractive) & has_document
        first = np.cumsum(would, axis=1) == 1
        return would & first
    if model == "trust":
        relevant = 1.0 - (np.minimum(rank, 20) + 1) / 100.0
        other = np.maximum(noise, 0.65 / np.minimum(rank, 10))
        attractive = gain * relevant + (1.0 - gain) * other
    return (rng.random(gain.shape) < examined * attractive) & has_document


def _log(
    data: RankingData,
    names: list[Any],
    time: np.ndarray,
    query: np.ndarray,
    who: np.ndarray,
    rows: np.ndarray,
    clicked: np.ndarray,
    base: np.ndarray | None,
    examined: np.ndarray | None,
) -> ClickLog:
    has_document = rows >= 0
    sizes = has_document.sum(axis=1)
    documents = coded("document", np.arange(data.n_rows) if data.docid is None else data.docid)
    rank = np.broadcast_to(np.arange(1, rows.shape[1] + 1), rows.shape)[has_document]
    return ClickLog(
        Coded(np.repeat(query, sizes).astype(np.int32), data.queries.ids),
        documents.take(rows[has_document]),
        rank,
        clicked[has_document],
        ranker=Coded(np.repeat(who, sizes).astype(np.int32), np.array([str(name) for name in names])),
        base_rank=None if base is None else base[has_document],
        propensity=None if examined is None else examined[has_document],
        time=np.repeat(time, sizes),
    )
