"""Kernel models fitted on a device, by the host in its place: the processor's results, and what a device cannot do."""

import logging
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm import KernelRankSVM, KernelRankSVMCV, RankSVM
from ranksvm.analysis import weight_intervals
from ranksvm.device import names
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DataError, DeviceError, MissingDependencyError, OptionError
from sweep_checks import SquaredHingeFunction

pytestmark = pytest.mark.usefixtures("each_device")


def make_data(n=150, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    y = np.round(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)).clip(-1, 2)
    return X, y, rng.integers(0, 8, n)


def fitted(device, X, y=None, *, qid, fit=None, **options):
    options = {"C": 0.1, "gamma": 0.3, "tol": 1e-7, "random_state": 0, "n_components": 40, **options}
    return KernelRankSVM(device=device, **options).fit(X, y, qid=qid, **(fit or {}))


def check_same(X, y=None, *, qid, fit=None, device="host", **options):
    """The processor's objective and scores."""
    expected, found = (fitted(at, X, y, qid=qid, fit=fit, **options) for at in ("cpu", device))
    assert (expected.device_, found.device_) == ("cpu", "host:0")
    assert found.converged_
    assert found.kernel_dtype_ == expected.kernel_dtype_
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-7)
    scores = expected.predict(X)
    np.testing.assert_allclose(found.predict(X), scores, atol=1e-3 * max(1.0, np.abs(scores).max()))
    return found


@pytest.mark.parametrize("approximation", [None, "nystroem", "fourier"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
def test_every_loss_and_approximation(loss, approximation, storage):
    X, y, qid = make_data()
    check_same(storage(X), y, qid=qid, loss=loss, approximation=approximation)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "cosine"])
@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_every_kernel(kernel, approximation):
    X, y, qid = make_data()
    check_same(X.astype(np.float32), y, qid=qid, kernel=kernel, approximation=approximation)


@pytest.mark.parametrize(
    "options",
    [{"solver": "tron"}, {"kernel_dtype": "float64"}, {"pair_weighting": "label_gap"}, {"pair_selection": "adjacent"}],
    ids=str,
)
def test_every_option(options):
    X, y, qid = make_data(100)
    check_same(X, y, qid=qid, **options)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_direct_steps(loss, dtype):
    X, y, _ = make_data(240)
    options = {"loss": loss, "kernel_dtype": dtype, "C": 10.0, "gamma": 1.0}
    qid = np.minimum(np.arange(240), 200) // 4
    qid[:3] = 1000, 1001, 1002  # queries of one row; the last of the others has 40
    found = check_same(X, y, qid=qid, solver="direct", tol=1e-8, **options)
    expected = fitted("cpu", X, y, qid=qid, solver="newton", tol=1e-8, **options)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert found.n_kernel_products_ < expected.n_kernel_products_


def test_direct_steps_where_a_device_has_no_inverse(monkeypatch):
    X, y, qid = make_data()
    check_same(X, y, qid=qid, solver="direct", kernel="linear")
    monkeypatch.setitem(names.OPENERS, "host", lambda number: HostDevice(memory=60_000))
    check_same(X, y, qid=qid, solver="direct", tol=1e-5)


def test_weights_listed_pairs_and_a_precomputed_kernel():
    X, y, qid = make_data()
    rng = np.random.default_rng(1)
    check_same(X, y, qid=qid, fit={"sample_weight": rng.integers(0, 3, len(y))})
    pairs = np.argwhere((qid[:, None] == qid) & (y[:, None] > y))[::3]
    for approximation in (None, "fourier"):
        check_same(X, qid=qid, fit={"pairs": pairs, "pair_weight": rng.random(len(pairs))}, approximation=approximation)
    K = X @ X.T + 1.0
    check_same(K, y, qid=qid, kernel="precomputed")


def test_a_large_C_is_solved_in_float64():
    X, y, qid = make_data(80)
    found = check_same(X, y, qid=qid, C=1e4, tol=1e-5)
    assert found.kernel_dtype_ == "float64"


