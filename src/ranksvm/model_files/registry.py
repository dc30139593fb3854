"""The classes that a model file may contain, and the classes that can be saved; each module registers its own."""

from typing import TypeVar

__all__ = ["RENAMED", "SAVABLE", "STORABLE", "savable", "storable"]

T = TypeVar("T", bound=type)

# Name -> class, for the imported classes.
STORABLE: dict[str, type] = {}
# Earlier name -> present name; files of earlier versions have the earlier name.
RENAMED = {"CommitteePerceptronRanker": "PerceptronCommitteeRanker"}
# The classes that can be saved: the storable ones, and others whose objects are saved as objects of the storable class
# with the same name.
SAVABLE: set[type] = set()


def storable(cls: T) -> T:
    """Class decorator: objects of this class, but not of its subclasses, can be saved to model files."""
    STORABLE[cls.__name__] = cls
    return savable(cls)


def savable(cls: T) -> T:
    """Class decorator: objects of this class can be saved, as objects of the storable class of the same name."""
    SAVABLE.add(cls)
    return cls
