"""Published figures of interpretable models, and folders of LETOR files that are measured in the same way."""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from _additive_data import letor_folder, planted
from _additive_methods import PAIR_WEIGHTINGS, peers
from _common import table
from _pieces import Found, Section
from _widening import Axis, Grid
from papers.data_sets import Parts
from ranksvm import AdditiveRankSVM, RankingData, RankSVM, metrics, write_letor

MEASURE = "ndcg@10"
# Lucchese et al., ACM TOIS 43(4), 2025, notebooks of veneres/ilmart: WEB30K fold 1, Yahoo set 1, Istella-S.
PUBLISHED = {
    "without interactions, the best (ILMART; on Yahoo EBM regression)": ("0.4721", "0.7732", "0.7168"),
    "at most 50 interactions, the best (ILMART)": ("0.4978", "0.7752", "0.7442"),
    "EBM regression, without interactions": ("0.4552", "0.7732", "0.6739"),
    "EBM regression, 50 interactions": ("0.4814", "0.7741", "0.7022"),
    "NeuralRankGAM": ("0.4514", "0.7520", "0.6981"),
    "LambdaMART, unconstrained": ("0.5300", "", ""),
}
# The published figures count queries without relevant documents as 1.
CONVENTION = replace(metrics.CONVENTIONS["default"], name="no relevant: 1", no_relevant=1.0)
MODELS: dict[str, dict[str, Any] | None] = {
    "RankSVM": None,
    "additive, steps": {"linear": False},
    "additive, linear part and steps": {},
    "additive, linear part, steps and 50 interactions": {"interactions": 50},
}
LEAVES, RATE, LEAF, TREES = (31, 127), 0.1, 20, 3000


def measured_folder(folder: Path, smoke: bool) -> list[list[str]]:
    """Measure a folder with the files train, vali and test; return the rows of its table."""
    parts = letor_folder(folder)
    C = Axis("C = 4^{}", range(-25, 16), -7 if smoke else -9, -6)
    rows = []
    for weighting in PAIR_WEIGHTINGS:
        for name, options in MODELS.items():
            fit = partial(_ours, parts.train, weighting, options)
            rows.append(_row(f"{name}, {weighting}", parts, (C,), fit))
    method = peers(smoke)["LightGBM lambdarank"]
    for leaves in LEAVES[:1] if smoke else LEAVES:
        if method is not None:
            trees = 20 if smoke else TREES
            fit = partial(_boosting, method.fit, parts, leaves, trees)
            rows.append(_row(f"LightGBM lambdarank, {leaves} leaves", parts, (), fit))
    return rows


def _ours(train: RankingData, weighting: str, options: dict[str, Any] | None, power: int) -> Callable[..., Any]:
    common = {"C": 4.0**power, "pair_weighting": weighting}
    model = RankSVM(**common) if options is None else AdditiveRankSVM(**common, **options)
    return model.fit(train.X, train.y, qid=train.qid).predict


def _boosting(fit: Callable[..., Any], parts: Parts, leaves: int, trees: int) -> Callable[..., Any]:
    return fit(parts, -1, leaves, RATE, LEAF, rounds=trees).score


def _row(name: str, parts: Parts, axes: Sequence[Axis], fit: Callable[..., Any]) -> list[str]:
    """The row of a model whose settings are chosen on the validation part."""
    grid, started = Grid(axes, (MEASURE,)), time.perf_counter()

    def try_out(*values: float) -> list[float]:
        score = fit(*values)
        return [_figure(part, np.asarray(score(part.X))) for part in parts[1:]]

    grid.search(try_out, lambda figures: {MEASURE: figures[0]})
    best = grid.best(MEASURE)
    figures = [f"{figure:.4f}" for figure in grid.found[best]]
    row = [name, grid.label(best), *figures, grid.where(best), f"{time.perf_counter() - started:.0f}"]
    print(*row, file=sys.stderr, flush=True)
    return row


def _figure(part: RankingData, scores: np.ndarray) -> float:
    return metrics.evaluate(part.y, scores, part.qid, MEASURE, convention=CONVENTION).means[MEASURE]


def _made_files(smoke: bool) -> list[list[str]]:
    """Run `measured_folder` on generated files, to see that it works."""
    with tempfile.TemporaryDirectory() as name:
        made = planted(40, 20, 12, 3).parts
        for part, data in zip(("train", "vali", "test"), made, strict=True):
            write_letor(Path(name) / f"{part}.txt", data)
        return measured_folder(Path(name), smoke)


def published_in_words(found: list[Found]) -> list[str]:
    """The part of the page about published figures of interpretable models."""
    assert found
    return [
        "## Published figures of glass boxes",
        "Targets: NDCG@10 (gain 2^y - 1, a query without relevant documents counts 1) of the test part, from the "
        "notebooks of veneres/ilmart (Lucchese et al., ACM TOIS 43(4), 2025). These data are licensed, and were not "
        "here. Whoever has them measures them with `python benchmarks/additive.py --only folder --data "
        "WEB30K=DIR/MSLR-WEB30K/Fold1 --data Yahoo=DIR/Yahoo --data Istella-S=DIR/Istella-S`; each folder has the "
        "files train, vali (or valid) and test in LETOR's format, for Yahoo set1.train.txt and so on.",
        table(
            ["model", "WEB30K fold 1", "Yahoo set 1", "Istella-S"],
            [[name, *figures] for name, figures in PUBLISHED.items()],
        ),
    ]


def folders_in_words(found: list[Found]) -> list[str]:
    """The part of the page that compares measured folders with the published figures."""
    header = ["model", "chosen by validation", "NDCG@10, validation", "test", "inside", "grid, s"]
    parts = []
    for each in found:
        parts += [f"### {each.key}, counted as the published figures", table(header, each.value)]
    return parts


def target_sections(named: Sequence[str], smoke: bool) -> list[Section]:
    """Sections for published figures and folders given as NAME=FOLDER; a smoke run without folders generates files."""
    folders = dict(each.partition("=")[::2] for each in named)
    pieces: dict[str, Any] = {name: partial(measured_folder, Path(path), smoke) for name, path in folders.items()}
    if smoke and not pieces:
        pieces = {"made files": partial(_made_files, smoke)}
    return [
        Section("targets", {"published": lambda: []}, published_in_words),
        Section("folder", pieces, folders_in_words),
    ]
