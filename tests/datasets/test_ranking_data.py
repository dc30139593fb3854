"""RankingData: shapes, selection, and the cache and Parquet forms."""

import json
import os
import pathlib
import struct
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import clone

import ranksvm
from ranksvm import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    FactorizedRankSVM,
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    SOLARRanker,
    cross_validate,
)
from ranksvm._util import memory
from ranksvm.datasets import (
    RankingData,
    make_ranking,
    parquet as _parquet,
    ranking_data,
    read_data,
    read_letor,
    write_data,
)
from ranksvm.datasets.cache import layout
from ranksvm.datasets.cache.layout import MAGIC
from ranksvm.datasets.cache.reader import CacheFile
from ranksvm.datasets.file_data import training_file
from ranksvm.datasets.table import Columns
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError


def example(sparse=False, dtype=np.float32, **changes):
    data = make_ranking(8, (1, 6), 5, density=0.2 if sparse else 1.0, dtype=dtype, random_state=3)
    data.docid = np.array([f"doc-{i}é" for i in range(len(data))])
    for name, value in changes.items():
        setattr(data, name, value)
    return data


def assert_same(a, b):
    assert sp.issparse(a.X) == sp.issparse(b.X)
    assert a.X.dtype == b.X.dtype
    assert a.X.shape == b.X.shape
    assert (a.X != b.X).sum() == 0
    for name in ("y", "qid", "docid"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None)
        assert left is None or (left.dtype.kind == right.dtype.kind and np.array_equal(left, right))
    assert a.feature_names == b.feature_names


VARIANTS = {
    "dense": {},
    "float64": {"dtype": np.float64},
    "sparse": {"sparse": True},
    "no ids": {"qid": None, "docid": None},
    "names": {"feature_names": ("a", "b", "c", "d", "é")},
}


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("variant", VARIANTS)
def test_cache_round_trip(variant, mmap, tmp_path):
    data = example(**VARIANTS[variant])
    path = tmp_path / "data.rsd"
    data.save(path)
    back = RankingData.load(path, mmap=mmap, verify=True)
    assert_same(data, back)
    assert os.listdir(tmp_path) == ["data.rsd"]
    assert_same(data, read_data(path))


def test_cache_of_strings_of_very_different_lengths_and_of_other_types(tmp_path):
    path = tmp_path / "data.rsd"
    docid = np.array(["", "x" * 3000, "é"], dtype=object)
    data = RankingData(np.ones((3, 2), order="F"), np.array([1, 0, 2], np.int8), np.array(["a", "b", "a"]), docid)
    data.save(path)
    back = RankingData.load(path)
    assert_same(data, back)
    assert back.y.dtype == np.int8
    data.docid = np.array([1, "a", None], dtype=object)
    with pytest.raises(DataError, match="docid holds Python objects that are not all strings"):
        data.save(path)
    assert_same(RankingData.load(path), back)


def test_mapped_arrays_are_read_only_and_aligned(tmp_path):
    data = example()
    data.save(tmp_path / "data.rsd")
    for mmap in (True, False):
        back = RankingData.load(tmp_path / "data.rsd", mmap=mmap)
        assert back.X.flags.writeable != mmap
        assert back.X.ctypes.data % 64 == 0
        assert back.X.flags.c_contiguous


@pytest.mark.parametrize("mmap", [True, False])
def test_truncated_anywhere(mmap, tmp_path):
    path = tmp_path / "data.rsd"
    example(sparse=True).save(path)
    content = path.read_bytes()
    for size in [*range(0, 400, 7), len(content) - 1]:
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match=r"truncated|not a ranksvm data cache"):
            RankingData.load(path, mmap=mmap)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_every_altered_bit_is_noticed(sparse, mmap, tmp_path):
    path = tmp_path / "data.rsd"
    example(sparse=sparse).save(path)
    content = path.read_bytes()
    for position in range(len(content)):
        altered = bytearray(content)
        altered[position] ^= 1 << (position % 8)
        path.write_bytes(altered)
        with pytest.raises(DataError):
            RankingData.load(path, mmap=mmap)


