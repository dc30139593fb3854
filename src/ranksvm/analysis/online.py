"""Cumulative loss of online learning along a stream, and an upper bound on it."""

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.types import MatrixLike
from ranksvm.estimators.base.online_ranker import OnlineRows
from ranksvm.estimators.solar_ranker import SOLARRanker
from ranksvm.exceptions import DataError, OptionError

__all__ = ["OnlineBounds", "online_bounds"]


@dataclasses.dataclass(frozen=True)
class OnlineBounds:
    """Cumulative squared hinges of a SOLAR pass and of a fixed model, and an upper bound, after each query.

    Parameters
    ----------
    loss : ndarray of float64, shape (n_queries,)
        Sum, over the pairs so far, of the weighted squared hinge of the learner before it learns from the pair.
    comparator_loss : ndarray of float64, shape (n_queries,)
        The same for the fixed model u.
    bound : ndarray of float64, shape (n_queries,)
        Upper bound on ``loss``, see `online_bounds`.

    Examples
    --------
    >>> from ranksvm import RankSVM, SOLARRanker, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> u = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid).coef_
    >>> found = analysis.online_bounds(SOLARRanker(C=0.01), data.X, data.y, qid=data.qid, comparator=u)
    >>> found.regret.shape
    (20,)
    >>> bool((found.loss <= found.bound).all())
    True
    """

    loss: np.ndarray
    comparator_loss: np.ndarray
    bound: np.ndarray

    @property
    def regret(self) -> np.ndarray:
        """Loss of the learner minus the loss of the fixed model; ndarray of float64, shape (n_queries,)."""
        return self.loss - self.comparator_loss


def online_bounds(
    ranker: SOLARRanker, X: MatrixLike, y: ArrayLike, *, qid: ArrayLike | None = None, comparator: ArrayLike
) -> OnlineBounds:
    """Let SOLAR learn from a stream, and bound its cumulative loss by the loss of a fixed model u on the same stream.

    For each pair so far, let z be the features of the preferred document minus those of the other, ``h`` the hinge of
    the learner before its update, and ``l = max(0, 1 - u'z)`` the hinge of u. ``sum`` is over all these pairs, ``sum'``
    over those with ``h > 0`` only. C, gamma and the matrix S are those of `SOLARRanker`.

    - First order: ``sum h^2 <= (max |z|^2 + 1 / (2 C)) (|u|^2 + 2 C sum l^2)``. The second factor is twice the
      objective of `RankSVM` with the same C: its optimum gives the smallest bound over all u.
    - Second order, S full: ``sum h^2 <= gamma |u|^2 + sum' (1 - u'z)^2 + max h^2 log det(I + sum' z z' / gamma)``. If
      every pair that was learned from has ``u'z <= 1``, the first two terms are at most ``gamma |u|^2 + sum l^2``: 2
      gamma times the objective of `RankSVM` with ``C = 1 / (2 gamma)``.

    Parameters
    ----------
    ranker : SOLARRanker
        The learner, without ``decay`` or a diagonal S. A copy of it makes one pass over the data.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Labels.
    qid : array-like of shape (n_samples,), optional
        Query of each row; None: all rows are one query.
    comparator : array-like of shape (n_features,)
        The fixed model u: ``coef_`` of a `RankSVM` fitted to the whole stream, for instance.

    Returns
    -------
    OnlineBounds
        Losses and the bound, after each query in the order of their first rows.

    Raises
    ------
    OptionError
        When the ranker has a decay below 1 or a diagonal covariance: the bounds do not hold for these.
    DataError
        When the comparator does not have one finite number for each feature, or `SOLARRanker.fit` would refuse X, y and
        qid.

    Notes
    -----
    The bounds replace theorems 1 and 3 of Wang, Wan, Zhang & Hoi (ACL 2015); docs/reproducing.md says what is wrong
    with the printed Theorem 3. They are derived as follows.

    First order. The step is ``t z`` with ``t = h / (|z|^2 + 1 / (2 C))``. If h is positive, ``w'z = 1 - h`` and ``u'z
    >= 1 - l``. So the squared distance of w to u falls by ``2 t (u'z - w'z) - t^2 |z|^2``, which is at least ``2 t h -
    2 t l - t^2 |z|^2``. Because ``2 t l <= t^2 / (2 C) + 2 C l^2``, this is at least ``h^2 / (|z|^2 + 1 / (2 C)) - 2 C
    l^2``. In total, the squared distance falls by no more than ``|u|^2``, its value at ``w = 0`` (as for the
    passive-aggressive PA-II; Crammer et al., JMLR 7, 2006).

    Second order. Pairs without an update change nothing. On the others, the learner does ridge regression with the
    target 1 for each z: ``S^-1 = I + sum' z z' / gamma`` and ``S^-1 w = sum' z / gamma``. For ridge regression, ``sum'
    h^2 / (1 + x) = min over u of gamma |u|^2 + sum' (1 - u'z)^2`` with ``x = z'S z / gamma``, where S is the matrix
    before the pair (Zhdanov & Kalnishkan, "An identity for kernel ridge regression", ALT 2010), and ``h^2 = h^2 / (1 +
    x) + h^2 x / (1 + x)``. In the last term ``x / (1 + x) <= log(1 + x)``, and the sum of ``log(1 + x)`` over the
    updates is the logarithm of the determinant.

    Examples
    --------
    >>> from ranksvm import RankSVM, SOLARRanker, make_ranking
    >>> from ranksvm.analysis import online_bounds
    >>> data = make_ranking(n_queries=20, n_docs=10, n_features=5, random_state=0)
    >>> best = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> found = online_bounds(SOLARRanker(C=0.01), data.X, data.y, qid=data.qid, comparator=best.coef_)
    >>> bool((found.loss <= found.bound).all())
    True
    """
    if ranker.decay < 1.0 or (ranker.order == 2 and ranker.covariance != "full"):
        raise OptionError(
            f"the bounds hold for decay=1 and a full covariance only, got decay={ranker.decay!r} and "
            f"covariance={ranker.covariance!r}."
        )
    learner = _BoundTrackingRanker(**ranker.get_params()).set_params(n_passes=1)
    learner.comparator = comparator
    learner.fit(X, y, qid=qid)
    return OnlineBounds(*np.array(learner.after_query).T.copy())


