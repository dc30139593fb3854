"""``python -m ranksvm`` is the ``ranksvm`` command."""

from ranksvm.cli import main

main(prog_name="python -m ranksvm")
