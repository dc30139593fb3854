"""The factorized dual against its pairs written out: value, gradient, steps."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from oracle import pairs_of
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.objectives import FactorizedDual

STORAGES = {"dense": lambda X: X, "csr": sp.csr_array}


class Explicit:
    """D(V) and its gradient over all pairs, by their definitions."""

    def __init__(self, X, y, qid):
        self.X = np.asarray(X, dtype=np.float64)
        self.upper, self.lower = pairs_of(y, qid)
        self.differences = self.X[self.upper] - self.X[self.lower]

    def w(self, V):
        return np.sum(V[self.upper] * V[self.lower], axis=1) @ self.differences

    def value(self, V):
        return 0.5 * self.w(V) @ self.w(V) - np.sum(V[self.upper] * V[self.lower])

    def gradient(self, V):
        G = np.zeros_like(V)
        slopes = (self.differences @ self.w(V) - 1.0)[:, None]
        np.add.at(G, self.upper, slopes * V[self.lower])
        np.add.at(G, self.lower, slopes * V[self.upper])
        return G


def problem(n_levels, seed=0, sizes=(7, 1, 12, 3, 9), n_features=5, dtype=np.float64):
    """Queries with ties, one of a single document, one of a single label, all in disorder."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.integers(n_levels, size=len(qid)).astype(np.float64)
    y[qid == 3] = 1.0
    order = rng.permutation(len(qid))
    return rng.normal(size=(len(qid), n_features)).astype(dtype)[order], y[order], qid[order]


def dual_of(X, y, qid, C=0.5, K=3, seed=0, storage="dense", **options):
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    design = as_design_matrix(STORAGES[storage](X))
    return FactorizedDual(design, pairs, C, K, np.random.RandomState(seed), **options)


