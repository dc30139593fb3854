"""The data term of a device against every property of data terms, and against the one on threads."""

import logging
import os

import numpy as np
import pytest

from ranksvm.data import ComparablePairs, Queries, as_design_matrix, partition
from ranksvm.device import DeviceArray, Variant, open_device
from ranksvm.device.host import HostDevice
from ranksvm.device.launcher import Launcher
from ranksvm.losses import LossSpec
from ranksvm.objectives import LinearObjective
from ranksvm.solvers import Status, newton, tron
from ranksvm.terms.device import layout, long_queries, rows as device_rows
from ranksvm.terms.device.pairs import order_on_device
from ranksvm.terms.device.sum import DevicesTerm
from ranksvm.terms.device.term import DeviceTerm
from ranksvm.terms.host import ThreadedTerm
from term_checks import CHECKS, LOSSES, PROBLEMS, TermProblem, check_all

# RANKSVM_TEST_CUDA=1 runs all this on a GPU, too
GPUS = ("cuda:0",) if os.environ.get("RANKSVM_TEST_CUDA") else ()

LOSSES = [name for name in LOSSES if name in DeviceTerm.supported_losses]


def on(device):
    def make(X, spec, pairs):
        return DeviceTerm(device, as_design_matrix(X), spec.with_pairs(pairs))

    return make


def parts_on(*devices):
    def make(X, spec, pairs):
        parts = partition(pairs, len(devices))
        return DevicesTerm([on(device)(X, spec, part) for device, part in zip(devices, parts, strict=True)])

    return make


TERMS = {
    "3 blocks of 16": on(HostDevice()),
    "1 block of 8": on(HostDevice(n_blocks=1, n_threads=8)),
    "many blocks, backwards": on(HostDevice(n_blocks=50, n_threads=32, backwards=True)),
    # of the queries of `TermProblem` two fit into shared memory, and of the others two into the cache
    "short queries, and pieces of others": on(HostDevice(n_blocks=50, large_block_bytes=800, cached_bytes=2000)),
    "rows read again from the cache": on(HostDevice(large_block_bytes=800)),
    "nothing fits into shared memory": on(HostDevice(large_block_bytes=500)),
    "two parts on one device": parts_on(*[HostDevice()] * 2),
    "three devices": parts_on(*(HostDevice(n_blocks=n) for n in (1, 2, 3))),
}
for gpu in GPUS:
    TERMS |= {gpu: on(open_device(gpu)), f"two parts on {gpu}": parts_on(*[open_device(gpu)] * 2)}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("term", TERMS)
def test_every_property(term, loss, kind, check):
    check_all(TERMS[term], loss, kind, check)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("most_pairs", [-1, 30])
def test_every_property_where_the_host_sweeps_some_queries_or_all(most_pairs, loss, kind, check, monkeypatch):
    monkeypatch.setattr(long_queries, "LONG_PAIRS", most_pairs)
    check_all(on(HostDevice()), loss, kind, check)


@pytest.mark.parametrize(
    ("large_block_bytes", "n_blocks", "kernels", "full"),
    [
        (1 << 15, 3, ["fused_loss"], False),
        (800, 3, ["fused_loss"], True),
        (800, 50, ["fused_loss", "loss"], False),
        (500, 3, ["loss"], False),
    ],
)
def test_whole_queries_are_taken_by_a_block_if_that_is_even(large_block_bytes, n_blocks, kernels, full, monkeypatch):
    """Short ones with all rows in shared memory; others with as many of them as it has room for."""
    launched = []
    monkeypatch.setattr(
        HostDevice, "launch", lambda _self, _variant, kernel, *arguments, **_rest: launched.append((kernel, *arguments))
    )
    problem = TermProblem()
    device = HostDevice(n_blocks=n_blocks, large_block_bytes=large_block_bytes)
    term = on(device)(problem.X, problem.spec, problem.pairs)
    term.evaluate(np.ones(6), None)
    names = [name for name, _ in launched]
    assert [name for name in names if name in ("fused_loss", "loss")] == kernels
    assert ("scores" in names) == ("accumulate_rows" in names) == ("loss" in kernels)
    for n_tasks, shared in (arguments[13:15] for name, arguments in launched if name == "fused_loss"):
        assert n_tasks > 0
        assert (8 * shared == large_block_bytes) if full else (0 < 8 * shared < large_block_bytes)


