"""Runs and relevance judgments of TREC in and out of the commands."""

import numpy as np
import pytest

import ranksvm as package
from ranksvm.datasets import read_data, read_qrels, read_run
from ranksvm.metrics import compare_systems, evaluate, evaluate_run


@pytest.fixture
def qrels(folder, ranksvm, tmp_path):
    ranksvm("convert", folder / "test.txt", tmp_path / "test.qrels")
    return tmp_path / "test.qrels"


@pytest.fixture
def runs(folder, ranksvm, model, tmp_path):
    """A run of the model, and one of a model of other data with the order reversed in effect."""
    ranksvm(
        "predict", model, folder / "test.txt", "--format", "trec", "--run-name", "ours", "-o", tmp_path / "ours.run"
    )
    data = read_data(folder / "test.txt")
    for number in range(2):
        run = package.datasets.Run.from_scores(data, data.X[:, 2 + number], f"column{number}")
        package.write_run(tmp_path / f"column{number}.run", run)
    return [tmp_path / name for name in ("ours.run", "column0.run", "column1.run")]


def test_labels_become_judgments(folder, qrels):
    data = read_data(folder / "test.txt")
    found = read_qrels(qrels)
    assert found.docid.tolist() == data.docid.tolist()
    assert found.label.tolist() == data.y.tolist()
    assert qrels.read_text().splitlines()[0].split()[:3] == ["100", "0", "D0-0"]


def test_predict_and_rank_write_the_same_run(folder, ranksvm, model, runs):
    run = read_run(runs[0])
    assert run.name == "ours"
    data = read_data(folder / "test.txt")
    scores = package.load(model).predict(data.X)
    by_id = dict(zip(data.docid.tolist(), scores.tolist(), strict=True))
    assert {docid: score for found in run.to_dict().values() for docid, score in found.items()} == by_id
    ranked = ranksvm("rank", model, folder / "test.txt", "--format", "trec", "--run-name", "ours").stdout
    assert ranked == runs[0].read_text()
    assert "must be one word" in ranksvm("predict", model, folder / "test.txt", "--run-name", "a b", code=2).stderr


def test_ties_are_written_as_trec_eval_breaks_them(ranksvm, model, tmp_path):
    path = tmp_path / "ties.txt"
    path.write_text("1 qid:1 1:1 #docid = d1\n0 qid:1 1:1 #docid = d3\n0 qid:1 1:1 #docid = d2\n")
    for command in ("rank", "predict"):
        lines = ranksvm(command, model, path, "--format", "trec", "-q").stdout.splitlines()
        assert [line.split()[2] for line in lines] == ["d3", "d2", "d1"]
        assert [line.split()[3] for line in lines] == ["1", "2", "3"]
    assert ranksvm("rank", model, path, "--format", "tsv", "-q").stdout.splitlines()[1].split()[2] == "d1"


def test_runs_are_evaluated_as_the_library_does(ranksvm_json, runs, qrels):
    document = ranksvm_json("evaluate", *runs, "--qrels", qrels, "--metrics", "AP,nDCG@5,recip_rank,P_5")
    assert document["convention"] == "trec"
    assert document["qrels"] == str(qrels)
    assert document["data"] is None
    for system, path in zip(document["systems"], runs, strict=True):
        assert system["name"] == path.name
        assert system["metrics"] == evaluate_run(path, qrels, "map,ndcg@5,mrr,p@5").means
    tests = [test for test in document["comparisons"] if test["metric"] == "map"]
    assert [(test["baseline"], test["system"]) for test in tests] == [
        ("ours.run", "column0.run"),
        ("ours.run", "column1.run"),
    ]
    assert all(test["correction"] == "holm" and test["adjusted_p_value"] >= test["p_value"] for test in tests)


def test_all_pairs_by_tukey(ranksvm, ranksvm_json, runs, qrels):
    arguments = ["evaluate", *runs, "--qrels", qrels, "--metrics", "map", "--compare", "all", "--correction", "tukey"]
    found = ranksvm_json(*arguments)["comparisons"]
    evaluations = {path.name: evaluate_run(path, qrels, "map") for path in runs}
    expected = compare_systems(evaluations, "map", correction="tukey")
    assert [test["adjusted_p_value"] for test in found] == [test.adjusted_p_value for test in expected]
    stdout = ranksvm(*arguments).stdout
    for text in ("p (Tukey HSD)", "b against a", "metric (trec)"):
        assert text in stdout


def test_models_scores_and_runs_side_by_side(ranksvm_json, ranksvm, folder, model, runs, qrels, tmp_path):
    ranksvm("predict", model, folder / "test.txt", "-o", tmp_path / "scores.txt")
    arguments = ["evaluate", folder / "test.txt", "-m", model, "-s", tmp_path / "scores.txt", "--run", runs[0]]
    for judged_by in ([], ["--qrels", qrels]):
        systems = ranksvm_json(*arguments, *judged_by, "--metrics", "map,ndcg@3")["systems"]
        assert [system["name"] for system in systems] == ["model.rsvm", "scores.txt", "ours.run"]
        assert systems[0]["metrics"] == systems[1]["metrics"] == systems[2]["metrics"]
    data = read_data(folder / "test.txt")
    expected = evaluate(
        data.y, np.loadtxt(tmp_path / "scores.txt"), data.qid, "map", convention="trec", docid=data.docid
    )
    assert systems[0]["metrics"]["map"] == pytest.approx(expected.means["map"])


