"""Propensities of ranks, estimated from the newest clicks in the store of a service."""

from typing import Any

import numpy as np

from ranksvm.exceptions import DataError
from ranksvm.serving.clicks import click_log
from ranksvm.serving.store import Store

__all__ = ["estimated"]

# Number of events that an estimate rests on, at most: older ones may come from another layout. 20,000 lists of 20
# documents take a second.
_NEWEST = 20_000
# Steeper curves are estimates from a handful of clicks.
_STEEPEST = 3.0


def estimated(store: Store) -> dict[str, Any]:
    """What an estimate of ``k ** -eta`` changes in a `ClickLearning`; only a note if the clicks do not identify eta.

    If neighbors were exchanged at random ("fair-pairs"), eta comes from these exchanges; else from documents whose
    ranks changed because the model learned (`ranksvm.clicks.position_bias`, methods "swap" and "harvest").
    """
    from ranksvm.clicks import position_bias  # it imports SciPy

    try:
        try:
            log, method = click_log(store, policy="fair-pairs", newest=_NEWEST), "swap"
        except DataError:
            log, method = click_log(store, newest=_NEWEST), "harvest"
        bias = position_bias(log, method, curve="power", n_bootstrap=0)
    except DataError:  # a message for users of the library
        return {"note": "no document of a named query was shown at two ranks, and clicked on."}
    if bias.diagnosis:
        return {"note": "clicks on documents that were shown at several ranks are still too few."}
    eta = 0.0 if bias.n_ranks < 2 else float(np.log(bias.propensity[0] / bias.propensity[1]) / np.log(2.0))
    return {"eta": min(max(eta, 0.0), _STEEPEST), "rankings": log.n_impressions, "note": None}
