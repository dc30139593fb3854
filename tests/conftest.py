"""Fixtures for all tests."""

import os
import pathlib

import pytest


@pytest.fixture(scope="session")
def shared_data():
    """Folder of real data sets, which are not part of the repository."""
    default = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = pathlib.Path(os.environ.get("RANKSVM_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is absent (set RANKSVM_DATA)")
    return folder
