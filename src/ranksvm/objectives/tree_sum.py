"""Sums of fixed shape: their bits depend on the order of the terms, not on who adds them up."""

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["tree_sum"]

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
