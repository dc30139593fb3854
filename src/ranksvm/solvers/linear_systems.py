"""Linear systems of a Newton step: approximate inverses of a Hessian, and preconditioned conjugate gradients."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import ranksvm._compiled.cholesky as cholesky
from ranksvm.exceptions import DataError

__all__ = [
    "FEW_VARIABLES",
    "NewtonStep",
    "by_cholesky",
    "by_diagonal",
    "by_secant",
    "conjugate_gradient",
    "load_lapack",
]

# Up to this number of variables our own loops compute the factor. Beyond it LAPACK does, which takes 0.25 s to load.
# Measured for 46 and 128 variables: our factor 21 and 146 us, LAPACK's 15 and 64; our solution 2.0 and 6.5 us, the
# BLAS's 3.6 and 8.0.
FEW_VARIABLES = 128

# A cosine between a step and the change of the gradient below this is round-off.
ROUND_OFF = 1e-10


def by_cholesky(hessian: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """``r -> H^-1 r`` for an explicit Hessian, which is overwritten.

    Parameters
    ----------
    hessian : ndarray of float64, shape (n, n)
        Symmetric, positive definite up to round-off. If round-off hides all but the diagonal, only the diagonal is
        inverted.

    Returns
    -------
    callable
        The map from r to ``H^-1 r``.

    Raises
    ------
    DataError
        When an entry is not finite.
    """
    if not np.isfinite(hessian).all():
        raise DataError(
            "The Hessian overflows float64: features, weights of pairs or C are too large. Scale them down, or "
            "choose solver='tron', which needs none."
        )
    diagonal = np.diagonal(hessian).copy()
    diagonal[diagonal <= 0.0] = 1.0  # lost in the round-off of much larger entries
    places = slice(None, None, len(hessian) + 1)  # of the diagonal; np.diag_indices_from takes ten times as long
    hessian.flat[places] = diagonal
    # Scaled to a unit diagonal: features of very different scales then lose no digits.
    scale = 1.0 / np.sqrt(diagonal)
    hessian *= scale
    hessian *= scale[:, np.newaxis]
    shift = 0.0
    while (solve := _factorized(hessian, scale)) is None:
        # Collinear features: round-off has made an eigenvalue negative.
        grown = max(1e-14, 100.0 * shift)
        if not grown <= 1.0:
            return by_diagonal(diagonal)
        hessian.flat[places] += grown - shift
        shift = grown
    return solve


def load_lapack(n_variables: int) -> None:
    """Load the libraries that `by_cholesky` needs for ``n_variables``.

    Call it before `one_blas_thread`, which limits only the BLAS libraries that are already loaded.

    Parameters
    ----------
    n_variables : int
        Number of variables.
    """
    if n_variables > FEW_VARIABLES:
        import scipy.linalg.lapack  # noqa: F401


def _factorized(matrix: np.ndarray, scale: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
    """A solver of systems with H, where ``matrix = S H S``, S diagonal; None if H is not positive definite."""
    # S H S = L L', so that H = (S^-1 L) (S^-1 L)': the rows of L are scaled once, instead of every vector twice
    unscaled = (1.0 / scale)[:, np.newaxis]
    if len(matrix) <= FEW_VARIABLES:
        factor = matrix.copy()
        if not cholesky.factorize(factor):
            return None
        factor *= unscaled

        def solve(vector: np.ndarray) -> np.ndarray:
            found = vector.copy()
            cholesky.solve(factor, found)
            return found

        return solve
    # LAPACK itself: scipy.linalg's functions take several times as long for a few hundred variables. Two solutions with
    # the triangle take half the time of dpotrs, which is for many right-hand sides.
    from scipy.linalg.blas import dtrsv
    from scipy.linalg.lapack import dpotrf

    # The transpose of a symmetric array is in LAPACK's order.
    lapack_factor, failed = dpotrf(matrix.T, lower=1, clean=0)
    if failed:
        return None
    lapack_factor *= unscaled
    return lambda vector: dtrsv(lapack_factor, dtrsv(lapack_factor, vector, lower=1), lower=1, trans=1, overwrite_x=1)


def by_diagonal(diagonal: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """``r -> r / d``.

    Parameters
    ----------
    diagonal : ndarray of float64, shape (n,) or (1,)
        Positive; one number is used for all entries.

    Returns
    -------
    callable
        Divides a vector by the diagonal.
    """
    inverse = 1.0 / diagonal
    return lambda vector: inverse * vector


def by_secant(
    solve: Callable[[np.ndarray], np.ndarray],
    step: np.ndarray,
    change: np.ndarray,
    inner: Callable[[np.ndarray, np.ndarray], float],
) -> Callable[[np.ndarray], np.ndarray]:
    """An approximate inverse that maps the last change of the gradient to the step that caused it (BFGS update).

    The curvature along the last step is known at no cost: a preconditioner from another point, or from a sample,
    learns it without a pass over the data.

    Parameters
    ----------
    solve : callable
        An approximate inverse, self-adjoint and positive definite.
    step, change : ndarray of float64
        A step, and the change of the gradient along it.
    inner : callable
        The inner product.

    Returns
    -------
    callable
        The updated inverse, self-adjoint and positive definite; ``solve`` itself if the change shows no curvature.
    """
    curvature = inner(step, change)
    if not curvature > ROUND_OFF * np.sqrt(inner(step, step) * inner(change, change)):
        return solve

    def updated(vector: np.ndarray) -> np.ndarray:
        along = inner(step, vector) / curvature
        found = solve(vector - along * change)
        found += (along - inner(change, found) / curvature) * step
        return found

    return updated


@dataclass
class NewtonStep:
    """An approximate minimizer of the quadratic model ``g'd + 1/2 d'Hd``."""

    step: np.ndarray
    residual: np.ndarray  # -(g + H step)
    length: float  # length of the step in the norm of the preconditioner
    n_products: int
    # the fraction of the squared gradient that is left, in the norm of the inverse preconditioner; not set if the step
    # ends on the boundary
    residual_fraction: float = 1.0
    on_boundary: bool = False
    stopped: bool = False  # whether `stop` ended the method before it met the tolerance


def conjugate_gradient(
    product: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    inner: Callable[[np.ndarray, np.ndarray], float] = np.dot,
    *,
    tolerance: float,
    max_products: int,
    radius: float = np.inf,
    stop: Callable[[int, float], bool] | None = None,
    contracts: bool = False,
    first: np.ndarray | None = None,
) -> NewtonStep:
    """Solve ``H d = -g`` approximately.

    With a ``radius`` this is Steihaug's method in the norm of the preconditioner M (Steihaug, SIAM J. Numer. Anal.
    20, 1983; Lin & Moré 1999): it stops on the boundary ``d'Md = radius^2``.

    Parameters
    ----------
    product : callable
        ``d -> H d``, H self-adjoint in the inner product and positive definite.
    gradient : ndarray of float64
        ``g``.
    precondition : callable
        ``r -> M^-1 r``, M self-adjoint in the same inner product as H, otherwise the method fails.
    inner : callable
        The inner product, written ``u'v`` below.
    tolerance : float
        Stop when ``r'M^-1 r`` has fallen by the square of this factor.
    max_products : int
        Largest number of products with H.
    radius : float
        Radius of the trust region, in the norm of M.
    stop : callable, optional
        ``stop(n_products, r'M^-1 r / g'M^-1 g)`` returns before each product whether to stop there.
    contracts : bool
        Whether M^-1 is at most the identity and costs as much as a product: it is then not applied to a residual whose
        ``r'r`` is small enough already.
    first : ndarray of float64, optional
        ``-M^-1 g``, if it is known already.

    Returns
    -------
    NewtonStep
        The step, its residual and its cost.
    """
    step, residual = np.zeros_like(gradient), -gradient
    z = precondition(residual) if first is None else first
    direction = z.copy()
    rho = inner(residual, z)
    whole = rho
    target = tolerance * tolerance * whole
    # M-norms by recurrence: |d|^2, d'M p and |p|^2
    step_norm, cross, direction_norm = 0.0, 0.0, rho
    n_products = 0
    while rho > target and n_products < max_products and direction_norm > 0.0:
        if stop is not None and stop(n_products, rho / whole):
            return NewtonStep(step, residual, float(np.sqrt(step_norm)), n_products, rho / whole, stopped=True)
        image = product(direction)
        n_products += 1
        curvature = inner(direction, image)
        if curvature <= 0.0:  # round-off: no further progress in this direction
            break
        alpha = rho / curvature
        new_norm = step_norm + 2 * alpha * cross + alpha * alpha * direction_norm
        if new_norm >= radius * radius:
            # the positive root of |d + alpha p|^2 = radius^2
            room = radius * radius - step_norm
            alpha = room / (cross + np.sqrt(cross * cross + direction_norm * room))
            step += alpha * direction
            residual = residual - alpha * image
            return NewtonStep(step, residual, radius, n_products, on_boundary=True)
        step += alpha * direction
        residual = residual - alpha * image
        if contracts and (bound := inner(residual, residual)) <= target:
            rho, step_norm = bound, new_norm
            break
        z = precondition(residual)
        rho_new = inner(residual, z)
        beta = rho_new / rho
        cross = beta * (cross + alpha * direction_norm)
        direction_norm = rho_new + beta * beta * direction_norm
        step_norm = new_norm
        direction *= beta
        direction += z
        rho = rho_new
    return NewtonStep(step, residual, float(np.sqrt(step_norm)), n_products, rho / whole if whole > 0.0 else 0.0)
