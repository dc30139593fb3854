"""Pairs written out, and what weighs and selects the pairs that labels imply."""

import numpy as np
import pytest

from oracle import ExplicitPairs, pairs_of
from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.exceptions import DataError


def listed(pairs):
    """(preferred row, other row, weight) of every pair, query by query, sorted."""
    rows = pairs.rows if pairs.rows is not None else np.arange(pairs.n_rows)
    found = [pairs.explicit(query) for query in range(pairs.n_queries)]
    i, j, weight = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.lexsort((weight, rows[j], rows[i]))
    return rows[i][order], rows[j][order], weight[order]


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
    i, j, weight = listed(pairs)
    order = np.lexsort((oracle.lower, oracle.upper))
    np.testing.assert_array_equal(i, oracle.upper[order])
    np.testing.assert_array_equal(j, oracle.lower[order])
    np.testing.assert_allclose(weight, oracle.weight[order], rtol=1e-12)
    assert pairs.n_pairs == len(i)
    assert pairs.weight == pytest.approx(weight.sum(), rel=1e-12)


def random_pairs(seed, n_rows=200, n_pairs=150):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n_rows, (n_pairs, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]], rng


@pytest.mark.parametrize("seed", range(3))
def test_a_list_is_grouped_into_components_and_loses_nothing(seed):
    given, rng = random_pairs(seed)
    weight = rng.random(len(given))
    pairs = PairList.from_pairs(Queries.from_qid(None, 200), given, pair_weight=weight)
    i, j, found = listed(pairs)
    order = np.lexsort((weight, given[:, 1], given[:, 0]))
    np.testing.assert_array_equal(np.column_stack([i, j]), given[order])
    np.testing.assert_allclose(found, weight[order], rtol=1e-15)
    assert pairs.n_rows == len(np.unique(given))  # rows in no pair are never read
    assert pairs.n_queries > 1
    component = np.empty(200, dtype=int)
    component[pairs.rows] = np.repeat(np.arange(pairs.n_queries), np.diff(pairs.pointers))
    np.testing.assert_array_equal(component[given[:, 0]], component[given[:, 1]])
    assert pairs.weight_per_query.sum() == pytest.approx(pairs.weight)
    assert pairs.pairs_per_query.sum() == pairs.n_pairs == len(given)


@pytest.mark.parametrize("one_component", [False, True])
def test_a_sample_of_a_list_is_part_of_it(one_component):
    given, _ = random_pairs(5, n_rows=40 if one_component else 20_000, n_pairs=9000)
    pairs = PairList.from_pairs(Queries.from_qid(None, 20_000), given)
    part, positions = pairs.sample(30 if one_component else 3000)
    assert 0 < part.n_pairs < pairs.n_pairs
    np.testing.assert_array_equal(pairs.rows[positions], part.rows)
    original = {tuple(pair) for pair in given.tolist()}
    i, j, _ = listed(part)
    assert set(zip(i.tolist(), j.tolist(), strict=True)) <= original
    if one_component:
        assert part.weight == pytest.approx(pairs.weight)


def test_a_sample_of_a_list_has_as_many_pairs_as_weigh_beside_the_rest():
    """Beside one of 1e300 the share of a pair of 1e-100 is 0: more were asked for than could be drawn."""
    given, _ = random_pairs(6, n_rows=40, n_pairs=9000)
    weight = np.full(len(given), 1e-100)
    weight[7] = 1e300
    part, _ = PairList.from_pairs(Queries.from_qid(None, 40), given, pair_weight=weight).sample(30)
    assert (part.n_pairs, part.weight) == (1, 1e300)


def test_a_pair_given_256_times_still_joins_its_rows():
    """Added up in 8 bits, as many edges are none."""
    pairs = PairList.from_pairs(Queries.from_qid(None, 4), np.repeat([[0, 1], [2, 3]], [256, 1], axis=0))
    assert pairs.pairs_per_query.tolist() == [256, 1]


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_list_whose_weights_overflow_is_refused():
    with pytest.raises(DataError, match="weights of the pairs overflow"):
        PairList.from_pairs(Queries.from_qid(None, 4), [[0, 1], [2, 3]], pair_weight=[1e308, 1e308])


@pytest.mark.parametrize("n_levels", [3, 400])
def test_a_sample_of_neighbours_has_neighbours(n_levels):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_levels, 20_000).astype(float)
    pairs = ComparablePairs.from_labels(Queries.from_qid(None, 20_000), y, selection="adjacent")
    part, positions = pairs.sample(500)
    assert part.adjacent
    assert part.n_pairs >= 500
    levels = np.unique(y[positions])
    np.testing.assert_array_equal(np.diff(levels), 1.0)  # no level between them is left out
    assert part.weight == pytest.approx(pairs.weight)


def test_neighbouring_levels_are_those_of_the_query():
    y, qid = np.array([0.0, 5.0, 9.0, 0.0, 9.0]), np.array([0, 0, 0, 1, 1])
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid), y, selection="adjacent")
    np.testing.assert_array_equal(np.column_stack(listed(pairs)[:2]), [[1, 0], [2, 1], [4, 3]])
    assert len(pairs_of(y, qid, "adjacent")[0]) == 3
