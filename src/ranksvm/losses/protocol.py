"""The interface of a loss, and the interface of the pairs that it sums over."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ranksvm.data.pairs import ComparablePairs
from ranksvm.losses.round_off import LossRoundOff

__all__ = ["LossSums", "PairwiseLoss", "Pairs", "QueryOperator"]


class Pairs(Protocol):
    """Pairs of documents of the same query: `ComparablePairs` or `PairList`."""

    pointers: np.ndarray
    pairs_per_query: np.ndarray
    weight_per_query: np.ndarray

    @property
    def rows(self) -> np.ndarray | None:
        """Row number of each position (place in the order by query), int64; None if both numbers are always equal."""

    @property
    def n_queries(self) -> int:
        """Number of queries, or of other groups between which there is no pair."""

    @property
    def n_rows(self) -> int:
        """Number of positions."""

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""

    @property
    def weight(self) -> float:
        """Sum of the weights of all pairs."""

    @property
    def gain_parts(self) -> tuple[ComparablePairs, ...]:
        """If the weights are differences of gains: the same pairs twice, with two other weights; otherwise ().

        The first has the gains of the preferred documents as weights, the second the gains of the others.
        """

    def comparable(self) -> tuple["Pairs", np.ndarray]:
        """The same pairs without the rows of queries without pairs, renumbered; and the old numbers of the rows."""

    def chunks(self, first: int, last: int, limit: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The pairs of a range of queries, listed about ``limit`` at a time."""

    def of_queries(self, queries: np.ndarray) -> Any:
        """The pairs of some queries, which are given by ascending numbers."""

    def renumbered(self) -> "Pairs":
        """The same pairs with rows numbered by position."""

    def sample(self, n_rows: int, seed: int = 0, n_queries: int = ...) -> tuple["Pairs", np.ndarray]:
        """A sample of pairs, on about ``n_rows`` rows of at least ``n_queries`` queries; and positions of the rows."""

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Two masks of positions: those preferred to another one, and those to which another one is preferred."""

    def explicit(self, first: int, last: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """List the pairs of query ``first``, or of queries ``first`` to ``last - 1``: preferred, other, weights."""


class LossSums(NamedTuple):
    """The sums that an evaluation of a `PairwiseLoss` returns.

    Attributes
    ----------
    value : float
        The loss.
    excess : float
        Target loss (without smoothing) minus the evaluated loss; 0 if the evaluated loss is not smoothed.
    slack : float
        The duality gap of the problem without smoothing is ``1/2 |gradient|^2`` plus C times this number.
    """

    value: float
    excess: float = 0.0
    slack: float = 0.0

    def plus(self, more: "LossSums") -> "LossSums":
        """The sum of both."""
        return LossSums(self.value + more.value, self.excess + more.excess, self.slack + more.slack)


class QueryOperator(Protocol):
    """A map between vectors with one number for each row; the result of a query depends only on its own rows.

    The operator of a compiled loss (`ranksvm._compiled.passes.QueryOperator`) is applied within a pass over the
    features; any other callable works as well.
    """

    def __call__(
        self, first: int, last: int, v_range: np.ndarray, u_range: np.ndarray, /
    ) -> tuple[float, float, float]:
        """Write ``u = f(v)`` for the queries ``first`` to ``last - 1``; return the three numbers of `LossSums`."""


class PairwiseLoss(Protocol):
    """A sum over the pairs of a convex function of the margin ``s_i - s_j``.

    Methods work on the queries ``first`` to ``last - 1``; arrays named ``*_range`` hold the rows of those queries only,
    so that callers can go through the data in blocks and on several threads. An evaluation stores the active pairs at
    one score vector in a state, for the products that follow. A loss has no other state: ``width`` is the width of
    a Huberized hinge, and None for losses without a width.
    """

    @property
    def name(self) -> str: ...
    @property
    def pairs(self) -> Pairs: ...

    def with_pairs(self, pairs: Pairs) -> "PairwiseLoss":
        """The same loss over other pairs."""

    def new_state(self, near: Any = None, n_threads: int = 1, scores: np.ndarray | None = None) -> Any:
        """An empty state for `evaluation`; ``near`` is the state of similar scores, if there is one.

        With more than one thread a long query may be shared out among them. If ``scores`` is given, every evaluation
        must find its scores in that array. The state then makes no copy, and the array must not change while the state
        is in use.
        """

    def evaluation(self, state: Any, width: float | None) -> QueryOperator:
        """The operator from scores to the gradient with respect to them; updates ``state``, returns `LossSums`."""

    def hessian(self, state: Any) -> QueryOperator:
        """The (generalized) Hessian with respect to the scores, as an operator."""

    def round_off(
        self, scores: np.ndarray, sums: LossSums, width: float | None, margin_error: float, tight: bool
    ) -> LossRoundOff:
        """Bounds on the round-off of a loss with these sums, if the margins have errors of up to ``margin_error``.

        If ``tight``, the bounds are tighter, and cost another pass over the pairs.
        """

    def curvature_diagonal(self, state: Any, start: int, stop: int) -> np.ndarray:
        """Diagonal of the Hessian with respect to the scores, for the positions ``start`` to ``stop - 1``."""

    def hessian_rows(self, state: Any, first: int, last: int, X_range: np.ndarray, out: np.ndarray) -> int | None:
        """The factors of an explicit Hessian X'HX, where H is the Hessian with respect to the scores.

        Writes rows D with ``D'D = X' H X`` to ``out``, which has twice the rows of X, and returns their number; or
        returns None, centers X by query, and writes Z with ``X'Z + Z'X = 2 X' H X`` to the first rows of ``out``. In
        the first case X may also be centered.
        """
