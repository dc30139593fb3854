"""Conversion of the arguments of ``fit`` to parts on a cluster or, for the dual solver, to rows in this process."""

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Future

from ranksvm._util.memory import check_fits, in_words
from ranksvm._util.types import MemoryLimit
from ranksvm.dask.cluster import Cluster, LostError
from ranksvm.dask.inputs import InputParts
from ranksvm.dask.listed_pairs import Listed, part_of_pairs
from ranksvm.dask.rows import ROW, Columns, Report, Rows, part_of, together
from ranksvm.dask.whole_queries import whole_parts
from ranksvm.data import Preferences, frames
from ranksvm.exceptions import ClusterError, DataError, NoComparablePairsError, RankSVMError
from ranksvm.terms.parts.term import PartitionedTerm

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Scheduler

__all__ = [
    "DescribeRows",
    "Prepared",
    "check_recomputable",
    "columns_of",
    "evaluation_set",
    "fit_arguments",
    "on_workers",
    "parts_of_rows",
    "prepared_rows",
    "refuse_no_pairs",
    "reports_of",
]

logger = logging.getLogger("ranksvm.dask")

# Function that is called with the rows of the original parts and their columns, before rows move to other parts.
DescribeRows = Callable[[list[Future], Columns], object]


@dataclass(eq=False)
class Prepared:
    """Rows on a cluster in parts of whole queries.

    Parameters
    ----------
    rows : list of Future
        The `Rows` of each part.
    columns : Columns
        Number and names of the features.
    largest_label : float
        The largest label.
    queries : ndarray of uint64
        The hashes of all queries, in the order in which they first appear in the data.
    n_partitions : int
        Largest number of parts. If the rows are prepared again with this number, they are divided in the same way.
    listed : Listed, optional
        The pairs, if the user listed them.
    described : object
        The result of ``describe`` of `prepared_rows`.
    """

    rows: list[Future]
    columns: Columns
    largest_label: float
    queries: np.ndarray
    n_partitions: int
    listed: Listed | None = None
    described: Any = None

    @property
    def n_queries(self) -> int:
        """Number of queries; pairs without query ids belong to one query."""
        return len(self.queries) if self.listed is None or self.listed.groups is None else 1


def prepared_rows(
    cluster: Cluster,
    inputs: InputParts,
    n_partitions: int | None,
    describe: DescribeRows | None = None,
) -> Prepared:
    """The validated rows on the cluster, in at most ``n_partitions`` parts, which have whole queries.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    inputs : InputParts
        The arguments of ``fit``.
    n_partitions : int or None
        Largest number of parts; None: as many as the workers have threads.
    describe : callable, optional
        Called with the rows of the original parts and their columns, before rows move to other parts.

    Returns
    -------
    Prepared
        The rows.

    Raises
    ------
    DataError
        When a part is invalid; the error names it and the row.
    """
    rows, reports = _computed(cluster, inputs)
    columns = columns_of(inputs, reports)
    check_recomputable(cluster, rows, inputs.names)
    described = None if describe is None else describe(rows, columns)
    parts = whole_parts(cluster, rows, reports)
    max_parts = cluster.n_threads if n_partitions is None else n_partitions
    if len(parts) > max_parts:
        sizes = cluster.results(cluster.mapped(Rows.__len__, parts))
        parts = _merged(cluster, parts, sizes, max_parts)
    queries = np.concatenate([report.queries for report in reports])
    _, first = np.unique(queries, return_index=True)
    largest = max(report.largest_label for report in reports)
    listed = inputs.listed
    if listed is not None and listed.groups is None and len(first) == 1:
        listed = listed.connected()
    return Prepared(parts, columns, largest, queries[np.sort(first)], max_parts, listed, described)


def parts_of_rows(
    cluster: Cluster, prepared: Prepared, selection: str, weighting: str, in_place: bool = False
) -> list[Future]:
    """The parts of the training problem: rows with their pairs.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    prepared : Prepared
        The rows.
    selection, weighting : str
        Which pairs count, and how they are weighted.
    in_place : bool
        Whether parts also have the rows without pairs.

    Returns
    -------
    list of Future
        The `Part` for each part of the rows.
    """
    n_features = prepared.columns.n_features
    if prepared.listed is not None:
        listed = on_workers(cluster, prepared.listed)
        return cluster.mapped(part_of_pairs, prepared.rows, listed, weighting, n_features, in_place)
    how = selection, weighting, prepared.largest_label, n_features, in_place
    return cluster.mapped(part_of, prepared.rows, *how)


