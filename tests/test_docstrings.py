"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import ranksvm

MODULES = [
    module.name
    for module in pkgutil.walk_packages(ranksvm.__path__, "ranksvm.")
    if not module.name.startswith(("ranksvm.cli", "ranksvm.__main__", "ranksvm._compiled"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0
