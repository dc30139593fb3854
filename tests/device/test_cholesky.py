"""Cholesky factors on a device, by the host in its place, against NumPy's."""

import numpy as np
import pytest

from ranksvm.device.cholesky import cholesky
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceMemoryError
from ranksvm.kernels.device_values import kernel_launcher

TYPES = [np.float32, np.float64]


def positive_definite(n, dtype):
    B = np.random.default_rng(0).normal(size=(n, n))
    return (B @ B.T / max(1, n) + np.eye(n)).astype(dtype)


def factorized(A, device):
    """The lower triangle of a matrix on a device, NaN above it, and its factor."""
    there = device.copy_in(np.where(np.tri(len(A), dtype=bool), A, np.nan).astype(A.dtype))
    return there, cholesky(kernel_launcher(device, A.dtype), there)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 128, 200])
def test_factor_and_solution(n, dtype):
    A, device = positive_definite(n, dtype), HostDevice()
    there, factor = factorized(A, device)
    L, eps = device.copy_out(there), np.finfo(dtype).eps
    expected = np.linalg.cholesky(A.astype(np.float64))
    np.testing.assert_allclose(np.tril(L), expected, atol=100 * eps)
    assert np.isnan(L[np.triu_indices(n, 1)]).all()
    b = np.random.default_rng(1).normal(size=n)
    for _ in range(2):
        np.testing.assert_allclose(factor.solve(b), np.linalg.solve(A.astype(np.float64), b), atol=1000 * eps)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("place", [0, 1, 63, 64, 199])
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf])
def test_a_matrix_that_is_not_positive_definite(place, value, dtype):
    A = positive_definite(200, dtype)
    A[place, place] = value
    assert factorized(A, HostDevice())[1] is None


@pytest.mark.parametrize("n_threads", [8, 256])
def test_no_value_depends_on_the_order_of_threads(n_threads):
    A, b = positive_definite(200, np.float64), np.linspace(-1.0, 1.0, 200)
    found = []
    for n_blocks, backwards in ((1, False), (3, False), (3, True)):
        device = HostDevice(n_blocks=n_blocks, n_threads=n_threads, backwards=backwards)
        there, factor = factorized(A, device)
        found.append((device.copy_out(there), factor.solve(b)))
    for L, x in found[1:]:
        np.testing.assert_array_equal(L, found[0][0])
        np.testing.assert_array_equal(x, found[0][1])


def test_three_launches_for_each_block(monkeypatch):
    launched, launch = [], HostDevice.launch

    def counted(self, variant, kernel, *arguments, **options):
        launched.append(kernel)
        return launch(self, variant, kernel, *arguments, **options)

    monkeypatch.setattr(HostDevice, "launch", counted)
    factor = factorized(positive_definite(200, np.float64), HostDevice())[1]
    assert len(launched) == 3 * 3 + 1
    launched.clear()
    factor.solve(np.ones(200))
    assert len(launched) == 2 * 4


def test_too_little_memory():
    A = positive_definite(200, np.float64)
    with pytest.raises(DeviceMemoryError):
        factorized(A, HostDevice(memory=A.nbytes + 1000))
