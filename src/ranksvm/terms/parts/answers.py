"""What a part of the rows contributes to sums over all parts, such as its loss at points that a solver names."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from ranksvm.losses.protocol import LossSums
from ranksvm.losses.round_off import LossRoundOff, Sizes
from ranksvm.terms.host import ThreadedPoint, ThreadedTerm
from ranksvm.terms.parts.backend import Job, PartInfo, PointAt
from ranksvm.terms.parts.part import Part
from ranksvm.terms.protocol import Term

__all__ = ["Evaluation", "PartJob", "add", "answer", "part_info"]


class Evaluation(NamedTuple):
    """The loss and its gradient.

    Attributes
    ----------
    sums : LossSums
        The loss.
    gradient : ndarray of float64, shape (n_variables,)
        Its gradient.
    """

    sums: LossSums
    gradient: np.ndarray

    def plus(self, more: "Evaluation") -> "Evaluation":
        """The sum of both."""
        return Evaluation(self.sums.plus(more.sums), self.gradient + more.gradient)


class Listed(NamedTuple):
    """Values of rows, to be kept part by part instead of added up.

    Attributes
    ----------
    parts : list of ndarray
        Values of each part.
    """

    parts: list[np.ndarray]

    def plus(self, more: "Listed") -> "Listed":
        """Both, one after the other."""
        return Listed(self.parts + more.parts)


class LevelDesign(Protocol):
    """The methods of the design matrix of an additive model that are called here."""

    codes: np.ndarray

    def pair_sums(self, derivative: np.ndarray, n_levels: int) -> np.ndarray: ...
    def cell_counts(self, sample_weight: np.ndarray | None) -> np.ndarray: ...


class PartJob:
    """Computes on one part the sums that one solver requests (a job)."""

    def __init__(self, part: Part, job: Job, device: str):
        self.term = part.term(job.fit, job.loss, device)
        self.sample_weight = part.sample_weight
        self.points = part.points(job.fit, job.owner)
        for number in set(self.points) - set(job.live):
            del self.points[number]

    def at(self, point: PointAt) -> Term:
        """The evaluation of a point on this part: kept from an earlier call, or computed again."""
        if point.number not in self.points:
            self.points[point.number] = self.term.evaluate(point.w, point.width)
        return self.points[point.number]

    def evaluate(self, point: PointAt) -> Evaluation:
        found = self.at(point)
        return Evaluation(found.sums, found.gradient)

    def along(self, a: PointAt, b: PointAt, alphas: np.ndarray, width: float | None) -> np.ndarray:
        return np.stack(self.term.along(self.at(a), self.at(b), alphas, width))

    def curvature_product(self, point: PointAt, v: np.ndarray, double: bool) -> np.ndarray:
        return self.term.curvature_product(self.at(point), v, double)

    def curvature(self, point: PointAt, fraction: float, seed: int, double: bool) -> np.ndarray:
        return self.term.curvature(self.at(point), fraction, seed, double)

    def curvature_diagonal(self, point: PointAt) -> np.ndarray:
        return self.term.curvature_diagonal(self.at(point))

    def sizes(self) -> Sizes:
        return self.term.sizes()

    def round_off(self, point: PointAt, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        return self.term.round_off(self.at(point), width, margin_error, tight)

    def scores(self, w: np.ndarray) -> Listed:
        return Listed([np.asarray(self.term.scores(w))])

    # of additive models

    def pair_sums(self, point: PointAt, n_levels: int) -> np.ndarray:
        term, design = self._additive()
        rows, at = term.pairs.rows, self.at(point)
        assert isinstance(at, ThreadedPoint)
        derivative = term.score_gradient(at)
        if rows is not None:
            by_row = np.zeros(len(design.codes))
            by_row[rows] = derivative
            derivative = by_row
        return design.pair_sums(derivative, n_levels)

    def cell_counts(self) -> np.ndarray:
        return self._additive()[1].cell_counts(self.sample_weight)

    def _additive(self) -> tuple[ThreadedTerm, LevelDesign]:
        assert isinstance(self.term, ThreadedTerm)
        return self.term, cast(LevelDesign, self.term.design)


_ANSWERS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        PartJob.evaluate,
        PartJob.along,
        PartJob.curvature_product,
        PartJob.curvature,
        PartJob.curvature_diagonal,
        PartJob.sizes,
        PartJob.round_off,
        PartJob.scores,
        PartJob.pair_sums,
        PartJob.cell_counts,
    )
}


def answer(part: Part, jobs: Sequence[Job], device: str = "cpu") -> list[list[Any]]:
    """What one part contributes to a round, which computes sums over all parts.

    Parameters
    ----------
    part : Part
        The part.
    jobs : sequence of Job
        The requests.
    device : str
        Full name of the device that computes, or "cpu".

    Returns
    -------
    list of list
        For each job the results of its calls, which `add` adds up over the parts.
    """
    # another attempt at the same round may still be running here
    with part.lock:
        part_jobs = [(PartJob(part, job, device), job) for job in jobs]
        return [[_ANSWERS[call.name](part_job, *call.arguments) for call in job.calls] for part_job, job in part_jobs]


def add(a: list[list[Any]], b: list[list[Any]]) -> list[list[Any]]:
    """The sum of two results of `answer`.

    Parameters
    ----------
    a, b : list of list
        The results.

    Returns
    -------
    list of list
        Their sum, call by call.
    """
    return [[_sum(x, y) for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def _sum(x: Any, y: Any) -> Any:
    return x.plus(y) if hasattr(x, "plus") else x + y


def part_info(part: Part) -> PartInfo:
    """The size of a part.

    Parameters
    ----------
    part : Part
        The part.

    Returns
    -------
    PartInfo
        Its size.
    """
    pairs, design = part.pairs, part.design
    rank = min(pairs.n_pairs, pairs.n_rows)
    sizes = design.n_features, pairs.n_rows, pairs.n_queries, pairs.n_pairs, rank
    return PartInfo(*sizes, design.row_bytes, design.dense, pairs.weight)
