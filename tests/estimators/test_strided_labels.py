"""Labels that are a column of a table or otherwise not contiguous, as y of every estimator."""

import numpy as np
import pandas as pd
import pytest

from ranksvm import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    FactorizedRankSVM,
    KernelRankSVM,
    PairwisePerceptronRanker,
    PerceptronCommitteeRanker,
    PRanker,
    RankingData,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SOLARRanker,
    make_ranking,
    regularization_path,
)

DATA = make_ranking(n_queries=12, n_docs=6, n_features=3, random_state=0)
TABLE = np.column_stack([DATA.y, DATA.X])

MODELS = [
    RankSVM(),
    RankSVMCV(Cs=[0.1, 1.0], cv=3),
    AdditiveRankSVM(),
    AdditiveRankSVMCV(Cs=[0.1, 1.0], cv=3),
    KernelRankSVM(),
    FactorizedRankSVM(random_state=0),
    RegularizedRankSVM(),
    SOLARRanker(random_state=0),
    PRanker(random_state=0),
    PairwisePerceptronRanker(random_state=0),
    PerceptronCommitteeRanker(random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_column_of_a_table(model):
    expected = model.fit(DATA.X, DATA.y, qid=DATA.qid).predict(DATA.X)
    y = TABLE[:, 0]
    assert not y.flags.c_contiguous
    assert (model.fit(DATA.X, y, qid=DATA.qid).predict(DATA.X) == expected).all()


def test_labels_in_other_containers():
    expected = RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid).coef_
    column = pd.DataFrame(TABLE, columns=["label", "a", "b", "c"])["label"]
    for y in (column, TABLE[:, :1][:, 0], TABLE[:, 0].astype(np.float32)[::-1].copy()[::-1]):
        assert (RankSVM().fit(DATA.X, y, qid=DATA.qid).coef_ == expected).all()
    assert (RankSVM().fit(RankingData(DATA.X, TABLE[:, 0], DATA.qid)).coef_ == expected).all()


def test_a_path_and_one_query_at_a_time():
    expected, found = (regularization_path(DATA.X, y, qid=DATA.qid, Cs=[0.1, 1.0]) for y in (DATA.y, TABLE[:, 0]))
    assert (found.coefs == expected.coefs).all()
    expected, found = (SOLARRanker(random_state=0).learn_one_query(DATA.X[:6], y[:6]) for y in (DATA.y, TABLE[:, 0]))
    assert (found.coef_ == expected.coef_).all()
