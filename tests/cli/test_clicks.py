"""From a click log to a model at the command line: bias, train --clicks, evaluate --clicks."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from ranksvm import RankSVM, load, metrics, read_letor
from ranksvm.clicks import (
    ClickLog,
    PositionBias,
    click_pairs,
    fit_from_clicks,
    position_bias,
    simulate_clicks,
)
from ranksvm.exceptions import DataError


@pytest.fixture(scope="module")
def files(folder, tmp_path_factory):
    """A log of two rankers' lists of train.txt, and its propensities."""
    path = tmp_path_factory.mktemp("clicks")
    data = read_letor(folder / "train.txt")
    log = simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 4]}, 4_000, n_ranks=6, random_state=0)
    log.save(path / "log.parquet")
    position_bias(log).save(path / "bias.json")
    return path


def test_the_chain(ranksvm, ranksvm_json, folder, files, tmp_path):
    log = files / "log.parquet"
    found = ranksvm_json("bias", log, "-o", tmp_path / "bias.json")
    expected = position_bias(ClickLog.read(log))
    np.testing.assert_allclose(found["propensity"], expected.propensity)
    np.testing.assert_allclose(PositionBias.load(tmp_path / "bias.json").low, expected.low)

    clicks = ["--clicks", log, "--bias", tmp_path / "bias.json"]
    report = ranksvm_json("train", folder / "train.txt", *clicks, "-C", "0.01", "-o", tmp_path / "model.rsvm")
    assert report["pairs_from"] == str(log)
    data = read_letor(folder / "train.txt")
    pairs, weight = click_pairs(ClickLog.read(log), data, expected)
    model = RankSVM(C=0.01).fit(data.X, qid=data.qid, pairs=pairs, pair_weight=weight)
    np.testing.assert_allclose(load(tmp_path / "model.rsvm").coef_, model.coef_, rtol=1e-5)

    arguments = ["evaluate", folder / "train.txt", *clicks, "--model", tmp_path / "model.rsvm", "--metrics", "dcg@5"]
    (system,) = ranksvm_json(*arguments)["systems"]
    truth = metrics.estimate(ClickLog.read(log), model.predict(data.X), "dcg@5", expected, data=data)
    assert system["means"]["dcg@5"] == pytest.approx(truth["dcg@5"], rel=1e-4)
    assert system["effective_clicks"] == pytest.approx(truth.effective_clicks)


def test_c_is_chosen_by_clicks(ranksvm, ranksvm_json, folder, files, tmp_path):
    train, log, bias = folder / "train.txt", files / "log.parquet", files / "bias.json"
    arguments = ["train", train, "--clicks", log, "--bias", bias, "-o", tmp_path / "model.rsvm"]
    report = ranksvm_json(*arguments)
    data = read_letor(train)
    found = fit_from_clicks(RankSVM(), data, ClickLog.read(log), PositionBias.load(bias))
    assert report["C"] == pytest.approx(found.C)
    assert report["selection"]["by"] == "clicks of held-out queries"
    assert report["pairs_from"] == str(log)
    tried = report["selection"]["candidates"]
    assert [one["score"] for one in tried] == pytest.approx([one["dcg@10"] for one in found.estimates])
    assert report["C"] in [one["C"] for one in tried]
    np.testing.assert_allclose(load(tmp_path / "model.rsvm").coef_, found.model.coef_, rtol=1e-4)

    text = ranksvm(*arguments, "--C-range", "1e-4:1e-2", "--scaler", "standard").stdout
    assert "C by dcg@10 on clicks of held-out queries" in text
    assert text.count("chosen") >= 1


def test_trust_bias_teaches_relevance(ranksvm, ranksvm_json, folder, files, tmp_path):
    bias = PositionBias(PositionBias.power(6).propensity, offset=[0.0, 0.02, 0.01, 0.01, 0.0, 0.0])
    bias.save(tmp_path / "trust.json")
    arguments = ["train", folder / "train.txt", "--clicks", files / "log.parquet", "--bias", tmp_path / "trust.json"]
    report = ranksvm_json(*arguments, "-o", tmp_path / "model.rsvm")
    assert report["pair_weighting"] == "label_gap"
    message = ranksvm(*arguments, "-C", "1", "-o", tmp_path / "model.rsvm", code=2).stderr
    assert "with trust bias clicks do not become pairs. Only `ranksvm train` can learn" in message


