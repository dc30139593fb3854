"""Landmarks: functions of a few documents, on which a kernel problem is small enough to be inverted exactly."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ranksvm._util.threads import even_ranges, parallel_map
from ranksvm.data.design_matrix import DenseDesign
from ranksvm.kernels import KernelMatrix, whitening
from ranksvm.losses import PairwiseLoss
from ranksvm.objectives.linear import LinearObjective
from ranksvm.solvers.linear_systems import by_cholesky
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.protocol import DataTerm

if TYPE_CHECKING:
    from ranksvm.objectives.kernel import KernelPoint

__all__ = ["Landmarks"]


# Eigenvalues up to this multiple of the largest are rounding errors of float32.
NOISE = 1e-7


# Outside the span of the landmarks' functions, whose values are Phi, the Hessian ``I + L Q`` is approximated by 1 plus
# this multiple of a weighted mean of the diagonal of ``L (Q - Phi Phi')``; the weights are the diagonal entries.
# Products on MQ2008 at (gamma, C) = (2^-5, 1), (2^-1, 1), (2^-3, 1/8), (2^-1, 32): 112, 201, 71, 1342 without
# landmarks; with 300 of them 26, 117, 26, - for the multiple 1; 23, 98, 23, 539 for 3; 21, 100, 21, 794 for 10.
THETA = 3.0


class Landmarks:
    """The functions spanned by the kernels of some documents, in an orthonormal basis.

    With the landmarks Z, ``Q_ZZ = U S U'`` and ``W = U S^-1/2`` (small eigenvalues left out), the values of the basis
    functions at all documents are ``Phi = Q[:, Z] W``. A function with coordinates w in this basis has the coefficients
    ``W w`` at the landmarks, the values ``Phi w`` and the norm ``|w|``; so the problem over these functions is linear,
    with the features Phi.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel matrix Q.
    positions : ndarray of int64, shape (n_landmarks,)
        The landmarks.
    dtype : {"float32", "float64"}
        Type of Phi: it need not be more accurate than Q.
    n_threads : int
        Number of threads.

    Attributes
    ----------
    design : DenseDesign
        Phi, shape (n_rows, n_functions).
    beyond : ndarray of float64, shape (n_rows,)
        Squared distance of each document's kernel function from their span: the diagonal of ``Q - Phi Phi'``.
    """

    def __init__(self, matrix: KernelMatrix, positions: np.ndarray, dtype: str = "float64", n_threads: int = 1):
        columns = matrix.columns(positions)
        self.positions = positions
        self.weights = whitening(columns[positions], NOISE)
        values = columns @ self.weights
        self.design = DenseDesign(values.astype(dtype, copy=False))
        self.beyond = np.maximum(matrix.diagonal() - np.einsum("ij,ij->i", values, values), 0.0)
        self._products = self.design.products()
        self._parts, self._n_threads = even_ranges(0, len(values), n_threads), n_threads

    def vector(self, w: np.ndarray) -> np.ndarray:
        """Coefficients and values of the function with these coordinates.

        Parameters
        ----------
        w : ndarray of float64, shape (n_functions,)
            The coordinates.

        Returns
        -------
        ndarray of float64, shape (2, n_rows)
            The vector.
        """
        out = np.zeros((2, len(self.beyond)))
        out[0, self.positions] = self.weights @ w
        out[1] = self._multiply(w)
        return out

    def term(self, loss: PairwiseLoss, n_threads: int) -> DataTerm:
        """The data term of the problem over these functions.

        Parameters
        ----------
        loss : PairwiseLoss
            The loss over the pairs.
        n_threads : int
            Number of threads.

        Returns
        -------
        DataTerm
            The term.
        """
        return ThreadedTerm(self.design, loss, n_threads)

    def hessian(self, within: LinearObjective, point: "KernelPoint") -> np.ndarray:
        """The Hessian of the problem over these functions at a point of the whole problem.

        Parameters
        ----------
        within : LinearObjective
            The problem over these functions, with a term from `term`.
        point : KernelPoint
            The point.

        Returns
        -------
        ndarray of float64, shape (n_functions, n_functions)
            The Hessian.
        """
        return within.hessian_at(point)

    def _multiply(self, w: np.ndarray) -> np.ndarray:
        """``Phi w``."""
        out = np.empty(len(self.beyond))

        def multiply(part: tuple[int, int]) -> None:
            self._products.scores(*part, w, out[slice(*part)])

        parallel_map(multiply, self._parts, self._n_threads)
        return out

    def _project(self, r: np.ndarray) -> np.ndarray:
        """``Phi' r``."""

        def project(part: tuple[int, int]) -> np.ndarray:
            out = np.zeros(self.design.n_features)
            self._products.accumulate(*part, r[slice(*part)], out)
            return out

        out: np.ndarray = np.sum(parallel_map(project, self._parts, self._n_threads), axis=0)
        return out

    def preconditioner(self, hessian: np.ndarray, degrees: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """An approximate inverse of the Hessian ``I + L Q``: exact on these functions, a multiple of I beyond them.

        It is ``z = r / theta + Z W (H^-1 c - c / theta)``, where c has the coordinates of the projection of r, and H is
        the Hessian of the problem over these functions. Both terms are self-adjoint in the inner product of the
        kernel's space. Beyond the landmarks the Hessian is not the identity: with theta = 1, the inverse would be far
        too large on functions partly within and partly beyond the span, and conjugate gradients could take several
        times as many products as without landmarks. The comment at THETA counts the products with `theta`.

        Parameters
        ----------
        hessian : ndarray of float64, shape (n_functions, n_functions)
            H, overwritten.
        degrees : ndarray of float64, shape (n_rows,)
            Diagonal of the Laplacian L.

        Returns
        -------
        callable
            ``r -> z``.
        """
        theta, within = self.theta(degrees), by_cholesky(hessian)

        def solve(r: np.ndarray) -> np.ndarray:
            c = self._project(r[0])
            z: np.ndarray = r / theta + self.vector(within(c) - c / theta)
            return z

        return solve

    def theta(self, degrees: np.ndarray) -> float:
        """Approximate size of the Hessian beyond the span of these functions, in directions in which it is large.

        Parameters
        ----------
        degrees : ndarray of float64, shape (n_rows,)
            Diagonal of the Laplacian L.

        Returns
        -------
        float
            From the diagonal of ``L (Q - Phi Phi')``, at least 1.
        """
        curved = degrees * self.beyond
        total = float(curved.sum())
        return 1.0 + THETA * float(curved @ curved) / total if total > 0.0 else 1.0
