"""What all online rankers keep: order, division into calls, seeds, refusals, and what an interruption leaves."""

import copy
import pickle
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranksvm
from ranksvm import PairwisePerceptronRanker, PerceptronCommitteeRanker, PRanker, SOLARRanker, make_ranking
from ranksvm.estimators.base.online_ranker import learn_checked_pairs
from ranksvm.exceptions import DataError, ModelFileError, OptionError, ScaleWarning
from ranksvm.model_files import persistence

RANKERS = {
    "solar-1": SOLARRanker(1, C=0.01, average=True, random_state=3),
    "solar-1 decay": SOLARRanker(1, C=0.01, decay=0.9, average=True, random_state=3),
    "solar-2": SOLARRanker(2, gamma=10.0, random_state=3),
    "solar-2 decay": SOLARRanker(2, gamma=10.0, decay=0.9, random_state=3),
    "solar-2 diagonal": SOLARRanker(2, gamma=10.0, covariance="diagonal", decay=0.99, random_state=3),
    "perceptron": PairwisePerceptronRanker(average=True, random_state=3),
    "committee": PerceptronCommitteeRanker(5, random_state=3),
    "prank": PRanker([0, 1, 2, 3, 4], average=True, random_state=3),
}
PAIRWISE = [name for name in RANKERS if name != "prank"]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=(1, 15), n_features=7, dtype=np.float64, random_state=0)


@pytest.fixture(scope="module")
def comparable():
    """Data in which every query has pairs."""
    return make_ranking(n_queries=30, n_docs=(3, 9), n_features=7, n_levels=None, dtype=np.float64, random_state=0)


@pytest.fixture(params=RANKERS)
def ranker(request):
    return clone(RANKERS[request.param])


def state(model):
    """Everything a model has, bit for bit."""
    return pickle.dumps({name: np.array(value) for name, value in sorted(vars(model).items())})


def learnt(model):
    """What it has learnt, bit for bit."""
    names = ("weights_", "lag_", "counts_", "_covariance_", "experts_", "survivals_", "survival_", "thresholds_")
    return pickle.dumps([np.array(getattr(model, name)) for name in names if hasattr(model, name)])


def fitted(ranker, data):
    return clone(ranker).fit(data.X, data.y, qid=data.qid)


# -- order -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [[], [1], [7, 8, 20], range(1, 30)])
def test_any_division_into_calls_gives_the_same_model(ranker, data, ends):
    model = clone(ranker)
    for queries in np.split(np.arange(30), list(ends)):
        rows = np.isin(data.qid, np.unique(data.qid)[queries])
        model.partial_fit(data.X[rows], data.y[rows], qid=data.qid[rows])
    assert learnt(model) == learnt(fitted(ranker, data))
    assert model.n_queries_ == 30


def test_one_query_at_a_time(ranker, data):
    model = clone(ranker)
    for query in np.unique(data.qid):
        own = data.qid == query
        if hasattr(model, "weights_"):
            expected = np.argsort(-model.predict(data.X[own]), kind="stable")
        else:
            expected = np.arange(own.sum())
        np.testing.assert_array_equal(model.rank_one_query(data.X[own]), expected)
        assert model.learn_one_query(data.X[own], data.y[own]) is model
    assert learnt(model) == learnt(fitted(ranker, data))


def test_rows_of_a_query_may_lie_anywhere(ranker, data):
    """A query's rows keep their order, and queries that of their first rows, however rows lie."""
    by_turns = np.argsort(
        np.concatenate([np.arange(np.sum(data.qid == q)) for q in np.unique(data.qid)]), kind="stable"
    )
    model = clone(ranker).fit(data.X[by_turns], data.y[by_turns], qid=[f"q{q}" for q in data.qid[by_turns]])
    assert learnt(model) == learnt(fitted(ranker, data))


def test_a_query_that_comes_again_is_learnt_from_again(ranker, data):
    first = data.qid == data.qid[0]
    model = fitted(ranker, data).partial_fit(data.X[first], data.y[first], qid=data.qid[first])
    assert model.n_queries_ == 31


