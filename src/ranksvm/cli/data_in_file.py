"""Training data that stay in their file, or in its cache, because they do not fit into memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranksvm.cli.files import to_cache
from ranksvm.cli.options.paths import STDIN
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import counted, queries

if TYPE_CHECKING:
    from ranksvm.datasets.cache.reader import CacheFile, QueryRuns
    from ranksvm.datasets.file_data import FileData
    from ranksvm.datasets.runs import Qrels

__all__ = ["DataInFile", "data_in_file", "large_data"]


@dataclass
class DataInFile:
    """A cache larger than memory, with the attributes of `RankingData` that a training command uses.

    Parameters
    ----------
    file : CacheFile
        The cache.
    queries : QueryRuns
        Its queries.
    """

    file: "CacheFile"
    queries: "QueryRuns"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.file.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.file.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.file.feature_names

    @property
    def categories(self) -> dict[str, list[str]]:
        """The texts of the features that hold text."""
        return self.file.categories

    @property
    def features(self) -> "FileData":
        """What ``fit`` takes for X."""
        from ranksvm.datasets.file_data import FileData

        return FileData(self.file.path, (self.n_rows, self.n_features), True)


def large_data(path: Path, options: dict[str, Any]) -> bool:
    """Whether a file may be too large to fit a linear or additive model to it in memory."""
    from ranksvm._util import checks
    from ranksvm._util.memory import memory_bytes, memory_complaint
    from ranksvm.datasets.cache.conversion import memory_to_read
    from ranksvm.datasets.file_data import in_file

    limit = options["memory_limit"]
    checks.check(memory_limit=memory_complaint(limit))
    if path == STDIN or not path.is_file() or options["kernel"] or options["low_rank"]:
        return False
    if _is_cache(path):
        return in_file(str(path), limit)
    return memory_to_read(path) > memory_bytes(limit)


def data_in_file(
    path: Path, options: dict[str, Any], progress: Progress, watch: Stopwatch, qrels: "Qrels | None"
) -> DataInFile:
    """The data of a large file: of the file itself if it is a cache, else of its cache, which is written if absent."""
    from ranksvm.datasets.cache.reader import CacheFile, QueryRuns

    _refuse(options)
    cache = path
    if not _is_cache(path):
        cache = _cached(path, options, progress, watch, qrels)
    elif qrels is not None:
        raise click.UsageError("--qrels with a cache larger than memory: convert it with --qrels first.")
    progress.now(f"Reading the queries of {cache}")
    with watch("reading"):
        file = CacheFile(cache)
        found = DataInFile(file, QueryRuns.of(file))
    kind = "sparse" if file.sparse else "dense"
    counts = f"{counted(found.n_rows, 'row')}, {queries(found.queries.n_queries)}"
    features = f"{counted(found.n_features, 'feature')} ({kind})"
    progress.line(f"{cache}: {counts}, {features}; it is larger than memory and read in passes")
    return found


def _is_cache(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(12) == b"ranksvm-data"


def _cached(path: Path, options: dict[str, Any], progress: Progress, watch: Stopwatch, qrels: "Qrels | None") -> Path:
    from ranksvm.datasets.cache.conversion import cache_of, default_cache_folder

    folder = default_cache_folder() if options["cache_dir"] is None else options["cache_dir"]
    others = [] if options["qrels"] is None else [options["qrels"]]
    cache = cache_of(path, folder, options["reading"], *others)
    if cache.is_file():
        progress.line(f"{path}: found its cache {cache}")
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    to_cache(path, cache, progress, watch, options["reading"], qrels=qrels)
    progress.line(f"Wrote {cache}, its cache for later runs")
    return cache


def _refuse(options: dict[str, Any]) -> None:
    """Refuse options that need the rows in memory."""
    size = "TRAIN is larger than memory (--memory-limit)"
    if options["scaler"] != "none":
        raise click.UsageError(f"{size}: --scaler {options['scaler']} needs it in memory; scale the features first.")
    for name in ("pairs", "clicks"):
        if options[name] is not None:
            raise click.UsageError(f"{size}: --{name} needs it in memory; train on labels.")
