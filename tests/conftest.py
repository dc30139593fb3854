"""Fixtures and settings that several test modules share."""

import os
import pathlib
import shutil

import pytest
from hypothesis import settings

# No test may fail because it is slow, so there are no deadlines. In continuous integration, which decides on merges,
# Hypothesis generates the same examples in every run. Elsewhere it generates new ones, which may find other errors.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Flags of Chromium: no network, no background requests, and no sandbox, because a container does not have one.
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="session")
def shared_data() -> pathlib.Path:
    """Folder of real data sets; tests that need it are skipped if it is absent."""
    root = pathlib.Path(__file__).parents[1]
    folder = pathlib.Path(os.environ.get("RANKSVM_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is absent (RANKSVM_DATA names another folder)")
    return folder


@pytest.fixture(scope="session")
def browser():
    """Chromium; tests that need it are skipped if it, or the library that drives it, is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    path = next(filter(None, found), None)
    if path is None:
        pytest.skip("Chromium is not installed: no page is opened in a browser")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def host_devices(monkeypatch):
    """Define the device names "host:0", "host:1" and so on, for devices that need no GPU."""
    from ranksvm.device import names
    from ranksvm.device.host import HostDevice

    monkeypatch.setitem(names.OPENERS, "host", lambda number: HostDevice(name=f"host:{number}"))


@pytest.fixture(scope="session")
def loaded_driver(tmp_path_factory):
    """The stand-in for the CUDA driver; it reports no GPU until a test uses the fixture ``driver``."""
    import stand_in_driver

    why = stand_in_driver.missing()
    if why is not None:
        pytest.skip(why)
    folder = tmp_path_factory.getbasetemp()
    # compiled GPU kernels are cached in this folder, for all processes of a test run
    shared = folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(shared / "cuda-code"))
        yield stand_in_driver.stand_in(folder)


@pytest.fixture
def driver(loaded_driver, monkeypatch):
    """The stand-in for the CUDA driver, with four GPUs; cuda-core, cuda-bindings and NVRTC are the real ones.

    The test fails if the stand-in recorded a fault, or if the test leaves a device current.
    """
    from ranksvm.device import cuda, names

    monkeypatch.setattr(cuda, "compile_kernels", loaded_driver.noting(cuda.compile_kernels))
    opened = dict(names._opened)
    names._opened.clear()
    loaded_driver.reset()
    loaded_driver.active = True
    yield loaded_driver
    names._opened.clear()
    left, loaded_driver.context = loaded_driver.context, None
    faults = loaded_driver.faults
    loaded_driver.reset()
    loaded_driver.active = False
    names._opened.update(opened)
    assert not faults, "\n".join(faults)
    assert left is None, f"device {left} is still current"


@pytest.fixture(
    params=["host", "late", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("at once", "copies early"))]
)
def device_kind(request):
    """ "host", which replaces a GPU, or a mode of the stand-in driver; "late" finds the most errors."""
    return request.param


@pytest.fixture
def each_device(device_kind, request, monkeypatch):
    """Define the names "host:0" to "host:3": for `HostDevice`, or for `CudaDevice` on the stand-in driver."""
    if device_kind == "host":
        request.getfixturevalue("host_devices")
        return
    request.getfixturevalue("driver").mode = device_kind
    from ranksvm.device import names
    from ranksvm.device.cuda import CudaDevice

    def opened(number):
        device = CudaDevice(number)
        device.name = f"host:{number}"
        return device

    monkeypatch.setitem(names.OPENERS, "host", opened)


@pytest.fixture
def auto_gpu(monkeypatch):
    """A function that installs a calibrated `HostDevice` as the GPU, given its costs, or one number for all of them."""
    from ranksvm.device import calibration, names
    from ranksvm.device.host import HostDevice
    from ranksvm.fits import work

    def made(costs: float | calibration.DeviceCosts) -> HostDevice:
        device = HostDevice(name="host:0")
        monkeypatch.setitem(names.OPENERS, "cuda", lambda _number: device)
        if isinstance(costs, float):
            costs = calibration.DeviceCosts(costs, *[costs / 1e6] * 3, compilation=0.0)
        monkeypatch.setattr(calibration, "_calibrated", [(device, costs)])
        monkeypatch.setattr(work, "PREPARATION", 0.0)
        monkeypatch.setattr(work, "PREPARATION_OF_ROW", 0.0)
        return device

    return made


def pytest_make_parametrize_id(val):
    """Refuse gzip data in the id of a test: it contains the time, so that workers would collect different tests."""
    if isinstance(val, bytes) and val.startswith(b"\x1f\x8b"):
        raise pytest.UsageError("a parameter is a gzip file, whose bytes hold the time: name the test by ids=")
