"""``ranksvm analyze``."""

import csv
import gzip
import sys

import numpy as np
import pytest

import ranksvm as package
from command_runner import command_runner
from ranksvm.analysis import dual_coef, dual_spectra, low_rank_coef
from ranksvm.cli import main


@pytest.fixture(scope="session")
def hinge(folder):
    """A model of the hinge loss, saved from Python."""
    data = package.datasets.read_data(folder / "train.txt")
    path = folder / "hinge.rsvm"
    package.RankSVM(C=0.1, loss="hinge").fit(data.X, data.y, qid=data.qid).save(path)
    return path


@pytest.fixture
def spectra(folder, hinge):
    """The same from Python."""
    data = package.datasets.read_data(folder / "train.txt")
    return dual_spectra(package.load(hinge).dual_coef(data.X, data.y, data.qid), energy=(0.5, 1.0))


def lines_of(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_the_numbers_are_those_of_python(ranksvm_json, folder, hinge, spectra):
    document = ranksvm_json("analyze", hinge, folder / "train.txt", "--energy", "0.5,1")
    (found,) = document["models"]
    assert (found["name"], found["model"]) == ("hinge.rsvm", str(hinge))
    assert {key: found[key] for key in spectra.to_dict()} == spectra.to_dict()
    assert document["output"] is document["plot"] is document["spectra"] is None


def test_files(ranksvm, folder, hinge, model, spectra, tmp_path):
    table, values, plot = tmp_path / "ranks.tsv", tmp_path / "values.tsv.gz", tmp_path / "ranks.svg"
    arguments = ("--energy", "0.5,1", "-o", table, "--spectra", values, "--plot", plot)
    ranksvm("analyze", hinge, model, folder / "train.txt", *arguments)
    rows = lines_of(table)
    assert len(rows) == 60
    assert [row["model"] for row in rows[::30]] == ["hinge.rsvm", "model.rsvm"]
    for column in spectra.table().dtype.names:
        found = [float(row[column]) for row in rows[:30]]
        np.testing.assert_array_equal(found, spectra.table()[column].astype(float))
    rows = [row for row in lines_of(values) if row["model"] == "hinge.rsvm"]
    found = [float(row["singular_value"]) for row in rows]
    np.testing.assert_array_equal(found, np.concatenate(spectra.singular_values))
    picture = plot.read_text()
    for text in ["50 % of the energy", "hinge.rsvm: rank", "pairs of the query", "share of the dimensions"]:
        assert text in picture


def test_a_person_sees_models_side_by_side(ranksvm, folder, hinge, model, spectra):
    stdout = ranksvm("analyze", hinge, model, folder / "train.txt").stdout
    assert f"30 queries, {spectra.n_pairs.sum():,} pairs" in stdout
    for text in ["queries below 30 %", "hinge.rsvm 90 %", "model.rsvm 100 %", "90 to 100 %"]:
        assert text in stdout
    single = ranksvm("analyze", hinge, folder / "train.txt", "--query", 103, "--query", 101).stdout
    *_, first, second = single.strip().splitlines()
    (row,) = spectra.table([103]).tolist()
    assert first.split()[:6] == ["103", "8", str(row[2]), str(row[3]), "x", str(row[4])]
    assert first.split()[-1] == str(row[6])
    assert second.split()[0] == "101"


@pytest.mark.parametrize(
    "options",
    [
        ("--scaler", "query-minmax"),
        ("--scaler", "standard", "--loss", "huber"),
        ("--C-range", "0.1,1", "--folds", "3"),
        ("--kernel", "rbf", "--scaler", "query-standard"),
    ],
)
def test_models_of_every_kind(ranksvm, ranksvm_json, folder, tmp_path, options):
    path = tmp_path / "model"
    ranksvm("train", folder / "train.txt", *options, "-o", path)
    (found,) = ranksvm_json("analyze", path, folder / "train.txt")["models"]
    model, data = package.load(path), package.datasets.read_data(folder / "train.txt")
    expected = dual_spectra(dual_coef(model, data.X, data.y, data.qid))
    assert found["per_query"] == expected.to_dict()["per_query"]
    assert found["n_pairs"] == expected.n_pairs.sum()


@pytest.fixture(scope="session")
def low_rank(folder):
    """Models of low rank: a factorized one, and a regularized one with a scaler."""
    runner = command_runner()
    paths = {name: folder / f"{name}.rsvm" for name in ("factorized", "regularized")}
    options = {
        "factorized": ["--n-components", "1", "--random-state", "0"],
        "regularized": ["--gamma", "0.1", "--scaler", "minmax"],
    }
    for name, path in paths.items():
        arguments = ["train", str(folder / "train.txt"), "--low-rank", name, "-C", "0.1", "-q", "-o", str(path)]
        assert runner.invoke(main, arguments + options[name]).exit_code == 0
    return paths


def test_matrices_of_low_rank_beside_the_dual_variables_of_other_models(ranksvm, ranksvm_json, folder, low_rank, hinge):
    train, data = folder / "train.txt", package.datasets.read_data(folder / "train.txt")
    arguments = ["analyze", low_rank["factorized"], low_rank["regularized"], hinge, train, "--matrices", "low-rank"]
    found = ranksvm_json(*arguments)["models"]
    names = ["factorized.rsvm (low rank)", "regularized.rsvm (low rank)", "hinge.rsvm"]
    assert [one["name"] for one in found] == names
    assert [one["matrices"] for one in found] == ["low-rank", "low-rank", "alpha"]
    for one in found:
        coef = low_rank_coef if one["matrices"] == "low-rank" else dual_coef
        expected = dual_spectra(coef(package.load(one["model"]), data.X, data.y, data.qid))
        assert one["per_query"] == expected.to_dict()["per_query"]
    ranks = [[query["rank"] for query in one["per_query"]] for one in found]
    assert set(ranks[0]) <= {0, 1}
    assert ranks[1] == package.load(low_rank["regularized"]).steps[-1][1].ranks_.tolist()
    assert "dual variables and matrices of low rank of 30 queries" in " ".join(ranksvm(*arguments).stdout.split())


def test_both_matrices_of_a_model(ranksvm, ranksvm_json, folder, low_rank, hinge):
    arguments = ["analyze", low_rank["regularized"], hinge, folder / "train.txt", "--matrices"]
    both = ranksvm_json(*arguments, "both")["models"]
    names = ["regularized.rsvm", "regularized.rsvm (low rank)", "hinge.rsvm"]
    assert [one["name"] for one in both] == names
    assert both[0] == ranksvm_json(*arguments, "alpha")["models"][0]
    assert both[1] == ranksvm_json(*arguments, "low-rank")["models"][0]
    stderr = ranksvm("analyze", hinge, folder / "train.txt", "--matrices", "both", code=2).stderr
    assert "none of the models has low rank" in " ".join(stderr.replace("│", " ").split())


def test_other_data_than_the_model_was_trained_on(ranksvm, folder, hinge, low_rank, tmp_path):
    out = tmp_path / "out.tsv"
    stderr = ranksvm("analyze", hinge, folder / "test.txt", "-o", out, code=1).stderr
    assert "give the training data of the model" in " ".join(stderr.split())
    assert not out.exists()
    path = low_rank["factorized"]
    stderr = " ".join(ranksvm("analyze", hinge, path, folder / "test.txt", code=1).stderr.split())
    assert "give the training data of the model" in stderr
    stderr = " ".join(ranksvm("analyze", path, folder / "test.txt", code=1).stderr.split())
    assert f"{path} with {folder / 'test.txt'}: There are" in stderr
    wide = tmp_path / "wide.txt"
    wide.write_text("1 qid:1 1:1\n0 qid:1 9:1\n")
    stderr = ranksvm("analyze", hinge, wide, code=1).stderr
    assert "has 9 features" in stderr
    assert "was trained on 5" in stderr


def test_what_cannot_be(ranksvm, folder, hinge, tmp_path, monkeypatch):
    train = folder / "train.txt"
    assert "has no query '7'" in ranksvm("analyze", hinge, train, "--query", 7, code=1).stderr
    for energy in ("0", "1.5", "much", "0.9,"):
        stderr = ranksvm("analyze", hinge, train, "--energy", energy, code=2).stderr
        assert "not a list of numbers above 0 and at most 1" in " ".join(stderr.replace("│", " ").split())
    assert (
        "the file name extension must be one of"
        in ranksvm("analyze", hinge, train, "--plot", tmp_path / "x.doc", code=2).stderr
    )
    assert "Missing argument" in ranksvm("analyze", hinge, code=2).stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    stderr = ranksvm("analyze", hinge, train, "--plot", tmp_path / "x.png", code=1).stderr
    assert 'pip install "ranksvm[plot]"' in stderr
