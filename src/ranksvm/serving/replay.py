"""Reconstruction of any past model of a service from its log; the digests of the log are verified."""

import time
from collections.abc import Callable
from typing import NamedTuple

from ranksvm.exceptions import OptionError, StoreError
from ranksvm.serving.learning import Learning
from ranksvm.serving.records import Checkpoint, next_digest
from ranksvm.serving.store import Store

__all__ = ["Replay", "replay"]

# Number of entries of the log that are read at a time.
_PART = 256


class Replay(NamedTuple):
    """A past state of a service.

    Parameters
    ----------
    learning : Learning
        The state of learning.
    first : int
        Sequence number of the entry from which the log was replayed.
    compared : list of int
        Versions that the replay passed, and whose stored checkpoints had the same bytes.
    seconds : float
        Time taken.
    """

    learning: Learning
    first: int
    compared: list[int]
    seconds: float


def replay(store: Store, *, until: int | None = None, tell: Callable[[int, int], object] | None = None) -> Replay:
    """Learn again from a log, from its first checkpoint.

    Parameters
    ----------
    store : Store
        The store.
    until : int, optional
        The last entry to learn from; None: the last of the log.
    tell : callable, optional
        Called after every few entries with two sequence numbers: that of the last entry so far, and that of the last
        entry to learn from.

    Returns
    -------
    Replay
        The state of learning.

    Raises
    ------
    OptionError
        When the log does not reach that far, or begins later.
    StoreError
        When the log was altered: a digest is wrong, or a checkpoint has other bytes. When the service removed old
        events during the replay.
    """
    start = time.perf_counter()
    (last, head), base = store.head, store.first_checkpoint()
    if base is None:
        raise StoreError("the store has no checkpoint: no service has used it yet.")
    until = last if until is None else until
    if not base.position <= until <= last:
        raise OptionError(f"the last entry of a replay must be between {base.position} and {last}, got {until}.")
    try:
        learning, digest, compared = _learned_again(store, base, until, tell)
        if until == last and digest != head:
            raise StoreError("the log was altered: its last digest differs from the one that the store keeps for it.")
    except StoreError:
        _check_beginning(store, base)
        raise
    _check_beginning(store, base)  # a refit may have lacked the removed entries
    return Replay(learning, base.position + 1, compared, time.perf_counter() - start)


def _learned_again(
    store: Store, base: Checkpoint, until: int, tell: Callable[[int, int], object] | None
) -> tuple[Learning, bytes, list[int]]:
    """The state after an entry, the digest of the log up to there, and the versions that had the same bytes."""
    positions = {found.position: found.version for found in store.checkpoints()[::-1]}
    skipped_entries = store.skipped_entries()
    learning, digest, compared = Learning.from_bytes(base.state), base.digest, []
    while learning.position < until and (part := store.entries(learning.position, _PART, until=until)):
        for found in part:
            answered = None if found.answered is None else found.answered.digest
            digest = next_digest(digest, found.seq, found.entry, answered)
            if digest != found.digest:
                raise StoreError(f"the log was altered: entry {found.seq}, or the event that it answers.")
            learning.apply(found, store, skipped_entries)
            if found.seq in positions:
                _compare(store, positions[found.seq], learning)
                compared.append(positions[found.seq])
        if tell is not None:
            tell(learning.position, until)
    if learning.position != until:
        raise StoreError(f"the log was altered: entry {learning.position + 1} is missing.")
    return learning, digest, compared


def _check_beginning(store: Store, base: Checkpoint) -> None:
    """Refuse to judge a log whose first entries the service has removed in the meantime."""
    now = store.first_checkpoint()
    if now is None or now.version != base.version:
        raise StoreError("the service removed old events during the replay (--retain): replay the log again.")


def _compare(store: Store, version: int, learning: Learning) -> None:
    stored = store.checkpoint(version)
    if stored is not None and stored.state != learning.to_bytes():
        raise StoreError(
            f"version {version}, after entry {learning.position}, was not learned from this log: it was altered, or "
            "written with other releases of ranksvm or NumPy, or on another processor."
        )
