"""The objective of an additive model: a linear objective, with a preconditioner that uses the model's structure."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.types import CSRMatrix
from ranksvm.additive import AdditiveTerms
from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.solvers.linear_systems import by_cholesky, conjugate_gradient
from ranksvm.terms.hessian_cost import no_hessian
from ranksvm.terms.host import ThreadedPoint, ThreadedTerm
from ranksvm.terms.parts.term import PartitionedPoint, PartitionedTerm

__all__ = ["AdditiveObjective", "PartitionedAdditiveObjective"]

# The preconditioner is computed from at least ROWS rows, and ROWS_PER_LEVEL for each level of the feature with the most
# levels. If there are many rows it is computed from PART_OF_ROWS of them, but no more than MOST_ROWS. (On 840,000 x 136
# values with 32 levels, fits with C = 1e-3 and with C = 1 took 10 and 17 products, and 2.9 and 3.3 s, with 2,000 rows;
# 8 and 11 products, and 2.5 and 3.0 s, with 6,000 rows; 6 and 9 products, and 4.2 and 4.5 s, with 24,000 rows.)
ROWS, ROWS_PER_LEVEL, PART_OF_ROWS, MOST_ROWS = 2000, 64, 1 / 128, 6000
# The coarse space has at most this many dimensions: the linear part of each feature and functions of its steps, or all
# variables if there are no more of them. (On MQ2007, with 35,969 x 46 values and 646 variables, fits with C from 1e-3
# to 10 took 34, 49, 124, 168 and 356 products; with 276 dimensions, 34, 53, 151, 221 and 317; with all 646 dimensions,
# computed from the same number of rows, 24, 55, 136, 190 and 533.)
COARSE_DIMENSIONS = 500
# A new preconditioner is computed once this many products have used the last one.
PRODUCTS = 30
# The problem on a sample is solved first if there are at least SAMPLED_FROM rows; the sample is the fraction
# SAMPLED_PART of them.
SAMPLED_FROM, SAMPLED_PART = 100_000, 0.1
SEED = 0
# If a product takes a round over parts, the preconditioner solves Newton's system of a sample to this accuracy, with at
# most this number of products.
SAMPLE_REDUCTION, SAMPLE_PRODUCTS = 0.02, 300


class AdditiveObjective(LinearObjective):
    """``1/2 |w|^2 + C * loss(Z w)``, with an approximate inverse of the Hessian from a sample of the rows.

    The Hessian couples the steps of one feature strongly, and those of different features only through functions that
    vary slowly. Its inverse is approximated by the sum of two inverses. The first inverts the diagonal blocks of the
    Hessian, one for the variables of each feature or pair of features. The second inverts the Hessian on a coarse
    space, which has the linear part of each feature and a few functions of its steps. (This is an additive Schwarz
    method of two levels; Toselli & Widlund, Domain Decomposition Methods, 2005.) The diagonal alone needs 10 to 50
    times as many products.

    Parameters
    ----------
    term : ThreadedTerm
        The loss as a function of w, over an `AdditiveDesign`.
    terms : AdditiveTerms
        The variables.
    C : float
        Weight of a pair.
    width : float, optional
        Width at which the loss is evaluated.
    reducible : bool
        Whether the width is a smoothing, to be reduced until the target problem is solved.
    shown : bool
        Whether certificates are shown to the user, and so include a bound on round-off; False for a sample.
    """

    def __init__(
        self,
        term: ThreadedTerm,
        terms: AdditiveTerms,
        C: float,
        width: float | None = None,
        reducible: bool = False,
        shown: bool = True,
    ):
        super().__init__(term, C, width, reducible, shown=shown)
        self.rows_term = term
        self.terms = terms
        self._coarse = _coarse_space(terms)
        whole = self._coarse.shape[1] == terms.n_variables
        self._blocks = [] if whole else _blocks(terms)
        self._projections = [_projection(self._coarse, block) for block in self._blocks]
        # what the loss adds to the blocks and to the coarse Hessian; the inverse for the current C; and the number of
        # products that have used it
        self._parts: tuple[list[np.ndarray], np.ndarray] | None = None
        self._inverse: Callable[[np.ndarray], np.ndarray] | None = None
        self._n_products = 0

    def hessian_product(self, point: LinearPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        self._n_products += 1
        return super().hessian_product(point, v, double)

    def reweight(self, C: float, point: LinearPoint | None = None) -> None:
        self._inverse = None
        super().reweight(C, point)

    def preconditioner(self, point: LinearPoint) -> Callable[[np.ndarray], np.ndarray]:
        """An approximate inverse of the Hessian: that of an earlier point, until ``PRODUCTS`` products have used it.

        Parameters
        ----------
        point : LinearPoint
            The point.

        Returns
        -------
        callable
            From a vector to the inverse times it.
        """
        if self._parts is None or self._n_products >= PRODUCTS:
            self._parts, self._inverse, self._n_products = self._new_parts(point), None, 0
        if self._inverse is None:
            self._inverse = self._new_inverse(*self._parts)
        return self._inverse

    def _new_parts(self, point: LinearPoint) -> tuple[list[np.ndarray], np.ndarray]:
        blocks = [np.zeros((len(block), len(block))) for block in self._blocks]
        coarse = np.zeros((self._coarse.shape[1],) * 2)
        per_level = ROWS_PER_LEVEL * max((each.n_levels for each in self.terms.bins), default=0)
        n_rows = max(ROWS, per_level, min(MOST_ROWS, int(PART_OF_ROWS * self.term.n_rows)))
        assert isinstance(point.at, ThreadedPoint)
        for factor, A, B in self.rows_term.curvature_factors(point.at, n_rows, SEED):
            if self._blocks:
                coarse_A = np.empty((len(A), len(coarse)))
                coarse_B = coarse_A if B is A else np.empty((len(B), len(coarse)))
            else:
                coarse_A, coarse_B = A, B
            for block, (columns, projection), total in zip(self._blocks, self._projections, blocks, strict=True):
                left = _columns_of(A, block)
                right = left if B is A else _columns_of(B, block)
                product = left.T @ right
                total += 0.5 * factor * (product + product.T)
                coarse_A[:, columns] = left @ projection
                if B is not A:
                    coarse_B[:, columns] = right @ projection
            product = coarse_A.T @ coarse_B
            coarse += 0.5 * factor * (product + product.T)
        return blocks, coarse

    def _new_inverse(self, blocks: list[np.ndarray], coarse: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        space, transposed = self._coarse, self._coarse.T.tocsr()
        on_space = by_cholesky((transposed @ space).toarray() + self.C * coarse)
        # all blocks at once: smaller ones are padded with a variable beyond all others, which is 0
        n_variables, size = self.n_variables, max(map(len, self._blocks), default=0)
        places = np.full((len(blocks), size), n_variables)
        inverses = np.zeros((len(blocks), size, size))
        for place, inverse, own, block in zip(places, inverses, self._blocks, blocks, strict=True):
            n = len(own)
            place[:n] = own
            inverse[:n, :n] = np.linalg.inv(np.eye(n) + self.C * block)
        extended = np.zeros(n_variables + 1)

        def solve(v: np.ndarray) -> np.ndarray:
            out: np.ndarray = space @ on_space(transposed @ v)
            if size:
                extended[:n_variables] = v
                found = np.zeros(n_variables + 1)
                found[places] = np.matmul(inverses, extended[places][:, :, np.newaxis])[:, :, 0]
                out += found[:n_variables]
            return out

        return solve

    def sample(self) -> "AdditiveObjective | None":
        """The problem on some of the rows; None for few rows.

        C is raised, so that C times the total weight of the pairs stays the same.
        """
        if self.term.n_rows < SAMPLED_FROM:
            return None
        term = self.rows_term.sample(int(SAMPLED_PART * self.term.n_rows), SEED)
        if term is None:
            return None
        C = self.C * self.term.weight / term.weight
        return AdditiveObjective(term, self.terms, C, self.width, self.reducible, shown=False)


class PartitionedAdditiveObjective(LinearObjective):
    """`AdditiveObjective` over parts of the rows: each product with the Hessian takes a round, such as reading a file.

    The Hessian of a sample in this process is close to the Hessian of all rows. Its inverse, by conjugate gradients
    with the preconditioner of `AdditiveObjective`, costs no round.

    Parameters
    ----------
    term : PartitionedTerm
        The loss as a function of w, over parts whose features are ``terms``.
    terms : AdditiveTerms
        The variables.
    C : float
        Weight of a pair.
    width : float, optional
        Width at which the loss is evaluated.
    reducible : bool
        Whether the width is a smoothing, to be reduced until the target problem is solved.
    """

    def __init__(
        self,
        term: PartitionedTerm,
        terms: AdditiveTerms,
        C: float,
        width: float | None = None,
        reducible: bool = False,
    ):
        super().__init__(term, C, width, reducible, fraction_of=no_hessian)
        self.parts_term = term
        self.terms = terms
        self._sampled: AdditiveObjective | None = None

    def preconditioner(self, point: LinearPoint) -> Callable[[np.ndarray], np.ndarray]:
        """The inverse of the Hessian of the sample, scaled to the total weight of all pairs.

        Parameters
        ----------
        point : LinearPoint
            The point.

        Returns
        -------
        callable
            From a vector to the inverse times it.
        """
        assert isinstance(point.at, PartitionedPoint)
        found = self._at_sample(point.at)
        if found is None:
            return lambda v: v
        objective, own = found
        there = LinearPoint(point.w, own, objective.C)
        inverse = objective.preconditioner(there)

        def solve(v: np.ndarray) -> np.ndarray:
            return -conjugate_gradient(
                lambda u: objective.hessian_product(there, u),
                v,
                inverse,
                tolerance=SAMPLE_REDUCTION,
                max_products=SAMPLE_PRODUCTS,
            ).step

        return solve

    def sample(self) -> AdditiveObjective | None:
        """The problem on the sample; None if there is no pair.

        C is raised, so that C times the total weight of the pairs stays the same.
        """
        term = self.parts_term.sample(self.term.n_rows, SEED)
        return None if term is None else self._over_sample(term)

    def _at_sample(self, at: PartitionedPoint) -> tuple[AdditiveObjective, ThreadedPoint] | None:
        """The problem on the sample, and the evaluation of a point there."""
        found = self.parts_term.sample_at(at)
        if found is None:
            return None
        term, point = found
        if self._sampled is None or self._sampled.width != self.width:
            self._sampled = self._over_sample(term)
        C = self.C * self.term.weight / term.weight
        if C != self._sampled.C:
            self._sampled.reweight(C)
        return self._sampled, point

    def _over_sample(self, term: ThreadedTerm) -> AdditiveObjective:
        C = self.C * self.term.weight / term.weight
        return AdditiveObjective(term, self.terms, C, self.width, self.reducible, shown=False)


def _blocks(terms: AdditiveTerms) -> list[np.ndarray]:
    """The variables of each feature, its linear part included, and of each pair."""
    found = []
    for column in range(len(terms.columns)):
        has_linear = terms.linear and column < terms.n_features
        found.append(np.append([column], terms.variables_at(column)) if has_linear else terms.variables_at(column))
    return [block for block in found if len(block)]


def _columns_of(A: np.ndarray, block: np.ndarray) -> np.ndarray:
    """The columns of a block; all of its variables but the first are consecutive."""
    first, last = int(block[0]), int(block[-1])
    if last - first == len(block) - 1:
        return A[:, first : last + 1]
    found = np.empty((len(A), len(block)))
    found[:, 0], found[:, 1:] = A[:, first], A[:, int(block[1]) : last + 1]
    return found


def _projection(coarse: CSRMatrix, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns of the coarse space that contain variables of a block, and their values for these variables."""
    rows = coarse[block]
    columns = np.unique(rows.indices)
    return columns, rows[:, columns].toarray()


