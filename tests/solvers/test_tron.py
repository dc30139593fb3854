"""TRON by way of smaller C: the same solution in fewer products, and the same book-keeping."""

import threading

import numpy as np
import pytest
import scipy.sparse

from oracle import ExplicitPairs
from ranksvm import RankSVM
from ranksvm.solvers import Status, tron
from solver_problems import Hinges


class Counted(Hinges):
    """Notes the values of C for which products are computed."""

    def __init__(self, D, C):
        super().__init__(D, C)
        self.weights = []

    def hessian_product(self, point, v, double=True):
        self.weights.append(self.C)
        active = self.D @ point.w < 1.0
        return v + 2.0 * self.C * self.D.T @ (active * (self.D @ v))


N = 300


def test_stops_once_it_is_expected_to_need_too_many_products():
    whole = tron(wide(100.0), np.zeros(N), tol=1e-6)
    n_products = whole.history.hessian_products[-1]
    assert whole.status is Status.CONVERGED
    assert n_products > 20
    same = tron(wide(100.0), np.zeros(N), tol=1e-6, most_products=1e6)
    assert same.history.hessian_products[-1] == n_products
    stopped = tron(wide(100.0), np.zeros(N), tol=1e-6, most_products=5.0)
    assert stopped.status is Status.MAX_ITERATIONS
    assert 8 <= stopped.history.hessian_products[-1] < n_products - 5


def test_goes_on_at_a_gap_of_0_if_only_round_off_is_in_the_way():
    objective = wide(100.0)
    objective.certificate = lambda point: (point.value, point.gap if point.gap > 0.01 * point.value else 0.0)
    objective.round_off = lambda point, tol: point.gap
    assert tron(objective, np.zeros(N), tol=1e-6, most_products=1e6).status is Status.CONVERGED


def wide(C, n_documents=30, seed=0):
    """All pairs of documents with distinct labels, far fewer than features: all of them can be satisfied."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_documents, N)) * (rng.random((n_documents, N)) < 0.1)
    X = X[np.argsort(X @ rng.normal(size=N))]
    other, preferred = np.triu_indices(n_documents, 1)
    objective = Counted(X[preferred] - X[other], C)
    objective.curvature_rank = n_documents
    return objective


def text(seed=0, n_rows=400, n_features=3000, per_query=40):
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random(n_rows, n_features, 0.01, "csr", random_state=seed)
    scores = X @ rng.normal(size=n_features)
    return X, np.digitize(scores, np.quantile(scores, [0.3, 0.6, 0.9])).astype(float), np.arange(n_rows) // per_query


def test_the_same_solution_by_ascending_weights():
    cold, warm = wide(1e3), wide(1e3)
    expected = tron(cold, np.zeros(N), tol=1e-7)
    found = tron(warm, np.zeros(N), tol=1e-7, continuation=True)
    assert expected.status is found.status is Status.CONVERGED
    assert found.value == pytest.approx(expected.value, rel=2e-7)
    assert set(cold.weights) == {1e3}
    assert warm.weights == sorted(warm.weights)
    assert warm.weights[0] < 10.0
    assert warm.weights[-1] == warm.C == 1e3
    assert found.history.hessian_products[-1] == len(warm.weights) < 0.6 * len(cold.weights)


@pytest.mark.parametrize(("C", "rank"), [(1e-2, 30), (1e3, N)])
def test_a_cold_start_for_small_weights_and_where_there_are_not_more_variables(C, rank):
    objective = wide(C)
    objective.curvature_rank = rank
    tron(objective, np.zeros(N), continuation=True)
    assert set(objective.weights) == {C}


def test_history_and_bounds_are_those_of_the_problem_itself():
    objective = wide(1e3)
    whole = tron(objective, np.zeros(N), continuation=True)
    history = whole.history
    assert history.objective[0] == objective.evaluate(np.zeros(N)).value
    assert len(history.objective) == whole.n_iter + 1
    assert history.evaluations == sorted(history.evaluations)
    assert history.hessian_products == sorted(history.hessian_products)
    for most in range(1, whole.n_iter):
        part = tron(objective, np.zeros(N), continuation=True, max_iter=most)
        assert part.status is Status.MAX_ITERATIONS
        assert part.n_iter == most
        assert objective.C == 1e3
        at = objective.evaluate(part.w)
        assert (part.value, part.gap) == (at.value, at.gap) == (history.objective[most], part.gap)


def test_an_interrupt_during_a_stage():
    objective, interrupted = wide(1e3), threading.Event()
    evaluate = objective.evaluate

    def interrupt(w, near=None):
        if np.any(w):
            interrupted.set()
        return evaluate(w, near)

    objective.evaluate = interrupt
    found = tron(objective, np.zeros(N), continuation=True, interrupted=interrupted)
    assert found.status is Status.INTERRUPTED
    assert found.n_iter == 1
    assert objective.C == 1e3
    assert found.value == pytest.approx(evaluate(found.w).value, rel=1e-12)


def test_a_tolerance_that_a_stage_meets():
    objective = wide(1e3)
    found = tron(objective, np.zeros(N), tol=1e3, continuation=True)
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e3 * found.value
    assert max(objective.weights) < objective.C == 1e3


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
def test_fits_of_wide_data_for_every_loss(loss):
    X, y, qid = text()
    fit = RankSVM(C=30.0, loss=loss, solver="tron", tol=1e-6).fit(X, y, qid=qid)
    assert fit.converged_
    # a certificate bounds the distance to the optimum
    assert fit.duality_gap_ <= 1e-6 * fit.objective_
    dual = RankSVM(C=30.0, loss=loss, solver="dual", tol=1e-6).fit(X, y, qid=qid)
    assert abs(fit.objective_ - dual.objective_) <= fit.duality_gap_ + dual.duality_gap_
    if loss == "squared_hinge":
        assert fit.objective_ == pytest.approx(ExplicitPairs(y, qid, X.toarray()).value(fit.coef_, 30.0), rel=1e-9)


def test_no_stages_from_a_solution(monkeypatch):
    X, y, qid = text()
    asked = []

    def spy(*args, continuation, **options):
        asked.append(continuation)
        return tron(*args, continuation=continuation, **options)

    monkeypatch.setattr("ranksvm.fits.problem.tron", spy)
    fit = RankSVM(C=300.0, solver="tron", warm_start=True).fit(X, y, qid=qid)
    fit.fit(X, y, qid=qid)
    assert asked == [True, False]
    assert fit.n_iter_ == 0
