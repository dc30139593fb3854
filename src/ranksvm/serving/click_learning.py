"""How a service learns from clicks: the rule that converts clicks to pairs, propensities that weight pairs, and drift.

With drift, users click as if the ranking had no information, because their idea of relevance has changed.
"""

from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from ranksvm._util.pipeline_steps import steps_of
from ranksvm.data.clicks import pairs_from_clicks
from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from ranksvm.clicks import PositionBias
    from ranksvm.serving.models import Model

__all__ = [
    "KEPT",
    "KEPT_BY_ESTIMATE",
    "RULES",
    "ClickLearning",
    "DriftDetector",
    "bias_settings",
    "curve",
    "fair_pairs",
    "forget",
]

RULES = ("shown", "shown_all", "fair_pairs", "skip_above", "last_click_skip_above")
# Fields of a ClickLearning whose propensities are not estimated yet.
_CURVE: dict[str, Any] = {"eta": 1.0, "propensity": None, "rankings": 0, "note": None}
# Lower limit of propensities, so that no click has more than 20 times the weight of a click at rank 1. With three
# kinds of simulated users, limits of 10 and 40 times gave about the same quality.
_MIN_PROPENSITY = 0.05
# Number of rankings at the first estimate of propensities, the factor by which this number grows until the next
# estimate, and the maximum number of rankings between two estimates.
_FIRST_ESTIMATE, _GROWTH, _MAX_BETWEEN = 250, 1.5, 10_000
# Minimum number of rankings before drift can be noticed (with fewer, click rates are too uncertain); number of ranks
# that count; and maximum contribution of a single ranking to a sum of `DriftDetector`.
_MIN_RANKINGS, _N_RANKS, _MAX_CONTRIBUTION = 100, 50, 3.0
# Two assumptions about how far drift moves click rates, from the rates of the learned order (0) to the rates of a
# random order (1); the detector keeps a sum for each. Users who trust the first ranks click on whatever is shown there,
# so their click rates move only part of the way.
_CHANGES = 1.0, 0.35
# Drift is noticed when the log-likelihood ratio exceeds two limits: the first number; and the second number plus the
# logarithm of the number of rankings since the detector began. So a busy service does not have a false alarm every day:
# the rate of false alarms per ranking falls as the number of rankings grows. In 216,000 rankings of simulated users
# without drift there were 12 false alarms, and 15 with propensities that fall too slowly.
_THRESHOLD, _ABOVE_LOGARITHM = 7.5, 0.5
# The learned order counts as informative if it gets at least this multiple of the clicks that a random order would get.
_MIN_CLICK_RATIO = 1.1
# Share of a model that stays when drift is noticed.
KEPT = 0.03
# Share that stays when propensities are estimated again, because the model learned with worse propensities so far. With
# trust-biased users, models reached .976 and .981 of the quality that labels give; without forgetting, .970 and .975.
KEPT_BY_ESTIMATE = 0.7


