"""README.md: short, its commands can be typed, its links lead somewhere, and its figures come from the tables alone."""

import re
from pathlib import Path

import pytest

from cli_lines import parse
from ranksvm import __version__

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# versions of Python and C++, and of the license
PLAIN = {"3.11", "17", "3"}


def block(heading, language=""):
    return re.search(rf"## {heading}\n.*?```{language}\n(.*?)```", README, re.DOTALL)[1]


def test_it_is_short():
    assert len(README.splitlines()) < 140
    assert sum(line.startswith((">>>", "...")) for line in block("From Python", "python").splitlines()) <= 12
    assert len(block("From the shell").splitlines()) <= 6


@pytest.mark.parametrize("line", block("From the shell").splitlines())
def test_its_commands_can_be_typed(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parse(line, tmp_path)


def test_the_command_for_a_figure_can_be_typed_and_names_the_figure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"^(ranksvm folds .*)$", README, re.M)
    command, _, claim = line.partition("#")
    parse(command.strip().replace("letor/MQ2008", str(tmp_path)), tmp_path)
    (figure,) = re.findall(r"\d\.\d+", claim)
    assert f"`--convention letor` | **{figure}** |" in README


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)", README))))
def test_its_links_lead_somewhere(target):
    assert target.startswith("https://") or (ROOT / target).exists()


def test_figures_stand_in_the_checked_tables_alone():
    """Elsewhere a number would be checked against nothing; code is run."""
    text = re.sub(r"<!-- begin.*?<!-- end -->|```.*?```|`[^`]*`|\]\([^)]*\)", "", README, flags=re.DOTALL)
    assert set(re.findall(r"\d[\d.,]*\d|\d", text)) <= PLAIN


def test_the_version_is_stated_once():
    for name in ("pyproject.toml", "meson.build", "CITATION.cff", "README.md"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if "version" in line and re.search(rf"\b{re.escape(__version__)}\b", line)]
