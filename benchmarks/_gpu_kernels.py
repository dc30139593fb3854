"""Exact kernel models on a device and on the CPU, which `gpu.py` times."""

import time
from dataclasses import dataclass, field

import numpy as np

from _common import data_folder, read, seconds
from _gpu_cases import REAL, made
from _gpu_fits import Place, places
from _problems import kernel_problem_of
from ranksvm import KernelRankSVM, RankingData, make_ranking
from ranksvm.kernels import kernel_matrix, kernel_named

# gamma and C, as for MQ2007-partial in benchmarks/results/kernel.md
GAMMA, C = 2.0**-3, 1.0
# Number of products that are timed, and the share of the free memory that a large Q takes.
PRODUCTS, PART = 10, 0.8
SEED = 0


@dataclass
class KernelFit:
    """Times of an exact fit on each processor."""

    name: str
    n_rows: int
    fits: dict[str, float] = field(default_factory=dict)
    products: dict[str, int] = field(default_factory=dict)
    objectives: dict[str, float] = field(default_factory=dict)
    making: dict[str, float] = field(default_factory=dict)
    product: dict[str, float] = field(default_factory=dict)


def kernel_fit(device: str, smoke: bool) -> KernelFit:
    """Time the exact fit to MQ2007, or to generated data of its shape."""
    name, data = _data(smoke)
    found = KernelFit(name, data.n_rows)
    for place in places(device):
        ranker = KernelRankSVM(C, gamma=GAMMA, device=place.device, n_jobs=place.n_jobs)
        found.fits[place.name] = seconds(lambda ranker=ranker: ranker.fit(data.X, data.y, qid=data.qid))
        found.products[place.name] = ranker.n_kernel_products_
        found.objectives[place.name] = ranker.objective_
        found.making[place.name], found.product[place.name] = _matrix(data, place)
    return found


def _data(smoke: bool) -> tuple[str, RankingData]:
    if smoke:
        return "tiny", make_ranking(10, 8, 5, random_state=SEED)
    folder = data_folder()
    if folder is not None and (folder / REAL["MQ2007"]).is_dir():
        return "MQ2007-partial fold 1", read(REAL["MQ2007"])
    return "MQ2007's shape, made", made("MQ2007")


def _matrix(data: RankingData, place: Place) -> tuple[float, float]:
    """Seconds to compute Q, and seconds of a product with it."""
    ranker = KernelRankSVM(C, gamma=GAMMA, device=place.device, n_jobs=place.n_jobs)
    problem = kernel_problem_of(ranker, data, GAMMA)
    made = seconds(lambda: problem.matrix.product(np.zeros(problem.matrix.n_rows)))
    b, times = np.linspace(-1.0, 1.0, problem.matrix.n_rows), []
    for _ in range(PRODUCTS):
        started = time.perf_counter()
        problem.matrix.product(b)
        times.append(time.perf_counter() - started)
    return made, min(times)


def large_product(device, smoke: bool) -> tuple[int, float, float]:
    """Number of rows of the largest Q that is stored, seconds to compute it, and seconds of a product."""
    n_rows = 100 if smoke else int(np.sqrt(PART * device.free_bytes / 4))
    X = np.random.default_rng(SEED).standard_normal((n_rows, 46), dtype=np.float32)
    started = time.perf_counter()
    matrix = kernel_matrix(kernel_named("rbf", gamma=0.02), X, memory=0, device=device)
    b = np.linspace(-1.0, 1.0, n_rows)
    matrix.product(b)
    making = time.perf_counter() - started
    return n_rows, making, min(seconds(lambda: matrix.product(b)) for _ in range(3))
