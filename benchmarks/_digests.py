"""Digests of the pages of results, which show whether a page was changed by hand after its script wrote it."""

import hashlib
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
DIGESTS = RESULTS / "digests.txt"


def digests() -> str:
    """A line for each page: its digest and its name, as sha256sum writes them."""
    pages = sorted(RESULTS.glob("*.md"), key=lambda path: path.name)
    return "".join(f"{hashlib.sha256(_bytes(path)).hexdigest()}  {path.name}\n" for path in pages)


def _bytes(path: Path) -> bytes:
    # a checkout on Windows may have different line endings
    return path.read_bytes().replace(b"\r\n", b"\n")


def seal(path: Path) -> None:
    """Record the digest of a page of results that was just written, without changing the digests of other pages."""
    if path.resolve().parent != RESULTS.resolve():
        return
    kept = dict(reversed(line.split()) for line in DIGESTS.read_text(encoding="ascii").splitlines())
    now = dict(reversed(line.split()) for line in digests().splitlines())
    kept[path.name] = now[path.name]
    DIGESTS.write_text("".join(f"{kept[name]}  {name}\n" for name in sorted(kept) if name in now), encoding="ascii")
