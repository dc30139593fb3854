"""The pages for developers name what exists, and "How a fit runs" the calls of a fit; its drawing is up to date."""

import ast
import builtins
import re
import runpy
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from ranksvm import RankSVM, exceptions, make_ranking

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ranksvm"
PAGE = (ROOT / "docs" / "how_a_fit_runs.md").read_text(encoding="utf-8")
INDENT = 4


def chain():
    """The lines of the call chain: depth, qualified name of the function, and its file."""
    (block,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.S | re.M)
    for line in block.splitlines():
        name, path = line.split()
        yield (len(line) - len(line.lstrip())) // INDENT, name, path


def calls_of(function):
    """The functions of the package that a call enters, each as the tuple of all that are being executed then."""
    calls, stack = [], []

    def note(frame, event, _):
        if event == "call":
            code, path = frame.f_code, Path(frame.f_code.co_filename)
            inside = path.is_relative_to(PACKAGE)
            stack.append((code.co_qualname, path.relative_to(PACKAGE).as_posix()) if inside else None)
            calls.append(tuple(each for each in stack if each is not None))
        elif event == "return":
            stack.pop()

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def runs_from_sources():
    """Whether the package that is imported is the one beside the tests."""
    return Path(exceptions.__file__).is_relative_to(PACKAGE)


@pytest.mark.skipif(not runs_from_sources(), reason="the files of the chain are those of the repository")
def test_a_fit_makes_the_calls_of_the_chain_in_its_order():
    data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    ranker = RankSVM(C=0.01)
    ranker.fit(data.X, data.y, qid=data.qid)  # what is imported and calibrated once
    calls = calls_of(lambda: ranker.fit(data.X, data.y, qid=data.qid))
    above, earlier = [], {}
    for depth, name, path in chain():
        above[depth:] = [(name, path)]
        first = next((number for number, call in enumerate(calls) if is_within(above, call)), None)
        assert first is not None, f"a fit does not call {name} of {path} within {above[:-1]}"
        siblings = tuple(above[:-1])
        assert first > earlier.get(siblings, -1), f"{name} is called before what the page has above it"
        earlier[siblings] = first
    assert len(earlier) > 5


def is_within(above, call):
    """Whether a call is one of the last function of a chain, within all others in their order."""
    rest = iter(call)
    return call[-1:] == (above[-1],) and all(each in rest for each in above)


@cache
def definitions():
    """All identifiers of the package, and of each class its bases and members, by its name."""
    names = {*dir(builtins), *dir(exceptions)}
    classes = {}
    for path in PACKAGE.rglob("*.py"):
        names.update(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names.update([node.name], (each.arg for each in [*node.args.args, *node.args.kwonlyargs]))
            elif isinstance(node, ast.ClassDef):
                names.add(node.name)
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                classes[node.name] = bases, {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                names.update(each.name for each in node.names)
    return names, classes


def has_method(cls, method):
    """Whether a class, or a base of it in the package, defines a method."""
    bases, methods = definitions()[1].get(cls, ([], set()))
    return method in methods or any(has_method(base, method) for base in bases)


def exists(code):
    """Whether what a page has in backticks is in the repository: paths, methods, and other identifiers."""
    names, classes = definitions()
    paths = [word for word in code.split() if "/" in word or word.endswith((".py", ".toml"))]
    if paths:
        return all((PACKAGE / path).exists() or (ROOT / path).exists() for path in paths)
    owner, _, method = code.partition(".")
    if owner in classes and method:
        return has_method(owner, method)
    dotted = re.match(r"[\w.]+", code)
    return dotted is None or set(dotted[0].split(".")) <= {"ranksvm", *names}


def test_every_name_on_the_page_exists():
    spans = set(re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PAGE))
    assert len(spans) > 60
    assert sorted(code for code in spans if not exists(code)) == []
    assert not exists("LinearObjective.no_such_method")
    assert not exists("no_such_function")
    assert not exists("fits/no_such_file.py")


@cache
def contents():
    """All files and folders of the repository that are not made by a build, as paths below its root."""
    folders = [ROOT / name for name in (".ci", ".github", "benchmarks", "docs", "examples", "src", "tests")]
    below = [path for folder in folders for path in folder.rglob("*")]
    return [f"/{path.relative_to(ROOT).as_posix()}" for path in [*ROOT.iterdir(), *below]]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/developing.md", "docs/developing_gpu.md"])
def test_every_path_on_a_page_exists(name):
    code = re.findall(r"`([^`\n]+)`", (ROOT / name).read_text(encoding="utf-8"))
    words = {word.rstrip(":") for span in code for word in span.split()}
    ends = r"[\w.*/]*\w(/|\.(py|pyx|pxd|hpp|cpp|md|rst|build|options|toml|yml))"
    paths = {word.rstrip("/") for word in words if re.fullmatch(ends, word)}
    assert len(paths) > 10
    assert [path for path in sorted(paths) if not any(fnmatch(each, f"*/{path}") for each in contents())] == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/developing.md", "docs/developing_gpu.md"])
def test_every_name_that_a_page_places_in_a_file_is_there(name):
    """As in "`choose_solver` in `fits/linear.py`", or "`storable` of `model_files/registry.py`"."""
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    placed = re.findall(r"((?:`[^`]+`,? (?:or |and )?)+)(?:in|of) `([\w./]+\.\w+)`", text)
    assert placed
    missing = []
    for names, path in placed:
        files = [ROOT / each[1:] for each in contents() if each.endswith(f"/{path}")]
        words = [re.search(r"\w+", span)[0] for span in re.findall(r"`([^`]+)`", names)]
        found = "\n".join(file.read_text(encoding="utf-8") for file in files)
        missing += [f"{word} of {path}" for word in words if not re.search(rf"\b{word}\b", found)]
    assert missing == []


def test_contributing_is_short_and_has_the_packages_in_the_order_of_their_layers():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", text, re.M)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = [each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    assert listed == [package for layer in layers for package in re.findall(r"\w+", layer)]


def test_the_drawing_is_the_one_of_the_import_graph(tmp_path):
    pytest.importorskip("grimp", reason="grimp, which import-linter brings, is not installed")
    drawn = tmp_path / "floors.svg"
    subprocess.run([sys.executable, str(ROOT / ".ci" / "floors.py"), str(drawn)], check=True)
    page = ROOT / "docs" / "_static" / "floors.svg"
    hint = "draw it again: python .ci/floors.py docs/_static/floors.svg"
    assert drawn.read_text(encoding="utf-8") == page.read_text(encoding="utf-8"), hint


def test_every_layer_of_the_contract_is_drawn():
    pytest.importorskip("grimp", reason="grimp, which import-linter brings, is not installed")
    floors = runpy.run_path(str(ROOT / ".ci" / "floors.py"))
    packages = {package for layer in floors["layers"]() for package in layer}
    assert packages == set(floors["COLUMNS"])
    below = {package: row for row, layer in enumerate(floors["layers"]()) for package in layer}
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert floors["reduced"](graph) == [("a", "b"), ("b", "c")]
    assert below["cli"] < below["estimators"] < below["solvers"]
