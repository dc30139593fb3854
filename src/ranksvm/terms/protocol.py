"""The interface of data terms: the loss over rows in any backend, as a function of variables on the host."""

from typing import Any, Protocol

import numpy as np

from ranksvm.losses.protocol import LossSums
from ranksvm.losses.round_off import LossRoundOff, Sizes

__all__ = ["DataTerm", "Term"]


class Term(Protocol):
    """The result of an evaluation. Outside its backend only these attributes are read.

    Attributes
    ----------
    sums : LossSums
        The loss of the scores ``X w``, without C.
    gradient : ndarray of float64, shape (n_variables,)
        ``X' dloss/ds``, without C.
    """

    @property
    def sums(self) -> LossSums: ...
    @property
    def gradient(self) -> np.ndarray: ...


class DataTerm(Protocol):
    """The loss of the scores ``X w`` as a function of w, without C and without a regularizer.

    It contains everything that depends on rows. Vectors of ``n_variables`` numbers are arrays of float64 on the host;
    rows, scores and pairs stay in the backend. ``width`` is the width of the Huberized hinge that is evaluated,
    None for other losses: it is an argument of every evaluation and not stored between evaluations. The result of an
    evaluation belongs to the term that computed it, until it is released.

    A *reduction* is a sum over all rows that is collected on the host; it determines the cost if rows are distributed
    over processes or machines.

    Attributes
    ----------
    n_variables : int
        Number of variables.
    n_rows : int
        Number of rows in queries that have pairs of this term.
    curvature_rank : int
        The rank of the Hessian is at most this.
    row_bytes : float
        Bytes of X that are read per row.
    dense : bool
        Whether X is dense.
    weight : float
        Sum of the weights of all pairs; 0 if there are none.
    positions_at_once : int
        Number of positions to pass to `along` at a time: 1 if each costs as much as the first, more if a reduction
        costs more than a position.
    max_fraction : float
        The largest fraction of the rows that an explicit Hessian can use: less than 1 if this process
        has only a sample of the rows.
    curvature_with_value : bool
        Whether an evaluation also computes the curvature, because reading the rows takes longer than that. A
        Hessian of ``fraction`` 1 then costs nothing more, but may be an estimate, good enough for a step.
    squares_at_zero : bool
        Whether a Hessian at w = 0, where all pairs are active, takes about half the multiplications of others.
    sample_rows : int
        If ``curvature_with_value``: number of rows of the sample whose problem gives the starting point.
    """

    n_variables: int
    n_rows: int
    curvature_rank: int
    row_bytes: float
    dense: bool
    weight: float
    positions_at_once: int
    max_fraction: float
    curvature_with_value: bool
    squares_at_zero: bool
    sample_rows: int

    def evaluate(self, w: np.ndarray, width: float | None, near: Any = None) -> Term:
        """The loss and its gradient at w, in one reduction; ``near`` is a `Term` evaluated nearby, if there is one."""

    def along(self, a: Any, b: Any, alphas: np.ndarray, width: float | None) -> tuple[np.ndarray, np.ndarray]:
        """The loss and its slope at several positions on the segment from a to b, in one reduction, without X."""

    def between(self, a: Any, b: Any, alpha: float, width: float | None) -> Term:
        """The loss and its gradient at one position on the segment from a to b, in one reduction."""

    def curvature_product(self, at: Any, v: np.ndarray, double: bool = True) -> np.ndarray:
        """``X' H X v``, H the Hessian of the loss with respect to the scores, in one reduction.

        Unless ``double``, sums over the values of a row, and over some hundreds of rows, may be in float32.
        """

    def curvature(self, at: Any, fraction: float, seed: int, double: bool = True) -> np.ndarray:
        """``X' H X``, or its estimate from a fraction of the rows, shape (n_variables, n_variables).

        The products are in float32 unless ``double``, or unless float32 cannot represent them: float32 is enough if
        the matrix only preconditions.
        """

    def curvature_diagonal(self, at: Any) -> np.ndarray:
        """The diagonal of ``X' H X``, or for sparse X an estimate of it, shape (n_variables,)."""

    def differences(self, count: int) -> np.ndarray | None:
        """Differences of ``count`` pairs of rows, each of one query; None if no rows are in this process.

        Queries are chosen in proportion to the weight of their pairs, and the rows of a query about equally often.
        """

    def sample(self, n_rows: int, seed: int) -> "DataTerm | None":
        """A term over a sample of about ``n_rows`` rows, in this process; None if there is no pair to choose.

        The weights of pairs stay the same: the ratio of both terms' ``weight`` is the number of pairs that a pair of
        the sample represents.
        """

    def sizes(self) -> Sizes:
        """Sizes of the rows, for bounds on round-off."""

    def round_off(self, at: Any, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        """Bounds on the round-off of an evaluation whose margins have this error: see `PairwiseLoss.round_off`."""

    def visit_pairs(self) -> bool:
        """Visit pairs one by one from now on, for sums with less round-off; False if nothing changes."""

    def scores(self, w: np.ndarray) -> np.ndarray | list[np.ndarray]:
        """``X w``, an array of the backend."""

    def release(self, at: Any) -> None:
        """Mark an evaluation as no longer needed: its memory may be reused."""
