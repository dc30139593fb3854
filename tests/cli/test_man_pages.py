"""``make man``: a page for every command, with its examples."""

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from ranksvm.cli import main

pytest.importorskip("click_man")
SCRIPT = Path(__file__).parents[2] / ".ci" / "man_pages.py"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    runpy.run_path(str(SCRIPT))["write"](folder)
    return folder


def test_every_command_has_a_page(pages):
    names = {"ranksvm.1", *(f"ranksvm-{name}.1" for name in main.list_commands(None))}
    assert {path.name for path in pages.iterdir()} == names
    for name in main.list_commands(None):
        text = (pages / f"ranksvm-{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
        assert "\b" not in text
        assert f"ranksvm {name}" in text.partition("Examples:")[2]


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_nothing_to_complain_of(pages):
    for path in sorted(pages.iterdir()):
        command = ["groff", "-man", "-Tutf8", "-ww", "-z", path]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == "", path.name
