"""The classes that a model file may hold: each is registered where it is defined."""

from typing import TypeVar

__all__ = ["STORABLE", "storable"]

T = TypeVar("T", bound=type)

# Name -> class, for the imported classes.
STORABLE: dict[str, type] = {}


def storable(cls: T) -> T:
    """Class decorator: objects of this class, but not of its subclasses, can be saved to model files."""
    STORABLE[cls.__name__] = cls
    return cls