def test_queries_that_a_run_lacks(ranksvm, ranksvm_json, runs, qrels, tmp_path):
    part = tmp_path / "part.run"
    lines = runs[0].read_text().splitlines(keepends=True)
    part.write_text("".join(line for line in lines if not line.startswith("103 ")) + "999 Q0 x 1 1.0 ours\n")
    result = ranksvm("evaluate", part, "--qrels", qrels, "--metrics", "map")
    assert "part.run lacks 1 query of the judgments, counted as 0." in result.stdout
    assert "1 query without judgments, ignored" in result.stderr
    found = {
        missing: ranksvm_json("evaluate", part, "--qrels", qrels, "--metrics", "map", "--missing", missing)["systems"][
            0
        ]
        for missing in ("zero", "skip")
    }
    assert (found["zero"]["queries"], found["skip"]["queries"]) == (15, 14)
    assert found["zero"]["metrics"]["map"] * 15 == pytest.approx(found["skip"]["metrics"]["map"] * 14)
    message = ranksvm("evaluate", part, runs[1], "--qrels", qrels, "--missing", "skip", code=2).stderr
    assert "use --missing zero" in message
    ranksvm("evaluate", part, runs[1], "--qrels", qrels, "-q")


def test_queries_without_relevant_documents_are_explained(ranksvm, model, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:1\n0 qid:1 1:2\n0 qid:2 1:1\n")
    note = "1 of 2 queries has no relevant document: in ndcg, map and r they count as {} here"
    stdout = ranksvm("evaluate", path, "-m", model, "-q").stdout
    assert (
        note.format(0) + ". XGBoost and LightGBM count them as 1: 0.5000 more by that alone (--convention xgboost)."
        in stdout
    )
    stdout = ranksvm("evaluate", path, "-m", model, "-q", "--convention", "xgboost").stdout
    assert note.format(1) + ", as in xgboost." in stdout
    assert "relevant document:" not in ranksvm("evaluate", path, "-m", model, "-q", "--metrics", "mrr").stdout
    mslr = "evaluate", path, "-m", model, "-q", "--convention", "mslr", "--metrics"  # 1 is not relevant, but a gain
    note = "2 of 2 queries have no relevant document (label 2 or higher): in map and r they count as 0 here."
    assert note in ranksvm(*mslr, "ndcg,map").stdout
    assert "have no relevant document" not in ranksvm(*mslr, "ndcg").stdout


def test_training_on_judgments(ranksvm, ranksvm_json, folder, qrels, tmp_path):
    unlabeled = tmp_path / "features.txt"
    lines = (folder / "test.txt").read_text().splitlines(keepends=True)
    unlabeled.write_text("".join("0" + line[1:] for line in lines))
    expected, found = (
        ranksvm_json("train", path, *options, "-o", tmp_path / "m.rsvm")
        for path, options in ((folder / "test.txt", []), (unlabeled, ["--qrels", qrels]))
    )
    assert found["metrics"] == expected["metrics"]
    assert found["objective"] == expected["objective"]
    ranksvm("convert", unlabeled, "--qrels", qrels, tmp_path / "joined.rsd")
    assert read_data(tmp_path / "joined.rsd").y.tolist() == read_data(folder / "test.txt").y.tolist()
    few = tmp_path / "few.qrels"
    few.write_text("".join(qrels.read_text().splitlines(keepends=True)[:-3]))
    result = ranksvm("convert", unlabeled, "--qrels", few, tmp_path / "joined.rsd")
    assert "3 rows without a judgment, counted as not relevant (label 0)" in result.stderr
    few.write_text("7 0 x 1\n")
    message = ranksvm("train", unlabeled, "--qrels", few, "-o", tmp_path / "m.rsvm", code=1).stderr
    assert f"{unlabeled}: no row has a judgment" in message


def test_a_stream_writes_the_ranking_of_each_query_before_it_is_learnt_from(ranksvm_json, ranksvm, long, tmp_path):
    run = tmp_path / "online.run.gz"
    document = ranksvm_json(
        *("online", long, "--learner", "solar1", "--run", run, "--run-name", "solar"),
        *("--metrics", "map", "--convention", "trec"),
    )
    assert document["run"] == str(run)
    found = read_run(run)
    assert found.name == "solar"
    data = read_data(long)
    judged = package.datasets.Qrels.from_data(data)
    assert evaluate_run(found, judged, "map").means["map"] == pytest.approx(document["metrics"]["map"])
    message = ranksvm("online", long, "--run", run, "--resume", "-o", tmp_path / "m.rsvm", code=2).stderr
    assert "--run would lack the queries" in message


def test_bad_files_and_wrong_usage(ranksvm, folder, model, runs, qrels, tmp_path):
    bad = tmp_path / "bad.run"
    bad.write_text("q Q0 d 1 0.5 x\nq Q0 e 2 high x\n")
    message = ranksvm("evaluate", bad, "--qrels", qrels, "-q", code=1).stderr
    assert message == f"Error: {bad}:2:10: the score must be a number, found 'high'\n"
    bad.write_text("q Q0 d 1 0.5 x\n")
    assert "no query in common" in ranksvm("evaluate", bad, "--qrels", qrels, "-q", code=1).stderr
    assert "one DATA file is evaluated at a time" in ranksvm("evaluate", *runs, code=2).stderr
    assert "give --model or --scores" in ranksvm("evaluate", folder / "test.txt", code=2).stderr
    assert "DATA|RUN" in ranksvm("evaluate", code=2).stderr
