"""``ranksvm folds``."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from ranksvm import RankSVM, load, read_run
from ranksvm.cli.commands import folds
from ranksvm.datasets import Qrels, read_data
from ranksvm.metrics import evaluate, evaluate_run


@pytest.fixture
def official(folder, tmp_path):
    """Three folds of 8, 4 and 4 queries of 8 documents; 12 queries are tested once each."""
    lines = (folder / "train.txt").read_text().splitlines()
    parts = [lines[32 * part : 32 * (part + 1)] for part in range(4)]
    for fold in range(3):
        place = tmp_path / "data" / f"Fold{fold + 8}"
        place.mkdir(parents=True)
        names = {"train": [parts[(fold + 1) % 3], parts[3]], "vali": [parts[(fold + 2) % 3]], "test": [parts[fold]]}
        for name, found in names.items():
            (place / f"{name}.txt").write_text("".join(f"{line}\n" for part in found for line in part))
    return tmp_path / "data"


def test_every_fold_is_trained_chosen_and_tested(official, ranksvm_json, tmp_path):
    document = ranksvm_json(
        *("folds", official, "--C-range", "2^-6:2^2:4", "--metrics", "ndcg@5,AP", "--metric", "nDCG@5"),
        *("-o", tmp_path / "out", "--run", tmp_path / "all.run", "--per-query", tmp_path / "queries.tsv"),
    )
    assert [fold["name"] for fold in document["folds"]] == ["Fold8", "Fold9", "Fold10"]
    for fold in document["folds"]:
        train, vali, test = (read_data(official / fold["name"] / f"{part}.txt") for part in ("train", "vali", "test"))
        tried = {C: RankSVM(C=C).fit(train.X, train.y, qid=train.qid) for C in (2**-6, 2**-2, 2**2)}
        scores = {C: evaluate(vali.y, m.predict(vali.X), vali.qid, "ndcg@5")["ndcg@5"] for C, m in tried.items()}
        best = max(scores, key=scores.get)
        assert fold["C"] == best
        assert fold["validation_score"] == pytest.approx(scores[best], abs=1e-6)
        model = load(tmp_path / "out" / fold["name"] / "model.rsvm")
        expected = evaluate(test.y, model.predict(test.X), test.qid, "ndcg@5,map")
        assert fold["metrics"] == expected.means
        written = np.loadtxt(tmp_path / "out" / fold["name"] / "scores.txt")
        np.testing.assert_array_equal(written, model.predict(test.X))
    for name in ("ndcg@5", "map"):
        assert document["means"][name] == pytest.approx(np.mean([fold["metrics"][name] for fold in document["folds"]]))
    run = read_run(tmp_path / "all.run")
    assert len(run) == 3 * 4 * 8
    judged = [Qrels.from_data(read_data(official / f"Fold{fold}" / "test.txt")).to_dict() for fold in (8, 9, 10)]
    everything = {query: documents for fold in judged for query, documents in fold.items()}
    assert evaluate_run(run, everything, "map")["map"] == pytest.approx(document["means"]["map"], abs=1e-6)
    lines = (tmp_path / "queries.tsv").read_text().splitlines()
    assert lines[0] == "fold\tquery\tndcg@5\tmap"
    assert len(lines) == 13


def test_one_table_at_the_end(official, ranksvm, tmp_path):
    arguments = ["folds", official, "--C-range", "2:4", "--metrics", "ndcg@5", "--convention", "letor"]
    heads = {".tex": "fold (convention letor) &", ".csv": "fold,queries,C,ndcg@5,convention", ".html": ">queries</th>"}
    for suffix, text in heads.items():
        result = ranksvm(*arguments, "--table", tmp_path / f"t{suffix}")
        written = (tmp_path / f"t{suffix}").read_text()
        assert text in written
        # a caption for a paper, not the path on this machine
        assert str(official) not in written
        assert suffix == ".csv" or f"{official.name}: test data of 3 folds" in written
    assert "& $2^{" in (tmp_path / "t.tex").read_text()
    *_, last, mean = (tmp_path / "t.csv").read_text().splitlines()
    assert last.startswith("Fold10,4,")
    assert re.fullmatch(r"mean,,,0\.\d+,letor", mean)
    lines = result.stdout.splitlines()
    assert "3 folds, 12 queries; test metrics (letor)" in lines[0]
    assert [line.split()[0] for line in lines[3:7]] == ["Fold8", "Fold9", "Fold10", "mean"]
    assert "C was chosen by ndcg@10 on the validation data of each fold." in result.stdout
    assert "Fold9: C = " in result.stderr


def test_the_table_on_standard_output_is_csv(official, ranksvm, tmp_path):
    arguments = ["folds", official, "-C", "2^-3", "--metrics", "map", "--table"]
    command = [sys.executable, "-m", "ranksvm", *map(str, arguments), "-"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    ranksvm(*arguments, tmp_path / "t.csv")
    assert printed.stdout == (tmp_path / "t.csv").read_text()
    assert "2^-3" in printed.stderr


def test_a_given_c_kernels_and_scalers(official, ranksvm, ranksvm_json):
    linear = ranksvm_json("folds", official, "-C", "0.5", "--scaler", "query-standard", "--loss", "hinge")
    assert {fold["C"] for fold in linear["folds"]} == {0.5}
    assert linear["metric"] is None
    assert {fold["loss"] for fold in linear["folds"]} == {"hinge"}
    low_rank = ["--low-rank", "factorized", "--random-state", "0", "--early-stopping-rounds", "3", "--max-epochs", "20"]
    assert {fold["low_rank"]["model"] for fold in ranksvm_json("folds", official, *low_rank)["folds"]} == {"factorized"}
    stopped = ranksvm("folds", official, *low_rank, "--tol", "1e-12").stdout
    assert "Not converged" not in stopped
    assert "Fold8, Fold9, Fold10: Stopped early: no better value" in stopped
    kernel = ranksvm_json("folds", official, "-C", "0.5", "--kernel", "rbf", "--gamma", "0.5")
    assert {fold["kernel"]["gamma"] for fold in kernel["folds"]} == {0.5}


def test_settings_of_tune(official, ranksvm_json, tmp_path):
    settings = {"ranksvm": "settings", "settings": {"loss": "hinge", "C": 0.25}}
    (tmp_path / "best.json").write_text(json.dumps(settings))
    document = ranksvm_json("folds", official, "--settings", tmp_path / "best.json")
    assert {(fold["loss"], fold["C"]) for fold in document["folds"]} == {("hinge", 0.25)}
    document = ranksvm_json("folds", official, "--settings", tmp_path / "best.json", "--C-range", "1,2")
    assert {fold["C"] for fold in document["folds"]} <= {1.0, 2.0}


def test_without_validation_data_c_is_chosen_by_cross_validation(official, ranksvm):
    for fold in (8, 9, 10):
        (official / f"Fold{fold}" / "vali.txt").unlink()
    stdout = ranksvm("folds", official, "--C-range", "1,4", "--folds", 2, "-q").stdout
    assert "C was chosen by ndcg@10 by 2 folds of queries of each fold." in stdout


def test_other_names_and_formats_and_one_fold(official, ranksvm_json, ranksvm):
    fold = official / "Fold9"
    ranksvm("convert", fold / "train.txt", fold / "trainingset.txt.gz")
    ranksvm("convert", fold / "test.txt", fold / "test.rsd")
    message = ranksvm("folds", official, code=2).stderr
    assert "has train.txt and trainingset.txt.gz: which of them is the train data?" in message
    (fold / "train.txt").unlink()
    (fold / "test.txt").unlink()
    (fold / "vali.txt").rename(fold / "validationset.txt")
    document = ranksvm_json("folds", fold, "-C", "1")
    assert [each["name"] for each in document["folds"]] == ["Fold9"]
    assert document["folds"][0]["train"].endswith("trainingset.txt.gz")


def test_wrong_usage(official, ranksvm, tmp_path):
    assert "has no folds: expected folders (Fold1" in ranksvm("folds", tmp_path, code=2).stderr
    assert "-C or --C-range, not both" in ranksvm("folds", official, "-C", 1, "--C-range", "1,2", code=2).stderr
    assert "must be one of .csv, .tex" in ranksvm("folds", official, "--table", tmp_path / "x.doc", code=2).stderr
    data = official / "Fold9" / "train.txt"
    assert "would overwrite data of Fold9" in ranksvm("folds", official, "--run", data, code=2).stderr
    assert "give --kernel or --low-rank too" in ranksvm("folds", official, "--gamma", 1, code=2).stderr
    (official / "Fold9" / "vali.txt").unlink()
    assert "Fold9 of" in ranksvm("folds", official, code=2).stderr


@pytest.mark.slow
def test_official_folds_of_letor(shared_data, ranksvm_json):
    document = ranksvm_json("folds", shared_data / "MQ2008", "--C-range", "2^-9:2^1:2", "--metrics", "ndcg@10,map")
    assert sum(fold["queries"] for fold in document["folds"]) == 784
    assert document["means"]["ndcg@10"] == pytest.approx(0.5010, abs=2e-3)


def test_an_interrupt_says_which_models_are_written(official, ranksvm, tmp_path, monkeypatch):
    train = folds._test

    def interrupted(fold, *others):
        if fold.name == "Fold9":
            raise KeyboardInterrupt
        return train(fold, *others)

    monkeypatch.setattr(folds, "_test", interrupted)
    result = ranksvm("folds", official, "-C", "1", "-o", tmp_path / "out", code=130)
    assert f"Interrupted: {tmp_path / 'out'} has the models and scores of Fold8." in result.stderr.replace("\n", " ")
    assert "unfinished files were not kept" in ranksvm("folds", official, "-C", "1", code=130).stderr


def test_quiet_shows_no_progress(official, ranksvm, tmp_path):
    written = ("--table", tmp_path / "table.csv", "--per-query", tmp_path / "queries.tsv")
    assert ranksvm("folds", official, "-C", 1, *written, "-q").stderr == ""
