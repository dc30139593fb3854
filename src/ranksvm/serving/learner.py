"""Learns from the log in a thread: one process at a time has the lease and learns; others read what it has learned."""

import copy
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from ranksvm._util.types import Json
from ranksvm.exceptions import OptionError, StoreError
from ranksvm.serving.click_learning import ClickLearning
from ranksvm.serving.clicks import estimated
from ranksvm.serving.feature_range import FeatureRange, RangeRule
from ranksvm.serving.learning import Learning, Settings
from ranksvm.serving.measures import click_metric
from ranksvm.serving.models import Model, make_deterministic
from ranksvm.serving.records import Entry, Kind
from ranksvm.serving.store import Store

__all__ = ["MAX_FAILURES", "Learner", "Schedule", "Served", "begin", "summary"]

logger = logging.getLogger("ranksvm.serving")

# Number of entries of the log that are read at a time.
_PART = 256
# Maximum number of failures to learn from an entry; then the entry is skipped.
MAX_FAILURES = 3
# Seconds between two removals of old events.
_CLEAN_SECONDS = 3600.0


class Schedule(NamedTuple):
    """Schedule of the learner.

    Parameters
    ----------
    every : int
        Maximum number of entries until a checkpoint is written and the model that ranks is replaced.
    seconds : float
        Seconds after which a checkpoint is written even if there are fewer new entries, but at least one.
    lease : float
        Seconds after which another process takes over from a learner that was killed.
    retain_days : float or None
        Days after which events are removed; None: never.
    """

    every: int
    seconds: float
    lease: float = 3.0
    retain_days: float | None = None


class Served(NamedTuple):
    """The models of a checkpoint, which never change: any number of threads may rank with them.

    Parameters
    ----------
    version : int
        Version of the checkpoint.
    position : int
        Sequence number of the last entry that was learned from.
    at : float
        When it was written.
    models : mapping of str to estimator
        The champion, and the challenger if there is one.
    range : FeatureRange
        The range of the features, at the position.
    """

    version: int
    position: int
    at: float
    models: Mapping[str, Model]
    range: FeatureRange


def begin(
    store: Store,
    models: Mapping[str, Model] | None,
    settings: Settings | None,
    *,
    at: float,
    click_learning: ClickLearning = ClickLearning("shown", "estimated", follow_drift=True),  # noqa: B008 (immutable)
    range_rule: RangeRule = RangeRule("clip"),  # noqa: B008 (immutable)
) -> Learning:
    """Load the newest checkpoint of a store; a new store gets a first one.

    Parameters
    ----------
    store : Store
        The store.
    models : mapping of str to estimator, or None
        The models of a new store.
    settings : Settings, or None
        The settings of a new store.
    at : float
        The time, in seconds since 1970.
    click_learning : ClickLearning, optional
        How a new store learns from clicks at first.
    range_rule : RangeRule, optional
        What a new store does at first with features outside their range.

    Returns
    -------
    Learning
        What was learned.

    Raises
    ------
    OptionError
        When a store is new, and there is no model for it.
    """
    if (found := store.checkpoint()) is not None:
        return Learning.from_bytes(found.state)
    if models is None or settings is None:
        raise OptionError("the store is new: give the model to begin with, --model or --learner.")
    deterministic_models = {name: make_deterministic(model) for name, model in models.items()}
    learning = Learning(deterministic_models, settings, click_learning, range_rule)
    # if another process began at the same time, its checkpoint stays, and is read below
    store.save_checkpoint(0, learning.to_bytes(), at=at, after=0, kept=True)
    newest = store.checkpoint()
    assert newest is not None
    return Learning.from_bytes(newest.state)


