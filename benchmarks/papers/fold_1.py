"""Functions that items on first folds share."""

from collections.abc import Iterable, Sequence

import numpy as np

from papers.data_sets import DATA_SETS
from papers.judgment import COUNT
from papers.results import Compared
from ranksvm import metrics
from ranksvm.datasets.ranking_data import RankingData

__all__ = ["absent", "add_counts", "is_whole", "letor", "n_levels", "n_pairs", "paper_name"]


def paper_name(name: str) -> str:
    """The name of a data set in the papers: MQ2007 for MQ2007-partial."""
    return name.removesuffix("-partial")


def is_whole(name: str) -> bool:
    """Whether a data set is the same as in the papers, so that figures are judged."""
    return not DATA_SETS[name].note


def absent(printed: Iterable[str], here: Iterable[str]) -> list[str]:
    """The data sets of the paper that are absent, also in part."""
    known = {paper_name(name) for name in here}
    return [name for name in printed if name not in known]


def n_pairs(data: RankingData) -> int:
    """Number of pairs of documents of one query with different labels."""
    total = 0
    for _, rows in data.queries:
        _, counts = np.unique(data.y[rows], return_counts=True)
        total += (len(rows) ** 2 - int(counts @ counts)) // 2
    return total


def n_levels(data: RankingData) -> int:
    """Largest number of different labels in a query."""
    return max(len(np.unique(data.y[rows])) for _, rows in data.queries)


def letor(data: RankingData, scores: np.ndarray, names: Sequence[str]) -> dict[str, float]:
    """Metrics as LETOR's own tool computes them; pairwise accuracy in per cent."""
    means = metrics.evaluate(data.y, scores, data.qid, names, convention="letor").means
    return {name: 100 * mean if name == "pairwise_accuracy" else mean for name, mean in means.items()}


def add_counts(table: Compared, name: str, counts: dict[str, float | None], printed: dict[str, float]) -> None:
    """Add counts of a training part, with the printed ones."""
    for what, ours in counts.items():
        table.add((name,), what, COUNT, ours, printed.get(what), judged=is_whole(name))
