"""Counts impressions and clicks, and estimates propensities by pairs of ranks or by expectation maximization."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from ranksvm.clicks.log import ClickLog
    from ranksvm.clicks.log_file import Log

__all__ = [
    "ClickCounts",
    "EMResult",
    "FEW_CLICKS",
    "MAX_NUMBERS",
    "comparable_clicks",
    "connected_ranks",
    "expectation_maximization",
    "fit_power",
    "fit_propensities",
    "groups_of",
    "harvest",
    "harvest_by_stratum",
    "swap_counts",
]

# If a rank has fewer comparable clicks than this, the error of its propensity exceeds about 10 %. (This was measured on
# 10 logs of 10^5 clicks on whole rankings of MQ2008, OHSUMED and MQ2007-partial. With estimated instead of known
# propensities, the mean pairwise accuracy was lower by .03 to .09 if such ranks were used, with C chosen for each log.
# Without these ranks, with the same C, it was lower by less than .002. See benchmarks/clicks_folds.py.)
FEW_CLICKS = 100

# Maximum number of values in a table, 64 MB, which has one value for each group of queries and pair of ranks; and
# maximum number of groups.
MAX_NUMBERS = 8_000_000
_MAX_GROUPS = 1_000
_STEPS = 50
_RIDGE = 1e-3


@dataclass(frozen=True)
class ClickCounts:
    """Number of impressions and of clicks of each document of each query at each rank.

    An entry has the counts of one document of a query at one rank, for one rank before randomization. Entries are
    sorted by query, document, rank before randomization and rank shown.

    Parameters
    ----------
    query, document : ndarray of int64, shape (n_entries,)
        Query and document of each entry, as codes of the log.
    rank : ndarray of int64, shape (n_entries,)
        Rank at which the document was shown, from 0.
    base_rank : ndarray of int64, shape (n_entries,)
        Rank before randomization, from 0; 0 if it is not known.
    shown, clicks : ndarray of float64, shape (n_entries,)
        Numbers of impressions and clicks.
    n_ranks : int
        Number of ranks.
    n_impressions : int
        Number of impressions of the log.
    rankers : frozenset
        Names of the rankers that showed something.
    has_base_rank : bool
        Whether the ranks before randomization are known.
    """

    query: np.ndarray
    document: np.ndarray
    rank: np.ndarray
    base_rank: np.ndarray
    shown: np.ndarray
    clicks: np.ndarray
    n_ranks: int
    n_impressions: int
    rankers: frozenset[Any]
    has_base_rank: bool

    @classmethod
    def of(cls, log: "Log", n_ranks: int | None = None) -> "ClickCounts":
        """Count a log, in memory or in a file.

        Parameters
        ----------
        log : ClickLog or ClickLogFile
            The log.
        n_ranks : int, optional
            Number of ranks to count, from the top; None: all.

        Returns
        -------
        ClickCounts
            The counts.
        """
        parts = [cls._of_block(block if n_ranks is None else block.top(n_ranks)) for block in log.blocks()]
        return parts[0] if len(parts) == 1 else cls._sum(parts)

    @classmethod
    def _of_block(cls, log: "ClickLog") -> "ClickCounts":
        base = np.zeros(log.n_rows, dtype=np.int64) if log.base_rank is None else log.base_rank.astype(np.int64) - 1
        names = [] if log.ranker is None else [log.ranker_names[code] for code in np.unique(log.ranker)]
        return cls(
            log.query.astype(np.int64),
            log.document.astype(np.int64),
            log.rank.astype(np.int64) - 1,
            base,
            np.ones(log.n_rows),
            log.clicked.astype(np.float64),
            n_ranks=int(log.rank.max()),
            n_impressions=log.n_impressions,
            rankers=frozenset(names),
            has_base_rank=log.base_rank is not None,
        )._aggregated()

    @classmethod
    def _sum(cls, parts: list["ClickCounts"]) -> "ClickCounts":
        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            joined("query"),
            joined("document"),
            joined("rank"),
            joined("base_rank"),
            joined("shown"),
            joined("clicks"),
            n_ranks=max(part.n_ranks for part in parts),
            n_impressions=sum(part.n_impressions for part in parts),
            rankers=frozenset().union(*(part.rankers for part in parts)),
            has_base_rank=all(part.has_base_rank for part in parts),
        )._aggregated()

    def by_document(self) -> "ClickCounts":
        """The counts added up over the ranks before randomization."""
        return replace(self, base_rank=np.zeros_like(self.rank), has_base_rank=False)._aggregated()

    def _aggregated(self) -> "ClickCounts":
        """Sort entries, and add up those with the same query, document and ranks."""
        columns = self.query, self.document, self.base_rank, self.rank
        sizes = [int(values.max()) + 1 for values in columns]
        if np.prod(np.array(sizes, dtype=np.float64)) >= 2.0**63:
            raise DataError("the log has too many queries and documents to count in 64 bits: split it by query.")
        key = columns[0].copy()
        for values, size in zip(columns[1:], sizes[1:], strict=True):
            key *= size
            key += values
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.concatenate(([0], np.flatnonzero(key[1:] != key[:-1]) + 1))
        first = order[starts]
        return replace(
            self,
            query=self.query[first],
            document=self.document[first],
            rank=self.rank[first],
            base_rank=self.base_rank[first],
            shown=np.add.reduceat(self.shown[order], starts),
            clicks=np.add.reduceat(self.clicks[order], starts),
        )

    @property
    def item(self) -> np.ndarray:
        """Number, from 0, of each entry's pair (query, document); entries with the same pair are adjacent."""
        new = (self.query[1:] != self.query[:-1]) | (self.document[1:] != self.document[:-1])
        return np.concatenate(([0], np.cumsum(new)))


