"""The intercept that tools for linear models ask for."""

import pytest
from sklearn.exceptions import NotFittedError

from ranksvm import PRanker, RankSVM, RankSVMCV, make_ranking


def test_it_is_zero_after_fit():
    data = make_ranking(n_queries=20, n_docs=10, n_features=4, random_state=0)
    for ranker in (RankSVM(), RankSVMCV(Cs=[0.1], cv=2), PRanker()):
        assert not hasattr(ranker, "intercept_")
        with pytest.raises(NotFittedError):
            _ = ranker.intercept_
        ranker.fit(data.X, data.y, qid=data.qid)
        assert ranker.intercept_ == 0.0
        assert "intercept_" not in vars(ranker)  # nor in model files
