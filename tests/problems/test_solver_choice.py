"""The choice of ``solver="auto"``: by size, the same for every form of data of that size."""

from typing import NamedTuple

import pytest

from ranksvm.objectives.hessian_cost import hessian_cost, sampled_fraction, worthwhile_fraction
from ranksvm.problems.solver_choice import choose_solver


class Size(NamedTuple):
    n_rows: int
    n_variables: int
    row_bytes: float
    dense: bool = True

    @property
    def curvature_rank(self) -> int:
        return self.n_rows


def dense(n_rows, n):
    return Size(n_rows, n, 4.0 * n)


@pytest.mark.parametrize(
    ("size", "solver"),
    [
        (dense(300, 10), "newton"),
        (dense(300, 46), "newton"),
        (dense(10_000, 46), "newton"),
        (dense(10_000, 136), "adaptive"),
        (dense(100_000, 136), "newton"),
        (dense(1_000_000, 136), "newton"),
        (dense(1_000, 245), "adaptive"),
        (dense(100_000, 768), "adaptive"),
        (dense(400_000, 1024), "adaptive"),
        (dense(400_000, 2000), "adaptive"),
        (dense(400_000, 2001), "tron"),
        (Size(52_000, 44, 12.0 * 20, dense=False), "newton"),
        (Size(20_000, 300, 12.0 * 15, dense=False), "adaptive"),
        (Size(1_000_000, 1_000_000, 12.0 * 30, dense=False), "tron"),
    ],
)
def test_solver_by_size(size, solver):
    assert choose_solver(size).solver == solver


def test_a_hessian_costs_more_products_with_more_variables_rows_and_fewer_values():
    costs = [hessian_cost(dense(10_000, n), 1.0) for n in (10, 46, 136, 245, 768, 2000)]
    assert costs == sorted(costs)
    assert costs[0] < 8
    assert costs[-1] > 50
    fractions = [hessian_cost(dense(10_000, 245), fraction) for fraction in (0.0, 0.05, 0.3, 1.0)]
    assert fractions[0] == float("inf")
    assert fractions[1:] == sorted(fractions[1:])
    sparse = Size(10_000, 245, 12.0 * 10, dense=False)
    assert hessian_cost(sparse, 1.0) > 1.5 * hessian_cost(dense(10_000, 245), 1.0)


def test_a_preconditioner_takes_fewer_rows_than_a_hessian_built_every_few_steps():
    size = dense(400_000, 1024)
    assert 0.0 < sampled_fraction(size) < worthwhile_fraction(size) < 1.0
    assert sampled_fraction(dense(1_000, 245)) == 1.0
