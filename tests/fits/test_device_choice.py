"""The choice between the processor and a GPU, by what a fit does and what a device costs."""

import logging

import numpy as np
import pytest

from ranksvm.additive import AdditiveTerms, feature_bins
from ranksvm.data import ComparablePairs, PairList, Queries, as_design_matrix
from ranksvm.device import calibrate_device, calibration, names
from ranksvm.device.calibration import DeviceCosts
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceError
from ranksvm.fits import work as work_module
from ranksvm.fits.device_choice import cheaper_device, devices_for
from ranksvm.fits.work import additive_work, feature_work, kernel_work, linear_work
from ranksvm.losses import LossSpec

LOSS = LossSpec("squared_hinge")
# of an order that data sheets of large GPUs have
NOTHING = DeviceCosts(0.0, 0.0, 0.0, 0.0, 0.0)
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
    assert works[0].visits == works[1].visits == 2 * work_module.VISIT_RATIO * 5 * works[0].passes
    assert [work.variant.listed for work in works] == [False, True]


def beside_preparation(work, costs, **options):
    """The estimate for a GPU without the time that the preparation of a fit takes, whatever the GPU costs."""
    return work.on_gpu(costs, **options) - work.on_gpu(NOTHING)


def test_each_cost_of_a_device_counts_once():
    work = work_of(10_000, 20)
    assert work.on_gpu(NOTHING) == work_module.PREPARATION + 10_000 * work_module.PREPARATION_OF_ROW
    assert beside_preparation(work, NOTHING._replace(round=1.0)) == pytest.approx(work.passes)
    assert beside_preparation(work, NOTHING._replace(copy_byte=1.0)) == pytest.approx(10_000 * 20 * 4)
    assert beside_preparation(work, NOTHING._replace(read_byte=1.0)) == pytest.approx(work.passes * work.read)
    assert beside_preparation(work, NOTHING._replace(visit=1.0)) == pytest.approx(work.visits)
    assert beside_preparation(work, NOTHING._replace(compilation=1.0)) == 0.0
    assert beside_preparation(work, NOTHING._replace(compilation=1.0), compiled=False) > 1.0


def test_what_does_not_fit_is_copied_in_every_pass_or_not_at_all():
    costs = DeviceCosts(0.0, 1.0, 0.0, 0.0, 0.0)
    work, sparse = work_of(10_000, 20), work_of(10_000, 20, sparse=True)
    assert beside_preparation(work, costs, free=work.resident) == pytest.approx(work.passes * work.copied)
    assert beside_preparation(work, costs, free=2 * work.resident) == pytest.approx(work.copied)
    assert sparse.on_gpu(costs, free=sparse.resident) == np.inf
    assert sparse.on_gpu(costs, free=2 * sparse.resident) < np.inf
    for each in (work, sparse):
        assert each.resident >= each.copied + 10_000 * 8 * 8  # scores, slopes, and pairs
    queries = Queries.from_qid(np.zeros(100), 100)
    pairs = ComparablePairs.from_labels(queries, np.arange(100) % 2.0)
    features = feature_work(LOSS, pairs, rows_of(50), 7)
    assert features.on_gpu(costs, free=features.resident) == np.inf
    assert beside_preparation(features, costs) == 0.0  # they are made there
    Q = kernel_work(1000, 10, 4, precomputed=False)
    made = DeviceCosts(0.0, 0.0, 0.0, 1.0, 0.0)
    once = beside_preparation(Q, made, free=8e6)
    assert beside_preparation(Q, made, free=4e6) == pytest.approx(Q.passes * once)
    given = kernel_work(1000, 10, 4, precomputed=True)
    assert beside_preparation(given, made) == 0.0
    assert given.on_gpu(costs) == pytest.approx(4e6 + Q.on_gpu(costs))


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_additive_model(dtype, sparse, linear):
    queries = Queries.from_qid(np.zeros(100), 100)
    pairs = ComparablePairs.from_labels(queries, np.arange(100) % 2.0)
    X = np.eye(100, 7, dtype=dtype)
    terms = AdditiveTerms(feature_bins(X, 2), [np.full(2, 0.5)] * 7, np.ones(7), np.zeros(7), 1.0, linear)
    design = terms.design(pytest.importorskip("scipy.sparse").csr_array(X) if sparse else X)
    work = additive_work(LOSS, pairs, design)
    of_features = 100 * design.features.row_bytes if linear else 0.0
    assert work.copied == pytest.approx((2.0 if sparse else 1.0) * of_features + 100 * 7)
    assert work.resident > work.copied + 100 * 8 * 8  # scores, slopes, and pairs
    assert work.on_gpu(NOTHING, free=work.resident) == np.inf
    assert (work.variant.real == "float") == (linear and dtype == np.float32)