@pytest.mark.parametrize("n_levels", [2, 4, 1000])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("K", [1, 3, 4, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_value_gradient_and_weights_are_those_of_the_pairs(n_levels, storage, K, dtype):
    X, y, qid = problem(n_levels, dtype=dtype)
    dual, oracle = dual_of(X, y, qid, K=K, storage=storage), Explicit(X, y, qid)
    there = np.isin(qid, qid[oracle.upper])
    V = np.random.default_rng(1).uniform(0.0, dual.upper, (len(y), K))
    dual.start(V)
    V = V * there[:, None]
    np.testing.assert_allclose(dual.factors, V, atol=1e-15)
    np.testing.assert_allclose(dual.w, oracle.w(V), rtol=1e-12, atol=1e-12)
    assert dual.value == pytest.approx(oracle.value(V), rel=1e-12)
    np.testing.assert_allclose(dual.gradient(), oracle.gradient(V), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_levels", [2, 1000])
def test_gradient_against_finite_differences_of_the_pair_objective(n_levels):
    X, y, qid = problem(n_levels)
    dual, oracle = dual_of(X, y, qid), Explicit(X, y, qid)
    dual.start(np.random.default_rng(1).uniform(0.0, dual.upper, (len(y), 3)))
    V, G, h = dual.factors, dual.gradient(), 1e-3
    for place in np.ndindex(V.shape):
        unit = np.zeros_like(V)
        unit[place] = h
        # exact for a polynomial of degree 4 in the entry (it is one of degree 2)
        slope = (
            8 * (oracle.value(V + unit) - oracle.value(V - unit))
            - (oracle.value(V + 2 * unit) - oracle.value(V - 2 * unit))
        ) / (12 * h)
        if qid[place[0]] in qid[oracle.upper]:
            assert G[place] == pytest.approx(slope, rel=1e-7, abs=1e-7)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2, 30),
    st.integers(1, 9),
    st.sampled_from([1e-6, 0.1, 1e6]),
    st.sampled_from(list(STORAGES)),
    st.integers(0, 1000),
)
def test_no_visit_goes_uphill_and_weights_follow(n_levels, K, C, storage, seed):
    X, y, qid = problem(n_levels, seed)
    oracle = Explicit(X, y, qid)
    if len(oracle.upper) == 0:
        return
    dual = dual_of(X, y, qid, C, K, seed, storage)
    dual.start_along(np.random.default_rng(seed).uniform(size=(len(y), K)))
    value = dual.value
    assert value < 0.0
    for _ in range(5):
        for query in range(dual.pairs.n_queries):
            dual.visit(np.array([query]))
            V = dual.factors
            assert V.min() >= 0.0
            assert V.max() <= dual.upper
            assert dual.value <= value + 1e-12 * abs(value)
            value = dual.value
            assert value == pytest.approx(oracle.value(V), rel=1e-9)
        np.testing.assert_allclose(dual.w, oracle.w(V), rtol=1e-9, atol=1e-9 * np.abs(dual.w).max())
        list(dual.epoch())
        assert dual.value <= value + 1e-12 * abs(value)
        value = dual.value
        assert value == pytest.approx(oracle.value(dual.factors), rel=1e-9)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n_levels", [2, 4, 1000])
def test_epochs_end_at_a_local_optimum(storage, n_levels):
    X, y, qid = problem(n_levels)
    dual, oracle = dual_of(X, y, qid, storage=storage), Explicit(X, y, qid)
    dual.start_along(np.random.default_rng(0).uniform(size=(len(y), 3)))
    for _ in range(3000):
        projected = sum(dual.epoch())
    V, G = dual.factors, oracle.gradient(dual.factors)
    assert np.sqrt(projected) < 1e-4
    assert np.abs(np.clip(V - G, 0.0, dual.upper) - V).max() < 1e-4
    rng = np.random.default_rng(2)
    for _ in range(200):
        near = np.clip(V + 1e-2 * rng.normal(size=V.shape), 0.0, dual.upper)
        assert oracle.value(near) >= dual.value - 1e-6


@pytest.fixture
def several_shares(monkeypatch):
    """Few rows are divided into shares, and threads take them, as if there were many."""
    monkeypatch.setattr("ranksvm.terms.host.PARALLEL_PYTHON", 0)
    monkeypatch.setattr("ranksvm.objectives.low_rank.factorized.SHARE_BYTES", 0)


@pytest.mark.usefixtures("several_shares")
@pytest.mark.parametrize("threads", [1, 2])
def test_steps_are_refreshed_to_the_same(threads):
    X, y, qid = problem(4)
    dual = dual_of(X, y, qid, n_threads=threads)
    assert len(dual._shares) > 1
    dual.start_along(np.random.default_rng(0).uniform(size=(len(y), 3)))
    for _ in range(49):
        list(dual.epoch())
    w, value = dual.w.copy(), dual.value
    dual.refresh()
    np.testing.assert_allclose(dual.w, w, rtol=1e-11, atol=1e-13)
    assert dual.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(w, Explicit(X, y, qid).w(dual.factors), rtol=1e-11, atol=1e-13)


@pytest.mark.usefixtures("several_shares")
def test_number_of_threads_changes_nothing():
    X, y, qid = problem(4)
    found = []
    for threads in (1, 2):
        dual = dual_of(X, y, qid, n_threads=threads)
        dual.start_along(np.random.default_rng(0).uniform(size=(len(y), 3)))
        for _ in range(5):
            list(dual.epoch())
        found.append(dual.factors)
    np.testing.assert_array_equal(*found)


def test_an_epoch_in_parts_visits_all_the_same(monkeypatch):
    X, y, qid = problem(4)
    found = []
    for size in (1 << 28, 100, 1):
        monkeypatch.setattr("ranksvm.objectives.low_rank.factorized.PART_BYTES", size)
        dual = dual_of(X, y, qid)
        dual.start_along(np.random.default_rng(0).uniform(size=(len(y), 3)))
        parts = len(list(dual.epoch()))
        found.append((dual.factors, parts))
    for factors, _ in found[1:]:
        np.testing.assert_array_equal(factors, found[0][0])
    assert [parts for _, parts in found] == sorted(parts for _, parts in found)
    assert found[-1][1] > found[0][1]


@pytest.mark.parametrize("n_levels", [2, 4, 1000])
def test_fixed_steps_are_those_of_algorithm_1(n_levels):
    X, y, qid = problem(n_levels)
    step, oracle = 0.05, Explicit(X, y, qid)
    dual = dual_of(X, y, qid, fixed_step=step)
    dual.start_along(np.random.default_rng(0).uniform(size=(len(y), 3)))
    V, random = dual.factors, np.random.RandomState(0)
    queries = Queries.from_qid(qid, len(y))
    with_pairs = [q for q in range(queries.n_queries) if len(set(y[queries.rows(q)])) > 1]
    for _ in range(20):
        list(dual.epoch())
        for query in random.permutation(with_pairs):
            rows = queries.rows(query)
            V[rows] = np.clip(V[rows] - step * oracle.gradient(V)[rows], 0.0, dual.upper)
        np.testing.assert_allclose(dual.factors, V, rtol=1e-9, atol=1e-12)
        # of factors that differ by round-off, w differs by as much of its largest entry
        np.testing.assert_allclose(dual.w, oracle.w(V), rtol=0.0, atol=1e-9 * np.abs(dual.w).max())


def test_the_start_is_the_best_along_its_ray():
    X, y, qid = problem(4)
    oracle, U = Explicit(X, y, qid), np.random.default_rng(0).uniform(size=(32, 3))
    for C in (1e-6, 100.0):
        dual = dual_of(X, y, qid, C)
        dual.start_along(U)
        scales = np.linspace(0.0, dual.upper, 2001)
        assert dual.value <= min(oracle.value(scale * U) for scale in scales) + 1e-12


def test_documents_without_differences_end_at_the_edge_of_the_box():
    """With constant features alpha costs nothing: all of it is C."""
    y = np.array([2.0, 1.0, 0.0, 1.0])
    dual = dual_of(np.ones((4, 2)), y, np.zeros(4), C=0.7)
    dual.start_along(np.random.default_rng(0).uniform(size=(4, 3)))
    for _ in range(5):
        list(dual.epoch())
    np.testing.assert_allclose(dual.factors, dual.upper)
    assert dual.value == pytest.approx(-0.7 * 5)
    np.testing.assert_allclose(dual.w, 0.0, atol=1e-12)


def test_a_common_offset_of_the_features_changes_little():
    X, y, qid = problem(4)
    found = []
    for offset in (0.0, 1e6):
        dual = dual_of(X + offset, y, qid)
        dual.start(np.random.default_rng(0).uniform(size=(len(y), 3)))
        found.append(dual.gradient())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)


