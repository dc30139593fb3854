"""A cache written one block of rows at a time, so that memory does not depend on the number of rows.

The values of X are written to their place in the file as they come. The other arrays follow X in the file, so until
the end they are kept in temporary files without a name, in the same folder. The header, which has all lengths and
checksums, is written last, into reserved space.
"""

import contextlib
import json
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.checks import is_sparse
from ranksvm.datasets.cache import layout
from ranksvm.datasets.cache.layout import ALIGNMENT, PREAMBLE_BYTES, header_bytes, row_arrays
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from ranksvm.datasets.ranking_data import RankingData

__all__ = ["CacheWriter"]

# Number of bytes that are copied at a time from a temporary file (a spool) to the cache.
_COPIED = 1 << 22
# Number of ids converted to text at a time: each takes about 100 bytes as a Python object.
_WORDS = 1 << 16
# Bytes reserved for the header: a constant, plus the size of the feature names, plus room for the checksum of each
# block of a file of the expected size, up to a maximum.
_ROOM = 1 << 12
_ROOM_PER_BLOCK = 16
_MAX_ROOM = 1 << 20


class CacheWriter:
    """Writes the blocks of a data set as a cache; `close` completes it.

    Parameters
    ----------
    file : binary file
        The file to write, from its beginning; it can seek.
    folder : str
        Folder for temporary files without a name, which hold what follows the values of X.
    expected : int
        Expected size of the cache in bytes, which determines the room for checksums in the header. If the cache becomes
        larger, checksums are merged, so that each covers more bytes.

    Attributes
    ----------
    n_rows, n_features : int
        Rows and features written so far.
    """

    def __init__(self, file: IO[bytes], folder: str, expected: int = 0):
        self._file = file
        self._folder = folder
        self._expected = expected
        self.n_rows = 0
        self.n_features = 0
        self._room = 0
        self._sparse = False
        self._values: _Sum | None = None
        self._values_entry: dict[str, Any] = {}
        self._names: tuple[str, ...] | None = None
        self._categories: dict[str, list[str]] = {}
        self._spools: dict[str, _Spool] = {}
        self._ids: dict[str, _Ids] = {}
        self._n_entries = 0

    def append(self, block: "RankingData") -> None:
        """Write some rows.

        Parameters
        ----------
        block : RankingData
            The rows. All blocks have the same types, and the same features if X is dense.
        """
        if self._values is None:
            self._begin(block)
        assert self._values is not None
        arrays = row_arrays(block)
        values = arrays.pop("X.data" if self._sparse else "X")
        self._file.write(self._values.add(values))
        if self._sparse:
            indptr = arrays.pop("X.indptr")
            self._spool("X.indices").add(arrays.pop("X.indices"))
            self._spool("X.indptr").add(indptr[1:].astype(np.int64) + self._n_entries)
            self._n_entries += len(values)
            self.n_features = max(self.n_features, block.n_features)
        self._spool("y").add(arrays["y"])
        for name in ("qid", "docid"):
            ids = getattr(block, name)
            if ids is not None or name in self._ids:
                if name not in self._ids:
                    self._ids[name] = _Ids(name, self._folder, self.n_rows)
                self._ids[name].add(np.zeros(block.n_rows, "U1") if ids is None else ids)
        self.n_rows += block.n_rows

    def close(self) -> None:
        """Write everything that follows the values of X, and the header."""
        assert self._values is not None, "a cache has rows"
        entries = [self._finished(self._values_entry, self._values)]
        for name, dtype, shape, chunks in self._others():
            total = _Sum()
            entry: dict[str, Any] = {"name": name, "dtype": np.dtype(dtype).str, "shape": shape, "offset": 0}
            for chunk in chunks:
                self._file.write(total.add(chunk))
            entries.append(self._finished(entry, total))
        offset = 0
        for entry in entries:
            entry["offset"], offset = offset, offset + entry.pop("size")
        self._write_header(entries, offset)

    # ---- private methods

    def _begin(self, block: "RankingData") -> None:
        self._sparse = is_sparse(block.X)
        self.n_features = block.n_features
        self._names, self._categories = block.feature_names, block.categories
        values = block.X.data if self._sparse else block.X
        kind = {"name": "X.data" if self._sparse else "X", "dtype": values.dtype.newbyteorder("=").str}
        self._values_entry = {**kind, "shape": None, "offset": 0}
        names = len(json.dumps([self._names, self._categories]))
        room = _ROOM + names + min(_MAX_ROOM, _ROOM_PER_BLOCK * (self._expected // layout.BLOCK))
        self._room = room + -(PREAMBLE_BYTES + room) % ALIGNMENT
        self._file.seek(PREAMBLE_BYTES + self._room)
        self._values = _Sum()

    def _spool(self, name: str) -> "_Spool":
        if name not in self._spools:
            self._spools[name] = _Spool(self._folder)
        return self._spools[name]

    def _others(self) -> Iterator[tuple[str, DTypeLike | None, list[int], Iterator[np.ndarray]]]:
        """Name, type, shape and content of each array except the values of X."""
        for name, spool in self._spools.items():
            if name == "X.indptr":
                # the type that SciPy would choose
                dtype = np.int32 if self._n_entries < 1 << 31 else np.int64
                ends = (chunk.astype(dtype) for chunk in spool.chunks())
                yield name, dtype, [self.n_rows + 1], _after(np.zeros(1, dtype), ends)
            else:
                yield name, spool.dtype, [spool.length], spool.chunks()
        for column in self._ids.values():
            yield from column.arrays()

    def _finished(self, entry: dict[str, Any], total: "_Sum") -> dict[str, Any]:
        """Write the zeros after an array, and return the array's entry for the header."""
        self._file.write(total.add(np.zeros(-total.size % ALIGNMENT, dtype=np.uint8)))
        if entry["shape"] is None:
            entry["shape"] = [self._n_entries] if self._sparse else [self.n_rows, self.n_features]
        return {**entry, "crc32": total.checksums(), "size": total.size}

    def _write_header(self, entries: list[dict[str, Any]], size: int) -> None:
        header: dict[str, Any] = {
            "shape": [self.n_rows, self.n_features],
            "feature_names": None if self._names is None else list(self._names),
            "categories": self._categories,
            "arrays": entries,
            "block": layout.BLOCK,
            "size": size,
        }
        sizes = [b["offset"] - a["offset"] for a, b in pairwise([*entries, {"offset": size}])]
        while len(encoded := json.dumps(header).encode()) > self._room:
            for entry, n_bytes in zip(entries, sizes, strict=True):
                entry["crc32"] = _merged(entry["crc32"], header["block"], n_bytes)
            header["block"] *= 2
        self._file.seek(0)
        self._file.write(header_bytes(encoded.ljust(self._room)))


class _Sum:
    """Checksums of the blocks of an array whose bytes come in parts."""

    def __init__(self) -> None:
        self.size = 0
        self._whole: list[int] = []
        self._last = 0

    def add(self, values: np.ndarray) -> memoryview:
        """Add an array; returns its bytes."""
        content = _bytes_of(values)
        start = 0
        while start < len(content):
            stop = min(len(content), start + layout.BLOCK - self.size % layout.BLOCK)
            self._last = zlib.crc32(content[start:stop], self._last)
            self.size += stop - start
            start = stop
            if self.size % layout.BLOCK == 0:
                self._whole.append(self._last)
                self._last = 0
        return content

    def checksums(self) -> list[int]:
        """One checksum for each block; the last block may be smaller."""
        return self._whole + ([self._last] if self.size % layout.BLOCK else [])


def _bytes_of(values: np.ndarray) -> memoryview:
    return values.reshape(-1).view(np.uint8).data if values.size else memoryview(b"")


def _merged(checksums: list[int], block: int, size: int) -> list[int]:
    """Merge the checksums of blocks into the checksums of blocks of twice the size.

    CRC-32 is affine over XOR: ``crc(A + B)`` is ``crc(Z, crc(A)) ^ crc(Z) ^ crc(B)``, where Z has as many zero bytes
    as B has bytes.
    """
    merged = []
    for first in range(0, len(checksums), 2):
        if first + 1 == len(checksums):
            merged.append(checksums[first])
            continue
        zeros = bytes(min(block, size - (first + 1) * block))
        merged.append(zlib.crc32(zeros, checksums[first]) ^ zlib.crc32(zeros) ^ checksums[first + 1])
    return merged


class _Spool:
    """Values of one type in a temporary file without a name."""

    def __init__(self, folder: str):
        self._file = tempfile.TemporaryFile(dir=folder or ".")  # noqa: SIM115 (it ends with this object)
        weakref.finalize(self, _close, self._file)
        self.dtype: np.dtype | None = None
        self.length = 0

    def add(self, values: np.ndarray) -> None:
        if self.dtype is None:
            self.dtype = values.dtype
        if values.dtype != self.dtype:
            raise DataError(f"some rows have values of type {values.dtype}, earlier ones {self.dtype}.")
        self._file.write(_bytes_of(np.ascontiguousarray(values)))
        self.length += len(values)

    def chunks(self, max_values: int = _COPIED) -> Iterator[np.ndarray]:
        """The values from the first one on, in chunks of limited size."""
        self._file.seek(0)
        if self.dtype is None:
            return
        count = min(max_values, max(1, _COPIED // self.dtype.itemsize))
        while content := self._file.read(count * self.dtype.itemsize):
            yield np.frombuffer(content, dtype=self.dtype)


def _close(file: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # if the disk is full, an error has already said so
        file.close()


class _Ids:
    """A column of ids: values of one type, or text as soon as one block has text or another type.

    Parameters
    ----------
    name : str
        Name of the column.
    folder : str
        Folder of its files.
    n_missing : int
        Number of rows before the first one that has an id; the ids of these rows are empty.
    """

    def __init__(self, name: str, folder: str, n_missing: int):
        self._name = name
        self._folder = folder
        self._numbers: _Spool | None = None
        self._text: _Spool | None = None
        self._lengths: _Spool | None = None
        self._characters = 0  # of the longest id
        self._all_characters = 0  # of all ids
        for start in range(0, n_missing, _WORDS):
            self.add(np.zeros(min(_WORDS, n_missing - start), "U1"))

    def add(self, ids: np.ndarray) -> None:
        """Add the ids of a block."""
        if self._text is None and ids.dtype.kind in "biufS":
            if self._numbers is None:
                self._numbers = _Spool(self._folder)
            if self._numbers.dtype in (None, ids.dtype):
                self._numbers.add(np.ascontiguousarray(ids))
                return
        self._add_text(ids)

    def arrays(self) -> Iterator[tuple[str, DTypeLike | None, list[int], Iterator[np.ndarray]]]:
        """Name, type, shape and content of the arrays that hold the column."""
        if self._numbers is not None:
            yield self._name, self._numbers.dtype, [self._numbers.length], self._numbers.chunks()
            return
        assert self._text is not None
        assert self._lengths is not None
        n_rows = self._lengths.length
        # `pack_strings` has the same condition for ids in memory
        if self._characters <= 32 + 4 * (self._all_characters / max(1, n_rows)):
            dtype = np.dtype(f"=U{max(1, self._characters)}")
            yield self._name, dtype, [n_rows], (np.array(words, dtype=dtype) for words in self._words())
            return
        yield f"{self._name}.text", np.uint8, [self._text.length], self._text.chunks()
        yield f"{self._name}.ends", np.int64, [n_rows], self._ends()

    def _add_text(self, ids: np.ndarray) -> None:
        if self._text is None or self._lengths is None:
            self._text, self._lengths = _Spool(self._folder), _Spool(self._folder)
            numbers, self._numbers = self._numbers, None
            for chunk in () if numbers is None else numbers.chunks(_WORDS):
                self._add_text(chunk)
        words = [word.decode() if isinstance(word, bytes) else str(word) for word in ids.tolist()]
        self._characters = max(self._characters, max(map(len, words), default=0))
        self._all_characters += sum(map(len, words))
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        self._text.add(np.frombuffer(b"".join(encoded), dtype=np.uint8))
        self._lengths.add(np.array([len(word) for word in encoded], dtype=np.int32))

    def _ends(self) -> Iterator[np.ndarray]:
        assert self._lengths is not None
        end = 0
        for lengths in self._lengths.chunks():
            yield end + np.cumsum(lengths, dtype=np.int64)
            end += int(lengths.sum(dtype=np.int64))

    def _words(self) -> Iterator[list[str]]:
        assert self._text is not None
        assert self._lengths is not None
        text, rest = self._text.chunks(), b""
        for lengths in self._lengths.chunks(_WORDS):
            ends = np.cumsum(lengths, dtype=np.int64)
            parts = [rest]
            size = len(rest)
            while size < ends[-1]:
                parts.append(next(text).tobytes())
                size += len(parts[-1])
            content = b"".join(parts)
            places = [0, *ends.tolist()]
            yield [content[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(places)]
            rest = content[places[-1] :]


def _after(first: np.ndarray, rest: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    yield first
    yield from rest
