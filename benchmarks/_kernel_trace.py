"""Solve a kernel problem with several solvers and one kernel matrix, and record the progress of each solver."""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from _problems import kernel_problem_of
from ranksvm import KernelRankSVM, RankingData
from ranksvm.fits.kernel import KernelProblem
from ranksvm.fits.problem import RankSVMProblem
from ranksvm.objectives import KernelObjective
from ranksvm.solvers import SolverResult

# The default, Newton's method by conjugate gradients only (with and without landmarks), and the published method.
AUTO, LANDMARKS, PLAIN, TRON = "auto", "Newton with landmarks", "Newton without landmarks", "TRON, as published"
SOLVERS = (AUTO, LANDMARKS, PLAIN, TRON)


@dataclass
class Trace:
    """Progress of a solver after each iteration: seconds, products with Q, objective, gap and coefficients."""

    seconds: list[float] = field(default_factory=list)
    products: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    coefficients: list[np.ndarray] = field(default_factory=list)
    result: SolverResult | None = None

    def reached(self, objective: float) -> int | None:
        """The first iterate whose objective is at most ``objective``, or None."""
        return next((place for place, value in enumerate(self.objective) if value <= objective), None)


def problem_of(data: RankingData, **options: Any) -> KernelProblem:
    """The problem of an exact ``KernelRankSVM(**options)``; its ``matrix`` is computed on first access."""
    estimator = KernelRankSVM(**options)
    return kernel_problem_of(estimator, data, estimator.gamma)


def traced(problem: KernelProblem, solver: str, C: float, tol: float, patience: float = np.inf) -> Trace:
    """Solve from a cold start; stop at the first iterate after ``patience`` seconds.

    The time starts after Q is computed, and Q keeps its dtype. The choice of landmarks is part of the solver's time.
    """
    matrix, trace, enough = problem.matrix, Trace(), threading.Event()
    problem.solver, problem.tol = "tron" if solver == TRON else "newton", tol
    problem.direct = None if solver == AUTO else False
    vars(problem).pop("objective", None)
    started, products_before = time.perf_counter(), matrix.n_products
    if solver == PLAIN:
        problem.objective = KernelObjective(
            matrix, problem.loss.with_pairs(problem.pairs), 1.0, problem.n_threads, **problem.smoothing
        )
    objective = problem.objective
    certificate, last = objective.certificate, [None]

    def noted(point: Any) -> tuple[float, float]:
        value, gap = certificate(point)
        if point is not last[0]:
            last[0] = point
            trace.seconds.append(time.perf_counter() - started)
            trace.products.append(matrix.n_products - products_before)
            trace.objective.append(value)
            trace.gap.append(gap)
            trace.coefficients.append(np.array(point.coefficients))
            if trace.seconds[-1] > patience:
                enough.set()
        return value, gap

    objective.certificate = noted
    # not KernelProblem._solve, which computes Q again in float64 if float32 is too coarse for tol
    trace.result = RankSVMProblem._solve(problem, C, None, enough, None)
    return trace
