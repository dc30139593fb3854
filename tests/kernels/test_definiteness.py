"""What is no kernel matrix is found, and named; what is one, rounded as it may be, passes."""

import numpy as np
import pytest

from ranksvm.exceptions import DataError
from ranksvm.kernels import (
    check_definite,
    check_precomputed,
    kernel_matrix,
    kernel_named,
    precomputed_matrix,
)

PLENTY = 1 << 30


def documents(n_rows, n_features=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


@pytest.fixture
def K():
    X = documents(1100)
    return kernel_named("rbf", gamma=0.1).block(X, X)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_first_bad_place_is_named(K, n_threads):
    check_precomputed(K, n_threads)
    check_precomputed(K.astype(np.float32), n_threads)
    check_precomputed(np.zeros((0, 0)))
    check_precomputed(np.zeros((3, 3), dtype=np.int64))
    for change, message in [
        ({(700, 30): 0.25, (900, 4): 0.3}, r"not symmetric: row 700, column 30 holds 0.25, and row 30, column 700"),
        ({(30, 700): 0.25}, r"not symmetric: row 700, column 30 holds 0\.\d+, and row 30, column 700 holds 0.25"),
        ({(8, 8): -1.0}, "holds -1 on its diagonal, in row 8"),
        ({(8, 8): np.nan}, "holds nan on its diagonal, in row 8"),
        ({(3, 600): np.nan}, "holds nan in row 3, column 600"),
        ({(600, 3): -np.inf}, "holds -inf in row 600, column 3"),
        ({(600, 3): 1.5, (3, 600): 1.5}, r"row 600, column 3 holds 1.5, and the diagonal allows"),
    ]:
        spoilt = K.copy()
        for place, value in change.items():
            spoilt[place] = value
        with pytest.raises(DataError, match=message):
            check_precomputed(spoilt, n_threads)
    with pytest.raises(DataError, match=r"must be square.*got \(4, 3\)"):
        check_precomputed(np.ones((4, 3)))


def test_round_off_is_no_asymmetry(K):
    check_precomputed(K * (1.0 + 1e-7 * np.random.default_rng(0).normal(size=K.shape)))


@pytest.mark.parametrize("n_rows", [1, 2, 50, 1100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gamma", [1e-6, 0.1, 1e6])
def test_kernels_pass_singular_or_not(n_rows, dtype, gamma):
    X = documents(n_rows)
    X[n_rows // 2 :] = X[: n_rows - n_rows // 2]
    matrix = kernel_matrix(kernel_named("rbf", gamma=gamma), X, memory=PLENTY, dtype=dtype)
    check_definite(matrix, "rbf")
    cubic = kernel_matrix(kernel_named("poly", gamma=0.1, degree=3), X, memory=PLENTY, dtype=dtype)
    check_definite(cubic, "poly")


def test_no_documents_and_nothing_but_zeros_pass():
    check_definite(kernel_matrix(kernel_named("poly", coef0=0.0), np.zeros((600, 2)), memory=PLENTY), "poly")


@pytest.mark.parametrize("n_rows", [3, 300, 1500])
def test_indefinite_kernels_are_found(n_rows):
    X = documents(n_rows)
    for kernel in (
        kernel_named(lambda A, B: np.tanh(A @ B.T - 1.0)),
        kernel_named("poly", degree=3, gamma=0.5, coef0=-2.0),
        kernel_named(lambda A, B: -np.sum((A[:, None] - B) ** 2, axis=2)),
    ):
        with pytest.raises(DataError, match=rf"kernel '{kernel.name}' is not positive semi-definite.*eigenvalue of -"):
            check_definite(kernel_matrix(kernel, X, memory=PLENTY), kernel.name)


def test_an_indefinite_corner_of_a_large_matrix_is_found(K):
    """Three rows, each two of which are at -0.9: an eigenvalue of -0.8."""
    K[:3, :3] = np.eye(3) * 1.9 - 0.9
    check_precomputed(K)
    with pytest.raises(DataError, match="'precomputed' is not positive semi-definite"):
        check_definite(precomputed_matrix(K, np.arange(len(K)), memory=PLENTY), "precomputed")
