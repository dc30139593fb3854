"""A small log of two rankers, for tests of what it teaches."""

import pytest

from ranksvm import make_ranking
from ranksvm.clicks import PositionBias, simulate_clicks


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=7, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def log(data):
    # documents shown by an ascending and a descending feature: both ends are seen
    return simulate_clicks(data, {"a": data.X[:, 0], "b": -data.X[:, 1]}, 3_000, n_ranks=5, random_state=0)


@pytest.fixture(scope="module")
def bias():
    return PositionBias.power(5)
