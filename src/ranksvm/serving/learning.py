"""The state of learning: it depends only on the log, bit by bit, even if several processes took turns to learn."""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ranksvm._util.pipeline_steps import steps_of
from ranksvm._util.text import feature_labels
from ranksvm._util.types import Json
from ranksvm.exceptions import StoreError
from ranksvm.serving.click_learning import KEPT, KEPT_BY_ESTIMATE, ClickLearning, DriftDetector, forget
from ranksvm.serving.feature_range import FeatureRange, RangeRule
from ranksvm.serving.feedback import Lesson, lesson_of
from ranksvm.serving.measures import ClickEstimate, Measure, Wins, click_metric
from ranksvm.serving.models import Model, learn, learns, model_bytes, model_from, scores
from ranksvm.serving.records import Kind, LogEntry
from ranksvm.serving.store import Store

if TYPE_CHECKING:
    from ranksvm.serving.refits import Refit

__all__ = ["CHAMPION", "SHOWN", "Learning", "Settings"]

CHAMPION = "champion"
SHOWN = "shown"  # name of the measure for the rankings that users saw; others have names of models
# Maximum number of results of refits, and of noticed drifts, that are kept.
_MAX_VERDICTS = 20
# Maximum number of entries that are learned from again after drift, and bytes of their features.
_MAX_REPEATED_ENTRIES, _MAX_REPEATED_BYTES = 1000, 64 << 20


class Settings(msgspec.Struct, frozen=True):
    """Settings that learning depends on besides the log; they are fixed when a store is created.

    Parameters
    ----------
    names : list of str
        Names of the features, in the order of the models' columns.
    metric : str
        Metric that is computed from labels. From clicks, DCG with the same cutoff is estimated.
    refit_every : int
        A champion that cannot learn from single queries is fitted again after this number of entries.
    refit_window : int
        Number of entries that such a fit looks back at.
    """

    names: list[str]
    metric: str = "ndcg@10"
    refit_every: int = 1000
    refit_window: int = 10_000

    @property
    def looks_back(self) -> int:
        """Number of entries before a checkpoint that a later fit, or learning after drift, may read again."""
        return max(self.refit_window, _MAX_REPEATED_ENTRIES)


class _State(msgspec.Struct):
    """The stored form of `Learning`."""

    settings: Settings
    position: int
    models: dict[str, bytes]
    measures: dict[str, Any]
    wins: dict[str, int]
    skipped: int
    reason: str | None
    verdicts: list[Any]
    # the default is for stores that were created before this setting existed; newer stores record their settings
    click_learning: ClickLearning = ClickLearning()
    estimates: dict[str, Any] | None = None
    estimate_at: int = 0
    detector: dict[str, Any] | None = None
    drifts: list[int] | None = None
    range_rule: RangeRule = RangeRule()
    range: dict[str, Any] | None = None
    beginning: dict[str, bytes] | None = None
    outside: int = 0


