"""Clicks: five folds, lists of several lengths, and the limit of infinitely many clicks.

python benchmarks/clicks_folds.py -o benchmarks/results/clicks_folds.md

With ``--cache``, each result is stored in a file. After ``--seconds``, no further piece begins.
"""

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _clicks_counts import Lists
from _clicks_world import BUDGETS, DATA, World
from _common import arguments, data_folder, page, publish, table, verdict
from _pieces import Found, Pieces, Section
from ranksvm import RankSVM, metrics
from ranksvm.clicks import attractiveness

# lists by name: number of ranks, and whether the last rank shows a random document among those not shown above it
LISTS: dict[str, tuple[int | None, bool]] = {
    "10": (10, False),
    "10, the last at random": (10, True),
    "20": (20, False),
    "whole": (None, False),
}
# numbers of clicks in the goals: for pairwise accuracy with known propensities, and for NDCG@10 of full labels
SOME, MANY = 100_000, 1_000_000
N_LOGS = 2


class Fits(NamedTuple):
    """Test values of models.

    Parameters
    ----------
    accuracy : list of float
        Pairwise accuracy for every C.
    chosen : int
        Index of the C with the best pairwise accuracy on validation queries.
    ndcg : ndarray of shape (n_queries,)
        NDCG@10 of each test query, with the C that has the best NDCG@10 on validation queries.
    """

    accuracy: list[float]
    chosen: int
    ndcg: np.ndarray

    def plain(self) -> dict[str, Any]:
        """The values as types that JSON supports."""
        return {"accuracy": self.accuracy, "chosen": self.chosen, "ndcg": self.ndcg.tolist()}


class Learner:
    """Fits models to weighted pairs, chooses C on the validation queries of a fold, and evaluates its test queries."""

    def __init__(self, world: World):
        self._world, self._whole = world, Lists(world, None)
        self.size = world.train.queries.n_queries, world.train.n_features

    def fits(self, pairs: np.ndarray, weight: np.ndarray) -> "Fits":
        """Fit a model for every C, and evaluate it."""
        train, parts = self._world.train, (self._world.valid, self._world.test)
        chosen, found = [], []
        for budget in BUDGETS:
            model = RankSVM(C=budget / weight.sum()).fit(train.X, qid=train.qid, pairs=pairs, pair_weight=weight)
            for part, to in zip(parts, (chosen, found), strict=True):
                names = ["pairwise_accuracy", "ndcg@10"]
                to.append(metrics.evaluate(part.y, model.predict(part.X), part.qid, names))
        best = {name: int(np.argmax([one.means[name] for one in chosen])) for name in chosen[0].means}
        accuracy = [one.means["pairwise_accuracy"] for one in found]
        return Fits(accuracy, best["pairwise_accuracy"], found[best["ndcg@10"]].per_query["ndcg@10"])

    def labels(self) -> Fits:
        """Learn from all pairs of documents with different labels."""
        gap = self._gaps(self._world.train.y)
        return self.fits(self._whole.pairs[gap > 0], np.ones(int((gap > 0).sum())))

    def gains(self) -> Fits:
        """Learn from the same pairs, weighted by the difference of gains, as in NDCG and in the simulated clicks."""
        gap = self._gaps(attractiveness(self._world.train, 0.0))
        return self.fits(self._whole.pairs[gap > 0], gap[gap > 0])

    def by_relevance(self, relevance: np.ndarray) -> Fits:
        """Learn from pairs of documents that were shown, weighted by the difference of their relevance."""
        gap = self._gaps(relevance)
        return self.fits(self._whole.pairs[gap > 0], gap[gap > 0])

    def old_rankers(self) -> dict[str, list[float]]:
        """NDCG@10 of the test queries for the rankers that made the lists, and for a random order."""
        test, rng = self._world.test, np.random.default_rng(0)
        scores = {name: ranker.predict(test.X) for name, ranker in self._world.rankers.items()}
        scores["random"] = rng.random(test.n_rows)
        return {
            name: metrics.evaluate(test.y, of, test.qid, "ndcg@10").per_query["ndcg@10"].tolist()
            for name, of in scores.items()
        }

    def _gaps(self, label: np.ndarray) -> np.ndarray:
        """Differences of labels for all pairs of documents of a query."""
        upper, lower = self._whole.pairs.T
        return label[upper] - label[lower]

    def cases(self, n_ranks: int | None, explored: bool, logs: Iterable[int]) -> dict[str, list[Fits]]:
        """Learn in several ways from lists of one kind."""
        lists = self._whole if n_ranks is None else Lists(self._world, n_ranks, explored=explored)
        limit, known, y = lists.expected(), lists.propensity, self._world.train.y
        # the expected clicks of users who never click without relevance
        quiet = Lists(self._world, n_ranks, noise=0.0, explored=explored).expected().pairs(known)
        together = lists.summed(np.ones(len(lists.preferred))) * (y[lists.pairs[:, 0]] > y[lists.pairs[:, 1]])
        found = {
            "limit, relevance": [self.by_relevance(limit.relevance(known))],
            "labels of pairs shown": [self.fits(lists.pairs[together > 0], together[together > 0])],
            "limit": [self.fits(*limit.pairs(known))],
            "limit, no noise": [self.fits(*quiet)],
            "limit, naive": [self.fits(*limit.pairs(None))],
        }
        for log in logs:
            for n_clicks in (SOME, MANY)[: 1 if log else 2]:  # one log of many clicks
                clicks = lists.draw(n_clicks, np.random.default_rng(log))
                estimated = clicks.harvested()
                for name, propensity in (("known", known), ("estimated", estimated)):
                    found.setdefault(f"{name}, {n_clicks}", []).append(self.fits(*clicks.pairs(propensity)))
                if n_clicks == MANY:
                    found["estimated, relevance"] = [self.by_relevance(clicks.relevance(estimated))]
        return found


