"""Which solver ``solver="auto"`` takes: a function of the size of a problem, and nothing else."""

from collections.abc import Callable
from typing import NamedTuple

from ranksvm.objectives.hessian_cost import Size, hessian_cost, sampled_fraction, worthwhile_fraction

__all__ = ["SolverChoice", "choose_solver"]

# A Hessian of all rows that costs no more products with it than this is built at once: whatever the conditioning, it is
# soon paid for (measured on 300 to 40,000 rows of 46 to 136 features, where conjugate gradients alone took 0.6 to 3.6
# times as long, and beginning with them up to 1.4 times).
CHEAP_HESSIAN = 13.0


class SolverChoice(NamedTuple):
    """A solver and its settings.

    Attributes
    ----------
    solver : str
        "newton", "adaptive" or "tron".
    fraction_of : callable
        The part of the rows in explicit Hessians, for data of a `Size`: the solver may begin with a sample.
    """

    solver: str
    fraction_of: Callable[[Size], float]


def choose_solver(size: Size) -> SolverChoice:
    """The solver that is expected to be the fastest, or near it, for any loss, C and conditioning.

    Newton's method with explicit Hessians where these cost little beside products with them, that is for up to about
    136 dense features; TRON where there are more than 2,000; and in between conjugate gradients that build a Hessian
    once it pays.

    Parameters
    ----------
    size : Size
        Of the data.

    Returns
    -------
    SolverChoice
        The solver and its settings.
    """
    if worthwhile_fraction(size) > 0.0 and hessian_cost(size, 1.0) <= CHEAP_HESSIAN:
        return SolverChoice("newton", worthwhile_fraction)
    return SolverChoice("adaptive" if sampled_fraction(size) > 0.0 else "tron", sampled_fraction)
