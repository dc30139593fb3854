"""Relevance judgments (qrels) and rankings by a system (runs), with ids of queries and documents."""

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm._util.lazy import cached_property
from ranksvm._util.types import DataFrame
from ranksvm.data import frames
from ranksvm.data.numeric_column import label_column, numeric_column
from ranksvm.data.queries import Queries, descending_within_ties
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError

__all__ = [
    "LABEL",
    "SCORE",
    "ByQuery",
    "Qrels",
    "Rows",
    "Run",
    "columns_of_rows",
    "check_spellings",
    "document_names",
    "ids_of_rows",
    "no_row_error",
    "place_of",
    "places_by_ids",
    "places_of",
    "without_spaces",
]

# The id of a query, or the ids of a query and of a document.
Ids = tuple[str, ...]
_SPACE = re.compile(f"[{string.whitespace}]+")
# Query -> document -> label or score; ids of any type become text.
ByQuery = Mapping[Any, Mapping[Any, float]]
# Names that a column or field may have in ir_datasets, ir_measures, PyTerrier, ranx or this package.
_QUERY = ("query_id", "qid", "q_id")
_DOCUMENT = ("doc_id", "docid", "docno")
LABEL = ("relevance", "label", "rel")
SCORE = ("score",)
# Rows with named columns or fields: a DataFrame, or named tuples.
Rows = DataFrame | Iterable[NamedTuple]


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    """Relevance judgments: a label for some documents of each query.

    Parameters
    ----------
    qid : array-like of str, shape (n_judgments,)
        Query of each judgment, in any order. Ids that are not text become text.
    docid : array-like of str, shape (n_judgments,)
        Its document; no document may occur twice in a query.
    label : array-like of float, shape (n_judgments,)
        Its label; a larger one is better. Usually integers from 0.

    Raises
    ------
    DataError
        When lengths differ, a label is not a finite number, or a document is judged twice for a query.

    Examples
    --------
    >>> qrels = Qrels.from_dict({"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}})
    >>> qrels
    Qrels(3 judgments of 2 queries)
    >>> qrels.to_dict()
    {'q1': {'d1': 2.0, 'd2': 0.0}, 'q2': {'d1': 1.0}}
    """

    qid: np.ndarray
    docid: np.ndarray
    label: np.ndarray

    def __post_init__(self) -> None:
        _normalize_columns(self, "label", label_column(self.label), "judged")

    @classmethod
    def from_dict(cls, judgments: ByQuery) -> "Qrels":
        """Judgments in the form that pytrec_eval and ranx use.

        Parameters
        ----------
        judgments : dict of dict
            Query -> document -> label.

        Returns
        -------
        Qrels
            The same judgments.
        """
        return cls(*_columns(judgments))

    @classmethod
    def from_rows(cls, rows: Rows) -> "Qrels":
        """Judgments in rows: a DataFrame, or the named tuples of ir_datasets and ir_measures.

        Parameters
        ----------
        rows : DataFrame or iterable of named tuples
            Each has the ids of a query (``query_id``, ``qid`` or ``q_id``) and a document (``doc_id``, ``docid`` or
            ``docno``), and a label (``relevance``, ``label`` or ``rel``).

        Returns
        -------
        Qrels
            The same judgments.

        Raises
        ------
        DataError
            When one of these is missing.
        """
        return cls(*columns_of_rows(rows, LABEL, "qrels"))

    @classmethod
    def from_data(cls, data: RankingData) -> "Qrels":
        """The labels of ranking data as judgments.

        Parameters
        ----------
        data : RankingData
            The data. Without query ids there is one query "0"; a document without an id is named by its row, from 0.

        Returns
        -------
        Qrels
            A judgment for every row.
        """
        return cls(*ids_of_rows(data), data.y)

    @property
    def queries(self) -> Queries:
        """The judgments grouped by query."""
        return Queries.from_qid(self.qid)

    @cached_property
    def _places(self) -> dict[Ids, int]:
        return _place_by_ids(self.qid, self.docid)

    def labels_of(self, data: RankingData, unjudged: float = 0.0) -> np.ndarray:
        """The label of each row of ranking data, by its query and document ids.

        Parameters
        ----------
        data : RankingData
            The data.
        unjudged : float, default 0.0
            Label of the rows without a judgment.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The labels.

        Raises
        ------
        DataError
            When no row has a judgment: the ids differ from the ids of the judgments.
        """
        place = place_of(self, *ids_of_rows(data))
        if not (place >= 0).any():
            raise no_row_error(data, self)
        return np.where(place >= 0, self.label[place], unjudged)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query -> document -> label, in the form for pytrec_eval, which also needs integers as labels.

        Returns
        -------
        dict of dict
            The judgments.
        """
        return _to_dict(self.qid, self.docid, self.label)

    def __len__(self) -> int:
        return len(self.qid)

    def __repr__(self) -> str:
        return f"Qrels({len(self)} judgments of {len(np.unique(self.qid))} queries)"


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
        _normalize_columns(self, "score", numeric_column("score", self.score, finite=False), "ranked")

    @classmethod
    def from_dict(cls, rankings: ByQuery, name: str = "ranksvm") -> "Run":
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
    def from_rows(cls, rows: Rows, name: str = "ranksvm") -> "Run":
        """Rankings in rows: a DataFrame, or the named tuples of ir_datasets and ir_measures.

        Parameters
        ----------
        rows : DataFrame or iterable of named tuples
            Each has the ids of a query (``query_id``, ``qid`` or ``q_id``) and a document (``doc_id``, ``docid`` or
            ``docno``), and a ``score``.
        name : str, default "ranksvm"
            Name of the system.

        Returns
        -------
        Run
            The same rankings.

        Raises
        ------
        DataError
            When one of these is missing.

        Examples
        --------
        >>> import pandas as pd
        >>> Run.from_rows(pd.DataFrame({"qid": [1, 1], "docno": ["a", "b"], "score": [2.5, 0.5]})).to_dict()
        {'1': {'a': 2.5, 'b': 0.5}}
        """
        return cls(*columns_of_rows(rows, SCORE, "run"), name=name)

    @classmethod
    def from_scores(cls, data: RankingData, scores: ArrayLike, name: str = "ranksvm", *, first_row: int = 0) -> "Run":
        """The rows of ranking data, ranked by scores.

        Parameters
        ----------
        data : RankingData
            The data. Without query ids there is one query "0"; a document without an id is named by its row, from 0.
        scores : array-like of shape (n_rows,)
            Scores, as ``predict`` returns them.
        name : str, default "ranksvm"
            Name of the system.
        first_row : int, default 0
            Number of the first row, if the data are a part of a file.

        Returns
        -------
        Run
            The run.
        """
        return cls(*ids_of_rows(data, first_row), scores, name)  # type: ignore[arg-type]  # becomes an array

    @property
    def queries(self) -> Queries:
        """The rows grouped by query."""
        return Queries.from_qid(self.qid)

    @cached_property
    def _places(self) -> dict[Ids, int]:
        return _place_by_ids(self.qid, self.docid)

    def ordered(self) -> np.ndarray:
        """Row numbers query by query, best document first.

        Documents with equal scores are in descending order of their ids (as text), as in trec_eval, which also counts
        scores as equal if they are equal in single precision.

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

    def scores_of(self, data: RankingData) -> np.ndarray:
        """Scores that rank the rows of ranking data as the run does; rows are found by query and document ids.

        Parameters
        ----------
        data : RankingData
            The data.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            In each query 1 for the last documents of the run, 2 for those with the next score, and so on; 0 for
            documents that the run lacks, so they rank below all others.

        Raises
        ------
        DataError
            When the run has no row of the data, because the ids differ.

        Examples
        --------
        >>> data = RankingData([[0.0], [1.0], [2.0]], [1, 0, 0], ["q1", "q1", "q1"], ["d1", "d2", "d3"])
        >>> Run(["q1", "q1"], ["d3", "d1"], [0.5, 12.5]).scores_of(data).tolist()
        [2.0, 0.0, 1.0]
        """
        place = place_of(self, *ids_of_rows(data))
        if not (place >= 0).any():
            raise no_row_error(data, self)
        number, score = self.queries.numbers(), self.score
        order = np.lexsort((score, number))
        new = np.ones(len(order), dtype=np.int64)
        new[1:] = (number[order][1:] != number[order][:-1]) | (score[order][1:] != score[order][:-1])
        level = np.empty(len(order), dtype=np.int64)
        level[order] = np.cumsum(new)
        lowest = np.full(number.max() + 1, len(order), dtype=np.int64)
        np.minimum.at(lowest, number, level)
        return np.where(place >= 0, (level - lowest[number] + 1.0)[place], 0.0)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query -> document -> score, in the form for pytrec_eval.

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
    """Text as one word of a TREC file: ASCII white space, which separates columns there, becomes ``_``."""
    return _SPACE.sub("_", word.strip(string.whitespace))


