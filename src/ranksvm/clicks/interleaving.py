"""Interleaving: two rankers share one list, and the clicks show which ranker users prefer."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check, count, one_of
from ranksvm.clicks.log import ClickLog
from ranksvm.data.clicks import clicked_flags
from ranksvm.data.numeric_column import numeric_column
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError

__all__ = ["Interleaving", "interleave", "interleaving_credits"]

_METHODS = ("team_draft", "balanced", "probabilistic")
# Exponent of the ranks in probabilistic interleaving (Hofmann, Whiteson & de Rijke, CIKM 2011).
_TAU = 3.0


@dataclasses.dataclass(frozen=True)
class Interleaving:
    """One list of documents that interleaves the rankings A and B.

    Parameters
    ----------
    documents : list
        The documents to show, from the top.
    team : list of str
        For each document the ranking, "A" or "B", that contributed it: the ``ranker`` of a `ClickLog`.
    method : str
        Method of interleaving.
    rank_a, rank_b : ndarray of float64, shape (n_documents,)
        Rank of each document in A and in B; infinite if that ranking does not have it.
    n_a, n_b : int
        Number of documents in A, and in B.

    Examples
    --------
    >>> from ranksvm.clicks import interleave
    >>> mixed = interleave(["x", "y"], ["y", "z"], method="balanced", random_state=0)
    >>> mixed.documents, mixed.rank_b.tolist()
    (['y', 'x', 'z'], [1.0, inf, 2.0])
    """

    documents: list[Any]
    team: list[str]
    method: str
    rank_a: np.ndarray
    rank_b: np.ndarray
    n_a: int
    n_b: int

    def credit(self, clicked: ArrayLike) -> float:
        """Which ranking these clicks prefer, as in `interleaving_credits`.

        Parameters
        ----------
        clicked : array-like of bool, shape (n_documents,)
            Which documents were clicked on.

        Returns
        -------
        float
            Between 1 (A) and -1 (B).

        Raises
        ------
        DataError
            When there is not one flag for each document.
        """
        flags = clicked_flags(clicked)
        if len(flags) != len(self.documents):
            raise DataError(f"clicked has {len(flags)} entries for {len(self.documents)} documents: they must agree.")
        shown, rank_a, rank_b = (values[None, :] for values in (flags, self.rank_a, self.rank_b))
        if self.method == "team_draft":
            side = np.where(np.array(self.team) == "A", 1.0, -1.0)[None, :]
            return float(_team_draft_credit(shown, side)[0])
        if self.method == "balanced":
            return float(_balanced_credit(shown, rank_a, rank_b)[0])
        n_a, n_b = np.array([self.n_a]), np.array([self.n_b])
        return float(_probabilistic_credit(shown, rank_a, rank_b, n_a, n_b)[0])


def interleave(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    method: str = "team_draft",
    length: int = 10,
    random_state: int | np.random.Generator | None = None,
) -> Interleaving:
    """Interleave two rankings into one list of documents.

    The papers leave details open; the rules below are the exact ones. All methods stop at ``length`` documents, or when
    both rankings are exhausted.

    - ``"team_draft"`` (Radlinski, Kurup & Joachims, CIKM 2008, algorithm 2): the team with fewer documents picks next;
      if both teams have the same number, a fair coin decides. A team picks the highest document of its ranking that is
      not in the list yet. A team whose ranking is exhausted passes, and the other one picks.
    - ``"balanced"`` (Joachims 2003; algorithm 1 of the paper above): one fair coin decides who is first. Let k_a and
      k_b be the numbers of documents read from A and B. The next document is read from A if ``k_a < k_b``, or if they
      are equal and A is first; else from B. It is appended if it is not in the list yet. If one ranking is exhausted,
      the other one is read.
    - ``"probabilistic"`` (Hofmann, Whiteson & de Rijke, CIKM 2011): for each place, a fair coin chooses a ranking. One
      of this ranking's documents that are not in the list yet is drawn, with probability proportional to
      ``rank ** -3``, where ``rank`` is the place in the whole ranking. An exhausted ranking is not chosen.

    Parameters
    ----------
    a, b : sequence
        Documents from the top, each once.
    method : {"team_draft", "balanced", "probabilistic"}, default "team_draft"
        How to interleave.
    length : int, default 10
        Maximum number of documents in the list.
    random_state : int, Generator or None, default None
        Source of randomness; give one Generator for all lists.

    Returns
    -------
    Interleaving
        The list, and the ranking that contributed each document.

    Raises
    ------
    DataError
        When a ranking has a document twice, or both are empty.
    OptionError
        When an option is out of range.

    Examples
    --------
    >>> mixed = interleave(["x", "y", "z"], ["y", "w", "x"], length=3, random_state=1)
    >>> mixed.documents, mixed.team
    (['x', 'y', 'w'], ['A', 'B', 'B'])
    >>> mixed.credit([1, 0, 0])
    1.0
    """
    check(method=one_of(method, _METHODS), length=count(length))
    lists = {"A": list(a), "B": list(b)}
    places: dict[str, dict[Any, int]] = {}
    for name, documents in lists.items():
        places[name] = {document: place for place, document in enumerate(documents)}
        if len(places[name]) < len(documents):
            twice = next(document for place, document in enumerate(documents) if places[name][document] != place)
            raise DataError(f"ranking {name} has document {twice!r} twice.")
    if not lists["A"] and not lists["B"]:
        raise DataError("both rankings are empty: there is nothing to interleave.")
    rng = np.random.default_rng(random_state)
    draw = {"team_draft": _team_draft, "balanced": _balanced, "probabilistic": _probabilistic}[method]
    documents, team = draw(lists, length, rng)
    rank_a, rank_b = (
        np.array([place[document] + 1.0 if document in place else np.inf for document in documents])
        for place in places.values()
    )
    return Interleaving(documents, team, method, rank_a, rank_b, len(lists["A"]), len(lists["B"]))


def _team_draft(lists: dict[str, list[Any]], length: int, rng: np.random.Generator) -> tuple[list[Any], list[str]]:
    documents: dict[Any, str] = {}
    size, read = {"A": 0, "B": 0}, {"A": 0, "B": 0}
    while len(documents) < length:
        for name, ranking in lists.items():
            while read[name] < len(ranking) and ranking[read[name]] in documents:
                read[name] += 1
        able = [name for name, ranking in lists.items() if read[name] < len(ranking)]
        if not able:
            break
        if len(able) == 2:
            fewer = [name for name in able if size[name] < max(size.values())]
            able = fewer or [able[rng.integers(2)]]
        documents[lists[able[0]][read[able[0]]]] = able[0]
        size[able[0]] += 1
    return list(documents), list(documents.values())


def _balanced(lists: dict[str, list[Any]], length: int, rng: np.random.Generator) -> tuple[list[Any], list[str]]:
    documents: dict[Any, str] = {}
    read = {"A": 0, "B": 0}
    first, second = ("A", "B") if rng.integers(2) == 0 else ("B", "A")
    while len(documents) < length:
        able = [name for name in (first, second) if read[name] < len(lists[name])]
        if not able:
            break
        name = min(able, key=lambda one: read[one])  # the first one if both have read the same number
        documents.setdefault(lists[name][read[name]], name)
        read[name] += 1
    return list(documents), list(documents.values())


def _probabilistic(lists: dict[str, list[Any]], length: int, rng: np.random.Generator) -> tuple[list[Any], list[str]]:
    documents: dict[Any, str] = {}
    weights = {name: np.arange(1.0, len(ranking) + 1.0) ** -_TAU for name, ranking in lists.items()}
    place = {name: {document: number for number, document in enumerate(ranking)} for name, ranking in lists.items()}
    left = {name: len(ranking) for name, ranking in lists.items()}
    while len(documents) < length:
        able = [name for name in lists if left[name]]
        if not able:
            break
        name = able[rng.integers(2)] if len(able) == 2 else able[0]
        sums = np.cumsum(weights[name])
        chosen = lists[name][min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(sums) - 1)]
        documents[chosen] = name
        for one in lists:
            if chosen in place[one]:
                weights[one][place[one][chosen]] = 0.0
                left[one] -= 1
    return list(documents), list(documents.values())


def interleaving_credits(
    log: ClickLog,
    method: str = "team_draft",
    *,
    names: tuple[Any, Any] = ("A", "B"),
    data: RankingData | None = None,
    scores: tuple[ArrayLike, ArrayLike] | None = None,
) -> np.ndarray:
    """The winner of each impression of a log of interleaved lists: 1 for A, -1 for B, 0 for neither.

    - ``"team_draft"``: the sign of (clicks on documents of team A minus clicks on documents of team B); the log's
      ``ranker`` names the team of each row.
    - ``"balanced"``: let k be the better of the two ranks, in A and B, of the lowest document that was clicked on. The
      credit is the sign of (clicks on the first k documents of A minus clicks on the first k documents of B).
    - ``"probabilistic"``: the expectation of the credit of ``"team_draft"`` over all assignments of documents to teams
      that could have led to the list (a number between -1 and 1). Given the list, the teams at different places are
      independent: document d belongs to team A with probability ``P_A(d) / (P_A(d) + P_B(d))``, where P_A and P_B are
      the softmax probabilities of A and B among the documents that are left. So the paper's sum over 2^n assignments
      becomes a convolution over the clicks.

    Parameters
    ----------
    log : ClickLog
        The log.
    method : {"team_draft", "balanced", "probabilistic"}, default "team_draft"
        Method by which the lists were interleaved.
    names : tuple of two, default ("A", "B")
        Names of the teams in the log, for ``"team_draft"``.
    data : RankingData, optional
        All documents of the queries, for the other methods.
    scores : tuple of two array-like of shape (n_rows,), optional
        Scores of A and B for the rows of ``data``; the rankings were sorted by them.

    Returns
    -------
    ndarray of float64, shape (n_impressions,)
        The credits.

    Raises
    ------
    DataError
        When a row is of another team, or the log has no rankers, or the log or the scores do not match the data.
    OptionError
        When ``method`` is unknown, or needs ``data`` and ``scores`` and one of them is missing.

    Examples
    --------
    >>> from ranksvm.clicks import ClickLog, interleaving_credits
    >>> log = ClickLog(["q"] * 4, [3, 7, 7, 3], [1, 2, 1, 2], [0, 1, 0, 1], ranker=["A", "B", "A", "A"])
    >>> interleaving_credits(log).tolist()
    [-1.0, 1.0]
    """
    check(method=one_of(method, _METHODS))
    clicked = _table(log, log.clicked.astype(np.float64), 0.0) > 0
    if method == "team_draft":
        return _team_draft_credit(clicked, _table(log, _sides(log, names), 0.0))
    if data is None or scores is None:
        raise OptionError(f"method={method!r} needs both rankings: give data= and scores=(of A, of B).")
    rows, queries = log.rows(data), data.queries
    numbers = queries.numbers()
    ranks = []
    for values in scores:
        one = numeric_column("scores", values)
        if one.shape != (data.n_rows,):
            raise DataError(f"scores has shape {one.shape}, but the data has {data.n_rows} rows: they must agree.")
        order = np.lexsort((-one, numbers))
        rank = np.empty(data.n_rows)
        rank[order] = np.arange(data.n_rows) - np.repeat(queries.pointers[:-1], queries.sizes) + 1.0
        ranks.append(_table(log, rank[rows], np.inf))
    if method == "balanced":
        return _balanced_credit(clicked, ranks[0], ranks[1])
    size = queries.sizes[numbers[rows[log.pointers[:-1]]]]
    return _probabilistic_credit(clicked, ranks[0], ranks[1], size, size)


def _sides(log: ClickLog, names: tuple[Any, Any]) -> np.ndarray:
    """1 for rows of team A, -1 for rows of team B."""
    if log.ranker is None:
        raise DataError("the log has no ranker, which names the team of each document.")
    unknown = [name for name in log.ranker_names if name not in names]
    if unknown or len(set(names)) != 2:
        raise DataError(
            f"the teams are {names[0]!r} and {names[1]!r}, but a document has the team {(unknown or names)[0]!r}."
        )
    side = np.array([1.0 if name == names[0] else -1.0 for name in log.ranker_names])
    return side[log.ranker]


def _table(log: ClickLog, values: np.ndarray, empty: float) -> np.ndarray:
    """The values of the rows as a table with a line for each impression and a column for each rank."""
    table = np.full((log.n_impressions, int(log.rank.max())), empty)
    table[log.impression, log.rank - 1] = values
    return table


def _team_draft_credit(clicked: np.ndarray, side: np.ndarray) -> np.ndarray:
    return np.sign((clicked * side).sum(axis=1))


def _balanced_credit(clicked: np.ndarray, rank_a: np.ndarray, rank_b: np.ndarray) -> np.ndarray:
    place = np.arange(clicked.shape[1])
    lowest = np.where(clicked, place, -1).max(axis=1)
    each = np.arange(len(clicked))
    k = np.minimum(rank_a, rank_b)[each, np.maximum(lowest, 0)][:, None]
    difference = (clicked & (rank_a <= k)).sum(axis=1) - (clicked & (rank_b <= k)).sum(axis=1)
    return np.where(lowest >= 0, np.sign(difference), 0.0)


def _probabilistic_credit(
    clicked: np.ndarray, rank_a: np.ndarray, rank_b: np.ndarray, n_a: np.ndarray, n_b: np.ndarray
) -> np.ndarray:
    chances = []
    for rank, size in ((rank_a, n_a), (rank_b, n_b)):
        weight = rank**-_TAU
        total = np.concatenate(([0.0], np.cumsum(np.arange(1.0, int(size.max()) + 1.0) ** -_TAU)))[size]
        left = total[:, None] - np.cumsum(weight, axis=1) + weight
        # after the last document of a ranking only round-off remains
        chances.append(weight / np.maximum(left, weight + 1e-300))
    with np.errstate(invalid="ignore"):
        of_a = np.where(clicked, chances[0] / (chances[0] + chances[1]), 0.0)
    width = clicked.shape[1]
    # probability of each difference of clicks, from -width to width
    difference = np.zeros((len(clicked), 2 * width + 1))
    difference[:, width] = 1.0
    for place in range(width):
        p, is_clicked = of_a[:, place, None], clicked[:, place]
        moved = np.zeros_like(difference)
        moved[:, 1:] += p * difference[:, :-1]
        moved[:, :-1] += (1.0 - p) * difference[:, 1:]
        difference[is_clicked] = moved[is_clicked]
    return difference[:, width + 1 :].sum(axis=1) - difference[:, :width].sum(axis=1)
