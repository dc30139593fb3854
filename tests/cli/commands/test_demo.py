"""``ranksvm demo``: the main task on a small scale."""


def test_every_step_is_shown_and_leaves_its_file(ranksvm, tmp_path):
    result = ranksvm("demo", "--output-dir", tmp_path / "demo", "--queries", 60)
    for command in ["tune", "train", "evaluate", "rank"]:
        assert f"$ ranksvm {command} " in result.stderr
    assert "ndcg@10" in result.stdout
    assert "relative duality gap" in result.stdout
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    assert names == {"train.txt", "vali.txt", "test.txt", "best.json", "model.rsvm", "run.txt"}


def test_json_is_one_document_of_all_steps(ranksvm_json, tmp_path):
    document = ranksvm_json("demo", "--output-dir", tmp_path, "--queries", 60, "--quiet")
    tune, train, evaluated, *_ = document["runs"]
    assert [run["arguments"][0] for run in document["runs"]] == ["tune", "train", "evaluate", "rank", "rank"]
    assert (train["result"]["loss"], train["result"]["C"]) == tuple(
        tune["result"]["settings"][x] for x in ("loss", "C")
    )
    assert train["result"]["data"]["train"]["queries"] == 36
    assert train["result"]["metrics"]["test"]["ndcg@10"] > 0.6
    assert evaluated["result"]["systems"][0]["metrics"]["map"] == train["result"]["metrics"]["test"]["map"]


def test_no_file_is_overwritten(ranksvm, tmp_path):
    for name in ("test.txt", "model.rsvm"):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text("mine")
        assert f"{name} exists: name another folder" in ranksvm("demo", "--output-dir", folder, code=2).stderr
        assert [path.name for path in folder.iterdir()] == [name]
        assert (folder / name).read_text() == "mine"