def groups_of(query: np.ndarray, max_groups: int) -> tuple[np.ndarray, int]:
    """Group of each entry's query, and the number of groups; more than ``max_groups`` queries form random groups.

    A bootstrap over random groups of queries has the same mean square error as one over queries, and needs less memory.
    """
    different, number = np.unique(query, return_inverse=True)
    if len(different) <= max_groups:
        return number.reshape(-1), len(different)
    group = np.random.default_rng(0).permutation(len(different)) % max_groups
    return group[number.reshape(-1)], max_groups


def harvest(counts: ClickCounts) -> np.ndarray:
    """For each pair of ranks, comparable clicks by group of queries, shape (n_groups, n_ranks, n_ranks).

    A document that was shown n_k and n_l times at the ranks k and l, and clicked on c_k and c_l times, adds
    ``c_k n_l / (n_k + n_l)`` to [k, l] and ``c_l n_k / (n_k + n_l)`` to [l, k]. Given the numbers of impressions, the
    expectations of these two terms are p_k and p_l times the same number.
    """
    n_ranks = counts.n_ranks
    group, n_groups = groups_of(counts.query, min(_MAX_GROUPS, max(20, MAX_NUMBERS // n_ranks**2)))
    item, size = counts.item, n_ranks * n_ranks
    found = np.zeros(n_groups * size)
    for offset in range(1, n_ranks):
        one = np.flatnonzero(item[offset:] == item[:-offset])
        if len(one) == 0:
            break
        other = one + offset
        shown_one, shown_other = counts.shown[one], counts.shown[other]
        total = shown_one + shown_other
        start, k, l = group[one] * size, counts.rank[one], counts.rank[other]
        found += np.bincount(start + k * n_ranks + l, counts.clicks[one] * shown_other / total, len(found))
        found += np.bincount(start + l * n_ranks + k, counts.clicks[other] * shown_one / total, len(found))
    return found.reshape(n_groups, n_ranks, n_ranks)


def swap_counts(counts: ClickCounts) -> tuple[np.ndarray, np.ndarray]:
    """Impressions and clicks by group of queries, rank before randomization and rank shown."""
    n_base = int(counts.base_rank.max()) + 1
    size = n_base * counts.n_ranks
    group, n_groups = groups_of(counts.query, min(_MAX_GROUPS, max(20, MAX_NUMBERS // size)))
    place = group * size + counts.base_rank * counts.n_ranks + counts.rank
    shape = n_groups, n_base, counts.n_ranks
    shown, clicks = (np.bincount(place, values, n_groups * size) for values in (counts.shown, counts.clicks))
    return shown.reshape(shape), clicks.reshape(shape)


def harvest_by_stratum(shown: np.ndarray, clicks: np.ndarray) -> np.ndarray:
    """As `harvest`, from tables of impressions and clicks; the last axis is the rank, the one before it a stratum.

    Clicks are compared only within a stratum, such as documents with the same rank before randomization.
    """
    n_ranks = shown.shape[-1]
    found = np.zeros((*shown.shape[:-2], n_ranks, n_ranks))
    for stratum in range(shown.shape[-2]):
        n, c = shown[..., stratum, :], clicks[..., stratum, :]
        total = n[..., :, None] + n[..., None, :]
        found += c[..., :, None] * n[..., None, :] / np.where(total > 0, total, 1.0)
    found[..., np.arange(n_ranks), np.arange(n_ranks)] = 0.0
    return found


def comparable_clicks(wins: np.ndarray) -> np.ndarray:
    """Clicks at each rank that can be compared with clicks at other ranks, and so determine its propensity."""
    return wins.sum(axis=1)


def connected_ranks(wins: np.ndarray) -> np.ndarray:
    """Whether each rank can be compared with rank 1: edges (k, l) with ``wins[k, l] > 0`` form paths there and back."""
    from scipy.sparse.csgraph import connected_components

    component = connected_components(wins > 0, directed=True, connection="strong")[1]
    return component == component[0]


def fit_propensities(wins: np.ndarray) -> np.ndarray:
    """Maximum-likelihood propensities relative to rank 1, from tables of `harvest`; shape (..., n_ranks).

    ``sum over k, l of wins[k, l] log(p_k / (p_k + p_l))`` is concave in log p. Newton's method maximizes it, for
    all tables at once.
    """
    n_ranks = wins.shape[-1]
    log_p = np.zeros(wins.shape[:-1])
    both = wins + np.swapaxes(wins, -1, -2)
    for _ in range(_STEPS):
        share = 1.0 / (1.0 + np.exp(log_p[..., None, :] - log_p[..., :, None]))
        gradient = (wins - both * share).sum(axis=-1)[..., 1:]
        weight = both * share * (1.0 - share)
        hessian = -weight
        hessian[..., np.arange(n_ranks), np.arange(n_ranks)] += weight.sum(axis=-1)
        # the tiny addition makes the matrix regular even if some rank has no clicks
        reduced = hessian[..., 1:, 1:] + 1e-10 * np.eye(n_ranks - 1)
        step = np.linalg.solve(reduced, gradient[..., None])[..., 0]
        log_p[..., 1:] += np.clip(step, -1.0, 1.0)
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return np.exp(log_p)


def fit_power(wins: np.ndarray) -> np.ndarray:
    """Maximum-likelihood exponents eta of ``p_k = k ** -eta``, from tables of `harvest`; shape (...).

    The likelihood of `fit_propensities` as a function of eta is concave. Newton's method maximizes it, for all tables
    at once.
    """
    log_rank = np.log(np.arange(1.0, wins.shape[-1] + 1.0))
    distance = log_rank[None, :] - log_rank[:, None]  # log p_k - log p_l = eta * distance[k, l]
    both = wins + np.swapaxes(wins, -1, -2)
    eta = np.ones(wins.shape[:-2])
    for _ in range(_STEPS):
        share = 1.0 / (1.0 + np.exp(-eta[..., None, None] * distance))
        gradient = ((wins - both * share) * distance).sum(axis=(-1, -2))
        curvature = (both * share * (1.0 - share) * distance**2).sum(axis=(-1, -2))
        step = np.clip(gradient / np.maximum(curvature, 1e-300), -1.0, 1.0)
        eta = eta + step
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    return eta


@dataclass(frozen=True)
class EMResult:
    """Result of `expectation_maximization`.

    Parameters
    ----------
    propensity : ndarray of float64, shape (n_ranks,)
        Relative to rank 1.
    relevance : ndarray of float64, shape (n_items,)
        Probability of a click on each examined document, if rank 1 is always examined.
    start : ndarray
        Final state, from which other iterations may start.
    converged : bool
        Whether the propensities stopped changing.
    """

    propensity: np.ndarray
    relevance: np.ndarray
    start: np.ndarray
    converged: bool


class _EMModel:
    """Clicks, and the steps of EM. A state is a vector: log p of ranks, then log r, or the regression weights."""

    def __init__(self, item: np.ndarray, rank: np.ndarray, shown: np.ndarray, clicks: np.ndarray, n_ranks: int):
        self.item, self.rank, self.clicks, self.missed = item, rank, clicks, shown - clicks
        self.n_ranks, self.n_items = n_ranks, int(item[-1]) + 1
        self.per_item = np.bincount(item, shown, self.n_items)
        self.per_rank = np.maximum(np.bincount(rank, shown, n_ranks), 1e-300)
        self.features: np.ndarray | None = None

    def start(self) -> np.ndarray:
        """Initial state: examination from the square roots of the click rates, relevance from the clicks."""
        rates = np.bincount(self.rank, self.clicks, self.n_ranks) / self.per_rank
        log_p = 0.5 * np.log(np.clip(rates / max(float(rates.max()), 1e-12), 1e-4, 1.0))
        if self.features is not None:
            return np.concatenate((log_p, np.zeros(self.features.shape[1])))
        clicks = np.bincount(self.item, self.clicks, self.n_items)
        return np.concatenate((log_p, np.log((clicks + 0.5) / (self.per_item + 1.0))))

    def read(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The propensities and relevances of a state."""
        p = np.exp(np.clip(state[: self.n_ranks], -30.0, 0.0))
        rest = state[self.n_ranks :]
        return p, np.exp(np.clip(rest, -30.0, 0.0)) if self.features is None else _sigmoid(self.features @ rest)

    def likelihood(self, state: np.ndarray) -> float:
        """Log-likelihood of the clicks."""
        p, r = self.read(state)
        rate = np.clip(p[self.rank] * r[self.item], 1e-300, 1.0 - 1e-12)
        return float(self.clicks @ np.log(rate) + self.missed @ np.log1p(-rate))

    def step(self, state: np.ndarray) -> np.ndarray:
        """One E-step and one M-step."""
        p, r = self.read(state)
        p_row, r_row = p[self.rank], r[self.item]
        none = self.missed / np.maximum(1.0 - p_row * r_row, 1e-12)
        examined = np.bincount(self.rank, self.clicks + none * p_row * (1.0 - r_row), self.n_ranks) / self.per_rank
        hidden = np.bincount(self.item, self.clicks + none * r_row * (1.0 - p_row), self.n_items)
        relevant = hidden / np.maximum(self.per_item, 1e-300)
        log_p = np.log(np.clip(examined, 1e-12, 1.0))
        if self.features is None:
            return np.concatenate((log_p, np.log(np.clip(relevant, 1e-12, 1.0))))
        weights = _logistic_step(self.features, relevant, self.per_item, state[self.n_ranks :])
        return np.concatenate((log_p, weights))


def expectation_maximization(
    item: np.ndarray,
    rank: np.ndarray,
    shown: np.ndarray,
    clicks: np.ndarray,
    n_ranks: int,
    X: np.ndarray | None = None,
    start: np.ndarray | None = None,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> EMResult:
    """Expectation maximization (Wang et al., WSDM 2018).

    E-step: a document without a click was examined with probability ``p (1 - r) / (1 - p r)``, and is relevant with
    probability ``r (1 - p) / (1 - p r)``; both probabilities are 1 for a document with a click. M-step: p is the mean
    probability of examination over the impressions of a rank, and r is the mean probability of relevance over the
    impressions of a document. With features X of the documents, r is instead a logistic regression of that probability
    on the features (regression EM), which takes one Newton step per iteration. On simulated logs, plain iterations took
    more than 500 steps and stopped with an error of 10 %. Therefore they are extrapolated by SQUAREM (Varadhan &
    Roland, Scandinavian Journal of Statistics 2008, scheme S3), unless this lowers the likelihood.
    """
    model = _EMModel(item, rank, shown, clicks, n_ranks)
    if X is not None:
        model.features = np.column_stack((np.ones(len(X)), X))
    state = model.start() if start is None else start
    converged = False
    for _ in range(max_iter):
        one = model.step(state)
        two = model.step(one)
        first, second = one - state, two - 2.0 * one + state
        length = -np.sqrt((first @ first) / max(float(second @ second), 1e-300))
        length = min(-1.0, max(length, -256.0))
        far = model.step(state - 2.0 * length * first + length * length * second)
        new = far if np.isfinite(far).all() and model.likelihood(far) >= model.likelihood(two) else two
        before, after = (values[:n_ranks] - values[0] for values in (state, new))
        state = new
        if np.abs(after - before).max() < tol:
            converged = True
            break
    p, r = model.read(state)
    return EMResult(p / p[0], np.minimum(r * p[0], 1.0), state, converged)


def _logistic_step(X: np.ndarray, target: np.ndarray, weight: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A Newton step of a ridge logistic regression on targets between 0 and 1."""
    scale = weight.sum()
    r = _sigmoid(X @ w)
    gradient = X.T @ (weight * (r - target)) / scale + _RIDGE * w
    hessian = (X.T * (weight * r * (1.0 - r) / scale)) @ X
    hessian[np.diag_indices_from(hessian)] += _RIDGE
    return w - np.linalg.solve(hessian, gradient)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * z))