def refuse_no_pairs(term: PartitionedTerm) -> None:
    """Raise NoComparablePairsError if a loss has no pair of positive weight."""
    if term.weight <= 0.0:
        raise NoComparablePairsError(
            "No comparable pair of positive weight: ranking needs two documents of one query with different labels, or "
            "listed pairs."
        )


def on_workers(cluster: Cluster, listed: Listed) -> Future:
    """Listed pairs as the result of a task: unlike scattered data, they are created again if their worker ends.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    listed : Listed
        The pairs.

    Returns
    -------
    Future
        The same pairs.
    """
    return cluster.client.submit(Listed, *listed, pure=False)


def check_recomputable(cluster: Cluster, rows: list[Future], names: Sequence[str]) -> None:
    """Warn if a part is created from scattered data, which are lost if their worker ends.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    rows : list of Future
        The rows of each part.
    names : sequence of str
        The names of the parts.
    """
    keys = [part.key for part in rows]
    try:
        lost = cluster.run_on_scheduler(_from_scattered, keys)
    except ClusterError:
        raise
    except Exception as error:  # the scheduler may refuse functions of clients, or lack this package
        logger.info("the scheduler does not tell which data were scattered: %s", error)
        return
    if lost:
        named = ", ".join(names[number] for number in lost[:5]) + (", ..." if len(lost) > 5 else "")
        warnings.warn(
            f"{len(lost)} of {len(names)} parts ({named}) were scattered from a client: they cannot be computed "
            "again, so the fit fails if their worker is lost. Load the data on the workers, or scatter them "
            "with broadcast=True.",
            UserWarning,
            stacklevel=2,
        )


def _from_scattered(keys: "list[Key]", dask_scheduler: "Scheduler") -> list[int]:
    """Numbers of the tasks whose data exist only once and cannot be computed again. Runs on the scheduler."""
    found = []
    for number, key in enumerate(keys):
        seen, waiting = set(), [dask_scheduler.tasks.get(key)]
        while waiting:
            task = waiting.pop()
            if task is None or task.key in seen:
                continue
            seen.add(task.key)
            if task.run_spec is None and len(task.who_has or ()) < 2:
                found.append(number)
                break
            waiting.extend(task.dependencies)
    return found


def _computed(cluster: Cluster, inputs: InputParts) -> tuple[list[Future], list[Report]]:
    """The rows of each part, and their reports; ids are text in all files if they are text in one of them."""
    rows = cluster.client.compute(inputs.rows)
    reports = reports_of(cluster, rows, inputs.names)
    if inputs.files and len({report.text_ids for report in reports}) > 1:
        rows = cluster.mapped(Rows.with_text_ids, rows)
        reports = reports_of(cluster, rows, inputs.names)
    return rows, reports


def reports_of(cluster: Cluster, rows: list[Future], names: Sequence[str]) -> list[Report]:
    """Reports of the parts; if a part of the user's collection fails, the DataError names it.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    rows : list of Future
        The rows of each part.
    names : sequence of str
        The names of the parts.

    Returns
    -------
    list of Report
        One for each part.

    Raises
    ------
    DataError
        When a part cannot be computed.
    """
    asked = cluster.mapped(Rows.report, rows)
    try:
        return cluster.results(asked)
    except (RankSVMError, LostError):
        raise
    except Exception as error:
        failed = [name for name, part in zip(names, rows, strict=True) if part.status == "error"]
        raise DataError(f"{failed[0] if failed else 'a part'} cannot be computed: {error}") from error


def columns_of(inputs: InputParts, reports: Sequence[Report]) -> Columns:
    """Number and names of the features, which must be the same in every file.

    Parameters
    ----------
    inputs : InputParts
        The arguments of ``fit``.
    reports : sequence of Report
        What each part has.

    Returns
    -------
    Columns
        The features.

    Raises
    ------
    DataError
        When the features of the files differ.
    """
    if inputs.columns.n_features is not None:
        return inputs.columns
    bases = [report.zero_based for report in reports]
    if True in bases and False in bases:
        raise DataError(
            f"{inputs.names[bases.index(False)]}: it has no feature id 0, so that its ids seem to start at 1, but "
            f"those of {inputs.names[bases.index(True)]} start at 0. If all start at 0, convert the files to caches: "
            "`ranksvm convert --zero-based`."
        )
    n_features = max(report.n_features for report in reports)
    if all(report.names is None for report in reports):  # lines of text omit the last features if they are 0
        return Columns(n_features)
    names = [report.names or default_names(report.n_features) for report in reports]
    for part, own in zip(inputs.names, names, strict=True):
        if own != names[0]:
            missing = [name for name in names[0] if name not in own]
            added = [name for name in own if name not in names[0]]
            what = f"lacks the column {missing[0]!r}" if missing else f"has a column {added[0]!r} more" if added else ""
            raise DataError(f"{part}: it {what or 'has its columns in another order'}, unlike {inputs.names[0]}.")
    return Columns(n_features, np.array(names[0], dtype=object))


