"""Feature maps against the kernels they stand for."""

import numpy as np
import pytest
import scipy.sparse

from ranksvm.exceptions import DataError, OptionError
from ranksvm.kernels import FOURIER_KERNELS, KERNELS, FourierFeatures, NystroemFeatures, kernel_named, whitening

STORAGES = {"dense": np.asarray, "csr": scipy.sparse.csr_array}


def make_documents(n=60, n_features=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_features))


def make_kernel(name, gamma=0.2):
    return kernel_named(name, gamma=gamma, degree=3, coef0=1.0)


# -- whitening ---------------------------------------------------------------------------------------------------------


def test_whitening_makes_the_kernel_matrix_the_identity():
    X = make_documents()
    Q = make_kernel("rbf").block(X, X)
    W = whitening(Q)
    assert W.shape == (60, 60)
    np.testing.assert_allclose(W.T @ Q @ W, np.eye(60), atol=1e-9)
    np.testing.assert_allclose(W @ W.T, np.linalg.inv(Q), rtol=1e-6, atol=1e-6 * np.abs(np.linalg.inv(Q)).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvalues_that_are_round_off_are_cut(dtype):
    X = make_documents(50, 3)
    Q = (X @ X.T).astype(dtype)
    W = whitening(Q)
    assert W.dtype == np.float64
    assert W.shape == (50, 3)
    np.testing.assert_allclose(W.T @ Q @ W, np.eye(3), atol=100 * np.finfo(dtype).eps)
    np.testing.assert_allclose(Q @ W @ W.T @ Q, Q, atol=100 * np.finfo(dtype).eps * np.abs(Q).max())


def test_a_matrix_of_zeros_has_one_feature_that_is_zero():
    np.testing.assert_array_equal(whitening(np.zeros((4, 4))), np.zeros((4, 1)))
    features = NystroemFeatures(make_kernel("linear"), np.zeros((2, 3)))
    assert features.transform(np.ones((5, 3))).tolist() == [[0.0]] * 5


def test_an_indefinite_kernel_is_named():
    with pytest.raises(DataError, match=r"The kernel is indefinite: the matrix of 2 documents has the eigenvalue -1"):
        whitening(np.array([[0.0, 1.0], [1.0, 0.0]]))


# -- Nyström -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("storage", STORAGES)
def test_with_all_rows_as_landmarks_inner_products_are_the_kernel(storage, kernel):
    X, kernel = make_documents(), make_kernel(kernel)
    features = NystroemFeatures(kernel, STORAGES[storage](X))
    phi = features.transform(STORAGES[storage](X))
    Q = kernel.block(X, X)
    assert phi.dtype == np.float64
    assert phi.shape == (60, features.n_features)
    np.testing.assert_allclose(phi @ phi.T, Q, rtol=0.0, atol=1e-7 * np.abs(Q).max())


def test_repeated_landmarks_add_no_feature():
    X, kernel = make_documents(20), make_kernel("rbf")
    once, twice = NystroemFeatures(kernel, X), NystroemFeatures(kernel, np.repeat(X, 2, axis=0))
    assert once.n_features == twice.n_features == 20
    other = make_documents(7, seed=1)
    np.testing.assert_allclose(
        twice.transform(other) @ twice.transform(X).T, once.transform(other) @ once.transform(X).T, atol=1e-9
    )


def test_features_are_no_more_than_the_rank_of_the_kernel():
    X = make_documents(40, 6)
    features = NystroemFeatures(make_kernel("linear"), X)
    assert (features.n_functions, features.n_features) == (40, 6)
    other = make_documents(9, 6, seed=1)
    np.testing.assert_allclose(features.transform(other) @ features.transform(X).T, other @ X.T, rtol=1e-9, atol=1e-9)


def test_the_error_falls_with_the_number_of_landmarks_and_is_never_negative():
    X, kernel = make_documents(200), make_kernel("rbf")
    errors = []
    for n_landmarks in (10, 40, 160):
        squares = np.sum(NystroemFeatures(kernel, X[:n_landmarks]).transform(X) ** 2, axis=1)
        assert squares.max() <= 1.0 + 1e-9  # a projection is no longer than what is projected
        errors.append(1.0 - squares.mean())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


@pytest.mark.parametrize("storage", STORAGES)
def test_a_linear_model_of_the_features_is_an_expansion_in_the_landmarks(storage):
    Z, X = STORAGES[storage](make_documents(30)), STORAGES[storage](make_documents(12, seed=1))
    kernel = make_kernel("rbf")
    features = NystroemFeatures(kernel, Z)
    w, u = np.random.default_rng(2).normal(size=(2, 30))
    c = features.coefficients(w)
    np.testing.assert_allclose(kernel.block(X, Z) @ c, features.transform(X) @ w, rtol=1e-8)
    np.testing.assert_allclose(c @ kernel.block(Z, Z) @ c, w @ w, rtol=1e-8)
    np.testing.assert_allclose(features.gathered(features.basis(X).T @ u[:12]), features.transform(X).T @ u[:12])


def test_float32_documents_are_those_they_round_to():
    X, kernel = make_documents().astype(np.float32), make_kernel("rbf")
    for storage in STORAGES.values():
        single, double = (NystroemFeatures(kernel, storage(Z)) for Z in (X, X.astype(np.float64)))
        np.testing.assert_array_equal(single.transform(storage(X)), double.transform(storage(X.astype(np.float64))))


# -- Fourier -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kernel", FOURIER_KERNELS)
def test_inner_products_approach_the_kernel(kernel, storage):
    X, kernel = make_documents(), make_kernel(kernel)
    Q = kernel.block(X, X)
    for n_features in (100, 1000, 10_000):
        phi = FourierFeatures.drawn(kernel, 5, n_features, random_state=0).transform(STORAGES[storage](X))
        assert phi.shape == (60, n_features)
        np.testing.assert_allclose(np.sum(phi * phi, axis=1), 1.0, rtol=1e-12)
        # each entry is a mean of n / 2 numbers of variance 1/2 at most
        assert np.abs(phi @ phi.T - Q).max() < 5.0 / np.sqrt(n_features)


def test_orthogonal_frequencies_estimate_with_less_variance():
    X, kernel = make_documents(40, 16), make_kernel("rbf", gamma=0.03)
    Q = kernel.block(X, X)

    def error(frequencies):
        difference = np.cos(X @ frequencies.T) @ np.cos(X @ frequencies.T).T
        difference += np.sin(X @ frequencies.T) @ np.sin(X @ frequencies.T).T
        return np.mean((difference / len(frequencies) - Q) ** 2)

    orthogonal, independent = 0.0, 0.0
    for seed in range(20):
        orthogonal += error(FourierFeatures.drawn(kernel, 16, 64, seed).frequencies)
        independent += error(np.sqrt(0.06) * np.random.default_rng(seed).standard_normal((32, 16)))
    assert orthogonal < 0.7 * independent


@pytest.mark.parametrize("n_features_in", [1, 3, 40])
def test_orthogonal_frequencies_are_normal_one_by_one(n_features_in):
    kernel = make_kernel("rbf", gamma=0.5)  # unit variance
    groups = [FourierFeatures.drawn(kernel, n_features_in, 20, seed).frequencies for seed in range(300)]
    values = np.concatenate(groups)
    assert values.shape == (3000, n_features_in)
    lengths = np.sum(values**2, axis=1)
    assert values.mean() == pytest.approx(0.0, abs=0.05)
    assert lengths.mean() == pytest.approx(n_features_in, rel=0.1)
    assert lengths.var() == pytest.approx(2 * n_features_in, rel=0.2)
    for frequencies in groups[:5]:
        group = frequencies[: min(10, n_features_in)]
        products = group @ group.T
        np.testing.assert_allclose(products, np.diag(np.diagonal(products)), atol=1e-10)


def test_the_seed_gives_the_frequencies_and_an_odd_number_is_rounded_up():
    kernel = make_kernel("laplacian")
    first, same, other = (FourierFeatures.drawn(kernel, 5, 11, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.frequencies, same.frequencies)
    assert not np.array_equal(first.frequencies, other.frequencies)
    assert first.n_features == first.n_functions == 12
    w = np.arange(12.0)
    assert first.coefficients(w) is w
    assert first.gathered(w) is w


@pytest.mark.parametrize("kernel", ["poly", "linear", "cosine", lambda X, Z: X @ Z.T])
def test_other_kernels_have_no_fourier_features(kernel):
    with pytest.raises(OptionError, match="'fourier' is for the kernels 'rbf' and 'laplacian'"):
        FourierFeatures.drawn(kernel_named(kernel), 5, 10)
