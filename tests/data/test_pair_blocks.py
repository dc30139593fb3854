"""The blocks of pairs against pairs written out."""

import numpy as np
import pytest

from ranksvm import Queries
from ranksvm.data import ComparablePairs, PairBlocks


def make_blocks(y, qid):
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), np.asarray(y, dtype=float))
    return pairs, PairBlocks(pairs)


@pytest.mark.parametrize("n_levels", [2, 3, 30])
@pytest.mark.parametrize("seed", range(4))
def test_entries_are_the_pairs(n_levels, seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(0, n_levels, 50), rng.integers(0, 6, 50)
    y[qid == 3] = 1  # a query without pairs
    y[:2], qid[:2] = (0, 1), 0
    pairs, blocks = make_blocks(y, qid)
    assert blocks.n_queries == pairs.n_queries == len(blocks.offsets) - 1
    assert blocks.n_documents == len(y)
    entries = np.arange(blocks.n_entries)
    for query in range(blocks.n_queries):
        preferred, other = blocks.documents(query)
        i, j, _ = pairs.explicit(query)
        assert sorted(set(i)) == sorted(preferred)
        assert sorted(set(j)) == sorted(other)
        assert (np.diff(pairs.levels[preferred]) <= 0).all()
        assert (np.diff(pairs.levels[other]) <= 0).all()
        assert blocks.shape(query) == blocks.block(entries, query).shape == (len(preferred), len(other))
        is_pair = blocks.is_pair(query)
        np.testing.assert_array_equal(is_pair, pairs.levels[preferred][:, np.newaxis] > pairs.levels[other])
        assert is_pair.sum() == len(i)
    assert blocks.n_entries == sum(np.prod(blocks.shape(query)) for query in range(blocks.n_queries))
    if n_levels == 2:
        assert blocks.n_entries == pairs.n_pairs


def test_of_two_levels_a_block_is_all_pairs():
    _, blocks = make_blocks([1, 0, 0, 1, 0], [7, 7, 7, 7, 7])
    assert blocks.shape(0) == (2, 3)
    assert blocks.is_pair(0).all()
    np.testing.assert_array_equal(blocks.documents(0)[0], [0, 3])
