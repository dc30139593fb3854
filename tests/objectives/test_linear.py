"""The linear objective: blocks, threads and storages against every pair written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from oracle import ExplicitPairs
from ranksvm._compiled import linear
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.losses import HuberHinge, SquaredHinge
from ranksvm.objectives import LinearObjective
from ranksvm.terms import hessian_cost, host as threaded_module
from ranksvm.terms.host import ThreadedTerm

STORAGES = {"dense": np.ascontiguousarray, "csr": sp.csr_array}


def make_objective(X, y, qid, C=1.0, n_threads=1, **weights):
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), np.asarray(y, dtype=float), **weights)
    return LinearObjective(ThreadedTerm(as_design_matrix(X), SquaredHinge(pairs), n_threads), C)


def make_data(seed=0, n=60, n_features=5, n_queries=6, levels=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(dtype)
    return X, rng.integers(0, levels, n), rng.integers(0, n_queries, n), rng


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows and threads for the smallest data, so that every path is taken."""
    monkeypatch.setattr(threaded_module, "BLOCK_BYTES", 300)
    monkeypatch.setattr(threaded_module, "HESSIAN_BYTES", 300)
    monkeypatch.setattr(threaded_module, "PYTHON_HESSIAN_ROWS", 7)
    monkeypatch.setattr(threaded_module, "PARALLEL_WORK", 0)
    monkeypatch.setattr(threaded_module, "PARALLEL_PYTHON", 0)
    monkeypatch.setattr(threaded_module, "CHUNK_WORK", 20)


class InPython:
    """Compiled products or a compiled operator behind a plain object, which is asked share by share."""

    def __init__(self, compiled):
        self.compiled = compiled

    def __call__(self, *arguments):
        return self.compiled(*arguments)

    def __getattr__(self, name):
        return getattr(self.compiled, name)


def check(objective, oracle, C, w, v):
    point = objective.evaluate(w)
    f, g, H = oracle.value(w, C), oracle.gradient(w, C), oracle.hessian(w, C)
    size = max(1.0, np.abs(H).max())
    assert point.value == pytest.approx(f, rel=1e-12)
    np.testing.assert_allclose(point.gradient, g, rtol=1e-10, atol=1e-12 * size)
    assert point.gap == pytest.approx(0.5 * g @ g, rel=1e-9, abs=1e-20 * size)
    np.testing.assert_allclose(objective.hessian_product(point, v), H @ v, rtol=1e-10, atol=1e-12 * size)
    np.testing.assert_allclose(objective.hessian(point), H, rtol=1e-5, atol=1e-6 * size)
    while objective.refine():  # until it has all digits
        pass
    np.testing.assert_allclose(objective.hessian(point), H, rtol=1e-10, atol=1e-12 * size)
    if objective.term.dense:
        diagonal = np.diagonal(H)
    else:
        degrees = np.diagonal(oracle.loss_hessian(oracle.X @ w))
        diagonal = 1.0 + C * (oracle.X**2).T @ degrees
    np.testing.assert_allclose(objective.hessian_diagonal(point), diagonal, rtol=1e-10, atol=1e-12 * size)
    return point


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_gradient_and_hessian(storage, dtype, n_threads, weighted, small_blocks):
    X, y, qid, rng = make_data(dtype=dtype)
    weights = {"sample_weight": rng.integers(0, 3, len(y)), "query_weight": 1.0 + qid} if weighted else {}
    for ids in (qid, np.sort(qid), np.zeros(len(y), dtype=int), np.repeat([0, 1, 2], [50, 6, 4])):
        if weighted:
            weights["query_weight"] = 1.0 + ids
        objective = make_objective(STORAGES[storage](X), y, ids, 0.3, n_threads, **weights)
        assert objective.term.n_threads == n_threads
        oracle = ExplicitPairs(y, ids, X, **weights)
        for scale in (0.0, 0.1, 3.0):
            check(objective, oracle, 0.3, scale * rng.normal(size=5), rng.normal(size=5))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(1, 20),
    st.integers(1, 8),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(list(STORAGES)),
    st.integers(0, 2**32),
)
def test_any_shape(n, n_features, n_queries, n_threads, storage, seed):
    X, y, qid, rng = make_data(seed, n, n_features, n_queries, 3)
    y[:2], qid[:2] = (0, 1), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threaded_module, "PARALLEL_WORK", 0)
        patch.setattr(threaded_module, "PARALLEL_PYTHON", 0)
        patch.setattr(threaded_module, "CHUNK_WORK", int(rng.integers(1, 100)))
        patch.setattr(threaded_module, "BLOCK_BYTES", int(rng.integers(1, 4000)))
        patch.setattr(threaded_module, "HESSIAN_BYTES", int(rng.integers(1, 4000)))
        objective = make_objective(STORAGES[storage](X), y, qid, 2.0, n_threads)
        planned = [block for task in objective.term._tasks for block in task] + objective.term._large
        covered = np.concatenate([np.arange(start, stop) for _, _, start, stop in planned])
        assert sorted(covered) == list(range(n))
        check(objective, ExplicitPairs(y, qid, X), 2.0, rng.normal(size=n_features), rng.normal(size=n_features))


