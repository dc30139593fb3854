"""What a service has learnt: a function of its log, to the bit, however the log was divided between processes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ranksvm._features import feature_labels
from ranksvm.exceptions import StoreError
from ranksvm.serving.feedback import Lesson, lesson_of
from ranksvm.serving.measures import Measure, Wins
from ranksvm.serving.models import learn, learns, model_bytes, model_from, scores
from ranksvm.serving.records import Kind, LogEntry
from ranksvm.serving.store import Store

if TYPE_CHECKING:
    from ranksvm.serving.refits import Refit

__all__ = ["CHAMPION", "SHOWN", "Learning", "Settings"]

CHAMPION = "champion"
SHOWN = "shown"  # what was shown is measured, too
# Refits whose verdicts are kept.
_VERDICTS = 20


class Settings(msgspec.Struct, frozen=True):
    """What learning depends on besides the log; it is fixed when a store is made.

    Parameters
    ----------
    names : list of str
        Names of the features, in the order of the models' columns.
    metric : str
        Metric of the measures.
    refit_every : int
        A champion that cannot learn from single queries is fitted again after this number of entries.
    refit_window : int
        Number of entries that such a fit looks back at.
    """

    names: list[str]
    metric: str = "ndcg@10"
    refit_every: int = 1000
    refit_window: int = 10_000


class _State(msgspec.Struct):
    """`Learning` as it is stored."""

    settings: Settings
    position: int
    models: dict[str, bytes]
    measures: dict[str, Any]
    wins: dict[str, int]
    skipped: int
    reason: str | None
    verdicts: list[Any]


class Learning:
    """Models and measures after a part of the log.

    Every model ranks the documents of each entry before it learns from them: the means so far are those of progressive
    validation, whatever time passes between ranking and feedback.

    Parameters
    ----------
    models : dict of str to estimator
        Name -> model; "champion" is the one that ranks. The dict and the models are changed.
    settings : Settings
        What learning depends on besides the log.
    """

    def __init__(self, models: dict[str, Any], settings: Settings):
        self.models, self.settings = models, settings
        self.position = 0
        self.measures = {name: Measure(settings.metric) for name in (SHOWN, *models)}
        self.wins = Wins()
        self.skipped = 0  # entries that nothing could be learnt from
        self.reason: str | None = None  # why, the last time
        self.verdicts: list[Any] = []  # of refits, the newest last

    @property
    def names_given(self) -> list[str] | None:
        """Names of the features; None where they are only called f1, f2, ..., so that columns count by position."""
        names = self.settings.names
        return None if names == feature_labels(len(names)) else names

    def apply(self, found: LogEntry, store: Store) -> None:
        """Learn from the next entry of the log.

        Parameters
        ----------
        found : LogEntry
            The entry.
        store : Store
            The log, for what an entry refers to.

        Raises
        ------
        StoreError
            When the log lacks something, or cannot be read; nothing has changed then.
        """
        if found.seq != self.position + 1:
            raise StoreError(f"the log continues with entry {found.seq}, but {self.position + 1} was expected.")
        if found.entry.kind is Kind.ACTIVATION:
            self._activate(found, store)
        elif found.answered is None:
            raise StoreError(f"the log has entry {found.seq}, but not the event {found.entry.event} that it answers.")
        else:
            refit = self._refit(found, store)
            self._learn(found, lesson_of(found))
            if refit is not None:
                self._judge(found.seq, refit)
        self.position = found.seq

    def _learn(self, found: LogEntry, lesson: Lesson) -> None:
        assert found.answered is not None
        if lesson.y is not None:
            self.measures[SHOWN].add(lesson.y, -lesson.rank.astype(np.float64))
        teams = found.answered.shown.teams
        if teams is not None and lesson.y is not None and lesson.pairs is not None:
            clicked = np.zeros(len(teams), dtype=bool)
            clicked[lesson.rank[lesson.y > 0]] = True
            self.wins.add(teams, clicked)
        for name, model in self.models.items():
            # An entry that cannot be learnt from must not stop all that follow; the same is skipped in every replay.
            try:
                if lesson.y is not None:
                    self.measures[name].add(lesson.y, scores(model, lesson.X))
                if learns(model):
                    learn(model, lesson)  # a model that refuses is as it was before
            except (ValueError, ArithmeticError) as error:
                self.skipped += name == CHAMPION
                self.reason = f"entry {found.seq}: {error}"

    def _activate(self, found: LogEntry, store: Store) -> None:
        said = found.entry.says
        checkpoint = store.checkpoint(said["version"])
        if checkpoint is None:
            raise StoreError(f"the log activates version {said['version']}, which is not in the store.")
        state = msgspec.msgpack.decode(checkpoint.state, type=_State)
        if said["model"] in state.models:
            self.models[CHAMPION] = model_from(state.models[said["model"]])

    def _refit(self, found: LogEntry, store: Store) -> "Refit | None":
        settings = self.settings
        if learns(self.models[CHAMPION]) or found.seq % settings.refit_every:
            return None
        from ranksvm.serving.refits import refitted  # it imports SciPy

        after = max(0, found.seq - settings.refit_window)
        return refitted(self.models[CHAMPION], store, after, found.seq, settings.metric)

    def _judge(self, seq: int, refit: "Refit") -> None:
        if refit.model is not None:
            self.models[CHAMPION] = refit.model
        self.verdicts = [*self.verdicts, {"seq": seq, "activated": refit.model is not None, "reason": refit.reason}]
        self.verdicts = self.verdicts[-_VERDICTS:]

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """All of it; the same learning gives the same bytes."""
        state = _State(
            self.settings,
            self.position,
            {name: model_bytes(model) for name, model in self.models.items()},
            {name: measure.state for name, measure in self.measures.items()},
            self.wins.counts,
            self.skipped,
            self.reason,
            self.verdicts,
        )
        return msgspec.msgpack.encode(state)

    @classmethod
    def from_bytes(cls, content: bytes, load: Callable[[bytes], Any] = model_from) -> "Learning":
        """The learning that `to_bytes` was called on."""
        state = msgspec.msgpack.decode(content, type=_State)
        learning = cls({name: load(model) for name, model in state.models.items()}, state.settings)
        learning.position = state.position
        metric = state.settings.metric
        learning.measures = {name: Measure(metric, stored) for name, stored in state.measures.items()}
        learning.wins = Wins(state.wins)
        learning.skipped, learning.reason, learning.verdicts = state.skipped, state.reason, state.verdicts
        return learning
