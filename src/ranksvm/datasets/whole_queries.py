"""Conversion of blocks of rows, as read from a file, to batches of whole queries."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from ranksvm._util.checks import is_integer
from ranksvm.data import frames
from ranksvm.datasets.letor.windows import join_strings
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError

__all__ = ["checked_batch_queries", "whole_queries"]


def checked_batch_queries(batch_queries: int) -> int:
    """The validated number of queries of a batch; OptionError if it is invalid."""
    if not is_integer(batch_queries, 1):
        raise OptionError(f"batch_queries must be a positive integer, got {batch_queries!r}.")
    return int(batch_queries)


def whole_queries(blocks: Iterable[RankingData], batch_queries: int, name: str) -> Iterator[RankingData]:
    """Rows in batches of ``batch_queries`` queries; a query is a run of rows with one id.

    Parameters
    ----------
    blocks : iterable of RankingData
        The rows, in order; a query may begin in one block and end in another.
    batch_queries : int
        Number of queries of a batch.
    name : str
        The file, for messages.

    Yields
    ------
    RankingData
        A batch. It ends early if it already contains the id of the next query; the last batch may be smaller.

    Raises
    ------
    DataError
        When a block has no query ids, which mark the ends of queries. An error that ``blocks`` raises is passed on
        after all complete queries before it.
    """
    rest: list[RankingData] = []  # rows of a query that may continue in the next block
    try:
        for block in blocks:
            if block.qid is None:
                raise DataError(f"{name} has no query ids (qid:...): a stream is cut where the query id changes.")
            if rest and _is_one_query(rest[-1], block):
                rest.append(block)  # a query that spans many blocks, which are joined once
                continue
            rows = _joined([*rest, block])
            cuts = [0, *_cuts(np.asarray(rows.qid), batch_queries)]
            for start, stop in pairwise(cuts):
                yield rows.select(slice(start, stop))
            rest = [rows.select(slice(cuts[-1], None))]
    except DataError:
        # complete queries are yielded before the error
        if rest and (last := _starts(np.asarray((rows := _joined(rest)).qid))[-1]):
            yield rows.select(slice(0, int(last)))
        raise
    if rest:
        yield _joined(rest)


def _starts(qid: np.ndarray) -> np.ndarray:
    """First row of each run of equal ids."""
    return np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))


def _cuts(qid: np.ndarray, batch_queries: int) -> Iterator[int]:
    """Rows at which a batch begins, except the first."""
    starts = _starts(qid)
    seen: set = set()
    for query, start in zip(qid[starts].tolist(), starts.tolist(), strict=True):
        if len(seen) == batch_queries or query in seen:
            yield start
            seen.clear()
        seen.add(query)


def _is_one_query(before: RankingData, block: RankingData) -> bool:
    last, ids = np.asarray(before.qid)[-1], np.asarray(block.qid)
    return bool((ids == ids[0]).all()) and str(last) == str(ids[0])


def _joined(blocks: list[RankingData]) -> RankingData:
    if len(blocks) == 1:
        return blocks[0]
    docid = None
    if any(block.docid is not None for block in blocks):
        docid = _join_ids([np.zeros(block.n_rows, "U1") if block.docid is None else block.docid for block in blocks])
    return RankingData(
        frames.stacked(*(block.X for block in blocks)),
        np.concatenate([block.y for block in blocks]),
        _join_ids([block.qid for block in blocks]),
        docid,
        blocks[0].feature_names,
    )


def _join_ids(arrays: list) -> np.ndarray:
    if all(array.dtype == arrays[0].dtype for array in arrays):
        return np.concatenate(arrays)
    return join_strings(arrays)
