"""Means of the values so far."""

import numpy as np

from papers.online_curves import so_far


def test_the_mean_so_far_is_that_of_each_beginning():
    values = np.random.default_rng(0).random(20)
    np.testing.assert_allclose(so_far(values), [values[: n + 1].mean() for n in range(20)], rtol=1e-12)
