"""The backend of parts in this process."""

from collections.abc import Sequence
from typing import Any

from ranksvm._util.threads import parallel_map
from ranksvm.terms.parts.answers import add, answer, part_info
from ranksvm.terms.parts.backend import Job, PartInfo
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["SerialBackend"]


class SerialBackend:
    """Parts in the memory of this process, one after another on each thread: see `Backend` for the methods.

    Parameters
    ----------
    n_threads : int
        Number of threads, each with a part of its own at a time.
    """

    def __init__(self, n_threads: int = 1):
        self.n_threads = n_threads
        self._parts: list[Part] = []

    def put(self, parts: Sequence[Part]) -> None:
        """Take the parts."""
        self._parts = list(parts)

    def round(self, jobs: Sequence[Job]) -> list[list[Any]]:
        """Sums over all parts."""
        return tree_sum(parallel_map(lambda part: answer(part, jobs), self._parts, self.n_threads), add)

    def sample(self, n_rows: int, seed: int) -> list[Part]:
        """An equal share of the rows of every part."""
        share = n_rows / max(1, sum(part.pairs.n_rows for part in self._parts))
        samples = parallel_map(lambda part: part.sample(share, seed), self._parts, self.n_threads)
        return [sample for sample in samples if sample is not None]

    def info(self) -> list[PartInfo]:
        """The sizes of the parts."""
        return [part_info(part) for part in self._parts]

    def close(self, fit: str | None = None) -> None:
        """Free the caches of the parts for a fit; without one, the parts themselves."""
        if fit is None:
            self._parts = []
        for part in self._parts:
            part.forget(fit or "")
