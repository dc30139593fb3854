"""The data of `low_rank_settings.py`, by name: official folds, changed official folds, and generated folds."""

import numpy as np

from _common import read
from papers.data_sets import Parts
from ranksvm import RankingData, make_ranking

REAL = ("OHSUMED", "MQ2008")
FOLDS = range(1, 6)
TINY, COPIES = "made, tiny", "made, copies"
COPIES_FEATURES, COPIES_CENTERS, COPIES_DOCS = 60, 5, 40


def parts_of(name: str, fold: int) -> Parts:
    """Training, validation and test part of a fold, with the changes that the name of the data set describes.

    A name is the name of a data set, then changes with their sizes, such as "OHSUMED; queries 0.1; draw 2". The draw
    selects the random numbers.
    """
    base, *words = name.split("; ")
    changes = dict(word.split(" ") for word in words)
    draw = int(changes.pop("draw", 1))
    parts = _base(base, fold)
    for number, (kind, share) in enumerate(changes.items()):
        part, change = CHANGES[kind]
        changed = change(getattr(parts, part), float(share), np.random.default_rng([draw, fold, number]))
        parts = parts._replace(**{part: changed})
    return parts


def _base(name: str, fold: int) -> Parts:
    if name in REAL:
        parts = [read(name, fold, part) for part in ("train", "vali", "test")]
        width = parts[0].n_features
        if any(part.n_features != width for part in parts):
            parts = [read(name, fold, part, n_features=width) for part in ("train", "vali", "test")]
        return Parts(*parts)
    return MADE[name](fold)


def _tiny(fold: int) -> Parts:
    data = make_ranking(30, (6, 12), 6, n_levels=3, random_state=fold)
    return Parts(*(data.select(data.qid % 3 == number) for number in range(3)))


def _copies(fold: int) -> Parts:
    """Queries whose documents are nearly copies of a few documents, so that an alpha of low rank is nearly optimal.

    For exact copies with one label, alpha can be averaged without a change of the weights. So there is an optimal block
    whose rank is at most the number of different documents. Labels follow a linear function of the copied documents. In
    the training and validation parts, a third of the labels are replaced at random; the test part has correct labels.
    """
    rng = np.random.default_rng(fold)
    coef = rng.standard_normal(COPIES_FEATURES)
    return Parts(*(_copied(rng, coef, *part) for part in ((20, 0.33), (20, 0.33), (200, 0.0))))


def _copied(rng: np.random.Generator, coef: np.ndarray, n_queries: int, wrong: float) -> RankingData:
    centers = rng.standard_normal((n_queries, COPIES_CENTERS, COPIES_FEATURES))
    relevance = centers @ coef
    labels = np.searchsorted(np.quantile(relevance, [0.6, 0.85]), relevance).astype(np.float64)
    center = rng.integers(COPIES_CENTERS, size=(n_queries, COPIES_DOCS))
    X = np.take_along_axis(centers, center[:, :, None], axis=1)
    X = X + 0.1 * rng.standard_normal(X.shape)
    y = np.take_along_axis(labels, center, axis=1)
    y = np.where(rng.random(y.shape) < wrong, rng.integers(3, size=y.shape), y)
    qid = np.repeat(np.arange(n_queries), COPIES_DOCS)
    return RankingData(X.reshape(-1, COPIES_FEATURES).astype(np.float32), y.ravel(), qid)


MADE = {TINY: _tiny, COPIES: _copies}


# -- changes -----------------------------------------------------------------------------------------------------------


def fewer(data: RankingData, share: float, rng: np.random.Generator) -> RankingData:
    """Keep a random share of the queries that have pairs."""
    ids = [qid for qid, rows in data.queries if len(np.unique(data.y[rows])) > 1]
    kept = rng.choice(np.array(ids), max(1, round(share * len(ids))), replace=False)
    return data.select(np.isin(data.qid, kept))


def wrong_labels(data: RankingData, share: float, rng: np.random.Generator) -> RankingData:
    """Shuffle the labels of a random share of the documents in each query."""
    y = data.y.copy()
    for _, rows in data.queries:
        some = rows[rng.random(len(rows)) < share]
        y[some] = rng.permutation(y[some])
    return RankingData(data.X, y, data.qid)


def wrong_queries(data: RankingData, share: float, rng: np.random.Generator) -> RankingData:
    """Shuffle all labels within the query, for a random share of the queries."""
    y = data.y.copy()
    for _, rows in data.queries:
        if rng.random() < share:
            y[rows] = rng.permutation(y[rows])
    return RankingData(data.X, y, data.qid)


# name -> the part that is changed, and the function that changes it
CHANGES = {
    "queries": ("train", fewer),
    "labels": ("train", wrong_labels),
    "noisy-queries": ("train", wrong_queries),
    "validation": ("vali", fewer),
}
