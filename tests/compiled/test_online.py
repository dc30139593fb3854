"""Updates by pairs: the order of the pairs, and each step beside the problem that it solves."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import scipy.stats
from hypothesis import given, strategies as st

from online_oracle import Committee, Perceptron, PRank, SolarFirst, SolarSecond, pairs_in_order
from ranksvm._compiled import online

LEARNERS = {
    "solar-1": ("solar_first", lambda n, C: SolarFirst(n, C)),
    "solar-2": ("solar_second", lambda n, gamma: SolarSecond(n, gamma)),
    "solar-2 diagonal": ("solar_diagonal", lambda n, gamma: SolarSecond(n, gamma, diagonal=True)),
    "perceptron": ("perceptron", lambda n, _: Perceptron(n)),
}


class Learner:
    """A compiled learner with its arrays."""

    def __init__(self, method, n, parameter=1.0, w=None, average=False):
        self.method, self.parameter = method, parameter
        self.w = np.zeros(n) if w is None else np.array(w)
        self.lag, self.counts = np.zeros(n) if average else None, np.zeros(4)
        self.S = {"solar_second": np.eye(n).reshape(-1), "solar_diagonal": np.ones(n)}.get(method)

    def learn(self, X, pairs, weight=None):
        model = online.Model(self.w, self.lag, self.counts)
        preferred, other = np.array(pairs, dtype=np.int32).reshape(-1, 2).T.copy()
        if sp.issparse(X):
            rows = X.data, X.indices, X.indptr, X.shape[1]
            online.learn_sparse(model, self.method, self.parameter, self.S, *rows, preferred, other, weight)
        else:
            online.learn_dense(model, self.method, self.parameter, self.S, X, preferred, other, weight)
        return self

    @property
    def covariance(self):
        if self.method == "solar_diagonal":
            return np.diag(self.S)
        lower = np.tril(self.S.reshape(len(self.w), -1))
        return lower + np.tril(lower, -1).T


def filled(y, shuffle=False, seed=0, stream=0):
    y = np.asarray(y, dtype=np.float64)
    preferred, other = np.full((2, online.count_pairs(y)), -1, dtype=np.int32)
    online.fill_pairs(y, shuffle, seed, stream, preferred, other)
    return np.stack((preferred, other), axis=1)


def some_pairs(rng, n_rows, n_pairs):
    preferred = rng.integers(0, n_rows, n_pairs)
    return np.stack((preferred, (preferred + rng.integers(1, n_rows, n_pairs)) % n_rows), axis=1)


# -- the order of pairs ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([-1.5, 0.0, 1.0, 2.0]), max_size=12),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**63),
    st.booleans(),
)
def test_pairs_come_in_the_documented_order(y, seed, stream, shuffle):
    np.testing.assert_array_equal(filled(y, shuffle, seed, stream), pairs_in_order(y, shuffle, seed, stream))


def test_pairs_by_label_and_then_by_number():
    pairs = [(1, 3), (1, 0), (1, 2), (3, 0), (3, 2), (4, 0), (4, 2)]
    assert filled([0.0, 2.0, 0.0, 1.0, 1.0])[:, 0].tolist() == [1, 1, 1, 1, 3, 3, 4, 4]
    assert sorted(map(tuple, filled([0.0, 2.0, 0.0, 1.0, 1.0]))) == sorted([*pairs, (1, 4)])
    assert filled([1.0, 1.0]).shape == filled([]).shape == filled([3.0]).shape == (0, 2)


def test_every_shuffle_of_few_pairs_is_as_likely():
    """Chi-square over the 24 orders of four pairs and 24,000 queries; and over seeds instead of queries."""
    y = np.array([1.0, 1.0, 0.0, 0.0])
    place = {order: t for t, order in enumerate(itertools.permutations(map(tuple, filled(y))))}
    for vary in ("stream", "seed"):
        counts = np.zeros(24)
        for number in range(24_000):
            counts[place[tuple(map(tuple, filled(y, True, **{"seed": 5, "stream": 5, vary: number})))]] += 1
        assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_every_place_is_as_likely_for_a_pair():
    """The first pair of 90, over 9,000 queries: where it comes."""
    y = np.array([1.0] * 9 + [0.0] * 10)
    first = filled(y)[0]
    at = [np.flatnonzero((filled(y, True, 0, stream) == first).all(axis=1))[0] for stream in range(9_000)]
    assert scipy.stats.chisquare(np.bincount(at, minlength=90)).pvalue > 1e-3


# -- one step, and the problem it solves -------------------------------------------------------------------------------


def minimized(objective, start):
    """Minimizer of a convex function with a kink in its second derivative."""
    for _ in range(3):
        start = scipy.optimize.minimize(objective, start, method="BFGS", options={"gtol": 1e-12}).x
    return start


@pytest.mark.parametrize("a", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_first_order_minimizes_what_it_should(seed, a):
    """1/2 |w - w_t|^2 + C a max(0, 1 - w'z)^2."""
    rng = np.random.default_rng(seed)
    X, w, C = rng.normal(size=(2, 5)), rng.normal(size=5), 10.0 ** rng.uniform(-2, 1)
    z = X[0] - X[1]
    found = Learner("solar_first", 5, C, w).learn(X, [(0, 1)], np.array([a])).w
    best = minimized(lambda v: 0.5 * (v - w) @ (v - w) + C * a * max(0.0, 1.0 - v @ z) ** 2, w)
    np.testing.assert_allclose(found, best, atol=1e-6)


@pytest.mark.parametrize("a", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_second_order_minimizes_what_it_should(seed, a):
    """1/2 (w - w_t)' S^-1 (w - w_t) + a / (2 gamma) max(0, 1 - w'z)^2; S^-1 gains the second derivative of the loss."""
    rng = np.random.default_rng(seed)
    X, w, gamma = rng.normal(size=(2, 5)), rng.normal(size=5), 10.0 ** rng.uniform(-1, 1)
    z, B = X[0] - X[1], rng.normal(size=(5, 8))
    S = B @ B.T / 8
    learner = Learner("solar_second", 5, gamma, w)
    learner.S = S.reshape(-1).copy()
    learner.learn(X, [(0, 1)], np.array([a]))
    precision = np.linalg.inv(S)

    def objective(v):
        return 0.5 * (v - w) @ precision @ (v - w) + a / (2.0 * gamma) * max(0.0, 1.0 - v @ z) ** 2

    np.testing.assert_allclose(learner.w, minimized(objective, w), atol=1e-5)
    updates = 1.0 - w @ z > 0.0
    assert learner.counts.tolist() == [1.0, updates, pytest.approx(a * max(0.0, 1.0 - w @ z) ** 2), 1.0]
    gained = np.outer(z, z) * a / gamma * updates
    np.testing.assert_allclose(np.linalg.inv(learner.covariance), precision + gained, rtol=1e-9, atol=1e-9)


def test_the_diagonal_step_minimizes_the_same_with_a_diagonal_S():
    rng = np.random.default_rng(0)
    X, w, S, gamma = rng.normal(size=(2, 5)), 0.1 * rng.normal(size=5), rng.uniform(0.1, 1, 5), 0.5
    z = X[0] - X[1]
    learner = Learner("solar_diagonal", 5, gamma, w)
    learner.S = S.copy()
    learner.learn(X, [(0, 1)])
    best = minimized(lambda v: 0.5 * (v - w) ** 2 @ (1 / S) + 0.5 / gamma * max(0.0, 1.0 - v @ z) ** 2, w)
    np.testing.assert_allclose(learner.w, best, atol=1e-5)
    np.testing.assert_allclose(learner.S, S - (S * z) ** 2 / ((S * z) @ z + gamma), rtol=1e-14)


# -- many steps, against the slow learners -----------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["float64", "float32", "csr", "csr-float32", "csr-int64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("n", [1, 7, 8, 21])
def test_many_steps_are_those_of_the_slow_learner(name, n, weighted, storage):
    if name == "solar-2" and storage.startswith("csr"):
        pytest.skip("the full covariance takes dense rows")
    method, slow = LEARNERS[name]
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(30, n)) * (rng.random((30, n)) < 0.6)).astype(np.float32 if "32" in storage else np.float64)
    pairs = some_pairs(rng, 30, 200)
    weight = rng.choice([0.0, 0.2, 1.0, 3.0], 200) if weighted else None
    oracle = slow(n, 0.7)
    loss = updates = 0.0
    for t, (i, j) in enumerate(pairs):
        a, z, before = 1.0 if weight is None else weight[t], X[i].astype(float) - X[j], oracle.w
        hinge = max(0.0, (0.0 if name == "perceptron" else 1.0) - before @ z)
        loss += a * hinge**2
        oracle.pair(z, a)
        updates += bool(a) and (before @ z <= 0.0 if name == "perceptron" else hinge > 0.0)
    given_X = X
    if storage.startswith("csr"):
        given_X = sp.csr_array(X)
        kind = np.int64 if "int64" in storage else np.int32
        given_X.indices, given_X.indptr = given_X.indices.astype(kind), given_X.indptr.astype(kind)
    learner = Learner(method, n, 0.7, average=True).learn(given_X, pairs, weight)
    np.testing.assert_allclose(learner.w, oracle.w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(learner.counts, [200, updates, loss, 1], rtol=1e-9)
    if name.startswith("solar-2"):
        np.testing.assert_allclose(learner.covariance, oracle.S, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(learner.w - learner.lag / 200, np.mean(oracle.past, axis=0), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [1, 2, 20])
def test_the_committee_is_that_of_the_slow_one(size, sparse):
    rng = np.random.default_rng(size)
    truth = rng.normal(size=6)
    X = rng.normal(size=(60, 6)) * (rng.random((60, 6)) < 0.6)
    pairs = some_pairs(rng, 60, 900)
    wrong = (X[pairs[:, 0]] - X[pairs[:, 1]]) @ truth + 0.3 * rng.normal(size=900) < 0
    pairs[wrong] = pairs[wrong][:, ::-1]
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], 900)
    oracle = Committee(6, size)
    w, counts = np.zeros(6), np.zeros(4)
    experts, survivals, survival = np.zeros((size, 6)), np.zeros(size), np.zeros(1)
    for part in np.array_split(np.arange(900), 7):  # what a query leaves the next goes on with
        for t in part:
            oracle.pair(X[pairs[t, 0]] - X[pairs[t, 1]], weight[t])
        preferred, other = pairs[part].T.astype(np.int32)
        arrays = experts, survivals, survival
        rows = (np.ascontiguousarray(X),)
        if sparse:
            csr = sp.csr_array(X)
            rows = csr.data, csr.indices, csr.indptr, csr.shape[1]
        learn = online.committee_sparse if sparse else online.committee_dense
        learn(online.Model(w, None, counts), *arrays, *rows, preferred.copy(), other.copy(), weight[part])
        np.testing.assert_allclose(w, oracle.w, atol=1e-12)
        assert sorted(survivals) == sorted(s for s, _ in oracle.members)
        assert survival[0] == oracle.survival
        np.testing.assert_allclose(survivals @ experts + survival[0] * w, oracle.coef, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_levels", [1, 2, 5])
def test_prank_is_that_of_the_slow_one(n_levels, sparse):
    rng = np.random.default_rng(n_levels)
    X = rng.normal(size=(500, 6)) * (rng.random((500, 6)) < 0.6)
    latent = X @ rng.normal(size=6)
    levels = np.searchsorted(np.quantile(latent, np.arange(1, n_levels) / n_levels), latent).astype(np.int32)
    oracle, w, counts, thresholds = PRank(6, n_levels), np.zeros(6), np.zeros(4), np.zeros(n_levels - 1)
    lag, wrong = np.zeros(6), 0
    for part in np.array_split(np.arange(500, dtype=np.int32), 50):
        wrong += sum(oracle.document(X[t], levels[t]) != levels[t] for t in part)
        csr = sp.csr_array(X)
        rows = (csr.data, csr.indices, csr.indptr, csr.shape[1]) if sparse else (X,)
        learn = online.prank_sparse if sparse else online.prank_dense
        learn(online.Model(w, lag, counts), thresholds, *rows, part, levels[part])
        np.testing.assert_allclose(w, oracle.w, atol=1e-9)
        np.testing.assert_array_equal(thresholds, oracle.thresholds)
        assert np.all(np.diff(thresholds) >= 0.0)  # Crammer & Singer, Lemma 1
    assert counts.tolist() == [500, wrong, 0, 50]
    np.testing.assert_allclose(w - lag / 500, np.mean(oracle.past, axis=0), atol=1e-9)


# -- the covariance after very many steps ------------------------------------------------------------------------------


def unit(rng):
    return rng.random((1000, 46))


def constant_columns(rng):
    X = rng.random((1000, 46))
    X[:, 20:] = X[:, :1]
    return X


def nearly_collinear(rng):
    directions = np.random.default_rng(1).normal(size=(3, 46))
    return rng.normal(size=(1000, 3)) @ directions + 1e-7 * rng.normal(size=(1000, 46))


def huge(rng):
    return rng.normal(size=(1000, 46)) * 10.0 ** np.linspace(0, 8, 46)


def learn_millions(make, gamma, n_updates):
    rng = np.random.default_rng(0)
    learner = Learner("solar_second", 46, gamma)
    while learner.counts[1] < n_updates:
        learner.w[:] = 0.0  # so that every pair is learnt from
        learner.learn(make(rng), some_pairs(rng, 1000, min(n_updates, 500_000)))
    return learner


@pytest.mark.parametrize(
    ("make", "gamma", "n_updates"),
    [
        (unit, 1e4, 1_000_000),
        (unit, 1e-3, 1_000_000),
        (constant_columns, 1e-3, 300_000),
        (nearly_collinear, 1e-3, 300_000),
        (huge, 1e-3, 300_000),
        pytest.param(unit, 1e4, 20_000_000, marks=pytest.mark.slow),
        pytest.param(unit, 1e-3, 20_000_000, marks=pytest.mark.slow),
        pytest.param(nearly_collinear, 1e-3, 20_000_000, marks=pytest.mark.slow),
    ],
)
def test_the_covariance_stays_positive_definite(make, gamma, n_updates):
    eigenvalues = np.linalg.eigvalsh(learn_millions(make, gamma, n_updates).covariance)
    assert 0.0 < eigenvalues[0] < eigenvalues[-1] < 1.0 + 1e-10


@pytest.mark.parametrize("make", [constant_columns, nearly_collinear])
def test_beyond_what_doubles_resolve_the_covariance_is_definite_to_round_off(make):
    """Its condition number would pass 1e16: no eigenvalue falls further below 0 than round-off of the largest."""
    learner = learn_millions(make, 1e-9, 300_000)
    eigenvalues = np.linalg.eigvalsh(learner.covariance)
    assert -1e-12 < eigenvalues[0] < eigenvalues[-1] < 1.0 + 1e-10
    assert np.isfinite(learner.w).all()
