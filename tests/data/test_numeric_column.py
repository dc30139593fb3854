"""Columns of numbers of any library: missing and unreadable values are named, whole columns become float64."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError

MISSING = {
    "None in a list": [1, None, 2],
    "None in an array of objects": np.array([1, None, np.nan], dtype=object),
    "NaN in an array of objects": np.array([1, np.nan, 2], dtype=object),
    "NaN": np.array([1.0, np.nan]),
    "NaN in float32": np.array([1.0, np.nan], dtype=np.float32),
    "masked": np.ma.array([1, 2, 3], mask=[False, True, False]),
    "Decimal": [Decimal(1), Decimal("NaN")],
    "signalling Decimal": [Decimal(1), Decimal("sNaN")],
    "a column vector": [[1], [None]],
    "pandas Int64": pd.Series([1, pd.NA], dtype="Int64"),
    "pandas boolean": pd.Series([True, pd.NA], dtype="boolean"),
    "pandas NaT": pd.Series([1, pd.NaT], dtype=object),
    "pandas arrow": pd.Series([1, None], dtype="int64[pyarrow]"),
    "pandas category": pd.Series([1, None], dtype="category"),
    "pandas frame": pd.DataFrame({"y": [1, None]}),
    "polars int": pl.Series([1, None, 3]),
    "polars float": pl.Series([1.5, None]),
    "polars boolean": pl.Series([True, None]),
    "polars decimal": pl.Series([Decimal("1.5"), None]),
    "arrow": pa.array([1, None]),
    "arrow chunks": pa.chunked_array([[1], [None]]),
    "arrow scalars": [pa.scalar(1), pa.scalar(None, pa.int64())],
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("finite", [True, False])
def test_missing_values_are_named(values, finite):
    with pytest.raises(DataError, match=r"y is .* in row 1 \(from 0\), [12] of [23] rows ha(s|ve) no value: drop them"):
        numeric_column("y", values, finite=finite, advice="drop them")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 10**400], "row 1 .* too large for float64"),
        (["1", "x"], "row 1 .* is 'x'"),
        ([0, {"a": 1}], "row 1"),
        ([1.0, np.inf, -np.inf], "y is inf in row 1 .* 2 of 3 rows are infinite: it must be a finite number"),
        (np.array([1, 2], dtype=complex), "[Cc]omplex"),
        (np.array(["2020", "NaT"], dtype="M8[s]"), "datetime64"),
        (3, "one number for each row, got a int"),
        ({"a": 1}, "got a dict"),
        ([[1], [2, 3]], "one value for each row"),
    ],
)
def test_what_is_no_column_of_numbers(values, message):
    with pytest.raises(DataError, match=message):
        numeric_column("y", values)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2],
        ["1", "2"],
        np.array([1, 2], dtype=object),
        pd.Series([1, 2], dtype="Int64"),
        pl.Series([1, 2]),
        pa.array([1, 2]),
        [Decimal(1), Decimal(2)],
        np.ma.array([1, 2]),
    ],
)
def test_numbers_of_any_kind(values):
    column = numeric_column("y", values)
    assert column.dtype == np.float64
    assert column.tolist() == [1, 2]


def test_an_array_of_float64_is_not_copied():
    values = np.array([1.0, 2.0])
    assert numeric_column("y", values) is values
    assert numeric_column("scores", np.array([np.inf, 1]), finite=False).tolist() == [np.inf, 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_column_of_a_table_becomes_contiguous(dtype):
    table = np.array([[1, 5], [2, 5], [3, 5]], dtype=dtype)
    for values, expected in ((table[:, 0], [1, 2, 3]), (table[::-1, 0], [3, 2, 1])):
        column = numeric_column("y", values)
        assert column.flags.c_contiguous
        assert column.tolist() == expected
