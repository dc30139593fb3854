"""Checks that many places make."""

import numpy as np
import pytest

from ranksvm import Preferences, RankingData
from ranksvm._util.checks import check_one_per_row, check_unmasked, is_integer, is_number
from ranksvm.exceptions import DataError


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers(value):
    assert is_integer(value)
    assert is_integer(value, 3)
    assert not is_integer(value, 4)
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float64(3), "3", None, [3]])
def test_what_is_no_whole_number(value):
    assert not is_integer(value)
    assert is_number(value) == (type(value) in (float, np.float64))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**400, np.uint64(2**63)])
def test_integers_of_more_than_64_bits_are_not_taken(value):
    assert not is_integer(value)
    assert not is_integer(value, 1)
    assert is_integer(2**63 - 1, 1)


@pytest.mark.parametrize("values", [[1, 2], np.zeros(2), ("a", "b")])
def test_one_value_per_row(values):
    check_one_per_row("y", values, 2)
    with pytest.raises(DataError, match=r"^y has 2 entries but clicked has 3 rows: they must agree\.$"):
        check_one_per_row("y", values, 3, "clicked")


@pytest.mark.parametrize("values", [np.zeros((2, 1)), np.zeros(())])
def test_shapes_are_named(values):
    with pytest.raises(DataError, match=r"y has shape \(.*\) but X has 2 rows"):
        check_one_per_row("y", values, 2)


def test_masked_values_are_refused():
    for values in ([1.0], np.ones(1), np.ma.array([1.0]), np.ma.array([1.0], mask=[False])):
        check_unmasked("X", values)
    masked = np.ma.array([[1.0]], mask=[[True]])
    for take in (lambda: RankingData(masked, [0]), lambda: RankingData([[1.0]], masked[0])):
        with pytest.raises(DataError, match="is an array with masked values"):
            take()
    with pytest.raises(DataError, match="chosen is an array with masked values"):
        Preferences(masked, [[1.0]])
