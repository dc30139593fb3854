"""``ranksvm evaluate``."""

import os
import threading

import numpy as np
import pytest

import ranksvm as package
from ranksvm.metrics import evaluate


@pytest.fixture
def other_scores(folder, tmp_path):
    """A score file of random scores."""
    path = tmp_path / "random.txt"
    scores = np.random.default_rng(0).normal(size=120)
    path.write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    return path


def test_metrics_are_those_of_the_library(ranksvm_json, folder, model, other_scores):
    document = ranksvm_json(
        *("evaluate", folder / "test.txt", "--model", model, "--scores", other_scores),
        *("--metrics", "NDCG@5,map,err", "--convention", "letor"),
    )
    data = package.datasets.read_data(folder / "test.txt")
    scores = {"model.rsvm": package.load(model).predict(data.X), "random.txt": np.loadtxt(other_scores)}
    assert [system["name"] for system in document["systems"]] == list(scores)
    for system in document["systems"]:
        expected = evaluate(data.y, scores[system["name"]], data.qid, ["ndcg@5", "map", "err"], convention="letor")
        assert system["metrics"] == expected.means
    assert document["queries"] == 15
    assert document["convention"] == "letor"
    assert [test["metric"] for test in document["comparisons"]] == ["ndcg@5", "map", "err"]
    for test in document["comparisons"]:
        assert (test["baseline"], test["system"]) == ("model.rsvm", "random.txt")
        assert test["difference"] < 0
        assert test["p_value"] < 0.05
        assert test["wins"] + test["losses"] + test["ties"] == test["n_queries"]


def test_one_system_is_compared_with_nothing(ranksvm_json, ranksvm, folder, model):
    assert ranksvm_json("evaluate", folder / "test.txt", "-m", model)["comparisons"] == []
    result = ranksvm("evaluate", folder / "test.txt", "-m", model)
    assert "15 queries" in result.stdout
    assert "ndcg@10" in result.stdout
    assert "Against" not in result.stdout


def test_intervals_are_those_of_the_library(ranksvm, ranksvm_json, folder, model, other_scores):
    arguments = ["evaluate", folder / "test.txt", "-m", model, "--metrics", "ndcg@10,pairwise_accuracy"]
    data = package.datasets.read_data(folder / "test.txt")
    found = package.metrics.evaluate(
        data.y, package.load(model).predict(data.X), data.qid, ["ndcg@10", "pairwise_accuracy"]
    )
    (system,) = ranksvm_json(*arguments)["systems"]
    assert system["intervals"] == {name: list(found.interval(name)) for name in found.means}
    shown = "[{:.4f}, {:.4f}]".format(*found.interval("ndcg@10"))
    assert shown in ranksvm(*arguments).stdout
    assert shown in ranksvm(*arguments, "-s", other_scores).stdout
    assert shown not in ranksvm(*arguments, "-s", other_scores, "-s", other_scores).stdout


def test_a_person_sees_systems_side_by_side(ranksvm, folder, model, other_scores):
    stdout = ranksvm("evaluate", folder / "test.txt", "-m", model, "-s", other_scores).stdout
    for text in ["model.rsvm", "random.txt", "Against model.rsvm", "95 % interval", "better/worse/same"]:
        assert text in stdout


def test_per_query_values_average_to_the_mean(ranksvm_json, folder, model, other_scores, tmp_path):
    out = tmp_path / "queries.tsv"
    document = ranksvm_json(
        "evaluate", folder / "test.txt", "-m", model, "-s", other_scores, "--metrics", "map,mrr", "--per-query", out
    )
    header, *lines = out.read_text().splitlines()
    assert header == "system\tquery\tmap\tmrr"
    assert len(lines) == 30
    rows = [line.split("\t") for line in lines]
    assert [row[1] for row in rows[:2]] == ["100", "101"]
    for system in document["systems"]:
        values = [float(row[2]) for row in rows if row[0] == system["name"]]
        assert np.mean(values) == pytest.approx(system["metrics"]["map"])


