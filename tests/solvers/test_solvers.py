"""Every solver against every property: problems with known answers, certificates, and each way to stop."""

import logging
import threading

import numpy as np
import pytest
import scipy.sparse

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.exceptions import DataError
from ranksvm.losses import SquaredHinge
from ranksvm.objectives import LinearObjective
from ranksvm.solvers import Status, adaptive, newton, newton_cg, tron
from ranksvm.solvers.line_search import take_step
from ranksvm.solvers.monitor import Monitor
from ranksvm.terms import hessian_cost
from ranksvm.terms.host import ThreadedTerm
from solver_problems import Hinges, ranking

SOLVERS = pytest.mark.parametrize("solver", [newton, adaptive, tron])
# newton_cg is for objectives with a preconditioner of their own
ALL_SOLVERS = pytest.mark.parametrize("solver", [newton, adaptive, newton_cg, tron])


def test_a_step_to_a_value_that_overflows_is_shortened():
    class Overflowing(Hinges):
        def evaluate(self, w, near=None):
            point = super().evaluate(w, near)
            if w[0] > 1.05:
                point.value = float("nan")
            return point

    objective = Overflowing(1.0, 10.0)
    monitor = Monitor(objective, 1e-4, 10, None, "", 0.0)
    point, end_slope = take_step(objective, objective.evaluate(np.array([0.5])), np.array([0.6]), monitor)
    assert end_slope > 0.0
    assert 0.5 < point.w[0] < 1.05
    assert point.value < 1.0


@ALL_SOLVERS
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
def test_one_pair_has_a_closed_form(solver, C):
    """``w = 2C d / (1 + 2C |d|^2)``."""
    d = np.array([3.0, -4.0])
    result = solver(Hinges(d, C), np.zeros(2), tol=1e-12)
    # strong convexity: |w - w*|^2 <= 2 (f - f*)
    assert np.linalg.norm(result.w - 2 * C * d / (1 + 2 * C * 25)) <= np.sqrt(2 * result.gap) + 1e-15
    assert result.value == pytest.approx(C / (1 + 50 * C), rel=1e-12)
    assert result.status is Status.CONVERGED


@ALL_SOLVERS
@pytest.mark.parametrize("spread", [1.0, 1e3, 1e6])
def test_a_quadratic_of_any_conditioning(solver, spread):
    """All pairs violate up to the solution: no kink is met."""
    rng = np.random.default_rng(0)
    D = rng.normal(size=(20, 5)) * np.geomspace(1.0, 1.0 / spread, 5) * 1e-2
    result = solver(Hinges(D, 50.0), np.zeros(5), tol=1e-10)
    exact = np.linalg.solve(np.eye(5) + 100.0 * D.T @ D, 100.0 * D.sum(axis=0))
    assert (D @ exact < 1).all()
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.w, exact, rtol=1e-3, atol=1e-5)
    if solver is newton:
        assert result.n_iter == 1


