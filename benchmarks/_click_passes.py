"""A service that learns from simulated users one ranking at a time: from each ranking before it makes the next one."""

from pathlib import Path

import numpy as np

import ranksvm
from ranksvm import metrics
from ranksvm.clicks import attractiveness
from ranksvm.clicks.simulation import clicks_on_lists, examination
from ranksvm.serving import policies
from ranksvm.serving.click_learning import ClickLearning
from ranksvm.serving.feedback import Feedback, content_of
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learning import CHAMPION, Learning, Settings
from ranksvm.serving.models import scores
from ranksvm.serving.records import Entry, Event, Kind, Shown
from ranksvm.serving.store import open_store

__all__ = ["N_PASSES", "InStep", "by_clicks", "by_labels", "tutorial_data"]

N_PASSES = 8


class InStep:
    """The store and the learner of a service, without HTTP.

    Parameters
    ----------
    path : path-like
        File of the store.
    model : estimator
        The model that a new store begins with.
    n_features : int
        Number of features.
    click_learning : ClickLearning
        How the service learns from clicks.
    explore : str, default "none"
        "none" or "fair-pairs".
    seed : int, default 0
        Seed of the users and of the exploration.
    """

    def __init__(
        self,
        path: Path,
        model: object,
        n_features: int,
        click_learning: ClickLearning,
        explore: str = "none",
        seed: int = 0,
    ):
        self.store = open_store(str(path))
        settings = Settings([f"f{j + 1}" for j in range(n_features)])
        begin(self.store, {CHAMPION: model}, settings, at=0.0, click_learning=click_learning)
        self._learner = Learner(self.store, Schedule(10**6, 1e9))
        self._random, self._explore, self._number = np.random.default_rng(seed), explore, 0
        self._learner.step(now=0.0)

    @property
    def learning(self) -> Learning:
        """The models that the service has learned so far."""
        assert self._learner._learning is not None
        return self._learner._learning

    def ask(self, X: np.ndarray, gain: np.ndarray, query: str, users: str = "position", noise: float = 0.05) -> None:
        """Rank documents, simulate a user's clicks for their relevance (0 to 1), and send the clicks to the service."""
        values = scores(self.learning.models[CHAMPION], X)
        choice = policies.fair_pairs(values, self._random) if self._explore == "fair-pairs" else policies.greedy(values)
        gains = gain[choice.order][np.newaxis]
        examined, there = examination(users, gains, np.ones(1), noise), np.ones_like(gains, dtype=bool)
        (clicked,) = clicks_on_lists(users, gains, there, examined, noise, self._random)
        self._number += 1
        names = [str(row) for row in range(len(X))]
        more = {"first_pair": choice.first_pair, "base_rank": choice.base_rank, "policy": choice.policy}
        shown = Shown(names, choice.order.tolist(), self._number, X.shape[1], X.dtype.str, query, **more)
        event = Event(f"e{self._number:08d}", float(self._number), shown, X.tobytes())
        content = content_of(Feedback(clicks=[names[row] for row in choice.order[clicked]]))
        self.store.append([event, Entry(Kind.FEEDBACK, event.id, content, float(self._number))])
        while self._learner.step(now=0.0):
            pass

    def close(self) -> None:
        """Write the last checkpoint, and close the store."""
        self._learner.close()
        self.store.close()


def tutorial_data(seed: int, n_queries: int = 200) -> ranksvm.RankingData:
    """The data of the tutorial in docs/serving.md, by seed."""
    return ranksvm.make_ranking(n_queries, 20, 10, random_state=seed)


def quality(model: ranksvm.SOLARRanker, data: ranksvm.RankingData, X: np.ndarray) -> float:
    """NDCG@10, computed with labels."""
    return metrics.evaluate(data.y, model.predict(X), data.qid, "ndcg@10")["ndcg@10"]


def _features(data: ranksvm.RankingData, number: int, drift: int | None) -> np.ndarray:
    """Features in a pass, counted from 0; from the pass ``drift`` on, columns are shifted by one."""
    return data.X if drift is None or number < drift else np.roll(data.X, 1, axis=1)


def by_labels(order: int, data: ranksvm.RankingData) -> np.ndarray:
    """NDCG@10 after each pass of a model that learns from labels."""
    model = ranksvm.SOLARRanker(order=order, random_state=0)
    return np.array([quality(model.partial_fit(data.X, data.y, qid=data.qid), data, data.X) for _ in range(N_PASSES)])


def by_clicks(
    folder: Path,
    order: int,
    data: ranksvm.RankingData,
    users: str,
    click_learning: ClickLearning,
    *,
    explore: str = "none",
    seed: int = 0,
    noise: float = 0.05,
    drift: int | None = None,
) -> np.ndarray:
    """NDCG@10 after each pass of a service that learns from clicks."""
    model, values = ranksvm.SOLARRanker(order=order, random_state=0), []
    gain, path = attractiveness(data, 0.0), Path(folder, "events.db")
    service = InStep(path, model, data.X.shape[1], click_learning, explore, seed)
    for number in range(N_PASSES):
        X = _features(data, number, drift)
        for query, (_, rows) in enumerate(data.queries):
            service.ask(X[rows], gain[rows], str(query), users, noise)
        values.append(quality(service.learning.models[CHAMPION], data, X))
    service.close()
    path.unlink()
    return np.array(values)
