"""What every command's help has, whatever commands there are: examples that can be typed, and the common options."""

import re

import click
import pytest

from cli_lines import parse, typed
from ranksvm.cli import main

COMMANDS = main.list_commands(None)
# a script for a shell and a server print no table
WITHOUT_JSON = {"completion", "serve"}


def command(name):
    return main.get_command(None, name)


def examples(name):
    """The lines under the heading "Examples:" of a command's help."""
    with click.Context(main, info_name="ranksvm") as program, click.Context(command(name), program, name) as ctx:
        text = ctx.get_help()
    _, found, rest = text.partition("\n  Examples:\n")
    assert found, f"`ranksvm {name} --help` has no examples"
    return [line.strip() for line in re.match(r"(    .+\n)+", rest)[0].splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_can_be_typed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = examples(name)
    assert any(typed(line)[0] == name for line in lines)
    for line in lines:
        parse(line, tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_fit_a_wide_terminal(name):
    assert all(len(line) <= 110 for line in examples(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_other_lines_fit_80_columns(name):
    with click.Context(main, info_name="ranksvm") as program, click.Context(command(name), program, name) as ctx:
        lines = ctx.get_help().splitlines()
    assert [line for line in lines if len(line) > 80 and line.strip() not in examples(name)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_summary_and_the_common_options(name):
    options = {option for parameter in command(name).params for option in parameter.opts}
    assert command(name).short_help.endswith(".")
    assert {"--debug"} <= options
    assert name in WITHOUT_JSON or "--json" in options


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name):
    silent = [option.name for option in command(name).params if isinstance(option, click.Option) and not option.help]
    assert not silent


@pytest.mark.parametrize("name", COMMANDS)
def test_values_have_names_of_ours_not_the_types_of_click(name):
    with click.Context(main, info_name="ranksvm") as program, click.Context(command(name), program, name) as ctx:
        assert not re.search(r"\b(INTEGER|FLOAT|TEXT|PATH|FILENAME)\b", ctx.get_help())


def test_serve_says_nothing_of_what_only_online_has():
    with click.Context(command("serve"), info_name="serve") as ctx:
        text = command("serve").get_help(ctx)
    assert "--levels" in text
    assert not re.search(r"--resume|\bTRAIN\b", text)
