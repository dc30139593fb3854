"""Fits take no more iterations, evaluations and products than they did, and `track.py` records them."""

import csv
import pathlib
import shutil
import subprocess
import sys

import pytest

import _published_tron as published
import _track_cases as cases
import track

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks"


def can_count():
    """Whether the counts of instructions can be had here."""
    if shutil.which("valgrind") is None or published.compiler() is None:
        return False
    return any(pathlib.Path(root, "include/valgrind/callgrind.h").exists() for root in ("/usr", "/usr/local"))


@pytest.mark.parametrize("name", cases.CASES)
def test_counts_are_within_their_bounds(name):
    case = cases.CASES[name]
    if not case.available():
        pytest.skip(f"no real data: {case.dataset} is absent (RANKSVM_DATA names the folder)")
    model = cases.fit(case, case.load())
    assert model.converged_
    assert cases.relative_gap(model) <= model.tol
    found = cases.counts(model)
    assert all(count <= most for count, most in zip(found, case.most, strict=True)), f"{found}, at most {case.most}"


def test_there_are_twelve_cases():
    assert len(cases.CASES) == 12


def recorded(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_without_a_compiler_the_column_is_empty_and_the_program_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(track, "compiler", lambda: None)
    track.main(["--smoke", "--output", str(tmp_path / "track.csv")])
    rows = recorded(tmp_path / "track.csv")
    assert [row["case"] for row in rows] == list(track.SMOKE)
    for row in rows:
        assert tuple(row) == track.COLUMNS
        assert int(row["iterations"]) >= 1
        assert int(row["evaluations"]) >= 1
        assert int(row["products"]) >= 1
        assert row["instructions"] == ""
    assert "instructions are not counted" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not can_count(), reason="valgrind, its headers or a C++ compiler are absent")
def test_instructions_of_the_fits_alone(tmp_path):
    command = [sys.executable, str(FOLDER / "track.py"), "--smoke", "--output", str(tmp_path / "track.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    # an import alone takes more
    assert all(10**5 < int(row["instructions"]) < 10**9 for row in recorded(tmp_path / "track.csv"))


def test_lines_of_the_same_version_and_case_are_replaced(tmp_path):
    path = tmp_path / "track.csv"
    line = dict.fromkeys(track.COLUMNS, "1")
    track.write([{**line, "version": "a", "case": "x"}, {**line, "version": "b", "case": "x"}], path)
    track.write([{**line, "version": "b", "case": "x", "products": "2"}, {**line, "version": "b", "case": "y"}], path)
    rows = [(row["version"], row["case"], row["products"]) for row in recorded(path)]
    assert rows == [("a", "x", "1"), ("b", "x", "2"), ("b", "y", "1")]


def test_instructions_are_read_from_the_files_of_counts(tmp_path):
    head = "version: 1\ncreator: callgrind\npart: 1\n\ndesc: Timerange: Basic block 0 - 9\n"
    (tmp_path / "counts.17.1").write_text(
        f"{head}desc: Trigger: Client Request: dense\n\nsummary: 123\n\ntotals: 123\n"
    )
    (tmp_path / "counts.17").write_text(f"{head}desc: Trigger: Program termination\n\ntotals: 5\n")
    assert track.instructions_of(tmp_path) == {"dense": 123}


def test_an_unknown_case_is_refused():
    with pytest.raises(SystemExit, match="There is no case moon"):
        track.main(["--cases", "moon"])
