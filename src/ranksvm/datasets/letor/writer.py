"""Write LETOR / SVMlight text that reads back as the same numbers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import ranksvm._compiled.letor as _compiled
from ranksvm._util.atomic_files import atomic_text_file
from ranksvm._util.checks import is_sparse
from ranksvm._util.sparse_format import check_sparse_format
from ranksvm._util.text import place_in_words
from ranksvm._util.threads import effective_n_jobs, parallel_map
from ranksvm._util.types import CSRMatrix, Features, MatrixLike, PathLike
from ranksvm.data.numeric_column import label_column
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError

__all__ = ["write_letor"]

# Values formatted at a time by one thread: about 3 MB of text.
_BLOCK = 1 << 18


def write_letor(
    path: PathLike,
    X: MatrixLike | RankingData,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    *,
    docid: ArrayLike | None = None,
    comment: str | None = None,
    zero_based: bool = False,
    n_jobs: int | None = None,
) -> None:
    """Write ranking data as LETOR / SVMlight text.

    A line is ``label qid:id feature:value ... #docid = id``.

    Every number is written as the shortest text that reads back as the same float32 or float64, so that `read_letor`
    with that ``dtype`` gives equal arrays. For dense X every value is written, for CSR every stored one (plus a zero in
    the first row for an empty first or last column, so that the columns are preserved).

    Parameters
    ----------
    path : path-like
        The file, written atomically; compressed when its name ends in .gz, .bz2, .xz or .zst.
    X : RankingData, or array-like or sparse matrix of shape (n_rows, n_features)
        The data, or only the features. float32 and float64 keep their type, other types are written as float64.
    y : array-like of shape (n_rows,), optional
        Labels; required unless X is a RankingData.
    qid : array-like of shape (n_rows,), optional
        Query ids: integers, or strings without blanks and ``#``. None: lines have no qid.
    docid : array-like of shape (n_rows,), optional
        Document ids, without blanks; rows with an empty id get no comment.
    comment : str, optional
        Text for the beginning of the file, written as comment lines.
    zero_based : bool, default=False
        Whether feature ids start at 0.
    n_jobs : int, optional
        Number of threads; None means all processors.

    Raises
    ------
    DataError
        When shapes do not agree, a number is not finite, an id cannot be written in a line, or features hold text.
    MissingDependencyError
        When a ``.zst`` file is requested and no package for it is installed.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "data.txt")
    >>> write_letor(path, [[0.5, 0.1]], [2], [7], docid=["a"])
    >>> open(path).read()
    '2 qid:7 1:0.5 2:0.1 #docid = a\\n'
    """
    data = X if isinstance(X, RankingData) else _as_data(X, y, qid, docid)
    if data.categories:
        raise DataError(
            f"the features {', '.join(map(repr, data.categories))} hold text, and a feature of LETOR text is a number: "
            "write Parquet, CSV or a cache."
        )
    labels = np.ascontiguousarray(label_column(data.y))
    if is_sparse(data.X):
        check_sparse_format(data.X)
    numbers, words = _qid_text(data.qid)
    documents = None if data.docid is None else _docid_words(data.docid)
    pads = _pads(data.X, zero_based)
    n_threads = effective_n_jobs(n_jobs)

    def text(rows: slice) -> bytes:
        tail = (
            labels[rows],
            None if numbers is None else numbers[rows],
            None if words is None else "\n".join(words[rows]).encode(),
            None if documents is None else "\n".join(documents[rows]).encode(),
        )
        base = 0 if zero_based else 1
        if not is_sparse(data.X):
            return _compiled.format_dense(_finite(data.X[rows], rows.start), base, *tail)
        block = data.X[rows]
        block.sum_duplicates()
        values = _finite(block.data, rows.start, block)
        first = pads if rows.start == 0 else np.array([-1, -1])
        return _compiled.format_sparse(block.indptr, block.indices, values, base, first, *tail)

    with atomic_text_file(path) as file:
        if comment:
            file.write("".join(f"# {line}\n" for line in comment.splitlines()).encode())
        for batch in _batches(data, n_threads):
            for lines in parallel_map(text, batch, n_threads):
                file.write(lines)


def _as_data(X: Any, y: Any, qid: Any, docid: Any) -> RankingData:
    if y is None:
        raise DataError("y is missing: write_letor needs a label for each row (or a RankingData).")
    return RankingData(X, y, qid, docid)


def _batches(data: RankingData, n_threads: int) -> Iterator[list[slice]]:
    """Groups of blocks of rows, enough to keep all threads busy: the text is never completely in memory."""
    per_row = max(1, data.X.nnz // max(1, data.n_rows) if is_sparse(data.X) else data.n_features)
    step = max(1, _BLOCK // per_row)
    blocks = [slice(start, min(start + step, data.n_rows)) for start in range(0, data.n_rows, step)]
    for i in range(0, len(blocks), 2 * n_threads):
        yield blocks[i : i + 2 * n_threads]


def _finite(values: np.ndarray, first_row: int, block: CSRMatrix | None = None) -> np.ndarray:
    if values.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        values = values.astype(np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        if block is None:
            row, column = where
        else:
            row, column = np.searchsorted(block.indptr, where[0], side="right") - 1, block.indices[where[0]]
        raise DataError(f"{place_in_words(first_row + row, column)} is {values[tuple(where)]}: cannot be written.")
    return np.ascontiguousarray(values)


def _pads(X: Features, zero_based: bool) -> np.ndarray:
    """The first (if ids start at 0) and the last column, each if it is empty and so needs a zero; otherwise -1."""
    pads = np.array([-1, -1], dtype=np.int64)
    if is_sparse(X) and X.shape[1]:
        last = X.shape[1] - 1
        if zero_based and not (X.indices == 0).any():
            pads[0] = 0
        if not (last == 0 and pads[0] == 0) and not (X.indices == last).any():
            pads[1] = last
    return pads


def _qid_text(qid: np.ndarray | None) -> tuple[np.ndarray | None, list[str] | None]:
    """Query ids as int64, or as strings."""
    if qid is None:
        return None, None
    if qid.dtype.kind in "biu" and (qid.dtype != np.uint64 or not len(qid) or qid.max() < 1 << 63):
        return np.ascontiguousarray(qid, dtype=np.int64), None
    if qid.dtype.kind == "f" and np.all(np.abs(qid) < 2.0**53) and np.all(qid == np.floor(qid)):
        return qid.astype(np.int64), None
    words = [value.decode() if isinstance(value, bytes) else str(value) for value in qid.tolist()]
    _check_words(words, " \t\r\n#", "qid", empty_allowed=False)
    return None, words


def _docid_words(docid: np.ndarray) -> list[str]:
    words = [
        "" if value is None or value != value else value.decode() if isinstance(value, bytes) else str(value)
        for value in docid.tolist()
    ]
    _check_words(words, " \t\r\n", "docid", empty_allowed=True)
    return words


def _check_words(words: list[str], forbidden: str, name: str, empty_allowed: bool) -> None:
    everything = "".join(words)
    if any(character in everything for character in forbidden):
        row = next(i for i, word in enumerate(words) if any(character in word for character in forbidden))
        raise DataError(f"{name} {words[row]!r} in row {row} holds a blank, a newline or '#': it cannot be written.")
    if not empty_allowed and "" in words:
        raise DataError(f"{name} is empty in row {words.index('')}: it cannot be written.")
