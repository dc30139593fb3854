"""The binary cache of a RankingData: a header, then the arrays as in memory; checksums cover every byte.

Layout: 16 bytes of magic, version (uint32), CRC-32 (uint32) of the version and everything that follows up to the first
array, length of the header (uint64), the header (JSON), and each array at a multiple of 64 bytes, with zeros between.
All numbers of the preamble are little-endian. The header has a CRC-32 for each block of each array; the last block
includes the zeros after the array. In version 1, the header had one CRC-32 for each array, without the zeros. The file
contains no code.
"""

import json
import os
import reprlib
import struct
import zlib
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

import numpy as np

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.checks import is_integer, is_sparse
from ranksvm._util.mapped_file import BytesOfFile, MappedFile
from ranksvm._util.sparse_format import check_sparse_format
from ranksvm._util.threads import available_cpus, parallel_map
from ranksvm._util.types import PathLike
from ranksvm.data.text_categories import are_texts
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from ranksvm.datasets.ranking_data import RankingData

__all__ = [
    "ALIGNMENT",
    "BLOCK",
    "MAGIC",
    "PREAMBLE_BYTES",
    "header_bytes",
    "open_cache",
    "read_cache",
    "row_arrays",
    "words_of",
    "write_cache",
]

T = TypeVar("T")

# CR LF and ^Z detect a transfer in text mode, as in PNG.
MAGIC = b"ranksvm-data\r\n\x1a\n"
_VERSION = 2
_PREAMBLE = struct.Struct("<16sIIQ")
PREAMBLE_BYTES = _PREAMBLE.size
_CHECKED_PREAMBLE = struct.Struct("<IQ")
ALIGNMENT = 64
# Number of bytes that one checksum covers (a block); all threads check blocks. On two threads, RankingData.load of a
# file of 1.06 GB in the page cache took 0.41 s, and 0.01 s without verification; zlib.crc32 alone reaches 3.2 GB/s on
# one thread.
BLOCK = 1 << 22
_KINDS = "biufUS"  # kinds of arrays: numbers and text of fixed width
# For each array that a cache may contain: the kinds of types that it may have, and its number of axes.
_ARRAYS = {
    "X": ("biuf", 2),
    "X.data": ("biuf", 1),
    "X.indices": ("i", 1),
    "X.indptr": ("i", 1),
    "y": ("biuf", 1),
    **{name: (_KINDS, 1) for name in ("qid", "docid")},
    **{f"{name}.text": ("u", 1) for name in ("qid", "docid")},
    **{f"{name}.ends": ("i", 1) for name in ("qid", "docid")},
}


class _Entry(NamedTuple):
    """An array as the header describes it; ``start`` and ``stop`` are positions in the file."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int
    checksums: list[int]
    block: int


def write_cache(path: PathLike, data: "RankingData") -> None:
    """Write a RankingData to a cache; its module imports this one, so this one does not import it."""
    arrays = _arrays(data)
    entries = []
    offset = 0
    for name, array in arrays.items():
        entry = {"name": name, "dtype": array.dtype.str, "shape": array.shape, "offset": offset}
        entries.append({**entry, "crc32": _checksums(_as_bytes(array), bytes(-array.nbytes % ALIGNMENT))})
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = {
        "shape": [data.n_rows, data.n_features],
        "feature_names": None if data.feature_names is None else list(data.feature_names),
        "categories": data.categories,
        "arrays": entries,
        "block": BLOCK,
        "size": offset,
    }
    with atomic_write(path) as file:
        file.write(header_bytes(json.dumps(header).encode()))
        for array in arrays.values():
            file.write(_as_bytes(array))
            file.write(bytes(-array.nbytes % ALIGNMENT))


def read_cache(path: PathLike, make: Callable[..., T], *, mapped: bool, verify: bool) -> T:
    """Read a cache: pass the stored fields to ``make`` (RankingData), and return its result.

    Raises
    ------
    DataError
        When the file is not a cache, is truncated or altered, or was written by a newer version.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        header, entries = open_cache(name, file)
        size = entries[-1].stop
        memory = None if mapped else _aligned(size)
        content: MappedFile | np.ndarray = MappedFile.of(file, size) if memory is None else memory
        unchecked = () if verify or not mapped else ("X", "X.data")
        # Each thread checks a block while it is in the cache of the processor. Blocks of a mapped file are read into
        # other memory: if they were read from the map, its pages would count as memory of the process.
        blocks = BytesOfFile(file)
        read = partial(_read_block, name, blocks, memory)
        _verify(name, read, [each for each in entries if each.name not in unchecked])
    try:
        arrays = {entry.name: _array(content, entry) for entry in entries}
        return make(**_fields(header, arrays))
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} is altered: its arrays do not form a data set ({error}).") from error


