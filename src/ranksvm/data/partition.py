"""Divide whole queries into parts for the processes, machines or devices that share a problem; join such parts."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ranksvm.data.pair_list import PairList
from ranksvm.data.pairs import ComparablePairs

__all__ = ["joined", "partition"]


def partition(pairs: Any, n_parts: int) -> list[Any]:
    """Divide pairs into parts of consecutive whole queries, with about the same number of rows each.

    Pairs keep their weights, including weights that are divided by the weight of their query or that depend on the
    largest label. Rows keep their numbers too: for a part with its own rows of X, use ``X[part.rows]`` with
    ``part.renumbered()``.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs.
    n_parts : int
        Number of parts, 1 or more. If there are fewer queries than parts, some parts have none.

    Returns
    -------
    list of ComparablePairs or PairList
        The parts, in the order of the queries.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import ComparablePairs, Queries
    >>> queries = Queries.from_group([3, 2, 4], 9)
    >>> pairs = ComparablePairs.from_labels(queries, np.array([0, 1, 2, 0, 1, 0, 0, 1, 1.0]))
    >>> [part.rows.tolist() for part in partition(pairs, 2)]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8]]
    """
    middle = 0.5 * (pairs.pointers[:-1] + pairs.pointers[1:])
    part_of_query = np.minimum((middle * n_parts / max(1, pairs.n_rows)).astype(np.int64), n_parts - 1)
    return [pairs.of_queries(np.flatnonzero(part_of_query == part)) for part in range(n_parts)]


def joined(parts: Sequence[Any]) -> Any:
    """Join the pairs of several parts, for an X that stacks the rows of the parts in the same order.

    Parameters
    ----------
    parts : sequence of ComparablePairs or PairList
        The pairs of one or more parts, all of one type, with rows numbered by position (`ComparablePairs.renumbered`).

    Returns
    -------
    ComparablePairs or PairList
        The pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm.data import ComparablePairs, Queries
    >>> queries = Queries.from_group([3, 2, 4], 9)
    >>> pairs = ComparablePairs.from_labels(queries, np.array([0, 1, 2, 0, 1, 0, 0, 1, 1.0]))
    >>> joined([part.renumbered() for part in partition(pairs, 2)]).pointers.tolist()
    [0, 3, 5, 9]
    """
    if len(parts) == 1:
        return parts[0]
    pointers = _pointers([part.pointers for part in parts])
    if isinstance(parts[0], PairList):
        ends = _pointers([part.pair_pointers for part in parts])
        names = "preferred", "other", "pair_weight"
        return PairList(
            pointers, None, ends, *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )
    levels, n_levels = (np.concatenate([getattr(part, name) for part in parts]) for name in ("levels", "n_levels"))
    preferred, other, gain = (_or_ones(parts, name) for name in ("preferred", "other", "gain"))
    how = parts[0].adjacent, parts[0].direct_limit
    return ComparablePairs(pointers, None, levels, n_levels, preferred, other, gain, *how)


def _pointers(parts: list[np.ndarray]) -> np.ndarray:
    """First positions of the queries of all parts, from the first positions of each part."""
    begins = accumulate((int(part[-1]) for part in parts[:-1]), initial=0)
    first = [part[:-1] + begin for part, begin in zip(parts, begins, strict=True)]
    return np.concatenate([*first, [sum(int(part[-1]) for part in parts)]]).astype(np.int64)


def _or_ones(parts: Sequence[ComparablePairs], name: str) -> np.ndarray | None:
    """The arrays of all parts, concatenated; 1 for a part without this array, and None if no part has it."""
    values = [getattr(part, name) for part in parts]
    if all(value is None for value in values):
        return None
    return np.concatenate(
        [np.ones(part.n_rows) if value is None else value for part, value in zip(parts, values, strict=True)]
    )