def test_one_large_query_is_shared_among_the_threads(small_blocks):
    X, y, _, rng = make_data(n=200)
    qid = np.repeat([0, 1, 2], [10, 180, 10])
    objective = make_objective(X, y, qid, 0.5, 2)
    assert objective.term._large == [(1, 2, 10, 190)]
    assert make_objective(X, y, qid, 0.5, 1).term._large == []
    oracle = ExplicitPairs(y, qid, X)
    w, step = rng.normal(size=(2, 5))
    point = check(objective, oracle, 0.5, w, rng.normal(size=5))
    trial = objective.evaluate(w + step, point)
    assert objective.line(point, trial)(np.array([0.25]))[0] == pytest.approx(
        oracle.value(w + 0.25 * step, 0.5), rel=1e-12
    )
    between = objective.between(point, trial, 0.25)
    np.testing.assert_allclose(between.gradient, oracle.gradient(w + 0.25 * step, 0.5), rtol=1e-10)


@pytest.mark.parametrize(
    ("sizes", "n_threads", "large"),
    [
        ([50] * 10, 16, []),  # each query on a thread of its own, though it is more than an even share
        ([50] * 16, 16, []),
        ([500, *[10] * 100], 16, [0]),
        ([*[10] * 10, 900, 30, *[10] * 10], 8, [10]),
        ([300, 290], 2, []),  # in turn their pairs would take longer than one query on one thread
        ([10] * 30 + [300], 2, [30]),  # a thread would begin it last
        ([300] + [10] * 30, 2, []),
        ([500], 4, [0]),
    ],
)
def test_queries_are_shared_among_the_threads_if_that_is_faster(sizes, n_threads, large, small_blocks):
    X, y, _, rng = make_data(n=sum(sizes))
    qid = np.repeat(np.arange(len(sizes)), sizes)
    objective = make_objective(X, y, qid, 0.5, n_threads)
    assert [first for first, _, _, _ in objective.term._large] == large
    check(objective, ExplicitPairs(y, qid, X), 0.5, rng.normal(size=5), rng.normal(size=5))


def test_a_query_that_is_not_worth_threads_is_not_shared(small_blocks, monkeypatch):
    monkeypatch.setattr(threaded_module, "PARALLEL_PYTHON", 500 * 10)  # multiplications, two for a feature of float64
    X, y, _, _ = make_data(n=1000)
    for n_rows, large in ((1000, 1), (500, 0)):
        qid = np.where(np.arange(1000) < n_rows, 0, np.arange(1000))
        assert len(make_objective(X, y, qid, 0.5, 4).term._large) == large


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_segment_is_followed_without_reading_X(n_threads, small_blocks):
    X, y, qid, rng = make_data(1)
    objective = make_objective(X, y, qid, 0.7, n_threads)
    oracle = ExplicitPairs(y, qid, X)
    w, step = rng.normal(size=(2, 5))
    point = objective.evaluate(w)
    trial = objective.evaluate(w + step, point)
    along = objective.line(point, trial)
    for alpha in (0.0, 0.1, 0.5, 0.9, 1.0):
        at = w + alpha * step
        (value,), (slope,) = along(np.array([alpha]))
        assert value == pytest.approx(oracle.value(at, 0.7), rel=1e-12)
        assert slope == pytest.approx(oracle.gradient(at, 0.7) @ step, rel=1e-9)
        between, fresh = objective.between(point, trial, alpha), objective.evaluate(at)
        np.testing.assert_allclose(between.w, at, rtol=1e-14)
        assert between.value == pytest.approx(fresh.value, rel=1e-12)
        np.testing.assert_allclose(between.gradient, fresh.gradient, rtol=1e-9, atol=1e-9)
        v = rng.normal(size=5)
        np.testing.assert_allclose(
            objective.hessian_product(between, v), objective.hessian_product(fresh, v), rtol=1e-9
        )


def test_the_gradient_is_the_derivative():
    """Five-point stencil, in directions where it crosses no margin."""
    X, y, qid, rng = make_data(2)
    objective, oracle = make_objective(X, y, qid, 0.4), ExplicitPairs(y, qid, X)
    w, h, checked = rng.normal(size=5), 1e-5, 0
    for d in rng.normal(size=(10, 5)):
        edges = [oracle.curved(X @ (w + k * h * d))[0] for k in (-2, 2)]
        if (edges[0] == edges[1]).all():
            f = [objective.evaluate(w + k * h * d).value for k in (-2, -1, 1, 2)]
            slope = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
            assert slope == pytest.approx(objective.evaluate(w).gradient @ d, rel=1e-7)
            checked += 1
    assert checked >= 5


