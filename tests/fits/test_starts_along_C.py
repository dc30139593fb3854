"""Where solutions along C start: at a point extrapolated from earlier solutions, or with more smoothing."""

import numpy as np
import pytest

from _problems import additive_problem_of, kernel_problem_of, linear_problem_of
from ranksvm import AdditiveRankSVM, KernelRankSVM, RankSVM, make_ranking
from ranksvm.estimators.path import solve_along
from ranksvm.fits import kernel
from ranksvm.fits.problem import RankSVMProblem

PROBLEMS = {
    "kernel": lambda data, **options: kernel_problem_of(KernelRankSVM(**options), data, 0.5),
    "additive": lambda data, **options: additive_problem_of(AdditiveRankSVM(**options), data),
    "monotone": lambda data, **options: additive_problem_of(
        AdditiveRankSVM(monotone=[1, 1, 0, 0, -1], **options), data
    ),
}


class ExponentialFunction:
    """``exp(-m)`` as a user would write it."""

    def value(self, margins):
        return np.exp(-margins)

    def derivative(self, margins):
        return -np.exp(-margins)

    def curvature(self, margins):
        return np.exp(-margins)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=20, n_features=5, random_state=0)


def solve(name, data, Cs, **options):
    """The results for these C, and the number of products with the Hessian."""
    problem = PROBLEMS[name](data, **options)
    results = [result for _, result in solve_along(problem, np.asarray(Cs))]
    return results, sum(result.history.hessian_products[-1] for result in results)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "logistic"])
@pytest.mark.parametrize("name", ["kernel", "additive"])
def test_they_save_products(name, loss, data, monkeypatch):
    Cs = 2.0 ** np.arange(-6, 6)
    exact, _ = solve(name, data, Cs, loss=loss, tol=1e-9)
    found, products = solve(name, data, Cs, loss=loss)
    monkeypatch.setattr(RankSVMProblem, "_extrapolated", lambda self, C, point: point)
    without, more_products = solve(name, data, Cs, loss=loss)
    assert products < 0.95 * more_products
    for results in (found, without):
        for best, result in zip(exact, results, strict=True):
            assert result.value <= best.value * (1.0 + 1e-4)
            assert result.gap <= 1e-4 * result.value


def test_they_cost_no_products_after_large_steps_of_C(monkeypatch):
    data, Cs = make_ranking(n_queries=20, n_docs=10, n_features=7, random_state=2), 16.0 ** np.arange(5)
    _, products = solve("additive", data, Cs)
    monkeypatch.setattr(RankSVMProblem, "_extrapolated", lambda self, C, point: point)
    _, without = solve("additive", data, Cs)
    assert products <= 1.1 * without


@pytest.mark.parametrize("name", PROBLEMS)
def test_values_of_C_may_be_repeated_and_anywhere(name, data):
    Cs = [0.01, 0.01, 0.0100001, 0.3, 0.3, 40.0, 41.0]
    results, _ = solve(name, data, Cs)
    for C, result in zip(Cs, results, strict=True):
        assert result.value == pytest.approx(PROBLEMS[name](data, tol=1e-8).solve(C).value, rel=1e-4)


@pytest.mark.parametrize("Cs", [[100.0, np.nextafter(100.0, 200.0), 200.0], [0.3, 0.1 + 0.2, 1.0, 3.0]], ids=str)
@pytest.mark.parametrize("loss", ["squared_hinge", ExponentialFunction()], ids=["squared_hinge", "exponential"])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_solutions_for_nearly_equal_values_of_C_are_not_extrapolated(name, loss, Cs, data):
    with np.errstate(all="raise"):  # the logarithms of 100 and the next number are equal
        results, _ = solve(name, data, Cs, loss=loss, max_iter=1)
    assert all(np.isfinite(result.value) for result in results)


def test_a_new_path_does_not_start_from_the_last_one(data, monkeypatch):
    starts, extrapolated = [], RankSVMProblem._extrapolated
    recorded = lambda self, C, point: starts.append(C) or extrapolated(self, C, point)  # noqa: E731
    monkeypatch.setattr(RankSVMProblem, "_extrapolated", recorded)
    problem = PROBLEMS["additive"](data)
    for Cs in ([0.1, 1.0, 10.0, 20.0], [0.01, 0.02], [0.1, 0.2, 0.4]):
        for _ in solve_along(problem, np.array(Cs)):
            pass
    assert starts == [10.0, 20.0, 0.4]


def test_linear_models_by_explicit_hessians_have_none(data, monkeypatch):
    monkeypatch.delattr(RankSVMProblem, "_extrapolated")
    problem = linear_problem_of(RankSVM(), data)
    assert len(list(solve_along(problem, np.array([0.1, 1.0, 10.0])))) == 3


def test_additive_hinges_start_with_more_smoothing_than_the_last_solution_had(data):
    problem, Cs = PROBLEMS["additive"](data, loss="hinge"), 2.0 ** np.arange(-6, 4)
    along = [result for _, result in solve_along(problem, Cs)]
    alone = [problem.solve(C) for C in Cs]
    assert [result.value for result in along] == pytest.approx([result.value for result in alone], rel=2e-4)
    products = [sum(result.history.hessian_products[-1] for result in results) for results in (along, alone)]
    assert products[0] < 1.2 * products[1]


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_extrapolated_point_is_used_only_if_it_is_better_than_the_last_solution(name, data, monkeypatch):
    values, extrapolated = [], RankSVMProblem._extrapolated

    def recorded(self, C, point):
        found = extrapolated(self, C, point)
        values.append((point.value, found.value))
        return found

    monkeypatch.setattr(RankSVMProblem, "_extrapolated", recorded)
    solve(name, data, [0.01, 0.011, 0.0121, 100.0])
    (near, extrapolated_near), (far, extrapolated_far) = values
    assert extrapolated_near < near
    assert extrapolated_far == far


@pytest.mark.parametrize("multiple", [1.0, 10.0])
def test_kernel_hinges_start_with_more_smoothing_and_after_many_steps_with_much_more(multiple, data, monkeypatch):
    def n_steps():
        problem = PROBLEMS["kernel"](data, loss="hinge")
        return sum(result.n_iter for _, result in solve_along(problem, 2.0 ** np.arange(-5, 6)))

    found = n_steps()
    monkeypatch.setattr(kernel, "WIDEN", multiple)
    monkeypatch.setattr(kernel, "WIDEN_MORE", multiple)
    assert found < 0.7 * n_steps()
