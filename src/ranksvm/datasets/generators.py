"""Synthetic ranking problems with a known solution."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ranksvm._util.checks import is_integer
from ranksvm._util.random_states import random_numbers
from ranksvm._util.threads import effective_n_jobs, parallel_map
from ranksvm._util.types import Features
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import OptionError

if TYPE_CHECKING:
    from scipy import sparse

__all__ = ["make_ranking", "make_ranking_stream"]

# Number of values of X from one random stream; constant, so that a seed gives the same data with any number of threads.
_BLOCK_VALUES = 1 << 20
# Below this density X is CSR, as in `read_letor`.
_DENSE_FROM = 0.25


@overload
def make_ranking(
    n_queries: int = ...,
    n_docs: int | tuple[int, int] = ...,
    n_features: int = ...,
    *,
    n_levels: int | None = ...,
    level_probabilities: str | ArrayLike = ...,
    density: float = ...,
    noise: float = ...,
    dtype: DTypeLike = ...,
    return_coef: Literal[False] = ...,
    random_state: int | np.random.RandomState | None = ...,
    n_jobs: int | None = ...,
) -> RankingData: ...


@overload
def make_ranking(
    n_queries: int = ...,
    n_docs: int | tuple[int, int] = ...,
    n_features: int = ...,
    *,
    n_levels: int | None = ...,
    level_probabilities: str | ArrayLike = ...,
    density: float = ...,
    noise: float = ...,
    dtype: DTypeLike = ...,
    return_coef: Literal[True],
    random_state: int | np.random.RandomState | None = ...,
    n_jobs: int | None = ...,
) -> tuple[RankingData, np.ndarray]: ...


def make_ranking(
    n_queries: int = 100,
    n_docs: int | tuple[int, int] = 50,
    n_features: int = 20,
    *,
    n_levels: int | None = 5,
    level_probabilities: str | ArrayLike = "skewed",
    density: float = 1.0,
    noise: float = 0.5,
    dtype: DTypeLike = np.float32,
    return_coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> RankingData | tuple[RankingData, np.ndarray]:
    """Generate ranking data whose labels follow a known weight vector.

    Nonzero features are standard normal. The latent relevance of a row is ``X @ coef`` (variance 1 over the rows) plus
    normal noise. The label of a row is the level of its relevance: levels are cut at quantiles over all rows, as
    ``level_probabilities`` says, so queries differ in their number of good documents.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    n_docs : int or (int, int), default=50
        Rows of each query, or the range (both ends included) from which each query's number is drawn.
    n_features : int, default=20
        Number of columns.
    n_levels : int or None, default=5
        Number of labels: 0, 1, ..., n_levels - 1. None: all labels of a query are distinct, 0, 1, ... by relevance.
    level_probabilities : "skewed", "uniform" or array-like of shape (n_levels,), default="skewed"
        Share of the rows with each label. "skewed": decreasing geometrically; the best label is 16 times rarer than the
        worst, so with five levels each share is half of the previous one.
    density : float, default=1.0
        Share of the values of X that are not 0; below a quarter X is CSR.
    noise : float, default=0.5
        Standard deviation of the noise; 0 makes labels a function of ``X @ coef``.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of X.
    return_coef : bool, default=False
        Whether to return the weight vector as well.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed; the same seed gives the same data, for any number of threads.
    n_jobs : int, optional
        Number of threads; None means all processors.

    Returns
    -------
    data : RankingData
        X, y (float64) and qid (1, 2, ...), query by query.
    coef : ndarray of float64, shape (n_features,)
        The weight vector; only with ``return_coef=True``.

    Raises
    ------
    OptionError
        When an option has an invalid value.

    Examples
    --------
    >>> data, coef = make_ranking(10, 12, 4, return_coef=True, random_state=0)
    >>> data
    RankingData(120 rows, 4 features, 10 queries, dense float32)
    """
    shares = _shares(n_levels, level_probabilities)
    _check_count("n_queries", n_queries)
    _check(n_features, density, noise, dtype)
    random = random_numbers(random_state)
    seed = np.random.SeedSequence(random.randint(0, 1 << 32, size=4, dtype=np.uint64).tolist())
    head, *streams = seed.spawn(1 + -(-n_queries * _most_docs(n_docs) * n_features // _BLOCK_VALUES))
    rng = np.random.default_rng(head)
    pointers = np.concatenate(([0], np.cumsum(_sizes(n_docs, n_queries, rng))))
    n_rows = int(pointers[-1])
    coef = rng.standard_normal(n_features)
    coef /= np.linalg.norm(coef) * np.sqrt(density)
    X, relevance = _features(n_rows, coef, density, noise, np.dtype(dtype), streams, effective_n_jobs(n_jobs))
    qid = np.repeat(np.arange(1, n_queries + 1), np.diff(pointers))
    y = _ranks(relevance, qid, pointers) if shares is None else _levels(relevance, shares)
    data = RankingData(X, y, qid)
    return (data, coef) if return_coef else data


def make_ranking_stream(
    n_queries: int | None = None,
    n_docs: int | tuple[int, int] = 50,
    n_features: int = 20,
    *,
    n_levels: int | None = 5,
    level_probabilities: str | ArrayLike = "skewed",
    drift: str | None = None,
    drift_queries: int = 1000,
    noise: float = 0.5,
    dtype: DTypeLike = np.float32,
    return_coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Iterator[Any]:
    """Generate a stream of queries, possibly without end, whose labels follow weights that may change.

    A query is generated as in `make_ranking` with dense X. Labels are cut at the quantiles of the normal distribution
    of the latent relevance.

    Parameters
    ----------
    n_queries : int or None, default None
        Number of queries; None: without end.
    n_docs : int or (int, int), default 50
        Rows of each query, or the range (both ends included) from which each query's number is drawn.
    n_features : int, default 20
        Number of columns.
    n_levels : int or None, default 5
        Number of labels: 0, 1, ..., n_levels - 1. None: all labels of a query are distinct, 0, 1, ... by relevance.
    level_probabilities : "skewed", "uniform" or array-like of shape (n_levels,), default "skewed"
        Expected share of the rows with each label, as in `make_ranking`; ``[0.999, 0.001]`` for two levels makes one
        document in a thousand relevant.
    drift : {None, "sudden", "gradual"}, default None
        How the weight vector changes. None: not at all; "sudden": every ``drift_queries`` queries a new vector is
        drawn; "gradual": its direction rotates in equal steps and reaches a new vector every ``drift_queries`` queries.
    drift_queries : int, default 1000
        Number of queries from a weight vector to the next.
    noise : float, default 0.5
        Standard deviation of the noise; 0 makes labels a function of ``X @ coef``.
    dtype : {numpy.float32, numpy.float64}, default numpy.float32
        Type of X.
    return_coef : bool, default False
        Whether to yield each query with its weight vector.
    random_state : int, numpy.random.RandomState or None, default None
        Seed.

    Returns
    -------
    iterator of RankingData
        Queries, each with X, y (float64) and qid (1, 2, ...). With ``return_coef=True`` the iterator yields pairs: a
        query and its weight vector, an ndarray of float64, shape (n_features,).

    Raises
    ------
    OptionError
        When an option has an invalid value.

    Examples
    --------
    >>> stream = make_ranking_stream(3, 12, 4, drift="gradual", random_state=0)
    >>> [query.qid[0].item() for query in stream]
    [1, 2, 3]
    """
    shares = _shares(n_levels, level_probabilities)
    if n_queries is not None:
        _check_count("n_queries", n_queries)
    _check_count("drift_queries", drift_queries)
    _check(n_features, 1.0, noise, dtype)
    _most_docs(n_docs)
    if drift not in (None, "sudden", "gradual"):
        raise OptionError(f"drift must be None, 'sudden' or 'gradual', got {drift!r}.")
    from scipy.special import ndtri

    seeds = random_numbers(random_state).randint(0, 1 << 32, size=4, dtype=np.uint64).tolist()
    rng = np.random.default_rng(seeds)
    type_of_X: np.dtype = np.dtype(dtype)
    cuts = None if shares is None else ndtri(np.clip(np.cumsum(shares)[:-1], 0, 1)) * np.hypot(1.0, noise)

    def queries() -> Iterator[RankingData | tuple[RankingData, np.ndarray]]:
        numbers = itertools.count(1) if n_queries is None else range(1, n_queries + 1)
        for number, coef in zip(numbers, _weights(n_features, drift, drift_queries, rng), strict=False):
            X = rng.standard_normal((int(_sizes(n_docs, 1, rng)[0]), n_features), dtype=type_of_X.type)
            relevance = X @ coef + noise * rng.standard_normal(len(X))
            if cuts is None:
                y = np.argsort(np.argsort(relevance)).astype(np.float64)
            else:
                y = np.searchsorted(cuts, relevance, side="left").astype(np.float64)
            data = RankingData(X, y, np.full(len(X), number))
            yield (data, coef) if return_coef else data

    return queries()


def _weights(n_features: int, drift: str | None, drift_queries: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Weight vectors of length 1, one for each query, without end."""
    coef = _direction(n_features, rng)
    while drift is None:
        yield coef
    while True:
        following = _direction(n_features, rng)
        angle = np.arccos(np.clip(coef @ following, -1.0, 1.0))
        for step in range(drift_queries):
            # along the great circle through both vectors, which is undefined if they are parallel
            part = step / drift_queries if drift == "gradual" and np.sin(angle) > 1e-9 else 0.0
            way = np.sin((1.0 - part) * angle) * coef + np.sin(part * angle) * following if part else coef
            yield way / np.linalg.norm(way)
        coef = following


