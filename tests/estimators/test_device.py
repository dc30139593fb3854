"""Fits on a device, by the host in its place: the results of the processor, and what a device cannot do."""

import gc
import logging
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm import RankSVM, RankSVMCV, regularization_path
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.device import names, open_device
from ranksvm.device.calibration import DeviceCosts
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceError, MissingDependencyError, OptionError
from ranksvm.fits import device_choice
from ranksvm.fits.work import linear_work
from ranksvm.losses import LossSpec
from ranksvm.terms.device import layout
from sweep_checks import SquaredHingeFunction

pytestmark = pytest.mark.usefixtures("each_device")


def make_data(n=300, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    y = np.round(X @ rng.normal(size=n_features) + rng.normal(size=n)).clip(-1, 2)
    qid = rng.integers(0, 12, n)
    return X, y, qid


def fitted(device, X, y=None, *, qid, fit=None, **options):
    return RankSVM(**{"tol": 1e-8, "C": 0.1, "device": device, **options}).fit(X, y, qid=qid, **(fit or {}))


def check_same(X, y=None, *, qid, fit=None, device="host", **options):
    """Objectives within 1e-9 of the processor's, certified; nearly the same weights."""
    expected, found = (fitted(at, X, y, qid=qid, fit=fit, **options) for at in ("cpu", device))
    assert found.converged_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    assert abs(found.objective_ - expected.objective_) <= max(
        found.duality_gap_, expected.duality_gap_, 1e-9 * expected.objective_
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3 * np.abs(expected.coef_).max())
    assert (found.n_pairs_, found.n_queries_, found.solver_) == (
        expected.n_pairs_,
        expected.n_queries_,
        expected.solver_,
    )
    return found


@pytest.mark.parametrize("solver", ["auto", "newton", "tron"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
def test_every_loss_and_solver(loss, solver, storage):
    X, y, qid = make_data()
    found = check_same(storage(X), y, qid=qid, loss=loss, solver=solver)
    assert found.device_ == "host:0"


@pytest.mark.parametrize(
    "options",
    [
        {"pair_selection": "adjacent"},
        {"pair_weighting": "per_query"},
        {"pair_weighting": "label_gap"},
        {"pair_weighting": "gain_gap"},
        {"monotone": "increasing"},
        {"solver": "tron", "stopping": "gradient"},
    ],
    ids=str,
)
def test_every_option(options):
    X, y, qid = make_data()
    check_same(X, y, qid=qid, **options)


def test_weights_float32_listed_pairs_and_censored_times():
    X, y, qid = make_data()
    rng = np.random.default_rng(1)
    weights = {
        "sample_weight": rng.integers(0, 3, len(y)),
        "query_weight": 0.5 + qid,
        "propensity": 0.2 + 0.1 * (y + 2),
    }
    check_same(X.astype(np.float32), y, qid=qid, fit=weights)
    pairs = np.argwhere((qid[:, None] == qid) & (y[:, None] > y))[::3]
    check_same(X, qid=qid, fit={"pairs": pairs, "pair_weight": rng.random(len(pairs))})
    check_same(X, y, qid=qid, fit={"event": rng.random(len(y)) < 0.6})


def test_preferences_of_two_blocks():
    X, *_ = make_data(200)
    check_same(ranksvm.Preferences(X[:100], X[100:], prompt=np.arange(100) // 4), qid=None)


def test_several_devices_share_the_queries():
    X, y, qid = make_data()
    found = check_same(X, y, qid=qid, device=["host:0", "host:1"])
    assert found.device_ == ["host:0", "host:1"]
    # more devices than queries
    check_same(X, y, qid=qid // 11, device=[f"host:{number}" for number in range(4)])


def test_a_fit_gives_the_same_bits_every_time():
    X, y, qid = make_data()
    first, second = (fitted("host", X, y, qid=qid, loss="hinge") for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_warm_start_from_another_device():
    X, y, qid = make_data()
    ranker = fitted("cpu", X, y, qid=qid).set_params(device="host", warm_start=True)
    assert ranker.fit(X, y, qid=qid).n_iter_ <= 1
    assert ranker.device_ == "host:0"


def test_paths_and_searches():
    X, y, qid = make_data()
    Cs = [0.01, 0.1, 1.0]
    paths = [regularization_path(X, y, qid=qid, Cs=Cs, tol=1e-8, device=device) for device in ("cpu", "host")]
    np.testing.assert_allclose(paths[0].objectives, paths[1].objectives, rtol=1e-8)
    searches = [RankSVMCV(Cs=Cs, cv=3, tol=1e-8, device=device).fit(X, y, qid=qid) for device in ("cpu", "host")]
    assert searches[0].C_ == searches[1].C_
    np.testing.assert_allclose(searches[0].scores_, searches[1].scores_, atol=1e-12)
    assert [search.device_ for search in searches] == ["cpu", "host:0"]


def test_models_do_not_know_where_they_were_fitted(tmp_path):
    X, y, qid = make_data()
    ranker = fitted("host", X, y, qid=qid)
    ranker.save(tmp_path / "model")
    for there in (ranksvm.load(tmp_path / "model"), pickle.loads(pickle.dumps(ranker))):
        assert not hasattr(there, "device_")
        np.testing.assert_array_equal(there.predict(X), ranker.predict(X))
        assert there.get_params() == ranker.get_params()


# -- what a device cannot do -------------------------------------------------------------------------------------------


class Unread:
    """Features whose reading would be work."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("X was read")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, r"^device must be 'cpu', 'cuda', .*, got 'gpu'\.$"),
        ({"device": ["host", "host:0"]}, r"^device names a GPU twice: \['host', 'host:0'\]\.$"),
        (
            {"device": "host", "solver": "dual"},
            r"^device='host' has no solver 'dual', which reads the rows one at a time: use device='cpu'\.$",
        ),
        (
            {"device": "host", "loss": SquaredHingeFunction()},
            r"^device='host' cannot evaluate a loss that is given as Python functions: use device='cpu'\.$",
        ),
    ],
)
def test_what_a_device_cannot_do_is_said_before_any_work(options, message):
    for estimator in (RankSVM(**options), RankSVMCV(**options)):
        with pytest.raises(OptionError, match=message):
            estimator.fit(Unread(), np.arange(3), qid=np.zeros(3))


def test_a_gpu_that_is_not_there():
    with pytest.raises((DeviceError, MissingDependencyError), match=r"cuda"):
        RankSVM(device="cuda:63").fit(Unread(), np.arange(3), qid=np.zeros(3))


def test_out_of_memory_is_said_and_changes_nothing(monkeypatch):
    monkeypatch.setitem(names.OPENERS, "host", lambda number: HostDevice(memory=5000))
    X, y, qid = make_data()
    ranker = fitted("cpu", X, y, qid=qid)
    before = dict(vars(ranker))
    with pytest.raises(DeviceError, match="more than the"):
        ranker.set_params(device="host").fit(X, y, qid=qid)
    assert {**vars(ranker), "device": "cpu"} == before


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, DeviceError])
@pytest.mark.parametrize("launches", [0, 7, 20])
def test_an_interrupt_or_an_error_leaves_a_usable_device(launches, error, streamed, monkeypatch):
    if streamed:
        monkeypatch.setattr(layout, "RESIDENT_SHARE", -1e9)
        monkeypatch.setattr(layout, "STREAM_BYTES", 2000)
    X, y, qid = make_data()
    expected = fitted("host", X, y, qid=qid).coef_
    device = open_device("host:0")
    kind = type(device)
    free, run, left = device.free_bytes, kind.launch, [launches]

    def failing(self, *arguments, **options):
        left[0] -= 1
        if left[0] < 0:
            raise error("in the middle of a fit")
        run(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "launch", failing)
        with pytest.raises(error):
            fitted("host", X, y, qid=qid)
    gc.collect()
    assert device.free_bytes == free
    np.testing.assert_array_equal(fitted("host", X, y, qid=qid).coef_, expected)


# -- "auto" ------------------------------------------------------------------------------------------------------------


def test_auto_takes_the_cpu_until_a_gpu_is_calibrated(caplog):
    X, y, qid = make_data()
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert fitted("auto", X, y, qid=qid).device_ == "cpu"
    assert "device='auto': the CPU, because no GPU is calibrated." in caplog.text


@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
def test_auto_takes_the_cheaper_one(storage, caplog, monkeypatch, auto_gpu):
    X, y, qid = make_data()
    device = auto_gpu(1e-9)
    expected = fitted("host", storage(X), y, qid=qid)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        found = fitted("auto", storage(X), y, qid=qid)
    assert found.device_ == device.name
    assert f"device='auto': {device.name}, an estimated" in caplog.text
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    caplog.clear()
    slow = auto_gpu(1.0)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert fitted("auto", storage(X), y, qid=qid).device_ == "cpu"
        path = regularization_path(X, y, qid=qid, Cs=[0.01, 0.1], device="auto")
    assert f"s on {slow.name}" in caplog.text
    assert path.converged.all()


def test_auto_counts_all_fits_of_a_path_or_search(auto_gpu, monkeypatch):
    """The copy of X costs too much for one fit, not for all values of C."""
    X, y, qid = make_data()
    one = linear_work(LossSpec("squared_hinge"), *counted(X, y, qid)).cpu
    device = auto_gpu(DeviceCosts(0.0, 3.0 * one / X.nbytes, 0.0, 0.0, 0.0))
    assert fitted("auto", X, y, qid=qid, n_jobs=1).device_ == "cpu"
    search = RankSVMCV(Cs=np.geomspace(0.01, 1.0, 9), cv=2, device="auto", n_jobs=1)
    chosen, choose = [], device_choice.cheaper_device

    def noted(*arguments):
        chosen.append(choose(*arguments))
        return chosen[-1]

    monkeypatch.setattr(device_choice, "cheaper_device", noted)
    search.fit(X, y, qid=qid)
    regularization_path(X, y, qid=qid, Cs=np.geomspace(0.01, 1.0, 9), device="auto", n_jobs=1)
    # two folds, one fit to all, a path
    assert chosen == [device, device, None, device]


def counted(X, y, qid):
    queries = Queries.from_qid(qid, len(y))
    return ComparablePairs.from_labels(queries, y), as_design_matrix(X)


@pytest.mark.parametrize("options", [{"solver": "dual"}, {"loss": SquaredHingeFunction()}], ids=["dual", "function"])
def test_auto_for_what_a_device_cannot_do(options, auto_gpu):
    X, y, qid = make_data(60)
    auto_gpu(1e-9)
    assert fitted("auto", X, y, qid=qid, tol=1e-4, **options).device_ == "cpu"
