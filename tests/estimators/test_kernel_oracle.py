"""KernelRankSVM with every kernel, loss, choice of pairs and weight, against every pair written out.

Q = F F' with explicit features F, so that coefficients b are the weights F'b of the linear problem of the oracle.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import ExplicitPairs
from ranksvm import KernelRankSVM, RankSVM

LOSSES = ("squared_hinge", "hinge", "huber")
WEIGHTINGS = ("uniform", "per_query", "label_gap", "gain_gap")
SELECTIONS = ("all", "adjacent")
C, GAMMA, COEF0 = 0.2, 0.15, 0.5


def distances(X, Z, power):
    return (np.abs(X[:, None] - Z) ** power).sum(axis=2)


def arc_cosine(X, Z):
    """A kernel that is none of those with a name: of Cho & Saul (2009), order 0, plus the inner product."""
    X, Z = (each.toarray() if sp.issparse(each) else each for each in (X, Z))
    norms = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Z, axis=1)
    return 1.0 - np.arccos(np.clip(X @ Z.T / norms, -1.0, 1.0)) / np.pi + 0.1 * X @ Z.T


# Name -> its formula, from arrays of documents.
FORMULAS = {
    "rbf": lambda X, Z: np.exp(-GAMMA * distances(X, Z, 2)),
    "poly": lambda X, Z: (GAMMA * X @ Z.T + COEF0) ** 3,
    "linear": lambda X, Z: X @ Z.T,
    "laplacian": lambda X, Z: np.exp(-GAMMA * distances(X, Z, 1)),
    "cosine": lambda X, Z: X @ Z.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Z, axis=1)),
    "precomputed": lambda X, Z: np.exp(-GAMMA * distances(X, Z, 1)) * (1.0 + X @ Z.T),
    "callable": arc_cosine,
}


@pytest.fixture(scope="module")
def data():
    """Documents in no order of queries, one of them without pairs and one a single document."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(54, 4))
    qid = rng.permutation(np.r_[rng.integers(0, 5, 49), [5, 5, 5, 5], 6])
    y = np.clip(np.round(X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=54) + 2.0), 0.0, 4.0)
    y[qid == 5] = 2.0
    return X, y, qid


@pytest.fixture(scope="module")
def weights(data):
    _, y, qid = data
    rng = np.random.default_rng(8)
    return {
        "sample_weight": rng.choice([0.0, 0.5, 2.0], len(y)),
        "query_weight": rng.uniform(0.5, 3.0, 7)[qid],
        "propensity": rng.choice([0.2, 0.7, 1.0], len(y)),
    }


def make(name, **options):
    kernel = arc_cosine if name == "callable" else name
    fixed = {"gamma": GAMMA, "degree": 3, "coef0": COEF0, "kernel_dtype": "float64", "tol": 1e-7, "huber_width": 0.3}
    return KernelRankSVM(options.pop("C", C), kernel=kernel, **{**fixed, **options})


def given_to_fit(name, X):
    return FORMULAS[name](X, X) if name == "precomputed" else X


def features_of(Q):
    values, vectors = np.linalg.eigh(Q)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def check_certificate(model, oracle, optimum=False):
    """Primal less dual over explicit pairs is the gap, which is small; the optimum is no further below than that."""
    b = np.zeros(len(oracle.qid))
    b[model.support_] = model.dual_coef_
    w, hinge = oracle.X.T @ b, model.loss == "hinge"
    oracle.width = model.width_
    value = oracle.hinge_value(w, model.C) if hinge else oracle.value(w, model.C)
    assert model.converged_
    assert model.duality_gap_ <= model.tol * model.objective_
    assert model.n_pairs_ == oracle.n_pairs
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    gap = value - oracle.dual_value(w, model.C, hinge=hinge)
    # the widths of the hinge divide the round-off of scores
    assert model.duality_gap_ == pytest.approx(gap, abs=(5e-8 if hinge else 1e-9) * value)
    if optimum:
        best = oracle.value(oracle.solve(model.C), model.C)
        assert -1e-9 * best <= model.objective_ - best <= model.duality_gap_ + 1e-9 * best


@pytest.mark.parametrize(("selection", "weighting"), list(itertools.product(SELECTIONS, WEIGHTINGS)))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", FORMULAS)
def test_every_combination_is_certified_over_explicit_pairs(name, loss, selection, weighting, data, weights):
    X, y, qid = data
    F = features_of(FORMULAS[name](X, X))
    for given in ({}, weights):
        model = make(name, loss=loss, pair_selection=selection, pair_weighting=weighting)
        model.fit(given_to_fit(name, X), y, qid=qid, **given)
        oracle = ExplicitPairs(y, qid, F, selection=selection, weighting=weighting, **given)
        check_certificate(model, oracle, optimum=loss == "squared_hinge")


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("which", ["sample_weight", "query_weight", "propensity"])
def test_each_weight_alone(which, loss, solver, data, weights):
    X, y, qid = data
    given = {which: weights[which]}
    tol = 1e-4 if (loss, solver) == ("hinge", "tron") else 1e-7
    model = make("rbf", loss=loss, solver=solver, tol=tol).fit(X, y, qid=qid, **given)
    check_certificate(model, ExplicitPairs(y, qid, features_of(FORMULAS["rbf"](X, X)), **given))


