"""Levels of features: quantiles, ties, categories, missing values."""

import numpy as np
import pytest
import scipy.sparse

from ranksvm.additive import FeatureBins, bins as bins_module, codes_of, feature_bins, level_shares
from ranksvm.additive.bins import check_missing, described_features, quantile_rows
from ranksvm.additive.columns import new_levels
from ranksvm.data import TwoBlocks
from ranksvm.exceptions import DataError


def levels_one_by_one(bins, values):
    """The level of each value, from the definition."""
    found = []
    for value in values:
        if np.isnan(value):
            found.append(bins.n_levels - 1)
        elif bins.categories is not None:
            found.append(1 + list(bins.categories).index(value) if value in bins.categories else 0)
        else:
            found.append(sum(value >= cut for cut in bins.cuts))
    return found


def columns(n_rows=700, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 7))
    X[:, 1] = random.integers(0, 2, n_rows)  # two values
    X[:, 2] = 3.0  # constant
    X[:, 3] = np.maximum(X[:, 3], 0.0)  # half of the values are 0
    X[random.random(n_rows) < 0.2, 4] = np.nan
    X[:, 5] = random.integers(0, 30, n_rows)
    X[:, 6] = random.integers(0, 6, n_rows)
    return X


@pytest.mark.parametrize("n_rows", [65_537, 100_000, 131_071, 131_072, 196_606, 655_360, 700_001])
@pytest.mark.parametrize("period", [2, 3, 10])
def test_rows_for_quantiles_are_evenly_distributed(n_rows, period):
    rows = quantile_rows(n_rows)
    assert (len(rows), rows.dtype) == (1 << 16, np.int64)
    assert rows[0] >= 0
    assert rows[-1] < n_rows
    assert (np.diff(rows) >= 1).all()
    # also within queries of a fixed length
    np.testing.assert_allclose(np.bincount(rows % period, minlength=period) * period / len(rows), 1.0, atol=0.06)
    np.testing.assert_allclose(np.histogram(rows, 8, (0, n_rows))[0] * 8 / len(rows), 1.0, atol=0.001)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_bins", [2, 3, 16, 255])
def test_codes_are_the_levels_of_the_definition(max_bins, dtype, monkeypatch):
    X = columns().astype(dtype)
    bins = feature_bins(X, max_bins, categorical=[6])
    codes = codes_of(bins, X, n_threads=2)
    for j, each in enumerate(bins):
        assert codes[:, j].tolist() == levels_one_by_one(each, X[:, j].tolist())
        assert codes[:, j].tolist() == each.levels_of(X[:, j]).tolist()
        assert each.n_levels - int(each.missing) <= max_bins
    shares = level_shares(bins, codes)
    monkeypatch.setattr(bins_module, "CODED_ROWS", 100)
    assert np.array_equal(codes_of(bins, X, n_threads=2), codes)
    for one, other in zip(level_shares(bins, codes, n_threads=3), shares, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 1.0])])
def test_the_mean_of_a_feature_has_the_type_of_x(weights):
    X = np.array([[1e6], [1e6 + 1.0], [1e6 + 1.0]], dtype=np.float32)
    _, statistics = described_features(X, 8, sample_weight=weights)
    assert np.float32(statistics.mean[0]) == statistics.mean[0]


def test_a_feature_with_few_values_has_a_level_for_each():
    bins = feature_bins(columns(), 32)
    assert bins[1].cuts.tolist() == [0.5]
    assert bins[2].n_levels == 1
    assert bins[5].n_levels == 30


@pytest.mark.parametrize("kinds", [(np.float32, np.float64), (np.float64, np.float32)])
@pytest.mark.parametrize("max_bins", [4, 32])
def test_round_off_of_values_changes_no_level(kinds, max_bins):
    texts = [f"{number / 10:.1f}" for number in np.random.default_rng(0).integers(-30, 30, 500)]
    X, rounded = (np.array(texts, dtype=kind)[:, None] for kind in kinds)
    bins = feature_bins(X, max_bins)
    np.testing.assert_array_equal(codes_of(bins, rounded), codes_of(bins, X))


