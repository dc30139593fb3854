"""Champions that cannot learn from single queries are fitted again, and replaced if a newer fit is better."""

from typing import Any, NamedTuple

import numpy as np

from ranksvm._steps import steps_of
from ranksvm.data import QueryMinMaxScaler, QueryStandardScaler
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import compare, evaluate
from ranksvm.serving.feedback import Lesson, lesson_of
from ranksvm.serving.models import scores
from ranksvm.serving.records import Kind
from ranksvm.serving.store import Store

__all__ = ["Refit", "refitted"]

# The last part of the entries is not learnt from: on it the new model has to be better, with this p-value at most.
_HELD_OUT = 0.2
_P_VALUE = 0.05
# Entries read at a time.
_PART = 256


class Refit(NamedTuple):
    """A model that was fitted again, None if it is not better, and why it is activated or not."""

    model: Any
    reason: str


def refitted(champion: Any, store: Store, after: int, until: int, metric: str) -> Refit:
    """Fit a champion again to entries of the log, and compare both on the last fifth of them.

    Parameters
    ----------
    champion : estimator
        The model, which is not changed.
    store : Store
        The log.
    after, until : int
        The entries: from the one after ``after`` to ``until``.
    metric : str
        What the models are compared by: a randomisation test of paired differences, query by query.

    Returns
    -------
    Refit
        The new model, if it is better.
    """
    lessons = [lesson for lesson in _lessons(store, after, until) if lesson.y is not None]
    n_held_out = int(_HELD_OUT * len(lessons))
    if n_held_out < 2:
        return Refit(None, f"{len(lessons)} answers with labels or clicks are too few to fit and to compare.")
    known, new = lessons[:-n_held_out], lessons[-n_held_out:]
    try:
        model = _fitted(champion, known)
    except (DataError, OptionError) as error:
        return Refit(None, f"the fit failed: {error}")
    y, qid = _stacked(new)
    before, now = (
        evaluate(y, np.concatenate([scores(one, lesson.X) for lesson in new]), qid=qid, metrics=metric)
        for one in (champion, model)
    )
    try:
        found = compare(before, now, metric)
    except DataError as error:  # no query has a value
        return Refit(None, str(error))
    values = f"{metric} {found.mean_b:.4f} against {found.mean_a:.4f}, p = {found.p_value:.3g}, {len(new)} queries"
    if found.difference > 0 and found.p_value <= _P_VALUE:
        return Refit(model, f"better on held-out queries: {values}")
    return Refit(None, f"not better on held-out queries: {values}")


def _lessons(store: Store, after: int, until: int) -> list[Lesson]:
    found = []
    while after < until and (part := store.entries(after, _PART, until=until)):
        found += [lesson_of(entry) for entry in part if entry.entry.kind is Kind.FEEDBACK and entry.answered]
        after = part[-1].seq
    return found


def _stacked(lessons: list[Lesson]) -> tuple[np.ndarray, np.ndarray]:
    """Labels and queries of all documents."""
    sizes = [len(lesson.X) for lesson in lessons]
    return np.concatenate([lesson.y for lesson in lessons]), np.repeat(np.arange(len(sizes)), sizes)


def _fitted(champion: Any, lessons: list[Lesson]) -> Any:
    """A clone of the model, fitted to labels; where there are clicks, to the pairs that these and the labels imply."""
    from sklearn.base import clone

    model = clone(champion)
    y, qid = _stacked(lessons)
    X = np.concatenate([lesson.X for lesson in lessons])
    *steps, ranker = steps_of(model)
    for step in steps:
        if step is None or step == "passthrough":
            continue
        by_query = isinstance(step, QueryMinMaxScaler | QueryStandardScaler)
        X = step.fit(X, qid=qid).transform(X, qid=qid) if by_query else step.fit_transform(X)
    if all(lesson.pairs is None for lesson in lessons):
        ranker.fit(X, y, qid=qid)
    else:
        ranker.fit(X, qid=qid, pairs=_pairs(lessons))
    return model


def _pairs(lessons: list[Lesson]) -> np.ndarray:
    pairs, first = [], 0
    for lesson in lessons:
        own = lesson.pairs
        if own is None:
            assert lesson.y is not None
            own = np.argwhere(lesson.y[:, None] > lesson.y[None, :])
        pairs.append(own + first)
        first += len(lesson.X)
    return np.concatenate(pairs)
