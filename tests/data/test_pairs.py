"""ComparablePairs: who is preferred to whom, with what weight, and random parts of it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from oracle import ExplicitPairs, pairs_of
from pair_checks import written_out
from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.exceptions import DataError, NoComparablePairsError


def make_pairs(y, qid=None, **weights):
    return ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), np.asarray(y, dtype=float), **weights)


def listed(pairs):
    """Every pair as (row, row): weight, from the levels and factors."""
    rows = np.arange(pairs.n_rows) if pairs.rows is None else pairs.rows
    found = {}
    for a, b in zip(pairs.pointers[:-1], pairs.pointers[1:], strict=True):
        upper, lower = np.nonzero(pairs.levels[a:b, None] > pairs.levels[None, a:b])
        for i, j in zip(upper + a, lower + a, strict=True):
            weight = 1.0 if pairs.preferred is None else pairs.preferred[i] * pairs.other[j]
            found[int(rows[i]), int(rows[j])] = weight
    return found


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 30), st.integers(1, 5), st.integers(2, 9), st.booleans(), st.integers(0, 2**32))
def test_pairs_are_those_of_the_labels(n, n_queries, levels, weighted, seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(-2, levels, n), rng.integers(0, n_queries, n)
    y[:2], qid[:2] = (0, 1), 0
    weights = {"sample_weight": 1 + rng.random(n), "query_weight": 2.0 + qid} if weighted else {}
    pairs, oracle = make_pairs(y, qid, **weights), ExplicitPairs(y, qid, **weights)
    expected = dict(zip(zip(oracle.upper.tolist(), oracle.lower.tolist(), strict=True), oracle.weight, strict=True))
    assert listed(pairs) == pytest.approx(expected)
    assert pairs.n_pairs == oracle.n_pairs
    assert pairs.weight == pytest.approx(oracle.weight.sum())
    many = ComparablePairs.from_labels(Queries.from_qid(qid, n), y.astype(float), **weights, n_threads=3)
    np.testing.assert_array_equal(many.levels, pairs.levels)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.integers(1, 4), st.booleans(), st.integers(0, 2**32))
def test_a_sample_is_a_part_with_a_pair(n_rows, n_queries, weighted, seed):
    rng = np.random.default_rng(seed)
    n = 50
    y, qid = (rng.random(n) < 0.05).astype(int), rng.integers(0, n_queries, n)
    y[:2], qid[:2] = (0, 1), 0
    weights = {}
    if weighted:
        weights["sample_weight"] = (rng.random(n) < 0.3) * 2.0
        weights["sample_weight"][:2] = 1.0
    pairs = make_pairs(y, qid, **weights)
    sample, positions = pairs.sample(n_rows, seed=seed % 1000)
    assert sample.weight > 0
    assert (np.diff(positions) > 0).all()
    # pairs of the sample are pairs, and those of a query together weigh what they do in the whole
    whole, part = listed(pairs), listed(sample)
    factors = {}
    for (i, j), weight in part.items():
        assert (i, j) in whole
        if whole[i, j] > 0:
            factors.setdefault(qid[i], []).append(weight / whole[i, j])
    for query, factor in factors.items():
        assert factor == pytest.approx([factor[0]] * len(factor))
        total = sum(weight for (i, _), weight in whole.items() if qid[i] == query)
        assert sum(weight for (i, _), weight in part.items() if qid[i] == query) == pytest.approx(total)
    rows = sample.rows if sample.rows is not None else positions
    expected = len(pairs_of(y[rows], qid[rows])[0])
    assert sample.n_pairs == expected
    for a, b, k in zip(sample.pointers[:-1], sample.pointers[1:], sample.n_levels, strict=True):
        assert sample.levels[a:b].max() < k


def test_a_sample_of_one_large_query_keeps_its_rare_levels_and_no_others():
    """The one relevant document of a large query was mostly left out, and with it every pair."""
    y = np.zeros(10_000)
    y[77] = 1.0
    sample, positions = make_pairs(y).sample(100)
    assert 77 in positions
    assert sample.n_pairs == len(positions) - 1
    distinct = make_pairs(np.random.default_rng(0).permutation(10_000)).sample(100)[0]
    assert distinct.n_levels.tolist() == [distinct.n_rows]  # a Hessian needs memory for each level
    assert 100 <= distinct.n_rows <= 102


@pytest.mark.parametrize("seed", range(8))
def test_a_sample_of_neighbors_is_drawn_by_their_gains(seed):
    """Levels far below the best one weigh nothing: samples of these alone had no weight, a division by zero."""
    y = np.random.default_rng(0).permutation(20_000) // 5
    pairs = make_pairs(y, selection="adjacent", weighting="gain_gap")
    assert pairs.sample(500, seed)[0].weight == pytest.approx(pairs.weight)


def test_the_same_seed_gives_the_same_sample():
    pairs = make_pairs(np.arange(300) % 3, np.arange(300) // 6)
    np.testing.assert_array_equal(pairs.sample(50)[1], pairs.sample(50)[1])
    assert pairs.sample(50, seed=1)[1].tolist() != pairs.sample(50)[1].tolist()
    np.testing.assert_array_equal(pairs.sample(10_000)[1], np.arange(300))


@pytest.mark.parametrize(
    ("y", "qid", "weights", "message"),
    [
        ([1, 1, 1], [1, 1, 2], {}, "within each of the 2 queries all labels are the same"),
        ([1, 1, 1], [1, 1, 1], {}, "in the only query all labels are the same"),
        ([1, 2, 3], [1, 2, 3], {}, "each of the 3 rows is a separate query"),
        ([1], None, {}, "n_samples = 1"),
        (
            [0, 1],
            None,
            {"sample_weight": [1, 0]},
            "No comparable pair is left: 1 of the 2 rows have zero sample_weight",
        ),
        ([0, 1], None, {"query_weight": [0, 0]}, "All 1 comparable pairs have zero weight"),
    ],
)
def test_no_pair_to_learn_from(y, qid, weights, message):
    with pytest.raises(NoComparablePairsError, match=message):
        make_pairs(y, qid, **weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"sample_weight": ["a", "b", "c"]}, "sample_weight must hold numbers, but row 0"),
        ({"sample_weight": [1, 1]}, "sample_weight has 2 entries but X has 3 rows"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight is -1.0 in row 1"),
        ({"query_weight": [1, np.nan, 1]}, "query_weight is nan in row 1"),
        ({"sample_weight": [1, 1, np.inf]}, "sample_weight is inf in row 2"),
        ({"query_weight": [1, 1, 2]}, "query_weight varies within query 'b'"),
        ({"sample_weight": [1e200, 1e200, 1]}, "weights of the pairs overflow"),
    ],
)
def test_weights_that_cannot_be(weights, message):
    with pytest.raises(DataError, match=message):
        make_pairs([0, 1, 2], ["a", "b", "b"] if "varies" in message else None, **weights)


def test_a_weight_for_all_rows_may_be_a_number():
    assert make_pairs([0, 1], sample_weight=3.0).weight == 9.0


@pytest.mark.parametrize("selection", ["all", "adjacent"])
@pytest.mark.parametrize("weighting", ["uniform", "per_query", "label_gap", "gain_gap"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_labels_written_out(selection, weighting, weighted):
    rng = np.random.default_rng(0)
    y, qid = rng.integers(-2, 5, 60).astype(float), rng.integers(0, 6, 60)
    weights = {}
    if weighted:
        weights = {"sample_weight": rng.random(60), "query_weight": 1.0 + qid, "propensity": rng.uniform(0.1, 1.0, 60)}
    choice = {"selection": selection, "weighting": weighting}
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid), y, **choice, **weights)
    oracle = ExplicitPairs(y, qid, **choice, **weights)
    i, j, weight = written_out(pairs)
    order = np.lexsort((oracle.lower, oracle.upper))
    np.testing.assert_array_equal(i, oracle.upper[order])
    np.testing.assert_array_equal(j, oracle.lower[order])
    np.testing.assert_allclose(weight, oracle.weight[order], rtol=1e-12)
    assert pairs.n_pairs == len(i)
    assert pairs.weight == pytest.approx(weight.sum(), rel=1e-12)


def test_gains_far_below_the_largest_one_have_all_digits():
    y = np.array([0.3, -7.6, 900.7])
    pairs = ComparablePairs.from_labels(Queries.from_qid([0, 0, 1]), y, weighting="gain_gap")
    with np.errstate(under="ignore"):
        gains = np.exp2(np.longdouble(y) - np.longdouble(900.7))
    assert abs(pairs.weight - (gains[0] - gains[1])) <= 1e-15 * gains[0]


def test_weights_that_are_differences_have_their_parts():
    rng = np.random.default_rng(0)
    y, qid, v = rng.integers(-2, 5, 40) * 0.5, rng.integers(0, 3, 40), rng.random(40)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid), y, weighting="label_gap", sample_weight=v)
    i, j, weight = (np.concatenate(part) for part in zip(*map(pairs.explicit, range(3)), strict=True))
    first, second = (part.weights_of(i, j) for part in pairs.gain_parts)
    np.testing.assert_allclose(first - second, weight, atol=1e-15)
    assert [part.weight for part in pairs.gain_parts] == pytest.approx([first.sum(), second.sum()])
    assert ComparablePairs.from_labels(Queries.from_qid(qid), y).gain_parts == ()


@pytest.mark.parametrize("n_levels", [3, 400])
def test_a_sample_of_neighbors_has_neighbors(n_levels):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_levels, 20_000).astype(float)
    pairs = ComparablePairs.from_labels(Queries.from_qid(None, 20_000), y, selection="adjacent")
    part, positions = pairs.sample(500)
    assert part.adjacent
    assert part.n_pairs >= 500
    levels = np.unique(y[positions])
    np.testing.assert_array_equal(np.diff(levels), 1.0)  # no level between them is left out
    assert part.weight == pytest.approx(pairs.weight)


def test_neighboring_levels_are_those_of_the_query():
    y, qid = np.array([0.0, 5.0, 9.0, 0.0, 9.0]), np.array([0, 0, 0, 1, 1])
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid), y, selection="adjacent")
    np.testing.assert_array_equal(np.column_stack(written_out(pairs)[:2]), [[1, 0], [2, 1], [4, 3]])
    assert len(pairs_of(y, qid, "adjacent")[0]) == 3


@pytest.mark.parametrize("weighting", ["uniform", "per_query", "gain_gap"])
def test_comparable_pairs_are_the_same_over_fewer_rows(weighting):
    rng = np.random.default_rng(3)
    y, qid = rng.integers(0, 2, 80).astype(float), rng.integers(0, 40, 80)
    weights = {"sample_weight": rng.integers(0, 3, 80)}
    pairs = make_pairs(y, qid, weighting=weighting, **weights)
    part, rows = pairs.comparable()
    assert part.rows is None
    assert (part.n_pairs, part.n_queries) == (pairs.n_pairs, np.count_nonzero(pairs.pairs_per_query))
    assert part.n_rows == len(rows) < pairs.n_rows
    part.rows = rows
    for found, expected in zip(written_out(part), written_out(pairs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_comparable_pairs_of_a_list_have_the_rows_in_them():
    pairs = PairList.from_pairs(Queries.from_qid(None, 9), [[7, 2], [5, 4], [2, 8]])
    part, rows = pairs.comparable()
    assert part.rows is None
    np.testing.assert_array_equal(np.sort(rows), [2, 4, 5, 7, 8])
    expected = written_out(pairs)
    part.rows = rows
    for found, wanted in zip(written_out(part), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_divided_pairs_keep_their_limits():
    pairs = ComparablePairs.from_labels(Queries.from_qid([1, 1, 1, 2, 2, 3, 3]), np.array([0.0, 1, 2, 1, 0, 0, 0]))
    for name, value in (("direct_limit", 7), ("visit_limit", 0.25)):
        setattr(pairs, name, value)
        assert getattr(pairs.of_queries(np.array([0])), name) == value
        assert getattr(pairs.renumbered(), name) == value