def test_a_person_sees_tables(ranksvm, folder, files, model, tmp_path):
    text = ranksvm("bias", files / "log.parquet", "--bootstrap", "20", "--ranks", "4").stdout
    assert "4,000 impressions, harvest, 95 % intervals" in text
    assert "propensity" in text
    clicks = ["--clicks", files / "log.parquet", "--bias", files / "bias.json"]
    text = ranksvm("evaluate", folder / "train.txt", *clicks, "-m", model, "--estimator", "dr", "--clip", "0.2").stdout
    assert "metric (dr)" in text
    assert "mean_relevant_rank" in text
    assert "of equal weight" in text
    assert "never shown by a" in text
    assert "there the estimate rests on predicted relevance alone" in text


def test_swaps_and_features(ranksvm_json, folder, tmp_path):
    data = read_letor(folder / "train.txt")
    simulate_clicks(data, data.X[:, 0], 2_000, n_ranks=4, swap="top", random_state=0).save(tmp_path / "log.csv")
    found = ranksvm_json("bias", tmp_path / "log.csv", "--method", "swap", "--bootstrap", "0")
    assert found["method"] == "swap"
    assert found["low"] is None
    options = ["--method", "em", "--features", folder / "train.txt", "--bootstrap", "0"]
    assert len(ranksvm_json("bias", tmp_path / "log.csv", *options)["propensity"]) == 4


def test_a_plot(ranksvm, files, tmp_path):
    pytest.importorskip("matplotlib")
    ranksvm("bias", files / "log.parquet", "--bootstrap", "10", "--plot", tmp_path / "bias.svg")
    assert (tmp_path / "bias.svg").read_text().lstrip().startswith("<?xml")


def test_wrong_usage(ranksvm, folder, files, model, tmp_path):
    train, log, bias = folder / "train.txt", files / "log.parquet", files / "bias.json"
    wrong = {
        "--bias needs a click log": ["evaluate", train, "-m", model, "--bias", bias],
        "--clicks needs the propensities": ["evaluate", train, "-m", model, "--clicks", log],
        "--estimator needs a click log": ["evaluate", train, "-m", model, "--estimator", "dr"],
        "give --model or --scores": ["evaluate", train, "--clicks", log, "--bias", bias],
        "no option about labels": [
            *("evaluate", train, "-m", model, "--clicks", log, "--bias", bias, "--convention", "letor")
        ],
        "--features is for --method em": ["bias", log, "--features", train],
        "give --clicks or --pairs, not both": [
            *("train", train, "--clicks", log, "--bias", bias, "--pairs", bias, "-o", tmp_path / "m.rsvm")
        ],
        "--metric is about labels, but C is chosen by clicks": [
            *("train", train, "--clicks", log, "--bias", bias, "--metric", "err@10", "-o", tmp_path / "m.rsvm")
        ],
        "--keep-on-interrupt is for one fit": [
            *("train", train, "--clicks", log, "--bias", bias, "--keep-on-interrupt", "-o", tmp_path / "m.rsvm")
        ],
        "--folds is about labels": [
            *("train", train, "--clicks", log, "--bias", bias, "--folds", "3", "-o", tmp_path / "m.rsvm")
        ],
        "C is not chosen by clicks with --query-weight": [
            *("train", train, "--clicks", log, "--bias", bias, "--query-weight", log, "-o", tmp_path / "m.rsvm")
        ],
        "--plot draws the scores": [
            *("train", train, "--clicks", log, "--bias", bias, "--plot", "c.png", "-o", tmp_path / "m.rsvm")
        ],
        "`ranksvm train --clicks` chooses C by the clicks alone": [
            *("tune", train, "--clicks", log, "--bias", bias, "-o", tmp_path / "m.rsvm")
        ],
        "unknown metric 'ndcg@10'": [
            *("evaluate", train, "-m", model, "--clicks", log, "--bias", bias, "--metrics", "ndcg@10")
        ],
    }
    for message, arguments in wrong.items():
        assert message in ranksvm(*arguments, code=2).stderr


def test_bad_files(ranksvm, folder, files, model, tmp_path):
    (tmp_path / "other.json").write_text(json.dumps({"propensity": [1.0]}))
    arguments = ["evaluate", folder / "train.txt", "-m", model, "--clicks", files / "log.parquet", "--bias"]
    assert "was not written by PositionBias.save" in ranksvm(*arguments, tmp_path / "other.json", code=1).stderr
    one = ClickLog([1, 1], [0, 1], [1, 2], [0, 1], ranker=["a", "a"])
    one.save(tmp_path / "one.parquet")
    assert "all lists come from one ranker" in ranksvm("bias", tmp_path / "one.parquet", code=1).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes")
