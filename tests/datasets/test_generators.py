"""make_ranking and make_ranking_stream: size, levels, sparsity, noise and the weight vectors are as asked for."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm.datasets import generators, make_ranking, make_ranking_stream
from ranksvm.exceptions import OptionError


def test_sizes_and_types():
    data = make_ranking(7, 11, 3, random_state=0)
    assert data.X.shape == (77, 3)
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    assert data.qid.tolist() == [query for query in range(1, 8) for _ in range(11)]
    assert make_ranking(2, 2, 2, dtype=np.float64).X.dtype == np.float64
    sizes = make_ranking(300, (2, 9), 3, random_state=0).queries.sizes
    assert (sizes.min(), sizes.max()) == (2, 9)


def test_five_skewed_levels():
    y = make_ranking(500, 40, 5, random_state=0).y
    shares = np.bincount(y.astype(int)) / len(y)
    assert np.allclose(shares, 2.0 ** -np.arange(1, 6) / (1 - 2.0**-5), atol=1e-3)


@pytest.mark.parametrize("n_levels", [1, 2, 7, 50])
def test_uniform_levels(n_levels):
    y = make_ranking(500, 20, 5, n_levels=n_levels, level_probabilities="uniform", random_state=0).y
    assert np.allclose(np.bincount(y.astype(int), minlength=n_levels), len(y) / n_levels, atol=2)


def test_given_shares():
    y = make_ranking(100, 100, 5, n_levels=3, level_probabilities=[0.2, 0, 0.8], random_state=0).y
    assert np.bincount(y.astype(int)).tolist() == [2000, 0, 8000]


def test_distinct_labels():
    data = make_ranking(20, (1, 9), 5, n_levels=None, random_state=0)
    for _, rows in data.queries:
        assert sorted(data.y[rows]) == list(range(len(rows)))


@pytest.mark.parametrize("density", [1.0, 0.1])
@pytest.mark.parametrize("n_levels", [5, None])
def test_without_noise_the_weights_order_every_query(density, n_levels):
    data, coef = make_ranking(
        20, 30, 40, n_levels=n_levels, density=density, noise=0, dtype=np.float64, return_coef=True, random_state=0
    )
    scores = data.X @ coef
    for _, rows in data.queries:
        labels = data.y[rows][np.argsort(scores[rows], kind="stable")]
        assert (np.diff(labels) >= 0).all()


def test_noise_blurs_the_order_and_relevance_has_variance_one():
    data, coef = make_ranking(200, 50, 30, density=0.5, noise=2.0, return_coef=True, random_state=0)
    scores = data.X @ coef
    assert abs(scores.std() - 1) < 0.1
    assert 0.2 < np.corrcoef(scores, data.y)[0, 1] < 0.7


@pytest.mark.parametrize("density", [0.9, 0.5, 0.2, 0.01])
def test_density(density):
    X = make_ranking(100, 50, 100, density=density, random_state=0).X
    assert sp.issparse(X) == (density < 0.25)
    assert abs((X != 0).sum() / 500_000 - density) < 0.005
    if sp.issparse(X):
        X.check_format(full_check=True)
        assert X.has_canonical_format


@pytest.mark.parametrize("density", [1.0, 0.1])
def test_a_seed_gives_the_same_data_on_any_number_of_threads(density, monkeypatch):
    monkeypatch.setattr(generators, "_BLOCK_VALUES", 100)
    first = make_ranking(30, (1, 20), 7, density=density, random_state=5, n_jobs=1)
    for seed, n_jobs, same in ((5, 4, True), (6, 1, False)):
        other = make_ranking(30, (1, 20), 7, density=density, random_state=seed, n_jobs=n_jobs)
        assert (other.X.shape == first.X.shape and (other.X != first.X).sum() == 0) == same
        assert np.array_equal(other.y, first.y) == same
    state = np.random.RandomState(3)
    assert not np.array_equal(make_ranking(random_state=state).X, make_ranking(random_state=state).X)


def test_blocks_differ(monkeypatch):
    monkeypatch.setattr(generators, "_BLOCK_VALUES", 100)
    X = make_ranking(10, 10, 7, random_state=0).X
    assert len(np.unique(X[:, 0])) == len(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_queries": 0}, "n_queries must be a positive integer, got 0"),
        ({"n_features": 1.5}, "n_features must be a positive integer"),
        ({"n_docs": 0}, "n_docs must be a positive integer or a range"),
        ({"n_docs": (5, 2)}, "n_docs"),
        ({"n_levels": 0}, "n_levels must be None or a positive integer"),
        ({"level_probabilities": "steep"}, "level_probabilities must be 'skewed', 'uniform' or an array"),
        ({"level_probabilities": [0.5, 0.5]}, "level_probabilities must be 5 non-negative numbers that add up to 1"),
        ({"density": 0}, "density must be above 0 and at most 1"),
        ({"noise": -1}, "noise must be 0 or more"),
        ({"dtype": int}, "dtype must be"),
        ({"random_state": "seed"}, "random_state must be None, a whole number from 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(OptionError, match=message):
        make_ranking(**options)


# -- streams -----------------------------------------------------------------------------------------------------------


def test_stream_sizes_and_types():
    queries = list(make_ranking_stream(200, (2, 9), 3, random_state=0))
    assert [query.qid.tolist() for query in queries] == [[number + 1] * len(queries[number]) for number in range(200)]
    assert {len(query) for query in queries} == set(range(2, 10))
    assert {query.X.dtype for query in queries} == {np.dtype(np.float32)}
    assert next(make_ranking_stream(1, 2, 3, dtype=np.float64)).X.dtype == np.float64
    assert len(list(itertools.islice(make_ranking_stream(), 7))) == 7


def test_stream_levels():
    stream = make_ranking_stream(100, 1000, 5, n_levels=2, level_probabilities=[0.999, 0.001], random_state=0)
    relevant = sum(query.y.sum() for query in stream)
    assert 70 < relevant < 130
    for query in make_ranking_stream(5, 6, 3, n_levels=None, random_state=0):
        assert sorted(query.y) == list(range(6))


def test_stream_labels_follow_the_weights():
    for query, coef in make_ranking_stream(50, 20, 6, noise=0, drift="gradual", drift_queries=9, return_coef=True):
        assert np.linalg.norm(coef) == pytest.approx(1)
        assert (np.diff(query.y[np.argsort(query.X @ coef, kind="stable")]) >= 0).all()


def test_stream_weights_change_as_asked():
    def weights(drift):
        stream = make_ranking_stream(31, 2, 6, drift=drift, drift_queries=10, return_coef=True, random_state=0)
        return np.array([coef for _, coef in stream])

    assert (weights(None) == weights(None)[0]).all()
    sudden = weights("sudden")
    changes = np.flatnonzero((sudden[1:] != sudden[:-1]).any(axis=1)) + 1
    assert changes.tolist() == [10, 20, 30]
    gradual = weights("gradual")
    angles = np.arccos((gradual[1:] * gradual[:-1]).sum(axis=1)).reshape(3, 10)
    np.testing.assert_allclose(angles, np.repeat(angles[:, :1], 10, axis=1), rtol=1e-6)
    assert (angles.sum(axis=1) > 0.5).all()
    lone = make_ranking_stream(9, 4, 1, drift="gradual", drift_queries=2, return_coef=True, random_state=0)
    assert all(abs(coef[0]) == 1 for _, coef in lone)


def test_stream_seeds():
    first, second, third = (list(make_ranking_stream(5, 6, 3, drift="sudden", random_state=seed)) for seed in (0, 0, 1))
    assert all(
        np.array_equal(one.X, other.X) and np.array_equal(one.y, other.y)
        for one, other in zip(first, second, strict=True)
    )
    assert not np.array_equal(first[0].X, third[0].X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_queries": 0}, "n_queries must be a positive integer, got 0"),
        ({"drift_queries": 0}, "drift_queries must be a positive integer, got 0"),
        ({"drift": "slow"}, "drift must be None, 'sudden' or 'gradual', got 'slow'"),
        ({"n_docs": 0}, "n_docs"),
        ({"noise": -1}, "noise must be 0 or more"),
        ({"n_levels": 0}, "n_levels"),
        ({"random_state": -1}, "random_state must be None, a whole number from 0"),
    ],
)
def test_bad_options_of_streams(options, message):
    with pytest.raises(OptionError, match=message):
        make_ranking_stream(**options)
