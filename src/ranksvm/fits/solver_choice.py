"""Which solver ``solver="auto"`` takes: by the sizes of a problem, and for the dual by the loss, too."""

from collections.abc import Callable
from typing import NamedTuple

from ranksvm.objectives import DualSize
from ranksvm.terms.hessian_cost import Size, hessian_cost, sampled_fraction, worthwhile_fraction

__all__ = ["SolverChoice", "choose_constrained_solver", "choose_solver"]

# Newton's method builds Hessians from the first step on, whatever the conditioning. That is the fastest where one of
# all rows costs no more products with it than this: up to 57 features, and 136 whether or not they are isotropic (0.5
# to 0.9 times as long as conjugate gradients that build a Hessian once it pays, with 10,000 rows and C = 1e-4 to 100),
CHEAP_HESSIAN = 14.5
# or where there are so many rows that one of a sample costs no more than the second, and one of all rows no more than
# the first.
CHEAP_SAMPLED_HESSIAN = (17.5, 0.9)
# The dual is taken by solver "auto" where queries with pairs have at most this many rows for each feature, ...
DUAL_ROWS = 1.0
# ... what it holds is at most this many times the stored values of these rows (it is to be a small part of the fit's
# memory), and a cycle over its pairs at most this many multiplications for each of them (most alpha do not change).
DUAL_NUMBERS = 4.0
DUAL_WORK = 64.0
# Of smooth losses only where documents have at most this many pairs each. With 34 pairs a document (1,000 x 47,000 made
# text, 100 documents a query) it took 1.0 s at C = 1 where TRON took 0.06, and did not end at C = 128; with 6.6, 0.06
# and 0.44 s where TRON took 0.05 and 0.73. The hinge took 0.3 and 0.4 s with 34 (processor time, one thread).
DUAL_PAIRS = 8.0


class SolverChoice(NamedTuple):
    """A solver and its settings.

    Attributes
    ----------
    solver : str
        "newton", "adaptive", "tron" or "dual".
    fraction_of : callable
        The part of the rows in explicit Hessians, for data of a `Size`: the solver may begin with a sample.
    """

    solver: str
    fraction_of: Callable[[Size], float]


def choose_solver(
    size: Size, loss: str = "squared_hinge", dual_size: Callable[[], DualSize] | None = None
) -> SolverChoice:
    """The solver that is expected to be the fastest, or near it, for any C and conditioning.

    Newton's method where Hessians cost little beside products with them; else the dual where there are so few rows and
    pairs that it is the cheaper problem; TRON where there are more than 2,000 features; and for what is left conjugate
    gradients that are followed by Newton's method once Hessians pay.

    Parameters
    ----------
    size : Size
        Of the data.
    loss : str
        Name of the loss.
    dual_size : callable, optional
        Gives the size of the dual, if the problem has one that can be solved; called only if it matters.

    Returns
    -------
    SolverChoice
        The solver and its settings.
    """
    if _hessians_are_cheap(size):
        return SolverChoice("newton", worthwhile_fraction)
    if dual_size is not None and _dual_is_cheap(size, loss, dual_size()):
        return SolverChoice("dual", sampled_fraction)
    return SolverChoice("adaptive" if sampled_fraction(size) > 0.0 else "tron", sampled_fraction)


def choose_constrained_solver(
    size: Size,
    solver: str = "auto",
    loss: str = "squared_hinge",
    dual_size: Callable[[], DualSize] | None = None,
) -> SolverChoice:
    """The settings for weights of given signs: explicit Hessians, products with them ("tron"), or the dual.

    Parameters
    ----------
    size : Size
        Of the data.
    solver : str
        "newton", "tron", "dual", or "auto": explicit Hessians where they are worth their cost, else the dual where it
        is the cheaper problem.
    loss, dual_size : str, callable
        As in `choose_solver`.

    Returns
    -------
    SolverChoice
        The solver and its settings.
    """
    if solver == "auto" and worthwhile_fraction(size) > 0.0:
        solver = "newton"
    elif solver == "auto":
        solver = "dual" if dual_size is not None and _dual_is_cheap(size, loss, dual_size()) else "tron"
    return SolverChoice(solver, worthwhile_fraction if solver == "newton" else _no_hessian)


def _no_hessian(_size: Size) -> float:
    return 0.0


def _hessians_are_cheap(size: Size) -> bool:
    fraction = worthwhile_fraction(size)
    of_all, of_sample = hessian_cost(size, 1.0), hessian_cost(size, fraction)
    most_of_all, most_of_sample = CHEAP_SAMPLED_HESSIAN
    return fraction > 0.0 and (of_all <= CHEAP_HESSIAN or (of_all <= most_of_all and of_sample <= most_of_sample))


def _dual_is_cheap(size: Size, loss: str, dual: DualSize) -> bool:
    # a stored value takes 8 bytes, or somewhat more or less
    stored = dual.n_rows * size.row_bytes / 8.0
    few_pairs = loss == "hinge" or dual.n_pairs <= DUAL_PAIRS * dual.n_rows
    few_rows = dual.n_rows <= DUAL_ROWS * size.n_variables
    return few_pairs and few_rows and dual.n_numbers <= DUAL_NUMBERS * stored and dual.work <= DUAL_WORK * stored
