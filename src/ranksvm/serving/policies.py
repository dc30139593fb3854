"""In which order documents are shown: the champion's, with some chance, or interleaved with the challenger's."""

from typing import NamedTuple

import numpy as np

__all__ = ["Choice", "epsilon", "greedy", "team_draft"]


class Choice(NamedTuple):
    """An order, and how it came about.

    Parameters
    ----------
    order : ndarray of int64, shape (n_documents,)
        Row numbers, from the top.
    policy : str
        What chose it.
    propensities : ndarray of float64, shape (n_documents,), or None
        Probability with which the document at each rank was there, from the top.
    teams : list of str, or None
        Model that contributed the document at each rank.
    """

    order: np.ndarray
    policy: str = "greedy"
    propensities: np.ndarray | None = None
    teams: list[str] | None = None


def greedy(scores: np.ndarray) -> Choice:
    """Best first; equal scores in the order of the request."""
    return Choice(np.argsort(-scores, kind="stable"))


def epsilon(scores: np.ndarray, chance: float, random: np.random.Generator) -> Choice:
    """With probability ``chance`` a random order, each as likely as any other, else `greedy`."""
    best = greedy(scores).order
    order = random.permutation(len(scores)) if random.random() < chance else best
    propensities = np.full(len(scores), chance / len(scores)) + (1.0 - chance) * (order == best)
    return Choice(order, "epsilon", propensities)


def team_draft(champion: np.ndarray, challenger: np.ndarray, random: np.random.Generator) -> Choice:
    """Team-draft interleaving of all documents, as `ranksvm.clicks.interleave` defines it.

    Parameters
    ----------
    champion, challenger : ndarray of shape (n_documents,)
        Scores of the two models.
    random : Generator
        The coin.

    Returns
    -------
    Choice
        The order, and the model that chose each document.
    """
    from ranksvm.clicks import interleave  # it imports SciPy

    lists = (greedy(scores).order.tolist() for scores in (champion, challenger))
    mixed = interleave(*lists, length=len(champion), random_state=random)
    names = {"A": "champion", "B": "challenger"}
    return Choice(np.array(mixed.documents), "team-draft", None, [names[team] for team in mixed.team])
