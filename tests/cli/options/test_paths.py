"""Files that commands read and write: none is overwritten while it is input; ``-`` is standard input or output."""

import os
import subprocess
import sys

import numpy as np
import pytest

import ranksvm as package


def run(*arguments, stdin=None, code=0, **options):
    """The command in a process of its own, with real standard streams."""
    command = [sys.executable, "-m", "ranksvm", *map(str, arguments)]
    result = subprocess.run(command, input=stdin, capture_output="stdout" not in options, **options)
    assert result.returncode == code, result.stderr
    return result


@pytest.fixture
def train(folder, tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes((folder / "train.txt").read_bytes())
    return path


@pytest.fixture
def spellings(train):
    """Names of one file: as it is, with a detour, by a symbolic link and by a hard link."""
    soft, hard = train.with_name("soft"), train.with_name("hard")
    names = [str(train), str(train.parent / "." / ".." / train.parent.name / train.name)]
    hard.hardlink_to(train)
    try:
        soft.symlink_to(train)
    except OSError:  # Windows, without the right to
        return [*names, str(hard)]
    return [*names, str(soft), str(hard)]


def overwriting(train, model, target):
    """Command lines that would write what they read."""
    scores = train.with_name("scores.txt")
    scores.write_text("0.5\n" * 240)
    yield "train", train, "-o", target
    yield "train", train, "--sample-weight", scores, "-o", scores
    yield "train", "-o", target, "--test", train, model
    yield "tune", train, "-o", target
    yield "tune", train, "--save-choice", target
    yield "online", train, "-o", target
    yield "predict", model, train, "-o", target
    yield "predict", model, train, "-o", model
    yield "rank", model, train, "-o", target
    yield "evaluate", train, "--model", model, "--per-query", target
    yield "evaluate", train, "--scores", scores, "--per-query", scores
    yield "analyze", model, train, "-o", target
    yield "analyze", model, train, "--spectra", target
    yield "convert", train, target
    yield "export", model, "--to", "json", "--data", train, "-o", target
    yield "import", train, "-o", target
    yield "train", train, "--settings", scores, "-o", scores


def test_no_command_overwrites_what_it_reads(ranksvm, train, model, spellings):
    before = train.read_bytes(), model.read_bytes()
    for target in spellings:
        for arguments in overwriting(train, model, target):
            stderr = ranksvm(*arguments, code=2).stderr
            assert "overwrite" in stderr or "settings" in stderr, arguments
            assert "Read" not in stderr
    assert (train.read_bytes(), model.read_bytes()) == before


def test_relative_and_absolute_paths_are_one_file(ranksvm, train, monkeypatch):
    monkeypatch.chdir(train.parent)
    assert "--output would overwrite" not in ranksvm("train", train.name, "-o", "m.rsvm", "-q").stderr
    stderr = ranksvm("train", train.name, "-o", train, code=2).stderr
    assert f"{train.name} and {train} are one file" in stderr


def test_two_outputs_are_two_files(ranksvm, train, tmp_path):
    stderr = ranksvm("tune", train, "-o", tmp_path / "out", "--save-choice", tmp_path / "out", code=2).stderr
    assert "would both write" in stderr
    assert "would both write" in ranksvm("train", train, "-o", "-", "--json", code=2).stderr


def test_a_resumed_model_may_be_written_again(ranksvm, train, tmp_path):
    arguments = "online", train, "-o", tmp_path / "m.rsvm", "--resume", "-q"
    ranksvm(*arguments)
    ranksvm(*arguments)


def test_an_option_of_a_list_given_twice_adds_up(ranksvm_json, ranksvm, folder, model):
    arguments = "evaluate", folder / "test.txt", "--model", model
    document = ranksvm_json(*arguments, "--metrics", "ndcg@5,map", "--metrics", "mrr", "--metrics", "map")
    assert list(document["systems"][0]["metrics"]) == ["ndcg@5", "map", "mrr"]
    document = ranksvm_json(
        *("tune", folder / "train.txt", "--loss", "hinge", "--loss", "squared-hinge"),
        *("--C-range", "0.1", "--C-range", "1,0.1"),
    )
    assert {each["loss"] for each in document["combinations"]} == {"hinge", "squared_hinge"}
    assert [each["C"] for each in document["combinations"][0]["candidates"]] == [0.1, 1.0]


def test_standard_input_is_data(folder, model):
    text = (folder / "test.txt").read_bytes()
    scores = run("predict", model, folder / "test.txt").stdout
    assert run("predict", model, "-", stdin=text).stdout == scores
    assert run("predict", "-", folder / "test.txt", stdin=model.read_bytes()).stdout == scores
    table = run("evaluate", "-", "--model", model, "-q", stdin=text).stdout.decode()
    assert table.startswith("standard input: 15 queries")
    assert run("evaluate", folder / "test.txt", "--scores", "-", "-q", stdin=scores).stdout
    assert b"spreads the scores" in run("explain", model, "-", "-q", stdin=text).stdout
    assert b"120" in run("info", "-", "-q", stdin=text).stdout


@pytest.mark.parametrize("suffix", [".txt.gz", ".rsd", ".parquet"])
def test_standard_input_has_every_format(ranksvm, folder, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    source = tmp_path / f"data{suffix}"
    ranksvm("convert", folder / "test.txt", source)
    result = run("convert", "-", tmp_path / "out.txt", stdin=source.read_bytes())
    assert b"Read standard input: 120 rows" in result.stderr
    data = package.datasets.read_data(tmp_path / "out.txt")
    np.testing.assert_array_equal(data.X, package.datasets.read_data(folder / "test.txt").X)


def test_a_bad_line_of_standard_input_is_told_with_its_place():
    result = run("info", "-", stdin=b"1 qid:1 1:0.5\n1 qid:1 2\n", code=1)
    assert b"standard input:2:" in result.stderr


def test_standard_input_is_read_once(ranksvm, model):
    assert "only once" in ranksvm("predict", "-", "-", code=2).stderr


def test_a_redirected_input_is_not_overwritten(train):
    with train.open("rb") as file:
        command = [sys.executable, "-m", "ranksvm", "train", "-", "-o", str(train)]
        result = subprocess.run(command, stdin=file, capture_output=True)
    assert result.returncode == 2
    assert b"would overwrite" in result.stderr


def test_a_file_called_dash_has_a_name(ranksvm, model, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ranksvm("predict", model, folder / "test.txt", "-o", "./-", "-q")
    assert len((tmp_path / "-").read_text().splitlines()) == 120


TO_STDOUT = ["-", pytest.param("/dev/stdout", marks=pytest.mark.skipif(os.name == "nt", reason="no such name"))]


@pytest.mark.parametrize("target", TO_STDOUT)
def test_standard_output_holds_the_file_and_nothing_else(folder, model, tmp_path, target):
    scores = run("predict", model, folder / "test.txt").stdout
    assert run("predict", model, folder / "test.txt", "-o", target).stdout == scores
    trained = run("train", folder / "train.txt", "-o", target)
    assert b"pairwise_accuracy" in trained.stderr
    (tmp_path / "m.rsvm").write_bytes(trained.stdout)
    assert run("predict", tmp_path / "m.rsvm", folder / "test.txt").stdout == scores
    rows = run("evaluate", folder / "test.txt", "--model", model, "--per-query", target).stdout
    assert rows.startswith(b"system\tquery\t")
    assert len(rows.splitlines()) == 16
    learnt = run("online", folder / "train.txt", "-o", target, "-q").stdout
    assert learnt.startswith(b"PK")
    text = run("convert", folder / "test.txt", target).stdout
    assert len(text.splitlines()) == 120


@pytest.mark.skipif(os.name == "nt", reason="no such name")
def test_dev_stdout_appends_to_what_a_shell_has_redirected(folder, model, tmp_path):
    path = tmp_path / "all.txt"
    path.write_bytes(b"before\n")
    with path.open("ab") as file:
        for _ in range(2):
            run("predict", model, folder / "test.txt", "-o", "/dev/stdout", "-q", stdout=file)
    assert path.read_bytes().startswith(b"before\n")
    assert len(path.read_bytes().splitlines()) == 241


def test_checkpoints_are_not_written_to_a_pipe(ranksvm, train):
    assert "model file" in ranksvm("online", train, "-o", "-", "--checkpoint", "every", "5", code=2).stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_named_pipe_is_written_to_and_stays(folder, model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "ranksvm", "predict", str(model), str(folder / "test.txt"), "-o", str(pipe)]
    # opened first and without waiting, because a writer that fails may never open it; the scores fit into its buffer
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        subprocess.run(command, stderr=subprocess.DEVNULL, check=True, timeout=60)
        assert len(reader.read().splitlines()) == 120
    assert pipe.is_fifo()


def test_the_null_device_takes_everything(ranksvm, train):
    ranksvm("tune", train, "--C-range", "1", "-o", os.devnull, "--save-choice", os.devnull, "-q")
    if os.name != "nt":
        assert not os.path.isfile(os.devnull)