class Learning:
    """The models, and measures of their quality, after learning from the log up to an entry.

    Every model ranks the documents of each entry before it learns from them. So the means are results of progressive
    validation, however much time passes between a ranking and its feedback.

    Parameters
    ----------
    models : dict of str to estimator
        Name -> model; "champion" is the model that ranks. The dict and the models are modified.
    settings : Settings
        What learning depends on besides the log.
    click_learning : ClickLearning, optional
        How clicks are learned from until the log says otherwise.
    range_rule : RangeRule, optional
        What happens to features outside their range until the log says otherwise.
    """

    def __init__(
        self,
        models: dict[str, Model],
        settings: Settings,
        click_learning: ClickLearning = ClickLearning(),  # noqa: B008 (immutable)
        range_rule: RangeRule = RangeRule(),  # noqa: B008 (immutable)
    ):
        self.models, self.settings, self.click_learning = models, settings, click_learning
        # the range that applies to an entry depends only on earlier entries
        self.range = FeatureRange(range_rule, exempt=_categorical(models))
        # while feature ranges rest on few answers: the initial state of the models that learn, from which they may have
        # to start again
        self._beginning: dict[str, bytes] = {}
        self._remember()
        self.outside = 0  # number of entries on documents with features outside the range
        self.position = 0
        self.measures = {name: Measure(settings.metric) for name in (SHOWN, *models)}
        _, cutoff = click_metric(settings.metric)
        self.estimates = {name: ClickEstimate(cutoff) for name in (SHOWN, *models)}
        self._estimate_at = click_learning.next_estimate(0)  # in rankings with clicks
        self._detector = DriftDetector()
        self.drifts: list[int] = []  # entries at which drift was noticed, the newest one at the end
        self.wins = Wins()
        self.skipped = 0  # number of entries that nothing could be learned from
        self.reason: str | None = None  # why the last of these entries was skipped
        self.verdicts: list[Json] = []  # results of refits, the newest one at the end

    @property
    def names_given(self) -> list[str] | None:
        """Names of the features; None if they are only f1, f2, ..., so that columns are identified by position."""
        names = self.settings.names
        return None if names == feature_labels(len(names)) else names

    def apply(self, found: LogEntry, store: Store, skipped_entries: Mapping[int, str] | None = None) -> None:
        """Learn from the next entry of the log.

        Parameters
        ----------
        found : LogEntry
            The entry.
        store : Store
            The log, for what an entry refers to.
        skipped_entries : mapping of int to str, optional
            `Store.skipped_entries`: entries that are skipped, and why.

        Raises
        ------
        StoreError
            When the log lacks something, or cannot be read; nothing has changed then.
        """
        if found.seq != self.position + 1:
            raise StoreError(f"the log continues with entry {found.seq}, but {self.position + 1} was expected.")
        if skipped_entries and found.seq in skipped_entries:
            self.skipped += 1
            self.reason = f"entry {found.seq} was skipped: {skipped_entries[found.seq]}"
        elif found.entry.kind is Kind.ACTIVATION:
            self._activate(found, store)
        elif found.entry.kind is Kind.CLICK_LEARNING:
            self._change_click_learning(found.entry.decoded)
        elif found.entry.kind is Kind.FEATURE_RANGE:
            was_warming_up = self.range.is_warming_up
            self.range = self.range.with_rule(self.range.rule.changed(found.entry.decoded))
            if self.range.is_warming_up != was_warming_up:
                self._remember()
        elif found.answered is None:
            raise StoreError(f"the log has entry {found.seq}, but not the event {found.entry.event} that it answers.")
        else:
            refit = self._refit(found, store, skipped_entries or {})
            lesson = lesson_of(found, self.click_learning)
            self._follow_drift(found, lesson, store, skipped_entries or {})
            within = self._within_range(found, lesson)
            self._learn(found, within)
            if found.entry.kind is Kind.FEEDBACK:  # requests without feedback do not count: anyone can send them
                self._follow_range(found, lesson.X, within.inside)
            if refit is not None:
                self._judge(found.seq, refit)
        self.position = found.seq

    def _learn(self, found: LogEntry, lesson: Lesson) -> None:
        assert found.answered is not None
        self._measure(SHOWN, lesson, -lesson.rank.astype(np.float64))
        teams = found.answered.shown.teams
        if teams is not None and lesson.clicked is not None:
            clicked = np.zeros(len(teams), dtype=bool)
            clicked[lesson.rank[lesson.clicked]] = True
            self.wins.add(teams, clicked)
        inside = lesson.inside_range
        if not len(inside.X):  # all documents are outside the range
            self.skipped += 1
        for name, model in self.models.items():
            # An entry that cannot be learned from must not block later entries; every replay skips the same entries.
            try:
                if lesson.y is not None or lesson.clicked is not None:  # preferences have no metric
                    self._measure(name, lesson, scores(model, lesson.X))
                _teach(model, inside)
            except (ValueError, ArithmeticError) as error:
                self.skipped += name == CHAMPION
                self.reason = f"entry {found.seq}: {error}"

    def _within_range(self, found: LogEntry, lesson: Lesson) -> Lesson:
        """The lesson with features within their range; values outside are counted and reported."""
        assert found.answered is not None
        place = self.range.outside(found.answered.X)
        if place is None:
            return lesson
        within = self.range.applied(lesson)
        if within.inside is not None:
            self.outside += 1
            documents = found.answered.shown.documents
            description = self.range.described(place, found.answered.X, documents, self.settings.names)
            self.reason = f"entry {found.seq}, event {found.answered.id}: {description}; it was not learned from."
        return within

    def _follow_range(self, found: LogEntry, X: np.ndarray, inside: np.ndarray | None) -> None:
        """Move the range; models start again if they learned from an early answer that is now outside."""
        if self.range.add(X, inside, found.entry.at):
            self.models |= {name: model_from(content) for name, content in self._beginning.items()}
            self.reason = (
                f"entry {found.seq}: an answer before it had features outside their range; models began again."
            )
        if not self.range.is_warming_up:
            self._beginning = {}

    def _remember(self) -> None:
        """Save the present state of the models that learn, while feature ranges rest on few answers."""
        self._beginning = {}
        if self.range.is_warming_up:
            self._beginning = {name: model_bytes(model) for name, model in self.models.items() if learns(model)}

    def _measure(self, name: str, lesson: Lesson, values: np.ndarray) -> None:
        """Add a ranking, given by scores, to a metric computed from labels or to a metric estimated from clicks."""
        if lesson.y is not None:
            self.measures[name].add(lesson.y, values)
        if lesson.clicked is not None:
            self.estimates[name].add(values, lesson.clicked, self.click_learning.propensities(lesson.rank))

    def _follow_drift(self, found: LogEntry, lesson: Lesson, store: Store, skipped_entries: Mapping[int, str]) -> None:
        """If users click as if the order had no information, models forget, and learn again from the last entries.

        Forgetting alone does not change the order of documents. Models that cannot forget stay as they are.
        """
        assert found.answered is not None
        if not self.click_learning.follow_drift or lesson.clicked is None or found.answered.shown.teams is not None:
            return
        order = np.argsort(lesson.rank)
        detector = DriftDetector(self._detector.state)
        propensities = self.click_learning.propensities(lesson.rank[order])
        since = detector.add(found.seq, lesson.clicked[order], propensities)
        # read before any change: if reading fails, nothing has changed
        again = [] if since is None else self._lessons(since, found.seq, store, skipped_entries)
        self._detector = detector
        if since is None:
            return
        self.drifts = [*self.drifts, found.seq][-_MAX_VERDICTS:]
        for model in self.models.values():
            if forget(model, KEPT):
                for earlier in again:
                    with suppress(ValueError, ArithmeticError):  # the error was reported the first time
                        _teach(model, earlier)

    def _lessons(self, since: int, seq: int, store: Store, skipped_entries: Mapping[int, str]) -> list[Lesson]:
        """Lessons between the entries ``since`` and ``seq``: the newest, at most 1,000 and 64 MB of features."""
        lessons: deque[Lesson] = deque()
        n_bytes = 0
        for found in store.entries_between(max(since, seq - 1 - _MAX_REPEATED_ENTRIES), seq - 1):
            if found.entry.kind is Kind.ACTIVATION:  # the activated model may already have learned from earlier entries
                lessons.clear()
                n_bytes = 0
            if found.answered is None or found.seq in skipped_entries:
                continue
            lessons.append(self.range.applied(lesson_of(found, self.click_learning)).inside_range)
            n_bytes += lessons[-1].X.nbytes
            while n_bytes > _MAX_REPEATED_BYTES:
                n_bytes -= lessons.popleft().X.nbytes
        return list(lessons)

    def _change_click_learning(self, changes: dict[str, Any]) -> None:
        """Change how clicks are learned from: by the choice of an operator, or by an estimate of propensities.

        An estimate is ignored if an operator has chosen another source since.
        """
        is_estimate = "source" not in changes and "note" in changes
        if is_estimate and self.click_learning.source != "estimated":
            return
        self.click_learning = self.click_learning.changed(changes)
        self._estimate_at = self.click_learning.next_estimate(self.rankings_with_clicks)
        if is_estimate and self.click_learning.follow_drift and changes.get("rankings"):
            for model in self.models.values():
                forget(model, KEPT_BY_ESTIMATE)

    @property
    def rankings_with_clicks(self) -> int:
        """Number of rankings with feedback by clicks; one without any feedback in time counts as having no clicks."""
        return self.estimates[SHOWN].rankings

    @property
    def needs_estimate(self) -> bool:
        """Whether it is time to estimate propensities from the store."""
        return self.click_learning.source == "estimated" and self.rankings_with_clicks >= self._estimate_at

    def _activate(self, found: LogEntry, store: Store) -> None:
        activation = found.entry.decoded
        checkpoint = store.checkpoint(activation["version"])
        if checkpoint is None:
            raise StoreError(f"the log activates version {activation['version']}, which is not in the store.")
        state = msgspec.msgpack.decode(checkpoint.state, type=_State)
        if activation["model"] in state.models:
            self.models[CHAMPION] = model_from(state.models[activation["model"]])
            self.range = self.range.exempting(_categorical(self.models))
            self._remember()

    def _refit(self, found: LogEntry, store: Store, skipped_entries: Mapping[int, str]) -> "Refit | None":
        settings = self.settings
        if learns(self.models[CHAMPION]) or found.seq % settings.refit_every:
            return None
        from ranksvm.serving.refits import refitted  # it imports SciPy

        after = max(0, found.seq - settings.refit_window)
        window = after, found.seq
        champion, clicks = self.models[CHAMPION], self.click_learning
        return refitted(champion, store, window, skipped_entries, settings.metric, clicks, self.range)

    def _judge(self, seq: int, refit: "Refit") -> None:
        if refit.model is not None:
            self.models[CHAMPION] = refit.model
        self.verdicts = [*self.verdicts, {"seq": seq, "activated": refit.model is not None, "reason": refit.reason}]
        self.verdicts = self.verdicts[-_MAX_VERDICTS:]

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The whole state as bytes; equal states give equal bytes."""
        state = _State(
            self.settings,
            self.position,
            {name: model_bytes(model) for name, model in self.models.items()},
            {name: measure.state for name, measure in self.measures.items()},
            self.wins.counts,
            self.skipped,
            self.reason,
            self.verdicts,
            self.click_learning,
            {name: estimate.state for name, estimate in self.estimates.items()},
            self._estimate_at,
            self._detector.state,
            self.drifts,
            self.range.rule,
            self.range.state,
            self._beginning,
            self.outside,
        )
        return msgspec.msgpack.encode(state)

    @classmethod
    def from_bytes(cls, content: bytes, load: Callable[[bytes], Model] = model_from) -> "Learning":
        """Restore a `Learning` from the result of `to_bytes`."""
        state = msgspec.msgpack.decode(content, type=_State)
        models = {name: load(model) for name, model in state.models.items()}
        learning = cls(models, state.settings, state.click_learning)
        learning.range = FeatureRange(state.range_rule, state.range, _categorical(models))
        learning._beginning = state.beginning or {}
        learning.outside = state.outside
        learning.position, learning._estimate_at = state.position, state.estimate_at
        metric = state.settings.metric
        learning.measures = {name: Measure(metric, stored) for name, stored in state.measures.items()}
        _, cutoff = click_metric(metric)
        for name, stored in (state.estimates or {}).items():
            learning.estimates[name] = ClickEstimate(cutoff, stored)
        learning._detector = DriftDetector(state.detector)
        learning.drifts = state.drifts or []
        learning.wins = Wins(state.wins)
        learning.skipped, learning.reason, learning.verdicts = state.skipped, state.reason, state.verdicts
        return learning


def _categorical(models: Mapping[str, Model]) -> np.ndarray | None:
    """Mask of the features that are categories for all models: their values have no size; None if there is none."""
    masks = [getattr(steps_of(model)[0], "is_categorical_", None) for model in models.values()]
    categorical = [mask for mask in masks if mask is not None and mask.any()]
    return np.all(categorical, axis=0) if len(categorical) == len(models) else None


def _teach(model: Model, lesson: Lesson) -> None:
    """Teach a model, if it learns from single queries; an error leaves the model unchanged."""
    if learns(model) and len(lesson.X):
        learn(model, lesson)
