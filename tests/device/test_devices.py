"""Names of devices, the host in the place of one, and the compiler of kernels."""

import re
import sys

import numpy as np
import pytest
import ranksvm._compiled.host_device as compiled

from ranksvm.device import Variant, device_names, names, open_device
from ranksvm.device.cuda import PARTS, kernel_source, macros_of, part_of
from ranksvm.device.host import HostDevice
from ranksvm.device.launcher import as_int32
from ranksvm.device.names import device_complaint
from ranksvm.device.protocol import DeviceArray, words
from ranksvm.exceptions import DataError, DeviceError, MissingDependencyError

DENSE = Variant(listed=False, sparse=False, real="float")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("cpu", ()),
        ("auto", ()),
        ("cuda", ("cuda:0",)),
        ("cuda:3", ("cuda:3",)),
        (["cuda:0", "cuda:1"], ("cuda:0", "cuda:1")),
    ],
)
def test_valid_names(device, expected):
    assert device_complaint(device) is None
    assert device_names(device) == expected


@pytest.mark.parametrize(
    "device", ["gpu", "cuda:", "cuda:x", "cpu:1", "host", "", 0, None, [], ["cpu"], ["cuda", "cpu"]]
)
def test_other_names_are_refused_in_one_sentence(device):
    complaint = device_complaint(device)
    assert complaint.startswith("must be 'cpu', 'cuda'")
    assert complaint.endswith(f"got {device!r}")


def test_a_device_is_named_once():
    assert device_complaint(["cuda", "cuda:0"]) == "names a GPU twice: ['cuda', 'cuda:0']"


def test_without_a_gpu_one_sentence_says_so():
    """Whatever is installed here: the packages, the driver, or neither."""
    with pytest.raises((MissingDependencyError, DeviceError)) as raised:
        open_device("cuda:63")
    if raised.type is MissingDependencyError:
        assert 'pip install "ranksvm[cuda]"' in str(raised.value)
    else:
        assert "device='cuda:63'" in str(raised.value)
        assert "Use device='cpu'" in str(raised.value)


def test_without_the_packages_the_line_to_type_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(MissingDependencyError, match=r'needs the packages .*: pip install "ranksvm\[cuda\]"$'):
        open_device("cuda:0")


def test_a_device_is_opened_once(monkeypatch):
    monkeypatch.setitem(names.OPENERS, "host", lambda number: HostDevice(n_blocks=number + 1))
    assert open_device("host:2") is open_device("host:2")
    assert open_device("host:2").n_blocks == 3


def test_numbers_of_rows_beyond_2_to_the_31_are_refused():
    most = np.iinfo(np.int32).max
    found = as_int32(np.array([0, most]))
    assert (found.dtype, found.tolist()) == (np.int32, [0, most])
    for numbers in (np.array([most + 1]), np.array([5, 1 << 40], dtype=np.uint64)):
        with pytest.raises(DataError, match=r"^A GPU takes at most 2,147,483,647 rows and columns, .*device='cpu'\.$"):
            as_int32(numbers)
    assert as_int32(np.zeros(0, dtype=np.int64)).dtype == np.int32


def test_arrays_go_there_and_back():
    device = HostDevice()
    values = np.arange(12.0).reshape(3, 4)
    there = device.copy_in(values)
    np.testing.assert_array_equal(device.copy_out(there), values)
    np.testing.assert_array_equal(device.copy_out(there.part(4, 8)), values[1])
    device.copy_in(np.ones(4), there.part(4, 8))
    assert device.copy_out(there)[1].tolist() == [1.0] * 4


def test_memory_is_counted_and_freed():
    device = HostDevice(memory=1000)
    array = device.empty((100,), np.float64)
    assert device.free_bytes == 200
    with pytest.raises(DeviceError, match=r"an array of 400 bytes is more than the 200 that are free"):
        device.empty((100,), np.float32)
    del array
    assert device.free_bytes == 1000


