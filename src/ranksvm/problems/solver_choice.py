"""Which solver ``solver="auto"`` takes: by the sizes of a problem, and for the dual by the loss, too."""

from collections.abc import Callable
from typing import NamedTuple

from ranksvm.data import DenseDesign, DesignMatrix, SparseDesign
from ranksvm.losses import LOSSES, Pairs
from ranksvm.objectives import dual_sizes
from ranksvm.objectives.hessian_cost import Size, hessian_cost, sampled_fraction, worthwhile_fraction

__all__ = ["SolverChoice", "choose_solver", "worth_the_dual"]

# Newton's method builds Hessians from the first step on, whatever the conditioning. That is the fastest where one of
# all rows costs no more products with it than this (46 features: beginning with conjugate gradients took up to 1.4
# times as long on 10,000 rows),
CHEAP_HESSIAN = 8.0
# or where there are so many rows that one of a sample costs no more than the second, and so few features that one of
# all rows costs no more than the first: 136 features from 40,000 rows on. On 10,000 rows, of which Newton's method
# takes all, it took 1.4 to 1.8 times as long as TRON where features are isotropic.
CHEAP_SAMPLED_HESSIAN = (25.0, 2.5)
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


def worth_the_dual(design: DesignMatrix, pairs: Pairs, loss: str) -> bool:
    """Whether there are so few rows and pairs that the dual is the cheaper problem.

    Parameters
    ----------
    design : DesignMatrix
        The features.
    pairs : ComparablePairs or PairList
        The pairs.
    loss : str
        Name of the loss.

    Returns
    -------
    bool
        Whether they are.
    """
    # not for rows that are computed when they are read, nor for a loss of the user's own
    if not isinstance(design, DenseDesign | SparseDesign) or loss not in LOSSES:
        return False
    n_rows, n_numbers, work = dual_sizes(pairs)
    # a stored value takes 8 bytes, or somewhat more or less
    stored = n_rows * design.row_bytes / 8.0
    few = n_rows <= DUAL_ROWS * design.n_features and (loss == "hinge" or pairs.n_pairs <= DUAL_PAIRS * n_rows)
    return few and n_numbers <= DUAL_NUMBERS * stored and work <= DUAL_WORK * stored
