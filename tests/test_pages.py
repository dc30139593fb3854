"""Commands in the pages of docs/ are run, in the order of their page."""

import re
import shlex

import pytest

from code_tables import DOCS
from command_runner import command_runner
from ranksvm.cli import main


def commands(page):
    """The lines of the ``console`` blocks of a page that begin with ``$ ranksvm``."""
    for block in re.findall(r"^```console\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ ranksvm "))


def test_start(tmp_path, monkeypatch):
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    monkeypatch.chdir(tmp_path)
    lines = list(commands("start.md"))
    assert len(lines) == 6
    for line in lines:
        result = command_runner().invoke(main, shlex.split(line)[1:])
        assert result.exit_code == 0, (line, result.stderr)
    for name in ("model.rsvm", "report.html", "ranked.sql"):
        assert (tmp_path / name).stat().st_size > 1000


def test_every_plus_minus_says_what_it_is():
    tracked = [
        path for folder in ("src", "docs", "examples", "benchmarks") for path in (DOCS.parent / folder).rglob("*")
    ]
    texts = {path: path.read_text(encoding="utf-8") for path in tracked if path.suffix in (".md", ".py", ".html")}
    signed = {path: text for path, text in texts.items() if "±" in text}
    assert len(signed) > 10
    explained = re.compile(r"standard\s+(error|deviation)")
    assert [str(path) for path, text in signed.items() if not explained.search(text)] == []


def test_equations_are_numbered_in_order():
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r"\\tag\{(\d+)\}", text)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == 24
