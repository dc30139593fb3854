"""``ranksvm online``: rank, learn, go on after a kill as if there had been none."""

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import ranksvm as package
from command_runner import command_runner
from ranksvm.cli import main
from ranksvm.datasets import iter_data
from ranksvm.metrics import evaluate

LEARNERS = {
    "solar1": package.SOLARRanker(order=1, C=2**-6, random_state=0),
    "solar2": package.SOLARRanker(order=2, gamma=10.0, random_state=0),
    "prank": package.PRanker(levels=[0, 1, 2], random_state=0),
    "perceptron": package.PairwisePerceptronRanker(random_state=0),
    "committee": package.PerceptronCommitteeRanker(n_experts=5, random_state=0),
}
OPTIONS = {"solar1": ["-C", "2^-6"], "solar2": ["--gamma", 10], "committee": ["--n-experts", 5]}


def same_model(path, other):
    """Models, metrics so far and what else is needed to go on, bit for bit: the files are the same bytes."""
    return path.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_query_is_ranked_before_it_is_learnt_from(learner, ranksvm_json, folder, tmp_path):
    out, ranker = tmp_path / "model", clone(LEARNERS[learner])
    metrics = "ndcg@1,ndcg@5,map,mrr"
    report = ranksvm_json(
        *("online", folder / "train.txt", "--learner", learner, *OPTIONS.get(learner, []), "-o", out),
        *("--metrics", metrics, "--convention", "letor"),
    )
    parts = list(iter_data(folder / "train.txt"))
    scores = []
    for number, query in enumerate(parts):
        scores.append(ranker.predict(query.X) if number else np.zeros(query.n_rows))
        ranker.partial_fit(query.X, query.y)
    y, qid = (np.concatenate([getattr(query, name) for query in parts]) for name in ("y", "qid"))
    expected = evaluate(y, np.concatenate(scores), qid, metrics, convention="letor")
    assert report["metrics"] == pytest.approx(expected.means, abs=1e-12)
    assert (report["queries"], report["rows"], report["pairs"]) == (30, 240, ranker.n_pairs_)
    assert report["updates"] == ranker.n_updates_
    np.testing.assert_array_equal(package.load(out).coef_, ranker.coef_)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("learner", "source"),
    [
        ("solar2", "plain"),
        ("solar2", "gzip"),
        ("solar2", "pipe"),
        *(pytest.param(learner, "plain", marks=pytest.mark.slow) for learner in LEARNERS if learner != "solar2"),
    ],
)
def test_a_killed_run_goes_on_to_the_same_file(learner, source, long, tmp_path):
    def in_process(*arguments):
        command = [*map(str, arguments), "--json"]
        result = command_runner().invoke(main, command, input=stdin)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    stream, stdin = long, None
    if source == "gzip":
        stream = tmp_path / "long.txt.gz"
        stream.write_bytes(gzip.compress(long.read_bytes()))
    elif source == "pipe":
        stream, stdin = "-", long.read_bytes()
    levels = ["--levels", "0,1,2"] if learner == "prank" else []
    options = ["--learner", learner, *map(str, OPTIONS.get(learner, [])), *levels, "--checkpoint", "every", "30"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    # dies as by a SIGKILL, in the middle of writing the fifth checkpoint
    die = (
        "import os, sys, ranksvm.model_files.persistence as p; write, times = p._write_zip, []\n"
        "def dying(path, members):\n"
        "    times.append(1)\n"
        "    if len(times) == 5:\n"
        "        os.kill(os.getpid(), 9)\n"
        "    write(path, members)\n"
        "p._write_zip = dying\n"
        "from ranksvm.cli import main; main(sys.argv[1:])"
    )
    done = run(["-c", die, "online", stream, *options, "-o", killed], stdin)
    assert done.returncode == -signal.SIGKILL
    assert package.load(killed).n_queries_ == 120
    resumed = in_process("online", stream, *options, "-o", killed, "--resume")
    assert resumed["resumed_from"] == 120
    uninterrupted = in_process("online", stream, *options, "-o", whole)
    assert resumed["metrics"] == uninterrupted["metrics"]
    assert resumed["queries"] == 400
    assert same_model(killed, whole)


def run(arguments, stdin=None):
    return subprocess.run([sys.executable, *map(str, arguments)], input=stdin, capture_output=True, timeout=120)


@pytest.mark.parametrize("batch_queries", [1, 7, 64])
@pytest.mark.parametrize("cut", [0, 1, 29, 64, 399])
def test_batches_and_interruptions_change_no_bit(batch_queries, cut, ranksvm, long, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    ranksvm("online", long, "-o", whole, "--every", 25, "-q")
    first = tmp_path / "long.txt"
    lines = long.read_text().splitlines(keepends=True)
    if cut:
        # a stream that ends, and later has gone on
        first.write_text("".join(lines[: 8 * cut]))
        ranksvm("online", first, "-o", parts, "--batch-queries", batch_queries, "-q")
        assert package.load(parts).n_queries_ == cut
    # only the name of the file is new
    ranksvm("online", long, "-o", parts, "--batch-queries", batch_queries, "--resume", "-q")
    assert same_model(parts, whole)


def test_a_bad_line_leaves_the_queries_before_it(ranksvm, long, tmp_path):
    lines = long.read_text().splitlines(keepends=True)
    bad, out = tmp_path / "long.txt", tmp_path / "model"
    bad.write_text("".join([*lines[:1600], "1 qid:x 1:bad\n"]))
    result = ranksvm("online", bad, "-o", out, code=1)
    assert f"{bad}:1601:11: the value of feature 1 must be a number" in result.stderr
    assert "Saved" in result.stderr
    # the last query may have gone on in the bad line
    assert package.load(out).n_queries_ == 199
    bad.write_text(long.read_text())
    ranksvm("online", bad, "-o", out, "--resume")
    ranksvm("online", bad, "-o", tmp_path / "whole")
    assert same_model(out, tmp_path / "whole")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_leaves_the_last_whole_query(long, tmp_path):
    out, content = tmp_path / "model", long.read_bytes()
    command = [sys.executable, "-m", "ranksvm", "online", "-", "--n-features", "5", "--one-based", "-o", out]
    lines = content.splitlines(keepends=True)
    with subprocess.Popen(
        [*command, "--checkpoint", "every", "40"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"".join(lines[: 8 * 50 + 3]))
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not out.exists() and time.monotonic() < deadline:  # it has come to 40 queries without an end of the pipe
            time.sleep(0.05)
        assert out.exists()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read().decode()
        process.stdin.close()
        assert process.wait(30) == 130
    model = package.load(out)
    assert 40 <= model.n_queries_ <= 50
    assert f"Interrupted: {out} has {model.n_queries_} queries; --resume continues from there" in errors
    done = run([*command[1:], "--resume"], content)
    assert done.returncode == 0, done.stderr
    assert package.load(out).n_queries_ == 400


def test_what_cannot_be_resumed(ranksvm, folder, model, long, tmp_path):
    out = tmp_path / "online"
    ranksvm("online", long, "-o", out, "--learner", "solar1", "-q")
    before = out.read_bytes()
    again = ("online", long, "-o", out, "--resume")
    for options, message in [
        (["--learner", "solar2"], "was trained with --learner solar1, not solar2"),
        (["--learner", "solar1", "-C", "0.5"], "was trained with C=1e-05, not 0.5"),
        (["--learner", "solar1", "--random-state", 3], "random_state=0, not 3"),
        (["--learner", "solar1", "--metrics", "map"], "the metrics so far are ndcg@1, ndcg@5, ndcg@10, map, not map"),
        (["--learner", "solar1", "--convention", "letor"], "the convention so far is default, not letor"),
        (["--learner", "solar1", "--max-label", "9"], "max_label so far is None, not 9.0"),
    ]:
        assert message in ranksvm(*again, *options, code=2).stderr
    other = tmp_path / "other.txt"
    other.write_text(long.read_text().replace(" 1:0.", " 1:1.", 1))
    result = ranksvm("online", other, "-o", out, "--resume", "--learner", "solar1", code=1)
    assert "are not the ones that the model has learned from: --resume needs the same data" in result.stderr
    result = ranksvm("online", folder / "train.txt", "-o", out, "--resume", "--learner", "solar1", code=1)
    assert "has 30 queries, but the model has learned from 400 queries" in result.stderr
    result = ranksvm(*again, "--learner", "solar1", "--n-features", 50, code=1)
    assert "has 50 features, but the model has learned from 5: --resume needs" in result.stderr
    assert out.read_bytes() == before
    result = ranksvm("online", long, "-o", model, "--resume", code=1)
    assert "was not written by `ranksvm online`" in result.stderr


def test_nothing_is_written_over_that_was_not_named(ranksvm, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ranksvm("online", folder / "train.txt", "--learner", "solar2", "--checkpoint", "every", 10)
    assert os.listdir() == ["online.rsvm"]
    result = ranksvm("online", folder / "train.txt", "--checkpoint", "every", 10, code=2)
    assert "online.rsvm exists: add --resume" in result.stderr
    ranksvm("online", folder / "train.txt", "--checkpoint", "every", 10, "--resume")
    result = ranksvm("online", folder / "train.txt")
    assert "not written: -o MODEL writes it" in result.stdout
    assert os.listdir() == ["online.rsvm"]


def test_what_a_person_sees(ranksvm, long, tmp_path):
    result = ranksvm("online", long, "-o", tmp_path / "model", "--checkpoint", "every", 100, "--metrics", "map,p@1")
    lines = [line for line in result.stderr.splitlines() if "queries: " in line and "map" in line]
    assert [line.split()[0] for line in lines] == ["100", "200", "300", "400"]
    assert "400 queries, each ranked before it was learned from" in result.stdout
    for text in ["mean so far", "p@1", "solar2", "changed the model", str(tmp_path / "model")]:
        assert text in result.stdout
    result = ranksvm("online", long, "--every", 150, "-q")
    assert result.stderr == ""


def test_the_levels_of_prank_are_those_of_the_file(ranksvm, ranksvm_json, folder):
    assert ranksvm_json("online", folder / "train.txt", "--learner", "prank")["parameters"]["levels"] == [0, 1, 2]
    assert "a pipe cannot be read twice" in ranksvm("online", "-", "--learner", "prank", code=2).stderr
    result = ranksvm("online", folder / "train.txt", "--learner", "prank", "--levels", "0,1", code=1)
    assert "not one of the levels [0.0, 1.0]: give levels (--levels), all labels that may occur" in result.stderr


def test_a_pipe_goes_on_with_the_levels_of_the_model(ranksvm, ranksvm_json, folder, long, tmp_path):
    out, longer = tmp_path / "model", tmp_path / "longer.txt"
    ranksvm("online", long, "--learner", "prank", "-o", out)
    longer.write_text(long.read_text() + "1 qid:9999 1:0.5\n0 qid:9999 1:0.25\n")
    # a pipe in the place of the file: its levels cannot be looked for
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(longer.read_bytes()))
    writer.start()
    report = ranksvm_json("online", pipe, "--learner", "prank", "-o", out, "--resume")
    writer.join()
    assert (report["resumed_from"], report["queries"]) == (400, 401)
    assert "was trained with --learner prank" in ranksvm("online", long, "-o", out, "--resume", code=2).stderr
    solar = tmp_path / "solar"
    ranksvm("online", long, "-o", solar)
    result = ranksvm("online", long, "--learner", "prank", "-o", solar, "--resume", code=2)
    assert "was trained with --learner solar2" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--learner", "solar2", "-C", "1"], "-C is an option of solar1, not of solar2"),
        (["--learner", "solar1", "--covariance", "diagonal"], "--covariance is an option of solar2, not of solar1"),
        (["--learner", "committee", "--average"], "--average is an option of solar1, solar2, prank, perceptron, not"),
        (["--learner", "prank", "--levels", "a"], "not a list of labels"),
        (["--decay", "1.5"], "is above 1"),
        (["--checkpoint", "each", "10"], "write --checkpoint every N, found 'each 10'"),
        (["--checkpoint", "0", "-q"], "0 is not in the range"),
        (["--checkpoint", "every", "0"], "0 is not in the range"),
        (["--metrics", "err"], "give max_label"),
        (["--learner", "other"], "'other' is not one of"),
    ],
)
def test_wrong_usage(ranksvm, folder, options, message):
    assert message in ranksvm("online", folder / "train.txt", *options, code=2).stderr


def test_every_may_be_left_out(ranksvm, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ranksvm("online", folder / "train.txt", "-o", "whole", "--checkpoint", "every", "7")
    ranksvm("online", folder / "train.txt", "-o", "last", "--checkpoint", "7")
    ranksvm("online", folder / "train.txt", "--checkpoint", "7", "-o", "first")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "last").read_bytes() == (tmp_path / "first").read_bytes()


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_model_serves_the_other_commands(learner, ranksvm, ranksvm_json, folder, tmp_path):
    out = tmp_path / "model"
    ranksvm("online", folder / "train.txt", "--learner", learner, "-o", out, "--checkpoint", "every", 7)
    test = folder / "test.txt"
    assert len(ranksvm("predict", out, test).stdout.splitlines()) == 120
    assert ranksvm_json("evaluate", test, "--model", out)["systems"][0]["metrics"]["ndcg@10"] > 0.6
    ranksvm("rank", out, test)
    ranksvm("explain", out, test)
    report = ranksvm_json("info", out)
    assert report["online"]["queries"] == report["n_queries"] == 30
    assert report["online"]["learner"] == learner
    assert set(report["online"]["metrics"]) == {"ndcg@1", "ndcg@5", "ndcg@10", "map"}
    text = ranksvm("info", out).stdout
    assert f"30 queries of {folder / 'train.txt'} by {learner}; so far ndcg@1 0." in " ".join(text.split())
    assert ("documents of 30 queries" if learner == "prank" else "pairs of 30 queries") in text


def test_queries_that_teach_nothing_and_many_features(ranksvm_json, tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:1 3:1\n2 qid:2 1:1\n2 qid:2 2:1\n1 qid:3 70000:1\n0 qid:3 1:1\n")
    for learner in LEARNERS:
        out = tmp_path / learner
        diagonal = ["--covariance", "diagonal"] if learner == "solar2" else []
        wide = ["--n-features", 80_000, "--one-based", "--batch-queries", 1]
        report = ranksvm_json("online", path, "--learner", learner, *diagonal, *wide, "-o", out)
        assert (report["queries"], report["rows"]) == (3, 5)
        assert report["pairs"] == (5 if learner == "prank" else 1)
        assert package.load(out).coef_.shape == (80_000,)


def test_other_formats_and_sparse_text(ranksvm, ranksvm_json, folder, tmp_path):
    means = []
    for name in ("train.txt", "train.parquet", "train.rsd"):
        path = tmp_path / name
        ranksvm("convert", folder / "train.txt", path)
        means.append(ranksvm_json("online", path, "--learner", "solar1")["metrics"])
    assert means[0] == means[1] == means[2]
    sparse = tmp_path / "sparse.txt"
    rows = [f"{row % 2} qid:{row // 4} {row % 5 + 1}:{row % 3 + 1} 40:{row % 2}\n" for row in range(40)]
    sparse.write_text("".join(rows))
    for learner in LEARNERS:
        out, parts = tmp_path / f"{learner}", tmp_path / f"{learner}-parts"
        report = ranksvm_json("online", sparse, "--learner", learner, "-o", out)
        assert report["metrics"]["ndcg@1"] > 0.5
        (tmp_path / "head.txt").write_text("".join(rows[:20]))
        head = ["--n-features", 40, *(["--levels", "0,1"] if learner == "prank" else [])]
        ranksvm("online", tmp_path / "head.txt", "--learner", learner, "-o", parts, *head)
        ranksvm("online", sparse, "--learner", learner, "-o", parts, "--resume")
        assert same_model(out, parts)


def test_refused_queries_are_located(ranksvm, tmp_path):
    path = tmp_path / "data.csv"
    rows = [f"{row // 4},{row % 2},{'inf' if row == 21 else row},{row % 3}\n" for row in range(40)]
    path.write_text("qid,label,price,age\n" + "".join(rows))
    stderr = ranksvm("online", path, "--batch-queries", 3, code=1).stderr
    assert f"{path}, rows from query 4 on: Input X contains infinity at X[9, 0] (feature price)" in stderr
    stderr = ranksvm("online", path, "--batch-queries", 3, "--learner", "prank", "--levels", "0,2", code=1).stderr
    assert f"{path}, rows from query 1 on: y has the label 1" in stderr


@pytest.mark.parametrize("written", [["--checkpoint", "7"], ["--checkpoint=7"], ["--checkpoint=every", "7"]])
def test_the_shorter_spellings_of_checkpoint(ranksvm, folder, tmp_path, written):
    ranksvm("online", folder / "train.txt", *written, "-o", tmp_path / "model")
    assert (tmp_path / "model").exists()
