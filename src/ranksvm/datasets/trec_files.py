"""The text formats of TREC, as trec_eval reads them: files of relevance judgments (qrels) and of rankings (runs)."""

import codecs
import io
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ranksvm._util.atomic_files import write_lines
from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed, first_text
from ranksvm._util.text import counted
from ranksvm._util.types import PathLike
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.datasets.runs import ByQuery, Qrels, Rows, Run, check_spellings, without_spaces
from ranksvm.exceptions import DataError, ParseError

__all__ = ["as_qrels", "as_run", "kind_of", "read_qrels", "read_run", "run_lines", "write_qrels", "write_run"]

_QRELS = "expected four columns: query, iteration (not used), document, label"
_RUN = "expected six columns: query, Q0 (not used), document, rank (not used), score, name of the run"


def read_qrels(path: PathLike) -> Qrels:
    r"""Read relevance judgments in the format of TREC: lines of ``query iteration document label``.

    Columns are separated by spaces or tabs. The second column is not used. Empty lines are ignored.

    Parameters
    ----------
    path : path-like or "-"
        The file, possibly compressed (gzip, bzip2, xz, zstd); "-" is standard input.

    Returns
    -------
    Qrels
        The judgments.

    Raises
    ------
    ParseError
        When a line does not have four columns, its label is not a finite number, or its document was already judged for
        the query.
    DataError
        When the file is empty, not text, or damaged.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'qrels.txt')
    >>> with open(path, "w") as file:
    ...     _ = file.write("q1 0 d1 2\nq1 0 d2 0\n")
    >>> from ranksvm import read_qrels
    >>> len(read_qrels(path))
    2
    """
    name, qid, docid, label, _ = _read(path, 4, 3, "label", _QRELS, finite=True)
    if not qid:
        raise DataError(f"{name} holds no judgment: {_QRELS}.")
    return Qrels(np.array(qid), np.array(docid), np.array(label))


def read_run(path: PathLike) -> Run:
    r"""Read a run in the format of TREC: lines of ``query Q0 document rank score name``.

    Columns are separated by spaces or tabs. Documents are ranked by their scores, as by trec_eval: the columns ``Q0``
    and ``rank`` are not used. Empty lines are ignored.

    Parameters
    ----------
    path : path-like or "-"
        The file, possibly compressed (gzip, bzip2, xz, zstd); "-" is standard input.

    Returns
    -------
    Run
        The run, with the name in the first line.

    Raises
    ------
    ParseError
        When a line does not have six columns, its score is not a number, or its document was already ranked for the
        query.
    DataError
        When the file is empty, not text, or damaged.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'ours.run')
    >>> with open(path, "w") as file:
    ...     _ = file.write("q1 Q0 d2 1 0.7 ours\nq1 Q0 d1 2 0.3 ours\n")
    >>> from ranksvm import read_run
    >>> run = read_run(path)
    >>> len(run), run.name
    (2, 'ours')
    """
    name, qid, docid, score, last = _read(path, 6, 4, "score", _RUN, finite=False)
    if not qid:
        raise DataError(f"{name} holds no ranking: {_RUN}.")
    return Run(np.array(qid), np.array(docid), np.array(score), last)


def write_qrels(path: PathLike, qrels: Qrels | RankingData | ByQuery | Rows) -> None:
    """Write relevance judgments in the format of TREC, atomically; compressed if the file name says so.

    Parameters
    ----------
    path : path-like
        The file.
    qrels : Qrels, RankingData, dict of dict, or what `Qrels.from_rows` takes
        The judgments; for ranking data, its labels. Spaces in ids become ``_``.

    Raises
    ------
    DataError
        When a query or document id is empty, or different ids would be spelled alike.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'qrels.txt')
    >>> from ranksvm import write_qrels
    >>> write_qrels(path, {"q1": {"d1": 2, "d2": 0}})
    >>> with open(path) as file:
    ...     print(file.read().strip())
    q1 0 d1 2
    q1 0 d2 0
    """
    qrels = Qrels.from_data(qrels) if isinstance(qrels, RankingData) else as_qrels(qrels)
    # labels that are whole numbers become integers, which trec_eval needs
    labels = [int(label) if label.is_integer() else label for label in qrels.label.tolist()]
    qid, docid = _words(qrels.qid, "query"), _words(qrels.docid, "document")
    if docid != qrels.docid.tolist():
        qrels = Qrels(np.array(qid), np.array(docid), qrels.label)  # refuses two ids that are spelled alike
    lines = zip(qid, docid, labels, strict=True)
    write_lines(path, (f"{query} 0 {document} {label}" for query, document, label in lines))


def write_run(path: PathLike, run: Run | ByQuery | Rows) -> None:
    """Write a run in the format of TREC, atomically; compressed if the file name says so.

    Queries are in order of first appearance. Documents are ordered by score, then by id in descending order, as by
    trec_eval, which also counts scores as equal if they are equal in single precision. Scores have all their digits.

    Parameters
    ----------
    path : path-like
        The file.
    run : Run, dict of dict, or what `Run.from_rows` takes
        The run. Spaces in ids become ``_``.

    Raises
    ------
    DataError
        When a query or document id is empty, or different ids would be spelled alike.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'ours.run')
    >>> from ranksvm import write_run
    >>> write_run(path, {"q1": {"d1": 0.25, "d2": 0.75}})
    >>> with open(path) as file:
    ...     print(file.read().strip())
    q1 Q0 d2 1 0.75 ...
    q1 Q0 d1 2 0.25 ...
    """
    write_lines(path, run_lines(as_run(run)))


