"""The examples of online learning run, and show what they are there to show."""

import importlib.util
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(table):
    """First column -> the numbers at the beginning of the others."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return {row[0]: [float(re.match(r"[\d.]+", cell)[0]) for cell in row[1:]] for row in cells[2:]}


def test_what_forgets_follows_drift(capsys):
    example("concept_drift").main(["--queries", "600", "--drift-queries", "200"])
    found = rows(capsys.readouterr().out)
    for stream in (0, 1):
        for order in ("SOLAR-I, decay 0.97", "SOLAR-II, decay 0.99"):
            assert found[order][stream] > found[order.partition(",")[0]][stream] + 0.03
            assert found[order][stream] > found["RankSVM, all so far"][stream] + 0.1


def test_plot_of_drift(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "drift.png"
    example("concept_drift").main(["--queries", "120", "--drift-queries", "40", "--plot", str(path)])
    assert path.stat().st_size > 1000


def test_learners_of_pairs_find_the_rare(capsys):
    example("rare_relevance").main(["--queries", "80", "--orders", "2", "--every", "20"])
    found = rows(capsys.readouterr().out)
    assert len(found) == 8
    for order in ("SOLAR-I", "SOLAR-II"):
        assert found["PRank"][0] + 0.1 < found[order][0] < found["the true weights"][0]
