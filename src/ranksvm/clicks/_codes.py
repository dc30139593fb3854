"""Ids as small integers: a query, a document or a ranker is a number from 0, its position in a list of ids."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm.data.queries import checked_ids

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Coded", "Encoder", "Ids", "coded"]


@dataclass(frozen=True)
class Coded:
    """Ids of rows.

    Parameters
    ----------
    codes : ndarray of int32
        Position of each row's id in ``ids``.
    ids : ndarray
        The different ids.
    """

    codes: np.ndarray
    ids: np.ndarray

    def take(self, rows: np.ndarray | slice) -> "Coded":
        """The ids of some rows."""
        return Coded(self.codes[rows], self.ids)


Ids = ArrayLike | Coded


def coded(name: str, values: Ids) -> Coded:
    """Ids of any type as codes; values that are already `Coded` are returned unchanged.

    Raises
    ------
    DataError
        When the values are not one-dimensional, or one is missing.
    """
    if isinstance(values, Coded):
        return values
    array = checked_ids(values, name, f"a {name} id")
    if array.dtype.kind in "iu" and len(array):
        low, high = int(array.min()), int(array.max())
        if high - low <= 4 * len(array):  # a lookup table over the range is faster than sorting
            is_used = np.zeros(high - low + 1, dtype=bool)
            is_used[array - low] = True
            place = np.cumsum(is_used, dtype=np.int32) - 1
            return Coded(place[array - low], np.flatnonzero(is_used).astype(array.dtype) + array.dtype.type(low))
    if array.dtype.kind in "OTUV":
        return Encoder().encode(array)
    ids, codes = np.unique(array, return_inverse=True)
    return Coded(codes.reshape(-1).astype(np.int32), ids)


class Encoder:
    """Codes that mean the same in every block of a file: an id from an earlier block keeps its number."""

    def __init__(self) -> None:
        self._number: dict[Any, int] = {}

    def encode(self, values: "np.ndarray | pyarrow.DictionaryArray") -> Coded:
        """Codes of one block of ids.

        Parameters
        ----------
        values : ndarray
            Ids; or a dictionary array of pyarrow, which has the distinct ids already.

        Returns
        -------
        Coded
            Its ids are the ids of all blocks so far.
        """
        if not isinstance(values, np.ndarray):
            different, places = values.dictionary.to_pylist(), values.indices.to_numpy()
        elif values.dtype.kind in "OTV":
            different, places = values.tolist(), slice(None)
        else:
            unique, places = np.unique(values, return_inverse=True)
            different = unique.tolist()
        number = self._number
        codes = np.fromiter((number.setdefault(value, len(number)) for value in different), np.int32, len(different))
        return Coded(codes[places].reshape(-1), self.ids)

    @property
    def ids(self) -> np.ndarray:
        """The ids so far, in the order of their numbers."""
        known = list(self._number)
        if not known or all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in known):
            return np.array(known, dtype=np.int64)
        ids = np.array(known) if all(isinstance(value, str) for value in known) else np.empty(len(known), dtype=object)
        if ids.dtype == object:
            ids[:] = known
        return ids
