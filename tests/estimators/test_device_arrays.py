"""Features, labels and weights on a GPU, played by the host."""

import contextlib
import logging
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import ranksvm
from device_arrays import GpuArray, values_of
from ranksvm import (
    KernelRankSVM,
    KernelRankSVMCV,
    Preferences,
    RankingData,
    RankSVM,
    RankSVMCV,
    cross_validate,
    metrics,
    regularization_path,
)
from ranksvm.analysis import weight_intervals
from ranksvm.device import names
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DataError, OptionError
from sweep_checks import SquaredHingeFunction


@pytest.fixture(autouse=True)
def gpus(device_kind, request, monkeypatch):
    """Two GPUs, which are the host, or the stand-in for the driver plays them."""
    if device_kind != "host":
        driver = request.getfixturevalue("driver")
        driver.mode, driver.foreign = device_kind, True
        yield names.OPENERS["cuda"]
        return
    monkeypatch.setitem(names.OPENERS, "cuda", opened := lambda number: HostDevice(name=f"cuda:{number}"))
    yield opened
    names._opened.clear()


def make_data(n=200, n_features=5, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.ascontiguousarray(rng.integers(-9, 9, (n, n_features)) / 4, dtype=dtype)
    y = np.round(X @ rng.normal(size=n_features) + rng.normal(size=n)).clip(-1, 2)
    return X, y, rng.integers(0, 12, n)


def fitted(X, y, qid, **options):
    return RankSVM(**{"C": 0.1, "tol": 1e-8, **options}).fit(X, y, qid=qid)


@pytest.mark.parametrize("device", ["cpu", "auto", "cuda"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_they_are_used_where_they_lie(dtype, device):
    X, y, qid = make_data(dtype=dtype)
    expected = fitted(X, y, qid)
    found = fitted(GpuArray(X), y, qid, device=device)
    assert found.device_ == "cuda:0"
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert type(found.coef_) is np.ndarray
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-3)


def test_labels_queries_and_weights_may_be_anywhere():
    X, y, qid = make_data()
    weight = np.arange(len(y)) % 3
    expected = RankSVM(C=0.1, tol=1e-8).fit(X, y, qid=qid, sample_weight=weight)
    for place in (GpuArray, np.asarray):
        found = RankSVM(C=0.1, tol=1e-8).fit(GpuArray(X), place(y), qid=GpuArray(qid), sample_weight=GpuArray(weight))
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    found = RankSVM(C=0.1, tol=1e-8).fit(X, GpuArray(y), qid=GpuArray(qid), sample_weight=weight)
    assert (found.device_, found.objective_) == ("cpu", expected.objective_)


def test_everything_else_may_be_anywhere_in_searches_and_evaluations():
    X, y, qid = make_data()
    there, weight = (GpuArray(X), GpuArray(y), GpuArray(qid)), np.arange(len(y)) % 3
    for model in (RankSVMCV(Cs=[0.01, 0.1], cv=3), KernelRankSVMCV(Cs=[0.1], gammas=[0.3], cv=3)):
        expected = clone(model).fit(X, y, qid=qid, sample_weight=weight)
        found = clone(model).fit(there[0], there[1], qid=there[2], sample_weight=GpuArray(weight))
        np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-4)
    sets = {"eval_set": [(X, y)], "eval_qid": [qid]}, {"eval_set": [there[:2]], "eval_qid": [there[2]]}
    evaluated = [RankSVM(C=0.1, tol=1e-8).fit(X, y, qid=qid, **given).evals_result_["valid_0"] for given in sets]
    assert evaluated[0].keys() == evaluated[1].keys()
    for name, values in evaluated[0].items():
        np.testing.assert_allclose(evaluated[1][name], values, atol=1e-9)
    ranker = fitted(X, y, qid)
    assert ranker.score(*there[:2], qid=there[2]) == pytest.approx(ranker.score(X, y, qid=qid))
    assert ranker.rank(there[0], there[2]).keys() == ranker.rank(X, qid).keys()
    expected, found = (
        metrics.evaluate(*given, ["ndcg@10"])
        for given in ((y, ranker.predict(X), qid), (there[1], ranker.predict(there[0]), there[2]))
    )
    assert found["ndcg@10"] == pytest.approx(expected["ndcg@10"])


def test_parts_of_them():
    """Cross-validation, intervals of weights and calibration take rows where these lie."""
    X, y, qid = make_data()
    expected, found = (cross_validate(RankSVM(C=0.1, tol=1e-8), there, y, qid=qid, cv=3) for there in (X, GpuArray(X)))
    assert found.means["ndcg@10"] == pytest.approx(expected.means["ndcg@10"])
    here = weight_intervals(RankSVM(C=0.1), X, y, qid)
    there = weight_intervals(RankSVM(C=0.1), GpuArray(X), GpuArray(y), GpuArray(qid))
    np.testing.assert_allclose(there.interval(), here.interval(), rtol=1e-3, atol=1e-4)
    pairs = np.stack([np.arange(0, 190, 2), np.arange(1, 190, 2)], axis=1)
    rankers = [RankSVM(C=0.1, tol=1e-8).fit(X, y, qid=qid).calibrate(each, pairs=pairs) for each in (X, GpuArray(X))]
    probabilities = [ranker.predict_proba(X[:10], X[10:20]) for ranker in rankers]
    np.testing.assert_allclose(*probabilities, atol=1e-5)
    given = (GpuArray(X[:10]), GpuArray(X[10:20]))
    np.testing.assert_allclose(rankers[0].predict_proba(*given), probabilities[0], rtol=1e-9)


def test_preferences_and_data_sets_are_of_the_host():
    X, y, qid = make_data()
    expected, found = (RankSVM(tol=1e-8).fit(Preferences(at(X[:50]), at(X[50:100]))) for at in (np.asarray, GpuArray))
    assert found.objective_ == expected.objective_
    data = RankingData(GpuArray(X), GpuArray(y), GpuArray(qid))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, qid)


