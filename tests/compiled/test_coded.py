"""Codes of levels, and products with rows of codes, against NumPy."""

import numpy as np
import pytest

from ranksvm._compiled import coded


def levels_of(X, cuts):
    """The number of cuts that each value reaches; one more than all of them for NaN."""
    found = np.empty(X.shape, dtype=np.uint8)
    for j, each in enumerate(cuts):
        found[:, j] = np.where(np.isnan(X[:, j]), len(each) + 1, np.searchsorted(each, X[:, j], side="right"))
    return found


def found_levels(X, cuts, start=0, stop=None):
    """The codes of some rows, and whether all values are finite."""
    pointers = np.concatenate([[0], np.cumsum([len(each) for each in cuts])]).astype(np.int64)
    codes = np.full(X.shape, 99, dtype=np.uint8)
    stop = len(X) if stop is None else stop
    return codes, coded.feature_levels(X, np.concatenate(cuts), pointers, start, stop, codes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("n_rows", [5, 64, 200])
@pytest.mark.parametrize("most", [1, 15, 31, 32, 60])
def test_levels_of_any_number_of_rows_features_and_cuts(most, n_rows, n_features, dtype):
    random = np.random.default_rng(most)
    X = random.integers(-40, 40, (n_rows, n_features)).astype(dtype)
    # values of X among them, and numbers between those of its type
    cuts = [np.sort(random.choice(np.arange(-80, 80), random.integers(0, most + 1), replace=False)) / 2.0 for _ in X.T]
    cuts = [each + np.where(random.random(len(each)) < 0.3, 1e-12, 0.0) for each in cuts]
    codes, finite = found_levels(X, cuts)
    assert finite
    np.testing.assert_array_equal(codes, levels_of(X, cuts))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value, dtype):
    random = np.random.default_rng(0)
    cuts = [np.sort(random.normal(size=31)) for _ in range(40)]
    for row, column in ((0, 0), (63, 15), (64, 16), (100, 39), (199, 20)):
        X = random.normal(size=(200, 40)).astype(dtype)
        X[row, column] = value
        codes, finite = found_levels(X, cuts)
        assert not finite
        np.testing.assert_array_equal(codes, levels_of(X, cuts))
    codes, finite = found_levels(X, cuts, 10, 150)
    assert finite
    np.testing.assert_array_equal(codes[10:150], levels_of(X, cuts)[10:150])
    assert (codes[:10] == 99).all()
    assert (codes[150:] == 99).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_features_at_once(dtype):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 21)).astype(dtype)
    X[:, 3], X[:, 4], X[:5, 5], X[::2, 6] = 0.0, -1.0, np.nan, 0.0
    columns = np.empty((18, 3000), dtype=dtype)
    coded.copy_columns(X, 2, 20, columns)
    np.testing.assert_array_equal(columns, X[:, 2:20].T)
    columns.sort(axis=1)
    lengths, cuts, n_cuts = np.full(18, 3000), np.full((18, 30), -1), np.full(18, -1)
    lengths[3], lengths[5] = 2995, 0
    coded.row_cuts(columns, lengths, cuts, n_cuts)
    for values, length, places, n in zip(columns, lengths, cuts, n_cuts, strict=True):
        assert places[:n].tolist() == (cuts_one_by_one(values[:length], 31) if length else [])
    lengths[0] = 3001
    with pytest.raises(ValueError, match="length"):
        coded.row_cuts(columns, lengths, cuts, n_cuts)
    with pytest.raises(ValueError, match="features"):
        coded.copy_columns(X, 4, 22, columns)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_ranges(dtype):
    values = np.random.default_rng(0).normal(size=100).astype(dtype)
    starts, sums = np.array([0, 1, 1, 40, 99]), np.empty(5)
    coded.range_sums(values, starts, sums)
    expected = [values[a:b].sum(dtype=np.float64) for a, b in zip(starts, [1, 1, 40, 99, 100], strict=True)]
    np.testing.assert_allclose(sums, expected, rtol=1e-13, atol=1e-13)
    with pytest.raises(ValueError, match="ascend"):
        coded.range_sums(values, starts[::-1].copy(), sums)