def default_names(n_features: int) -> tuple[str, ...]:
    """The names that `RankingData.to_parquet` gives to features without names."""
    return tuple(f"f{number}" for number in range(1, n_features + 1))


def _merged(cluster: Cluster, rows: list[Future], sizes: Sequence[int], n_parts: int) -> list[Future]:
    """Merge consecutive parts, into parts of about equal numbers of rows."""
    middle = np.cumsum(sizes) - 0.5 * np.asarray(sizes)
    group = np.minimum((middle * n_parts / max(1, sum(sizes))).astype(int), n_parts - 1)
    groups = [[rows[place] for place in np.flatnonzero(group == number)] for number in range(n_parts)]
    client = cluster.client
    return [
        members[0] if len(members) == 1 else client.submit(together, members, pure=False)
        for members in groups
        if members
    ]


def fit_arguments(cluster: Cluster, inputs: InputParts, memory_limit: MemoryLimit) -> tuple[Columns, dict[str, Any]]:
    """The data as arguments of ``fit`` of a single-process estimator, with rows in the order of the data.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    inputs : InputParts
        The arguments of ``fit``.
    memory_limit : int, str or None
        Memory that the rows may take in this process: see `ranksvm._util.memory.memory_bytes`.

    Returns
    -------
    columns : Columns
        What is known of the features.
    arguments : dict
        ``X``, ``y`` or ``pairs`` and ``pair_weight``, ``qid`` and weights.

    Raises
    ------
    OptionError
        When the rows would take more memory.
    """
    parts, reports = _computed(cluster, inputs)
    columns = columns_of(inputs, reports)
    n_rows = sum(int(report.sizes.sum()) for report in reports)
    size = sum(float(report.sizes.sum()) * report.row_bytes for report in reports)
    # twice the size, for the parts that arrive and for the rows that are assembled from them
    check_fits(
        int(2 * size),
        memory_limit,
        f"solver='dual' needs all {n_rows:,} rows in this process",
        "Use solver='auto', which leaves them on the workers.",
    )
    logger.info("solver='dual' needs all rows in one process: %s rows (%s) are gathered", f"{n_rows:,}", in_words(size))
    assert columns.n_features is not None
    rows = together([part.with_features(columns.n_features) for part in cluster.results(parts)])
    X = rows.X
    if columns.names is not None:
        import pandas as pd

        X = pd.DataFrame(rows.X, columns=columns.names)
    by_row = {name: values for name, values in rows.weights.items() if name != ROW}
    if inputs.listed is None:
        return columns, {"X": X, "y": rows.y, "qid": rows.qid, **by_row}
    listed = inputs.listed
    qid = rows.qid if listed.groups is None else None
    return columns, {"X": X, "pairs": listed.rows, "pair_weight": listed.weight, "qid": qid, **by_row}


def evaluation_set(
    arguments: dict[str, Any],
) -> tuple[tuple[Any, ...] | Preferences, np.ndarray | None, np.ndarray | None]:
    """An evaluation set as items of ``eval_set``, ``eval_qid`` and ``eval_sample_weight`` of a local estimator.

    Parameters
    ----------
    arguments : dict
        The set as `fit_arguments` gives it.

    Returns
    -------
    tuple of (tuple or Preferences, ndarray or None, ndarray or None)
        The items.
    """
    if "pairs" not in arguments:
        labels = [arguments[name] for name in ("y", "event") if name in arguments]
        return (arguments["X"], *labels), arguments["qid"], arguments.get("sample_weight")
    X, (preferred, other) = arguments["X"], arguments["pairs"].T
    prompt = None if arguments["qid"] is None else arguments["qid"][preferred]
    chosen, rejected = frames.take_rows(X, preferred), frames.take_rows(X, other)
    return Preferences(chosen, rejected, prompt=prompt, weight=arguments["pair_weight"]), None, None
