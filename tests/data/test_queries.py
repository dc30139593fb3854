"""Queries: any qid in any order becomes CSR pointers plus a permutation."""

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ranksvm.data import Queries
from ranksvm.exceptions import DataError, LikelyMistakeWarning


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40))
def test_groups_rows_by_query_keeping_their_order(qid):
    queries = Queries.from_qid(qid)
    assert queries.n_rows == len(qid)
    seen = list(dict.fromkeys(qid))
    assert queries.ids.tolist() == seen
    for query, query_id in enumerate(seen):
        assert queries.rows(query).tolist() == [row for row, value in enumerate(qid) if value == query_id]
    assert [seen[number] for number in queries.numbers()] == qid


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40))
def test_to_rows_undoes_to_sorted(qid):
    queries = Queries.from_qid(qid)
    values = np.arange(len(qid))
    assert queries.to_rows(queries.to_sorted(values)).tolist() == values.tolist()


@pytest.mark.parametrize(
    "qid",
    [
        ["b", "b", "a"],
        [2.5, 2.5, 1.0],
        np.array([7, 7, 1], dtype=np.uint8),
        np.array(["x", "x", 3], dtype=object),
        [(1 << 62) + 1, (1 << 62) + 1, 1 << 62],
    ],
)
def test_any_dtype_and_contiguous_rows_need_no_permutation(qid):
    queries = Queries.from_qid(qid)
    assert queries.order is None
    assert queries.pointers.tolist() == [0, 2, 3]
    assert list(queries.ids) == [qid[0], qid[2]]


def test_mixed_types_interleaved():
    queries = Queries.from_qid(np.array(["x", 3, "x", 3, None is None], dtype=object))
    assert list(queries.ids) == ["x", 3, True]
    assert queries.order.tolist() == [0, 2, 1, 3, 4]


def test_no_qid_is_one_query():
    queries = Queries.from_qid(None, 4)
    assert queries.n_queries == 1
    assert queries.rows(0).tolist() == [0, 1, 2, 3]


def test_group_sizes():
    queries = Queries.from_group([2, 0, 1], 3)
    assert queries.sizes.tolist() == [2, 0, 1]
    assert queries.ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Queries.from_qid([1, 2], 3), "qid has 2 entries but X has 3 rows"),
        (lambda: Queries.from_qid([[1, 2]]), "one-dimensional"),
        (lambda: Queries.from_qid([1.0, float("nan")]), "NaN in row 1"),
        (lambda: Queries.from_qid(np.array(["a", None], dtype=object)), "missing in row 1"),
        (lambda: Queries.from_qid(None), "number of rows is not known"),
        (lambda: Queries.from_group([1, 1], 3), "add up to 2 but X has 3"),
        (lambda: Queries.from_group([-1, 4], 3), "negative size"),
        (lambda: Queries.from_group([1.5, 1.5], 3), "whole numbers"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize("dtype", ["Int64", "string", "object"])
def test_a_missing_id_of_pandas_is_named_by_its_row(dtype):
    pandas = pytest.importorskip("pandas")
    values = ["a", pandas.NA, "a"] if dtype == "string" else [7, pandas.NA, 7]
    with pytest.raises(DataError, match=r"qid is (missing|NaN) in row 1: every row needs a query id"):
        Queries.from_qid(pandas.Series(values, dtype=dtype))
    assert Queries.from_qid(pandas.Series(values, dtype=dtype)[::2]).n_queries == 1


@pytest.mark.parametrize("ids", [[1, 1, 2, 5], ["a", "a", "b"], [-1.5, 0.0, 0.0], [False, True]])
def test_rows_sorted_by_query_are_grouped_without_sorting(ids, monkeypatch):
    monkeypatch.setattr("ranksvm.data.queries._unique", None)  # not called
    queries = Queries.from_qid(ids)
    values, sizes = np.unique(ids, return_counts=True)
    assert queries.order is None
    assert queries.ids.tolist() == values.tolist()
    assert queries.sizes.tolist() == sizes.tolist()


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ([2, np.inf], "group is inf in row 1"),
        ([2, None], "group is None in row 1"),
        ([2, np.nan], "group is nan in row 1"),
        ([2, 2**62], "group has the size 4.6.*e.18, but X has 4 rows"),
        ([10**400, 2], "too large for float64"),
        ([1e18, 2], "group has the size 1e.18, but X has 4 rows"),
        ([2, 2.5], "whole numbers"),
        ([5, -1], "negative size: -1"),
        ([[2], [1, 1]], "one value for each row"),
        ({"a": 2}, "got a dict"),
        (["a", 2], "row 0 .* is 'a'"),
    ],
)
def test_groups_that_cannot_be(group, message):
    with pytest.raises(DataError, match=message):
        Queries.from_group(group, 4)


