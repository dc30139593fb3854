"""The objective of an additive model: a linear objective, with a preconditioner that uses the model's structure."""

from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from ranksvm._util.threads import parallel_map
from ranksvm._util.types import CSRMatrix
from ranksvm.additive import AdditiveDesign, AdditiveTerms
from ranksvm.objectives.linear import LinearObjective, LinearPoint
from ranksvm.solvers.linear_systems import by_cholesky, conjugate_gradient
from ranksvm.terms.hessian_cost import no_hessian
from ranksvm.terms.host import ThreadedPoint, ThreadedTerm
from ranksvm.terms.parts.term import PartitionedPoint, PartitionedTerm
from ranksvm.terms.protocol import DataTerm

__all__ = ["AdditiveObjective", "PartitionedAdditiveObjective", "SampledTerm"]

# The preconditioner is computed from at least ROWS rows, and ROWS_PER_LEVEL for each level of the feature with the most
# levels. If there are many rows it is computed from PART_OF_ROWS of them, but no more than MAX_ROWS. (On 840,000 x 136
# values with 32 levels, fits with C = 1e-3 and with C = 1 took 10 and 17 products, and 2.9 and 3.3 s, with 2,000 rows;
# 8 and 11 products, and 2.5 and 3.0 s, with 6,000 rows; 6 and 9 products, and 4.2 and 4.5 s, with 24,000 rows. On
# MQ2007-partial with 64 and 255 levels, fits with C = 1e-3 took 92 and 582 ms with 32 rows a level, 84 and 378 ms with
# 16, and as many products.)
ROWS, ROWS_PER_LEVEL, PART_OF_ROWS, MAX_ROWS = 2000, 16, 1 / 128, 6000
# The coarse space of the preconditioner (see `AdditiveObjective`) has at most about this many dimensions: for each
# feature its linear part, and sums of neighboring steps (a step is the change of the feature's function at a cut). If
# there are at most this many variables, it has all of them. (On MQ2007, with 35,969 x 46 values and 646 variables, fits
# with C from 1e-3 to 10 took 34, 49, 124, 168 and 356 products with this maximum; with 276 dimensions, 34, 53, 151, 221
# and 317; with all 646 dimensions, computed from the same number of rows, 24, 55, 136, 190 and 533.)
COARSE_DIMENSIONS = 500
# If there are few rows, so that products take little time, the first preconditioner is a rough one, from at least
# ROUGH_ROWS rows and with at most ROUGH_DIMENSIONS. (On MQ2007-partial with 16 levels a fit with C = 1e-3 takes 12
# products with 280 dimensions, and as many with 500; 12 with 1,500 rows, and as many with 2,000.)
ROUGH_ROWS, ROUGH_DIMENSIONS = 1500, 280
# A new preconditioner is computed once this many products have used the last one.
PRODUCTS = 30
# Number of rows whose sums of steps are looked up together: these should stay in a processor's cache.
ROWS_TOGETHER = 256
# The Hessian's blocks, one for each feature, are computed together in groups of up to this many variables: features
# with 16 levels then take less time.
BLOCK_VARIABLES = 64
# The problem on a sample is solved first if there are at least SAMPLED_FROM rows; the sample is the fraction
# SAMPLED_PART of them.
SAMPLED_FROM, SAMPLED_PART = 100_000, 0.1
# If there are at least SAMPLED_FROM rows, and a step has to be accurate only to a tolerance t, its products use the
# Hessian of a sample of n_variables / t^2 rows, unless that is more than the fraction MAX_SAMPLED of all rows. (On
# 700,080 x 136 values with 32 levels, evaluations and products of fits with C = 0.01 and C = 1 cost as much as 16.1 and
# 18.1 passes over all rows without samples, 13.2 and 15.3 with them, 12.4 and 17.4 with twice as many rows, 13.0 and
# 16.7 with four times.)
MAX_SAMPLED = 0.5
SEED = 0
# If the data are in parts, and a product with the Hessian reads all of them, the preconditioner solves Newton's system
# on a sample instead. It stops at the relative residual SAMPLE_REDUCTION, or after SAMPLE_PRODUCTS products.
SAMPLE_REDUCTION, SAMPLE_PRODUCTS = 0.02, 300