# ---- the header


def open_cache(name: str, file: IO[bytes]) -> tuple[dict[str, Any], list["_Entry"]]:
    """The header of an open cache, and its arrays; DataError if their sizes do not add up to the size of the file."""
    header, start = _header(name, file)
    entries = _entries(name, header, start)
    if complaint := _mismatch(header, {entry.name: entry for entry in entries}):
        raise DataError(f"{name} is altered: {complaint}.")
    size, expected = os.fstat(file.fileno()).st_size, start + header["size"]
    if size != expected:
        raise DataError(f"{name} is truncated or altered: it has {size} bytes, its header says {expected}.")
    return header, entries


def _header(name: str, file: IO[bytes]) -> tuple[dict[str, Any], int]:
    """The header, and the position of the first array."""
    preamble = file.read(_PREAMBLE.size)
    if not preamble.startswith(MAGIC):
        raise DataError(f"{name} is not a ranksvm data cache (RankingData.save writes one).")
    if len(preamble) < _PREAMBLE.size:
        raise DataError(f"{name} is truncated: its header is incomplete.")
    _, version, checksum, length = _PREAMBLE.unpack(preamble)
    if version > _VERSION:
        raise DataError(
            f"{name} has version {version} of the cache format, this ranksvm reads up to {_VERSION}: update ranksvm."
        )
    if length > os.fstat(file.fileno()).st_size:
        raise DataError(f"{name} is truncated: its header is incomplete.")
    start = -(-(_PREAMBLE.size + length) // ALIGNMENT) * ALIGNMENT
    padded = file.read(start - _PREAMBLE.size)
    if checksum not in (_header_checksum(version, length, padded), zlib.crc32(padded[:length]) if version == 1 else -1):
        raise DataError(f"{name} is truncated or altered: the checksum of its header does not match.")
    try:
        header = json.loads(padded[:length])
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} is altered: its header is not JSON ({error}).") from error
    return _checked_header(name, header), start


def header_bytes(encoded: bytes) -> bytes:
    """Everything before the first array: the preamble, the header, and zeros up to the position of the array."""
    padded = encoded + bytes(-(_PREAMBLE.size + len(encoded)) % ALIGNMENT)
    checksum = _header_checksum(_VERSION, len(encoded), padded)
    return _PREAMBLE.pack(MAGIC, _VERSION, checksum, len(encoded)) + padded


def _header_checksum(version: int, length: int, padded: bytes) -> int:
    return zlib.crc32(padded, zlib.crc32(_CHECKED_PREAMBLE.pack(version, length)))


def _checked_header(name: str, header: object) -> dict[str, Any]:
    """Return the header; DataError if its fields are not the fields of a cache."""
    fields = header if isinstance(header, dict) else {}
    shape, names, arrays = fields.get("shape"), fields.get("feature_names"), fields.get("arrays")
    whole = _are_sizes(shape) and len(shape) == 2 and is_integer(fields.get("size"), 0)
    named = names is None or (isinstance(names, list) and all(isinstance(each, str) for each in names))
    if not (whole and named and isinstance(arrays, list) and is_integer(fields.get("block", 1), 1)):
        raise DataError(f"{name} is altered: its header is not a header of a cache.")
    categories = fields.get("categories", {})
    if not isinstance(categories, dict) or not all(are_texts(texts) for texts in categories.values()):
        raise DataError(f"{name} is altered: its header does not describe categories.")
    return {**fields, "feature_names": names, "categories": categories}


