"""Preconditioned conjugate gradients for a Newton step, within a trust region if there is one."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["NewtonStep", "conjugate_gradient"]


@dataclass
class NewtonStep:
    """An approximate minimiser of the quadratic model ``g'd + 1/2 d'Hd``."""

    step: np.ndarray
    residual: np.ndarray  # -(g + H step)
    length: float  # of the step, in the norm of the preconditioner
    n_products: int
    left: float = (
        1.0  # of the squared gradient in the norm of the inverse preconditioner; not for a step on the boundary
    )
    on_boundary: bool = False
    stopped: bool = False  # by `stop`, short of the tolerance


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
        ``r -> M^-1 r``, M as H; in another inner product than H's it breaks the method down.
    inner : callable
        The inner product, written ``u'v`` below.
    tolerance : float
        Stop when ``r'M^-1 r`` has fallen by the square of this factor.
    max_products : int
        Largest number of products with H.
    radius : float
        Of the trust region, in the norm of M.
    stop : callable, optional
        ``stop(n_products, r'M^-1 r / g'M^-1 g)`` returns before each product whether to stop there.

    Returns
    -------
    NewtonStep
        The step, its residual and what it cost.
    """
    step, residual = np.zeros_like(gradient), -gradient
    z = precondition(residual)
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
