"""Cost of an explicit Hessian relative to a product with it, and the number of rows that pays off in one."""

from typing import Protocol

__all__ = ["MAX_VARIABLES", "Size", "hessian_cost", "sampled_fraction", "worthwhile_fraction"]

# Beyond this many variables an explicit Hessian is not worth its n^2 memory and n^3 factorisation.
MAX_VARIABLES = 2000
# A Hessian of all rows that costs no more multiplications than this is always worth it.
EXACT_HESSIAN_WORK = 1e8
# For sparse rows it is dense nevertheless: not worth it if it costs more passes over X than this.
SPARSE_HESSIAN_PASSES = 100
# Otherwise that of a sample: at least so many rows per variable, below which it is too noisy to be of use, at most so
# many, beyond which it hardly improves, and in between as many as cost so many passes over X. A matrix product does
# PRODUCT_SPEED multiplications in the time a pass takes for one (measured: with 136 float32 features and 2 threads, a
# Hessian of all rows costs 13.6 passes).
SAMPLE_ROWS_PER_VARIABLE = (40, 500)
SAMPLE_PASSES = 0.6
PRODUCT_SPEED = 10.0
# The rows per variable of a Hessian that only preconditions: from 40 to 10, conjugate gradients need a product or two
# more for a step (768 to 1,024 features), and the Hessian, and the problem on its rows, cost a quarter.
PRECONDITIONER_ROWS_PER_VARIABLE = 10
# From this fraction of the rows on, all rows are used.
LARGEST_FRACTION = 0.4
# Measured in nanoseconds on one core of a Xeon (Sapphire Rapids, AVX-512), float32 features, 10 to 2,000 of them:
# a product with the Hessian, for each byte of a row, dense or sparse, each row, and in all; an explicit Hessian, for
# each value of a row (gathered, centred, multiplied by the Laplacian), for each of its multiplications by the others
# in float64 and in float32, for the n^3 of its factorisation, and in all. From the cache to the memory the bytes of a
# product take 0.06 to 0.125: where rows are few, a Hessian costs more products than where they are many.
PRODUCT_BYTE, SPARSE_PRODUCT_BYTE, PRODUCT_ROW, PRODUCT_CALL = 0.09, 0.3, 40.0, 3e4
HESSIAN_VALUE, HESSIAN_DOUBLE, HESSIAN_SINGLE, HESSIAN_FACTOR, HESSIAN_CALL = 7.0, 0.037, 0.019, 0.02, 1e5


class Size(Protocol):
    """The attributes of `DataTerm` that determine costs."""

    @property
    def n_variables(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def curvature_rank(self) -> int: ...
    @property
    def row_bytes(self) -> float: ...
    @property
    def dense(self) -> bool: ...


def hessian_cost(size: Size, fraction: float) -> float:
    """Cost of building and factorising a Hessian, in products with it.

    Parameters
    ----------
    size : Size
        Size of the data.
    fraction : float
        Part of the rows in the Hessian; below 1 it is multiplied in float32.

    Returns
    -------
    float
        The number of products that take as long; infinite for the fraction 0.
    """
    if fraction <= 0.0:
        return float("inf")
    n = size.n_variables
    multiplication = HESSIAN_DOUBLE if fraction >= 1.0 else HESSIAN_SINGLE
    # of fewer pairs than rows the squares of differences are added up
    rows = fraction * min(size.n_rows, size.curvature_rank) * n * (HESSIAN_VALUE + multiplication * n)
    byte = PRODUCT_BYTE if size.dense else SPARSE_PRODUCT_BYTE
    product = size.n_rows * (byte * size.row_bytes + PRODUCT_ROW) + PRODUCT_CALL
    return (rows + HESSIAN_FACTOR * n**3 + HESSIAN_CALL) / product


def worthwhile_fraction(size: Size) -> float:
    """The fraction of the rows that pays off in explicit Hessians if one is built every few steps.

    Parameters
    ----------
    size : Size
        Of the data.

    Returns
    -------
    float
        1 for all of them, 0 where no explicit Hessian is worth its cost.
    """
    n = size.n_variables
    if n > MAX_VARIABLES:
        return 0.0
    if size.n_rows * n * n <= EXACT_HESSIAN_WORK:
        return 1.0
    fraction = _part_worth_a_pass(size, SAMPLE_ROWS_PER_VARIABLE[0])
    costly = not size.dense and fraction * _cost_in_passes(size) > SPARSE_HESSIAN_PASSES
    return 0.0 if costly else fraction


def sampled_fraction(size: Size) -> float:
    """The fraction of the rows for a Hessian that is built late, if at all, and only preconditions.

    Parameters
    ----------
    size : Size
        Of the data.

    Returns
    -------
    float
        1 for all of them, 0 for too many variables.
    """
    if size.n_variables > MAX_VARIABLES:
        return 0.0
    return _part_worth_a_pass(size, PRECONDITIONER_ROWS_PER_VARIABLE)


def _part_worth_a_pass(size: Size, fewest: float) -> float:
    """As many rows as cost about a pass, between the fewest and the most that are of use for each variable."""
    least, most = (rows * size.n_variables / max(1, size.n_rows) for rows in (fewest, SAMPLE_ROWS_PER_VARIABLE[1]))
    return part_of_rows(min(max(SAMPLE_PASSES / _cost_in_passes(size), least), most))


def _cost_in_passes(size: Size) -> float:
    return size.n_variables**2 / (PRODUCT_SPEED * size.row_bytes / 4)


def part_of_rows(fraction: float) -> float:
    """The fraction of the rows to use in a Hessian; 1 if it would be nearly a half or more."""
    return 1.0 if fraction > LARGEST_FRACTION else fraction
