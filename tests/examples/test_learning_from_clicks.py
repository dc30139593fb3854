"""The experiment with simulated clicks runs, and shows what it is there to show."""

import importlib.util
import re
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "learning_from_clicks.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("learning_from_clicks", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_weighted_clicks_come_near_full_labels_and_naive_ones_do_not(example, capsys):
    example.main(["--seeds", "1", "--clicks", "30000", "--letor"])
    out = capsys.readouterr().out
    full = float(re.search(r"full labels ([\d.]+)", out)[1])
    naive, weighted = map(float, re.search(r"\| 30,000 \| ([\d.]+) ± [\d.]+ \| ([\d.]+)", out).groups())
    assert weighted > full - 0.005
    assert naive < full - 0.01


def test_plot(example, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    example.main(["--seeds", "2", "--clicks", "300", "1000", "--letor", "--plot", str(path)])
    assert path.stat().st_size > 1000
    first = capsys.readouterr().out
    example.main(["--seeds", "2", "--clicks", "300", "1000", "--letor"])
    assert capsys.readouterr().out == first
