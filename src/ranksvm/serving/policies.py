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
    """Team-draft interleaving (Radlinski, Kurup & Joachims, CIKM 2008): the models choose documents in turns.

    Before each pair of choices a coin decides which one is first; each chooses its best document that is left.

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
    n_documents = len(champion)
    rankings = {"champion": greedy(champion).order, "challenger": greedy(challenger).order}
    following = dict.fromkeys(rankings, 0)
    taken = np.zeros(n_documents, dtype=bool)
    order: list[int] = []
    teams: list[str] = []
    while len(order) < n_documents:
        first_two = ("champion", "challenger") if random.random() < 0.5 else ("challenger", "champion")
        for team in first_two[: n_documents - len(order)]:
            while taken[rankings[team][following[team]]]:
                following[team] += 1
            row = int(rankings[team][following[team]])
            taken[row] = True
            order.append(row)
            teams.append(team)
    return Choice(np.array(order, dtype=np.int64), "team-draft", None, teams)
