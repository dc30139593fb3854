"""What an explicit Hessian costs relative to products with it, how many rows to use in one, and how many products."""

from functools import partial
from typing import Protocol

import numpy as np

__all__ = [
    "DIFFERENCES",
    "MAX_VARIABLES",
    "SINGLE_WORK",
    "Size",
    "cost_with_hessian",
    "expected_products",
    "expected_products_by_cosine",
    "fraction_of_sample",
    "hessian_cost",
    "mean_squared_cosine",
    "no_hessian",
    "sampled_fraction",
    "worthwhile_fraction",
]

# Beyond this many variables an explicit Hessian is not worth its n^2 memory and n^3 factorization.
MAX_VARIABLES = 2000
# Hessians with fewer products of two features, which take less than 0.2 ms, gain nothing from float32.
SINGLE_WORK = 1 << 22
# A Hessian of all rows that costs no more multiplications than this is always worth it, unless there are so many rows
# for each variable that a sample gives nearly the same.
EXACT_HESSIAN_WORK = 1e8
EXACT_ROWS_PER_VARIABLE = 1000
# The Hessian of sparse rows is also dense: it is not worth its cost if it takes more passes over X than this.
SPARSE_HESSIAN_PASSES = 100
# Otherwise the Hessian is computed from a sample of as many rows as cost SAMPLE_PASSES passes over X.
# SAMPLE_ROWS_PER_VARIABLE has the smallest and the largest number of rows per variable: with fewer rows the Hessian is
# too noisy, and with more it hardly improves. A matrix product does PRODUCT_SPEED multiplications in the time a pass
# takes for one (measured: with 136 float32 features and 2 threads, a Hessian of all rows costs 13.6 passes).
SAMPLE_ROWS_PER_VARIABLE = (40, 500)
SAMPLE_PASSES = 0.6
PRODUCT_SPEED = 10.0
# Conjugate gradients need UNAVOIDABLE_PRODUCTS products with the Hessian in any case. With the Hessian of r rows a
# variable as preconditioner, each additional product reduces the logarithm of the duality gap by about log(ACTIVE_PART
# * r), r up to USEFUL_ROWS (beyond which changes of the active pairs limit the reduction). Products of a fit of 100,000
# x 136, with 5, 10, 20, 40, 80 rows a variable: 18, 12, 8, 7, 6 at C = 1e-3 and 23, 15, 11, 9, 9 at C = 1; of 35,969
# rows with 136 real features and products of features at C = 1, with 20, 40, 100: 24, 17, 13. With fewer than
# PRECONDITIONER_ROWS_PER_VARIABLE rows a variable, this estimate is of little use.
UNAVOIDABLE_PRODUCTS = 2.0
ACTIVE_PART = 0.25
USEFUL_ROWS = 40.0
PRECONDITIONER_ROWS_PER_VARIABLE = 10.0
# A Hessian of all rows has no sampling error, and is as good as a sample with this multiple of the rows. (With 1,000 x
# 245 independent features and C = 100, so 4 rows a variable, Newton's method took 18 products.)
ALL_ROWS = 4.0
# If a Hessian only preconditions, its number of rows is chosen to minimize the cost of PRECONDITIONERS such Hessians
# plus the cost of the products that reduce the logarithm of the gap by LOG_REDUCTION. CANDIDATES are the numbers of
# rows per variable that are tried.
PRECONDITIONERS = 3.0
LOG_REDUCTION = 25.0
CANDIDATES = np.geomspace(PRECONDITIONER_ROWS_PER_VARIABLE, USEFUL_ROWS, 7).tolist()
# If rows are in other processes, a Hessian is built from a sample in this process, and a product takes a round (a sum
# over all processes). Building a Hessian may then take this many nanoseconds, about as many as a few rounds.
SAMPLE_TIME = 2e8
# From this fraction of the rows on, all rows are used.
LARGEST_FRACTION = 0.4
# Nanoseconds, measured on one core of a Xeon (Sapphire Rapids, AVX-512) with 10 to 1,000 float32 features. A product
# with the Hessian takes PRODUCT_BYTE (dense, in the cache), MEMORY_BYTE (dense, in memory) or SPARSE_BYTE for each byte
# of a row, PRODUCT_ROW for each row, and PRODUCT_CALL in addition. A factorization takes HESSIAN_FACTOR times n^3 plus
# HESSIAN_CALL, and a solution with the factors SOLUTION times n^2. Products and factorizations take as long on an EPYC
# (AVX2), where SOLUTION is 0.2 to 0.5, for 136 to 2,000 features.
PRODUCT_BYTE, MEMORY_BYTE, SPARSE_BYTE, PRODUCT_ROW, PRODUCT_CALL = 0.085, 0.13, 0.14, 15.0, 1.2e4
HESSIAN_FACTOR, HESSIAN_CALL, SOLUTION = 0.0135, 3e4, 0.3
# Nanoseconds that a Hessian takes on one core of that EPYC: for each row, for each value of the row (gathered,
# centered, multiplied by the Laplacian), and for each multiplication of two values in float32. Measured with 46, 136,
# 245, 500 and 768 features: 144 to 220, 590 to 920, 1,790 to 2,420, 6,300 to 8,800 and 25,000 ns a row with five
# levels, half as much with two.
HESSIAN_ROW, HESSIAN_VALUE, HESSIAN_SINGLE = 50.0, 1.0, 0.037
# Features of at least this number of bytes are read from memory, not from a cache.
CACHE_BYTES = 64 << 20
# Number of differences of rows that are examined.
DIFFERENCES = 32
# The exponent of the decay of the eigenvalues is interpolated between the multiples of 1/2 up to 4.
EXPONENTS = 0.5 * np.arange(9)


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


