"""Features have one label wherever they are shown: the name, or the number of LETOR files."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from ranksvm import RankSVM, make_ranking
from ranksvm._util.text import (
    compared,
    feature_label,
    feature_labels,
    isolated,
    place_in_words,
    plain,
    told_apart,
    weight_columns,
)
from ranksvm.analysis import weight_intervals
from ranksvm.exceptions import DataError
from ranksvm.plotting import WeightsDisplay


def test_labels():
    assert feature_label(0) == "f1"
    assert feature_labels(3) == ["f1", "f2", "f3"]
    assert feature_labels(2, np.array(["bm25", "links"])) == ["bm25", "links"]
    assert place_in_words(3, 40) == "X[3, 40] (feature f41)"
    assert place_in_words(3, 1, ["bm25", "links"]) == "X[3, 1] (feature links)"


def test_weights_of_features_in_very_different_units_are_not_shown_as_0():
    assert weight_columns([0.7, 0.3], [1.5, -0.25], [2.0, 0.0]) == [["1.5000", "-0.2500"], ["2.0000", "0.0000"]]
    assert weight_columns([0.7, 0.3], [1.5, 2.5e-7], [2.0, 3e-7]) == [["1.5", "2.5e-07"], ["2", "3e-07"]]
    # a feature that hardly matters
    assert weight_columns([1.0, 1e-6], [1.5, 2.5e-7]) == [["1.5000", "0.0000"]]
    # each of many features has a small share
    assert weight_columns([1.0] * 2000, [1e6] * 1999 + [1e-6])[0][-1] == "1e-06"
    assert weight_columns([], []) == []


@pytest.mark.parametrize("names", [None, ["bm25", "length", "clicks", "links"]])
def test_every_table_calls_a_feature_alike(names):
    data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    X = data.X if names is None else pd.DataFrame(data.X, columns=names)
    labels = feature_labels(4, names)
    ranker = RankSVM(C=0.1).fit(X, data.y, qid=data.qid)
    largest = [labels[column] for column in np.argsort(-np.abs(ranker.coef_))]
    assert list(ranker.coef_table()["feature"]) == largest
    explanation = ranker.explain(X, data.qid)
    for found in (explanation.pair(0, 1), explanation.query(data.qid[0])):
        for item in found.to_dict()["features"]:
            assert item["feature"] == labels[item["column"]]
            assert item["feature"] in repr(found)
    weights = weight_intervals(RankSVM(C=0.1), X, data.y, qid=data.qid)
    assert [item["feature"] for item in weights.to_dict()["features"]] == largest
    display = WeightsDisplay.from_intervals(weights)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == largest
    wrong = data.X.copy()
    wrong[5, 2] = np.nan
    with pytest.raises(DataError, match=rf"NaN at X\[5, 2\] \(feature {labels[2]}\)"):
        ranker.predict(wrong if names is None else pd.DataFrame(wrong, columns=names))


def test_numbers_have_enough_digits_to_differ():
    assert told_apart([1.0, 2.5], 3) == ["1", "2.5"]
    assert told_apart([1700000000.0, 1700000300.0, 1700000000.0], 3) == ["1.7e+09", "1.7000003e+09", "1.7e+09"]
    assert told_apart([1.0, 1.0 + 1e-16], 4) == ["1", "1"]
    assert compared(1000.25, 1000.5) == ["1000.2", "1000.5"]
    assert compared(3.0, 1e-17) == ["3", "0"]
    assert compared("red", None) == ["red", ""]


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


def test_a_name_written_from_right_to_left_does_not_turn_what_follows_it():
    assert isolated("BM25 & größe 价格") == "BM25 & größe 价格"
    for name in ("نسبة", "עברית 3", "a\u202eb"):
        assert isolated(name) == f"\u2068{name}\u2069"


def test_a_name_with_a_line_break_stays_in_its_line():
    data = make_ranking(n_queries=5, n_docs=5, n_features=2, random_state=0)
    frame = pd.DataFrame(data.X, columns=["a\nb", "c\td"])
    explanation = RankSVM(C=0.1).fit(frame, data.y, qid=data.qid).explain(frame, qid=data.qid)
    for text in (repr(explanation.document(0)), repr(explanation.query(data.qid[0]))):
        assert any(line.startswith(r"a\nb ") for line in text.splitlines())
        assert any(line.startswith(r"c\td ") for line in text.splitlines())
