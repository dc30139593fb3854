"""Simulated traffic for the benchmarks of clicks: data, weak rankers, models, and interleaved lists."""

from collections.abc import Iterator

import numpy as np

from _common import read
from ranksvm import RankingData, RankSVM, make_ranking, metrics
from ranksvm.clicks import (
    ClickLog,
    PositionBias,
    attractiveness,
    click_pairs,
    interleave,
    interleaving_credits,
    relevance,
)

DATA = ("MQ2008", "OHSUMED", "MQ2007-partial", "LightGBM-rank")
# Values of C times the sum of the pairs' weights: C itself would have to shrink as the number of clicks grows.
BUDGETS = 10.0 ** np.arange(6)
QUALITY = ("pairwise_accuracy", "ndcg@10")
N_RANKS = 10


class World:
    """Training, validation and test data, and three weak rankers, each trained on few queries."""

    def __init__(self, name: str, n_queries: int = 5, fold: int = 1):
        self.name = name
        if name == "made":
            made = make_ranking(300, 20, 10, random_state=fold - 1)
            ends = made.qid <= 150, (made.qid > 150) & (made.qid <= 200), made.qid > 200
            self.train, self.valid, self.test = (made.select(rows) for rows in ends)
        elif name == "LightGBM-rank":
            self.train, self.valid, self.test = _five_folds(name, fold)
        else:
            self.train, self.valid, self.test = (read(name, fold, part) for part in ("train", "vali", "test"))
        self.rankers = {letter: self._weak(seed, n_queries) for seed, letter in enumerate("abc")}

    def _weak(self, seed: int, n_queries: int) -> RankSVM:
        rng = np.random.default_rng(seed)
        while True:
            few = rng.choice(self.train.queries.n_queries, n_queries, replace=False)
            sample = self.train.select(np.isin(self.train.queries.numbers(), few))
            if len(np.unique(sample.y)) > 1:
                return RankSVM(C=0.01).fit(sample.X, sample.y, qid=sample.qid)

    def best(self, fits: Iterator[RankSVM]) -> np.ndarray:
        """For each metric, the test value of the model that is best on validation data."""
        scored = np.array([[quality(model, part) for part in (self.valid, self.test)] for model in fits])
        return np.array([scored[scored[:, 0, place].argmax(), 1, place] for place in range(len(QUALITY))])

    def full_labels(self) -> np.ndarray:
        """Test values of models that learn from the labels."""
        train = self.train
        n_pairs = RankSVM(C=1e-6).fit(train.X, train.y, qid=train.qid).n_pairs_
        return self.best(RankSVM(C=one / n_pairs).fit(train.X, train.y, qid=train.qid) for one in BUDGETS)

    def by_pairs(self, log: ClickLog, bias: PositionBias | None, rule: str = "shown") -> np.ndarray:
        """Test values of models that learn from pairs of a clicked document and another one, chosen by ``rule``."""
        pairs, weight = click_pairs(log, self.train, bias, rule=rule)
        X, qid = self.train.X, self.train.qid
        return self.best(
            RankSVM(C=one / weight.sum()).fit(X, qid=qid, pairs=pairs, pair_weight=weight) for one in BUDGETS
        )

    def by_relevance(self, log: ClickLog, bias: PositionBias) -> np.ndarray:
        """Test values of models that learn from relevance estimated from clicks, used as labels."""
        label = relevance(log, self.train, bias)
        part = self.train.select(~np.isnan(label))
        label = label[~np.isnan(label)]
        n_pairs = len(label) * N_RANKS
        return self.best(
            RankSVM(C=one / n_pairs * 10, pair_weighting="label_gap").fit(part.X, label, qid=part.qid)
            for one in BUDGETS
        )


def _five_folds(name: str, fold: int) -> Iterator[RankingData]:
    """A fold of a data set with two files: three fifths of the queries for training, one to validate, one to test."""
    parts = [read(name, 1, part) for part in ("train", "test")]
    number = np.concatenate([part.queries.numbers() + 10**6 * place for place, part in enumerate(parts)])
    whole = RankingData(np.vstack([part.X for part in parts]), np.concatenate([part.y for part in parts]), number)
    part = (np.random.default_rng(0).permutation(whole.queries.n_queries) % 5)[whole.queries.numbers()]
    which = (part - fold) % 5
    return (whole.select(rows) for rows in (which < 3, which == 3, which == 4))


def quality(model: RankSVM, data: RankingData) -> list[float]:
    """The metrics of a model on some data."""
    return list(metrics.evaluate(data.y, model.predict(data.X), data.qid, list(QUALITY)).means.values())


def first(log: ClickLog, n_clicks: int) -> ClickLog:
    """The first impressions of a log, until they have ``n_clicks`` clicks."""
    clicks = np.cumsum(np.add.reduceat(log.clicked, log.pointers[:-1], dtype=np.int64))
    return log.impressions(np.arange(log.n_impressions) <= np.searchsorted(clicks, n_clicks))


def two(values: np.ndarray) -> str:
    """Both metrics, as text."""
    return " / ".join(f"{value:.4f}" for value in values)


class Interleaved:
    """Simulated impressions of interleaved lists, drawn at random from a pool of lists for each query."""

    def __init__(self, data: RankingData, a: np.ndarray, b: np.ndarray, method: str, pool: int, seed: int):
        self.data, self.method, self.scores = data, method, (a, b)
        rng = np.random.default_rng(seed)
        found = []
        for _, rows in data.queries:
            lists = [rows[np.argsort(-scores[rows], kind="stable")].tolist() for scores in (a, b)]
            found += [
                (rows[0], interleave(*lists, method=method, length=N_RANKS, random_state=rng)) for _ in range(pool)
            ]
        self.lists = [mixed for _, mixed in found]
        self.query = np.array([data.queries.numbers()[row] for row, _ in found])
        self.rows = np.full((len(found), N_RANKS), -1)
        self.side = np.zeros((len(found), N_RANKS), dtype=int)
        for place, mixed in enumerate(self.lists):
            self.rows[place, : len(mixed.documents)] = mixed.documents
            self.side[place, : len(mixed.documents)] = [team == "A" for team in mixed.team]

    def credits(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Credits of n impressions with clicks of the position model."""
        chosen = rng.integers(len(self.rows), size=n)
        rows = self.rows[chosen]
        there = rows >= 0
        chance = attractiveness(self.data)[rows] / np.arange(1, N_RANKS + 1)
        clicked = (rng.random(rows.shape) < chance) & there
        sizes = there.sum(axis=1)
        rank = np.broadcast_to(np.arange(1, N_RANKS + 1), rows.shape)[there]
        log = ClickLog(
            np.repeat(self.data.queries.ids[self.query[chosen]], sizes),
            rows[there],
            rank,
            clicked[there],
            ranker=np.where(self.side[chosen][there] == 1, "A", "B"),
        )
        plain = RankingData(self.data.X, self.data.y, self.data.qid)
        return interleaving_credits(log, self.method, data=plain, scores=self.scores)
