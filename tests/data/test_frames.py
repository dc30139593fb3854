"""DataFrames of several libraries: what becomes of their columns, and what is said of those that hold no numbers."""

import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from ranksvm import QueryMinMaxScaler, QueryStandardScaler, RankSVM
from ranksvm.data import frames
from ranksvm.exceptions import DataError, MissingDependencyError

MAKERS = {
    "pandas": pd.DataFrame,
    "pandas-arrow": lambda columns: pl.DataFrame(columns).to_pandas(use_pyarrow_extension_array=True),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
ANY_LIBRARY = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
Y, QID = [0, 1, 2, 0, 1], [7, 7, 7, 8, 8]


def columns(*dtypes):
    return {f"c{place}": (np.array([3, 1, 2, 5, 4]) + place).astype(dtype) for place, dtype in enumerate(dtypes)}


def fitted_array(frame):
    """The features that an estimator sees."""
    return frames.validated(RankSVM(), frame, reset=True, accept_sparse="csr", dtype=(np.float64, np.float32))


@ANY_LIBRARY
@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["float32"] * 40, "float32"),
        (["float64"] * 3, "float64"),
        (["float32", "int16", "uint8", "bool"], "float32"),
        (["float32", "int32"], "float64"),
        (["int8", "int8"], "float64"),
        (["float32", "float64"], "float64"),
    ],
)
def test_float32_stays_float32(make, dtypes, expected):
    source = columns(*dtypes)
    array = fitted_array(make(source))
    assert array.dtype == expected
    np.testing.assert_array_equal(array, np.column_stack(list(source.values())).astype(expected))


@ANY_LIBRARY
def test_integers_beyond_the_range_of_float64_are_rounded(make):
    source = {"c0": np.array([2**53 + 1, 2**62 + 1]), "c1": np.array([2**64 - 1, 0], dtype=np.uint64)}
    array = fitted_array(make(source))
    np.testing.assert_array_equal(array, np.transpose(list(source.values())).astype(np.float64))


def test_a_C_contiguous_pandas_frame_is_not_copied():
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    assert np.shares_memory(fitted_array(pd.DataFrame(X, copy=False)), X)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_of_plain_types_are_read_together(make, monkeypatch):
    monkeypatch.setattr(frames, "_any_columns", None)  # not called
    monkeypatch.setattr(frames, "_BLOCK_VALUES", 1)  # in blocks of few columns
    source = columns(*["float32", "int8", "int64", "float64"] * 9)
    np.testing.assert_array_equal(fitted_array(make(source)), np.column_stack(list(source.values())).astype(float))


def test_columns_may_be_named_by_numbers():
    frame = pd.DataFrame({1: pd.array([1, 2, 3, 4, 5], dtype="Int64"), 0: [0.5, 1.0, 2.0, 3.0, 4.0]})
    np.testing.assert_array_equal(fitted_array(frame), frame.to_numpy(dtype=float))


@ANY_LIBRARY
def test_missing_values_of_any_type_are_refused_with_their_place(make):
    for values in ([1.0, None, 2.0, 0.0, 1.0], [1, None, 2, 0, 1], [True, None, False, True, True]):
        frame = make({"fine": [1.0, 2.0, 3.0, 4.0, 5.0], "bm25": values})
        if make is pd.DataFrame:
            frame["bm25"] = pd.array(values)
        for estimator in (RankSVM(), QueryMinMaxScaler()):
            with pytest.raises(DataError, match=r"NaN at X\[1, 1\] \(feature bm25\)"):
                estimator.fit(frame, Y, qid=QID)


@ANY_LIBRARY
def test_columns_that_hold_no_numbers_are_named(make):
    frame = make({"a": [1.0] * 5, "title": list("abcde"), "b": [2.0] * 5})
    with pytest.raises(DataError, match=r"the column 'title' \(String\): encode or drop"):
        RankSVM().fit(frame, Y, qid=QID)
    model = RankSVM().fit(make({"a": [1.0, 2, 3, 1, 2]}), Y, qid=QID)
    with pytest.raises(DataError, match=r"'a' \(String\)"):
        model.predict(make({"a": list("12345")}))


def test_all_bad_columns_are_counted():
    frame = pd.DataFrame({f"c{n}": list("abcde") for n in range(8)})
    frame["c0"] = frame["c0"].astype("category")
    frame["c1"] = pd.to_datetime("2020-01-01")
    with pytest.raises(DataError, match=r"columns 'c0' \(Categorical\), 'c1' \(Datetime.*\), 'c2'.* and 3 more"):
        RankSVM().fit(frame, Y, qid=QID)


def test_columns_of_objects_are_read_if_they_are_numbers():
    frame = pd.DataFrame({"a": np.array([1, 2.5, 3, 4, 5], dtype=object)})
    np.testing.assert_array_equal(fitted_array(frame)[:, 0], [1, 2.5, 3, 4, 5])
    exact = pl.DataFrame({"a": [Decimal("1.5")] * 5})
    np.testing.assert_array_equal(fitted_array(exact)[:, 0], [1.5] * 5)


def test_complex_columns_are_refused():
    """NumPy would drop the imaginary parts, with a warning."""
    frame = pd.DataFrame({"a": [1.0, 2.0], "wave": [1 + 2j, 2.0]})
    for column in (frame.wave, frame.wave.astype(object)):
        with pytest.raises(DataError, match="features must be numbers, but X has the column 'wave'"):
            RankSVM().fit(frame.assign(wave=column), [1, 0], qid=[1, 1])