def check_spellings(ids: Iterable[str], what: str) -> None:
    """Raise DataError if different ids are spelled alike in a file of TREC."""
    by_word: dict[str, str] = {}
    ids = list(ids)
    for each in ids if _have_spaces(ids) else ():
        if (other := by_word.setdefault(without_spaces(each), each)) != each:
            raise DataError(
                f"the {what} ids {other!r} and {each!r} would both become {without_spaces(each)!r}, because files of "
                "TREC have no spaces in ids: rename one of them."
            )


def document_names(data: RankingData, first_row: int = 0) -> np.ndarray:
    """Document ids as text; for a row without one, the number of the row, from ``first_row``."""
    rows = np.arange(first_row, first_row + data.n_rows).astype(str)
    if data.docid is None:
        return rows
    names = data.docid.astype(str)
    return np.where(names == "", rows, names)


def ids_of_rows(data: RankingData, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The query and the document of each row as text; the first row has the number ``first_row``."""
    return data.query_ids.astype(str), document_names(data, first_row)


def place_of(record: Qrels | Run, qid: np.ndarray, docid: np.ndarray) -> np.ndarray:
    """Row number of each document in the judgments or the run; -1 if it is not in them."""
    return places_of(record._places, zip(qid.tolist(), docid.tolist(), strict=True), len(qid))


def places_by_ids(ids: Iterable[Ids]) -> dict[Ids, int]:
    """The position of each id (of a query, or of a query and a document), for `places_of`.

    An id with spaces also has the position under its spelling in files of TREC, unless that is another id.
    """
    # a dict, because sorting a million ids would take longer than everything else
    places = {each: place for place, each in enumerate(ids)}
    if _have_spaces(chain.from_iterable(places)):
        for each, place in list(places.items()):
            places.setdefault(_spelled(each), place)
    return places


def places_of(places: Mapping[Ids, int], ids: Iterable[Ids], n_ids: int) -> np.ndarray:
    """The position of each id, as it is or as it is spelled in files of TREC; -1 if it has none."""
    found = (place if (place := places.get(each, -1)) >= 0 else places.get(_spelled(each), -1) for each in ids)
    return np.fromiter(found, dtype=np.int64, count=n_ids)


def _spelled(ids: Ids) -> Ids:
    return tuple(map(without_spaces, ids))


def _have_spaces(ids: Iterable[str]) -> bool:
    # one search of all ids takes much less time than a search of each
    return _SPACE.search("".join(ids)) is not None


def _place_by_ids(qid: np.ndarray, docid: np.ndarray) -> dict[Ids, int]:
    return places_by_ids(zip(qid.tolist(), docid.tolist(), strict=True))


def no_row_error(data: RankingData, record: Qrels | Run) -> DataError:
    """The error for judgments, or a run, that contain no row of some data."""
    no_row, other = ("judgment", "judgments") if isinstance(record, Qrels) else ("place in the run", "run")
    if not data.n_rows or not len(record):
        return DataError(f"no row has a {no_row}: the data or the {other} are empty.")
    qid, docid = ids_of_rows(data)
    return DataError(
        f"no row has a {no_row}: the data have, for example, document {str(docid[0])!r} of query {str(qid[0])!r}, "
        f"the {other} document {str(record.docid[0])!r} of query {str(record.qid[0])!r}."
    )


def _normalize_columns(record: Qrels | Run, name: str, values: np.ndarray, done: str) -> None:
    """Convert the columns of a frozen record; check their lengths, and that no document occurs twice in a query."""
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


def _columns(nested: ByQuery) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = [(str(query), str(document), value) for query, found in nested.items() for document, value in found.items()]
    qid, docid, values = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(qid, dtype=str), np.array(docid, dtype=str), np.array(values)


def _to_dict(qid: np.ndarray, docid: np.ndarray, values: np.ndarray) -> dict[str, dict[str, float]]:
    nested: dict[str, dict[str, float]] = {}
    for query, document, value in zip(qid.tolist(), docid.tolist(), values.tolist(), strict=True):
        nested.setdefault(query, {})[document] = value
    return nested


def columns_of_rows(rows: Rows, values: tuple[str, ...], what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids of queries, the ids of documents, and the values of rows.

    Parameters
    ----------
    rows : DataFrame or iterable of named tuples
        The rows; other columns and fields are ignored.
    values : tuple of str
        Possible names of the values: `LABEL` or `SCORE`.
    what : str
        Name of the argument, for messages.

    Returns
    -------
    qid, docid, values : ndarray
        One item for each row.

    Raises
    ------
    DataError
        When ``rows`` is neither a DataFrame nor named tuples, or a column is missing.
    """
    if frames.is_frame(rows) and (names := frames.column_names(rows)):
        return tuple(frames.column(rows, _name(each, names, what)) for each in (_QUERY, _DOCUMENT, values))  # type: ignore[return-value]
    if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise _other(rows, values, what)
    items = list(rows)
    if not items:
        return np.array([], dtype=str), np.array([], dtype=str), np.array([])
    if not hasattr(items[0], "_fields"):
        raise _other(items[0], values, what, "rows of type ")
    fields = [_name(each, items[0]._fields, what) for each in (_QUERY, _DOCUMENT, values)]
    qid, docid, found = ([getattr(item, field) for item in items] for field in fields)
    return np.array(qid).astype(str), np.array(docid).astype(str), np.array(found)


def _name(wanted: tuple[str, ...], names: Iterable[str], what: str) -> str:
    found = [name for name in wanted if name in names]
    if not found:
        raise DataError(f"{what} has no {' or '.join(map(repr, wanted))}, only {', '.join(map(repr, names))}.")
    return found[0]


def _other(given: object, values: tuple[str, ...], what: str, rows: str = "") -> DataError:
    kind = "Run" if values == SCORE else "Qrels"
    return DataError(
        f"{what} must be a {kind}, the path of a file, a dict of dicts, or a DataFrame or named tuples with query_id, "
        f"doc_id and {values[0]}; got {rows}{type(given).__name__}."
    )
