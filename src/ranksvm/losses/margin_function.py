"""A loss that is defined by the user's own convex function of the margin; it is computed pair by pair."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

import ranksvm._compiled.linear as linear
from ranksvm.losses.protocol import LossSums, Pairs, QueryOperator
from ranksvm.losses.round_off import OPERATIONS, LossRoundOff, growth

__all__ = ["FunctionLoss", "FunctionState", "MarginFunction", "complaint_about"]

# Number of pairs that are visited at a time, which takes a few arrays of this length.
CHUNK_PAIRS = 1 << 17
# Active pairs (those whose second derivative is not 0; 16 bytes each) are stored between products if the data have at
# most this number of pairs.
KEPT_PAIRS = 1 << 22
# Margins at which a function is tested before a fit.
TRIAL_MARGINS = np.linspace(-4.0, 6.0, 81)
# Tolerance for round-off in these tests, relative to the largest value.
ROUND_OFF = 1e-7


class MarginFunction(Protocol):
    """A convex and differentiable function of the margin, which is at least 0 everywhere.

    Each method takes an array of margins of any length, and returns an array of the same shape.
    """

    def value(self, margins: np.ndarray) -> np.ndarray:
        """The function, at least 0."""

    def derivative(self, margins: np.ndarray) -> np.ndarray:
        """Its derivative, which must not decrease as the margin increases."""

    def curvature(self, margins: np.ndarray) -> np.ndarray:
        """Its second derivative, at least 0; at a kink, the value on either side."""


class FunctionState:
    """The state of an evaluation (see `PairwiseLoss`): the scores, from which the active pairs are found.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
        The scores.

    Attributes
    ----------
    active : dict
        For each range of queries: its active pairs and their curvature, if they are stored.
    """

    def __init__(self, scores: np.ndarray):
        self.scores = scores
        self.active: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}


class FunctionLoss:
    """Sum over the pairs of ``a_ij`` times a function of the margin ``s_i - s_j``.

    See `PairwiseLoss` for the methods. Every pair is visited: the time is O(n_pairs), and the memory does not grow with
    n_pairs.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs of the data set.
    function : MarginFunction
        The function.
    """

    name = "custom"

    def __init__(self, pairs: Pairs, function: MarginFunction):
        self.pairs = pairs
        self.function = function

    def with_pairs(self, pairs: Pairs) -> "FunctionLoss":
        return FunctionLoss(pairs, self.function)

    def new_state(
        self, near: FunctionState | None = None, n_threads: int = 1, scores: np.ndarray | None = None
    ) -> FunctionState:
        return FunctionState(np.zeros(self.pairs.n_rows) if scores is None else scores)

    def evaluation(self, state: FunctionState, width: float | None) -> QueryOperator:
        state.active.clear()

        def evaluate(first: int, last: int, scores_range: np.ndarray, gradient_range: np.ndarray) -> LossSums:
            start, stop = self.pairs.pointers[first], self.pairs.pointers[last]
            state.scores[start:stop] = scores_range
            gradient_range[:] = 0.0
            value, n = 0.0, len(gradient_range)
            for i, j, weight in self.pairs.chunks(first, last, CHUNK_PAIRS):
                margins = state.scores[i] - state.scores[j]
                value += float(weight @ self.function.value(margins))
                slopes = weight * self.function.derivative(margins)
                gradient_range += np.bincount(i - start, slopes, n)
                gradient_range -= np.bincount(j - start, slopes, n)
            return LossSums(value)

        return evaluate

    def round_off(
        self, scores: np.ndarray, sums: LossSums, width: float | None, margin_error: float, tight: bool
    ) -> LossRoundOff:
        # the user's function is assumed to be as accurate as a few operations
        pulls = excess = rough_pulls = rough_value = 0.0
        largest = int(np.max(self.pairs.pairs_per_query, initial=0))
        for i, j, weight in self.pairs.chunks(0, self.pairs.n_queries, CHUNK_PAIRS):
            margins = scores[i] - scores[j]
            low = self.function.derivative(margins - margin_error)
            high = self.function.derivative(margins + margin_error)
            slopes = np.maximum(np.abs(low), np.abs(high))
            pulls += float(weight @ slopes)
            excess += float(weight @ (high - low)) * margin_error
            # a weight that is a difference of gains is no more accurate than their sum
            for part in self.pairs.gain_parts:
                rough = part.weights_of(i, j)
                rough_pulls += float(rough @ slopes)
                rough_value += float(rough @ self.function.value(margins))
        if not self.pairs.gain_parts:
            rough_pulls, rough_value = pulls, sums.value
        error = growth(OPERATIONS + largest + self.pairs.n_queries)
        weights = growth(OPERATIONS + largest)
        return LossRoundOff(pulls, 2.0 * error * rough_pulls, excess, error * rough_value, 0.0, weights)

    def hessian(self, state: FunctionState) -> QueryOperator:
        def multiply(first: int, last: int, v_range: np.ndarray, u_range: np.ndarray) -> LossSums:
            u_range[:] = 0.0
            n = len(u_range)
            for i, j, curvature in self._active(state, first, last):
                flow = curvature * (v_range[i] - v_range[j])
                u_range += np.bincount(i, flow, n)
                u_range -= np.bincount(j, flow, n)
            return LossSums(0.0)

        return multiply

    def curvature_diagonal(self, state: FunctionState, start: int, stop: int) -> np.ndarray:
        pointers = self.pairs.pointers
        first = int(np.searchsorted(pointers, start, side="right")) - 1
        last = int(np.searchsorted(pointers, stop, side="left"))
        degrees = self._degrees(state, first, last)
        return degrees[start - pointers[first] : stop - pointers[first]]

    def hessian_rows(self, state: FunctionState, first: int, last: int, X_range: np.ndarray, out: np.ndarray) -> None:
        from scipy import sparse

        linear.center_queries(self.pairs.pointers, first, last, X_range)
        n = len(X_range)
        Z = np.multiply(self._degrees(state, first, last)[:, np.newaxis], X_range, out=out[:n])
        for i, j, curvature in self._active(state, first, last):
            # Only one triangle of the Laplacian L is used, doubled: X'Z + Z'X, which is formed later, has both.
            Z -= sparse.csr_array((2.0 * curvature, (i, j)), shape=(n, n)) @ X_range

    def _degrees(self, state: FunctionState, first: int, last: int) -> np.ndarray:
        n = int(self.pairs.pointers[last] - self.pairs.pointers[first])
        degrees = np.zeros(n)
        for i, j, curvature in self._active(state, first, last):
            degrees += np.bincount(i, curvature, n)
            degrees += np.bincount(j, curvature, n)
        return degrees

    def _active(
        self, state: FunctionState, first: int, last: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Documents of the active pairs, numbered from the first one of the range, and the curvature of each pair."""
        if self.pairs.n_pairs > KEPT_PAIRS:
            yield from self._curved(state, first, last)
            return
        if (first, last) not in state.active:
            state.active[first, last] = list(self._curved(state, first, last))
        yield from state.active[first, last]

    def _curved(
        self, state: FunctionState, first: int, last: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        start = self.pairs.pointers[first]
        for i, j, weight in self.pairs.chunks(first, last, CHUNK_PAIRS):
            curvature = weight * self.function.curvature(state.scores[i] - state.scores[j])
            active = curvature != 0.0
            yield (
                (i[active] - start).astype(np.int32),
                (j[active] - start).astype(np.int32),
                np.asarray(curvature[active], dtype=np.float64),
            )


def complaint_about(function: object) -> str | None:
    """What is wrong with a function of the margin, found by testing it at some margins; None if nothing is.

    Parameters
    ----------
    function : object
        The supposed `MarginFunction`.

    Returns
    -------
    str or None
        The rest of a sentence that begins with the name of the option.
    """
    if isinstance(function, type):
        return f"is the class {function.__name__}: give an object of it, {function.__name__}()"
    found = {}
    for name in ("value", "derivative", "curvature"):
        method = getattr(function, name, None)
        if not callable(method):
            return f"has no method {name}(margins): a loss needs value, derivative and curvature"
        try:
            found[name] = np.asarray(method(TRIAL_MARGINS.copy()), dtype=np.float64)
        except Exception as error:  # any error of the user's code is reported with the method's name
            return f"failed in {name}(margins) with {type(error).__name__}: {error}"
        if found[name].shape != TRIAL_MARGINS.shape:
            return (
                f"gives an array of shape {found[name].shape} in {name}(margins) for margins of shape "
                f"{TRIAL_MARGINS.shape}: it must give one number for each margin"
            )
        bad = np.flatnonzero(~np.isfinite(found[name]))
        if len(bad):
            return (
                f"gives {found[name][bad[0]]} in {name}(margins) at margin {TRIAL_MARGINS[bad[0]]:g}: it must be finite"
            )
    return _complaint_about_values(**found)


def _complaint_about_values(value: np.ndarray, derivative: np.ndarray, curvature: np.ndarray) -> str | None:
    m = TRIAL_MARGINS
    for name, values in (("value", value), ("curvature", curvature)):
        if values.min() < 0.0:
            return (
                f"gives {values.min():g} in {name}(margins) at margin {m[values.argmin()]:g}: it must not be negative"
            )
    falls = np.flatnonzero(np.diff(derivative) < -ROUND_OFF * np.abs(derivative).max())
    if len(falls):
        at = falls[0]
        return (
            f"is not convex: derivative(margins) falls from {derivative[at]:g} at margin {m[at]:g} to "
            f"{derivative[at + 1]:g} at margin {m[at + 1]:g}"
        )
    # a convex function lies above each of its tangents
    tangents = value[:, np.newaxis] + derivative[:, np.newaxis] * (m - m[:, np.newaxis])
    below = np.argwhere(value < tangents - ROUND_OFF * max(1.0, float(np.abs(value).max())))
    if len(below):
        at, where = below[0]
        return (
            f"has a derivative that does not fit its value: the tangent at margin {m[at]:g} (value {value[at]:g}, "
            f"derivative {derivative[at]:g}) is above the function at margin {m[where]:g} (value {value[where]:g})"
        )
    return None
