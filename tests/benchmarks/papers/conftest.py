"""A folder of tiny data sets that have the names of the published data sets."""

import numpy as np
import pytest

from papers.data_sets import Sources
from papers.items import Context, Settings
from ranksvm import make_ranking, write_letor


def write_fold(folder, seed, n_features=6):
    folder.mkdir(parents=True)
    for number, (part, n_queries) in enumerate((("train", 12), ("vali", 8), ("test", 8))):
        data = make_ranking(n_queries, (6, 10), n_features, n_levels=3, noise=1.0, random_state=10 * seed + number)
        qid = data.qid + 1000 * seed + 100 * number
        data.docid = np.array([f"D{row % 40}" for row in range(data.n_rows)])
        write_letor(folder / f"{part}.txt", data.X, data.y, qid=qid, docid=data.docid)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """MQ2008 and OHSUMED with two folds, MQ2007-partial and MQ2007-list with one."""
    folder = tmp_path_factory.mktemp("tiny")
    for number, (name, n_folds) in enumerate(
        (("MQ2008", 2), ("OHSUMED", 2), ("MQ2007-partial", 1), ("MQ2007-list", 1))
    ):
        for fold in range(1, n_folds + 1):
            write_fold(folder / name / f"Fold{fold}", 10 * number + fold)
    return folder


@pytest.fixture
def context(tiny):
    """Quick settings on tiny data."""
    return Context(Sources(tiny), Settings(quick=True))
