"""Conventions: the choices in which evaluation tools differ, each named after its tool."""

import dataclasses
import math
from typing import Literal

from ranksvm.exceptions import OptionError

__all__ = ["Convention", "CONVENTIONS", "convention_named"]

# The smallest number above 0: the threshold for "any positive label is relevant".
_ANY_POSITIVE = math.nextafter(0.0, 1.0)


@dataclasses.dataclass(frozen=True)
class Convention:
    """How gains, discounts, ties and degenerate queries are treated.

    `CONVENTIONS` holds the known ones; ``dataclasses.replace(CONVENTIONS["default"], gain="linear")`` makes another.

    Parameters
    ----------
    name : str, default "default"
        Name of the convention in results.
    gain : {"exponential", "linear"}, default "exponential"
        Gain of label y: ``2^y - 1`` or ``y``. Labels below 0 have gain 0.
    discount : {"log2", "letor"}, default "log2"
        Discount of rank r: ``1 / log2(1 + r)`` or ``1 / log2(max(2, r))``.
    ties : {"average", "order", "docid"}, default "average"
        Treatment of documents with equal scores: the expected value over random orders, the order of the rows, or
        descending order of ``docid``.
    relevance : float, default 5e-324
        Labels of at least this value are relevant, for metrics with binary relevance. The default means every positive
        label.
    no_relevant : float, default 0.0
        Value of average precision and recall in a query without a relevant document, and of NDCG and mean NDCG in a
        query whose gains are all 0.
    short_ndcg_is_zero : bool, default False
        NDCG@k of a list shorter than k is 0.
    truncated_map : bool, default False
        Average precision at k is divided by the largest possible number of relevant documents in k places, not by the
        number of all relevant ones.
    precision_by_length : bool, default False
        P@k of a list shorter than k is divided by its length, not by k.
    threshold_map : bool, default False
        The precision at a relevant document is the one at the end of its tie, as in a curve over thresholds.
    float32_scores : bool, default False
        Scores are first rounded to single precision, which creates ties.

    Examples
    --------
    >>> from ranksvm import metrics
    >>> ours = metrics.Convention("linear, ties as they come", gain="linear", ties="order")
    >>> found = metrics.evaluate([2, 0, 1], [0.9, 0.5, 0.1], [1, 1, 1], "ndcg@3", convention=ours)
    >>> found.convention, round(found["ndcg@3"], 4)
    ('linear, ties as they come', 0.9502)
    """

    name: str = "default"
    gain: Literal["exponential", "linear"] = "exponential"
    discount: Literal["log2", "letor"] = "log2"
    ties: Literal["average", "order", "docid"] = "average"
    relevance: float = _ANY_POSITIVE
    no_relevant: float = 0.0
    short_ndcg_is_zero: bool = False
    truncated_map: bool = False
    precision_by_length: bool = False
    threshold_map: bool = False
    float32_scores: bool = False

    def __post_init__(self) -> None:
        for field, allowed in _CHOICES.items():
            if getattr(self, field) not in allowed:
                raise OptionError(f"{field} of a convention must be one of {allowed}, got {getattr(self, field)!r}.")


_CHOICES = {
    "gain": ("exponential", "linear"),
    "discount": ("log2", "letor"),
    "ties": ("average", "order", "docid"),
}

CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in (
        Convention(),
        # Eval-Score-4.0.pl of LETOR 4.0, and the script of LETOR 3.0
        Convention("letor", discount="letor", ties="order", relevance=1.0, short_ndcg_is_zero=True),
        # eval-score-mslr.pl: the same with five grades, of which the upper three are relevant
        Convention("mslr", discount="letor", ties="order", relevance=2.0, short_ndcg_is_zero=True),
        # trec_eval 9 stores scores as floats and breaks ties by descending document id
        Convention("trec", gain="linear", ties="docid", relevance=1.0, float32_scores=True),
        # LightGBM 4, rank_metric.hpp and map_metric.hpp; a label above 0.5 is relevant
        Convention("lightgbm", ties="order", relevance=math.nextafter(0.5, 1.0), no_relevant=1.0, truncated_map=True),
        # XGBoost 3, rank_metric.cc
        Convention(
            "xgboost",
            ties="order",
            no_relevant=1.0,
            truncated_map=True,
            precision_by_length=True,
            float32_scores=True,
        ),
        # sklearn.metrics.ndcg_score and average_precision_score
        Convention("sklearn", gain="linear", threshold_map=True),
    )
}


def convention_named(convention: str | Convention) -> Convention:
    """The convention with a given name; a `Convention` is returned unchanged.

    Parameters
    ----------
    convention : str or Convention
        A key of `CONVENTIONS`, in any case, or a convention.

    Returns
    -------
    Convention
        The convention.

    Raises
    ------
    OptionError
        When there is no such convention; the message lists the known ones.
    """
    if isinstance(convention, Convention):
        return convention
    known = CONVENTIONS.get(convention.lower()) if isinstance(convention, str) else None
    if known is None:
        raise OptionError(f"unknown convention {convention!r}: choose from {', '.join(CONVENTIONS)}.")
    return known
