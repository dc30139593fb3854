"""Levels and pair counts, and the empty ranges that the callers may hand over."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ranksvm._compiled import sweep


def compressed(y, pointers):
    levels = np.full(len(y), -1, dtype=np.int32)
    n_levels = np.full(len(pointers) - 1, -1, dtype=np.int32)
    sweep.compress_levels(
        np.array(pointers, dtype=np.int64), 0, len(n_levels), np.array(y, dtype=float), levels, n_levels
    )
    return levels, n_levels


LABELS = st.one_of(st.integers(0, 4), st.integers(-3, 70), st.floats(-1e300, 1e300), st.sampled_from([0.0, -0.0, 63.0]))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(LABELS, max_size=20), min_size=1, max_size=5).filter(any))
def test_levels_are_ranks_among_the_distinct_labels_of_the_query(queries):
    pointers = np.concatenate(([0], np.cumsum([len(query) for query in queries])))
    levels, n_levels = compressed([label for query in queries for label in query], pointers)
    for query, first, last, k in zip(queries, pointers[:-1], pointers[1:], n_levels, strict=True):
        distinct, ranks = np.unique(np.array(query, dtype=float), return_inverse=True)
        assert k == len(distinct)
        np.testing.assert_array_equal(levels[first:last], ranks)


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_are_counted_query_by_query(weighted):
    rng = np.random.default_rng(0)
    pointers = np.array([0, 5, 5, 6, 40], dtype=np.int64)
    y = rng.integers(0, 6, 40).astype(float)
    levels, n_levels = compressed(y, pointers)
    a, b = (rng.random(40), rng.random(40)) if weighted else (None, None)
    n_pairs, weight = np.empty(4), np.empty(4)
    arrays = sweep.PairArrays(pointers, levels, n_levels, a, b, None, False, 31)
    sweep.count_pairs(arrays, 0, 4, n_pairs, weight)
    a, b = (np.ones(40), np.ones(40)) if a is None else (a, b)
    for q in range(4):
        part = slice(pointers[q], pointers[q + 1])
        above = y[part][:, None] > y[part][None, :]
        assert n_pairs[q] == above.sum()
        assert weight[q] == pytest.approx((above * np.outer(a[part], b[part])).sum())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(LABELS, max_size=20), min_size=1, max_size=5).filter(any), st.sampled_from([-1.0, 0.05, 0.2]))
def test_documents_are_put_in_label_order_and_queries_of_many_pairs_are_swept(queries, visit_limit):
    y = np.array([label for query in queries for label in query], dtype=float)
    pointers = np.concatenate(([0], np.cumsum([len(query) for query in queries]))).astype(np.int64)
    levels, n_levels = compressed(y, pointers)
    arrays = sweep.PairArrays(pointers, levels, n_levels, None, None, None, False, 31)
    n_pairs, weight = np.empty(len(queries)), np.empty(len(queries))
    sweep.count_pairs(arrays, 0, len(queries), n_pairs, weight)
    by_level, visited = np.empty(len(y), dtype=np.int32), np.empty(len(queries), dtype=np.uint8)
    n_swept = arrays.choose(n_pairs, visit_limit, by_level, visited)
    for first, last in pairwise(pointers):
        np.testing.assert_array_equal(by_level[first:last], np.argsort(y[first:last], kind="stable"))
    limit = visit_limit * (14 + np.minimum(n_levels, 40))
    np.testing.assert_array_equal(visited, n_pairs <= limit * np.diff(pointers))
    assert n_swept == np.sum((n_levels > 1) & (visited == 0))


def test_ranges_without_rows_do_nothing():
    none = np.empty(0)
    pointers, nothing = np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int32)
    arrays = sweep.PairArrays(pointers, nothing, np.zeros(1, dtype=np.int32), None, None, None, False, 31)
    assert arrays.choose(np.zeros(1), 1.0, nothing, np.empty(1, dtype=np.uint8)) == 0
    state = sweep.StateArrays(nothing, nothing, nothing, none, none, True)
    for operator in (
        sweep.squared_hinge(arrays, state, 1.0),
        sweep.huber(arrays, state, 1.0, True),
        sweep.laplacian(arrays, state, 1.0),
    ):
        assert operator(0, 1, none, none) == (0.0, 0.0, 0.0)
    assert sweep.laplacian(arrays, state, 1.0).rows(0, 1, np.empty((0, 3)), np.empty((0, 3))) == 0
    sweep.compress_levels(pointers, 0, 0, none, nothing, np.zeros(1, dtype=np.int32))
    sweep.count_pairs(arrays, 0, 0, np.zeros(1), np.zeros(1))
