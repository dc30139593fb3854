"""Digests of the pages of results: a page is what its script wrote, so one that was changed by hand is found."""

import hashlib
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
DIGESTS = RESULTS / "digests.txt"


def digests() -> str:
    """A line for each page: its digest and its name, as sha256sum writes them."""
    pages = sorted(RESULTS.glob("*.md"), key=lambda path: path.name)
    return "".join(f"{hashlib.sha256(_bytes(path)).hexdigest()}  {path.name}\n" for path in pages)


def _bytes(path: Path) -> bytes:
    # a checkout on Windows may have other ends of lines
    return path.read_bytes().replace(b"\r\n", b"\n")


def seal(path: Path) -> None:
    """Record the digest of a page of results that was written just now, and leave those of the others as they are."""
    if path.resolve().parent != RESULTS.resolve():
        return
    kept = dict(reversed(line.split()) for line in DIGESTS.read_text(encoding="ascii").splitlines())
    now = dict(reversed(line.split()) for line in digests().splitlines())
    kept[path.name] = now[path.name]
    DIGESTS.write_text("".join(f"{kept[name]}  {name}\n" for name in sorted(kept) if name in now), encoding="ascii")