def test_arguments_take_8_bytes_each():
    array = DeviceArray(12345, (2,), np.dtype(np.float64), None)
    found = words((array, None, 3, -1, 0.5, np.int32(7), np.float64(2.0), True))
    assert [type(word) for word in found] == [int] * 4 + [float, int, float, int]
    assert found == [12345, 0, 3, -1, 0.5, 7, 2.0, 1]


def test_the_border_of_the_kernels():
    nothing = np.zeros(1, dtype=np.uint64)
    with pytest.raises(ValueError, match="no kernel levels_dense_float/absent"):
        compiled.launch("levels_dense_float/absent", 1, 8, 0, nothing)
    with pytest.raises(ValueError, match="arguments of levels_dense_float/take has length 1, but 4 is needed"):
        compiled.launch("levels_dense_float/take", 1, 8, 0, nothing)
    for n_threads in (4, 24):
        with pytest.raises(ValueError, match="power of 2"):
            compiled.launch("levels_dense_float/take", 1, n_threads, 0, np.zeros(4, dtype=np.uint64))


def test_sums_of_rows_of_any_shape():
    rng = np.random.default_rng(0)
    for n_threads in (8, 64):
        for shape in ((1, 1), (3, 5), (100, 4), (7, 33), (70, 130)):
            device = HostDevice(n_blocks=2, n_threads=n_threads)
            values = rng.normal(size=shape)
            out = device.empty(shape[1:], np.float64)
            arguments = device.copy_in(values), *shape, out
            device.launch(DENSE, "add_rows", arguments, n_blocks=2, shared=n_threads)
            np.testing.assert_allclose(device.copy_out(out), values.sum(axis=0), rtol=1e-12, atol=1e-12)


def test_the_source_is_one_text():
    source = kernel_source()
    assert '#include "' not in source
    assert source.count("namespace ranksvm::device {") >= 5


def installed_nvrtc():
    """The module of NVRTC; skips the test if the module or the library is not installed."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as error:
        pytest.skip(f"NVRTC is not installed: {error}")
    return nvrtc


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.slow), "sm_90"])
def test_nvrtc_compiles_every_variant_without_a_gpu(listed, sparse, real, arch):
    nvrtc = installed_nvrtc()
    variant = Variant(listed, sparse, real)
    found = set()
    for part in (*PARTS, 2):
        macros = [f"-D{name}={value}".encode() for name, value in macros_of(variant, part)]
        options = [f"-arch={arch}".encode(), b"-std=c++17", b"--ptxas-options=--verbose", *macros]
        _, program = nvrtc.nvrtcCreateProgram(kernel_source().encode(), b"ranksvm.cu", 0, [], [])
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, log)
        assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
        kernels = re.split(rb"Compiling entry function '", log)[1:]
        for kernel in kernels:
            name = kernel.partition(b"'")[0].decode()
            found.add(name)
            assert part_of(name) == part
            # two blocks of 256 threads and more at a time, and no variables in memory
            assert int(re.search(rb"Used (\d+) registers", kernel)[1]) <= 128, name
            assert b" 0 bytes spill stores, 0 bytes spill loads" in kernel, name
    # nothing that the host runs is missing
    assert found == {name.partition("/")[2] for name in compiled.kernel_names(str(variant))}


def test_compiled_kernels_are_kept_for_later_processes(tmp_path, monkeypatch):
    """By cuda-core 1.1 and newer; where they cannot be, they are compiled every time."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    utils = pytest.importorskip("cuda.core.utils", reason="cuda-core is older than 1.1")
    installed_nvrtc()
    from ranksvm.device.cuda import compile_kernels

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    first, second = (compile_kernels(DENSE, 4, "sm_90").code for _ in range(2))
    assert first == second
    assert len([path for path in (tmp_path / "kept").rglob("*") if path.is_file() and path.stat().st_size > 1000]) == 1

    def refused():
        raise PermissionError("no place for files")

    monkeypatch.setattr(utils, "FileStreamProgramCache", refused)
    assert compile_kernels(DENSE, 4, "sm_90").code == first
