"""Official folds on disk: folders with training, validation and test data, as LETOR has them."""

import re
from pathlib import Path
from typing import NamedTuple

import click

__all__ = ["Fold", "find_folds"]

# names of the files without extensions; trainingset.txt and the like: LETOR 3.0
_NAMES = {
    "train": ("train", "training", "trainingset"),
    "valid": ("vali", "valid", "val", "dev", "validation", "validationset"),
    "test": ("test", "testset"),
}
_SUFFIXES = (".txt", ".letor", ".dat", ".svm", ".svmlight", ".libsvm", ".csv", ".tsv", ".parquet", ".pq", ".rsd", "")
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", "")


class Fold(NamedTuple):
    """A fold: the name of its folder, and its files; ``valid`` may be None."""

    name: str
    train: Path
    valid: Path | None
    test: Path


def find_folds(folder: Path) -> list[Fold]:
    """The folds in the subfolders of a folder (or the folder itself, if it is one), in the order of their numbers.

    Raises
    ------
    UsageError
        When there is no fold, or a fold has two files for one part, or only some folds have validation data.
    """
    inside = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: _natural(path.name))
    found = [fold for path in inside if (fold := _fold(path)) is not None]
    if not found and (alone := _fold(folder)) is not None:
        found = [alone]
    if not found:
        raise click.UsageError(
            f"{folder} has no folds: expected folders (Fold1, Fold2, ...) with train.txt, vali.txt and test.txt, or "
            "other formats of these (.gz, .rsd, .parquet, .csv, ...)."
        )
    without = [fold.name for fold in found if fold.valid is None]
    if without and len(without) < len(found):
        raise click.UsageError(f"{', '.join(without)} of {folder} has no validation data (vali.txt), other folds have.")
    return found


def _fold(folder: Path) -> Fold | None:
    files = {part: _file(folder, part) for part in _NAMES}
    train, test = files["train"], files["test"]
    return None if train is None or test is None else Fold(folder.name, train, files["valid"], test)


def _file(folder: Path, part: str) -> Path | None:
    possible = {
        f"{name}{suffix}{compression}" for name in _NAMES[part] for suffix in _SUFFIXES for compression in _COMPRESSIONS
    }
    found = sorted(path for path in folder.iterdir() if path.name.lower() in possible and path.is_file())
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise click.UsageError(f"{folder} has {names}: which of them is the {part} data?")
    return found[0] if found else None


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts Fold10 after Fold9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
