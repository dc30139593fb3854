"""A user's script that uses most public classes; tests run it, and check it with mypy --strict and pyright."""

import tempfile
from pathlib import Path
from typing import assert_type

import numpy as np

import ranksvm
from ranksvm import (
    FactorizedRankSVM,
    KernelRankSVM,
    KernelRankSVMCV,
    PairwisePerceptronRanker,
    PerceptronCommitteeRanker,
    PRanker,
    QueryKFold,
    RankingData,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SOLARRanker,
    cross_validate,
    make_ranking,
    metrics,
    regularization_path,
)
from ranksvm.exceptions import RankSVMError


def best_of_the_first_query(ranker: RankSVM, data: RankingData) -> int:
    """The row that is ranked first."""
    rows = ranker.rank(data.X, data.qid)
    return int(rows[1][0])


def main() -> None:
    """Fit every model, evaluate it, save it, and load it."""
    data = make_ranking(n_queries=12, n_docs=8, n_features=4, random_state=0)
    assert_type(data, RankingData)
    assert_type(data.select(data.qid < 9), RankingData)

    ranker = RankSVM(C=0.01, loss="hinge").fit(
        data.X, data.y, qid=data.qid, eval_set=[(data.X, data.y)], eval_qid=[data.qid]
    )
    assert_type(ranker, RankSVM)
    assert_type(ranker.converged_, bool)
    assert_type(ranker.duality_gap_ / ranker.objective_, float)
    assert_type(ranker.n_pairs_ + ranker.n_iter_, int)
    assert_type(ranker.status_, str)
    scores = ranker.predict(data.X)
    assert_type(scores, np.ndarray)
    assert_type(ranker.coef_, np.ndarray)
    assert_type(ranker.feature_importances_, np.ndarray)
    print(best_of_the_first_query(ranker, data), ranker.score(data.X, data.y, qid=data.qid))

    chosen = RankSVMCV(Cs=[0.01, 0.1], cv=QueryKFold(3)).fit(data.X, data.y, qid=data.qid)
    assert_type(chosen, RankSVMCV)
    assert_type(chosen.C_, float)
    assert_type(chosen.best_iteration_, int)
    kernel = KernelRankSVM(gamma=0.1).fit(data.X, data.y, qid=data.qid)
    assert_type(kernel, KernelRankSVM)
    print(chosen.best_score_, kernel.dual_coef_.shape, kernel.prune(0.1).n_dropped)
    assert_type(KernelRankSVMCV([0.1], [0.1], cv=2).fit(data.X, data.y, qid=data.qid), KernelRankSVMCV)
    factorized = FactorizedRankSVM(C=0.1, random_state=0).fit(data.X, data.y, qid=data.qid)
    assert_type(factorized, FactorizedRankSVM)
    assert_type(RegularizedRankSVM(C=0.1).fit(data.X, data.y, qid=data.qid), RegularizedRankSVM)

    online = SOLARRanker(order=2).partial_fit(data.X, data.y, qid=data.qid).snapshot()
    assert_type(online, SOLARRanker)
    for other in (PRanker(), PairwisePerceptronRanker(), PerceptronCommitteeRanker()):
        print(other.fit(data.X, data.y, qid=data.qid).n_updates_)

    result = metrics.evaluate(data.y, scores, data.qid, ["ndcg@10", "map"])
    assert_type(result["map"], float)
    folds = cross_validate(ranker, data.X, data.y, qid=data.qid, cv=3)
    path = regularization_path(data.X, data.y, qid=data.qid, Cs=[0.01])
    print(folds, path.coefs.shape, ranksvm.__version__)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.rsvm"
        ranksvm.save(ranker, file)
        try:
            print(ranksvm.load(file).predict(data.X).shape)
        except RankSVMError as error:
            print(error)


if __name__ == "__main__":
    main()