def _direction(n_features: int, rng: np.random.Generator) -> np.ndarray:
    coef = rng.standard_normal(n_features)
    return coef / np.linalg.norm(coef)


def _check_count(name: str, value: object) -> None:
    if not is_integer(value, 1):
        raise OptionError(f"{name} must be a positive integer, got {value!r}.")


def _check(n_features: int, density: float, noise: float, dtype: DTypeLike) -> None:
    _check_count("n_features", n_features)
    if not 0 < density <= 1:
        raise OptionError(f"density must be above 0 and at most 1, got {density!r}.")
    if not noise >= 0:
        raise OptionError(f"noise must be 0 or more, got {noise!r}.")
    if dtype not in (np.float32, np.float64, "float32", "float64", np.dtype(np.float32), np.dtype(np.float64)):
        raise OptionError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}.")


def _most_docs(n_docs: Any) -> int:
    low, high = (n_docs, n_docs) if is_integer(n_docs) else tuple(n_docs)
    if not (is_integer(low, 1) and is_integer(high, low)):
        raise OptionError(f"n_docs must be a positive integer or a range (low, high) of them, got {n_docs!r}.")
    return int(high)


def _sizes(n_docs: Any, n_queries: int, rng: np.random.Generator) -> np.ndarray:
    if is_integer(n_docs):
        return np.full(n_queries, n_docs, dtype=np.int64)
    return rng.integers(n_docs[0], n_docs[1], size=n_queries, endpoint=True)


