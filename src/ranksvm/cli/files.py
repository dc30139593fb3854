"""Reading and writing of files: data, models, scores, files of TREC, and text, which is written atomically."""

import contextlib
import io
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.features import for_model, known_texts
from ranksvm.cli.options.paths import STDIN, inputs_given, path_to_open, titled
from ranksvm.cli.output.errors import warn
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, counted, queries
from ranksvm.cli.terminal import print_data

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.cli.features import Model
    from ranksvm.data import Queries
    from ranksvm.datasets.cache.conversion import ConvertedData
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.datasets.runs import Qrels, Run

__all__ = [
    "Judged",
    "candidates",
    "described",
    "is_model",
    "load_model",
    "load_scorer",
    "model_scores",
    "model_scores_on",
    "names_of",
    "read",
    "read_judgments",
    "read_numbers",
    "read_pairs",
    "read_rankings",
    "refuse_trec",
    "row_labels",
    "to_cache",
    "trec_kind",
    "write_text",
]

PAIR_LINES = "'preferred other' or 'preferred other weight' per line: row numbers from 0, weights not below 0"


def read(
    path: Path,
    progress: Progress,
    watch: Stopwatch,
    reading: dict[str, Any],
    require_labels: bool = True,
    qrels: "Qrels | None" = None,
    models: Sequence[Any] = (),
) -> "RankingData":
    """A data file of any format, read with the options of `reading_options`; a progress line reports its contents.

    Features that held text when one of ``models`` was trained may hold text. With ``qrels``, relevance judgments give
    the labels, and the file need not have any.
    """
    from ranksvm.datasets.files import read_data
    from ranksvm.exceptions import DataError

    require_labels = require_labels and qrels is None
    name = titled(path)
    refuse_trec(path)
    if models:
        reading = {**reading, "categorical": known_texts(models)}
    progress.now(f"Reading {name}")
    before = watch.seconds.get("reading", 0.0)
    with watch("reading"), _naming(path):
        data = read_data("-" if path == STDIN else path, require_labels=require_labels, **reading)
    if not data.n_rows:
        raise DataError(f"{name} has no row of data.")
    progress.line(f"Read {name}: {described(data)}, {watch.seconds['reading'] - before:.2f} s")
    if qrels is not None:
        judged = Judged(qrels, name)
        (data,) = judged([data])
        judged.report(progress)
    if data.qid is None:
        _warn_of_one_query(name, data.n_rows)
    return data


def _warn_of_one_query(name: str, n_rows: int) -> None:
    where = "qid:... in LETOR text, a column qid, or --qid COLUMN, in tables"
    warn(f"{name} has no query ids ({where}): all its {count(n_rows)} rows are treated as one query.")


def to_cache(
    source: Path,
    target: Path,
    progress: Progress,
    watch: Stopwatch,
    reading: dict[str, Any],
    qrels: "Qrels | None" = None,
) -> "ConvertedData":
    """Write the cache of a data file of any format, a part at a time, and print what `read` prints."""
    from ranksvm.datasets.cache.conversion import convert_to_cache

    name = titled(source)
    refuse_trec(source)
    progress.now(f"Converting {name}")
    judged = None if qrels is None else Judged(qrels, name)
    with watch("writing"), _naming(source):
        converted = convert_to_cache(
            "-" if source == STDIN else source,
            target,
            require_labels=qrels is None,
            relabel=judged,
            progress=progress.megabytes,
            **reading,
        )
    kind = "sparse" if converted.sparse else "dense"
    counts = f"{counted(converted.n_rows, 'row')}, {queries(converted.n_queries)}"
    progress.line(f"Read {name}: {counts}, {counted(converted.n_features, 'feature')} ({kind})")
    if judged is not None:
        judged.report(progress)
    if not converted.has_qid:
        _warn_of_one_query(name, converted.n_rows)
    return converted


def described(data: "RankingData") -> str:
    """Rows, queries and features in words."""
    from ranksvm._util.checks import is_sparse

    kind = "sparse" if is_sparse(data.X) else "dense"
    features = f"{counted(data.n_features, 'feature')} ({kind})"
    return f"{counted(data.n_rows, 'row')}, {queries(data.queries.n_queries)}, {features}"


def is_model(path: Path) -> bool:
    """Whether a file is a saved model, by its first bytes."""
    # A pipe can be read only once, and the code that reads data needs its first bytes. So a pipe counts as data, not as
    # a model.
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def load_model(path: Path) -> "Model":
    """A saved model that can score documents."""
    return _loaded(path, {})


def load_scorer(path: Path) -> "Model":
    """A saved model, to score or explain documents and nothing else; for a linear one scikit-learn is not imported."""
    from ranksvm.estimators.base.linear_ranker import SAVED_LINEAR_RANKERS

    return _loaded(path, SAVED_LINEAR_RANKERS)


