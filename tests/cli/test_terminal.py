"""Standard streams in any condition, terminals of any kind, and names in data that would steer them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import ranksvm as package
from ranksvm import RankSVM, make_ranking
from ranksvm.cli import terminal
from ranksvm.clicks import simulate_clicks

COMMANDS = ["train", "evaluate", "predict", "predict to a file"]
posix = pytest.mark.skipif(sys.platform == "win32", reason="redirections of a POSIX shell")
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")


@pytest.fixture
def shell(folder, model, tmp_path):
    """Runs one of the commands with redirections of a shell."""
    lines = {
        "train": f"train {folder / 'train.txt'} -o {tmp_path / 'new.rsvm'}",
        "evaluate": f"evaluate {folder / 'test.txt'} --model {model}",
        "predict": f"predict {model} {folder / 'test.txt'}",
        "predict to a file": f"predict {model} {folder / 'test.txt'} -o {tmp_path / 'scores.txt'}",
        "predict stdin": f"predict {model} -",
        "info": f"info {model}",
    }

    def run(command, redirections="", **environment):
        line = f"{sys.executable} -m ranksvm {lines[command]} {redirections}"
        return subprocess.run(["sh", "-c", line], capture_output=True, env={**os.environ, **environment})

    return run


@posix
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2>/dev/full", marks=full)])
def test_a_command_that_succeeds_ends_with_0_if_nobody_hears_its_progress(shell, command, redirection):
    result = shell(command, redirection)
    assert result.returncode == 0
    assert bool(result.stdout) == (command != "predict to a file")
    assert result.stdout == shell(command, "--quiet").stdout or command == "train"


@posix
@pytest.mark.parametrize("redirection", [">&-", pytest.param(">/dev/full", marks=full)])
def test_a_result_that_standard_output_does_not_take_is_an_error(shell, redirection):
    result = shell("evaluate", redirection)
    assert result.returncode == 1
    assert re.search(rb"Error: standard output: [A-Z][a-z ]+\.\n$", result.stderr)
    assert b"Traceback" not in result.stderr
    assert b"Exception ignored" not in result.stderr
    assert shell("predict to a file", redirection).returncode == 0


@posix
def test_closed_standard_input_is_named(shell):
    result = shell("predict stdin", "<&-")
    assert result.returncode == 1
    assert result.stderr == b"Error: standard input: Bad file descriptor.\n"


@posix
def test_a_file_never_takes_the_number_of_a_closed_stream(tmp_path):
    script = (
        "import os\nfrom ranksvm.cli.terminal import standard_streams\n"
        f"with standard_streams(), open({str(tmp_path / 'data')!r}, 'w') as file:\n"
        "    assert file.fileno() > 2\n"
        "    os.write(2, b'noise of a library')\n"
    )
    subprocess.run(["sh", "-c", '"$0" -c "$1" <&- >&- 2>&-', sys.executable, script], check=True)
    assert (tmp_path / "data").read_text() == ""


def test_control_characters_are_escaped(capsys):
    terminal.say("a\x1b]0;title\x07b\x9b31m\tc\nd\r")
    assert capsys.readouterr().out == "a\\x1b]0;title\\x07b\\x9b31m\tc\nd\\r\n"


HOSTILE = "f\x1b]0;owned\x07\x9b2J"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model and data whose names and ids hold sequences that a terminal obeys."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("hostile")
    data = make_ranking(6, 5, 3, random_state=0)
    data.feature_names = (HOSTILE, "plain", "other\x1b[2J")
    data.qid = np.array([f"q\x1b]0;{number}\x07" for number in data.qid])
    data.docid = np.array([f"d\x1b]0;{row}\x07" for row in range(data.n_rows)])
    data.to_csv(folder / "data.csv")
    ranker = RankSVM().fit(data.X, data.y, qid=data.qid)
    ranker.feature_names_in_ = np.array(data.feature_names, dtype=object)
    package.save(ranker, folder / "model.rsvm")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "info MODEL",
        "info DATA",
        "explain MODEL DATA",
        "rank MODEL DATA --format table",
        "evaluate DATA --model MODEL",
        "train DATA -o NEW --monotone missing",
        "train DATA -o NEW",
        "predict MODEL DATA -o NEW",
        "explain MODEL DATA --query \x1b[31mabsent",
    ],
)
def test_names_in_data_do_not_steer_a_terminal(ranksvm, ranksvm_json, hostile, tmp_path, command):
    places = {"MODEL": hostile / "model.rsvm", "DATA": hostile / "data.csv", "NEW": tmp_path / "new"}
    arguments = [places.get(word, word) for word in command.split(" ")]
    fails = "absent" in command or "missing" in command
    result = ranksvm(*arguments, code=2 if "missing" in command else int(fails))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", result.stdout + result.stderr)
    if command.startswith(("info MODEL", "explain MODEL DATA")) and not fails:
        assert "f\\x1b]0;owned\\x07\\x9b2J" in result.stdout
    if not fails:
        document = ranksvm(*arguments, "--json").stdout
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", document)
        if command == "info MODEL":
            assert HOSTILE in [item["name"] for item in json.loads(document)["weights"]]


def test_data_on_standard_output_are_those_of_a_file(ranksvm, hostile, tmp_path):
    arguments = ["rank", hostile / "model.rsvm", hostile / "data.csv", "--format", "tsv"]
    ranksvm(*arguments, "-o", tmp_path / "ranked.tsv")
    assert ranksvm(*arguments).stdout_bytes == (tmp_path / "ranked.tsv").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="file names are any bytes in Linux")
@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "test.txt", "--model", "model.rsvm", "--per-query", "OUT.tsv"],
        ["report", "model.rsvm", "--test", "test.txt", "-o", "OUT.html"],
        ["bias", "log.csv", "--bootstrap", "0", "-o", "OUT.json"],
    ],
)
def test_file_names_need_not_be_utf_8(ranksvm_json, folder, model, tmp_path, arguments):
    for file in (folder / "test.txt", model):
        shutil.copy(file, tmp_path / f"\udcff{file.name}")
    data = package.read_letor(folder / "train.txt")
    simulate_clicks(data, {"a": data.X[:, 0], "b": data.X[:, 1]}, random_state=0).save(tmp_path / "\udcfflog.csv")
    ranksvm_json(*(tmp_path / f"\udcff{each}" if "." in each else each for each in arguments))
    assert any("OUT" in path.name for path in tmp_path.iterdir())


@posix
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_characters_that_an_encoding_lacks_are_spelled(folder, model, encoding):
    arguments = [sys.executable, "-m", "ranksvm", "explain", model, folder / "test.txt", "-q"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    result = subprocess.run(arguments, capture_output=True, env=environment)
    assert (result.returncode, result.stderr) == (0, b"")
    assert ("█" if encoding == "utf-8" else "####") in result.stdout.decode(encoding)


def in_terminal(arguments, **environment):
    """What a command writes to a terminal, stdout and stderr together."""
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals")
    master, slave = pty.openpty()
    child = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    child |= {"TERM": "xterm-256color", **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "ranksvm", *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=child
    )
    os.close(slave)
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux, when the other end is closed
            break
        if not piece:
            break
        out += piece
    os.close(master)
    assert process.wait() == 0, out
    return out.decode()


COLOR = re.compile(r"\x1b\[[\d;]*3\d[\d;]*m")


def test_colors_only_where_they_are_wanted(folder, model):
    arguments = ["explain", model, folder / "test.txt"]
    assert COLOR.search(in_terminal(arguments))
    assert not COLOR.search(in_terminal(arguments, NO_COLOR="1"))
    # no live line, no colors, no bold: nothing that has to be obeyed
    dumb = in_terminal(arguments, TERM="dumb")
    assert "\x1b" not in dumb
    assert "Read " in dumb


def test_warnings_have_no_color_where_none_is_wanted(folder, tmp_path):
    data = tmp_path / "flat.txt"
    data.write_text("1 1:0.5\n0 1:0.25\n")
    arguments = ["train", data, "-o", tmp_path / "model", "-q"]
    assert COLOR.search(in_terminal(arguments))
    shown = in_terminal(arguments, NO_COLOR="1")
    assert "Warning: " in shown
    assert not COLOR.search(shown)


def test_a_narrow_terminal_loses_nothing(folder, model):
    shown = in_terminal(["info", model], COLUMNS="1", TERM="dumb")
    letters = re.sub(r"\s", "", shown)
    assert "certificate" in letters
    assert all(f"f{number}" in letters for number in range(1, 6))
    arguments = ["explain", model, folder / "test.txt", "-q"]
    wide, narrow, one = (in_terminal(arguments, COLUMNS=width, TERM="dumb") for width in ("100", "20", "1"))
    rows = [[row.split() for row in shown.splitlines() if re.match(r"f\d ", row)] for shown in (wide, narrow, one)]
    assert rows[0] == rows[1] == rows[2] != []


def test_text_for_people_is_printed_in_few_places():
    folder = pathlib.Path(terminal.__file__).parent
    printing = {
        path.name
        for path in folder.rglob("*.py")
        if re.search(r"click\.s?echo\(|\bprint\(|console\.print\(", path.read_text(encoding="utf-8"))
    }
    assert printing == {"terminal.py", "tables.py", "progress.py", "completion.py"}
