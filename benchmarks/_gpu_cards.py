"""GPUs as their data sheets describe them, and the kernels that an evaluation launches on them, for `gpu_static.py`."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm import RankingData
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.device import DeviceCosts, Variant
from ranksvm.device.cuda import BLOCKS_PER_MULTIPROCESSOR, LARGE_BLOCKS, N_THREADS, cached_bytes, large_block_bytes
from ranksvm.device.host import HostDevice
from ranksvm.fits.work import linear_work
from ranksvm.losses import LossSpec
from ranksvm.terms.device.dense_pass import PER_ROW
from ranksvm.terms.device.term import DeviceTerm

LOSS = LossSpec("squared_hinge")
# Threads of a warp, registers of a multiprocessor, and the unit in which registers are allocated to a warp.
WARP, REGISTERS, REGISTER_UNIT = 32, 65536, 256
# Float64 instructions when one document of a pair visits the pair: for the margin, the loss, and sums.
VISIT_INSTRUCTIONS = 8
# Assumed seconds of an evaluation with almost no work.
ROUND = 2e-5


@dataclass(frozen=True)
class Capability:
    """A compute capability, with figures from NVIDIA's tables.

    Attributes
    ----------
    warps, shared, shared_of_block : int
        Maximum number of warps and bytes of shared memory of a multiprocessor, and bytes of a block.
    """

    warps: int
    shared: int
    shared_of_block: int

    @property
    def reserved(self) -> int:
        """Bytes of shared memory that the driver takes for each block."""
        return 0 if self.shared_of_block == self.shared else 1024

    def occupancy(self, registers: int, shared: int = 0, n_threads: int = N_THREADS) -> float:
        """Share of the possible warps that run at a time, given registers per thread and shared bytes per block."""
        warps = n_threads // WARP
        of_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        blocks = min(REGISTERS // of_warp // warps, self.warps // warps)
        if shared:
            blocks = min(blocks, self.shared // (shared + self.reserved))
        return blocks * warps / self.warps


CAPABILITIES = {
    "sm_75": Capability(32, 64 << 10, 64 << 10),
    "sm_80": Capability(64, 164 << 10, 163 << 10),
    "sm_86": Capability(48, 100 << 10, 99 << 10),
    "sm_89": Capability(48, 100 << 10, 99 << 10),
    "sm_90": Capability(64, 228 << 10, 227 << 10),
    "sm_100": Capability(64, 228 << 10, 227 << 10),
    "sm_120": Capability(48, 100 << 10, 99 << 10),
}


@dataclass(frozen=True)
class Card:
    """A GPU, with figures from its data sheet.

    Attributes
    ----------
    name, arch : str
        Its name, and its compute capability.
    n_multiprocessors : int
        Number of multiprocessors.
    cache : int
        Bytes of the L2 cache.
    bandwidth, float64 : float
        Bytes per second of memory, and operations per second in float64 (two for a multiply-add).
    """

    name: str
    arch: str
    n_multiprocessors: int
    cache: int
    bandwidth: float
    float64: float

    @property
    def visit(self) -> float:
        """Seconds to visit a pair, if only arithmetic takes time."""
        return VISIT_INSTRUCTIONS * 2.0 / self.float64

    def costs(self) -> DeviceCosts:
        """The costs for "auto" according to the data sheet, if X is already on the GPU."""
        return DeviceCosts(ROUND, 0.0, 1.0 / self.bandwidth, self.visit, 0.0)


CARDS = (
    Card("T4", "sm_75", 40, 4 << 20, 320e9, 0.25e12),
    Card("A100", "sm_80", 108, 40 << 20, 2039e9, 9.7e12),
    Card("L40S", "sm_89", 142, 96 << 20, 864e9, 1.43e12),
    Card("H100", "sm_90", 132, 50 << 20, 3350e9, 34e12),
    Card("H200", "sm_90", 132, 50 << 20, 4800e9, 34e12),
)


class _Noted(HostDevice):
    """A device with the sizes of a card, which records launches without running them."""

    def __init__(self, card: Card):
        own = CAPABILITIES[card.arch]
        super().__init__(
            n_blocks=BLOCKS_PER_MULTIPROCESSOR * card.n_multiprocessors,
            n_threads=N_THREADS,
            large_block_bytes=large_block_bytes(own.shared, own.reserved, own.shared_of_block),
            cached_bytes=cached_bytes(card.cache),
        )
        self.n_large_blocks = LARGE_BLOCKS * card.n_multiprocessors
        self.launches: list[tuple[str, tuple, int, int]] = []

    def launch(self, variant: Variant, kernel: str, arguments: Any, *, n_blocks: int, shared: int = 0) -> None:
        self.launches.append((kernel, arguments, n_blocks, 8 * shared))


@dataclass
class Evaluation:
    """An evaluation of a linear model's objective on a card: its launches and its reads.

    Attributes
    ----------
    kept, cached, twice : int
        Rows that stay in shared memory, that are read again from the cache, and that are read from memory twice.
    row_bytes : int
        Bytes of a row.
    shared : int
        Maximum bytes of shared memory of a block of the fused kernel; 0 without one.
    visits : float
        Number of visits of pairs.
    launches : int
        Number of launches of kernels.
    fit : float
        Estimated seconds of a fit with X on the GPU, at the speeds in the data sheet.
    """

    row_bytes: int
    visits: float
    launches: int
    fit: float
    kept: int = 0
    cached: int = 0
    twice: int = 0
    shared: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.kept + self.cached + self.twice

    @property
    def n_bytes(self) -> int:
        """Bytes of X that are read from memory."""
        return (self.n_rows + self.twice) * self.row_bytes

    def seconds(self, card: Card) -> tuple[float, float]:
        """Lower bounds on the seconds for reading memory and for arithmetic."""
        return self.n_bytes / card.bandwidth, self.visits * card.visit


def evaluation(card: Card, data: RankingData) -> Evaluation:
    """The reads and launches of one evaluation of the objective on a card."""
    pairs = ComparablePairs.from_labels(Queries.from_qid(data.qid, data.n_rows), data.y)
    design, device = as_design_matrix(data.X), _Noted(card)
    term = DeviceTerm(device, design, LOSS.with_pairs(pairs))
    device.launches.clear()
    term.evaluate(np.zeros(data.n_features), None)
    before_rows = 0 if term._pass is None else term._pass._before_rows()
    fit = linear_work(LOSS, pairs, design)._replace(rows=0.0).on_gpu(card.costs())
    found = Evaluation(int(design.row_bytes), 2.0 * pairs.n_pairs, len(device.launches), fit)
    for kernel, arguments, n_blocks, shared in device.launches:
        if kernel == "scores":
            n_rows = arguments[5] - arguments[4]
            if n_rows * design.row_bytes <= device.cached_bytes:
                found.cached += n_rows
            else:
                found.twice += n_rows
        if kernel != "fused_loss":
            continue
        # these arguments follow 8 arguments for the pairs and 4 for the rows
        begin, n_tasks, room = arguments[12:15]
        sizes = np.diff(device.copy_out(begin))
        taken = before_rows + PER_ROW * sizes
        kept = int(np.minimum(sizes, 8 * (room - taken - taken % 2) // int(design.row_bytes)).sum())
        again, found.kept, found.shared = int(sizes.sum()) - kept, found.kept + kept, max(found.shared, shared)
        # between the two uses of a row, the blocks read whole tasks: if these fit into the cache, the row is still
        # there
        if min(n_blocks, n_tasks) * sizes.mean() * design.row_bytes <= card.cache:
            found.cached += again
        else:
            found.twice += again
    return found