def _loaded(path: Path, classes: "dict[str, type]") -> "Model":
    from ranksvm.exceptions import ModelFileError
    from ranksvm.model_files.persistence import load_as

    try:
        model = load_as(path_to_open(path), classes)
    except ModelFileError:
        _check_order(path)
        raise
    if not hasattr(model, "predict"):
        raise ModelFileError(f"{path}: it holds a {type(model).__name__}, which has no predict method.")
    return model


def _check_order(path: Path) -> None:
    """Raise a UsageError if ``path``, given as the model, is not a model but another input file is one: they were
    swapped."""
    if not is_model(path):
        for option, other in inputs_given():
            if is_model(other):
                raise click.UsageError(
                    f"{path}, given as the model, is not one, but {other}, given as {option}, is: exchange them.",
                    click.get_current_context(),
                )


def model_scores(model: "Model", data: "RankingData", path: Path) -> "np.ndarray":
    """Scores of the rows of a data file, in their order."""
    return model_scores_on(None, model, data, path)[0]


def model_scores_on(
    device: str | None, model: "Model", data: "RankingData", path: Path
) -> "tuple[np.ndarray, str | None]":
    """The scores of `model_scores`, on the GPU ``device``, or on the CPU if it is None; and the name of the GPU."""
    from ranksvm.metrics.scorers import predict_scores

    model, X, _ = for_model(model, data, path)
    if device is not None:
        from ranksvm.estimators.base.ranker import predicted_on

        return predicted_on(device, model, X), device
    return predict_scores(model, X, data.query_ids), None


def read_numbers(path: Path, n_rows: int, word: str) -> "np.ndarray":
    """One number per line, in the order of the data, as `ranksvm predict` writes scores; files may be compressed.

    Parameters
    ----------
    path : Path
        The file.
    n_rows : int
        Number of rows of the data.
    word : str
        Noun for the numbers in messages, with a plural in s.

    Raises
    ------
    DataError
        When a line is not a number, the file is not text, or there are not ``n_rows`` numbers.
    """
    import numpy as np

    from ranksvm.exceptions import DataError

    lines = _text(path, "one number per line").split("\n")
    if not lines[-1].strip():
        lines.pop()
    try:
        numbers = np.array([float(line) for line in lines])
    except ValueError:
        place, line = next((i, line) for i, line in enumerate(lines, 1) if not _is_number(line))
        raise DataError(
            f"{titled(path)}:{place}: {line.strip()[:40]!r} is not a {word}: expected one number per line."
            + (" A TREC run is given as --run." if trec_kind(path) == "run" else "")
        ) from None
    if len(numbers) != n_rows:
        raise DataError(f"{titled(path)} has {counted(len(numbers), word)} but the data have {counted(n_rows, 'row')}.")
    return numbers


