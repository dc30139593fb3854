"""The ``ranksvm`` command.

Only click is imported with this package: numpy, scipy, scikit-learn and rich are loaded inside the commands, so that
``--help`` and usage errors appear at once.
"""

import click

from ranksvm import __version__
from ranksvm.cli.analyze import analyze_command
from ranksvm.cli.convert import convert_command
from ranksvm.cli.demo import demo_command
from ranksvm.cli.errors import Program, debug_option
from ranksvm.cli.evaluate import evaluate_command
from ranksvm.cli.explain import explain_command
from ranksvm.cli.info import info_command
from ranksvm.cli.online import online_command
from ranksvm.cli.predict import predict_command
from ranksvm.cli.rank import rank_command
from ranksvm.cli.train import train_command
from ranksvm.cli.tune import tune_command

__all__ = ["main"]


@click.group(
    cls=Program,
    commands=[
        train_command,
        tune_command,
        online_command,
        predict_command,
        rank_command,
        evaluate_command,
        explain_command,
        analyze_command,
        convert_command,
        info_command,
        demo_command,
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.",
)
@click.version_option(__version__, prog_name="ranksvm")
@debug_option
def main() -> None:
    """Large-margin learning to rank: tune, train, certify, evaluate, explain and apply RankSVMs."""
