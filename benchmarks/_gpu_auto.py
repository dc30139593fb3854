"""Compare the estimates of ``device="auto"`` with the seconds that fits take on a GPU and on the CPU, for `gpu.py`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from _common import least_seconds
from _problems import linear_problem_of
from ranksvm import KernelRankSVM, RankingData, RankSVM, make_ranking
from ranksvm._util.threads import available_cpus
from ranksvm.data import as_design_matrix
from ranksvm.device import Device, DeviceCosts
from ranksvm.fits.work import PREPARATION, PREPARATION_OF_ROW, Work, kernel_work, linear_work
from ranksvm.losses import LossSpec

SEED = 0
# Fits of linear models: rows, documents per query, features, loss.
LINEAR = (
    (1_000, 20, 10, "squared_hinge"),
    (10_000, 20, 46, "squared_hinge"),
    (10_000, 20, 46, "hinge"),
    (10_000, 1000, 46, "squared_hinge"),
    (30_000, 100, 46, "squared_hinge"),
    (100_000, 20, 10, "squared_hinge"),
    (100_000, 100, 46, "squared_hinge"),
    (100_000, 100, 136, "hinge"),
    (100_000, 1000, 46, "squared_hinge"),
    (300_000, 100, 136, "squared_hinge"),
    (1_000_000, 100, 46, "squared_hinge"),
)
# Fits of exact kernels: rows and features.
KERNEL = ((500, 10), (2_000, 46), (5_000, 46), (10_000, 46))
TINY = ((200, 20, 5, "squared_hinge"),), ((60, 5),)
REPEATS = 3
LONG = 1.0


@dataclass(frozen=True)
class Choice:
    """Times of a fit on CPU and GPU (without compilation), and the choice of "auto"."""

    name: str
    estimated: tuple[float, float]  # processor, GPU
    taken: tuple[float, float]
    chose: str
    auto: float
    work: Work
    n_bytes: float

    @property
    def regret(self) -> float:
        """The seconds on the chosen processor, divided by those on the faster one."""
        return self.taken[self.chose != "cpu"] / min(self.taken)


def choices(device: Device, costs: DeviceCosts, smoke: bool) -> Iterator[Choice]:
    """Run the fits of all sizes of the grid.

    Parameters
    ----------
    device : Device
        The GPU that "auto" considers: the one that was calibrated last.
    costs : DeviceCosts
        The costs that the calibration measured.
    smoke : bool
        Whether to use tiny sizes.

    Yields
    ------
    Choice
        The fits of a size.
    """
    linear, kernel = TINY if smoke else (LINEAR, KERNEL)
    for n_rows, length, n, loss in linear:
        data = make_ranking(n_rows // length, length, n, random_state=SEED)
        name = f"{n_rows:,} x {n}, lists of {length}, {loss}"
        problem = linear_problem_of(RankSVM(loss=loss, device="cpu"), data)
        work = linear_work(LossSpec(loss), problem.objective.term.loss.pairs, as_design_matrix(data.X))
        yield _choice(name, device, costs, work, data, lambda **where: RankSVM(loss=loss, **where))  # noqa: B023
    for n_rows, n in kernel:
        data = make_ranking(n_rows // 20, 20, n, random_state=SEED)
        work = kernel_work(n_rows, n, 4, precomputed=False)
        name = f"exact rbf kernel, {n_rows:,} x {n}"
        yield _choice(name, device, costs, work, data, lambda **where: KernelRankSVM(**where))


def _choice(
    name: str, device: Device, costs: DeviceCosts, work: Work, data: RankingData, model: Callable[..., Any]
) -> Choice:
    def seconds(place: str) -> tuple[float, Any]:
        # an untimed fit first, because the first fit on a GPU waits until its kernels are compiled
        ranker = model(device=place).fit(data.X, data.y, qid=data.qid)
        return least_seconds(lambda: ranker.fit(data.X, data.y, qid=data.qid), REPEATS, LONG), ranker

    on_cpu, on_gpu = seconds("cpu")[0], seconds(device.name)[0]
    auto, ranker = seconds("auto")
    estimated = work.on_cpu(available_cpus()), work.on_gpu(costs, device.free_bytes)
    return Choice(name, estimated, (on_cpu, on_gpu), str(ranker.device_), auto, work, data.X.nbytes)


def fitted_preparation(found: list[Choice]) -> tuple[float, float]:
    """The values of PREPARATION and PREPARATION_OF_ROW in `fits/work.py` that match the fits of linear models best.

    The least-squares fit has three more unknowns: seconds and seconds per byte of X that both processors need, and a
    factor for the CPU's estimates.
    """
    equations, seconds = [], []
    for one in found:
        if one.work.kernel == "pair_values":
            continue
        (cpu, gpu), (on_cpu, on_gpu) = one.estimated, one.taken
        gpu -= PREPARATION + PREPARATION_OF_ROW * one.work.rows
        equations += [np.array([1.0, one.n_bytes, cpu, 0.0, 0.0]) / on_cpu]
        equations += [np.array([1.0, one.n_bytes, 0.0, 1.0, one.work.rows]) / on_gpu]
        seconds += [1.0, 1.0 - gpu / on_gpu]
    return tuple(nnls(np.array(equations), np.array(seconds))[0][3:].tolist())
