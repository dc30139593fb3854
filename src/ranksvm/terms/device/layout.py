"""What a data term keeps on a device: its rows (or blocks of rows that stream through), its pairs, and their order."""

import logging
from typing import NamedTuple

import numpy as np

from ranksvm._util.memory import in_words
from ranksvm.data import DenseDesign, DesignMatrix, TwoBlockDesign
from ranksvm.data.queries import query_ranges
from ranksvm.device.launcher import Launcher
from ranksvm.exceptions import DeviceMemoryError
from ranksvm.losses import PairwiseLoss
from ranksvm.terms.device.dense_pass import QueryPass
from ranksvm.terms.device.long_queries import LongQueries, is_long
from ranksvm.terms.device.pairs import DeviceOrder, PairsOnDevice, order_on_device
from ranksvm.terms.device.rows import DenseRows, DeviceDesign, StreamedRows, n_copied, rows_on
from ranksvm.terms.device.sparse_rows import SparseRows

__all__ = ["Layout", "layout_on", "layout_of_rows"]

logger = logging.getLogger("ranksvm.terms")

# X is copied to a device as a whole if it takes at most RESIDENT_SHARE of the free memory, minus OTHER_BYTES a row for
# scores, pairs and slopes. Otherwise blocks stream through. A block has STREAM_BYTES, or STREAM_SHARE of the free
# memory if that is less, or one query. (The device stores two blocks, rows for an explicit Hessian, and the data in
# addition to X.) There are at least MIN_BLOCKS blocks. Not yet measured.
RESIDENT_SHARE = 0.8
OTHER_BYTES = 160
STREAM_BYTES, STREAM_SHARE = 256 << 20, 1 / 8
MIN_BLOCKS = 4


class Layout(NamedTuple):
    """Data that a term keeps on a device.

    Attributes
    ----------
    order : DeviceOrder
        The order of the documents.
    rows : DenseRows, StreamedRows or SparseRows
        The rows.
    pairs : PairsOnDevice
        The pairs.
    long : LongQueries or None
        The queries with too many pairs to visit one by one, whose loss the host computes.
    query_pass : QueryPass or None
        One pass over X for value and gradient; None if X is sparse, or if ``long`` is not None.
    block_bytes : int or None
        Bytes of the rows that stream through at a time; None: all stay on the device.
    """

    order: DeviceOrder
    rows: DenseRows | StreamedRows | SparseRows
    pairs: PairsOnDevice
    long: LongQueries | None
    query_pass: QueryPass | None
    block_bytes: int | None


def layout_on(run: Launcher, design: DesignMatrix | DeviceDesign, loss: PairwiseLoss, n_threads: int = 1) -> Layout:
    """Copy the rows and pairs of a term to a device.

    If dense rows of the host are not expected to fit, or do not fit, they stream through: every product copies them to
    the device, one block after another.

    Parameters
    ----------
    run : Launcher
        The device, and the variant of its kernels.
    design : DesignMatrix or DeviceDesign
        The features.
    loss : SquaredHinge, HuberHinge or Hinge
        The loss over pairs of its rows.
    n_threads : int
        Number of threads for work on the host.

    Returns
    -------
    Layout
        The data on the device.

    Raises
    ------
    DeviceMemoryError
        When the device has too little memory, even for dense rows that stream through.
    """
    if not isinstance(design, DenseDesign | TwoBlockDesign):
        return _copied(run, design, loss, None, n_threads)
    device, size = run.device, int(design.row_bytes * n_copied(design, loss.pairs.n_rows))
    free = device.free_bytes
    why = f"X takes {in_words(size)} and {in_words(free)} are free"
    if size <= RESIDENT_SHARE * free - OTHER_BYTES * loss.pairs.n_rows:
        try:
            found = _copied(run, design, loss, None, n_threads)
        except DeviceMemoryError as error:
            why = f"there is no room for X, {in_words(size)} ({error})"
        else:
            logger.info("%s: X stays there, %s", device.name, in_words(size))
            return found
    # after the exception handler, because the arrays copied so far are freed together with the error
    block_bytes = min(size // MIN_BLOCKS, STREAM_BYTES, int(STREAM_SHARE * device.free_bytes))
    block = in_words(block_bytes)
    logger.info("%s: %s, so rows stream through in blocks of %s for every product", device.name, why, block)
    try:
        return _copied(run, design, loss, block_bytes, n_threads)
    except DeviceMemoryError as error:
        raise DeviceMemoryError(f"With X on the host, streamed through in blocks of {block}: {error}") from error


def layout_of_rows(rows: DenseRows | SparseRows, order: DeviceOrder, loss: PairwiseLoss, n_threads: int = 1) -> Layout:
    """The layout of a term whose rows are on a device already.

    Parameters
    ----------
    rows : DenseRows or SparseRows
        The rows of the pairs.
    order : DeviceOrder
        Their order: the result of `order_on_device` for these pairs.
    loss : SquaredHinge, HuberHinge or Hinge
        The loss over pairs of its rows.
    n_threads : int
        Number of threads for work on the host.

    Returns
    -------
    Layout
        The data on the device.
    """
    return _around(rows, loss, order, None, n_threads)


def _copied(
    run: Launcher, design: DesignMatrix | DeviceDesign, loss: PairwiseLoss, block_bytes: int | None, n_threads: int
) -> Layout:
    """The layout of host rows: all are copied now, or blocks of whole queries are copied for every product."""
    pairs = loss.pairs
    blocks, ranges = None, None
    if block_bytes is not None:
        blocks = list(query_ranges(pairs.pointers, max(1, int(block_bytes / design.row_bytes))))
    order = order_on_device(pairs, blocks)
    if blocks is not None:
        ranges = [(int(order.pointers[first]), int(order.pointers[last])) for first, last in blocks]
    rows = rows_on(run, design, order.rows_of(pairs), ranges, n_threads)
    return _around(rows, loss, order, block_bytes, n_threads)


def _around(
    rows: DenseRows | StreamedRows | SparseRows,
    loss: PairwiseLoss,
    order: DeviceOrder,
    block_bytes: int | None,
    n_threads: int,
) -> Layout:
    """The layout of a term over rows that are on the device or stream through it."""
    run = rows.launcher
    pairs = PairsOnDevice(run, loss.pairs, order)
    numbers = np.flatnonzero(is_long(loss.pairs))
    long = LongQueries(run.device, loss, numbers, order, n_threads) if len(numbers) else None
    query_pass = None
    if rows.n_rows and long is None and isinstance(rows, DenseRows | StreamedRows):
        query_pass = QueryPass(run, pairs.arguments, rows, order)
    return Layout(order, rows, pairs, long, query_pass, block_bytes)
