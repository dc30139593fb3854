"""The examples in the docstrings of `ranksvm.data` are true."""

import doctest
import importlib
import pkgutil

import pytest

import ranksvm.data


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(ranksvm.data.__path__)])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(f"ranksvm.data.{name}"))
    assert result.failed == 0
