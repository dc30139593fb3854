"""Intervals of a probability that may be looked at at any time; `compare_credits` is tested with interleaving."""

import numpy as np
import pytest

from ranksvm.clicks.sequential import win_interval


def test_an_interval_solves_its_equation():
    from scipy.special import betaln

    low, high = win_interval(30, 10, 0.9)
    for p in (low, high):
        ratio = betaln(30.5, 10.5) - betaln(0.5, 0.5) - 30 * np.log(p) - 10 * np.log1p(-p)
        assert ratio == pytest.approx(np.log(10), abs=1e-6)
    assert low < 0.75 < high
    assert win_interval(0, 0) == (0.0, 1.0)
    assert win_interval(0, 5)[0] == 0.0
    assert win_interval(5, 0)[1] == 1.0


def test_an_interval_covers_at_all_times_at_once():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        won = np.cumsum(rng.random(300) < 0.5)
        checks = [win_interval(int(w), n + 1 - int(w)) for n, w in enumerate(won) if n % 10 == 9]
        missed += any(not low <= 0.5 <= high for low, high in checks)
    assert missed <= 0.05 * 200 + 5