@ALL_SOLVERS
def test_a_kink_at_the_first_step(solver):
    """Just beyond the start a pair takes hold that is a hundred million times steeper: the full step goes astray."""
    objective = Hinges([[1.0]], 1e8)
    result = solver(objective, np.array([1.0]), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.w[0] == pytest.approx(2e8 / (1 + 2e8), rel=1e-10)
    assert objective.n_evaluations < 60


@ALL_SOLVERS
def test_steps_past_kinks_are_shortened(solver):
    """From far away every pair flips on the way: f must fall all the same."""
    rng = np.random.default_rng(1)
    D = rng.normal(size=(100, 4)) + np.array([1.0, 0.5, 0.0, 0.0])
    objective = Hinges(D, 10.0)
    reference = solver(objective, np.zeros(4), tol=1e-13)
    for start in rng.normal(size=(10, 4)) * 30.0:
        result = solver(objective, start, tol=1e-10)
        assert result.status is Status.CONVERGED
        assert result.value == pytest.approx(reference.value, rel=1e-9)


@SOLVERS
@pytest.mark.parametrize("C", [1e-5, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_reaches_the_optimum_of_a_ranking_problem(solver, C, weighted):
    rng = np.random.default_rng(7)
    weights = {"sample_weight": rng.integers(0, 4, 300)} if weighted else {}
    objective, oracle = ranking(C=C, **weights)
    optimum = oracle.value(oracle.solve(C), C)
    for tol in (1e-2, 1e-4, 1e-8):
        result = solver(objective, np.zeros(6), tol=tol)
        assert result.status is Status.CONVERGED
        assert result.gap <= tol * result.value
        assert -1e-12 * optimum <= result.value - optimum <= result.gap + 1e-12 * optimum
        assert result.value == pytest.approx(oracle.value(result.w, C), rel=1e-12)
        # the gap includes round-off
        assert result.gap == pytest.approx(
            0.5 * np.sum(oracle.gradient(result.w, C) ** 2), rel=1e-3, abs=1e-12 * optimum
        )


@SOLVERS
def test_unscaled_features(solver):
    scales = 10.0 ** np.array([-3, 4, 0, 2, -1, 3])
    objective, oracle = ranking(scales=scales, C=1e-2)
    result = solver(objective, np.zeros(6), tol=1e-6)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(oracle.value(oracle.solve(1e-2), 1e-2), rel=2e-6)


@pytest.mark.parametrize("cg_only", [False, True])
@pytest.mark.parametrize("C", [1e-4, 1e-1, 1e2])
def test_newton_by_sampled_hessians(C, cg_only, monkeypatch):
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (10, 10) if cg_only else (60, 60))
    objective, oracle = ranking(n=2000, n_queries=300, C=C)
    assert 0.0 < objective.hessian_fraction < 0.4
    result = newton(objective, np.zeros(6), tol=1e-9)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(oracle.value(oracle.solve(C), C), rel=1e-8)
    assert result.history.hessian_products[-1] > 0
    # the sample's own problem is a good beginning
    first_gap = newton(objective, np.zeros(6), tol=1e-9, max_iter=1).history.duality_gap[0]
    assert first_gap < 0.2 * objective.evaluate(np.zeros(6)).gap


@pytest.mark.parametrize("off", [0.0, 1e-6, 3.0])
def test_newton_multiplies_in_float64_once_float32_has_misled_it(off, monkeypatch):
    """Products of the first steps may lack digits, but not those that follow a poor step or end the solution."""
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (60, 60))
    rng, asked = np.random.default_rng(0), []
    product = LinearObjective.hessian_product

    def noisy(self, point, v, double=True):
        found = product(self, point, v)
        if not self.includes_round_off:
            return found
        asked.append(double)
        return found if double else found + off * np.abs(found).max() * rng.random(len(v))

    monkeypatch.setattr(LinearObjective, "hessian_product", noisy)
    objective, oracle = ranking(n=2000, n_queries=300, C=1.0)
    result = newton(objective, np.zeros(6), tol=1e-9)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(oracle.value(oracle.solve(1.0), 1.0), rel=1e-8)
    assert not asked[0]
    assert asked == sorted(asked)  # from some product on all of them
    assert (asked.count(False) <= 2) == (off == 3.0)
    assert len(asked) == result.history.hessian_products[-1] <= (14 if off == 3.0 else 9)


@pytest.mark.parametrize("n_products", [0, 2, 3])
def test_an_outdated_hessian_of_an_earlier_solve_is_replaced_once_products_have_cost_as_much(n_products):
    built = []

    class OfAnotherSolve(Hinges):
        hessian_fraction = 0.5

        def earlier_hessian(self):
            # its first step leaves 41 % of the gap, but only a thousandth in the norm of its inverse
            return super().hessian(start) * np.diag([1.0, 3.0])

        def hessian(self, point):
            built.append(point)
            return super().hessian(point)

        def hessian_product(self, point, v, double=True):
            return super().hessian(point) @ v

    objective = OfAnotherSolve([[1.0, 0.0], [0.0, 100.0]], C=0.5)
    best = np.array([0.5, 100.0 / 10001.0])
    start = objective.evaluate(best - [15.0, 0.01])
    objective.products_since_hessian = n_products
    result = newton(objective, start.w, point=start, tol=1e-9)
    np.testing.assert_allclose(result.w, best, rtol=1e-6)
    assert len(built) == (n_products >= objective.hessian_cost)
    assert objective.products_since_hessian == result.history.hessian_products[-1] + (0 if built else n_products)


def test_newton_takes_a_larger_sample_where_one_misleads(monkeypatch):
    """Few rows a variable and a large C: the sample's Hessian says little of the others'."""
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (2, 2))
    objective, oracle = ranking(n=4000, n_features=60, n_queries=400, C=100.0)
    fraction = objective.hessian_fraction
    result = newton(objective, np.zeros(60), tol=1e-9)
    assert result.status is Status.CONVERGED
    assert objective.hessian_fraction > fraction
    assert result.value == pytest.approx(oracle.value(result.w, 100.0), rel=1e-10)
    monkeypatch.setattr(objective, "hessian_fraction", 1.0)
    assert objective.refine()  # all digits
    assert not objective.refine()


