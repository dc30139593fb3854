"""Landmarks: different documents, drawn by what the method says, and better ones where documents are unlike."""

import numpy as np
import pytest
import scipy.sparse

from ranksvm.exceptions import OptionError
from ranksvm.kernels import LANDMARK_METHODS, NystroemFeatures, choose_landmarks, kernel_named, landmarks as module

STORAGES = {"dense": np.asarray, "csr": scipy.sparse.csr_array}
KERNELS = {
    "rbf": kernel_named("rbf", gamma=0.3),
    "poly": kernel_named("poly", gamma=0.5, degree=2, coef0=1.0),
    "cosine": kernel_named("cosine"),
}


def make_documents(n=300, n_features=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_features))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("method", LANDMARK_METHODS)
def test_rows_are_ascending_different_and_those_of_the_seed(method, storage, kernel):
    X = STORAGES[storage](make_documents())
    options = {"method": method, "random_state": 3}
    rows = choose_landmarks(KERNELS[kernel], X, 40, **options)
    assert rows.dtype == np.int64
    assert len(rows) == 40
    assert (np.diff(rows) > 0).all()
    assert rows.min() >= 0
    assert rows.max() < 300
    np.testing.assert_array_equal(rows, choose_landmarks(KERNELS[kernel], X, 40, n_threads=3, **options))
    others = choose_landmarks(KERNELS[kernel], X, 40, method=method, random_state=4)
    assert not np.array_equal(rows, others)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("method", LANDMARK_METHODS)
def test_no_document_is_chosen_twice(method, storage):
    different = make_documents(30)
    X = np.repeat(different, 20, axis=0)
    rows = choose_landmarks(KERNELS["rbf"], STORAGES[storage](X), 25, method=method, random_state=0)
    assert len(np.unique(rows // 20)) == len(rows) == 25


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("method", LANDMARK_METHODS)
@pytest.mark.parametrize("wanted", [30, 31, 10_000])
def test_all_documents_where_there_are_no_more(method, storage, wanted):
    X = STORAGES[storage](np.repeat(make_documents(30), 3, axis=0))
    rows = choose_landmarks(KERNELS["rbf"], X, wanted, method=method, random_state=0)
    np.testing.assert_array_equal(rows // 3, np.arange(30))


def test_zeros_that_are_stored_and_signed_make_no_other_document():
    dense = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]])
    stored = scipy.sparse.csr_array((np.array([1.0, 0.0, 1.0, 2.0]), [1, 0, 1, 1], [0, 1, 3, 4]), shape=(3, 2))
    for X in (dense, stored):
        rows = choose_landmarks(KERNELS["rbf"], X, 3, random_state=0)
        assert rows.tolist() in ([0, 2], [1, 2])
    assert stored.nnz == 4  # as it was given


def test_candidates_are_drawn_where_there_are_very_many(monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", 64)
    seen = []

    def function(X, Z):
        seen.append(len(X))
        return X @ Z.T

    for method in ("kmeans++", "leverage"):
        rows = choose_landmarks(kernel_named(function), make_documents(5000), 3, method=method, random_state=0)
        assert len(rows) == 3
    assert max(seen) <= 64


def test_by_distance_draws_with_the_squared_distance_from_the_nearest():
    """Against one draw after another: how often each row is the second, or the third, of a few documents."""
    X = np.array([[0.0], [1.0], [1.5], [4.0]])
    kernel, n = kernel_named("linear"), 2000
    distance = (X - X.T) ** 2
    expected = np.zeros(4)  # chance to be among three
    for i in range(4):
        for j in range(4):
            second = distance[i, j] / distance[i].sum()
            nearest = np.minimum(distance[i], distance[j])
            for k in range(4):
                if len({i, j, k}) == 3:
                    expected[[i, j, k]] += 0.25 * second * nearest[k] / nearest.sum()
    found = np.zeros(4)
    random = np.random.RandomState(0)
    for _ in range(n):
        found[module._by_distance(kernel, X, 3, random)] += 1
    np.testing.assert_allclose(found / n, expected, atol=4 * 0.5 / np.sqrt(n))


def test_leverage_scores_with_all_rows_in_the_sample_are_those_of_the_definition():
    X = make_documents(120)
    kernel = KERNELS["rbf"]
    Q = kernel.block(X, X)
    n_leading = 10
    ridge = np.sort(np.linalg.eigvalsh(Q))[:-n_leading].sum() / n_leading
    expected = np.diagonal(np.linalg.solve(Q + ridge * np.eye(120), Q))
    everything = np.arange(120), np.ones(120)
    scores = module._leverage_scores(kernel, X, np.ones(120), *everything, 40, 2)
    np.testing.assert_allclose(scores, expected, rtol=1e-8)
    # a row of weight 2 is the row twice
    twice = np.append(np.arange(120), 7)
    Q = kernel.block(X[twice], X[twice])
    ridge = np.sort(np.linalg.eigvalsh(Q))[:-n_leading].sum() / n_leading
    expected = np.diagonal(np.linalg.solve(Q + ridge * np.eye(121), Q))[:120]
    weights = np.ones(120)
    weights[7] = 2.0
    scores = module._leverage_scores(kernel, X, np.ones(120), np.arange(120), weights, 40, 1)
    np.testing.assert_allclose(scores, expected, rtol=1e-8)


@pytest.mark.parametrize(("method", "trace", "spectral"), [("kmeans++", 0.2, 0.4), ("leverage", 0.4, 0.8)])
def test_rare_documents_are_found_that_uniform_landmarks_miss(method, trace, spectral):
    random = np.random.default_rng(0)
    centers = 6.0 * random.normal(size=(12, 5))
    sizes = [500] + [6] * 11
    X = np.concatenate([c + 0.3 * random.normal(size=(m, 5)) for c, m in zip(centers, sizes, strict=True)])
    kernel = kernel_named("rbf", gamma=0.05)
    Q = kernel.block(X, X)

    def error(method, seed):
        features = NystroemFeatures(kernel, X[choose_landmarks(kernel, X, 40, method=method, random_state=seed)])
        phi = features.transform(X)
        values = np.linalg.eigvalsh(Q - phi @ phi.T)
        return np.array([values.sum(), values[-1]])

    uniform, better = (np.mean([error(name, seed) for seed in range(5)], axis=0) for name in ("uniform", method))
    assert (better < [trace * uniform[0], spectral * uniform[1]]).all()


@pytest.mark.parametrize("method", LANDMARK_METHODS)
@pytest.mark.parametrize("n", [1, 2])
def test_one_landmark_of_few_documents(method, n):
    assert len(choose_landmarks(KERNELS["rbf"], make_documents(n), 1, method=method, random_state=0)) == 1


@pytest.mark.parametrize("method", ["kmeans++", "leverage"])
def test_a_kernel_of_zeros_leaves_landmarks_to_chance(method):
    rows = choose_landmarks(kernel_named(lambda X, Z: np.zeros((len(X), len(Z)))), make_documents(), 5, method=method)
    assert 1 <= len(rows) <= 5


def test_an_unknown_method_is_refused():
    with pytest.raises(OptionError, match="landmarks must be one of 'uniform', 'kmeans\\+\\+', 'leverage', got 'best'"):
        choose_landmarks(KERNELS["rbf"], make_documents(), 5, method="best")
