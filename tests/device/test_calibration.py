"""The costs of a device, measured on it."""

import time

import numpy as np
import pytest

from ranksvm.device import Variant, calibrate_device, calibration, names, open_device
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceError, OptionError

FLOAT = Variant(listed=False, sparse=False, real="float")


@pytest.fixture(autouse=True)
def costs_of(monkeypatch):
    """Calibrates a device as "host:0"; what it leaves behind is forgotten."""
    monkeypatch.setattr(calibration, "_calibrated", [])

    def measured(device):
        monkeypatch.setitem(names.OPENERS, "host", lambda _number: device)
        return calibrate_device("host")

    return measured


class Slowed(HostDevice):
    """Launches of a kernel, or copies, that take some time longer."""

    def __init__(self, kernel="", launch=0.0, copy=0.0):
        super().__init__()
        self.kernel, self.seconds, self.copy = kernel, launch, copy

    def copy_in(self, values, into=None, n_threads=1):
        time.sleep(self.copy if values.nbytes > 1000 else 0.0)
        return super().copy_in(values, into, n_threads)

    def launch(self, variant, kernel, arguments, **options):
        work = arguments[-2] > 0
        time.sleep(self.seconds if work and kernel == self.kernel else 0.0)
        super().launch(variant, kernel, arguments, **options)


def test_what_is_measured_is_not_negative(costs_of):
    costs = costs_of(HostDevice())
    assert min(costs.round, costs.copy_byte) > 0.0
    # differences of two measurements, of work that takes microseconds here
    assert min(costs.read_byte, costs.visit, costs.compilation) >= 0.0


@pytest.mark.parametrize("cost", ["copy_byte", "read_byte", "visit"])
def test_a_device_that_is_slower_costs_more(cost, costs_of):
    slow = {
        "copy_byte": Slowed(copy=0.1),
        "read_byte": Slowed("read_values", launch=0.1),
        "visit": Slowed("visit_others", launch=0.1),
    }
    costs = costs_of(slow[cost])
    units = {"copy_byte": calibration.COPIED_BYTES, "read_byte": 4 * 128 * 48, "visit": 48 * 48}
    seconds = {name: getattr(costs, name) * n for name, n in units.items()}
    assert seconds.pop(cost) >= 0.09
    assert max(seconds.values()) < 0.05


def test_the_last_calibration_holds_and_memory_is_free_again(costs_of):
    assert calibration.calibrated() is None
    for device in (HostDevice(), HostDevice()):
        free = device.free_bytes
        costs = costs_of(device)
        assert calibration.calibrated() == (device, costs)
        assert device.free_bytes == free


@pytest.mark.parametrize("error", [DeviceError, RuntimeError, KeyboardInterrupt])
def test_a_calibration_that_fails_leaves_the_last_one(error, costs_of, monkeypatch):
    def failing(self, *arguments, **options):
        raise error("cannot launch")

    costs_of(HostDevice())
    before = calibration.calibrated()
    monkeypatch.setattr(HostDevice, "launch", failing)
    with pytest.raises(error, match="cannot launch"):
        costs_of(HostDevice())
    assert calibration.calibrated() == before


@pytest.mark.parametrize("device", ["cpu", "auto", "gpu", ["cuda:0"], 0])
def test_what_names_no_gpu_is_refused(device):
    with pytest.raises(OptionError, match="device must name one GPU"):
        calibrate_device(device)


def test_a_device_with_next_to_no_memory(costs_of):
    with pytest.raises(DeviceError):
        costs_of(HostDevice(memory=1000))


def test_the_kernels_that_are_timed_do_what_they_say():
    device = HostDevice()
    values = np.arange(1000, dtype=np.float32)
    out = device.empty((48,), np.float64)
    device.launch(FLOAT, "read_values", (device.copy_in(values), 1000, out), n_blocks=3)
    np.testing.assert_array_equal(device.copy_out(out), [values[thread::48].sum() for thread in range(48)])
    scores = np.linspace(-2.0, 2.0, 48)
    device.launch(FLOAT, "visit_others", (device.copy_in(scores), 20, out), n_blocks=3)
    slack = np.maximum(1.0 - (scores[:, None] - scores[:20]), 0.0)
    np.testing.assert_allclose(device.copy_out(out), (slack**2).sum(axis=1), rtol=1e-12)


def test_on_a_gpu_only_the_kernels_that_are_timed_are_compiled(driver):
    assert calibrate_device().round > 0.0
    device = open_device("cuda:0")
    assert driver.compiled == ["levels_dense_float, part 6"]
    assert device.compiled(FLOAT, "read_values")
    assert not device.compiled(FLOAT, "fused_loss")
    device.compile(FLOAT)
    for code in device._code.values():
        code.result()
    assert device.compiled(FLOAT, "fused_loss")