def _shares(n_levels: int | None, level_probabilities: str | ArrayLike) -> np.ndarray | None:
    if n_levels is None:
        return None
    if not is_integer(n_levels, 1):
        raise OptionError(f"n_levels must be None or a positive integer, got {n_levels!r}.")
    if isinstance(level_probabilities, str):
        if level_probabilities not in ("skewed", "uniform"):
            raise OptionError(
                f"level_probabilities must be 'skewed', 'uniform' or an array, got {level_probabilities!r}."
            )
        ratio = 16.0 if level_probabilities == "skewed" else 1.0
        shares = ratio ** -(np.arange(n_levels) / max(1, n_levels - 1))
    else:
        shares = np.asarray(level_probabilities, dtype=np.float64)
        if shares.shape != (n_levels,) or not np.all(shares >= 0) or not np.isclose(shares.sum(), 1):
            raise OptionError(f"level_probabilities must be {n_levels} non-negative numbers that add up to 1.")
    return shares / shares.sum()


def _features(
    n_rows: int,
    coef: np.ndarray,
    density: float,
    noise: float,
    dtype: np.dtype,
    streams: list[np.random.SeedSequence],
    n_threads: int,
) -> tuple[Features, np.ndarray]:
    n_features = len(coef)
    step = max(1, _BLOCK_VALUES // n_features)
    starts = range(0, n_rows, step)
    # there may be more blocks than streams: blocks of whole rows have slightly fewer values than _BLOCK_VALUES
    if len(starts) > len(streams):
        streams = streams + streams[0].spawn(len(starts) - len(streams))
    relevance = np.empty(n_rows)
    X = None if density < _DENSE_FROM else np.empty((n_rows, n_features), dtype=dtype)

    def make(number: int) -> "sparse.csr_matrix | None":
        rng = np.random.default_rng(streams[number])
        rows = slice(starts[number], min(starts[number] + step, n_rows))
        if X is None:
            block = _sparse_block(rng, rows.stop - rows.start, n_features, density, dtype)
        else:
            block = X[rows]
            rng.standard_normal(dtype=dtype.type, out=block)
            if density < 1:
                block[rng.random(block.shape, dtype=np.float32) >= density] = 0
        relevance[rows] = block @ coef.astype(dtype) + noise * rng.standard_normal(len(relevance[rows]))
        return block if X is None else None

    blocks = parallel_map(make, range(len(starts)), n_threads)
    if X is not None:
        return X, relevance
    from scipy import sparse

    return sparse.vstack(blocks, format="csr"), relevance


def _sparse_block(
    rng: np.random.Generator, n_rows: int, n_features: int, density: float, dtype: np.dtype
) -> "sparse.csr_matrix":
    """A block in which each value, independently, is nonzero with probability ``density``."""
    from scipy import sparse

    # Poisson hits per cell with mean -log(1 - density) leave a cell empty with probability 1 - density.
    hits = rng.poisson(-np.log1p(-density) * n_rows * n_features)
    cells = np.unique(rng.integers(0, n_rows * n_features, size=hits))
    rows, columns = np.divmod(cells, n_features)
    pointers = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n_rows))))
    values = rng.standard_normal(len(cells), dtype=dtype.type)
    return sparse.csr_matrix((values, columns.astype(np.int32), pointers), shape=(n_rows, n_features))


def _levels(relevance: np.ndarray, shares: np.ndarray) -> np.ndarray:
    cuts = np.quantile(relevance, np.clip(np.cumsum(shares)[:-1], 0, 1))
    return np.searchsorted(cuts, relevance, side="left").astype(np.float64)


def _ranks(relevance: np.ndarray, qid: np.ndarray, pointers: np.ndarray) -> np.ndarray:
    order = np.lexsort((relevance, qid))
    y = np.empty(len(relevance))
    y[order] = np.arange(len(relevance)) - np.repeat(pointers[:-1], np.diff(pointers))
    return y
