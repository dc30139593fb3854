"""Files of TREC in every command: ``--qrels`` for labels, runs of other systems."""

import json

import numpy as np
import pytest

import ranksvm as package
from ranksvm.datasets import Qrels, RankingData, Run, iter_data, read_data, read_run
from ranksvm.datasets.trec_files import kind_of
from ranksvm.exceptions import DataError


@pytest.fixture
def qrels(folder, ranksvm, tmp_path):
    ranksvm("convert", folder / "test.txt", tmp_path / "test.qrels")
    return tmp_path / "test.qrels"


@pytest.fixture
def unlabeled(folder, tmp_path):
    """The documents of test.txt with the labels 0."""
    path = tmp_path / "features.txt"
    path.write_text("".join("0" + line[1:] for line in (folder / "test.txt").read_text().splitlines(keepends=True)))
    return path


@pytest.fixture
def bm25(folder, tmp_path):
    """A run of another system: by the first feature, the first six documents of all queries but one."""
    data = read_data(folder / "test.txt")
    path = tmp_path / "bm25.run"
    lines = Run.from_scores(data, data.X[:, 0].astype(float), "bm25").to_dict()
    del lines["104"]
    first = {query: dict(sorted(found.items(), key=lambda item: -item[1])[:6]) for query, found in lines.items()}
    package.write_run(path, Run.from_dict(first, "bm25"))
    return path


def without_paths(document, *names):
    return {key: value for key, value in document.items() if key not in {"seconds", "path", "data", *names}}


@pytest.mark.parametrize(
    "line",
    [["info"], ["online", "--learner", "solar1"], ["online", "--learner", "prank"], ["analyze", "MODEL"]],
    ids=lambda line: "-".join(line),
)
def test_judgments_take_the_place_of_labels(ranksvm, ranksvm_json, folder, tmp_path, unlabeled, qrels, line):
    """A command with features and judgments gives what it gives with labeled data."""
    name, *options = line
    if "MODEL" in options:
        ranksvm("train", folder / "test.txt", "-o", tmp_path / "model.rsvm")
        options = [tmp_path / "model.rsvm"]
    expected = ranksvm_json(name, *options, folder / "test.txt")
    found = ranksvm_json(name, *options, unlabeled, "--qrels", qrels)
    assert without_paths(found) == without_paths(expected)


def test_a_report_by_judgments_with_a_run_as_baseline(
    ranksvm, ranksvm_json, folder, model, unlabeled, qrels, bm25, tmp_path
):
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    options = ["--worst", 0, "--metrics", "map,ndcg@5", "-o", tmp_path / "report.html"]
    labeled = ranksvm_json("report", model, "--test", folder / "test.txt", *options)["systems"][0]
    arguments = ["report", model, "--test", unlabeled, "--qrels", qrels, "--baseline", bm25, *options]
    ours, theirs = ranksvm_json(*arguments)["systems"]
    assert ours == labeled
    assert theirs["name"] == "bm25.run"
    data = read_data(folder / "test.txt")
    scores = read_run(bm25).scores_of(data)
    assert theirs["metrics"] == package.metrics.evaluate(data.y, scores, data.qid, "map,ndcg@5", docid=data.docid).means
    bm25.write_text("1 Q0 x 1 0.5 bm25\n")
    message = ranksvm(*arguments, code=1).stderr
    assert f"{bm25}: no row has a place in the run: the data have, for example, document 'D0-0' of query" in message


def test_rank_shows_the_labels_of_judgments(ranksvm, ranksvm_json, folder, model, unlabeled, qrels):
    data = read_data(folder / "test.txt")
    document = ranksvm_json("rank", model, unlabeled, "--qrels", qrels)
    labels = {item["row"]: item["label"] for query in document["queries"] for item in query["documents"]}
    assert [labels[row] for row in range(data.n_rows)] == data.y.tolist()
    header, line, *_ = ranksvm("rank", model, unlabeled, "--qrels", qrels).stdout.splitlines()
    assert header == "query\trank\tdocid\tscore\tlabel"
    first = document["queries"][0]["documents"][0]
    assert line.split("\t") == ["100", "1", first["docid"], repr(first["score"]), f"{first['label']:g}"]
    table = ranksvm("rank", model, unlabeled, "--qrels", qrels, "--format", "table").stdout
    assert "label" in table.splitlines()[0]
    assert "label" not in ranksvm("rank", model, unlabeled).stdout
    message = ranksvm("rank", model, unlabeled, "--qrels", qrels, "--format", "trec", code=2).stderr
    assert "a TREC run does not have" in message