class Cupy:
    """The part of CuPy that answers."""

    cuda = types.SimpleNamespace(Device=lambda number: contextlib.nullcontext())

    @staticmethod
    def asarray(view):
        return "an array of CuPy", values_of(view)


def test_predictions_lie_where_the_features_lie(monkeypatch):
    X, y, qid = make_data()
    ranker = fitted(X, y, qid)
    scores = ranker.predict(X)
    there = ranker.predict(GpuArray(X))
    assert (there.shape, there.dtype, there.__dlpack_device__()) == ((200,), np.float64, (2, 0))
    np.testing.assert_allclose(values_of(there), scores, rtol=1e-12, atol=1e-12)
    # a library that is known makes an array of its own
    monkeypatch.setitem(sys.modules, "cupy", Cupy)
    known = type("ndarray", (GpuArray,), {"__module__": "cupy"})
    library, values = ranker.predict(known(X))
    assert library == "an array of CuPy"
    np.testing.assert_allclose(values, scores, rtol=1e-12, atol=1e-12)
    torch = types.SimpleNamespace(as_tensor=lambda view, device: (device, values_of(view)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    tensor = type("Tensor", (GpuArray,), {"__module__": "torch", "device": "cuda:0"})
    place, values = ranker.predict(tensor(X))
    assert place == "cuda:0"
    np.testing.assert_allclose(values, scores, rtol=1e-12, atol=1e-12)


def test_ranks_metrics_and_explanations_are_for_the_host():
    X, y, qid = make_data()
    ranker = fitted(X, y, qid)
    expected, found = ranker.rank(X, qid), ranker.rank(GpuArray(X), qid)
    assert all(np.array_equal(found[query], rows) for query, rows in expected.items())
    assert ranker.score(GpuArray(X), y, qid=qid) == pytest.approx(ranker.score(X, y, qid=qid))
    np.testing.assert_allclose(ranker.feature_importance(GpuArray(X), qid), ranker.feature_importance(X, qid))
    np.testing.assert_allclose(ranker.explain(GpuArray(X), qid).contributions, ranker.explain(X, qid).contributions)


def test_searches_and_paths():
    X, y, qid = make_data()
    Cs = [0.01, 0.1]
    expected = RankSVMCV(Cs=Cs, cv=3, tol=1e-8).fit(X, y, qid=qid)
    found = RankSVMCV(Cs=Cs, cv=3, tol=1e-8).fit(GpuArray(X), y, qid=qid)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-12)
    assert found.device_ == "cuda:0"
    on_validation = RankSVMCV(Cs=Cs, tol=1e-8).fit(GpuArray(X), y, qid=qid, eval_set=[(GpuArray(X), y)], eval_qid=[qid])
    assert on_validation.device_ == "cuda:0"
    paths = [regularization_path(there, y, qid=qid, Cs=Cs, tol=1e-8) for there in (GpuArray(X), X)]
    np.testing.assert_allclose(paths[0].objectives, paths[1].objectives, rtol=1e-8)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, bool]
)
def test_other_types_are_converted_as_on_the_processor(dtype):
    X, y, qid = make_data()
    X = (X if dtype is np.float16 else np.abs(4 * X)).astype(dtype)
    expected, found = fitted(X, y, qid), fitted(GpuArray(X), y, qid)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_every_number_of_16_bits():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = np.isfinite(every)
    from ranksvm.data.device_features import device_features

    there = device_features(GpuArray(every.reshape(-1, 2)))
    np.testing.assert_array_equal(there.on_host().ravel()[finite], every[finite].astype(float))
    np.testing.assert_array_equal(there.on_host().ravel(), every.astype(float))


