"""Pairs from clicks against the rules written out, impression by impression."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import ranksvm
from ranksvm.data import pairs_from_clicks
from ranksvm.exceptions import DataError, OptionError

RULES = ("shown", "shown_all", "skip_above", "last_click_skip_above")


def rules_written_out(qid, rank, clicked, rule, click_time=None):
    """Every impression by itself, every click by itself, every document above it by itself."""
    pairs = []
    for impression in dict.fromkeys(qid):
        rows = sorted((row for row in range(len(qid)) if qid[row] == impression), key=lambda row: rank[row])
        clicks = [row for row in rows if clicked[row]]
        if rule == "last_click_skip_above" and clicks:
            clicks = [max(clicks, key=lambda row: (0 if click_time is None else click_time[row], rank[row]))]
        for click in clicks:
            for row in rows:
                skipped = not clicked[row] and (rule == "shown" or rank[row] < rank[click])
                if row != click and (rule == "shown_all" or skipped):
                    pairs.append([click, row])
    return pairs


@st.composite
def logs(draw):
    n_rows = draw(st.integers(0, 30))
    qid = draw(st.lists(st.integers(0, 5), min_size=n_rows, max_size=n_rows))
    rank = draw(st.permutations(range(-3, n_rows - 3)))
    if draw(st.booleans()):  # impressions one after the other, each from its top
        qid, rank = sorted(qid), sorted(rank)
    clicked = draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    time = draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    return qid, rank, clicked, time


@given(log=logs(), rule=st.sampled_from(RULES))
def test_equals_the_rules_written_out(log, rule):
    qid, rank, clicked, _ = log
    pairs = pairs_from_clicks(qid, rank, clicked, rule=rule)
    assert pairs.dtype == np.int64
    assert pairs.shape == (len(pairs), 2)
    assert pairs.flags.c_contiguous
    assert pairs.tolist() == rules_written_out(qid, rank, clicked, rule)


@given(log=logs(), rule=st.sampled_from(RULES))
def test_one_impression_needs_no_id(log, rule):
    qid, rank, clicked, _ = log
    pairs = pairs_from_clicks(None, rank, clicked, rule=rule)
    assert pairs.dtype == np.int64
    assert pairs.flags.c_contiguous
    assert pairs.tolist() == rules_written_out([0] * len(qid), rank, clicked, rule)


@given(log=logs())
def test_the_last_click_is_the_latest_where_times_are_known(log):
    qid, rank, clicked, time = log
    expected = rules_written_out(qid, rank, clicked, "last_click_skip_above", time)
    for times in (time, np.array(time, dtype="datetime64[s]"), np.where(clicked, time, np.nan)):
        pairs = pairs_from_clicks(qid, rank, clicked, rule="last_click_skip_above", click_time=times)
        assert pairs.tolist() == expected


@given(log=logs(), rule=st.sampled_from(RULES), seed=st.integers(0, 99))
def test_rows_may_come_in_any_order(log, rule, seed):
    qid, rank, clicked, _ = (np.array(part, dtype=np.int64) for part in log)
    order = np.random.default_rng(seed).permutation(len(qid))
    shuffled = pairs_from_clicks(qid[order], rank[order], clicked[order], rule=rule)
    pairs = pairs_from_clicks(qid, rank, clicked, rule=rule)
    assert sorted(order[shuffled].tolist()) == sorted(pairs.tolist())


@given(log=logs(), rule=st.sampled_from(RULES))
def test_only_the_order_of_ranks_and_the_names_of_impressions_count(log, rule):
    qid, rank, clicked, _ = log
    pairs = pairs_from_clicks(qid, rank, clicked, rule=rule)
    stretched = np.exp(np.array(rank) / 8.0).astype(np.float32)
    names = np.array([f"user {query} at noon" for query in qid], dtype=object)
    assert np.array_equal(pairs_from_clicks(names, stretched, np.array(clicked, dtype=np.float32), rule=rule), pairs)


def test_the_example_of_joachims():
    clicked = np.zeros(10, dtype=bool)
    clicked[[0, 2, 6]] = True
    first = pairs_from_clicks(None, np.arange(1, 11), clicked, rule="skip_above")
    assert (first + 1).tolist() == [[3, 2], [7, 2], [7, 4], [7, 5], [7, 6]]
    last = pairs_from_clicks(None, np.arange(1, 11), clicked, rule="last_click_skip_above")
    assert (last + 1).tolist() == [[7, 2], [7, 4], [7, 5], [7, 6]]
    # the third link was clicked after the seventh
    times = np.array([1, 0, 9, 0, 0, 0, 4, 0, 0, 0])
    latest = pairs_from_clicks(None, np.arange(1, 11), clicked, rule="last_click_skip_above", click_time=times)
    assert (latest + 1).tolist() == [[3, 2]]


@pytest.mark.parametrize(
    ("clicked", "rule"),
    [
        *(([True, True, False, False], rule) for rule in RULES[2:]),
        *((clicked, rule) for rule in RULES for clicked in ([False] * 4, [])),
        ([True] * 3, "shown"),
    ],
)
def test_clicks_that_prefer_nothing_give_no_pairs(clicked, rule):
    pairs = pairs_from_clicks([1] * len(clicked), range(len(clicked)), clicked, rule=rule)
    assert pairs.shape == (0, 2)
    assert pairs.dtype == np.int64


def test_large_integer_ranks_keep_all_their_digits():
    base = 1 << 60
    pairs = pairs_from_clicks([1, 1], [base + 1, base], [True, False], rule="skip_above")
    assert pairs.tolist() == [[0, 1]]


def test_columns_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    log = pandas.DataFrame(
        {"session": ["b", "a", "b", "a"], "place": [2, 1, 1, 2], "click": [1, 0, 0, 1]}, index=[9, 8, 7, 6]
    )
    assert pairs_from_clicks(log.session, log.place, log.click).tolist() == [[0, 2], [3, 1]]
    nullable = log.astype({"place": "Int64", "click": "boolean"})
    assert pairs_from_clicks(nullable.session, nullable.place, nullable.click).tolist() == [[0, 2], [3, 1]]
    missing = pandas.array([True, None, False, True], dtype="boolean")
    with pytest.raises(DataError, match="clicked is <NA> in row 1"):
        pairs_from_clicks(log.session, log.place, missing)


def test_is_a_name_of_the_package():
    assert ranksvm.pairs_from_clicks is pairs_from_clicks


@pytest.mark.parametrize(
    ("log", "options", "error", "message"),
    [
        (([1, 1], [1, 2], [1, 0]), {"rule": "skip"}, OptionError, "rule must be one of 'shown', 'shown_all', 'skip"),
        (([1], [1], [1]), {"click_time": [3]}, OptionError, "rule='shown' does not use it"),
        (([1, 1, 1], [1, 2], [1, 0]), {}, DataError, "qid has 3 entries"),
        (([1, 1], [1, 2, 3], [1, 0]), {}, DataError, "rank has 3 entries but clicked has 2"),
        (([1, 1], [[1, 2]], [1, 0]), {}, DataError, r"rank must be one-dimensional, got shape \(1, 2\)"),
        (([1, 1], [1, 2], [[1, 0]]), {}, DataError, "clicked must be one-dimensional"),
        (([1, 1], [1, 2], [0, 2]), {}, DataError, "clicked is 2 in row 1.*pass clicks > 0"),
        (([1, 1], [1, 2], [0.5, 0]), {}, DataError, "clicked is 0.5 in row 0"),
        (([1, 1], [1, 2], [1, np.nan]), {}, DataError, "clicked is nan in row 1"),
        (([1, 1], [1, 2], ["yes", "no"]), {}, DataError, "clicked is yes in row 0"),
        (([1, 1], [1, 2], np.array([True, None])), {}, DataError, "clicked is None in row 1"),
        (([1, 1], [1, np.inf], [1, 0]), {}, DataError, "rank is inf in row 1"),
        (([1, 1], ["top", "bottom"], [1, 0]), {}, DataError, "rank must be numbers"),
        (([4, 5, 4], [2, 2, 2.0], [1, 0, 0]), {}, DataError, "Rows 0 and 2 of .* rank 2.0: .*id of the impression"),
        ((["a", "a"], [7, 7], [1, 0]), {}, DataError, "Rows 0 and 1 of impression 'a' .* rank 7: "),
    ],
)
def test_what_cannot_be_is_named(log, options, error, message):
    with pytest.raises(error, match=message):
        pairs_from_clicks(*log, **options)


@pytest.mark.parametrize(
    ("click_time", "message"),
    [
        ([1, 2], "click_time has 2 entries but clicked has 3"),
        ([1.0, 2.0, np.nan], "click_time is nan in row 2, which was clicked on"),
        (np.array(["2020-01-01", "2020-01-01", "NaT"], dtype="datetime64[D]"), "click_time is NaT in row 2"),
        (["noon", "one", "two"], "click_time must be numbers or datetime64"),
    ],
)
def test_what_click_times_cannot_be_is_named(click_time, message):
    with pytest.raises(DataError, match=message):
        pairs_from_clicks([1, 1, 1], [1, 2, 3], [1, 0, 1], rule="last_click_skip_above", click_time=click_time)
