"""The range of each feature, learned from answers: values outside are clipped or refused, and not learned from.

An answer is feedback on an event. Its features are the features of the documents that the feedback is about.
"""

from typing import Any

import msgspec
import numpy as np

import ranksvm._compiled.linear as linear
from ranksvm.serving.feedback import Lesson

__all__ = ["FeatureRange", "RangeRule"]

# The size of a feature is this quantile of its largest absolute value in an answer, over answers in which it is not 0.
# So larger values do not count in the long run if fewer than a fourth of the answers have them.
_QUANTILE = 0.75
# Number of first answers, for which the size is the exact quantile; each later answer moves the size by a factor.
_N_EXACT = 25
# If an answer has a value larger than the size, the size is multiplied by the first factor; otherwise it is divided by
# the second, the cube root of the first. The two changes balance if a fourth of the answers have a larger value, so the
# size approaches the .75 quantile.
_UP, _DOWN = 1.01, 1.0033223
# Maximum factor by which a size grows in an hour.
_MAX_HOURLY_FACTOR = 2.0
# A size based on n answers is uncertain: the range is 1 + 10 / n times as wide.
_UNCERTAIN = 10.0
# Limits of sizes: with multiples of up to 1e6 no range overflows.
_MIN_SIZE, _MAX_SIZE = 1e-300, 1e300


class RangeRule(msgspec.Struct, frozen=True):
    """Treatment of features outside their range. The log of a store records every change.

    Parameters
    ----------
    outside : str
        "clip": they are clipped before documents are ranked. "refuse": the request is refused. "none": there is no
        range. "unset": the store was created before this setting existed, and has no range.
    multiple : float
        The range of a feature, as a multiple of its size: see `FeatureRange`.
    """

    outside: str = "unset"
    multiple: float = 5.0

    def changed(self, changes: dict[str, Any]) -> "RangeRule":
        """A copy of this rule with the changes in an entry of the log."""
        return msgspec.structs.replace(self, **changes)

    @property
    def limits(self) -> bool:
        """Whether there is a range."""
        return self.outside in ("clip", "refuse")


