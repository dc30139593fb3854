"""``ranksvm analyze``."""

import csv
import gzip
import sys

import numpy as np
import pytest

import ranksvm as package
from ranksvm.analysis import dual_coef, dual_spectra


@pytest.fixture(scope="session")
def hinge(folder):
    """A model of the hinge loss, saved from Python."""
    data = package.data.read_data(folder / "train.txt")
    path = folder / "hinge.rsvm"
    package.RankSVM(C=0.1, loss="hinge").fit(data.X, data.y, qid=data.qid).save(path)
    return path


@pytest.fixture
def spectra(folder, hinge):
    """The same from Python."""
    data = package.data.read_data(folder / "train.txt")
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
    model, data = package.load(path), package.data.read_data(folder / "train.txt")
    expected = dual_spectra(dual_coef(model, data.X, data.y, data.qid))
    assert found["per_query"] == expected.to_dict()["per_query"]
    assert found["n_pairs"] == expected.n_pairs.sum()


def test_other_data_than_the_model_was_trained_on(ranksvm, folder, hinge, tmp_path):
    out = tmp_path / "out.tsv"
    stderr = ranksvm("analyze", hinge, folder / "test.txt", "-o", out, code=1).stderr
    assert "give the data that it was trained on" in " ".join(stderr.split())
    assert not out.exists()
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
        assert "no list of numbers above 0 and at most 1" in " ".join(stderr.replace("│", " ").split())
    assert (
        "the ending says what to draw" in ranksvm("analyze", hinge, train, "--plot", tmp_path / "x.doc", code=2).stderr
    )
    assert "Missing argument" in ranksvm("analyze", hinge, code=2).stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    stderr = ranksvm("analyze", hinge, train, "--plot", tmp_path / "x.png", code=1).stderr
    assert "pip install 'ranksvm[plot]'" in stderr
