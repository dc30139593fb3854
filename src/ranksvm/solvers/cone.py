"""Sign constraints on weights: a cone, the projection onto it, and the duality gap of the constrained problem."""

import numpy as np

__all__ = ["SignCone"]


class SignCone:
    """``K = {w : signs_j * w_j >= 0}``: weights that are not negative, not positive, or free.

    Notes
    -----
    The problem is ``min over w in K of P(w) = 1/2 |w|^2 + C * L(X w)``, L convex. Its dual, for a vector
    a with one entry per pair or score, is ``D(a) = -C * L*(-a / C) - 1/2 |proj_K(X'a)|^2``, L* the conjugate, because
    the minimum over K of ``1/2 |w|^2 - w'z`` is at ``w = proj_K(z)``. At a feasible w the point ``a = -C L'(X w)``
    satisfies ``C L(X w) + C L*(-a / C) = -w'z`` with ``z = X'a = w - g``, g the gradient of P. Hence the duality gap
    is

        P(w) - D(a) = 1/2 |w|^2 - w'z + 1/2 |proj_K(z)|^2 = 1/2 |w - v|^2 + w'(v - z),  v = proj_K(z),

    where both parts are nonnegative, since ``v - z`` is in the dual cone of K. Let ``m = w - v``,
    which equals the gradient where no constraint is active. Then the gap is ``m'g - 1/2 |m|^2``. Without constraints,
    m = g and the gap is ``1/2 |g|^2``. Since P is strongly convex, the distance of w from the solution, and from v, is
    at most ``sqrt(2 * gap)``.

    Parameters
    ----------
    signs : ndarray of int, shape (n,)
        1 for a weight that must not be negative, -1 for one that must not be positive, 0 for a free one.
    """

    def __init__(self, signs: np.ndarray):
        self.signs = signs
        self._lower = np.where(signs > 0, 0.0, -np.inf)
        self._upper = np.where(signs < 0, 0.0, np.inf)

    def project(self, v: np.ndarray) -> np.ndarray:
        """The nearest vector of K.

        Parameters
        ----------
        v : ndarray of float64, shape (n,)
            Any vector.

        Returns
        -------
        ndarray of float64, shape (n,)
            A new vector, with 0 where the sign of v is wrong.
        """
        projected: np.ndarray = np.clip(v, self._lower, self._upper)
        return projected + 0.0  # 0 where it is -0

    def gaps(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The share of each weight in the duality gap ``m'g - 1/2 |m|^2``.

        Parameters
        ----------
        w : ndarray of float64, shape (n,)
            A vector of K.
        gradient : ndarray of float64, shape (n,)
            Gradient g of P there.

        Returns
        -------
        ndarray of float64, shape (n,)
            The shares, not negative.
        """
        projected = self.projected_gradient(w, gradient)
        return projected * (gradient - 0.5 * projected)

    def projected_gradient(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """``m = w - proj_K(w - g)`` without cancellation: the derivative of the gap with respect to g.

        Parameters
        ----------
        w, gradient : ndarray of float64, shape (n,)
            A vector of K and the gradient there.

        Returns
        -------
        ndarray of float64, shape (n,)
            The smaller of g and w for a weight that must not be negative, the larger for one that must not be positive,
            and g for a free one.
        """
        least, most = np.where(self.signs < 0, w, -np.inf), np.where(self.signs > 0, w, np.inf)
        projected: np.ndarray = np.clip(gradient, least, most)
        return projected
