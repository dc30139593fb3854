"""Bounds on round-off."""

import numpy as np
import pytest

from ranksvm.losses.round_off import Sizes


@pytest.mark.parametrize("entries", [1, 3, 5, 9])
def test_the_bound_on_a_row_is_that_of_its_largest_entries(entries):
    largest = np.array([0.0, 3.0, 0.0, 1.0, 2.0, 0.0, 5.0, 0.0])
    sizes = Sizes(largest, entries, 4)
    kept = np.sort(largest)[::-1][:entries]
    assert sizes.longest == pytest.approx(np.linalg.norm(kept))
    assert sizes.score(np.full(8, 2.0)) == pytest.approx(2.0 * kept.sum())
    assert np.isnan(sizes.score(np.full(8, np.nan)))
