"""`CudaDevice` line by line, with cuda-core and the driver played by the host (fake_cuda.py)."""

import gc

import numpy as np
import pytest

import fake_cuda
from ranksvm import RankSVM
from ranksvm.data import as_design_matrix
from ranksvm.device import Variant, names, open_device
from ranksvm.device.cuda import CudaDevice, gpu_names
from ranksvm.exceptions import DeviceError
from ranksvm.terms.device import layout
from ranksvm.terms.device.term import DeviceTerm
from ranksvm.terms.host import ThreadedTerm
from term_checks import PROBLEMS, TermProblem


@pytest.fixture
def driver(monkeypatch):
    names._opened.clear()
    yield fake_cuda.install(monkeypatch)
    names._opened.clear()


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_term_on_it(driver, kind):
    problem = TermProblem("huber", n=600, **PROBLEMS[kind])
    design = as_design_matrix(problem.X)
    loss = problem.spec.over(problem.pairs)
    term, expected = DeviceTerm(CudaDevice(), design, loss), ThreadedTerm(design, loss)
    for w, step in problem.points():
        a, b = (term.evaluate(at, problem.width) for at in (w, w + step))
        c, d = (expected.evaluate(at, problem.width) for at in (w, w + step))
        np.testing.assert_allclose(a.sums, c.sums, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(a.gradient, c.gradient, rtol=1e-11, atol=1e-11)
        lines = term.along(a, b, [0.5], problem.width), expected.along(c, d, [0.5], problem.width)
        np.testing.assert_allclose(*lines, rtol=1e-11)
        np.testing.assert_allclose(term.curvature(a, 1.0, 0), expected.curvature(c, 1.0, 0), rtol=1e-10, atol=1e-10)


def test_a_fit_on_two_of_them(driver):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(300, 5)).astype(np.float32), rng.integers(0, 3, 300), np.arange(300) // 20
    expected = RankSVM(tol=1e-8).fit(X, y, qid=qid)
    for device in ("cuda", "cuda:1", ["cuda:0", "cuda:1"]):
        found = RankSVM(tol=1e-8, device=device).fit(X, y, qid=qid)
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert found.device_ == ["cuda:0", "cuda:1"]
    # once for each device, not for every fit
    parts = [f"levels_dense_float, part {part}" for part in (1, 2, 3)]
    assert sorted(fake_cuda.Program.compiled) == sorted(2 * parts)
    assert open_device("cuda:1").n_blocks == 16


def test_a_device_that_is_not_there(driver):
    with pytest.raises(DeviceError, match=r"^device='cuda:2': the number of CUDA GPUs here is 2, numbered from 0\."):
        open_device("cuda:2")
    fake_cuda.Device.count = 0
    with pytest.raises(DeviceError, match=r"the number of CUDA GPUs here is none\. Use device='cpu'\.$"):
        open_device("cuda:0")


def test_names_of_gpus(driver, monkeypatch):
    monkeypatch.setattr(fake_cuda.Device, "name", "NVIDIA A", raising=False)
    assert gpu_names() == ["cuda:0 (NVIDIA A)", "cuda:1 (NVIDIA A)"]


def test_a_driver_that_does_not_start(driver, monkeypatch):
    def fail():
        raise RuntimeError("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH\nmore")

    monkeypatch.setattr(fake_cuda.Device, "get_all_devices", fail)
    with pytest.raises(DeviceError, match=r"driver \(580 or newer\), but .*: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH\."):
        open_device("cuda:0")


def test_out_of_memory_says_what_was_asked_for_and_what_is_free(driver):
    device = CudaDevice()
    fake_cuda.Device.memory = 10_000
    kept = device.empty((1000,), np.float64)
    message = r"^cuda:0 is out of memory: 4 KB were asked for and 2 KB are free\. Free memory .* or use device='cpu'\.$"
    with pytest.raises(DeviceError, match=message):
        device.empty((1000,), np.float32)
    del kept
    assert device.free_bytes == 10_000


def test_a_failed_copy_or_kernel_is_an_error_of_the_device(driver, monkeypatch):
    device = CudaDevice()
    array = device.copy_in(np.arange(3.0))
    device._device.failure = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
    with pytest.raises(DeviceError, match=r"^cuda:0 failed: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"):
        device.copy_out(array)
    device._device.failure = None
    assert device.copy_out(array).tolist() == [0.0, 1.0, 2.0]
    failure = (fake_cuda.CUresult.CUDA_ERROR_INVALID_VALUE,)
    monkeypatch.setattr(driver, "cuMemcpyHtoDAsync", lambda *arguments: failure)
    with pytest.raises(DeviceError, match=r"^cuda:0 failed: CUDA_ERROR_INVALID_VALUE$"):
        device.copy_in(np.arange(3.0))


def test_arrays_without_values(driver):
    device = CudaDevice()
    assert device.copy_out(device.copy_in(np.zeros((0, 3)))).shape == (0, 3)


def test_nothing_is_compiled_twice(driver):
    device, variant = CudaDevice(), Variant(False, False, "float")
    device.compile(variant)
    device.compile(variant)
    X = device.copy_in(np.ones((3, 2), dtype=np.float32))
    for _ in range(2):
        largest = device.empty((2,), np.float64)
        device.launch(variant, "largest_values", (X, 3, 2, largest), n_blocks=1)
    assert device.copy_out(largest).tolist() == [1.0, 1.0]
    for code in device._code.values():  # made by threads of their own
        code.result()
    parts = (1, 2, 3, 4)  # the last for the kernel that fits do not need
    assert sorted(fake_cuda.Program.compiled) == [f"levels_dense_float, part {part}" for part in parts]


def test_rows_stream_through_pinned_memory(driver, monkeypatch):
    """While kernels work on a block, the next one is copied beside them, into other memory."""
    monkeypatch.setattr(layout, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(layout, "STREAM_BYTES", 4000)
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(600, 5)), rng.integers(0, 3, 600), np.arange(600) // 20
    expected = RankSVM(tol=1e-8).fit(X, y, qid=qid)
    pinned = []
    register = driver.cuMemHostRegister

    def noted(pointer, size, flags):
        pinned.append((size, flags))
        return register(pointer, size, flags)

    monkeypatch.setattr(driver, "cuMemHostRegister", noted)
    found = RankSVM(tol=1e-8, device="cuda").fit(X, y, qid=qid)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert pinned == [(X.nbytes, 0)]
    gc.collect()
    assert not fake_cuda._pinned
    X.flags.writeable = False
    monkeypatch.setattr(driver, "cuMemHostRegister", lambda *_: (fake_cuda.CUresult.CUDA_ERROR_INVALID_VALUE,))
    again = RankSVM(tol=1e-8, device="cuda").fit(X, y, qid=qid)
    assert again.objective_ == found.objective_
