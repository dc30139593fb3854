"""Kernel matrices against dense ones."""

import subprocess
import sys

import numpy as np
import pytest

from kernel_matrix_checks import PLENTY, STORAGES, check, check_columns_are_those_of_the_product, documents, full
from ranksvm.exceptions import DataError, OptionError
from ranksvm.kernels import KERNELS, kernel_matrix, kernel_named, precomputed_matrix

PACKED = [name for name in KERNELS if name != "linear"]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_the_dense_matrix(name, storage, dtype):
    X = STORAGES[storage](documents(150))
    kernel = kernel_named(name, gamma=0.3, degree=2, coef0=0.5)
    matrix = kernel_matrix(kernel, X, memory=PLENTY, dtype=dtype, n_threads=2)
    check(matrix, kernel.block(full(X), full(X)), 1e-7 if dtype == "float32" else 1e-13)
    if name in PACKED:
        check_columns_are_those_of_the_product(matrix)


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 127, 128, 200, 1100])
@pytest.mark.parametrize("name", ["rbf", "linear"])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_any_number_of_rows_and_threads(name, n_rows, n_threads):
    X = documents(n_rows)
    kernel = kernel_named(name, gamma=0.2)
    check(kernel_matrix(kernel, X, memory=PLENTY, n_threads=n_threads), kernel.block(X, X), 1e-7)


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize(
    ("storage", "n_threads", "least"), [("dense", 1, 0.2), ("float32", 3, 0.3), ("sparse", 2, 0.6)]
)
def test_what_does_not_fit_is_made_anew(name, storage, n_threads, least):
    X = STORAGES[storage](documents(600))
    kernel = kernel_named(name, gamma=0.3, degree=2, coef0=0.5)
    whole = kernel_matrix(kernel, X, memory=PLENTY, n_threads=n_threads)
    expected = whole.columns(np.arange(600))
    kept = set()
    for more in (0.0, 0.2, 0.4):
        matrix = kernel_matrix(kernel, X, memory=int(1e6 * (least + more)), n_threads=n_threads)
        kept.add(matrix.product_bytes)
        assert matrix.product_bytes < whole.product_bytes
        # rounded to float32 from values that differ in the last digits of float64: a unit in the last place, at times
        check(matrix, expected, 1.3e-7)
    assert len(kept) == 3


def test_products_do_not_depend_on_threads():
    X, b = documents(2000), np.random.default_rng(0).normal(size=2000)
    kernel = kernel_named("rbf", gamma=0.1)
    for memory in (PLENTY, 4_000_000):
        one, three = (kernel_matrix(kernel, X, memory=memory, n_threads=n).product(b) for n in (1, 3))
        np.testing.assert_allclose(one, three, rtol=0, atol=1e-6 if memory < PLENTY else 0)


def test_nothing_kept_is_enough():
    X = documents(3000)
    kernel = kernel_named("rbf", gamma=0.3)
    memory = 8 * 3000 * 20 + 64 * 64 * 12 + 2 * 64 * 5 * 8
    matrix = kernel_matrix(kernel, X, memory=memory)
    assert matrix.product_bytes == 0
    check(matrix, kernel.block(X, X), 1e-7)
    with pytest.raises(OptionError, match=r"3,000 rows need at least 0.5 MB .*\(storing all of it takes 18.9 MB\)"):
        kernel_matrix(kernel, X, memory=memory - 1)


def test_a_wide_kernel_is_the_identity_and_duplicates_are_equal():
    X = documents(130)
    X[65:] = X[:65]
    matrix = kernel_matrix(kernel_named("rbf", gamma=1e6), X, memory=PLENTY)
    b = np.random.default_rng(0).normal(size=130)
    np.testing.assert_allclose(matrix.product(b), np.tile(b[:65] + b[65:], 2), rtol=1e-7)


def test_a_callable_is_asked_by_one_thread_and_kept_alike():
    X = documents(700)
    asked = []

    def k(A, B):
        asked.append((len(A), len(B)))
        return (A @ B.T) ** 2

    for memory in (PLENTY, 700_000):
        matrix = kernel_matrix(kernel_named(k), X, memory=memory, n_threads=3)
        check(matrix, (X @ X.T) ** 2, 1e-6)
    assert max(rows for rows, _ in asked) == 64


