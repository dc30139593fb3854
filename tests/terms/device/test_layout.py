"""Where the rows of a term are: on the device, or streamed through it where they do not fit or turn out not to."""

import gc
import logging

import numpy as np
import pytest

from ranksvm import Preferences, RankSVM
from ranksvm.data import TwoBlockDesign, TwoBlocks, as_design_matrix
from ranksvm.device import names
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceMemoryError
from ranksvm.terms.device import layout
from ranksvm.terms.device.term import DeviceTerm
from term_checks import TermProblem


class Crowded(HostDevice):
    """A device that says that memory is free, and has no room for arrays of more bytes than `largest`.

    As where memory is in pieces, or where another program has taken what was free a moment before.
    """

    largest: float = np.inf
    refused = 0

    def empty(self, shape, dtype):
        if np.prod(shape) * np.dtype(dtype).itemsize > self.largest:
            self.refused += 1
            raise DeviceMemoryError(f"{self.name} is out of memory.")
        return super().empty(shape, dtype)


def make_data(n=600, n_features=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    return X, rng.integers(0, 3, n), np.arange(n) // 20


def term_on(device, X=None, n=400):
    problem = TermProblem(n=n)
    X = np.tile(problem.X, 20) if X is None else X
    return DeviceTerm(device, as_design_matrix(X), problem.spec.with_pairs(problem.pairs)), X


@pytest.fixture
def on(monkeypatch):
    """Makes a device the one that is called "host"."""

    def chosen(device):
        monkeypatch.setitem(names.OPENERS, "host", lambda _number: device)
        return device

    return chosen


def fitted(X, y, qid, device="host", **options):
    return RankSVM(C=0.1, tol=1e-8, device=device, **options).fit(X, y, qid=qid)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_stream_through_where_there_is_no_room_for_them(loss, dtype, on, monkeypatch, caplog):
    X, y, qid = make_data()
    X = X.astype(dtype)
    on(HostDevice())
    resident = fitted(X, y, qid, loss=loss)
    # the same blocks as where the free memory says so before
    monkeypatch.setattr(layout, "STREAM_BYTES", X.nbytes // 7)
    with monkeypatch.context() as patched:
        patched.setattr(layout, "RESIDENT_SHARE", -1e9)
        on(HostDevice())
        streamed = fitted(X, y, qid, loss=loss)
    device = on(Crowded())
    free, device.largest = device.free_bytes, X.nbytes - 1
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        found = fitted(X, y, qid, loss=loss)
    assert device.refused == 1
    assert f"host:0: there is no room for X, {X.nbytes // 1000} KB (host:0 is out of memory.), so rows" in caplog.text
    assert "X stays there" not in caplog.text
    np.testing.assert_array_equal(found.coef_, streamed.coef_)
    assert found.objective_ == streamed.objective_
    assert found.objective_ == pytest.approx(resident.objective_, rel=1e-9)
    gc.collect()
    assert device.free_bytes == free


def test_what_was_copied_before_is_free_again():
    """Memory for the rows is there, but not for the pairs beside them, unless X streams through."""
    _, X = term_on(HostDevice())
    device = HostDevice(memory=int(1.01 * X.nbytes))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(layout, "RESIDENT_SHARE", 1e9)
        term, _ = term_on(device, X)
    assert device.free_bytes > X.nbytes // 2
    expected, _ = term_on(HostDevice(), X)
    w = np.linspace(-1.0, 1.0, X.shape[1])
    found, other = term.evaluate(w, None), expected.evaluate(w, None)
    assert found.sums.value == pytest.approx(other.sums.value, rel=1e-12)
    np.testing.assert_allclose(found.gradient, other.gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(term.curvature_product(found, w), expected.curvature_product(other, w), rtol=1e-9)


def test_two_blocks_of_preferences_stream_through(on):
    X, *_ = make_data(200)
    device = on(Crowded())
    device.largest = X.nbytes - 1
    preferences = Preferences(X[:100], X[100:], prompt=np.arange(100) // 4)
    found, expected = (RankSVM(tol=1e-8, C=0.1, device=where).fit(preferences) for where in ("host", "cpu"))
    assert device.refused == 1
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)


def test_blocks_are_smaller_where_little_is_free(caplog):
    _, X = term_on(HostDevice())
    with caplog.at_level(logging.INFO, logger="ranksvm"):
        term, _ = term_on(HostDevice(memory=X.nbytes // 2), X)
    assert "rows stream through in blocks of 23.8 KB" in caplog.text
    assert len(term._rows.blocks) >= 10
    at = term.evaluate(np.ones(X.shape[1]), None)
    assert np.isfinite(at.gradient).all()


def test_a_sample_streams_through_where_it_does_not_fit(monkeypatch):
    monkeypatch.setattr(layout, "STREAM_BYTES", 5000)
    results = []
    for memory in (None, 700_000):
        term, _ = term_on(HostDevice(memory=memory), n=1000)
        sample = term.sample(800, 0)
        assert (sample._block_bytes is None) == (memory is None)
        w = np.linspace(-1.0, 1.0, term.n_variables)
        results.append([sample.scores(w), sample.sample(50, 1).scores(w)])
    for here, there in zip(*results, strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("two_blocks", [False, True])
def test_few_rows_are_copied_alone(two_blocks, monkeypatch):
    """A fold of a search takes no memory for the rows of the others; they are gathered in pieces."""
    monkeypatch.setattr("ranksvm.terms.device.rows.GATHER_BYTES", 3000)
    problem = TermProblem(n=400)
    design = as_design_matrix(np.tile(problem.X, 4))
    design = TwoBlockDesign(TwoBlocks(design.X[:150], design.X[150:])) if two_blocks else design
    few = problem.pairs.of_queries(np.array([1, 4, 6]))
    device = HostDevice()
    free = device.free_bytes
    term = DeviceTerm(device, design, problem.spec.with_pairs(few))
    assert free - device.free_bytes < design.X.shape[0] * design.row_bytes
    w = np.linspace(-1.0, 1.0, 24)
    np.testing.assert_allclose(term.scores(w), np.tile(problem.X, 4)[few.rows] @ w, rtol=1e-12, atol=1e-12)


def test_the_error_says_that_rows_were_to_stream_through(on):
    X, y, qid = make_data()
    device = on(Crowded())
    free, device.largest = device.free_bytes, 1000
    with pytest.raises(DeviceMemoryError, match=r"^With X on the host, .* in blocks of 36 KB: host:0 is out of memory"):
        fitted(X, y, qid)
    gc.collect()
    assert device.free_bytes == free
    device.largest = np.inf
    assert fitted(X, y, qid).converged_


def test_sparse_rows_cannot_stream(on):
    sp = pytest.importorskip("scipy.sparse")
    X, y, qid = make_data()
    on(Crowded()).largest = 10_000
    with pytest.raises(DeviceMemoryError, match=r"^host:0 is out of memory\.$"):
        fitted(sp.csr_array(X), y, qid)


@pytest.mark.parametrize("method", ["evaluate", "curvature", "curvature_product", "curvature_diagonal"])
@pytest.mark.parametrize("streams", [False, True])
def test_memory_that_is_missing_later_is_an_error_and_the_term_goes_on(method, streams, monkeypatch):
    """Vectors and rows for Hessians are allocated when they are first needed."""
    if streams:
        monkeypatch.setattr(layout, "RESIDENT_SHARE", -1e9)
        monkeypatch.setattr(layout, "STREAM_BYTES", 4000)
    results = []
    for crowded in (False, True):
        device = Crowded()
        term, X = term_on(device)
        w = np.linspace(-1.0, 1.0, X.shape[1])
        at = None if method == "evaluate" else term.evaluate(w, None)
        arguments = {"evaluate": (w, None), "curvature": (at, 1.0, 0), "curvature_product": (at, w)}.get(method, (at,))
        term._run._scratch.clear()
        if crowded:
            device.largest = 8
            with pytest.raises(DeviceMemoryError, match="out of memory"):
                getattr(term, method)(*arguments)
            device.largest = np.inf
        found = getattr(term, method)(*arguments)
        results.append(found.gradient if method == "evaluate" else found)
    np.testing.assert_array_equal(*results)


def test_a_fit_that_runs_out_in_the_middle_leaves_nothing_behind(on):
    X, y, qid = make_data()
    device = on(Crowded())
    free, expected = device.free_bytes, fitted(X, y, qid).coef_
    launch, left = device.launch, [2]

    def fuller(*arguments, **options):
        left[0] -= 1
        device.largest = 100 if left[0] < 0 else np.inf
        launch(*arguments, **options)

    device.launch = fuller
    with pytest.raises(DeviceMemoryError):
        fitted(X, y, qid, solver="newton")
    del device.launch
    device.largest = np.inf
    gc.collect()
    assert device.free_bytes == free
    np.testing.assert_array_equal(fitted(X, y, qid).coef_, expected)
