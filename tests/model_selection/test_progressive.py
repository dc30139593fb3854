"""progressive_validation against a plain loop: rank, measure, learn, query by query."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ranksvm import (
    PerceptronCommitteeRanker,
    RankingData,
    RankSVM,
    Refit,
    SOLARRanker,
    make_ranking,
    metrics,
    progressive_validation,
)
from ranksvm.exceptions import DataError, OptionError
from ranksvm.model_selection import progressive

METRICS = ["ndcg@3", "map", "pairwise_accuracy", "err"]


@pytest.fixture(scope="module")
def data():
    made = make_ranking(40, (1, 12), 6, n_levels=3, random_state=0)
    return made.select(np.random.default_rng(0).permutation(made.n_rows))


def plain_loop(model, data, order, convention="default"):
    """Values and cumulative means after each query, shape (n_metrics, n_queries) each."""
    values, running, y, scores, qid = [], [], [], [], []
    for query in order:
        rows = data.queries.rows(query)
        scores.append(model.predict(data.X[rows]) if values else np.zeros(len(rows)))
        y.append(data.y[rows])
        qid.append(data.qid[rows])
        parts = [np.concatenate(part) for part in (y, scores, qid)]
        found = metrics.evaluate(*parts, METRICS, convention=convention, max_label=2.0)
        values.append([found.per_query[name][-1] for name in METRICS])
        running.append([found.means[name] for name in METRICS])
        model.partial_fit(data.X[rows], data.y[rows])
    return np.array(values).T, np.array(running).T


@pytest.mark.parametrize("convention", ["default", "letor"])
@pytest.mark.parametrize("timing", [False, True])
def test_is_the_plain_loop(data, convention, timing, monkeypatch):
    monkeypatch.setattr(progressive, "_QUERIES", 7)
    monkeypatch.setattr(progressive, "_ROWS", 50)
    result = progressive_validation(
        SOLARRanker(C=0.01, random_state=0),
        data,
        metrics=METRICS,
        convention=convention,
        n_orders=3,
        timing=timing,
        random_state=4,
    )
    random = np.random.RandomState(4)
    for number in range(3):
        order = random.permutation(40)
        model = SOLARRanker(C=0.01, random_state=0)
        values, running = plain_loop(model, data, order, convention)
        for place, name in enumerate(METRICS):
            np.testing.assert_allclose(result.per_query[name][number], values[place], atol=1e-12)
            np.testing.assert_allclose(result.cumulative[name][number], running[place], atol=1e-12)
        np.testing.assert_array_equal(result.qid[number], data.queries.ids[order])
        np.testing.assert_array_equal(result.models[number].coef_, model.coef_)
    ends = result.cumulative["map"][:, -1]
    assert result["map"] == result.means["map"] == pytest.approx(ends.mean(), abs=1e-15)
    assert result.stds["map"] == pytest.approx(ends.std(ddof=1), abs=1e-15)
    assert (result.rank_seconds is not None) == timing
    if timing:
        assert result.rank_seconds.shape == result.learn_seconds.shape == (3, 40)
        assert (result.learn_seconds > 0).all()


def test_data_in_all_forms_and_threads(data):
    model = SOLARRanker(order=2, random_state=0)
    expected = progressive_validation(model, data, metrics="map", n_orders=4, random_state=0, n_jobs=1)
    frame = pd.DataFrame(data.X, columns=list("abcdef")).assign(query=data.qid)
    forms = [
        (data.X, data.y, data.qid),
        (data.X.tolist(), data.y.tolist(), data.qid.tolist()),
        (sp.coo_array(data.X.astype(np.float64)), data.y, data.qid),
        (frame, data.y, "query"),
    ]
    for X, y, qid in forms:
        other = progressive_validation(model, X, y, qid=qid, metrics="map", n_orders=4, random_state=0, n_jobs=4)
        np.testing.assert_allclose(other.per_query["map"], expected.per_query["map"], atol=1e-12)
    assert not hasattr(model, "weights_")


def test_one_run_keeps_the_order(data):
    result = progressive_validation(SOLARRanker(random_state=0), data)
    np.testing.assert_array_equal(result.qid, [data.queries.ids])
    assert result.n_orders == 1
    assert list(result.means) == ["ndcg@1", "ndcg@5", "ndcg@10", "map"]
    assert set(result.stds.values()) == {0.0}


def test_a_stream_is_the_data_in_their_order(data):
    model = PerceptronCommitteeRanker(5, random_state=0)
    expected = progressive_validation(model, data, metrics=METRICS)
    queries = [(data.X[rows], data.y[rows]) for _, rows in data.queries]
    batches = [data.select(np.isin(data.qid, data.queries.ids[part])) for part in (slice(9), slice(9, None))]
    triples = [(batch.X, batch.y, batch.qid) for batch in batches]
    for stream in (queries, iter(queries), batches, triples):
        result = progressive_validation(model, stream, metrics=METRICS, max_label=2.0)
        for name in METRICS:
            np.testing.assert_array_equal(result.per_query[name], expected.per_query[name])
    np.testing.assert_array_equal(progressive_validation(model, queries).qid, [np.arange(40)])
    np.testing.assert_array_equal(progressive_validation(model, triples).qid, [data.queries.ids])


def test_a_stream_is_read_as_it_is_learnt_from():
    made = make_ranking(3, 10, 4, random_state=0)
    seen = []

    class Watched(SOLARRanker):
        def predict_then_learn(self, X, y, **queries):
            seen.append("learnt")
            return super().predict_then_learn(X, y, **queries)

    def stream():
        for _, rows in made.queries:
            seen.append("read")
            yield made.X[rows], made.y[rows]

    progressive_validation(Watched(), stream())
    assert seen == ["read", "learnt"] * 3


def test_documents_of_the_first_query_come_as_they_are():
    y = np.array([0.0, 0.0, 1.0])
    result = progressive_validation(SOLARRanker(), [(np.eye(3), y)], metrics="mrr", convention="letor")
    assert result["mrr"] == pytest.approx(1 / 3)


def test_undefined_values_do_not_count():
    X, same, differ = np.eye(3), np.zeros(3), np.array([1.0, 0.0, 0.0])
    stream = [(X, same), (X, differ), (X, same), (X, differ)]
    result = progressive_validation(SOLARRanker(random_state=0), stream, metrics="pairwise_accuracy")
    np.testing.assert_array_equal(np.isnan(result.per_query["pairwise_accuracy"][0]), [True, False, True, False])
    np.testing.assert_array_equal(result.cumulative["pairwise_accuracy"][0], [np.nan, 0.0, 0.0, 0.5])


def test_means_over_the_last_queries(data):
    result = progressive_validation(SOLARRanker(random_state=0), data, metrics=METRICS, n_orders=2, random_state=0)
    for name in METRICS:
        np.testing.assert_array_equal(result.curve(name), result.cumulative[name])
        values, weights = result.per_query[name], result.weights[name]
        curve = result.curve(name, 6)
        for order, last in ((0, 2), (0, 5), (1, 6), (1, 39)):
            own = slice(max(0, last - 5), last + 1)
            value, weight = np.nan_to_num(values[order, own]), weights[order, own]
            assert curve[order, last] == pytest.approx((value * weight).sum() / weight.sum(), abs=1e-12)
    with pytest.raises(OptionError, match="window must be None or a positive integer, got 0"):
        result.curve("map", 0)


def test_any_model_that_learns_by_partial_fit(data):
    class Mean:
        """Scores with the mean of the documents labeled over 0; scikit-learn knows nothing of it."""

        def __init__(self):
            self.total = np.zeros(6)

        def __sklearn_clone__(self):
            return Mean()

        def partial_fit(self, X, y):
            self.total += X[y > 0].sum(axis=0)

        def predict(self, X):
            return X @ self.total

    result = progressive_validation(Mean(), data, n_orders=2, random_state=0)
    assert result["ndcg@10"] > 0.6


def test_results_as_plain_values(data):
    result = progressive_validation(SOLARRanker(random_state=0), data, metrics="map", n_orders=2, random_state=0)
    assert repr(result).startswith("ProgressiveValidation(map=0.")
    assert repr(result).endswith("; mean ± standard deviation of 2 orders of 40 queries, convention 'default')")
    plain = result.to_dict(per_query=True)
    assert plain["per_query"]["map"] == result.per_query["map"].tolist()
    assert plain["qid"] == result.qid.tolist()
    assert plain["n_queries"] == 40
    with pytest.raises(OptionError, match="'mrr' was not evaluated: choose from map"):
        result["mrr"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("data",), {"n_orders": 0}, OptionError, "n_orders must be None or a positive integer, got 0"),
        (("data",), {"random_state": "x"}, OptionError, "random_state must be"),
        (("data",), {"metrics": "best"}, OptionError, "unknown metric 'best'"),
        (("data",), {"qid": [1]}, OptionError, "a RankingData has its own labels"),
        (([],), {"n_orders": 2}, OptionError, "an iterable has only one order"),
        (([],), {"qid": [1]}, OptionError, "have their own queries"),
        (([],), {"metrics": "err@5"}, OptionError, "give max_label"),
        (([],), {}, DataError, "there are no queries"),
        ((np.eye(3),), {}, DataError, "labels are missing"),
        ((3,), {}, DataError, "labels are missing"),
        ((np.eye(3), [1, 2]), {}, DataError, "y has 2 entries but X has 3 rows"),
        ((np.eye(3), ["a", "b", "c"]), {}, DataError, "y must hold numbers"),
        (([(np.eye(3), [1, 2])],), {}, DataError, "y has 2 entries but X has 3 rows"),
        (([np.eye(3)],), {}, DataError, "item 0 of the stream .* is a ndarray"),
        ((RankingData(np.empty((0, 2)), np.empty(0), np.empty(0)),), {}, DataError, "there are no queries"),
    ],
)
def test_errors(data, arguments, options, error, message):
    arguments = [data if isinstance(argument, str) else argument for argument in arguments]
    with pytest.raises(error, match=message):
        progressive_validation(SOLARRanker(), *arguments, **options)


def test_a_batch_model_has_to_be_in_a_refit(data):
    with pytest.raises(OptionError, match=r"RankSVM does not learn query by query: .* Refit\(model, every=...\)"):
        progressive_validation(RankSVM(), data)


# -- Refit -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("warm_start", [False, True])
def test_refit_is_a_fit_to_all_queries_seen(data, sparse, warm_start):
    model = Refit(RankSVM(C=0.1, tol=1e-10, warm_start=warm_start))
    X = sp.csr_matrix(data.X) if sparse else data.X
    queries = list(data.queries)
    assert not model.predict(X).any()
    for number, (_, rows) in enumerate(queries):
        model.partial_fit(X[rows], data.y[rows])
        if number in (20, 39):
            seen = np.concatenate([rows for _, rows in queries[: number + 1]])
            whole = RankSVM(C=0.1, tol=1e-10).fit(X[seen], data.y[seen], qid=data.qid[seen])
            np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-4)


def test_refit_after_some_queries_waits_for_pairs():
    made = make_ranking(10, 8, 4, random_state=0)
    y = np.where(made.qid <= 4, 0.0, made.y)
    fits = []
    model = Refit(RankSVM(C=0.1), every=3)
    for _, rows in made.queries:
        model.partial_fit(made.X[rows], y[rows])
        fits.append(model.n_fits_)
    assert fits == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert model.n_queries_ == 10
    again = Refit(RankSVM(C=0.1), every=3).partial_fit(made.X, y, qid=made.qid)
    assert (again.n_fits_, again.n_queries_) == (1, 10)
    assert not hasattr(model.estimator, "coef_")


def test_refit_errors():
    with pytest.raises(OptionError, match="every must be a positive integer, got 0"):
        Refit(RankSVM(), every=0).partial_fit(np.eye(2), [0, 1])
    with pytest.raises(DataError, match="y has"):
        Refit(RankSVM()).partial_fit(np.eye(2), [0, 1, 2])


def test_what_is_refused_is_not_among_the_queries_seen():
    made = make_ranking(10, 8, 4, random_state=0)
    model, never = Refit(RankSVM(C=0.1)), Refit(RankSVM(C=0.1))
    first, second = made.select(made.qid == 1), made.select(made.qid == 2)
    model.partial_fit(first.X, first.y)
    with pytest.raises(DataError, match="the queries seen have"):
        model.partial_fit(first.X[:, 1:], first.y)
    with pytest.raises(DataError, match="NaN"):
        model.partial_fit(np.full(first.X.shape, np.nan), first.y)
    assert (model.n_queries_, model.n_fits_) == (1, 1)
    model.partial_fit(second.X, second.y)
    never.partial_fit(first.X, first.y).partial_fit(second.X, second.y)
    np.testing.assert_array_equal(model.predict(made.X), never.predict(made.X))


@pytest.mark.filterwarnings("error")
def test_frames_are_fitted_and_ranked_alike():
    made = make_ranking(10, 8, 4, random_state=0)
    frame = pd.DataFrame(made.X, columns=[f"f{number}" for number in range(made.X.shape[1])])
    model = Refit(RankSVM(C=0.1)).partial_fit(frame, made.y, qid=made.qid)
    np.testing.assert_array_equal(model.predict(frame), model.predict(made.X))


def test_counts_may_be_of_numpy(data):
    result = progressive_validation(SOLARRanker(random_state=0), data, n_orders=np.int64(2), random_state=0)
    np.testing.assert_array_equal(result.curve("map", window=np.int64(5)), result.curve("map", window=5))
