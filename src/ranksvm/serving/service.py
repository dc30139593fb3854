"""The service behind the HTTP interface: it ranks, takes feedback, explains rankings, and reports its state."""

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from ranksvm._util.pipeline_steps import steps_of
from ranksvm.exceptions import DataError
from ranksvm.serving import policies
from ranksvm.serving.access import Keys, Rate
from ranksvm.serving.feedback import in_words
from ranksvm.serving.learner import Learner, Served
from ranksvm.serving.learner_process import LearnerProcess
from ranksvm.serving.learning import CHAMPION, Learning
from ranksvm.serving.models import Model, explained_by, ranking_model_from, scores
from ranksvm.serving.records import Entry, Event, Kind, Shown, event_id
from ranksvm.serving.requests import Limits, Problem, Ranking, Request
from ranksvm.serving.store import Store
from ranksvm.serving.writer import Done, Writer

__all__ = ["Options", "Service"]

# Number of features in the explanation of a document.
_EXPLAINED = 8
# Number of models of earlier versions that are kept for explanations.
_VERSIONS = 4
# If there is feedback to learn from, but no progress for this number of seconds, learning counts as stalled.
_STALLED_SECONDS = 30.0
# Number of entries by which learning may lag behind before the service reports it; by default, a version is written
# every 1,000 entries.
_LAG = 2_000
# Number of checkpoints over which the changes of weights are shown.
_MOVED_OVER = 100


class Options(msgspec.Struct, frozen=True):
    """Options of a service, apart from the learning of its models.

    Parameters
    ----------
    explore : str
        "none", "epsilon", "fair-pairs" or "team-draft".
    epsilon : float
        Chance of a random order, for "epsilon".
    limits : Limits
        Limits on requests.
    rate : float or None
        Requests per second and client.
    insecure : bool
        Whether the service, while it has no API keys, answers requests from any machine and with any Host header.
    allowed_hosts : tuple of str
        Names of this machine, besides "localhost" and addresses, to which requests without API keys may be sent.
    reward_wait : float or None
        Seconds for which feedback is accepted.
    trusted_proxies : tuple of str
        Addresses or networks of proxies, whose headers name the client of a request.
    """

    explore: str = "none"
    epsilon: float = 0.05
    limits: Limits = Limits()
    rate: float | None = None
    insecure: bool = False
    reward_wait: float | None = None
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()


