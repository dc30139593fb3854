"""The rule that judges the difference between a figure found here and a published one."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["COUNT", "NDCG", "OTHER", "PERCENT", "Judgment", "Measure", "in_words", "rule"]

# Number of standard errors by which close means over random orders may differ.
STANDARD_ERRORS = 2.0


class Measure(NamedTuple):
    """A kind of figure: printed digits, largest difference that is close, and better direction (0: none)."""

    digits: int
    tolerance: float
    better: int = 1

    def shown(self, value: float) -> str:
        """The value with the digits of the paper."""
        return f"{value:,.{self.digits}f}"


# NDCG and MAP: another discount or treatment of ties changes the figures of a program by about this difference.
NDCG = Measure(4, 0.01)
# Pairwise accuracy in per cent.
PERCENT = Measure(2, 0.2)
# Quantities with one correct value.
COUNT = Measure(0, 0.0, 0)
# Ranks, and other quantities that depend on settings that the paper does not print.
OTHER = Measure(0, 0.0, 0)


@dataclass(frozen=True)
class Judgment:
    """The comparison of a figure with a published one.

    Parameters
    ----------
    ours, published : float
        The two figures.
    measure : Measure
        The kind of the figures.
    error : float, optional
        Standard error of the difference, if both are means over random orders. (Folds are the same for both figures, so
        the deviation between folds says nothing about the difference.)
    """

    ours: float
    published: float
    measure: Measure
    error: float = 0.0

    @property
    def difference(self) -> float:
        """Our figure minus the published one."""
        return self.ours - self.published

    @property
    def verdict(self) -> str:
        """One of "equal", "close", "better", "worse" and "different"."""
        unit = 10.0**-self.measure.digits
        # half a unit of the last printed digit, plus round-off
        if abs(self.difference) <= 0.5 * unit * (1 + 1e-9):
            return "equal"
        if abs(self.difference) <= max(self.measure.tolerance, STANDARD_ERRORS * self.error) + 1e-9 * unit:
            return "close"
        if self.measure.better == 0:
            return "different"
        return "better" if self.difference * self.measure.better > 0 else "worse"


def rule() -> str:
    """The rule, as text."""
    return (
        "A figure is *equal* to the published one if it rounds to the same printed digits, and *close* if it differs "
        f"by at most {NDCG.tolerance:g} (NDCG, MAP), {PERCENT.tolerance:g} percentage points (accuracy), or "
        f"{STANDARD_ERRORS:g} standard errors of the difference of two means over random orders, whichever is "
        "more; else it is *better* or *worse*, or *different* where no direction is better."
    )


def in_words(judgments: Iterable[Judgment]) -> str:
    """A text that says how often each verdict was reached."""
    counts = Counter(judgment.verdict for judgment in judgments)
    order = ("equal", "close", "better", "worse", "different")
    found = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
    total = sum(counts.values())
    return f"{total} published figure{'s' if total != 1 else ''}: {found}" if total else "no published figure judged"
