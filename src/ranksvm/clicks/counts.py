"""Counts of impressions and clicks, added up block by block: the input of the estimators of position bias."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from ranksvm.clicks.log import ClickLog
    from ranksvm.clicks.log_file import Log

__all__ = ["ClickCounts", "groups_of"]


@dataclass(frozen=True)
class ClickCounts:
    """Number of impressions and of clicks of each document of each query at each rank.

    Entries are sorted by query, document, original rank and rank shown.

    Parameters
    ----------
    query, document : ndarray of int64, shape (n_entries,)
        Codes of the log.
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
        """Distinct entries, sorted, and their sums."""
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
