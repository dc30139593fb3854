"""Files of TREC: judgments and runs."""

import gzip

import numpy as np
import pytest

from ranksvm.datasets import Qrels, RankingData, Run, read_qrels, read_run, write_qrels, write_run
from ranksvm.exceptions import DataError, OptionError, ParseError
from ranksvm.metrics import evaluate_run


def test_qrels_are_read(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("301 0 FBIS3-10082 1\n301\t0\tFBIS3-10169\t0\n\n302 Q0 d\u00e9 -1\r\n")
    qrels = read_qrels(path)
    assert repr(qrels) == "Qrels(3 judgments of 2 queries)"
    assert qrels.to_dict() == {"301": {"FBIS3-10082": 1.0, "FBIS3-10169": 0.0}, "302": {"d\u00e9": -1.0}}


def test_a_run_is_read_whatever_its_ranks_say(tmp_path):
    path = tmp_path / "run.txt.gz"
    path.write_bytes(gzip.compress(b"q1 Q0 a 1 0.5 bm25\nq1 Q0 b 1 1e3 bm25\nq0 Q0 a 0 -inf bm25\n"))
    run = read_run(path)
    assert run.name == "bm25"
    assert run.to_dict() == {"q1": {"a": 0.5, "b": 1000.0}, "q0": {"a": -np.inf}}
    assert run.ordered().tolist() == [1, 0, 2]


def test_what_is_written_is_read(tmp_path):
    rng = np.random.default_rng(0)
    qid, docid = np.repeat(["x", "a", "m"], 40), np.tile(rng.permutation(40), 3)
    run = Run(qid, docid, rng.normal(size=120).round(1), name="mine")
    write_run(tmp_path / "run.zst", run)
    again = read_run(tmp_path / "run.zst")
    assert again.to_dict() == run.to_dict()
    assert again.name == "mine"
    assert list(dict.fromkeys(again.qid.tolist())) == ["x", "a", "m"]
    qrels = Qrels(qid, docid, rng.integers(0, 3, 120))
    write_qrels(tmp_path / "qrels.txt", qrels)
    assert read_qrels(tmp_path / "qrels.txt").to_dict() == qrels.to_dict()
    assert (tmp_path / "qrels.txt").read_text().startswith(f"x 0 {docid[0]} {int(qrels.label[0])}\n")


def test_ids_with_spaces_are_found_in_the_files_that_have_them(tmp_path):
    data = RankingData(np.zeros((4, 1)), [1, 0, 2, 0], ["q 1", "q 1", "q2", "q2"], ["a b", "c", "d e", "f"])
    scores = [0.1, 0.4, 0.3, 0.2]
    qrels, run = Qrels.from_data(data), Run.from_scores(data, scores)
    write_qrels(tmp_path / "qrels", qrels)
    write_run(tmp_path / "run", run)
    assert read_qrels(tmp_path / "qrels").labels_of(data).tolist() == data.y.tolist()
    assert read_run(tmp_path / "run").scores_of(data).tolist() == [1, 2, 2, 1]
    expected = evaluate_run(run, qrels, "map").per_query["map"].tolist()
    files = tmp_path / "run", tmp_path / "qrels"
    for ranked, judged in ((files[0], qrels), (run, files[1]), files):
        assert evaluate_run(ranked, judged, "map").per_query["map"].tolist() == expected == [0.5, 1.0]


def test_different_ids_that_a_file_would_spell_alike_are_refused(tmp_path):
    for ids, message in (
        ({"q 1": {"a": 1}, "q_1": {"b": 1}}, "the query ids 'q 1' and 'q_1' would both become 'q_1'"),
        ({"q": {"a b": 1, "a_b": 1}}, "document 'a_b' is .* twice for query 'q'"),
    ):
        for write in (write_qrels, write_run):
            with pytest.raises(DataError, match=message):
                write(tmp_path / "file", ids)
            assert not (tmp_path / "file").exists()


def test_runs_are_written_in_the_order_of_trec_eval(tmp_path):
    write_run(tmp_path / "run", {"q 1": {"d 2": 1.0, "d10": 1.0, "d9": 1.0, "e": 1.5}, "q0": {"d": 0.1}})
    assert (tmp_path / "run").read_text().splitlines() == [
        "q_1 Q0 e 1 1.5 ranksvm",
        "q_1 Q0 d_2 2 1.0 ranksvm",
        "q_1 Q0 d9 3 1.0 ranksvm",
        "q_1 Q0 d10 4 1.0 ranksvm",
        "q0 Q0 d 1 0.1 ranksvm",
    ]


def test_fractions_are_kept_as_labels(tmp_path):
    write_qrels(tmp_path / "q", {"q": {"a": 0.5, "b": 2}})
    assert (tmp_path / "q").read_text() == "q 0 a 0.5\nq 0 b 2\n"


def test_data_as_judgments_and_back():
    data = RankingData(np.zeros((4, 1)), [2, 0, 1, 1], [7, 7, 8, 8], np.array(["a", "b", "", "a"]))
    qrels = Qrels.from_data(data)
    assert qrels.to_dict() == {"7": {"a": 2.0, "b": 0.0}, "8": {"2": 1.0, "a": 1.0}}
    assert qrels.labels_of(data).tolist() == [2, 0, 1, 1]
    order = [3, 0, 2]
    assert Qrels.from_dict({"7": {"a": 3}, "8": {"a": 4}}).labels_of(data.select(order)).tolist()[:2] == [4, 3]
    assert Qrels.from_dict({"7": {"a": 3}, "8": {"c": 4}}).labels_of(data, unjudged=-1).tolist() == [3, -1, -1, -1]
    with pytest.raises(DataError, match="no row has a judgment: the data have, for example, document 'a' of query '7'"):
        Qrels.from_dict({"9": {"a": 3}}).labels_of(data)
    assert Run.from_scores(data, [0.1, 0.2, 0.3, 0.4]).to_dict()["8"] == {"2": 0.3, "a": 0.4}
    anonymous = RankingData(np.zeros((2, 1)), [1, 0])
    assert Qrels.from_data(anonymous).to_dict() == {"0": {"0": 1.0, "1": 0.0}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 0 a", r"qrels.txt:2:1: found 3 columns, expected four columns: query, iteration \(not used\)"),
        ("q1 0 a b c", "qrels.txt:2:1: found 5 columns"),
        ("q1 0 a one", "qrels.txt:2:8: the label must be a finite number, found 'one'"),
        ("q1 0  \u00e9 nan", "qrels.txt:2:10: the label must be a finite number, found 'nan'"),
        ("q1 0 a 1_0", "the label must be a finite number, found '1_0'"),
        ("q1 0 a\0 1", r"qrels.txt:2:6: an id has a NUL character"),
        ("q1 0 a inf", "the label must be a finite number, found 'inf'"),
        ("q0 7 d 3", "qrels.txt:2:6: document 'd' of query 'q0' is also in line 1: each may occur once"),
    ],
)
def test_bad_lines_of_qrels(tmp_path, line, message):
    path = tmp_path / "qrels.txt"
    path.write_text(f"q0 0 d 1\n{line}\n")
    with pytest.raises(ParseError, match=message) as caught:
        read_qrels(path)
    assert (caught.value.path, caught.value.line) == (str(path), 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 Q0 a 1 0.5", "run.txt:2:1: found 5 columns, expected six columns: query, Q0"),
        ("q1 Q0 a 1 x me", "run.txt:2:11: the score must be a number, found 'x'"),
        ("q1 Q0 a 1 nan me", "the score must be a number, found 'nan'"),
        ("q0 Q0 d 2 0.1 me", "document 'd' of query 'q0' is also in line 1"),
    ],
)
def test_bad_lines_of_runs(tmp_path, line, message):
    path = tmp_path / "run.txt"
    path.write_text(f"q0 Q0 d 1 0.5 me\n{line}\n")
    with pytest.raises(ParseError, match=message):
        read_run(path)


