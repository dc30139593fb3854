"""Bad lines: each reason has its own message, with file, line and column, and the first bad line is the one named."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest

from ranksvm.datasets import read_letor
from ranksvm.datasets.letor import reader, text as letor_text
from ranksvm.exceptions import DataError, ParseError


def error_of(text, **options):
    content = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ParseError) as caught:
        read_letor(io.BytesIO(content), **options)
    return caught.value


REASONS = {
    "duplicate": ("2 qid:1 1:1 2:3 2:4", 17, "duplicate feature id: '2:4' repeats a feature of the line"),
    "duplicate unsorted": ("2 qid:1 2:1 1:3 2:4", 17, "duplicate feature id: '2:4'"),
    "nan": ("2 qid:1 1:nan", 11, r"the value of feature 1 is nan \('nan'\); omit a missing feature"),
    "NaN": ("2 qid:1 1:0 12:-NaN", 16, r"the value of feature 12 is nan \('-NaN'\)"),
    "inf": ("2 qid:1 1:inf", 11, r"the value of feature 1 is infinite \('inf'\)"),
    "infinity": ("2 qid:1 1:-Infinity 2:1", 11, r"is infinite \('-Infinity'\)"),
    "infix": ("2 qid:1 1:info", 11, "the value of feature 1 must be a number, found 'info'"),
    "missing label": ("qid:1 1:2", 1, "the label is missing: a line begins with a number, then qid:<id>"),
    "missing label and qid": ("1:0.5 2:1", 1, "the label is missing: .* found '1:0.5'"),
    "bad label": ("good qid:1 1:2", 1, "the label must be a number, found 'good'"),
    "half a label": ("1x qid:1 1:2", 1, "the label must be a number, found '1x'"),
    "nan label": ("nan qid:1 1:2", 1, "the label is nan"),
    "infinite label": ("  -inf qid:1 1:2", 3, "the label is infinite"),
    "large label": ("1e999 qid:1 1:2", 1, "the label '1e999' is out of the range of float64"),
    "missing qid": ("1 1:2 2:3", 3, "the line has no qid, but the first line of data has one: .* found '1:2'"),
    "empty qid": ("1 qid: 1:2", 3, "the query id is empty"),
    "late qid": ("1 qid:1 1:2 qid:2", 13, "'qid:2' must occur once, right after the label"),
    "missing colon": ("1 qid:1 1:2 3", 13, "a colon is missing: expected <feature id>:<value>, found '3'"),
    "word": ("1 qid:1 1:2 word", 13, "a colon is missing: .* found 'word'"),
    "bad id": ("1 qid:1 a1:2", 9, "the feature id must be a whole number, found 'a1'"),
    "fractional id": ("1 qid:1 1.5:2", 9, "the feature id must be a whole number, found '1.5'"),
    "empty id": ("1 qid:1 :2", 9, "the feature id must be a whole number"),
    "minus alone": ("1 qid:1 -:2", 9, "the feature id must be a whole number, found '-'"),
    "negative id": ("1 qid:1 -3:2", 9, "the feature id is negative: '-3'"),
    "large id": ("1 qid:1 2147483648:2", 9, "the feature id '2147483648' is too large"),
    "huge id": ("1 qid:1 99999999999999999999999:2", 9, "is too large: ids go up to 2147483647"),
    "missing value": ("1 qid:1 1: 2:3", 9, "the value is missing: expected <feature id>:<value>, found '1:'"),
    "missing value at the end": ("1 qid:1 1:", 9, "the value is missing"),
    "bad value": ("1 qid:1 1:abc", 11, "the value of feature 1 must be a number, found 'abc'"),
    "two points": ("1 qid:1 1:1.2.3", 11, "must be a number, found '1.2.3'"),
    "comma": ("1 qid:1 1:1,5", 11, "must be a number, found '1,5'"),
    "hexadecimal": ("1 qid:1 1:0x10", 11, "must be a number, found '0x10'"),
    "point alone": ("1 qid:1 1:.", 11, "must be a number, found '.'"),
    "exponent alone": ("1 qid:1 1:1e", 11, "must be a number, found '1e'"),
    "two signs": ("1 qid:1 1:+-1", 11, r"must be a number, found '\+-1'"),
    "two colons": ("1 qid:1 1:2:3", 11, "must be a number, found '2:3'"),
    "too large": ("1 qid:1 1:1 2:-4e38", 15, "the value of feature 2 is out of the range of float32: '-4e38'.*float64"),
    "NUL in a qid": ("1 qid:1\0 1:1", 3, r"an id has a NUL character, which no array of strings keeps: 'qid:1\\x00'"),
    "NUL in a word": ("1 qid:a\0b 1:1", 3, "an id has a NUL character"),
    "NUL in a docid": ("1 qid:1 1:1 #docid = a\0", 22, "an id has a NUL character"),
    "not UTF-8": (b"1 qid:1 1:\xff", 11, "must be a number"),
}


@pytest.mark.parametrize("name", REASONS)
@pytest.mark.parametrize("wrap", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"  # comment\n1 qid:1 1:1\n"], ids=["end", "lf", "crlf", "more"])
def test_reason_line_and_column(name, wrap, end):
    line, column, message = REASONS[name]
    line = line if isinstance(line, bytes) else line.encode()
    text = b"# head\n1 qid:1 1:1\n\n" + line + end
    for sparse in (None, True, False):
        error = error_of(wrap(text), sparse=sparse)
        assert error.line == 4
        assert error.column == column
        error_of_message = str(error)
        assert error_of_message.startswith(f"<bytes>:4:{column}: ")
        with pytest.raises(ParseError, match=message):
            raise error


def test_float64_has_another_range():
    assert read_letor(io.BytesIO(b"1 1:4e38\n"), dtype=np.float64).X[0, 0] == 4e38
    error = error_of("1 1:1e309\n", dtype=np.float64)
    assert error.reason == "the value of feature 1 is out of the range of float64: '1e309'"


def test_nothing_after_the_label_where_a_qid_is_expected():
    error = error_of("1 qid:1 1:1\n1\n")
    assert (error.line, error.column) == (2, 2)
    assert error.reason.endswith("expected qid:<id> after the label, found the end of the line")


def test_qid_where_the_first_line_has_none():
    error = error_of("1 1:1\n1 qid:3 1:1\n")
    assert (error.line, error.column) == (2, 3)
    assert error.reason == "the line has 'qid:3', but the first line of data has no qid"


@pytest.mark.parametrize("sparse", [True, False])
def test_id_over_the_declared_number(sparse):
    error = error_of("1 1:1\n1 1:1 4:2\n", n_features=3, sparse=sparse)
    assert (error.line, error.column) == (2, 7)
    assert error.reason == "the feature id '4' is above n_features=3 (ids start at 1)"
    # An id 0 anywhere makes ids count from 0, and 3 is then one too many.
    error = error_of("1 1:1\n1 1:1 3:2\n1 0:1\n", n_features=3, sparse=sparse)
    assert (error.line, error.column) == (2, 7)
    assert "ids start at 0" in error.reason


def test_zero_id_where_ids_are_said_to_count_from_one():
    error = error_of("1 1:1\n1 0:1\n", zero_based=False)
    assert (error.line, error.column) == (2, 3)
    assert "with zero_based=False ids start at 1" in error.reason


@pytest.mark.parametrize("wrap", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_the_first_bad_line_is_named_whatever_the_threads(wrap, monkeypatch):
    monkeypatch.setattr(letor_text, "_RANGE", 16)
    monkeypatch.setattr(reader, "WINDOW", 64)
    lines = [f"{i % 3} qid:{i} 1:1 2:0.5" for i in range(300)]
    for bad in ((298, 40, 41), (5,), (299,), (130, 131)):
        broken = list(lines)
        for number in bad:
            broken[number] = f"0 qid:1 1:bad{number}"
        for n_jobs in (1, 2, 3, 8):
            error = error_of(wrap("\n".join(broken).encode()), n_jobs=n_jobs)
            assert error.line == min(bad) + 1
            assert f"'bad{min(bad)}'" in error.reason


def test_a_bad_line_before_the_first_zero_id_is_judged_with_ids_from_one(monkeypatch):
    monkeypatch.setattr(letor_text, "_RANGE", 16)
    text = "1 1:1\n" * 5 + "1 1:x\n" + "1 1:1\n" * 50 + "1 0:1\n"
    for n_jobs in (1, 4):
        assert error_of(text, n_jobs=n_jobs).line == 6


def test_columns_count_bytes_after_a_byte_order_mark():
    error = error_of(b"\xef\xbb\xbf1 1:x\n")
    assert (error.line, error.column) == (1, 5)


def test_long_text_is_cut_in_the_message():
    error = error_of("1 1:" + "x" * 500)
    assert len(error.reason) < 150
    assert "..." in error.reason


def test_the_file_is_named(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 1:2\nbad qid:1 1:2\n")
    with pytest.raises(ParseError) as caught:
        read_letor(path)
    assert str(caught.value) == f"{path}:2:1: the label must be a number, found 'bad'"
    assert isinstance(caught.value, ValueError)
    path.unlink()  # nothing keeps the file


def packed(kind, text):
    if kind == "zstd":
        return pytest.importorskip("zstandard").compress(text)
    return {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}[kind](text)


RANDOM_TEXT = "".join(f"1 qid:{i} 1:{v}\n" for i, v in enumerate(np.random.default_rng(0).random(3000))).encode()


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_truncated_compressed_file(kind, n_jobs, monkeypatch):
    monkeypatch.setattr(reader, "WINDOW", 1 << 12)
    content = packed(kind, RANDOM_TEXT)
    for keep in (len(content) // 2, len(content) - 1, 20):
        error = error_of(content[:keep], n_jobs=n_jobs)
        assert f"the {kind} data end early: the file is truncated" in error.reason
        assert error.column == 1
        assert 1 <= error.line <= 3001


def test_truncation_names_the_line_it_reached():
    content = gzip.compress(RANDOM_TEXT)
    error = error_of(content[: len(content) // 2])
    assert 1000 < error.line < 2000


def test_a_bad_line_before_the_truncation_comes_first():
    text = b"1 1:x\n" + RANDOM_TEXT.replace(b"qid:", b"2:")
    content = gzip.compress(text)
    error = error_of(content[: len(content) // 2])
    assert error.line == 1
    assert "'x'" in error.reason


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
def test_damaged_compressed_file(kind):
    content = bytearray(packed(kind, RANDOM_TEXT))
    for i in range(len(content) // 2, len(content) // 2 + 64):
        content[i] ^= 0x5A
    with pytest.raises(DataError):  # gzip hands out what the damage made of the text before it finds out
        read_letor(io.BytesIO(bytes(content)))
    with pytest.raises(ParseError, match=f"the {kind} data are damaged"):
        read_letor(io.BytesIO(packed(kind, b"1 1:1\n") + b"trailing rubbish"))


def test_a_zip_archive_is_no_text(tmp_path):
    np.savez(tmp_path / "data.npz", a=np.zeros(3))
    with pytest.raises(DataError, match=r"data\.npz is a zip archive, not data: unpack it"):
        read_letor(tmp_path / "data.npz")


# What mutation found: refused with another error than ParseError before.
MUTANTS = [
    (b"2 qid:1 1:0.5\n0 1\n" + b"0\n" * 9, {"sparse": True}),
    (b"1 qid:1\n" * 3 + b"1\n" * 3, {"sparse": True}),
    (b"1 qid:1 1:1\n1\n1\n1\n1\n1 qid:1", {"sparse": None}),
]


@pytest.mark.parametrize(("text", "options"), MUTANTS)
@pytest.mark.parametrize("wrap", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_mutants(text, options, wrap):
    assert "the line has no qid" in error_of(wrap(text), **options).reason


def test_compressed_rows_without_features():
    data = read_letor(io.BytesIO(gzip.compress(b"1 qid:1\n0 qid:1\n")), sparse=True)
    assert data.X.shape == (2, 1)
    assert data.X.nnz == 0
