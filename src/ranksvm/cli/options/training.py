"""Options of the commands that train: data, weights, model, and how hyper-parameters are chosen."""

from collections.abc import Callable

import click

from ranksvm._util.parameters import LOSSES
from ranksvm.cli.clicks import click_options
from ranksvm.cli.options.shared import (
    EXISTING_FILE,
    Name,
    NumberRange,
    all_options,
    convention_option,
    list_option,
    qrels_option,
    reading_options,
)

__all__ = [
    "CHOICES",
    "RULES",
    "choice_options",
    "c_range_option",
    "data_options",
]

# Parameters chosen by name, and their values. Some repeat the library's lists, because the library must not be
# imported for --help. The first value of each is the default.
CHOICES = {
    "loss": list(LOSSES),
    "scaler": [
        *("none", "query-minmax", "query-standard", "standard", "minmax"),
        *("elasticsearch-minmax", "elasticsearch-l2_norm", "opensearch-minmax", "opensearch-l2_norm"),
    ],
}
RULES = ["best", "one_standard_error"]


def data_options(command: Callable) -> Callable:
    """Validation and test data, weights of the training data, and pairs instead of its labels."""
    return all_options(
        click.option("--valid", type=EXISTING_FILE, metavar="FILE", help="Validation data, on which C is chosen."),
        click.option(
            "--test", type=EXISTING_FILE, metavar="FILE", help="Test data: evaluated at the end, not used before."
        ),
        qrels_option,
        _numbers_option(
            "--sample-weight",
            "Weight of each row of TRAIN: a pair is weighted by the product of its two rows' weights.",
        ),
        _numbers_option("--query-weight", "Weight of each row's query, the same for all its rows."),
        _numbers_option(
            "--propensity",
            "Probability that feedback on a row was observed; the weights of pairs that prefer the row are divided by "
            "it.",
        ),
        click.option(
            "--pairs",
            type=EXISTING_FILE,
            metavar="FILE",
            help="Learn from these pairs, not from labels. Each line is 'preferred other [weight]', with the numbers "
            "of two rows of TRAIN, from 0.",
        ),
        click_options,
        reading_options,
    )(command)


def _numbers_option(name: str, meaning: str) -> Callable[[Callable], Callable]:
    return click.option(name, type=EXISTING_FILE, metavar="FILE", help=f"{meaning} One number per line.")


def c_range_option(default: str | None = None) -> Callable[[Callable], Callable]:
    """Values of C to choose from."""
    return list_option(
        "--C-range",
        "Cs",
        type=NumberRange(),
        default=default,
        metavar="RANGE",
        help="Values of C to choose from: 2^-15:2^5, 2^-15:2^5:2, 1e-4:1e2 or 0.01,0.1,1.",
    )


def choice_options(command: Callable) -> Callable:
    """How C, and every other setting that is compared, is chosen."""
    return all_options(
        click.option(
            "--metric", default="ndcg@10", show_default=True, metavar="M", help="Metric that decides the choice."
        ),
        convention_option(),
        click.option(
            "--folds",
            type=click.IntRange(min=2),
            default=5,
            show_default=True,
            help="Number of folds of queries, used if there are no validation data.",
        ),
        click.option(
            "--rule",
            type=Name(RULES),
            default=RULES[0],
            show_default=True,
            help="Choose the C with the best mean score, or the smallest C within one standard error of it.",
        ),
    )(command)
