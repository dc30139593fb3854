"""Champions (models that rank) that cannot learn from single queries are fitted again; a better fit replaces them."""

import inspect
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ranksvm._util.pipeline_steps import steps_of
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import compare, evaluate
from ranksvm.metrics.evaluation import t_test
from ranksvm.serving.click_learning import ClickLearning
from ranksvm.serving.feature_range import FeatureRange
from ranksvm.serving.feedback import Lesson, lesson_of
from ranksvm.serving.measures import click_metric, click_value
from ranksvm.serving.models import Model, scales_by_query, scores
from ranksvm.serving.records import Kind
from ranksvm.serving.store import Store

__all__ = ["Refit", "refitted"]

# Share of the entries that is held out: the newest entries. The largest p-value at which a new model that is better on
# them replaces the champion.
_HELD_OUT = 0.2
_P_VALUE = 0.05
# Maximum bytes of features, and maximum number of listed pairs, in a fit; it uses fewer entries if they have more.
_MAX_BYTES, _MAX_PAIRS = 256 << 20, 1_000_000


class Refit(NamedTuple):
    """The model that was fitted again (None if it is not better), and why it becomes the champion or not."""

    model: Model | None
    reason: str


def refitted(
    champion: Model,
    store: Store,
    window: tuple[int, int],
    skipped_entries: Mapping[int, str],
    metric: str,
    click_learning: ClickLearning,
    feature_range: FeatureRange,
) -> Refit:
    """Fit a champion again to entries of the log, and compare the old and new fit on the last fifth of the entries.

    If most entries of the last fifth have labels, the models are compared by the metric, with a randomization test of
    the paired differences per query. Otherwise they are compared by DCG with the same cutoff, estimated from the clicks
    (`ClickEstimate`), with a paired t-test.

    Parameters
    ----------
    champion : estimator
        The model, which is not changed.
    store : Store
        The log.
    window : tuple of int
        Two sequence numbers: the fit uses the entries after the first, up to and including the second. It uses only the
        newest of them if all have more than 256 MB of features or, with clicks, more than a million pairs.
    skipped_entries : mapping of int to str
        Entries that are omitted.
    metric : str
        The metric that is computed from labels.
    click_learning : ClickLearning
        How clicks are learned from.
    feature_range : FeatureRange
        The fit omits documents with features outside this range; the comparison clips their features.

    Returns
    -------
    Refit
        The new model, if it is better.
    """
    lessons = [feature_range.applied(lesson) for lesson in _lessons(store, window, skipped_entries, click_learning)]
    n_held_out = int(_HELD_OUT * len(lessons))
    if n_held_out < 2:
        return Refit(None, f"{len(lessons)} events with labels or clicks are too few to fit and to compare.")
    known, new = lessons[:-n_held_out], lessons[-n_held_out:]
    try:
        model = _fitted(champion, [lesson.inside_range for lesson in known])
        labeled = [lesson for lesson in new if lesson.y is not None]
        clicked = [lesson for lesson in new if lesson.clicked is not None]
        if len(labeled) >= len(clicked):
            name, before, now, p_value = _compared_by_labels(champion, model, labeled, metric)
        else:
            name, before, now, p_value = _compared_by_clicks(champion, model, clicked, metric, click_learning)
    except (DataError, OptionError) as error:  # also if no query has a value
        return Refit(None, f"the fit failed: {error}")
    values = f"{name} {now:.4f} against {before:.4f}, p = {p_value:.3g}, {max(len(labeled), len(clicked))} queries"
    if now > before and p_value <= _P_VALUE:
        return Refit(model, f"better on held-out queries: {values}")
    return Refit(None, f"not better on held-out queries: {values}")


def _compared_by_labels(
    champion: Model, model: Model, lessons: list[Lesson], metric: str
) -> tuple[str, float, float, float]:
    """Name of the metric, its means for the champion and the new model, and p-value of the difference."""
    y, qid = np.concatenate([lesson.y for lesson in lessons if lesson.y is not None]), _qid(lessons)
    before, now = (
        evaluate(y, np.concatenate([scores(one, lesson.X) for lesson in lessons]), qid=qid, metrics=metric)
        for one in (champion, model)
    )
    comparison = compare(before, now, metric)
    return metric, comparison.mean_a, comparison.mean_b, comparison.p_value


