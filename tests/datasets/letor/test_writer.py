"""Writing LETOR text: what is written reads back as equal arrays."""

import bz2
import io
import lzma
import os
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from ranksvm.datasets import RankingData, make_ranking, read_letor, write_letor
from ranksvm.datasets.letor import writer
from ranksvm.exceptions import DataError, MissingDependencyError


def same(a, b):
    return (a.toarray() == b.toarray()).all() if sp.issparse(a) and sp.issparse(b) else np.array_equal(a, b)


@pytest.mark.parametrize(
    ("suffix", "module", "compress"), [(".bz2", "bz2", bz2.compress), (".xz", "lzma", lzma.compress)]
)
def test_a_python_without_a_compression_reads_other_files(tmp_path, monkeypatch, suffix, module, compress):
    """Python is often built where the headers of bzip2 or xz are missing, and then lacks their modules."""
    monkeypatch.setitem(sys.modules, module, None)
    data = make_ranking(2, 3, 2, random_state=0)
    for name in ("train.txt", "train.txt.gz"):
        write_letor(tmp_path / name, data)
        np.testing.assert_array_equal(read_letor(tmp_path / name).X, data.X)
    compressed = tmp_path / f"train.txt{suffix}"
    message = f"needs Python's module {module}, and this Python was built without it: decompress the file first"
    with pytest.raises(MissingDependencyError, match=message):
        write_letor(compressed, data)
    assert not compressed.exists()
    compressed.write_bytes(compress((tmp_path / "train.txt").read_bytes()))
    with pytest.raises(MissingDependencyError, match=message):
        read_letor(compressed)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("density", [1.0, 0.1])
def test_round_trip(dtype, suffix, density, tmp_path, monkeypatch):
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    monkeypatch.setattr(writer, "_BLOCK", 100)
    data = make_ranking(30, (1, 12), 17, density=density, dtype=dtype, random_state=1)
    data.docid = np.array([f"d{i}" if i % 5 else "" for i in range(len(data))])
    path = tmp_path / f"data.txt{suffix}"
    write_letor(path, data, n_jobs=3, comment="made\nfor a test")
    back = read_letor(path, dtype=dtype)
    assert sp.issparse(back.X) == (density < 0.25)
    assert back.X.dtype == dtype
    assert same(back.X, data.X)
    for name in ("y", "qid", "docid"):
        assert np.array_equal(getattr(back, name), getattr(data, name))
    assert os.listdir(tmp_path) == [path.name]


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(-1e300, 1e300)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_round_trip_of_any_matrix(tmp_path_factory, X, sparse, zero_based, keep_zeros):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    X[:, -1] *= not keep_zeros
    matrix = sp.csr_matrix(X) if sparse else X
    y = X[:, 0]
    write_letor(path, matrix, y, zero_based=zero_based)
    back = read_letor(path, dtype=np.float64, sparse=sparse)
    assert back.X.shape == X.shape
    assert np.array_equal(back.X.toarray() if sparse else back.X, X)
    assert np.array_equal(back.y, y)


def text_of(tmp_path, *args, **options):
    write_letor(tmp_path / "out", *args, **options)
    return (tmp_path / "out").read_text()


def test_the_text_itself(tmp_path):
    X = np.array([[0.1, -0.0], [3, 1e-5]], dtype=np.float32)
    assert text_of(tmp_path, X, [1, 2.5], [3, -4], docid=["a", ""]) == (
        "1 qid:3 1:0.1 2:-0 #docid = a\n2.5 qid:-4 1:3 2:1e-05\n"
    )
    assert text_of(tmp_path, X[:1], [1], zero_based=True) == "1 0:0.1 1:-0\n"
    assert text_of(tmp_path, X[:1], [1], ["q x".replace(" ", "-")], comment="head") == "# head\n1 qid:q-x 1:0.1 2:-0\n"