def test_neighboring_floats_have_a_level_each():
    values = [1.0, np.nextafter(1.0, 2.0), -np.finfo(float).max, np.finfo(float).max]
    X = np.array(values)[:, None]
    assert codes_of(feature_bins(X, 4), X)[:, 0].tolist() == [1, 2, 0, 3]


def test_cuts_rounded_to_float32_tell_neighboring_float32_apart():
    values = 1.0 + np.arange(6, dtype=np.float32) * np.finfo(np.float32).eps
    (bins,) = feature_bins(values[:, None], 32)
    levels = np.searchsorted(bins.cuts.astype(np.float32), values, side="right")
    assert levels.tolist() == list(range(6))


def test_levels_have_about_equal_shares():
    X = np.random.default_rng(1).lognormal(size=(5_000, 1))
    bins = feature_bins(X, 20)
    shares = level_shares(bins, codes_of(bins, X))[0]
    assert len(shares) == 20
    assert np.abs(shares - 0.05).max() < 0.001


def test_a_frequent_value_has_a_level_of_its_own_and_leaves_the_others_to_the_rest():
    values = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])[:, None]
    bins = feature_bins(values, 11)
    shares = level_shares(bins, codes_of(bins, values))[0]
    assert len(shares) == 11
    assert shares[0] == 0.9
    assert np.allclose(shares[1:], 0.01)


def test_a_million_distinct_values():
    X = np.random.default_rng(2).random((1_000_000, 1))
    bins = feature_bins(X, 10)
    shares = level_shares(bins, codes_of(bins, X, 2))[0]
    assert np.abs(shares - 0.1).max() < 0.005  # the bound for quantiles of a sample


def test_an_increasing_transformation_changes_no_code():
    X = columns()[:, [0, 3, 5]]
    Y = np.exp(X / 10.0)
    assert np.array_equal(codes_of(feature_bins(X, 16), X), codes_of(feature_bins(Y, 16), Y))


def test_sparse_rows_and_two_blocks_have_the_same_levels():
    X = np.maximum(columns()[:, [0, 3, 5]], 0.0)
    bins, codes = feature_bins(X, 16), codes_of(feature_bins(X, 16), X)
    csr = scipy.sparse.csr_array(X)
    for other in (csr, TwoBlocks(X[:300].copy(), X[300:].copy())):
        found = feature_bins(other, 16)
        assert [each.cuts.tolist() for each in found] == [each.cuts.tolist() for each in bins]
        assert np.array_equal(codes_of(found, other), codes)


def test_weights_count_rows_as_often():
    X = columns()
    weight = np.random.default_rng(3).integers(0, 4, len(X))
    repeated = np.repeat(X, weight, axis=0)
    bins, statistics = described_features(X, 16, [6], sample_weight=weight.astype(float))
    expected, others = described_features(repeated, 16, [6])
    for one, other in zip(bins, expected, strict=True):
        assert np.array_equal(one.cuts, other.cuts)
        assert (one.categories is None) or np.array_equal(one.categories, other.categories)
    assert np.allclose(statistics.mean, others.mean)
    assert np.array_equal(statistics.ranges, others.ranges)
    for one, other in zip(statistics.level_means, others.level_means, strict=True):
        assert np.allclose(one, other)
    shares = level_shares(bins, codes_of(bins, X), weight.astype(float))
    for one, other in zip(shares, level_shares(bins, codes_of(bins, repeated)), strict=True):
        assert np.allclose(one, other)


def test_a_share_of_weights_is_at_most_one():
    """A model file admits no larger one, and the weights of one level may exceed their sum by round-off."""
    weight = np.random.default_rng(0).uniform(0.0, 2.0, 30)
    X = np.ones((30, 1))
    bins = feature_bins(X, 4)
    codes = codes_of(bins, X)
    assert np.bincount(codes[:, 0], weight)[0] > weight.sum()
    assert level_shares(bins, codes, weight)[0].tolist() == [1.0]


