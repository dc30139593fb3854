"""What the compiled steps on factors rest on; the steps themselves: tests/objectives/low_rank/test_factorized.py."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ranksvm._compiled import factorized


@settings(max_examples=200, deadline=None)
@given(
    st.floats(-10, -1e-3),
    st.floats(-10, 10),
    st.floats(-10, 10),
    st.floats(0, 10),
    st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_the_least_of_a_quartic(slope, bend, third, fourth, scale):
    t, value = factorized.least_of_quartic(scale * slope, scale * bend, scale * third, scale * fourth)
    assert 0.0 <= t <= 1.0
    at = np.linspace(0.0, 1.0, 10_001)
    assert value <= scale * np.min(at * (slope + at * (bend + at * (third + at * fourth)))) + 1e-12 * scale


def test_arrays_that_do_not_agree_are_refused():
    pointers, levels = np.array([0, 2, 5]), np.array([0, 1, 0, 1, 1], dtype=np.int32)
    arrays = pointers, None, levels, np.array([2, 2], dtype=np.int32)
    sums = np.zeros(2), np.zeros(2)
    with pytest.raises(ValueError, match="no multiple of"):
        factorized.QueryFactors(*arrays, np.zeros((5, 3)), *sums)
    with pytest.raises(ValueError, match="levels has length 5, but 6"):
        factorized.QueryFactors(*arrays, np.zeros((6, 4)), *sums)
    factors = factorized.QueryFactors(*arrays, np.zeros((5, 4)), *sums)
    with pytest.raises(ValueError, match="beta has length 4, but 5"):
        factorized.visit_dense(np.zeros((5, 5)), factors, np.arange(2), 1.0, 0.0, np.zeros(4))
