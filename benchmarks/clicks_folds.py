"""Clicks: five folds, lists of several lengths, and the limit of infinitely many clicks.

python benchmarks/clicks_folds.py -o benchmarks/results/clicks_folds.md
"""

import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from _clicks_counts import Lists
from _clicks_world import BUDGETS, DATA, World
from _common import arguments, data_folder, page, publish, table, verdict
from ranksvm import RankSVM, metrics
from ranksvm.clicks import attractiveness

LENGTHS = (10, 20, None)
# clicks of the goals: pairwise accuracy of known propensities, NDCG@10 of full labels
SOME, MANY = 100_000, 1_000_000
N_LOGS = 2


class Fits(NamedTuple):
    """Test values of models.

    Parameters
    ----------
    accuracy : list of float
        Pairwise accuracy for every C.
    chosen : int
        Place of the C with the best pairwise accuracy on validation queries.
    ndcg : ndarray of shape (n_queries,)
        NDCG@10 of each query, of the C with the best one on validation queries.
    """

    accuracy: list[float]
    chosen: int
    ndcg: np.ndarray


class Learner:
    """Models from weighted pairs, C chosen on the validation queries of the fold; values of its test queries."""

    def __init__(self, world: World):
        self._world, self._whole = world, Lists(world, None)

    def fits(self, pairs: np.ndarray, weight: np.ndarray) -> "Fits":
        """A model for every C."""
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
        """All pairs of all labels."""
        gap = self._gaps(self._world.train.y)
        return self.fits(self._whole.pairs[gap > 0], np.ones(int((gap > 0).sum())))

    def gains(self) -> Fits:
        """The same, each pair weighted by the difference of gains: what NDCG rewards, and clicks express."""
        gap = self._gaps(attractiveness(self._world.train, 0.0))
        return self.fits(self._whole.pairs[gap > 0], gap[gap > 0])

    def _gaps(self, label: np.ndarray) -> np.ndarray:
        """Differences of labels of every two documents of a query."""
        upper, lower = self._whole.pairs.T
        return label[upper] - label[lower]

    def cases(self, n_ranks: int | None, logs: Iterable[int]) -> dict[str, list[Fits]]:
        """What lists of one length teach."""
        lists = self._whole if n_ranks is None else Lists(self._world, n_ranks)
        limit, known, y = lists.expected(), lists.propensity, self._world.train.y
        # the expected clicks of users who never click without relevance
        quiet = Lists(self._world, n_ranks, noise=0.0).expected().pairs(known)
        together = lists.summed(np.ones(len(lists.preferred))) * (y[lists.pairs[:, 0]] > y[lists.pairs[:, 1]])
        # the labels of `relevance` with the weights of label_gap
        shown = np.where(np.bincount(lists.row, minlength=len(y)) > 0, attractiveness(self._world.train), np.nan)
        gap = self._gaps(shown)
        found = {
            "limit, relevance": [self.fits(self._whole.pairs[gap > 0], gap[gap > 0])],
            "labels of pairs shown": [self.fits(lists.pairs[together > 0], together[together > 0])],
            "limit": [self.fits(*limit.pairs(known))],
            "limit, no noise": [self.fits(*quiet)],
            "limit, naive": [self.fits(*limit.pairs(None))],
        }
        for log in logs:
            for n_clicks in (SOME, MANY)[: 1 if log else 2]:  # one log of many clicks
                clicks = lists.draw(n_clicks, np.random.default_rng(log))
                for name, propensity in (("known", known), ("estimated", clicks.harvested())):
                    found.setdefault(f"{name}, {n_clicks}", []).append(self.fits(*clicks.pairs(propensity)))
        return found


def measure(name: str, smoke: bool) -> tuple[np.ndarray, dict]:
    """NDCG@10 of the test queries of all folds with labels; by length of the lists and case, the fits of each fold."""
    labels, found = [], {}
    for fold in range(1, 3 if smoke else 6):
        learner = Learner(World(name, 2 if name == "OHSUMED" else 5, fold))
        labels.append(learner.labels().ndcg)
        gains = learner.gains()
        for length in LENGTHS:
            found.setdefault((length, "gains"), []).append([gains])
            for case, values in learner.cases(length, range(1 if smoke else N_LOGS)).items():
                found.setdefault((length, case), []).append(values)
        print(f"{name}, fold {fold}: {time.process_time():.0f} s", file=sys.stderr, flush=True)
    return np.concatenate(labels), found


