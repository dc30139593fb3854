"""The objective of a linear model with fewer documents than features, whose Hessian is inverted in the rows' span."""

from collections.abc import Callable

import numpy as np

from ranksvm.data import DenseDesign, SparseDesign
from ranksvm.losses import FunctionLoss
from ranksvm.losses.named_losses import HuberHinge
from ranksvm.objectives.active_pairs import HostInversion, correction_by_active_pairs, inverse_cost
from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.solvers.linear_systems import by_diagonal
from ranksvm.solvers.tron import curvature_scale
from ranksvm.terms.hessian_cost import no_hessian
from ranksvm.terms.host import ThreadedPoint, ThreadedTerm

__all__ = ["Gram", "RowSpaceObjective"]

# A product with the Hessian reads X twice. It takes as long as reading CALL_BYTES, and twice the part READ_COST of X
# (sparse, dense), from memory: a dense X often stays in the cache.
CALL_BYTES, READ_COST = 3e5, (1.0, 0.25)
# In Q, the product of two rows takes as long as reading this part of a row (sparse, dense).
ROW_COST = 0.06, 0.02
# With a loss of the user's own, an inverse costs this number of bytes for each pair and each active document.
PAIR_COST = 100.0


class RowSpaceObjective(LinearObjective):
    """`LinearObjective` with the inverse of its Hessian, computed from products of rows with each other.

    With Q = X X' the inverse of ``I + C X' H X`` is ``I - X' C H (I + C Q H)^-1 X``. It takes one factor of a
    matrix with a row for each document that has an active pair.

    Parameters
    ----------
    term : ThreadedTerm
        The loss as a function of w.
    design : DenseDesign or SparseDesign
        The features of the term.
    C : float
        Weight of a pair.
    inverse_memory : int
        Bytes that Q and an inverse may take.
    width : float, optional
        Width at which the loss is evaluated.
    reducible : bool
        Whether the loss at this width only approximates the loss to be minimized, so that solvers reduce the width.
    """

    def __init__(
        self,
        term: ThreadedTerm,
        design: DenseDesign | SparseDesign,
        C: float,
        inverse_memory: int,
        width: float | None = None,
        reducible: bool = False,
    ):
        super().__init__(term, C, width, reducible, fraction_of=no_hessian)
        self.rows_term = term
        self.design = design
        self.inverse_memory = inverse_memory - 8 * term.n_rows**2
        self._gram: Gram | None = None
        self._scale: tuple[float, np.ndarray] | None = None  # C, and the diagonal of the Hessian for it

    def sample(self) -> None:
        """Return None: the problem on a sample of so few rows has quite another solution."""

    def preconditioner(self, point: LinearPoint) -> Callable[[np.ndarray], np.ndarray]:
        """The inverse of the diagonal of the Hessian at the first point for this C.

        Computing the diagonal takes as long as several products. Computing it again when other pairs become active
        would save only few products.
        """
        if self._scale is None or self._scale[0] != self.C:
            self._scale = self.C, curvature_scale(self, point)
        return by_diagonal(self._scale[1])

    def product_cost(self) -> float:
        """Cost of a product with the Hessian, as a number of bytes to read."""
        term = self.rows_term
        return CALL_BYTES + 2.0 * READ_COST[term.dense] * term.row_bytes * term.n_rows

    def gram_cost(self) -> float:
        """Cost of Q, in the same unit; 0 once it is known."""
        term = self.rows_term
        return ROW_COST[term.dense] * term.n_rows**2 * term.row_bytes if self._gram is None else 0.0

    def largest_inverse_cost(self) -> float:
        """Cost of `inverse` at a point at which all documents have an active pair, without Q, in the same unit."""
        return self._cost_without_gram(np.ones(self.rows_term.n_rows))

    def inverse_cost(self, point: LinearPoint) -> float:
        """Cost of `inverse`, as a number of products with the Hessian; infinite if there is too little memory."""
        inverse = self._cost_without_gram(self._degrees(point))
        return float((inverse + self.gram_cost()) / self.product_cost())

    def _cost_without_gram(self, degrees: np.ndarray) -> float:
        term = self.rows_term
        cost = inverse_cost(degrees, term.pairs.pointers, self.inverse_memory)
        if isinstance(term.loss, FunctionLoss):  # its Hessian is multiplied with one vector after another
            cost += PAIR_COST * term.pairs.n_pairs * np.count_nonzero(degrees)
        return cost

    def inverse(self, point: LinearPoint) -> Callable[[np.ndarray], np.ndarray] | None:
        """The inverse of the Hessian, up to round-off; each application reads X twice."""
        assert isinstance(point.at, ThreadedPoint)
        return self._inverse(point.at.state)

    def narrowed_solution(self, point: LinearPoint) -> np.ndarray | None:
        """The solution for the current width, if the loss is quadratic there for the same pairs as at ``point``."""
        term, at = self.rows_term, point.at
        assert isinstance(at, ThreadedPoint)
        assert isinstance(term.loss, HuberHinge)
        state, change = term.loss.narrowed(at.scores, at.width, self.width)
        inverse = self._inverse(state)
        return None if inverse is None else point.w - inverse(point.gradient + self.C * term.transposed_product(change))

    def _inverse(self, state: object) -> Callable[[np.ndarray], np.ndarray] | None:
        term = self.rows_term
        if self._gram is None:
            self._gram = Gram(self.design.gram(term.pairs.rows))
        correct = correction_by_active_pairs(
            term.loss.hessian(state),
            term.loss.curvature_diagonal(state, 0, term.n_rows),
            term.pairs.pointers,
            self.C,
            HostInversion(self._gram, n_threads=term.n_threads),
        )
        if correct is None:
            return None
        return lambda r: r - term.transposed_product(correct(term.scores(r)))

    def _degrees(self, point: LinearPoint) -> np.ndarray:
        """The diagonal of H."""
        assert isinstance(point.at, ThreadedPoint)
        return self.rows_term.loss.curvature_diagonal(point.at.state, 0, self.rows_term.n_rows)


class Gram:
    """The matrix of inner products of all rows, in the form that `correction_by_active_pairs` reads.

    Parameters
    ----------
    values : ndarray of float64, shape (n_rows, n_rows)
        The products.
    """

    def __init__(self, values: np.ndarray):
        self.values = values
        self.largest = float(np.diagonal(values).max(initial=0.0))

    def submatrix(self, positions: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
        """The products of some rows.

        Parameters
        ----------
        positions : ndarray of int64, shape (n_positions,)
            The rows, ascending.
        dtype : type
            float32, or float64.

        Returns
        -------
        ndarray of dtype, shape (n_positions, n_positions)
            The values.
        """
        # rows, then columns: a third of the time of both at once
        found: np.ndarray = self.values[positions].astype(dtype, copy=False).take(positions, axis=1)
        return found
