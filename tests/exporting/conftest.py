"""Fitted models with every scaler, and documents to score."""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from ranksvm import KernelRankSVM, QueryMinMaxScaler, QueryStandardScaler, RankSVM
from ranksvm.metrics.scorers import predict_scores

SCALERS = {
    "none": None,
    "standard": StandardScaler(),
    "standard without mean": StandardScaler(with_mean=False),
    "min-max": MinMaxScaler(),
    "min-max from -1 to 3": MinMaxScaler((-1, 3)),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "query-minmax": QueryMinMaxScaler(),
    "query-standard": QueryStandardScaler(),
    "query-standard without mean": QueryStandardScaler(with_mean=False),
    "query-standard without deviation": QueryStandardScaler(with_std=False),
}
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "laplacian": {"kernel": "laplacian", "gamma": 0.2},
    "poly": {"kernel": "poly", "gamma": 0.2, "degree": 3, "coef0": 0.5},
    "cosine": {"kernel": "cosine"},
    "linear": {"kernel": "linear"},
    "nystroem": {"kernel": "rbf", "gamma": 0.3, "approximation": "nystroem", "n_components": 20},
    "fourier": {"kernel": "rbf", "gamma": 0.3, "approximation": "fourier", "n_components": 40},
}


class Case(NamedTuple):
    """A model, documents of several queries, and their scores."""

    model: object
    X: np.ndarray
    qid: np.ndarray
    scores: np.ndarray


def documents(n_queries=12, n_docs=9, seed=0):
    """Features of many kinds; all values are exact in float32."""
    random = np.random.default_rng(seed)
    n = n_queries * n_docs
    X = random.normal(size=(n, 7))
    qid = np.repeat(np.arange(n_queries), n_docs)
    X[:, 1] = 1000.0 + 3.0 * X[:, 1]  # far from 0
    X[:, 2] = random.integers(0, 3, n)  # ties
    X[:, 3] = (qid % 4) / 7.0  # constant in every query, with a mean that is rounded
    X[:, 4] = 0.1  # constant
    X[:, 5] *= 1e-6
    X[:, 6] = np.where(random.uniform(size=n) < 0.7, 0.0, X[:, 6])  # mostly 0
    return X.astype(np.float32).astype(np.float64), qid


def labels(X, qid):
    random = np.random.default_rng(1)
    score = X[:, 0] - 0.3 * X[:, 1] + 0.5 * X[:, 2] + 4e5 * X[:, 5] - X[:, 6] + 0.3 * random.normal(size=len(X))
    return np.digitize(score, np.quantile(score, [0.4, 0.8]))


def scaled(scaler, ranker, X, y, qid):
    if scaler is None:
        return ranker.fit(X, y, qid=qid)
    queries = {"qid": qid} if type(scaler).__name__.startswith("Query") else {}
    Z = scaler.fit(X).transform(X, **queries)
    return Pipeline([("scaler", scaler), ("ranker", ranker.fit(Z, y, qid=qid))])


def case(scaler, ranker):
    X, qid = documents()
    model = scaled(scaler, ranker, X, labels(X, qid), qid)
    X, qid = documents(seed=2)
    return Case(model, X, qid, predict_scores(model, X, qid))


@pytest.fixture(scope="session")
def linear_cases():
    """Name of a scaler -> linear model."""
    from sklearn.base import clone

    return {
        name: case(None if scaler is None else clone(scaler), RankSVM(C=0.05, n_jobs=1))
        for name, scaler in SCALERS.items()
    }


@pytest.fixture(scope="session")
def kernel_cases():
    """Name of a kernel -> model on standardized features."""
    return {
        name: case(StandardScaler(), KernelRankSVM(C=0.1, n_jobs=1, random_state=0, **options))
        for name, options in KERNELS.items()
    }


@pytest.fixture
def linear_case(linear_cases):
    return linear_cases["standard"]
