"""Landmarks: the documents whose kernel values with all others approximate the whole kernel matrix."""

from itertools import islice, pairwise
from typing import Any

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.threads import one_blas_thread, parallel_map
from ranksvm._util.types import Features, RandomState
from ranksvm.exceptions import OptionError
from ranksvm.kernels.functions import Kernel

__all__ = ["LANDMARK_METHODS", "choose_landmarks"]

LANDMARK_METHODS = ("uniform", "kmeans++", "leverage")
# Landmarks that are not drawn uniformly are chosen from at most this number of rows, because every candidate costs one
# kernel value per landmark.
CANDIDATES = 1 << 16
# Number of rows whose kernel values with a sample are computed at a time, and number of landmarks whose kernel values
# with all candidates are computed at a time.
BLOCK_ROWS = 1024
BATCH = 32
# Leverage scores depend on a number of leading eigenvalues: this fraction of the number of landmarks. The proof of a
# bound on the error needs 1 / (4 log n_landmarks) (Musco & Musco, Algorithm 3). Measured on MQ2008 and on clusters of
# different sizes, a quarter has the smallest error; with a half and more, scores of ordinary documents approach 1.
LEADING_PART = 0.25
# The doubling samples of ``leverage`` start with at most this many rows, or with at most n_landmarks if that is more.
MIN_ROWS = 32


def choose_landmarks(
    kernel: Kernel,
    X: Features,
    n_landmarks: int,
    *,
    method: str = "uniform",
    random_state: RandomState = None,
    n_threads: int = 1,
) -> np.ndarray:
    """Rows of X that represent all rows, without duplicate documents.

    ``uniform``: all documents have equal probability. No kernel values are computed.

    ``kmeans++``: documents are drawn one after another, with probability proportional to their squared distance, in the
    kernel's space, from the nearest landmark so far, ``k(x, x) + k(z, z) - 2 k(x, z)``. The error of the approximation
    is measured in the same space. Costs ``n_landmarks`` kernel values per candidate, somewhat more if few documents are
    distinct.

    ``leverage``: documents are drawn with probability proportional to the approximate ridge leverage score, which is
    large for documents that others approximate poorly. It is computed from samples that double in size. Costs up to
    twice as many kernel values, and ``2 * n_landmarks^2`` multiplications per candidate.

    Candidates are all documents, or 65,536 random ones if there are more.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : ndarray or CSR matrix of floats, shape (n_rows, n_features)
        Documents.
    n_landmarks : int
        Requested number of landmarks.
    method : {"uniform", "kmeans++", "leverage"}
        How they are drawn.
    random_state : int, numpy.random.RandomState or None
        Seed; the same seed gives the same landmarks, for any number of threads.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of int64, shape (at most n_landmarks,)
        Row numbers, ascending. Fewer than requested if there are not enough distinct documents; each is represented by
        its first row.

    Raises
    ------
    OptionError
        When there is no such method.

    References
    ----------
    Arthur & Vassilvitskii, SODA 2007; with kernels, Oglic & Gärtner, ICML 2017. Musco & Musco, NeurIPS 2017,
    Algorithm 3.
    """
    if method not in LANDMARK_METHODS:
        raise OptionError(f"landmarks must be one of {', '.join(map(repr, LANDMARK_METHODS))}, got {method!r}.")
    from sklearn.utils import check_random_state

    random = check_random_state(random_state)
    order = random.permutation(X.shape[0])
    if method == "uniform":
        return np.sort(_different_documents(X, order, n_landmarks))
    rows = _different_documents(X, order, max(CANDIDATES, n_landmarks))
    if len(rows) <= n_landmarks:
        return np.sort(rows)
    candidates = X[rows].astype(np.float64)
    if method == "kmeans++":
        chosen = _by_distance(kernel, candidates, n_landmarks, random)
    else:
        chosen = _by_leverage(kernel, candidates, n_landmarks, random, n_threads)
    return np.sort(rows[chosen])


def _different_documents(X: Features, order: np.ndarray, max_documents: int) -> np.ndarray:
    """The first ``max_documents`` distinct documents among rows in this order."""
    rows: dict[bytes, int] = {}
    at = 0
    while len(rows) < max_documents and at < len(order):
        part = order[at : at + max(BLOCK_ROWS, max_documents)]
        for row, key in zip(part, _keys(X[part]), strict=True):
            rows.setdefault(key, row)
        at += len(part)
    return np.fromiter(islice(rows.values(), max_documents), dtype=np.int64)


