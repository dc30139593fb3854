"""The program as a whole: help, start-up, errors and exit codes."""

import errno
import io
import json
import shutil
import subprocess
import sys
import warnings

import click
import pytest

from command_runner import command_runner
from ranksvm import __version__
from ranksvm.cli import main
from ranksvm.cli.output.errors import Program, debug_option
from ranksvm.cli.output.tables import print_json
from ranksvm.exceptions import DataError, ModelFileError, OptionError

COMMANDS = [
    "train",
    "tune",
    "folds",
    "predict",
    "rank",
    "evaluate",
    "bias",
    "explain",
    "export",
    "import",
    "convert",
    "info",
    "demo",
    "keys",
    "replay",
    "vacuum",
]


def program_that(action):
    """A program with one command, ``go``, that runs ``action``."""

    @click.group(cls=Program)
    @debug_option
    def program():
        pass

    @program.command()
    @debug_option
    def go():
        action()

    return program


def program_that_raises(error):
    def action():
        raise error

    return program_that(action)


# What none of these commands uses: their models are linear.
UNUSED = {
    *("joblib", "matplotlib", "narwhals", "pandas", "pyarrow", "ranksvm.kernels", "rich"),
    *("scipy.special", "scipy.stats", "sklearn"),
    *("ranksvm.datasets.generators", "ranksvm.terms.device.term", "ranksvm.terms.parts.file_backend"),
    "ranksvm.terms.parts.term",
}
# Newton's method solves linear systems with scipy.linalg if they have many variables.
BY_SOLVERS = {"scipy", "ranksvm.objectives", "ranksvm.solvers"}


@pytest.fixture(scope="module")
def small_files(tmp_path_factory):
    """A data file, one of many features, a model of the first and its scores."""
    folder = tmp_path_factory.mktemp("small")
    train, wide, model, scores = (folder / name for name in ("train.txt", "wide.txt", "a.rsvm", "scores.txt"))
    train.write_text("1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25 2:0\n2 qid:2 1:0.75\n0 qid:2 2:0.5\n")
    wide.write_text("1 qid:1 7:0.5 900:1\n0 qid:1 3:0.25 5:1\n")
    folds = folder / "folds"
    (folds / "Fold1").mkdir(parents=True)
    for part in ("train", "test"):
        shutil.copy(train, folds / "Fold1" / f"{part}.txt")
    main(["train", str(train), "-o", str(model), "-q", "--json"], standalone_mode=False)
    main(["predict", str(model), str(train), "-o", str(scores), "-q"], standalone_mode=False)
    return {"TRAIN": train, "FOLDS": folds, "WIDE": wide, "MODEL": model, "SCORES": scores, "NEW": folder / "new"}


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        ("train TRAIN -o NEW.rsvm --json", UNUSED | {"scipy"}),
        ("train TRAIN --valid TRAIN -o NEW.rsvm --loss hinge --json", UNUSED | {"scipy"}),
        ("train WIDE -o NEW.rsvm --json", UNUSED),
        ("predict MODEL TRAIN -o NEW.txt", UNUSED | BY_SOLVERS),
        ("rank MODEL TRAIN --format tsv -o NEW.tsv", UNUSED | BY_SOLVERS),
        ("evaluate TRAIN -m MODEL --json", UNUSED | BY_SOLVERS),
        ("evaluate TRAIN -s SCORES --json", UNUSED | BY_SOLVERS),
        ("info TRAIN --json", UNUSED | BY_SOLVERS),
        ("info MODEL --json", UNUSED | {"scipy"}),
        ("explain MODEL TRAIN --json", UNUSED | BY_SOLVERS),
        ("convert TRAIN NEW.rsd", UNUSED | BY_SOLVERS),
        ("export MODEL --to solr --data TRAIN -o NEW.json", UNUSED | BY_SOLVERS | {"onnx"}),
    ],
)
def test_a_command_loads_only_what_it_uses(command, unused, small_files):
    for name, path in small_files.items():
        command = command.replace(name, str(path))
    script = (
        "import sys\n"
        "from ranksvm.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print('loaded', *sys.modules)"
    )
    arguments = [sys.executable, "-c", script, *command.split()]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    loaded = set(result.stdout.split("loaded ")[-1].split())
    assert not unused & loaded
    commands = {name for name in [*COMMANDS, "analyze", "online"] if f"ranksvm.cli.commands.{name}" in loaded}
    assert commands == {command.split()[0]}


@pytest.mark.parametrize(
    "command",
    [
        "train TRAIN -o NEW.rsvm",
        "train TRAIN -o NEW.rsvm --kernel rbf --gamma 1",
        "train TRAIN -o NEW.rsvm --valid TRAIN --C-range 0.1,1",
        "tune TRAIN --valid TRAIN --C-range 0.1,1 --low-rank regularized",
        "folds FOLDS -C 1",
    ],
)
def test_the_time_of_training_is_that_of_the_fit(command, small_files):
    for name, path in small_files.items():
        command = command.replace(name, str(path))
    script = (
        "import contextlib, sys\n"
        "from ranksvm.cli import main\nfrom ranksvm.cli.output import progress\n"
        "timed = progress.Stopwatch.__call__\n"
        "@contextlib.contextmanager\n"
        "def watched(self, name):\n"
        "    before = set(sys.modules)\n"
        "    with timed(self, name):\n"
        "        yield\n"
        "    if name == 'training':\n"
        "        print('imported', *set(sys.modules) - before)\n"
        "progress.Stopwatch.__call__ = watched\n"
        "main(sys.argv[1:], standalone_mode=False)"
    )
    arguments = [sys.executable, "-c", script, *command.split(), "-q"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    (imported,) = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("imported")]
    assert [name for name in imported if name.startswith(("ranksvm.estimators", "scipy", "sklearn"))] == []


