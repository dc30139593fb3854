"""Sums of fixed shape: their bits depend on the order of the terms, not on who adds them up."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["TreeSum", "tree_sum"]

Summand = TypeVar("Summand")


def tree_sum(found: Sequence[Summand], plus: Callable[[Summand, Summand], Summand]) -> Summand:
    """The sum of a sequence as a balanced binary tree over its order.

    Parameters
    ----------
    found : sequence
        The items to add; at least one.
    plus : callable
        Adds two of them.

    Returns
    -------
    object
        The sum; for one item the item itself.
    """
    if len(found) == 1:
        return found[0]
    middle = (len(found) + 1) // 2
    return plus(tree_sum(found[:middle], plus), tree_sum(found[middle:], plus))


class TreeSum(Generic[Summand]):
    """The sum of `tree_sum` for items that arrive in any order, added up as soon as neighbors are there.

    Parameters
    ----------
    length : int
        Number of items.
    plus : callable
        Adds two of them.
    """

    def __init__(self, length: int, plus: Callable[[Summand, Summand], Summand]):
        self._length, self._plus = length, plus
        self._found: dict[tuple[int, int], Summand] = {}
        self._lock = Lock()

    @property
    def result(self) -> Summand:
        """The sum, once every item is there."""
        return self._found[0, self._length]

    def add(self, place: int, item: Summand) -> None:
        """Take an item.

        Parameters
        ----------
        place : int
            Its place in the sequence, from 0.
        item : object
            The item.
        """
        ranges, (start, stop) = [], (0, self._length)
        while stop - start > 1:
            ranges.append((start, stop))
            middle = start + (stop - start + 1) // 2
            start, stop = (start, middle) if place < middle else (middle, stop)
        # one thread adds up at a time: adding takes little time compared with computing the items
        with self._lock:
            self._found[start, stop] = item
            for start, stop in reversed(ranges):
                middle = start + (stop - start + 1) // 2
                if (start, middle) not in self._found or (middle, stop) not in self._found:
                    return
                left, right = self._found.pop((start, middle)), self._found.pop((middle, stop))
                self._found[start, stop] = self._plus(left, right)
