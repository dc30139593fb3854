"""Right-censored times, event=: the pairs are those that a list of all comparable ones has."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV

from ranksvm import KernelRankSVM, QueryKFold, RankSVM, RankSVMCV, cross_validate, load, regularization_path
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.metrics import evaluate

NAME = "concordance_index"


def made(n=80, seed=0, ties=False, n_queries=1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    time, end = np.exp(X[:, 0] + 0.3 * random.normal(size=n)), np.exp(random.normal(size=n))
    event, time = time <= end, np.minimum(time, end)
    return X, np.ceil(2 * time) if ties else time, event, np.arange(n) % n_queries


def comparable(time, event, qid):
    """Row numbers (longer, shorter)."""
    longer = (time[:, None] > time) | ((time[:, None] == time) & ~event[:, None])
    np.fill_diagonal(longer, False)
    return np.argwhere(longer & event & (qid[:, None] == qid))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n_queries", [1, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("weighting", ["uniform", "per_query"])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_the_fit_is_that_of_listed_pairs(ties, n_queries, weighted, weighting, loss):
    X, time, event, qid = made(ties=ties, n_queries=n_queries)
    pairs = comparable(time, event, qid)
    weight = np.random.default_rng(1).integers(0, 3, len(X)) if weighted else None
    options = {"C": 0.05, "tol": 1e-9, "loss": loss, "pair_weighting": weighting}
    model = RankSVM(**options).fit(X, time, event=event, qid=qid, sample_weight=weight)
    listed = RankSVM(**options).fit(X, pairs=pairs, qid=qid, sample_weight=weight)
    assert model.objective_ == pytest.approx(listed.objective_, rel=1e-7)
    np.testing.assert_allclose(model.coef_, listed.coef_, atol=1e-4)
    there = len(pairs) if weight is None else int((weight[pairs] > 0).all(axis=1).sum())
    assert model.n_pairs_ == there


@pytest.mark.parametrize("solver", ["newton", "tron", "dual"])
def test_every_solver(solver):
    X, time, event, _ = made(60)
    listed = RankSVM(C=0.05, tol=1e-9).fit(X, pairs=comparable(time, event, np.zeros(60)))
    model = RankSVM(C=0.05, tol=1e-9, solver=solver).fit(X, time, event=event)
    assert model.objective_ == pytest.approx(listed.objective_, rel=1e-7)
    assert model.duality_gap_ <= 1e-9 * model.objective_


def test_a_large_query_is_swept():
    X, time, event, _ = made(1500)
    model = RankSVM(C=1e-4, tol=1e-8).fit(X, time, event=event)
    pairs = comparable(time, event, np.zeros(1500))
    assert model.n_pairs_ == len(pairs)
    assert model.objective_ == pytest.approx(RankSVM(C=1e-4, tol=1e-8).fit(X, pairs=pairs).objective_, rel=1e-6)


def test_a_higher_score_is_a_longer_time():
    X, time, event, _ = made(300)
    model = RankSVM().fit(X, time, event=event)
    assert model.coef_[0] > 0  # times grow with the first feature
    assert model.score(X, time, event=event) == evaluate(time, model.predict(X), None, NAME, event=event)[NAME] > 0.85


def test_labels_are_times_of_which_all_are_observed():
    X, time, _, qid = made(n_queries=5)
    all_observed = RankSVM(C=0.1, tol=1e-9).fit(X, time, qid=qid, event=np.ones(80))
    np.testing.assert_allclose(all_observed.coef_, RankSVM(C=0.1, tol=1e-9).fit(X, time, qid=qid).coef_, atol=1e-6)


def test_kernels():
    X, time, event, _ = made()
    options = {"C": 0.1, "gamma": 0.1, "tol": 1e-8}
    model = KernelRankSVM(**options).fit(X, time, event=event, eval_set=[(X, time, event)])
    listed = KernelRankSVM(**options).fit(X, pairs=comparable(time, event, np.zeros(80)))
    assert model.objective_ == pytest.approx(listed.objective_, rel=1e-6)
    assert model.evals_result_ == {"valid_0": {NAME: [pytest.approx(model.score(X, time, event=event))]}}


def test_folds_and_sets_are_scored_by_concordance():
    X, time, event, qid = made(n_queries=10)
    model = RankSVMCV(Cs=[1e-3, 1e-1], cv=5, tol=1e-8).fit(X, time, event=event, qid=qid)
    for place, (train, test) in enumerate(QueryKFold(5).split(X, qid=qid)):
        fold = RankSVM(C=1e-1, tol=1e-8).fit(X[train], time[train], event=event[train], qid=qid[train])
        expected = evaluate(time[test], fold.predict(X[test]), qid[test], NAME, event=event[test])[NAME]
        assert model.scores_[1, place] == pytest.approx(expected)
    assert model.fitted_params_["metric"] == NAME
    others = made(seed=1)
    chosen = RankSVMCV(Cs=[1e-3, 1e-1]).fit(X, time, event=event, eval_set=[others[:3]])
    assert chosen.best_score_ == pytest.approx(chosen.score(*others[:2], event=others[2]))


def test_folds_of_one_stratum_divide_rows():
    X, time, event, _ = made(120)
    model = RankSVMCV(Cs=[0.1], cv=4, tol=1e-8).fit(X, time, event=event)
    found = cross_validate(RankSVM(C=0.1, tol=1e-8), X, time, event=event, cv=4)
    for place, test in enumerate(np.array_split(np.arange(120), 4)):
        train = np.setdiff1d(np.arange(120), test)
        fold = RankSVM(C=0.1, tol=1e-8).fit(X[train], time[train], event=event[train])
        expected = fold.score(X[test], time[test], event=event[test])
        assert model.scores_[0, place] == found.scores[NAME][place] == pytest.approx(expected)


def test_a_search_of_scikit_learn_divides_events():
    X, time, event, qid = made(n_queries=9)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankSVM(), {"C": [0.1]}, cv=QueryKFold(3)).fit(X, time, qid=qid, event=event)
    expected = cross_validate(RankSVM(C=0.1), X, time, qid=qid, event=event, cv=3).means[NAME]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(expected)


def test_the_path_and_the_dual():
    X, time, event, _ = made()
    path = regularization_path(X, time, event=event, Cs=[0.05])
    model = RankSVM(C=0.05, tol=1e-10).fit(X, time, event=event)
    np.testing.assert_allclose(path.coefs[0], model.coef_, atol=1e-2)
    dual = model.dual_coef(X, time, event=event)
    assert dual.n_pairs == model.n_pairs_
    np.testing.assert_allclose(X.T @ dual.per_document(), model.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (np.ones(79), "event has 79 entries"),
        (np.full(80, 2), "event is 2 in row 0"),
        (np.where(np.arange(80) == 3, np.nan, 1), "event is nan in row 3"),
        ([None] * 80, "event is None in row 0"),
    ],
)
def test_what_is_no_event(event, message):
    X, time, *_ = made()
    with pytest.raises(DataError, match=message):
        RankSVM().fit(X, time, event=event)


def test_what_cannot_be_compared():
    X, time, event, _ = made()
    with pytest.raises(NoComparablePairsError, match="0 of the 80 rows have one"):
        RankSVM().fit(X, time, event=np.zeros(80))
    with pytest.raises(OptionError, match="pair_selection='adjacent' is for labels"):
        RankSVM(pair_selection="adjacent").fit(X, time, event=event)
    with pytest.raises(DataError, match="give y, not pairs"):
        RankSVM().fit(X, pairs=[[0, 1]], event=event)
    with pytest.raises(OptionError, match="'ndcg@5' needs labels: censored times"):
        RankSVMCV(metric="ndcg@5").fit(X, time, event=event, qid=np.arange(80) % 8)


@pytest.mark.parametrize("model", [RankSVM(C=0.1), RankSVMCV(Cs=[0.1], cv=2), KernelRankSVM(C=0.1)])
def test_times_are_not_taken_for_labels(model, tmp_path):
    X, time, event, _ = made()
    model.fit(X, time, event=event).save(tmp_path / "model.rsvm")
    for each in (model, load(tmp_path / "model.rsvm")):
        assert each.censored_
        with pytest.raises(DataError, match="fitted with event, but score was called without"):
            each.score(X, time)
    with pytest.raises(DataError, match=r"valid_0: the training data are censored times: give this set as \(X, time"):
        model.fit(X, time, event=event, eval_set=[(X, time)])
    qid = np.arange(len(X)) % 4
    assert not model.fit(X, time, qid=qid).censored_
    assert model.score(X, time, qid=qid) > 0.5