@pytest.mark.parametrize("form", ["columns", "every other row", "backwards", "read-only", "a broadcast column"])
def test_any_layout(form):
    X, y, qid = make_data()
    if form == "columns":
        given = np.asfortranarray(X)
    elif form == "every other row":
        given = np.repeat(X, 2, axis=0)[::2]
    elif form == "backwards":
        given = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    elif form == "read-only":
        given = X.copy()
        given.flags.writeable = False
    else:
        given = X = np.broadcast_to(X[:, :1], X.shape)
    expected, found = fitted(X, y, qid), fitted(GpuArray(given), y, qid)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_found_with_its_place(value):
    X, y, qid = make_data()
    X[17, 3] = value
    ranker = fitted(make_data()[0], y, qid)
    for fails in (fitted, lambda X, y, qid: ranker.predict(X)):
        messages = []
        for given in (X, GpuArray(X)):
            with pytest.raises(DataError) as raised:
                fails(given, y, qid)
            messages.append(str(raised.value))
        assert messages[0] == messages[1]
        assert "X[17, 3]" in messages[0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(3), r"^X on a GPU has shape \(3,\): it must have a row for each sample\.$"),
        (np.zeros((0, 3)), r"^X on a GPU has shape \(0, 3\): there must be at least one sample and one feature\.$"),
        (np.zeros((3, 2), ">f4"), r"^X on a GPU holds >f4 values: features must be real numbers\.$"),
        (np.zeros((3, 2), complex), r"^X on a GPU holds complex128 values: features must be real numbers\.$"),
    ],
)
def test_what_no_features_can_be(X, message):
    with pytest.raises(DataError, match=message):
        RankSVM().fit(GpuArray(X), np.arange(3), qid=np.zeros(3))


def test_another_device_is_refused():
    X, y, qid = make_data()
    message = r"^device='cuda:1', but X is on cuda:0: move X there, or leave device at 'cpu' or 'auto'\.$"
    with pytest.raises(OptionError, match=message):
        fitted(GpuArray(X), y, qid, device="cuda:1")
    found = fitted(GpuArray(X, number=1), y, qid)
    assert found.device_ == "cuda:1"


def test_what_a_device_cannot_do():
    X, y, qid = make_data()
    for options in ({"solver": "dual"}, {"loss": SquaredHingeFunction()}):
        with pytest.raises(OptionError, match=r"^X is on cuda:0, which .*: copy X to the host, by X\.get\(\)"):
            fitted(GpuArray(X), y, qid, **options)
    with pytest.raises(DataError, match=r"^X is on a GPU, but FactorizedRankSVM needs it in host memory: copy it with"):
        ranksvm.FactorizedRankSVM().fit(GpuArray(X), y, qid=qid)
    with pytest.raises(DataError, match=r"^X is on a GPU, but QueryStandardScaler needs it in host memory"):
        ranksvm.QueryStandardScaler().fit_transform(GpuArray(X), qid=qid)
    with pytest.raises(DataError, match=r"^X has 4 features, but RankSVM is expecting 5 features as input\.$"):
        fitted(X, y, qid).predict(GpuArray(X[:, :4]))


def test_an_array_is_not_changed():
    X, y, qid = make_data()
    before = X.copy()
    fitted(GpuArray(X), y, qid)
    np.testing.assert_array_equal(X, before)


class CupySparse:
    """A CSR matrix of cupyx, as far as it is used."""

    __module__ = "cupyx.scipy.sparse"

    def __init__(self, matrix):
        self.matrix = matrix
        self.shape = matrix.shape

    def get(self):
        return self.matrix


class TorchSparse:
    """A sparse tensor of torch on a GPU, as far as it is used."""

    __module__ = "torch"
    layout = "torch.sparse_coo"

    def __init__(self, matrix, is_cuda=True):
        self.matrix, self.is_cuda = matrix, is_cuda
        self.shape = matrix.shape

    def detach(self):
        return self

    to_sparse_csr = detach

    def cpu(self):
        return TorchSparse(self.matrix, False)

    def values(self):
        return Values(self.matrix.data)

    def col_indices(self):
        return Values(self.matrix.indices)

    def crow_indices(self):
        return Values(self.matrix.indptr)


class Values:
    def __init__(self, values):
        self.values = values

    def numpy(self):
        return self.values


