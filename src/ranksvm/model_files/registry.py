"""The classes that a model file may contain, and the classes that can be saved or that skops has to trust."""

from typing import TypeVar

__all__ = ["RENAMED", "SAVABLE", "STORABLE", "savable", "skops_types", "storable"]

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


def skops_types() -> list[str]:
    """Names of the estimators and scalers of ranksvm, as ``trusted`` of skops and ``skops_trusted_types`` of MLflow.

    Apart from these classes, fitted models consist of types that skops trusts by itself: numbers, text, arrays and
    their containers. A loss or a kernel that is a function of your own has to be added to the list.

    Returns
    -------
    list of str
        Full names, in alphabetical order.

    Examples
    --------
    >>> from ranksvm import skops_types
    >>> "ranksvm.estimators.rank_svm.RankSVM" in skops_types()
    True
    """
    import ranksvm

    for name in ranksvm.__all__:
        getattr(ranksvm, name)  # public names are imported on first use, and their classes register then
    return sorted(f"{cls.__module__}.{cls.__qualname__}" for cls in STORABLE.values())