def test_a_run_is_ranked_again(ranksvm, ranksvm_json, folder, model, bm25, tmp_path):
    everything = ranksvm_json("rank", model, folder / "test.txt")["queries"]
    first = read_run(bm25)
    for depth, options in ((6, []), (3, ["--depth", 3])):
        document = ranksvm_json("rank", model, folder / "test.txt", "--candidates", bm25, *options)
        assert [query["query"] for query in document["queries"]] == [
            query["query"] for query in everything if query["query"] != "104"
        ]
        for query in document["queries"]:
            found = [item["docid"] for item in query["documents"]]
            retrieved = first.to_dict()[query["query"]]
            kept = sorted(retrieved, key=lambda docid: -retrieved[docid])[:depth]
            (whole,) = (each for each in everything if each["query"] == query["query"])
            assert found == [item["docid"] for item in whole["documents"] if item["docid"] in kept]
            assert [item["rank"] for item in query["documents"]] == list(range(1, depth + 1))
    out = tmp_path / "ours.run"
    with open(bm25, "a") as file:
        file.write("100 Q0 elsewhere 7 99 bm25\n")
    result = ranksvm("rank", model, folder / "test.txt", "--candidates", bm25, "--format", "trec", "-o", out)
    assert "test.txt lacks 1 document of the run, ignored" in result.stderr
    assert len(read_run(out)) == 14 * 6
    assert "--depth is a number" in ranksvm("rank", model, folder / "test.txt", "--depth", 3, code=2).stderr
    bm25.write_text("1 Q0 x 1 0.5 bm25\n")
    assert (
        "no row has a place in the run"
        in ranksvm("rank", model, folder / "test.txt", "--candidates", bm25, code=1).stderr
    )


def test_info_describes_runs_and_judgments(ranksvm, ranksvm_json, qrels, bm25, tmp_path):
    found = ranksvm_json("info", qrels)
    assert (found["kind"], found["rows"], found["queries"]) == ("qrels", 120, 15)
    assert sum(level["rows"] for level in found["levels"]) == 120
    stdout = ranksvm("info", qrels).stdout
    assert "judgments" in stdout
    assert "queries without a relevant document" in stdout
    found = ranksvm_json("info", bm25)
    assert (found["kind"], found["rows"], found["queries"], found["name"]) == ("run", 84, 14, "bm25")
    assert found["rows_per_query"] == {"min": 6, "median": 6.0, "mean": 6.0, "max": 6}
    assert "6 to 6, median 6" in ranksvm("info", bm25).stdout
    assert "is not one" in ranksvm("info", bm25, "--qrels", qrels, code=2).stderr
    bm25.write_text(bm25.read_text() * 2)
    assert "each may occur once" in ranksvm("info", bm25, code=1).stderr


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("q 0 d 1\n", "qrels"),
        ("\n\tq 0 d -1.5\nbroken", "qrels"),
        ("q Q0 d 1 0.5 ours\n", "run"),
        ("1 qid:1 1:0.5 2:0.5\n", None),
        ("1 1:0.5 2:0.5 3:0.5\n", None),
        ("1 qid:3 1:0.5 2:0.5 3:1 4:1\n", None),
        ("0.25\n", None),
        ("", None),
        ("label,qid,a,b\n", None),
    ],
)
def test_the_kind_of_a_file_shows_in_its_first_line(tmp_path, text, kind):
    path = tmp_path / "file"
    path.write_text(text)
    assert kind_of(path) == kind


def test_scores_of_a_run_keep_its_order_and_its_ties():
    data = RankingData(np.zeros((6, 1)), np.zeros(6), list("aabbbb"), list("xyxyzw"))
    run = Run(list("bbbbaz"), list("wyzkyx"), [np.inf, -2.0, -2.0, 1.5, -np.inf, 3.0])
    assert run.scores_of(data).tolist() == [0.0, 1.0, 0.0, 1.0, 1.0, 3.0]
    with pytest.raises(DataError, match="no row has a place in the run"):
        Run(["z"], ["x"], [1.0]).scores_of(data)


def test_only_the_last_part_of_a_file_is_judged(ranksvm, ranksvm_json, folder, unlabeled, qrels, tmp_path):
    """Parts of a file without a judgment are not an error, and rows without ids are counted through the file."""
    few = tmp_path / "few.qrels"
    few.write_text("".join(qrels.read_text().splitlines(keepends=True)[-8:]))
    options = ["--learner", "solar1", "--batch-queries", 2]
    result = ranksvm("online", unlabeled, "--qrels", few, *options)
    assert "112 rows without a judgment" in result.stderr
    few.write_text("7 0 x 1\n")
    result = ranksvm("online", unlabeled, "--qrels", few, *options, "-o", tmp_path / "m.rsvm", code=1)
    assert f"{unlabeled}: no row has a judgment" in result.stderr
    ranksvm("convert", unlabeled, tmp_path / "out.rsd")
    before = (tmp_path / "out.rsd").read_bytes()
    ranksvm("convert", unlabeled, "--qrels", few, tmp_path / "out.rsd", code=1)
    assert (tmp_path / "out.rsd").read_bytes() == before


