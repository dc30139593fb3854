"""Results as JSON holds them."""

import datetime
import json

import numpy as np

from ranksvm._util.json_values import plain


def test_values_of_numpy_become_those_of_python():
    given = {np.int64(3): (np.float32(0.5), np.bool_(True)), "a": np.array([[1, 2], [3, 4]]), np.str_("b"): None}
    found = plain(given)
    assert found == {3: [0.5, True], "a": [[1, 2], [3, 4]], "b": None}
    assert [type(key) for key in found] == [int, str, str]
    assert json.loads(json.dumps(found))["3"] == [0.5, True]


def test_numbers_that_json_cannot_hold_become_none():
    assert plain([np.nan, np.inf, np.float64(-np.inf), np.array([1.0, np.nan])]) == [None, None, None, [1.0, None]]


def test_dates_and_times_become_text():
    days = np.array(["2026-01-31", "NaT"], dtype="M8[D]")
    given = [days, days[0], np.datetime64("2026-01-31T10:00"), datetime.date(2026, 1, 31), np.timedelta64(5, "D")]
    assert plain(given) == [["2026-01-31", "NaT"], "2026-01-31", "2026-01-31T10:00", "2026-01-31", "5 days"]
    assert plain(days.astype("M8[ns]"))[0] == "2026-01-31T00:00:00.000000000"