def measure(name: str, fold: int, smoke: bool) -> dict[str, Any]:
    """Labels, old rankers, and by lists and case the fits of a fold."""
    learner = Learner(World(name, 2 if name == "OHSUMED" else 5, fold))
    gains, found = learner.gains(), {}
    for shown, (n_ranks, explored) in LISTS.items():
        cases = {"gains": [gains], **learner.cases(n_ranks, explored, range(1 if smoke else N_LOGS))}
        found[shown] = {case: [fits.plain() for fits in values] for case, values in cases.items()}
    return {
        "labels": learner.labels().ndcg.tolist(),
        "old": learner.old_rankers(),
        "size": learner.size,
        "lists": found,
    }


class Folds:
    """The measurements of all folds of a data set.

    Parameters
    ----------
    folds : list of dict
        As `measure` returns them.
    """

    def __init__(self, folds: list[dict[str, Any]]):
        self._folds, self.size = folds, folds[0]["size"]
        self.labels = np.concatenate([np.array(fold["labels"], dtype=float) for fold in folds])

    def relative(self, shown: str, case: str) -> tuple[float, float]:
        """Mean difference of NDCG@10 from learning with labels, in per cent, and its standard error."""
        return self._relative([fold["lists"][shown][case][0]["ndcg"] for fold in self._folds])

    def old(self) -> dict[str, float]:
        """The same difference for the old rankers and a random order."""
        return {name: self._relative([fold["old"][name] for fold in self._folds])[0] for name in self._folds[0]["old"]}

    def _relative(self, ndcg: list[list[float]]) -> tuple[float, float]:
        gap = (np.concatenate([np.array(one, dtype=float) for one in ndcg]) - self.labels)[~np.isnan(self.labels)]
        scale = 100.0 / np.nanmean(self.labels)
        return scale * gap.mean(), scale * gap.std(ddof=1) / np.sqrt(len(gap))

    def gaps(self, shown: str) -> tuple[np.ndarray, np.ndarray]:
        """Pairwise accuracy of estimated minus known propensities: at the C of the known ones, and at separate C."""
        same, apart = [], []
        for fold in self._folds:
            of = fold["lists"][shown]
            for one, other in zip(of[f"known, {SOME}"], of[f"estimated, {SOME}"], strict=True):
                known = one["accuracy"][one["chosen"]]
                same.append(other["accuracy"][one["chosen"]] - known)
                apart.append(other["accuracy"][other["chosen"]] - known)
        return np.array(same), np.array(apart)


def limits(found: dict[str, Folds]) -> str:
    """The table of NDCG@10."""
    cases = {
        "gains": "labels by gain",
        "labels of pairs shown": "labels of pairs shown",
        "limit, no noise": "infinite clicks, no noise",
        "limit": "infinite clicks",
        "limit, relevance": "the same, by relevance",
        f"known, {MANY}": "10^6, known",
        f"estimated, {MANY}": "10^6, estimated",
        "estimated, relevance": "the same, by relevance",
        "limit, naive": "infinite clicks, naive",
    }
    rows = [
        [
            name,
            f"{np.nanmean(folds.labels):.4f}",
            shown,
            *("{:+.1f} ± {:.1f}".format(*folds.relative(shown, case)) for case in cases),
        ]
        for name, folds in found.items()
        for shown in LISTS
    ]
    return table(["data", "labels, NDCG@10", "lists", *cases.values()], rows)