def relative(values: list, labels: np.ndarray) -> tuple[float, float]:
    """Difference of the mean NDCG@10 of all test queries from that with labels, in per cent, and its standard error."""
    per_query = np.concatenate([fits[0].ndcg for fits in values])
    gap = (per_query - labels)[~np.isnan(labels)]
    scale = 100.0 / np.nanmean(labels)
    return scale * gap.mean(), scale * gap.std(ddof=1) / np.sqrt(len(gap))


def main(argv: list[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments(__doc__, argv, ("--data", {"default": ",".join(DATA), "help": "folders of RANKSVM_DATA"}))
    names = ["made"] if options.smoke or data_folder() is None else options.data.split(",")
    limits, goals = [], []
    for name in names:
        labels, found = measure(name, options.smoke)
        for length in LENGTHS:
            shown = "whole" if length is None else length

            def cell(case: str, values=found, length=length, labels=labels) -> str:
                return "{:+.1f} ± {:.1f}".format(*relative(values[length, case], labels))

            cases = (
                "gains",
                "labels of pairs shown",
                "limit, no noise",
                "limit",
                "limit, relevance",
                f"known, {MANY}",
                f"estimated, {MANY}",
            )
            limits.append([name, f"{np.nanmean(labels):.4f}", shown, *map(cell, cases), cell("limit, naive")])
            known, estimated = (found[length, f"{kind}, {SOME}"] for kind in ("known", "estimated"))
            both = [pair for fold in zip(known, estimated, strict=True) for pair in zip(*fold, strict=True)]
            same = np.array([other.accuracy[one.chosen] - one.accuracy[one.chosen] for one, other in both])
            apart = np.array([other.accuracy[other.chosen] - one.accuracy[one.chosen] for one, other in both])
            loss, naive = (relative(found[length, case], labels)[0] for case in (f"estimated, {MANY}", "limit, naive"))
            goals.append(
                [
                    name,
                    shown,
                    f"{same.mean():+.4f}, {verdict(abs(same.mean()), 0.002)}",
                    f"{np.abs(same).max():.4f} of {same.size}",
                    f"{apart.mean():+.4f}",
                    f"{loss:+.1f} %, {verdict(max(0.0, -loss), 1.0)}",
                    f"{naive:+.1f} %, {'as the goal says' if naive < -1.0 else 'no worse'}",
                ]
            )
    head = [
        "data",
        "labels, NDCG@10",
        "lists",
        "labels by gain",
        "labels of pairs shown",
        "infinite clicks, no noise",
        "infinite clicks",
    ]
    head += ["the same, by relevance", "10^6, known", "10^6, estimated", "infinite clicks, naive"]
    parts = [
        "NDCG@10 on the test queries of five folds, relative to a RankSVM with all labels, in per cent, ± the standard "
        "error of the difference over the queries. Models are trained, and C is chosen on validation queries, in each "
        "fold; LightGBM-rank, which has no folds, is divided at random into five parts. Three weak rankers, users and "
        "noise as on [the page on learning](clicks_learning.md), which takes logs of the first fold through the public "
        "functions; here clicks are drawn as numbers by list and rank, which has the same distribution, so that users "
        "can see whole rankings, too, as in the published experiments (Joachims, Swaminathan & Schnabel, WSDM 2017)."
        '\n\n"Infinite clicks" is a model trained on the expected weights of all pairs: more clicks cannot teach more. '
        '"No noise": without clicks on documents without relevance. "By relevance": learnt from labels of `relevance` '
        'instead of pairs. "Labels of pairs shown": labels of two documents count where a list shows both.\n\n'
        + table(head, limits),
        "## Goals\n\nPairwise accuracy with estimated less that with known propensities at 10^5 clicks: the mean of "
        f"{N_LOGS} logs of each fold (goal: within .002) and the largest of single logs, with the C that validation "
        "queries choose for the known ones; and the mean if C is chosen for each of both, which adds the noise of that "
        "choice. Estimated propensities are used down to the first rank that "
        "rests on fewer than 100 comparable clicks, of which `position_bias` warns. NDCG@10 with estimated "
        "propensities at 10^6 clicks from that with labels (goal: within 1 %), and of the naive one (goal: not).\n\n"
        + table(["data", "lists", "mean gap", "largest gap", "C chosen apart", "estimated", "naive"], goals),
    ]
    publish(page("Clicks: five folds, and infinitely many clicks", "clicks_folds", options, parts), options)


if __name__ == "__main__":
    main()
