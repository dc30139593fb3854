"""Kernel matrices and features on a device, by the host in its place, against those of the processor."""

import logging

import numpy as np
import pytest
import scipy.sparse

from kernel_matrix_checks import PLENTY, STORAGES, check, check_columns_are_those_of_the_product, documents, full
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DataError, DeviceError, DeviceMemoryError
from ranksvm.kernels import (
    KERNELS,
    FourierFeatures,
    NystroemFeatures,
    kernel_matrix,
    kernel_named,
    precomputed_matrix,
)
from ranksvm.kernels.device_values import features_on, kernel_launcher

# of 150 rows: what fits all of Q in float64, and what does not fit it in float32
MEMORY = {"stored": None, "some rows": 90_000, "few rows": 40_000}


def matrix_on(device, kernel, X, dtype="float32"):
    return kernel_matrix(kernel, X, memory=PLENTY, dtype=dtype, device=device)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_the_dense_matrix(name, storage, dtype):
    X = STORAGES[storage](documents(150))
    kernel = kernel_named(name, gamma=0.3, degree=3, coef0=0.5)
    matrix = matrix_on(HostDevice(), kernel, X, dtype)
    linear = name == "linear" and isinstance(X, np.ndarray)
    check(matrix, kernel.block(full(X), full(X)), 1e-7 if dtype == "float32" and not linear else 1e-12)
    if not linear:
        check_columns_are_those_of_the_product(matrix)


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_rows_that_do_not_fit_are_made_again(memory, name):
    X, kernel = documents(150), kernel_named(name, gamma=0.3)
    device = HostDevice(memory=MEMORY[memory])
    matrix, expected = matrix_on(device, kernel, X), matrix_on(HostDevice(), kernel, X)
    assert (matrix.product_bytes == expected.product_bytes) == (memory == "stored")
    b = np.random.default_rng(0).normal(size=150)
    np.testing.assert_array_equal(matrix.product(b), expected.product(b))
    if memory == "some rows":
        assert 0 < matrix.product_bytes < expected.product_bytes
        check_columns_are_those_of_the_product(matrix)


@pytest.mark.parametrize("largest", [60_000, 2_000])
def test_fewer_rows_are_stored_where_memory_turns_out_to_be_taken(largest, monkeypatch, caplog):
    X, kernel = documents(150), kernel_named("rbf", gamma=0.3)
    expected, device, empty, most = matrix_on(HostDevice(), kernel, X), HostDevice(), HostDevice.empty, [largest]

    def crowded(self, shape, dtype):
        if dtype == np.float32 and np.prod(shape) * np.dtype(dtype).itemsize > most[0]:
            raise DeviceMemoryError("no room")
        return empty(self, shape, dtype)

    monkeypatch.setattr(HostDevice, "empty", crowded)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        matrix = matrix_on(device, kernel, X)
    assert matrix.product_bytes <= largest
    assert "of 150 rows of the kernel matrix stay there, the others are computed again" in caplog.text
    b = np.random.default_rng(0).normal(size=150)
    np.testing.assert_array_equal(matrix.product(b), expected.product(b))
    most[0] = 100
    with pytest.raises(DeviceMemoryError, match="no room"):
        matrix_on(device, kernel, X)


def test_a_device_that_is_too_small_says_what_was_asked_for():
    with pytest.raises(DeviceError, match="more than the"):
        matrix_on(HostDevice(memory=2000), kernel_named("rbf"), documents(150))


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("name", ["laplacian", "linear"])
def test_any_number_of_rows(name, n_rows):
    X, kernel = documents(n_rows), kernel_named(name)
    check(matrix_on(HostDevice(n_blocks=2, n_threads=32), kernel, X, "float64"), kernel.block(X, X), 1e-12)


@pytest.mark.parametrize("n_threads", [8, 256])
def test_no_value_depends_on_the_order_of_threads(n_threads):
    X, b = documents(130), np.linspace(-1.0, 1.0, 130)
    for storage in (np.asarray, scipy.sparse.csr_array):
        products = []
        for backwards in (False, True):
            device = HostDevice(n_threads=n_threads, backwards=backwards)
            products.append(matrix_on(device, kernel_named("rbf", gamma=0.2), storage(X)).product(b))
        np.testing.assert_array_equal(*products)


@pytest.mark.parametrize("memory", [None, 90_000])
def test_a_matrix_of_the_user(memory):
    X, kernel = documents(200), kernel_named("rbf", gamma=0.3)
    K = kernel.block(X, X)
    rows = np.random.default_rng(0).permutation(200)[:150]
    for given in (K, K.astype(np.float32)):
        matrix = precomputed_matrix(given, rows, memory=PLENTY, device=HostDevice(memory=memory))
        check(matrix, K[rows][:, rows], 1e-7)
        check_columns_are_those_of_the_product(matrix)


def test_values_that_are_too_large_are_found_as_on_the_processor():
    kernel = kernel_named("poly", gamma=1e10, degree=5)
    with pytest.raises(DataError) as expected:
        kernel_matrix(kernel, documents(20), memory=PLENTY)
    with pytest.raises(DataError) as found:
        matrix_on(HostDevice(), kernel, documents(20))
    assert str(found.value) == str(expected.value)


def test_bounds_on_the_error_of_a_product_hold():
    X, kernel = documents(300), kernel_named("rbf", gamma=0.3)
    b = np.random.default_rng(0).normal(size=300)
    exact = kernel.block(X, X) @ b
    for dtype in ("float32", "float64"):
        matrix = matrix_on(HostDevice(), kernel, X, dtype)
        product = matrix.product(b)
        of_product, of_form = matrix.product_error(b, product)
        assert np.abs(product - exact).max() <= of_product
        assert abs(b @ product - b @ exact) <= of_form
        assert matrix.form_rounding(b) < 1e-4


# -- features ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["rbf", "poly", "cosine", "fourier", "fourier, laplacian"])
def test_features_are_those_of_the_processor(kind, dtype, storage, monkeypatch):
    monkeypatch.setattr("ranksvm.kernels.device_values.CHUNK_BYTES", 8000)
    X = STORAGES[storage](documents(120))
    name, _, fourier = kind.partition(", ")
    if name == "fourier":
        features = FourierFeatures.drawn(kernel_named(fourier or "rbf", gamma=0.2), 5, 30, 0)
    else:
        features = NystroemFeatures(kernel_named(name, gamma=0.2), X[:25])
    device = HostDevice()
    found = device.copy_out(features_on(kernel_launcher(device, dtype), features, X))
    expected = features.transform(X)
    assert found.dtype == dtype
    tolerance = 1e-6 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_features_that_do_not_fit():
    features = FourierFeatures.drawn(kernel_named("rbf"), 5, 30, 0)
    with pytest.raises(DeviceError, match=r"The 30 features of 120 rows take 14.4 KB, and 1 KB are free on host:0\."):
        features_on(kernel_launcher(HostDevice(memory=1000), np.float32), features, documents(120))
