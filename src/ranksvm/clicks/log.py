"""ClickLog: the documents that users were shown, their ranks, and the clicks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check, check_one_per_row, count
from ranksvm._util.tables import Table, Tabular
from ranksvm._util.types import DataFrame, PathLike
from ranksvm.clicks._ids import Coded, Ids, coded, rows_of
from ranksvm.data import Queries
from ranksvm.data.clicks import clicked_flags
from ranksvm.data.numeric_column import numeric_column
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksvm.clicks.log_file import ClickLogFile
    from ranksvm.plotting import ClickRateDisplay

__all__ = ["ClickLog"]


class ClickLog(Tabular):
    """Impressions of ranked documents, with clicks.

    An *impression* is one list that one user was shown; a row is one document in it. Rows are stored impression by
    impression, each from the top: `order` maps them to rows of the original arrays.

    Parameters
    ----------
    query : array-like of shape (n_rows,)
        Query of each row, the same throughout an impression. A document must have the same relevance in all impressions
        of a query, so personalized lists need different queries.
    document : array-like of shape (n_rows,)
        Document of each row: an id of any type, or its row number in the data (`rows`).
    rank : array-like of int, shape (n_rows,)
        Rank at which the document was shown: 1, 2, 3, ... in each impression, without gaps and ties.
    clicked : array-like of bool, shape (n_rows,)
        Whether it was clicked on.
    impression : array-like of shape (n_rows,), optional
        Id of the impression of each row, in any order. None: a row of rank 1 begins an impression.
    ranker : array-like of shape (n_rows,), optional
        Name of the ranker that produced the list, or, in an interleaved list, that contributed the document.
    base_rank : array-like of int, shape (n_rows,), optional
        Rank that the document would have had if ranks had not been exchanged at random, for ``position_bias(log,
        "swap")``.
    propensity : array-like of shape (n_rows,), optional
        Probability, in [0, 1], that the row was examined, if it is known. No click is possible if it is 0.
    time : array-like of shape (n_rows,), optional
        Time at which the row was shown: numbers or ``datetime64``.

    Attributes
    ----------
    pointers : ndarray of int64, shape (n_impressions + 1,)
        First row of each impression, then the number of rows.
    query, document : ndarray of int32, shape (n_rows,)
        Positions in ``query_ids`` and ``document_ids``.
    query_ids, document_ids : ndarray
        The different ids.
    rank : ndarray of int32, shape (n_rows,)
        Ranks, from 1.
    clicked : ndarray of bool, shape (n_rows,)
        The clicks.
    ranker : ndarray of int32, shape (n_rows,), or None
        Positions in ``ranker_names``.
    ranker_names : list
        Names of the rankers; empty if they are not known.
    base_rank, propensity, time : ndarray of shape (n_rows,), or None
        As given.
    order : ndarray of int64, shape (n_rows,), or None
        Row of the original arrays for each row of the log; None if they were in this order.

    Raises
    ------
    DataError
        When lengths differ, an id is missing, ranks have gaps or ties, an impression has two queries or shows a
        document twice, or a propensity is not in [0, 1], or is 0 for a clicked row.

    Examples
    --------
    >>> log = ClickLog(["a", "a", "a", "b", "b"], [4, 7, 1, 7, 8], [1, 2, 3, 1, 2], [0, 1, 0, 1, 0])
    >>> log
    ClickLog(2 impressions, 5 rows, 2 clicks, 2 queries)
    >>> log.by_rank()["click_rate"].tolist()
    [0.5, 0.5, 0.0]
    """

    def __init__(
        self,
        query: Ids,
        document: Ids,
        rank: ArrayLike,
        clicked: ArrayLike,
        *,
        impression: Ids | None = None,
        ranker: Ids | None = None,
        base_rank: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ):
        self.clicked = clicked_flags(clicked)
        n_rows = len(self.clicked)
        if n_rows == 0:
            raise DataError("the log has no rows: there is nothing to learn from.")
        self.rank = _ranks("rank", rank, n_rows)
        ids = {"query": coded("query", query), "document": coded("document", document)}
        if ranker is not None:
            ids["ranker"] = coded("ranker", ranker)
        for name, values in ids.items():
            check_one_per_row(name, values.codes, n_rows, "clicked")
        self.base_rank = None if base_rank is None else _ranks("base_rank", base_rank, n_rows)
        self.propensity = None if propensity is None else _propensities(propensity, self.clicked)
        self.time = None if time is None else _times(time, n_rows)
        self.pointers, self.order, names = _impressions(impression, self.rank, n_rows)
        if self.order is not None:
            ids = {name: values.take(self.order) for name, values in ids.items()}
            for name in ("clicked", "rank", "base_rank", "propensity", "time"):
                if (values := getattr(self, name)) is not None:
                    setattr(self, name, values[self.order])
        self.query, self.query_ids = ids["query"].codes, ids["query"].ids
        self.document, self.document_ids = ids["document"].codes, ids["document"].ids
        known = ids.get("ranker")
        self.ranker = None if known is None else known.codes
        self.ranker_names: list[Any] = [] if known is None else known.ids.tolist()
        self._check(names)

    @classmethod
    def from_frame(cls, frame: DataFrame, **columns: str) -> "ClickLog":
        """A log from a DataFrame.

        Parameters
        ----------
        frame : DataFrame
            A DataFrame of pandas, polars, pyarrow or another library supported by narwhals.
        **columns : str
            Names of columns that differ from the parameters of `ClickLog`, such as ``clicked="click"``.

        Returns
        -------
        ClickLog
            The log.

        Raises
        ------
        DataError
            When a required column is missing, or when `ClickLog` raises it.
        """
        from ranksvm.clicks.log_file import known_columns
        from ranksvm.data import frames

        if not frames.is_frame(frame):
            raise DataError(f"a DataFrame is expected, got {type(frame).__name__}: ClickLog(...) takes arrays.")
        names = [str(name) for name in frames.column_names(frame)]
        found = known_columns("the DataFrame", names, columns)
        return cls(**{field: frames.column(frame, name) for field, name in found.items()})

    @classmethod
    def from_events(cls, impressions: Iterable[tuple[Any, ...]], clicks: Iterable[tuple[Any, Any]] = ()) -> "ClickLog":
        """A log from events as services record them: lists that were shown, and later clicks.

        Parameters
        ----------
        impressions : iterable of tuple (impression, query, documents) or (impression, query, documents, ranker)
            Each list that was shown: an id, the query, its documents from the top, and the name of the ranker.
        clicks : iterable of tuple (impression, document), default ()
            The clicks, in any order. Two clicks on a document count as one.

        Returns
        -------
        ClickLog
            The log.

        Raises
        ------
        DataError
            When a click belongs to no impression, or to a document that its impression did not show, or when `ClickLog`
            raises it.

        Examples
        --------
        >>> ClickLog.from_events([(17, "svm", ["d1", "d2"])], [(17, "d2")]).clicked.tolist()
        [False, True]
        """
        lists = [tuple(shown) for shown in impressions]
        if any(len(shown) not in (3, 4) for shown in lists) or len({len(shown) for shown in lists}) > 1:
            raise DataError("every impression must be (impression, query, documents), all or none with a ranker.")
        place = {(shown[0], document): None for shown in lists for document in shown[2]}
        known = {shown[0] for shown in lists}
        clicked = set()
        for impression, document in clicks:
            if impression not in known:
                raise DataError(f"a click belongs to impression {impression!r}, which is not in the log.")
            if (impression, document) not in place:
                raise DataError(f"a click is on document {document!r}, which impression {impression!r} did not show.")
            clicked.add((impression, document))
        sizes = [len(shown[2]) for shown in lists]

        def per_row(field: int) -> list[Any]:
            return [shown[field] for shown, size in zip(lists, sizes, strict=True) for _ in range(size)]

        documents = [document for shown in lists for document in shown[2]]
        names = per_row(0)
        return cls(
            per_row(1),
            documents,
            [rank for size in sizes for rank in range(1, size + 1)],
            [key in clicked for key in zip(names, documents, strict=True)],
            impression=names,
            ranker=per_row(3) if lists and len(lists[0]) == 4 else None,
        )

    @classmethod
    def read(cls, path: PathLike, **columns: str) -> "ClickLog":
        """Read a log from Parquet or CSV.

        Parameters
        ----------
        path : path-like
            The file: CSV or TSV if its name ends in .csv or .tsv, otherwise Parquet. Columns are named like the
            parameters of `ClickLog`; others are not read. In CSV and TSV the first 16 MB decide whether the ids of a
            column are numbers (007 is 7) or text; names of rankers are text.
        **columns : str
            Names of columns that differ, such as ``clicked="click"``.

        Returns
        -------
        ClickLog
            The log.

        Raises
        ------
        MissingDependencyError
            When pyarrow is not installed.
        DataError
            When the file cannot be read or lacks a column, when ids of CSV are numbers at first and text later, or when
            `ClickLog` raises it.
        """
        from ranksvm.clicks.log_file import ClickLogFile

        return ClickLogFile(path, columns).read()

    @classmethod
    def scan(cls, path: PathLike, *, block_rows: int = 1 << 20, **columns: str) -> "ClickLogFile":
        """A log that stays in its file and is read in blocks of whole impressions.

        `position_bias`, `click_pairs`, `relevance` and `metrics.estimate` accept it instead of a `ClickLog`.

        Parameters
        ----------
        path : path-like
            The file, as for `read`; the rows of an impression must be next to each other, from the top.
        block_rows : int, default 1048576
            Number of rows in memory at a time.
        **columns : str
            Names of columns that differ.

        Returns
        -------
        ClickLogFile
            Iterating over it yields a `ClickLog` for each block; an id has the same code in all blocks.
        """
        from ranksvm.clicks.log_file import ClickLogFile

        return ClickLogFile(path, columns, block_rows)

    def save(self, path: PathLike) -> None:
        """Write the log to a file: CSV or TSV if its name ends in .csv or .tsv, otherwise Parquet.

        Parameters
        ----------
        path : path-like
            The file; written atomically.

        Raises
        ------
        DataError
            When two ids are the same text, such as 1 and "1".
        MissingDependencyError
            When pyarrow is not installed.
        """
        from ranksvm.clicks.log_file import write_log

        write_log(path, self)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.clicked)

    @property
    def n_impressions(self) -> int:
        """Number of impressions."""
        return len(self.pointers) - 1

    @property
    def impression(self) -> np.ndarray:
        """Number of the impression of each row, from 0."""
        return np.repeat(np.arange(self.n_impressions, dtype=np.int32), np.diff(self.pointers))

    def blocks(self) -> Iterator["ClickLog"]:
        """Yield the log itself as the only block; a log in a file yields several blocks."""
        yield self

    def top(self, n_ranks: int) -> "ClickLog":
        """The first ranks of every impression.

        Parameters
        ----------
        n_ranks : int
            Number of ranks to keep.

        Returns
        -------
        ClickLog
            A log without the rows at lower ranks.

        Raises
        ------
        OptionError
            When ``n_ranks`` is not a whole number from 1.
        """
        check(n_ranks=count(n_ranks))
        return self._select(self.rank <= n_ranks, np.minimum(np.diff(self.pointers), n_ranks))

    def impressions(self, which: np.ndarray) -> "ClickLog":
        """Some of the impressions.

        Parameters
        ----------
        which : ndarray of bool, shape (n_impressions,)
            Which impressions to keep.

        Returns
        -------
        ClickLog
            A log with only these impressions.

        Raises
        ------
        DataError
            When ``which`` is not one boolean for each impression, or all are False.
        """
        sizes, which = np.diff(self.pointers), np.asarray(which)
        if which.dtype != bool or which.shape != sizes.shape:
            raise DataError(
                f"which must be an array of {len(sizes)} booleans, one for each impression, got shape {which.shape} of "
                f"type {which.dtype}."
            )
        return self._select(np.repeat(which, sizes), sizes[which])

    def _select(self, rows: np.ndarray, sizes: np.ndarray) -> "ClickLog":
        """A log of some rows, whose impressions have these sizes; the rows are not checked again."""
        log = object.__new__(ClickLog)
        log.__dict__.update(self.__dict__)
        for name in ("clicked", "rank", "query", "document", "ranker", "base_rank", "propensity", "time"):
            if (values := getattr(self, name)) is not None:
                setattr(log, name, values[rows])
        if log.ranker is not None:
            used = np.bincount(log.ranker) > 0
            log.ranker = (np.cumsum(used, dtype=np.int32) - 1)[log.ranker]
            log.ranker_names = list(compress(self.ranker_names, used))
        log.order = np.flatnonzero(rows) if self.order is None else self.order[rows]
        log.pointers = np.concatenate(([0], np.cumsum(sizes)))
        if log.n_rows == 0:
            raise DataError("no row of the log is left: there is nothing to learn from.")
        return log

    def rows(self, data: RankingData) -> np.ndarray:
        """For each row of the log, its row in the data.

        Parameters
        ----------
        data : RankingData
            The documents. If they have ids, a document of the log is found by its query and its id. If not, integers in
            the log are row numbers of the data, and text is the position of the document in its query, from 0: a
            service that ranks documents without ids calls them "0", "1", ... If the ids of the log or of the data are
            text, both are compared as text: "1" is 1.

        Returns
        -------
        ndarray of int64, shape (n_rows,)
            The rows.

        Raises
        ------
        DataError
            When a document of the log is not in the data, the data have two documents with the same id in a query, or
            a text agrees with two ids, such as 1 and "1".
        """
        return rows_of(self, data)

    def by_rank(self) -> dict[str, np.ndarray]:
        """Impressions and clicks by rank.

        Returns
        -------
        dict of str to ndarray
            ``rank``, ``shown``, ``clicks``, and ``click_rate``, one value for each rank from 1.
        """
        shown, clicks = self._counts(slice(None))
        return {"rank": np.arange(1, len(shown) + 1), "shown": shown, "clicks": clicks, "click_rate": clicks / shown}

    def plot(self, ax: "Axes | None" = None) -> "ClickRateDisplay":
        """Draw the click rate of each rank, for each ranker if there are several.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: the axes of a new figure.

        Returns
        -------
        ClickRateDisplay
            The display, drawn.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        from ranksvm.plotting.rank_curves import ClickRateDisplay

        parts = {"all": slice(None)}
        if self.ranker is not None and len(self.ranker_names) > 1:
            parts = {str(name): self.ranker == number for number, name in enumerate(self.ranker_names)}
        counts = {name: self._counts(rows) for name, rows in parts.items()}
        shown, clicks = ({name: both[column] for name, both in counts.items()} for column in (0, 1))
        return ClickRateDisplay(shown, clicks).plot(ax)

    def _counts(self, rows: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        """Impressions and clicks of some rows by rank, from 1."""
        rank = self.rank[rows]
        shown = np.bincount(rank)[1:]
        return shown, np.bincount(rank[self.clicked[rows]], minlength=len(shown) + 1)[1:]

    def _check(self, names: Sequence[object] | None) -> None:
        """Refuse an impression whose ranks have gaps, which has two queries, or which shows a document twice."""

        def name(impression: int) -> str:
            return f"impression {names[impression] if names is not None else impression + 1!r}"

        starts = self.pointers[:-1]
        expected = np.arange(self.n_rows) - np.repeat(starts, np.diff(self.pointers)) + 1
        wrong = np.flatnonzero(self.rank != expected)
        if len(wrong):
            row = int(wrong[0])
            found = int(np.searchsorted(self.pointers, row, side="right")) - 1
            tied = row > starts[found] and self.rank[row] == self.rank[row - 1]
            what = f"two documents at rank {self.rank[row]}" if tied else f"no document at rank {expected[row]}"
            raise DataError(f"{name(found)} shows {what}: ranks must be 1, 2, 3, ... without gaps or ties.")
        mixed = np.flatnonzero((self.query[1:] != self.query[:-1]) & (self.rank[1:] != 1))
        if len(mixed):
            found = int(np.searchsorted(self.pointers, mixed[0] + 1, side="right")) - 1
            one, other = self.query_ids[self.query[mixed[0] : mixed[0] + 2]].tolist()
            raise DataError(f"{name(found)} has rows of two queries, {one!r} and {other!r}: it must have one query.")
        key = self.impression.astype(np.int64) * len(self.document_ids) + self.document
        key.sort()
        twice = np.flatnonzero(key[1:] == key[:-1])
        if len(twice):
            found, document = divmod(int(key[twice[0]]), len(self.document_ids))
            shown = self.document_ids[[document]].tolist()[0]
            raise DataError(f"{name(found)} shows document {shown!r} twice: every document has one rank.")

    def _table(self) -> Table:
        caption = f"{self.n_impressions:,} impressions, {int(self.clicked.sum()):,} clicks"
        return Table(self.by_rank(), caption, headings={"click_rate": "click rate"})

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        n_queries = len(np.unique(self.query))
        rankers = f", {len(self.ranker_names)} rankers" if self.ranker_names else ""
        return (
            f"ClickLog({self.n_impressions} impressions, {self.n_rows} rows, {int(self.clicked.sum())} clicks, "
            f"{n_queries} queries{rankers})"
        )


def _ranks(name: str, values: ArrayLike, n_rows: int) -> np.ndarray:
    """Ranks as int32; DataError if they are not whole numbers from 1."""
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iu":
        numbers = numeric_column(name, values)
    check_one_per_row(name, numbers, n_rows, "clicked")
    wrong = (numbers < 1) | (numbers > np.iinfo(np.int32).max) | (numbers != np.floor(numbers))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"{name} is {numbers[row]} in row {row} (from 0): ranks are the whole numbers 1, 2, 3, ...")
    return numbers.astype(np.int32)