def _keys(X: Any) -> list[bytes]:
    """Keys that are equal for documents with equal features."""
    if not is_sparse(X):
        return [document.tobytes() for document in X + 0.0]  # -0.0 is 0.0
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = X.indptr
    return [X.indices[start:stop].tobytes() + X.data[start:stop].tobytes() for start, stop in pairwise(ends)]


def _by_distance(kernel: Kernel, X: Features, n_landmarks: int, random: np.random.RandomState) -> np.ndarray:
    """Rows drawn one after another by their squared distance from the nearest one drawn before.

    Several rows are drawn at a time by the current distances. Each is accepted with a probability equal to its updated
    distance divided by its old one. The result has the same distribution as drawing one by one, but kernel values are
    computed in blocks.
    """
    diagonal = kernel.diagonal(X)
    chosen: list[int] = []
    nearest = np.ones(X.shape[0])  # the first is drawn uniformly
    while len(chosen) < n_landmarks and (total := nearest.sum()) > 0.0:
        drawn = random.choice(X.shape[0], size=BATCH if chosen else 1, p=nearest / total)
        to_drawn = diagonal[:, np.newaxis] + diagonal[drawn] - 2.0 * kernel.block(X, X[drawn])
        before = nearest[drawn]
        first = not chosen
        for row, then, distance, chance in zip(
            drawn, before, to_drawn.T, random.random_sample(len(drawn)), strict=True
        ):
            if chance * then >= nearest[row]:
                continue
            chosen.append(int(row))
            nearest = np.maximum(distance, 0.0) if first else np.minimum(nearest, np.maximum(distance, 0.0))
            nearest[chosen] = 0.0  # exactly, not up to round-off
            if len(chosen) == n_landmarks:
                break
    return np.array(chosen)


def _by_leverage(
    kernel: Kernel, X: Features, n_landmarks: int, random: np.random.RandomState, n_threads: int
) -> np.ndarray:
    """Rows drawn, without replacement, by approximate ridge leverage scores.

    The scores of a small sample are computed from the whole sample. The scores of a sample of twice the size are
    computed from rows of the small one, drawn by their scores; and so on, up to all rows. Rows are already in random
    order.
    """
    diagonal = kernel.diagonal(X)
    sizes = [X.shape[0]]
    while sizes[-1] > max(n_landmarks, MIN_ROWS):
        sizes.append(-(-sizes[-1] // 2))
    sample, weights = np.arange(sizes[-1]), np.ones(sizes[-1])
    for size in reversed(sizes[:-1] or sizes):
        scores = _leverage_scores(kernel, X[:size], diagonal[:size], sample, weights, n_landmarks, n_threads)
        chance = np.minimum(1.0, scores * (n_landmarks / scores.sum()))
        drawn = random.random_sample(size) < chance
        if size < X.shape[0] and drawn.any():
            sample, weights = np.flatnonzero(drawn), 1.0 / chance[drawn]
    # A weighted draw without replacement: each row gets an exponential random time with its score as the rate, and the
    # rows with the shortest times are drawn.
    times = random.standard_exponential(len(scores))
    times = np.divide(times, scores, out=np.full(len(times), np.inf), where=scores > 0.0)
    return np.argsort(times, kind="stable")[:n_landmarks]


def _leverage_scores(
    kernel: Kernel,
    X: Features,
    diagonal: np.ndarray,
    sample: np.ndarray,
    weights: np.ndarray,
    n_landmarks: int,
    n_threads: int,
) -> np.ndarray:
    """``(k(x, x) - k(x, S) (K_SS + lambda / weights)^-1 k(S, x)) / lambda`` for all rows x and a weighted sample S.

    lambda is the sum of all but the k leading eigenvalues of the sample, divided by k; scores then add up to at most
    about ``2 k``.
    """
    landmarks = X[sample]
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(kernel.block(landmarks, landmarks) * root * root[:, np.newaxis])
    values = np.maximum(values, 0.0)
    total = values.sum()
    if total == 0.0:
        return np.ones(X.shape[0])
    k = max(1, int(LEADING_PART * n_landmarks))
    ridge = max(values[:-k].sum() / k, np.finfo(np.float64).eps * total)
    whitened = root[:, np.newaxis] * vectors / np.sqrt(values + ridge)

    def of_block(start: int) -> np.ndarray:
        block = slice(start, start + BLOCK_ROWS)
        features = kernel.block(X[block], landmarks) @ whitened
        return diagonal[block] - np.einsum("ij,ij->i", features, features)

    with one_blas_thread():
        left = np.concatenate(parallel_map(of_block, range(0, X.shape[0], BLOCK_ROWS), n_threads))
    return np.clip(left / ridge, np.finfo(np.float64).eps, 1.0)