def test_other_white_space_belongs_to_an_id(tmp_path):
    (tmp_path / "q").write_text("\ufeffq\u00a01 0 a\u2028b\x1cc 1\n")
    assert read_qrels(tmp_path / "q").to_dict() == {"q\u00a01": {"a\u2028b\x1cc": 1.0}}
    write_qrels(tmp_path / "again", read_qrels(tmp_path / "q"))
    assert (tmp_path / "again").read_bytes() == "q\u00a01 0 a\u2028b\x1cc 1\n".encode()
    (tmp_path / "r").write_text("q Q0 d 1 0.5 my\u00a0run\n")
    assert read_run(tmp_path / "r").name == "my\u00a0run"


def test_files_without_a_line_and_files_that_are_not_text(tmp_path):
    path = tmp_path / "file"
    path.write_text("\n \n")
    with pytest.raises(DataError, match="holds no judgment: expected four columns"):
        read_qrels(path)
    with pytest.raises(DataError, match="holds no ranking: expected six columns"):
        read_run(path)
    path.write_bytes(b"q 0 \xff 1\n")
    with pytest.raises(DataError, match="is not text"):
        read_qrels(path)
    path.write_bytes(gzip.compress(b"q 0 a 1\n" * 100)[:-9])
    with pytest.raises(DataError, match="the file is truncated"):
        read_qrels(path)


def test_records_are_checked(tmp_path):
    with pytest.raises(DataError, match=r"document 'a' is judged twice for query 'q' \(row 2, from 0\)"):
        Qrels(["q", "p", "q"], ["a", "a", "a"], [1, 1, 0])
    with pytest.raises(DataError, match="document '1' is ranked twice"):
        Run([1, 1], [1, 1], [0.1, 0.2])
    with pytest.raises(DataError, match="score has 1 entries but qid has 2 rows"):
        Run([1, 1], [1, 2], [0.1])
    with pytest.raises(DataError, match="score"):
        Run([1, 1], [1, 2], [0.1, np.nan])
    for name in ("", "two words", "x\n"):
        with pytest.raises(OptionError, match="name of a run must be one word"):
            Run([1], [1], [0.1], name)
    with pytest.raises(DataError, match=r"the document id of row 0 .* is empty"):
        write_run(tmp_path / "run", Run(["q"], [""], [1.0]))
    assert not (tmp_path / "run").exists()
