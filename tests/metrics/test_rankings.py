"""Rankings against NumPy's sorts and sums, on lists long and short."""

import numpy as np
import pytest

from ranksvm.data import Queries
from ranksvm.metrics import CONVENTIONS
from ranksvm.metrics.rankings import Rankings


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    qid = rng.permutation(np.repeat(np.arange(40), rng.integers(1, 200, 40)))
    return rng.integers(0, 5, len(qid)).astype(float), rng.integers(0, 50, len(qid)).astype(float), qid


@pytest.mark.parametrize("convention", ["default", "letor", "trec"])
def test_order_is_a_stable_sort(problem, convention):
    y, scores, qid = problem
    queries = Queries.from_qid(qid)
    docid = np.random.default_rng(0).permutation(len(y)).astype(str)
    rankings = Rankings(y, scores, queries, CONVENTIONS[convention], 4.0, docid)
    within_ties = np.arange(len(y)) if convention != "trec" else -np.unique(docid, return_inverse=True)[1]
    order = np.lexsort((within_ties, -scores, queries.numbers()))
    np.testing.assert_array_equal(rankings.labels, y[order])
    position = np.concatenate([np.arange(1, size + 1) for size in queries.sizes])
    np.testing.assert_array_equal(rankings.rank, position)
    same = (np.diff(scores[order], prepend=np.nan) == 0) & (position > 1)
    np.testing.assert_array_equal(rankings.equal_scores, same)
    assert rankings.tied.any() == (convention == "default")


def test_sums_by_query(problem):
    y, scores, qid = problem
    queries = Queries.from_qid(qid)
    rankings = Rankings(y, scores, queries, CONVENTIONS["default"], 4.0)
    values = np.random.default_rng(1).normal(size=len(y))
    lists = np.split(values, queries.pointers[1:-1])
    np.testing.assert_allclose(rankings.sums(values), [part.sum() for part in lists], atol=1e-12)
    np.testing.assert_allclose(rankings.sums(values, 7), [part[:7].sum() for part in lists], atol=1e-12)
    np.testing.assert_allclose(rankings.running_sums(values), np.concatenate([np.cumsum(p) for p in lists]), atol=1e-12)
    best_first = [np.sort(part)[::-1] for part in np.split(rankings.gains, queries.pointers[1:-1])]
    np.testing.assert_array_equal(rankings.ideal_gains, np.concatenate(best_first))


def test_mean_of_ties(problem):
    y, scores, qid = problem
    queries = Queries.from_qid(qid)
    rankings = Rankings(y, scores, queries, CONVENTIONS["default"], 4.0)
    order = np.lexsort((-scores, queries.numbers()))
    expected = [y[(qid == qid[row]) & (scores == scores[row])].mean() for row in order]
    np.testing.assert_allclose(rankings.averaged(rankings.labels), expected)
