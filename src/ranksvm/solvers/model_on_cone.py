"""A quadratic model minimized over a cone by products with its Hessian: conjugate gradients, face by face."""

from collections.abc import Callable

import numpy as np

from ranksvm.solvers.cone_models import ConeModel, open_face
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
# Maximum number of faces. The step after this many faces is good enough: it decreases the model, which is all that a
# Newton step needs.
MAX_FACES = 100
# After this number of faces that have not lowered the model, steps that would raise it are shortened: multiplied by
# SHORTEN, up to MAX_SHORTENINGS times. (20 fits with the hinge or the squared hinge to random data, of 95 to 1,000
# rows and 100 to 8,000 features, took 71,000 products; 74,000 after 4 faces, 80,000 after 5. Without a limit, 6 of
# them did not converge in 100 steps and 41,000 products on average; the others took 10,500 products, now 7,800.)
GRACE = 3
SHORTEN, MAX_SHORTENINGS = 0.25, 10


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
    the gap comes from variables at 0 rather than from the face, a new face is chosen. q may increase by a projection.
    If this happens a few times, the method could cycle: it goes back to the best vector, and from then on shortens
    steps until their projection decreases q.

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
        A step with ``q(d) < 0`` up to round-off and ``g'd < 0``, hence a direction of descent, and its cost.
    """
    at, slope, n_products = w, gradient, 0
    best, best_slope, lowest, n_raised = w, gradient, 0.0, 0
    free: np.ndarray | None = None
    for _ in range(MAX_FACES):
        careful = n_raised >= GRACE
        if free is None and careful:
            free = open_face(cone, at, slope)
        elif free is None:
            onto, free = approximate_hessian.face(at, slope)
            if onto is not at:
                at, slope, n_products = onto, slope + product(onto - at), n_products + 1
        inverse, remaining = approximate_hessian.inverse_on(free), max_products - n_products
        along_face = conjugate_gradient(product, slope, inverse, tolerance=FACE_TOLERANCE, max_products=remaining)
        n_products += along_face.n_products
        for n_shortenings in range(MAX_SHORTENINGS if careful else 1):
            part = SHORTEN**n_shortenings
            end = at + part * along_face.step
            onto, slope_onto = cone.project(end), (1.0 - part) * slope - part * along_face.residual
            outside = onto != end
            if outside.any():
                slope_onto, n_products = slope_onto + product(onto - end), n_products + 1
            value = 0.5 * float((gradient + slope_onto) @ (onto - w))
            if value < lowest:
                break
        at, slope = onto, slope_onto
        if value < lowest:
            best, best_slope, lowest = at, slope, value
        elif careful:
            break  # round-off, or no products are left
        elif (n_raised := n_raised + 1) == GRACE:
            at, slope, free = best, best_slope, None
            continue
        gaps = cone.gaps(at, slope)
        if gaps.sum() <= target_gap or n_products >= max_products:
            break
        released = not outside.any() or gaps[free].sum() <= RELEASE_SHARE * gaps.sum()
        free = None if released else free & ~outside
    # if the approximate Hessian is far too small, round-off on the way may exceed the decrease of q
    if not gradient @ (best - w) < 0.0:
        return _step_down(product, w, gradient, approximate_hessian, n_products + 1)
    return NewtonStep(best - w, -best_slope, 0.0, n_products)


def _step_down(
    product: Callable[[np.ndarray], np.ndarray],
    w: np.ndarray,
    gradient: np.ndarray,
    approximate_hessian: ConeModel,
    n_products: int,
) -> NewtonStep:
    """The step to the minimum of the model on the segment from w to the minimizer for the approximate Hessian."""
    way = approximate_hessian.minimizer(w, gradient) - w
    image, slope = product(way), float(gradient @ way)
    curvature = float(way @ image)
    part = min(1.0, -slope / curvature) if curvature > 0.0 else 0.0
    return NewtonStep(part * way, -(gradient + part * image), 0.0, n_products)