def _compared_by_clicks(
    champion: Model, model: Model, lessons: list[Lesson], metric: str, click_learning: ClickLearning
) -> tuple[str, float, float, float]:
    """As `_compared_by_labels`, but by DCG estimated from clicks."""
    name, cutoff = click_metric(metric)
    values = np.array(
        [
            [
                click_value(cutoff, scores(one, lesson.X), lesson.clicked, click_learning.propensities(lesson.rank))
                for lesson in lessons
                if lesson.clicked is not None
            ]
            for one in (champion, model)
        ]
    )
    *_, p_value = t_test(values[1] - values[0], 0.95)
    return f"{name} by clicks", float(values[0].mean()), float(values[1].mean()), float(p_value)


def _lessons(
    store: Store, window: tuple[int, int], skipped_entries: Mapping[int, str], click_learning: ClickLearning
) -> list[Lesson]:
    """The feedback with labels or clicks in a window of entries; only the newest if all is too large for memory."""
    lessons: deque[Lesson] = deque()
    size = np.zeros(3, dtype=np.int64)
    for entry in store.entries_between(*window):
        if entry.entry.kind is not Kind.FEEDBACK or entry.answered is None or entry.seq in skipped_entries:
            continue
        lesson = lesson_of(entry, click_learning)
        if lesson.y is None and lesson.clicked is None:
            continue
        lessons.append(lesson)
        size += _size(lesson)
        while len(lessons) > 1 and _is_too_large(*size):
            size -= _size(lessons.popleft())
    return list(lessons)


def _size(lesson: Lesson) -> tuple[int, int, int]:
    """Bytes of features, number of pairs, and 1 if pairs are listed, not implied by labels."""
    if lesson.pairs is not None:
        return lesson.X.nbytes, len(lesson.pairs), 1
    assert lesson.y is not None
    _, counts = np.unique(lesson.y, return_counts=True)
    return lesson.X.nbytes, (len(lesson.X) ** 2 - int(np.sum(counts**2))) // 2, 0


def _is_too_large(n_bytes: int, n_pairs: int, n_listed: int) -> bool:
    # as soon as one lesson has pairs from clicks, pairs implied by labels are also listed
    return n_bytes > _MAX_BYTES or (n_listed > 0 and n_pairs > _MAX_PAIRS)


def _qid(lessons: list[Lesson]) -> np.ndarray:
    """The query number of each document, lesson after lesson."""
    sizes = [len(lesson.X) for lesson in lessons]
    return np.repeat(np.arange(len(sizes)), sizes)


def _fitted(champion: Model, lessons: list[Lesson]) -> Model:
    """A clone of the model, fitted to labels; if there are clicks, to the pairs that clicks and labels imply."""
    from sklearn.base import clone

    model = clone(champion)
    qid = _qid(lessons)
    X = np.concatenate([lesson.X for lesson in lessons])
    *steps, ranker = steps_of(model)
    for step in steps:
        if step is None or step == "passthrough":
            continue
        X = step.fit(X, qid=qid).transform(X, qid=qid) if scales_by_query(step) else step.fit_transform(X)
    if all(lesson.pairs is None for lesson in lessons):
        ranker.fit(X, np.concatenate([lesson.y for lesson in lessons if lesson.y is not None]), qid=qid)
    elif "pairs" not in inspect.signature(ranker.fit).parameters:
        raise OptionError(f"{type(ranker).__name__} learns from labels only, and some of the feedback has clicks.")
    else:
        pairs, weight = _pairs(lessons)
        ranker.fit(X, qid=qid, pairs=pairs, pair_weight=weight)
    return model


def _pairs(lessons: list[Lesson]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows, which are numbered over all lessons, and the weights of the pairs."""
    pairs, weights, first = [], [], 0
    for lesson in lessons:
        own = lesson.pairs
        if own is None:
            assert lesson.y is not None
            own = np.argwhere(lesson.y[:, None] > lesson.y[None, :])
        pairs.append(own + first)
        weights.append(np.ones(len(own)) if lesson.weight is None else lesson.weight)
        first += len(lesson.X)
    return np.concatenate(pairs), np.concatenate(weights)
