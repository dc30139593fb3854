"""Splitters never divide a query, and work wherever scikit-learn takes a splitter."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score

import ranksvm
from ranksvm import QueryKFold, QueryShuffleSplit
from ranksvm.exceptions import DataError, OptionError

qids = st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=60).filter(lambda ids: len(set(ids)) >= 2)


@given(qids, st.integers(2, 4), st.booleans())
def test_every_query_is_tested_once(ids, n_splits, shuffle):
    ids = np.array(ids)
    n_queries = len(set(ids.tolist()))
    cv = QueryKFold(min(n_splits, n_queries), shuffle=shuffle, random_state=0 if shuffle else None)
    tested, sizes = [], []
    for train, test in cv.split(np.zeros((len(ids), 1)), qid=ids):
        assert sorted([*train, *test]) == list(range(len(ids)))
        assert np.all(np.diff(test) > 0)
        assert not set(ids[train]) & set(ids[test])
        tested += test.tolist()
        sizes.append(len(set(ids[test].tolist())))
    assert sorted(tested) == list(range(len(ids)))
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == cv.get_n_splits()


@given(qids, st.integers(0, 5))
def test_random_splits_have_the_size_asked_for(ids, seed):
    ids = np.array(ids)
    n_queries = len(set(ids.tolist()))
    for test_size, n_test in ((1, 1), (0.3, int(np.ceil(0.3 * n_queries)))):
        if n_test == n_queries:
            continue
        splits = list(QueryShuffleSplit(3, test_size=test_size, random_state=seed).split(ids[:, None], qid=ids))
        assert len(splits) == 3
        for train, test in splits:
            assert len(set(ids[test].tolist())) == n_test
            assert len(train) + len(test) == len(ids)
            assert not set(ids[train]) & set(ids[test])


def test_blocks_in_order_of_appearance_unless_shuffled():
    ids = np.repeat(np.arange(12), 3)
    first = next(iter(QueryKFold(4).split(ids, qid=ids)))[1]
    assert first.tolist() == list(range(9))
    again = [
        [test.tolist() for _, test in QueryKFold(4, shuffle=True, random_state=seed).split(ids, qid=ids)]
        for seed in (0, 0, 1)
    ]
    assert again[0] == again[1] != again[2]


def test_qid_may_come_as_groups_or_as_a_column():
    frame = pd.DataFrame({"query": list("aabbc"), "x": range(5)})
    expected = [test.tolist() for _, test in QueryKFold(3).split(frame, qid=frame["query"])]
    assert expected == [[0, 1], [2, 3], [4]]
    assert [test.tolist() for _, test in QueryKFold(3).split(frame, None, frame["query"])] == expected
    assert [test.tolist() for _, test in QueryKFold(3).split(frame, qid="query")] == expected


def test_in_scikit_learn_with_and_without_routing():
    rng = np.random.default_rng(0)
    X, y, ids = rng.normal(size=(40, 2)), rng.normal(size=40), rng.integers(0, 8, 40)
    without = cross_val_score(Ridge(), X, y, groups=ids, cv=QueryKFold(4))
    with sklearn.config_context(enable_metadata_routing=True):
        with_routing = cross_val_score(Ridge(), X, y, params={"qid": ids}, cv=QueryKFold(4))
    np.testing.assert_array_equal(without, with_routing)


def test_repr_and_public_names():
    assert repr(QueryKFold(3)) == "QueryKFold(n_splits=3, random_state=None, shuffle=False)"
    assert "QueryShuffleSplit" in ranksvm.__all__


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: QueryKFold(1), "n_splits must be a whole number from 2, got 1"),
        (lambda: QueryKFold(2.5), "n_splits must be"),
        (lambda: QueryKFold(3, random_state=0), "no effect without shuffle=True"),
        (lambda: QueryShuffleSplit(0), "n_splits must be a whole number from 1"),
        (lambda: QueryShuffleSplit(test_size=1.0), "test_size must be"),
        (lambda: QueryShuffleSplit(test_size=0), "test_size must be"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(OptionError, match=message):
        make()


@pytest.mark.parametrize(
    "splitter", [QueryKFold(2, shuffle=True, random_state="x"), QueryShuffleSplit(random_state=-1)]
)
def test_bad_seeds(splitter):
    with pytest.raises(OptionError, match="random_state must be None, a whole number from 0"):
        next(splitter.split(np.ones((4, 1)), qid=[1, 2, 3, 4]))


@pytest.mark.parametrize(
    ("cv", "ids", "message"),
    [
        (QueryKFold(3), [1, 1, 2], "n_splits is 3 but there are only 2 queries"),
        (QueryKFold(3), [1, 1, 1], "n_splits is 3 but there is only 1 query"),
        (QueryShuffleSplit(test_size=2), [1, 1, 2], "leaves no query of 2 to train on"),
        (QueryKFold(2), None, "needs the query of each row"),
        (QueryKFold(2), [1, 2], "qid has 2 entries but X has 3 rows"),
    ],
)
def test_bad_data(cv, ids, message):
    with pytest.raises(DataError, match=message):
        next(cv.split(np.zeros((3, 1)), qid=ids))