def test_landmarks_precondition():
    X, y, _ = make_data(3100, seed=1)
    found = check_same(X, y, qid=np.arange(3100) // 100, tol=1e-4, C=0.01)
    assert found.n_kernel_products_ > 0


def test_a_matrix_larger_than_the_device(monkeypatch):
    X, y, qid = make_data()
    monkeypatch.setitem(names.OPENERS, "host", lambda number: HostDevice(memory=60_000))
    check_same(X, y, qid=qid, tol=1e-5)


def test_warm_start_and_search():
    X, y, qid = make_data(100)
    ranker = fitted("cpu", X, y, qid=qid).set_params(device="host", warm_start=True)
    assert ranker.fit(X, y, qid=qid).n_iter_ <= 1
    options = {"Cs": [0.01, 0.1], "gammas": [0.1, 0.4], "cv": 3, "tol": 1e-6}
    searches = [KernelRankSVMCV(device=device, **options).fit(X, y, qid=qid) for device in ("cpu", "host")]
    assert searches[0].C_ == searches[1].C_
    np.testing.assert_allclose(searches[0].scores_, searches[1].scores_, atol=1e-12)
    assert [search.device_ for search in searches] == ["cpu", "host:0"]


def test_models_do_not_know_where_they_were_fitted(tmp_path):
    X, y, qid = make_data(100)
    ranker = fitted("host", X, y, qid=qid)
    ranker.save(tmp_path / "model")
    for there in (ranksvm.load(tmp_path / "model"), pickle.loads(pickle.dumps(ranker))):
        assert not hasattr(there, "device_")
        np.testing.assert_array_equal(there.predict(X), ranker.predict(X))


def test_intervals_on_a_device():
    X, y, qid = make_data(120)
    here, there = (weight_intervals(RankSVM(C=0.1, device=at), X, y, qid) for at in ("cpu", "host"))
    np.testing.assert_allclose(there.interval(), here.interval(), rtol=1e-3, atol=1e-4)


# -- what a device cannot do -------------------------------------------------------------------------------------------


class Unread:
    """Features whose reading would be work."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("X was read")


def product(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, r"^device must be 'cpu', 'cuda', .*, got 'gpu'\.$"),
        (
            {"device": "host", "kernel": product},
            r"^device='host' cannot evaluate a kernel that is a Python function: use device='cpu'\.$",
        ),
        (
            {"device": ["host:0", "host:1"]},
            r"^device=\['host:0', 'host:1'\] names several GPUs, .* is fitted on one: name one of them\.$",
        ),
        (
            {"device": "host", "approximation": "nystroem", "solver": "direct"},
            r"^device='host' has no solver 'direct', except for exact kernels: use device='cpu'\.$",
        ),
        (
            {"device": "host", "approximation": "fourier", "loss": SquaredHingeFunction()},
            r"^device='host' cannot evaluate a loss that is given as Python functions: use device='cpu'\.$",
        ),
    ],
)
def test_what_a_device_cannot_do_is_said_before_any_work(options, message):
    for estimator in (KernelRankSVM(**options), KernelRankSVMCV(**options)):
        with pytest.raises(OptionError, match=message):
            estimator.fit(Unread(), np.arange(3), qid=np.zeros(3))


def test_a_loss_of_ones_own_is_evaluated_on_the_host():
    X, y, qid = make_data(80)
    check_same(X, y, qid=qid, loss=SquaredHingeFunction(), tol=1e-5)


def test_a_gpu_that_is_not_there():
    with pytest.raises((DeviceError, MissingDependencyError), match=r"cuda"):
        KernelRankSVM(device="cuda:63").fit(Unread(), np.arange(3), qid=np.zeros(3))


@pytest.mark.parametrize(
    ("options", "asked"), [({}, "more than the"), ({"approximation": "fourier"}, "The 40 features of 150 rows take")]
)
def test_out_of_memory_is_said_and_changes_nothing(options, asked, monkeypatch):
    monkeypatch.setitem(names.OPENERS, "host", lambda number: HostDevice(memory=3000))
    X, y, qid = make_data()
    ranker = fitted("cpu", X, y, qid=qid, **options)
    before = dict(vars(ranker))
    with pytest.raises(DeviceError, match=asked):
        ranker.set_params(device="host").fit(X, y, qid=qid)
    assert {**vars(ranker), "device": "cpu"} == before
    monkeypatch.setitem(names.OPENERS, "host", lambda number: HostDevice())
    assert ranker.fit(X, y, qid=qid).converged_


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_values_that_are_not_finite_are_found_as_on_the_processor(bad, approximation):
    X, y, qid = make_data(60)
    X[7, 2] = bad
    messages = []
    for device in ("cpu", "host"):
        with pytest.raises(ValueError, match=r"(?i)nan|inf") as raised:
            fitted(device, X, y, qid=qid, approximation=approximation)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", [np.float16, np.int64, bool, ">f8"])
def test_other_types_are_converted_as_on_the_processor(dtype):
    X, y, qid = make_data(60)
    check_same((4.0 * X).astype(dtype), y, qid=qid, gamma=0.02)


def test_read_only_and_strided_features():
    X, y, qid = make_data(60)
    strided = np.asfortranarray(X)
    strided.flags.writeable = False
    check_same(strided, y, qid=qid)
    check_same(np.repeat(X, 2, axis=1)[:, ::2], y, qid=qid)


def test_a_kernel_that_overflows():
    X, y, qid = make_data(60)
    messages = []
    for device in ("cpu", "host"):
        with pytest.raises(DataError, match="too large for float32") as raised:
            fitted(device, X, y, qid=qid, kernel="poly", gamma=1e12)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


# -- "auto" ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", [None, "fourier", "nystroem"])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, sp.csr_array], ids=["dense", "csr"])
def test_auto_takes_the_cheaper_one(approximation, storage, auto_gpu):
    X, y, qid = make_data(600)  # with fewer rows, an exact fit has less to do on the CPU than on the host of any GPU
    for seconds, place in ((1e-9, "host:0"), (1.0, "cpu")):
        auto_gpu(seconds)
        assert fitted("auto", storage(X), y, qid=qid, approximation=approximation).device_ == place


def test_auto_for_a_precomputed_matrix(auto_gpu):
    X, y, qid = make_data(600)
    auto_gpu(1e-9)
    assert fitted("auto", X @ X.T + 1.0, y, qid=qid, kernel="precomputed").device_ == "host:0"


def test_auto_for_what_a_gpu_cannot_do(auto_gpu, caplog):
    X, y, qid = make_data(60)
    auto_gpu(1e-9)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        assert fitted("auto", X, y, qid=qid, kernel=product).device_ == "cpu"
        own = {"approximation": "fourier", "loss": SquaredHingeFunction(), "tol": 1e-4}
        assert fitted("auto", X, y, qid=qid, **own).device_ == "cpu"
    assert "the CPU, because a GPU cannot evaluate a kernel" in caplog.text
    assert "the CPU, because a GPU cannot evaluate a loss" in caplog.text


@pytest.mark.parametrize("loss", ["logistic", SquaredHingeFunction()], ids=["logistic", "own"])
def test_exact_kernels_have_landmarks_for_every_loss(loss, monkeypatch):
    monkeypatch.setattr("ranksvm.fits.kernel.LANDMARK_ROWS", 100)
    X, y, qid = make_data()
    check_same(X, y, qid=qid, loss=loss)