def test_passes(ranker, data):
    thrice = clone(ranker).set_params(n_passes=3).fit(data.X, data.y, qid=data.qid)
    model = clone(ranker)
    for _ in range(3):
        model.partial_fit(data.X, data.y, qid=data.qid)
    assert learnt(model) == learnt(thrice)
    assert thrice.n_queries_ == 90


def test_seeds(ranker, data):
    one = fitted(ranker, data)
    assert learnt(one) == learnt(fitted(ranker, data))
    other = fitted(clone(ranker).set_params(random_state=4), data)
    assert not np.array_equal(one.coef_, other.coef_)
    in_order = fitted(clone(ranker).set_params(shuffle_pairs=False), data)
    assert not np.array_equal(one.coef_, in_order.coef_)
    again = fitted(clone(ranker).set_params(shuffle_pairs=False, random_state=9), data)
    np.testing.assert_array_equal(again.coef_, in_order.coef_)


@pytest.mark.parametrize("name", PAIRWISE)
def test_pairs_given_in_the_documented_order_are_those_of_labels(name, comparable):
    by_label = fitted(clone(RANKERS[name]).set_params(shuffle_pairs=False), comparable)
    by_pair = clone(RANKERS[name])
    for query in np.unique(comparable.qid):
        X, y = comparable.X[comparable.qid == query], comparable.y[comparable.qid == query]
        order = np.argsort(-y, kind="stable")
        by_pair.partial_fit_pairs(X, [(i, j) for i in order for j in order if y[i] > y[j]])
    assert learnt(by_pair) == learnt(by_label)


# -- storage, labels, degenerate queries -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_and_dense_agree(ranker, data, dtype):
    X = np.where(np.abs(data.X) > 0.6, data.X, 0.0).astype(dtype)
    dense = clone(ranker).fit(X, data.y, qid=data.qid)
    unsorted = sp.csr_array(X)
    for a, b in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[a:b], unsorted.data[a:b] = unsorted.indices[a:b][::-1].copy(), unsorted.data[a:b][::-1].copy()
    unsorted.has_sorted_indices = False
    for stored in (sp.csr_array(X), sp.csc_matrix(X), unsorted, X.astype(np.float64)):
        model = clone(ranker).fit(stored, data.y, qid=data.qid)
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
        assert model.n_updates_ == dense.n_updates_


def test_labels_are_any_numbers(ranker, data):
    """Only their order counts."""
    model = clone(ranker)
    if isinstance(model, PRanker):
        model.set_params(levels=[-1.5, -1.0, 0.0, 0.25, 7.0])
    moved = np.array([-1.5, -1.0, 0.0, 0.25, 7.0])[data.y.astype(int)]
    assert learnt(model.fit(data.X, moved, qid=data.qid)) == learnt(fitted(ranker, data))


@pytest.mark.parametrize("name", PAIRWISE)
def test_queries_without_pairs_teach_nothing(name, data):
    model = clone(RANKERS[name]).set_params(**({"decay": 1.0} if "solar" in name else {}))
    model.fit(data.X, np.zeros(len(data.y)), qid=data.qid)
    assert (model.n_pairs_, model.n_updates_, model.n_queries_) == (0, 0, 30)
    assert not model.coef_.any()
    assert np.isfinite(model.predict(data.X)).all()
    fitted_too = fitted(RANKERS[name], data)
    before = fitted_too.n_pairs_, fitted_too.n_updates_
    fitted_too.partial_fit(data.X[:1], data.y[:1])
    assert (fitted_too.n_pairs_, fitted_too.n_updates_) == before


