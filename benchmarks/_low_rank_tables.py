"""What the low-rank pages print of a search: figures beside published ones, paired tests, claims held to figures."""

from collections.abc import Sequence

import numpy as np

from _common import table
from _low_rank_models import MODELS
from _low_rank_search import CONVENTIONS, MEASURES, Cache, Task, chosen, search_tasks
from ranksvm import metrics

# Xu et al., IEEE TKDE 2019: MAP, NDCG@1, NDCG@3, NDCG@5.
PUBLISHED = {
    "OHSUMED": {
        "RSVM (SVM-light)": (0.4427, 0.5289, 0.4553, 0.4392),
        "LambdaMART": (0.4096, 0.5166, 0.4443, 0.4366),
        "XGBoost": (0.4301, 0.5325, 0.4758, 0.4485),
        "Factorised RSVM": (0.4518, 0.5671, 0.5113, 0.4889),
        "Regularised RSVM": (0.4480, 0.5553, 0.4946, 0.4723),
    },
    "MQ2008": {
        "RSVM (SVM-light)": (0.4713, 0.3686, 0.4277, 0.4730),
        "LambdaMART": (0.4731, 0.3622, 0.4299, 0.4714),
        "XGBoost": (0.4790, 0.3839, 0.4293, 0.4764),
        "Factorised RSVM": (0.4723, 0.3690, 0.4361, 0.4764),
        "Regularised RSVM": (0.4755, 0.3690, 0.4315, 0.4719),
    },
}
# The plain model that the others are held to, and which published row each low-rank model is to reproduce.
PLAIN = "plain"
REPRODUCED = {"factorized": "Factorised RSVM", "regularized": "Regularised RSVM"}
SAID = {"default": "standard discount", "letor": "LETOR's"}
SIGNIFICANT = 0.05


class Choices:
    """The candidates that a metric chose: a task for each model, draw of the data and fold.

    Draws have the same test parts: what they give is averaged.
    """

    def __init__(
        self,
        cache: Cache,
        draws: Sequence[str],
        folds: Sequence[int],
        models: Sequence[str],
        n_candidates: int,
        metric: str,
    ):
        self.cache, self.data, self.models = cache, draws[0], list(models)
        self.tasks: dict[str, list[list[Task]]] = {
            model: [[chosen(cache, data, fold, model, n_candidates, metric) for fold in folds] for data in draws]
            for model in models
        }

    def of_folds(self, model: str, convention: str = "default") -> np.ndarray:
        """Test figures: folds by measures."""
        figures = [
            [[self.cache[task].mean(name, convention) for name in MEASURES] for task in folds]
            for folds in self.tasks[model]
        ]
        return np.mean(figures, axis=0)

    def pooled(self, model: str) -> metrics.Evaluation:
        """The values of the queries of all test parts."""
        values = {
            name: np.mean(
                [
                    np.concatenate([self.cache[task].test["default"][name] for task in folds])
                    for folds in self.tasks[model]
                ],
                axis=0,
            )
            for name in MEASURES
        }
        n_queries = len(values[MEASURES[0]])
        weights = {name: np.ones(n_queries) for name in MEASURES}
        means = {name: float(each.mean()) for name, each in values.items()}
        return metrics.Evaluation(means, values, weights, np.arange(n_queries), 0, 0, "default")

    def comparison(self, model: str, measure: str, base: str = PLAIN) -> metrics.Comparison:
        """A model less the base, query by query."""
        return metrics.compare(self.pooled(base), self.pooled(model), measure)

    def seconds(self, model: str, n_candidates: int, folds: Sequence[int], metric: str) -> float:
        """What all candidates of all folds took."""
        return sum(self.cache[task].seconds for task in search_tasks(self.data, folds, [model], n_candidates, metric))


# -- tables ------------------------------------------------------------------------------------------------------------


