"""Check that command lines in the documentation are valid."""

import re
import shlex

import click

from ranksvm.cli import main


def parse(line, folder):
    """Parse a shell command line as ranksvm does, in ``folder``, without running it; fail if it is invalid."""
    name, *arguments = typed(line)
    make_inputs(arguments, folder)
    command = main.get_command(None, name)
    assert command is not None, name
    with click.Context(main, info_name="ranksvm") as program:
        command.make_context(name, arguments, parent=program)


def typed(line):
    """The arguments of ranksvm in a shell command line, without other commands of a pipe and without redirections."""
    calls = [part for part in line.split("|") if part.split()[0] == "ranksvm"]
    assert len(calls) == 1, line
    return shlex.split(re.split(r"\s>{1,2}\s", calls[0])[0])[1:]


# content of a file as `ranksvm tune --save-choice` writes it; it is read while options are parsed
SETTINGS = '{"ranksvm": "settings", "settings": {"C": 1.0}}'


def make_inputs(arguments, folder):
    """Make the inputs that an example may read: a file for each name with an extension, a folder for any other word."""
    for word in arguments:
        if re.fullmatch(r"[\w.-]+\.\w+", word) and not re.fullmatch(r"[\d.]+", word):
            (folder / word).write_text(SETTINGS)
        elif re.fullmatch(r"[\w-]+", word) and not word.startswith("-"):
            (folder / word).mkdir(exist_ok=True)
