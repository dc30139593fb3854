"""Kernel objectives against every pair written out, over explicit features of the same kernel matrix."""

import numpy as np
import pytest

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, Queries
from ranksvm.kernels import kernel_matrix, kernel_named
from ranksvm.losses import Hinge, HuberHinge, SquaredHinge
from ranksvm.objectives import CoefficientObjective, KernelObjective, Landmarks
from ranksvm.objectives.active_pairs import (
    LONGEST_ELIMINATION,
    ActivePairs,
    HostInversion,
    avoids_difference,
    correction_by_active_pairs,
    factorize,
    potentials_of,
)
from ranksvm.solvers import Status, newton_cg, tron

LOSSES = {"squared_hinge": (SquaredHinge, None), "huber": (HuberHinge, 0.5)}
C = 0.3
# Documents and queries. With many short lists the blocks of queries are factorized.
MANY_QUERIES = 400, 100


def make_problem(
    loss="squared_hinge", objective=KernelObjective, n=60, landmarks=0, n_threads=1, gamma=0.2, n_queries=6, **weights
):
    """An objective, and its oracle: ``Q = F F'``, so that coefficients b are the weights ``F'b`` of the features F."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(n, 4)), rng.integers(0, 4, n).astype(float), np.sort(rng.integers(0, n_queries, n))
    matrix = kernel_matrix(kernel_named("rbf", gamma=gamma), X, memory=1 << 24, dtype="float64", n_threads=n_threads)
    make, width = LOSSES[loss]
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, n), y, **weights)
    chosen = Landmarks(matrix, rng.permutation(n)[:landmarks]) if landmarks else None
    values, vectors = np.linalg.eigh(matrix.columns(np.arange(n)))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    oracle = ExplicitPairs(y, qid, features, width=width, **weights)
    return objective(matrix, make(pairs), C, n_threads, chosen, width=width), oracle, rng


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_gradient_certificate_and_hessian(loss, n_threads, weighted):
    weights = {"sample_weight": np.random.default_rng(5).random(60) + 0.1} if weighted else {}
    objective, oracle, rng = make_problem(loss, n_threads=n_threads, **weights)
    F = oracle.X
    for scale in (0.0, 0.1, 2.0):
        b, v = scale * rng.normal(size=60), objective.vector(rng.normal(size=60))
        w = F.T @ b
        point = objective.evaluate(objective.vector(b))
        gradient, hessian = oracle.gradient(w, C), oracle.hessian(w, C)
        assert point.value == pytest.approx(oracle.value(w, C), rel=1e-12)
        np.testing.assert_allclose(F.T @ point.gradient[0], gradient, atol=1e-9)
        np.testing.assert_allclose(point.gradient[1], F @ gradient, atol=1e-9)
        assert point.gap == pytest.approx(0.5 * gradient @ gradient, rel=1e-9)
        # primal less dual, pair by pair
        assert point.gap == pytest.approx(point.value - oracle.dual_value(w, C), rel=1e-8)
        product = objective.hessian_product(point, v)
        np.testing.assert_allclose(F.T @ product[0], hessian @ (F.T @ v[0]), atol=1e-9)
        np.testing.assert_allclose(product[1], F @ hessian @ (F.T @ v[0]), atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_coefficients_view_is_the_same_function(loss):
    objective, oracle, rng = make_problem(loss, CoefficientObjective)
    F, b, v = oracle.X, 0.3 * rng.normal(size=60), rng.normal(size=60)
    Q = F @ F.T
    point = objective.evaluate(b)
    w = F.T @ b
    assert point.value == pytest.approx(oracle.value(w, C), rel=1e-12)
    np.testing.assert_allclose(point.gradient, F @ oracle.gradient(w, C), atol=1e-9)
    assert point.gap == pytest.approx(0.5 * np.sum(oracle.gradient(w, C) ** 2), rel=1e-9)
    expected = Q @ v + C * Q @ oracle.loss_hessian(Q @ b) @ Q @ v
    np.testing.assert_allclose(objective.hessian_product(point, v), expected, atol=1e-9)


@pytest.mark.parametrize("kind", [KernelObjective, CoefficientObjective])
def test_along_a_line_and_between(kind):
    objective, oracle, rng = make_problem(objective=kind)
    near, far = (objective.evaluate(objective.vector(scale * rng.normal(size=60))) for scale in (0.1, 1.0))
    before = objective.matrix.n_products
    along = objective.line(near, far)
    for alpha in (0.0, 0.3, 1.0):
        b = near.coefficients + alpha * (far.coefficients - near.coefficients)
        w, step = oracle.X.T @ b, oracle.X.T @ (far.coefficients - near.coefficients)
        (value,), (slope,) = along(np.array([alpha]))
        assert value == pytest.approx(oracle.value(w, C), rel=1e-10)
        assert slope == pytest.approx(oracle.gradient(w, C) @ step, rel=1e-9)
    assert objective.matrix.n_products == before
    middle = objective.between(near, far, 0.5)
    assert objective.slope(middle, far.w - near.w) == pytest.approx(
        objective.inner(middle.gradient, far.w - near.w), rel=1e-9
    )
    assert objective.matrix.n_products == before + 1
    again = objective.evaluate(objective.vector(middle.coefficients))
    assert middle.value == pytest.approx(again.value, rel=1e-12)
    np.testing.assert_allclose(middle.gradient, again.gradient, atol=1e-9)


@pytest.mark.parametrize("kind", [KernelObjective, CoefficientObjective])
@pytest.mark.parametrize("landmarks", [0, 10])
def test_another_C_needs_no_product(kind, landmarks):
    objective, _, rng = make_problem(objective=kind, landmarks=landmarks)
    b = rng.normal(size=60)
    point = objective.evaluate(objective.vector(b))
    assert point.gap > 0.0
    objective.sample()
    before = objective.matrix.n_products
    objective.reweight(7.0, point)
    assert objective.matrix.n_products == before
    fresh = kind(objective.matrix, objective.loss, 7.0, 1, objective.landmarks)
    expected = fresh.evaluate(fresh.vector(b))
    assert point.value == pytest.approx(expected.value, rel=1e-12)
    assert point.gap == pytest.approx(expected.gap, rel=1e-9)
    np.testing.assert_allclose(point.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
    if landmarks:
        assert objective.sample().C == 7.0


def test_products_with_Q_are_what_gradients_and_hessian_products_cost():
    for kind, cost in ((KernelObjective, 1), (CoefficientObjective, 2)):
        objective, _, rng = make_problem(objective=kind)
        w = objective.vector(rng.normal(size=60))
        before = objective.matrix.n_products
        point = objective.evaluate(w)
        assert objective.matrix.n_products - before == cost - 1
        for _ in range(2):
            assert point.gap >= 0.0
            assert point.gradient.shape == w.shape
        assert objective.matrix.n_products - before == cost
        objective.hessian_product(point, w)
        assert objective.matrix.n_products - before == 2 * cost


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("landmarks", [7, 60])
def test_the_preconditioner_is_self_adjoint_and_exact_where_all_are_landmarks(loss, landmarks):
    objective, _, rng = make_problem(loss, landmarks=landmarks)
    point = objective.evaluate(objective.vector(0.2 * rng.normal(size=60)))
    precondition = objective.preconditioner(point)
    u, v = (objective.vector(rng.normal(size=60)) for _ in range(2))
    Mu, Mv = precondition(u), precondition(v)
    np.testing.assert_allclose(objective.matrix.product(Mu[0]), Mu[1], atol=1e-6)
    assert objective.inner(Mu, v) == pytest.approx(objective.inner(u, Mv), rel=1e-7)
    assert objective.inner(Mu, u) > 0
    if landmarks == 60:
        np.testing.assert_allclose(objective.hessian_product(point, Mu)[1], u[1], atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_active_pairs_are_a_factor_of_the_hessian_of_the_loss(loss, weighted):
    weights = {"sample_weight": np.random.default_rng(5).random(60) + 0.1} if weighted else {}
    objective, oracle, rng = make_problem(loss, **weights)
    for scale in (0.0, 0.2, 5.0):
        point = objective.evaluate(objective.vector(scale * rng.normal(size=60)))
        degrees = objective.loss.curvature_diagonal(point.state, 0, 60)
        pairs = ActivePairs(objective.loss.hessian(point.state), degrees, objective.pairs.pointers)
        H, U = oracle.loss_hessian(point.scores), pairs.matrix().toarray()
        np.testing.assert_array_equal(pairs.positions, np.flatnonzero(np.diagonal(H)))
        np.testing.assert_allclose(U.T @ U, H[np.ix_(pairs.positions, pairs.positions)], atol=1e-12)
        assert len(U) == np.linalg.matrix_rank(H)


def test_only_lists_that_are_short_enough_to_eliminate_avoid_the_difference():
    degrees = np.ones(2 * LONGEST_ELIMINATION)
    two_lists = np.array([0, LONGEST_ELIMINATION, len(degrees)])
    one_longer = np.array([0, LONGEST_ELIMINATION + 1, len(degrees)])
    assert avoids_difference(degrees, two_lists, 1.0, 1e9)
    assert not avoids_difference(degrees, two_lists, 1.0, 1e7)
    assert not avoids_difference(degrees, one_longer, 1.0, 1e9)
    degrees[0] = 0.0  # a document without an active pair
    assert avoids_difference(degrees, one_longer, 1.0, 1e9)
    assert not avoids_difference(np.zeros(5), np.array([0, 5]), 1.0, 1e9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize(("n", "n_queries"), [(60, 1), (60, 6), MANY_QUERIES])
def test_the_inverse_by_active_pairs_is_that_of_the_whole_matrix(loss, C, n, n_queries, factorization):
    objective, oracle, rng = make_problem(loss, n=n, n_queries=n_queries)
    objective.reweight(C)
    point = objective.evaluate(objective.vector(0.2 * rng.normal(size=n)))
    inverse = objective.inverse(point)
    r = objective.vector(rng.normal(size=n))
    Q = objective.matrix.columns(np.arange(n))
    expected = np.linalg.solve(np.eye(n) + C * oracle.loss_hessian(point.scores) @ Q, r[0])
    off = 1e-3 if C < 1e3 else 1e-6  # a factor in float32, and in float64
    np.testing.assert_allclose(inverse(r), np.stack([expected, Q @ expected]), rtol=1e-5, atol=off * np.abs(r).max())
    before = objective.matrix.n_products
    inverse(r)
    assert objective.matrix.n_products == before + 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [0.0, 0.2, 5.0])
def test_potentials_have_given_coefficients(loss, scale):
    objective, oracle, rng = make_problem(loss)
    point = objective.evaluate(objective.vector(scale * rng.normal(size=60)))
    degrees = objective.loss.curvature_diagonal(point.state, 0, 60)
    pairs = ActivePairs(objective.loss.hessian(point.state), degrees, objective.pairs.pointers)
    H, potentials = oracle.loss_hessian(point.scores), potentials_of(pairs, 60)
    coefficients, free = H @ rng.normal(size=60), rng.normal(size=60)
    np.testing.assert_allclose(H @ potentials(coefficients), coefficients, atol=1e-9)
    # other coefficients, except at one document of each component
    off = np.abs(H @ potentials(free) - free)[pairs.positions] > 1e-9
    assert off.sum() == len(pairs.positions) - np.linalg.matrix_rank(H)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "n_queries"), [(60, 1), (60, 6), MANY_QUERIES])
def test_the_inverse_is_accurate_at_a_C_that_leaves_no_digits_of_a_difference(loss, n, n_queries, factorization):
    C = 1e11
    objective, oracle, rng = make_problem(loss, n=n, n_queries=n_queries, gamma=2.0)
    objective.reweight(C)
    point = objective.evaluate(objective.vector(0.2 * rng.normal(size=n)))
    Q, expected = objective.matrix.columns(np.arange(n)), rng.normal(size=n)
    r = expected + C * oracle.loss_hessian(point.scores) @ Q @ expected
    found = objective.inverse(point)(objective.vector(r))
    np.testing.assert_allclose(found, np.stack([expected, Q @ expected]), atol=0.01)


def test_scores_of_the_inverse_have_the_round_off_of_its_result(factorization):
    """A gradient may be many orders of magnitude larger than the step: its round-off must not stay in the scores."""
    objective, _, _ = make_problem()
    objective.reweight(1e9)
    point = objective.evaluate(objective.vector())  # every pair is active
    step = objective.inverse(point)(point.gradient)
    assert np.abs(step).max() < 1e-4 * np.abs(point.gradient).max()
    Q = objective.matrix.columns(np.arange(60))
    np.testing.assert_allclose(step[1], Q @ step[0], rtol=0, atol=1e-14 * np.abs(step[0]).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, 256, 300, 700])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_cholesky_factor_by_several_threads(dtype, n, n_threads):
    B = np.random.default_rng(0).normal(size=(n, n))
    A = (B @ B.T / n + np.eye(n)).astype(dtype)
    factor = np.tril(A)
    assert factorize(factor, n_threads)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(A.astype(np.float64)), atol=100 * eps)
    A[-1, -1] = -1.0
    assert not factorize(A, n_threads)


@pytest.mark.parametrize("one_list", [False, True])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_there_is_no_inverse_of_a_singular_matrix(one_list, monkeypatch):
    monkeypatch.setattr("ranksvm.objectives.active_pairs." + ("CALL_COST" if one_list else "LU_COST"), 1e300)
    n, n_queries = (60, 1) if one_list else MANY_QUERIES
    objective, oracle, rng = make_problem(n=n, n_queries=n_queries)
    point = objective.evaluate(objective.vector(0.2 * rng.normal(size=n)))
    degrees = objective.loss.curvature_diagonal(point.state, 0, n)
    largest = np.linalg.eigvals(oracle.loss_hessian(point.scores) @ oracle.X @ oracle.X.T).real.max()
    how = objective.loss.hessian(point.state), degrees, objective.pairs.pointers
    C = np.nan if one_list else -2.0 / largest
    assert correction_by_active_pairs(*how, C, HostInversion(objective.matrix)) is None


def test_the_inverse_is_used_once_it_costs_less_than_products():
    found = {}
    for memory, direct in ((0, None), (0, True), (1 << 24, None), (1 << 24, True), (1 << 24, False)):
        objective, _, _ = make_problem(gamma=2.0)
        objective = KernelObjective(objective.matrix, objective.loss, 1e5, inverse_memory=memory)
        taken = []
        inverse = objective.inverse
        objective.inverse = lambda point, inverse=inverse, taken=taken: taken.append(1) or inverse(point)
        result = newton_cg(objective, objective.vector(), tol=1e-8, direct=direct)
        assert result.status is Status.CONVERGED
        found[memory, direct] = result.value, len(taken), result.n_iter
    values, counts, steps = zip(*found.values(), strict=True)
    np.testing.assert_allclose(values, values[0], rtol=1e-8)
    assert counts[0] == counts[1] == counts[4] == 0
    assert 0 < counts[2] < steps[2]
    assert counts[3] == steps[3]


def test_without_landmarks_there_is_no_smaller_problem():
    objective, _, rng = make_problem()
    w = objective.vector(rng.normal(size=60))
    assert objective.sample() is None
    np.testing.assert_array_equal(objective.preconditioner(objective.evaluate(w))(w), w)


def test_the_sample_is_the_problem_over_functions_of_landmarks():
    objective, _, rng = make_problem(landmarks=9)
    sample = objective.sample()
    coordinates = rng.normal(size=sample.n_variables)
    w = objective.from_sample(objective.sample(), coordinates)
    assert np.count_nonzero(w[0]) == 9
    np.testing.assert_allclose(objective.matrix.product(w[0]), w[1], atol=1e-7)
    assert sample.evaluate(coordinates).value == pytest.approx(objective.evaluate(w).value, rel=1e-8)


@pytest.mark.parametrize("landmarks", [0, 5, 30])
@pytest.mark.parametrize("gamma", [0.02, 0.5, 1e4])
def test_reaches_the_optimum(landmarks, gamma):
    objective, oracle, _ = make_problem(landmarks=landmarks, gamma=gamma)
    optimum = oracle.value(oracle.solve(C), C)
    for tol in (1e-3, 1e-8):
        result = newton_cg(objective, objective.vector(), tol=tol)
        assert result.status is Status.CONVERGED
        assert -1e-9 * optimum <= result.value - optimum <= result.gap + 1e-9 * optimum
        assert result.gap <= tol * result.value


def test_tron_in_the_coefficients_reaches_the_same_optimum_at_more_products():
    objective, oracle, _ = make_problem(objective=CoefficientObjective)
    result = tron(objective, objective.vector(), tol=1e-6)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(oracle.value(oracle.solve(C), C), rel=2e-6)
    published = objective.matrix.n_products
    ours = KernelObjective(objective.matrix, objective.loss, C)
    newton_cg(ours, ours.vector(), tol=1e-6)
    assert objective.matrix.n_products - published < published


@pytest.mark.parametrize("landmarks", [0, 10])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("memory", [0, 1 << 24])
def test_the_hinge_is_certified_pair_by_pair(landmarks, tol, memory):
    objective, oracle, _ = make_problem(landmarks=landmarks)
    objective = KernelObjective(objective.matrix, Hinge(objective.pairs), C, 1, objective.landmarks, memory, 1.0, True)
    result = newton_cg(objective, objective.vector(), tol=tol, direct=memory > 0)
    assert result.status is Status.CONVERGED
    oracle.width = objective.width
    w = oracle.X.T @ result.w[0]
    assert result.value == pytest.approx(oracle.hinge_value(w, C), rel=1e-9)
    assert result.gap == pytest.approx(result.value - oracle.dual_value(w, C, hinge=True), rel=1e-3, abs=1e-9)
    assert result.gap <= tol * result.value


@pytest.mark.parametrize("n_queries", [1, 6])
def test_the_inverse_predicts_the_solution_of_the_next_width(n_queries, factorization):
    objective, oracle, _ = make_problem(n_queries=n_queries)
    objective = KernelObjective(objective.matrix, HuberHinge(objective.pairs), C, 1, None, 1 << 24, 0.5)
    result = newton_cg(objective, objective.vector(), tol=1e-9)
    scores, width = result.point.scores, objective.width
    ring, beyond = (lambda h: ((h > 0.0) & (h <= width), h > width))(1.0 - oracle.margins(scores))
    objective.width = narrower = 0.9 * width
    b, Qb = objective.narrowed_solution(result.point)
    # b are the signed sums of C times the slopes of the parabolas of these pairs, at the scores of b itself
    D = np.eye(len(b))[oracle.upper] - np.eye(len(b))[oracle.lower]
    slopes = np.where(ring, (1.0 - D @ Qb) / narrower, beyond)
    np.testing.assert_allclose(b, C * D.T @ (oracle.weight * slopes), atol=1e-4)  # a factor in float32
    predicted = objective.evaluate(np.stack([b, Qb]))
    assert predicted.gap < 0.2 * objective.evaluate(result.w).gap


def test_no_solution_is_predicted_without_memory_for_the_inverse():
    problem = make_problem()[0]
    objective = KernelObjective(problem.matrix, Hinge(problem.pairs), C, 1, None, 1000, 1.0, True)
    objective.narrowed_solution = None  # not to be called
    assert newton_cg(objective, objective.vector(), tol=1e-5, direct=True).status is Status.CONVERGED


def test_predicted_solutions_of_the_hinge_save_steps():
    n_steps = {}
    for predicts in (True, False):
        problem = make_problem(n=300, n_queries=10)[0]
        objective = KernelObjective(problem.matrix, Hinge(problem.pairs), 30.0, 1, None, 1 << 28, 1.0, True)
        if not predicts:
            objective.narrowed_solution = lambda point: None
        result = newton_cg(objective, objective.vector(), tol=1e-5, direct=True)
        assert result.status is Status.CONVERGED
        n_steps[predicts] = result.n_iter
    assert n_steps[True] < 0.75 * n_steps[False]  # of extrapolated solutions


def hinge_problem(C=1e4, **options):
    problem = make_problem(n=300, gamma=2.0, **options)[0]
    return KernelObjective(problem.matrix, Hinge(problem.pairs), C, 1, None, 1 << 28, 1.0, True)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_relaxed_problem_of_a_hinge_has_the_squared_hinge(weighted):
    weights = {"sample_weight": np.linspace(0.1, 2.0, 300)} if weighted else {}
    objective = hinge_problem(0.3, **weights)
    _, oracle, _ = make_problem(n=300, gamma=2.0, **weights)
    relaxed = objective.relaxed()
    w = objective.vector(np.random.default_rng(0).normal(size=300))
    assert relaxed.evaluate(w).value == pytest.approx(oracle.value(oracle.X.T @ w[0], relaxed.C), rel=1e-9)
    assert relaxed.relaxed() is None
    assert make_problem()[0].relaxed() is None
    assert make_problem("huber")[0].relaxed() is None


def test_steps_continue_from_the_solution_of_the_relaxed_problem():
    objective = hinge_problem(30.0)
    begins, relaxed, evaluate = [], objective.relaxed(), objective.evaluate
    objective.relaxed = lambda: relaxed
    objective.evaluate = lambda w, near=None: begins.append(w) or evaluate(w, near)
    result = newton_cg(objective, objective.vector(), tol=1e-5, direct=True)
    easier = newton_cg(relaxed, relaxed.vector(), tol=0.1, direct=True)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(begins[1], easier.w)
    assert result.history.hessian_products[1] == easier.history.hessian_products[-1]
    assert result.history.evaluations[1] > easier.history.evaluations[-1] > 0


@pytest.mark.parametrize("tolerance", [1e-1, 1e-14])
def test_a_step_by_an_inverse_is_taken_as_it_is_unless_round_off_is_larger_than_the_tolerance(tolerance):
    objective = hinge_problem()
    point = objective.evaluate(objective.vector())
    step = -objective.inverse(point)(point.gradient)
    before = objective.matrix.n_products
    solved = objective.solves(point, step, tolerance)
    assert objective.matrix.n_products == before
    left = point.gradient + objective.hessian_product(point, step)
    share = np.sqrt(abs(objective.inner(left, left) / objective.inner(point.gradient, point.gradient)))
    assert solved == (tolerance == 1e-1)
    assert share <= 1e-1 if solved else share > 1e-16
    assert not objective.solves(point, 0.5 * step, 0.4)


def test_a_start_near_the_solution_is_not_left_for_the_relaxed_problem():
    objective = hinge_problem()
    objective.relaxed = None  # not to be called
    newton_cg(objective, objective.vector(), tol=1e-5, direct=True, warm_start=True)


def test_the_sample_of_a_hinge_is_smoothed_as_it_is_and_stays_so():
    objective, _, _ = make_problem(landmarks=9)
    objective = KernelObjective(objective.matrix, Hinge(objective.pairs), C, 1, objective.landmarks, 0, 0.7, True)
    sample = objective.sample()
    assert (sample.width, sample.reducible) == (0.7, False)
    point = sample.evaluate(np.zeros(sample.n_variables))
    assert point.at.sums.slack == 0.0
    assert sample.reduce_smoothing(point, 1e-9) == (point, 0)
    objective.from_sample(sample, point.w)
    assert objective.width == 0.7
    assert not make_problem(landmarks=9)[0].sample().reducible
