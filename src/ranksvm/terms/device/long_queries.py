"""Queries with too many pairs for a device: the host sorts their scores, and sends back derivatives of the loss."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ranksvm.data import ComparablePairs
from ranksvm.device.protocol import Device, DeviceArray
from ranksvm.losses.protocol import LossSums, Pairs, PairwiseLoss
from ranksvm.losses.round_off import LossRoundOff

if TYPE_CHECKING:
    from ranksvm.terms.device.pairs import DeviceOrder

__all__ = ["LongPoint", "LongQueries", "is_long"]

# A query of more pairs than this is swept on the host, which computes its loss from sorted scores: more than 65,536
# documents of different labels. Not yet measured.
LONG_PAIRS = 1 << 31


def is_long(pairs: Pairs) -> np.ndarray:
    """Select the queries whose loss the host computes.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs; listed pairs are never swept.

    Returns
    -------
    ndarray of bool, shape (n_queries,)
        True for the long ones.
    """
    if not isinstance(pairs, ComparablePairs):
        return np.zeros(pairs.n_queries, dtype=bool)
    return pairs.pairs_per_query > LONG_PAIRS


class LongPoint:
    """An evaluation of the long queries (those with too many pairs for a device).

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
        Scores of their documents, by position in the pairs of these queries.
    state : object
        The pairs at which the loss is curved.
    sums : LossSums
        The loss.
    slopes : ndarray of float64, shape (n_rows,)
        Its derivatives with respect to the scores.
    """

    def __init__(self, scores: np.ndarray, state: object, sums: LossSums, slopes: np.ndarray):
        self.scores = scores
        self.state = state
        self.sums = sums
        self.slopes = slopes


class LongQueries:
    """The loss over some queries of a term on a device, computed on the host; 8 bytes a row are copied each way.

    Parameters
    ----------
    device : Device
        The device.
    loss : PairwiseLoss
        The loss over all queries.
    numbers : ndarray of int64
        The long queries, ascending; at least one.
    order : DeviceOrder
        The order of all documents on the device.
    n_threads : int
        Number of threads.
    """

    def __init__(self, device: Device, loss: PairwiseLoss, numbers: np.ndarray, order: "DeviceOrder", n_threads: int):
        pointers = loss.pairs.pointers
        self.device = device
        self.loss = loss.with_pairs(loss.pairs.of_queries(numbers))
        self.pairs = self.loss.pairs
        self.n_threads = n_threads
        places = np.argsort(order.queries)[numbers]
        self._ranges = [(int(order.pointers[place]), int(order.pointers[place + 1])) for place in places]
        firsts = zip(self._ranges, pointers[numbers], strict=True)
        self._orders = [order.positions[start:stop] - first for (start, stop), first in firsts]

    def evaluate(self, scores: DeviceArray, width: float | None) -> LongPoint:
        """The loss at scores that are on the device.

        Parameters
        ----------
        scores : DeviceArray of float64
            Scores of all documents.
        width : float or None
            Width of the loss.

        Returns
        -------
        LongPoint
            The evaluation.
        """
        return self._evaluated(self.taken(scores), width)

    def along(self, a: LongPoint, b: LongPoint, alpha: float, width: float | None) -> tuple[float, float]:
        """Value and slope at one position on a segment.

        Parameters
        ----------
        a, b : LongPoint
            Its ends.
        alpha : float
            The position.
        width : float or None
            Width of the loss.

        Returns
        -------
        value, slope : float
            The loss and its derivative.
        """
        step = b.scores - a.scores
        at = self._evaluated(a.scores + alpha * step, width)
        return at.sums.value, float(at.slopes @ step)

    def multiply(self, at: LongPoint, v: np.ndarray) -> np.ndarray:
        """The Hessian times a vector over the documents of these queries.

        Parameters
        ----------
        at : LongPoint
            The evaluation.
        v : ndarray of float64, shape (n_rows,)
            The vector.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The product.
        """
        out = np.empty(len(v))
        self.loss.hessian(at.state)(0, self.pairs.n_queries, v, out)
        return out

    def degrees(self, at: LongPoint) -> np.ndarray:
        """The diagonal of the Hessian.

        Parameters
        ----------
        at : LongPoint
            The evaluation.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The diagonal.
        """
        return self.loss.curvature_diagonal(at.state, 0, self.pairs.n_rows)

    def hessian_factors(self, at: LongPoint, number: int, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """B and Z with ``B'Z + Z'B = 2 A' H A`` for the rows A of one of these queries in the order of the device.

        Parameters
        ----------
        at : LongPoint
            The evaluation.
        number : int
            Its number among these queries, from 0.
        A : ndarray of float64, shape (n_rows of the query, n_features)
            Its rows.

        Returns
        -------
        tuple of ndarray of float64
            B and Z, of the same shape.
        """
        X, out = np.empty_like(A), np.empty((2 * len(A), A.shape[1]))
        X[self._orders[number]] = A
        n_squares = self.loss.hessian_rows(at.state, number, number + 1, X, out)
        Z = out[: len(X) if n_squares is None else n_squares]
        return (X if n_squares is None else Z), Z

    def round_off(self, at: LongPoint, width: float | None, margin_error: float, tight: bool) -> LossRoundOff:
        """Bounds on the round-off of an evaluation: see `PairwiseLoss.round_off`."""
        return self.loss.round_off(at.scores, at.sums, width, margin_error, tight)

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        """For each query: its number, and the range of its positions on the device.

        Yields
        ------
        number, start, stop : int
            The number of the query among these queries, and the range of its documents.
        """
        for number, (start, stop) in enumerate(self._ranges):
            yield number, start, stop

    def taken(self, values: DeviceArray) -> np.ndarray:
        """The entries of a vector on the device for these queries.

        Parameters
        ----------
        values : DeviceArray of float64
            A number for each document of the term.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The numbers, by position in `pairs`.
        """
        found = np.empty(self.pairs.n_rows)
        for (start, stop), order, place in zip(self._ranges, self._orders, self.pairs.pointers[:-1], strict=True):
            found[place + order] = self.device.copy_out(values.part(start, stop))
        return found

    def put(self, values: np.ndarray, into: DeviceArray) -> None:
        """Write numbers of these queries to a vector on the device.

        Parameters
        ----------
        values : ndarray of float64, shape (n_rows,)
            The numbers, by position in `pairs`.
        into : DeviceArray of float64
            A number for each document of the term.
        """
        for (start, stop), order, place in zip(self._ranges, self._orders, self.pairs.pointers[:-1], strict=True):
            self.device.copy_in(values[place + order], into.part(start, stop))

    def _evaluated(self, scores: np.ndarray, width: float | None) -> LongPoint:
        state, slopes = self.loss.new_state(None, self.n_threads), np.empty(self.pairs.n_rows)
        sums = LossSums(*self.loss.evaluation(state, width)(0, self.pairs.n_queries, scores, slopes))
        return LongPoint(scores, state, sums, slopes)