def _coarse_space(terms: AdditiveTerms) -> CSRMatrix:
    """Columns of the coarse space: the linear part of each feature, and functions of groups of its steps."""
    from scipy import sparse

    if terms.n_variables <= COARSE_DIMENSIONS:
        space: CSRMatrix = sparse.eye_array(terms.n_variables, format="csr")
        return space
    n_groups = max(1, COARSE_DIMENSIONS // terms.n_features - 1)
    rows: list[ArrayLike] = []
    columns: list[ArrayLike] = []
    values: list[ArrayLike] = []
    n_columns = 0
    for j in range(terms.n_linear):
        if terms.feature_scales[j] > 0.0:
            rows.append([j])
            columns.append([n_columns])
            values.append([1.0])
            n_columns += 1
    for c, bins in enumerate(terms.bins):
        steps = terms.variables_at(c)[: bins.n_steps]
        steps = steps[terms.scales[steps - terms.n_linear] > 0.0]
        for group in np.array_split(steps, n_groups):
            if len(group):
                scales = terms.scales[group - terms.n_linear]
                rows.append(group)
                columns.append(np.full(len(group), n_columns))
                values.append(scales / np.linalg.norm(scales))
                n_columns += 1
    space = sparse.csr_array((terms.n_variables, n_columns))
    if n_columns:
        places = np.concatenate(rows), np.concatenate(columns)
        space = sparse.csr_array((np.concatenate(values), places), shape=space.shape)
    return space
