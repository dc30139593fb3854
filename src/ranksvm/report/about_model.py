"""Sections on the data, the fit and the choice of C."""

import math
from collections.abc import Sequence

import numpy as np

from ranksvm._util.tables import Table
from ranksvm._util.text import number
from ranksvm.datasets.description import data_facts, described_data, level_rows
from ranksvm.estimators import AdditiveRankSVMCV, KernelRankSVMCV, RankSVMCV
from ranksvm.estimators.base.summary import certificate_in_words, described_fit, fit_facts
from ranksvm.plotting import GridDisplay, PathDisplay
from ranksvm.report.blocks import Block, Code, Facts, Figure, Grid, Section, Text, drawing
from ranksvm.report.subject import Subject

__all__ = ["choice_section", "data_section", "fit_section"]


def data_section(subject: Subject) -> Section:
    """The data that the model is measured on, and its training data."""
    blocks: list[Block] = []
    for part, data in (("test", subject.data), ("training", subject.train)):
        if data is None:
            continue
        found = described_data(data)
        blocks.append(Facts(data_facts(found), f"The {part} data"))
        columns: Sequence[Sequence[str]] = list(zip(*level_rows(found), strict=True))
        names = ("level", "documents", "share")
        labels = dict(zip(names, columns, strict=True))
        blocks.append(Grid(Table(labels, f"Labels of the {part} data", numbers=names)))
    if subject.train is None:
        blocks.append(Text("The training data were not given."))
    return Section("data", "Data", blocks)


def fit_section(subject: Subject) -> Section:
    """The model, its fit, and what its certificate proves."""
    facts = fit_facts(described_fit(subject.ranker))
    return Section(
        "fit",
        "The fit and its certificate",
        [Text(certificate_in_words(subject.ranker)), Facts(facts, "The fit"), Code(repr(subject.model))],
    )


def choice_section(subject: Subject) -> Section:
    """The scores by which C, and gamma, were chosen."""
    ranker, title = subject.ranker, "Choice of C"
    if not isinstance(ranker, RankSVMCV | KernelRankSVMCV | AdditiveRankSVMCV):
        text = "The model was fitted with the settings given: no other C was tried, so there is nothing to show here."
        return Section("path", title, [Text(text)])
    metric = ranker.fitted_params_["metric"]
    error = float(ranker.standard_errors_.flat[int(ranker.best_iteration_ or 1) - 1])
    parts = ranker.scores_.shape[-1]
    on = f"mean over {parts} folds" if parts > 1 else "on validation data"
    tried = f"{ranker.scores_[..., 0].size:,} settings"
    known = "" if math.isnan(error) or ranker.best_iteration_ is None else f" ± {number(error)} (one standard error)"
    text = f"C = {ranker.C_:.4g} was chosen among {tried} by {metric}: {number(ranker.best_score_)}{known}, {on}."
    if len(ranker.Cs_) > 1 and ranker.C_ in (ranker.Cs_[0], ranker.Cs_[-1]):
        text += " It is at the end of the range: values beyond it may be better."
    if isinstance(ranker, AdditiveRankSVMCV):
        return Section("path", title, [Text(text), Grid(_settings_table(ranker, metric))])
    if isinstance(ranker, KernelRankSVMCV):
        svg = drawing("path", lambda axes: GridDisplay.from_estimator(ranker, ax=axes))
    else:
        svg = drawing("path", lambda axes: PathDisplay.from_estimator(ranker, ax=axes))
    return Section("path", title, [Text(text), Figure(svg, f"{metric} against C.")])


def _settings_table(ranker: AdditiveRankSVMCV, metric: str) -> Table:
    """The best C of each step weight and number of interactions."""
    best = np.nanargmax(ranker.mean_scores_, axis=1)
    counts = ["listed" if number < 0 else str(number) for number in ranker.interaction_counts_.tolist()]
    columns = {
        "step weight": [f"{weight:g}" for weight in ranker.step_weights_.tolist()],
        "interactions": counts,
        "best C": [f"{C:.4g}" for C in ranker.Cs_[best].tolist()],
        metric: ranker.mean_scores_[np.arange(len(best)), best],
    }
    return Table(columns, "The settings tried, each with its best C", numbers=("step weight", "interactions", "best C"))
