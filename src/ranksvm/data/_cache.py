"""The binary cache of a RankingData: a header with checksum, then the arrays as in memory.

Layout: 16 bytes of magic, version (uint32), CRC-32 of the header (uint32), length of the header (uint64), the header
(JSON), and each array at a multiple of 64 bytes. All numbers of the preamble are little-endian. The file contains no
code.
"""

import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ranksvm._checks import is_sparse
from ranksvm.data.atomic_files import atomic_write
from ranksvm.exceptions import DataError, ModelFileError

__all__ = ["MAGIC", "read_cache", "write_cache"]

T = TypeVar("T")

# CR LF and ^Z detect a transfer in text mode, as in PNG.
MAGIC = b"ranksvm-data\r\n\x1a\n"
_VERSION = 1
_PREAMBLE = struct.Struct("<16sIIQ")
_ALIGNMENT = 64
_KINDS = "biufUS"  # kinds of arrays: numbers and text of fixed width


def write_cache(path: Any, data: Any) -> None:
    """Write a RankingData (which imports this module, not the other way round)."""
    arrays = _arrays(data)
    entries = []
    offset = 0
    for name, array in arrays.items():
        entry = {"name": name, "dtype": array.dtype.str, "shape": array.shape, "offset": offset}
        entries.append({**entry, "crc32": zlib.crc32(_as_bytes(array))})
        offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    header = {
        "shape": [data.n_rows, data.n_features],
        "feature_names": None if data.feature_names is None else list(data.feature_names),
        "arrays": entries,
        "size": offset,
    }
    encoded = json.dumps(header).encode()
    with atomic_write(path) as file:
        file.write(_PREAMBLE.pack(MAGIC, _VERSION, zlib.crc32(encoded), len(encoded)))
        file.write(encoded)
        file.write(bytes(-(_PREAMBLE.size + len(encoded)) % _ALIGNMENT))
        for array in arrays.values():
            file.write(_as_bytes(array))
            file.write(bytes(-array.nbytes % _ALIGNMENT))


def read_cache(path: Any, make: Callable[..., T], *, mapped: bool, verify: bool | None) -> T:
    """The saved data: the result of ``make``, RankingData, for the stored fields.

    Raises
    ------
    ModelFileError
        When the file is not a cache, is truncated or altered, or was written by a newer version.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        preamble = file.read(_PREAMBLE.size)
        header, start = _header(name, file, preamble)
        size = os.fstat(file.fileno()).st_size
        expected = start + header["size"]
        if size != expected:
            raise ModelFileError(f"{name} is truncated or altered: it has {size} bytes, its header says {expected}.")
        if mapped:
            content: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        else:
            content = np.empty(size, dtype=np.uint8)
            file.seek(0)
            file.readinto(content)
    try:
        arrays = {
            entry["name"]: _array(name, content, start, entry, mapped and verify is None, verify is not False)
            for entry in header["arrays"]
        }
        return make(**_fields(header, arrays))
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{name} is altered: its arrays do not form a data set ({error}).") from error


def _array(name: str, content: Any, start: int, entry: dict[str, Any], skip_values: bool, verify: bool) -> np.ndarray:
    dtype = np.dtype(entry["dtype"])
    count = int(np.prod(entry["shape"], dtype=np.int64))
    if dtype.kind not in _KINDS or entry["offset"] < 0 or min(entry["shape"], default=0) < 0:
        raise ModelFileError(f"{name} is altered: its header describes {entry['name']} inconsistently.")
    array = np.frombuffer(content, dtype=dtype, count=count, offset=start + entry["offset"])
    check = verify and not (skip_values and entry["name"] in ("X", "X.data"))
    if check and zlib.crc32(_as_bytes(array)) != entry["crc32"]:
        raise ModelFileError(f"{name} is altered: the checksum of {entry['name']} does not match.")
    return array.reshape(entry["shape"])


def _header(name: str, file: Any, preamble: bytes) -> tuple[dict[str, Any], int]:
    if not preamble.startswith(MAGIC):
        raise ModelFileError(f"{name} is not a ranksvm data cache (RankingData.save writes one).")
    if len(preamble) < _PREAMBLE.size:
        raise ModelFileError(f"{name} is truncated: its header is incomplete.")
    _, version, checksum, length = _PREAMBLE.unpack(preamble)
    if version > _VERSION:
        raise ModelFileError(
            f"{name} has version {version} of the cache format, this ranksvm reads up to {_VERSION}: update ranksvm."
        )
    if length > os.fstat(file.fileno()).st_size:
        raise ModelFileError(f"{name} is truncated: its header is incomplete.")
    encoded = file.read(length)
    if zlib.crc32(encoded) != checksum:
        raise ModelFileError(f"{name} is truncated or altered: the checksum of its header does not match.")
    start = -(-(_PREAMBLE.size + length) // _ALIGNMENT) * _ALIGNMENT
    header = json.loads(encoded)
    if not (isinstance(header, dict) and isinstance(header.get("size"), int)):
        raise ModelFileError(f"{name} is altered: its header is not a header of a cache.")
    return header, start


def _arrays(data: Any) -> dict[str, np.ndarray]:
    if is_sparse(data.X):
        arrays = {"X.data": data.X.data, "X.indices": data.X.indices, "X.indptr": data.X.indptr}
    else:
        arrays = {"X": data.X}
    arrays["y"] = data.y
    for name in ("qid", "docid"):
        values = getattr(data, name)
        if values is None:
            continue
        if values.dtype.kind in "OT":
            # Strings of very different lengths: one text, and the end of each string in it.
            words = values.tolist()
            if not all(isinstance(word, str) for word in words):
                raise DataError(f"{name} holds Python objects that are not all strings: convert them to strings.")
            encoded = [word.encode("utf-8", "surrogatepass") for word in words]
            arrays[f"{name}.text"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            arrays[f"{name}.ends"] = np.cumsum([len(word) for word in encoded], dtype=np.int64)
        else:
            arrays[name] = values
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            raise DataError(f"{name} has type {array.dtype}, which a cache cannot store: use numbers or strings.")
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _fields(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    fields: dict[str, Any] = {"y": arrays["y"], "feature_names": header["feature_names"]}
    if "X" in arrays:
        fields["X"] = arrays["X"]
    else:
        from scipy import sparse

        X = sparse.csr_matrix(
            (arrays["X.data"], arrays["X.indices"], arrays["X.indptr"]), shape=header["shape"], copy=False
        )
        X.check_format(full_check=True)
        fields["X"] = X
    for field in ("qid", "docid"):
        if f"{field}.text" in arrays:
            text, ends = arrays[f"{field}.text"].tobytes(), arrays[f"{field}.ends"].tolist()
            words = [
                text[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends], ends, strict=False)
            ]
            fields[field] = np.array(words, dtype=object)
        else:
            fields[field] = arrays.get(field)
    return fields


def _as_bytes(array: Any) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8)) if array.size else memoryview(b"")
