"""``ranksvm info``."""

import itertools
import sqlite3
from collections import Counter

import numpy as np
import pytest

import ranksvm as package


def test_data_against_a_count_by_hand(ranksvm_json, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(
        "2 qid:a 1:1 3:2 # d1\n0 qid:a 2:1\n0 qid:a 1:1\n-1 qid:b 1:1\n1 qid:c 3:1\n1 qid:c 3:2\n2 qid:a 3:1\n"
    )
    document = ranksvm_json("info", path)
    assert document["kind"] == "data"
    assert (document["rows"], document["queries"], document["features"]) == (7, 3, 3)
    assert document["pairs"] == 4
    assert document["pairs_per_document"] == pytest.approx((4 / 4 + 0 + 0) / 3)
    assert document["queries_without_pairs"] == 2
    assert document["density"] == pytest.approx(8 / 21)
    assert document["levels"] == [
        {"level": -1.0, "rows": 1},
        {"level": 0.0, "rows": 2},
        {"level": 1.0, "rows": 2},
        {"level": 2.0, "rows": 2},
    ]
    assert document["rows_per_query"] == {"min": 1, "median": 2.0, "mean": pytest.approx(7 / 3), "max": 4}


def test_documents_of_several_queries(ranksvm, ranksvm_json, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:a 1:1 # d1\n0 qid:a 1:2 # d2\n1 qid:b 1:1 # d1\n0 qid:b 1:2 # d3\n0 qid:b 1:3 # d4\n")
    assert ranksvm_json("info", path)["shared_documents"] == {
        "documents": 4,
        "shared": 1,
        "queries_per_document": 1.25,
        "mean_share_per_query": pytest.approx((1 / 2 + 1 / 3) / 2),
    }
    shared = "1 of them in several queries (on average 41.7 % of the documents of a query)"
    assert f"of 4 documents, {shared}" in ranksvm("info", path).stdout
    path.write_text("1 qid:a 1:1\n0 qid:a 1:2\n")
    assert ranksvm_json("info", path)["shared_documents"] is None


def test_pairs_against_all_pairs(ranksvm_json, folder):
    data = package.datasets.read_data(folder / "train.txt")
    pairs = Counter(
        data.qid[i]
        for i, j in itertools.combinations(range(len(data.y)), 2)
        if data.qid[i] == data.qid[j] and data.y[i] != data.y[j]
    )
    document = ranksvm_json("info", folder / "train.txt")
    assert document["pairs"] == sum(pairs.values())
    sizes = Counter(data.qid.tolist())
    assert document["pairs_per_document"] == pytest.approx(np.mean([pairs[q] / n for q, n in sizes.items()]))
    assert document["queries_without_pairs"] == 30 - len(pairs)
    assert document["document_ids"] is True


def test_a_person_sees_the_data(ranksvm, folder):
    stdout = ranksvm("info", folder / "train.txt").stdout
    for text in ["240", "30", "queries without pairs", "pairs per document", "level", "share", "%"]:
        assert text in stdout


def test_many_levels_are_summed_up(ranksvm, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("".join(f"{i / 7} qid:1 1:{i}\n" for i in range(100)))
    stdout = ranksvm("info", path).stdout
    assert "... 80 more" in stdout
    assert len(stdout.splitlines()) < 40


def test_model_weights_are_listed_by_size(ranksvm_json, folder, model):
    document = ranksvm_json("info", model)
    coef = package.load(model).coef_
    assert document["kind"] == "model"
    assert document["class"] == "RankSVM"
    assert [item["weight"] for item in document["weights"]] == sorted(coef.tolist(), key=abs, reverse=True)
    assert all(coef[item["column"]] == item["weight"] for item in document["weights"])
    assert sum(item["share"] for item in document["weights"]) == pytest.approx(1)
    assert document["norm"] == pytest.approx(np.linalg.norm(coef))
    assert document["relative_gap"] <= 1e-4
    assert document["parameters"]["RankSVM"]["C"] == 1.0
    assert document["written_by"]["ranksvm"] == package.__version__


def test_a_person_sees_the_model(ranksvm, folder, model):
    stdout = ranksvm("info", model, "--weights", 2).stdout
    for text in ["RankSVM", "C=1.0", "relative duality gap", "pairs", "share of all"]:
        assert text in stdout


def test_a_model_with_scaler_and_chosen_c(ranksvm, ranksvm_json, folder, tmp_path):
    out = tmp_path / "model"
    ranksvm("train", folder / "train.txt", "--scaler", "standard", "--C-range", "0.1,1", "--folds", 2, "-o", out)
    document = ranksvm_json("info", out)
    assert document["class"] == "StandardScaler + RankSVMCV"
    assert document["C"] in {0.1, 1.0}
    stdout = ranksvm("info", out).stdout
    assert f", by ndcg@10 {document['best_score']:.4f}\n" in stdout
    assert "pairs of 30 queries" in stdout


def test_a_damaged_model(ranksvm, model, tmp_path):
    cut = tmp_path / "model"
    cut.write_bytes(model.read_bytes()[:-100])
    assert "truncated or damaged" in ranksvm("info", cut, code=1).stderr


def test_signs_name_features_as_files_do(ranksvm, ranksvm_json, folder, tmp_path):
    path = tmp_path / "model"
    ranksvm("train", folder / "train.txt", "-C", "1", "--monotone", "1=1,5=-1", "-o", path)
    assert "monotone={'f1': 1, 'f5': -1}" in " ".join(ranksvm("info", path).stdout.split())
    assert ranksvm_json("info", path)["signs"] == {"f1": 1, "f5": -1}
    ranksvm("train", folder / "train.txt", "-C", "1", "-o", path)
    assert ranksvm_json("info", path)["signs"] is None


def test_a_database_is_no_data(ranksvm, tmp_path):
    with sqlite3.connect(tmp_path / "events.db") as database:
        database.execute("CREATE TABLE events (id)")
    assert "is a database of SQLite, not ranking data" in ranksvm("info", tmp_path / "events.db", code=1).stderr


def test_small_weights_are_not_shown_as_0(folder, ranksvm, tmp_path):
    data = package.datasets.read_data(folder / "train.txt")
    model = tmp_path / "model.rsvm"
    package.RankSVM(C=0.1).fit(data.X * [1e6, 1.0, 1.0, 1.0, 1.0], data.y, qid=data.qid).save(model)
    rows = [line.split() for line in ranksvm("info", model).stdout.splitlines() if line.startswith("f1 ")]
    assert 0.0 < abs(float(rows[0][1])) < 1e-5