@pytest.mark.parametrize("n_features", [40, 200])
def test_queries_without_rows_take_no_shared_memory_that_is_not_there(n_features, monkeypatch):
    launched = []
    launch = HostDevice.launch

    def noted(device, variant, kernel, *arguments, **rest):
        launched.append(kernel)
        launch(device, variant, kernel, *arguments, **rest)

    monkeypatch.setattr(HostDevice, "launch", noted)
    X = np.random.default_rng(0).normal(size=(40, n_features))
    pairs = ComparablePairs.from_labels(Queries.from_group([0, 20, 0, 20], 40), np.arange(40) % 3.0)
    loss = LossSpec("squared_hinge").with_pairs(pairs)
    term = DeviceTerm(HostDevice(large_block_bytes=800), as_design_matrix(X), loss)
    w = np.full(n_features, 0.01)
    at, expected = term.evaluate(w, None), ThreadedTerm(as_design_matrix(X), loss).evaluate(w, None)
    np.testing.assert_allclose(at.gradient, expected.gradient, rtol=1e-9)
    assert "fused_loss" not in launched


DEVICES = {
    "rows in shared memory": lambda: HostDevice(large_block_bytes=1 << 16),
    "some rows in shared memory": lambda: HostDevice(large_block_bytes=1 << 13),
    "8 threads": lambda: HostDevice(n_threads=8, large_block_bytes=1 << 14, backwards=True),
} | {gpu: lambda gpu=gpu: open_device(gpu) for gpu in GPUS}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_features", [1, 8, 9, 16, 17, 33, 40, 64, 65, 80, 81, 96, 97, 150, 177])
@pytest.mark.parametrize("device", DEVICES)
def test_threads_add_up_several_features_at_a_time(device, n_features, dtype):
    """Threads add up a different number of features each: one to five at a time, and several times five."""
    rng = np.random.default_rng(0)
    sizes = [1, 30, 2, 17, 5, 40, 12]
    X = rng.normal(size=(sum(sizes), n_features)).astype(dtype)
    queries = Queries.from_qid(np.repeat(np.arange(len(sizes)), sizes))
    loss = LossSpec("squared_hinge").with_pairs(
        ComparablePairs.from_labels(queries, rng.integers(0, 4, len(X)).astype(float))
    )
    term, expected = DeviceTerm(DEVICES[device](), as_design_matrix(X), loss), ThreadedTerm(as_design_matrix(X), loss)
    w, v = rng.normal(size=(2, n_features))
    at, at_expected = (of.evaluate(w / n_features, None) for of in (term, expected))
    assert at.sums.value == pytest.approx(at_expected.sums.value, rel=1e-12)
    scale = np.abs(at_expected.gradient).max()
    np.testing.assert_allclose(at.gradient, at_expected.gradient, rtol=0, atol=1e-12 * scale)
    product = expected.curvature_product(at_expected, v)
    np.testing.assert_allclose(term.curvature_product(at, v), product, rtol=0, atol=1e-12 * np.abs(product).max())


def test_all_blocks_work_on_no_more_queries_at_a_time_than_the_cache_holds(monkeypatch):
    launched = []
    monkeypatch.setattr(HostDevice, "launch", lambda _self, _variant, *launch, **_rest: launched.append(launch))
    problem = TermProblem()
    term = on(HostDevice(large_block_bytes=500, cached_bytes=2000))(problem.X, problem.spec, problem.pairs)
    term.evaluate(np.ones(6), None)
    kernels = [name for name, _ in launched if name in ("scores", "loss", "accumulate_rows")]
    ranges = [arguments[-4:-2] for name, arguments in launched if name == "scores"]
    assert kernels == ["scores", "loss", "accumulate_rows"] * len(ranges)
    assert len(ranges) > 1
    assert max(stop - start for start, stop in ranges) <= 2000 // (6 * 8)
    assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]


