"""Bounds on the gain of interactions, against explicit gradients."""

import numpy as np
import pytest

from ranksvm.additive import AdditiveTerms, FeatureBins, codes_of, feature_bins, interactions, level_shares
from ranksvm.additive.columns import variable_support
from ranksvm.additive.interactions import (
    all_pairs,
    bounds_of_sums,
    chosen_pairs,
    coarse_pairs,
    interaction_bounds,
    pair_signs,
    pair_sums,
)


def made(seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(400, 5))
    X[:, 2] = random.integers(0, 4, 400)
    X[random.random(400) < 0.1, 3] = np.nan
    bins = feature_bins(X, 16, categorical=[2])
    codes = codes_of(bins, X)
    terms = AdditiveTerms(bins, level_shares(bins, codes), np.ones(5), np.zeros(5), 0.3)
    derivative = np.where(random.random(400) < 0.3, 0.0, random.normal(size=400))
    return X, codes, terms, derivative


def explicit_bounds(X, terms, derivative, n_levels, signs=None):
    found = []
    for pair in coarse_pairs(terms, all_pairs(5), n_levels):
        first, second = (
            terms.pair_scales(pair, which) * variable_support(bins).T[bins.levels_of(X[:, j])]
            for which, bins, j in ((0, pair.first_bins, pair.first), (1, pair.second_bins, pair.second))
        )
        gradient = np.einsum("t,ti,tj->ij", derivative, first, second)
        if signs is not None:
            allowed = pair_signs(pair.first_bins, pair.second_bins, signs[pair.first], signs[pair.second])
            if allowed is None:
                gradient[:] = 0.0
            else:
                gradient[allowed * gradient > 0] = 0.0
        found.append(0.5 * (gradient**2).sum())
    return found


@pytest.mark.parametrize("signs", [None, [1, -1, 0, 1, 0]])
@pytest.mark.parametrize("n_levels", [2, 5, 8])
def test_bounds_are_half_the_squared_gradient(n_levels, signs):
    X, codes, terms, derivative = made()
    signs = None if signs is None else np.array(signs)
    bounds = interaction_bounds(terms, codes, derivative, n_levels, signs, n_threads=2)
    assert np.allclose(bounds, explicit_bounds(X, terms, derivative, n_levels, signs), rtol=1e-12)


def test_signs_of_the_increments():
    bins = feature_bins(np.arange(6.0)[:, None], 3)[0]
    assert pair_signs(bins, bins, 1, 0).tolist() == [[1, 1], [1, 1]]
    assert pair_signs(bins, bins, 0, -1).tolist() == [[-1, -1], [-1, -1]]
    assert pair_signs(bins, bins, 1, -1) is None
    no_steps = FeatureBins(np.empty(0), missing=True)
    assert pair_signs(no_steps, bins, 1, -1) is None  # as for a listed pair, whose levels are not known yet


def test_the_largest_bounds_are_chosen():
    assert chosen_pairs(np.array([0.0, 3.0, 1.0]), 5, 3).tolist() == [[0, 2], [1, 2]]
    assert chosen_pairs(np.array([0.0, 3.0, 1.0]), 1, 3).tolist() == [[0, 2]]


@pytest.mark.parametrize("n_rows", [1, 64, 10_000])
@pytest.mark.parametrize("n_bytes", [0, 64 << 20])
def test_bounds_from_some_rows_and_some_pairs_at_a_time(monkeypatch, n_rows, n_bytes):
    X, codes, terms, derivative = made()
    monkeypatch.setattr(interactions, "ROWS", n_rows)
    monkeypatch.setattr(interactions, "SUMS_BYTES", n_bytes)
    expected = explicit_bounds(X, terms, derivative, 5)
    assert np.allclose(interaction_bounds(terms, codes, derivative, 5), expected, rtol=1e-12)
    halves = [pair_sums(terms, codes[rows], derivative[rows], 5) for rows in (slice(None, 150), slice(150, None))]
    assert np.allclose(bounds_of_sums(terms, sum(halves), 5), expected, rtol=1e-12)