class ClickLearning(msgspec.Struct, frozen=True):
    """Settings of learning from clicks. The log of a store records every change, so that a replay gives the same pairs.

    Parameters
    ----------
    rule : str
        Which pairs a click makes. "shown": the clicked document is preferred to every document shown without a click,
        with weight ``c / max(p_k, c)``, where p_k is the propensity of its rank k, and c is 0.05. "shown_all": a
        clicked document is preferred to every other document shown, with the same weight. "fair_pairs": of two
        neighbors in random order, the lower one is preferred if only it was clicked on (Radlinski & Joachims,
        "Minimally invasive randomization for collecting unbiased preferences from clickthrough logs", AAAI 2006).
        "skip_above" and "last_click_skip_above": see `ranksvm.data.clicks.pairs_from_clicks`. The last three give all
        pairs the weight 1.
    source : str
        Source of propensities: "power" (``k ** -eta``), "given" (a file), or "estimated": ``k ** -eta``, with eta
        estimated repeatedly from the clicks in the store. "none": the store was created before this setting existed.
    eta : float
        Exponent of the power curve.
    propensity : list of float, optional
        With "given": the propensity of each rank from 1; lower ranks have the last one.
    rankings : int
        Number of rankings that eta was estimated from; 0 before the first estimate.
    note : str, optional
        Why eta could not be estimated.
    follow_drift : bool
        Whether SOLAR forgets most of what it learned when users click as if the order had no information
        (`DriftDetector`), and learns again from the entries since the drift began. When propensities are
        estimated again, SOLAR forgets a smaller part.
    """

    rule: str = "skip_above"
    source: str = "none"
    eta: float = 1.0
    propensity: list[float] | None = None
    rankings: int = 0
    note: str | None = None
    follow_drift: bool = False

    def changed(self, changes: dict[str, Any]) -> Self:
        """A copy of these settings with the changes in an entry of the log."""
        return msgspec.structs.replace(self, **changes)

    def propensities(self, rank: np.ndarray) -> np.ndarray:
        """Propensity of each rank, counted from 0; at least 0.05."""
        if self.propensity is None:
            return np.maximum((rank + 1.0) ** -self.eta, _MIN_PROPENSITY)
        table = np.asarray(self.propensity)
        return np.maximum(table[np.minimum(rank, len(table) - 1)], _MIN_PROPENSITY)

    def pairs(
        self, rank: np.ndarray, clicked: np.ndarray, first_pair: int | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Pairs (preferred, other) that the clicks on a ranking imply, and their weights (None if all are 1).

        Parameters
        ----------
        rank : ndarray of int64, shape (n_documents,)
            Rank of each document, from 0.
        clicked : ndarray of bool, shape (n_documents,)
            Whether it was clicked on.
        first_pair : int or None
            Rank, from 0, of the first document of the first pair of neighbors that were shown in random order; None if
            the ranking had no such pairs.

        Returns
        -------
        tuple of ndarray of int64, shape (n_pairs, 2), and ndarray of float64, shape (n_pairs,), or None
            The pairs and their weights.
        """
        if self.rule == "fair_pairs":
            return fair_pairs(rank, clicked, first_pair), None
        pairs = pairs_from_clicks(None, rank, clicked, rule=self.rule)
        if self.rule not in ("shown", "shown_all"):
            return pairs, None
        return pairs, _MIN_PROPENSITY / self.propensities(rank[pairs[:, 0]])

    def next_estimate(self, rankings: int) -> int:
        """Total number of rankings at the next estimate of eta; ``rankings`` is the number at the last estimate."""
        return max(_FIRST_ESTIMATE, min(int(_GROWTH * rankings), rankings + _MAX_BETWEEN))

    def described(self) -> dict[str, Any]:
        """A description of the propensities, as plain values for JSON."""
        return {
            "source": "power" if self.source == "none" else self.source,
            "eta": None if self.propensity is not None else self.eta,
            "rankings": self.rankings,
            "values": self.propensities(np.arange(10)).tolist(),
            "note": self.note,
        }


def fair_pairs(rank: np.ndarray, clicked: np.ndarray, first_pair: int | None) -> np.ndarray:
    """Pairs (preferred, other) of neighbors in random order: the lower one is preferred if only it was clicked on.

    Both orders of two neighbors are equally likely. So the better document is preferred more often, whether users look
    at both documents or only at the upper one. Propensities need not be known.
    """
    if first_pair is None:
        return np.empty((0, 2), dtype=np.int64)
    order = np.argsort(rank)
    upper, lower = order[first_pair:-1:2], order[first_pair + 1 :: 2]
    chosen = clicked[lower] & ~clicked[upper]
    return np.column_stack((lower[chosen], upper[chosen]))


def curve(source: str, eta: float = 1.0) -> dict[str, Any]:
    """Changes to a `ClickLearning` for the propensities ``k ** -eta``; ``source`` is "power" or "estimated"."""
    return {"source": source, **_CURVE, "eta": eta}


def bias_settings(bias: "PositionBias") -> dict[str, Any]:
    """Changes to a `ClickLearning` for the propensities of a `PositionBias`.

    Raises
    ------
    OptionError
        With trust bias, for which clicks would get negative weights.
    DataError
        When the propensity of a rank is not known.
    """
    if bias.offset is not None:
        raise OptionError(
            "the propensities come with trust bias (an offset for each rank), from which a service cannot learn: "
            "estimate them without --trust."
        )
    if not bias.identified:
        rank = int(np.isnan(bias.propensity).argmax()) + 1
        raise DataError(
            f"the propensity of rank {rank} is not known: estimate propensities of the ranks above (ranksvm bias "
            f"--ranks {rank - 1}), or a curve for all ranks (ranksvm bias --curve power)."
        )
    known = {"propensity": bias.propensity.tolist(), "rankings": bias.n_impressions}
    return {"source": "given", **_CURVE, **known}


class DriftDetector:
    """A cumulative sum test for a drop of click rates to the rates of a random order (Page, Biometrika 1954).

    Without drift, the click rate at rank k stays m_k, the mean over the rankings so far. After drift, the order has no
    information: every document is equally likely at every rank, and the click rate at rank k is the propensity p_k
    times the mean of ``m_j / p_j`` over all ranks j. Each ranking adds the logarithm of the likelihood ratio of its
    clicks to a sum. The sum begins again at 0 whenever it is negative, and drift is noticed when it exceeds a
    threshold. There is a sum for each of several assumed rates after drift.

    Parameters
    ----------
    state : dict, optional
        State of an earlier detector, to continue from.
    """

    def __init__(self, state: dict[str, Any] | None = None):
        self.state: dict[str, Any] = _beginning() if state is None else state
        if "before_drift" not in self.state:  # the first stores did not record when the sums were 0
            self.state = {**_beginning(), "shown": self.state["shown"], "clicks": self.state["clicks"]}

    def add(self, number: int, clicked: np.ndarray, propensity: np.ndarray) -> int | None:
        """Add a ranking.

        Parameters
        ----------
        number : int
            Its number; later rankings have larger ones.
        clicked : ndarray of bool, shape (n_documents,)
            Whether each document was clicked on, from the top.
        propensity : ndarray of float64, shape (n_documents,)
            Propensities of the ranks.

        Returns
        -------
        int or None
            With drift: the number of the last ranking before the drift, at which the sum was 0 for the last time; the
            detector then begins anew. None: no drift.
        """
        clicked, propensity = clicked[:_N_RANKS].astype(np.float64), propensity[:_N_RANKS]
        size, known = len(clicked), len(self.state["shown"])
        sums, before_drift = self.state["sums"], self.state["before_drift"]
        shown, clicks = np.zeros((2, max(size, known)))
        shown[:known], clicks[:known] = self.state["shown"], self.state["clicks"]
        if shown[0] >= _MIN_RANKINGS:
            before = (clicks[:size] + 0.5) / (shown[:size] + 1.0)
            after = np.clip(propensity * np.mean(before / propensity), 1e-6, 1.0 - 1e-6)
            # if the order has not been informative so far, drift cannot be noticed
            informative = before.sum() >= _MIN_CLICK_RATIO * after.sum()
            sums = [
                max(0.0, total + _log_ratio(clicked, before, before + change * (after - before)))
                for total, change in zip(sums, _CHANGES, strict=True)
            ]
            if not informative:
                sums = [0.0] * len(_CHANGES)
        before_drift = [last if total else number for total, last in zip(sums, before_drift, strict=True)]
        if max(sums) > max(_THRESHOLD, _ABOVE_LOGARITHM + np.log(max(1.0, shown[0]))):
            self.state = _beginning()
            return before_drift[sums.index(max(sums))]
        shown[:size] += 1.0
        clicks[:size] += clicked
        self.state = {
            "sums": sums,
            "before_drift": before_drift,
            "shown": shown.tolist(),
            "clicks": clicks.tolist(),
        }
        return None


def _beginning() -> dict[str, Any]:
    return {"sums": [0.0] * len(_CHANGES), "before_drift": [0] * len(_CHANGES), "shown": [], "clicks": []}


def _log_ratio(clicked: np.ndarray, before: np.ndarray, after: np.ndarray) -> float:
    """Log-likelihood of the clicks on a ranking for the rates after drift, minus that for the rates before; bounded."""
    ratio = clicked * np.log(after / before) + (1.0 - clicked) * np.log((1.0 - after) / (1.0 - before))
    return float(np.clip(ratio.sum(), -_MAX_CONTRIBUTION, _MAX_CONTRIBUTION))


def forget(model: "Model", keep: float) -> bool:
    """Make a model forget all but a share of what it learned; False if it cannot forget."""
    ranker = steps_of(model)[-1]
    if not hasattr(ranker, "forget") or ranker.average:
        return False
    ranker.forget(keep)
    return True