def figures_table(choices: Choices, convention: str = "default") -> str:
    """Mean and standard deviation over the folds of each model, then the published rows."""
    means = {model: choices.of_folds(model, convention).mean(axis=0) for model in choices.models}
    best = np.max(list(means.values()), axis=0)
    rows = []
    for model in choices.models:
        spread = choices.of_folds(model, convention).std(axis=0, ddof=1)
        cells = []
        for value, top, deviation in zip(means[model], best, spread, strict=True):
            text = f"**{value:.4f}**" if value == top else f"{value:.4f}"
            cells.append(f"{text} ± {deviation:.4f}")
        rows.append([MODELS[model].label, *cells])
    for label, values in PUBLISHED.get(choices.data, {}).items():
        rows.append([f"published: {label}", *(f"{value:.4f}" for value in values)])
    return table(["model", *(name.upper() for name in MEASURES)], rows)


def tests_table(choices: Choices) -> str:
    """Paired tests of each model against the plain one."""
    rows = []
    for model in choices.models:
        if model == PLAIN:
            continue
        cells = []
        for measure in MEASURES:
            test = choices.comparison(model, measure)
            low, high = test.confidence_interval
            text = f"{test.difference:+.4f} [{low:+.4f}, {high:+.4f}], p = {test.p_value:.3f}"
            cells.append(f"**{text}**" if test.p_value <= SIGNIFICANT else text)
        rows.append([MODELS[model].label, *cells])
    return table([f"less {MODELS[PLAIN].label}", *(name.upper() for name in MEASURES)], rows)


def params_table(choices: Choices) -> str:
    """What was chosen in each fold, and what the fits that were chosen took."""
    rows = []
    for model in choices.models:
        for task in choices.tasks[model][0]:
            result = choices.cache[task]
            chosen_values = ", ".join(f"{name} {value:g}" for name, value in task.params)
            notes = ", ".join(f"{name} {_short(value)}" for name, value in result.notes.items())
            rows.append([MODELS[model].label, task.fold, chosen_values, f"{result.seconds:.2f}", notes])
    return table(["model", "fold", "chosen", "fit, s", "notes"], rows)


def _short(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


# -- claims ------------------------------------------------------------------------------------------------------------


def claims(choices: Choices) -> str:
    """What the paper says of a data set, each held to the figures above."""
    lines = []
    if PLAIN in choices.models and choices.data in PUBLISHED:
        rows = ("RSVM (SVM-light)", *REPRODUCED.values())
        lines += [_off(choices, PLAIN, row, convention) for row in rows for convention in CONVENTIONS]
    for model, row in REPRODUCED.items():
        if model in choices.models:
            if choices.data in PUBLISHED:
                lines += [_off(choices, model, row, convention) for convention in CONVENTIONS]
            lines += [_against(choices, model, base) for base in (PLAIN, "hinge-paper") if base in choices.models]
    return "\n".join(f"- {line}" for line in lines)


def _off(choices: Choices, model: str, row: str, convention: str) -> str:
    """A sentence: figures less those published."""
    found = choices.of_folds(model, convention).mean(axis=0) - PUBLISHED[choices.data][row]
    off = ", ".join(f"{name.upper()} {each:+.4f}" for name, each in zip(MEASURES, found, strict=True))
    return f"{MODELS[model].label} less the published {row}, {SAID[convention]}: {off}."


def _against(choices: Choices, model: str, base: str) -> str:
    """A sentence: where a model is above another and where below, and whether it is more than chance."""
    sides: dict[str, list[str]] = {"above": [], "below": []}
    wins = 0
    for measure in MEASURES:
        test = choices.comparison(model, measure, base)
        certain = test.p_value <= SIGNIFICANT
        wins += certain and test.difference > 0
        words = (
            f"{measure.upper()} ({test.difference:+.4f}, p = {test.p_value:.3f}{', significant' if certain else ''})"
        )
        sides["above" if test.difference > 0 else "below"].append(words)
    found = "; ".join(f"{side} it in {', '.join(each)}" for side, each in sides.items() if each)
    if wins == len(MEASURES):
        verdict = "The claim that it is better HOLDS"
    elif wins:
        verdict = f"The claim that it is better holds in {wins} of {len(MEASURES)} measures"
    else:
        verdict = "The claim that it is better does NOT hold: no difference in its favour is significant"
    return f"{MODELS[model].label} against {MODELS[base].label}: {found}. {verdict}."
