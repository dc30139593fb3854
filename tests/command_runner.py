"""Run command lines in this process, with separate stdout and stderr in every release of click."""

import inspect

from click.testing import CliRunner


def command_runner():
    """A runner that keeps stdout and stderr apart; click before 8.2 does so only on request."""
    if "mix_stderr" in inspect.signature(CliRunner).parameters:
        return CliRunner(mix_stderr=False)
    return CliRunner()