class SampledTerm(DataTerm, Protocol):
    """A data term (the loss as a function of w) that can be sampled; `ThreadedTerm` and `CodedTerm` implement it."""

    def score_gradient(self, at: Any) -> np.ndarray:
        """Derivative of the loss with respect to each row's score, for rows sorted by query; X is not read."""

    def sample_at(self, at: Any, n_rows: int, seed: int) -> tuple[ThreadedTerm, ThreadedPoint]:
        """The loss over a sample of about ``n_rows`` rows (all if there are fewer), evaluated at the scores of ``at``.

        The ratio of both terms' ``weight`` is the number of pairs that a pair of the sample represents.
        """


class AdditiveObjective(LinearObjective):
    """``1/2 |w|^2 + C * loss(Z w)``, with an approximate inverse of the Hessian from a sample of the rows.

    The Hessian couples the steps of one feature (the changes of its function at the cuts) strongly. It couples steps of
    different features only through functions that vary slowly. Its inverse is approximated by the sum of two inverses.
    The first inverts the Hessian on a coarse space, which has the linear part of each feature and a few sums of its
    steps. The second inverts the diagonal blocks of the Hessian, one for the variables of each feature or pair of
    features. The first inverse already covers the part of a block that lies in the coarse space. So the second
    subtracts, from the inverse of each block, the inverse of the block restricted to that part. (This is an additive
    Schwarz method of two levels; Toselli & Widlund, Domain Decomposition Methods, 2005.) The diagonal alone needs 10 to
    50 times as many products.

    Parameters
    ----------
    term : ThreadedTerm or CodedTerm
        The loss as a function of w, over an `AdditiveDesign`.
    terms : AdditiveTerms
        The variables.
    C : float
        Weight of a pair.
    width : float, optional
        Width at which the loss is evaluated.
    reducible : bool
        Whether the loss at this width only approximates the loss to be minimized, so that solvers reduce the width.
    includes_round_off : bool
        Whether certificates (value and duality gap) include a bound on round-off, needed for results that users see;
        False for a sample.
    """

    def __init__(
        self,
        term: SampledTerm,
        terms: AdditiveTerms,
        C: float,
        width: float | None = None,
        reducible: bool = False,
        includes_round_off: bool = True,
    ):
        super().__init__(term, C, width, reducible, includes_round_off=includes_round_off)
        self.rows_term = term
        self.terms = terms
        # whether the preconditioner is, or will be, a rough one
        self._rough = term.n_rows < SAMPLED_FROM
        n_dimensions = min(COARSE_DIMENSIONS, ROUGH_DIMENSIONS) if self._rough else COARSE_DIMENSIONS
        self._coarse = _CoarseSpace.of(terms, n_dimensions)
        # the numbers of the variables of each feature or pair of features (a column of codes) that has variables; empty
        # if the coarse space has all variables
        self._blocks = {} if self._coarse.whole else _blocks(terms)
        # what the loss adds to the blocks and to the coarse Hessian; the inverse for the current C; and the number of
        # products that have used it
        self._parts: tuple[list[np.ndarray], np.ndarray] | None = None
        self._inverse: Callable[[np.ndarray], np.ndarray] | None = None
        self._n_products = 0

    def hessian_product(self, point: LinearPoint, v: np.ndarray, double: bool = True) -> np.ndarray:
        self._n_products += 1
        return super().hessian_product(point, v, double)

    def products(self, point: LinearPoint, tolerance: float) -> Callable[[np.ndarray], np.ndarray]:
        """Products with the Hessian, or with that of a sample if it is accurate enough.

        Parameters
        ----------
        point : LinearPoint
            The point.
        tolerance : float
            Fraction to which conjugate gradients reduce the gradient.

        Returns
        -------
        callable
            Maps a vector to the Hessian times that vector.
        """
        n_rows = self.n_variables / tolerance**2
        if not self._uses_samples() or n_rows > MAX_SAMPLED * self.term.n_rows:
            return super().products(point, tolerance)
        term, at = self.rows_term.sample_at(point.at, int(n_rows), SEED)
        factor = self.C * self._represented(term)

        def product(v: np.ndarray) -> np.ndarray:
            self._n_products += 1
            return v + factor * term.curvature_product(at, v)

        return product

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
            Maps a vector to the inverse times that vector.
        """
        if self._parts is None or self._n_products >= PRODUCTS:
            if self._rough and self._parts is not None:
                self._rough, self._coarse = False, _CoarseSpace.of(self.terms, COARSE_DIMENSIONS)
            self._parts, self._inverse, self._n_products = self._new_parts(point), None, 0
        if self._inverse is None:
            self._inverse = self._new_inverse(*self._parts)
        return self._inverse

    def _new_parts(self, point: LinearPoint) -> tuple[list[np.ndarray], np.ndarray]:
        per_level = ROWS_PER_LEVEL * max((each.n_levels for each in self.terms.bins), default=0)
        fewest = max(ROUGH_ROWS if self._rough else ROWS, per_level)
        n_rows = max(fewest, min(MAX_ROWS, int(PART_OF_ROWS * self.term.n_rows)))
        term, at = self.rows_term.sample_at(point.at, n_rows, SEED)
        if self._coarse.whole:
            return [], self._represented(term) * term.curvature(at, 1.0, SEED)
        rows = self._coarse.rows(*_design_rows(term))
        coarse = self._represented(term) * term.curvature_over(at, rows, term.n_threads)
        coarse = coarse[np.ix_(self._coarse.kept, self._coarse.kept)]
        if n_rows > fewest:
            term, at = term.sample_at(at, fewest, SEED)
        features, codes = _design_rows(term)
        represented = self._represented(term)

        def blocks(columns: list[int]) -> list[np.ndarray]:
            first, last = columns[0], columns[-1] + 1
            rows = np.concatenate([features[:, first:last], self.terms.rows_of(codes, first, last)], axis=1)
            curvature = represented * term.curvature_over(at, rows)
            variables = np.concatenate([self._blocks[column] for column in columns])
            places = np.searchsorted(np.sort(variables), variables)  # in the rows, linear parts come first
            curvature = curvature[np.ix_(places, places)]
            ends = np.cumsum([len(self._blocks[column]) for column in columns]).tolist()
            return [curvature[start:end, start:end] for start, end in pairwise([0, *ends])]

        return list(chain.from_iterable(parallel_map(blocks, self._together(), term.n_threads))), coarse

    def _together(self) -> list[list[int]]:
        """The columns that have blocks, in groups of at most ``BLOCK_VARIABLES`` variables or of one column."""
        found: list[list[int]] = []
        size = 0
        for column, block in self._blocks.items():
            size += len(block)
            if not found or size > BLOCK_VARIABLES:
                found.append([])
                size = len(block)
            found[-1].append(column)
        return found

    def _uses_samples(self) -> bool:
        """Whether there are many rows, on the host: a device reads all rows in less time than the host reads some."""
        return isinstance(self.term, ThreadedTerm) and self.term.n_rows >= SAMPLED_FROM

    def _represented(self, term: ThreadedTerm) -> float:
        """The number of pairs that a pair of a sample represents."""
        return 1.0 if term is self.term else self.term.weight / term.weight

    def _new_inverse(self, blocks: list[np.ndarray], coarse: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        space, transposed = self._coarse.space, self._coarse.space.T.tocsr()
        on_space = by_cholesky((transposed @ space).toarray() + self.C * coarse)
        # all blocks at once: smaller ones are padded with an extra variable at the end, whose value is 0
        n_variables, size = self.n_variables, max(map(len, self._blocks.values()), default=0)
        places = np.full((len(blocks), size), n_variables)
        hessians = np.tile(np.eye(size), (len(blocks), 1, 1))
        for place, hessian, own, block in zip(places, hessians, self._blocks.values(), blocks, strict=True):
            place[: len(own)] = own
            hessian[: len(own), : len(own)] += self.C * block
        inverses = np.linalg.inv(hessians)
        own_space = self._coarse.of_blocks(places)
        if own_space.size:
            transposed_space = own_space.transpose(0, 2, 1)
            on_own_space = transposed_space @ hessians @ own_space
            padding = (own_space == 0.0).all(axis=1)
            on_own_space += np.eye(own_space.shape[2]) * padding[:, :, np.newaxis]
            inverses -= own_space @ np.linalg.solve(on_own_space, transposed_space)
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
        """The problem on some of the rows; None for few rows, and for rows on a device.

        C is raised, so that C times the total weight of the pairs stays the same.
        """
        if not self._uses_samples():
            return None
        term = self.term.sample(int(SAMPLED_PART * self.term.n_rows), SEED)
        if term is None:
            return None
        assert isinstance(term, ThreadedTerm)
        C = self.C * self.term.weight / term.weight
        return AdditiveObjective(term, self.terms, C, self.width, self.reducible, includes_round_off=False)


class PartitionedAdditiveObjective(LinearObjective):
    """`AdditiveObjective` over parts of the rows: each product with the Hessian takes a round, such as reading a file.

    The Hessian of a sample in this process is close to the Hessian of all rows. Its inverse, by conjugate gradients
    with the preconditioner of `AdditiveObjective`, costs no round.

    Parameters
    ----------
    term : PartitionedTerm
        The loss as a function of w, over parts of the data, with the variables ``terms``.
    terms : AdditiveTerms
        The variables.
    C : float
        Weight of a pair.
    width : float, optional
        Width at which the loss is evaluated.
    reducible : bool
        Whether the loss at this width only approximates the loss to be minimized, so that solvers reduce the width.
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
            Maps a vector to the inverse times that vector.
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
        return AdditiveObjective(term, self.terms, C, self.width, self.reducible, includes_round_off=False)