class Service:
    """Ranks with the newest model, while a thread stores all events, and a process or another thread learns.

    Parameters
    ----------
    store : Store
        The log, with at least one checkpoint.
    learner : LearnerProcess or Learner
        Learns from the log.
    options : Options
        How the service behaves.
    """

    def __init__(self, store: Store, learner: LearnerProcess | Learner, options: Options):
        self.store, self.learner, self.options = store, learner, options
        self.writer = Writer(store, on_entries=learner.wake)
        self.keys, self.rate = Keys(store, options.insecure), Rate(options.rate)
        self.settings = self.learner.settings
        self._random = np.random.default_rng(secrets.randbits(128))
        self._versions: OrderedDict[int, Served] = OrderedDict()
        self.outside = 0  # requests with features outside their range
        self._progress = self.learner.served.position, time.monotonic()  # last position, and when it was reached
        self._weights: deque[tuple[int, np.ndarray]] = deque(maxlen=_MOVED_OVER)

    def start(self) -> None:
        """Begin to learn."""
        self.learner.start()

    def close(self) -> None:
        """Store and learn what has arrived, and end the threads."""
        self.writer.close()
        self.learner.close()
        self.store.close()

    # -- ranking and feedback ------------------------------------------------------------------------------------------

    def rank(self, request: Request) -> Ranking:
        """Rank documents, and queue the event for storage without waiting for it."""
        served = self.learner.served
        X = self._within_range(request, served)
        try:
            values = scores(served.models[CHAMPION], X)
        except DataError as error:
            raise Problem(422, "features", str(error)) from None
        choice = self._choice(values, served.models, X)
        shown = Shown(
            request.documents,
            choice.order.tolist(),
            served.version,
            request.X.shape[1],
            request.X.dtype.str,
            request.query,
            choice.policy,
            None if choice.propensities is None else choice.propensities.tolist(),
            choice.teams,
            choice.first_pair,
            choice.base_rank,
        )
        event = Event(event_id(), time.time(), shown, request.X.tobytes())
        # computed here, not by the writer's thread: hashing releases the GIL, and that thread would wait milliseconds
        # to get it back
        _ = event.digest
        self.writer.put_event(event)
        order = [request.documents[row] for row in shown.order]
        return Ranking(event.id, served.version, order, values[choice.order].tolist(), choice.policy)

    def _within_range(self, request: Request, served: Served) -> np.ndarray:
        """Features to score; those outside their range are clipped, or the request is refused."""
        place = served.range.outside(request.X)
        if place is None:
            return request.X
        self.outside += 1
        if served.range.rule.outside == "refuse":
            description = served.range.described(place, request.X, request.documents, self.settings.names)
            raise Problem(422, "out-of-range", f"{description}.")
        return served.range.clipped(request.X)

    def _choice(self, values: np.ndarray, models: Mapping[str, Model], X: np.ndarray) -> policies.Choice:
        if self.options.explore == "epsilon":
            return policies.epsilon(values, self.options.epsilon, self._random)
        if self.options.explore == "fair-pairs":
            return policies.fair_pairs(values, self._random)
        if self.options.explore == "team-draft" and "challenger" in models:
            return policies.team_draft(values, scores(models["challenger"], X), self._random)
        return policies.greedy(values)

    def put_feedback(self, id: str, content: bytes, done: Done) -> None:
        """Queue feedback for storage; the future ``done`` gets the receipt when the feedback is on disk."""
        self.writer.put(Entry(Kind.FEEDBACK, id, content, time.time()), done)

    def put_activation(self, version: int, model: str, done: Done) -> None:
        """Queue an entry that makes a model of an earlier version the champion."""
        if model not in self._at(version).models:
            raise Problem(409, "model", f"version {version} has no model {model!r}.")
        content = msgspec.msgpack.encode({"version": version, "model": model})
        self.writer.put(Entry(Kind.ACTIVATION, None, content, time.time()), done)

    # -- explanations and state ----------------------------------------------------------------------------------------

    def explanation(self, id: str) -> dict[str, Any] | None:
        """Explanation of an event's ranking, by the champion of its version; None if there is no such event."""
        event = self.store.event(id)
        if event is None:
            return None
        served = self._at(event.shown.version)
        model, X = served.models[CHAMPION], served.range.clipped(event.X)
        values = scores(model, X)
        explained = explained_by(model, X, self.settings.names)
        parts = None if explained is None else explained.contributions
        names = self.settings.names
        documents = []
        for rank, row in enumerate(event.shown.order):
            document: dict[str, Any] = {"id": event.shown.documents[row], "rank": rank + 1, "score": float(values[row])}
            if parts is not None and parts.shape[1] == len(names):
                largest = np.argsort(-np.abs(parts[row]), kind="stable")[:_EXPLAINED]
                document["contributions"] = {names[column]: float(parts[row, column]) for column in largest}
            documents.append(document)
        shown = event.shown
        return {
            "event": event.id,
            "query": shown.query,
            "at": event.at,
            "version": shown.version,
            "policy": shown.policy,
            "mean_score": float(values.mean()),
            "documents": documents,
        }

    def recent(self, limit: int) -> list[dict[str, Any]]:
        """The newest events, with their feedback."""
        found = []
        for id, at, shown, seq in self.store.recent_events(limit):
            entry = self.store.entry(seq) if seq else None
            found.append(
                {
                    "event": id,
                    "query": shown.query,
                    "at": at,
                    "version": shown.version,
                    "policy": shown.policy,
                    "documents": len(shown.documents),
                    "top": [shown.documents[row] for row in shown.order[:3]],
                    "seq": seq,
                    "feedback": in_words(entry) if entry else None,
                }
            )
        return found

    def overview(self) -> dict[str, Any]:
        """The versions, the quality of the models, the progress of learning, and the weights."""
        served = self.learner.served
        versions = [
            {"version": one.version, "position": one.position, "at": one.at, "kept": one.kept}
            for one in self.store.checkpoints()
        ]
        return {
            "serving": served.version,
            "model": type(steps_of(served.models[CHAMPION])[-1]).__name__,
            "models": sorted(served.models),
            "learning": self.learning(),
            "store": {"bytes": self.store.size(), "waiting": self.writer.waiting, "dropped": self.writer.dropped},
            "explore": self.options.explore,
            **self.learner.summary,
            "weights": self._weights_now(),
            "versions": versions,
        }

    def learning(self) -> dict[str, Any]:
        """Progress of learning: the position of the model that ranks, and whether it keeps up with the log."""
        position, (last, digest) = self.learner.served.position, self.store.head
        reached, at = self._progress
        if position != reached or position >= last:
            at = time.monotonic()
            self._progress = position, at
        seconds, lag = time.monotonic() - at, last - position
        stalled = seconds > max(_STALLED_SECONDS, 3.0 * self.learner.schedule.seconds)
        return {
            "position": position,
            "last": last,
            "lag": lag,
            "state": "stands still" if stalled else "lags" if lag > _LAG else "keeps up",
            "here": self.learner.learns,
            "trouble": self.learner.trouble,
            "digest": digest.hex(),
        }

    def refresh(self) -> None:
        """Read API keys and checkpoints that other processes may have written; called every few seconds."""
        self.keys.reload()
        self.learner.follow()
        self.learning()
        self._weights_now()

    def _weights_now(self) -> list[dict[str, Any]]:
        """Weights of the champion, the largest first, and their movements over the last checkpoints."""
        served = self.learner.served
        ranker = steps_of(served.models[CHAMPION])[-1]
        coef = ranker.coef_ if hasattr(ranker, "coef_") else None
        if coef is None or len(coef) != len(self.settings.names):
            return []
        if not self._weights or self._weights[-1][0] != served.version:
            self._weights.append((served.version, coef.copy()))
        since, before = self._weights[0]
        return [
            {
                "feature": self.settings.names[column],
                "weight": float(coef[column]),
                "moved": float(coef[column] - before[column]),
                "since": since,
            }
            for column in np.argsort(-np.abs(coef), kind="stable").tolist()
        ]

    def _at(self, version: int) -> Served:
        """The models and the feature range of a version; callers must not change the models, which are shared."""
        served = self.learner.served
        if served.version == version:
            return served
        with suppress(KeyError):
            return self._versions[version]
        found = self.store.checkpoint(version)
        if found is None:
            if version > (newest := self.store.newest_version()):
                raise Problem(404, "version", f"there is no version {version}: the newest version is {newest}.")
            raise Problem(410, "version", f"version {version} is not stored any more.")
        learning = Learning.from_bytes(found.state, ranking_model_from)
        served = Served(version, found.position, found.at, learning.models, learning.range)
        self._versions[version] = served  # other threads may remove it at any time
        if len(self._versions) > _VERSIONS:
            self._versions.popitem(last=False)
        return served
