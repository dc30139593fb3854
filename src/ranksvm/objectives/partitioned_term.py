"""A sum of data terms over parts of the rows, for a cluster, a set of devices or a partitioned file."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ranksvm.losses.protocol import LossSums
from ranksvm.losses.round_off import LossRoundOff
from ranksvm.objectives.data_term import DataTerm, Sizes, Term

__all__ = ["PartitionedPoint", "PartitionedTerm", "tree_sum"]

Summand = TypeVar("Summand")

# A reduction collects the results of all parts: many positions of a line cost hardly more than one.
POSITIONS_AT_ONCE = 8


class PartitionedPoint:
    """The result of an evaluation: see `Term`.

    Parameters
    ----------
    parts : list of Term
        The results of the parts.
    """

    def __init__(self, parts: list[Term]):
        self.parts = parts
        self.sums = tree_sum([part.sums for part in parts], LossSums.plus)
        self.gradient = tree_sum([part.gradient for part in parts], np.add)


class PartitionedTerm:
    """The sum of data terms over parts of the rows, whole queries each: see `DataTerm` for the methods.

    Sums over the parts are taken as a balanced binary tree over their order: they depend on the partition, but not on
    the worker or the order in which parts are computed.

    Parameters
    ----------
    parts : sequence of DataTerm
        The terms, over the same variables; at least one. Some may be without pairs.
    positions_at_once : int
        Number of positions of a line to evaluate in one reduction.

    Attributes
    ----------
    n_reductions : int
        Number of reductions so far.
    """

    def __init__(self, parts: Sequence[DataTerm], positions_at_once: int = POSITIONS_AT_ONCE):
        self.parts = list(parts)
        self.positions_at_once = positions_at_once
        self.n_variables = self.parts[0].n_variables
        self.n_rows = sum(part.n_rows for part in self.parts)
        self.curvature_rank = sum(part.curvature_rank for part in self.parts)
        self.row_bytes = sum(part.n_rows * part.row_bytes for part in self.parts) / max(1, self.n_rows)
        self.dense = all(part.dense for part in self.parts)
        self.weight = tree_sum([part.weight for part in self.parts], float.__add__)
        self.n_reductions = 0

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, width: float | None, near: PartitionedPoint | None = None) -> PartitionedPoint:
        """Value and gradient; sorting starts from the order of documents at ``near``."""
        beside = near.parts if near else [None] * len(self.parts)
        self.n_reductions += 1
        return PartitionedPoint([part.evaluate(w, width, at) for part, at in zip(self.parts, beside, strict=True)])

    def between(self, a: PartitionedPoint, b: PartitionedPoint, alpha: float, width: float | None) -> PartitionedPoint:
        """Value and gradient on a segment."""
        self.n_reductions += 1
        ends = zip(self.parts, a.parts, b.parts, strict=True)
        return PartitionedPoint([part.between(here, there, alpha, width) for part, here, there in ends])

    def along(
        self, a: PartitionedPoint, b: PartitionedPoint, alphas: np.ndarray, width: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes at positions on a segment."""
        ends = zip(self.parts, a.parts, b.parts, strict=True)
        values, slopes = self._reduce([np.stack(part.along(here, there, alphas, width)) for part, here, there in ends])
        return values, slopes

    def scores(self, w: np.ndarray) -> list[Any]:
        """``X w`` of each part."""
        return [part.scores(w) for part in self.parts]

    def sizes(self) -> Sizes:
        """Sizes of the rows of all parts."""
        return tree_sum([part.sizes() for part in self.parts], Sizes.plus)

    def round_off(self, at: PartitionedPoint, width: float | None, off: float, sharp: bool) -> LossRoundOff:
        """Bounds on the round-off of an evaluation."""
        found = [part.round_off(own, width, off, sharp) for part, own in self._with(at)]
        return tree_sum(found, LossRoundOff.plus)

    def release(self, at: PartitionedPoint) -> None:
        """Mark an evaluation as no longer needed."""
        for part, own in zip(self.parts, at.parts, strict=True):
            part.release(own)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def curvature_product(self, at: PartitionedPoint, v: np.ndarray) -> np.ndarray:
        """``X' H X v``."""
        return self._reduce([part.curvature_product(own, v) for part, own in self._with(at)])

    def curvature(self, at: PartitionedPoint, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        """``X' H X``, or its estimate from a fraction of the rows of each part."""
        return self._reduce([part.curvature(own, fraction, seed, double) for part, own in self._with(at)])

    def curvature_diagonal(self, at: PartitionedPoint) -> np.ndarray:
        """The diagonal of ``X' H X``, or for sparse X an estimate of it."""
        return self._reduce([part.curvature_diagonal(own) for part, own in self._with(at)])

    def sample(self, n_rows: int, seed: int) -> "PartitionedTerm | None":
        """The sum of terms over an equal share of each part's rows."""
        share = n_rows / max(1, self.n_rows)
        samples = [part.sample(max(1, int(share * part.n_rows)), seed) for part in self.parts if part.weight > 0.0]
        found = [sample for sample in samples if sample is not None]
        return PartitionedTerm(found, self.positions_at_once) if found else None

    # -- private methods ---------------------------------------------------------------------------------------------

    def _with(self, at: PartitionedPoint) -> Any:
        return zip(self.parts, at.parts, strict=True)

    def _reduce(self, found: list[np.ndarray]) -> np.ndarray:
        self.n_reductions += 1
        return tree_sum(found, np.add)


def tree_sum(found: Sequence[Summand], plus: Callable[[Summand, Summand], Summand]) -> Summand:
    """The sum of a sequence as a balanced binary tree over its order.

    Parameters
    ----------
    found : sequence
        The items to add; at least one.
    plus : callable
        Adds two of them.

    Returns
    -------
    object
        The sum; for one item the item itself.
    """
    if len(found) == 1:
        return found[0]
    middle = (len(found) + 1) // 2
    return plus(tree_sum(found[:middle], plus), tree_sum(found[middle:], plus))