def test_statistics_are_those_of_the_values():
    X = columns()
    bins, statistics = described_features(X, 16, [6])
    codes = codes_of(bins, X)
    assert np.allclose(statistics.mean, np.nanmean(X, axis=0))
    assert np.allclose(statistics.ranges, np.column_stack([np.nanmin(X, axis=0), np.nanmax(X, axis=0)]))
    for j, (each, means) in enumerate(zip(bins, statistics.level_means, strict=True)):
        for level in range(each.n_levels - int(each.missing)):
            values = X[codes[:, j] == level, j]
            assert means[level] == pytest.approx(values.mean() if len(values) else np.nanmean(X[:, j]))


def test_coarser_levels_are_unions():
    X = columns()
    bins = feature_bins(X, 32, categorical=[6])
    codes = codes_of(bins, X)
    for j, (each, shares) in enumerate(zip(bins, level_shares(bins, codes), strict=True)):
        coarse = each.coarser(shares, 5)
        new = new_levels(each, coarse)
        assert coarse.n_levels <= 5
        assert np.array_equal(new[codes[:, j]], coarse.levels_of(X[:, j]))


def test_infinite_values_and_new_missing_values_are_refused():
    X = columns()
    bins = feature_bins(X, 8)
    X[5, 0] = np.inf
    with pytest.raises(DataError, match=r"contains infinity at X\[5, 0\] \(feature f1\)"):
        codes_of(bins, X)
    with pytest.raises(DataError, match=r"contains infinity at X\[25, 0\] \(feature a0\)"):
        codes_of(bins, X, names=[f"a{j}" for j in range(X.shape[1])], first_row=20)
    X[5, 0] = np.nan
    with pytest.raises(DataError, match=r"contains NaN at X\[5, 0\] \(feature f1\): this feature had no missing value"):
        codes_of(bins, X)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_matrix])
def test_missing_values_of_some_features_are_refused(layout):
    X = np.array([[np.nan, 0.0, 1.0], [np.nan, 2.0, np.nan]])
    check_missing(np.array([True, False, True]), layout(X))
    with pytest.raises(DataError, match=r"contains NaN at X\[1, 2\] \(feature f3\): this feature had no missing value"):
        check_missing(np.array([True, False, False]), layout(X))
    with pytest.raises(DataError, match=r"contains NaN at X\[20, 0\] \(feature a\)"):
        check_missing(np.array([False, False, False]), layout(X), names=["a", "b", "c"], first_row=20)


def test_an_unseen_category_has_level_0():
    bins = FeatureBins(np.empty(0), True, np.array([2.0, 5.0]))
    assert bins.levels_of(np.array([5.0, 4.0, np.nan, 2.0])).tolist() == [2, 0, 3, 1]


def test_a_category_is_also_known_in_float32():
    bins = FeatureBins(np.empty(0), True, np.array([0.1, 0.7, 2.0, 16777217.0, 16777218.0]))
    values = np.array([0.7, 0.1, np.nan, 2.0, 0.2, 16777218.0])
    assert bins.levels_of(values).tolist() == [2, 1, 6, 3, 0, 5]
    assert bins.levels_of(values.astype(np.float32)).tolist() == [2, 1, 6, 3, 0, 5]
    same = FeatureBins(np.empty(0), False, np.array([1e8 + 1.0, 1e8 + 2.0]))
    assert same.levels_of(np.array([1e8 + 1.0], dtype=np.float32)).tolist() == [0]  # which of the two is unknown


def test_no_number_of_a_feature_is_minus_zero():
    X = np.column_stack([np.tile([-0.0, 0.0, 1.0, -1.0], 5), np.tile([-0.0, 2.0, -0.0, 2.0], 5)])
    bins, statistics = described_features(X, 8, categorical=[1])
    found = [bins[0].cuts, bins[1].categories, statistics.ranges]
    assert not any(np.signbit(values[values == 0.0]).any() for values in found)
