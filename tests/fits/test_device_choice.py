"""The choice between the processor and a GPU, by what a fit does and what a device costs."""

import logging
import time

import numpy as np
import pytest
import scipy.sparse

from ranksvm.data import ComparablePairs, PairList, Queries, as_design_matrix
from ranksvm.device import names
from ranksvm.device.calibration import DeviceCosts
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceError
from ranksvm.fits import device_choice
from ranksvm.fits.device_choice import cheaper_device, devices_for
from ranksvm.fits.kernel_options import kernel_with
from ranksvm.fits.work import feature_work, kernel_work, linear_work, scoring_work
from ranksvm.kernels.expansions import LinearFunction, expansion
from ranksvm.losses import LossSpec

LOSS = LossSpec("squared_hinge")
# of an order that data sheets of large GPUs have
COSTS = DeviceCosts(round=5e-5, copy_byte=1e-10, read_byte=5e-13, visit=2e-12, compilation=0.15)


def work_of(n_rows, n_features, length=100, dtype=np.float32, loss=LOSS, sparse=False):
    """The work of a fit of lists of one length in three levels, whose X is not there."""
    queries = Queries.from_qid(np.arange(n_rows) // length, n_rows)
    pairs = ComparablePairs.from_labels(queries, np.arange(n_rows) % 3.0)
    return linear_work(loss, pairs, rows_of(n_features, dtype, sparse))


def rows_of(n_features, dtype=np.float32, sparse=False):
    X = np.zeros((1, n_features), dtype=dtype)
    if sparse:
        X = pytest.importorskip("scipy.sparse").csr_array(X)
    return as_design_matrix(X)


class Costing(HostDevice):
    """A device whose launches and copies take some seconds each."""

    seconds = 0.0

    def launch(self, *arguments, **options):
        time.sleep(self.seconds)
        super().launch(*arguments, **options)


@pytest.fixture
def gpu(monkeypatch):
    """Makes the device that "auto" may take; everything else is as it is."""

    def made(device=None, error=None):
        def opened(_number):
            if error is not None:
                raise error
            return device

        monkeypatch.setitem(names.OPENERS, "cuda", opened)
        return device

    return made


# -- what a fit does ---------------------------------------------------------------------------------------------------


def test_more_of_anything_costs_no_less():
    base = work_of(10_000, 20)
    for more in (
        work_of(20_000, 20),
        work_of(10_000, 40),
        work_of(10_000, 20, length=200),
        work_of(10_000, 20, dtype=np.float64),
        work_of(10_000, 20, loss=LossSpec("hinge")),
    ):
        assert more.on_cpu(1) >= base.on_cpu(1)
        assert more.on_gpu(COSTS) > base.on_gpu(COSTS)
    assert base.on_cpu(2) < base.on_cpu(1)


def test_pairs_are_visited_from_both_documents():
    queries = Queries.from_qid(np.zeros(4), 4)
    labels = ComparablePairs.from_labels(queries, np.array([0.0, 0.0, 1.0, 2.0]))  # 5 pairs
    listed = PairList.from_pairs(queries, np.array([[2, 0], [2, 1], [3, 0], [3, 1], [3, 2]]))
    works = [linear_work(LOSS, pairs, rows_of(5000)) for pairs in (labels, listed)]  # too many features for Hessians
    assert works[0].visits == works[1].visits == 2 * 2.0 * 5 * works[0].passes
    assert [work.variant.listed for work in works] == [False, True]


def test_each_cost_of_a_device_counts_once():
    work = work_of(10_000, 20)
    nothing = DeviceCosts(0.0, 0.0, 0.0, 0.0, 0.0)
    assert work.on_gpu(nothing) == 0.0
    assert work.on_gpu(nothing._replace(round=1.0)) == work.passes
    assert work.on_gpu(nothing._replace(copy_byte=1.0)) == 10_000 * 20 * 4
    assert work.on_gpu(nothing._replace(read_byte=1.0)) == work.passes * work.read
    assert work.on_gpu(nothing._replace(visit=1.0)) == work.visits
    assert work.on_gpu(nothing._replace(compilation=1.0)) == 0.0
    assert work.on_gpu(nothing._replace(compilation=1.0), compiled=False) > 1.0


def test_what_does_not_fit_is_copied_in_every_pass_or_not_at_all():
    costs = DeviceCosts(0.0, 1.0, 0.0, 0.0, 0.0)
    work, sparse = work_of(10_000, 20), work_of(10_000, 20, sparse=True)
    assert work.on_gpu(costs, free=work.resident) == work.passes * work.copied
    assert work.on_gpu(costs, free=2 * work.resident) == work.copied
    assert sparse.on_gpu(costs, free=sparse.resident) == np.inf
    assert sparse.on_gpu(costs, free=2 * sparse.resident) < np.inf
    queries = Queries.from_qid(np.zeros(100), 100)
    pairs = ComparablePairs.from_labels(queries, np.arange(100) % 2.0)
    features = feature_work(LOSS, pairs, rows_of(50), 7)
    assert features.on_gpu(costs, free=features.resident) == np.inf
    assert features.on_gpu(costs) == 0.0  # they are made there
    Q = kernel_work(1000, 10, 4, precomputed=False)
    made = DeviceCosts(0.0, 0.0, 0.0, 1.0, 0.0)
    assert Q.on_gpu(made, free=4e6) == Q.passes * Q.on_gpu(made, free=8e6)
    given = kernel_work(1000, 10, 4, precomputed=True)
    assert given.on_gpu(made) == 0.0
    assert given.on_gpu(costs) == 4e6 + Q.on_gpu(costs)


def test_what_several_fits_share():
    work = work_of(10_000, 20)
    several = work.repeated(10)
    assert several.on_cpu(1) == pytest.approx(10 * work.on_cpu(1))
    once = COSTS.copy_byte * work.copied
    assert several.on_gpu(COSTS) - once == pytest.approx(10 * (work.on_gpu(COSTS) - once))


def test_the_work_of_scores():
    """One pass over X, as much as is copied; the values of kernels are made, a block of documents at a time."""
    X = np.zeros((1000, 20), dtype=np.float32)
    linear = scoring_work(LinearFunction(np.zeros(20)), X)
    assert (linear.passes, linear.copied, linear.made, linear.variant.real) == (1, X.nbytes, 0.0, "float")
    sparse = scoring_work(LinearFunction(np.zeros(20)), scipy.sparse.csr_array(np.eye(20)))
    assert (sparse.copied, sparse.variant.sparse, sparse.variant.real) == (20 * 12, True, "double")
    kernel = kernel_with("rbf", 0.1, 3, 0.0)
    few, many = (scoring_work(expansion(kernel, np.zeros((k, 20)), np.zeros(k)), X) for k in (100, 100_000))
    assert many.cpu == 1000 * few.cpu > linear.cpu
    assert many.made == 1000 * few.made > 0
    assert (few.passes, many.passes) == (1, 3)
    assert many.read * many.passes == 8.0 * 1000 * 100_000


def test_where_a_large_gpu_pays():
    small, large = work_of(9_630, 46, 20), work_of(2_270_296, 136, 120)
    assert small.on_cpu(2) < 0.02
    assert small.on_cpu(2) < small.on_gpu(COSTS, compiled=False)
    assert large.on_gpu(COSTS, compiled=False) < large.on_cpu(1)
    assert large.on_gpu(COSTS) < large.on_cpu(16)


# -- the choice --------------------------------------------------------------------------------------------------------


def test_no_gpu_is_opened_for_what_cannot_pay(gpu, caplog):
    gpu(error=AssertionError("a GPU was opened"))
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert cheaper_device(work_of(9_630, 46), 1) is None
    assert "s on the fastest GPU" in caplog.text


def test_the_gpu_is_taken_where_its_measured_costs_say_so(gpu, caplog):
    """Large data: what the host, which plays the GPU, was measured to cost is far too much, or nothing."""
    work = work_of(1_000_000, 500)
    for cpu, place in ((1e-9, None), (1e9, "host:0")):
        device = gpu(HostDevice())
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="ranksvm"):
            found = cheaper_device(work._replace(cpu=work.cpu + cpu if place else 10.0), 1)
        assert found is (None if place is None else device)
        expected = "the processor, an estimated 10 s, not" if place is None else "host:0, an estimated"
        assert f"device='auto': {expected}" in caplog.text