class _BoundTrackingRanker(SOLARRanker):
    """A learner that accumulates the terms of the bounds; it learns from the pairs of a query one by one."""

    comparator: ArrayLike

    def _begin(self, n_features: int) -> None:
        super()._begin(n_features)
        u = self._u = np.asarray(self.comparator, dtype=np.float64)
        if u.shape != (n_features,) or not np.isfinite(u).all():
            raise DataError(
                f"comparator must have one finite number for each of the {n_features} features, got shape {u.shape}."
            )
        self.comparator_loss = self.misfit = self.max_square = self.max_loss = 0.0
        self.after_query: list[tuple[float, float, float]] = []

    def _learn(self, rows: OnlineRows, preferred: np.ndarray, other: np.ndarray, weight: np.ndarray | None) -> None:
        rows, preferred, other = rows.dense_part(preferred, other)
        X = rows.arrays[0]
        Z = X[preferred].astype(np.float64) - X[other]
        number, losses = self.counts_[3], np.empty(len(Z))
        for pair in range(len(Z)):
            losses[pair] = max(0.0, 1.0 - Z[pair] @ self.weights_) ** 2
            super()._learn(rows, preferred[pair : pair + 1], other[pair : pair + 1], None)
        self.counts_[3] = number + 1.0  # one query, although each pair was a call of its own
        shortfall = 1.0 - Z @ self._u
        self.comparator_loss += float(np.sum(np.maximum(0.0, shortfall) ** 2))
        self.misfit += float(np.sum(shortfall[losses > 0.0] ** 2))
        self.max_square = max(self.max_square, np.max(np.sum(Z**2, axis=1), initial=0.0))
        self.max_loss = max(self.max_loss, np.max(losses, initial=0.0))
        self.after_query.append((self.cumulative_loss_, self.comparator_loss, self._bound()))

    def _bound(self) -> float:
        length = float(self._u @ self._u)
        if self.order == 1:
            return (self.max_square + 0.5 / self.C) * (length + 2.0 * self.C * self.comparator_loss)
        growth = -float(np.linalg.slogdet(self.covariance_)[1])
        return self.gamma * length + self.misfit + self.max_loss * growth
