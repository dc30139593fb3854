"""Chooses the order of documents: by the champion (model in use), partly random, or interleaved with a challenger."""

from typing import NamedTuple

import numpy as np

__all__ = ["Choice", "epsilon", "fair_pairs", "greedy", "team_draft"]


class Choice(NamedTuple):
    """An order of documents, and how it was chosen.

    Parameters
    ----------
    order : ndarray of int64, shape (n_documents,)
        Row numbers, from the top.
    policy : str
        Name of the policy that chose the order.
    propensities : ndarray of float64, shape (n_documents,), or None
        Probability with which the document at each rank was placed there, from the top.
    teams : list of str, or None
        Model that contributed the document at each rank.
    first_pair : int or None
        Rank, from 0, at which the pairs of neighbors in random order begin.
    base_rank : list of int, or None
        Rank, from 0, that the document at each rank had before neighbors were exchanged.
    """

    order: np.ndarray
    policy: str = "greedy"
    propensities: np.ndarray | None = None
    teams: list[str] | None = None
    first_pair: int | None = None
    base_rank: list[int] | None = None


def greedy(scores: np.ndarray) -> Choice:
    """Best first; equal scores in the order of the request."""
    return Choice(np.argsort(-scores, kind="stable"))


def epsilon(scores: np.ndarray, chance: float, random: np.random.Generator) -> Choice:
    """With probability ``chance``, a uniformly random order; otherwise, `greedy`."""
    best = greedy(scores).order
    order = random.permutation(len(scores)) if random.random() < chance else best
    propensities = np.full(len(scores), chance / len(scores)) + (1.0 - chance) * (order == best)
    return Choice(order, "epsilon", propensities)


def fair_pairs(scores: np.ndarray, random: np.random.Generator) -> Choice:
    """`greedy`, with neighbors in random order.

    The ranks are divided into pairs of neighbors, from rank 1 or from rank 2, with probability 1/2 each; each pair is
    exchanged with probability 1/2 (FairPairs: Radlinski & Joachims, AAAI 2006).
    """
    first = int(random.integers(2))
    base = np.arange(len(scores))
    upper = np.arange(first, len(scores) - 1, 2)
    swapped = upper[random.random(len(upper)) < 0.5]
    base[swapped], base[swapped + 1] = swapped + 1, swapped
    return Choice(greedy(scores).order[base], "fair-pairs", first_pair=first, base_rank=base.tolist())


def team_draft(champion: np.ndarray, challenger: np.ndarray, random: np.random.Generator) -> Choice:
    """Team-draft interleaving of all documents, as `ranksvm.clicks.interleave` defines it.

    Parameters
    ----------
    champion, challenger : ndarray of shape (n_documents,)
        Scores of the two models.
    random : Generator
        Random generator of the coin tosses.

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
