"""The pairs of a data set on a device, in the order that its kernels ask for."""

from typing import Any

import numpy as np

from ranksvm.data import ComparablePairs, PairList
from ranksvm.device.launcher import Launcher
from ranksvm.device.protocol import Argument
from ranksvm.objectives.device_long_queries import is_long

__all__ = ["PairsOnDevice", "order_on_device"]


def order_on_device(pairs: Any) -> np.ndarray:
    """The position of each document on the device: query by query, and by ascending label where labels imply the pairs.

    Parameters
    ----------
    pairs : ComparablePairs or PairList
        The pairs.

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        The positions of ``pairs`` in that order.
    """
    if isinstance(pairs, PairList):
        return np.arange(pairs.n_rows)
    return pairs.by_level + np.repeat(pairs.pointers[:-1], np.diff(pairs.pointers))


class PairsOnDevice:
    """Pairs on a device, but those of queries that the host sweeps.

    Parameters
    ----------
    launcher : Launcher
        The device.
    pairs : ComparablePairs or PairList
        The pairs.
    order : ndarray of int64, shape (n_rows,)
        That of `order_on_device`.

    Attributes
    ----------
    arguments : tuple
        The arguments of kernels that stand for the pairs.
    """

    def __init__(self, launcher: Launcher, pairs: Any, order: np.ndarray):
        arrays = _of_list(pairs) if isinstance(pairs, PairList) else _of_levels(pairs, order)
        self.arguments: tuple[Argument, ...] = tuple(
            launcher.copy_in(array) if isinstance(array, np.ndarray) else array for array in arrays
        )


def _of_levels(pairs: ComparablePairs, order: np.ndarray) -> tuple[Any, ...]:
    """What LevelPairs of pairs.hpp holds: levels are numbered over all queries; a long query has one, and no pairs."""
    sizes = np.diff(pairs.pointers)
    level = pairs.levels[order]
    level[np.repeat(is_long(pairs), sizes)] = 0
    new = np.ones(len(level), dtype=bool)
    new[1:] = level[1:] != level[:-1]
    new[pairs.pointers[:-1][sizes > 0]] = True
    begin = np.flatnonzero(new)
    query = np.searchsorted(pairs.pointers, begin, side="right") - 1
    number = np.cumsum(new) - 1
    weights = (None if values is None else values[order] for values in (pairs.preferred, pairs.other, pairs.gain))
    numbers = (number, np.append(begin, len(level)), query, pairs.pointers)
    return *(array.astype(np.int32) for array in numbers), *weights, int(pairs.adjacent)


def _of_list(pairs: PairList) -> tuple[Any, ...]:
    """What ListedPairs of pairs.hpp holds: each pair with either of its documents, in the order of the list."""
    start = np.repeat(pairs.pointers[:-1], np.diff(pairs.pair_pointers))
    preferred, other = start + pairs.preferred, start + pairs.other
    owner, partner = np.concatenate((preferred, other)), np.concatenate((other, preferred))
    weight = np.concatenate((pairs.pair_weight, -pairs.pair_weight))
    by_owner = np.argsort(owner, kind="stable")
    begin = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=pairs.n_rows)))).astype(np.int64)
    origin = np.repeat(pairs.pointers[:-1], np.diff(pairs.pointers))
    return begin, partner[by_owner].astype(np.int32), weight[by_owner], origin.astype(np.int32)
