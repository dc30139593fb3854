"""A sum of data terms (losses) over parts of the rows, which a backend holds in a file or on a cluster."""

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ranksvm.losses import LossSpec
from ranksvm.losses.round_off import LossRoundOff, Sizes
from ranksvm.terms.hessian_cost import MAX_VARIABLES
from ranksvm.terms.host import ThreadedPoint, ThreadedTerm
from ranksvm.terms.parts.answers import Evaluation, PartJob
from ranksvm.terms.parts.backend import Backend, Call, Job, PartInfo, PointAt
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["PartitionedPoint", "PartitionedTerm"]

# Number of positions that a line search evaluates at a time: each round collects the results of all parts, so that many
# positions cost hardly more than one.
POSITIONS_AT_ONCE = 8
# The sample in this process has SAMPLE_ROWS_PER_VARIABLE rows per variable, beyond which the Hessian of a sample hardly
# improves (`hessian_cost`), or all rows if there are at most twice as many. It takes at most SAMPLE_BYTES bytes.
SAMPLE_ROWS_PER_VARIABLE = 500
SAMPLE_BYTES = 1 << 30
# The sample is divided for this number of threads, even if there are more or fewer: the last bits of the results depend
# on the division.
SAMPLE_SHARED_BY = 8
# For more than MAX_VARIABLES variables no Hessians are built, and a sample of this many rows only estimates a diagonal.
DIAGONAL_ROWS = 2001
SEED = 0

Result = TypeVar("Result")

_owners = itertools.count()


class PartitionedPoint:
    """The result of an evaluation: see `Term`.

    Parameters
    ----------
    at : PointAt
        The point.
    found : Evaluation
        The loss there.
    """

    def __init__(self, at: PointAt, found: Evaluation):
        self.at = at
        self.sums = found.sums
        self.gradient = found.gradient
        # other results of the same reading of a file: see `FilePoint`
        self.curvature: np.ndarray | None = None
        self.round_off: tuple[float, LossRoundOff] | None = None


class _Sample:
    """A sample of the rows in this process, and the last point evaluated on it."""

    def __init__(self, part: Part, loss: LossSpec, n_threads: int):
        self.term = ThreadedTerm(part.design, loss.with_pairs(part.pairs), n_threads, shared_by=SAMPLE_SHARED_BY)
        self._last: tuple[int, ThreadedPoint] | None = None

    def at(self, point: PointAt) -> ThreadedPoint:
        """The point with the same weights, evaluated on these rows."""
        if self._last is None or self._last[0] != point.number:
            if self._last is not None:
                self.term.release(self._last[1])
            self._last = point.number, self.term.evaluate(point.w, point.width)
        return self._last[1]


