"""Results as JSON holds them."""

import json

import numpy as np

from ranksvm._plain import plain


def test_values_of_numpy_become_those_of_python():
    given = {np.int64(3): (np.float32(0.5), np.bool_(True)), "a": np.array([[1, 2], [3, 4]]), np.str_("b"): None}
    found = plain(given)
    assert found == {3: [0.5, True], "a": [[1, 2], [3, 4]], "b": None}
    assert [type(key) for key in found] == [int, str, str]
    assert json.loads(json.dumps(found))["3"] == [0.5, True]


def test_numbers_that_json_cannot_hold_become_none():
    assert plain([np.nan, np.inf, np.float64(-np.inf), np.array([1.0, np.nan])]) == [None, None, None, [1.0, None]]