def _mismatch(header: dict[str, Any], arrays: dict[str, "_Entry"]) -> str | None:
    """Why arrays of these types and sizes cannot be a data set; None if they can."""
    (n_rows, n_features), names = header["shape"], header["feature_names"]
    expected: dict[str, tuple[int, ...]] = {"y": (n_rows,)}
    if "X" in arrays:
        expected["X"] = n_rows, n_features
    else:
        n_values = arrays["X.data"].shape if "X.data" in arrays else (0,)
        expected |= {"X.data": n_values, "X.indices": n_values, "X.indptr": (n_rows + 1,)}
    for ids in ("qid", "docid"):
        if f"{ids}.text" in arrays or f"{ids}.ends" in arrays:
            n_bytes = arrays[f"{ids}.text"].shape if f"{ids}.text" in arrays else (0,)
            expected |= {f"{ids}.text": n_bytes, f"{ids}.ends": (n_rows,)}
        elif ids in arrays:
            expected[ids] = (n_rows,)
    for array, shape in expected.items():
        if array not in arrays:
            return f"it has no array {array}"
        if arrays[array].shape != shape:
            return f"its array {array} has shape {arrays[array].shape}, not {shape}"
    if any(array.endswith(".text") and arrays[array].dtype != np.uint8 for array in expected):
        return "its text does not consist of bytes"
    if names is not None and len(names) != n_features:
        return f"it has {len(names)} names of {n_features} features"
    return None


def _entries(name: str, header: dict[str, Any], start: int) -> list[_Entry]:
    """The arrays that the header describes: one after another, without gaps, to the end of the file."""
    entries: list[_Entry] = []
    offset = 0
    for described in header["arrays"]:
        entry = _entry(described, start, offset, header.get("block", 0))
        if entry is None or entry.name in [each.name for each in entries]:
            what = described.get("name") if isinstance(described, dict) else described
            # not `repr`, which fails if the description is nested too deeply
            raise DataError(f"{name} is altered: its header describes the array {reprlib.repr(what)} wrongly.")
        entries.append(entry)
        offset = entry.stop - start
    if offset != header["size"]:
        raise DataError(f"{name} is altered: its arrays have {offset} bytes, its header says {header['size']}.")
    return entries


