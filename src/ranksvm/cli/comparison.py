"""Comparison of combinations of settings, each with its best C."""

import dataclasses
import itertools
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ranksvm.cli.errors import warn
from ranksvm.cli.files import query_ids
from ranksvm.cli.fit_report import score
from ranksvm.cli.progress import Progress, Stopwatch
from ranksvm.cli.rankers import make_ranker
from ranksvm.cli.tables import counted, power, seconds
from ranksvm.cli.training_data import TrainingData

__all__ = ["Comparison", "Tried", "combinations"]


def combinations(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the settings given as lists; those with the same scaler are adjacent.

    The width applies only to the Huberised hinge.
    """
    names = ("scaler", "loss", "huber_width", "pair_selection", "pair_weighting")
    found = []
    for values in itertools.product(*(options[name] for name in names)):
        settings = dict(zip(names, values, strict=True))
        if settings["loss"] != "huber":
            settings["huber_width"] = None
        if settings not in found:
            found.append(settings)
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Tried:
    """A combination of settings and the RankSVMCV that chose its C.

    Parameters
    ----------
    settings : dict
        The combination.
    ranker : RankSVMCV
        Fitted with these settings.
    seconds : float
        Wall-clock time of the fit.
    """

    settings: dict[str, Any]
    ranker: Any
    seconds: float

    @property
    def C(self) -> float:  # noqa: N802 (the field's own name)
        """The chosen C."""
        return self.ranker.C_

    @property
    def score(self) -> float:
        """The mean score of this C."""
        return self.ranker.best_score_

    @property
    def standard_error(self) -> float:
        """The standard error of this score."""
        return float(self.ranker.standard_errors_[self.ranker.Cs_ == self.C][0])


HEADINGS = {"loss": "loss", "pair_selection": "pairs", "pair_weighting": "weighting", "scaler": "scaler"}


def _cell(settings: dict[str, Any], name: str) -> str:
    """A setting as it is displayed; the loss with its width."""
    width = settings["huber_width"] if name == "loss" else None
    return str(settings[name]) if width is None else f"{settings[name]} {width:g}"


class Comparison:
    """Combinations tried one after another, or several at once.

    Parameters
    ----------
    data : TrainingData
        The training data, and validation data if there are any.
    options : dict
        Options of the command that apply to all combinations.
    combinations : list of dict
        The settings to compare.
    """

    def __init__(self, data: TrainingData, options: dict[str, Any], combinations: list[dict[str, Any]]):
        self.combinations = combinations
        self.tried: list[Tried] = []
        self._data = data
        self._options = options

    @property
    def ranked(self) -> list[Tried]:
        """The combinations tried, best first; ties keep the order in which they were given."""
        return sorted(self.tried, key=lambda tried: (-tried.score, self.combinations.index(tried.settings)))

    @property
    def columns(self) -> list[str]:
        """Headings of the settings that differ between combinations; the loss if there is only one combination."""
        told = {name: {_cell(each, name) for each in self.combinations} for name in HEADINGS}
        return [HEADINGS[name] for name in HEADINGS if len(told[name]) > 1] or [HEADINGS["loss"]]

    def cells(self, settings: dict[str, Any]) -> list[str]:
        """The values of a combination in these columns."""
        columns = self.columns
        return [_cell(settings, name) for name, heading in HEADINGS.items() if heading in columns]

    def check(self) -> None:
        """Refuse settings that conflict with given pairs, or with labels, before the first fit."""
        from ranksvm.problems.training_set import check_source_of_pairs

        for settings in self.combinations:
            ranker = self._ranker(settings)
            check_source_of_pairs(ranker.pair_selection, ranker.pair_weighting, None, self._data.pairs, None)

    def run(self, progress: Progress, watch: Stopwatch) -> None:
        """Try every combination; finished ones are kept if Ctrl-C ends it."""
        with _not_converged_counted():
            for scaler, group in itertools.groupby(self.combinations, key=lambda settings: settings["scaler"]):
                progress.now("Scaling features")
                _, X = self._data.scaled(scaler, watch)
                self._try(list(group), X, progress, watch)
        progress.heading = ""

    def _try(self, combinations: list[dict[str, Any]], X: dict[str, Any], progress: Progress, watch: Stopwatch) -> None:
        """Try the combinations of one scaler; X are the scaled features."""
        from ranksvm._parallel import effective_n_jobs, one_blas_thread, parallel_map

        lock = threading.Lock()

        def try_one(settings: dict[str, Any]) -> None:
            start = time.perf_counter()
            ranker = self._data.fit(self._ranker(settings), X, evaluating=True)
            tried = Tried(settings, ranker, time.perf_counter() - start)
            with lock:
                self.tried.append(tried)
                self._tell(tried, progress)

        self._head(progress)
        n_threads = effective_n_jobs(self._options["n_jobs"]) if _one_thread_each(X["train"]) else 1
        with watch("training"), one_blas_thread():
            parallel_map(try_one, combinations, n_threads)

    def against_runner_up(self, watch: Stopwatch) -> dict[str, Any] | None:
        """Compare the best with the second best, query by query, on the data that decided the choice."""
        from sklearn.exceptions import ConvergenceWarning

        from ranksvm.metrics import compare

        if len(self.tried) < 2:
            return None
        first, second = self.ranked[:2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported before
            evaluations = self._evaluation(second, watch), self._evaluation(first, watch)
        found = compare(*evaluations, metric=self._options["metric"])
        return {"runner_up": {**second.settings, "C": second.C}, **dataclasses.asdict(found)}

    def _ranker(self, settings: dict[str, Any], **changes: Any) -> Any:
        return make_ranker(self._options, **settings, **changes)

    def _evaluation(self, tried: Tried, watch: Stopwatch) -> Any:
        """The metric of each query at the chosen C, on the validation data or on the held-out folds."""
        from ranksvm.metrics import evaluate
        from ranksvm.model_selection import cross_validate

        metric, convention = self._options["metric"], self._options["convention"]
        weights: dict[str, Any] = self._data.weights
        _, X = self._data.scaled(tried.settings["scaler"], watch)
        if "valid" in self._data.parts:
            valid = self._data.parts["valid"]
            scores = tried.ranker.predict(X["valid"])
            return evaluate(valid.y, scores, query_ids(valid), [metric], convention=convention)
        train = self._data.parts["train"]
        with watch("comparing"):
            return cross_validate(
                self._ranker(tried.settings, Cs=None, C=tried.C),
                X["train"],
                train.y,
                qid=query_ids(train),
                metrics=[metric],
                cv=self._options["folds"],
                convention=convention,
                **weights,
            ).pooled()

    def _tell(self, tried: Tried, progress: Progress) -> None:
        found = f"{self._options['metric']} {score(tried.score, tried.standard_error)} at C = {power(tried.C)}"
        place = f"{len(self.tried)} of {len(self.combinations)}"
        progress.line(f"{place}: {', '.join(self.cells(tried.settings))}: {found}, {seconds(tried.seconds)}")
        self._head(progress)

    def _head(self, progress: Progress) -> None:
        progress.heading = f"{len(self.tried)} of {len(self.combinations)} compared "


def _one_thread_each(X: Any) -> bool:
    """Whether a fit is so small that it uses one thread, so that other threads can fit other combinations.

    Eight combinations on MQ2008 fold 1, with five folds, take 0.99 s this way on two idle cores, and 1.43 s one by one.
    """
    from ranksvm.data import as_design_matrix
    from ranksvm.objectives.threaded_term import worth_threads

    return not worth_threads(as_design_matrix(X), X.shape[0])


@contextmanager
def _not_converged_counted() -> Iterator[None]:
    """Replace the warnings of single fits, possibly hundreds, by one with the number that did not converge."""
    from sklearn.exceptions import ConvergenceWarning

    found: list[str] = []
    with warnings.catch_warnings():
        show = warnings.showwarning

        def count(message: Any, category: Any, *others: Any, **named: Any) -> None:
            if issubclass(category, ConvergenceWarning):
                found.append(str(message))
            else:
                show(message, category, *others, **named)

        warnings.simplefilter("always", ConvergenceWarning)
        warnings.showwarning = count
        yield
    if found:
        warn(f"{counted(len(found), 'fit')} did not converge; the first message was: {found[0]}")
