"""The stand-in for the CUDA driver sees mistakes: each test makes one on purpose, and fails if nothing shows it."""

import contextlib

import numpy as np
import pytest

from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.device import Variant
from ranksvm.device.cuda import CudaDevice
from ranksvm.device.protocol import DeviceArray
from ranksvm.exceptions import DeviceError
from ranksvm.losses import LossSpec
from ranksvm.terms.device import layout
from ranksvm.terms.device.term import DeviceTerm
from ranksvm.terms.host import ThreadedTerm
from stand_in_driver import MODES

FLOAT = Variant(listed=False, sparse=False, real="float")


@pytest.fixture
def off(driver, monkeypatch):
    """Greatest error of gradients of a term whose rows stream through, in a mode of the driver."""
    monkeypatch.setattr(layout, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(layout, "STREAM_BYTES", 1 << 10)
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(400, 4)), rng.integers(0, 3, 400).astype(float), np.arange(400) // 10
    loss = LossSpec("squared_hinge").with_pairs(ComparablePairs.from_labels(Queries.from_qid(qid, 400), y))
    expected = ThreadedTerm(as_design_matrix(X), loss)

    def found(mode):
        driver.mode = mode
        term, greatest = DeviceTerm(CudaDevice(), as_design_matrix(X), loss), 0.0
        for scale in (0.1, 0.2):
            w = np.full(4, scale)
            difference = term.evaluate(w, None).gradient - expected.evaluate(w, None).gradient
            greatest = max(greatest, np.inf if np.isnan(difference).any() else np.abs(difference).max())
        return greatest

    return found


def taken(driver):
    """The faults so far, which are then forgotten."""
    faults, driver.faults = driver.faults, []
    return faults


@pytest.mark.parametrize("mode", MODES)
def test_without_a_mistake_there_is_no_fault(driver, off, mode):
    assert off(mode) < 1e-9
    assert not taken(driver)


def test_a_copy_that_does_not_wait_for_the_kernels_before_it(off, monkeypatch):
    def copy_ahead(self, values, into):
        with self._current():
            there = into.pointer, values.ctypes.data, values.nbytes, self._copies.handle
            self._checked(self._driver.cuMemcpyHtoDAsync(*there))
            return type("Copy", (), {"end": self._copies.record(), "values": values})()

    monkeypatch.setattr(CudaDevice, "copy_ahead", copy_ahead)
    assert off("copies early") > 0.1


@pytest.mark.parametrize("mode", ["late"])
def test_kernels_that_do_not_wait_for_a_copy(off, monkeypatch, mode):
    monkeypatch.setattr(CudaDevice, "await_copy", lambda self, copy: None)
    assert off(mode) > 0.1


def test_an_event_without_effect(driver, off, monkeypatch):
    """As if the driver were called for another event than the one that was recorded."""
    driver.failures["cuStreamWaitEvent"] = 0
    assert off("late") > 0.1


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_a_host_array_that_is_changed_or_freed_before_it_is_read(driver, monkeypatch, size):
    driver.mode = "late"
    device = CudaDevice()
    monkeypatch.setattr(np, "array", lambda values, **_: values)  # no copy of it
    monkeypatch.setattr(device, "_wait_for_stream", lambda: None)
    values = np.arange(float(size))
    array = device.copy_in(values)
    values[size // 2] = -1.0
    device._kept.clear()
    del values
    monkeypatch.undo()
    with contextlib.suppress(DeviceError):
        device.copy_out(array)
    assert "changed or freed before a copy had read them" in taken(driver)[0]


def test_a_context_that_is_left_behind(driver, monkeypatch):
    monkeypatch.setattr(CudaDevice, "_current", lambda self: contextlib.nullcontext(self._device.set_current()))
    CudaDevice(1)
    assert driver.context == 1
    driver.context = None


def test_a_stream_of_another_device_than_the_current_one(driver, monkeypatch):
    device = CudaDevice(1)
    monkeypatch.setattr(CudaDevice, "_current", lambda self: contextlib.nullcontext())
    driver.context = 0
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_HANDLE"):
        device.copy_in(np.ones(3), DeviceArray(0, (3,), np.dtype(float), None))
    driver.context = None


def test_sizes_of_a_launch_of_another_type():
    pytest.importorskip("cuda.core", reason="cuda-core is not installed: no launch is tested")
    from cuda.core import LaunchConfig

    with pytest.raises((TypeError, ValueError)):
        LaunchConfig(grid=np.int64(1), block=256)


@pytest.mark.parametrize("mode", MODES)
def test_memory_that_has_been_freed(driver, mode):
    driver.mode = mode
    device = CudaDevice()
    array, out = device.copy_in(np.ones(8)), device.empty((8,), np.float64)
    pointer = DeviceArray(array.pointer, array.shape, array.dtype, None)
    del array
    device.launch(FLOAT, "step_between", (pointer, pointer, 0.0, 8, out), n_blocks=1)
    assert np.isnan(device.copy_out(out)).all()


def test_memory_that_is_written_past_its_end(driver):
    device = CudaDevice()
    out = device.empty((8,), np.float64)
    device.launch(FLOAT, "take", (None, None, 9, out), n_blocks=1)
    del out
    device.synchronise()
    assert taken(driver) == ["something was written beyond 64 bytes of memory"]


def test_a_copy_past_the_end(driver):
    device = CudaDevice()
    array = device.empty((8,), np.float64)
    with pytest.raises(DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        device.copy_in(np.ones(9), array)
    assert "are not memory of a device" in taken(driver)[0]


def test_results_that_are_read_too_early(driver, monkeypatch):
    driver.mode = "late"
    device = CudaDevice()
    array = device.copy_in(np.arange(3.0))
    monkeypatch.setattr(device, "_wait_for_stream", lambda: None)
    monkeypatch.setattr(np, "empty", lambda shape, dtype: np.full(shape, -7.0))
    found = device.copy_out(array)
    assert found.tolist() == [-7.0] * 3
    device.synchronise()
    assert found.tolist() == [0.0, 1.0, 2.0]


def test_code_of_another_kernel_or_architecture(driver):
    device = CudaDevice()
    code = device._compiled(FLOAT, 2).result()
    driver.version = 8, 0
    with pytest.raises(Exception, match="CUDA_ERROR_NO_BINARY_FOR_GPU"):
        code.get_kernel("take")
    driver.version = 9, 0
    with pytest.raises(Exception, match="CUDA_ERROR_NOT_FOUND"):
        code.get_kernel("fused_loss")
