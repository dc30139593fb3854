"""A small log of two rankers, for tests of learning from clicks."""

import pytest

from ranksvm import make_ranking
from ranksvm.clicks import PositionBias, simulate_clicks


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=7, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def log(data):
    # one ranker sorts by a feature, the other by a negated feature, so that users see documents from both ends
    return simulate_clicks(data, {"a": data.X[:, 0], "b": -data.X[:, 1]}, 3_000, n_ranks=5, random_state=0)


@pytest.fixture(scope="module")
def bias():
    return PositionBias.power(5)
