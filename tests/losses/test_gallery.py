"""Inputs that once lost digits, or more, each with its story."""

import numpy as np
import pytest

from oracle import ExplicitPairs
from sweep_checks import WAYS, check_against_pairs, evaluate, make_loss

ALL_WAYS = pytest.mark.parametrize("way", WAYS)


@ALL_WAYS
def test_an_offset_of_a_million(way):
    """Sums of scores of 1e6 keep ten digits of their differences: a query's scores are centered first."""
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 4, 300), rng.integers(0, 3, 300)
    scores = np.round(rng.normal(size=300) * 2**20) / 2**20  # exact with the offset too
    plain, shifted = (evaluate(make_loss(np.sort(y), np.sort(qid), way), scores + c) for c in (0.0, 1e6))
    assert shifted[0] == pytest.approx(plain[0], rel=1e-14)
    np.testing.assert_allclose(shifted[1], plain[1], rtol=1e-13, atol=1e-11)


@ALL_WAYS
def test_margins_of_one_but_for_an_ulp(way):
    """``s_i - s_j < 1`` and ``s_j > s_i - 1`` differ in the last bit: a Laplacian by both is not symmetric."""
    rng = np.random.default_rng(1)
    base = rng.normal(size=30)
    scores = np.concatenate([base, np.nextafter(base + 1.0, 9.0), base + 1.0, np.nextafter(base + 1.0, -9.0)])
    y = np.repeat([0, 1, 2, 1], 30)
    check_against_pairs(y, np.zeros(120), scores, way)


@ALL_WAYS
@pytest.mark.parametrize("n", [2, 3, 50])
def test_scores_of_the_smallest_numbers(n, way):
    """The bucket sort's buckets per unit overflowed, 0 * inf gave a bucket, and the sweep wrote outside its arrays."""
    y = np.arange(n)[::-1] % 3
    scores = np.where(np.arange(n) % 2, 0.0, 5e-324)
    check_against_pairs(y, np.zeros(n), scores, way)


@ALL_WAYS
def test_scores_over_the_whole_range_of_floats(way):
    """highest - lowest overflows: no bucket has a width then."""
    y, scores = np.array([0, 1, 0, 1, 0, 1]), np.array([1.7e308, -1.7e308, 0.0, 1.0, -1.0, 0.5])
    value, _, state = evaluate(make_loss(y, np.zeros(6), way), scores)
    assert not np.isfinite(value)  # the hinge of 3.4e308 is not a number either
    if state.order is not None:
        assert sorted(state.order) == list(range(6))
        np.testing.assert_array_equal(np.diff(scores[state.order]) >= 0, True)


@ALL_WAYS
@pytest.mark.parametrize("outlier", [-1e7, 1e7])
def test_a_document_far_from_all_others(outlier, way):
    """Sums over lower(i) taken as total less prefix kept a residue of eps z of an outlier z that violates nothing."""
    rng = np.random.default_rng(2)
    scores, y = rng.normal(size=200), rng.integers(0, 3, 200)
    y[0], scores[0] = (2 if outlier > 0 else 0), outlier  # where it violates nothing
    oracle = ExplicitPairs(y, np.zeros(200))
    value, gradient, _ = evaluate(make_loss(y, np.zeros(200), way), scores)
    assert value == pytest.approx(oracle.loss(scores), rel=1e-13)
    np.testing.assert_allclose(gradient, oracle.loss_gradient(scores), rtol=1e-12, atol=1e-10)


@ALL_WAYS
def test_equal_scores_of_all_documents(way):
    """The first evaluation of every fit: w = 0."""
    rng = np.random.default_rng(3)
    y, qid = rng.integers(0, 5, 100), rng.integers(0, 4, 100)
    check_against_pairs(y, qid, np.zeros(100), way)
    check_against_pairs(y, qid, np.full(100, -7.25), way)


@ALL_WAYS
def test_clusters_of_scores(way):
    """A bucket sort puts them into few buckets; insertion is given up and a comparison sort takes over."""
    rng = np.random.default_rng(4)
    scores = rng.permutation(np.concatenate([rng.normal(size=400) * 1e-9, [1e6, -1e6]]))
    check_against_pairs(rng.integers(0, 3, 402), np.zeros(402), scores, way)


@ALL_WAYS
def test_weights_of_very_different_size(way):
    rng = np.random.default_rng(5)
    weights = {"sample_weight": 10.0 ** rng.integers(-6, 6, 60)}
    check_against_pairs(rng.integers(0, 3, 60), np.zeros(60), rng.normal(size=60), way, **weights)