def goals(found: dict[str, Folds]) -> str:
    """The table of goals."""
    rows = []
    for name, folds in found.items():
        for shown in LISTS:
            same, apart = folds.gaps(shown)
            naive = folds.relative(shown, "limit, naive")[0]
            losses = (folds.relative(shown, case)[0] for case in (f"estimated, {MANY}", "estimated, relevance"))
            rows.append(
                [
                    name,
                    shown,
                    f"{same.mean():+.4f}, {verdict(abs(same.mean()), 0.002)}",
                    f"{np.abs(same).max():.4f} of {same.size}",
                    f"{apart.mean():+.4f}",
                    *(f"{loss:+.1f} %, {verdict(max(0.0, -loss), 1.0)}" for loss in losses),
                    f"{naive:+.1f} %, {'as the goal says' if naive < -1.0 else 'no worse'}",
                ]
            )
    head = ["data", "lists", "mean gap", "largest gap", "C chosen apart", "estimated, pairs", "estimated, by relevance"]
    return table([*head, "naive"], rows)


def old_rankers(found: dict[str, Folds]) -> str:
    """The table of the rankers that made the lists."""
    rows = []
    for name, folds in found.items():
        sizes = " x ".join(f"{number:,}" for number in folds.size)
        rows.append([name, sizes, *(f"{value:+.1f}" for value in folds.old().values())])
    return table(["data", "training queries x features", *(f"ranker {letter}" for letter in "abc"), "random"], rows)


def in_words(pieces: list[Found]) -> list[str]:
    """The text of the page, for all folds that were measured."""
    names = dict.fromkeys(piece.key.split("/")[0] for piece in pieces)
    found = {name: Folds([one.value for one in pieces if one.key.split("/")[0] == name]) for name in names}
    return [
        "NDCG@10 on the test queries of five folds, relative to a RankSVM with all labels, in per cent, ± the standard "
        "error of the difference over the queries. Models are trained, and C is chosen on validation queries, in each "
        "fold; LightGBM-rank, which has no folds, is divided at random into five parts. Three weak rankers, users and "
        "noise as on [the page on learning](clicks_learning.md), which takes logs through the public functions; here "
        "clicks are drawn as numbers by list and rank, which has the same distribution, so that users can see whole "
        "rankings, too, as in the published experiments (Joachims, Swaminathan & Schnabel, WSDM 2017). "
        '"10, the last at random": rank 10 of each list shows a random one of the documents that the nine above leave '
        'over.\n\n"Infinite clicks" is a model trained on the expected weights of all pairs (`rule="shown_all"`): more '
        'clicks cannot teach more. "No noise": without clicks on documents without relevance. "By relevance": learnt '
        'from labels of `relevance` instead of pairs. "Labels of pairs shown": labels of two documents count where a '
        "list shows both.\n\n" + limits(found),
        "Pairs weigh by how often lists show both documents: those that all rankers like count three times, and those "
        "that lists of ten never show together not at all. `relevance` divides clicks by exposure for each document, "
        "so that all documents ever shown are compared alike; and with one random rank in ten, all of them are shown.",
        "## Goals\n\nPairwise accuracy with estimated less that with known propensities at 10^5 clicks: the mean of "
        f"{N_LOGS} logs of each fold (goal: within .002) and the largest of single logs, with the C that validation "
        "queries choose for the known ones; and the mean if C is chosen for each of both, which adds the noise of that "
        "choice. Estimated propensities are used down to the first rank that "
        "rests on fewer than 100 comparable clicks, of which `position_bias` warns. NDCG@10 with estimated "
        "propensities at 10^6 clicks from that with labels (goal: within 1 %), and of the naive one (goal: not). "
        "Learning by relevance, and the last rank at random, were added when pairs had missed the goal on "
        "MQ2007-partial.\n\n" + goals(found),
        "## Where clicks as they are do no harm\n\nNDCG@10 of the rankers that made the lists, and of a random order, "
        "from that of labels, in per cent. The naive model learns a mean of these rankers and of relevance. On "
        "LightGBM-rank rankers of five queries are nearer to one of all labels, whose queries are few for so many "
        "features, so that what a naive model keeps of the rankers costs less than elsewhere.\n\n" + old_rankers(found),
    ]


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(
        __doc__,
        argv,
        ("--data", {"default": ",".join(DATA), "help": "folders of RANKSVM_DATA"}),
        ("--only", {"default": "", "help": "measure only pieces whose 'section/piece' has this in it"}),
        ("--cache", {"type": Path, "help": "file of the pieces that are done"}),
        ("--seconds", {"type": float, "help": "begin no piece after so many seconds"}),
    )
    names = ["made"] if options.smoke or data_folder() is None else options.data.split(",")
    folds = range(1, 3 if options.smoke else 6)
    measured = {f"{name}/{fold}": partial(measure, name, fold, options.smoke) for name in names for fold in folds}
    sections, pieces = [Section("folds", measured, in_words)], Pieces(options.cache, options.seconds)
    pieces.measure(sections, options.only)
    if pieces.left:
        sys.exit(f"{pieces.left} pieces are left: run the same command again.")
    parts = pieces.parts(sections)
    publish(page("Clicks: five folds, and infinitely many clicks", "clicks_folds", options, parts), options)


if __name__ == "__main__":
    main()