def test_newton_takes_a_larger_sample_once_products_have_cost_as_much(monkeypatch):
    """Features with heavy tails: with the Hessian of a sample conjugate gradients take several products a step."""
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (30, 30))
    scales = np.exp(np.random.default_rng(0).normal(size=(4000, 20)))
    products = {}
    for refined_cost in (3.0, np.inf):
        objective, oracle = ranking(n=4000, n_features=20, n_queries=400, C=1.0, scales=scales)
        objective.refined_cost = refined_cost
        fraction = objective.hessian_fraction
        result = newton(objective, np.zeros(20), tol=1e-9)
        assert result.status is Status.CONVERGED
        assert result.value == pytest.approx(oracle.value(oracle.solve(1.0), 1.0), rel=1e-8)
        assert (objective.hessian_fraction > fraction) == (refined_cost == 3.0)
        products[refined_cost] = result.history.hessian_products[-1]
    assert products[3.0] < 0.8 * products[np.inf]


def test_what_a_hessian_of_more_rows_costs(monkeypatch):
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (30, 30))
    objective, _ = ranking(n=4000, n_features=20, n_queries=400)
    costs = []
    while objective.refine():
        costs.append(objective.hessian_cost)
        assert objective.refined_cost > costs[-1]
    assert objective.refined_cost == np.inf