def run_lines(run: Run) -> Iterator[str]:
    """The lines of a run file."""
    qid, docid = _words(run.qid, "query"), _words(run.docid, "document")
    if qid != run.qid.tolist() or docid != run.docid.tolist():
        run = Run(np.array(qid), np.array(docid), run.score, run.name)
    order = run.ordered()
    columns = run.qid[order].tolist(), run.docid[order].tolist(), run.score[order].tolist()
    before, rank = None, 0
    for query, document, score in zip(*columns, strict=True):
        before, rank = query, rank + 1 if query == before else 1
        yield f"{query} Q0 {document} {rank} {score!r} {run.name}"


def kind_of(path: PathLike) -> str | None:
    """Kind of a file by its first line: "run", "qrels" or None."""
    with open(os.fspath(path), "rb") as file:
        text = first_text(file)
    words = next(filter(None, map(bytes.split, text.removeprefix(codecs.BOM_UTF8).splitlines())), [])
    numbers = {4: ("qrels", words[3:]), 6: ("run", words[3:5])}.get(len(words))
    if numbers is None:
        return None
    try:
        return numbers[0] if [float(word) for word in numbers[1]] else None
    except ValueError:
        return None


def as_qrels(qrels: Qrels | ByQuery | Rows | PathLike) -> Qrels:
    """Judgments from a `Qrels`, a dictionary, rows, or the path of a file."""
    if isinstance(qrels, Qrels):
        return qrels
    if isinstance(qrels, Mapping):
        return Qrels.from_dict(qrels)
    return read_qrels(qrels) if isinstance(qrels, str | os.PathLike) else Qrels.from_rows(qrels)


def as_run(run: Run | ByQuery | Rows | PathLike) -> Run:
    """A run from a `Run`, a dictionary, rows, or the path of a file."""
    if isinstance(run, Run):
        return run
    if isinstance(run, Mapping):
        return Run.from_dict(run)
    return read_run(run) if isinstance(run, str | os.PathLike) else Run.from_rows(run)


def _words(ids: np.ndarray, what: str) -> list[str]:
    """Ids without spaces, which separate columns."""
    words = [without_spaces(word) for word in ids.tolist()]
    if "" in words:
        raise DataError(f"the {what} id of row {words.index('')} (from 0) is empty: a file of TREC cannot hold it.")
    if what == "query":
        check_spellings(dict.fromkeys(ids.tolist()), what)
    return words


def _read(
    path: PathLike, n_columns: int, place: int, what: str, expected: str, finite: bool
) -> tuple[str, list[str], list[str], list[float], str]:
    """The name of a file, its queries, documents and numbers, and the last column of its first line."""
    name, content = _content(path, expected)
    qid: list[str] = []
    docid: list[str] = []
    values: list[float] = []
    last = ""
    seen: dict[tuple[str, str], int] = {}
    accept: Callable[[float], bool] = math.isfinite if finite else lambda value: not math.isnan(value)
    # bytes are split at ASCII white space only, unlike text: an id may contain other white space
    for number, line in enumerate(content.split(b"\n"), 1):
        words = line.split()
        if len(words) != n_columns:
            if not words:
                continue
            raise ParseError(name, number, 1, f"found {counted(len(words), 'column')}, {expected}")
        try:
            value = math.nan if b"_" in words[place] else float(words[place])  # float() would take 1_000
        except ValueError:
            value = math.nan
        if not accept(value):
            reason = f"the {what} must be a {'finite ' if finite else ''}number, found {words[place].decode()[:40]!r}"
            raise ParseError(name, number, _column(line, place), reason)
        key = words[0].decode(), words[2].decode()
        if "\0" in key[0] or "\0" in key[1]:
            at = 0 if "\0" in key[0] else 2
            reason = f"an id has a NUL character, which no array of strings keeps: {key[at // 2]!r}"
            raise ParseError(name, number, _column(line, at), reason)
        if (first := seen.setdefault(key, number)) != number:
            reason = f"document {key[1]!r} of query {key[0]!r} is also in line {first}: each may occur once"
            raise ParseError(name, number, _column(line, 2), reason)
        last = last or words[-1].decode()
        qid.append(key[0])
        docid.append(key[1])
        values.append(value)
    return name, qid, docid, values, last


def _column(line: bytes, place: int) -> int:
    """Position of a word in a line, in bytes, from 1."""
    return len(line.rstrip()) - len(line.split(None, place)[place].rstrip()) + 1


def _content(path: PathLike, expected: str) -> tuple[str, bytes]:
    """The name of a file and its text, in UTF-8 without a byte order mark."""
    if isinstance(path, str) and path == "-":
        name, content = "standard input", sys.stdin.buffer.read()
    else:
        name = os.fspath(path)
        with open(name, "rb") as file:  # read only once: it may be a pipe
            content = file.read()
    try:
        kind = compression_of(content)
        text = content if kind is None else b"".join(decompressed(io.BytesIO(content), kind))
        text.decode("utf-8")
        return name, text.removeprefix(codecs.BOM_UTF8)
    except BrokenStreamError as error:
        raise DataError(f"{name}: {error}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not text: {expected}.") from error
