"""The fits that are tracked from version to version, with upper bounds on their counts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from _common import data_folder, read
from _speed_data import real_labels, small_integers
from ranksvm import KernelRankSVM, RankingData, RankSVM, make_ranking

SEED = 0


class Counts(NamedTuple):
    """Numbers of iterations, evaluations (passes for value and gradient) and Hessian products of a fit."""

    iterations: int
    evaluations: int
    products: int


@dataclass(frozen=True)
class Case:
    """A fit that is tracked.

    Parameters
    ----------
    load : callable
        Gives the data.
    model : callable
        Gives the unfitted estimator, with one thread.
    most : Counts
        Upper bounds on the counts, which the tests check.
    dataset : str or None
        Name of the real data that the fit needs.
    """

    load: Callable[[], RankingData]
    model: Callable[[], Any]
    most: Counts
    dataset: str | None = None

    def available(self) -> bool:
        """Whether the data are available."""
        folder = data_folder()
        return self.dataset is None or (folder is not None and (folder / self.dataset).is_dir())


def linear(**options: Any) -> Callable[[], RankSVM]:
    """A linear model with one thread."""
    return lambda: RankSVM(n_jobs=1, **options)


def real(dataset: str, most: Counts, **options: Any) -> Case:
    """A fit to the training part of fold 1."""
    return Case(lambda: read(dataset), linear(**options), most, dataset)


def words() -> RankingData:
    """A quarter of the training queries of WikiQA as CSR rows of pairs of words: many more features than rows."""
    data = read("WikiQA-wordpairs", sparse=True)
    return data.select(np.flatnonzero(data.qid % 4 == 0))


def listed() -> RankingData:
    """Queries of two rows, like two answers to compare, with too many features for an explicit Hessian."""
    return make_ranking(2_000, 2, 200, n_levels=2, random_state=SEED)


def text_like() -> RankingData:
    """CSR rows of 20 of 20,000 features."""
    return make_ranking(100, 20, 20_000, density=0.001, random_state=SEED)


def long_list() -> RankingData:
    """One query of distinct labels."""
    return make_ranking(1, 20_000, 20, n_levels=None, random_state=SEED)


def dense() -> RankingData:
    """Rows of 136 features; only a few, because valgrind emulates fused multiply-add slowly."""
    return make_ranking(40, 120, 136, random_state=SEED)


def kernel_rows() -> RankingData:
    """Few rows for a kernel."""
    return make_ranking(40, 20, 10, random_state=SEED)


def kernel() -> KernelRankSVM:
    """An exact RBF kernel."""
    return KernelRankSVM(kernel="rbf", gamma=0.05, C=0.1, n_jobs=1, random_state=SEED)


# The bounds are about a fifth above the counts that were measured when they were set (baseline, AVX2 and AVX-512 loops
# gave the same counts), because libraries and processors round differently. If a change reduces the counts, lower the
# bounds. Each of the two processes of `track.py` runs every other case; in this order they execute about as many
# instructions.
CASES: dict[str, Case] = {
    "mq2008": real("MQ2008", Counts(5, 6, 9), C=1.0),
    "mq2008-hinge": real("MQ2008", Counts(10, 17, 23), C=2.0**-8, loss="hinge"),
    "ohsumed": real("OHSUMED", Counts(3, 4, 3), C=1.0),
    "wikiqa": Case(words, linear(C=1.0), Counts(12, 12, 0), "WikiQA-wordpairs"),
    "dense-small-C": Case(dense, linear(C=1e-4), Counts(6, 7, 7)),
    "dense": Case(dense, linear(C=1.0), Counts(8, 9, 11)),
    "small-integers": Case(lambda: small_integers(300), linear(C=128.0), Counts(32, 46, 47)),
    "tron-text": Case(text_like, linear(C=1.0, solver="tron"), Counts(17, 27, 370)),
    "real-labels": Case(lambda: real_labels(10), linear(C=1.0), Counts(11, 12, 85)),
    "two-rows-a-query": Case(listed, linear(C=1.0), Counts(16, 25, 19)),
    "long-list": Case(long_list, linear(C=1e-6), Counts(5, 6, 5)),
    "kernel-rbf": Case(kernel_rows, kernel, Counts(6, 8, 28)),
}


def fit(case: Case, data: RankingData) -> Any:
    """The fitted estimator."""
    return case.model().fit(data.X, data.y, qid=data.qid)


def counts(model: Any) -> Counts:
    """The counts of a fit."""
    history = model.history_
    return Counts(int(model.n_iter_), int(history["evaluations"][-1]), int(history["hessian_products"][-1]))


def relative_gap(model: Any) -> float:
    """The relative duality gap of a fit."""
    return float(np.divide(model.duality_gap_, model.objective_))