@pytest.mark.parametrize("n_pairs", [0, 1, 5])
def test_cells_of_pairs_behind_the_codes(n_pairs):
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, (300, 4)).astype(np.uint8)
    pairs = random.integers(0, 4, (n_pairs, 2))
    tables = random.integers(0, 256, (n_pairs, 2, 256)).astype(np.uint8)
    out = np.empty((300, 4 + n_pairs), dtype=np.uint8)
    coded.append_cells(codes, pairs, tables, out)
    cells = [(table[0][codes[:, a]] + table[1][codes[:, b]]) for (a, b), table in zip(pairs, tables, strict=True)]
    np.testing.assert_array_equal(out, np.column_stack([codes, *cells]))
    for number in (-1, 4):
        with pytest.raises(ValueError, match=f"pair {n_pairs} has feature {number}, but there are 4"):
            coded.append_cells(
                codes,
                np.vstack([pairs, [[0, number]]]),
                np.zeros((n_pairs + 1, 2, 256), dtype=np.uint8),
                np.empty((300, 5 + n_pairs), dtype=np.uint8),
            )


@pytest.mark.parametrize("n_columns", [1, 3, 4, 11])
def test_numbers_of_rows_at_each_level(n_columns):
    random = np.random.default_rng(0)
    n_levels = np.append(random.choice([1, 2, 33, 256], n_columns - 1), 200)
    codes = np.column_stack([random.integers(0, n, 500) for n in n_levels]).astype(np.uint8)
    pointers = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    counts = np.ones(pointers[-1], dtype=np.int64)
    coded.level_counts(codes, pointers, 0, 0, counts)
    coded.level_counts(codes, pointers, 20, 450, counts)
    expected = [np.bincount(codes[20:450, c], minlength=n) for c, n in enumerate(n_levels)]
    np.testing.assert_array_equal(counts, 1 + np.concatenate(expected))
    before = counts.copy()
    codes[17, -1] = n_levels[-1]
    with pytest.raises(ValueError, match="beyond the levels"):
        coded.level_counts(codes, pointers, 0, 500, counts)
    with pytest.raises(ValueError, match="beyond the levels"):
        coded.level_counts(codes, np.zeros_like(pointers), 0, 500, counts[:0])
    np.testing.assert_array_equal(counts, before)
    with pytest.raises(ValueError, match="rows"):
        coded.level_counts(codes, pointers, 0, 501, counts)


@pytest.mark.parametrize("rows", [None, np.random.default_rng(1).permutation(300)[:260]])
@pytest.mark.parametrize("n_columns", [1, 2, 5, 6, 7, 14])
def test_values_and_sums_of_levels(n_columns, rows):
    random = np.random.default_rng(0)
    n_levels = random.integers(1, 40, n_columns)
    codes = np.column_stack([random.integers(0, n, 300) for n in n_levels]).astype(np.uint8)
    columns = np.zeros((n_columns, 7), dtype=np.int64)
    columns[:, 1] = n_levels - 1
    columns[1:, 5], columns[1:, 6] = np.cumsum(n_levels - 1)[:-1], np.cumsum(n_levels)[:-1]
    features = coded.CodedFeatures(codes, columns, np.ones((n_levels - 1).sum()))
    products = coded.coded_products(None, np.empty(0), features, rows)
    taken = codes if rows is None else codes[rows]
    table, u = random.normal(size=n_levels.sum()), random.normal(size=len(taken))
    u[::5] = 0.0
    scores, sums = np.empty(len(taken) - 13), np.ones(len(table))
    products.scores(3, len(taken) - 10, table, scores)
    entries = taken + columns[:, 6]
    np.testing.assert_allclose(scores, table[entries].sum(axis=1)[3:-10], atol=1e-12)
    products.accumulate(3, len(taken) - 10, u[3:-10], sums)
    expected = np.zeros(len(table))
    np.add.at(expected, entries[3:-10], u[3:-10, np.newaxis])
    np.testing.assert_allclose(sums, 1.0 + expected, atol=1e-12)