@pytest.mark.parametrize("name", PAIRWISE)
def test_weights_of_queries_and_propensities(name, comparable):
    propensity = np.random.default_rng(0).uniform(0.2, 1.0, len(comparable.y))
    query_weight = np.where(comparable.qid % 3 == 0, 0.0, 1.0 + comparable.qid % 2)
    model = clone(RANKERS[name]).set_params(shuffle_pairs=False)
    weighted = clone(model).fit(
        comparable.X, comparable.y, qid=comparable.qid, query_weight=query_weight, propensity=propensity
    )
    for query in np.unique(comparable.qid):
        own = comparable.qid == query
        y, order = comparable.y[own], np.argsort(-comparable.y[own], kind="stable")
        pairs = np.array([(i, j) for i in order for j in order if y[i] > y[j]])
        weight = (query_weight[own] / propensity[own])[pairs[:, 0]]
        model.partial_fit_pairs(comparable.X[own], pairs, weight)
    np.testing.assert_allclose(weighted.coef_, model.coef_, rtol=1e-9)
    none = clone(model).fit(comparable.X, comparable.y, qid=comparable.qid, query_weight=np.zeros(len(comparable.y)))
    assert none.n_updates_ == 0
    assert not none.coef_.any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", PAIRWISE)
def test_checked_pairs_are_learnt_as_others_are(name, comparable, form):
    model, checked = clone(RANKERS[name]), clone(RANKERS[name])
    for number, query in enumerate(np.unique(comparable.qid)):
        X, n = form(comparable.X[comparable.qid == query]), int((comparable.qid == query).sum())
        pairs = np.array([(i, (i + 1) % n) for i in range(n)])[: number % 4]  # sometimes none
        if number == 0:  # a new ranker is left to partial_fit_pairs
            assert learn_checked_pairs(checked, X, pairs) is False
            assert vars(checked) == vars(clone(RANKERS[name]))
            checked.partial_fit_pairs(X, pairs)
        else:
            assert learn_checked_pairs(checked, X, pairs) is True
        model.partial_fit_pairs(X, pairs)
        assert state(checked) == state(model)
    assert checked.n_queries_ == 30
    assert learn_checked_pairs(checked, form(comparable.X[:, :-1]), np.array([[0, 1]])) is False
    assert state(checked) == state(model)


def test_refused_checked_pairs_leave_the_model_as_it_was(comparable):
    model = fitted(RANKERS["perceptron"], comparable)
    before = state(model)
    with pytest.raises(DataError):
        learn_checked_pairs(model, np.outer([1.7e308, -1.7e308], np.ones(7)), np.array([[0, 1], [1, 0]]))
    assert state(model) == before
    with pytest.raises(OptionError, match="average"):
        learn_checked_pairs(model.set_params(average=False), comparable.X[:2], np.array([[0, 1]]))


# -- refusals ----------------------------------------------------------------------------------------------------------


