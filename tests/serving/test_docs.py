"""The commands of docs/serving.md and of the examples do what they are said to do."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ranksvm
from command_runner import command_runner
from ranksvm import clicks
from ranksvm.cli import main

from .test_kills import Killed

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "service"


def commands(page, heading):
    """The commands of a section, one a line."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.S)
    return [line for block in blocks for line in re.sub(r"\n  ", " ", block).splitlines()]


def parsed(line):
    """Parse a command line of ranksvm, without running it."""
    name, *arguments = shlex.split(line)
    command = main.get_command(None, name)
    return command.make_context(name, arguments, resilient_parsing=False)


SECTIONS = {
    ("serving.md", "From zero to a learning service"): {"simulate", "replay", "evaluate", "keys"},
    ("from_personalizer.md", "Rank and reward"): {"replay"},
}


@pytest.mark.parametrize(("page", "heading"), SECTIONS)
def test_the_commands_of_a_page_run(tmp_path, monkeypatch, page, heading):
    monkeypatch.chdir(tmp_path)
    service, event, done = None, None, []
    try:
        for line in commands(page, heading):
            program = shlex.split(line)[0]
            if program == "pip":
                continue
            if line.startswith("ranksvm serve"):
                service = Killed("events.db", shlex.split(line)[1:])
                continue
            line = line.replace("8765", str(service.port) if service else "").replace("EVENT", event or "")
            if program == "curl":
                if shutil.which("curl") is None:
                    continue
                out = subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout
                assert "problem" not in out
                event = event or re.search(r'"event":"(\w+)"', out)[1]
            elif program == "python":
                subprocess.run([sys.executable, *shlex.split(line)[1:]], check=True)
            else:
                result = command_runner().invoke(main, shlex.split(line)[1:])
                assert result.exit_code == 0, result.output
            done.append(line.split()[1])
        assert list(Path().glob("*.rsvm"))
        assert SECTIONS[page, heading] <= set(done)
    finally:
        if service is not None:
            service.kill()


def test_the_lines_of_the_clicks_guide_run(tmp_path, monkeypatch):
    """What is not a doctest: lines on files that a reader has, here those of simulated users and of a service."""
    monkeypatch.chdir(tmp_path)
    made = ranksvm.make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)
    ids = [f"d{row}" for row in range(made.n_rows)]
    ranksvm.write_letor("docs.txt", made.X, made.y, made.qid, docid=ids)
    data = ranksvm.read_letor("docs.txt")
    log = clicks.simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, 5_000, n_ranks=5, random_state=0)
    log.save("log.parquet")
    text = (ROOT / "docs" / "clicks.md").read_text(encoding="utf-8")
    known = {name: getattr(clicks, name) for name in clicks.__all__} | {"RankSVM": ranksvm.RankSVM, "data": data}
    service = Killed("events.db", ["serve", "--n-features", "3", "--store", "events.db"])
    done = []
    try:
        address = f"http://127.0.0.1:{service.port}"
        assert command_runner().invoke(main, ["simulate", address, "docs.txt", "--passes", "3"]).exit_code == 0
        for language, block in re.findall(r"```(python|sh)\n(.*?)```", text, re.S):
            if language == "python" and not block.startswith(">>>"):
                exec(block, known)
                done.append(block)
            elif language == "sh":
                for line in block.splitlines():
                    result = command_runner().invoke(main, shlex.split(line)[1:])
                    assert result.exit_code == 0, result.output
                    done.append(line)
    finally:
        service.kill()
    assert len(done) == 5
    assert known["log"].n_impressions == 90


def test_the_lines_of_the_examples_are_commands(tmp_path, monkeypatch):
    docker = (EXAMPLES / "Dockerfile").read_text()
    words = re.findall(r'"([^"]*)"', re.search(r"^CMD (\[.*\])$", docker, re.M)[1])
    assert parsed(shlex.join(words)).params["host"] == "0.0.0.0"
    compose = (EXAMPLES / "compose.yaml").read_text()
    line = re.search(r"command: (serve .*)", compose)[1]
    assert parsed(line).params["store"].startswith("postgresql://")
    unit = (EXAMPLES / "ranksvm.service").read_text()
    assert parsed(re.search(r"ExecStart=\S*ranksvm (.*)", unit)[1]).params["n_features"] == 46
    for text in (docker, compose):
        added = re.search(r"keys (\S+) --add (\w+)", text)
        assert parsed(f"keys {added[1]} --add {added[2]}").params["add"] == "shop"


@pytest.mark.skipif(os.name == "nt", reason="systemd is not on Windows")
def test_the_unit_is_accepted_by_systemd():
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the unit is not checked")
    found = subprocess.run(
        ["systemd-analyze", "verify", str(EXAMPLES / "ranksvm.service")], capture_output=True, text=True, check=False
    )
    assert "Unknown" not in found.stderr
