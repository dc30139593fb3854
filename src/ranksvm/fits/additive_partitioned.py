"""Additive problems whose rows a backend holds in parts: blocks of a file, or rows on the workers of a cluster."""

from collections.abc import Callable

import numpy as np

from ranksvm._util.types import Features
from ranksvm.additive import AdditiveTerms
from ranksvm.additive.bins import as_floats
from ranksvm.additive.interactions import bounds_of_sums
from ranksvm.fits.additive_levels import AdditiveLevels, AnyAdditiveProblem, variable_signs
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.objectives import LinearObjective
from ranksvm.objectives.additive import PartitionedAdditiveObjective
from ranksvm.terms.parts.backend import Backend
from ranksvm.terms.parts.term import PartitionedTerm
from ranksvm.terms.protocol import DataTerm

__all__ = ["SAMPLE_ROWS", "PartitionedAdditiveProblem"]

# The sample of the preconditioner has this many rows, or all rows if there are at most twice as many. (On 300,000 x 136
# with 32 levels, fits with C = 1e-3 and 1 took 3 rounds (passes over all parts) with this sample, and 10 and 15 rounds
# with a sample of 50,000 rows.)
SAMPLE_ROWS = 200_000


class PartitionedAdditiveProblem(AnyAdditiveProblem["PartitionedAdditiveProblem"], PartitionedProblem):
    """`AdditiveProblem` for rows that are divided into parts.

    Parameters
    ----------
    term_of : callable
        Takes `AdditiveTerms`, and returns the loss over all parts as a function of their variables.
    levels : AdditiveLevels
        The levels of the features.
    terms : AdditiveTerms
        The variables.
    options : AdditiveOptions
        The hyper-parameters.
    term : PartitionedTerm, optional
        The result of ``term_of`` for ``terms``, if it exists already.
    """

    def __init__(
        self,
        term_of: Callable[[AdditiveTerms], PartitionedTerm],
        levels: AdditiveLevels,
        terms: AdditiveTerms,
        options: AdditiveOptions,
        term: PartitionedTerm | None = None,
    ):
        self._term_of = term_of
        self.levels = levels
        self.terms = terms
        self.options = options
        super().__init__(term_of(terms) if term is None else term, options, variable_signs(terms, levels.signs))

    def _unconstrained_objective(self, term: DataTerm) -> LinearObjective:
        if self.solver == "auto":
            self.solver = "newton"
        assert isinstance(term, PartitionedTerm)
        return PartitionedAdditiveObjective(term, self.terms, 1.0, **self.smoothing)

    def _with_terms(self, terms: AdditiveTerms) -> "PartitionedAdditiveProblem":
        return PartitionedAdditiveProblem(self._term_of, self.levels, terms, self.options)

    def with_backend(self, backend: Backend) -> "PartitionedAdditiveProblem":
        """A copy of the problem for one of several solvers that run at the same time on one backend.

        Parameters
        ----------
        backend : Backend
            The backend that the solvers share.

        Returns
        -------
        PartitionedAdditiveProblem
            The problem.
        """
        term = self.objective.term.with_backend(backend)
        return PartitionedAdditiveProblem(self._term_of, self.levels, self.terms, self.options, term)

    def scores(self, w: np.ndarray, X: Features) -> np.ndarray:
        # each block of a file is scored once: its codes are not kept
        return self.terms.function(w).scores(as_floats(X), self.n_threads)

    def interaction_bounds(self, w: np.ndarray, width: float | None) -> np.ndarray:
        objective, n_levels = self.objective, self.options.interaction_bins
        objective.width = width
        point = objective.evaluate(np.ascontiguousarray(w))
        sums = objective.C * objective.term.pair_sums(point.at, n_levels)
        objective.release(point)
        return self._without_existing_pairs(bounds_of_sums(self.terms, sums, n_levels, self.levels.signs))

    def _cell_counts(self) -> np.ndarray:
        counts: np.ndarray = self.objective.term.cell_counts()
        return counts
