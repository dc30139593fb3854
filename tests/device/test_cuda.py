"""`CudaDevice` under the real cuda-core, cuda-bindings and NVRTC, on a stand-in for the driver, in all its modes."""

import gc
import threading
import time

import numpy as np
import pytest

from ranksvm import RankSVM, make_ranking
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.device import Variant, cuda, names, open_device
from ranksvm.device.arrays import array_like
from ranksvm.device.cuda import LARGE_BLOCKS, CudaDevice, gpu_names
from ranksvm.exceptions import DeviceError
from ranksvm.losses import LossSpec
from ranksvm.terms.device import layout
from ranksvm.terms.device.term import DeviceTerm
from ranksvm.terms.host import ThreadedTerm
from stand_in_driver import MODES
from term_checks import PROBLEMS, TermProblem

FLOAT = Variant(listed=False, sparse=False, real="float")


@pytest.fixture(params=MODES, autouse=True)
def mode(request, driver):
    driver.mode = request.param
    return request.param


@pytest.fixture
def in_a_new_thread():
    """Calls a function in a thread of its own: there cuda-core asks the driver again what a device is."""

    def run(function):
        found = []

        def noted():
            try:
                found.append(function())
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=noted)
        thread.start()
        thread.join()
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    return run


def make_data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 5)).astype(np.float32), rng.integers(0, 3, 300), np.arange(300) // 20


# -- fits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_term_on_it(kind):
    problem = TermProblem("huber", n=600, **PROBLEMS[kind])
    design = as_design_matrix(problem.X)
    loss = problem.spec.with_pairs(problem.pairs)
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
    X, y, qid = make_data()
    expected = RankSVM(tol=1e-8).fit(X, y, qid=qid)
    for device in ("cuda", "cuda:1", ["cuda:0", "cuda:1"]):
        found = RankSVM(tol=1e-8, device=device).fit(X, y, qid=qid)
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert found.device_ == ["cuda:0", "cuda:1"]
    # once for each device, not for every fit
    parts = [f"levels_dense_float, part {part}" for part in (1, 2, 3)]
    assert sorted(driver.compiled) == sorted(2 * parts)
    assert open_device("cuda:1").n_blocks == 16


def test_rows_stream_through_pinned_memory(driver, monkeypatch):
    """While kernels work on a block, the next one is copied beside them, into other memory."""
    monkeypatch.setattr(layout, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(layout, "STREAM_BYTES", 4000)
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(600, 5)), rng.integers(0, 3, 600), np.arange(600) // 20
    expected = RankSVM(tol=1e-8).fit(X, y, qid=qid)
    pinned, found = [], {}
    for writeable in (True, False):
        X.flags.writeable = writeable
        ranker = RankSVM(tol=1e-8, device="cuda")
        term = DeviceTerm.__init__

        def noted(self, *arguments, term=term, **options):
            term(self, *arguments, **options)
            pinned.extend(driver.pinned.values())

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(DeviceTerm, "__init__", noted)
            found[writeable] = ranker.fit(X, y, qid=qid).objective_
    assert found[True] == found[False] == pytest.approx(expected.objective_, rel=1e-9)
    read_only = 8
    assert set(pinned) == {(X.nbytes, 0), (X.nbytes, read_only)}
    gc.collect()
    assert not driver.pinned
    driver.failures["cuMemHostRegister"] = 1
    assert RankSVM(tol=1e-8, device="cuda").fit(X, y, qid=qid).objective_ == found[True]


def test_rows_that_are_gathered_stream_through(monkeypatch):
    """Blocks of rows that are not next to each other are copied from arrays that nobody else holds."""
    monkeypatch.setattr(layout, "RESIDENT_SHARE", 0.0)
    # more than what is freed without the system knowing
    monkeypatch.setattr(layout, "STREAM_BYTES", 1 << 20)
    order = np.random.default_rng(0).permutation(8000)
    X, y, qid = np.random.default_rng(1).normal(size=(8000, 46)), order % 3.0, order // 10
    loss = LossSpec("squared_hinge").with_pairs(ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y))
    term, expected = DeviceTerm(CudaDevice(), as_design_matrix(X), loss), ThreadedTerm(as_design_matrix(X), loss)
    assert len(term._rows.blocks) >= 3
    for scale in (0.01, 0.1):
        found, wanted = (one.evaluate(np.full(46, scale), None) for one in (term, expected))
        np.testing.assert_allclose(found.gradient, wanted.gradient, rtol=1e-11, atol=1e-8)


