"""Propensities of ranks, estimated from the newest clicks in the store of a service."""

from typing import Any

import numpy as np

from ranksvm.exceptions import DataError
from ranksvm.serving.clicks import click_log
from ranksvm.serving.store import Store

__all__ = ["estimated"]

# Maximum number of events in an estimate, because older ones may come from another page layout; and maximum number of
# ranks per event, because few users look further. 20,000 lists of 20 documents take a second.
_NEWEST, _RANKS = 20_000, 50
# Maximum of eta: estimates of steeper curves rest on a handful of clicks.
_STEEPEST = 3.0


def estimated(store: Store) -> dict[str, Any]:
    """Changes to a `ClickLearning` by an estimate of ``k ** -eta``; only a note if the clicks do not identify eta.

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