@pytest.mark.parametrize("library", [CupySparse, TorchSparse])
def test_sparse_matrices_are_copied_to_the_host(library, caplog):
    X, y, qid = make_data()
    csr = sp.csr_array(X)
    expected = fitted(csr, y, qid)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        found = fitted(library(csr), y, qid, device="cuda")
    assert "X is sparse and on a GPU: it is copied to the host" in caplog.text
    assert found.device_ == "cuda:0"
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    np.testing.assert_array_equal(found.predict(library(csr)), found.predict(csr))


@pytest.mark.parametrize("approximation", [None, "nystroem", "fourier"])
@pytest.mark.parametrize("device", ["cpu", "auto", "cuda"])
def test_kernel_models_take_them_where_they_lie(device, approximation):
    X, y, qid = make_data(100)
    options = {"C": 0.1, "gamma": 0.3, "tol": 1e-7, "approximation": approximation, "n_components": 20}
    expected = KernelRankSVM(random_state=0, **options).fit(X, y, qid=qid)
    found = KernelRankSVM(random_state=0, device=device, **options).fit(GpuArray(X), GpuArray(y), qid=qid)
    assert found.device_ == "cuda:0"
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-7)
    scores = found.predict(GpuArray(X))
    assert scores.__dlpack_device__() == (2, 0)
    np.testing.assert_allclose(values_of(scores), found.predict(X), rtol=1e-11, atol=1e-11)
    search = KernelRankSVMCV(Cs=[0.1, 1.0], gammas=[0.3], cv=3, device=device).fit(GpuArray(X), y, qid=qid)
    assert search.device_ == "cuda:0"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("model", [ranksvm.AdditiveRankSVM(C=0.1), ranksvm.AdditiveRankSVMCV(Cs=[0.1, 1.0], cv=2)])
def test_additive_models_copy_them_to_the_host(model, device, caplog):
    X, y, qid = make_data()
    X[::9, 1] = np.nan
    expected = clone(model).set_params(device=device).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    found = clone(model).set_params(device=device)
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        found.fit(GpuArray(X), GpuArray(y), qid=qid, eval_set=[(GpuArray(X), y)], eval_qid=[qid])
    assert f"X is on a GPU, but {type(model).__name__} needs it in host memory: it is copied there" in caplog.messages
    assert found.device_ == expected.device_ == ("cpu" if device == "cpu" else "cuda:0")
    assert found.evals_result_ == expected.evals_result_
    np.testing.assert_array_equal(found.shape_values_, expected.shape_values_)
    scores = found.predict(GpuArray(X))
    assert scores.__dlpack_device__() == (2, 0)
    np.testing.assert_array_equal(values_of(scores), expected.predict(X))
    np.testing.assert_array_equal(found.contributions(GpuArray(X)).values, expected.contributions(X).values)
    with pytest.raises(DataError, match=rf"^X has 4 features, but {type(model).__name__} is expecting 5 features"):
        found.predict(GpuArray(X[:, :4]))


def test_direct_steps_of_exact_kernels_alone():
    X, y, qid = make_data(100)
    options = {"C": 0.1, "gamma": 0.3, "tol": 1e-7, "solver": "direct"}
    found = KernelRankSVM(**options).fit(GpuArray(X), y, qid=qid)
    assert found.objective_ == pytest.approx(KernelRankSVM(**options).fit(X, y, qid=qid).objective_, rel=2e-7)
    with pytest.raises(OptionError, match=r"^X is on cuda:0, which has no solver 'direct', except for exact kernels"):
        KernelRankSVM(approximation="nystroem", **options).fit(GpuArray(X), y, qid=qid)


@pytest.mark.parametrize("loss", ["logistic", SquaredHingeFunction()], ids=["logistic", "own"])
def test_every_loss_of_exact_kernels_alone(loss):
    X, y, qid = make_data(100)
    options = {"C": 0.1, "gamma": 0.3, "tol": 1e-7, "loss": loss}
    found = KernelRankSVM(**options).fit(GpuArray(X), y, qid=qid)
    assert found.device_ == "cuda:0"
    assert found.objective_ == pytest.approx(KernelRankSVM(**options).fit(X, y, qid=qid).objective_, rel=2e-7)
    with pytest.raises(OptionError, match=r"^X is on cuda:0, which (has no|cannot evaluate a) loss"):
        KernelRankSVM(approximation="nystroem", **options).fit(GpuArray(X), y, qid=qid)


def test_what_a_kernel_model_cannot_do_with_them():
    X, y, qid = make_data(60)
    with pytest.raises(OptionError, match=r"^device='cuda:1', but X is on cuda:0: move X there"):
        KernelRankSVM(device="cuda:1").fit(GpuArray(X), y, qid=qid)
    with pytest.raises(OptionError, match=r"^X is on cuda:0, which cannot evaluate a kernel that is a Python function"):
        KernelRankSVM(kernel=lambda a, b: a @ b.T).fit(GpuArray(X), y, qid=qid)