REFUSED = {
    # each of some features, labels and ids of 20 rows
    "NaN": lambda X, y, qid: (np.where(np.arange(20)[:, None] == 19, np.nan, X), y, {"qid": qid}),
    "infinite": lambda X, y, qid: (np.where(np.arange(20)[:, None] == 19, np.inf, X), y, {"qid": qid}),
    "sparse NaN": lambda X, y, qid: (sp.csr_array(np.where(X > 2, np.nan, X)), y, {"qid": qid}),
    "narrow": lambda X, y, qid: (X[:, :-1], y, {"qid": qid}),
    "wide": lambda X, y, qid: (np.hstack((X, X)), y, {"qid": qid}),
    "label NaN": lambda X, y, qid: (X, np.where(np.arange(20) == 19, np.nan, y), {"qid": qid}),
    "labels missing": lambda X, y, qid: (X, None, {"qid": qid}),
    "labels short": lambda X, y, qid: (X, y[:-1], {"qid": qid}),
    "qid short": lambda X, y, qid: (X, y, {"qid": qid[:-1]}),
    "group short": lambda X, y, qid: (X, y, {"group": [3, 4]}),
    "weight": lambda X, y, qid: (X, y, {"qid": qid, "query_weight": -np.ones(20)}),
    "propensity": lambda X, y, qid: (X, y, {"qid": qid, "propensity": np.zeros(20)}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_the_model_as_it_was(ranker, data, what):
    X, y, options = REFUSED[what](data.X[:20], data.y[:20], data.qid[:20])
    model = fitted(ranker, data)
    before = state(model)
    for learn in (model.partial_fit, model.fit):
        if learn == model.fit and what in {"narrow", "wide"}:
            continue
        with pytest.raises(DataError):
            learn(X, y, **options)
        assert state(model) == before
    new = clone(ranker)
    if what not in {"narrow", "wide"}:
        with pytest.raises(DataError):
            new.partial_fit(X, y, **options)
        with pytest.raises(NotFittedError):
            new.predict(data.X)
        assert vars(new) == vars(clone(ranker))


@pytest.mark.parametrize("name", PAIRWISE)
@pytest.mark.parametrize("pairs", [[(0, 5)], [(-1, 0)], [(0, 1, 2)], [(0.5, 1)], [(1, 1)]])
def test_refused_pairs_leave_the_model_as_it_was(name, data, pairs):
    model = fitted(RANKERS[name], data)
    before = state(model)
    with pytest.raises(DataError):
        model.partial_fit_pairs(data.X[:5], pairs)
    with pytest.raises(DataError, match="weight"):
        model.partial_fit_pairs(data.X[:5], [(0, 1)], weight=[-1.0])
    assert state(model) == before


@pytest.mark.parametrize(
    ("ranker", "options"),
    [
        (SOLARRanker(), {"order": 3}),
        (SOLARRanker(), {"C": 0.0}),
        (SOLARRanker(), {"gamma": -1.0}),
        (SOLARRanker(), {"decay": 1.5}),
        (SOLARRanker(), {"decay": 0.0}),
        (SOLARRanker(), {"covariance": "banded"}),
        (SOLARRanker(), {"n_passes": 0}),
        (PerceptronCommitteeRanker(), {"n_experts": 0}),
    ],
)
def test_options_are_checked_before_anything_is_learnt(ranker, options, data):
    model = fitted(ranker, data)
    before = learnt(model)
    model.set_params(**options)
    with pytest.raises(OptionError, match=next(iter(options))):
        model.partial_fit(data.X, data.y, qid=data.qid)
    assert learnt(model) == before


@pytest.mark.parametrize("levels", ["all", 3, [0, float("nan")], [[0], [1, 2]]])
def test_levels_that_are_no_list_of_numbers_are_refused(levels, data):
    with pytest.raises(OptionError, match="levels must be None or a list of finite numbers"):
        PRanker(levels).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize(
    ("ranker", "options"),
    [
        (SOLARRanker(1), {"order": 2}),
        (SOLARRanker(2), {"order": 1}),
        (SOLARRanker(2), {"covariance": "diagonal"}),
        (SOLARRanker(2, covariance="diagonal"), {"covariance": "full"}),
        (SOLARRanker(), {"average": True}),
        (PairwisePerceptronRanker(average=True), {"average": False}),
        (PerceptronCommitteeRanker(5), {"n_experts": 6}),
        (PRanker([0, 1, 2, 3, 4]), {"levels": [0, 1, 2, 3, 4, 5]}),
    ],
)
def test_what_the_state_is_made_for_cannot_change_on_the_way(ranker, options, data):
    model = fitted(ranker, data)
    before, covariance = learnt(model), getattr(model, "covariance_", None)
    model.set_params(**options)
    calls = [lambda: model.partial_fit(data.X, data.y, qid=data.qid)]
    if not isinstance(model, PRanker):
        calls.append(lambda: model.partial_fit_pairs(data.X[:2], [(0, 1)]))
    for call in calls:
        with pytest.raises(OptionError, match=rf"{next(iter(options))} is .* was started with another"):
            call()
    assert learnt(model) == before
    np.testing.assert_array_equal(getattr(model, "covariance_", None), covariance)
    assert model.fit(data.X, data.y, qid=data.qid).n_queries_ == 30


def test_a_frame_that_comes_later_has_its_queries_in_the_column_of_the_first(ranker, data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=[f"f{number}" for number in range(7)]).assign(query=data.qid)
    model = clone(ranker).partial_fit(frame, data.y, qid="query").partial_fit(frame, data.y)
    twice = fitted(clone(ranker).set_params(n_passes=2), data)
    assert model.n_queries_ == 60
    assert learnt(model) == learnt(twice)


def test_sparse_documents_without_entries_are_documents(ranker, data):
    y, zeros = np.array([0, 1, 2, 0, 1]), np.zeros((5, 7))
    dense, sparse = fitted(ranker, data), fitted(ranker, data)
    dense.partial_fit(zeros, y)
    sparse.partial_fit(sp.csr_matrix(zeros), y)
    assert learnt(dense) == learnt(sparse)


# -- interruptions, and models that go on ------------------------------------------------------------------------------


def test_an_interruption_leaves_what_the_first_queries_taught(ranker, data, monkeypatch):
    seen = []
    learn_query = type(ranker)._learn_query

    def learn(self, *arguments):
        if len(seen) == 9:
            raise KeyboardInterrupt
        seen.append(1)
        return learn_query(self, *arguments)

    monkeypatch.setattr(type(ranker), "_learn_query", learn)
    model = clone(ranker)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(data.X, data.y, qid=data.qid)
    monkeypatch.undo()
    assert model.n_queries_ == 9
    rest = ~np.isin(data.qid, np.unique(data.qid)[:9])
    model.partial_fit(data.X[rest], data.y[rest], qid=data.qid[rest])
    assert learnt(model) == learnt(fitted(ranker, data))


@pytest.mark.parametrize("sparse", [False, True])
def test_wherever_the_interruption_comes(ranker, data, sparse):
    """Before any line of any Python function that a call runs: the model has learnt from whole queries."""
    X = sp.csr_array(data.X[:60]) if sparse else data.X[:60]
    y, qid = data.y[:60], data.qid[:60]
    start = clone(ranker).fit(data.X, data.y, qid=data.qid)
    after = [learnt(copy.deepcopy(start))]
    whole = copy.deepcopy(start)
    for query in np.unique(qid):
        own = np.flatnonzero(qid == query)
        after.append(learnt(whole.partial_fit(X[own], y[own])))
    for line in range(0, 10_000, 7):
        model, lines = copy.deepcopy(start), 0

        def trace(frame, event, _, last=line):
            nonlocal lines
            if event == "line" and frame.f_code.co_filename.endswith("_ranker.py"):
                lines += 1
                if lines > last:
                    raise KeyboardInterrupt
            return trace

        tracer = sys.gettrace()
        sys.settrace(trace)
        try:
            model.partial_fit(X, y, qid=qid)
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
        finally:
            sys.settrace(tracer)
        done = model.n_queries_ - start.n_queries_
        assert learnt(model) == after[done]
        if not interrupted:
            assert done == len(after) - 1
            return
    raise AssertionError("the call never came to its end")


def through_pickle(model, _):
    return pickle.loads(pickle.dumps(model))


def through_a_file(model, folder):
    persistence.save(model, folder / "model")
    return persistence.load(folder / "model")


@pytest.mark.parametrize("through", [through_pickle, through_a_file])
def test_a_stored_model_goes_on_as_if_nothing_had_been(ranker, data, through, tmp_path):
    model = clone(ranker)
    for query in np.unique(data.qid):
        own = data.qid == query
        model.partial_fit(data.X[own], data.y[own])
        if query in (4, 17):
            kept, model = model, through(model, tmp_path)
            before = learnt(model)
            kept.partial_fit(data.X, data.y, qid=data.qid)
            assert learnt(model) == before  # no array is shared
    assert learnt(model) == learnt(fitted(ranker, data))


# -- metadata routing --------------------------------------------------------------------------------------------------


def test_partial_fit_asks_for_qid(ranker, data):
    with sklearn.config_context(enable_metadata_routing=True):
        requests = ranker.get_metadata_routing()
        assert requests.partial_fit.requests["qid"] is True
        assert requests.fit.requests["qid"] is True
        pipeline = make_pipeline(StandardScaler(), clone(ranker)).fit(data.X, data.y, qid=data.qid)
    X = StandardScaler().fit_transform(data.X)
    by_hand = clone(ranker).fit(X, data.y, qid=data.qid)
    np.testing.assert_array_equal(pipeline[-1].coef_, by_hand.coef_)


def test_prank_learns_after_very_many_queries():
    """A find of the fuzzer: the number of queries seeds the order of documents, and seeds have 32 bits."""
    model = PRanker([0, 1, 2]).fit([[0.0], [1.0], [2.0]], [0, 1, 2], qid=[1, 1, 1])
    model.counts_[3] = 2.0**32 + 5
    model.partial_fit([[0.0], [1.0], [2.0]], [2, 1, 0], qid=[1, 1, 1])
    assert model.n_queries_ == 2**32 + 6


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ranker", [SOLARRanker(), SOLARRanker(order=2), PRanker([0, 1, 2, 3, 4])])
def test_a_value_beside_which_all_others_vanish_is_named(ranker, sparse, kind):
    data = make_ranking(n_queries=5, n_docs=6, n_features=3, random_state=0)
    X = data.X.astype(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(ranker).fit(1e6 * X, data.y, qid=data.qid)
    X[7, 2] = -1e18
    with pytest.warns(ScaleWarning, match=r"Row 7 \(from 0\) has the value 1e\+18 in feature f3"):
        clone(ranker).fit(sp.csr_array(X) if sparse else X, data.y, qid=data.qid)
    X[7, 2] = 1e36 if kind is np.float32 else 1e40
    with pytest.warns(ScaleWarning, match="in feature f3"):
        clone(ranker).partial_fit(X, data.y, qid=data.qid)


@pytest.mark.parametrize(("scale", "gamma"), [(1e8, 1e4), (1e6, 1.0)])
def test_features_that_are_too_large_for_the_covariance_are_warned_about(scale, gamma):
    data = make_ranking(20, 8, 4, random_state=0)
    X = np.column_stack((data.X, data.X.sum(axis=1))).astype(np.float64)
    ranker = SOLARRanker(2, gamma=gamma, random_state=0)
    with pytest.warns(ScaleWarning, match="may ruin the covariance if features are linearly dependent") as found:
        clone(ranker).fit(scale * X, data.y, qid=data.qid)
    assert [each.filename for each in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(ranker).fit(0.1 * scale * X, data.y, qid=data.qid)
        clone(ranker).set_params(covariance="diagonal").fit(scale * X, data.y, qid=data.qid)
        clone(ranker).set_params(order=1).fit(scale * X, data.y, qid=data.qid)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.filterwarnings("ignore:Row:ranksvm.exceptions.ScaleWarning")
def test_a_model_that_saw_wild_values_can_be_stored(tmp_path, order):
    data = make_ranking(n_queries=5, n_docs=6, n_features=3, random_state=0)
    ranker = SOLARRanker(order=order, random_state=0)
    ranker.partial_fit(data.X, data.y, qid=data.qid).partial_fit(data.X * 1e14, data.y, qid=data.qid)
    assert ranker.cumulative_loss_ > 2.0**63
    ranksvm.save(ranker, tmp_path / "model.rsvm")
    again = ranksvm.load(tmp_path / "model.rsvm")
    assert again.counts_.tolist() == ranker.counts_.tolist()
    ranker.counts_[0] = 2.0**63
    ranksvm.save(ranker, tmp_path / "many.rsvm")
    with pytest.raises(ModelFileError, match=r"below 2\^63"):
        ranksvm.load(tmp_path / "many.rsvm")
