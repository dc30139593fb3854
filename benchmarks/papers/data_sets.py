"""The data sets of the papers: where they are on disk, and how to get a missing one."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ranksvm.datasets.letor.reader import read_letor
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError

__all__ = ["DATA_SETS", "DataSet", "Parts", "Sources", "default_folder"]

PARTS = ("train", "vali", "test")
# Possible extensions of the file of a part.
ENDINGS = (".txt", ".txt.gz", ".txt.zst")
LETOR = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
MSLR = "https://www.microsoft.com/en-us/research/project/mslr/"


class DataSet(NamedTuple):
    """A data set: a description, the source, and a note about figures that are measured on it."""

    name: str
    what: str
    source: str
    note: str = ""


DATA_SETS = {
    each.name: each
    for each in (
        DataSet("MQ2008", "LETOR 4.0, supervised ranking, MQ2008 with its five folds", LETOR),
        DataSet("MQ2007", "LETOR 4.0, supervised ranking, MQ2007 with its five folds", LETOR),
        DataSet(
            "MQ2007-partial",
            "a random 85 % of the rows of every query of MQ2007; used where MQ2007 is not there",
            LETOR,
            "85 % of the rows of MQ2007: figures stand beside the published ones, but are not judged",
        ),
        DataSet("OHSUMED", "LETOR 3.0, OHSUMED, features normalized by query, with its five folds", LETOR),
        DataSet("MQ2007-list", "LETOR 4.0, listwise ranking, MQ2007-list", LETOR),
        DataSet("MQ2008-list", "LETOR 4.0, listwise ranking, MQ2008-list", LETOR),
        DataSet("MSLR-WEB10K", "MSLR-WEB10K with its five folds", MSLR),
        DataSet("MSLR-WEB30K", "MSLR-WEB30K with its five folds", MSLR),
        DataSet(
            "Yahoo-set1",
            "Yahoo! Learning to Rank Challenge (C14B), set 1, its three parts as those of Fold1",
            "https://webscope.sandbox.yahoo.com/",
        ),
        DataSet(
            "Yahoo-set2",
            "Yahoo! Learning to Rank Challenge (C14B), set 2, its three parts as those of Fold1",
            "https://webscope.sandbox.yahoo.com/",
        ),
    )
}
FOLDS = range(1, 6)


class Parts(NamedTuple):
    """Training, validation and test part of a fold."""

    train: RankingData
    vali: RankingData
    test: RankingData


def default_folder() -> Path:
    """The folder that ``RANKSVM_DATA`` names, or ``data`` in the working directory."""
    return Path(os.environ.get("RANKSVM_DATA", "data"))


@dataclass(frozen=True)
class Sources:
    """The data sets below a folder.

    Parameters
    ----------
    folder : Path
        A data set is a folder below it: ``folder/MQ2008/Fold1/train.txt``, as text or compressed.
    """

    folder: Path

    def has(self, name: str) -> bool:
        """Whether the training part of the first fold is available."""
        return self._path(name, 1, "train") is not None

    def here(self, names: Iterable[str]) -> list[str]:
        """The names of available data sets; MQ2007-partial only if MQ2007 is absent."""
        found = [name for name in names if self.has(name)]
        return [name for name in found if name != "MQ2007-partial" or "MQ2007" not in found]

    def missing(self, names: Iterable[str]) -> list[str]:
        """The names of missing data sets, except MQ2007-partial, which cannot be obtained."""
        return [name for name in names if name != "MQ2007-partial" and not self.has(name)]

    def instructions(self, name: str) -> str:
        """A text that says what to get, and where to put it; DIR is the folder."""
        known = DATA_SETS[name]
        place = f"DIR/{name}/Fold1/train.txt"
        return f"{name}: {known.what}. Get it from {known.source} and put it so that {place} (or .gz, .zst) is there."

    def read(self, name: str, fold: int = 1, part: str = "train", *, docids: bool = False) -> RankingData:
        """A part of a fold, with as many features as the training part of that fold.

        Raises
        ------
        DataError
            When the part is absent.
        """
        path = self._path(name, fold, part)
        if path is None:
            wanted = self.folder / name / f"Fold{fold}" / f"{part}.txt"
            raise DataError(f"{wanted} (or .gz, .zst) is missing: the data set is not whole.")
        if part == "train":
            return _read(path, docids)
        return _read(path, docids, self.read(name, fold).n_features)

    def parts(self, name: str, fold: int = 1) -> Parts:
        """All parts of a fold."""
        return Parts(*(self.read(name, fold, part) for part in PARTS))

    def folds(self, name: str) -> list[int]:
        """Numbers of the available folds."""
        return [fold for fold in FOLDS if self._path(name, fold, "train") is not None]

    def _path(self, name: str, fold: int, part: str) -> Path | None:
        for ending in ENDINGS:
            path = self.folder / name / f"Fold{fold}" / f"{part}{ending}"
            if path.is_file():
                return path
        return None


# The cache has room for the parts of two folds, because several items of a paper read the same parts.
@lru_cache(maxsize=6)
def _read(path: Path, docids: bool, n_features: int | None = None) -> RankingData:
    options: dict[str, Any] = {} if n_features is None else {"n_features": n_features}
    return read_letor(path, docids=docids, **options)