# -- devices that are not there, or too old ----------------------------------------------------------------------------


def test_a_device_that_is_not_there(driver):
    with pytest.raises(DeviceError, match=r"^device='cuda:4': the number of CUDA GPUs here is 4, numbered from 0\."):
        open_device("cuda:4")
    driver.n_devices = 0
    with pytest.raises(DeviceError, match=r"the number of CUDA GPUs here is none\. Use device='cpu'\.$"):
        open_device("cuda:0")
    assert gpu_names() == []


def test_names_of_gpus():
    assert gpu_names() == [f"cuda:{number} (stand-in)" for number in range(4)]


def test_a_driver_that_does_not_start(driver):
    driver.failures["cuInit"] = 803
    message = r"driver \(580 or newer\), but the CUDA driver does not start here: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
    with pytest.raises(DeviceError, match=message):
        open_device("cuda:0")


def test_a_driver_that_is_too_old(driver):
    driver.driver_version = 12080
    with pytest.raises(DeviceError, match=r"driver \(580 or newer\), but the driver here is for CUDA 12\.8\. Use"):
        gpu_names()


def test_a_gpu_that_is_too_old(driver, in_a_new_thread):
    driver.version = 7, 0
    message = r"^device='cuda:0': stand-in has compute capability 7\.0, and NVRTC compiles for 7\.5 and newer\. Use"
    with pytest.raises(DeviceError, match=message):
        in_a_new_thread(CudaDevice)


# -- failures ----------------------------------------------------------------------------------------------------------


def test_out_of_memory_says_what_was_asked_for_and_what_is_free(driver):
    device = CudaDevice()
    driver.memory = 10_000
    kept = device.empty((1000,), np.float64)
    message = r"^cuda:0 is out of memory: 4 KB were asked for and 2 KB are free\. Free memory .* or use device='cpu'\.$"
    with pytest.raises(DeviceError, match=message):
        device.empty((1000,), np.float32)
    del kept
    assert device.free_bytes == 10_000


@pytest.mark.parametrize("memory", [250_000, 2_000_000])
def test_a_fit_with_little_memory(driver, memory):
    """X streams through if it does not fit."""
    X, y, qid = make_data()
    X = np.tile(X, (1, 40))
    expected = RankSVM(tol=1e-6).fit(X, y, qid=qid)
    driver.memory = memory
    found = RankSVM(tol=1e-6, device="cuda").fit(X, y, qid=qid)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)


def test_a_fit_with_too_little_memory(driver):
    X, y, qid = make_data()
    driver.memory = 5000
    with pytest.raises(DeviceError, match="cuda:0 is out of memory: "):
        RankSVM(device="cuda").fit(X, y, qid=qid)


@pytest.mark.parametrize("name", ["cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuLaunchKernelEx"])
def test_a_failed_copy_or_kernel_is_an_error_of_the_device(driver, name):
    device = CudaDevice()
    array = device.copy_in(np.arange(3.0))
    driver.failures[name] = 700

    def work():
        device.launch(FLOAT, "take", (None, None, 3, device.copy_in(np.zeros(3))), n_blocks=1)
        device.copy_out(array)

    with pytest.raises(DeviceError, match=r"^cuda:0 failed.*: CUDA_ERROR_ILLEGAL_ADDRESS"):
        work()
    driver.failures.clear()
    assert device.copy_out(array).tolist() == [0.0, 1.0, 2.0]


def test_what_the_compiler_refuses_is_an_error_of_the_device(driver, in_a_new_thread):
    driver.version = 9, 9

    def launch():
        device = CudaDevice()
        device.launch(FLOAT, "take", (None, None, 3, device.empty((3,), np.float64)), n_blocks=1)

    with pytest.raises(DeviceError, match=r"^cuda:0 failed, by the compiler of its kernels: .*NVRTC_ERROR"):
        in_a_new_thread(launch)


# -- copies ------------------------------------------------------------------------------------------------------------


def test_arrays_without_values():
    device = CudaDevice()
    assert device.copy_out(device.copy_in(np.zeros((0, 3)))).shape == (0, 3)


