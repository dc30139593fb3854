"""Finds the queries whose rows are divided between parts, and moves rows so that one part has the whole query."""

import logging
import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from distributed import Client, Future

from ranksvm.dask.cluster import Cluster
from ranksvm.dask.rows import Report, Rows, together
from ranksvm.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Moves", "moves", "whole_parts"]

logger = logging.getLogger("ranksvm.dask")

# If more than this share of the rows would move, all rows are shuffled instead. Either way, a row is sent over the
# network at most once. But moves need a task for each pair of parts that share queries, at worst for all pairs.
MAX_MOVED_SHARE = 0.25
# The share of a worker's memory that one query may take: its rows are in memory twice while they are joined.
QUERY_SHARE = 0.3


class Moves(NamedTuple):
    """Which rows have to move to other parts, so that no query is in several parts.

    Attributes
    ----------
    pieces : dict of (int, int) to ndarray of uint64
        (source part, target part) -> the hashes of the queries whose rows move.
    n_rows : int
        Number of rows that move.
    n_queries : int
        Number of queries that are in several parts.
    n_parts : int
        Number of parts afterwards: large queries may get parts of their own.
    """

    pieces: dict[tuple[int, int], np.ndarray]
    n_rows: int
    n_queries: int
    n_parts: int


def moves(reports: Sequence[Report]) -> Moves:
    """The minimal set of rows to move: for a query in several parts, its rows outside the part with most of them.

    Parameters
    ----------
    reports : sequence of Report
        What the parts have.

    Returns
    -------
    Moves
        The rows that move. A query with more rows than the largest part gets a part of its own.
    """
    queries = np.concatenate([report.queries for report in reports])
    sizes = np.concatenate([report.sizes for report in reports])
    part = np.repeat(np.arange(len(reports)), [len(report.queries) for report in reports])
    _, number, n_parts = np.unique(queries, return_inverse=True, return_counts=True)
    shared = n_parts[number] > 1
    queries, sizes, part, number = queries[shared], sizes[shared], part[shared], number[shared]
    # by query, the part with most of its rows first; if equal, the first part
    order = np.lexsort((part, -sizes, number))
    queries, sizes, part, number = queries[order], sizes[order], part[order], number[order]
    first = np.flatnonzero(np.diff(number, prepend=-1))
    lengths = np.diff(first, append=len(number))
    to = np.repeat(part[first], lengths)
    total = np.add.reduceat(sizes, first) if len(first) else np.zeros(0)
    largest = max((int(report.sizes.sum()) for report in reports), default=0)
    own = np.flatnonzero(total > largest)
    for place, query in enumerate(own):
        to[first[query] : first[query] + lengths[query]] = len(reports) + place
    moved = to != part
    pairs = np.stack([part[moved], to[moved]], axis=1)
    order = np.lexsort((pairs[:, 0], pairs[:, 1]))
    pairs, hashes = pairs[order], queries[moved][order]
    cuts = np.flatnonzero(np.any(np.diff(pairs, axis=0), axis=1)) + 1
    begins = [0, *cuts] if len(pairs) else []
    pieces = {tuple(pairs[begin].tolist()): each for begin, each in zip(begins, np.split(hashes, cuts), strict=False)}
    return Moves(pieces, int(sizes[moved].sum()), len(first), len(reports) + len(own))


def whole_parts(cluster: Cluster, rows: list[Future], reports: Sequence[Report]) -> list[Future]:
    """Move the rows into parts of whole queries.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    rows : list of Future
        The `Rows` of each part.
    reports : sequence of Report
        Their reports.

    Returns
    -------
    list of Future
        The `Rows` of each part: the same futures if no query is in several parts.

    Raises
    ------
    DataError
        When the rows of one query do not fit into a worker.
    """
    needed = moves(reports)
    if not needed.n_queries:
        return rows
    n_rows = sum(int(report.sizes.sum()) for report in reports)
    row_bytes = max(report.row_bytes for report in reports)
    _check_sizes(cluster, rows, reports, row_bytes)
    size = f"{needed.n_rows:,} of {n_rows:,} rows ({needed.n_rows * row_bytes / 1e6:,.1f} MB)"
    if needed.n_rows <= MAX_MOVED_SHARE * n_rows:
        logger.info("queries in several parts: %d; %s move to where most of them are", needed.n_queries, size)
        return _moved(cluster.client, rows, needed)
    logger.warning(
        "queries in several parts: %d; %s would move, so all %s MB are shuffled by query instead. Data sorted by query "
        "need no shuffle.",
        needed.n_queries,
        size,
        f"{n_rows * row_bytes / 1e6:,.1f}",
    )
    return _shuffled(cluster.client, rows)


