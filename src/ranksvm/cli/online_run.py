"""One run of ``ranksvm online``: rank a query, learn from it, and save a file from which to continue."""

import contextlib
import copy
import signal
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ranksvm.cli.features import matched, name_features, names_in
from ranksvm.cli.output.tables import queries

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.estimators.base.online_ranker import OnlineRanker
    from ranksvm.metrics import CumulativeMetrics

__all__ = ["CtrlC", "OnlineRun", "parts_of"]

# key of the state of a run in the notes of a model file
_NOTES = "online"


class CtrlC:
    """Delays Ctrl-C to the end of a block that must not be interrupted; elsewhere it acts at once."""

    def __init__(self) -> None:
        self._whole = self._came = False

    def __enter__(self) -> "CtrlC":
        self._previous = None
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if not self._whole:
            raise KeyboardInterrupt
        self._came = True

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """Context that delays Ctrl-C to its end."""
        self._whole = True
        try:
            yield
        finally:
            self._whole = False
        if self._came:
            self._came = False
            raise KeyboardInterrupt


@dataclass
class OnlineRun:
    """A ranker, its metrics so far, and a checksum of the queries it has seen.

    Parameters
    ----------
    learner : str
        Name of the learner.
    ranker : OnlineRanker
        The model.
    metrics : CumulativeMetrics
        Metrics of all queries so far, each ranked before it was learned from.
    checksum : int
        Checksum of the features and labels of all queries so far, in order.
    names : tuple of str, optional
        Names of the features, if the data have some.
    """

    learner: str
    ranker: "OnlineRanker"
    metrics: "CumulativeMetrics"
    checksum: int = 0
    names: tuple[str, ...] | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries so far."""
        return self.metrics.n_queries

    @property
    def is_whole(self) -> bool:
        """Whether every query that was learned from was evaluated too, so that the run can be resumed."""
        return self.n_queries > 0 and self.ranker.n_queries_ == self.n_queries

    def learn(self, data: "RankingData", source: str) -> "np.ndarray":
        """Rank and learn from some queries, one after another; return the scores by which each was ranked.

        Raises
        ------
        DataError
            When the ranker refuses them; the message says which queries these are.
        """
        from ranksvm.data.validation import check_finite
        from ranksvm.exceptions import DataError

        checksum = _checksum(data, self.checksum)
        try:
            if self.names is not None:  # the ranker does not know them
                check_finite(data.X, 1, self.names)
            scores = self.ranker.predict_then_learn(data.X, data.y, qid=data.qid)
        except DataError as error:
            raise DataError(f"{source}, rows from query {self.n_queries + 1} on: {error}") from None
        pointers = data.queries.pointers.tolist()
        for start, stop in pairwise(pointers):
            docid = None if data.docid is None else data.docid[start:stop]
            self.metrics.add(data.y[start:stop], scores[start:stop], docid)
        self.checksum = checksum
        return scores

    def save(self, path: Path, source: str) -> None:
        """Write the model, with all that `resumed` needs, atomically."""
        from ranksvm.model_files.persistence import save

        notes = {"learner": self.learner, "data": source, "checksum": self.checksum, "metrics": self.metrics.state}
        # Only the saved copy knows the names: the ranker takes columns by position, in the order made by `rest_of`.
        save(name_features(copy.copy(self.ranker), self.names), path, notes={_NOTES: notes})

    @staticmethod
    def notes(path: Path) -> dict[str, Any] | None:
        """The notes that `save` stored with a model; None for a file that it did not write."""
        from ranksvm.model_files.persistence import read_notes

        return (read_notes(path) or {}).get(_NOTES)

    def resumed(self, path: Path) -> "OnlineRun":
        """The run that wrote a file; it must have had the options of this one.

        Raises
        ------
        ModelFileError
            When the file is not a model, or was not written by ``ranksvm online``.
        OptionError
            When an option differs.
        """
        from ranksvm.exceptions import ModelFileError, OptionError
        from ranksvm.model_files.persistence import load

        notes = self.notes(path)
        if notes is None:
            raise ModelFileError(f"{path}: it was not written by `ranksvm online`, so there is nothing to resume.")
        if notes["learner"] != self.learner:
            raise OptionError(f"{path} was trained with --learner {notes['learner']}, not {self.learner}.")
        ranker = load(path)
        for name, before in ranker.get_params(deep=False).items():
            if before != (value := getattr(self.ranker, name)):
                raise OptionError(
                    f"{path} was trained with {name}={before!r}, not {value!r}: --resume needs the same options."
                )
        try:
            self.metrics.restore(notes["metrics"])
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from None
        names = names_in(ranker)
        if names is not None:
            del ranker.feature_names_in_
        return OnlineRun(self.learner, ranker, self.metrics, notes["checksum"], None if names is None else tuple(names))

    def rest_of(self, stream: "Iterator[RankingData]", source: str) -> "Iterator[RankingData]":
        """The rest of a stream after its first queries, which must be those that were learned from.

        Raises
        ------
        DataError
            When the queries differ or have another number of features, or the stream has fewer queries.
        """
        from ranksvm.exceptions import DataError

        left, checksum = self.n_queries, 0
        for unordered in stream:
            batch = self._in_order(unordered, source)
            if self.n_queries and batch.X.shape[1] != self.ranker.n_features_in_:
                raise DataError(
                    f"{source} has {batch.X.shape[1]} features, but the model has learned from "
                    f"{self.ranker.n_features_in_}: --resume needs the same data, and the same --n-features."
                )
            known, new = _divided(batch, left)
            if known is not None:
                left -= known.queries.n_queries
                checksum = _checksum(known, checksum)
                if left == 0 and checksum != self.checksum:
                    raise DataError(
                        f"the first {queries(self.n_queries)} of {source} are not the ones that the model has learned "
                        "from: --resume needs the same data."
                    )
            if new is not None:
                yield new
        if left:
            raise DataError(
                f"{source} has {queries(self.n_queries - left)}, but the model has learned from "
                f"{queries(self.n_queries)}: --resume needs the same data."
            )

    def _in_order(self, batch: "RankingData", source: str) -> "RankingData":
        """A batch with the features in the order of the very first batch."""
        from ranksvm.datasets.ranking_data import RankingData

        if self.n_queries == 0:
            self.names = batch.feature_names
        found = batch.feature_names
        if self.names is None or found is None or self.names == found:
            return batch
        X = matched(batch, self.names, len(self.names), Path(source), "the model", {})
        return RankingData(X, batch.y, batch.qid, batch.docid, self.names)


def parts_of(data: "RankingData", done: int, every: int) -> "Iterator[RankingData]":
    """The queries of a batch, split after each query whose number in the stream is a multiple of ``every``."""
    rest: RankingData | None = data
    while rest is not None:
        part, rest = _divided(rest, every - done % every)
        assert part is not None
        done += part.queries.n_queries
        yield part


def _divided(data: "RankingData", n_queries: int) -> "tuple[RankingData | None, RankingData | None]":
    """The first ``n_queries`` queries, and the others; None if there are none."""
    if n_queries == 0:
        return None, data
    if n_queries >= data.queries.n_queries:
        return data, None
    row = int(data.queries.pointers[n_queries])
    return data.select(slice(0, row)), data.select(slice(row, None))


def _checksum(data: "RankingData", so_far: int) -> int:
    """Checksum query by query, so that it does not depend on batches."""
    import numpy as np

    from ranksvm._util.checks import is_sparse

    X, pointers = data.X, data.queries.pointers.tolist()
    for start, stop in pairwise(pointers):
        parts = [data.y[start:stop]]
        if is_sparse(X):
            entries = slice(X.indptr[start], X.indptr[stop])
            parts += [X.data[entries], X.indices[entries].astype(np.int64)]
        else:
            parts.append(X[start:stop])
        for part in parts:
            so_far = zlib.crc32(np.ascontiguousarray(part).data, so_far)
    return so_far
