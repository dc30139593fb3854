"""Whole queries dealt to parts: what processes, machines or devices that share a problem each hold."""

from typing import Any

import numpy as np

__all__ = ["partition"]


def partition(pairs: Any, n_parts: int) -> list[Any]:
    """Parts of pairs, each of consecutive whole queries, with about as many rows each.

    Pairs keep their weights: one divided by the weight of its query, or that depends on the largest label, is what it
    is in the whole. Rows keep their numbers too: a part that is to have rows of X of its own takes
    ``X[part.rows]`` with ``part.renumbered()``.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs.
    n_parts : int
        Number of parts, 1 or more. Where there are fewer queries than parts, some parts have none.

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
