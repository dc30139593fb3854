"""Every table and figure of a paper: the item that reproduces it, and what is missing."""

from typing import NamedTuple

from papers.items import Context, Item
from papers.results import Grid

__all__ = ["CURVES", "NOT_HERE", "Place", "contents"]

HEADER = ("in the paper", "what it shows", "here", "what is missing, and why")
NOT_HERE = "we do not have the printed numbers"
CURVES = "we have no numbers of these curves"


class Place(NamedTuple):
    """A table or figure of a paper: its number, what it shows, the item that reproduces it, and what is missing."""

    number: str
    shows: str
    here: str
    missing: str = ""


def contents(places: tuple[Place, ...], also: tuple[str, ...] = ()) -> Item:
    """An item that lists the tables and figures of a paper.

    Parameters
    ----------
    places : tuple of Place
        The tables and figures, in the order of the paper.
    also : tuple of str
        Names of tables and figures without an item, such as "table-8"; these names show the list.

    Returns
    -------
    Item
        The item.
    """

    def run(context: Context) -> list[str | Grid]:
        return [
            "What is stored is judged as soon as the data are there.",
            Grid("places", HEADER, places),
        ]

    return Item("contents", "Every table and figure: where it is, and what is missing", run, also=also)
