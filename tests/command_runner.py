"""Runs command lines in this process, with stdout and stderr apart in every release of click."""

import inspect

from click.testing import CliRunner


def command_runner():
    """A runner whose results hold stdout and stderr apart, which click before 8.2 does only where it is asked to."""
    if "mix_stderr" in inspect.signature(CliRunner).parameters:
        return CliRunner(mix_stderr=False)
    return CliRunner()
