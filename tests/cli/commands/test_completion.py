"""``ranksvm completion``, and what a shell asks once it is installed."""

import os
import shutil
import subprocess
import sys

import pytest

from ranksvm.cli.commands.completion import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell(ranksvm, shell):
    script = ranksvm("completion", shell).stdout
    assert f"_RANKSVM_COMPLETE={shell}_complete" in script
    assert "%(" not in script


def test_the_shell_in_use_is_the_default(ranksvm, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert "fish_complete" in ranksvm("completion").stdout
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "one of bash, zsh, fish" in ranksvm("completion", code=2).stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tra"], "plain,train"),
        (["train", "--los"], "plain,--loss"),
        (["train", "--loss", "hu"], "plain,huber"),
        (["train", "some"], "file,some"),
    ],
)
def test_what_a_shell_is_told(words, expected):
    words = ["ranksvm", *words]
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_RANKSVM_COMPLETE": "bash_complete"}
    # click takes the name of the variable from the name of the program
    script = "import sys; sys.argv[0] = 'ranksvm'; from ranksvm.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [expected]


@pytest.mark.skipif(shutil.which("bash") is None or sys.platform == "win32", reason="needs bash")
def test_bash_takes_the_script(ranksvm):
    script = ranksvm("completion", "bash").stdout + "\ncomplete -p ranksvm\n"
    result = subprocess.run(["bash", "--norc"], input=script, capture_output=True, text=True, check=True)
    assert "_ranksvm_completion" in result.stdout
