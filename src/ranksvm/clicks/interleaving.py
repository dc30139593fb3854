"""Interleaving: two rankers share one list, and the clicks show which ranker users prefer.

Two comparisons may be inspected and stopped at any time (confidence sequences). Both use mixtures of likelihood ratios,
which are martingales for the true parameter: `win_interval` for wins and losses, of which a service stores only the
counts, and `compare_credits` for credits between -1 and 1.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check, count, one_of
from ranksvm._util.random_states import generator_of
from ranksvm._util.tables import Table, Tabular
from ranksvm.clicks.log import ClickLog
from ranksvm.data.clicks import clicked_flags
from ranksvm.data.numeric_column import numeric_column
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics.evaluation import check_confidence, t_test

__all__ = ["Interleaving", "InterleavingTest", "compare_credits", "interleave", "interleaving_credits", "win_interval"]

_METHODS = ("team_draft", "balanced", "probabilistic")
# Exponent of the ranks in probabilistic interleaving (Hofmann, Whiteson & de Rijke, CIKM 2011).
_TAU = 3.0
# Sum of squared credits at which the sequential test is strongest: the sum of about a hundred decisive impressions.
_SCALE = 100.0


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
    rng = generator_of(random_state)
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
    used = [log.ranker_names[code] for code in np.unique(log.ranker)]
    unknown = [name for name in used if name not in names]
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


@dataclasses.dataclass(frozen=True)
class InterleavingTest(Tabular):
    """The result of `compare_credits`.

    Parameters
    ----------
    mean : float
        Mean credit: above 0 if users prefer A.
    interval : tuple of float
        Its confidence interval, valid if the number of impressions was fixed beforehand; NaN for one impression, as is
        ``p_value``.
    p_value : float
        Two-sided p-value of "neither is preferred" (t-test), valid if the number of impressions was fixed beforehand.
    sequence : tuple of float
        Confidence interval of the mean credit that is valid at any time, after any number of inspections: an element of
        a confidence sequence.
    anytime_p_value : float
        p-value that is valid at any time.
    decided_at : int or None
        Number of impressions after which the sequential test decided; None: it has not decided yet.
    n_impressions : int
        Number of impressions.
    wins_a, wins_b : int
        Impressions with positive and negative credit.

    Examples
    --------
    >>> from ranksvm.clicks import compare_credits
    >>> test = compare_credits([1, -1, 0, 1] * 25)
    >>> test.wins_a, test.wins_b, test.mean
    (50, 25, 0.25)
    """

    mean: float
    interval: tuple[float, float]
    p_value: float
    sequence: tuple[float, float]
    anytime_p_value: float
    decided_at: int | None
    n_impressions: int
    wins_a: int
    wins_b: int

    def _table(self) -> Table:
        columns = {name: [value] for name, value in dataclasses.asdict(self).items() if not isinstance(value, tuple)}
        return Table(columns, "credit of A against B")


def compare_credits(credits: ArrayLike, *, confidence: float = 0.95) -> InterleavingTest:
    """Whether users prefer A to B, by a test that may be inspected and stopped at any time.

    Let S be the sum of the credits so far, and V the sum of their squares. If A and B are equally good, the
    distribution of credits is symmetric about 0, and ``exp(x S - x^2 V / 2)`` is a supermartingale for every effect
    size x (de la Peña, Annals of Probability 1999). The test uses their mixture over all x, ``E = sqrt(h / (h + V))
    exp(S^2 / (2 (h + V)))`` with h = 100 (Robbins, Annals of Mathematical Statistics 1970): the probability that E ever
    exceeds ``1 / level`` is at most ``level`` (Ville's inequality). The sequence of intervals of the mean needs no
    symmetry, only credits between -1 and 1: it uses the same mixture with V = n (Hoeffding's lemma).

    Parameters
    ----------
    credits : array-like of shape (n_impressions,)
        Credits between -1 and 1, in the order of time.
    confidence : float, default 0.95
        1 minus the level of the test.

    Returns
    -------
    InterleavingTest
        Mean, intervals and p-values, and when the test decided.

    Raises
    ------
    DataError
        When there are no credits, or one is not between -1 and 1.

    Examples
    --------
    >>> test = compare_credits([1, 0, 1, -1, 1, 1, 0, 1] * 10)
    >>> test.mean, test.decided_at
    (0.5, 62)
    """
    check_confidence(confidence)
    values = numeric_column("credits", credits)
    if values.ndim != 1 or len(values) == 0:
        raise DataError("credits must hold one number for each impression, and at least one.")
    if np.abs(values).max() > 1.0:
        row = int(np.abs(values).argmax())
        raise DataError(f"credits is {values[row]} in row {row}: a credit is between -1 (B wins) and 1 (A wins).")
    n, level = len(values), 1.0 - confidence
    total, square = np.cumsum(values), np.cumsum(values**2)
    log_e = total**2 / (2.0 * (_SCALE + square)) - 0.5 * np.log1p(square / _SCALE)
    over = np.flatnonzero(log_e >= -np.log(level))
    low, high, p_value = t_test(values, confidence) if n > 1 else (np.nan, np.nan, np.nan)
    mean = float(values.mean())
    half = float(np.sqrt((n + _SCALE) * (np.log1p(n / _SCALE) - 2.0 * np.log(level)))) / n
    return InterleavingTest(
        mean,
        (float(low), float(high)),
        float(p_value),
        (max(-1.0, mean - half), min(1.0, mean + half)),
        float(np.exp(-max(0.0, float(log_e.max())))),
        int(over[0]) + 1 if len(over) else None,
        n,
        int((values > 0).sum()),
        int((values < 0).sum()),
    )


def win_interval(won: int, lost: int, confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of a probability, which may be inspected after every trial.

    With the given confidence, all intervals contain the probability p, however often they are inspected (Robbins 1970;
    Howard et al. 2021). The interval is the set of p at which a mixture likelihood ratio, which is a martingale for the
    true p, is below ``1 / (1 - confidence)`` (Ville's inequality):
    ``B(won + 1/2, lost + 1/2) / B(1/2, 1/2) / (p^won (1 - p)^lost)``.

    Parameters
    ----------
    won, lost : int
        Trials won and lost.
    confidence : float, default 0.95
        Level.

    Returns
    -------
    tuple of float
        Both ends.
    """
    total = won + lost
    if total == 0:
        return 0.0, 1.0
    mixture = math.lgamma(won + 0.5) + math.lgamma(lost + 0.5) - math.lgamma(total + 1) - math.log(math.pi)

    def excluded(p: float) -> bool:
        likelihood = (won * math.log(p) if won else 0.0) + (lost * math.log1p(-p) if lost else 0.0)
        return mixture - likelihood >= -math.log1p(-confidence)

    def end(outside: float, inside: float) -> float:
        for _ in range(60):
            middle = (outside + inside) / 2
            outside, inside = (middle, inside) if excluded(middle) else (outside, middle)
        return inside

    share = won / total
    return (0.0 if won == 0 else end(1e-300, share), 1.0 if lost == 0 else end(1.0 - 1e-16, share))