def hessian_cost(size: Size, fraction: float, share: float = 1.0) -> float:
    """Cost of building and factorizing a Hessian, as a number of products with it.

    Parameters
    ----------
    size : Size
        Size of the data.
    fraction : float
        Part of the rows in the Hessian.
    share : float
        Time for its rows, as a fraction of the time for the rows of other Hessians.

    Returns
    -------
    float
        The number of products that take the same time; infinite for the fraction 0.
    """
    if fraction <= 0.0:
        return float("inf")
    n = size.n_variables
    # with fewer pairs than rows, the squares of differences are added up
    rows = share * fraction * min(size.n_rows, size.curvature_rank) * _row_time(n)
    return (rows + HESSIAN_FACTOR * n**3 + HESSIAN_CALL) / _product_cost(size)


def cost_with_hessian(size: Size, fraction: float, log_reduction: float) -> float:
    """Cost of conjugate gradients with a new Hessian as preconditioner, as a number of unpreconditioned products.

    Parameters
    ----------
    size : Size
        Size of the data.
    fraction : float
        Part of the rows in the Hessian.
    log_reduction : float
        The decrease of the logarithm of the duality gap.

    Returns
    -------
    float
        The number of products that take the same time as the expected products, each followed by a solution with the
        factors of the Hessian.
    """
    n = size.n_variables
    useful = min((ALL_ROWS if fraction >= 1.0 else fraction) * size.n_rows / n, USEFUL_ROWS)
    products = UNAVOIDABLE_PRODUCTS + log_reduction / np.log(
        ACTIVE_PART * max(useful, PRECONDITIONER_ROWS_PER_VARIABLE)
    )
    return float(products * (1.0 + SOLUTION * n**2 / _product_cost(size)))


def _row_time(n_variables: int) -> float:
    return HESSIAN_ROW + n_variables * (HESSIAN_VALUE + HESSIAN_SINGLE * n_variables)


