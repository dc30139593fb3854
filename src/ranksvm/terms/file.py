"""The data term (loss) of rows in a file: each reading of the file computes as many results as possible."""

from typing import Any

import numpy as np

from ranksvm.losses import LossSpec
from ranksvm.losses.round_off import LossRoundOff, margin_error_bound
from ranksvm.terms.hessian_cost import SINGLE_WORK, part_of_rows
from ranksvm.terms.parts.answers import Evaluation
from ranksvm.terms.parts.backend import Backend, Call, PointAt
from ranksvm.terms.parts.term import PartitionedPoint, PartitionedTerm

__all__ = ["FilePoint", "FileTerm"]

# If rows are dense and there are at most MAX_VARIABLES variables, a reading computes not only value and gradient, but
# also the Hessian, from HESSIAN_ROWS_PER_VARIABLE rows for each variable. (1,480,000 x 136, C = 1e-3: the reading takes
# a little longer, and each Newton step with this Hessian reduced the gradient to 0.06 to 0.09 of its length.
# MAX_VARIABLES is a guess.)
MAX_VARIABLES = 500
HESSIAN_ROWS_PER_VARIABLE = 1000
# Bounds on round-off are computed together with the value at a point. They allow for scores with this many more units
# of round-off than scores computed from weights, so that they also hold for the points of a line search.
MORE_UNITS = 64.0
# Each of several concurrent solvers holds PARTIAL_SUMS matrices of the size of a Hessian. The matrices of all solvers
# together may take SOLVERS_SHARE times the memory of the sample.
PARTIAL_SUMS = 14
SOLVERS_SHARE = 1.5
SEED = 0


class FilePoint(PartitionedPoint):
    """The result of an evaluation, and other results of the same reading.

    Parameters
    ----------
    at : PointAt
        The point.
    found : Evaluation
        The loss there.
    curvature : ndarray of float64, shape (n_variables, n_variables), or None
        ``X' H X`` there, or its estimate.
    round_off : tuple of (float, LossRoundOff), or None
        An error of margins, and bounds on the round-off of the evaluation that hold if no margin has a larger error.
    """

    def __init__(
        self,
        at: PointAt,
        found: Evaluation,
        curvature: np.ndarray | None,
        round_off: tuple[float, LossRoundOff] | None,
    ):
        super().__init__(at, found)
        self.curvature = curvature
        self.round_off = round_off


class FileTerm(PartitionedTerm):
    """`PartitionedTerm` over the parts of a file: each evaluation also computes a Hessian, from all or many rows.

    Parameters
    ----------
    backend : FileBackend
        The backend of the file, or one through which several solvers share its readings.
    loss : LossSpec
        The loss.
    n_threads : int
        Number of threads.
    sample_bytes : int
        Bytes that the sample may take.
    hessians : bool
        Whether readings may compute Hessians.
    **known : optional
        As in `PartitionedTerm`.

    Attributes
    ----------
    curvature_with_value : bool
        Whether readings compute Hessians.
    most_solvers : int
        Number of solvers that may share readings: Hessians of more would take too much memory.
    """

    def __init__(
        self,
        backend: Backend,
        loss: LossSpec,
        n_threads: int,
        sample_bytes: int,
        hessians: bool = True,
        **known: Any,
    ):
        super().__init__(backend, loss, n_threads, **known)
        self._sample_bytes = sample_bytes
        self._wanted = max(1, min(self._wanted, int(sample_bytes / self.row_bytes)))
        self.sample_rows = self._wanted
        n = self.n_variables
        self.curvature_with_value = hessians and self.dense and n <= MAX_VARIABLES
        self.squares_at_zero = False
        self.max_fraction = 1.0 if self.curvature_with_value else min(1.0, self._wanted / max(1, self.n_rows))
        # each solver holds about PARTIAL_SUMS matrices: partial sums of a Hessian, and the Hessians at two points
        hessians_bytes = PARTIAL_SUMS * 8 * n**2 if self.curvature_with_value else 1
        self.most_solvers = max(1, int(SOLVERS_SHARE * sample_bytes / hessians_bytes))
        # the fraction of the rows that Hessians use, and whether they are computed in float64
        fraction = part_of_rows(HESSIAN_ROWS_PER_VARIABLE * n / max(1, self.n_rows))
        self._included = fraction, self.n_rows * n**2 < SINGLE_WORK

    def with_backend(self, backend: Backend) -> "FileTerm":
        """The same loss over the same rows for another solver, through a backend that several solvers share."""
        known: dict[str, Any] = {"info": self.parts_info, "sample": self.fetch(), "fit": self.fit}
        how = self.loss, self.n_threads, self._sample_bytes, self.curvature_with_value
        other = FileTerm(backend, *how, **known)
        other._sizes = self._sizes
        return other

    def evaluate(self, w: np.ndarray, width: float | None, near: PartitionedPoint | None = None) -> FilePoint:
        """Value and gradient, and results that may be needed next, in one reading."""
        point = PointAt(next(self._numbers), w, width)
        calls = {"evaluate": Call("evaluate", (point,))}
        margin_error = None
        if self._sizes is None:
            calls["sizes"] = Call("sizes", ())
        else:
            margin_error = margin_error_bound(self._sizes.score(np.abs(w)), self._sizes.entries, MORE_UNITS)
            calls["round_off"] = Call("round_off", (point, width, margin_error, False))
        if self.curvature_with_value:
            calls["curvature"] = self._curvature_call(point)
        found = dict(zip(calls, self._round(*calls.values()), strict=True))
        self._sizes = found.get("sizes", self._sizes)
        round_off = None if margin_error is None else (margin_error, found["round_off"])
        return FilePoint(point, found["evaluate"], found.get("curvature"), round_off)

    def round_off(self, at: PartitionedPoint, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        """Bounds on round-off: those computed in the reading of the evaluation, unless they have to be tight."""
        if not tight and at.round_off is not None and margin_error <= at.round_off[0] and width == at.at.width:
            return at.round_off[1]
        return super().round_off(at, width, margin_error, tight)

    def curvature(self, at: PartitionedPoint, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        """``X' H X`` from the reading of the point; with ``double`` from all rows, now and in later readings."""
        if not self.curvature_with_value:
            return super().curvature(at, fraction, seed, double)
        if double and self._included != (1.0, True):
            self._included = 1.0, True
            at.curvature = None
        if at.curvature is None:
            at.curvature = self._round(self._curvature_call(at.at))[0]
        return at.curvature

    def curvature_diagonal(self, at: PartitionedPoint) -> np.ndarray:
        """The diagonal of ``X' H X``, or an estimate of it."""
        return (
            np.diagonal(self.curvature(at, 1.0, SEED, False))
            if self.curvature_with_value
            else super().curvature_diagonal(at)
        )

    def _curvature_call(self, point: PointAt) -> Call:
        fraction, double = self._included
        return Call("curvature", (point, fraction, SEED, double))
