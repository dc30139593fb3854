"""Newton's method over a cone: quadratic models against SciPy, problems with known answers, and few iterations."""

import threading
from functools import partial

import numpy as np
import pytest
import scipy.optimize

from ranksvm import RankSVM
from ranksvm.objectives import ConstrainedObjective
from ranksvm.solvers import Status, newton, projected_newton
from ranksvm.solvers.cone import SignCone
from ranksvm.solvers.cone_models import DiagonalModel, HessianModel
from ranksvm.solvers.model_on_cone import minimize_model
from solver_problems import Hinges, ranking


def quadratic(seed, n=40, spread=1e3):
    """A Hessian, a gradient at some feasible w, and signs."""
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(3 * n, n)) * np.geomspace(1.0, spread, n) ** 0.5
    cone = SignCone(rng.choice([-1, 0, 1], n))
    w = cone.project(rng.normal(size=n) * (rng.random(n) < 0.5))
    return np.eye(n) + D.T @ D / n, rng.normal(size=n) * spread, w, cone


def exact_minimum(hessian, gradient, w, cone):
    """By SciPy's bounded least squares: ``1/2 |R x - R^-T b|^2``."""
    factor = np.linalg.cholesky(hessian).T
    target = np.linalg.solve(factor.T, hessian @ w - gradient)
    bounds = np.where(cone.signs > 0, 0.0, -np.inf), np.where(cone.signs < 0, 0.0, np.inf)
    return scipy.optimize.lsq_linear(factor, target, bounds, method="bvls", tol=1e-14).x


@pytest.mark.parametrize("seed", range(8))
def test_block_pivoting_finds_the_minimum(seed):
    hessian, gradient, w, cone = quadratic(seed)
    found = HessianModel(cone, hessian).minimizer(w, gradient)
    np.testing.assert_allclose(found, exact_minimum(hessian, gradient, w, cone), atol=1e-9 * np.abs(found).max())
    assert (cone.signs * found >= 0.0).all()


@pytest.mark.parametrize("seed", range(8))
def test_exchanges_one_by_one_find_the_minimum(seed):
    hessian, gradient, w, cone = quadratic(seed)
    found = HessianModel(cone, hessian)._lowered(w, hessian @ w - gradient)
    np.testing.assert_allclose(found, exact_minimum(hessian, gradient, w, cone), atol=1e-9 * np.abs(found).max())
    assert (cone.signs * found >= -1e-12 * np.abs(found).max()).all()