def _propensities(values: ArrayLike, clicked: np.ndarray) -> np.ndarray:
    """Probabilities in [0, 1], above 0 for clicked rows."""
    numbers = numeric_column("propensity", values)
    check_one_per_row("propensity", numbers, len(clicked), "clicked")
    wrong = (numbers < 0.0) | (numbers > 1.0) | (clicked & (numbers == 0.0))
    if wrong.any():
        row = int(wrong.argmax())
        range_ = "in (0, 1], since it was clicked on" if clicked[row] else "in [0, 1]"
        raise DataError(
            f"propensity is {numbers[row]} in row {row} (from 0): the probability of being examined must be {range_}."
        )
    return numbers


def _times(values: ArrayLike, n_rows: int) -> np.ndarray:
    """Times as float64, or unchanged if they are dates, times or durations of NumPy."""
    times = np.asarray(values)
    check_one_per_row("time", times, n_rows, "clicked")
    if times.dtype.kind in "mM":
        return times
    try:
        return numeric_column("time", times)
    except DataError as error:
        raise DataError(f"{error} Times are numbers or datetime64, and may be left out.") from None


def _impressions(
    impression: Ids | None, rank: np.ndarray, n_rows: int
) -> tuple[np.ndarray, np.ndarray | None, list[Any] | None]:
    """First row of each impression after sorting by impression and rank; the sorting order; the ids of impressions."""
    if impression is None:
        starts = np.flatnonzero(rank == 1)
        if len(starts) == 0 or starts[0] != 0:
            raise DataError(f"the log begins at rank {rank[0]}: without impression= every list begins at rank 1.")
        return np.append(starts, n_rows), None, None
    ids = impression.codes if isinstance(impression, Coded) else impression
    queries = Queries.from_qid(ids, n_rows, name="impression")
    names = impression.ids[queries.ids].tolist() if isinstance(impression, Coded) else queries.keys
    order, pointers = queries.order, queries.pointers
    ranks = queries.to_sorted(rank)
    within = np.ones(n_rows, dtype=bool)
    within[pointers[:-1]] = False
    if np.any(within[1:] & (ranks[1:] < ranks[:-1])):
        again = np.lexsort((ranks, np.repeat(np.arange(queries.n_queries), queries.sizes)))
        order = again if order is None else order[again]
    return pointers, order, names
