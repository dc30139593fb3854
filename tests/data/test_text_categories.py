"""Columns of text as numbers."""

import numpy as np
import pytest

from ranksvm.data.frames import text_columns, texts
from ranksvm.data.text_categories import UNKNOWN, coded, learned_categories, recoded, texts_at

pandas = pytest.importorskip("pandas")
VALUES = ["b", None, "a", "c", "b"]


def frames():
    """The same table in several libraries and types."""
    table = {"size": [1.0, 2.0, np.nan, 4.0, 5.0], "color": VALUES}
    yield pytest.param(lambda: pandas.DataFrame(table), id="pandas objects")
    yield pytest.param(lambda: pandas.DataFrame(table, index=[7, 7, 3, 2, 1]), id="pandas with an index")
    yield pytest.param(lambda: pandas.DataFrame(table).astype({"color": "category"}), id="pandas categories")
    yield pytest.param(lambda: pandas.DataFrame(table).astype({"color": "string"}), id="pandas strings")

    def polars(kind):
        return lambda: (pl := pytest.importorskip("polars")).DataFrame(table).cast({"color": getattr(pl, kind)})

    yield pytest.param(polars("String"), id="polars strings")
    yield pytest.param(polars("Categorical"), id="polars categories")
    yield pytest.param(lambda: pytest.importorskip("pyarrow").table(table), id="pyarrow")


@pytest.mark.parametrize("make", list(frames()))
def test_a_text_is_its_place_in_alphabetical_order(make):
    X = make()
    assert text_columns(X) == ["color"]
    assert texts(X, "color") == VALUES
    found = learned_categories(X, ["size", "color"])
    assert found == {"color": ["a", "b", "c"]}
    assert learned_categories(X, ["size"]) == {}
    numbers = coded(X, found)
    assert type(numbers) is type(X)
    assert list(np.asarray(numbers["color"], dtype=float)) == pytest.approx([1, np.nan, 0, 2, 1], nan_ok=True)
    assert list(np.asarray(numbers["size"], dtype=float)) == pytest.approx([1, 2, np.nan, 4, 5], nan_ok=True)
    assert text_columns(numbers) == []
    if hasattr(X, "index"):
        assert list(numbers.index) == list(X.index)


def test_other_texts_have_a_number_of_their_own():
    X = pandas.DataFrame({"color": ["z", "a", None]})
    assert coded(X, {"color": ["a"], "size": ["x"]})["color"].tolist() == pytest.approx(
        [-1.0, 0.0, np.nan], nan_ok=True
    )
    assert coded(X, {}) is X


def test_numbers_as_objects_and_categories():
    X = pandas.DataFrame({"a": np.array([1, 2.5, None], dtype=object), "b": pandas.Categorical([10, 9, 10])})
    assert text_columns(X) == ["b"]
    assert learned_categories(X, ["a", "b"]) == {"b": ["10", "9"]}


def test_places_in_another_list():
    own, others = ["a", "b", "c"], ["c", "a"]
    places = np.array([0.0, 1.0, 2.0, np.nan, 2.0])
    np.testing.assert_array_equal(recoded(places, own, others), [1.0, UNKNOWN, 0.0, np.nan, 0.0])
    assert texts_at(places, own).tolist() == ["a", "b", "c", None, "c"]
