"""Confidence intervals of the weights."""

import json
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from ranksvm import Preferences, RankSVM, RankSVMCV, make_ranking
from ranksvm.analysis import WeightIntervals, intervals, weight_intervals
from ranksvm.exceptions import DataError, NoComparablePairsError, NoIntervalsError, OptionError


@pytest.fixture
def data():
    return make_ranking(12, 10, 4, random_state=0)


class Logistic:
    """A smooth loss of the margin."""

    def value(self, margins):
        return np.logaddexp(0.0, -margins)

    def derivative(self, margins):
        return -1.0 / (1.0 + np.exp(margins))

    def curvature(self, margins):
        return 1.0 / (2.0 + np.exp(margins) + np.exp(-margins))


SLOPES = {
    "squared_hinge": lambda m: -2.0 * np.maximum(0.0, 1.0 - m),
    "huber": lambda m: -np.clip(1.0 - m, 0.0, 1.0),
    # for second derivatives: the hinge with its kink rounded between 0.5 and 1.5
    "hinge": lambda m: -np.clip(1.5 - m, 0.0, 1.0),
}


def listed(y, qid, sample_weight, query_weight):
    """Every pair of different labels: preferred row, other row, weight."""
    return [
        (i, j, sample_weight[i] * sample_weight[j] * query_weight[i])
        for i in range(len(y))
        for j in range(len(y))
        if qid[i] == qid[j] and y[i] > y[j]
    ]


def explicit_errors(X, qid, pairs, w, C, slope, beta=None):
    """Standard errors and interaction from explicit pairs, with Hessians by central differences of gradients."""
    ids = sorted({qid[i] for i, _, _ in pairs})
    n, d = len(ids), X.shape[1]

    def gradient(query, at):
        total = np.zeros(d)
        for i, j, weight in pairs:
            if qid[i] == query:
                total += C * weight * slope(np.array([(X[i] - X[j]) @ at]))[0] * (X[i] - X[j])
        return total

    def hessian(query):
        step = 1e-6
        ends = [(gradient(query, w + step * e), gradient(query, w - step * e)) for e in np.eye(d)]
        return np.stack([(after - before) / (2 * step) for after, before in ends])

    def score(query):
        return gradient(query, w) if beta is None else -X[qid == query].T @ beta[qid == query]

    parts = {query: hessian(query) for query in ids}
    whole = np.eye(d) + sum(parts.values())
    change = {query: np.linalg.solve(whole - parts[query], score(query)) for query in ids}
    carry = {query: np.linalg.solve(whole - parts[query], parts[query]) for query in ids}
    changes = np.array(list(change.values()))
    variance = (n - 1) / n * np.sum((changes - changes.mean(axis=0)) ** 2, axis=0)
    both = sum(np.sum((carry[q] @ change[r] + carry[r] @ change[q]) ** 2) for q, r in combinations(ids, 2))
    interaction = both / variance.sum()
    return np.sqrt(variance / (1.0 + interaction)), interaction


