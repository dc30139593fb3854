"""Designs of computed features against the dense array of all features."""

import numpy as np
import pytest
import scipy.sparse

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, Queries
from ranksvm.data.design_matrix import DenseDesign
from ranksvm.exceptions import OptionError
from ranksvm.kernels import FourierFeatures, NystroemFeatures, kernel_named
from ranksvm.losses import SquaredHinge
from ranksvm.objectives import LinearObjective
from ranksvm.solvers import newton
from ranksvm.terms import feature_design as module, hessian_cost, host as threaded_module
from ranksvm.terms.feature_design import ComputedDesign, feature_design
from ranksvm.terms.host import ThreadedTerm

STORAGES = {"dense": np.asarray, "csr": scipy.sparse.csr_array}
KERNEL = kernel_named("rbf", gamma=0.3)


def make_features(X, kind):
    if kind == "nystroem":
        return NystroemFeatures(KERNEL, X[:9])
    return FourierFeatures.drawn(KERNEL, X.shape[1], 12, random_state=0)


def make_data(n=70, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, random.integers(0, 4, n).astype(float), np.sort(random.integers(0, 6, n)), random


def make_design(X, features, kept, **options):
    return feature_design(X, features, **options) if kept else ComputedDesign(X, features)


def make_objective(design, y, qid, n_threads=1, C=0.7):
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    return LinearObjective(ThreadedTerm(design, SquaredHinge(pairs), n_threads), C)


@pytest.fixture(params=[1, 5, 1 << 20], ids=["chunks of a row", "chunks of 5 rows", "one chunk"])
def chunk_rows(request, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 8 * 12 * request.param)
    return request.param


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "computed"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_products_are_those_of_the_array_of_features(shuffled, kept, kind, storage, chunk_rows):
    X, _, _, random = make_data()
    features = make_features(STORAGES[storage](X), kind)
    phi = features.transform(STORAGES[storage](X))
    design = make_design(STORAGES[storage](X), features, kept, dtype=np.float64, n_threads=2)
    assert isinstance(design, DenseDesign if kept else ComputedDesign)
    assert design.n_features == phi.shape[1]
    assert design.dense
    rows = random.permutation(70)[:60] if shuffled else None
    products = design.products(rows)
    for start, stop in ((0, 60), (3, 17), (20, 20), (41, 42)):
        block = phi[start:stop] if rows is None else phi[rows[start:stop]]
        w = random.normal(size=design.n_features)
        out = np.full(stop - start, np.nan)
        for factor in (1.0, 2.0):  # what is remembered of w is not w, which solvers change in place
            w *= factor
            products.scores(start, stop, w, out)
            np.testing.assert_allclose(out, block @ w, rtol=1e-9, atol=1e-12)
        u = random.normal(size=stop - start) * (random.random(stop - start) < 0.5)
        total = np.ones(design.n_features)
        products.accumulate(start, stop, u, total)
        np.testing.assert_allclose(total, 1.0 + block.T @ u, rtol=1e-8, atol=1e-11)
        squares = np.ones(design.n_features)
        design.accumulate_squares(rows, start, stop, u, squares)
        np.testing.assert_allclose(squares, 1.0 + (block**2).T @ u, rtol=1e-8, atol=1e-11)
        gathered = np.full((len(block), design.n_features + 2), np.nan)
        design.gather(rows, start, stop, gathered)
        np.testing.assert_allclose(gathered, np.pad(block, ((0, 0), (0, 2))), rtol=1e-12, atol=1e-14)


def test_the_same_range_of_other_rows_is_computed_anew():
    X, _, _, random = make_data()
    features = make_features(X, "nystroem")
    design, phi, w = ComputedDesign(X, features), features.transform(X), random.normal(size=features.n_features)
    out = np.empty(10)
    for rows in (None, np.arange(10, 40), np.arange(30, 70)):
        design.products(rows).scores(5, 15, w, out)
        expected = phi[5:15] if rows is None else phi[rows[5:15]]
        np.testing.assert_allclose(out, expected @ w, rtol=1e-9, atol=1e-12)


def test_scores_and_gradient_of_a_block_compute_its_features_once(monkeypatch):
    X, y, qid, _ = make_data()
    calls = []

    class Counted(NystroemFeatures):
        def basis(self, X):
            calls.append(X.shape[0])
            return super().basis(X)

    monkeypatch.setattr(threaded_module, "BLOCK_BYTES", 4 * 9 * 20)
    objective = make_objective(ComputedDesign(X, Counted(KERNEL, X[:9])), y, qid)
    objective.evaluate(np.ones(9))
    assert len(calls) > 2
    assert sum(calls) == 70


def test_features_are_kept_where_they_fit():
    X, *_ = make_data()
    features = make_features(X, "fourier")
    needed = 70 * 12 * 4 + module.COPIES * module.CHUNK_BYTES
    assert isinstance(feature_design(X, features, memory=needed), DenseDesign)
    assert isinstance(feature_design(X, features, memory=needed - 1), ComputedDesign)
    kept = feature_design(X, features)
    assert kept.X.dtype == np.float32
    np.testing.assert_array_equal(kept.X, features.transform(X).astype(np.float32))


def test_chunks_are_as_small_as_memory_is_and_too_little_is_refused():
    X = np.zeros((30_000, 4))
    features = make_features(make_data()[0], "fourier")
    with pytest.raises(OptionError, match=r"12 features of 30,000 rows needs at least 7\.\d MB .* raise memory_limit"):
        feature_design(X, features, memory=5_000_000, n_threads=2)
    designs = [feature_design(X, features, memory=memory, n_threads=2) for memory in (7_500_000, 8_000_000, 2e7)]
    sizes = [design.chunk_rows for design in designs]
    assert module.MIN_ROWS <= sizes[0] < sizes[1] < sizes[2] <= module.CHUNK_BYTES // (8 * 12)


def test_memory_for_a_hessian_is_counted_only_where_one_may_be_built(monkeypatch):
    X, *_ = make_data()
    features = FourierFeatures.drawn(KERNEL, X.shape[1], 1000, random_state=0)
    memory = 50_000_000  # 9 squares take 72 MB
    with pytest.raises(OptionError, match=r"1,000 features of 70 rows needs at least 7\d\.\d MB"):
        feature_design(X, features, memory=memory)
    assert isinstance(feature_design(X, features, memory=memory, hessian=False), DenseDesign)
    # for the diagonal of the Hessian, 3 blocks of all rows take 1.7 MB
    with pytest.raises(OptionError, match=r"1,000 features of 70 rows needs at least 2\.\d MB"):
        feature_design(X, features, memory=2_000_000, hessian=False)
    monkeypatch.setattr(module, "MAX_VARIABLES", 999)
    assert isinstance(feature_design(X, features, memory=memory), DenseDesign)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
def test_value_gradient_and_hessian_against_explicit_pairs(kind, n_threads, monkeypatch):
    monkeypatch.setattr(threaded_module, "PARALLEL_WORK", 0)
    monkeypatch.setattr(threaded_module, "PARALLEL_PYTHON", 0)
    monkeypatch.setattr(threaded_module, "BLOCK_BYTES", 500)
    X, y, qid, random = make_data()
    order = random.permutation(70)
    X, y, qid = X[order], y[order], qid[order]
    features = make_features(X, kind)
    oracle = ExplicitPairs(y, qid, features.transform(X))
    w, v = random.normal(size=(2, features.n_features))
    for kept in (False, True):
        design = make_design(X, features, kept, dtype=np.float64, n_threads=n_threads)
        objective = make_objective(design, y, qid, n_threads)
        point = objective.evaluate(w)
        assert point.value == pytest.approx(oracle.value(w, 0.7), rel=1e-9)
        hessian = oracle.hessian(w, 0.7)
        np.testing.assert_allclose(point.gradient, oracle.gradient(w, 0.7), rtol=1e-7, atol=1e-7)
        objective.refine()
        np.testing.assert_allclose(objective.hessian(point), hessian, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(objective.hessian_product(point, v), hessian @ v, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(objective.hessian_diagonal(point), np.diagonal(hessian), rtol=1e-7)


@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
def test_the_fitted_model_is_that_of_the_dense_array_however_features_are_stored(kind, monkeypatch):
    # the Hessian of a sample, and conjugate gradients, as large data have them
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (8, 8))
    X, y, qid, _ = make_data(n=500)
    features = make_features(X, kind)
    designs = [DenseDesign(features.transform(X))]
    designs += [make_design(X, features, kept, n_threads=2) for kept in (True, False)]
    found = []
    for design in designs:
        objective = make_objective(design, y, qid, 2)
        assert 0.0 < objective.hessian_fraction < 1.0
        result = newton(objective, np.zeros(design.n_features), tol=1e-10)
        assert result.gap <= 1e-10 * result.value
        found.append((result.value, result.w))
    for value, w in found[1:]:
        assert value == pytest.approx(found[0][0], rel=1e-6)
        np.testing.assert_allclose(w, found[0][1], rtol=1e-3, atol=1e-4)