@pytest.mark.parametrize("one_relevant", [False, True])
def test_newton_on_a_sample_of_one_large_query(one_relevant, monkeypatch):
    monkeypatch.setattr(hessian_cost, "EXACT_HESSIAN_WORK", 0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_PASSES", 0.0)
    monkeypatch.setattr(hessian_cost, "SAMPLE_ROWS_PER_VARIABLE", (10, 10))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = np.zeros(1500) if one_relevant else X[:, 0] + rng.normal(size=1500)
    y[3] = 9.0
    pairs = ComparablePairs.from_labels(Queries.from_qid(None, 1500), y)
    result = newton(LinearObjective(ThreadedTerm(as_design_matrix(X), SquaredHinge(pairs)), 0.1), np.zeros(5), tol=1e-8)
    assert result.status is Status.CONVERGED
    oracle = ExplicitPairs(y, np.zeros(1500), X)
    assert 0.5 * np.sum(oracle.gradient(result.w, 0.1) ** 2) <= 1.001e-8 * oracle.value(result.w, 0.1)


@SOLVERS
def test_the_trace_has_an_entry_per_iterate(solver):
    objective, _ = ranking()
    result = solver(objective, np.zeros(6), tol=1e-8)
    trace = result.history.as_dict()
    assert set(trace) == {"objective", "duality_gap", "evaluations", "hessian_products"}
    assert {len(entries) for entries in trace.values()} == {result.n_iter + 1}
    assert trace["objective"][-1] == result.value
    assert trace["duality_gap"][-1] == result.gap
    assert np.all(np.diff(trace["evaluations"]) >= 1)
    assert trace["objective"][0] == pytest.approx(objective.evaluate(np.zeros(6)).value)


@SOLVERS
def test_a_point_of_another_solve_is_where_it_goes_on(solver):
    objective, oracle = ranking(C=1.0)
    first = solver(objective, np.zeros(6), tol=1e-8)
    again = solver(objective, first.w, point=first.point, tol=1e-8)
    assert again.n_iter == 0
    assert again.history.evaluations == [0]
    objective.reweight(1.5, first.point)
    options = {"warm_start": True} if solver is not tron else {}
    second = solver(objective, first.w, point=first.point, tol=1e-8, **options)
    assert second.value == pytest.approx(oracle.value(oracle.solve(1.5), 1.5), rel=1e-7)
    np.testing.assert_allclose(first.w, oracle.solve(1.0), rtol=1e-3)  # not written over


@SOLVERS
def test_max_iter(solver):
    objective, _ = ranking(C=1e4, scales=10.0 ** np.array([-3, 4, 0, 2, -1, 3]))
    result = solver(objective, np.zeros(6), tol=1e-14, max_iter=1)
    assert result.status is Status.MAX_ITERATIONS
    assert result.n_iter == 1
    assert "max_iter" in result.status.value


@SOLVERS
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
def test_a_tolerance_that_round_off_does_not_allow(solver, C):
    objective, oracle = ranking(C=C)
    result = solver(objective, np.zeros(6), tol=1e-40)
    assert result.status is Status.PRECISION
    assert "round-off" in result.status.value
    assert result.n_iter < 60
    assert result.value == pytest.approx(oracle.value(oracle.solve(C), C), rel=1e-12)


@SOLVERS
def test_interruption_stops_before_the_next_step(solver):
    objective, _ = ranking()
    event = threading.Event()
    event.set()
    start = np.full(6, 0.1)
    result = solver(objective, start, tol=1e-8, interrupted=event)
    assert result.status is Status.INTERRUPTED
    assert result.n_iter == 0
    np.testing.assert_array_equal(result.w, start)
    assert "warm_start" in result.status.value
    assert solver(objective, start, tol=1e9, interrupted=event).status is Status.CONVERGED  # nothing was left to do


@ALL_SOLVERS
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_overflow_is_said_so(solver, scale):
    with pytest.raises(DataError, match="overflow float64"):
        solver(Hinges([[scale, scale]], 1.0), np.zeros(2))


@SOLVERS
def test_iterations_are_logged(solver, caplog):
    objective, _ = ranking()
    with caplog.at_level(logging.INFO, logger="ranksvm.solvers"):
        result = solver(objective, np.zeros(6))
    lines = [record.message for record in caplog.records if "relative gap" in record.message]
    assert len(lines) >= result.n_iter + 1
    # as the rule that stopped it saw them
    assert lines[-1].endswith(f"relative gap {result.relative_gap:.2e} (tol 1.00e-04)")


@pytest.mark.parametrize("C", [1.0, 16.0, 128.0])
def test_tron_on_sparse_data_of_far_more_variables_than_pairs(C):
    """Nearly separable: with a radius in a norm that changed, and rejected steps, it stood still far off."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(300, 3000, density=0.01, format="csr", random_state=rng)
    y = (rng.random(300) < 0.3).astype(float)
    pairs = ComparablePairs.from_labels(Queries.from_qid(np.repeat(np.arange(30), 10)), y)
    result = tron(LinearObjective(ThreadedTerm(as_design_matrix(X), SquaredHinge(pairs)), C), np.zeros(3000), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-4 * result.value
