"""Sizes of data sets, from which costs are estimated and solvers are chosen."""

from typing import NamedTuple


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
