"""Relevance functions for generated documents: one that is not linear at all, and a linear one."""

from collections.abc import Callable

import numpy as np

__all__ = ["NOISE", "Relevance", "curved", "noisy", "straight"]

Relevance = Callable[[np.ndarray], np.ndarray]
# Standard deviation of the noise, divided by the standard deviation of the relevance.
NOISE = 0.5


def curved(X: np.ndarray) -> np.ndarray:
    """A relevance without a linear part: a product, a sine wave times another feature, and a circular ridge."""
    wave = np.sin(2.0 * X[:, 2]) * X[:, 3]
    return X[:, 0] * X[:, 1] + wave - np.abs(np.linalg.norm(X[:, 4:6], axis=1) - 1.5)


def straight(X: np.ndarray) -> np.ndarray:
    """A linear relevance."""
    return X[:, :8] @ np.arange(8.0, 0.0, -1.0)


def noisy(relevance: Relevance, X: np.ndarray, seed: int) -> np.ndarray:
    """A relevance scaled to variance 1, plus noise."""
    values = relevance(X.astype(np.float64))
    return values / values.std() + NOISE * np.random.default_rng(seed).standard_normal(len(X))
