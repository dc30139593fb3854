"""Which solver ``solver="auto"`` takes: a function of the size of a problem, and nothing else."""

from collections.abc import Callable
from typing import NamedTuple

from ranksvm.data import DenseDesign, DesignMatrix, SparseDesign
from ranksvm.losses import LOSSES, Pairs
from ranksvm.objectives import dual_sizes
from ranksvm.objectives.hessian_cost import Size, hessian_cost, sampled_fraction, worthwhile_fraction

__all__ = ["SolverChoice", "choose_solver", "worth_the_dual"]

# A Hessian of all rows that costs no more products with it than this is built at once: whatever the conditioning, it is
# soon paid for (measured on 300 to 40,000 rows of 46 to 136 features, where conjugate gradients alone took 0.6 to 3.6
# times as long, and beginning with them up to 1.4 times).
CHEAP_HESSIAN = 13.0
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