def test_sparse_pandas_frames_stay_sparse():
    X = sp.random(5, 3, density=0.5, random_state=0, format="csr")
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=list("abc"))
    array = fitted_array(frame)
    assert sp.issparse(array)
    np.testing.assert_array_equal(array.toarray(), X.toarray())


def test_frames_that_cannot_be_read():
    with pytest.raises(DataError, match=r"pass X.collect\(\)"):
        RankSVM().fit(pl.LazyFrame({"a": [1.0] * 5}), Y, qid=QID)
    with pytest.raises(DataError, match="two columns with the same name"):
        RankSVM().fit(pd.DataFrame(np.eye(5), columns=list("aabcd")), Y, qid=QID)


def test_frames_of_dask_are_refused():
    dataframe = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(np.eye(5)[:, :2], columns=["a", "b"])
    lazy = dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(DataError, match=r"X is a dask DataFrame: pass X.compute\(\), or fit it"):
        RankSVM().fit(lazy, Y, qid=QID)
    with pytest.raises(DataError, match="X is a dask DataFrame"):  # as an array its columns could be in another order
        RankSVM().fit(frame, Y, qid=QID).predict(lazy[["b", "a"]])


def test_relations_of_duckdb_are_refused():
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(
        DataError, match=r"X is of type duckdb.DuckDBPyRelation, which holds no data yet: convert it to"
    ):
        RankSVM().fit(duckdb.sql("SELECT 1.0 AS a"), [1], qid=[1])


def test_without_narwhals_the_message_says_what_to_install(monkeypatch):
    frame = pl.DataFrame({"a": [1.0] * 5})
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "ranksvm\[dataframe\]", or pass arrays'):
        RankSVM().fit(frame, Y, qid=QID)


@ANY_LIBRARY
@pytest.mark.parametrize("scaler", [QueryMinMaxScaler(), QueryStandardScaler(), QueryMinMaxScaler(copy=False)])
def test_scalers_take_frames_and_a_column_of_ids(make, scaler):
    source = columns("float32", "float32")
    expected = type(scaler)().fit_transform(np.column_stack(list(source.values())), qid=QID)
    found = scaler.fit_transform(make({"query": QID} | source), qid="query")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected)
    assert scaler.feature_names_in_.tolist() == ["c0", "c1"]
    with pytest.raises(DataError, match="X is not a DataFrame"):
        scaler.fit(np.eye(3), qid="query")


def test_scalers_can_give_frames():
    frame = pl.DataFrame(columns("float32", "float64"))
    scaled = QueryStandardScaler().set_output(transform="polars").fit_transform(frame, qid=QID)
    assert isinstance(scaled, pl.DataFrame)
    assert scaled.columns == ["c0", "c1"]


@ANY_LIBRARY
def test_rows_and_columns(make):
    frame = make({"query": ["x", "y", "z"], "a": [1, 2, 3]})
    some = frames.take_rows(frame, np.array([2, 0]))
    assert type(some) is type(frame)
    assert frames.column(some, "query").tolist() == ["z", "x"]
    assert frames.has_column(frame, "a")
    assert not frames.has_column(frames.drop_column(frame, "a"), "a")
    assert not frames.has_column(frame, ["a"])
    assert frames.take_rows([5, 6, 7], np.array([1])).tolist() == [6]


@ANY_LIBRARY
def test_columns_with_missing_values(make):
    frame = make({"a": [1.0, None, 2.0], "b": [1, 2, 3], "c": ["x", None, "y"], "d": [0.0, 0.0, float("nan")]})
    assert frames.columns_with_missing(frame).tolist() == [True, False, True, True]
    assert not frames.is_missing(frame, "a")
    assert frames.is_missing(make({"a": [float("nan")] * 2}), "a")


@pytest.mark.parametrize(
    "kind", [np.asarray, np.float32, sp.csr_matrix, sp.csc_matrix, sp.csr_array, np.ndarray.tolist]
)
def test_columns_with_missing_values_of_arrays(kind):
    X = np.array([[0.0, np.nan, 1.0], [2.0, 0.0, np.inf]])
    assert frames.columns_with_missing(kind(X)).tolist() == [False, True, False]
    assert not frames.columns_with_missing(np.eye(3, dtype=int)).any()
    assert frames.columns_with_missing([[None, 1], [2, 3]]).tolist() == [True, False]


def test_names_of_columns_of_several_types():
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    model = RankSVM().fit(frame, [0, 1, 2])
    mixed = frame.rename(columns={"b": 7})
    for call in (model.predict, lambda X: RankSVM().fit(X, [0, 1, 2])):
        with pytest.raises(DataError, match="2 columns whose names are strings and 1 whose names are not, such as 7"):
            call(mixed)


def test_numbers_too_large_for_float64():
    for X in ([[10**400, 1], [1, 2]], np.array([[10**400, 1], [1, 2]], dtype=object)):
        with pytest.raises(DataError, match="too large"):
            RankSVM().fit(X, [0, 1])


@pytest.mark.parametrize("kind", ["M8[s]", "m8[s]"])
def test_an_array_of_times_is_refused_as_a_column_of_times_is(kind):
    X = np.arange(8).reshape(4, 2).astype(kind)
    with pytest.raises(DataError, match="features must be numbers, but X has the type"):
        RankSVM().fit(X, [0, 1, 2, 3], group=[4])
