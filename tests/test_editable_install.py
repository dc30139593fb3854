"""The ninja of the editable install, which every import runs: found off the PATH, and one build at a time."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
NINJA = ROOT / ".ci" / "ninja"

pytestmark = pytest.mark.skipif(not (ROOT / ".venv" / "bin" / "ninja").exists(), reason="`make setup` was not run")

# Two builds at a time would both make the folder. cython is in .venv only.
BUILD = """
rule once
  command = mkdir building && cython --version && sleep 0.5 && rmdir building && touch $out
build made: once
"""


def building(folder):
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    return subprocess.Popen([NINJA], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_the_tools_need_not_be_on_the_path(tmp_path):
    (tmp_path / "build.ninja").write_text(BUILD)
    process = building(tmp_path)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert (tmp_path / "made").exists()


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not installed")
def test_a_build_waits_for_another(tmp_path):
    (tmp_path / "build.ninja").write_text(BUILD)
    processes = [building(tmp_path) for _ in range(3)]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert sum(b"no work to do" in output for output in outputs) == 2


def test_the_editable_install_uses_it():
    commands = [finder._build_cmd for finder in sys.meta_path if type(finder).__name__ == "MesonpyMetaFinder"]
    if not commands:
        pytest.skip("the package is not installed as editable")
    assert all(command == [str(NINJA)] for command in commands), "run `make setup`"
