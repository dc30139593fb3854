"""The reference of the site: it names everything public, and everything public has an example."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import ranksvm

PAGE = Path(__file__).parents[1] / "docs" / "api.rst"
MODULES = ["ranksvm", *(f"ranksvm.{name}" for name in dir(ranksvm) if inspect.ismodule(getattr(ranksvm, name)))]
PUBLIC = [module for module in MODULES if "._" not in module and hasattr(importlib.import_module(module), "__all__")]


def listed():
    """Dotted names of the tables of the page."""
    module = None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   (\w+)", line):
            yield f"{module}.{found[1]}"


NAMES = sorted(listed())


def found(name):
    module, _, last = name.rpartition(".")
    if module == "ranksvm.dask":
        pytest.importorskip("distributed")
    return getattr(importlib.import_module(module), last)


def has_example(thing):
    return "\nExamples\n-------" in (inspect.getdoc(thing) or "")


def test_the_page_names_everything_public():
    assert len(NAMES) == len(set(NAMES))
    reachable = {id(found(name)) for name in NAMES}
    missing = [
        f"{module}.{name}"
        for module in PUBLIC
        for name in importlib.import_module(module).__all__
        if not name.startswith("__") and id(getattr(importlib.import_module(module), name)) not in reachable
    ]
    assert len(PUBLIC) >= 7
    assert missing == []


@pytest.mark.parametrize("name", NAMES)
def test_it_has_an_example(name):
    thing = found(name)
    own = [
        getattr(member, "__func__", member)
        for base in getattr(thing, "__mro__", ())
        if base.__module__.startswith("ranksvm.")
        for key, member in vars(base).items()
        if not key.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
    ]
    # an example of a class may stand in the method that makes its objects
    # a constant, such as `metrics.CONVENTIONS`, has no docstring of its own
    assert not callable(thing) or any(map(has_example, [thing, *own])), f"{name} has no section Examples"