def _entry(described: object, start: int, offset: int, block: int) -> _Entry | None:
    """The array of a description, beginning where the previous one ends; None if the description is invalid."""
    if not isinstance(described, dict) or described.get("name") not in list(_ARRAYS):
        return None
    kinds, n_axes = _ARRAYS[described["name"]]
    shape = described.get("shape")
    checksums = described.get("crc32")
    try:
        dtype = np.dtype(str(described.get("dtype")))
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if dtype.kind not in kinds or dtype.hasobject or not dtype.isnative or dtype.itemsize == 0:
        return None
    if described["name"] == "X.data" and dtype.kind == "f" and dtype.itemsize not in (4, 8):
        return None  # SciPy has no matrices with such floats
    if not _are_sizes(shape) or len(shape) != n_axes or described.get("offset") != offset:
        return None
    n_bytes = dtype.itemsize
    for size in shape:
        n_bytes *= size  # Python integers: no product is too large
    stop = start + offset + -(-n_bytes // ALIGNMENT) * ALIGNMENT
    if isinstance(checksums, int):  # version 1: one checksum for the array, without the zeros after it
        return _Entry(described["name"], dtype, tuple(shape), start + offset, stop, [checksums], 0)
    n_blocks = -(-(stop - start - offset) // block) if block else -1
    if not isinstance(checksums, list) or len(checksums) != n_blocks or not all(map(is_integer, checksums)):
        return None
    return _Entry(described["name"], dtype, tuple(shape), start + offset, stop, checksums, block)


def _are_sizes(shape: object) -> TypeGuard[list[int]]:
    return isinstance(shape, list) and all(is_integer(size, 0) for size in shape)


# ---- the arrays


def _checksums(values: memoryview, zeros: bytes) -> list[int]:
    """CRC-32 of each block of an array's bytes and of the zeros after them."""
    starts = range(0, len(values) + len(zeros), BLOCK)
    n_threads = available_cpus()

    def checksum(start: int) -> int:
        stop, n_values = start + BLOCK, len(values)
        behind = zeros[max(0, start - n_values) : max(0, stop - n_values)]
        return zlib.crc32(behind, zlib.crc32(values[start:stop]))

    return parallel_map(checksum, starts, n_threads)


def _verify(name: str, read: Callable[[int, int], memoryview], entries: list[_Entry]) -> None:
    """Compare arrays with their checksums, block by block as they are read."""
    blocks = []
    for entry in entries:
        n_bytes = entry.dtype.itemsize * int(np.prod(entry.shape, dtype=np.int64))
        stop = entry.stop if entry.block else entry.start + n_bytes
        step = entry.block or max(1, n_bytes)
        starts = range(entry.start, stop, step)
        for start, expected in zip(starts, entry.checksums, strict=False):
            blocks.append((entry.name, start, min(start + step, stop), expected))
    parallel_map(partial(_check_block, name, read), blocks, available_cpus())


def _aligned(size: int) -> np.ndarray:
    """Memory for the content of a file, aligned like a memory-mapped file."""
    memory = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def _read_block(name: str, file: BytesOfFile, memory: np.ndarray | None, start: int, stop: int) -> memoryview:
    block = (np.empty(stop - start, dtype=np.uint8) if memory is None else memory[start:stop]).data
    if not file.fill(block, start):
        raise DataError(f"{name} was truncated while it was read.")
    return block


def _check_block(name: str, read: Callable[[int, int], memoryview], block: tuple[str, int, int, int]) -> None:
    array, start, stop, expected = block
    if zlib.crc32(read(start, stop)) != expected:
        raise DataError(f"{name} is altered: the checksum of {array} does not match.")


def _array(content: MappedFile | np.ndarray, entry: _Entry) -> np.ndarray:
    count = int(np.prod(entry.shape, dtype=np.int64))
    array = np.frombuffer(content, dtype=entry.dtype, count=count, offset=entry.start)
    if entry.dtype.kind == "U" and count and array.view(np.uint32).max() > 0x10FFFF:
        raise ValueError(f"{entry.name} has numbers that are no characters")
    return array.reshape(entry.shape)


def row_arrays(data: "RankingData") -> dict[str, np.ndarray]:
    """Features and labels of a RankingData as a cache stores them."""
    if is_sparse(data.X):
        arrays = {"X.data": data.X.data, "X.indices": data.X.indices, "X.indptr": data.X.indptr}
    else:
        arrays = {"X": data.X}
    return _storable({**arrays, "y": data.y})


def _arrays(data: "RankingData") -> dict[str, np.ndarray]:
    arrays = {}
    for name in ("qid", "docid"):
        values = getattr(data, name)
        if values is None:
            continue
        if values.dtype.kind in "OT":
            # Strings of very different lengths are stored as one text and the end of each string in it.
            words = values.tolist()
            if not all(isinstance(word, str) for word in words):
                raise DataError(f"{name} holds Python objects that are not all strings: convert them to strings.")
            encoded = [word.encode("utf-8", "surrogatepass") for word in words]
            arrays[f"{name}.text"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            arrays[f"{name}.ends"] = np.cumsum([len(word) for word in encoded], dtype=np.int64)
        else:
            arrays[name] = values
    return row_arrays(data) | _storable(arrays)


def _storable(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    for name, array in arrays.items():
        kinds, _ = _ARRAYS[name]
        if array.dtype.kind not in kinds or array.dtype.itemsize == 0:
            raise DataError(f"{name} has type {array.dtype}, which a cache cannot store: use numbers or strings.")
    return {name: np.ascontiguousarray(array, array.dtype.newbyteorder("=")) for name, array in arrays.items()}


def _fields(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    fields: dict[str, Any] = {"y": arrays["y"]}
    fields |= {name: header[name] for name in ("feature_names", "categories")}
    shape = tuple(header["shape"])
    if "X" in arrays:
        fields["X"] = arrays["X"]
        if arrays["X"].shape != shape:
            raise ValueError(f"X has shape {arrays['X'].shape}, not {shape}")
    else:
        from scipy import sparse

        parts = arrays["X.data"], arrays["X.indices"], arrays["X.indptr"]
        X = sparse.csr_matrix(parts, shape=shape, copy=False)
        check_sparse_format(X)
        fields["X"] = X
    for field in ("qid", "docid"):
        if f"{field}.text" in arrays:
            fields[field] = words_of(arrays[f"{field}.text"], arrays[f"{field}.ends"])
        else:
            fields[field] = arrays.get(field)
    return fields


def words_of(text: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The strings in ``text``, which has their UTF-8 bytes one after another; ``ends`` has the end of each."""
    bounds = np.concatenate(([0], ends))
    if (np.diff(bounds) < 0).any() or bounds[-1] != len(text):
        raise ValueError("strings do not end one after another")
    content, places = text.tobytes(), bounds.tolist()
    words = [content[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(places)]
    out = np.empty(len(words), dtype=object)
    out[:] = words
    return out


def _as_bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
