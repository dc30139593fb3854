"""Expected number of products of conjugate gradients, estimated from a few differences of rows beforehand."""

import numpy as np

__all__ = ["DIFFERENCES", "expected_products"]

# Number of differences of rows that are examined.
DIFFERENCES = 32
# The exponent of the decay of the eigenvalues is interpolated between the multiples of 1/2 up to 4.
EXPONENTS = 0.5 * np.arange(9)


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
    scaled = differences / np.sqrt(scale)
    gram = scaled @ scaled.T
    squares = gram.diagonal()
    inverse = np.divide(1.0, squares, out=np.zeros(len(squares)), where=squares > 0.0)
    m, n = np.count_nonzero(inverse), differences.shape[1]
    if m < 2:
        return 0.0
    cosine_square = float(inverse @ (gram * gram) @ inverse - m) / (m * (m - 1))
    rank, spread = min(n_rows, n), np.sqrt(n / n_rows)
    eigenvalues = _decay(n, cosine_square)
    eigenvalues[:rank] *= np.linspace((1.0 + spread) ** 2, (1.0 - spread) ** 2, rank)
    eigenvalues[rank:] = 0.0
    identity = float(np.mean(1.0 / scale))
    eigenvalues = (1.0 - identity) * n * eigenvalues + identity
    with np.errstate(divide="ignore"):  # equal eigenvalues: one product
        rates = 2.0 * np.arctanh(np.sqrt(eigenvalues[-1] / eigenvalues))
    return float((np.arange(n) + (0.5 * log_reduction + np.log(2.0)) / rates).min())


def _decay(n: int, squares: float) -> np.ndarray:
    """``k^-p``, k = 1 to n, divided by their sum, with p such that the results' squares sum to about ``squares``."""
    k = np.arange(1.0, n + 1.0)
    powers = np.vander(k**-0.5, len(EXPONENTS), increasing=True)
    sums = np.einsum("ij,ij->j", powers, powers) / powers.sum(axis=0) ** 2
    decaying: np.ndarray = k ** -np.interp(np.log(max(squares, 1.0 / n)), np.log(sums), EXPONENTS)
    decaying /= float(decaying.sum())
    return decaying
