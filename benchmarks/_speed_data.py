"""The data of the speed page: real sets, and made ones of the shapes that fits have been slow on."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from _common import data_folder, read
from ranksvm import RankingData, make_ranking

SEED = 0


@dataclass(frozen=True)
class Case:
    """Data and values of C, and the ratios to the published solver before there were loops for short lists.

    Parameters
    ----------
    name : str
        What the page calls it.
    load : callable
        Gives the data.
    Cs : tuple of float
        The values of C.
    before : mapping of str to tuple
        Accuracy -> one ratio (published time / ours) for each C, None where there was none; the goal is twice that.
    all_threads : bool
        Whether these ratios are of all processors; else of one thread.
    """

    name: str
    load: Callable[[], RankingData]
    Cs: tuple[float, ...]
    before: dict[str, tuple[float | None, ...]]
    all_threads: bool = False


def small_integers(n_queries: int) -> RankingData:
    """CSR rows of 44 counts, six of ten of them 0, in queries of 5 to 28 rows, with many equal rows and scores.

    An imitation of features such as numbers of matching words or clicks, whose labels are all but a linear function of
    them: few pairs are wrong at the optimum for large C, which is then far from where a solver first slows down. Counts
    follow a geometric law whose mean differs from column to column, and a quarter of the columns are indicators. A
    tenth of the rows repeat the row before.
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
    """50 rows of 245 normal features a query, with labels that are real numbers: a noisy linear function.

    The standard deviation of the features falls from 1 to 1/50, so that the small ones matter at large C only.
    """
    rng = np.random.default_rng(SEED)
    n_rows, n_features = 50 * n_queries, 245
    X = rng.standard_normal((n_rows, n_features)) * np.geomspace(1.0, 0.02, n_features)
    relevance = X @ rng.standard_normal(n_features)
    y = relevance / relevance.std() + 0.2 * rng.standard_normal(n_rows)
    return RankingData(X.astype(np.float32), y, np.repeat(np.arange(1, n_queries + 1), 50))


def cases(smoke: bool) -> list[Case]:
    """Every case that can be had here; tiny ones for a smoke test."""
    accuracies = ("default", "1e-5", "ours")

    def case(name, load, Cs, *before, all_threads=False):
        return Case(name, load, Cs, dict(zip(accuracies, before, strict=False)), all_threads)

    if smoke:
        return [
            case("small integers", lambda: small_integers(20), (1e-3,), (1.9,), (2.3,), (2.3,)),
            case("one list", lambda: make_ranking(1, 300, 5, n_levels=None, random_state=SEED), (1e-5,), (2.0,)),
        ]
    three, two = (1e-3, 1.0, 128.0), (1e-3, 1.0)
    made = [
        case(
            "small integers, 52,000 x 44 CSR",
            lambda: small_integers(3139),
            three,
            (1.9, 1.2, 0.4),
            (2.3, 2.3, 1.3),
            (2.3, 3.2, 2.1),
        ),
        case(
            "real labels, 1,000 x 245",
            lambda: real_labels(20),
            three,
            (0.5, 2.4, 6.7),
            (0.6, 3.4, 19),
            (0.6, 4.3, 29),
        ),
        case(
            "made, 200,040 x 136",
            lambda: make_ranking(1667, 120, 136, random_state=SEED),
            (1e-4, 1.0),
            (21, 17),
            (None, None),
            (21, None),
            all_threads=True,
        ),
        case(
            "distinct labels, 743,427 x 46, 731 a query",
            lambda: make_ranking(1017, 731, 46, n_levels=None, random_state=SEED),
            (2.0**-12,),
            (8.5,),
            all_threads=True,
        ),
        # the goal is a ratio of 4
        case(
            "one list, 300,000 x 20",
            lambda: make_ranking(1, 300_000, 20, n_levels=None, random_state=SEED),
            (1e-8,),
            (2.0,),
            all_threads=True,
        ),
        case(
            "one list of five levels, 300,000 x 20",
            lambda: make_ranking(1, 300_000, 20, n_levels=5, random_state=SEED),
            (1e-8,),
            (2.0,),
            all_threads=True,
        ),
    ]
    if data_folder() is None:
        return made
    real = [
        case("MQ2008", lambda: read("MQ2008"), three, (2.7, 7.4, 7.5), (2.8, 12, 14), (3.6, 17, 22)),
        case("OHSUMED", lambda: read("OHSUMED"), two, (4.5, 7.8), (4.5, 13), (8.9, 24)),
        case(
            "MQ2007-partial",
            lambda: read("MQ2007-partial"),
            two,
            (7.2, 20),
            (7.2, 41),
            (9.7, 53),
            all_threads=True,
        ),
        case("WikiQA", lambda: read("WikiQA-wordpairs", sparse=True), two, (2.2, None), (None, 2.4)),
    ]
    return real + made
