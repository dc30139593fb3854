"""The sum of the terms of several devices, each with whole queries of its own."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ranksvm._util.threads import parallel_map
from ranksvm.losses.protocol import LossSums
from ranksvm.losses.round_off import LossRoundOff, Sizes
from ranksvm.terms.device.term import DevicePoint, DeviceTerm
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["DevicesPoint", "DevicesTerm"]

Result = TypeVar("Result")

# Number of positions that a line search evaluates in one call of `along`: the devices wait for each other once per
# call.
POSITIONS_AT_ONCE = 4


class DevicesPoint:
    """The result of an evaluation: see `Term`.

    Parameters
    ----------
    parts : list of DevicePoint
        The results of the devices.
    """

    def __init__(self, parts: list[DevicePoint]):
        self.parts = parts
        self.sums = tree_sum([part.sums for part in parts], LossSums.plus)
        self.gradient = tree_sum([part.gradient for part in parts], np.add)


class DevicesTerm:
    """``loss(X w)`` with the queries shared out to several devices: see `DataTerm` for the methods.

    Every device is driven by a thread of its own. The results of the devices are added up on the host, as a balanced
    binary tree over their order, so that a fit gives the same bits every time.

    Parameters
    ----------
    parts : sequence of DeviceTerm
        The terms, over the same variables; at least one. Some may be without pairs.
    """

    positions_at_once = POSITIONS_AT_ONCE
    max_fraction = 1.0
    curvature_with_value = False
    squares_at_zero = False
    sample_rows = 0

    def __init__(self, parts: Sequence[DeviceTerm]):
        self.parts = list(parts)
        self.device_names = [name for part in self.parts for name in part.device_names]
        self.n_variables = self.parts[0].n_variables
        self.n_rows = sum(part.n_rows for part in self.parts)
        self.curvature_rank = sum(part.curvature_rank for part in self.parts)
        self.row_bytes = sum(part.n_rows * part.row_bytes for part in self.parts) / max(1, self.n_rows)
        self.dense = all(part.dense for part in self.parts)
        self.weight = tree_sum([part.weight for part in self.parts], float.__add__)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, width: float | None, near: DevicesPoint | None = None) -> DevicesPoint:
        """Value and gradient."""
        return DevicesPoint(self._each(lambda part: part.evaluate(w, width)))

    def between(self, a: DevicesPoint, b: DevicesPoint, alpha: float, width: float | None) -> DevicesPoint:
        """Value and gradient on a segment."""
        return DevicesPoint(self._each(lambda part, here, there: part.between(here, there, alpha, width), a, b))

    def along(
        self, a: DevicesPoint, b: DevicesPoint, alphas: np.ndarray, width: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes at positions on a segment."""
        values, slopes = self._sum(lambda part, here, there: np.stack(part.along(here, there, alphas, width)), a, b)
        return values, slopes

    def scores(self, w: np.ndarray) -> list[np.ndarray]:
        """``X w`` of each part."""
        return self._each(lambda part: part.scores(w))

    def sizes(self) -> Sizes:
        """Sizes of the rows of all parts."""
        sizes: list[Sizes] = self._each(lambda part: part.sizes())
        return tree_sum(sizes, Sizes.plus)

    def round_off(self, at: DevicesPoint, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        """Bounds on the round-off of an evaluation."""
        bounds: list[LossRoundOff] = self._each(lambda part, own: part.round_off(own, width, margin_error, tight), at)
        return tree_sum(bounds, LossRoundOff.plus)

    def visit_pairs(self) -> bool:
        """Return False: nothing changes, as devices keep their way of summing over pairs."""
        return False

    def release(self, at: DevicesPoint) -> None:
        """Mark an evaluation as no longer needed."""
        for part, own in zip(self.parts, at.parts, strict=True):
            part.release(own)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def curvature_product(self, at: DevicesPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``X' H X v``."""
        return self._sum(lambda part, own: part.curvature_product(own, v, double), at)

    def curvature(self, at: DevicesPoint, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        """``X' H X``, or its estimate from a fraction of the rows of each part."""
        return self._sum(lambda part, own: part.curvature(own, fraction, seed, double), at)

    def curvature_diagonal(self, at: DevicesPoint) -> np.ndarray:
        """The diagonal of ``X' H X``, or for sparse X an estimate of it."""
        return self._sum(lambda part, own: part.curvature_diagonal(own), at)

    def differences(self, count: int) -> np.ndarray | None:
        """Return None: the rows stay on the devices."""
        return None

    def sample(self, n_rows: int, seed: int) -> "DevicesTerm | None":
        """The sum of terms over samples, one from each device, each with the same share of its rows."""
        share = n_rows / max(1, self.n_rows)
        samples = [part.sample(max(1, int(share * part.n_rows)), seed) for part in self.parts if part.weight > 0.0]
        found = [sample for sample in samples if sample is not None]
        return DevicesTerm(found) if found else None

    # -- private methods ---------------------------------------------------------------------------------------------

    def _each(self, method: Callable[..., Result], *points: DevicesPoint) -> list[Result]:
        """Call a method for all devices at the same time, each with its parts of the points; return the results."""
        shares = zip(self.parts, *(point.parts for point in points), strict=True)
        return parallel_map(lambda share: method(*share), list(shares), len(self.parts))

    def _sum(self, method: Callable[..., np.ndarray], *points: DevicesPoint) -> np.ndarray:
        return tree_sum(self._each(method, *points), np.add)