def test_very_sparse_rows():
    """More features than entries: only those of a query are touched."""
    _, y, qid = problem(4)
    X = sp.random_array((len(y), 5000), density=1e-3, format="csr", random_state=np.random.default_rng(0))
    dual, oracle = dual_of(X, y, qid, storage="csr"), Explicit(X.toarray(), y, qid)
    dual.start_along(np.random.default_rng(0).uniform(size=(len(y), 3)))
    for _ in range(30):
        list(dual.epoch())
    np.testing.assert_allclose(dual.w, oracle.w(dual.factors), rtol=1e-9, atol=1e-12)
    assert dual.value == pytest.approx(oracle.value(dual.factors), rel=1e-10)


@pytest.mark.parametrize("storage", STORAGES)
def test_the_remaining_decrease_is_that_of_line_searches_and_changes_nothing(storage):
    X, y, qid = problem(3)
    short = dual_of(X, y, qid, storage=storage, fixed_step=1e-7)
    searching = dual_of(X, y, qid, storage=storage)
    factors = np.random.default_rng(0).uniform(size=(len(y), short.n_components))
    for dual in (short, searching):
        dual.start_along(factors)
    before, w = short.value, short.w.copy()
    decrease = short.remaining_decrease()
    searching.visit(searching._with_pairs)
    assert decrease == pytest.approx(before - searching.value)
    assert decrease > 0
    assert short.value == before
    np.testing.assert_array_equal(short.w, w)
    assert short.remaining_decrease() == decrease
    assert searching.remaining_decrease() == 0.0
