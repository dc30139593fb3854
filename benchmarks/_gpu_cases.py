"""The data of `gpu.py`, with the shapes of Table 1 of Jin & Lin (NPC 2014), and the figures that this paper prints."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from _common import data_folder, read
from papers.jin_lin_2014 import PRINTED, Printed
from ranksvm import RankingData, make_ranking, metrics, regularization_path

SEED = 0
# Number of rows for training when C is chosen, and as many for validation.
CHOICE_ROWS = 30_000


@dataclass(frozen=True)
class Case:
    """A data set of the page.

    Parameters
    ----------
    name : str
        Name on the page.
    load : callable
        Gives the data.
    published : Printed or None
        The paper's figures for the data of this shape.
    real : bool
        Whether these are the paper's data, and not generated data of the same shape.
    """

    name: str
    load: Callable[[], RankingData]
    published: Printed | None
    real: bool = False


# Queries, smallest and largest number of documents of a query, features, levels (None: all labels of a query differ).
SHAPES = {
    "MQ2007-list": (1017, (194, 1268), 46, None),
    "MQ2008-list": (471, (465, 1831), 46, None),
    "MSLR-WEB10K": (6000, (1, 240), 136, 5),
    "MSLR-WEB30K": (18919, (1, 239), 136, 5),
    "MQ2007": (1017, (6, 77), 46, 3),
    "MQ2008": (471, (1, 40), 46, 3),
}
# Folders of the real data sets.
REAL = {"MQ2008": "MQ2008", "MQ2007": "MQ2007-partial"}
# Smallest first, because a run that is short of time leaves out the last ones.
ORDER = ("MQ2008", "MQ2007", "MQ2008-list", "MQ2007-list", "MSLR-WEB10K", "MSLR-WEB30K")


def cases(smoke: bool) -> list[Case]:
    """All cases, with generated data if the real data are absent; a smoke test has one tiny case."""
    if smoke:
        return [Case("tiny", lambda: make_ranking(12, 15, 6, random_state=SEED), PRINTED["MQ2008"])]
    found = []
    for name in ORDER:
        folder = data_folder()
        if name in REAL and folder is not None and (folder / REAL[name]).is_dir():
            found.append(Case(f"{REAL[name]} fold 1", lambda name=name: read(REAL[name]), PRINTED[name], real=True))
        else:
            found.append(Case(f"{name}'s shape, made", lambda name=name: made(name), PRINTED[name]))
    return found


def made(name: str) -> RankingData:
    """Generated data of a shape; lengths of lists are in a range with the paper's mean and, if possible, maximum."""
    n_queries, n_docs, n_features, n_levels = SHAPES[name]
    return make_ranking(n_queries, n_docs, n_features, n_levels=n_levels, random_state=SEED)


def chosen_cost(data: RankingData) -> float:
    """C with the best NDCG@10 on part of the queries, from a path on another part; scaled to all queries."""
    queries = np.unique(data.qid)
    per_query = max(1, round(CHOICE_ROWS * len(queries) / data.n_rows))
    n = max(1, min(per_query, len(queries) // 2))
    learn, judge = np.isin(data.qid, queries[:n]), np.isin(data.qid, queries[n : 2 * n])
    share, exponents = n / len(queries), np.arange(-24, 3, 2)
    chosen = {"qid": data.qid[learn], "Cs": 2.0**exponents / share, "tol": 1e-3}
    path = regularization_path(data.X[learn], data.y[learn], **chosen)
    X, y, qid = data.X[judge], data.y[judge], data.qid[judge]
    quality = [metrics.evaluate(y, X @ coef, qid, ["ndcg@10"])["ndcg@10"] for coef in path.coefs]
    return float(2.0 ** exponents[int(np.argmax(quality))])