def test_what_several_fits_share():
    work = work_of(10_000, 20)
    several = work.repeated(10)
    assert several.on_cpu(1) == pytest.approx(10 * work.on_cpu(1))
    once = COSTS.copy_byte * work.copied + work.on_gpu(NOTHING)
    assert several.on_gpu(COSTS) - once == pytest.approx(10 * (work.on_gpu(COSTS) - once))


def test_where_a_large_gpu_pays():
    small, large = work_of(9_630, 46, 20), work_of(2_270_296, 136, 120)
    assert small.on_cpu(2) < 0.02
    assert small.on_cpu(2) < small.on_gpu(COSTS, compiled=False)
    assert large.on_gpu(COSTS, compiled=False) < large.on_cpu(1)
    # on an H100, with X on the host: 0.26 s, and 1.3 and 0.22 s on the CPU's 2 and 16 threads
    measured = DeviceCosts(round=6.4e-5, copy_byte=8.9e-11, read_byte=3.35e-13, visit=3.66e-13, compilation=0.1)
    assert large.on_gpu(measured) < large.on_cpu(2)
    assert large.on_gpu(measured) == pytest.approx(large.on_cpu(16), rel=0.2)


# -- the choice --------------------------------------------------------------------------------------------------------


def test_until_a_gpu_is_calibrated_the_cpu_is_taken(monkeypatch, caplog):
    def opened(_number):
        raise AssertionError("a GPU was opened")

    monkeypatch.setitem(names.OPENERS, "cuda", opened)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert cheaper_device(work_of(1_000_000, 500), 1) is None
    assert "the CPU, because no GPU is calibrated. ranksvm.calibrate_device() measures the first GPU" in caplog.text


@pytest.mark.parametrize(("cpu", "place"), [(1e-9, "the CPU"), (1e9, "host:0")])
def test_a_calibrated_gpu_is_taken_where_its_measured_costs_say_so(cpu, place, monkeypatch, caplog):
    device = HostDevice(name="host:0")
    monkeypatch.setitem(names.OPENERS, "cuda", lambda _number: device)
    monkeypatch.setattr(calibration, "_calibrated", [])
    assert calibrate_device().round > 0.0
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        found = cheaper_device(work_of(10_000, 50)._replace(cpu=cpu), 1)
    assert found is (device if place == "host:0" else None)
    assert f"device='auto': {place}, an estimated" in caplog.text


@pytest.mark.parametrize("compiled", [True, False])
def test_kernels_that_are_not_compiled_yet_cost_more(compiled, auto_gpu, monkeypatch):
    device = auto_gpu(DeviceCosts(1e-9, 0.0, 0.0, 0.0, 1.0))
    monkeypatch.setattr(HostDevice, "compiled", lambda *_: compiled)
    assert cheaper_device(work_of(1000, 5), 1) is (device if compiled else None)


@pytest.mark.parametrize("error", [DeviceError("no driver"), RuntimeError("CUDA_ERROR_UNKNOWN")])
def test_a_gpu_that_fails_leaves_the_cpu(error, auto_gpu, monkeypatch, caplog):
    def failing(self):
        raise error

    auto_gpu(DeviceCosts(1e-9, 0.0, 0.0, 0.0, 0.0))
    monkeypatch.setattr(HostDevice, "free_bytes", property(failing))
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert cheaper_device(work_of(1_000_000, 500), 1) is None
    assert f"device='auto': the CPU, because host:0 does not answer: {error}" in caplog.text


def test_devices_that_are_named_are_taken():
    assert devices_for("cpu", "auto", LOSS, 1, None) == ()
    assert devices_for(["cuda", "cuda:1"], "auto", LOSS, 1, None) == ("cuda:0", "cuda:1")
