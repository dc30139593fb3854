"""Linear problems whose rows a backend holds in parts, for one C or several; each pass over the parts serves all C."""

import threading
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ranksvm._util.threads import one_blas_thread
from ranksvm.exceptions import OptionError
from ranksvm.fits.linear import LinearProblem
from ranksvm.fits.options import LinearOptions
from ranksvm.objectives import ConstrainedObjective, LinearObjective
from ranksvm.solvers import SolverResult, projected_newton
from ranksvm.solvers.cone import SignCone
from ranksvm.solvers.linear_systems import load_lapack
from ranksvm.solvers.monitor import SAMPLE_TOL
from ranksvm.terms.hessian_cost import Size, fraction_of_sample, no_hessian, worthwhile_fraction
from ranksvm.terms.parts.backend import Backend
from ranksvm.terms.parts.shared_rounds import side_by_side
from ranksvm.terms.parts.term import PartitionedTerm
from ranksvm.terms.protocol import DataTerm

__all__ = ["PartitionedProblem"]


class _Sizes(NamedTuple):
    """The sizes of the data of a problem: see `TrainingSet`."""

    pairs: PartitionedTerm
    n_rows: int
    n_queries: int
    n_threads: int
    X: None = None  # the parts hold the features


class PartitionedProblem(LinearProblem):
    """`LinearProblem` for rows that are divided into parts, in a file or on a cluster.

    Parameters
    ----------
    term : PartitionedTerm
        The loss over all parts.
    options : LinearOptions
        The hyper-parameters; solver "auto" is "newton" if Hessians of a sample are worth building, else "tron".
    signs : ndarray of int64, shape (n_features,), optional
        Sign of each weight, 0 for any.
    """

    def __init__(self, term: PartitionedTerm, options: LinearOptions, signs: np.ndarray | None = None):
        if options.solver == "dual":
            raise OptionError(
                "solver='dual' has a variable for each pair and reads single rows: it is for rows in memory. Use "
                "solver='auto'."
            )
        data: Any = _Sizes(term, term.n_rows, term.n_queries, term.n_threads)
        self._options = options
        super().__init__(data, term, options, signs)

    def _unconstrained_objective(self, term: DataTerm) -> LinearObjective:
        self._choose(term)
        return LinearObjective(term, 1.0, **self.smoothing, fraction_of=_fraction)

    def _constrained_objective(self, term: DataTerm, signs: np.ndarray) -> ConstrainedObjective:
        self._choose(term)
        fraction_of = no_hessian if self.solver == "tron" else _fraction
        return ConstrainedObjective(term, 1.0, **self.smoothing, fraction_of=fraction_of, cone=SignCone(signs))

    def _choose(self, term: Size) -> None:
        """Choose Newton's method whenever it can be used: its Hessians come from a sample, so they need no pass."""
        if self.solver == "auto":
            self.solver = "newton" if _fraction(term) > 0.0 else "tron"

    def with_backend(self, backend: Backend) -> "PartitionedProblem":
        """A copy of the problem for one of several solvers that run at the same time on one backend.

        Parameters
        ----------
        backend : Backend
            The backend that the solvers share.

        Returns
        -------
        PartitionedProblem
            The problem.
        """
        return PartitionedProblem(self.objective.term.with_backend(backend), self._options, self.signs)

    def solve_path(self, Cs: np.ndarray, interrupted: threading.Event | None = None) -> list[SolverResult]:
        """The solutions for ascending values of C; each pass over the parts serves all of them.

        First, the problem on a sample of the rows is solved for ascending C, each time from its previous solution. Then
        the solver for each C starts from the solution on the sample for the same C.

        Parameters
        ----------
        Cs : ndarray of float64, shape (n_Cs,)
            The values.
        interrupted : threading.Event, optional
            Stops all solvers at the next evaluation when set.

        Returns
        -------
        list of SolverResult
            The solutions.
        """
        starts = self._starts(Cs, interrupted)
        term = self.objective.term

        def solve(C: float, start: np.ndarray | None, shared: Backend) -> SolverResult:
            return self.with_backend(shared).solve(C, start, interrupted)

        solvers = [partial(solve, C, start) for C, start in zip(Cs.tolist(), starts, strict=True)]
        term.fetch()  # before the threads start, so that the sample is fetched once
        step = term.most_solvers
        groups = [solvers[first : first + step] for first in range(0, len(solvers), step)]
        return [result for group in groups for result in side_by_side(term.backend, group)]

    def _starts(self, Cs: np.ndarray, interrupted: threading.Event | None) -> list[np.ndarray | None]:
        """The solutions of the problem on the sample; None if there is no sample."""
        self.objective.width = self.loss.first_width
        self.objective.reweight(float(Cs[0]))
        sample = self.objective.sample()
        if sample is None:
            return [None] * len(Cs)
        scale, w = sample.C / Cs[0], np.zeros(sample.n_variables)
        starts: list[np.ndarray | None] = []
        solve = self.newton if self.signs is None else projected_newton
        options: dict[str, Any] = {"tol": max(self.tol, SAMPLE_TOL), "interrupted": interrupted, "label": None}
        load_lapack(sample.n_variables)
        with one_blas_thread():
            for C in Cs.tolist():
                sample.width = self.loss.first_width
                sample.reweight(scale * C)
                w = solve(sample, w, warm_start=bool(w.any()), **options).w
                starts.append(w)
        return starts


def _fraction(size: Size) -> float:
    """The fraction of the rows that explicit Hessians use, for rows in parts or for their sample in this process."""
    return fraction_of_sample(size) if isinstance(size, PartitionedTerm) else worthwhile_fraction(size)
