"""The slope of Platt's sigmoid against a search over slopes."""

import numpy as np
import pytest
from scipy import optimize

from ranksvm.model_selection.calibration import platt_slope


def loss(slope, margins, weight):
    n = np.count_nonzero(weight)
    target = (n + 1) / (n + 2)
    log_p, log_other = -np.logaddexp(0, -slope * margins), -np.logaddexp(0, slope * margins)
    return -weight @ (target * log_p + (1 - target) * log_other)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_has_the_largest_likelihood(scale, weighted):
    random = np.random.default_rng(0)
    margins = random.normal(0.4, 1.0, 200) * scale
    weight = random.integers(0, 3, 200).astype(float) if weighted else np.ones(200)
    found = platt_slope(margins, weight)
    best = optimize.minimize_scalar(lambda log: loss(np.exp(log) / scale, margins, weight), bounds=(-10, 10)).x
    assert found == pytest.approx(np.exp(best) / scale, rel=1e-4)
    assert platt_slope(3.0 * margins, weight) == pytest.approx(found / 3.0)


def test_the_slope_of_margins_that_are_all_right_is_finite():
    margins = np.array([1.0, 2.0, 0.5])
    slope = platt_slope(margins, np.ones(3))
    assert 0.0 < slope < 10.0
    many = platt_slope(np.tile(margins, 1000), np.ones(3000))
    assert slope < many < np.inf


@pytest.mark.parametrize("margins", [[-1.0, 0.5], [0.0, 0.0], [-1.0, 1.0], []])
def test_margins_that_say_nothing(margins):
    assert platt_slope(np.array(margins), np.ones(len(margins))) == 0.0


def test_pairs_without_weight():
    assert platt_slope(np.ones(2), np.zeros(2)) == 0.0
