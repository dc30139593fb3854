"""Quadratic models that are easily minimized over a cone: with a diagonal Hessian, or with an explicit one."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ranksvm.solvers.linear_systems import by_cholesky
from ranksvm.solvers.protocol import Cone

__all__ = ["ConeModel", "DiagonalModel", "HessianModel", "open_face"]

# In block pivoting, an exchange frees variables that are 0 and sets free ones to 0. After this many exchanges that did
# not lower the number of wrong signs, a single variable is exchanged at a time.
GRACE = 3
# Block pivoting ends after at most this number of exchanges for each variable. If it has not found the minimizer by
# then, at most as many exchanges of single variables follow, none of which raises the model.
MAX_EXCHANGES = 3
# An entry of a vector below this fraction of the largest entry is round-off, whatever its sign.
ROUND_OFF = 1e-13

Solve = Callable[[np.ndarray], np.ndarray]


class ConeModel(Protocol):
    """An approximate Hessian M, with which minimizing over a cone costs no pass over the data."""

    def minimizer(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The vector x of the cone that minimizes ``g'(x - w) + 1/2 (x - w)'M(x - w)``."""

    def face(self, w: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A vector of the cone to continue from (w or a better one), and a mask of variables that may change next."""

    def inverse_on(self, free: np.ndarray) -> Solve:
        """The inverse of M on the variables that are free (bool); 0 for the others."""


def open_face(cone: Cone, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """All variables but those at 0 whose negative gradient leads out of the cone.

    Parameters
    ----------
    cone : Cone
        The cone.
    w, gradient : ndarray of float64, shape (n,)
        A vector of the cone and the gradient there.

    Returns
    -------
    ndarray of bool, shape (n,)
        The variables that may change.
    """
    free: np.ndarray = (cone.signs == 0) | (w != 0.0) | (cone.signs * gradient < 0.0)
    return free


class DiagonalModel:
    """A diagonal Hessian.

    Parameters
    ----------
    cone : Cone
        The cone.
    diagonal : ndarray of float64, shape (n,) or (1,)
        Positive; one number is used for all entries.
    """

    def __init__(self, cone: Cone, diagonal: np.ndarray):
        self.cone = cone
        self._inverse = 1.0 / diagonal

    def minimizer(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The projection of a scaled gradient step."""
        return self.cone.project(w - self._inverse * gradient)

    def face(self, w: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return w, and a mask of all variables except those at 0 whose negative gradient leads out of the cone."""
        return w, open_face(self.cone, w, gradient)

    def inverse_on(self, free: np.ndarray) -> Solve:
        """Division by the diagonal."""
        inverse = np.where(free, self._inverse, 0.0)
        return lambda vector: inverse * vector


class HessianModel:
    """An explicit Hessian.

    Parameters
    ----------
    cone : Cone
        The cone.
    hessian : ndarray of float64, shape (n, n)
        Symmetric, positive definite up to round-off.
    """

    def __init__(self, cone: Cone, hessian: np.ndarray):
        self.cone = cone
        self.hessian = hessian
        self._free: np.ndarray | None = None
        self._solve: Solve = np.copy

    def minimizer(self, w: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The minimizer by block principal pivoting.

        Each variable is free or 0. Free variables with a wrong sign in the solution become 0, and variables at 0 whose
        negative gradient leads into the cone become free, all at once. If the number of such variables does not fall
        for a while, only the last of them is exchanged, so that the method ends after finitely many exchanges (Júdice &
        Pires, Computers Oper. Res. 21, 1994; Kim & Park, SIAM J. Sci. Comput. 33, 2011). The method begins with the
        free variables of the last factorization. If it takes too many exchanges, an active-set method continues from
        w: a result that is not the minimizer then still lowers the model.

        Parameters
        ----------
        w, gradient : ndarray of float64, shape (n,)
            A vector of the cone, and the gradient there.

        Returns
        -------
        ndarray of float64, shape (n,)
            The minimizer, a vector of the cone.
        """
        linear = self.hessian @ w - gradient
        signs = self.cone.signs
        free = (signs == 0) | (w != 0.0) if self._free is None else self._free
        fewest, grace = len(w) + 1, GRACE
        for _ in range(MAX_EXCHANGES * len(w)):
            found = self.inverse_on(free)(linear)
            slope = self.hessian @ found - linear
            least, flattest = ROUND_OFF * np.abs(found).max(), ROUND_OFF * np.abs(linear).max()
            wrong = np.where(free, signs * found < -least, signs * slope < -flattest)
            n_wrong = int(np.count_nonzero(wrong))
            if n_wrong == 0:
                break
            if n_wrong < fewest:
                fewest, grace = n_wrong, GRACE
            elif grace > 0:
                grace -= 1
            else:
                wrong = np.arange(len(w)) == np.flatnonzero(wrong)[-1]
            free = free ^ wrong
        else:
            found = self._lowered(w, linear)
        return self.cone.project(found)

    def _lowered(self, w: np.ndarray, linear: np.ndarray) -> np.ndarray:
        """The minimizer by exchanges of single variables, none of which raises the model (Lawson & Hanson)."""
        signs = self.cone.signs
        at, free = w, (signs == 0) | (w != 0.0)
        for _ in range(MAX_EXCHANGES * len(w)):
            found = self.inverse_on(free)(linear)
            out = np.flatnonzero(free & (signs * found < 0.0))
            if len(out) > 0:  # move only until the first variable becomes 0
                shares = at[out] / (at[out] - found[out])
                at = at + shares.min() * (found - at)
                bound = out[shares == shares.min()]
                at[bound] = 0.0
                free = free & ~np.isin(np.arange(len(w)), bound)
                continue
            at = found
            ascent = np.where(free, 0.0, signs * (self.hessian @ at - linear))
            if ascent.min() >= -ROUND_OFF * np.abs(linear).max():
                break
            free = free | (np.arange(len(w)) == int(np.argmin(ascent)))
        return at

    def face(self, w: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The minimizer, and the variables that are not 0 there."""
        found = self.minimizer(w, gradient)
        return found, (self.cone.signs == 0) | (found != 0.0)

    def inverse_on(self, free: np.ndarray) -> Solve:
        """The inverse of the free rows and columns; the last factor is used again if they are the same."""
        if self._free is None or not np.array_equal(free, self._free):
            self._free, self._solve = free, _inverse_of_part(self.hessian, np.flatnonzero(free))
        return self._solve


def _inverse_of_part(hessian: np.ndarray, free: np.ndarray) -> Solve:
    if len(free) == 0:
        return np.zeros_like
    solve = by_cholesky(hessian[np.ix_(free, free)])

    def solved(vector: np.ndarray) -> np.ndarray:
        found = np.zeros_like(vector)
        found[free] = solve(vector[free])
        return found

    return solved