class Learner:
    """Learns from the log in a thread of its own.

    Parameters
    ----------
    store : Store
        The log, with at least one checkpoint.
    schedule : Schedule
        When it writes checkpoints, and removes old events.
    on_news : callable, optional
        Called in the thread of the learner after each step.
    ranks : bool, default True
        Whether this process ranks. If so, `served` has copies of the models, because learning changes the models in
        place, and `summary` is kept up to date. If not, `served` has no models, and `summary` is empty.
    """

    def __init__(
        self,
        store: Store,
        schedule: Schedule,
        on_news: Callable[[], None] | None = None,
        *,
        ranks: bool = True,
    ):
        self._store, self.schedule, self._on_news, self._ranks = store, schedule, on_news, ranks
        self.owner = secrets.token_hex(8)
        self.learns = False  # whether this process has the lease
        self.trouble: str | None = None  # why learning makes no progress
        self.summary: Json = {}
        self._learning: Learning | None = None
        self._version = 0
        self._skipped_entries: dict[int, str] = {}
        self._failures: dict[int, int] = {}  # number of failures by entry
        self._logged_counts = 0, 0  # last logged numbers of skipped entries, and of entries with features outside
        self._estimated = 0  # entry with the newest estimate of propensities, to be learned before the next estimate
        self._leased = self._saved = self._cleaned = -float("inf")
        self._stop, self._wake = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.served: Served
        self._follow()
        assert self._learning is not None
        self.settings: Settings = self._learning.settings  # a store's settings never change

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="ranksvm-learner", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Notify the learner that the log has a new entry."""
        self._wake.set()

    def close(self, *, release: bool = True) -> None:
        """End the thread, after a checkpoint; ``release`` lets another process take over at once."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if not self.learns:
            return
        try:
            while self.step():
                pass
            if release:
                self._store.release(self.owner)
                self.learns = False
        except Exception as error:  # the next process learns the rest
            logger.warning("the last checkpoint was not written: %s", error)

    def step(self, *, now: float | None = None) -> bool:
        """Learn from some entries, or follow the process that does; return whether more entries may be waiting.

        Raises
        ------
        StoreError
            When the store does not answer; the same step is then repeated later.
        """
        now = time.monotonic() if now is None else now
        if now - self._leased > self.schedule.lease / 3:
            had = self.learns
            self.learns = self._store.lease(self.owner, self.schedule.lease)
            self._leased = now
            if self.learns and not had:
                self._take_over()
        if not self.learns:
            self._follow()
            return False
        assert self._learning is not None
        self._expire()
        unsaved = self._learning.position - self.served.position
        found = self._store.entries(self._learning.position, min(_PART, self.schedule.every - unsaved))
        for entry in found:
            try:
                self._learning.apply(entry, self._store, self._skipped_entries)
            except StoreError:
                raise
            except Exception as error:
                self._failed(entry.seq, error)
                raise
        unsaved += len(found)
        due = now - self._saved >= self.schedule.seconds or self._stop.is_set()
        needs_estimate = self._learning.needs_estimate and self._learning.position >= self._estimated
        if unsaved >= self.schedule.every or (unsaved and (due or needs_estimate)):
            self._save(now)
        if needs_estimate and self.learns:
            self._estimate()
        self._clean(now)
        return bool(found)

    # -- private methods -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                more = self.step()
                self.trouble = None
            except StoreError as error:
                if self.trouble != str(error):
                    logger.warning("learning waits: %s", error)
                self.trouble, more = str(error), False
            except Exception as error:  # an unexpected error must be visible, and must not end the thread
                logger.exception("learning failed")
                self.trouble, more, self._learning = f"{type(error).__name__}: {error}", False, None
                self.learns, self._leased = False, -float("inf")
                self._stop.wait(self.schedule.seconds)
            if self._on_news is not None:
                self._on_news()
            if not more:
                # a checkpoint or the renewal of a lease may be due without a new entry
                self._wake.wait(min(self.schedule.seconds, self.schedule.lease / 3) / 4)
                self._wake.clear()

    def _failed(self, seq: int, error: Exception) -> None:
        """Skip an entry that failed repeatedly: it must not block all later entries."""
        self._failures[seq] = self._failures.get(seq, 0) + 1
        if self._failures[seq] >= MAX_FAILURES:
            logger.warning("entry %d failed %d times, and is skipped", seq, MAX_FAILURES)
            self._store.mark_skipped(seq, f"{type(error).__name__}: {error}", self.owner)

    def _take_over(self) -> None:
        newest = self._store.checkpoint()
        assert newest is not None
        self._learning, self._version = Learning.from_bytes(newest.state), newest.version
        self._skipped_entries = self._store.skipped_entries()
        self._logged_counts = self._learning.skipped, self._learning.outside
        pending = self._store.pending(Kind.CLICK_LEARNING, newest.position)
        self._estimated = pending[-1][0] if pending else 0
        self._serve(newest.position, newest.at)
        logger.info("this process learns, from entry %d on", newest.position + 1)

    def follow(self) -> None:
        """Do nothing: the thread of this learner reads new checkpoints itself; see `learner_process`."""

    def _follow(self) -> None:
        newest = self._store.newest_version()
        if newest == self._version:
            return
        found = self._store.checkpoint(newest)
        if found is not None:
            self._learning, self._version = Learning.from_bytes(found.state), found.version
            self._serve(found.position, found.at)

    def _save(self, now: float) -> None:
        assert self._learning is not None
        at = time.time()
        saved = self._store.save_checkpoint(
            self._learning.position, self._learning.to_bytes(), at=at, after=self._version
        )
        self._saved = now
        if saved is None:  # another process learns: this one was stopped for longer than its lease
            self.learns, self._leased = False, now
            self._follow()
            return
        self._version = saved.version
        self._serve(saved.position, saved.at)
        self._tell()

    def _tell(self) -> None:
        """Log the entries that were not learned from since the last version, always in one line."""
        assert self._learning is not None
        counts = self._learning.skipped, self._learning.outside
        if counts != self._logged_counts:
            logger.warning(
                "not learned from so far: %d entries, and parts of %d with features outside their range; the last: %s",
                *counts,
                self._learning.reason,
            )
            self._logged_counts = counts

    def _serve(self, position: int, at: float) -> None:
        assert self._learning is not None
        models = {}
        if self._ranks:
            models = {name: copy.deepcopy(model) for name, model in self._learning.models.items()}
            self.summary = summary(self._learning)
        self.served = Served(self._version, position, at, models, copy.copy(self._learning.range))

    def _expire(self) -> None:
        late = self._store.unanswered(_PART)
        if late:
            at = time.time()
            self._store.append([Entry(Kind.UNANSWERED, id, msgspec.msgpack.encode({}), at) for id in late])

    def _estimate(self) -> None:
        """Write an estimate of the propensities to the log; it applies from its entry on, also in a replay."""
        self._store.lease(self.owner, 10 * self.schedule.lease)  # the estimate takes seconds
        try:
            estimate = estimated(self._store)
        except StoreError:
            raise
        except Exception as error:  # an estimate must not stop learning
            logger.exception("propensities were not estimated")
            estimate = {"note": f"the estimate failed: {type(error).__name__}."}
        content = msgspec.msgpack.encode(estimate, order="deterministic")
        (receipt,) = self._store.append([Entry(Kind.CLICK_LEARNING, None, content, time.time())])
        self._estimated = receipt.seq

    def _clean(self, now: float) -> None:
        days = self.schedule.retain_days
        if days is None or now - self._cleaned < _CLEAN_SECONDS:
            return
        self._cleaned = now
        removed = self._store.remove_before(time.time() - 86_400.0 * days, spare=self.settings.looks_back)
        if removed:
            logger.info("%d events older than %g days were removed", removed, days)


def summary(learning: Learning) -> Json:
    """Summary of a `Learning` for display: measures with their histories, wins, refits, and skipped entries."""
    click_name, _ = click_metric(learning.settings.metric)
    return {
        "metric": learning.settings.metric,
        "position": learning.position,
        "measures": {
            name: {"queries": measure.n_queries, "mean": measure.mean, "history": measure.history()}
            for name, measure in learning.measures.items()
            if measure.mean is not None
        },
        "clicks": {
            "metric": click_name,
            "rule": learning.click_learning.rule,
            "propensities": learning.click_learning.described(),
            "drifts": learning.drifts[::-1],
            "estimates": {name: estimate.summary() for name, estimate in learning.estimates.items() if estimate.clicks},
        },
        "team_draft": learning.wins.verdict(),
        "skipped": learning.skipped,
        "outside": learning.outside,
        "reason": learning.reason,
        "refits": learning.verdicts[::-1],
    }
