"""Which solver ``solver="auto"`` takes: a function of the size of a problem, and nothing else."""

from collections.abc import Callable
from typing import NamedTuple

from ranksvm.objectives.hessian_cost import Size, hessian_cost, sampled_fraction, worthwhile_fraction

__all__ = ["SolverChoice", "choose_solver"]

# Newton's method builds Hessians from the first step on, whatever the conditioning. That is the fastest where one of
# all rows costs no more products with it than this (46 features: beginning with conjugate gradients took up to 1.4
# times as long on 10,000 rows),
CHEAP_HESSIAN = 8.0
# or where there are so many rows that one of a sample costs no more than the second, and so few features that one of
# all rows costs no more than the first: 136 features from 40,000 rows on. On 10,000 rows, of which Newton's method
# takes all, it took 1.4 to 1.8 times as long as TRON where features are isotropic.
CHEAP_SAMPLED_HESSIAN = (25.0, 2.5)


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

    Newton's method where Hessians cost little beside products with them; TRON where there are more than 2,000
    features; and in between conjugate gradients that build a Hessian once it pays.

    Parameters
    ----------
    size : Size
        Of the data.

    Returns
    -------
    SolverChoice
        The solver and its settings.
    """
    if _hessians_are_cheap(size):
        return SolverChoice("newton", worthwhile_fraction)
    return SolverChoice("adaptive" if sampled_fraction(size) > 0.0 else "tron", sampled_fraction)


def _hessians_are_cheap(size: Size) -> bool:
    fraction = worthwhile_fraction(size)
    of_all, of_sample = hessian_cost(size, 1.0), hessian_cost(size, fraction)
    most_of_all, most_of_sample = CHEAP_SAMPLED_HESSIAN
    return fraction > 0.0 and (of_all <= CHEAP_HESSIAN or (of_all <= most_of_all and of_sample <= most_of_sample))