def _check_sizes(cluster: Cluster, rows: list[Future], reports: Sequence[Report], row_bytes: float) -> None:
    """Refuse a query that is too large for any worker."""
    limit = QUERY_SHARE * cluster.memory()
    if not limit:
        return
    queries, number = np.unique(np.concatenate([report.queries for report in reports]), return_inverse=True)
    sizes = np.bincount(number, np.concatenate([report.sizes for report in reports]))
    worst = int(np.argmax(sizes))
    if sizes[worst] * row_bytes <= limit:
        return
    part = next(place for place, report in enumerate(reports) if queries[worst] in report.queries)
    name_future = cluster.client.submit(_name_of, rows[part], int(queries[worst]), pure=False)
    name = cluster.results([name_future])[0]
    raise DataError(
        f"query {name!r} has {int(sizes[worst]):,} rows ({sizes[worst] * row_bytes / 1e9:.2f} GB), too many for one "
        f"worker: the smallest has {cluster.memory() / 1e9:.2f} GB, of which a query may take {QUERY_SHARE:.0%}. "
        "Use larger workers, or a sample of that query's rows."
    )


def _name_of(rows: Rows, query: int) -> object:
    return rows.name_of(query)


def _moved(client: Client, rows: list[Future], needed: Moves) -> list[Future]:
    """Move rows between parts; return the parts afterwards."""
    pieces: dict[int, list[Future]] = {}
    leaving: dict[int, list[np.ndarray]] = {}
    for (source, target), hashes in needed.pieces.items():
        pieces.setdefault(target, []).append(client.submit(_taken, rows[source], hashes, pure=False))
        leaving.setdefault(source, []).append(hashes)
    found: list[Future] = []
    for target in range(needed.n_parts):
        kept = rows[target] if target < len(rows) else None
        removed = np.concatenate(leaving[target]) if target in leaving else None
        if kept is not None and removed is None and target not in pieces:
            found.append(kept)
        else:
            found.append(client.submit(_assembled, kept, removed, pieces.get(target, []), pure=False))
    return found


def _taken(rows: Rows, hashes: np.ndarray) -> Rows:
    return rows.of_queries(hashes)


def _assembled(kept: Rows | None, removed: np.ndarray | None, pieces: list[Rows]) -> Rows:
    own = [] if kept is None else [kept if removed is None else kept.of_queries(removed, without=True)]
    return together(own + pieces)


def _shuffled(client: Client, rows: list[Future]) -> list[Future]:
    """Divide the rows into new parts by the hashes of their queries, with Dask's peer-to-peer shuffle."""
    import dask.dataframe as dd

    n = len(rows)
    labels = _labels(n)
    packed = [client.submit(_packed, part, number, labels, pure=False) for number, part in enumerate(rows)]
    frame = dd.from_delayed(packed, meta=_empty(), verify_meta=False)
    shuffled = frame.shuffle(on="label", npartitions=n, shuffle_method="p2p")
    return [client.submit(_unpacked, part, rows[0], pure=False) for part in client.compute(shuffled.to_delayed())]


def _labels(n_parts: int) -> np.ndarray:
    """For each part, a label for which Dask's shuffle sends rows to this part.

    The shuffle takes a hash of pandas modulo the number of parts. If Dask used another hash, the parts would be less
    even, but all queries would still be whole.
    """
    import pandas as pd

    candidates = np.arange(50 * n_parts + 100)
    hashes = pd.util.hash_pandas_object(pd.DataFrame({"label": candidates}), index=False).to_numpy()
    to = hashes % np.uint64(n_parts)
    parts, first = np.unique(to, return_index=True)
    labels = np.arange(n_parts)
    labels[parts.astype(int)] = candidates[first]
    return labels


def _empty() -> "pd.DataFrame":
    import pandas as pd
    import pyarrow as pa

    payload = pd.Series([], dtype=pd.ArrowDtype(pa.large_binary()))
    ints = pd.Series([], dtype=np.int64)
    return pd.DataFrame({"label": ints, "source": ints, "payload": payload})


def _packed(rows: Rows, source: int, labels: np.ndarray) -> "pd.DataFrame":
    """A table with one line for each part to which rows of this part go."""
    import pandas as pd

    n_parts = len(labels)
    to = (rows.report().queries % np.uint64(n_parts)).astype(np.int64)[rows.queries.numbers()]
    pieces = [pickle.dumps(rows.taken(np.flatnonzero(to == target)), protocol=5) for target in range(n_parts)]
    table = _empty()
    columns = {"label": labels, "source": np.full(n_parts, source), "payload": pieces}
    return pd.DataFrame({name: pd.Series(values, dtype=table[name].dtype) for name, values in columns.items()})


def _unpacked(table: "pd.DataFrame", any_rows: Rows) -> Rows:
    """The rows in the order of their original parts, which a shuffle does not keep."""
    table = table.sort_values(["source", "label"])
    if not len(table):
        return any_rows.taken(np.arange(0))
    return together([pickle.loads(bytes(piece)) for piece in table["payload"]])
