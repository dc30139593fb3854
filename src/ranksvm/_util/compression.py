"""Compressed files: recognized by their first bytes when read, by their name when written."""

import importlib
import zlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import IO, Any

from ranksvm.exceptions import MissingDependencyError

__all__ = [
    "HEAD",
    "BrokenStreamError",
    "compression_of",
    "compression_of_name",
    "compressor",
    "decompressed",
    "first_text",
]

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_CHUNK = 1 << 14  # compressed bytes read at a time
_MAX_TEXT = 1 << 20  # bytes of text returned at a time
HEAD = 1 << 16  # bytes that show the format of a file


class BrokenStreamError(Exception):
    """The compressed data end early or are damaged; the text before that place is good."""


def compression_of(head: bytes) -> str | None:
    """Name of the compression that a file with these first bytes has."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def compression_of_name(name: str) -> str | None:
    """Name of the compression that a file name implies."""
    return next((kind for suffix, kind in _SUFFIXES.items() if name.lower().endswith(suffix)), None)


def _standard_module(module: str, kind: str) -> ModuleType:
    """A module of the standard library, which a Python that was built without the library behind it lacks."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingDependencyError(
            f"reading and writing {kind} files needs Python's module {module}, and this Python was built without it: "
            f"decompress the file first, or install the headers of {kind} and build Python again."
        ) from None


def _zstd() -> ModuleType:
    try:
        from compression import zstd  # Python 3.14

        return zstd
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise MissingDependencyError(
            'reading and writing .zst files needs zstandard: pip install "ranksvm[zstd]"'
        ) from None
    return zstandard


def _error(kind: str) -> type[Exception]:
    """What a decompressor raises for damaged data."""
    if kind == "gzip":
        return zlib.error
    if kind == "bzip2":
        return OSError
    error: type[Exception] = _standard_module("lzma", kind).LZMAError if kind == "xz" else _zstd().ZstdError
    return error


def _decompressor(kind: str) -> Callable[[], Any]:
    if kind == "gzip":
        return lambda: zlib.decompressobj(wbits=31)
    if kind == "bzip2":
        make: Callable[[], Any] = _standard_module("bz2", kind).BZ2Decompressor
        return make
    if kind == "xz":
        lzma = _standard_module("lzma", kind)
        return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)
    zstd = _zstd()
    if hasattr(zstd, "ZstdCompressor") and hasattr(zstd.ZstdDecompressor, "decompressobj"):
        # Unlike a stream reader, this object reports whether the frame was complete.
        return lambda: zstd.ZstdDecompressor().decompressobj()
    return zstd.ZstdDecompressor


def decompressed(file: IO[bytes], kind: str) -> Iterator[bytes]:
    """The text of a compressed file, in chunks that are not empty; several consecutive streams form one text.

    Raises
    ------
    BrokenStreamError
        When the file ends before its last stream does, or is damaged. The good text is yielded first.
    MissingDependencyError
        When the package for this compression is not installed.
    """
    make = _decompressor(kind)
    stream, started = make(), False
    while data := file.read(_CHUNK):
        while data:
            if not started and not (data := data.lstrip(b"\0")):
                break  # padding between or after streams
            started = True
            try:
                yield from filter(None, _texts(stream, data, kind))
            except (OSError, _error(kind)) as error:
                raise BrokenStreamError(f"the {kind} data are damaged: {error}") from error
            data = b""
            if stream.eof:
                data, stream, started = stream.unused_data, make(), False
    if started:
        raise BrokenStreamError(f"the {kind} data end early: the file is truncated")


def first_text(file: IO[bytes]) -> bytes:
    """The first text of a seekable file, decompressed, to recognize its format; empty if decompression fails."""
    file.seek(0)
    head = file.read(HEAD)
    if (kind := compression_of(head)) is None:
        return head
    file.seek(0)
    try:
        return next(decompressed(file, kind), b"")  # reads on until the first block of the file is complete
    except BrokenStreamError:
        return b""


def _texts(stream: Any, data: bytes, kind: str) -> Iterator[bytes]:
    """Text of some compressed bytes, a bounded amount at a time if the library supports it."""
    if kind == "gzip":
        while text := stream.decompress(data, _MAX_TEXT):
            yield text
            data = stream.unconsumed_tail
    elif kind != "zstd" or not hasattr(stream, "flush"):
        yield stream.decompress(data, _MAX_TEXT)
        while not (stream.needs_input or stream.eof):
            yield stream.decompress(b"", _MAX_TEXT)
    else:  # the zstandard package
        yield stream.decompress(data)


def compressor(file: IO[bytes], kind: str) -> Any:
    """A file that writes compressed data to ``file``; the same text gives the same bytes."""
    import gzip

    if kind == "gzip":
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6)
    if kind == "bzip2":
        return _standard_module("bz2", kind).BZ2File(file, "wb")
    if kind == "xz":
        return _standard_module("lzma", kind).LZMAFile(file, "wb")
    zstd = _zstd()
    if hasattr(zstd, "ZstdFile"):
        return zstd.ZstdFile(file, "w")
    return zstd.ZstdCompressor().stream_writer(file, closefd=False)