@pytest.mark.parametrize("rows", [None, np.random.default_rng(1).permutation(5000)[:4300]])
@pytest.mark.parametrize("n_columns", [1, 2, 9, 26, 47, 52, 60])
def test_pairs_of_columns_have_the_products_of_both(n_columns, rows):
    random = np.random.default_rng(n_columns)
    # two columns of 20 levels have too many cells for 5,000 rows, and cells of two features are never paired
    n_levels = np.where(np.arange(n_columns) // 4 % 4 == 3, 20, random.integers(1, 17, n_columns))
    is_pair = np.arange(n_columns) >= max(2, n_columns - 3)
    codes = np.column_stack([random.integers(0, n, 5000) for n in n_levels]).astype(np.uint8)
    columns = np.zeros((n_columns, 7), dtype=np.int64)
    columns[:, 0] = n_levels - 1
    columns[is_pair, 0], columns[is_pair, 2] = 3, 3
    codes[:, is_pair] = random.integers(0, 16, (5000, is_pair.sum()))
    columns[:, 4] = is_pair
    n_levels, n_variables = np.where(is_pair, 16, n_levels), np.where(is_pair, 9, n_levels - 1)
    columns[1:, 5], columns[1:, 6] = np.cumsum(n_variables)[:-1], np.cumsum(n_levels)[:-1]
    scales, w = random.uniform(0.5, 1.0, n_variables.sum()), random.normal(size=n_variables.sum())
    u = random.normal(size=5000 if rows is None else len(rows))
    u[::5] = 0.0
    found = []
    for paired in (False, True):
        features = coded.CodedFeatures(codes, columns, scales, paired)
        products = coded.coded_products(None, np.empty(0), features, rows)
        values, sums, total = np.empty(features.n_numbers), np.zeros(features.n_numbers), np.zeros(len(w))
        scores = np.zeros(len(u) - 10)
        features.values(w, values)
        products.scores(3, len(u) - 7, values, scores)
        products.accumulate(3, len(u) - 7, u[3:-7], sums)
        features.gather_sums(sums, total)
        found.append((features.n_numbers, scores, total))
    assert (found[1][0] > found[0][0]) == (n_columns > 1)
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-11)
    np.testing.assert_allclose(found[1][2], found[0][2], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_rows", [20_000, 150_000])
def test_pairs_of_columns_have_a_limited_number_of_cells(n_rows):
    codes = np.zeros((n_rows, 300), dtype=np.uint8)
    columns = np.zeros((300, 7), dtype=np.int64)
    columns[:, 0], columns[:, 5], columns[:, 6] = 31, 31 * np.arange(300), 32 * np.arange(300)
    n_pairs = min(coded.MAX_CELLS, n_rows) // 1024
    features = coded.CodedFeatures(codes, columns, np.ones(300 * 31), True)
    assert features.n_numbers == 1024 * n_pairs + 32 * (300 - 2 * n_pairs)


def cuts_one_by_one(values, max_bins):
    """The cuts of ascending values, from the definition: counts are capped until none exceeds the share of a bin."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    if len(starts) <= max_bins:
        return starts[1:].tolist()
    counts = np.diff(np.append(starts, len(values))).astype(float)
    capped = counts
    for _ in range(max_bins):
        share = capped.sum() / max_bins
        if capped.max() <= share * (1 + 1e-12):
            break
        capped = np.minimum(counts, share)
    bins = np.minimum((np.cumsum(capped) - capped / 2) // share, max_bins - 1)
    return starts[1:][bins[1:] > bins[:-1]].tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_bins", [2, 3, 16, 32, 255])
def test_cuts_into_bins_of_equal_numbers(max_bins, dtype):
    random = np.random.default_rng(max_bins)
    for n in (1, 2, 31, 500, 3000):
        spreads = random.normal(size=n), random.integers(0, 40, n), random.pareto(0.5, n).round(), np.zeros(n)
        for values in (*spreads, np.where(random.random(n) < 0.9, 0.0, random.normal(size=n))):
            given, cuts = np.sort(values.astype(dtype)), np.full(max_bins - 1, -1)
            found = coded.value_cuts(given, max_bins, cuts)
            assert cuts[:found].tolist() == cuts_one_by_one(given, max_bins)
    with pytest.raises(ValueError, match="cuts"):
        coded.value_cuts(given, max_bins, cuts[1:])
    assert coded.value_cuts(given[:0], max_bins, cuts) == 0
