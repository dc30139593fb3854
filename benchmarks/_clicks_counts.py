"""Clicks of very many impressions, drawn as counts by list and rank, and the limit of infinitely many clicks."""

import numpy as np

from _clicks_world import World
from ranksvm import RankingData
from ranksvm.clicks import PositionBias, attractiveness
from ranksvm.clicks.propensities import (
    FEW_CLICKS,
    ClickCounts,
    comparable_clicks,
    connected_ranks,
    fit_propensities,
    harvest,
)

__all__ = ["Clicks", "Lists"]


class Lists:
    """The lists of the weak rankers for every query: the document that each ranker shows at each rank.

    With the position model, the numbers of impressions of each list in N impressions are multinomial, and the numbers
    of clicks at each rank are binomial. The weights of `click_pairs` and the propensities of ``position_bias(log,
    "harvest")`` depend only on these numbers. So 10^6 clicks on whole rankings, which would be 10^8 rows of a log, are
    drawn in a second.

    Parameters
    ----------
    world : World
        Data and rankers.
    n_ranks : int or None
        Length of the lists; None: whole rankings.
    noise : float, default 0.1
        Probability of a click on an examined document without relevance.
    explored : bool, default False
        Whether the last rank shows a random document among those that are not shown above it.
    """

    def __init__(self, world: World, n_ranks: int | None, noise: float = 0.1, *, explored: bool = False):
        data = self.data = world.train
        orders = [np.lexsort((-model.predict(data.X), data.queries.numbers())) for model in world.rankers.values()]
        lists, share = _explored(data, orders, n_ranks) if explored else _shown(data, orders, n_ranks)
        self.row, self.rank, self.list = lists
        self.share = share / share.sum()
        self.n_lists, self.n_ranks = len(share), int(self.rank.max()) + 1
        self.propensity = PositionBias.power(self.n_ranks).propensity
        self.chance = attractiveness(data, noise)[self.row] * self.propensity[self.rank]
        # all pairs of two rows of a list, and for each its index in the array of distinct pairs
        sizes = np.bincount(self.list, minlength=self.n_lists)[self.list]
        first = np.searchsorted(self.list, self.list)
        self.preferred = np.repeat(np.arange(len(self.row)), sizes)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        self.other = np.repeat(first, sizes) + np.arange(len(self.preferred)) - starts
        two = self.preferred != self.other
        self.preferred, self.other = self.preferred[two], self.other[two]
        key = self.row[self.preferred] * data.n_rows + self.row[self.other]
        different, self._pair = np.unique(key, return_inverse=True)
        self.pairs = np.column_stack(np.divmod(different, data.n_rows))

    def expected(self) -> "Clicks":
        """The expected clicks of one impression of a random list."""
        return Clicks(self, self.share, self.share[self.list] * self.chance)

    def draw(self, n_clicks: int, rng: np.random.Generator) -> "Clicks":
        """Draw clicks; the number of impressions is such that the expected number of clicks is ``n_clicks``."""
        n = round(n_clicks / (self.share[self.list] @ self.chance))
        shown = rng.multinomial(n, self.share)
        return Clicks(self, shown, rng.binomial(shown[self.list], self.chance))

    def summed(self, values: np.ndarray) -> np.ndarray:
        """For each of `pairs`, the sum of ``values`` over the lists that show both rows."""
        return np.bincount(self._pair, values, len(self.pairs))


class Clicks:
    """The number of impressions of every list, and the number of clicks on each of its rows.

    Parameters
    ----------
    lists : Lists
        The lists.
    shown : ndarray of shape (n_lists,)
        Numbers of impressions.
    clicks : ndarray of shape (n_rows,)
        Numbers of clicks.
    """

    def __init__(self, lists: Lists, shown: np.ndarray, clicks: np.ndarray):
        self._lists, self._shown, self._clicks = lists, shown, clicks

    def pairs(self, propensity: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of ``click_pairs(rule="shown_all")``, without ranks whose propensity is NaN; None: unweighted.

        Other rules depend on which documents were clicked on in the same impression. Counts of clicks do not show this.
        """
        lists = self._lists
        p = np.ones(lists.n_ranks) if propensity is None else propensity
        known = ~np.isnan(p)[lists.rank]
        weight = np.divide(self._clicks, p[lists.rank], out=np.zeros(len(known)), where=known)
        found = lists.summed(weight[lists.preferred] * known[lists.other])
        return lists.pairs[found > 0], found[found > 0]

    def relevance(self, propensity: np.ndarray) -> np.ndarray:
        """The same values as `ranksvm.clicks.relevance`, without ranks whose propensity is NaN."""
        lists = self._lists
        known = ~np.isnan(propensity)[lists.rank]
        row, n_rows = lists.row[known], lists.data.n_rows
        exposed = np.bincount(row, (self._shown[lists.list] * propensity[lists.rank])[known], n_rows)
        clicks = np.bincount(row, self._clicks[known], n_rows)
        return np.divide(clicks, exposed, out=np.full(n_rows, np.nan), where=exposed > 0)

    def harvested(self) -> np.ndarray:
        """Propensities harvested from the clicks; NaN from the first rank on for which there are too few clicks."""
        lists = self._lists
        key, entry = np.unique(lists.row * lists.n_ranks + lists.rank, return_inverse=True)
        row, rank = np.divmod(key, lists.n_ranks)
        shown, clicks = (np.bincount(entry, of) for of in (self._shown[lists.list], self._clicks))
        seen = shown > 0
        query = lists.data.queries.numbers()
        columns = (column[seen] for column in (query[row], row, rank, np.zeros_like(row), shown, clicks))
        counts = ClickCounts(*columns, lists.n_ranks, int(self._shown.sum()), frozenset("abc"), False)
        wins = harvest(counts).sum(axis=0)
        precise = connected_ranks(wins) & (comparable_clicks(wins) >= FEW_CLICKS)
        n_known = lists.n_ranks if precise.all() else int(precise.argmin())
        out = np.full(lists.n_ranks, np.nan)
        found = fit_propensities(wins[:n_known, :n_known])
        out[:n_known] = found / found.max()
        return out


def _shown(data: RankingData, orders: list[np.ndarray], n_ranks: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows, ranks (from 0) and list numbers of all shown documents, and the relative frequency of each list."""
    queries = data.queries
    place = np.arange(data.n_rows) - np.repeat(queries.pointers[:-1], queries.sizes)
    kept = place < (data.n_rows if n_ranks is None else n_ranks)
    row = np.concatenate([order[kept] for order in orders])
    rank = np.tile(place[kept], len(orders))
    ranker = np.repeat(np.arange(len(orders)), kept.sum())
    return np.stack((row, rank, ranker * queries.n_queries + queries.numbers()[row])), np.ones(
        len(orders) * queries.n_queries
    )


def _explored(data: RankingData, orders: list[np.ndarray], n_ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """The same, with a separate list for each document that the last rank may show."""
    queries, lists, share = data.queries, [], []
    for order in orders:
        for start, size in zip(queries.pointers[:-1].tolist(), queries.sizes.tolist(), strict=True):
            ranking = order[start : start + size]
            n_above = min(n_ranks, size) - 1
            for last in ranking[n_above:]:
                lists.append(np.append(ranking[:n_above], last))
                share.append(1.0 / (size - n_above))
    sizes = [len(one) for one in lists]
    rank = np.concatenate([np.arange(size) for size in sizes])
    return np.stack((np.concatenate(lists), rank, np.repeat(np.arange(len(lists)), sizes))), np.array(share)
