"""Private modules stay in their folders, and the folders of tests are those of the package."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ranksvm"
# Folders of tests/ about a subject outside the package; and those of the package that have a private name.
SUBJECTS = {"benchmarks", "benchmarks/papers", "examples", "fuzz", "released_models", "stand_in_driver", "typing"}
PRIVATE_IMPORT = re.compile(r"(?m)^ *(?:from|import) [^\n]*\b_[a-z]|import \([^)]*\b_[a-z]")
PRIVATE = {"compiled": "_compiled", "util": "_util"}


def imported(path):
    """Dotted names that a file imports of ranksvm, those of ``from a import b`` as both ``a`` and ``a.b``."""
    source = path.read_text(encoding="utf-8")
    # most files import nothing whose name begins with an underscore, and need not be parsed
    for node in ast.walk(ast.parse(source)) if PRIVATE_IMPORT.search(source) else ():
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("ranksvm"))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("ranksvm"):
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def private_folder(name):
    """The folder, relative to the package, that a private module named so belongs to; None where it is none."""
    parts = name.split(".")[1:]
    for place, part in enumerate(parts):
        if part.startswith("_") and not part.startswith("__"):
            folder = PACKAGE.joinpath(*parts[:place])
            if (folder / f"{part}.py").exists() or (folder / part).is_dir():
                return folder.relative_to(PACKAGE)
    return None


def test_the_folders_of_tests_mirror_those_of_the_package():
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("*.py")} - {"."}
    assert len(folders) > 20
    assert folders >= SUBJECTS
    assert sorted(name for name in folders - SUBJECTS if not (PACKAGE / PRIVATE.get(name, name)).is_dir()) == []


def test_private_modules_stay_in_their_folders():
    """A module whose name begins with an underscore is private to its folder, and to the tests of that folder."""
    trees = {"src": PACKAGE, "tests": ROOT / "tests", "benchmarks": ROOT / "benchmarks", "examples": ROOT / "examples"}
    found, n_files = [], 0
    for tree in trees.values():
        for path in tree.rglob("*.py"):
            n_files += 1
            own = path.parent.relative_to(tree)
            for name in imported(path):
                folder = private_folder(name)
                if folder is not None and folder != own and folder not in own.parents and folder != pathlib.Path("."):
                    found.append(f"{path.relative_to(ROOT)} imports {name}")
    assert n_files > 200
    assert not sorted(set(found))