def test_ids_with_spaces(ranksvm, ranksvm_json, tmp_path):
    pytest.importorskip("pyarrow")
    data, model, run = tmp_path / "data.csv", tmp_path / "model", tmp_path / "ours.run"
    data.write_text("label,qid,docid,a\n1,q 1,a b,3\n0,q 1,c,1\n2,q2,d e,1\n0,q2,f,0\n")
    ranksvm("train", data, "-o", model)
    ranksvm("rank", model, data, "--format", "trec", "-o", run)
    found = ranksvm("evaluate", data, "--run", run, "--model", model, "--metrics", "map")
    assert "judg" not in found.stderr
    found = ranksvm_json("evaluate", data, "--run", run, "--model", model, "--metrics", "map")
    assert [system["metrics"]["map"] for system in found["systems"]] == [1.0, 1.0]
    ranksvm("convert", data, tmp_path / "labels.qrels")
    assert "without a judgment" not in ranksvm("info", data, "--qrels", tmp_path / "labels.qrels").stderr
    for change in (("q2", "q_1"), (",c,", ",a_b,")):
        data.write_text(data.read_text().replace(*change))
        run.write_text("old")
        stderr = ranksvm("rank", model, data, "--format", "trec", "-o", run, code=1).stderr
        assert "would both become" in stderr
        assert run.read_text() == "old"


def test_documents_without_ids_are_named_by_their_row_in_the_file(ranksvm, folder, tmp_path):
    run = tmp_path / "online.run"
    ranksvm("online", folder / "anonymous.txt", "--batch-queries", 1, "--run", run)
    assert sorted(map(int, read_run(run).docid)) == list(range(24))
    qrels = Qrels.from_data(read_data(folder / "anonymous.txt"))
    found = package.metrics.evaluate_run(read_run(run), qrels, "map").means
    assert found == package.metrics.evaluate_run(run, qrels, "map").means
    package.write_qrels(tmp_path / "all.qrels", qrels)
    stderr = ranksvm("online", folder / "anonymous.txt", "--qrels", tmp_path / "all.qrels", "--batch-queries", 1).stderr
    assert "without a judgment" not in stderr


def test_a_table_without_labels_is_a_stream(ranksvm_json, ranksvm, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = tmp_path / "features.csv"
    table.write_text("qid,docid,a,b\n" + "".join(f"q{i // 4},d{i},{i % 4},{i % 3}\n" for i in range(40)))
    qrels = tmp_path / "q.qrels"
    qrels.write_text("".join(f"q{i // 4} 0 d{i} {i % 4}\n" for i in range(40)))
    assert ranksvm_json("online", table, "--qrels", qrels)["queries"] == 10
    assert "no column 'label'" in ranksvm("online", table, code=1).stderr
    assert next(iter_data(table, require_labels=False)).y.tolist() == [0.0] * 4


def test_every_command_that_uses_labels_takes_judgments():
    from ranksvm.cli import main

    takes = {
        name
        for name in main.list_commands(None)
        if any("--qrels" in parameter.opts for parameter in main.get_command(None, name).params)
    }
    assert takes == {
        *("train", "tune", "folds", "online", "evaluate", "rank", "report", "analyze", "convert", "info", "simulate")
    }


def test_json_documents_are_whole(ranksvm, model, folder):
    document = json.loads(ranksvm("rank", model, folder / "test.txt", "--json").stdout)
    assert document["queries"][0]["documents"][0]["label"] is None


def test_files_of_trec_are_no_data(ranksvm, folder, model, qrels, bm25, tmp_path):
    message = ranksvm("train", qrels, "-o", tmp_path / "m.rsvm", code=1).stderr
    assert (
        message == f"Error: {qrels} is no data file: it holds TREC judgments, the labels of --qrels, and no features.\n"
    )
    for line in (
        ["predict", model, bm25],
        ["convert", bm25, tmp_path / "out.rsd"],
        ["convert", bm25, tmp_path / "o.txt"],
    ):
        assert "is no data file: it holds a TREC run, and no features" in ranksvm(*line, code=1).stderr
    message = ranksvm("evaluate", folder / "test.txt", "--scores", bm25, code=1).stderr
    assert "expected one number per line. A TREC run is given as --run." in message


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("predict {model} {data}", "--format trec"),
        ("rank {model} {data}", "--format trec"),
        ("online {data}", "--run"),
        ("folds {folder}", "--run"),
    ],
)
def test_a_name_without_a_run_is_refused(ranksvm, folder, model, command, option):
    words = command.format(model=model, data=folder / "train.txt", folder=folder).split()
    assert f"give {option} too" in ranksvm(*words, "--run-name", "ours", code=2).stderr