def test_a_device_that_was_made_slow_is_left(gpu):
    """The same work, near the limit, on a device as it is and on one whose launches take longer."""
    work = kernel_work(3000, 5, 4, precomputed=True)._replace(read=0.0, cpu=5.0)
    assert cheaper_device(work, 1) is None  # no GPU here, or one that is not opened
    fast = gpu(Costing())
    assert cheaper_device(work, 1) is fast
    Costing.seconds = 0.05
    try:
        gpu(Costing())
        assert cheaper_device(work, 1) is None
    finally:
        Costing.seconds = 0.0


def test_once_a_gpu_is_open_small_data_are_judged_by_its_costs(gpu, monkeypatch):
    device = gpu(HostDevice())
    monkeypatch.setattr(device_choice, "device_costs", lambda _: DeviceCosts(1e-9, 0.0, 0.0, 0.0, 0.0))
    small = work_of(1000, 5)
    assert cheaper_device(small, 1) is None
    names.open_device("cuda:0")
    assert cheaper_device(small, 1) is device


@pytest.mark.parametrize("compiled", [True, False])
def test_kernels_that_are_not_compiled_yet_cost_more(compiled, gpu, monkeypatch):
    device = gpu(HostDevice())
    names.open_device("cuda:0")
    monkeypatch.setattr(device_choice, "device_costs", lambda _: DeviceCosts(1e-9, 0.0, 0.0, 0.0, 1.0))
    monkeypatch.setattr(HostDevice, "compiled", lambda *_: compiled)
    assert cheaper_device(work_of(1000, 5), 1) is (device if compiled else None)


@pytest.mark.parametrize("error", [DeviceError("no driver"), RuntimeError("CUDA_ERROR_UNKNOWN")])
@pytest.mark.parametrize("at", ["opening", "launch"])
def test_a_gpu_that_fails_leaves_the_processor(error, at, gpu, monkeypatch, caplog):
    gpu(HostDevice(), error if at == "opening" else None)
    if at == "launch":

        def failing(self, *arguments, **options):
            raise error

        monkeypatch.setattr(HostDevice, "launch", failing)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert cheaper_device(work_of(1_000_000, 500), 1) is None
    assert "device='auto': the processor" in caplog.text
    assert str(error) in caplog.text


def test_an_interrupt_of_the_measurement_is_one(gpu, monkeypatch):
    device = gpu(HostDevice())

    def interrupted(self, *arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(HostDevice, "launch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cheaper_device(work_of(1_000_000, 500), 1)
    assert cheaper_device(work_of(1_000_000, 500)._replace(cpu=1e9), 1) is device


def test_devices_that_are_named_are_taken(gpu):
    gpu(error=AssertionError("a GPU was opened"))
    queries = Queries.from_qid(np.zeros(4), 4)
    pairs = ComparablePairs.from_labels(queries, np.arange(4.0))
    assert devices_for("cpu", "auto", LOSS, pairs, rows_of(2), 1) == ()
    assert devices_for(["cuda", "cuda:1"], "auto", LOSS, pairs, rows_of(2), 1) == ("cuda:0", "cuda:1")
