"""The interface of a backend, which stores the parts of a sum over all rows and computes with them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ranksvm.losses import LossSpec
from ranksvm.terms.parts.part import Part

__all__ = ["Backend", "Call", "Job", "PartInfo", "PointAt"]


class PointAt(NamedTuple):
    """A point (weights and width), by its number, with all that parts need to evaluate the loss there again.

    Attributes
    ----------
    number : int
        Number of the point among the points of its owner (a solver).
    w : ndarray of float64, shape (n_variables,)
        The weights.
    width : float or None
        The width of the loss.
    """

    number: int
    w: np.ndarray
    width: float | None


class Call(NamedTuple):
    """A request for one sum over all parts.

    Attributes
    ----------
    name : str
        Name of the sum, a function of `ranksvm.terms.parts.answers`.
    arguments : tuple
        Its arguments: arrays, numbers and `PointAt`.
    """

    name: str
    arguments: tuple[Any, ...]


class Job(NamedTuple):
    """The requests of one solver in a round.

    Attributes
    ----------
    fit : str
        A name for the loss over the rows: parts keep one compiled data term for each name.
    owner : int
        Number of the solver; parts keep evaluated points for each solver.
    loss : LossSpec
        The loss.
    live : tuple of int
        The numbers of the owner's points that later calls may name. Parts forget the others.
    calls : tuple of Call
        The sums that it needs.
    """

    fit: str
    owner: int
    loss: LossSpec
    live: tuple[int, ...]
    calls: tuple[Call, ...]


class PartInfo(NamedTuple):
    """The size of a part.

    Attributes
    ----------
    n_variables, n_rows, n_queries, n_pairs : int
        Numbers of features, of rows in queries, of queries and of pairs.
    curvature_rank, row_bytes, dense, weight
        As in `DataTerm`.
    """

    n_variables: int
    n_rows: int
    n_queries: int
    n_pairs: int
    curvature_rank: int
    row_bytes: float
    dense: bool
    weight: float


class Backend(Protocol):
    """Stores the rows in parts of whole queries, and computes sums over all parts.

    A sum is taken as a balanced binary tree over the order of the parts (`tree_sum`): its bits depend on the partition,
    but not on the backend, nor on which worker computes which part. Answers are functions of the arguments and the part
    alone, so a part that has lost its caches gives the same answers.
    """

    def put(self, parts: Sequence[Any]) -> None:
        """Take the parts, in their order; called once, before any other method."""

    def round(self, jobs: Sequence[Job]) -> list[list[Any]]:
        """For each job, the sums over all parts that its calls request."""

    def sample(self, n_rows: int, seed: int) -> list[Part]:
        """About ``n_rows`` rows, an equal share of every part, in this process."""

    def info(self) -> list[PartInfo]:
        """The sizes of the parts, in their order."""

    def close(self, fit: str | None = None) -> None:
        """Free the caches of the parts for a fit; without a fit, also the parts."""