def test_a_callable_that_is_not_symmetric_is_named():
    kernel = kernel_named(lambda A, B: A @ np.diag([1.0, 2.0], k=0) @ B[:, ::-1].T)
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(DataError, match=r"'callable' is not symmetric: it is 1 for two documents, and 2 when"):
        kernel_matrix(kernel, X, memory=PLENTY)


def test_values_too_large_for_float32_are_named():
    X = documents(100) * 1e7
    kernel = kernel_named("poly", degree=3)
    with pytest.raises(DataError, match=r"'poly' has the value \d.*e\+4\d .*too large for float32.*kernel_dtype"):
        kernel_matrix(kernel, X, memory=PLENTY)
    check(kernel_matrix(kernel, X, memory=PLENTY, dtype="float64"), kernel.block(X, X), 1e-13)
    with pytest.raises(DataError, match="'poly' is infinite"):
        kernel_matrix(kernel, X * 1e100, memory=PLENTY, dtype="float64")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("memory", [PLENTY, 500_000])
def test_a_part_of_a_precomputed_matrix(dtype, memory):
    X = np.random.default_rng(0).integers(-3, 4, size=(800, 4))
    K = (X @ X.T).astype(dtype)
    rows = np.random.default_rng(1).permutation(800)[:600]
    matrix = precomputed_matrix(K, rows, memory=memory, n_threads=2)
    assert (matrix.product_bytes < 4 * 600 * 600 // 2) == (memory < PLENTY)
    check(matrix, K[np.ix_(rows, rows)].astype(np.float64), 1e-13)
    with pytest.raises(DataError, match="'precomputed' is NaN"):
        precomputed_matrix(np.full((3, 3), np.nan), np.arange(3), memory=PLENTY)


SCRIPT = """
import resource, sys
import numpy as np
from ranksvm.kernels import kernel_matrix, kernel_named
name, memory, n_rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X = np.random.default_rng(0).normal(size=(n_rows, 46)).astype(np.float32)
kernel = kernel_named(name, gamma=0.01)
small = kernel_matrix(kernel, X[:3000], memory=3_000_000, n_threads=2)  # libraries, threads
small.product(np.ones(3000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
matrix = kernel_matrix(kernel, X, memory=memory, n_threads=2)
matrix.product(np.ones(n_rows))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / memory, matrix.product_bytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
@pytest.mark.parametrize(("name", "memory"), [("rbf", 20_000_000), ("poly", 60_000_000), ("rbf", 90_000_000)])
def test_memory_stays_within_what_is_given(name, memory):
    command = [sys.executable, "-c", SCRIPT, name, str(memory), "6000"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    share, kept = run.stdout.split()
    assert float(share) <= 1.2
    assert int(kept) >= min(memory, 72_000_000) * 0.6


def test_values_too_small_for_a_dtype_are_named():
    X = documents(100) * 1e-15
    kernel = kernel_named("poly", degree=2, coef0=0.0)
    with pytest.raises(DataError, match=r"'poly' is \d.*e-5\d or less for all .*too small for float32.*kernel_dtype"):
        kernel_matrix(kernel, X, memory=PLENTY)
    check(kernel_matrix(kernel, X, memory=PLENTY, dtype="float64"), kernel.block(X, X), 1e-13)
    with pytest.raises(DataError, match=r"too small for float64. Scale the features, or change .* kernel\.$"):
        kernel_matrix(kernel, X * 1e-60, memory=PLENTY, dtype="float64")
    check(kernel_matrix(kernel, X * 0.0, memory=PLENTY), np.zeros((100, 100)), 0.0)


@pytest.mark.parametrize("memory", [PLENTY, 300_000])
def test_what_rounding_does_to_a_form(memory):
    # as a standard deviation says: of 40 vectors, in the root mean square
    X, kernel = documents(300), kernel_named("rbf", gamma=0.05)
    exact = kernel.block(X, X)
    matrix = kernel_matrix(kernel, X, memory=memory)
    vectors = np.random.default_rng(1).normal(size=(40, 300)) ** 3
    moved = [b @ matrix.product(b) - b @ exact @ b for b in vectors]
    said = [matrix.form_rounding(b) for b in vectors]
    assert 0.5 < np.sqrt(np.mean(np.square(said)) / np.mean(np.square(moved))) < 2.0
    assert matrix.form_rounding(np.zeros(300)) == 0.0
    assert kernel_matrix(kernel_named("linear"), X, memory=memory).form_rounding(vectors[0]) == 0.0
