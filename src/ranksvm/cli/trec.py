"""Files of TREC on the command line: judgments instead of labels, runs as rankings of other systems."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ranksvm.cli.options.paths import STDIN, titled
from ranksvm.cli.output.progress import Progress
from ranksvm.cli.output.tables import counted

if TYPE_CHECKING:
    import numpy as np

    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.datasets.runs import Qrels, Run

__all__ = ["Judged", "candidates", "read_judgments", "read_rankings", "refuse_trec", "trec_kind"]


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
