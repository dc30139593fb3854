"""Additive models fitted on a device, by the host in its place: the CPU's results, and what a device cannot do."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV
from ranksvm.device import names
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceMemoryError, OptionError
from sweep_checks import SquaredHingeFunction

pytestmark = pytest.mark.usefixtures("each_device")


def make_data(n=400, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    y = np.round(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)).clip(-1, 2)
    return X, y, rng.integers(0, 12, n)


def fitted(device, X, y=None, *, qid, fit=None, **options):
    options = {"tol": 1e-8, "C": 0.1, "max_bins": 8, **options}
    return AdditiveRankSVM(device=device, **options).fit(X, y, qid=qid, **(fit or {}))


def check_same(X, y=None, *, qid, fit=None, **options):
    """Objectives within the certificates of both, and nearly the same functions."""
    expected, found = (fitted(at, X, y, qid=qid, fit=fit, **options) for at in ("cpu", "host"))
    assert (expected.device_, found.device_) == ("cpu", "host:0")
    assert found.converged_
    allowed = max(found.duality_gap_, expected.duality_gap_, 1e-9 * expected.objective_)
    assert abs(found.objective_ - expected.objective_) <= allowed
    assert (found.n_pairs_, found.n_queries_, found.solver_) == (
        expected.n_pairs_,
        expected.n_queries_,
        expected.solver_,
    )
    largest = np.abs(expected.shape_values_).max()
    np.testing.assert_allclose(found.shape_values_, expected.shape_values_, atol=1e-3 * largest)
    return expected, found


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
def test_every_loss(loss, storage):
    X, y, qid = make_data()
    check_same(storage(X), y, qid=qid, loss=loss)


def test_many_rows():
    """With many rows, products on the CPU look up two columns at once, and products on a device still one."""
    X, y, qid = make_data(n=5000)
    check_same(X, y, qid=qid)


@pytest.mark.parametrize(
    "options",
    [
        {"pair_selection": "adjacent"},
        {"pair_weighting": "per_query"},
        {"pair_weighting": "gain_gap"},
        {"monotone": "increasing"},
        {"monotone": {0: "increasing"}, "interactions": 2},
        {"solver": "tron"},
        {"linear": False},
        {"step_weight": 0.0},
        {"max_bins": 255},
        {"categorical": [3]},
    ],
    ids=str,
)
def test_every_option(options):
    X, y, qid = make_data()
    X[:, 3] = np.round(X[:, 3])
    check_same(X, y, qid=qid, **options)


def test_interactions_and_their_bounds():
    X, y, qid = make_data()
    expected, found = check_same(X, y, qid=qid, interactions=3)
    np.testing.assert_array_equal(found.interactions_, expected.interactions_)
    np.testing.assert_allclose(found.candidate_bounds_, expected.candidate_bounds_, rtol=1e-3)


def test_missing_values_weights_float32_listed_pairs_and_preferences():
    X, y, qid = make_data()
    rng = np.random.default_rng(1)
    missing = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    check_same(missing.astype(np.float32), y, qid=qid, fit={"sample_weight": rng.integers(0, 3, len(y))})
    pairs = np.argwhere((qid[:, None] == qid) & (y[:, None] > y))[::3]
    check_same(X, qid=qid, fit={"pairs": pairs, "pair_weight": rng.random(len(pairs))})
    check_same(ranksvm.Preferences(X[:200], X[200:], prompt=np.arange(200) // 4), qid=None)


def test_a_path_and_a_search():
    X, y, qid = make_data()
    paths = [AdditiveRankSVM(device=at, tol=1e-8).path(X, y, qid=qid, Cs=[0.01, 0.1]) for at in ("cpu", "host")]
    for expected, found in zip(*(path.models for path in paths), strict=True):
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-7)
    options = {"Cs": [0.01, 0.1], "step_weights": [0.0, 1.0], "interactions": [0, 2], "cv": 3, "tol": 1e-8}
    expected, found = (AdditiveRankSVMCV(device=at, **options).fit(X, y, qid=qid) for at in ("cpu", "host"))
    assert found.device_ == "host:0"
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-3)


def test_a_search_over_listed_pairs():
    X, _, _ = make_data()
    preferences = ranksvm.Preferences(X[:200], X[200:], prompt=np.arange(200) // 4)
    options = {"Cs": [0.01, 0.1], "step_weights": [0.0, 1.0], "interactions": [0, 2], "cv": 3, "tol": 1e-8}
    expected, found = (AdditiveRankSVMCV(device=at, **options).fit(preferences) for at in ("cpu", "host"))
    assert found.device_ == "host:0"
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-3)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-7)


def test_what_a_device_cannot_do():
    X, y, qid = make_data(60)
    with pytest.raises(OptionError, match="an additive model is fitted on one GPU: name one"):
        fitted(["host:0", "host:1"], X, y, qid=qid)
    with pytest.raises(OptionError, match="has no loss 'logistic'"):
        fitted("host", X, y, qid=qid, loss="logistic")
    with pytest.raises(OptionError, match="given as Python functions"):
        fitted("host", X, y, qid=qid, loss=SquaredHingeFunction())


def test_too_little_memory(monkeypatch):
    monkeypatch.setitem(names.OPENERS, "host", lambda _number: HostDevice(memory=5000))
    X, y, qid = make_data()
    with pytest.raises(DeviceMemoryError, match="that are free"):
        fitted("host", X, y, qid=qid)


def test_x_is_there_once_for_all_numbers_of_interactions(monkeypatch):
    X, y, qid = make_data(n_features=40)
    X = np.ascontiguousarray(X + 1.0)
    device = HostDevice(memory=2 * X.nbytes)
    monkeypatch.setitem(names.OPENERS, "host", lambda _number: device)
    expected, found = check_same(X, y, qid=qid, interactions=2)
    np.testing.assert_array_equal(found.interactions_, expected.interactions_)
    assert device.free_bytes == 2 * X.nbytes


@pytest.mark.parametrize(("costs", "device"), [(1e3, "cpu"), (1e-9, "host:0")])
def test_auto_takes_a_calibrated_device_that_is_faster(costs, device, auto_gpu, caplog):
    X, y, qid = make_data()
    assert fitted("auto", X, y, qid=qid).device_ == "cpu"
    auto_gpu(costs)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert fitted("auto", X, y, qid=qid).device_ == device
    assert f"device='auto': {'the CPU' if device == 'cpu' else device}, an estimated" in caplog.text


def test_auto_takes_the_cpu_if_memory_is_short(auto_gpu):
    X, y, qid = make_data()
    device = auto_gpu(1e-9)
    device._memory = 2 * X.nbytes  # enough for X and the codes, but not for scores and pairs
    assert fitted("auto", X, y, qid=qid).device_ == "cpu"