@pytest.mark.parametrize("qid", [[[1], [2, 3]], [{}, {"a": 1}, {}], [[1, 2], "a"]])
def test_query_ids_that_cannot_be(qid):
    with pytest.raises(DataError, match=r"qid must hold one value for|query ids must be"):
        Queries.from_qid(qid)


@pytest.mark.parametrize("ids", [[1, "1", "b"], ["3", 3.0], np.array(["x", "7", np.int64(7)], dtype=object)])
def test_a_number_and_its_text_are_probably_one_id(ids):
    with pytest.warns(
        LikelyMistakeWarning, match=r"qid has both the number .* and the text '\d', which are two"
    ) as shown:
        assert Queries.from_qid(ids).n_queries == len(ids)
    assert shown[0].filename == __file__


@pytest.mark.parametrize("ids", [[1, "2", "b"], ["a", "b"], [1, 2.0], [b"1", "1", 2]])
def test_other_ids_of_mixed_types_are_no_mistake(ids):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Queries.from_qid(ids).n_queries == len(ids)


@pytest.mark.filterwarnings("ignore::ranksvm.exceptions.LikelyMistakeWarning")
def test_ids_of_mixed_types_stay_apart():
    queries = Queries.from_qid([1, "1", 1, "1", "b"])
    assert queries.ids.tolist() == [1, "1", "b"]
    assert queries.sizes.tolist() == [2, 2, 1]
    large = [2**63, 2**63 + 1, -1, 2**63]
    assert Queries.from_qid(large).ids.tolist() == [2**63, 2**63 + 1, -1]
    assert Queries.from_qid([2**53, 2**53 + 1, 0.5]).n_queries == 3
    assert Queries.from_qid([1, 1.0, 2]).n_queries == 2
    assert Queries.from_qid((b"1", "1")).n_queries == 2
    assert Queries.from_qid(["a", np.str_("a")]).n_queries == 1


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        (np.array(["2024-01-01", "NaT", "2024-01-02"], dtype="datetime64[ns]"), "qid is NaT in row 1"),
        (np.array([3, 3, "NaT"], dtype="timedelta64[s]"), "qid is NaT in row 2"),
        (np.ma.array([1, 1, 2], mask=[False, True, False]), "qid is missing in row 1"),
        ([1.0, float("nan"), 2], "qid is missing in row 1"),
        (np.array([1.0, np.nan, 2]), "qid is NaN in row 1"),
        (["a", None, "b"], "qid is missing in row 1"),
        ([1, "1", None], "qid is missing in row 2"),
    ],
)
def test_missing_ids_are_refused_with_their_row(qid, message):
    with pytest.raises(DataError, match=message):
        Queries.from_qid(qid)


def test_keys_of_dates_are_dates():
    days = np.array(["2024-01-02", "2024-01-01", "2024-01-02"], dtype="datetime64[ns]")
    queries = Queries.from_qid(days)
    assert queries.keys == [days[0], days[1]]
    assert all(isinstance(key, np.datetime64) for key in queries.keys)
    assert Queries.from_qid([4, 4, 2]).keys == [4, 2]
    assert queries.number(days[1]) == 1
