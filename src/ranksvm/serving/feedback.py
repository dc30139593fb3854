"""Feedback on the documents of an event: labels, clicks or preferences."""

import math

import msgspec
import numpy as np

from ranksvm.exceptions import DataError
from ranksvm.serving.click_learning import ClickLearning
from ranksvm.serving.records import Entry, Kind, LogEntry

__all__ = ["Feedback", "Lesson", "content_of", "in_words", "lesson_of", "mismatch"]

Number = int | float


class Feedback(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Feedback on an event's documents: exactly one of `labels`, `clicks` and `preferences`.

    Parameters
    ----------
    labels : dict of str to float, or list of float, optional
        Relevance by document id, or of all documents in the order of the request.
    clicks : list of str, optional
        Ids of the documents that were clicked on; an empty list is also feedback.
    preferences : list of (str, str), optional
        Ids of documents: the preferred one first.
    at : float or str, optional
        When it was observed, by the client's clock; stored, but not used.
    """

    labels: dict[str, Number] | list[Number] | None = None
    clicks: list[str] | None = None
    preferences: list[tuple[str, str]] | None = None
    at: Number | str | None = None


_content_decoder = msgspec.msgpack.Decoder(Feedback)


class Lesson(msgspec.Struct):
    """Training data from one event.

    Parameters
    ----------
    X : ndarray of shape (n_documents, n_features)
        Features of the documents that the feedback is about.
    rank : ndarray of int64, shape (n_documents,)
        The ranks at which they were shown, from 0.
    y : ndarray of float64, shape (n_documents,), or None
        Their labels, if the feedback has labels.
    clicked : ndarray of bool, shape (n_documents,), or None
        Whether they were clicked on, if the feedback has clicks.
    pairs : ndarray of int64, shape (n_pairs, 2), or None
        Rows (preferred, other); None if the labels imply the pairs.
    weight : ndarray of float64, shape (n_pairs,), or None
        Weights of the pairs; None: 1.
    inside : ndarray of bool, shape (n_documents,), or None
        Documents whose features were in their range, the only ones that are learned from; None: all.
    """

    X: np.ndarray
    rank: np.ndarray
    y: np.ndarray | None = None
    clicked: np.ndarray | None = None
    pairs: np.ndarray | None = None
    weight: np.ndarray | None = None
    inside: np.ndarray | None = None

    @property
    def inside_range(self) -> "Lesson":
        """The lesson restricted to the documents that are learned from."""
        inside = self.inside
        if inside is None:
            return self
        pairs, weight = self.pairs, self.weight
        if pairs is not None:
            of_them = inside[pairs].all(axis=1)
            pairs, weight = (np.cumsum(inside) - 1)[pairs[of_them]], None if weight is None else weight[of_them]
        y, clicked = (None if one is None else one[inside] for one in (self.y, self.clicked))
        return Lesson(self.X[inside], self.rank[inside], y, clicked, pairs, weight)


def content_of(feedback: Feedback) -> bytes:
    """Encode feedback as the content of an entry of the log; `mismatch` checks whether it fits the event.

    Parameters
    ----------
    feedback : Feedback
        What was sent.

    Returns
    -------
    bytes
        The same bytes for the same feedback.

    Raises
    ------
    DataError
        When it is not exactly one kind of feedback, or is invalid for every event.
    """
    kinds = [name for name in ("labels", "clicks", "preferences") if getattr(feedback, name) is not None]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise DataError(f"feedback must have exactly one of labels, clicks and preferences, found {found}.")
    if feedback.labels is not None:
        labels = feedback.labels.values() if isinstance(feedback.labels, dict) else feedback.labels
        if not labels:
            raise DataError("labels are empty: leave an event without feedback instead.")
        for label in labels:
            _check_number("a label", label)
    seen = set()
    for pair in feedback.preferences or ():
        preferred, other = pair
        if preferred == other:
            raise DataError(f"the document {preferred!r} is preferred to itself.")
        if pair in seen:  # each repetition would teach the models once more
            raise DataError(f"the preference of {preferred!r} to {other!r} occurs twice.")
        seen.add(pair)
    _check_number("at", feedback.at)
    return msgspec.msgpack.encode(feedback, order="deterministic")


def _check_number(name: str, value: object) -> None:
    """Refuse a number that the log cannot store."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise DataError(f"{name} is an integer beyond 64 bits: send it as a decimal number, such as 1e20.")
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{name} is {value}, and must be a finite number.")


def mismatch(content: bytes, documents: list[str]) -> str | None:
    """Reason why feedback does not fit an event with these documents; None if it fits."""
    feedback = _content_decoder.decode(content)
    if isinstance(feedback.labels, list) and len(feedback.labels) != len(documents):
        return f"there are {len(feedback.labels)} labels for {len(documents)} documents."
    known = set(documents)
    other = next((document for document in _named(feedback) if document not in known), None)
    return None if other is None else f"the event has no document {other!r}."


def _named(feedback: Feedback) -> list[str]:
    """Ids of the documents that feedback names."""
    labeled = list(feedback.labels) if isinstance(feedback.labels, dict) else []
    return [*labeled, *(feedback.clicks or ()), *(id for pair in feedback.preferences or () for id in pair)]


def lesson_of(entry: LogEntry, click_learning: ClickLearning) -> Lesson:
    """Training data from feedback. An event that was not answered in time has labels of 0, and no click."""
    event = entry.answered
    assert event is not None
    shown = event.shown
    rank = np.empty(len(shown.order), dtype=np.int64)
    rank[shown.order] = np.arange(len(rank))
    if entry.entry.kind is Kind.UNANSWERED:
        return Lesson(event.X, rank, np.zeros(len(rank)), np.zeros(len(rank), dtype=bool))
    feedback = _content_decoder.decode(entry.entry.content)
    rows = {document: row for row, document in enumerate(shown.documents)}
    if feedback.preferences is not None:
        pairs = np.array([[rows[id] for id in pair] for pair in feedback.preferences], dtype=np.int64).reshape(-1, 2)
        return Lesson(event.X, rank, pairs=pairs)
    if feedback.clicks is not None:
        clicked = np.zeros(len(rank), dtype=bool)
        clicked[[rows[id] for id in feedback.clicks]] = True
        pairs, weight = click_learning.pairs(rank, clicked, shown.first_pair)
        return Lesson(event.X, rank, clicked=clicked, pairs=pairs, weight=weight)
    if isinstance(feedback.labels, dict):
        labeled_rows = np.sort([rows[id] for id in feedback.labels])
        y = np.array([feedback.labels[shown.documents[row]] for row in labeled_rows], dtype=np.float64)
        return Lesson(event.X[labeled_rows], rank[labeled_rows], y)
    return Lesson(event.X, rank, np.asarray(feedback.labels, dtype=np.float64))


def in_words(entry: Entry) -> str:
    """Summary of feedback as text."""
    decoded = entry.decoded
    for name in ("labels", "clicks", "preferences"):
        if name in decoded:
            n = len(decoded[name])
            return f"{n} {name if n != 1 else name[:-1]}"
    return "none in time"