@pytest.mark.parametrize(("loss", "width"), [("squared_hinge", 0.5), ("hinge", None), ("huber", None), ("huber", 0.0)])
def test_a_width_that_is_another_loss_to_the_kernels_is_refused(loss, width):
    problem = TermProblem(loss)
    term = on(HostDevice())(problem.X, problem.spec, problem.pairs)
    points = [term.evaluate(np.full(6, scale), problem.width) for scale in (0.0, 1.0)]
    for wrong in (
        lambda: term.evaluate(np.ones(6), width),
        lambda: term.between(*points, 0.5, width),
        lambda: term.along(*points, [0.5], width),
    ):
        with pytest.raises(ValueError, match=f"^The loss '{loss}' cannot have the width {width}"):
            wrong()


@pytest.mark.parametrize("n_features", [1, 31, 33, 70])
@pytest.mark.parametrize("backwards", [False, True])
def test_hessians_of_more_features_than_a_block_has_threads_for(n_features, backwards):
    """A thread sums four features at a time: rows of 70 take three turns of 8 threads, and not all have four."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, n_features)), rng.integers(0, 3, 60).astype(float), np.arange(60) // 15
    loss = LossSpec("squared_hinge").with_pairs(ComparablePairs.from_labels(Queries.from_qid(qid, 60), y))
    w, found = rng.normal(size=n_features) * 0.1, []
    for term in (
        DeviceTerm(HostDevice(n_threads=8, backwards=backwards), as_design_matrix(X), loss),
        ThreadedTerm(as_design_matrix(X), loss),
    ):
        at = term.evaluate(w, None)
        found.append((term.curvature(at, 1.0, 0), term.curvature_diagonal(at)))
    for device, host in zip(*found, strict=True):
        np.testing.assert_allclose(device, host, rtol=1e-10, atol=1e-10)


@pytest.fixture
def streaming(monkeypatch):
    """X never fits: blocks of about 20 rows of 6 numbers go through."""
    monkeypatch.setattr(layout, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(layout, "STREAM_BYTES", 20 * 6 * 8)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("kind", [kind for kind, options in PROBLEMS.items() if options.get("storage") != "csr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_property_of_rows_that_stream_through(loss, kind, check, streaming):
    check_all(on(HostDevice()), loss, kind, check)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_stream_through_take_less_memory(streaming, caplog, dtype):
    problem = TermProblem(n=2000)
    X = np.tile(problem.X, 50).astype(dtype)
    results = []
    for memory in (None, 9 * X.nbytes // 10):
        device = HostDevice(memory=memory)
        with caplog.at_level(logging.INFO, logger="ranksvm"):
            if memory is None:
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(layout, "RESIDENT_SHARE", 0.8)
                    term = on(device)(X, problem.spec, problem.pairs)
            else:
                term = on(device)(X, problem.spec, problem.pairs)
        objective = LinearObjective(term, 0.01)
        results.append(tron(objective, np.zeros(X.shape[1]), tol=1e-6))
        # a sample of a sample reads its own rows
        sample = term.sample(200, 0).sample(50, 1)
        rows, w = sample.pairs.rows, np.linspace(-1.0, 1.0, X.shape[1])
        np.testing.assert_allclose(
            sample.scores(w), X[rows] @ w, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-9
        )
    assert results[0].value == pytest.approx(results[1].value, rel=1e-9)
    assert "X stays there" in caplog.text
    assert "rows stream through in blocks of" in caplog.text


# -- beside the term on threads ----------------------------------------------------------------------------------------


def threaded(X, spec, pairs):
    return ThreadedTerm(as_design_matrix(X), spec.with_pairs(pairs))


# The host computes queries with more pairs than `most_pairs`. Some have more than 600, with weights some more than 380.
@pytest.mark.parametrize(
    ("dtype", "most_pairs"),
    [(np.float32, 1 << 31), (np.float64, 1 << 31), (np.float64, 600), (np.float64, 380), (np.float64, -1)],
)
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("device", ["host", *GPUS])
def test_everything_is_that_of_the_term_on_threads(device, loss, kind, dtype, most_pairs, monkeypatch):
    monkeypatch.setattr(long_queries, "LONG_PAIRS", most_pairs)
    problem = TermProblem(loss, n=400, seed=3, **PROBLEMS[kind])
    X = problem.X.astype(dtype)
    chosen = HostDevice() if device == "host" else open_device(device)
    term, expected = (make(X, problem.spec, problem.pairs) for make in (on(chosen), threaded))
    for w, step in problem.points():
        a, b = (term.evaluate(at, problem.width) for at in (w, w + step))
        c, d = (expected.evaluate(at, problem.width) for at in (w, w + step))
        np.testing.assert_allclose(a.sums, c.sums, rtol=1e-12, atol=1e-12)
        size = np.abs(c.gradient).max()
        np.testing.assert_allclose(a.gradient, c.gradient, rtol=1e-12, atol=1e-12 * size)
        np.testing.assert_allclose(
            term.along(a, b, [0.3, 1.0], problem.width), expected.along(c, d, [0.3, 1.0], problem.width), rtol=1e-11
        )
        H = expected.curvature(c, 1.0, 0)
        np.testing.assert_allclose(term.curvature(a, 1.0, 0), H, rtol=1e-12, atol=1e-12 * np.abs(H).max())
        np.testing.assert_allclose(term.scores(w), expected.scores(w), rtol=1e-12, atol=1e-12)
        # what the sweep of the other one adds to its bounds is not part of these
        for tight in (False, True):
            bounds = term.round_off(a, problem.width, 1e-3, tight)
            theirs = expected.round_off(c, problem.width, 1e-3, tight)
            rel = 1e-9 if most_pairs > 600 else 0.05  # two bounds added up are a little sharper than one
            assert (bounds.pulls_bound, bounds.excess_bound) == pytest.approx(
                (theirs.pulls_bound, theirs.excess_bound), rel=rel, abs=1e-11
            )
            assert 0.0 < bounds.pull_sums < 100.0 * theirs.pull_sums
    assert term.sizes().largest.tolist() == expected.sizes().largest.tolist()
    assert term.sizes().entries == expected.sizes().entries
    assert 0 < term.sizes().additions <= problem.pairs.n_rows + 100


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_result_depends_on_the_order_of_threads_or_blocks(loss, kind):
    """The same bits forwards, backwards and again: a phase of a kernel reads nothing that it writes elsewhere."""
    problem = TermProblem(loss, n=300, **PROBLEMS[kind])
    results = []
    for backwards in (False, True, False):
        device = HostDevice(n_blocks=4, n_threads=32, backwards=backwards)
        term = on(device)(problem.X, problem.spec, problem.pairs)
        w = np.linspace(-1.0, 1.0, 6)
        a, b = term.evaluate(w, problem.width), term.evaluate(-w, problem.width)
        found = [*a.sums, *a.gradient, *np.ravel(term.along(a, b, [0.5], problem.width))]
        found += [*term.curvature_product(a, w), *term.curvature(a, 1.0, 0).ravel(), *term.curvature_diagonal(a)]
        results.append(np.array(found))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("solver", [newton, tron])
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_fits_end_at_the_same_objective(solver, loss, kind):
    problem = TermProblem(loss, n=240, **PROBLEMS[kind])
    values = []
    terms = [threaded, on(HostDevice()), parts_on(HostDevice(), HostDevice(n_blocks=2)), *map(TERMS.get, GPUS)]
    for make in terms:
        term = make(problem.X, problem.spec, problem.pairs)
        objective = LinearObjective(term, 0.5, problem.spec.first_width, problem.spec.smoothed)
        result = solver(objective, np.zeros(6), tol=1e-9)
        assert result.status is Status.CONVERGED
        values.append(result.value)
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


@pytest.mark.parametrize("device", ["host", *GPUS])
def test_a_fit_gives_the_same_bits_every_time(device):
    problem = TermProblem("hinge", n=500)

    def fit():
        term = on(HostDevice() if device == "host" else open_device(device))(problem.X, problem.spec, problem.pairs)
        return newton(LinearObjective(term, 0.5, 1.0, True), np.zeros(6), tol=1e-6).w

    np.testing.assert_array_equal(fit(), fit())


# -- extremes ----------------------------------------------------------------------------------------------------------


def test_a_part_without_pairs_has_a_loss_of_nothing():
    problem = TermProblem()
    empty = problem.pairs.of_queries(np.zeros(0, dtype=np.int64))
    term = on(HostDevice())(problem.X, problem.spec, empty)
    at = term.evaluate(np.ones(6), None)
    assert at.sums == (0.0, 0.0, 0.0)
    for found in (at.gradient, term.curvature_product(at, np.ones(6)), term.curvature_diagonal(at)):
        np.testing.assert_array_equal(found, np.zeros(6))
    np.testing.assert_array_equal(term.curvature(at, 1.0, 0), np.zeros((6, 6)))
    np.testing.assert_array_equal(term.curvature(at, 0.5, 0), np.zeros((6, 6)))
    assert [each.tolist() for each in term.along(at, at, np.array([0.5]), None)] == [[0.0], [0.0]]
    assert term.sample(3, 0) is None
    assert len(term.scores(np.ones(6))) == 0


@pytest.mark.parametrize("n_features", [1, 7, 8, 33, 130])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_any_number_of_features(n_features, storage):
    """Fewer features than lanes, more than threads, and more than a tile of the Hessian."""
    problem = TermProblem(storage=storage)
    X = np.random.default_rng(0).normal(size=(90, n_features))
    X[:, 0] += 1e6  # what documents have in common must not cost digits
    X = X if storage == "dense" else type(problem.X)(X)
    term, expected = (make(X, problem.spec, problem.pairs) for make in (on(HostDevice(n_threads=16)), threaded))
    w = np.random.default_rng(1).normal(size=n_features) * 0.1
    w[0] = 0.0
    a, b = term.evaluate(w, None), expected.evaluate(w, None)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-9, atol=1e-6)
    H = expected.curvature(b, 1.0, 0)
    np.testing.assert_allclose(term.curvature(a, 1.0, 0)[1:, 1:], H[1:, 1:], rtol=1e-11, atol=1e-11 * np.abs(H).max())


def test_scores_that_are_nan_show():
    problem = TermProblem()
    term = on(HostDevice())(problem.X, problem.spec, problem.pairs)
    assert np.isnan(term.evaluate(np.full(6, np.nan), None).sums.value)


def test_a_hessian_in_blocks_of_queries(monkeypatch):
    problem = TermProblem("huber")
    term = on(HostDevice())(problem.X, problem.spec, problem.pairs)
    at = term.evaluate(np.ones(6), problem.width)
    whole, diagonal = term.curvature(at, 1.0, 0), term.curvature_diagonal(at)
    monkeypatch.setattr("ranksvm.terms.device.term.HESSIAN_BYTES", 16 * 6 * 20)
    np.testing.assert_allclose(term.curvature(at, 1.0, 0), whole, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(term.curvature_diagonal(at), diagonal, rtol=1e-13)


@pytest.mark.parametrize("large_block_bytes", [1 << 15, 500])
def test_features_with_more_than_2_to_the_31_values(large_block_bytes):
    """Rows at the end of 8.6 GB, of which the operating system makes only those that are written."""
    problem, n_all = TermProblem(), (1 << 31) // 6 + 1000
    try:
        X = np.zeros((n_all, 6), dtype=np.float32)
    except MemoryError:
        pytest.skip("the system does not promise 8.6 GB")
    n_rows = problem.pairs.n_rows
    X[-n_rows:] = problem.X[:n_rows] if problem.pairs.rows is None else problem.X[problem.pairs.rows]
    device = HostDevice(large_block_bytes=large_block_bytes)
    order = order_on_device(problem.pairs)
    run = Launcher(device, Variant(False, False, "float"))
    there = DeviceArray(X.ctypes.data, X.shape, X.dtype, X)
    rows = device_rows.DenseRows(run, there, n_all - n_rows + order.positions, np.abs(problem.X).max(axis=0))
    design = as_design_matrix(np.ascontiguousarray(X[-n_rows:]))
    loss = problem.spec.with_pairs(problem.pairs)
    term = DeviceTerm(device, design, loss, rows=rows, order=order)
    expected = DeviceTerm(device, as_design_matrix(problem.X.astype(np.float32)), loss)
    w = np.linspace(-1.0, 1.0, 6)
    a, b = term.evaluate(w, None), expected.evaluate(w, None)
    assert a.sums == b.sums
    np.testing.assert_array_equal(a.gradient, b.gradient)
    np.testing.assert_array_equal(term.curvature_product(a, w), expected.curvature_product(b, w))
    np.testing.assert_array_equal(term.curvature(a, 1.0, 0), expected.curvature(b, 1.0, 0))