def _blocks(terms: AdditiveTerms) -> dict[int, np.ndarray]:
    """The numbers of the variables of each column of codes, without columns that have none.

    For a feature, the variable of its linear part is first.
    """
    found = {}
    for column in range(len(terms.columns)):
        variables = terms.variables_at(column, column + 1)
        found[column] = np.append([column], variables) if column < terms.n_linear else variables
    return {column: block for column, block in found.items() if len(block)}


def _design_rows(term: ThreadedTerm) -> tuple[np.ndarray, np.ndarray]:
    """For the rows of a term with an `AdditiveDesign`: scaled features, which the linear part uses, and codes."""
    design, rows = term.design, term.pairs.rows
    assert isinstance(design, AdditiveDesign)
    return design.scaled_features(rows), design.codes if rows is None else design.codes[rows]


class _CoarseSpace(NamedTuple):
    """A space of few dimensions: each feature's linear part, and a weighted sum of each group of neighboring steps.

    Attributes
    ----------
    space : CSR matrix, shape (n_variables, n_dimensions)
        The coefficients of each dimension, a column for each.
    linear, stepped : ndarray of int64
        The features that have a linear part, and those that have steps.
    tables : ndarray of float32, shape (len(stepped), most levels, most groups)
        For each of the latter, the value of each weighted sum at each of its levels.
    kept : ndarray of int64
        The columns of `rows` that are dimensions; the others are 0.
    whole : bool
        Whether the space has all variables; the arrays are then empty.
    """

    space: CSRMatrix
    linear: np.ndarray
    stepped: np.ndarray
    tables: np.ndarray
    kept: np.ndarray
    whole: bool

    @classmethod
    def of(cls, terms: AdditiveTerms, n_dimensions: int) -> "_CoarseSpace":
        """The coarse space of an additive model: at most about ``n_dimensions`` dimensions, or all variables if few."""
        from scipy import sparse

        if terms.n_variables <= COARSE_DIMENSIONS:
            none = np.empty(0, dtype=np.int64)
            return cls(sparse.eye_array(terms.n_variables, format="csr"), none, none, none, none, True)
        # of each step: its feature, its place among the feature's steps, and its variable after the linear ones
        n_steps = np.array([bins.n_steps for bins in terms.bins])
        feature = np.arange(terms.n_features).repeat(n_steps)
        step = np.arange(len(feature)) - (np.cumsum(n_steps) - n_steps)[feature]
        variable = terms.columns[feature, 5] + step
        used = terms.scales[variable] != 0.0
        step, variable = step[used], variable[used]
        stepped, feature = np.unique(feature[used], return_inverse=True)
        # groups of nearly the same numbers of steps, larger ones first
        n_used = np.bincount(feature)
        n_groups = np.minimum(n_used, max(1, n_dimensions // terms.n_features - 1))
        size, n_larger = np.divmod(n_used, n_groups)
        place = np.arange(len(feature)) - (np.cumsum(n_used) - n_used)[feature]
        size, n_larger = size[feature], n_larger[feature]
        group = np.maximum(place // (size + 1), (place - n_larger) // size)
        linear = np.flatnonzero(terms.linear_scales)
        exists = np.arange(n_groups.max(initial=0)) < n_groups[:, np.newaxis]
        dimension = (np.cumsum(n_groups) - n_groups)[feature] + group
        scales = terms.scales[variable]
        weights = scales / np.sqrt(np.bincount(dimension, scales**2, n_groups.sum()))[dimension]
        rows, columns = np.append(linear, terms.n_linear + variable), np.arange(len(linear) + n_groups.sum())
        values = np.append(np.ones(len(linear)), weights)
        places = rows, np.append(columns[: len(linear)], len(linear) + dimension)
        space = sparse.csr_array((values, places), shape=(terms.n_variables, len(columns)))
        tables = np.zeros((len(stepped), max(bins.n_levels for bins in terms.bins), exists.shape[1]), np.float32)
        tables[feature, 1 + step, group] = scales * weights
        np.cumsum(tables, axis=1, out=tables)
        tables[np.arange(tables.shape[1]) > n_steps[stepped, np.newaxis]] = 0.0  # missing values, and no level
        kept = np.append(columns[: len(linear)], len(linear) + np.flatnonzero(exists))
        return cls(space, linear, stepped, tables, kept, False)

    def of_blocks(self, places: np.ndarray) -> np.ndarray:
        """For each block of variables, the dimensions of the space that combine variables of this block.

        Parameters
        ----------
        places : ndarray of int64, shape (n_blocks, size)
            The variables of each block; the number ``n_variables`` marks a place without a variable.

        Returns
        -------
        ndarray of float64, shape (n_blocks, size, most dimensions of a block)
            For each block, the coefficients of its dimensions, a column for each; 0 in columns that it does not need.
        """
        # a variable has a part in one dimension at most
        dimension, weight = np.full((2, self.space.shape[0] + 1), -1.0)
        has_part = np.flatnonzero(np.diff(self.space.indptr))
        dimension[has_part], weight[has_part] = self.space.indices, self.space.data
        blocks, rows = np.nonzero(dimension[places] >= 0.0)
        variables = places[blocks, rows]
        own, number = np.unique(np.column_stack([blocks, dimension[variables]]), axis=0, return_inverse=True)
        first = np.searchsorted(own[:, 0], np.arange(len(places)))  # the first dimension of each block
        number = number.ravel() - first[blocks]
        found = np.zeros((*places.shape, int(number.max(initial=-1)) + 1))
        found[blocks, rows, number] = weight[variables]
        return found

    def rows(self, features: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The rows of Z in this space: ``Z space``, computed from the features and codes, with some columns of 0.

        Parameters
        ----------
        features : ndarray of float64, shape (n_rows, n_linear)
            The scaled features.
        codes : ndarray of uint8, shape (n_rows, n_columns)
            The codes.

        Returns
        -------
        ndarray of float32, shape (n_rows, len(linear) + len(stepped) * most groups)
            ``Z space`` in the columns ``kept``, and 0 in the others.
        """
        n_stepped, n_levels, n_groups = self.tables.shape
        n_linear, width = len(self.linear), n_stepped * n_groups
        tables, starts = self.tables.reshape(n_stepped * n_levels, n_groups), np.arange(n_stepped) * n_levels
        found = np.empty((len(codes), n_linear + width), np.float32)
        found[:, :n_linear] = features[:, self.linear]
        sums = np.empty((ROWS_TOGETHER * n_stepped, n_groups), np.float32)
        for first in range(0, len(codes), ROWS_TOGETHER):
            own = codes[first : first + ROWS_TOGETHER, self.stepped]
            out = sums[: own.size]
            tables.take((own + starts).ravel(), axis=0, out=out, mode="clip")
            found[first : first + ROWS_TOGETHER, n_linear:] = out.reshape(len(own), width)
        return found
