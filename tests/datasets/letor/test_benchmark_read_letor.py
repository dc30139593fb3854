"""The benchmark of the reader runs."""

import pathlib
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_smoke():
    script = pathlib.Path(__file__).parents[3] / "benchmarks" / "read_letor.py"
    out = subprocess.run([sys.executable, script, "--smoke"], check=True, capture_output=True, text=True).stdout
    assert "| `read_letor`, 2 threads |" in out
