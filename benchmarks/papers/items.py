"""Papers and their items: what can be reproduced, from which data, and how."""

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
    """How much work an item does.

    Parameters
    ----------
    quick : bool
        Small grids and few repetitions: whether it runs, and roughly what it finds; no figure is judged.
    orders : int
        Random orders of a stream.
    candidates : int
        Random candidates of a search, for each model and fold.
    processes : int
        Fits of a search that run at a time; 0: one, in this process.
    cache : Path, optional
        File that keeps the fits of a search, so that a later run goes on.
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
    """What an item is given: data, settings, and where it says how far it is."""

    sources: Sources
    settings: Settings = field(default_factory=Settings)
    say: Callable[[str], None] = lambda text: None

    @property
    def quick(self) -> bool:
        """Whether sizes are to be small."""
        return self.settings.quick


@dataclass(frozen=True)
class Item:
    """A table, a figure or a claim of a paper.

    Parameters
    ----------
    name : str
        What it is called on the command line.
    title : str
        What it shows.
    run : callable
        Gives its parts.
    data : tuple of str
        Data sets of which it uses those that are there; without any of them it cannot run. Empty: it makes its data.
    also : tuple of str
        Other names, such as its number in print.
    long : bool
        Whether it takes more than about two minutes, and then runs only when it is named or all are asked for.
    draws : bool
        Whether it has a plot, which needs matplotlib to be written.
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
        """The item of that name.

        Raises
        ------
        OptionError
            When the paper has none.
        """
        for item in self.items:
            if name.lower() in (item.name, *item.also):
                return item
        known = ", ".join(item.name for item in self.items)
        raise OptionError(f"{self.name} has no item {name!r}; its items are {known}.")
