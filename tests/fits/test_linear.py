"""The choice of ``solver="auto"``: by size, the same for every form of data of that size."""

import pytest

from data_sizes import Size, dense
from ranksvm.fits.linear import choose_solver


@pytest.mark.parametrize(
    ("size", "solver"),
    [
        (dense(300, 10), "newton"),
        (dense(300, 46), "newton"),
        (dense(1_000, 46), "newton"),
        (dense(100_000, 10), "newton"),
        (dense(10_000, 46), "newton"),
        (dense(10_000, 136), "newton"),
        (dense(20_000, 136), "newton"),
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
