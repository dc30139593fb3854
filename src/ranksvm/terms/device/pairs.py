"""The pairs of a data set on a device, in the order that its kernels require."""

from typing import Any, NamedTuple

import numpy as np

from ranksvm.data import ComparablePairs, PairList
from ranksvm.device.launcher import Launcher, as_int32
from ranksvm.device.protocol import Argument
from ranksvm.losses import Pairs
from ranksvm.terms.device.long_queries import is_long

__all__ = ["DeviceOrder", "PairsOnDevice", "order_on_device"]


class DeviceOrder(NamedTuple):
    """The order of documents on a device: query by query, and by ascending label if labels imply the pairs.

    Attributes
    ----------
    positions : ndarray of int64, shape (n_rows,)
        For each place in this order, the document's position in the pairs.
    pointers : ndarray of int64, shape (n_queries + 1,)
        First document of each query, in this order.
    queries : ndarray of int64, shape (n_queries,)
        Number of each query.
    blocks : list of (int, int)
        Ranges of queries, numbered in this order. The rows of one range are on the device at the same time.
    """

    positions: np.ndarray
    pointers: np.ndarray
    queries: np.ndarray
    blocks: list[tuple[int, int]]

    def rows_of(self, pairs: Pairs) -> np.ndarray:
        """For each place in this order, the row of X."""
        return self.positions if pairs.rows is None else pairs.rows[self.positions]


def order_on_device(pairs: Pairs, blocks: list[tuple[int, int]] | None = None) -> DeviceOrder:
    """The order of documents on a device: a block's shortest queries first, so that neighbors take similar time.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs.
    blocks : list of (int, int), optional
        Ranges of queries. The rows of one range are on the device at the same time; None: all rows are.

    Returns
    -------
    DeviceOrder
        The order.
    """
    pointers, sizes = pairs.pointers, np.diff(pairs.pointers)
    blocks = [(0, len(sizes))] if blocks is None else blocks
    block = np.repeat(np.arange(len(blocks)), [last - first for first, last in blocks])
    queries = np.lexsort((sizes, block))
    there = np.concatenate(([0], np.cumsum(sizes[queries])))
    taken = np.repeat(pointers[queries] - there[:-1], sizes[queries]) + np.arange(there[-1])
    if isinstance(pairs, ComparablePairs):
        taken = (pairs.by_level + np.repeat(pointers[:-1], sizes))[taken]
    return DeviceOrder(taken, there, queries, blocks)


class PairsOnDevice:
    """Pairs on a device, except the pairs of queries that the host handles (`LongQueries`).

    Parameters
    ----------
    launcher : Launcher
        The device.
    pairs : ComparablePairs or PairList
        The pairs.
    order : DeviceOrder
        The order of the documents.

    Attributes
    ----------
    arguments : tuple
        The kernel arguments that represent the pairs.
    """

    def __init__(self, launcher: Launcher, pairs: Pairs, order: DeviceOrder):
        if isinstance(pairs, ComparablePairs):
            arrays = _level_arguments(pairs, order)
        else:
            assert isinstance(pairs, PairList)
            arrays = _list_arguments(pairs, order)
        self.arguments: tuple[Argument, ...] = tuple(
            launcher.copy_in(array) if isinstance(array, np.ndarray) else array for array in arrays
        )


def _level_arguments(pairs: ComparablePairs, order: DeviceOrder) -> tuple[Any, ...]:
    """Fields of LevelPairs (pairs.hpp): levels are numbered across queries; a long query has one level, so no pairs."""
    sizes, pointers = np.diff(order.pointers), order.pointers
    level = pairs.levels[order.positions]
    long = is_long(pairs)
    if long.any():
        level[np.repeat(long[order.queries], sizes)] = 0
    new = np.ones(len(level), dtype=bool)
    new[1:] = level[1:] != level[:-1]
    new[pointers[:-1][sizes > 0]] = True
    begin = np.flatnonzero(new)
    query = np.searchsorted(pointers, begin, side="right") - 1
    number = np.cumsum(new, dtype=np.int32)
    number -= 1
    given = pairs.preferred, pairs.other, pairs.gain
    weights = (None if values is None else values[order.positions] for values in given)
    numbers = (number, np.append(begin, len(level)), query, pointers)
    return *(as_int32(array) for array in numbers), *weights, int(pairs.adjacent)


def _list_arguments(pairs: PairList, order: DeviceOrder) -> tuple[Any, ...]:
    """Fields of ListedPairs of pairs.hpp: each pair is listed for both of its documents, in the order of the list."""
    place = np.empty(pairs.n_rows, dtype=np.int64)
    place[order.positions] = np.arange(pairs.n_rows)
    start = np.repeat(pairs.pointers[:-1], np.diff(pairs.pair_pointers))
    preferred, other = place[start + pairs.preferred], place[start + pairs.other]
    owner, partner = np.concatenate((preferred, other)), np.concatenate((other, preferred))
    weight = np.concatenate((pairs.pair_weight, -pairs.pair_weight))
    by_owner = np.argsort(owner, kind="stable")
    begin = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=pairs.n_rows)))).astype(np.int64)
    origin = np.repeat(order.pointers[:-1], np.diff(order.pointers))
    return begin, as_int32(partner[by_owner]), weight[by_owner], as_int32(origin)
