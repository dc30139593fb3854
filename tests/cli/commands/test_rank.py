"""``ranksvm rank``."""

import numpy as np
import pytest

import ranksvm as package


@pytest.fixture
def scored(folder, model):
    """Data of test.txt and their scores."""
    data = package.datasets.read_data(folder / "test.txt")
    return data, package.load(model).predict(data.X)


def test_tsv_holds_every_document_best_first(ranksvm, folder, model, scored, tmp_path):
    data, scores = scored
    out = tmp_path / "ranking.tsv"
    ranksvm("rank", model, folder / "test.txt", "-o", out)
    header, *lines = out.read_text().splitlines()
    assert header == "query\trank\tdocid\tscore"
    assert len(lines) == len(scores)
    by_query = {}
    for line in lines:
        query, rank, docid, score = line.split("\t")
        by_query.setdefault(query, []).append((int(rank), docid, float(score)))
    assert list(by_query) == [str(100 + query) for query in range(15)]
    for query, documents in by_query.items():
        rows = np.flatnonzero(np.asarray(data.qid).astype(str) == query)
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        assert documents == [(i + 1, str(data.docid[row]), scores[row]) for i, row in enumerate(rows)]


def test_trec_is_a_run_file(ranksvm, folder, model):
    result = ranksvm("rank", model, folder / "test.txt", "--format", "trec", "--run-name", "mine", "--top", 2)
    lines = [line.split(" ") for line in result.stdout.splitlines()]
    assert len(lines) == 30
    assert all(len(line) == 6 and line[1] == "Q0" and line[5] == "mine" for line in lines)
    assert [line[3] for line in lines[:4]] == ["1", "2", "1", "2"]
    assert float(lines[0][4]) >= float(lines[1][4])


def test_a_table_shows_the_first_queries_and_says_how_many_follow(ranksvm, folder, model):
    result = ranksvm("rank", model, folder / "test.txt", "--format", "table", "--top", 3)
    assert "104" in result.stdout
    assert "105" not in result.stdout
    assert "... 5 more" in result.stdout
    assert "10 more queries" in result.stderr


def test_one_query(ranksvm, folder, model):
    result = ranksvm("rank", model, folder / "test.txt", "--query", "107")
    assert {line.split("\t")[0] for line in result.stdout.splitlines()[1:]} == {"107"}
    assert "has no query '7'" in ranksvm("rank", model, folder / "test.txt", "--query", "7", code=1).stderr


def test_documents_without_an_id_are_named_by_their_row(ranksvm_json, folder, model):
    document = ranksvm_json("rank", model, folder / "anonymous.txt")
    assert [query["query"] for query in document["queries"]] == ["100", "101", "102"]
    for query in document["queries"]:
        for item in query["documents"]:
            assert set(item) == {"rank", "docid", "score", "row", "label"}
            assert item["docid"] == str(item["row"])
    assert sorted(item["row"] for query in document["queries"] for item in query["documents"]) == list(range(24))


@pytest.mark.parametrize(
    "arguments", [["--format", "table", "-o", "x"], ["--run-name", "two words"], ["--top", "0"], ["-o", "x.parquet"]]
)
def test_wrong_usage(ranksvm, folder, model, arguments):
    ranksvm("rank", model, folder / "test.txt", *arguments, code=2)
