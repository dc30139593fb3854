"""The search on a grid: widened, or from neighbor to neighbor, it ends at the best setting with neighbors tried."""

import pytest

from _widening import Axis, Grid


def axes():
    return [Axis("a {}", range(9), 3, 5, bounded=True), Axis("b {}", range(9), 3, 5)]


@pytest.mark.parametrize("best", [(4, 4), (1, 6), (0, 3), (7, 1)])
@pytest.mark.parametrize("search", ["search", "climb"])
def test_the_search_goes_on_until_the_best_setting_is_inside(search, best):
    grid, calls = Grid(axes(), ("score",)), []

    def score(*values):
        calls.append(values)
        return {"score": -sum(abs(value - target) for value, target in zip(values, best, strict=True))}

    getattr(grid, search)(score, lambda found: found)
    assert grid.values(grid.best("score")) == best
    assert grid.where(grid.best("score")).startswith("yes")
    assert len(calls) == len(set(calls)) == len(grid.found)


def test_the_range_is_that_of_the_settings_that_were_tried():
    grid = Grid(axes(), ("score",))
    grid.climb(lambda a, b: {"score": a - b}, lambda found: found)
    assert grid.ranges() == "a (3 to 8), b (0 to 5)"
    assert grid.where(grid.best("score")) == "**no**: a 8, b 0"