def _product_cost(size: Size) -> float:
    in_memory = size.n_rows * size.row_bytes > CACHE_BYTES
    byte = SPARSE_BYTE if not size.dense else MEMORY_BYTE if in_memory else PRODUCT_BYTE
    return size.n_rows * (byte * size.row_bytes + PRODUCT_ROW) + PRODUCT_CALL


def no_hessian(size: Size) -> float:
    """Return 0, the fraction of the rows for explicit Hessians of a solver that builds none.

    Parameters
    ----------
    size : Size
        Size of the data.

    Returns
    -------
    float
        0.
    """
    return 0.0


def worthwhile_fraction(size: Size) -> float:
    """The fraction of the rows worth using in explicit Hessians if one is built every few steps.

    Parameters
    ----------
    size : Size
        Size of the data.

    Returns
    -------
    float
        1 for all of them, 0 if no explicit Hessian is worth its cost.
    """
    n = size.n_variables
    if n > MAX_VARIABLES:
        return 0.0
    if size.n_rows * n * n <= EXACT_HESSIAN_WORK and size.n_rows <= EXACT_ROWS_PER_VARIABLE * n:
        return 1.0
    least, most = (rows * n / max(1, size.n_rows) for rows in SAMPLE_ROWS_PER_VARIABLE)
    fraction = part_of_rows(min(max(SAMPLE_PASSES / _cost_in_passes(size), least), most))
    costly = not size.dense and fraction * _cost_in_passes(size) > SPARSE_HESSIAN_PASSES
    return 0.0 if costly else fraction


def sampled_fraction(size: Size) -> float:
    """The fraction of the rows for a Hessian that is built late, if at all, and only preconditions.

    Parameters
    ----------
    size : Size
        Size of the data.

    Returns
    -------
    float
        1 for all of them, 0 for too many variables.
    """
    if size.n_variables > MAX_VARIABLES:
        return 0.0
    variables_per_row = size.n_variables / max(1, size.n_rows)
    fractions = {part_of_rows(rows * variables_per_row) for rows in CANDIDATES}
    return min(sorted(fractions), key=partial(_cost_of_preconditioners, size))


def fraction_of_sample(size: Size) -> float:
    """The fraction of the rows for Hessians of a sample in this process, if the rows are in other processes.

    Parameters
    ----------
    size : Size
        Size of the data.

    Returns
    -------
    float
        1 for all of them, 0 if no explicit Hessian is worth its cost.
    """
    fraction = worthwhile_fraction(size)
    if fraction in (0.0, 1.0):
        return fraction
    n = size.n_variables
    rows = SAMPLE_TIME / (n * _row_time(n))
    least, most = SAMPLE_ROWS_PER_VARIABLE
    return part_of_rows(min(max(rows, least), most) * n / size.n_rows)


def _cost_of_preconditioners(size: Size, fraction: float) -> float:
    return PRECONDITIONERS * hessian_cost(size, fraction) + cost_with_hessian(size, fraction, LOG_REDUCTION)


def _cost_in_passes(size: Size) -> float:
    return max(1, size.n_variables) ** 2 / (PRODUCT_SPEED * size.row_bytes / 4)


def part_of_rows(fraction: float) -> float:
    """The fraction of the rows to use in a Hessian; 1 if it would be nearly one half or more."""
    return 1.0 if fraction > LARGEST_FRACTION else fraction


