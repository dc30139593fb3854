"""RankingData: the contents of a file of ranking data."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ranksvm._util.checks import check_one_per_row, check_unmasked, is_sparse
from ranksvm._util.memory import free_memory, in_words, memory_bytes
from ranksvm._util.tables import Table, frame_of
from ranksvm._util.types import PathLike
from ranksvm.data.queries import Queries, id_array
from ranksvm.data.text_categories import texts_at
from ranksvm.datasets.cache.layout import read_cache, write_cache
from ranksvm.device.arrays import host_sparse, host_values
from ranksvm.exceptions import DataError

__all__ = ["RankingData"]

# maximum numbers of rows and features shown in a notebook, and of levels in a table for papers
_ROWS = 5
_FEATURES = 8
_LEVELS = 6


@dataclass(eq=False, repr=False)
class RankingData:
    """Documents (rows) with features, labels and queries.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), or CSR matrix of that shape
        Features.
    y : ndarray of shape (n_rows,)
        Labels; a larger one is better.
    qid : ndarray of shape (n_rows,), optional
        Query id of each row, in any order. None: all rows are one query.
    docid : ndarray of str, shape (n_rows,), optional
        Document ids.
    feature_names : sequence of str, optional
        Name of each column of X.
    categories : mapping of str to sequence of str, optional
        Name of each feature that held text -> the list of its texts. The values of the feature in X are positions in
        this list, or NaN if a text is missing. Only additive models learn from such features.

    Raises
    ------
    DataError
        When shapes do not agree.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm import RankingData
    >>> X = np.array([[3.0, 0.1], [1.0, 0.4], [2.0, 0.2], [0.5, 0.9]])
    >>> data = RankingData(X, np.array([1.0, 0.0, 1.0, 0.0]), np.array(["cat", "cat", "dog", "dog"]))
    >>> data.n_rows, data.queries.n_queries
    (4, 2)
    >>> data.select(data.qid == "dog").X.tolist()
    [[2.0, 0.2], [0.5, 0.9]]
    """

    X: Any
    y: np.ndarray
    # Any instead of None: type checkers admit data.qid < 150 without a check for None
    qid: np.ndarray | Any = None
    docid: np.ndarray | Any = None
    feature_names: tuple[str, ...] | None = None
    categories: dict[str, list[str]] = field(default_factory=dict)
    _queries: tuple[Any, Queries] | None = field(default=None, init=False)
    # the loaded file, the arrays read from it, the state of the file, and whether it is mapped
    _loaded: tuple[str, dict[str, Any], tuple[int, ...], bool] | None = field(default=None, init=False)
    # whether the feature ids of the text started at 0; None if the data were not read from text
    _zero_based: bool | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        for name in ("X", "y"):
            check_unmasked(name, getattr(self, name))
        self.X = host_sparse(self.X)
        if is_sparse(self.X):
            self.X = self.X.tocsr()
        else:
            self.X = np.asarray(host_values(self.X))
        if self.X.ndim != 2:
            raise DataError(f"X must be two-dimensional, got shape {self.X.shape}.")
        self.y = np.asarray(host_values(self.y))
        self.qid = None if self.qid is None else id_array(self.qid)
        self.docid = None if self.docid is None else np.asarray(self.docid)
        for name in ("y", "qid", "docid"):
            values = getattr(self, name)
            if values is not None:
                check_one_per_row(name, values, self.X.shape[0])
        if self.feature_names is not None:
            self.feature_names = tuple(str(name) for name in self.feature_names)
            if len(self.feature_names) != self.X.shape[1]:
                raise DataError(
                    f"there are {len(self.feature_names)} feature names but X has {self.X.shape[1]} columns."
                )
        given = {} if self.categories is None else self.categories
        if any(isinstance(texts, str) for texts in given.values()):
            raise DataError(f"categories must be lists of texts by name, got {given!r}.")
        self.categories = {name: [str(text) for text in texts] for name, texts in given.items()}
        for name, texts in self.categories.items():
            if name not in (self.feature_names or ()):
                raise DataError(f"there are categories of {name!r}, but no feature has this name.")
            if len(set(texts)) < len(texts):
                raise DataError(f"the categories of {name!r} must be distinct, got {texts!r}.")
        if self.categories and is_sparse(self.X):
            raise DataError("X is sparse: only features of a dense X may have categories.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def query_ids(self) -> np.ndarray:
        """The query id of each row; without query ids all rows are one query, with id 0."""
        return np.zeros(self.n_rows, dtype=np.int64) if self.qid is None else self.qid

    @property
    def queries(self) -> Queries:
        """The rows grouped by query; computed again only if ``qid`` was replaced."""
        if self._queries is None or self._queries[0] is not self.qid:
            self._queries = (self.qid, Queries.from_qid(self.qid, self.n_rows))
        return self._queries[1]

    @property
    def source(self) -> str | None:
        """The file from which `load` read X, else None; `RankSVM.fit` reads it in passes if X needs too much memory.

        It is also None after ``load(..., mmap=False)``.
        """
        return None if self._loaded is None or not self.is_loaded("X") else self._loaded[0]

    @property
    def is_mapped(self) -> bool:
        """Whether `load` mapped the file, so that values are read when they are used."""
        return self._loaded is not None and self._loaded[3]

    def source_is_unchanged(self) -> bool:
        """Whether the loaded file has not been replaced or written to."""
        from ranksvm.datasets.cache.reader import state_of

        try:
            return self._loaded is not None and state_of(self._loaded[0]) == self._loaded[2]
        except OSError:
            return False

    def is_loaded(self, name: str) -> bool:
        """Whether an array is the one that `load` read.

        Parameters
        ----------
        name : str
            "X", "y", "qid" or "docid".

        Returns
        -------
        bool
            True if the array has not been replaced.
        """
        return self._loaded is not None and getattr(self, name) is self._loaded[1][name]

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise DataError("RankingData are not an array of features: give X=data.X, y=data.y, qid=data.qid.")

    def select(self, rows: ArrayLike | slice) -> "RankingData":
        """Some of the rows.

        Parameters
        ----------
        rows : array-like of int or bool, or slice
            The rows, in the desired order.

        Returns
        -------
        RankingData
            The selected rows; views of the arrays for a slice, else copies.

        Raises
        ------
        DataError
            When a row does not exist, or there is not one boolean for each row.
        """
        if not isinstance(rows, slice):
            # an empty list would be an array of float64
            rows = np.asarray(rows)
            rows = rows if rows.size else np.empty(0, dtype=np.int64)
        try:
            X, y = self.X[rows], self.y[rows]
            qid, docid = (None if values is None else values[rows] for values in (self.qid, self.docid))
        except IndexError as error:
            raise DataError(
                f"rows must be numbers of the {self.n_rows} rows, or one boolean for each: {error}."
            ) from None
        taken = RankingData(X, y, qid, docid, self.feature_names)
        taken.categories = self.categories  # already validated; checking many of them again would take time
        return taken

    def save(self, path: PathLike) -> None:
        """Write a binary cache that `load` maps into memory; its name usually ends in ``.rsd``.

        Parameters
        ----------
        path : path-like
            The file; written atomically.

        Raises
        ------
        DataError
            When an array has a type that cannot be stored (mixed Python objects).
        """
        write_cache(path, self)

    @classmethod
    def load(cls, path: PathLike, *, mmap: bool | None = None, verify: bool = True) -> "RankingData":
        """Read a cache written by `save`.

        Parameters
        ----------
        path : path-like
            The file.
        mmap : bool, optional
            Whether to map the arrays, read-only, so that pages are read on use; otherwise they are copied into memory.
            A mapped file must not be truncated or overwritten in place while the data are used. `save` never does that;
            it replaces the file, and the old data stay mapped. A fit looks at the length of the file before each pass
            over X, and raises DataError if it is too short; if the file is truncated during a pass, the system ends the
            process (bus error). None: the file is mapped if ``verify`` is false, or if it takes more than half of the
            free memory and belongs to the user of the process; otherwise it is read.
        verify : bool, default=True
            Whether to compare the values of a mapped X with their checksums, for which the file is read once: about
            0.4 s for 1 GB in the page cache, with two threads. The other arrays, and whatever is read into memory, are
            always compared.

        Returns
        -------
        RankingData
            The data, with the same types as when saved.

        Raises
        ------
        DataError
            When the file is not a cache, is truncated or altered, or was written by a newer version. Or when it belongs
            to another user, and does not fit in the free memory.
        """
        from ranksvm.datasets.cache.reader import state_of

        state = state_of(path)
        mapped = not verify or _should_map(path, state[2]) if mmap is None else mmap
        data = read_cache(path, cls, mapped=mapped, verify=verify)
        if mapped or mmap is None:
            arrays = {name: getattr(data, name) for name in ("X", "y", "qid", "docid")}
            data._loaded = os.path.abspath(path), arrays, state, mapped
        return data

    def to_parquet(self, path: PathLike, *, compression: str = "zstd") -> None:
        """Write Parquet: columns ``label``, ``qid``, ``docid`` and one per feature.

        A feature's column has the feature's name, or ``f1``, ``f2``, ... if there are no names. The column of a
        feature with ``categories`` holds text, and `from_parquet` restores its categories. CSR data have two columns of
        lists, ``feature_indices`` (from 0) and ``feature_values``.

        Parameters
        ----------
        path : path-like
            The file; written atomically.
        compression : str, default="zstd"
            Compression supported by pyarrow, or "none".

        Raises
        ------
        MissingDependencyError
            When pyarrow is not installed.
        DataError
            When two features have the same name, or a feature has the name of another column.
        """
        from ranksvm.datasets.parquet import write_parquet

        write_parquet(path, self, compression)

    @classmethod
    def from_parquet(
        cls,
        path: PathLike,
        *,
        label: str = "label",
        qid: str = "qid",
        docid: str = "docid",
        ignore: Sequence[str] = (),
        require_labels: bool = True,
        dtype: DTypeLike | None = None,
    ) -> "RankingData":
        """Read a Parquet file from `to_parquet`, or any whose columns, besides labels and ids, are numeric features.

        Parameters
        ----------
        path : path-like
            The file.
        label, qid, docid : str, default "label", "qid" and "docid"
            Names of the columns of labels, query ids and document ids. The columns ``qid`` and ``docid`` may be absent.
        ignore : sequence of str, default ()
            Names of columns that are not read; all others are features.
        require_labels : bool, default=True
            Whether the file must have the column of labels. If False, and the column is absent, all labels are 0.
        dtype : {numpy.float32, numpy.float64}, optional
            Type of X. None: float64 when a feature column has more than 32 bits, else float32.

        Returns
        -------
        RankingData
            The data, with the names of the feature columns unless these are the default names of `to_parquet`.

        Raises
        ------
        MissingDependencyError
            When pyarrow is not installed.
        DataError
            When the file is not a Parquet file or has no label column. Or when it has missing values, a column that is
            not numeric, or a column that would be a feature but is named like ids or labels (``query_id``,
            ``session``, ``document``, ``relevance`` or the like) or like an index of pandas (``__index_level_0__``).
        """
        from ranksvm.datasets.parquet import read_parquet
        from ranksvm.datasets.table import Columns

        columns = Columns(label, qid, docid, ignore, require_labels, takes_categorical=False)
        return cls(**read_parquet(path, columns, dtype))

    def to_csv(self, path: PathLike, *, escape_formulas: bool = False) -> None:
        """Write CSV, or TSV if the file name ends in ``.tsv`` (or ``.tsv.gz`` and the like), as `read_data` reads it.

        The columns are the same as in `to_parquet`; numbers are written with all digits.

        Parameters
        ----------
        path : path-like
            The file; written atomically, compressed if its name says so.
        escape_formulas : bool, default=False
            Whether text that begins with ``=``, ``+``, ``-``, ``@``, a tab character or a carriage return gets an
            apostrophe in front, so that a spreadsheet does not take it for a formula.

        Raises
        ------
        MissingDependencyError
            When pyarrow is not installed.
        DataError
            When X is sparse, two features have the same name, or a feature has the name of another column.
        """
        from ranksvm.datasets.csv import write_csv

        write_csv(path, self, escape_formulas)

    def to_frame(self, *, library: str | None = None) -> Any:
        """A DataFrame with the columns of `to_parquet`: ``label``, ``qid``, ``docid`` and one per feature.

        Features with ``categories`` are columns of text.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the DataFrame; None: the first of them that is installed.

        Returns
        -------
        DataFrame
            One row per document.

        Raises
        ------
        MissingDependencyError
            When the library is not installed; if ``library`` is None, when none of the three is.
        DataError
            When X is sparse, two features have the same name, or a feature has the name of another column.
        """
        return frame_of(self._columns(), library)

    def to_latex(self) -> str:
        """The numbers of rows, queries, features and levels as a LaTeX ``tabular``, as papers describe data sets.

        Returns
        -------
        str
            The text, which needs the LaTeX package booktabs.
        """
        levels, counts = np.unique(self.y, return_counts=True)
        columns: dict[str, Any] = {
            "documents": [f"{self.n_rows:,}"],
            "queries": [f"{self.queries.n_queries:,}"],
            "features": [f"{self.n_features:,}"],
        }
        for level, n_rows in zip(levels.tolist()[:_LEVELS], counts.tolist(), strict=False):
            columns[f"label {level:g}"] = [f"{n_rows:,}"]
        return Table(columns, repr(self)).to_latex()

    def _columns(self) -> dict[str, np.ndarray]:
        if is_sparse(self.X):
            raise DataError(
                "X is sparse, and a table has a column for every feature: use data.X as it is, or replace it by "
                "X.toarray() first."
            )
        names = self.feature_names or [f"f{number}" for number in range(1, self.n_features + 1)]
        ids = {name: getattr(self, name) for name in ("qid", "docid") if getattr(self, name) is not None}
        features = dict(zip(names, self.X.T, strict=True))
        features |= {name: texts_at(features[name], texts) for name, texts in self.categories.items()}
        columns = {"label": self.y, **ids, **features}
        if len(columns) < 1 + len(ids) + self.n_features:
            known = ["label", *ids, *names]
            twice = next(name for name in known if known.count(name) > 1)
            raise DataError(f"two columns would be named {twice!r}: rename the feature.")
        return columns

    def _repr_html_(self) -> str:
        """The first rows and features in a notebook."""
        first = self.select(slice(0, _ROWS))
        X = first.X[:, :_FEATURES]
        names = None if self.feature_names is None else self.feature_names[:_FEATURES]
        categories = {name: texts for name, texts in self.categories.items() if name in (names or ())}
        shown = RankingData(X.toarray() if is_sparse(X) else X, first.y, first.qid, first.docid, names, categories)
        caption = repr(self)
        if self.n_rows > _ROWS or self.n_features > _FEATURES:
            caption += f": the first {shown.n_rows} rows and {shown.n_features} features"
        columns = shown._columns()
        if not (first.y % 1).any():
            columns["label"] = first.y.astype(np.int64)
        return Table(columns, caption).to_html()

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        kind = "CSR" if is_sparse(self.X) else "dense"
        queries = "one query" if self.qid is None else f"{self.queries.n_queries} queries"
        return f"RankingData({self.n_rows} rows, {self.n_features} features, {queries}, {kind} {self.X.dtype})"


def _should_map(path: PathLike, size: int) -> bool:
    """Whether to map a file if the caller does not say: if it is large, and no other user may truncate it."""
    if size <= memory_bytes(None):
        return False
    if not hasattr(os, "geteuid") or os.stat(path).st_uid == os.geteuid():
        return True
    if size > free_memory():
        raise DataError(
            f"{os.fspath(path)} takes {in_words(size)}, more memory than is free, and belongs to another user, who "
            "could truncate it: pass its path to fit, which reads it in passes, or map it with mmap=True."
        )
    return False