def test_a_metric_that_is_not_defined_is_null(ranksvm, ranksvm_json, model, tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("1 qid:1 1:1\n")
    arguments = ["evaluate", path, "-m", model, "-m", model, "--metrics", "pairwise_accuracy,map"]
    document = ranksvm_json(*arguments)
    assert document["systems"][0]["metrics"] == {"pairwise_accuracy": None, "map": 1.0}
    assert [test["metric"] for test in document["comparisons"]] == ["map"]
    assert "1 query\n" in ranksvm(*arguments).stdout


def test_names_tell_files_apart(ranksvm_json, folder, model):
    document = ranksvm_json("evaluate", folder / "test.txt", "-m", model, "-m", model)
    assert [system["name"] for system in document["systems"]] == [str(model), f"{model} (2)"]
    assert {test["p_value"] for test in document["comparisons"]} == {1.0}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n2\n", "has 2 scores but the data have 120 rows"),
        ("1\n" * 60 + "x\n" + "1\n" * 59, "bad.txt:61: 'x' is not a score"),
        ("1\n" * 119 + "nan\n", "scores is nan in row 119"),
    ],
)
def test_bad_score_files(ranksvm, folder, tmp_path, content, message):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    assert message in ranksvm("evaluate", folder / "test.txt", "--scores", path, code=1).stderr


def test_compressed_scores_as_predict_writes_them(ranksvm, ranksvm_json, folder, model, tmp_path):
    scores = tmp_path / "scores.txt.gz"
    ranksvm("predict", model, folder / "test.txt", "-o", scores)
    assert scores.read_bytes().startswith(b"\x1f\x8b")
    by_model, by_scores = ranksvm_json("evaluate", folder / "test.txt", "-m", model, "-s", scores)["systems"]
    assert by_model["metrics"] == by_scores["metrics"]
    scores.write_bytes(scores.read_bytes()[:-30])
    ranksvm("evaluate", folder / "test.txt", "-s", scores, code=1)
    assert "is not text" in ranksvm("evaluate", folder / "test.txt", "-s", model, code=1).stderr


@pytest.fixture
def pipe(tmp_path):
    """Makes named pipes, each fed once with the content of a file."""
    threads = []

    def make(path):
        name = tmp_path / f"{path.name}.pipe"
        os.mkfifo(name)
        threads.append(threading.Thread(target=lambda: name.write_bytes(path.read_bytes()), daemon=True))
        threads[-1].start()
        return name

    yield make
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_data_and_scores_come_from_pipes(ranksvm, ranksvm_json, folder, model, tmp_path, pipe, suffix):
    data, scores = tmp_path / f"data.txt{suffix}", tmp_path / f"scores.txt{suffix}"
    ranksvm("convert", folder / "test.txt", data)
    ranksvm("predict", model, folder / "test.txt", "-o", scores)
    by_file = ranksvm_json("evaluate", data, "-s", scores)["systems"][0]
    by_pipe = ranksvm_json("evaluate", pipe(data), "-s", pipe(scores))["systems"][0]
    assert by_pipe["metrics"] == by_file["metrics"]
    by_model = ranksvm_json("evaluate", data, "-m", pipe(model))["systems"][0]
    assert by_model["metrics"] == by_file["metrics"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_named_by_its_errors(ranksvm, folder, tmp_path, pipe):
    path = tmp_path / "short.txt"
    path.write_text("1\n2\n")
    message = ranksvm("evaluate", folder / "test.txt", "-s", pipe(path), "-q", code=1).stderr
    assert message == f"Error: {path}.pipe has 2 scores but the data have 120 rows.\n"
    ranksvm("convert", folder / "test.txt", tmp_path / "cache.rsd")
    (tmp_path / "part.rsd").write_bytes((tmp_path / "cache.rsd").read_bytes()[:1000])
    message = ranksvm("info", pipe(tmp_path / "part.rsd"), "-q", code=1).stderr
    assert message.startswith(f"Error: {tmp_path / 'part.rsd.pipe'} is truncated")


def test_wrong_usage(ranksvm, folder, model):
    assert "give --model or --scores" in ranksvm("evaluate", folder / "test.txt", code=2).stderr
    for inputs in ([model], [model, folder / "test.txt"], [folder / "test.txt", model]):
        assert f"evaluate DATA --model {model}" in ranksvm("evaluate", *inputs, code=2).stderr
    result = ranksvm("evaluate", folder / "test.txt", "-m", model, "--metrics", "map@", code=2)
    assert "map@" in result.stderr


def test_options_that_would_change_nothing_are_refused(ranksvm, folder, model, other_scores):
    test, other = folder / "test.txt", ["--scores", other_scores]
    message = ranksvm("evaluate", test, "--model", model, *other, "--missing", "skip", code=2).stderr
    assert "--missing is about judged queries that a run lacks" in message
    for option in (["--compare", "all"], ["--correction", "tukey"]):
        message = ranksvm("evaluate", test, "--model", model, *option, code=2).stderr
        assert f"{option[0]} needs several systems" in message
        ranksvm("evaluate", test, "--model", model, *other, *option)
