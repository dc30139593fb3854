"""``ranksvm completion``: the script by which a shell completes commands, options and files."""

import os
from pathlib import Path

import click

from ranksvm.cli.output.errors import debug_option

SHELLS = ["bash", "zsh", "fish"]


@click.command("completion", short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@debug_option
@click.pass_context
def completion_command(ctx: click.Context, shell: str | None) -> None:
    """Print a completion script for SHELL (default: the shell in $SHELL): commands, options, choices and files.

    Run the line for your shell once; a new shell then completes `ranksvm tr<TAB>`. bash must be 4.4 or newer; in
    ~/.zshrc, compinit must run first.

    \b
    Examples:
      ranksvm completion bash >> ~/.bashrc
      ranksvm completion zsh >> ~/.zshrc
      ranksvm completion fish > ~/.config/fish/completions/ranksvm.fish
    """
    from click.shell_completion import get_completion_class

    if shell is None:
        shell = Path(os.environ.get("SHELL", "")).name
        if shell not in SHELLS:
            raise click.UsageError(f"name the shell: one of {', '.join(SHELLS)}.")
    complete = get_completion_class(shell)
    assert complete is not None
    program = ctx.find_root()
    click.echo(complete(program.command, {}, "ranksvm", "_RANKSVM_COMPLETE").source())
