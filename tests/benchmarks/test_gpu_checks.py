"""The checks of `benchmarks/gpu.py`, on a stand-in for the CUDA driver, in each of its modes."""

import pytest

from _gpu_checks import checks

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "mode", ["late", pytest.param("at once", marks=SLOW), pytest.param("copies early", marks=SLOW)]
)
def test_every_check_passes_under_the_real_packages(driver, mode):
    """Every loss, with every kind of features, pairs and weights, kernels, and X that streams through."""
    driver.mode = mode
    found = list(checks("cuda:0", smoke=True))
    assert len(found) == 63
    assert [check for check in found if not check.passed] == []
