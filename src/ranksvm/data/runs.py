"""Relevance judgements (qrels) and rankings by a system (runs), with ids of queries and documents."""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm._checks import check_one_per_row
from ranksvm.data.numeric_column import label_column, numeric_column
from ranksvm.data.queries import Queries, descending_within_ties
from ranksvm.data.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError

__all__ = ["Qrels", "Run", "document_names", "judgement_of", "without_spaces"]

_SPACE = re.compile(f"[{string.whitespace}]+")


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    """Relevance judgements: a label for some documents of each query.

    Parameters
    ----------
    qid : array-like of str, shape (n_judgements,)
        Query of each judgement, in any order. Ids that are not text become text.
    docid : array-like of str, shape (n_judgements,)
        Its document; no document may occur twice in a query.
    label : array-like of float, shape (n_judgements,)
        Its label; a larger one is better. Usually integers from 0.

    Raises
    ------
    DataError
        When lengths differ, a label is not a finite number, or a document is judged twice for a query.

    Examples
    --------
    >>> qrels = Qrels.from_dict({"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}})
    >>> qrels
    Qrels(3 judgements of 2 queries)
    >>> qrels.to_dict()
    {'q1': {'d1': 2.0, 'd2': 0.0}, 'q2': {'d1': 1.0}}
    """

    qid: np.ndarray
    docid: np.ndarray
    label: np.ndarray

    def __post_init__(self) -> None:
        _settle(self, "label", label_column(self.label), "judged")

    @classmethod
    def from_dict(cls, judgements: Mapping[Any, Mapping[Any, float]]) -> "Qrels":
        """Judgements in the form that pytrec_eval and ranx use.

        Parameters
        ----------
        judgements : dict of dict
            Query -> document -> label.

        Returns
        -------
        Qrels
            The same judgements.
        """
        return cls(*_columns(judgements))

    @classmethod
    def from_data(cls, data: RankingData) -> "Qrels":
        """The labels of ranking data as judgements.

        Parameters
        ----------
        data : RankingData
            The data. Without query ids there is one query "0"; a document without an id is named by its row, from 0.

        Returns
        -------
        Qrels
            A judgement for every row.
        """
        return cls(_query_names(data), document_names(data), data.y)

    @property
    def queries(self) -> Queries:
        """The judgements grouped by query."""
        return Queries.from_qid(self.qid)

    def labels_of(self, data: RankingData, unjudged: float = 0.0) -> np.ndarray:
        """The label of each row of ranking data, by its query and document ids.

        Parameters
        ----------
        data : RankingData
            The data.
        unjudged : float, default 0.0
            Label of the rows without a judgement.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The labels.

        Raises
        ------
        DataError
            When no row has a judgement: the ids are not those of the judgements.
        """
        qid, docid = _query_names(data), document_names(data)
        place = judgement_of(self, qid, docid)
        if not (place >= 0).any():
            raise DataError(
                f"no row has a judgement: the data have, for example, document {str(docid[0])!r} of query "
                f"{str(qid[0])!r}, the judgements document {str(self.docid[0])!r} of query {str(self.qid[0])!r}."
                if len(docid) and len(self.qid)
                else "no row has a judgement: the data or the judgements are empty."
            )
        return np.where(place >= 0, self.label[place], unjudged)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query -> document -> label, as pytrec_eval takes it (which needs integers).

        Returns
        -------
        dict of dict
            The judgements.
        """
        return _to_dict(self.qid, self.docid, self.label)

    def __len__(self) -> int:
        return len(self.qid)

    def __repr__(self) -> str:
        return f"Qrels({len(self)} judgements of {len(np.unique(self.qid))} queries)"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Rankings of documents for queries: the output of one system.

    Parameters
    ----------
    qid : array-like of str, shape (n_rows,)
        Query of each row, in any order. Ids that are not text become text.
    docid : array-like of str, shape (n_rows,)
        Its document; no document may occur twice in a query.
    score : array-like of float, shape (n_rows,)
        Its score: the documents of a query are ranked by it, the highest first.
    name : str, default "ranksvm"
        Name of the system.

    Raises
    ------
    DataError
        When lengths differ, a score is NaN, or a document occurs twice in a query.
    OptionError
        When the name is not one word.

    Examples
    --------
    >>> run = Run(["q1", "q1"], ["d1", "d2"], [0.5, 1.5], name="bm25")
    >>> run
    Run('bm25', 2 documents of 1 queries)
    """

    qid: np.ndarray
    docid: np.ndarray
    score: np.ndarray
    name: str = "ranksvm"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or without_spaces(self.name) != self.name:
            raise OptionError(f"the name of a run must be one word, got {self.name!r}.")
        _settle(self, "score", numeric_column("score", self.score, finite=False), "ranked")

    @classmethod
    def from_dict(cls, rankings: Mapping[Any, Mapping[Any, float]], name: str = "ranksvm") -> "Run":
        """Rankings in the form that pytrec_eval and ranx use.

        Parameters
        ----------
        rankings : dict of dict
            Query -> document -> score.
        name : str, default "ranksvm"
            Name of the system.

        Returns
        -------
        Run
            The same rankings.
        """
        return cls(*_columns(rankings), name=name)

    @classmethod
    def from_scores(cls, data: RankingData, scores: Any, name: str = "ranksvm") -> "Run":
        """The rows of ranking data, ranked by scores.

        Parameters
        ----------
        data : RankingData
            The data. Without query ids there is one query "0"; a document without an id is named by its row, from 0.
        scores : array-like of shape (n_rows,)
            Scores, as ``predict`` returns them.
        name : str, default "ranksvm"
            Name of the system.

        Returns
        -------
        Run
            The run.
        """
        return cls(_query_names(data), document_names(data), scores, name)

    @property
    def queries(self) -> Queries:
        """The rows grouped by query."""
        return Queries.from_qid(self.qid)

    def ordered(self) -> np.ndarray:
        """Row numbers query by query, best document first, as trec_eval ranks them.

        Documents with equal scores are in descending order of their ids (as text).

        Returns
        -------
        ndarray of int64, shape (n_rows,)
            Row numbers; queries in order of first appearance.
        """
        number = self.queries.numbers()
        order = np.lexsort((-self.score, number))
        number, score = number[order], self.score[order]
        again = np.concatenate(([False], (number[1:] == number[:-1]) & (score[1:] == score[:-1])))
        return order if not again.any() else descending_within_ties(order, again, self.docid)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query -> document -> score, as pytrec_eval takes it.

        Returns
        -------
        dict of dict
            The rankings.
        """
        return _to_dict(self.qid, self.docid, self.score)

    def __len__(self) -> int:
        return len(self.qid)

    def __repr__(self) -> str:
        return f"Run({self.name!r}, {len(self)} documents of {len(np.unique(self.qid))} queries)"


def without_spaces(word: str) -> str:
    """A word for a file of TREC, whose columns are separated by ASCII white space: ``_`` instead of it."""
    return _SPACE.sub("_", word.strip(string.whitespace))


def document_names(data: RankingData) -> np.ndarray:
    """Document ids as text; the number of the row, from 0, where the data have none."""
    rows = np.arange(data.n_rows).astype(str)
    if data.docid is None:
        return rows
    names = data.docid.astype(str)
    return np.where(names == "", rows, names)


def judgement_of(qrels: Qrels, qid: np.ndarray, docid: np.ndarray) -> np.ndarray:
    """Number of the judgement of each document, -1 where there is none."""
    # hashing: sorting a million ids takes longer than all else
    known = {pair: place for place, pair in enumerate(zip(qrels.qid.tolist(), qrels.docid.tolist(), strict=True))}
    pairs = zip(qid.tolist(), docid.tolist(), strict=True)
    return np.fromiter((known.get(pair, -1) for pair in pairs), dtype=np.int64, count=len(qid))


def _query_names(data: RankingData) -> np.ndarray:
    if data.qid is None:
        return np.zeros(data.n_rows, dtype=np.int64).astype(str)
    return data.qid.astype(str)


def _settle(record: Any, name: str, values: np.ndarray, done: str) -> None:
    """Convert the columns of a frozen record; check that they agree and that no document occurs twice in a query."""
    for column in ("qid", "docid"):
        ids = np.asarray(getattr(record, column))
        object.__setattr__(record, column, ids if ids.dtype.kind == "U" else ids.astype(str))
    object.__setattr__(record, name, values)
    for column in ("docid", name):
        check_one_per_row(column, getattr(record, column), len(record.qid), "qid")
    twice = _repeated(record.qid, record.docid)
    if twice is not None:
        raise DataError(
            f"document {str(record.docid[twice])!r} is {done} twice for query {str(record.qid[twice])!r} "
            f"(row {twice}, from 0)."
        )


def _repeated(qid: np.ndarray, docid: np.ndarray) -> int | None:
    """The first row whose query and document occurred before."""
    pairs = list(zip(qid.tolist(), docid.tolist(), strict=True))
    if len(set(pairs)) == len(pairs):
        return None
    seen: dict[tuple[str, str], int] = {}
    return next(row for row, pair in enumerate(pairs) if seen.setdefault(pair, row) != row)


def _columns(nested: Mapping[Any, Mapping[Any, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [(str(query), str(document), value) for query, found in nested.items() for document, value in found.items()]
    qid, docid, values = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(qid, dtype=str), np.array(docid, dtype=str), np.array(values)


def _to_dict(qid: np.ndarray, docid: np.ndarray, values: np.ndarray) -> dict[str, dict[str, float]]:
    nested: dict[str, dict[str, float]] = {}
    for query, document, value in zip(qid.tolist(), docid.tolist(), values.tolist(), strict=True):
        nested.setdefault(query, {})[document] = value
    return nested
