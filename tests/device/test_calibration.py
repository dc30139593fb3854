"""The costs of a device, measured on it."""

import time

import numpy as np
import pytest

from ranksvm.device import Variant, open_device
from ranksvm.device.calibration import device_costs
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceError

FLOAT = Variant(listed=False, sparse=False, real="float")


class Slowed(HostDevice):
    """Launches of a kernel, or copies, that take some time longer."""

    def __init__(self, kernel="", launch=0.0, copy=0.0):
        super().__init__()
        self.kernel, self.seconds, self.copy = kernel, launch, copy

    def copy_in(self, values, into=None):
        time.sleep(self.copy if values.nbytes > 1000 else 0.0)
        return super().copy_in(values, into)

    def launch(self, variant, kernel, arguments, **options):
        work = arguments[-2] > 0
        time.sleep(self.seconds if work and kernel == self.kernel else 0.0)
        super().launch(variant, kernel, arguments, **options)


def test_what_is_measured_is_not_negative():
    costs = device_costs(HostDevice())
    assert min(costs.round, costs.copy_byte) > 0.0
    # differences of two measurements, of work that takes microseconds here
    assert min(costs.read_byte, costs.visit, costs.compilation) >= 0.0


@pytest.mark.parametrize("cost", ["copy_byte", "read_byte", "visit"])
def test_a_device_that_is_slower_costs_more(cost):
    slow = {
        "copy_byte": Slowed(copy=0.1),
        "read_byte": Slowed("read_values", launch=0.1),
        "visit": Slowed("visit_others", launch=0.1),
    }
    costs = device_costs(slow[cost])
    units = {"copy_byte": 8 << 20, "read_byte": 4 * 128 * 48, "visit": 48 * 48}
    seconds = {name: getattr(costs, name) * n for name, n in units.items()}
    assert seconds.pop(cost) >= 0.09
    assert max(seconds.values()) < 0.05


def test_a_device_is_measured_once_and_its_memory_is_free_again(monkeypatch):
    device, launches, launch = HostDevice(), [], HostDevice.launch
    free = device.free_bytes

    def counted(self, *arguments, **options):
        launches.append(arguments[1])
        launch(self, *arguments, **options)

    monkeypatch.setattr(HostDevice, "launch", counted)
    costs = device_costs(device)
    n_launches = len(launches)
    assert device_costs(device) is costs
    assert len(launches) == n_launches
    assert device.free_bytes == free
    device_costs(HostDevice())
    assert len(launches) == 2 * n_launches


@pytest.mark.parametrize("error", [DeviceError, RuntimeError])
def test_what_fails_is_not_tried_again(error, monkeypatch):
    device, launches = HostDevice(), []

    def failing(self, *arguments, **options):
        launches.append(arguments)
        raise error("cannot launch")

    monkeypatch.setattr(HostDevice, "launch", failing)
    for _ in range(2):
        with pytest.raises(error, match="cannot launch"):
            device_costs(device)
    assert len(launches) == 1


def test_a_device_with_next_to_no_memory():
    with pytest.raises(DeviceError):
        device_costs(HostDevice(memory=1000))


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
    device = open_device("cuda:0")
    assert device_costs(device).round > 0.0
    assert driver.compiled == ["levels_dense_float, part 6"]
    assert device.compiled(FLOAT, "read_values")
    assert not device.compiled(FLOAT, "fused_loss")
    device.compile(FLOAT)
    for code in device._code.values():
        code.result()
    assert device.compiled(FLOAT, "fused_loss")
