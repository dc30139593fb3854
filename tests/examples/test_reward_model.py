"""The example of a reward model runs at a small size, also on a file of arrays."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("resource")

PATH = Path(__file__).parents[2] / "examples" / "reward_model.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("reward_model", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_learns_what_is_preferred(example, capsys):
    example.main(["--pairs", "4000", "--features", "16"])
    out = capsys.readouterr().out
    accuracy, low, high = map(float, re.search(r"prompts: ([\d.]+) \[([\d.]+), ([\d.]+)\]", out).groups())
    assert 0.7 < low < accuracy < high < 1.0
    assert float(re.search(r"log loss ([\d.]+)", out)[1]) < 0.6


def test_a_file_of_arrays(example, tmp_path, capsys):
    chosen, rejected, prompt = example.made(400, 8, seed=1)
    np.savez(tmp_path / "pairs.npz", chosen=chosen, rejected=rejected, prompt=prompt)
    example.main(["--load", str(tmp_path / "pairs.npz")])
    assert "Preferences(n_pairs=400, n_features=8, n_prompts=100)" in capsys.readouterr().out
