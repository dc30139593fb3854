"""A search on a grid of settings that is extended until the best setting lies inside it."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple


class Axis(NamedTuple):
    """The values of one parameter, and the range with which a search begins."""

    # how a value is shown, such as "C = 2^{:g}"
    form: str
    # all values that may be reached, ascending
    values: Sequence[float]
    # the first and the last value of the initial grid
    first: float
    last: float
    # whether the first of all values is the smallest that the parameter can have
    bounded: bool = False


class Grid:
    """A search on a grid; an axis is extended if the best setting is at its end.

    Parameters
    ----------
    axes : sequence of Axis
        One axis for each parameter.
    measures : sequence of str
        The measures, each of which is maximized separately.

    Attributes
    ----------
    found : dict
        Results for each position (one index for each axis).
    """

    def __init__(self, axes: Sequence[Axis], measures: Sequence[str]):
        self.axes = axes
        self.measures = measures
        self.found: dict[tuple[int, ...], Any] = {}
        self._ends = [[list(axis.values).index(end) for end in (axis.first, axis.last)] for axis in axes]

    def search(self, try_out: Callable[..., Any], scores: Callable[[Any], Mapping[str, float]]) -> None:
        """Call ``try_out`` with every setting; extend the grid until the best one of each measure lies inside it."""
        self._scores = scores
        widened = True
        while widened:
            for place in product(*(range(low, high + 1) for low, high in self._ends)):
                if place not in self.found:
                    self.found[place] = try_out(*self.values(place))
            widened = self._widen([self.best(measure) for measure in self.measures])

    def climb(self, try_out: Callable[..., Any], scores: Callable[[Any], Mapping[str, float]]) -> None:
        """From the middle of the grid, move to the best neighbor along one axis until no neighbor is better.

        This takes far fewer settings than a search of the whole grid. It needs a single measure.
        """
        self._scores = scores
        (measure,) = self.measures
        place, center = (), tuple((low + high) // 2 for low, high in self._ends)
        while place != center:
            place = center
            for neighbor in [place, *self._neighbors(place)]:
                if neighbor not in self.found:
                    self.found[neighbor] = try_out(*self.values(neighbor))
            self._ends = [[min(numbers), max(numbers)] for numbers in zip(*self.found, strict=True)]
            center = self.best(measure)

    def _neighbors(self, place: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return the positions that differ from a position by one step on one axis."""
        return [
            (*place[:number], moved, *place[number + 1 :])
            for number, axis in enumerate(self.axes)
            for moved in (place[number] - 1, place[number] + 1)
            if 0 <= moved < len(axis.values)
        ]

    def values(self, place: tuple[int, ...]) -> tuple[float, ...]:
        """The parameters at a position."""
        return tuple(axis.values[number] for axis, number in zip(self.axes, place, strict=True))

    def label(self, place: tuple[int, ...]) -> str:
        """The parameters at a position, as text."""
        return ", ".join(axis.form.format(value) for axis, value in zip(self.axes, self.values(place), strict=True))

    def ranges(self) -> str:
        """The ranges that were searched, as text."""
        parts = []
        for axis, (low, high) in zip(self.axes, self._ends, strict=True):
            first, last = axis.values[low], axis.values[high]
            parts.append(axis.form.format(f"({first:g} to {last:g})" if low < high else first))
        return ", ".join(parts)

    def best(self, measure: str) -> tuple[int, ...]:
        """The position with the best score; if several are equal, one inside: extreme penalties may all rank alike."""
        return max(self.found, key=lambda place: (self._scores(self.found[place])[measure], not self._at_ends(place)))

    def where(self, place: tuple[int, ...]) -> str:
        """A text that says whether a position is inside the grid."""
        ends = self._at_ends(place)
        if ends:
            return "**no**: " + ", ".join(self._part(place, number) for number in ends)
        least = [
            self._part(place, number) for number, axis in enumerate(self.axes) if axis.bounded and not place[number]
        ]
        return f"yes ({' and '.join(least)}: the least there is)" if least else "yes"

    def _part(self, place: tuple[int, ...], number: int) -> str:
        return self.axes[number].form.format(self.axes[number].values[place[number]])

    def _at_ends(self, place: tuple[int, ...]) -> list[int]:
        """The axes on which a position is at an end, if the parameter has more values beyond it."""
        at_ends = []
        for number, (axis, (low, high)) in enumerate(zip(self.axes, self._ends, strict=True)):
            is_least = axis.bounded and place[number] == 0
            if place[number] == high or (place[number] == low and not is_least):
                at_ends.append(number)
        return at_ends

    def _widen(self, places: Sequence[tuple[int, ...]]) -> bool:
        """Add a value at every end where one of the positions is; return whether a value was added."""
        before = [list(ends) for ends in self._ends]
        for axis, (low, high), ends, numbers in zip(
            self.axes, before, self._ends, zip(*places, strict=True), strict=True
        ):
            if low in numbers:
                ends[0] = max(0, low - 1)
            if high in numbers:
                ends[1] = min(len(axis.values) - 1, high + 1)
        return before != self._ends
