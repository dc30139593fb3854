"""Inverses of Hessians on a device, by the host in its place, against inverses on the host and the whole matrix."""

import numpy as np
import pytest

from ranksvm.data import ComparablePairs, Queries
from ranksvm.device.host import HostDevice
from ranksvm.exceptions import DeviceMemoryError
from ranksvm.kernels import kernel_matrix, kernel_named
from ranksvm.losses import Hinge, HuberHinge, SquaredHinge
from ranksvm.objectives import KernelObjective
from ranksvm.objectives.active_pairs import SINGLE_RANGE, correction_by_active_pairs
from ranksvm.objectives.device_inversion import DeviceInversion
from ranksvm.solvers import Status, newton_cg

LOSSES = {
    "squared_hinge": (SquaredHinge, {}),
    "hinge": (Hinge, {"width": 1.0, "reducible": True}),
    "huber": (HuberHinge, {"width": 0.5}),
}
PLENTY = 1 << 26


def make_problem(loss="squared_hinge", device=None, n=400, n_queries=100, dtype="float64", C=1.0, gamma=0.2):
    """An objective over many short lists, some of one row, with or without a device."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(n, 4)), rng.integers(0, 4, n).astype(float), np.sort(rng.integers(0, n_queries, n))
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, n), y)
    matrix = kernel_matrix(kernel_named("rbf", gamma=gamma), X, memory=PLENTY, dtype=dtype, device=device)
    make, options = LOSSES[loss]
    memory = 0 if device else PLENTY
    return KernelObjective(matrix, make(pairs), C, 1, None, memory, **options), rng


def point_of(objective, rng, scale=0.2):
    return objective.evaluate(objective.vector(scale * rng.normal(size=objective.n_variables)))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
def test_the_inverse_is_that_of_the_whole_matrix(loss, dtype, C):
    objective, rng = make_problem(loss, HostDevice(), dtype=dtype, C=C)
    point, n = point_of(objective, rng), objective.n_variables
    r = objective.vector(rng.normal(size=n))
    Q, hessian = objective.matrix.columns(np.arange(n)), objective.loss.hessian(point.state)
    H, identity = np.empty((n, n)), np.eye(n)
    for column in range(n):
        hessian(0, objective.pairs.n_queries, identity[column], H[column])
    expected = np.linalg.solve(np.eye(n) + C * H @ Q, r[0])
    single = C * np.diagonal(H).max() <= SINGLE_RANGE
    assert single == (C < 1e6)
    off = 1e-3 if single else 1e-6
    inverse = objective.inverse(point)
    np.testing.assert_allclose(inverse(r), np.stack([expected, Q @ expected]), rtol=1e-5, atol=off * np.abs(r).max())
    before = objective.matrix.n_products
    inverse(r)
    assert objective.matrix.n_products == before + 1


@pytest.mark.parametrize("loss", LOSSES)
def test_the_inverse_is_accurate_at_a_C_that_leaves_no_digits_of_a_difference(loss):
    objective, rng = make_problem(loss, HostDevice(), C=1e11, gamma=2.0)
    point, expected = point_of(objective, rng), rng.normal(size=objective.n_variables)
    r = objective.hessian_product(point, objective.vector(expected))
    found = objective.inverse(point)(objective.vector(r[0]))
    np.testing.assert_allclose(found, np.stack([expected, objective.matrix.product(expected)]), atol=0.01)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("dtype", "C", "tol"), [("float64", 0.3, 1e-8), ("float64", 30.0, 1e-8), ("float32", 0.3, 1e-4)]
)
def test_the_optimum_of_the_host(loss, dtype, C, tol):
    values, steps = [], []
    for device in (None, HostDevice()):
        objective, _ = make_problem(loss, device, dtype=dtype, C=C, n=200, n_queries=50)
        inverse, made = objective.inverse, []
        objective.inverse = lambda point, inverse=inverse, made=made: made.append(inverse(point)) or made[-1]
        objective.relaxed = lambda: None  # so that each step makes one inverse
        result = newton_cg(objective, objective.vector(), tol=tol, direct=True)
        assert result.status is Status.CONVERGED
        assert len(made) == result.n_iter
        assert None not in made
        values.append(result.value)
        steps.append(result.n_iter)
    assert values[1] == pytest.approx(values[0], rel=0.1 * tol)
    assert abs(steps[1] - steps[0]) <= 2


def test_an_inverse_is_freed_before_the_next_one():
    objective, _ = make_problem(device=HostDevice(memory=1_300_000), C=30.0, n=200, n_queries=50)
    inverse, made = objective.inverse, []
    objective.inverse = lambda point: noted(made, inverse(point))
    result = newton_cg(objective, objective.vector(), tol=1e-8, direct=True)
    assert made == [True] * result.n_iter
    at_the_start = objective.evaluate(objective.vector())
    kept = inverse(at_the_start)
    assert kept is not None
    assert inverse(at_the_start) is None  # no memory for two


def noted(made, inverse):
    made.append(inverse is not None)
    return inverse


def test_no_value_depends_on_the_order_of_threads():
    found = []
    for n_blocks, backwards in ((3, False), (3, True), (2, False)):
        objective, rng = make_problem(device=HostDevice(n_blocks=n_blocks, backwards=backwards), C=1e6)
        r = objective.vector(rng.normal(size=objective.n_variables))
        found.append(objective.inverse(point_of(objective, rng))(r))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_auto_takes_direct_steps_once_products_cost_more():
    found = {}
    for direct in (None, False, True):
        objective, _ = make_problem(device=HostDevice(), n=200, n_queries=50, C=1e5, gamma=2.0)
        taken, inverse = [], objective.inverse
        objective.inverse = lambda point, inverse=inverse, taken=taken: taken.append(1) or inverse(point)
        result = newton_cg(objective, objective.vector(), tol=1e-8, direct=direct)
        assert result.status is Status.CONVERGED
        found[direct] = len(taken), result.n_iter, result.value
    assert 0 < found[None][0] < found[None][1]
    assert found[False][0] == 0
    assert found[True][0] == found[True][1]
    assert found[None][2] == pytest.approx(found[False][2], rel=1e-8)


def test_the_cost_grows_with_the_active_documents():
    objective, _ = make_problem(device=HostDevice())
    pointers, degrees = objective.pairs.pointers, np.zeros(objective.n_variables)
    inversion, costs = objective._inversion, []
    for n in (0, 50, 400):
        degrees[:n] = 1.0
        costs.append(inversion.cost(degrees, pointers))
    assert costs[0] == 0.0 < costs[1] < costs[2] < np.inf


# -- where there is no inverse -----------------------------------------------------------------------------------------


def check_conjugate_gradients_alone(objective):
    assert objective.inverse_cost(point_of(objective, np.random.default_rng(1))) == np.inf
    objective.narrowed_solution = None  # not to be called
    inverse = objective.inverse

    def identity(point):
        assert not objective._degrees(point).any()
        return inverse(point)

    objective.inverse = identity
    assert newton_cg(objective, objective.vector(), tol=1e-6, direct=True).status is Status.CONVERGED


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("memory", "stored"), [(1_400_000, True), (600_000, False)], ids=["no memory beside Q", "Q is recomputed"]
)
def test_without_memory(loss, memory, stored):
    objective, _ = make_problem(loss, HostDevice(memory=memory))
    assert (objective.matrix.stored is not None) == stored
    check_conjugate_gradients_alone(objective)


def test_for_long_lists(monkeypatch):
    monkeypatch.setattr("ranksvm.objectives.device_inversion.LONGEST", 30)
    check_conjugate_gradients_alone(make_problem(device=HostDevice(), n=100, n_queries=2)[0])


def test_memory_that_turns_out_to_be_taken(monkeypatch):
    objective, rng = make_problem("hinge", HostDevice())

    def refused(self, shape, dtype):
        raise DeviceMemoryError("no room")

    point = point_of(objective, rng)
    monkeypatch.setattr(HostDevice, "empty", refused)
    assert objective.inverse_cost(point) < np.inf
    assert objective.inverse(point) is None
    assert newton_cg(objective, objective.vector(), tol=1e-6, direct=True).status is Status.CONVERGED


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("C", [-1e3, np.nan, np.inf])
def test_a_matrix_that_is_not_positive_definite(C):
    objective, rng = make_problem(device=HostDevice())
    point = point_of(objective, rng)
    degrees = objective.loss.curvature_diagonal(point.state, 0, objective.n_variables)
    how = objective.loss.hessian(point.state), degrees, objective.pairs.pointers, C
    inversion = objective._inversion
    assert isinstance(inversion, DeviceInversion)
    assert correction_by_active_pairs(*how, inversion) is None