@pytest.mark.parametrize("size", [10, cuda.KEPT_BYTES // 8, cuda.KEPT_BYTES // 8 + 1])
def test_the_host_may_change_and_free_what_it_has_copied(size, mode):
    """CUDA may read pageable memory after the call: the values are those of the call all the same."""
    device = CudaDevice()
    values = np.arange(float(size))
    expected = values.copy()
    there = device.copy_in(values)
    values[:] = -1.0
    del values
    np.testing.assert_array_equal(device.copy_out(there), expected)
    assert not device._kept


def test_what_is_kept_for_copies_is_bounded(monkeypatch):
    monkeypatch.setattr(cuda, "ALL_KEPT_BYTES", 1000)
    device = CudaDevice()
    arrays = [device.copy_in(np.full(50, number)) for number in range(30)]
    assert sum(values.nbytes for values in device._kept) <= 1000
    assert [device.copy_out(array)[0] for array in arrays] == list(range(30))


@pytest.mark.parametrize("n_threads", [1, 2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_large_arrays_go_through_pinned_buffers(n_threads, dtype, driver, mode, monkeypatch):
    """Whole buffers and a rest, in every mode; a thread fills a buffer again once its copy has ended."""
    monkeypatch.setattr(cuda, "STAGED_BYTES", 1000)
    monkeypatch.setattr(cuda, "PINNED_BYTES", 96)
    device = CudaDevice()
    into = device.empty((200,), dtype)
    for turn in range(3):
        values = (np.arange(600) + turn).astype(dtype).reshape(200, 3)
        there = device.copy_in(values, n_threads=n_threads)
        device.copy_in(values[:, 1], into, n_threads)
        expected = values.copy()
        values[:] = -1
        np.testing.assert_array_equal(device.copy_out(there), expected)
        np.testing.assert_array_equal(device.copy_out(into), expected[:, 1])
    assert len(driver.pinned) == device._n_buffers == (0 if n_threads == 1 else 2 * min(n_threads, 8))
    assert set(driver.pinned.values()) <= {(96, 0)}
    del device, into, there
    for _ in range(1000):  # a thread may hold its last task for a moment
        gc.collect()
        if not driver.pinned:
            break
        time.sleep(0.01)
    assert not driver.pinned


def test_a_fit_copies_large_features_by_all_threads(driver, monkeypatch):
    monkeypatch.setattr(cuda, "STAGED_BYTES", 1000)
    monkeypatch.setattr(cuda, "PINNED_BYTES", 256)
    X, y, qid = make_data()
    assert X.nbytes >= 1000
    expected = RankSVM().fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(RankSVM(device="cuda", n_jobs=2).fit(X, y, qid=qid).coef_, expected, rtol=1e-6)
    assert open_device("cuda:0")._n_buffers == 4


def test_buffers_that_cannot_be_pinned_do(driver, mode, monkeypatch):
    monkeypatch.setattr(cuda, "STAGED_BYTES", 1000)
    monkeypatch.setattr(cuda, "PINNED_BYTES", 96)
    driver.failures["cuMemHostRegister"] = 2
    device, values = CudaDevice(), np.arange(500.0)
    np.testing.assert_array_equal(device.copy_out(device.copy_in(values, n_threads=2)), values)
    assert not driver.pinned


def test_a_copy_through_buffers_that_fails_is_an_error_of_the_device(driver, monkeypatch):
    monkeypatch.setattr(cuda, "STAGED_BYTES", 1000)
    device, values = CudaDevice(), np.arange(500.0)
    driver.failures["cuMemcpyHtoDAsync"] = 700
    with pytest.raises(DeviceError, match=r"^cuda:0 failed: CUDA_ERROR_ILLEGAL_ADDRESS"):
        device.copy_in(values, n_threads=2)
    driver.failures.clear()
    np.testing.assert_array_equal(device.copy_out(device.copy_in(values, n_threads=2)), values)


def test_an_array_is_pinned_once(driver, caplog):
    device, values = CudaDevice(), np.zeros(100)
    with caplog.at_level("INFO", logger="ranksvm"):
        first, again = device.pin(values), device.pin(values)
        assert driver.calls["cuMemHostRegister"] == 1
        del first
        assert driver.pinned
        del again
        assert not driver.pinned
        driver.failures["cuMemHostRegister"] = 712  # CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, by the user
        assert device.pin(values) is None
    assert not caplog.messages
    driver.failures.clear()


# -- contexts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, 0, 1])
def test_the_current_device_of_the_caller_stays(driver, before):
    X, y, qid = make_data()
    driver.context = before
    for device in ("cuda:0", "cuda:1"):
        RankSVM(tol=1e-3, device=device).fit(X, y, qid=qid)
        assert driver.context == before
    array = open_device("cuda:0").empty((3,), np.float64)
    assert open_device("cuda:0").free_bytes > 0
    open_device("cuda:0").synchronise()
    with pytest.raises(DeviceError):
        open_device("cuda:4")
    del array
    assert driver.context == before
    driver.context = None


# -- kernels -----------------------------------------------------------------------------------------------------------


def test_nothing_is_compiled_twice(driver):
    device = CudaDevice()
    device.compile(FLOAT)
    device.compile(FLOAT)
    X = device.copy_in(np.ones((3, 2), dtype=np.float32))
    for _ in range(2):
        largest = device.empty((2,), np.float64)
        device.launch(FLOAT, "largest_values", (X, 3, 2, largest), n_blocks=1)
    assert device.copy_out(largest).tolist() == [1.0, 1.0]
    for code in device._code.values():  # made by threads of their own
        code.result()
    parts = (1, 2, 3, 4)  # the last for the kernel that fits do not need
    assert sorted(driver.compiled) == [f"levels_dense_float, part {part}" for part in parts]


def test_integers_of_numpy_are_sizes_of_a_launch():
    device = CudaDevice()
    out = device.empty((3,), np.float64)
    device.launch(FLOAT, "take", (None, None, np.int64(3), out), n_blocks=np.int64(1), shared=np.int32(8))
    assert device.copy_out(out).tolist() == [0.0] * 3


@pytest.mark.parametrize("wrong", [np.float32(0.5), "3", np.zeros(3), 3 + 0j])
def test_arguments_of_another_type_are_refused(wrong):
    """A number of 4 bytes would be read as one of 8."""
    device = CudaDevice()
    with pytest.raises(TypeError):
        device.launch(FLOAT, "take", (None, None, wrong, device.empty((3,), np.float64)), n_blocks=1)


def test_shared_memory_is_allowed_once_and_all_of_it(driver):
    """A thread that allows a kernel less than another thread has allowed it would end the other's fit."""
    device = CudaDevice()
    parts, out = device.copy_in(np.ones((2, 3))), device.empty((3,), np.float64)
    for shared in (1000, 12_000, 28_000, 256):
        device.launch(FLOAT, "add_rows", (parts, 2, 3, out), n_blocks=1, shared=shared)
    assert device.copy_out(out).tolist() == [2.0] * 3
    assert driver.calls["cuKernelSetAttribute"] == 1
    with pytest.raises(DeviceError, match=r"^cuda:0 failed, by the kernel add_rows: CUDA_ERROR_INVALID_VALUE"):
        device.launch(FLOAT, "add_rows", (parts, 2, 3, out), n_blocks=1, shared=30_000)


@pytest.mark.parametrize("n_features", [46, 136])
def test_the_blocks_with_rows_in_shared_memory_fit_into_a_multiprocessor(driver, n_features):
    """Each of them also takes 1 KB of the 228 KB that the driver reserves."""
    data = make_ranking(1280, 6, n_features, random_state=0)
    pairs = ComparablePairs.from_labels(Queries.from_qid(data.qid, data.n_rows), data.y)
    term = DeviceTerm(CudaDevice(), as_design_matrix(data.X), LossSpec("squared_hinge").with_pairs(pairs))
    term.evaluate(np.zeros(n_features), None)
    shared = max(size for name, _, size in driver.launches if name.endswith("/fused_loss"))
    # rows of float32 are used up to the last that fits
    assert 228 - 8 < LARGE_BLOCKS * (shared / 1024 + 1) <= 228


@pytest.mark.parametrize(("cache", "rows"), [(50 << 20, 25 << 20), (4 << 20, 0)])
def test_half_of_the_cache_holds_rows_that_are_read_twice_unless_it_is_small(driver, cache, rows, in_a_new_thread):
    driver.cache_bytes = cache
    assert in_a_new_thread(CudaDevice).cached_bytes == rows


# -- arrays of other libraries -----------------------------------------------------------------------------------------


def test_the_memory_of_a_result_is_free_after_all_streams(driver):
    """Another library may still read it in a stream of its own."""
    device = open_device("cuda:0")
    view = array_like(device.copy_in(np.ones(3)), device, object())
    device.copy_out(device.copy_in(np.ones(3)))
    gc.collect()  # arrays of earlier tests
    driver.calls.clear()
    del view
    gc.collect()
    assert driver.calls["cuCtxSynchronize"] == driver.calls["cuMemFreeAsync"] == 1
    names._opened.clear()