def expected_products(differences: np.ndarray, scale: np.ndarray, n_rows: int, log_reduction: float) -> float:
    """Expected number of products that conjugate gradients take with ``I + C X'HX``, preconditioned by its diagonal.

    The preconditioned Hessian's eigenvalues are modeled as ``1 - t + t n s k^-p / sum of k^-p``, k = 1 to n, with t
    the mean fraction of the diagonal that is not from I. The exponent p follows from the cosines of the angles between
    differences, preconditioned in the same way: if these have the second moments M and the length 1, the mean square
    of the cosine of two of them is ``trace(M^2)``, the sum of the squares of the eigenvalues of M. Few rows spread the
    eigenvalues: s decreases evenly with k, from the upper to the lower end of the Marchenko-Pastur law, ``(1 +
    sqrt(n/m))^2`` to ``(1 - sqrt(n/m))^2``, and is 0 for k > m.

    To reduce the squared residual by the factor exp(-L), conjugate gradients take j products for the j largest
    eigenvalues, and ``(L/2 + log 2) / (2 artanh(1/sqrt(c)))`` more, where c is the condition number of the others [1]_;
    the result is the minimum of this sum over j.

    Parameters
    ----------
    differences : ndarray of float64, shape (n_differences, n_variables)
        Differences of rows of pairs.
    scale : ndarray of float64, shape (n_variables,) or (1,)
        The diagonal of the Hessian; one number is used for all.
    n_rows : int
        Number m of rows that the differences represent; the rank of X'HX, if it is less.
    log_reduction : float
        The decrease L of the logarithm of the squared residual.

    Returns
    -------
    float
        The number of products; 0 if fewer than two differences are not 0.

    References
    ----------
    .. [1] O. Axelsson and G. Lindskog (1986). "On the rate of convergence of the preconditioned conjugate gradient
       method." Numerische Mathematik 48, 499-523.
    """
    squared_cosine = mean_squared_cosine(differences / np.sqrt(scale))
    if squared_cosine is None:
        return 0.0
    return expected_products_by_cosine(
        squared_cosine, differences.shape[1], float(np.mean(1.0 / scale)), n_rows, log_reduction
    )


def expected_products_by_cosine(
    squared_cosine: float, n: int, identity: float, n_rows: int, log_reduction: float
) -> float:
    """The result of `expected_products`, from the numbers on which it depends.

    Parameters
    ----------
    squared_cosine : float
        The mean squared cosine of the angle between two differences, preconditioned by the diagonal.
    n : int
        Number of variables.
    identity : float
        The mean fraction of the diagonal that is from I.
    n_rows, log_reduction
        As in `expected_products`.

    Returns
    -------
    float
        The number of products.
    """
    rank, spread = min(n_rows, n), np.sqrt(n / n_rows)
    eigenvalues = _decay(n, squared_cosine)
    eigenvalues[:rank] *= np.linspace((1.0 + spread) ** 2, (1.0 - spread) ** 2, rank)
    eigenvalues[rank:] = 0.0
    eigenvalues = (1.0 - identity) * n * eigenvalues + identity
    with np.errstate(divide="ignore"):  # equal eigenvalues: one product
        rates = 2.0 * np.arctanh(np.sqrt(eigenvalues[-1] / eigenvalues))
    return float((np.arange(n) + (0.5 * log_reduction + np.log(2.0)) / rates).min())


def mean_squared_cosine(differences: np.ndarray) -> float | None:
    """The mean square of the cosine of the angle between two differences.

    Parameters
    ----------
    differences : ndarray of float64, shape (n_differences, n_variables)
        Differences of rows of pairs.

    Returns
    -------
    float or None
        The mean; None if fewer than two differences are not 0.
    """
    gram = differences @ differences.T
    squares = gram.diagonal()
    inverse = np.divide(1.0, squares, out=np.zeros(len(squares)), where=squares > 0.0)
    m = np.count_nonzero(inverse)
    return None if m < 2 else float(inverse @ (gram * gram) @ inverse - m) / (m * (m - 1))


def _decay(n: int, squares: float) -> np.ndarray:
    """``k^-p``, k = 1 to n, divided by their sum, with p such that the results' squares sum to about ``squares``."""
    k = np.arange(1.0, n + 1.0)
    powers = np.vander(k**-0.5, len(EXPONENTS), increasing=True)
    sums = np.einsum("ij,ij->j", powers, powers) / powers.sum(axis=0) ** 2
    decaying: np.ndarray = k ** -np.interp(np.log(max(squares, 1.0 / n)), np.log(sums), EXPONENTS)
    decaying /= float(decaying.sum())
    return decaying
