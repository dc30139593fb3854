"""The options --clicks and --bias: evaluation of models, training, and choice of C, with a click log."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ranksvm.cli.files import load_scorer, model_scores, names_of, read, read_numbers
from ranksvm.cli.options.paths import path_to_open, titled
from ranksvm.cli.options.shared import EXISTING_FILE, Probability, all_options
from ranksvm.cli.output.errors import warn
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import count, number, print_json, print_table
from ranksvm.cli.rankers import make_ranker
from ranksvm.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from ranksvm._util.types import Features
    from ranksvm.clicks import ClickLog, PositionBias
    from ranksvm.clicks.log_file import ClickLogFile
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.metrics import CounterfactualEstimate

__all__ = [
    "ClickChoice",
    "check_click_choice",
    "check_clicks",
    "chooses_by_clicks",
    "click_options",
    "estimator_options",
    "evaluate_clicks",
    "open_clicks",
    "open_log",
    "pairs_of_clicks",
]

_METRICS = "dcg@10,mean_relevant_rank"
# maximum number of rankers of a log that have their own rows in the table
_MAX_RANKERS = 6
# half the width of a normal 95 % interval, in standard errors
_Z = 1.959964


def click_options(command: Callable) -> Callable:
    """The options that give a click log and the propensities of its ranks."""
    return all_options(
        click.option(
            "--clicks",
            type=EXISTING_FILE,
            metavar="LOG",
            help="Click log instead of labels: Parquet, CSV, TSV, events of Metarank, or the store of `ranksvm serve`.",
        ),
        click.option(
            "--bias",
            type=EXISTING_FILE,
            metavar="FILE",
            help="Propensities of the ranks, as `ranksvm bias` writes them.",
        ),
    )(command)


def estimator_options(command: Callable) -> Callable:
    """The options that say how metrics are estimated from clicks."""
    return all_options(
        click.option(
            "--estimator",
            type=click.Choice(["ips", "snips", "dr"]),
            default="ips",
            show_default=True,
            help="With --clicks: inverse propensities, self-normalized, or doubly robust.",
        ),
        click.option(
            "--clip",
            type=Probability(),
            metavar="P",
            help="With --clicks: exposures (mean propensities of a document) below P count as P.",
        ),
    )(command)


def check_clicks(options: dict[str, Any]) -> None:
    """Refuse a log without propensities, or propensities without a log."""
    if options["clicks"] is None and options["bias"] is not None:
        raise click.UsageError("--bias needs a click log: give --clicks as well.")
    if options["clicks"] is not None and options["bias"] is None:
        raise click.UsageError("--clicks needs the propensities of its ranks: give --bias (see `ranksvm bias`).")


def open_log(path: Path, policy: str | None = None) -> "ClickLog | ClickLogFile":
    """Open a click log: a file of impressions and clicks, events of Metarank, or rankings in the store of a service.

    Parameters
    ----------
    path : Path
        The file.
    policy : str, optional
        Policy of the rankings in a store; None: all.

    Returns
    -------
    ClickLog or ClickLogFile
        The log.
    """
    from ranksvm.clicks.log_file import refuse_pipe
    from ranksvm.datasets.files import SQLITE

    name, path = titled(path), path_to_open(path)
    with open(path, "rb") as file:
        refuse_pipe(file, name)
        is_store = file.read(len(SQLITE)) == SQLITE
    if is_store:
        from ranksvm.serving.clicks import click_log

        return click_log(path, policy=policy)
    from ranksvm.clicks import ClickLog, read_metarank
    from ranksvm.clicks.metarank import has_metarank_events

    return read_metarank(path).log if has_metarank_events(path) else ClickLog.scan(path)


def open_clicks(options: dict[str, Any]) -> "tuple[ClickLog | ClickLogFile, PositionBias]":
    """The click log, without the ranks from the first unknown propensity on, and the propensities of its ranks."""
    from ranksvm.clicks import ClickLog, PositionBias

    name, bias = titled(options["bias"]), PositionBias.load(path_to_open(options["bias"]))
    log = open_log(options["clicks"])
    known = next((place for place, value in enumerate(bias.propensity.tolist()) if value != value), bias.n_ranks)  # NaN
    if known == 0:
        raise click.UsageError(f"{name} does not know the propensity of any rank.")
    if max(int(block.rank.max()) for block in log.blocks()) <= known:
        return log, bias
    warn(
        f"{name} does not know the propensity of rank {known + 1}: only the first {known} ranks of the log are "
        "used. `ranksvm bias --curve power` estimates all ranks."
    )
    return (log if isinstance(log, ClickLog) else log.read()).top(known), bias


def pairs_of_clicks(options: dict[str, Any], data: "RankingData") -> "tuple[np.ndarray, np.ndarray]":
    """Pairs (preferred, other) of rows of the training data that follow from clicks, and the weights of the pairs."""
    from ranksvm.clicks import click_pairs

    log, bias = open_clicks(options)
    if bias.offset is not None:
        raise click.UsageError(
            "with trust bias clicks do not become pairs. Only `ranksvm train` can learn from them then, from relevance "
            "that it estimates, with C chosen by clicks: without -C, --valid with a range, --gamma-range or --low-rank."
        )
    return click_pairs(log, data, bias)


def evaluate_clicks(ctx: click.Context, data: Path, options: dict[str, Any]) -> None:
    """Estimate the metrics of models and score files from clicks, and print them."""
    for name in ("runs", "qrels", "missing", "convention", "against", "correction", "per_query"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError("--clicks takes models and score files, and no option about labels or runs.")
    if not (options["models"] or options["score_files"]):
        raise click.UsageError("nothing to evaluate: give --model or --scores.")
    given = ctx.get_parameter_source("metrics") is ParameterSource.COMMANDLINE
    metrics = options["metrics"] if given else _METRICS.split(",")
    results = _results(data, metrics, options)
    if options["as_json"]:
        systems = [{"name": name, **found.to_dict()} for name, found in results.items()]
        print_json({"command": "evaluate", "data": str(data), "clicks": str(options["clicks"]), "systems": systems})
        return
    first = next(iter(results.values()))
    rows = [[name, *(_cell(found, name) for found in results.values())] for name in first.means]
    rows += _unseen_rows(list(results.values()))
    title = (
        f"{options['clicks']}: {count(first.n_impressions)} impressions, {count(first.n_clicks)} clicks, as "
        f"informative as {count(round(first.effective_clicks))} of equal weight"
    )
    print_table([f"metric ({first.estimator})", *results], rows, title=title)
    for name, found in results.items():
        if found.note:
            say(f"{name}: {found.note}")


def _unseen_rows(results: "list[CounterfactualEstimate]") -> list[list[str]]:
    """Rows of the table: the share of the documents at the first ten ranks that no list of the log showed, and for each
    ranker of the log the share that none of its lists showed."""
    rows = [["never shown", *(f"{100 * found.unseen_share:.1f} %" for found in results)]]
    rankers = list(results[0].unseen_by_ranker)
    if 1 < len(rankers) <= _MAX_RANKERS:
        for ranker in rankers:
            shares = (100 * found.unseen_by_ranker[ranker] for found in results)
            rows.append([f"never shown by {ranker}", *(f"{share:.1f} %" for share in shares)])
    return rows


def _cell(found: "CounterfactualEstimate", name: str) -> str:
    low, high = found.intervals[name]
    return f"{number(found.means[name])} [{number(low)}, {number(high)}]"


def _results(data: Path, metrics: list[str], options: dict[str, Any]) -> "dict[str, CounterfactualEstimate]":
    from ranksvm.metrics import estimate

    models = [load_scorer(path) for path in options["models"]]
    names = iter(names_of([*options["models"], *options["score_files"]]))
    log, bias = open_clicks(options)
    how = {"estimator": options["estimator"], "clip": options["clip"]}
    found = {}
    with Progress(options["quiet"]) as progress:
        rows = read(data, progress, Stopwatch(), options["reading"], require_labels=False, models=models)
        for model in models:
            name = next(names)
            progress.now(f"Evaluating {name}")
            found[name] = estimate(log, model_scores(model, rows, data), metrics, bias, data=rows, **how)
        for path in options["score_files"]:
            name = next(names)
            progress.now(f"Evaluating {name}")
            scores = read_numbers(path, rows.n_rows, "score")
            found[name] = estimate(log, scores, metrics, bias, data=rows, **how)
    return found


def chooses_by_clicks(options: dict[str, Any]) -> bool:
    """Whether C is chosen by clicks: no C is given, and validation data and a range of C are not both given."""
    if options["clicks"] is None or options["C"] is not None:
        return False
    if options["low_rank"] is not None or options["gammas"] is not None:
        return False
    return options["Cs"] is None or options["valid"] is None


def check_click_choice(ctx: click.Context, options: dict[str, Any]) -> None:
    """Refuse options that cannot be combined with a choice of C by clicks."""
    for name in ("sample_weight", "query_weight", "propensity"):
        if options[name] is not None:
            raise click.UsageError(f"C is not chosen by clicks with --{name.replace('_', '-')}: give -C.")
    if options["interactions"] == "auto":
        raise click.UsageError("--interactions auto is a choice by labels, but C is chosen by clicks: give a number.")
    if options["keep_on_interrupt"]:
        raise click.UsageError("--keep-on-interrupt is for one fit, but C is chosen among several: give -C.")
    for name in ("metric", "folds", "rule"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{name} is about labels, but C is chosen by clicks (by DCG@10): give -C, or omit this option."
            )


class ClickChoice:
    """Reads the log, chooses C with `fit_from_clicks`, and has the attributes of `RankSVMCV` that the command shows.

    Parameters
    ----------
    options : dict
        Options of the command, in which features are given by their columns.

    Attributes
    ----------
    Cs_, scores_, mean_scores_, standard_errors_
        As in `RankSVMCV`.
    metric_ : str
        What the scores estimate.
    ranker_ : estimator
        The estimator with the chosen C, fitted on the whole log.
    """

    by = "clicks of held-out queries"

    def __init__(self, options: dict[str, Any]):
        self._Cs = options["Cs"]
        self._estimator = make_ranker(options, C=1.0, Cs=None)
        self._log, self._bias = open_clicks(options)

    def fit(self, train: "RankingData", X: "Features") -> "ClickChoice":
        """Choose C, and fit the model; X are the features of the training data, scaled."""
        import numpy as np

        from ranksvm.clicks import fit_from_clicks
        from ranksvm.datasets.ranking_data import RankingData
        from ranksvm.exceptions import GridEdgeWarning

        data = RankingData(X, train.y, train.qid, train.docid)
        form = "pairs" if self._bias.offset is None else "relevance"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GridEdgeWarning)  # a note below the table says so, as for labels
            found = fit_from_clicks(self._estimator, data, self._log, self._bias, form=form, Cs=self._Cs)
        ends = np.array([one.intervals[found.metric] for one in found.estimates])
        self.ranker_, self.metric_ = found.model, found.metric
        self.mean_scores_ = np.array([one[found.metric] for one in found.estimates])
        self.standard_errors_ = (ends[:, 1] - ends[:, 0]) / (2.0 * _Z)
        self.scores_ = self.mean_scores_[:, np.newaxis]
        self.Cs_ = found.Cs
        return self
