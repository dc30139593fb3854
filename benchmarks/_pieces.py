"""Measure a page piece by piece; each result is stored in a file, so that a run can be stopped and continued."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from _common import instruction_set


class Found(NamedTuple):
    """The result of a piece, and the compiled loops that it used."""

    instruction_set: str
    key: str
    value: Any


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Parameters
    ----------
    name : str
        Short name, for the file of pieces and for choosing sections.
    pieces : dict of str to callable
        Functions that measure; their results must be valid in JSON.
    render : callable
        A function that turns the list of results into Markdown.
    """

    name: str
    pieces: dict[str, Callable[[], Any]]
    render: Callable[[list[Found]], list[str]]


class Pieces:
    """Results of pieces, in a file of JSON lines or only in memory.

    Parameters
    ----------
    path : Path or None
        The file.
    seconds : float or None
        Number of seconds after which no further piece begins.
    """

    def __init__(self, path: Path | None, seconds: float | None = None):
        self.path, self.left = path, 0
        self._end = None if seconds is None else time.monotonic() + seconds
        self._found: dict[tuple[str, str, str], Any] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.endswith("}"):  # the last line may be incomplete
                    entry = json.loads(line)
                    self._found[entry["section"], entry["instruction_set"], entry["key"]] = entry["value"]

    def measure(self, sections: Sequence[Section], only: str) -> None:
        """Measure the pieces without a result whose names (section/piece) contain ``only``."""
        for section in sections:
            for key, piece in section.pieces.items():
                place = (section.name, instruction_set(), key)
                if only not in f"{section.name}/{key}" or place in self._found:
                    continue
                if self._end is not None and time.monotonic() > self._end:
                    self.left += 1
                    continue
                print(f"{section.name}/{key}", file=sys.stderr, flush=True)
                self._keep(place, piece())

    def _keep(self, place: tuple[str, str, str], value: Any) -> None:
        self._found[place] = value
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            entry = dict(zip(("section", "instruction_set", "key"), place, strict=True), value=value)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def found(self, section: str) -> list[Found]:
        """The results of a section, in the order of measurement."""
        return [Found(variant, key, value) for (name, variant, key), value in self._found.items() if name == section]

    def parts(self, sections: Sequence[Section]) -> list[str]:
        """Markdown of all sections that have results, in their order."""
        parts = []
        for section in sections:
            found = [
                Found(variant, key, value)
                for key in section.pieces
                for (name, variant, of), value in self._found.items()
                if name == section.name and of == key
            ]
            if found:
                parts += section.render(found)
        return parts
