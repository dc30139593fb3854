"""``ranksvm report``."""

import re
import shlex

import numpy as np
import pytest

import ranksvm as package

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")


@pytest.fixture
def scores(folder, tmp_path):
    """A file of scores of test.txt."""
    path = tmp_path / "scores.txt"
    path.write_text("".join(f"{value}\n" for value in np.linspace(0, 1, 15 * 8)))
    return path


def test_training_data_of_one_query(ranksvm, tmp_path):
    (tmp_path / "train").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.2\n")
    ranksvm("train", tmp_path / "train", "-C", "1", "-o", tmp_path / "model")
    ranksvm("report", tmp_path / "model", "--test", tmp_path / "train", "--train", tmp_path / "train",
            "-o", tmp_path / "report.html")  # fmt: skip
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "There are no intervals of weights: all rows belong to one query" in html


def test_a_report_with_baselines_and_intervals(ranksvm_json, ranksvm, folder, model, scores, tmp_path):
    other, out = tmp_path / "other.rsvm", tmp_path / "report.html"
    ranksvm("train", folder / "train.txt", "-C", "0.01", "-o", other)
    arguments = ["report", model, "--test", folder / "test.txt", "--train", folder / "train.txt"]
    arguments += ["--baseline", other, "--baseline", scores, "--worst", 3, "-o", out]
    document = ranksvm_json(*arguments)
    html = out.read_text(encoding="utf-8")
    assert document["bytes"] == out.stat().st_size
    assert [system["name"] for system in document["systems"]] == ["model.rsvm", "other.rsvm", "scores.txt"]
    assert {test["system_a"] for test in document["comparisons"]} == {"other.rsvm", "scores.txt"}
    evaluated = ranksvm_json("evaluate", folder / "test.txt", "-m", model, "--metrics", "ndcg@10,map")
    for name, value in evaluated["systems"][0]["metrics"].items():
        assert document["systems"][0]["metrics"][name] == value
    assert html.count("<details>") == 3
    assert "95 % intervals, from a jackknife over" in html
    assert shlex.join(map(str, ["ranksvm", *arguments, "--json"])) in html
    assert "<h1>Report on model.rsvm</h1>" in html


@pytest.mark.parametrize("scaler", ["standard", "query-minmax"])
def test_a_model_with_a_scaler(ranksvm, folder, tmp_path, scaler):
    model, out = tmp_path / "model.rsvm", tmp_path / "report.html"
    ranksvm("train", folder / "train.txt", "--scaler", scaler, "-o", model)
    stderr = ranksvm(
        *("report", model, "--test", folder / "test.txt", "--train", folder / "train.txt"),
        *("--title", "A title", "-o", out),
    ).stderr
    assert re.search(r"Wrote .*report\.html: [\d,]+ bytes", stderr)
    assert "iteration" not in stderr
    assert "<title>A title</title>" in out.read_text(encoding="utf-8")


def test_features_are_matched_by_name(ranksvm, tmp_path):
    data = package.make_ranking(10, 6, 3, random_state=0)
    named = package.RankingData(data.X, data.y, data.qid, feature_names=["length", "bm25", "age"])
    turned = package.RankingData(data.X[:, ::-1], data.y, data.qid, feature_names=["age", "bm25", "length"])
    named.save(tmp_path / "train.rsd")
    turned.save(tmp_path / "test.rsd")
    ranksvm("train", tmp_path / "train.rsd", "-o", tmp_path / "model")
    for part in ("train", "test"):
        arguments = ["report", tmp_path / "model", "--test", tmp_path / f"{part}.rsd", "--title", "T", "-o"]
        ranksvm(*arguments, tmp_path / f"{part}.html")
    texts = [(tmp_path / f"{part}.html").read_text(encoding="utf-8") for part in ("train", "test")]
    assert "bm25" in texts[0]
    weights = [re.search(r'<section id="metrics".*?</section>', text, re.DOTALL)[0] for text in texts]
    assert weights[0] == weights[1]


def test_what_is_refused(ranksvm, folder, model, scores, tmp_path):
    out = tmp_path / "report.html"
    arguments = ["report", model, "--test", folder / "test.txt", "-o", out]
    assert "Missing option '--test'" in ranksvm("report", model, "-o", out, code=2).stderr
    assert "would overwrite" in ranksvm(*arguments[:4], "-o", model, code=2).stderr
    stderr = ranksvm(*arguments, "--train", folder / "valid.txt", code=1).stderr
    assert "these are not the data that it was trained on" in stderr
    scores.write_text("1\n2\n")
    assert (
        "scores.txt has 2 scores but the data have 120 rows" in ranksvm(*arguments, "--baseline", scores, code=1).stderr
    )
    assert not out.exists()