def test_hinge_and_known_signs_of_many_features():
    """Block pivoting takes too many exchanges at some steps, which then went uphill: 1,000 steps did not suffice."""
    random = np.random.default_rng(5)
    X, y, qid = random.normal(size=(95, 100)), random.integers(0, 3, 95), np.sort(random.integers(0, 5, 95))
    fit = RankSVM(loss="hinge", monotone="increasing", solver="newton", max_iter=200).fit(X, y, qid=qid)
    assert fit.converged_
    assert fit.objective_ == pytest.approx(146.609, rel=2e-4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("near", ["exact", "rough", "diagonal"])
def test_products_find_the_minimum(seed, near):
    hessian, gradient, w, cone = quadratic(seed)
    rough = hessian + 0.3 * np.diag(np.diagonal(hessian))
    models = {
        "exact": HessianModel(cone, hessian.copy()),
        "rough": HessianModel(cone, rough),
        "diagonal": DiagonalModel(cone, np.diagonal(hessian)),
    }
    gap = cone.gaps(w, gradient).sum()
    found = minimize_model(
        lambda v: hessian @ v, w, gradient, cone, models[near], target_gap=1e-16 * gap, max_products=100_000
    )
    np.testing.assert_allclose(
        w + found.step, exact_minimum(hessian, gradient, w, cone), atol=1e-6 * np.abs(found.step).max()
    )
    assert (cone.signs * (w + found.step) >= 0.0).all()


@pytest.mark.parametrize("seed", range(8))
def test_projections_that_raise_the_model_do_not_cycle(seed):
    """Fewer directions of large curvature than variables: each projection raises the model by orders of magnitude."""
    rng, n = np.random.default_rng(seed), 100
    D = rng.normal(size=(60, n))
    hessian, cone = np.eye(n) + 1e4 * D.T @ D, SignCone(np.ones(n))
    w, gradient = np.zeros(n), -1e3 * np.abs(D).sum(axis=0) * rng.normal(size=n)
    model, gap = DiagonalModel(cone, np.diagonal(hessian)), cone.gaps(w, gradient).sum()
    found = minimize_model(lambda v: hessian @ v, w, gradient, cone, model, target_gap=1e-9 * gap, max_products=100_000)
    assert cone.gaps(w + found.step, -found.residual).sum() <= 1e-9 * gap


def test_products_with_the_hinge_and_known_signs_of_many_features():
    """Projections cycled, and 1,000 steps with 500 products each did not suffice."""
    random = np.random.default_rng(5)
    X, y, qid = random.normal(size=(95, 100)), random.integers(0, 3, 95), np.sort(random.integers(0, 5, 95))
    fit = RankSVM(loss="hinge", monotone="increasing", solver="tron", max_iter=200).fit(X, y, qid=qid)
    assert fit.converged_
    assert fit.objective_ == pytest.approx(146.609, rel=2e-4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("max_products", [1, 3, 10])
def test_a_model_left_early_is_a_step_down(seed, max_products):
    hessian, gradient, w, cone = quadratic(seed, spread=1e6)
    model = DiagonalModel(cone, np.diagonal(hessian))
    step = minimize_model(
        lambda v: hessian @ v, w, gradient, cone, model, target_gap=0.0, max_products=max_products
    ).step
    assert gradient @ step + 0.5 * step @ hessian @ step < 0.0
    assert (cone.signs * (w + step) >= 0.0).all()


@pytest.mark.parametrize("seed", [16, 28, 31, 53, 63])
@pytest.mark.parametrize("max_products", [1, 3, 1000])
def test_an_approximate_hessian_that_is_far_too_small_gives_a_step_down(seed, max_products):
    """As for the hinge with much less smoothing than at the last Hessian: the faces diverge."""
    random, n = np.random.default_rng(seed), 7
    rows = random.normal(size=(3 * n, n))
    hessian = np.eye(n) + rows.T @ rows * 10.0 ** random.uniform(2, 6)
    some = rows[random.random(3 * n) < 0.5]
    model = HessianModel(cone := SignCone(np.ones(n)), np.eye(n) + some.T @ some * 10.0 ** random.uniform(0, 2))
    w = np.abs(random.normal(size=n)) * (random.random(n) < 0.6)
    gradient = 10.0 * random.normal(size=n)
    step = minimize_model(
        lambda v: hessian @ v, w, gradient, cone, model, target_gap=1e-12, max_products=max_products
    ).step
    assert gradient @ step + 0.5 * step @ hessian @ step < 0.0
    assert (w + step >= 0.0).all()


@pytest.mark.parametrize("seed", [6, 37, 40, 41, 67])
def test_round_off_on_the_way_is_no_descent(seed):
    """As from 0 with a narrow Huberized hinge, which is not curved there: the first face is far away."""
    random, n = np.random.default_rng(seed), 5
    rows = random.normal(size=(3 * n, n)) * 10.0 ** random.uniform(-3, 3, (3 * n, 1))
    hessian = np.eye(n) + rows.T @ rows * 1e8
    model = HessianModel(cone := SignCone(np.ones(n)), np.eye(n))
    w = 1e-3 * np.abs(random.normal(size=n)) * (random.random(n) < 0.6)
    gradient = 1e6 * random.normal(size=n)
    step = minimize_model(lambda v: hessian @ v, w, gradient, cone, model, target_gap=1e-12, max_products=500).step
    assert gradient @ step < 0.0
    assert (w + step >= 0.0).all()


def test_a_narrow_huberized_hinge_and_known_signs():
    """Steps uphill led back to the start again and again."""
    random = np.random.default_rng(19)
    X, y = random.normal(size=(700, 5)) * 10.0 ** random.uniform(-3, 3, (700, 1)), random.integers(0, 2, 700)
    options = {"loss": "huber", "huber_width": 0.01, "monotone": "increasing", "max_iter": 100}
    assert RankSVM(10.0, **options).fit(X, y, qid=np.arange(700) // 140).converged_


class ConstrainedHinges(Hinges):
    """Explicit hinges over a cone."""

    def __init__(self, D, C, signs, fraction=1.0):
        super().__init__(D, C)
        self.cone, self.hessian_fraction = SignCone(np.asarray(signs)), fraction

    def evaluate(self, w, near=None):
        return super().evaluate(self.cone.project(w), near)

    def gap(self, w, gradient):
        return float(self.cone.gaps(w, gradient).sum())


FRACTIONS = pytest.mark.parametrize("fraction", [1.0, 0.0], ids=["hessian", "products"])


@FRACTIONS
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
def test_one_pair_has_a_closed_form(fraction, C):
    """Only the weights whose differences have the right sign are used: ``w = 2C d+ / (1 + 2C |d+|^2)``."""
    result = projected_newton(ConstrainedHinges([3.0, -4.0], C, [1, 1], fraction), np.zeros(2), tol=1e-12)
    np.testing.assert_allclose(result.w, [6 * C / (1 + 18 * C), 0.0], rtol=1e-6)
    assert result.value == pytest.approx(C / (1 + 18 * C), rel=1e-12)
    assert result.status is Status.CONVERGED


@FRACTIONS
def test_a_cone_in_which_only_zero_is_of_use(fraction):
    result = projected_newton(ConstrainedHinges([3.0, 4.0], 1.0, [-1, -1], fraction), np.ones(2), tol=1e-12)
    np.testing.assert_array_equal(result.w, [0.0, 0.0])
    assert (result.value, result.gap, result.n_iter) == (1.0, 0.0, 0)


@FRACTIONS
def test_a_kink_at_the_first_step(fraction):
    objective = ConstrainedHinges([[1.0]], 1e8, [1], fraction)
    result = projected_newton(objective, np.array([1.0]), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.w[0] == pytest.approx(2e8 / (1 + 2e8), rel=1e-10)


def constrained(objective, signs):
    return ConstrainedObjective(objective.term, objective.C, fraction_of=objective.fraction_of, cone=SignCone(signs))


def test_signs_that_the_free_solution_has_change_nothing():
    free, _ = ranking(C=1.0)
    reference = newton(free, np.zeros(6), tol=1e-10)
    signs = np.sign(reference.w).astype(int)
    result = projected_newton(constrained(free, signs), np.zeros(6), tol=1e-10)
    np.testing.assert_allclose(result.w, reference.w, atol=np.sqrt(8e-10 * reference.value))
    assert abs(result.n_iter - reference.n_iter) <= 1


def part_of(fraction, size):
    """A part of many rows, all of few."""
    return fraction if size.n_rows > 300 or fraction == 0.0 else 1.0


@pytest.mark.parametrize("fraction", [1.0, 0.2, 0.0])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_few_iterations_and_the_last_ones_are_superlinear(fraction, C):
    free, _ = ranking(n=600, n_features=12, C=C, fraction_of=partial(part_of, fraction))
    signs = np.resize([1, -1, 0], 12)
    result = projected_newton(constrained(free, signs), np.zeros(12), tol=1e-10)
    assert result.status is Status.CONVERGED
    assert result.n_iter <= 12
    gaps = result.history.duality_gap  # the last one with what round-off may hide
    assert gaps[-1] <= 1e-1 * gaps[-2]
    assert (signs * result.w >= 0.0).all()


def test_an_infeasible_start_is_projected_and_a_set_event_stops():
    free, _ = ranking()
    event = threading.Event()
    event.set()
    result = projected_newton(constrained(free, np.ones(6, dtype=int)), -np.ones(6), warm_start=True, interrupted=event)
    assert result.status is Status.INTERRUPTED
    np.testing.assert_array_equal(result.w, np.zeros(6))
