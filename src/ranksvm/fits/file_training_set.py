"""The training set of rows that stay in their file."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.memory import in_words, memory_bytes, used_memory
from ranksvm._util.types import MemoryLimit
from ranksvm.data import Queries
from ranksvm.data.queries import check_grouped, id_array
from ranksvm.datasets.cache.reader import CacheFile, QueryRuns
from ranksvm.datasets.cache.rows import FileRows
from ranksvm.datasets.file_data import labels_of
from ranksvm.device.names import device_names
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.options import FitOptions
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.terms.parts.file_backend import BUFFER_SHARE, FileBackend

__all__ = ["FileTrainingSet", "block_bytes", "check_sample", "file_backend", "file_training_set", "planned_bytes"]

# A fit needs at least this many bytes of memory.
MIN_MEMORY = 8_000_000


# The sizes of a block and of the sample affect the last bits of a model, so they depend on the data and on
# memory_limit, never on the memory that happens to be free. They are planned for a third of the limit, because the
# process may already use the rest.
PLANNED_SHARE = 1 / 3
# The number of bytes that is planned for without a limit. The sample then has the full number of rows for up to 500
# float32 features.
PLANNED_WITHOUT_LIMIT = 5_000_000_000
# The share of the memory for the sample; BUFFER_SHARE is the share for blocks.
SAMPLE_SHARE = 0.3
# Number of blocks that fit together into the memory that is planned for blocks.
PLANNED_BLOCKS = 8


class FileTrainingSet(NamedTuple):
    """The training set of rows in a file: the counterpart of `TrainingSet` for rows in memory.

    Attributes
    ----------
    rows : FileRows
        Features and pairs.
    n_threads : int
        Number of threads.
    """

    rows: FileRows
    n_threads: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.n_rows

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.rows.n_queries

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.rows.file.n_features)


def file_training_set(training: TrainingArguments, options: FitOptions) -> FileTrainingSet:
    """The training set of rows that stay in their file.

    Parameters
    ----------
    training : TrainingArguments
        The arguments of ``fit``; X is `FileData`. Labels and queries that are given replace those of the file.
    options : FitOptions
        The hyper-parameters.

    Returns
    -------
    FileTrainingSet
        The training set.

    Raises
    ------
    DataError
        When lengths do not agree, or weights are invalid.
    OptionError
        When a GPU is asked for.
    """
    if device_names(options.device):
        raise OptionError(
            f"device={options.device!r}, but these data are read in passes, on the CPU: leave device at 'cpu', "
            "or raise memory_limit so that the rows are kept in memory."
        )
    training.check_pairs(options.pair_selection, options.pair_weighting)
    X, y, qid, group = training.X, training.y, training.qid, training.group
    file = CacheFile(X.path)
    if not file.n_features:
        raise DataError(f"{file.path} has no features.")
    if training.event is None and qid is None and not (file.has_qid and X.has_qid):
        check_grouped(None, group, file.n_rows)
    labels = None if y is None else labels_of(y, file.n_rows)
    rows = FileRows(
        file,
        _runs(file, qid, group),
        labels,
        selection=options.pair_selection,
        weighting=options.pair_weighting,
        **training.weights(),
    )
    return FileTrainingSet(rows, options.n_threads)


def _runs(file: CacheFile, qid: ArrayLike | None, group: ArrayLike | None) -> QueryRuns:
    if group is not None:
        if qid is not None:
            raise DataError("give qid or group, not both.")
        sizes = Queries.from_group(group, file.n_rows).sizes
        return QueryRuns.of_ids([np.repeat(np.arange(len(sizes)), sizes)])
    if qid is None:
        return QueryRuns.of(file)
    ids = id_array(qid)
    if len(ids) != file.n_rows:
        raise DataError(f"qid has {len(ids)} entries, but the file has {file.n_rows} rows.")
    return QueryRuns.of_ids([ids])


def file_backend(rows: FileRows, limit: MemoryLimit, n_threads: int) -> FileBackend:
    """The backend of rows in a file.

    Parameters
    ----------
    rows : FileRows
        The rows.
    limit : int, str or None
        The memory limit: see `memory_bytes`.
    n_threads : int
        Number of threads.

    Returns
    -------
    FileBackend
        The backend. Its blocks depend on the rows and the limit alone.

    Raises
    ------
    OptionError
        When there is not enough memory for a block.
    """
    return FileBackend(rows, memory_for(limit), n_threads, block_bytes(limit))


def block_bytes(limit: MemoryLimit) -> int:
    """The size of a block of a file: the bytes of its features."""
    return int(BUFFER_SHARE * planned_bytes(limit) / PLANNED_BLOCKS)


def planned_bytes(limit: MemoryLimit) -> float:
    """Number of bytes from which the sizes of blocks and samples are computed, whatever memory is free."""
    return PLANNED_SHARE * (PLANNED_WITHOUT_LIMIT if limit is None else memory_bytes(limit))


def check_sample(n_bytes: int, limit: MemoryLimit) -> None:
    """Refuse a sample that does not fit into memory: a smaller sample would give another model."""
    allowed = int(SAMPLE_SHARE * memory_for(limit))
    if n_bytes > allowed:
        instead = "give a memory_limit" if limit is None else "raise memory_limit"
        raise OptionError(
            f"memory_limit={limit!r}: the sample of the file has {in_words(n_bytes)}, and {in_words(allowed)} are left "
            f"for it: {instead}, on which the size of the sample depends."
        )


def memory_for(limit: MemoryLimit) -> int:
    """Bytes that a fit may use in addition to the present memory of the process.

    Parameters
    ----------
    limit : int, str or None
        The memory limit: see `memory_bytes`.

    Returns
    -------
    int
        The bytes.

    Raises
    ------
    OptionError
        When there is too little memory to start.
    """
    if limit is None:  # the free memory does not include what the process takes
        left = memory_bytes(limit)
        if left < MIN_MEMORY:
            raise OptionError(
                f"memory_limit=None: half of the free memory is {in_words(left)}, too little to read the file in "
                "parts: give a memory_limit, or end other programs."
            )
        return left
    allowed, used = memory_bytes(limit), used_memory()
    if allowed - used < MIN_MEMORY:
        raise OptionError(
            f"memory_limit={limit!r}: the process takes {in_words(used)} before the fit begins, which leaves too "
            f"little to read the file in parts: raise memory_limit to {in_words(used + 4 * MIN_MEMORY)} or more."
        )
    return allowed - used