def test_without_verification_only_the_values_of_a_mapped_X_are_not_compared(tmp_path):
    path = tmp_path / "data.rsd"
    data = example()
    data.save(path)
    content = bytearray(path.read_bytes())
    content[content.index(data.X.tobytes())] ^= 1
    path.write_bytes(content)
    assert (RankingData.load(path, verify=False).X != data.X).sum() == 1
    for options in ({}, {"mmap": False, "verify": False}):
        with pytest.raises(DataError, match="the checksum of X does not match"):
            RankingData.load(path, **options)


@pytest.mark.parametrize("block", [64, 100, 4096])
def test_blocks_under_one_checksum(block, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "BLOCK", block)
    path = tmp_path / "data.rsd"
    example().save(path)
    monkeypatch.undo()
    assert_same(example(), RankingData.load(path))
    assert_same(example(), RankingData.load(path, mmap=False))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # a zero behind the last array
    path.write_bytes(content)
    with pytest.raises(DataError, match="checksum of docid"):
        RankingData.load(path)


def test_a_cache_of_version_1_is_read():
    path = pathlib.Path(__file__).with_name("cache_of_version_1.rsd")
    for mmap in (True, False):
        assert_same(example(sparse=True), RankingData.load(path, mmap=mmap))


def rewrite_header(path, change):
    content = path.read_bytes()
    _, version, _, length = struct.unpack("<16sIIQ", content[:32])
    header = json.loads(content[32 : 32 + length])
    header = change(header) or header
    encoded = json.dumps(header).encode()
    encoded += b" " * (length - len(encoded))
    start = -(-(32 + length) // 64) * 64
    padded = encoded.ljust(start - 32, b"\0")[: start - 32]
    preamble = struct.pack("<16sIIQ", MAGIC, version, layout._header_checksum(version, length, padded), length)
    path.write_bytes(preamble + padded + content[start:])


def test_a_forged_header_is_refused(tmp_path):
    path = tmp_path / "data.rsd"
    for change in (
        lambda header: header["arrays"][0].update(dtype="|O"),
        lambda header: header["arrays"][0].update(offset=-64),
        lambda header: header["arrays"][0].update(shape=[10**6, 5]),
        lambda header: header.pop("arrays"),
        lambda header: header["arrays"].pop(0),
        lambda header: header.update(size="x"),
        lambda header: header.update(size=header["size"] - 64),
        lambda header: header.update(shape=[1, 2]),
        lambda header: header.update(shape=None),
        lambda header: header.update(block=0),
        lambda header: header.update(feature_names=[1, 2, 3]),
        lambda header: header["arrays"][0].update(name="Z"),
        lambda header: header["arrays"][0].update(name=[]),
        lambda header: header["arrays"][0].update(name="y"),
        lambda header: header["arrays"][0].update(dtype="<M8[s]"),
        lambda header: header["arrays"][0].update(dtype=">f4"),
        lambda header: header["arrays"][0].update(dtype="<U0"),
        lambda header: header["arrays"][0].update(dtype=[["a", "b"]]),
        lambda header: header["arrays"][0].update(shape=[True, 5]),
        lambda header: header["arrays"][0].update(crc32=[]),
        lambda header: header["arrays"][0].update(crc32=["x"]),
        lambda header: header["arrays"][0].pop("shape"),
        lambda header: [header],
    ):
        example().save(path)
        rewrite_header(path, change)
        with pytest.raises(DataError):
            RankingData.load(path)


@pytest.mark.parametrize("place", ["name", "dtype", "shape"])
def test_a_header_that_is_nested_deep(tmp_path, place):
    path = tmp_path / "data.rsd"
    for depth in range(700, 1000):
        text = f'{{"shape": [1, 1], "size": 0, "arrays": [{{"{place}": {"[" * depth + "]" * depth}, "name": "y"}}]}}'
        if place == "name":
            text = text.replace(', "name": "y"', "")
        path.write_bytes(layout.header_bytes(text.encode()))
        for read in (RankingData.load, CacheFile):
            with pytest.raises(DataError, match=r"data\.rsd is altered: its header"):
                read(path)


@pytest.mark.parametrize("part", ["indptr", "indices"])
def test_pointers_beyond_the_arrays_are_refused(part, tmp_path):
    data = example(sparse=True)
    getattr(data.X, part)[2] = 2**30
    data.save(tmp_path / "data.rsd")
    with pytest.raises(DataError, match="its arrays do not form a data set"):
        RankingData.load(tmp_path / "data.rsd")


def test_a_header_that_is_not_json(tmp_path):
    path = tmp_path / "data.rsd"
    for text in (b"{", b"[" * 100_000, b"\xff" * 40, b"3"):
        padded = text.ljust(-(-(32 + len(text)) // 64) * 64 - 32, b"\0")
        checksum = layout._header_checksum(2, len(text), padded)
        path.write_bytes(struct.pack("<16sIIQ", MAGIC, 2, checksum, len(text)) + padded)
        with pytest.raises(DataError, match="header"):
            RankingData.load(path)


def test_wrong_indices_are_refused_even_with_a_right_checksum(tmp_path):
    data = example(sparse=True)
    data.X.indices[0] = 1000
    data.save(tmp_path / "data.rsd")
    with pytest.raises(DataError, match="its arrays do not form a data set"):
        RankingData.load(tmp_path / "data.rsd")


def test_other_and_newer_files(tmp_path):
    path = tmp_path / "data.rsd"
    path.write_bytes(b"1 qid:1 1:2\n")
    with pytest.raises(DataError, match="is not a ranksvm data cache"):
        RankingData.load(path)
    path.write_bytes(struct.pack("<16sIIQ", MAGIC, 99, 0, 0))
    with pytest.raises(DataError, match=r"has version 99 .* update ranksvm"):
        RankingData.load(path)


@pytest.mark.parametrize("variant", VARIANTS)
def test_parquet_round_trip(variant, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("ranksvm.datasets.parquet._ROWS", 7)
    data = example(**VARIANTS[variant])
    path = tmp_path / "data.parquet"
    data.to_parquet(path)
    assert_same(data, RankingData.from_parquet(path))
    assert_same(data, read_data(path))
    assert os.listdir(tmp_path) == ["data.parquet"]
    assert RankingData.from_parquet(path, dtype=np.float64).X.dtype == np.float64


def test_parquet_of_somebody_else(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    columns = {"grade": [1, 0, 2], "q": ["a", "a", "b"], "bm25": [1.5, 2.5, 0.0], "clicks": [1, 2, 3]}
    pq.write_table(pa.table(columns), path)
    data = RankingData.from_parquet(path, label="grade", qid="q")
    assert data.X.tolist() == [[1.5, 1], [2.5, 2], [0, 3]]
    assert data.feature_names == ("bm25", "clicks")
    assert data.qid.tolist() == ["a", "a", "b"]
    with pytest.raises(DataError, match="no column 'label' for the labels; its columns are grade, q"):
        RankingData.from_parquet(path)
    with pytest.raises(DataError, match=r"column 'q' of .* has type string: features must be numbers"):
        RankingData.from_parquet(path, label="grade")
    pq.write_table(pa.table({"label": [1, 0], "x": [1.0, 2.0], "__index_level_0__": [0, 1]}), path)
    with pytest.raises(DataError, match=r"column '__index_level_0__' of .* is named like an index of pandas"):
        RankingData.from_parquet(path)
    pq.write_table(pa.table({"label": [1, 0], "x": [1.0, None]}), path)
    with pytest.raises(DataError, match=r"column 'x' of .* has missing values in 1 of .* the first is row 1"):
        RankingData.from_parquet(path)
    pq.write_table(pa.table({"label": [1, None], "x": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match=r"column 'label' of .* has missing values"):
        RankingData.from_parquet(path)
    pq.write_table(pa.table({"label": [1, 0, 1], "qid": [1.0, np.nan, np.nan], "x": [1.0, 2.0, 3.0]}), path)
    for read in (RankingData.from_parquet, lambda path: list(ranksvm.datasets.iter_data(path))):
        with pytest.raises(DataError, match=r"column 'qid' of .* has NaN in 2 of the first 3 rows, the first is row 1"):
            read(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="not a Parquet file, or is damaged"):
        RankingData.from_parquet(path)
    with pytest.raises(DataError, match="two columns would be named 'label'"):
        RankingData(np.ones((1, 1)), [1], feature_names=["label"]).to_parquet(path)


def test_parquet_with_columns_of_other_types(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    columns = {
        "label": [True, False],
        "price": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
        "new": [None, True],
        "empty": pa.nulls(2),
    }
    pq.write_table(pa.table(columns), path)
    data = read_data(path, missing=True)
    assert data.y.tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(data.X, [[1.25, np.nan, np.nan], [np.nan, 1.0, np.nan]])
    with pytest.raises(DataError, match=r"column 'empty' of .* has missing values in 2 of the first 2 rows"):
        read_data(path, ignore=["price", "new"])
    pq.write_table(pa.table({"label": [1, 0], "qid": [b"\xff", b"a"], "x": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match=r"column 'qid' of .* has bytes that are not text"):
        read_data(path)


def test_parquet_without_pyarrow_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "ranksvm\[parquet\]"'):
        example().to_parquet(tmp_path / "x.parquet")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a.rsd", "a.parquet", "a.txt", "a.txt.gz", "a", "A.LETOR"])
def test_one_reader_and_writer_for_all(name, tmp_path):
    pytest.importorskip("pyarrow")
    data = example()
    write_data(data, tmp_path / name)
    assert_same(data, read_data(tmp_path / name))


def test_unknown_suffix(tmp_path):
    with pytest.raises(OptionError, match=r"unknown suffix '.parqet': use one of \.rsd, \.parquet"):
        write_data(example(), tmp_path / "a.parqet")


@pytest.mark.parametrize("kind", [".rsd", ".parquet", ".pq"])
def test_only_text_is_compressed(tmp_path, kind):
    with pytest.raises(OptionError, match=rf"only text is written with '.gz': use {kind}, or .txt.gz"):
        write_data(example(), tmp_path / f"a{kind}.gz")


def test_read_data_passes_options(tmp_path):
    (tmp_path / "a").write_text("1 1:1\n")
    assert read_data(tmp_path / "a", n_features=3).X.shape == (1, 3)


def test_select():
    data = example(sparse=False, feature_names=list("abcde"))
    rows = data.y > 0
    some = data.select(rows)
    assert np.array_equal(some.X, data.X[rows])
    assert np.array_equal(some.docid, data.docid[rows])
    assert some.feature_names == ("a", "b", "c", "d", "e")
    assert np.shares_memory(data.select(slice(2, 5)).X, data.X)
    assert data.select([3, 1]).qid.tolist() == [data.qid[3], data.qid[1]]
    assert example(sparse=True).select([0, 2]).X.shape == (2, 5)
    for sparse in (False, True):
        none = example(sparse=sparse).select([])
        assert (none.X.shape, none.qid.shape) == ((0, 5), (0,))
        for wrong in ([0, 10**6], [True], [0.5], "a"):
            with pytest.raises(DataError, match="rows must be numbers of the"):
                example(sparse=sparse).select(wrong)


def test_queries_are_found_once_per_qid():
    data = example()
    assert data.queries is data.queries
    data.qid = data.qid[::-1].copy()
    assert data.queries.ids[0] == data.qid[0]


def test_repr_and_sizes():
    data = RankingData([[1.0, 2.0]], [1])
    assert repr(data) == "RankingData(1 rows, 2 features, one query, dense float64)"
    assert (len(data), data.n_rows, data.n_features) == (1, 1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1]), "X must be two-dimensional"),
        (([[1.0]], [1, 2]), "y has 2 entries but X has 1 rows"),
        (([[1.0]], [1], [1, 2]), "qid has 2 entries but X has 1 rows"),
        (([[1.0]], [1], [1], ["a", "b"]), "docid has 2 entries but X has 1 rows"),
        (([[1.0]], [1], [1], ["a"], ["x", "y"]), "there are 2 feature names but X has 1 columns"),
    ],
)
def test_shapes_must_agree(arguments, message):
    with pytest.raises(DataError, match=message):
        RankingData(*arguments)


def test_real_data_through_every_form(shared_data, tmp_path):
    pytest.importorskip("pyarrow")
    for name in ("MQ2008", "WikiQA-wordpairs"):
        data = read_letor(shared_data / name / "Fold1" / "vali.txt.gz") if name == "MQ2008" else read_letor(
            shared_data / name / "Fold1" / "test.txt.gz"
        )  # fmt: skip
        for suffix in ("rsd", "parquet", "txt.gz"):
            write_data(data, tmp_path / f"data.{suffix}")
            back = read_data(tmp_path / f"data.{suffix}")
            assert_same(data, back)


@pytest.mark.parametrize(
    "call",
    [
        lambda data: FactorizedRankSVM().fit(data, None),
        lambda data: SOLARRanker().fit(data),
        lambda data: RankSVM().fit(data.X, data.y, qid=data.qid).predict(data),
        lambda data: RankSVM().fit(data.X, data.y, qid=data.qid).score(data, data.y),
        lambda data: cross_validate(RankSVM(), data),
    ],
)
def test_it_is_no_features_but_for_rank_svm(call):
    message = r"RankingData are not an array of features: give X=data.X, y=data.y, qid=data.qid"
    with pytest.raises(DataError, match=message):
        call(make_ranking(n_queries=4, n_docs=5, n_features=3, random_state=0))


@pytest.mark.parametrize("ranker", [RankSVM(), RankSVMCV(), AdditiveRankSVM()])
def test_an_invalid_value_has_the_name_of_its_feature(ranker):
    X, y, qid = np.ones((8, 2)), np.arange(8) % 2, np.arange(8) // 2
    X[3, 1] = np.inf
    with pytest.raises(DataError, match=r"infinity at X\[3, 1\] \(feature size\)"):
        ranker.fit(RankingData(X, y, qid, feature_names=["price", "size"]))


@pytest.mark.parametrize("kind", ["RankingData", "path"])
@pytest.mark.parametrize(
    "ranker",
    [
        RankSVM(C=0.1, monotone={"size": 1}),
        AdditiveRankSVM(C=0.1, monotone={"size": 1}, interactions=[("price", "age")]),
        RankSVMCV(Cs=[0.1, 1.0], cv=2, monotone={"size": 1}),
        AdditiveRankSVMCV(Cs=[0.1, 1.0], cv=2, monotone={"size": 1}),
    ],
)
def test_names_of_features_are_kept(ranker, kind, tmp_path, recwarn):
    """They were dropped, so monotone could not name a feature, and columns in another order were not noticed."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    made = make_ranking(n_queries=20, n_docs=5, n_features=3, random_state=0)
    data = RankingData(made.X, made.y, made.qid, feature_names=["price", "size", "age"])
    data.to_parquet(tmp_path / "data.parquet")
    frame = pd.DataFrame(made.X, columns=data.feature_names)
    model = clone(ranker).fit(data if kind == "RankingData" else tmp_path / "data.parquet")
    expected = clone(ranker).fit(frame, made.y, qid=made.qid)
    assert model.feature_names_in_.tolist() == ["price", "size", "age"]
    model.save(tmp_path / "model")
    recwarn.clear()
    for each in (model, ranksvm.load(tmp_path / "model")):
        np.testing.assert_array_equal(each.predict(data.X), expected.predict(frame))
        np.testing.assert_array_equal(each.predict(frame), expected.predict(frame))
        with pytest.raises(DataError, match="feature names should match those that were passed during fit"):
            each.predict(frame[["size", "price", "age"]])
    assert not recwarn.list  # data.X has no names, but is in the order of the fit


def test_rank_svm_takes_labels_and_queries_from_it():
    data = make_ranking(n_queries=20, n_docs=5, n_features=3, random_state=0)
    np.testing.assert_array_equal(RankSVM().fit(data).coef_, RankSVM().fit(data.X, data.y, qid=data.qid).coef_)
    chosen = RankSVMCV(Cs=[0.1, 1.0], cv=2).fit(data)
    np.testing.assert_array_equal(
        chosen.scores_, RankSVMCV(Cs=[0.1, 1.0], cv=2).fit(data.X, data.y, qid=data.qid).scores_
    )


def _with_metadata(pa, text):
    return pa.table({"label": [1.0, 0.0], "x": [1.0, 2.0]}).replace_schema_metadata({b"ranksvm": text})


def _with_schema(pa, path):
    """A file whose schema of Arrow, kept beside that of Parquet, is damaged."""
    pa.parquet.write_table(pa.table({"label": [1.0, 0.0], "x": [1.0, 2.0]}), path)
    content = path.read_bytes()
    at = content.index(b"ARROW:schema") + 30
    path.write_bytes(content[:at] + b"AAAAAAAA" + content[at + 8 :])


DAMAGED = {
    "nested JSON": lambda pa: _with_metadata(pa, "[" * 100_000),
    "no JSON": lambda pa: _with_metadata(pa, "{sparse"),
    "another JSON": lambda pa: _with_metadata(pa, "[1]"),
    "no columns of lists": lambda pa: _with_metadata(pa, '{"sparse": true, "n_features": 3}'),
    "features in words": lambda pa: _with_metadata(pa, '{"sparse": true, "n_features": "3"}'),
    "names for others": lambda pa: _with_metadata(pa, '{"sparse": true, "n_features": 3, "feature_names": ["a"]}'),
    "pointers": lambda pa: pa.table(
        {"label": [1.0, 0.0], "feature_indices": [[0, 7], [1]], "feature_values": [[1.0, 2.0], [3.0]]}
    ).replace_schema_metadata({b"ranksvm": '{"sparse": true, "n_features": 3}'}),
    "ids that are structs": lambda pa: pa.table({"label": [1.0], "qid": [{"a": 1}], "x": [1.0]}),
    "labels that are structs": lambda pa: pa.table({"label": [{"a": 1}], "x": [1.0]}),
    "flatbuffers": None,
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_whatever_is_wrong_with_a_parquet_file_is_one_error_that_names_it(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "damaged.parquet"
    if kind == "flatbuffers":
        _with_schema(pa, path)
    else:
        pa.parquet.write_table(DAMAGED[kind](pa), path)
    for read in (RankingData.from_parquet, lambda path: list(_parquet.read_blocks(path, Columns(), None))):
        with pytest.raises(DataError, match=r"damaged\.parquet"):
            read(path)


def test_too_little_memory_for_a_parquet_file_is_not_called_damage(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    pa.parquet.write_table(pa.table({"label": [1.0, 0.0], "x": [1.0, 2.0]}), path)

    def no_memory(*_, **__):
        raise MemoryError("Unable to allocate 15.3 MiB")

    monkeypatch.setattr(_parquet, "_contents", no_memory)
    for read in (RankingData.from_parquet, lambda path: list(_parquet.read_blocks(path, Columns(), None))):
        with pytest.raises(DataError, match=r"data\.parquet does not fit into the free memory, or is damaged: Unable"):
            read(path)


def test_values_beyond_the_range_of_a_narrower_type_are_named(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "data.parquet"
    X = np.array([[1.0, 2.0], [3.0, -1e40]])
    for stored, what in ((X, "column 'f2'"), (sp.csr_matrix(X), "feature f2")):
        RankingData(stored, np.zeros(2), np.zeros(2)).to_parquet(path)
        assert np.abs(RankingData.from_parquet(path).X).max() == 1e40
        with pytest.raises(DataError, match=rf"{what} of .* row 1 \(from 0\).*dtype=numpy.float64"):
            RankingData.from_parquet(path, dtype=np.float32)


TRUNCATED = """
import os, sys
from ranksvm import RankSVM, RankingData
data = RankingData.load(sys.argv[1])
os.truncate(sys.argv[1], 4096)
print(float(RankSVM().fit(data).coef_ @ data.X.sum(axis=0)) != 0.0, data.qid[-1])
"""


def test_a_cache_that_is_truncated_after_it_was_loaded_ends_nothing(tmp_path):
    """A map of it ended the process with SIGBUS."""
    path = tmp_path / "data.rsd"
    make_ranking(400, 10, 20, random_state=0).save(path)
    found = subprocess.run([sys.executable, "-c", TRUNCATED, str(path)], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "True 400\n"), found.stderr


TRUNCATED_DURING_A_FIT = """
import logging, os, sys
from ranksvm import RankSVM, RankingData
from ranksvm.exceptions import DataError

class Truncates(logging.Handler):
    def emit(self, record):
        os.truncate(path, 4096)

path = sys.argv[1]
logging.getLogger("ranksvm.solvers").addHandler(Truncates())
logging.getLogger("ranksvm.solvers").setLevel(logging.DEBUG)
data = RankingData.load(path, mmap=True)
ranker = RankSVM(solver=sys.argv[2])
try:
    ranker.fit(data.X, data.y.copy(), qid=data.qid.copy())
except DataError as error:
    print(error)
"""


@pytest.mark.parametrize(("solver", "sparse"), [("newton", False), ("tron", True), ("direct", False), ("dual", True)])
def test_a_map_that_is_truncated_between_passes_ends_nothing(tmp_path, solver, sparse):
    path = tmp_path / "data.rsd"
    data = make_ranking(400, 10, 20, random_state=0)
    RankingData(sp.csr_array(data.X) if sparse else data.X, data.y, data.qid).save(path)
    found = subprocess.run(
        [sys.executable, "-c", TRUNCATED_DURING_A_FIT, str(path), solver], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout == f"{path} was truncated since it was loaded: write it again, and load it again.\n"


@pytest.mark.parametrize(
    "ranker", [RankSVM(), SOLARRanker(), AdditiveRankSVM(), KernelRankSVM(), RankSVM(solver="dual")]
)
def test_no_estimator_reads_a_map_that_was_truncated(tmp_path, ranker):
    path = tmp_path / "data.rsd"
    make_ranking(40, 10, 20, random_state=0).save(path)
    data = RankingData.load(path, mmap=True)
    y, qid = data.y.copy(), data.qid.copy()
    ranker.fit(data.X, y, qid=qid)
    os.truncate(path, 4096)
    for work in (
        lambda: ranker.fit(data.X, y, qid=qid),
        lambda: ranker.predict(data.X),
        lambda: ranker.predict(data.X[5:]),
    ):
        with pytest.raises(DataError, match=r"data\.rsd was truncated since it was loaded"):
            work()


def test_a_large_file_of_another_user_is_not_mapped(tmp_path, monkeypatch):
    path = tmp_path / "data.rsd"
    example().save(path)
    size = path.stat().st_size
    monkeypatch.setattr(memory, "free_memory", lambda: 2 * size - 2)
    assert not RankingData.load(path).X.flags.writeable
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert RankingData.load(path).X.flags.writeable
    monkeypatch.setattr(ranking_data, "free_memory", lambda: size - 1)
    with pytest.raises(DataError, match="belongs to another user"):
        RankingData.load(path)
    assert not RankingData.load(path, mmap=True).X.flags.writeable


def test_what_is_mapped(tmp_path, monkeypatch):
    path = tmp_path / "data.rsd"
    example().save(path)

    def mapped(**options):
        return not RankingData.load(path, **options).X.flags.writeable

    assert (mapped(), mapped(mmap=False, verify=False)) == (False, False)
    assert (mapped(verify=False), mapped(mmap=True)) == (True, True)
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    assert mapped()
    data = RankingData.load(path, mmap=True)
    os.truncate(path, 2000)
    with pytest.raises(DataError, match=r"data\.rsd is truncated or altered"):
        RankSVM().fit(data)


def test_the_path_of_a_cache_is_read_where_memory_holds_it(tmp_path):
    path = tmp_path / "data.rsd"
    example().save(path)
    assert training_file(path, None).X.flags.writeable
    assert not training_file(path, 1000).X.flags.writeable
