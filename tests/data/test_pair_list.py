"""Pairs that a user lists."""

import numpy as np
import pytest

from pair_checks import written_out
from ranksvm.data import PairList, Queries
from ranksvm.exceptions import DataError


def random_pairs(seed, n_rows=200, n_pairs=150):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n_rows, (n_pairs, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]], rng


@pytest.mark.parametrize("seed", range(3))
def test_a_list_is_grouped_into_components_and_loses_nothing(seed):
    given, rng = random_pairs(seed)
    weight = rng.random(len(given))
    pairs = PairList.from_pairs(Queries.from_qid(None, 200), given, pair_weight=weight)
    i, j, found = written_out(pairs)
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
    i, j, _ = written_out(part)
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
