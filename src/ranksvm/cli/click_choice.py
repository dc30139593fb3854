"""Choice of C by the clicks on held-out queries, if there is a click log but no labels."""

import warnings
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ranksvm.cli.click_evaluation import open_clicks
from ranksvm.cli.rankers import make_ranker

if TYPE_CHECKING:
    from ranksvm._util.types import Features
    from ranksvm.datasets.ranking_data import RankingData

__all__ = ["ClickChoice", "check_click_choice", "chooses_by_clicks"]

# half the width of a normal 95 % interval, in standard errors
_Z = 1.959964


def chooses_by_clicks(options: dict[str, Any]) -> bool:
    """Whether clicks decide C: no C is given, and no validation data with a range to choose from."""
    if options["clicks"] is None or options["C"] is not None:
        return False
    if options["low_rank"] is not None or options["gammas"] is not None:
        return False
    return options["Cs"] is None or options["valid"] is None


def check_click_choice(ctx: click.Context, options: dict[str, Any]) -> None:
    """Refuse what a choice by clicks cannot take into account."""
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
