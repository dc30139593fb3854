"""The data of the speed page: real data sets, and generated data of shapes on which fits were slow."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from _common import data_folder, read
from ranksvm import RankingData, make_ranking

SEED = 0


@dataclass(frozen=True)
class Case:
    """Data, values of C, and the goals for fits.

    Parameters
    ----------
    name : str
        Name on the page.
    load : callable
        Gives the data.
    Cs : tuple of float
        The values of C.
    all_threads : bool
        Whether the goals are for all processors, and not for one thread.
    least : float
        Goal: the smallest ratio of the published solver's time to ours.
    """

    name: str
    load: Callable[[], RankingData]
    Cs: tuple[float, ...]
    all_threads: bool = False
    least: float = 1.5


def small_integers(n_queries: int) -> RankingData:
    """CSR rows of 44 counts, 60 % of which are 0, in queries of 5 to 28 rows, with many equal rows and scores.

    The features imitate numbers of matching words or clicks. Labels are nearly a linear function of them. So few pairs
    are wrong at the optimum for large C, and this optimum is far from the point at which a solver first slows down.
    Counts follow a geometric distribution whose mean differs between columns, and a quarter of the columns are
    indicators. A tenth of the rows repeat the previous row.
    """
    rng = np.random.default_rng(SEED)
    sizes = rng.integers(5, 29, size=n_queries)
    n_rows, n_features = int(sizes.sum()), 44
    there = rng.random((n_rows, n_features)) < rng.uniform(0.1, 0.7, size=n_features)
    counts = np.where(there, rng.geometric(rng.uniform(0.15, 0.9, size=n_features), (n_rows, n_features)), 0)
    counts[:, : n_features // 4] = np.minimum(counts[:, : n_features // 4], 1)
    repeated = np.flatnonzero(rng.random(n_rows) < 0.1)[1:]
    counts[repeated] = counts[repeated - 1]
    relevance = counts @ rng.standard_normal(n_features)
    relevance = relevance / relevance.std() + 0.01 * rng.standard_normal(n_rows)
    y = np.searchsorted(np.quantile(relevance, (0.55, 0.8, 0.95)), relevance).astype(np.float64)
    X = scipy.sparse.csr_matrix(counts.astype(np.float32))
    return RankingData(X, y, np.repeat(np.arange(1, n_queries + 1), sizes))


def real_labels(n_queries: int) -> RankingData:
    """Queries of 50 rows with 245 normal features; labels are real numbers, a noisy linear function of the features.

    The standard deviation of the features falls from 1 to 1/50, so that the small features matter only at large C.
    """
    rng = np.random.default_rng(SEED)
    n_rows, n_features = 50 * n_queries, 245
    X = rng.standard_normal((n_rows, n_features)) * np.geomspace(1.0, 0.02, n_features)
    relevance = X @ rng.standard_normal(n_features)
    y = relevance / relevance.std() + 0.2 * rng.standard_normal(n_rows)
    return RankingData(X.astype(np.float32), y, np.repeat(np.arange(1, n_queries + 1), 50))


def cases(smoke: bool) -> list[Case]:
    """All cases whose data are available; tiny ones for a smoke test."""
    if smoke:
        return [
            Case("small integers", lambda: small_integers(20), (1e-3,)),
            Case("one list", lambda: make_ranking(1, 300, 5, n_levels=None, random_state=SEED), (1e-5,), least=4.0),
        ]
    three, two = (1e-3, 1.0, 128.0), (1e-3, 1.0)
    made = [
        Case("small integers, 52,000 x 44 CSR", lambda: small_integers(3139), three),
        Case("real labels, 1,000 x 245", lambda: real_labels(20), three),
        Case("made, 200,040 x 136", lambda: make_ranking(1667, 120, 136, random_state=SEED), (1e-4, 1.0), True),
        Case(
            "distinct labels, 743,427 x 46, 731 a query",
            lambda: make_ranking(1017, 731, 46, n_levels=None, random_state=SEED),
            (2.0**-12,),
            True,
        ),
        Case(
            "one list, 300,000 x 20",
            lambda: make_ranking(1, 300_000, 20, n_levels=None, random_state=SEED),
            (1e-8,),
            True,
            4.0,
        ),
        Case(
            "one list of five levels, 300,000 x 20",
            lambda: make_ranking(1, 300_000, 20, n_levels=5, random_state=SEED),
            (1e-8,),
            True,
            4.0,
        ),
    ]
    if data_folder() is None:
        return made
    real = [
        Case("MQ2008", lambda: read("MQ2008"), three),
        Case("OHSUMED", lambda: read("OHSUMED"), two),
        Case("MQ2007-partial", lambda: read("MQ2007-partial"), two, True),
        Case("WikiQA", lambda: read("WikiQA-wordpairs", sparse=True), two),
    ]
    return real + made
