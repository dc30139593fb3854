"""How a service learns from clicks: the rule that converts clicks to pairs, and the propensities that weight pairs."""

from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from ranksvm.data.clicks import pairs_from_clicks
from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from ranksvm.clicks import PositionBias

__all__ = ["RULES", "ClickLearning", "bias_settings", "curve", "fair_pairs"]

RULES = ("shown", "shown_all", "fair_pairs", "skip_above", "last_click_skip_above")
# Fields of a ClickLearning whose propensities are not estimated yet.
_CURVE: dict[str, Any] = {"eta": 1.0, "propensity": None, "rankings": 0, "note": None}
# Lower limit of propensities, so that no click has more than 20 times the weight of a click at rank 1. With three
# kinds of simulated users, limits of 10 and 40 times gave about the same quality.
_MIN_PROPENSITY = 0.05
# Number of rankings at the first estimate of propensities, the factor by which this number grows until the next
# estimate, and the maximum number of rankings between two estimates.
_FIRST_ESTIMATE, _GROWTH, _MAX_BETWEEN = 250, 1.5, 10_000


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
        (`drift.DriftDetector`), and learns again from the entries since the drift began. When propensities are
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
