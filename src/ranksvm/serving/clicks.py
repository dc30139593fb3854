"""The click log of a service: the lists that it has shown, the clicks reported to it, and estimated propensities."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ranksvm._util.types import PathLike
from ranksvm.clicks import ClickLog
from ranksvm.exceptions import DataError
from ranksvm.serving.records import Entry, Kind, Shown
from ranksvm.serving.store import Store, open_store

__all__ = ["click_log", "estimated"]

# Number of events read at a time.
_EVENTS = 10_000
# Maximum number of events in an estimate, because older ones may come from another page layout; and maximum number of
# ranks per event, because few users look further. 20,000 lists of 20 documents take a second.
_NEWEST, _RANKS = 20_000, 50
# Maximum of eta: estimates of steeper curves rest on a handful of clicks.
_STEEPEST = 3.0


def click_log(
    store: PathLike | Store, *, policy: str | None = None, newest: int | None = None, n_ranks: int | None = None
) -> ClickLog:
    """The impressions and clicks in the store of a service, which may be running.

    An impression is one ranking that was requested. Feedback that has labels or preferences says nothing about clicks,
    and its event is omitted; an event without feedback is an impression without clicks. A ranking whose query has no
    name counts as a query of its own.

    The ranker of a document is the version of the model, "v1", "v2", ...; as a model learns, it shows documents at
    other ranks, which ``position_bias(log)`` needs. The ranker is "random" in a list in random order (policy
    "epsilon"), and the team, "champion" or "challenger", in an interleaved list.

    Parameters
    ----------
    store : str, path-like or Store
        Path of an SQLite file, ``postgresql://...``, or an open store.
    policy : {"greedy", "epsilon", "team-draft", "fair-pairs"}, optional
        Only rankings of this policy. Team-draft interleaving is judged by ``interleaving_credits(click_log(store,
        policy="team-draft"), names=("challenger", "champion"))``. With "fair-pairs" the log has a ``base_rank``, for
        ``position_bias(log, "swap")``. None: all.
    newest : int, optional
        Only rankings among this number of the newest events of the store. None: all.
    n_ranks : int, optional
        Only this number of first ranks of each ranking. None: all.

    Returns
    -------
    ClickLog
        In the order of time, with the time of each request in seconds since 1970.

    Raises
    ------
    DataError
        When the store has no such ranking.
    StoreError
        When it cannot be opened, or is not a store.

    Examples
    --------
    >>> from ranksvm.serving.clicks import click_log
    >>> log = click_log("events.db")                                                            # doctest: +SKIP
    """
    opened = store if isinstance(store, Store) else open_store(str(store), create=False)
    try:
        found = _read(opened, policy, "" if newest is None else opened.event_before(newest), n_ranks)
    finally:
        if opened is not store:
            opened.close()
    if not found:
        of = "" if policy is None else f" by the policy {policy!r}"
        raise DataError(f"the store has no ranking{of} with feedback by clicks, or without feedback.")
    sizes = [len(one.documents) for one in found]

    def each_row(values: Iterable[str | float]) -> np.ndarray:
        return np.repeat(np.asarray(list(values)), sizes)

    return ClickLog(
        each_row(one.query for one in found),
        list(chain.from_iterable(one.documents for one in found)),
        np.concatenate([np.arange(1, size + 1) for size in sizes]),
        list(chain.from_iterable(one.clicked for one in found)),
        impression=each_row(one.id for one in found),
        ranker=list(chain.from_iterable(one.rankers for one in found)),
        base_rank=_base_ranks(found) if policy == "fair-pairs" else None,
        time=each_row(one.at for one in found),
    )


class _Impression(NamedTuple):
    """The documents at the first ranks of a ranking, and the clicks on them."""

    id: str
    at: float
    query: str
    documents: list[str]
    clicked: list[bool]
    rankers: list[str]
    base_rank: list[int] | None


def _read(store: Store, policy: str | None, last: str, n_ranks: int | None) -> list[_Impression]:
    """The rankings that follow the event ``last`` and have known clicks; only their first ranks are kept."""
    found = []
    while events := store.answers(last, _EVENTS):
        for id, at, shown, entry in events:
            clicks = _clicks(entry)
            if clicks is not None and shown.order and policy in (None, shown.policy):
                found.append(_impression(id, at, shown, clicks, n_ranks))
        last = events[-1][0]
    return found


def _impression(id: str, at: float, shown: Shown, clicks: frozenset[str], n_ranks: int | None) -> _Impression:
    documents = [shown.documents[row] for row in shown.order[:n_ranks]]
    return _Impression(
        id,
        at,
        id if shown.query is None else shown.query,
        documents,
        [document in clicks for document in documents],
        _rankers(shown)[:n_ranks],
        None if shown.base_rank is None else shown.base_rank[:n_ranks],
    )


def _clicks(entry: Entry | None) -> frozenset[str] | None:
    """Documents clicked on; None if the feedback is of another kind."""
    if entry is None or entry.kind is Kind.UNANSWERED:
        return frozenset()
    clicks = entry.decoded.get("clicks")
    return None if clicks is None else frozenset(clicks)


def _base_ranks(found: list[_Impression]) -> np.ndarray:
    """Rank, from 1, of each document before neighbors were exchanged."""
    return np.concatenate([np.asarray(one.base_rank) + 1 for one in found])


def _rankers(shown: Shown) -> list[str]:
    """Name of the ranker that chose each document's place."""
    size = len(shown.order)
    if shown.teams is not None:
        return shown.teams
    # the order is random if a document is not where the model would put it; then its probability is epsilon / size
    chance = shown.propensities is not None and size > 1 and min(shown.propensities) <= 1.0 / size
    return ["random" if chance else f"v{shown.version}"] * size


def estimated(store: Store) -> dict[str, Any]:
    """Changes to a `ClickLearning`: an estimate of ``k ** -eta``, or only a note if the clicks do not identify eta.

    If neighbors were exchanged at random ("fair-pairs"), eta comes from these exchanges; otherwise, or if they are too
    few, from documents whose ranks changed because the model learned (`ranksvm.clicks.position_bias`, methods "swap"
    and "harvest").
    """
    from ranksvm.clicks import position_bias  # it imports SciPy

    note = "no document of a named query was shown at two ranks, and clicked on."
    for policy, method in (("fair-pairs", "swap"), (None, "harvest")):
        try:
            log = click_log(store, policy=policy, newest=_NEWEST, n_ranks=_RANKS)
            bias = position_bias(log, method, curve="power", n_bootstrap=0)
        except DataError:  # its message is for users of the library, not of a service
            continue
        if bias.diagnosis:
            note = "clicks on documents that were shown at several ranks are still too few."
            continue
        eta = float(np.log(bias.propensity[0] / bias.propensity[1]) / np.log(2.0))
        return {"eta": min(max(eta, 0.0), _STEEPEST), "rankings": log.n_impressions, "note": None}
    return {"note": note}
