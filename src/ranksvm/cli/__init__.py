"""The ``ranksvm`` command.

Only click is imported with this package: the module of a command is imported when the command is used, and numpy,
scipy, scikit-learn and rich are loaded inside the commands, so that ``--help`` and usage errors appear at once.
"""

import sys

try:
    import click

    from ranksvm import __version__
    from ranksvm.cli.output.errors import Program, debug_option
except KeyboardInterrupt:  # only the command imports this package, so exiting is safe
    sys.stderr.write("\nInterrupted: unfinished files were not kept.\n")
    sys.exit(130)

__all__ = ["main"]

_COMMANDS = [
    *("train", "tune", "folds", "online", "predict", "rank", "evaluate", "bias"),
    *("explain", "report", "analyze", "export", "import", "convert", "info", "demo"),
    *("serve", "keys", "replay", "vacuum", "simulate", "doctor", "completion"),
]
# Commands whose module has another name.
_MODULES = {"import": "import_model", **dict.fromkeys(("keys", "replay", "vacuum"), "store")}


@click.group(
    cls=Program,
    modules={name: _MODULES.get(name, name) for name in _COMMANDS},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.",
)
@click.version_option(__version__, "-V", "--version", prog_name="ranksvm")
@debug_option
def main() -> None:
    """Large-margin learning to rank: tune, train, certify, evaluate, explain and apply RankSVMs."""
