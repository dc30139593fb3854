"""The preconditioner of additive models, and products with the Hessian of a sample, against explicit columns."""

import numpy as np
import pytest

from ranksvm import AdditiveRankSVM
from ranksvm.additive import AdditiveDesign, AdditiveTerms, codes_of, feature_bins, level_shares
from ranksvm.additive.interactions import coarse_pairs
from ranksvm.data import ComparablePairs, PairList, Queries, as_design_matrix
from ranksvm.losses import LossSpec
from ranksvm.objectives import additive
from ranksvm.objectives.additive import AdditiveObjective
from ranksvm.solvers import Status, newton_cg
from ranksvm.terms.host import ThreadedTerm

N_QUERIES, SIZE = 120, 10


def make_problem(loss="squared_hinge", n_threads=1, linear=True, pairs=False, listed=False, C=0.1):
    """An objective over rows of which a few are in no pair, and its dense columns by position."""
    rng = np.random.default_rng(0)
    n = N_QUERIES * SIZE
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(0, 2, n)
    X[:, 2] = 1.0  # constant
    X[:, 3] = rng.integers(0, 4, n)
    y, qid = rng.integers(0, 3, n).astype(float), np.repeat(np.arange(N_QUERIES), SIZE)
    y[:SIZE] = 1.0
    bins = feature_bins(X, 12, categorical=[3])
    codes = codes_of(bins, X)
    scales = np.array([0.3, 1.0, 0.0, 0.0, 0.2])
    terms = AdditiveTerms(bins, level_shares(bins, codes), scales, np.zeros(5), 0.7, linear)
    if pairs:
        terms = terms.with_pairs(coarse_pairs(terms, np.array([[0, 4]]), 4))
    design = AdditiveDesign.of(as_design_matrix(X), codes, terms)
    queries = Queries.from_qid(qid)
    if listed:
        first = rng.integers(SIZE, n, 500)
        other = first // SIZE * SIZE + (first + rng.integers(1, SIZE, 500)) % SIZE
        over = PairList.from_pairs(queries, np.column_stack([first, other]))
    else:
        over = ComparablePairs.from_labels(queries, y)
    spec = LossSpec(loss)
    term = ThreadedTerm(design, spec.with_pairs(over), n_threads)
    objective = AdditiveObjective(term, terms, C, spec.first_width, spec.smoothed)
    Z = np.empty((over.n_rows, terms.n_variables))
    design.gather(over.rows, 0, over.n_rows, Z)
    return objective, Z


@pytest.fixture
def few_dimensions(monkeypatch):
    """A coarse space that has not all variables."""
    monkeypatch.setattr(additive, "COARSE_DIMENSIONS", 20)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("pairs", [False, True])
def test_the_preconditioner_inverts_blocks_and_a_coarse_space(few_dimensions, pairs, linear, listed, loss):
    objective, Z = make_problem(loss, linear=linear, pairs=pairs, listed=listed)
    rng = np.random.default_rng(1)
    point = objective.evaluate(0.1 * rng.normal(size=objective.n_variables))
    hessian = np.array([objective.hessian_product(point, unit) for unit in np.eye(objective.n_variables)])
    P = objective._coarse.space.toarray()
    assert P.shape[1] <= 20 < objective.n_variables
    expected = P @ np.linalg.inv(P.T @ hessian @ P) @ P.T
    terms, n_blocks = objective.terms, 0
    for column in range(len(terms.columns)):
        own = terms.variables_at(column, column + 1)
        own = np.append([column], own) if linear and column < 5 else own
        if len(own):
            block, Q = hessian[np.ix_(own, own)], P[own][:, P[own].any(axis=0)]
            inverse_on_space = Q @ np.linalg.inv(Q.T @ block @ Q) @ Q.T
            expected[np.ix_(own, own)] += np.linalg.inv(block) - inverse_on_space
        n_blocks += len(own)
    assert n_blocks == objective.n_variables
    v = rng.normal(size=objective.n_variables)
    # the rows of the coarse space are in float32
    np.testing.assert_allclose(objective.preconditioner(point)(v), expected @ v, rtol=1e-6, atol=1e-6)
    rows = objective._coarse.rows(*additive._design_rows(objective.term))
    np.testing.assert_allclose(rows[:, objective._coarse.kept], Z @ P, rtol=1e-6, atol=1e-6)