def read_pairs(path: Path, queries: "Queries") -> "tuple[np.ndarray, np.ndarray]":
    """Read a file of preferences, one per line: ``preferred other [weight]``, with row numbers of the data from 0.

    Empty lines and text after a ``#`` are ignored.

    Parameters
    ----------
    path : Path
        The file.
    queries : Queries
        Queries of the rows of the data: both rows of a pair must belong to one query.

    Returns
    -------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Row numbers (preferred, other).
    weights : ndarray of float64, shape (n_pairs,)
        Weight of each pair; 1 if a line gives none.

    Raises
    ------
    DataError
        When a line is not a pair (the message has its number), or there is no pair.
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
            raise DataError(
                f"{titled(path)}:{place}: {line.strip()[:40]!r} is not a pair: expected {PAIR_LINES}."
            ) from None
        if not (0 <= i < len(number) and 0 <= j < len(number)):
            wrong = j if 0 <= i < len(number) else i
            raise DataError(
                f"{titled(path)}:{place}: there is no row {wrong}: the data have rows 0 to {len(number) - 1}."
            )
        if i == j:
            raise DataError(f"{titled(path)}:{place}: row {i} is compared with itself.")
        if number[i] != number[j]:
            ids = [str(queries.ids[number[row]]) for row in (i, j)]
            raise DataError(
                f"{titled(path)}:{place}: row {i} is in query {ids[0]}, row {j} in query {ids[1]}: "
                "both must be in one query."
            )
        rows.append((i, j))
        weights.append(weight)
    if not rows:
        raise DataError(f"{titled(path)} holds no pair: expected {PAIR_LINES}.")
    return np.array(rows, dtype=np.int64), np.array(weights)


def _pair(words: list[str]) -> tuple[int, int, float]:
    preferred, other, *rest = words
    weight = float(rest[0]) if rest else 1.0
    if len(rest) > 1 or not 0.0 <= weight < math.inf:
        raise ValueError
    return int(preferred), int(other), weight


def _text(path: Path, expected: str) -> str:
    from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed
    from ranksvm.exceptions import DataError

    try:
        with _naming(path), sys.stdin.buffer if path == STDIN else open(path, "rb") as file:
            # read only once: it may be a pipe
            content = file.read()
        kind = compression_of(content)
        text = content if kind is None else b"".join(decompressed(io.BytesIO(content), kind))
        return text.decode("utf-8-sig")
    except BrokenStreamError as error:
        raise DataError(f"{titled(path)}: {error}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{titled(path)} is not text: expected {expected}.") from error


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the name of the file to an OSError that the block raises."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = titled(path)
        raise


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def names_of(paths: list[Path]) -> list[str]:
    """File names if they are distinct, else whole paths (numbered if even these are equal)."""
    names = [click.format_filename(path, shorten=True) for path in paths]
    if len(set(names)) < len(names):
        names = [click.format_filename(path) for path in paths]
    return [name if names.index(name) == i else f"{name} ({i + 1})" for i, name in enumerate(names)]


def row_labels(data: "RankingData") -> list[str]:
    """Document ids as text; the number of the row, from 0, if the file has none."""
    if data.docid is None:
        return [str(row) for row in range(data.n_rows)]
    return [str(docid) or str(row) for row, docid in enumerate(data.docid.tolist())]


def write_text(path: Path | None, lines: Iterable[str]) -> None:
    """Write lines to a file, atomically and compressed if its name says so, or to stdout if ``path`` is None."""
    if path is None:
        for line in lines:
            print_data(line)
        return
    from ranksvm._util.atomic_files import write_lines

    write_lines(path, lines)


class Judged:
    """Gives the rows of a file the labels of relevance judgments, a part at a time; 0 without a judgment."""

    def __init__(self, qrels: "Qrels", name: str):
        self._qrels, self._name = qrels, name
        self._n_unjudged = 0

    def __call__(self, parts: "Iterable[RankingData]") -> "Iterator[RankingData]":
        """The parts of a file, from its first row on, with the labels of the judgments.

        Raises
        ------
        DataError
            After the last part, when no row of the file has a judgment.
        """
        import numpy as np

        from ranksvm.datasets.runs import ids_of_rows, no_row_error, place_of
        from ranksvm.exceptions import DataError

        first, n_rows, self._n_unjudged = None, 0, 0
        for part in parts:
            place = place_of(self._qrels, *ids_of_rows(part, n_rows))
            part.y = np.where(place >= 0, self._qrels.label[place], 0.0)
            first = first or part
            n_rows += part.n_rows
            self._n_unjudged += int((place < 0).sum())
            yield part
        if first is not None and self._n_unjudged == n_rows:
            raise DataError(f"{self._name}: {no_row_error(first, self._qrels)}")

    def report(self, progress: Progress) -> None:
        """Say how many rows had no judgment."""
        if self._n_unjudged:
            rows = counted(self._n_unjudged, "row")
            progress.line(f"{self._name}: {rows} without a judgment, counted as not relevant (label 0)")


def read_judgments(path: Path | None) -> "Qrels | None":
    """The judgments of an option ``--qrels``, if it is given."""
    from ranksvm.datasets.trec_files import read_qrels

    return None if path is None else read_qrels("-" if path == STDIN else path)


def read_rankings(path: Path) -> "Run":
    """The rankings of a run."""
    from ranksvm.datasets.trec_files import read_run

    return read_run("-" if path == STDIN else path)


def trec_kind(path: Path) -> str | None:
    """Whether a file is a run, or judgments, by its first line: "run", "qrels" or None. A pipe is neither."""
    from ranksvm.datasets.trec_files import kind_of

    return kind_of(path) if path.is_file() else None


def refuse_trec(path: Path) -> None:
    """Refuse a run or judgments in place of data."""
    kind = trec_kind(path)
    if kind is not None:
        what = {"run": "a TREC run", "qrels": "TREC judgments, the labels of --qrels"}
        raise click.ClickException(f"{path} is no data file: it holds {what[kind]}, and no features.")


def candidates(run: "Run", depth: int | None, data: "RankingData", path: Path, progress: Progress) -> "np.ndarray":
    """Which rows of a data file are among the first ``depth`` documents of each query of a run.

    Raises
    ------
    DataError
        When there is none.
    """
    import numpy as np

    from ranksvm.datasets.runs import ids_of_rows, no_row_error, place_of
    from ranksvm.exceptions import DataError

    taken = np.ones(len(run), dtype=bool)
    if depth is not None:
        order = run.ordered()
        begins = np.flatnonzero(np.diff(run.queries.numbers()[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(begins, np.diff(begins, append=len(order)))
        taken[order] = rank < depth
    place = place_of(run, *ids_of_rows(data))
    rows = (place >= 0) & taken[place]
    if not rows.any():
        raise DataError(f"{titled(path)}: {no_row_error(data, run)}")
    lacking = int(taken.sum()) - int(rows.sum())
    if lacking:
        progress.line(f"{titled(path)} lacks {counted(lacking, 'document')} of the run, ignored")
    return rows
