"""The scripts of benchmarks/, which import each other by name."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def scripts():
    """The folder of the scripts is a place to import from."""
    # restored, since scripts add their folder and dask, imported later, would take benchmarks/sparse.py for a package
    before = list(sys.path)
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    yield
    sys.path[:] = before