def test_another_C_needs_no_pass_over_X(monkeypatch):
    X, y, qid, rng = make_data(3)
    objective, oracle = make_objective(X, y, qid, 1.0), ExplicitPairs(y, qid, X)
    w = rng.normal(size=5)
    point = objective.evaluate(w)
    objective.refine()
    before = objective.hessian(point)
    monkeypatch.setattr(objective.term, "_pass", None)
    objective.reweight(8.0, point)
    assert point.value == pytest.approx(oracle.value(w, 8.0), rel=1e-12)
    np.testing.assert_allclose(point.gradient, oracle.gradient(w, 8.0), rtol=1e-10)
    np.testing.assert_allclose(objective.earlier_hessian(), oracle.hessian(w, 8.0), rtol=1e-10)
    np.testing.assert_allclose(before, oracle.hessian(w, 1.0), rtol=1e-10)
    assert make_objective(X, y, qid).earlier_hessian() is None


@pytest.mark.parametrize("weighted", [False, True])
def test_the_sampled_hessian_is_that_of_the_sample(weighted, monkeypatch):
    X, y, qid, rng = make_data(4, n=400, n_queries=40)
    weights = {"sample_weight": rng.random(400)} if weighted else {}
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (16, 16))
    objective = make_objective(X, y, qid, 0.2, **weights)
    assert objective.hessian_fraction == pytest.approx(0.2)
    objective.reweight(0.6)
    sample = objective.sample()
    rows = sample.term.pairs.rows
    assert 80 <= len(rows) < 120 + 2 * sample.term.pairs.n_queries
    assert len(np.unique(rows)) == len(rows)
    assert sample.C * sample.term.pairs.weight == pytest.approx(0.6 * objective.term.pairs.weight)
    w = rng.normal(size=5)
    part = {}
    pairs = sample.term.pairs
    if pairs.preferred is not None:
        part = {
            "sample_weight": pairs.other,
            "query_weight": pairs.preferred / pairs.other,
        }
    if weighted:
        np.testing.assert_array_equal(part["sample_weight"], weights["sample_weight"][rows])
    oracle = ExplicitPairs(y[rows], qid[rows], X[rows], **part)
    point = objective.evaluate(w)
    # multiplied in float32
    expected = oracle.hessian(w, sample.C)
    np.testing.assert_allclose(objective.hessian(point), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    assert sample.evaluate(w).value == pytest.approx(oracle.value(w, sample.C), rel=1e-11)
    objective.reweight(1.2)
    assert pytest.approx(2 * 0.6 * objective.term.pairs.weight / sample.term.pairs.weight) == objective.sample().C
    expected = oracle.hessian(w, objective.sample().C)
    np.testing.assert_allclose(objective.earlier_hessian(), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_released_memory_serves_the_next_point():
    X, y, qid, rng = make_data(5)
    objective = make_objective(X, y, qid)
    w = rng.normal(size=(3, 5))
    first = objective.evaluate(w[0])
    scores, value = first.at.scores, first.value
    objective.release(first)
    second = objective.evaluate(w[1])
    assert second.at.scores is scores
    assert objective.evaluate(w[0]).value == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(("n_features", "expected"), [(50, 1.0), (2000, None), (2001, 0.0)])
def test_the_hessian_is_explicit_where_that_is_worth_it(n_features, expected):
    X = np.zeros((100, n_features))
    fraction = make_objective(X, np.arange(100), np.zeros(100)).hessian_fraction
    assert (0.0 < fraction <= 1.0) if expected is None else fraction == expected


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("compiled", [False, True])
def test_products_and_losses_in_python(n_threads, compiled, small_blocks, monkeypatch):
    X, y, qid, rng = make_data()
    w, v = rng.normal(size=(2, 5))
    term = make_objective(X, y, qid, n_threads=n_threads).term
    expected = term.evaluate(w, None)
    product = term.curvature_product(expected, v)
    term._products = InPython(term._products)
    if not compiled:  # an operator in Python, too
        evaluation = term.loss.evaluation
        monkeypatch.setattr(term.loss, "evaluation", lambda *arguments: InPython(evaluation(*arguments)))
    found = term.evaluate(w, None)
    assert found.sums.value == pytest.approx(expected.sums.value, rel=1e-13)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-12)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-13)
    assert expected.gradient.base is None or expected.gradient.base.size == 5  # those of other shares are not kept
    np.testing.assert_allclose(term.curvature_product(found, v), product, rtol=1e-12)