@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "hinge", "logistic"])
@pytest.mark.parametrize("n_features", [3, 90])
def test_errors_are_those_of_explicit_pairs(loss, n_features):
    """Fewer rows than features, and more; queries longer than there are features, and shorter; one without pairs."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(7), [4, 9, 6, 3, 8, 5, 6])
    X, y = rng.normal(size=(len(qid), n_features)), rng.integers(3, size=len(qid))
    y[qid == 3] = 1
    weights = {"sample_weight": rng.uniform(0.5, 1.5, len(y)), "query_weight": rng.uniform(0.5, 1.5, 7)[qid]}
    tol = 1e-6 if loss == "hinge" else 1e-10
    model = RankSVM(C=0.02, loss=Logistic() if loss == "logistic" else loss, tol=tol)
    found = weight_intervals(model, X, y, qid, tol=tol, **weights)
    beta = model.fit(X, y, qid=qid, **weights).dual_coef(X, y, qid, **weights).per_document()
    slope = Logistic().derivative if loss == "logistic" else SLOPES[loss]
    errors, interaction = explicit_errors(X, qid, listed(y, qid, **weights), found.coef, 0.02, slope, beta)
    assert found.n_queries == 6
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-4)
    assert found.interaction == pytest.approx(interaction, rel=1e-4)


def test_pairs_that_are_listed_belong_to_their_query(data):
    """Two components of a query are one sampling unit."""
    pairs = np.array([[0, 1], [3, 2], [4, 2], [14, 11], [25, 21], [33, 38], [43, 42]])
    found = weight_intervals(RankSVM(C=0.5), data.X, None, data.qid, tol=1e-10, pairs=pairs)
    with_weights = [(i, j, 1.0) for i, j in pairs]
    errors, _ = explicit_errors(data.X, data.qid, with_weights, found.coef, 0.5, SLOPES["squared_hinge"])
    assert found.n_queries == 5
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-5)


@pytest.mark.parametrize("listed", [False, True])
def test_queries_of_weight_0_are_no_observations(listed):
    data = make_ranking(20, 6, 3, random_state=0)
    weight = np.where(data.qid % 4 == 0, 0.0, 1.0)
    pairs = 6 * np.arange(20)[:, np.newaxis] + [0, 1]
    heavy = weight[pairs[:, 0]] > 0.0
    given = {"pairs": pairs, "pair_weight": 1.0 * heavy} if listed else {"y": data.y, "query_weight": weight}
    found = weight_intervals(RankSVM(C=0.1), data.X, qid=data.qid, **given)
    kept = weight > 0.0
    X, y, qid = data.X[kept], data.y[kept], data.qid[kept]
    given, X, qid = ({"pairs": pairs[heavy]}, data.X, data.qid) if listed else ({"y": y}, X, qid)
    expected = weight_intervals(RankSVM(C=0.1), X, qid=qid, **given)
    assert found.n_queries == expected.n_queries == 15
    np.testing.assert_allclose(found.standard_errors, expected.standard_errors, rtol=1e-5)
    with pytest.raises(NoIntervalsError, match="1 query has pairs"):
        weight_intervals(RankSVM(), data.X, data.y, data.qid, query_weight=1.0 * (data.qid == data.qid[0]))


@pytest.mark.parametrize("n_features", [5, 80])
def test_storage_and_a_constant_do_not_matter(n_features):
    data = make_ranking(8, 9, n_features, random_state=1)
    given = (data.y, data.qid)
    plain = weight_intervals(RankSVM(C=0.01), data.X, *given).standard_errors
    sparse = weight_intervals(RankSVM(C=0.01), sp.csr_matrix(data.X + 50.0), *given).standard_errors
    single = weight_intervals(RankSVM(C=0.01), data.X.astype(np.float32), *given).standard_errors
    np.testing.assert_allclose(sparse, plain, rtol=1e-5)
    np.testing.assert_allclose(single, plain, rtol=1e-4)
    order = np.random.default_rng(0).permutation(len(data.y))
    moved = weight_intervals(RankSVM(C=0.01), data.X[order], data.y[order], data.qid[order]).standard_errors
    np.testing.assert_allclose(moved, plain, rtol=1e-5)


def test_a_sample_of_the_pairs_of_queries_is_enough(monkeypatch):
    data = make_ranking(60, 6, 20, random_state=0)
    whole = weight_intervals(RankSVM(C=0.1), data.X, data.y, data.qid)
    monkeypatch.setattr(intervals, "PAIR_NUMBERS", 30**2 * 20)
    part = weight_intervals(RankSVM(C=0.1), data.X, data.y, data.qid)
    assert part.interaction == pytest.approx(whole.interaction, rel=0.3)
    assert part.interaction != whole.interaction
    np.testing.assert_allclose(part.standard_errors, whole.standard_errors, rtol=0.05)


def draw(n_queries, n_features, seed):
    """Queries of a population with tastes of their own."""
    taste = np.random.default_rng(0).normal(size=n_features) / np.sqrt(n_features)
    rng = np.random.default_rng([1, seed])
    X = rng.normal(size=(n_queries * 8, n_features))
    qid = np.repeat(np.arange(n_queries), 8)
    own = taste + 0.5 * rng.normal(size=(n_queries, n_features)) / np.sqrt(n_features)
    y = np.sum(X * own[qid], axis=1) + rng.normal(size=len(X))
    return X, np.digitize(y, [-0.5, 1.0]), qid


def coverage(n_queries, n_features, C, n_sets, loss="squared_hinge"):
    """Share of the 95 % intervals that contain the mean of the fits."""
    given = [
        weight_intervals(RankSVM(C=C, loss=loss), *draw(n_queries, n_features, seed), tol=1e-6, n_jobs=1)
        for seed in range(n_sets)
    ]
    mean = np.mean([found.coef for found in given], axis=0)
    return np.mean([(low <= mean) & (mean <= high) for low, high in (found.interval() for found in given)])


@pytest.mark.parametrize(("n_queries", "n_features", "C"), [(50, 4, 0.1), (40, 60, 0.1), (20, 300, 0.001)])
def test_intervals_cover_the_mean_of_fits(n_queries, n_features, C):
    assert 0.92 <= coverage(n_queries, n_features, C, 40) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "hinge"])
@pytest.mark.parametrize(
    ("n_queries", "n_features", "C"), [(100, 15, 0.01), (100, 136, 0.1), (60, 400, 0.001), (50, 1000, 0.001)]
)
def test_intervals_cover_the_mean_of_more_fits(n_queries, n_features, C, loss):
    assert 0.92 <= coverage(n_queries, n_features, C, 100, loss) <= 0.97


def test_fits_of_nearly_everything_are_refused():
    X, y, qid = draw(30, 130, 0)
    message = r"30 queries so closely .* Use a smaller C than 10, fewer features, or more queries"
    with pytest.raises(NoIntervalsError, match=message):
        weight_intervals(RankSVM(C=10.0), X, y, qid)


def test_intervals_and_signs_by_hand():
    found = WeightIntervals(np.array([2.5, -1.0, 0.0]), np.array([1.0, 0.5, 0.0]), 5, 0.9, 1e-6, 0.25)
    half = stats.t.ppf(0.95, 4) * found.standard_errors
    np.testing.assert_allclose(found.interval(), [found.coef - half, found.coef + half])
    assert (np.diff(found.interval(0.99), axis=0) >= np.diff(found.interval(), axis=0)).all()
    assert found.excludes_zero().tolist() == [True, False, False]
    assert found.excludes_zero(0.5).tolist() == [True, True, False]
    document = json.loads(json.dumps(found.to_dict(2)))
    assert [item["column"] for item in document["features"]] == [0, 1]
    assert [item["excludes_zero"] for item in document["features"]] == [True, False]
    assert (document["n_queries"], document["interaction"]) == (5, 0.25)
    with pytest.raises(OptionError, match="level must be"):
        found.interval(95)


def test_names_and_text(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=list("abcd")).assign(query=data.qid)
    found = weight_intervals(RankSVM(), frame, data.y, "query")
    assert list(found.feature_names) == list("abcd")
    assert {item["name"] for item in found.to_dict()["features"]} == set("abcd")
    assert "Weights, 12 queries, intervals at level 0.95" in repr(found)
    wide = WeightIntervals(np.arange(12.0), np.ones(12), 3)
    assert "2 more" in repr(wide)


def test_the_column_of_ids_of_the_model_is_no_feature(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=list("abcd")).assign(query=data.qid)
    model = RankSVM().fit(frame, data.y, qid="query")
    expected = weight_intervals(RankSVM(), data.X, data.y, data.qid).interval()
    for X, qid in ((frame, None), (frame, data.qid), (frame.assign(session=data.qid), "session")):
        np.testing.assert_array_equal(weight_intervals(model, X, data.y, qid).interval(), expected)


def test_the_chosen_c_and_a_scaler_stay_as_they_are(data):
    given = (data.X, data.y, data.qid)
    chosen = RankSVMCV(Cs=[0.01, 0.1], cv=2).fit(data.X, data.y, qid=data.qid)
    found, plain = weight_intervals(chosen, *given), weight_intervals(RankSVM(C=chosen.C_), *given)
    np.testing.assert_array_equal(found.standard_errors, plain.standard_errors)
    model = make_pipeline(StandardScaler(), RankSVM(C=0.1)).fit(data.X, data.y)
    plain = weight_intervals(RankSVM(C=0.1), model[0].transform(data.X), *given[1:])
    np.testing.assert_array_equal(weight_intervals(model, *given).standard_errors, plain.standard_errors)


def test_blas_and_the_model_are_left_as_they_were(data):
    model = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    before, threads = model.coef_.copy(), [pool["num_threads"] for pool in threadpool_info()]
    found = weight_intervals(model, data.X, data.y, data.qid)
    np.testing.assert_array_equal(model.coef_, before)
    assert [pool["num_threads"] for pool in threadpool_info()] == threads
    assert model.get_params() == RankSVM(C=0.1).get_params()
    assert found.solver_error < 1e-2 * found.standard_errors.min()


def test_signs(data):
    free = weight_intervals(RankSVM(C=0.1), data.X, data.y, data.qid)
    signs = np.sign(free.coef).astype(int)
    same = weight_intervals(RankSVM(C=0.1, monotone=signs), data.X, data.y, data.qid)
    np.testing.assert_allclose(same.standard_errors, free.standard_errors, rtol=1e-3)
    with pytest.raises(NoIntervalsError, match="of 4 weights are 0 because monotone does not admit"):
        weight_intervals(RankSVM(C=0.1, monotone=-signs), data.X, data.y, data.qid)


@pytest.mark.filterwarnings("ignore::ranksvm.exceptions.UninformativeWarning")
@pytest.mark.parametrize("n_features", [2, 40])
def test_features_that_separate_nothing_have_weights_0_for_sure(n_features):
    y, qid = np.tile([0, 1, 2], 4), np.repeat(np.arange(4), 3)
    found = weight_intervals(RankSVM(), np.ones((12, n_features)), y, qid)
    assert not found.coef.any()
    assert not found.standard_errors.any()
    X = np.random.default_rng(0).normal(size=(12, n_features))
    X[:, 0] = 3.0
    assert (weight_intervals(RankSVM(C=0.01), X, y, qid).standard_errors > 1e-9).tolist() == [False] + [True] * (
        n_features - 1
    )


def test_too_little_memory(data, monkeypatch):
    monkeypatch.setattr(intervals, "memory_bytes", lambda limit: 100)
    with pytest.raises(NoIntervalsError, match=r"4 features from 120 rows need .* give a sample of the queries"):
        weight_intervals(RankSVM(), data.X, data.y, data.qid)


def test_errors(data):
    with pytest.raises(OptionError, match="level must be"):
        weight_intervals(RankSVM(), data.X, data.y, data.qid, level=95)
    with pytest.raises(OptionError, match="tol must be"):
        weight_intervals(RankSVM(), data.X, data.y, data.qid, tol=0)
    with pytest.raises(OptionError, match="a linear or additive ranker"):
        weight_intervals(StandardScaler(), data.X, data.y, data.qid)
    with pytest.raises(NoIntervalsError, match=r"all rows belong to one query.* several queries: give qid\."):
        weight_intervals(RankSVM(), data.X, data.y)
    with pytest.raises(NoIntervalsError, match=r"all rows belong to one query.* several queries\.$"):
        weight_intervals(RankSVM(), data.X, data.y, np.zeros(len(data.y)))
    with pytest.raises(NoIntervalsError, match="1 query has pairs"):
        weight_intervals(RankSVM(), data.X, np.arange(120) == 0, data.qid)
    with pytest.raises(ValueError, match="not fitted"):
        weight_intervals(RankSVMCV(), data.X, data.y, data.qid)
    with pytest.raises(NoComparablePairsError):
        weight_intervals(RankSVM(), data.X, np.ones(len(data.y)), data.qid)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_preferences_are_their_rows_and_pairs(loss):
    random = np.random.default_rng(0)
    chosen, rejected = random.normal(0.3, 1.0, (60, 3)), random.normal(0.0, 1.0, (60, 3))
    prompt, weight = np.array([f"prompt {i // 3}" for i in range(60)]), random.uniform(0.5, 2.0, 60)
    data = Preferences(chosen, rejected, prompt=prompt, weight=weight).taken(np.arange(6, 60))
    model = RankSVM(C=0.1, loss=loss)
    found = weight_intervals(model, data)
    given = {"pairs": data.pairs, "pair_weight": data.weight}
    expected = weight_intervals(model, np.concatenate([chosen[6:], rejected[6:]]), qid=np.tile(prompt[6:], 2), **given)
    assert found.n_queries == expected.n_queries == 18
    np.testing.assert_array_equal(found.coef, expected.coef)
    np.testing.assert_array_equal(found.standard_errors, expected.standard_errors)
    with pytest.raises(DataError, match=r"Preferences\(..., prompt=...\)"):
        weight_intervals(model, data, qid=data.qid)