class PartitionedTerm:
    """The loss over all parts of a backend: see `DataTerm` for the methods.

    Values, gradients and products are sums over the parts; each takes one round of the backend. Hessians come from a
    sample of the rows, which is fetched once: no matrix of n_variables^2 numbers is sent.

    Parameters
    ----------
    backend : Backend
        The backend that has the parts.
    loss : LossSpec
        The loss.
    n_threads : int
        Number of threads in this process, for work on the sample.
    positions_at_once : int
        Number of positions of a line to evaluate in one round.
    info : sequence of PartInfo, optional
        The sizes of the parts, if they are known.
    sample : Part, optional
        The sample, if it has been fetched.
    fit : str, optional
        Name of the loss over these rows, if another term over the same rows and loss has one already.
    sample_rows : int, optional
        Number of rows of the sample; None: as many as Hessians need.

    Attributes
    ----------
    n_reductions : int
        Number of rounds so far.
    n_queries, n_pairs : int
        Numbers of queries and of pairs.
    """

    curvature_with_value = False
    squares_at_zero = False
    sample_rows = 0
    # how many solvers may share rounds
    most_solvers = 1000

    def __init__(
        self,
        backend: Backend,
        loss: LossSpec,
        n_threads: int = 1,
        positions_at_once: int = POSITIONS_AT_ONCE,
        *,
        info: Sequence[PartInfo] | None = None,
        sample: Part | None = None,
        fit: str | None = None,
        sample_rows: int | None = None,
    ):
        self.backend = backend
        self.loss = loss
        self.n_threads = n_threads
        self.positions_at_once = positions_at_once
        self.fit = os.urandom(12).hex() if fit is None else fit
        self.parts_info = list(backend.info() if info is None else info)
        parts = self.parts_info
        self.n_variables = parts[0].n_variables
        self.n_rows = sum(part.n_rows for part in parts)
        self.n_queries = sum(part.n_queries for part in parts)
        self.n_pairs = sum(part.n_pairs for part in parts)
        self.curvature_rank = sum(part.curvature_rank for part in parts)
        self.row_bytes = sum(part.n_rows * part.row_bytes for part in parts) / max(1, self.n_rows)
        self.dense = all(part.dense for part in parts)
        self.weight = tree_sum([part.weight for part in parts], float.__add__)
        self.n_reductions = 0
        self._wanted = _sample_rows(self, sample_rows)
        self.max_fraction = min(1.0, self._wanted / max(1, self.n_rows))
        self._owner = next(_owners)
        self._numbers = itertools.count()
        self._live: set[int] = set()
        self._fetched = sample
        self._sample: _Sample | None = None
        self._sizes: Sizes | None = None

    def with_backend(self, backend: Backend) -> "PartitionedTerm":
        """The same loss over the same rows, for another solver, through a backend that several solvers share.

        Parameters
        ----------
        backend : Backend
            The backend.

        Returns
        -------
        PartitionedTerm
            The term, which shares the sample.
        """
        options = self.loss, self.n_threads, self.positions_at_once
        return PartitionedTerm(backend, *options, info=self.parts_info, sample=self.fetch(), fit=self.fit)

    def fetch(self) -> Part | None:
        """The sample, fetched on the first call.

        Returns
        -------
        Part or None
            Its rows, which come from all parts that have pairs; None if no part has pairs.
        """
        if self._fetched is None and self.weight > 0.0:
            self._fetched = Part.joined(self.backend.sample(self._wanted, SEED))
        return self._fetched

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, w: np.ndarray, width: float | None, near: PartitionedPoint | None = None) -> PartitionedPoint:
        """Value and gradient, in one round."""
        point = PointAt(next(self._numbers), w, width)
        self._live.add(point.number)
        calls = [Call("evaluate", (point,))]
        if self._sizes is None:  # the end of a fit needs sizes, and this reading of X can compute them
            calls.append(Call("sizes", ()))
        found, *sizes = self._round(*calls)
        if sizes:
            self._sizes = sizes[0]
        return PartitionedPoint(point, found)

    def between(self, a: PartitionedPoint, b: PartitionedPoint, alpha: float, width: float | None) -> PartitionedPoint:
        """Value and gradient on a segment: evaluated from the weights, so that a part can do it again."""
        w = a.at.w
        return self.evaluate(w if a is b else w + alpha * (b.at.w - w), width)

    def along(
        self, a: PartitionedPoint, b: PartitionedPoint, alphas: np.ndarray, width: float | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and slopes at positions on a segment."""
        values, slopes = self._reduce(PartJob.along, a.at, b.at, alphas, width)
        return values, slopes

    def scores(self, w: np.ndarray) -> list[np.ndarray]:
        """``X w`` of each part."""
        return self._reduce(PartJob.scores, w).parts

    def sizes(self) -> Sizes:
        """Sizes of the rows of all parts."""
        if self._sizes is None:
            self._sizes = self._reduce(PartJob.sizes)
        return self._sizes

    def round_off(self, at: PartitionedPoint, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        """Bounds on the round-off of an evaluation."""
        return self._reduce(PartJob.round_off, at.at, width, margin_error, tight)

    def visit_pairs(self) -> bool:
        """Return False: nothing changes, as the parts keep their way of summing over pairs."""
        return False

    def release(self, at: PartitionedPoint) -> None:
        """Mark an evaluation as no longer needed: parts learn of it in the next round."""
        self._live.discard(at.at.number)

    # -- sums of additive models -------------------------------------------------------------------------------------

    def pair_sums(self, at: PartitionedPoint, n_levels: int) -> np.ndarray:
        """For every two features of an additive model, the sum of the loss's derivative over the rows of each cell."""
        return self._reduce(PartJob.pair_sums, at.at, n_levels)

    def cell_counts(self) -> np.ndarray:
        """Number of rows, or sum of their weights, in each cell (pair of levels) of the functions of two features."""
        return self._reduce(PartJob.cell_counts)

    # -- curvature ---------------------------------------------------------------------------------------------------

    def curvature_product(self, at: PartitionedPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``X' H X v``, in one round."""
        return self._reduce(PartJob.curvature_product, at.at, v, double)

    def curvature(self, at: PartitionedPoint, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        """``X' H X`` of a fraction of the rows, or of the whole sample if that is less."""
        sample = self._sampled()
        if sample is None:
            return np.zeros((self.n_variables, self.n_variables))
        fraction = min(1.0, fraction * self.n_rows / sample.term.n_rows)
        curvature = sample.term.curvature(sample.at(at.at), fraction, seed, double)
        curvature *= self.weight / sample.term.weight
        return curvature

    def curvature_diagonal(self, at: PartitionedPoint) -> np.ndarray:
        """The diagonal of ``X' H X``, from the sample if rows are dense, otherwise from all rows in one round."""
        sample = self._sampled() if self.dense else None
        if sample is None:
            return self._reduce(PartJob.curvature_diagonal, at.at)
        return self.weight / sample.term.weight * sample.term.curvature_diagonal(sample.at(at.at))

    def sample_at(self, at: PartitionedPoint) -> tuple[ThreadedTerm, ThreadedPoint] | None:
        """The term of the whole sample, and its point with the same weights; None if there is no pair."""
        sample = self._sampled()
        return None if sample is None else (sample.term, sample.at(at.at))

    def differences(self, count: int) -> np.ndarray | None:
        """Differences of ``count`` pairs of rows of the sample."""
        sample = self._sampled()
        return None if sample is None else sample.term.differences(count)

    def sample(self, n_rows: int, seed: int) -> ThreadedTerm | None:
        """A term over part of the sample's rows, or over all of them if at least as many are requested."""
        sample = self._sampled()
        if sample is None:
            return None
        return sample.term if n_rows >= sample.term.n_rows else sample.term.sample(n_rows, seed)

    def close(self) -> None:
        """Free the caches of the parts for this term."""
        self.backend.close(self.fit)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _reduce(self, method: Callable[..., Result], *arguments: object) -> Result:
        total: Result = self._round(Call(method.__name__, arguments))[0]
        return total

    def _round(self, *calls: Call) -> list[Any]:
        self.n_reductions += 1
        return self.backend.round([Job(self.fit, self._owner, self.loss, tuple(sorted(self._live)), calls)])[0]

    def _sampled(self) -> _Sample | None:
        if self._sample is None and (part := self.fetch()) is not None:
            self._sample = _Sample(part, self.loss, self.n_threads)
        return self._sample


def _sample_rows(term: PartitionedTerm, wanted: int | None) -> int:
    """Number of rows of the sample in this process."""
    n = term.n_variables
    if wanted is None:
        wanted = SAMPLE_ROWS_PER_VARIABLE * n if n <= MAX_VARIABLES else DIAGONAL_ROWS
    allowed = max(1, int(SAMPLE_BYTES / max(1.0, term.row_bytes)))
    return min(allowed, term.n_rows if term.n_rows <= 2 * wanted else wanted)
