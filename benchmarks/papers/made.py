"""Relevances of made documents that a linear function knows nothing of, or all."""

from collections.abc import Callable

import numpy as np

__all__ = ["NOISE", "Relevance", "curved", "noisy", "straight"]

Relevance = Callable[[np.ndarray], np.ndarray]
# Standard deviation of the noise, where that of the relevance is 1.
NOISE = 0.5


def curved(X: np.ndarray) -> np.ndarray:
    """A relevance that is in no way linear: a product, a wave whose sign another feature turns, a shell."""
    wave = np.sin(2.0 * X[:, 2]) * X[:, 3]
    return X[:, 0] * X[:, 1] + wave - np.abs(np.linalg.norm(X[:, 4:6], axis=1) - 1.5)


def straight(X: np.ndarray) -> np.ndarray:
    """A linear one."""
    return X[:, :8] @ np.arange(8.0, 0.0, -1.0)


def noisy(relevance: Relevance, X: np.ndarray, seed: int) -> np.ndarray:
    """A relevance of variance 1, with noise."""
    values = relevance(X.astype(np.float64))
    return values / values.std() + NOISE * np.random.default_rng(seed).standard_normal(len(X))
