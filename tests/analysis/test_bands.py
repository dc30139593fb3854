"""Bands of shapes."""

import numpy as np
import pytest

from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV, RankSVM, make_ranking
from ranksvm.analysis import shape_bands
from ranksvm.exceptions import DataError, OptionError


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=8, n_features=3, random_state=0)


def test_the_bands_are_quantiles_of_refits(data):
    model = AdditiveRankSVM(C=0.1, max_bins=8).fit(data.X, data.y, qid=data.qid)
    found = shape_bands(model, data.X, data.y, data.qid, n_refits=5, level=0.5, random_state=3)
    random, values = np.random.RandomState(3), []
    for _ in range(5):
        weights = random.standard_exponential(30)[data.queries.numbers()]
        refit = AdditiveRankSVM(C=0.1, max_bins=8, tol=1e-3).fit(data.X, data.y, qid=data.qid, query_weight=weights)
        values.append(refit.shapes()[1].values)
    np.testing.assert_allclose(found.values[1], np.quantile(values, [0.25, 0.75], axis=0))


def test_a_choosing_estimator_keeps_its_choice(data):
    model = AdditiveRankSVMCV([0.1], step_weights=[0.5], interactions=1, cv=2).fit(data.X, data.y, qid=data.qid)
    low, high = shape_bands(model, data.X, data.y, data.qid, n_refits=3).values[0]
    assert (low <= high).all()


def test_the_order_of_weighted_rows_does_not_matter(data):
    random = np.random.default_rng(0)
    weight, order = random.exponential(size=data.n_rows), random.permutation(data.n_rows)
    model = AdditiveRankSVM(C=0.1, max_bins=8).fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    shuffled = data.X[order], data.y[order], data.qid[order]
    assert len(shape_bands(model, *shuffled, sample_weight=weight[order], n_refits=2).values) == 3


def test_what_is_refused(data):
    model = AdditiveRankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    with pytest.raises(OptionError, match="needs an AdditiveRankSVM"):
        shape_bands(RankSVM(), data.X, data.y, data.qid)
    with pytest.raises(OptionError, match="level"):
        shape_bands(model, data.X, data.y, data.qid, level=2.0)
    with pytest.raises(DataError, match="one query"):
        shape_bands(model, data.X, data.y)
    with pytest.raises(DataError, match="pairs, but the model was fitted to"):
        shape_bands(model, data.X[:120], data.y[:120], data.qid[:120], n_refits=2)
    listed = AdditiveRankSVM(C=0.1).fit(data.X, pairs=[[0, 1], [3, 2]])
    with pytest.raises(DataError, match="fitted without pairs and event"):
        shape_bands(listed, data.X, data.y, data.qid, n_refits=2)
    with pytest.raises(DataError, match="other levels"):  # each level has the same share of the rows as before
        shape_bands(model, 2.0 * data.X, data.y, data.qid)
