"""Records of a store: events (rankings that were shown), entries of the log (such as feedback), and checkpoints."""

import enum
import re
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec
import numpy as np

from ranksvm._util.lazy import cached_property

__all__ = [
    "Checkpoint",
    "Entry",
    "Event",
    "Kind",
    "LogEntry",
    "Outcome",
    "Receipt",
    "Shown",
    "event_id",
    "is_event_id",
    "next_digest",
    "time_of",
]


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """Description of an event's ranking.

    Parameters
    ----------
    documents : list of str
        Ids of the documents, in the order of the request.
    order : list of int
        Row numbers of the documents, in the order in which they were shown.
    version : int
        Version of the model.
    n_features : int
        Number of features.
    dtype : str
        Type of the features, such as "<f8".
    query : str, optional
        Name of the query.
    policy : str
        What chose the order: "greedy", "epsilon", "team-draft" or "fair-pairs".
    propensities : list of float, optional
        Probability with which the document at each rank was shown there, from the top.
    teams : list of str, optional
        Name of the model that contributed the document at each rank, from the top.
    first_pair : int, optional
        With "fair-pairs": rank, from 0, at which the pairs of neighbors in random order begin.
    base_rank : list of int, optional
        With "fair-pairs": rank, from 0, that the document at each rank had before neighbors were exchanged.
    """

    documents: list[str]
    order: list[int]
    version: int
    n_features: int
    dtype: str
    query: str | None = None
    policy: str = "greedy"
    propensities: list[float] | None = None
    teams: list[str] | None = None
    first_pair: int | None = None
    base_rank: list[int] | None = None


@dataclass(frozen=True)
class Event:
    """A ranking that was shown.

    Parameters
    ----------
    id : str
        Its id.
    at : float
        Time of the request, in seconds since 1970.
    shown : Shown
        How the documents were ranked.
    features : bytes
        Features of the documents in the order of the request, row by row.
    """

    id: str
    at: float
    shown: Shown
    features: bytes

    @property
    def X(self) -> np.ndarray:  # noqa: N802 (as everywhere)
        """Features of the documents, shape (n_documents, n_features)."""
        return np.frombuffer(self.features, self.shown.dtype).reshape(-1, self.shown.n_features)

    @cached_property
    def content(self) -> bytes:
        """`shown` as bytes."""
        return msgspec.msgpack.encode(self.shown)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of id, content and features."""
        return _digest(self.id.encode(), self.content, self.features)


class Kind(enum.StrEnum):
    """Kind of an entry of the log."""

    FEEDBACK = "feedback"
    UNANSWERED = "unanswered"  # no feedback came in time, so all labels are 0
    ACTIVATION = "activation"  # an earlier model, or a challenger, becomes the champion
    CLICK_LEARNING = "click-learning"  # changes how clicks are learned from, from this entry on
    FEATURE_RANGE = "feature-range"  # changes the treatment of features outside their range, from this entry on


@dataclass(frozen=True)
class Entry:
    """An entry to write to the log.

    Parameters
    ----------
    kind : Kind
        What it is.
    event : str or None
        Id of the event that it answers: it is feedback on this event, or says that none came in time. None for other
        kinds.
    content : bytes
        What it says, as MessagePack.
    at : float
        When it arrived, in seconds since 1970. The order of the log is the order of sequence numbers, not of times.
    """

    kind: Kind
    event: str | None
    content: bytes
    at: float

    @property
    def decoded(self) -> Any:
        """The decoded content."""
        return msgspec.msgpack.decode(self.content)


@dataclass(frozen=True)
class LogEntry:
    """An entry of the log, as it was stored.

    Parameters
    ----------
    seq : int
        Its sequence number: 1, 2, ... without gaps.
    entry : Entry
        What was written.
    digest : bytes
        Digest of the log up to this entry.
    answered : Event or None
        The event that it answers.
    """

    seq: int
    entry: Entry
    digest: bytes
    answered: Event | None


@dataclass(frozen=True)
class Checkpoint:
    """State of learning after all entries of the log up to a position.

    Parameters
    ----------
    version : int
        Number of the checkpoint, from 1.
    position : int
        Sequence number of the last entry that was learned from.
    at : float
        When it was written, in seconds since 1970.
    digest : bytes
        Digest of the log at the position.
    state : bytes
        Models and metrics; see `learning.Learning`. Empty in a list of checkpoints.
    kept : bool
        Whether it is never removed.
    """

    version: int
    position: int
    at: float
    digest: bytes
    state: bytes
    kept: bool


class Outcome(enum.Enum):
    """Outcome of a request to store something."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"  # the event has other feedback
    UNKNOWN = "unknown"  # there is no such event
    EXPIRED = "expired"  # the feedback came too late
    MISMATCH = "mismatch"  # the feedback names documents that the event does not have
    NOT_DUE = "not due"  # "unanswered" was refused: the event may still be answered, or has been


@dataclass(frozen=True)
class Receipt:
    """The result of a request to store something.

    Parameters
    ----------
    outcome : Outcome
        Whether it was stored, or why not.
    seq : int
        Sequence number of the stored entry, or of an earlier entry that answered the same event; 0 if there is none.
    reason : str or None
        What does not fit the event.
    """

    outcome: Outcome
    seq: int = 0
    reason: str | None = None


def event_id() -> str:
    """A new id: the time in milliseconds, which keeps consecutive ids close in an index, and 80 random bits."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


def is_event_id(text: str) -> bool:
    """Whether a text has the form of `event_id`."""
    return re.fullmatch("[0-9a-f]{32}", text) is not None


def time_of(id: str) -> float:
    """Time at which an id was created, in seconds since 1970."""
    return int(id[:12], 16) / 1000.0


def next_digest(before: bytes, seq: int, entry: Entry, answered: bytes | None) -> bytes:
    """Digest of the log up to an entry: SHA-256 of the digest before it, the entry, and the event that it answers."""
    event = (entry.event or "").encode()
    return _digest(before, str(seq).encode(), entry.kind.encode(), event, entry.content, answered or b"")


def _digest(*parts: bytes) -> bytes:
    # lengths mark the borders of the parts
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
