"""Papers and their items, the units that can be reproduced."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from papers.data_sets import Sources
from papers.results import Part
from ranksvm.exceptions import OptionError

__all__ = ["Context", "Item", "Paper", "Settings"]


@dataclass
class Settings:
    """Settings that determine how much work an item does.

    Parameters
    ----------
    quick : bool
        Whether to use small grids and few repetitions, to see that an item runs; no figure is judged.
    orders : int
        Number of random orders of a stream.
    candidates : int
        Number of random candidates of a search, for each model and fold.
    processes : int
        Number of fits of a search that run at the same time; 0: one fit at a time, in this process.
    cache : Path, optional
        File that stores the fits of a search, so that a later run continues.
    seconds : float
        Time after which a search begins no further fit.
    """

    quick: bool = False
    orders: int = 10
    candidates: int = 30
    processes: int = 2
    cache: Path | None = None
    seconds: float = math.inf


@dataclass
class Context:
    """The input of an item: data, settings, and a function that reports progress."""

    sources: Sources
    settings: Settings = field(default_factory=Settings)
    say: Callable[[str], None] = lambda text: None

    @property
    def quick(self) -> bool:
        """Whether to use small sizes."""
        return self.settings.quick


@dataclass(frozen=True)
class Item:
    """A table, a figure or a claim of a paper.

    Parameters
    ----------
    name : str
        Its name on the command line.
    title : str
        What it shows.
    run : callable
        Returns its parts.
    data : tuple of str
        Data sets, of which it uses those that are available; without any, it cannot run. Empty: it needs no data set.
    also : tuple of str
        Other names, such as the number of the table.
    long : bool
        Whether it takes more than about two minutes; then it runs only if it is named.
    draws : bool
        Whether it has a plot, for which it needs matplotlib.
    """

    name: str
    title: str
    run: Callable[[Context], list[Part]]
    data: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    long: bool = False
    draws: bool = False


@dataclass(frozen=True)
class Paper:
    """A paper and its items, in the order of the paper."""

    name: str
    title: str
    items: tuple[Item, ...]

    def item(self, name: str) -> Item:
        """The item with a name.

        Raises
        ------
        OptionError
            When the paper has no such item.
        """
        for item in self.items:
            if name.lower() in (item.name, *item.also):
                return item
        known = ", ".join(item.name for item in self.items)
        raise OptionError(f"{self.name} has no item {name!r}; its items are {known}.")
