"""Bootstrap intervals of the weights."""

import json
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from ranksvm import RankSVM, RankSVMCV, make_ranking
from ranksvm.analysis import BootstrapWeights, bootstrap_weights
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError


@pytest.fixture
def data():
    return make_ranking(12, 10, 4, random_state=0)


def explicit_refits(data, seed, n_resamples, C, sample_weight=None, query_weight=None):
    """The rows of the queries drawn, copied as often as drawn, each copy a query of its own."""
    ids = np.unique(data.qid)
    v = np.ones(len(data.y)) if sample_weight is None else sample_weight
    u = np.ones(len(data.y)) if query_weight is None else query_weight
    coefs = []
    for each in np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n_resamples):
        drawn = np.random.default_rng(each).integers(len(ids), size=len(ids))
        rows = [np.flatnonzero(data.qid == ids[query]) for query in drawn]
        qid = np.repeat(np.arange(len(drawn)), [len(part) for part in rows])
        rows = np.concatenate(rows)
        fit = RankSVM(C=C, tol=1e-12).fit(
            data.X[rows], data.y[rows], qid=qid, sample_weight=v[rows], query_weight=u[rows]
        )
        coefs.append(fit.coef_)
    return np.array(coefs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_samples_are_the_fits_to_the_rows_drawn(data, weighted, sparse):
    weights = {}
    if weighted:
        rng = np.random.default_rng(0)
        numbers = data.queries.numbers()
        weights = {"sample_weight": rng.uniform(size=len(data.y)), "query_weight": rng.uniform(size=12)[numbers]}
    X = sp.csr_matrix(data.X) if sparse else data.X
    found = bootstrap_weights(
        RankSVM(C=0.1), X, data.y, data.qid, n_resamples=5, tol=1e-12, random_state=3, n_jobs=1, **weights
    )
    np.testing.assert_allclose(found.samples, explicit_refits(data, 3, 5, 0.1, **weights), atol=1e-6)
    full = RankSVM(C=0.1, tol=1e-12).fit(data.X, data.y, qid=data.qid, **weights)
    np.testing.assert_allclose(found.coef, full.coef_, atol=1e-6)
    assert found.solver_error < 1e-4


def test_the_seed_decides_and_the_number_of_threads_does_not(data):
    given = (RankSVM(C=0.1), data.X, data.y, data.qid)
    one, three, other = (
        bootstrap_weights(*given, n_resamples=12, random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((5, 1), (5, 3), (6, 1))
    )
    np.testing.assert_array_equal(one.samples, three.samples)
    np.testing.assert_array_equal(one.coef, three.coef)
    assert (one.samples != other.samples).any()
    assert len(np.unique(one.samples[:, 0])) == 12


def test_blas_and_the_model_are_left_as_they_were(data):
    model = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    before, threads = model.coef_.copy(), [pool["num_threads"] for pool in threadpool_info()]
    bootstrap_weights(model, data.X, data.y, data.qid, n_resamples=20, n_jobs=4)
    np.testing.assert_array_equal(model.coef_, before)
    assert [pool["num_threads"] for pool in threadpool_info()] == threads
    assert model.get_params() == RankSVM(C=0.1).get_params()


def test_refits_start_from_the_full_fit(data, monkeypatch):
    iterations = []
    fit = RankSVM.fit

    def counted(self, *arguments, **options):
        fitted = fit(self, *arguments, **options)
        iterations.append((self.n_iter_, threading.current_thread().name))
        return fitted

    monkeypatch.setattr(RankSVM, "fit", counted)
    # the same query over and over: every resample weighs like the whole
    rows = np.tile(np.arange(10), 12)
    bootstrap_weights(RankSVM(C=0.1), data.X[rows], data.y[rows], data.qid, n_resamples=4)
    assert iterations[0][0] > 0
    assert [n for n, _ in iterations[1:]] == [0] * 4


def test_intervals_cover_what_they_are_to_cover():
    """Queries of a population with tastes of their own: how often do 90 % intervals hold the population's weights?"""
    taste = np.array([1.0, -0.5, 0.25, 0.0])

    def draw(n_queries, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n_queries * 8, 4))
        qid = np.repeat(np.arange(n_queries), 8)
        y = np.sum(X * (taste + 0.5 * rng.normal(size=(n_queries, 4)))[qid], axis=1) + rng.normal(size=len(X))
        return X, np.digitize(y, [-0.5, 1.0]), qid

    X, y, qid = draw(5000, 0)
    population = RankSVM(C=1e-3, tol=1e-8).fit(X, y, qid=qid).coef_
    covered = []
    for seed in range(1, 31):
        X, y, qid = draw(50, seed)
        found = bootstrap_weights(RankSVM(C=0.1), X, y, qid, n_resamples=60, random_state=seed)
        low, high = found.interval(0.9)
        covered.append((low <= population) & (population <= high))
    assert 0.8 <= np.mean(covered) <= 0.97


def test_intervals_errors_and_signs_by_hand():
    samples = np.array([[1.0, -1.0, 0.0], [2.0, 1.0, 0.0], [3.0, -2.0, 0.0], [4.0, -3.0, 0.0], [5.0, -4.0, 0.0]])
    found = BootstrapWeights(np.array([2.5, -1.0, 0.0]), samples, 0.5, 1e-6)
    low, high = found.interval()
    np.testing.assert_allclose([low, high], [[2, -3, 0], [4, -1, 0]])
    np.testing.assert_allclose(found.interval(method="basic"), [[1, -1, 0], [3, 1, 0]])
    np.testing.assert_allclose(found.interval(0.999999)[0], [1, -4, 0], atol=1e-5)
    np.testing.assert_allclose(found.standard_errors, samples.std(axis=0, ddof=1))
    assert found.sign_stability.tolist() == [1.0, 0.8, 1.0]
    document = json.loads(json.dumps(found.to_dict(2)))
    assert [item["column"] for item in document["features"]] == [0, 1]
    assert document["features"][1]["sign_stability"] == 0.8
    assert document["n_resamples"] == 5
    with pytest.raises(OptionError, match="method must be one of 'percentile', 'basic', got 'bca'"):
        found.interval(method="bca")
    with pytest.raises(OptionError, match="level must be"):
        found.interval(95)


def test_names_and_text(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=list("abcd")).assign(query=data.qid)
    found = bootstrap_weights(RankSVM(), frame, data.y, "query", n_resamples=3)
    assert list(found.feature_names) == list("abcd")
    assert {item["name"] for item in found.to_dict()["features"]} == set("abcd")
    assert "3 resamples" in repr(found)
    wide = BootstrapWeights(np.arange(12.0), np.zeros((1, 12)), 0.95, 0.0)
    assert "2 more" in repr(wide)
    assert not wide.standard_errors.any()


def test_the_chosen_c_and_a_scaler_stay_as_they_are(data):
    chosen = RankSVMCV(Cs=[0.01, 0.1], cv=2).fit(data.X, data.y, qid=data.qid)
    found = bootstrap_weights(chosen, data.X, data.y, data.qid, n_resamples=3, random_state=0)
    plain = bootstrap_weights(RankSVM(C=chosen.C_), data.X, data.y, data.qid, n_resamples=3, random_state=0)
    np.testing.assert_array_equal(found.samples, plain.samples)
    model = make_pipeline(StandardScaler(), RankSVM(C=0.1)).fit(data.X, data.y)
    found = bootstrap_weights(model, data.X, data.y, data.qid, n_resamples=3, random_state=0)
    scaled = model[0].transform(data.X)
    plain = bootstrap_weights(RankSVM(C=0.1), scaled, data.y, data.qid, n_resamples=3, random_state=0)
    np.testing.assert_array_equal(found.samples, plain.samples)


def test_further_arguments_reach_fit(data):
    pairs = np.array([[0, 1], [3, 2], [14, 11], [25, 21], [33, 38]])
    found = bootstrap_weights(RankSVM(), data.X, None, data.qid, n_resamples=4, tol=1e-10, pairs=pairs)
    fit = RankSVM(tol=1e-10).fit(data.X, qid=data.qid, pairs=pairs)
    np.testing.assert_allclose(found.coef, fit.coef_, atol=1e-4)
    assert len(np.unique(found.samples[:, 0])) > 1


def test_a_resample_without_pairs_has_weights_0():
    X, y, group = np.arange(4.0)[:, None], [0, 1, 1, 1], [2, 2]
    found = bootstrap_weights(RankSVM(), X, y, group=group, n_resamples=30, random_state=0)
    assert (found.samples == 0).any()
    assert (found.samples > 0).any()


def test_errors(data):
    with pytest.raises(OptionError, match="n_resamples must be"):
        bootstrap_weights(RankSVM(), data.X, data.y, data.qid, n_resamples=0)
    with pytest.raises(OptionError, match="level must be"):
        bootstrap_weights(RankSVM(), data.X, data.y, data.qid, level=95)
    with pytest.raises(OptionError, match="tol must be"):
        bootstrap_weights(RankSVM(), data.X, data.y, data.qid, tol=0)
    with pytest.raises(OptionError, match="a linear ranker"):
        bootstrap_weights(StandardScaler(), data.X, data.y, data.qid)
    with pytest.raises(DataError, match="all rows belong to one query"):
        bootstrap_weights(RankSVM(), data.X, data.y)
    with pytest.raises(ValueError, match="not fitted"):
        bootstrap_weights(RankSVMCV(), data.X, data.y, data.qid)
    with pytest.raises(NoComparablePairsError):
        bootstrap_weights(RankSVM(), data.X, np.ones(len(data.y)), data.qid)