@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_a_log_is_no_pipe(ranksvm, files, tmp_path, name):
    os.mkfifo(tmp_path / name)
    writer = os.open(tmp_path / name, os.O_RDWR)
    message = f"{name} is a pipe: a click log is read several times, so it must be a file."
    assert message in ranksvm("bias", tmp_path / name, code=1).stderr
    with pytest.raises(DataError, match=message):
        ClickLog.read(tmp_path / name)
    os.close(writer)


def test_propensities_come_from_standard_input(ranksvm_json, folder, files, tmp_path):
    with open(files / "bias.json", "rb") as file:
        arguments = ["--clicks", files / "log.parquet", "--bias", "-", "-C", "0.01", "-o", tmp_path / "model.rsvm"]
        command = [sys.executable, "-m", "ranksvm", "train", folder / "train.txt", *arguments, "--json"]
        found = json.loads(subprocess.run(command, stdin=file, capture_output=True, check=True).stdout)
    PositionBias([np.nan]).save(tmp_path / "none.json")
    with open(tmp_path / "none.json", "rb") as file:
        refused = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False).stderr
    assert "standard input does not know the propensity of any rank" in refused
    arguments[3] = files / "bias.json"
    assert found["objective"] == ranksvm_json("train", folder / "train.txt", *arguments)["objective"]


def test_ranks_without_a_propensity_are_left_out(ranksvm, ranksvm_json, folder, files, tmp_path):
    bias = PositionBias.load(files / "bias.json")
    PositionBias([*bias.propensity[:4], np.nan, bias.propensity[5]]).save(tmp_path / "some.json")
    ClickLog.read(files / "log.parquet").top(4).save(tmp_path / "top.parquet")
    PositionBias(bias.propensity[:4]).save(tmp_path / "top.json")
    fits = {}
    for log, propensities in (("log.parquet", "some.json"), ("top.parquet", "top.json")):
        path = files / log if log == "log.parquet" else tmp_path / log
        clicks = ["--clicks", path, "--bias", tmp_path / propensities]
        fits[log] = ranksvm_json("train", folder / "train.txt", *clicks, "-o", tmp_path / "model.rsvm")["C"]
    assert fits["log.parquet"] == fits["top.parquet"]
    clicks = ["--clicks", files / "log.parquet", "--bias", tmp_path / "some.json"]
    result = ranksvm("evaluate", folder / "train.txt", *clicks, "--model", tmp_path / "model.rsvm")
    assert "does not know the propensity of rank 5: only the first 4 ranks" in result.stderr
    clicks = ["--clicks", files / "log.parquet", "--bias", tmp_path / "top.json"]
    shorter = ranksvm("evaluate", folder / "train.txt", *clicks, "--model", tmp_path / "model.rsvm")
    assert "does not know the propensity of rank 5: only the first 4 ranks" in shorter.stderr
    assert shorter.stdout == result.stdout
    PositionBias([np.nan, np.nan]).save(tmp_path / "none.json")
    clicks = ["--clicks", files / "log.parquet", "--bias", tmp_path / "none.json"]
    refused = ranksvm("evaluate", folder / "train.txt", *clicks, "--model", tmp_path / "model.rsvm", code=2)
    assert "does not know the propensity of any rank" in refused.stderr


def test_additive_models_learn_from_clicks(ranksvm, ranksvm_json, folder, files, tmp_path):
    clicks = ["--clicks", files / "log.parquet", "--bias", files / "bias.json", "--model", "additive"]
    arguments = ["train", folder / "train.txt", *clicks, "-o", tmp_path / "model.rsvm"]
    report = ranksvm_json(*arguments, "--step-weight", 0.5)
    assert report["selection"]["by"] == "clicks of held-out queries"
    assert report["selection"]["candidates"][report["selection"]["chosen"]]["C"] == report["C"]
    assert report["additive"]["step_weight"] == load(tmp_path / "model.rsvm").step_weight == 0.5
    assert ranksvm_json(*arguments, "-C", 0.01, "--interactions", 2)["selection"] is None
    message = "--interactions auto is a choice by labels, but C is chosen by clicks: give a number."
    assert message in " ".join(ranksvm(*arguments, "--interactions", "auto", code=2).stderr.split())