def test_help_lists_the_commands_in_the_order_of_use():
    result = command_runner().invoke(main, ["--help"])
    assert result.exit_code == 0
    places = [result.stdout.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert "Exit codes" in result.stdout


def test_a_command_that_does_not_exist_is_compared_with_all():
    result = command_runner().invoke(main, ["evaluat"])
    assert result.exit_code == 2
    assert "No such command 'evaluat'" in result.stderr
    assert set(main.commands) == set(main.list_commands(None))


def test_help_loads_no_heavy_package():
    script = (
        "import sys; from ranksvm.cli import main\n"
        "for arguments in (['--help'], ['train', '-h'], ['tune', '-h'], ['demo', '-h'], ['train', '-C', 'x']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'rich', 'pyarrow', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_python_m_ranksvm_is_the_command():
    result = subprocess.run([sys.executable, "-m", "ranksvm", "--version"], capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stdout == f"ranksvm, version {__version__}\n"
    assert command_runner().invoke(main, ["-V"]).stdout == result.stdout


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DataError("labels are missing"), 1, "Error: labels are missing"),
        (ModelFileError("m: damaged"), 1, "Error: m: damaged"),
        (OptionError("tol must be positive"), 2, "Error: tol must be positive"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.txt"), 1, "Error: x.txt: No such file"),
        (OSError("odd"), 1, "Error: odd.\n"),
        (OSError("odd."), 1, "Error: odd.\n"),
        (io.UnsupportedOperation("cannot seek."), 1, "Error: cannot seek.\n"),
        (MemoryError("14 GiB"), 1, "Not enough memory. 14 GiB"),
        (ZeroDivisionError("division by zero"), 1, "ZeroDivisionError: division by zero\nThis should not happen"),
    ],
)
def test_errors_are_sentences_and_exit_codes(error, code, message):
    result = command_runner().invoke(program_that_raises(error), ["go"])
    assert result.exit_code == code
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DataError("labels are missing"), 1, "labels are missing"),
        (OptionError("tol must be positive"), 2, "tol must be positive"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.txt"), 1, "x.txt: No such file or directory."),
        (click.UsageError("give --top"), 2, "give --top"),
    ],
)
def test_with_json_an_error_is_the_document(error, code, message):
    program = program_that_raises(error)
    program.commands["go"].params.append(click.Option(["--json"], is_flag=True, expose_value=False))
    result = command_runner().invoke(program, ["go", "--json"])
    assert result.exit_code == code
    assert json.loads(result.stdout) == {"command": "go", "error": message, "exit_code": code}
    assert f"Error: {message}" in result.stderr
    debugged = command_runner().invoke(program, ["--debug", "go", "--json"])
    assert json.loads(debugged.stdout) == json.loads(result.stdout)
    assert command_runner().invoke(program, ["go"]).stdout == ""


def test_every_command_answers_errors_in_one_form(tmp_path):
    with click.Context(main) as ctx:
        commands = {name: main.get_command(ctx, name) for name in main.list_commands(ctx)}
    with_json = [name for name, command in commands.items() if any("--json" in each.opts for each in command.params)]
    assert len(with_json) > 18
    for name in with_json:
        result = command_runner().invoke(main, [name, "--json", "--no-such-option"])
        document = json.loads(result.stdout)
        assert set(document) == {"command", "error", "exit_code"}
        assert (document["command"], document["exit_code"], result.exit_code) == (name, 2, 2)
        assert "--no-such-option" in document["error"]


def test_a_document_that_was_printed_is_the_only_one():
    def go():
        print_json({"command": "go", "interrupted": True})
        raise DataError("the rest is damaged")

    program = program_that(go)
    program.commands["go"].params.append(click.Option(["--json"], is_flag=True, expose_value=False))
    result = command_runner().invoke(program, ["go", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"command": "go", "interrupted": True}


def test_json_after_two_dashes_is_an_argument():
    result = command_runner().invoke(main, ["info", "--", "--json"])
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("arguments", [["--debug", "go"], ["go", "--debug"]])
def test_debug_lets_the_exception_through(arguments):
    error = DataError("labels are missing")
    assert command_runner().invoke(program_that_raises(error), arguments).exception is error


def test_an_interrupt_has_an_exit_code_of_its_own():
    result = command_runner().invoke(program_that_raises(KeyboardInterrupt()), ["go"])
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr


def test_warnings_are_one_line():
    result = command_runner().invoke(program_that(lambda: warnings.warn("not converged", stacklevel=1)), ["go"])
    assert result.exit_code == 0
    assert result.stderr == "Warning: not converged\n"


@pytest.mark.parametrize("arguments", [["fly"], ["train"], ["predict", "absent", "absent"], ["--fly"]])
def test_wrong_usage_is_exit_code_2(arguments):
    result = command_runner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_a_model_is_not_taken_for_data_nor_data_for_a_model(ranksvm, folder, model):
    for arguments in (["predict", model, model], ["train", model, "-o", folder / "x"]):
        stderr = ranksvm(*arguments, "-q", code=1).stderr
        assert stderr == f"Error: {model} is a ranksvm model file, not data.\n"
    assert "exchange them" in ranksvm("predict", folder / "test.txt", model, "-q", code=2).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error there")
@pytest.mark.parametrize("command", [["rank"], ["predict"], ["rank", "--json"]])
def test_a_reader_that_has_enough_ends_the_program_quietly(folder, model, command):
    arguments = [sys.executable, "-m", "ranksvm", *command, model, folder / "train.txt", "--quiet"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