def test_sparse_text(tmp_path):
    X = sp.csr_matrix(([2.0, 1.0, 5.0], [2, 1, 0], [0, 2, 2, 3]), shape=(3, 5))
    assert text_of(tmp_path, X, [0, 0, 1]) == "0 2:1 3:2 5:0\n0\n1 1:5\n"
    assert text_of(tmp_path, X[:2], [0, 0], zero_based=True) == "0 0:0 1:1 2:2 4:0\n0\n"
    assert X.indices.tolist() == [2, 1, 0]  # the caller's matrix is not sorted in place
    empty = sp.csr_matrix((1, 1))
    assert text_of(tmp_path, empty, [1], zero_based=True) == "1 0:0\n"
    assert text_of(tmp_path, sp.coo_array(np.eye(2)), [1, 0]) == "1 1:1\n0 2:1\n"
    wide = sp.csr_matrix((np.ones(1, np.float32), np.array([7], np.int64), np.array([0, 1], np.int64)), shape=(1, 8))
    assert text_of(tmp_path, wide, [1]) == "1 8:1\n"


@pytest.mark.parametrize(
    ("qid", "written"),
    [
        (np.array([1, 2], np.uint8), ["1", "2"]),
        (np.array([1.0, 2.0]), ["1", "2"]),
        (np.array([1.5, 2.0]), ["1.5", "2.0"]),
        (np.array(["a", "é"]), ["a", "é"]),
        (np.array([b"a", b"b"]), ["a", "b"]),
        (np.array(["x", 3], dtype=object), ["x", "3"]),
        (np.array([1, 1 << 63], np.uint64), ["1", "9223372036854775808"]),
    ],
)
def test_query_ids_of_any_type(qid, written, tmp_path):
    write_letor(tmp_path / "out", np.ones((2, 1)), [1, 0], qid)
    assert [line.split()[1][4:] for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines()] == written


def test_integers_and_views(tmp_path):
    X = np.arange(24).reshape(4, 6)[::-1, ::2]
    write_letor(tmp_path / "out", X, range(4))
    assert np.array_equal(read_letor(tmp_path / "out").X, X)
    write_letor(tmp_path / "out", np.asfortranarray(X.astype(np.float32)), range(4))
    assert np.array_equal(read_letor(tmp_path / "out").X, X)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1.0]],), {}, "y is missing"),
        (([[1.0]], [np.nan]), {}, "y is nan in row 0"),
        (([[1.0], [np.inf]], [1, 2]), {}, r"X\[1, 0\] \(feature f1\) is inf"),
        ((sp.csr_matrix([[0, 1.0], [0, np.nan]]), [1, 2]), {}, r"X\[1, 1\] \(feature f2\) is nan"),
        (([[1.0]], [1], ["a b"]), {}, "qid 'a b' in row 0 holds a blank"),
        (([[1.0]], [1], ["a#b"]), {}, "qid 'a#b' in row 0"),
        (([[1.0]], [1], [""]), {}, "qid is empty in row 0"),
        (([[1.0]], [1], [1]), {"docid": ["a\nb"]}, "docid .* in row 0 holds"),
        (([[1.0]], [1, 2]), {}, "y has 2 entries but X has 1 rows"),
        (([1.0], [1]), {}, "two-dimensional"),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file(arguments, options, message, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("old")
    with pytest.raises(DataError, match=message):
        write_letor(path, *arguments, **options)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["data.txt"]


def test_compressed_files_are_reproducible(tmp_path):
    data = make_ranking(5, 5, 3, random_state=0)
    for name in ("a.gz", "b.gz"):
        write_letor(tmp_path / name, data)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_real_data_come_back(shared_data, tmp_path):
    for name in ("MQ2008", "LightGBM-rank", "WikiQA-wordpairs"):
        data = read_letor(shared_data / name / "Fold1" / "test.txt.gz")
        write_letor(tmp_path / "again.txt", data)
        back = read_letor(io.BytesIO((tmp_path / "again.txt").read_bytes()), sparse=sp.issparse(data.X))
        assert isinstance(back, RankingData)
        assert back.X.shape == data.X.shape
        assert (back.X != data.X).sum() == 0
        assert np.array_equal(back.y, data.y)