@pytest.mark.parametrize("weighting", ["uniform", "per_query"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["rbf", "linear", "precomputed", "callable"])
def test_listed_pairs_contradicting_and_repeated(name, loss, weighting, data, weights):
    X, y, qid = data
    rng = np.random.default_rng(9)
    candidates = np.argwhere((qid[:, None] == qid) & ~np.eye(len(y), dtype=bool))
    pairs = candidates[rng.integers(0, len(candidates), 120)]
    given = {"pairs": pairs, "pair_weight": rng.choice([0.0, 1.0, 5.0], 120), **weights}
    model = make(name, loss=loss, pair_weighting=weighting).fit(given_to_fit(name, X), qid=qid, **given)
    oracle = ExplicitPairs(None, qid, features_of(FORMULAS[name](X, X)), weighting=weighting, **given)
    check_certificate(model, oracle, optimum=loss == "squared_hinge")
    dual = model.dual_coef(given_to_fit(name, X), qid=qid, **given)
    check_dual(model, dual, oracle)


def check_dual(model, dual, oracle):
    """The dual variables are those that the scores imply: feasible, the gap below, and as far from b as it says."""
    b = np.zeros(len(oracle.qid))
    b[model.support_] = model.dual_coef_
    beta, hinge = dual.per_document(), model.loss == "hinge"
    total, quadratic = 0.0, 0.0
    for block in dual:
        there = block.weights > 0.0
        alpha, bound = block.alpha[there], model.C * block.weights[there]
        assert (block.alpha[~there] == 0.0).all()
        assert (alpha >= 0.0).all()
        if model.loss == "squared_hinge":
            quadratic += float((alpha**2 / (4.0 * bound)).sum())
        else:
            assert (alpha <= bound * (1.0 + 1e-12)).all()
            quadratic += 0.0 if hinge else float((alpha**2 * model.huber_width / (2.0 * bound)).sum())
        total += float(alpha.sum())
    norm = oracle.X.T @ beta
    lower = total - quadratic - 0.5 * float(norm @ norm)
    assert lower <= model.objective_ * (1.0 + 1e-12)
    assert model.objective_ - lower == pytest.approx(
        model.duality_gap_, abs=(5e-8 if hinge else 1e-9) * model.objective_
    )
    # |sum of alpha_ij (k(x_i, .) - k(x_j, .)) - f| is the gradient's norm
    moved = np.linalg.norm(norm - oracle.X.T @ b)
    assert moved <= np.sqrt(2.0 * model.duality_gap_) * (1.0 + 1e-3) + 1e-6 * np.abs(beta).sum()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", FORMULAS)
def test_dual_variables_of_weighted_pairs(name, loss, data, weights):
    X, y, qid = data
    model = make(name, loss=loss, pair_weighting="per_query").fit(given_to_fit(name, X), y, qid=qid, **weights)
    dual = model.dual_coef(given_to_fit(name, X), y, qid, **weights)
    oracle = ExplicitPairs(y, qid, features_of(FORMULAS[name](X, X)), weighting="per_query", **weights)
    check_dual(model, dual, oracle)


@pytest.mark.parametrize("form", ["dense", "csr", "float32", "one job"])
@pytest.mark.parametrize("name", FORMULAS)
def test_scores_of_new_documents_written_out(name, form, data):
    X, y, qid = data
    if form == "csr" and name == "precomputed":
        pytest.skip("sparse kernel matrices are refused")
    new = np.random.default_rng(10).normal(size=(23, 4))
    if form == "float32":
        X, new = (each.astype(np.float32).astype(np.float64) for each in (X, new))
    model = make(name, n_jobs=1 if form == "one job" else None)
    train, test = given_to_fit(name, X), FORMULAS[name](new, X) if name == "precomputed" else new
    stored = {"csr": sp.csr_array, "float32": lambda A: A.astype(np.float32)}.get(form, np.asarray)
    model.fit(stored(train), y, qid=qid)
    kernels = FORMULAS[name](new, X[model.support_])
    rounded = 1e-5 if form == "float32" and name == "precomputed" else 1e-10
    expected = [sum(c * k for c, k in zip(model.dual_coef_, row, strict=True)) for row in kernels]
    np.testing.assert_allclose(model.predict(stored(test)), expected, atol=rounded * np.abs(model.dual_coef_).sum())
    # either form of other documents serves a model of either
    if name != "precomputed" and form in ("dense", "csr"):
        other = new if form == "csr" else sp.csr_array(new)
        np.testing.assert_allclose(model.predict(other), expected, atol=1e-10 * np.abs(model.dual_coef_).sum())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("shape", [(40, 300), (500, 7)])
def test_the_linear_kernel_is_the_linear_model_long_or_wide(shape, storage, loss):
    rng = np.random.default_rng(11)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.3)
    y, qid = rng.integers(0, 3, len(X)), rng.integers(0, 6, len(X))
    stored = X if storage == "dense" else sp.csr_array(X)
    # of sums over 500 rows the proven round-off is 1e-10 of the objective
    tol = 1e-8 if loss == "hinge" else 1e-9
    linear = RankSVM(0.05, loss=loss, tol=tol).fit(stored, y, qid=qid)
    for solver in ("newton",) if loss == "hinge" else ("newton", "tron"):
        kernel = KernelRankSVM(0.05, kernel="linear", loss=loss, solver=solver, tol=tol).fit(stored, y, qid=qid)
        assert kernel.converged_
        assert kernel.objective_ == pytest.approx(linear.objective_, rel=2.0 * tol)
        # strongly convex: |w - w*|^2 <= 2 (objective - optimum)
        atol = 2.0 * np.sqrt(2.0 * tol * linear.objective_)
        np.testing.assert_allclose(kernel.coef_, linear.coef_, atol=atol)
        np.testing.assert_allclose(kernel.predict(stored), linear.predict(stored), atol=20 * atol)
