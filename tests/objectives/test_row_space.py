"""The inverse of the Hessian in the span of the rows, against the dense one over explicit pairs."""

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.losses import FunctionLoss, Hinge, HuberHinge, SquaredHinge
from ranksvm.objectives import RowSpaceObjective, active_pairs
from ranksvm.objectives.row_space import Gram
from ranksvm.solvers import Status, newton_cg
from ranksvm.terms.host import ThreadedTerm
from sweep_checks import SquaredHingeFunction

N, N_FEATURES = 60, 90
LOSSES = {
    "squared_hinge": (SquaredHinge, None),
    "huber": (HuberHinge, 0.5),
    "custom": (lambda pairs: FunctionLoss(pairs, SquaredHingeFunction()), None),
}


def make_problem(loss="squared_hinge", n_queries=6, sparse=False, C=0.3, memory=1 << 24):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, N_FEATURES)) * (rng.random((N, N_FEATURES)) < 0.3 if sparse else 1.0)
    y, qid = rng.integers(0, 4, N).astype(float), np.sort(rng.integers(0, n_queries, N))
    design = as_design_matrix(sp.csr_array(X) if sparse else X)
    make, width = LOSSES[loss]
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, N), y)
    term = ThreadedTerm(design, make(pairs), 1)
    return RowSpaceObjective(term, design, C, memory, width), ExplicitPairs(y, qid, X, width=width), rng


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_queries", [1, 6, 20])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
def test_the_inverse_is_that_of_the_whole_hessian(loss, n_queries, sparse, C, factorization):
    objective, oracle, rng = make_problem(loss, n_queries, sparse, C)
    w, r = 0.1 * rng.normal(size=(2, N_FEATURES))
    point = objective.evaluate(w)
    expected = np.linalg.solve(oracle.hessian(w, C), r)
    off = 1e-4 if C < 1e3 else 1e-6  # a factor in float32, and in float64
    np.testing.assert_allclose(objective.inverse(point)(r), expected, atol=off * np.abs(r).max())
    diagonal = 1.0 + C * objective.term.curvature_diagonal(point.at)
    np.testing.assert_allclose(objective.preconditioner(point)(r), r / diagonal)
    # it stays until C changes
    np.testing.assert_allclose(objective.preconditioner(objective.evaluate(3.0 * w))(r), r / diagonal)
    objective.reweight(2.0 * C)
    point = objective.evaluate(3.0 * w)
    diagonal = 1.0 + 2.0 * C * objective.term.curvature_diagonal(point.at)
    np.testing.assert_allclose(objective.preconditioner(point)(r), r / diagonal)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_queries", [1, 6])
@pytest.mark.parametrize("direct", [None, True, False])
def test_reaches_the_optimum(loss, n_queries, direct):
    objective, oracle, _ = make_problem(loss, n_queries, C=10.0)
    result = newton_cg(objective, np.zeros(N_FEATURES), tol=1e-8, direct=direct)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(oracle.value(oracle.solve(10.0), 10.0), rel=2e-8)


def test_without_active_pairs_the_hessian_is_the_identity():
    objective, _, rng = make_problem("huber")
    point = objective.evaluate(np.zeros(N_FEATURES))  # all margins are below the ring
    r = rng.normal(size=N_FEATURES)
    np.testing.assert_array_equal(objective.inverse(point)(r), r)


def test_the_inverse_of_a_loss_of_the_user_costs_more():
    custom, usual = (make_problem(loss)[0] for loss in ("custom", "squared_hinge"))
    w = np.zeros(N_FEATURES)
    assert custom.inverse_cost(custom.evaluate(w)) > 5.0 * usual.inverse_cost(usual.evaluate(w))


def test_the_inverse_needs_memory():
    objective, _, rng = make_problem(memory=8 * N * N + 1000)
    point = objective.evaluate(0.1 * rng.normal(size=N_FEATURES))
    assert objective.inverse_cost(point) == np.inf
    assert make_problem()[0].inverse_cost(point) < np.inf
    result = newton_cg(objective, np.zeros(N_FEATURES), tol=1e-6, direct=True)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("n_queries", [1, 6])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_inverse_predicts_solutions_of_the_hinge(n_queries, sparse):
    huber, oracle, _ = make_problem("huber", n_queries, sparse, C=1.0)
    term = ThreadedTerm(huber.design, Hinge(huber.rows_term.pairs), 1)
    objective = RowSpaceObjective(term, huber.design, 1.0, 1 << 24, 1.0, True)
    coarse = newton_cg(objective, np.zeros(N_FEATURES), tol=0.2, target_gap=1e-9)
    objective.width = 0.5 * objective.width
    predicted = objective.evaluate(objective.narrowed_solution(coarse.point))
    assert predicted.gap < 0.2 * objective.evaluate(coarse.w).gap
    result = newton_cg(objective, np.zeros(N_FEATURES), tol=1e-6, direct=True)
    assert result.status is Status.CONVERGED
    assert oracle.hinge_value(result.w, 1.0) == pytest.approx(result.value, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "length", "name", "needed"),
    [(200, 20, "lu", 24 * 200**2), (600, 20, "cholesky", 16 * 600**2 + 24 * 600 * 20), (600, 300, "lu", 24 * 600**2)],
)
def test_the_faster_factorization_is_used_for_few_documents_short_and_long_lists(n, length, name, needed, monkeypatch):
    degrees, pointers = np.ones(n), np.arange(0, n + 1, length)
    for factorization in ("lu", "cholesky"):
        monkeypatch.setattr(active_pairs, f"_by_{factorization}", lambda *_, used=factorization: used)
    monkeypatch.setattr(active_pairs, "ActivePairs", lambda *_: None)
    inversion = active_pairs.HostInversion(Gram(np.eye(n)), needed)
    assert inversion.solver(None, degrees, pointers, 1.0) == name
    cost = inversion.cost(degrees, pointers)
    assert active_pairs.inverse_cost(degrees, pointers, needed - 1) == np.inf
    monkeypatch.setattr(active_pairs, "CALL_COST" if name == "lu" else "LU_COST", 1e300)  # of the slower one
    assert cost == inversion.cost(degrees, pointers) < np.inf
