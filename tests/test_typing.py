"""What type checkers and editors see of the package: names, types of results, and the marker py.typed."""

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ranksvm

HERE = Path(__file__).parent
SCRIPT = HERE / "typing" / "script.py"
SOURCE = HERE.parent / "src"
# Packages whose __init__ imports some names on first use.
LAZY = [
    *("ranksvm", "ranksvm.data", "ranksvm.datasets", "ranksvm.estimators", "ranksvm.exporting", "ranksvm.metrics"),
    "ranksvm.objectives",
]
WRONG = {
    "import ranksvm\nranksvm.RankSVN()\n": "RankSVN",
    "from ranksvm import RankSVM\nRankSVM(cost=1.0)\n": "cost",
    "from ranksvm import RankSVM\nRankSVM().coefs_\n": "coefs_",
    "from ranksvm.estimators import RankSVN\n": "RankSVN",
    "from ranksvm import make_ranking\nmake_ranking().labels\n": "labels",
}


def run(command, folder, **environment):
    found = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return found.returncode, found.stdout + found.stderr


def mypy(path, folder):
    pytest.importorskip("mypy", reason="mypy is not installed")
    # the package is found as source: its own errors are those of `make lint`
    options = ["--config-file=", "--strict", "--follow-imports=silent", f"--cache-dir={HERE.parent / '.mypy_cache'}"]
    return run(["mypy", *options, str(path)], folder, MYPYPATH=str(SOURCE))


def pyright(path, folder):
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    settings = {"include": [str(path)], "extraPaths": [str(SOURCE)], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    code, words = run(["basedpyright", "--pythonpath", sys.executable, "-p", str(folder)], folder)
    if "error" not in words:
        pytest.skip(f"basedpyright cannot run here: {words.strip()[-200:]}")
    return code, words


@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_users_script(check, tmp_path):
    code, words = check(SCRIPT, tmp_path)
    assert code == 0, words


@pytest.mark.parametrize("check", [mypy, pyright])
def test_slips_are_found(check, tmp_path):
    for number, text in enumerate(WRONG):
        (tmp_path / f"slip{number}.py").write_text(text)
    code, words = check(tmp_path, tmp_path)
    assert code == 1
    for number, name in enumerate(WRONG.values()):
        if (check, name) == (mypy, "coefs_"):  # to mypy scikit-learn's base class has any attribute
            continue
        assert any(f"slip{number}.py" in line and name in line for line in words.splitlines()), words


def test_the_script_runs(tmp_path):
    found = subprocess.run([sys.executable, str(SCRIPT)], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_the_marker_is_installed():
    assert (Path(ranksvm.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("model", ["RankSVM", "KernelRankSVM", "AdditiveRankSVM"])
def test_a_choice_takes_the_types_of_its_model(model):
    own, chosen = (inspect.signature(getattr(ranksvm, name)).parameters for name in (model, f"{model}CV"))
    for name in own.keys() & chosen.keys():
        assert own[name].annotation == chosen[name].annotation, name


@pytest.mark.parametrize("package", LAZY)
def test_checkers_and_python_see_the_same_names(package):
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and node.test.id == "TYPE_CHECKING")
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    others = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    if package == "ranksvm":
        assert seen == ranksvm._API | dict.fromkeys(ranksvm._MODULES, "ranksvm")
    else:
        assert set(module.__all__) == set(seen) | (others & set(module.__all__))
    for name, where in seen.items():
        found = getattr(module, name)
        assert found is getattr(importlib.import_module(where), name)