def test_an_error_of_python_ends_a_pass(small_blocks, monkeypatch):
    X, y, qid, rng = make_data()
    term = make_objective(X, y, qid, n_threads=2).term

    def fails(first, last, v_range, u_range):
        raise ZeroDivisionError

    monkeypatch.setattr(term.loss, "evaluation", lambda *_: fails)
    with pytest.raises(ZeroDivisionError):
        term.evaluate(rng.normal(size=5), None)


def test_the_hessian_at_zero_where_it_costs_less():
    X, y, qid, _ = make_data(3)
    objective, oracle = make_objective(X, y, qid, 0.5), ExplicitPairs(y, qid, X)
    np.testing.assert_allclose(objective.hessian_at_zero(), oracle.hessian(np.zeros(5), 0.5), rtol=1e-5)
    assert objective.first_hessian_cost < objective.hessian_cost
    # queries of two documents, and a loss without curvature there
    couples, huber = np.arange(len(y)) // 2, HuberHinge(ComparablePairs.from_labels(Queries.from_qid(qid), y * 1.0))
    without = LinearObjective(ThreadedTerm(as_design_matrix(X), huber), 0.5, width=0.5)
    for other in (make_objective(X, y, couples, 0.5), without):
        assert other.hessian_at_zero() is None
        assert other.first_hessian_cost == other.hessian_cost


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30, 1e38])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_products_in_float32_at_any_scale(scale, n_threads, small_blocks, monkeypatch):
    monkeypatch.setattr(linear, "NEAR_BYTES", 0)
    X, y, qid, rng = make_data(n=300, n_features=17, dtype=np.float32)
    X = np.clip(X, -3.0, 3.0) * np.float32(scale)
    for ids in (qid, np.repeat([0, 1, 2], [10, 280, 10])):
        term = make_objective(X, y, ids, n_threads=n_threads).term
        at = term.evaluate(rng.normal(size=17) / scale, None)
        for v in (rng.normal(size=17), rng.normal(size=17) * 1e-200):
            exact, single = term.curvature_product(at, v), term.curvature_product(at, v, double=False)
            assert np.abs(single - exact).max() <= 1e-6 * np.abs(exact).max()
            assert (single != exact).any() == (scale < 1e38)  # of which sums are too large
        np.testing.assert_array_equal(term.curvature_product(at, np.zeros(17), double=False), 0.0)


def test_products_are_in_float32_where_that_has_the_digits(monkeypatch):
    """Rows far from 0 beside their differences, and those of a sample, are multiplied in float64."""
    X, y, qid, _ = make_data(n=3000, n_features=17, n_queries=100, dtype=np.float32)
    asked = []
    product = ThreadedTerm.curvature_product
    monkeypatch.setattr(
        ThreadedTerm,
        "curvature_product",
        lambda self, at, v, double=True: asked.append(double) or product(self, at, v, double),
    )

    def doubles(X, C=1.0, includes_round_off=True):
        objective = make_objective(X, y, qid, C)
        objective.includes_round_off = includes_round_off
        point = objective.evaluate(np.zeros(17))
        asked.clear()
        objective.hessian_product(point, np.ones(17), double=False)  # no Hessian yet
        objective.hessian(point)
        objective.hessian_product(point, np.ones(17), double=False)
        objective.hessian_product(point, np.ones(17))
        return asked

    assert doubles(X) == [True, False, True]
    assert doubles(X, includes_round_off=False) == [True, True, True]
    far, constant = X.copy(), X.copy()
    far[:, 3] += 1000.0
    constant[:, 3] = 10.0
    assert doubles(far) == doubles(constant) == [True, True, True]
    assert doubles(constant, C=1e-9) == [True, False, True]  # its weight stays at 0


def test_products_that_float32_cannot_hold_are_in_float64(monkeypatch):
    monkeypatch.setattr(linear, "NEAR_BYTES", 0)
    X, y, qid, rng = make_data(n=300, n_features=17, dtype=np.float32)
    term = make_objective(X, y, qid, sample_weight=np.full(300, 1e20)).term
    at, v = term.evaluate(np.zeros(17), None), rng.normal(size=17)
    exact = term.curvature_product(at, v)
    np.testing.assert_array_equal(term.curvature_product(at, v, double=False), exact)
    assert np.isfinite(exact).all()


def test_pairs_are_visited_one_by_one_only_if_that_is_asked_for():
    X, y, qid, _ = make_data(n=900, n_queries=1)
    objective, oracle, w = make_objective(X, y, qid), ExplicitPairs(y, qid, X), np.full(X.shape[1], 0.1)
    point = objective.evaluate(w)
    assert point.at.state.order is not None
    assert not objective.refresh(point)
    assert objective.refresh(point, visit_pairs=True)
    assert point.at.state.order is None
    assert point.value == pytest.approx(oracle.value(w, 1.0), rel=1e-12)
    assert not objective.refresh(point, visit_pairs=True)
