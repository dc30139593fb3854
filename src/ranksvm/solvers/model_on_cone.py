"""A quadratic model minimized over a cone by products with its Hessian: conjugate gradients, face by face."""

from collections.abc import Callable

import numpy as np

from ranksvm.solvers.cone_models import ConeModel
from ranksvm.solvers.linear_systems import NewtonStep, conjugate_gradient
from ranksvm.solvers.protocol import Cone

__all__ = ["minimize_model"]

# Conjugate gradients on a face (over the variables that are not kept at 0) stop once the residual has decreased to this
# fraction, because the face may be the wrong one.
FACE_TOLERANCE = 0.1
# Variables at 0 may become free again once the free ones contribute at most this fraction of the gap. Until then, the
# gradient at variables that are 0 is mainly an effect of the free ones, which is no reason to free more. (Word pairs,
# 20,360 x 279,643, nonnegative weights, C = 1: 113 products a fit; 563 if variables may become free immediately,
# because the same variables are freed and set to 0 again and again.)
RELEASE_SHARE = 0.5
# Maximum number of faces. The step after so many faces is good enough: it decreases the model, which is all that a
# Newton step needs.
MAX_FACES = 100


def minimize_model(
    product: Callable[[np.ndarray], np.ndarray],
    w: np.ndarray,
    gradient: np.ndarray,
    cone: Cone,
    approximate_hessian: ConeModel,
    *,
    target_gap: float,
    max_products: int,
) -> NewtonStep:
    """Minimize ``q(d) = g'd + 1/2 d'Hd`` approximately over the steps d with w + d in a cone.

    An approximate Hessian selects the variables at 0; conjugate gradients minimize over the others, the *face*, and
    their result is projected onto the cone. The variables that the projection has set to 0 leave the face. Once
    the gap comes from variables at 0 rather than from the face, a new face is chosen. q may increase by a projection;
    the best vector of all is returned.

    This is an active-set method with projections, like the method of Moré & Toraldo (SIAM J. Optim. 1, 1991), whose
    projected gradients free or bind only a few variables at a time, and therefore took ten times as many products.

    Parameters
    ----------
    product : callable
        ``d -> H d``, H symmetric and at least the identity.
    w : ndarray of float64, shape (n,)
        A vector of the cone.
    gradient : ndarray of float64, shape (n,)
        ``g``.
    cone : Cone
        The cone.
    approximate_hessian : ConeModel
        An approximate Hessian.
    target_gap : float
        The duality gap of the model to reach.
    max_products : int
        Approximate largest number of products with H.

    Returns
    -------
    NewtonStep
        A step with ``q(d) < 0``, hence a direction of descent, and its cost.
    """
    at, slope, n_products = w, gradient, 0
    best, lowest = NewtonStep(np.zeros_like(w), -gradient, 0.0, 0), 0.0
    free: np.ndarray | None = None
    for _ in range(MAX_FACES):
        if free is None:
            onto, free = approximate_hessian.face(at, slope)
            if onto is not at:
                at, slope, n_products = onto, slope + product(onto - at), n_products + 1
        inverse, remaining = approximate_hessian.inverse_on(free), max_products - n_products
        along_face = conjugate_gradient(product, slope, inverse, tolerance=FACE_TOLERANCE, max_products=remaining)
        n_products += along_face.n_products
        end = at + along_face.step
        at, slope = cone.project(end), -along_face.residual
        outside = at != end
        if outside.any():
            slope, n_products = slope + product(at - end), n_products + 1
        value = 0.5 * float((gradient + slope) @ (at - w))
        if value < lowest:
            best, lowest = NewtonStep(at - w, -slope, 0.0, 0), value
        gaps = cone.gaps(at, slope)
        if gaps.sum() <= target_gap or n_products >= max_products:
            break
        released = not outside.any() or gaps[free].sum() <= RELEASE_SHARE * gaps.sum()
        free = None if released else free & ~outside
    if lowest == 0.0:
        best, n_products = _step_down(product, w, gradient, approximate_hessian), n_products + 1
    best.n_products = n_products
    return best


def _step_down(
    product: Callable[[np.ndarray], np.ndarray], w: np.ndarray, gradient: np.ndarray, approximate_hessian: ConeModel
) -> NewtonStep:
    """The step to the minimum of the model on the segment from w to the minimizer for the approximate Hessian."""
    way = approximate_hessian.minimizer(w, gradient) - w
    image, slope = product(way), float(gradient @ way)
    curvature = float(way @ image)
    part = min(1.0, -slope / curvature) if curvature > 0.0 else 0.0
    return NewtonStep(part * way, -(gradient + part * image), 0.0, 0)