class FeatureRange:
    """A range of each feature, symmetric about 0: a multiple of its size in the answers so far.

    The size of a feature is the .75 quantile of its largest absolute value in an answer. An answer moves a size by at
    most 1 %, and a size at most doubles in an hour, so that a few outliers hardly widen the range. A feature that was
    always 0 gets the size of the largest feature.

    Parameters
    ----------
    rule : RangeRule
        What happens to values outside the range.
    state : dict, optional
        State of an earlier range, to continue from.
    exempt : ndarray of bool, shape (n_features,), or None
        Features that may have any value; None: no feature.
    """

    def __init__(self, rule: RangeRule, state: dict[str, Any] | None = None, exempt: np.ndarray | None = None):
        self.rule, self._exempt = rule, exempt
        self._counts = True if exempt is None else ~exempt  # features whose sizes count for other features
        # size of each feature, 0 if the feature was always 0; None before the first answer
        self._size: np.ndarray | None = None
        # number of answers in which each feature was not 0, and the largest size that it may have in this hour
        self._answers = self._max_hourly_size = np.zeros(0)
        self._hour = 0  # number of the hour since 1970
        # the largest values in each of the first answers (None after them), and the largest values among the documents
        # that models have learned from
        self._first: list[np.ndarray] | None = []
        self._learned = np.zeros(0)
        if state is not None and state["size"] is not None:
            self._size, self._answers = _array(state["size"]), _array(state["answers"])
            self._max_hourly_size, self._hour = _array(state["most"]), state["hour"]
            self._learned = _array(state["learned"])
            self._first = None if state["first"] is None else [_array(one) for one in state["first"]]
        self._limit()

    @property
    def is_warming_up(self) -> bool:
        """Whether so few answers have arrived that models may still have to start again."""
        return self.rule.limits and self._first is not None

    @property
    def state(self) -> dict[str, Any]:
        """State from which a range can be restored, besides the rule; equal ranges have equal states."""
        arrays = {"answers": self._answers, "most": self._max_hourly_size, "learned": self._learned}
        return {
            "size": None if self._size is None else self._size.tobytes(),
            **{name: values.tobytes() for name, values in arrays.items()},
            "hour": self._hour,
            "first": None if self._first is None else [one.tobytes() for one in self._first],
        }

    def with_rule(self, rule: RangeRule) -> "FeatureRange":
        """The same sizes under another rule; no sizes if the old rule or the new one has no range."""
        return FeatureRange(rule, self.state if rule.limits and self.rule.limits else None, self._exempt)

    def exempting(self, exempt: np.ndarray | None) -> "FeatureRange":
        """The same range with other features that may have any value."""
        return FeatureRange(self.rule, self.state, exempt)

    def outside(self, X: np.ndarray) -> np.ndarray | None:
        """Mask of the values of X that are outside the range; None if no value is outside."""
        if self.bound is None:
            return None
        largest = self.bound.copy()
        linear.dense_largest(X, 0, len(X), largest)  # raises each bound that some |x| exceeds
        return None if largest.tobytes() == self._bytes else np.abs(X) > self.bound  # bytes compare fastest

    def clipped(self, X: np.ndarray) -> np.ndarray:
        """X clipped to the range; X itself if all its values are in the range."""
        if self.outside(X) is None:
            return X
        assert self.bound is not None
        return np.clip(X, -self.bound, self.bound).astype(X.dtype)

    def applied(self, lesson: Lesson) -> Lesson:
        """A lesson (training data) with clipped features; only documents inside the range are learned from."""
        found = self.outside(lesson.X)
        if found is None:
            return lesson
        return msgspec.structs.replace(lesson, X=self.clipped(lesson.X), inside=~found.any(axis=1))

    def add(self, X: np.ndarray, inside: np.ndarray | None, at: float) -> bool:
        """Widen or narrow the range after an answer.

        Parameters
        ----------
        X : ndarray of shape (n_documents, n_features)
            Features of the documents of the answer, as they were sent.
        inside : ndarray of bool, shape (n_documents,), or None
            Documents that were learned from; None: all.
        at : float
            When the answer came, in seconds since 1970.

        Returns
        -------
        bool
            Whether the models have to start again, because they learned from an early answer that is now outside.
        """
        if not self.rule.limits:
            return False
        size, hour = _largest(X), int(at // 3600)
        if not np.any(size, where=self._counts):
            return False
        if self._first is None:
            self._move(size, hour)
            self._limit()
            return False
        self._first = [*self._first, size]
        self._size, self._answers = _quantiles(np.stack(self._first), self._counts)
        self._max_hourly_size, self._hour = _MAX_HOURLY_FACTOR * self._size, hour
        self._limit()
        learned = size if inside is None else _largest(X[inside])
        self._learned = np.maximum(learned, self._learned) if len(self._learned) else learned
        again = self.bound is not None and bool((self._learned > self.bound).any())
        if again:
            self._learned = np.zeros(0)
        if len(self._first) == _N_EXACT:
            self._first, self._learned = None, np.zeros(0)
        return again

    def described(self, place: np.ndarray, X: np.ndarray, documents: list[str], names: list[str]) -> str:
        """Describe the first value outside the range; ``place`` is the result of `outside`."""
        assert self.bound is not None
        row, column = (int(number) for number in np.argwhere(place)[0])
        most = self.bound[column]
        return (
            f"document {documents[row]!r} has {X[row, column]:g} in feature {names[column]!r}, whose range is "
            f"{-most:.3g} to {most:.3g}"
        )

    # -- private methods -----------------------------------------------------------------------------------------------

    def _move(self, size: np.ndarray, hour: int) -> None:
        """Move the sizes of an answer's nonzero features toward the quantile."""
        assert self._size is not None
        # an earlier hour: the clock was set back. The clocks of several services may differ by less than an hour.
        if hour > self._hour or hour < self._hour - 1:
            self._hour, self._max_hourly_size = hour, np.minimum(_MAX_HOURLY_FACTOR * self._size, _MAX_SIZE)
        is_nonzero, new = size > 0.0, None
        if not self._answers.all():
            new = is_nonzero & (self._answers == 0.0)
        moved = self._size * np.where(size > self._size, _UP, 1.0 / _DOWN)
        np.minimum(moved, self._max_hourly_size, out=moved)
        np.maximum(moved, _MIN_SIZE, out=moved)
        if new is not None:
            moved[new] = np.max(self._size, where=self._counts, initial=0.0)
            self._max_hourly_size = np.where(new, _MAX_HOURLY_FACTOR * moved, self._max_hourly_size)
        self._size = np.where(is_nonzero, moved, self._size)
        self._answers = self._answers + is_nonzero

    def _limit(self) -> None:
        """Find the largest absolute value of each feature inside the range; None if there is no range."""
        self.bound: np.ndarray | None = None
        if not self.rule.limits or self._size is None:
            return
        largest = np.max(self._size, where=self._counts, initial=0.0)
        if largest == 0.0:
            return
        known = np.where(self._size > 0.0, self._size, largest)
        self.bound = self.rule.multiple * (1.0 + _UNCERTAIN / np.maximum(self._answers, 1.0)) * known
        if self._exempt is not None:
            self.bound[self._exempt] = np.inf
        self._bytes = self.bound.tobytes()


def _largest(X: np.ndarray) -> np.ndarray:
    """The largest absolute value in each column."""
    found = np.zeros(X.shape[1])
    linear.dense_largest(X, 0, len(X), found)
    return found


def _quantiles(sizes: np.ndarray, counts: np.ndarray | bool) -> tuple[np.ndarray, np.ndarray]:
    """The lower .75 quantile of the nonzero values in each column, and their number.

    A column with one or two such values gets the largest quantile of the other columns for which ``counts`` is true.
    """
    answers = (sizes > 0.0).sum(axis=0)
    place = len(sizes) - answers + np.floor(_QUANTILE * (answers - 1.0)).astype(np.int64)
    place = np.clip(place, 0, len(sizes) - 1)
    found = np.take_along_axis(np.sort(sizes, axis=0), place[np.newaxis], axis=0)[0]
    found = np.where(answers > 0, np.clip(found, _MIN_SIZE, _MAX_SIZE), 0.0)
    often = (answers > 2) & counts
    if often.any():  # two answers cannot tell which one is wild: too small a size would exclude all later values
        found = np.where((answers == 1) | (answers == 2), found[often].max(), found)
    return found, answers.astype(np.float64)


def _array(content: bytes) -> np.ndarray:
    return np.frombuffer(content, np.float64)