def test_the_coarse_space_has_no_columns_of_features_without_effect(few_dimensions):
    coarse = make_problem()[0]._coarse
    assert (coarse.linear.tolist(), coarse.stepped.tolist()) == ([0, 1, 4], [0, 1, 4])


def test_a_coarse_space_without_steps(few_dimensions):
    X, y = np.where(np.arange(20)[:, np.newaxis] % 3, 1.0, np.nan) * np.ones(30), np.arange(20.0) % 2
    scores = AdditiveRankSVM().fit(X, y, group=[20]).predict(X)
    assert len(np.unique(scores)) == 2  # of missing values, and of others


def test_few_variables_are_inverted_at_once():
    objective, _ = make_problem()
    point = objective.evaluate(np.zeros(objective.n_variables))
    v = np.random.default_rng(1).normal(size=objective.n_variables)
    np.testing.assert_allclose(objective.preconditioner(point)(objective.hessian_product(point, v)), v, atol=1e-8)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_preconditioner_of_a_sample_is_near(few_dimensions, monkeypatch, n_threads):
    objective, _ = make_problem(n_threads=n_threads)
    point = objective.evaluate(np.zeros(objective.n_variables))
    v = np.random.default_rng(1).normal(size=objective.n_variables)
    whole = objective.preconditioner(point)(v)
    monkeypatch.setattr(additive, "ROUGH_ROWS", 400)
    monkeypatch.setattr(additive, "MAX_ROWS", 800)
    monkeypatch.setattr(additive, "PART_OF_ROWS", 0.7)
    monkeypatch.setattr(additive, "ROWS_PER_LEVEL", 1)
    other, _ = make_problem(n_threads=n_threads)
    sampled = other.preconditioner(other.evaluate(np.zeros(other.n_variables)))(v)
    off = np.linalg.norm(sampled - whole) / np.linalg.norm(whole)
    assert 0.0 < off < 0.3


def test_rough_products_are_with_the_hessian_of_a_sample(monkeypatch):
    monkeypatch.setattr(additive, "SAMPLED_FROM", 500)
    objective, _ = make_problem()
    point = objective.evaluate(np.zeros(objective.n_variables))
    v = np.random.default_rng(1).normal(size=objective.n_variables)
    exact = objective.hessian_product(point, v)
    np.testing.assert_array_equal(objective.products(point, 0.01)(v), exact)
    rough = objective.products(point, 0.3)(v)
    assert 0.0 < np.linalg.norm(rough - exact) / np.linalg.norm(exact) < 0.3
    np.testing.assert_array_equal(objective.products(point, 0.3)(v), rough)
    monkeypatch.setattr(additive, "SAMPLED_FROM", 10**6)
    np.testing.assert_array_equal(objective.products(point, 0.3)(v), exact)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_fit_with_rough_products_has_the_same_certificate(monkeypatch, loss):
    exact, _ = make_problem(loss)
    expected = newton_cg(exact, np.zeros(exact.n_variables), tol=1e-6, solve_sampled=newton_cg)
    monkeypatch.setattr(additive, "SAMPLED_FROM", 500)
    objective, _ = make_problem(loss)
    result = newton_cg(objective, np.zeros(objective.n_variables), tol=1e-6, solve_sampled=newton_cg)
    for each in (result, expected):
        assert each.status is Status.CONVERGED
        assert each.gap <= 1e-6 * each.value
    assert result.value == pytest.approx(expected.value, rel=1e-6)
