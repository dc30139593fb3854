"""Files in and out: data, models, scores, and text written whole or not at all."""

import contextlib
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.errors import warn
from ranksvm.cli.progress import Progress, Stopwatch
from ranksvm.cli.tables import count, counted, queries

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.data import Queries, RankingData

__all__ = [
    "described",
    "load_model",
    "model_scores",
    "names_of",
    "read",
    "read_numbers",
    "read_pairs",
    "row_labels",
    "with_features",
    "write_text",
]


PAIR_LINES = "'preferred other' or 'preferred other weight' a line, row numbers from 0"


def read(path: Path, progress: Progress, watch: Stopwatch, zero_based: bool | None = None) -> "RankingData":
    """A data file of any kind, with a progress line that says what was in it."""
    from ranksvm.data import read_data

    progress.now(f"Reading {path}")
    before = watch.seconds.get("reading", 0.0)
    with watch("reading"), _naming(path):
        data = read_data(path, zero_based="auto" if zero_based is None else zero_based)
    progress.line(f"Read {path}: {described(data)}, {watch.seconds['reading'] - before:.2f} s")
    if data.qid is None:
        warn(f"{path} has no query ids (qid:...): all its {count(data.n_rows)} rows are taken for one query.")
    return data


def described(data: "RankingData") -> str:
    """Rows, queries and features in words."""
    import scipy.sparse

    kind = "sparse" if scipy.sparse.issparse(data.X) else "dense"
    features = f"{counted(data.n_features, 'feature')} ({kind})"
    return f"{counted(data.n_rows, 'row')}, {queries(data.queries.n_queries)}, {features}"


def with_features(X: Any, n_features: int, path: Path) -> Any:
    """X with the features a model knows: those that a file never mentions are 0, unknown ones are left out.

    LETOR text leaves out zeros, so a file may end before the last feature of another one.
    """
    found = X.shape[1]
    if found == n_features:
        return X
    import numpy as np
    import scipy.sparse

    if found > n_features:
        warn(f"{path} has {counted(found, 'feature')}, the training data {count(n_features)}: the others are left out.")
        return X[:, :n_features]
    if scipy.sparse.issparse(X):
        X = X.copy()
        X.resize(X.shape[0], n_features)
        return X
    wider = np.zeros((X.shape[0], n_features), dtype=X.dtype)
    wider[:, :found] = X
    return wider


def load_model(path: Path) -> Any:
    """A saved model that can score documents."""
    from ranksvm import load
    from ranksvm.exceptions import ModelFileError

    model = load(path)
    if not hasattr(model, "predict"):
        raise ModelFileError(f"{path}: it holds a {type(model).__name__}, which gives no scores.")
    return model


def model_scores(model: Any, data: "RankingData", path: Path) -> "np.ndarray":
    """Scores of the rows of a data file, in their order."""
    from ranksvm.metrics.scorers import predict_scores

    return predict_scores(model, with_features(data.X, model.n_features_in_, path), data.qid)


def read_numbers(path: Path, n_rows: int, word: str) -> "np.ndarray":
    """One number a line, in the order of the data, as `ranksvm predict` writes scores; compressed files too.

    Parameters
    ----------
    path : Path
        The file.
    n_rows : int
        Number of rows of the data.
    word : str
        What the numbers are, for messages; a word with a plural in s.

    Raises
    ------
    DataError
        When a line is no number, the file is no text, or there are not ``n_rows`` numbers.
    """
    import numpy as np

    from ranksvm.exceptions import DataError

    lines = _text(path, "one number a line").split("\n")
    if not lines[-1].strip():
        lines.pop()
    try:
        numbers = np.array([float(line) for line in lines])
    except ValueError:
        place, line = next((i, line) for i, line in enumerate(lines, 1) if not _is_number(line))
        raise DataError(f"{path}:{place}: {line.strip()[:40]!r} is no {word}: expected one number a line.") from None
    if len(numbers) != n_rows:
        raise DataError(f"{path} has {counted(len(numbers), word)} but the data have {counted(n_rows, 'row')}.")
    return numbers


def read_pairs(path: Path, queries: "Queries") -> "tuple[np.ndarray, np.ndarray]":
    """Preferences, one a line: ``preferred other [weight]``, row numbers of the data from 0.

    Empty lines and what follows a ``#`` are passed over.

    Parameters
    ----------
    path : Path
        The file.
    queries : Queries
        Queries of the rows of the data: both rows of a pair must be of one.

    Returns
    -------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other).
    weights : ndarray of float64, shape (n_pairs,)
        Weight of each pair; 1 where a line gives none.

    Raises
    ------
    DataError
        When a line is not that, with its number, or there is no pair.
    """
    import numpy as np

    from ranksvm.exceptions import DataError

    number = queries.numbers().tolist()
    rows, weights = [], []
    for place, line in enumerate(_text(path, PAIR_LINES).split("\n"), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        try:
            i, j, weight = _pair(words)
        except ValueError:
            raise DataError(f"{path}:{place}: {line.strip()[:40]!r} is no pair: expected {PAIR_LINES}.") from None
        if not (0 <= i < len(number) and 0 <= j < len(number)):
            wrong = j if 0 <= i < len(number) else i
            raise DataError(f"{path}:{place}: there is no row {wrong}: the data have the rows 0 to {len(number) - 1}.")
        if i == j:
            raise DataError(f"{path}:{place}: row {i} is compared with itself.")
        if number[i] != number[j]:
            ids = [str(queries.ids[number[row]]) for row in (i, j)]
            raise DataError(
                f"{path}:{place}: row {i} is of query {ids[0]}, row {j} of query {ids[1]}: both must be of one query."
            )
        rows.append((i, j))
        weights.append(weight)
    if not rows:
        raise DataError(f"{path} holds no pair: expected {PAIR_LINES}.")
    return np.array(rows, dtype=np.int64), np.array(weights)


def _pair(words: list[str]) -> tuple[int, int, float]:
    preferred, other, *rest = words
    weight = float(rest[0]) if rest else 1.0
    if len(rest) > 1 or not 0.0 <= weight < math.inf:
        raise ValueError
    return int(preferred), int(other), weight


def _text(path: Path, expected: str) -> str:
    from ranksvm.data.compression import BrokenStreamError, compression_of, decompressed
    from ranksvm.exceptions import DataError

    try:
        with _naming(path), open(path, "rb") as file:
            # read once: it may be a pipe
            content = file.read()
        kind = compression_of(content)
        text = content if kind is None else b"".join(decompressed(io.BytesIO(content), kind))
        return text.decode("utf-8-sig")
    except BrokenStreamError as error:
        raise DataError(f"{path}: {error}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text: expected {expected}.") from error


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """What the system refuses in the block is reported with the name of the file."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def names_of(paths: list[Path]) -> list[str]:
    """File names where they tell the files apart, else whole paths (numbered where even these are equal)."""
    names = [path.name for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return [name if names.index(name) == i else f"{name} ({i + 1})" for i, name in enumerate(names)]


def row_labels(data: "RankingData") -> list[str]:
    """Document ids as text; the row's number, from 0, where the file names none."""
    if data.docid is None:
        return [str(row) for row in range(data.n_rows)]
    return [str(docid) or str(row) for row, docid in enumerate(data.docid.tolist())]


def write_text(path: Path | None, lines: Iterable[str]) -> None:
    """Lines to a file, whole or not at all, compressed where its name says so; to stdout where ``path`` is None."""
    if path is None:
        for line in lines:
            click.echo(line)
        return
    from ranksvm.data.atomic_files import atomic_text_file

    with atomic_text_file(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)
