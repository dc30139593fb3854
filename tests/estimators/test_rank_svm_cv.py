"""RankSVMCV: what it chooses by, and what it keeps of it."""

import tracemalloc

import numpy as np
import pytest

from ranksvm import QueryKFold, RankSVM, RankSVMCV, load, make_ranking
from ranksvm.exceptions import LikelyMistakeWarning, OptionError
from ranksvm.metrics import evaluate

CS = 2.0 ** np.arange(-14, 3, 2)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=(4, 12), n_features=12, random_state=0)


@pytest.fixture(scope="module")
def validation():
    return make_ranking(n_queries=15, n_docs=(4, 12), n_features=12, random_state=1)


def smallest_within_one_error(means, errors):
    best = np.argmax(means)
    return min(place for place in range(len(means)) if means[place] >= means[best] - errors[best])


def test_by_folds(data):
    best, simple = (RankSVMCV(CS, cv=4, rule=rule) for rule in ("best", "one_standard_error"))
    for model in (best, simple):
        model.fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(best.scores_, simple.scores_)
    np.testing.assert_allclose(simple.mean_scores_, simple.scores_.mean(axis=1))
    np.testing.assert_allclose(simple.standard_errors_, simple.scores_.std(axis=1, ddof=1) / 2)
    expected = smallest_within_one_error(simple.mean_scores_, simple.standard_errors_)
    assert simple.C_ == CS[expected] < best.C_
    assert simple.best_score_ == simple.mean_scores_[expected]
    fit = RankSVM(C=simple.C_).fit(data.X, data.y, qid=data.qid)
    assert simple.objective_ == pytest.approx(fit.objective_, rel=1e-4)
    assert best.evals_result_ == {}


@pytest.mark.parametrize("metric", ["ndcg@10", "pairwise_accuracy", "kendall_tau"])
def test_on_validation_data(data, validation, metric, tmp_path):
    model = RankSVMCV(CS, metric=metric, rule="one_standard_error")
    model.fit(data.X, data.y, qid=data.qid, eval_set=[(validation.X, validation.y)], eval_qid=[validation.qid])
    for place in range(len(CS)):
        # the solution for a C depends on the values before it within the certificate only
        cold = RankSVMCV([CS[place]], metric=metric, tol=1e-4)
        cold.fit(data.X, data.y, qid=data.qid, eval_set=(validation.X, validation.y), eval_qid=validation.qid)
        assert model.scores_[place, 0] == pytest.approx(cold.scores_[0, 0], abs=0.02)
        assert model.standard_errors_[place] == pytest.approx(cold.standard_errors_[0], rel=0.3)
    assert CS[smallest_within_one_error(model.mean_scores_, model.standard_errors_)] == model.C_
    found = evaluate(validation.y, model.predict(validation.X), validation.qid, [metric])
    assert found.means[metric] == model.best_score_
    if metric == "ndcg@10":
        values = found.per_query[metric]
        chosen = np.flatnonzero(model.C_ == CS)[0]
        assert model.standard_errors_[chosen] == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").standard_errors_, model.standard_errors_)


def test_one_split_is_as_validation_data(data):
    train, test = np.flatnonzero(data.qid < 30), np.flatnonzero(data.qid >= 30)
    by_split = RankSVMCV(CS, cv=[(train, test)]).fit(data.X, data.y, qid=data.qid)
    held_out = {"eval_set": (data.X[test], data.y[test]), "eval_qid": data.qid[test]}
    by_set = RankSVMCV(CS).fit(data.X[train], data.y[train], qid=data.qid[train], **held_out)
    np.testing.assert_array_equal(by_split.scores_, by_set.scores_)
    np.testing.assert_array_equal(by_split.standard_errors_, by_set.standard_errors_)


def test_a_fold_without_a_value_is_left_out(data):
    y = data.y.copy()
    y[next(QueryKFold(4).split(data.X, qid=data.qid))[1]] = 0  # no pair to order in the first fold
    model = RankSVMCV(CS, cv=4, metric="pairwise_accuracy", rule="one_standard_error").fit(data.X, y, qid=data.qid)
    assert np.isnan(model.scores_[:, 0]).all()
    np.testing.assert_allclose(model.mean_scores_, model.scores_[:, 1:].mean(axis=1))
    np.testing.assert_allclose(model.standard_errors_, model.scores_[:, 1:].std(axis=1, ddof=1) / np.sqrt(3))


def test_folds_know_the_rows_of_group(data):
    group = np.unique(data.qid, return_counts=True)[1]
    by_group = RankSVMCV(CS, cv=3).fit(data.X, data.y, group=group)
    by_qid = RankSVMCV(CS, cv=3).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(by_group.scores_, by_qid.scores_)


def test_weights_are_divided_with_the_rows(data):
    weight = 1.0 + data.qid % 3
    weighted = RankSVMCV(CS, cv=3).fit(data.X, data.y, qid=data.qid, sample_weight=weight, query_weight=list(weight))
    plain = RankSVMCV(CS, cv=3).fit(data.X, data.y, qid=data.qid)
    same = RankSVMCV(CS, cv=3).fit(data.X, data.y, qid=data.qid, sample_weight=1.0)
    assert not np.array_equal(weighted.scores_, plain.scores_)
    np.testing.assert_array_equal(same.scores_, plain.scores_)


def test_errors(data, validation):
    with pytest.raises(OptionError, match="rule must be one of 'best', 'one_standard_error', got '1se'"):
        RankSVMCV(rule="1se").fit(data.X, data.y, qid=data.qid)
    with pytest.raises(OptionError, match="'kendall_tau' is not defined for any query"):
        RankSVMCV(CS, metric="kendall_tau").fit(
            data.X, data.y, qid=data.qid, eval_set=(validation.X, np.zeros(len(validation.y))), eval_qid=validation.qid
        )


def test_labels_that_no_metric_counts_as_relevant(data):
    with pytest.warns(LikelyMistakeWarning, match="every model tried has the score 0.* lowest is 0"):
        RankSVMCV(CS, cv=3).fit(data.X, data.y - 4.0, qid=data.qid)


def test_err_has_the_scale_of_all_labels():
    data = make_ranking(n_queries=12, n_docs=8, n_features=4, random_state=0)
    y = np.minimum(data.y, 1.0)
    y[np.argmax(data.qid == 5)] = 4.0  # the highest grade is in one fold
    ranker = RankSVMCV(Cs=[0.01], metric="err", cv=3).fit(data.X, y, qid=data.qid)
    for (train, test), value in zip(QueryKFold(3).split(data.X, qid=data.qid), ranker.scores_[0], strict=True):
        scores = RankSVM(C=0.01).fit(data.X[train], y[train], qid=data.qid[train]).predict(data.X[test])
        assert value == evaluate(y[test], scores, data.qid[test], "err", max_label=4)["err"]


def test_the_rows_of_one_fold_are_in_memory_at_a_time():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(4000, 300)), rng.integers(0, 3, 4000), np.repeat(np.arange(200), 20)
    RankSVMCV(Cs=[1e-4], cv=5, solver="tron").fit(X[:200], y[:200], qid=qid[:200])  # imports
    tracemalloc.start()
    RankSVMCV(Cs=[1e-4], cv=5, solver="tron", n_jobs=1).fit(X, y, qid=qid)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.4 * X.nbytes  # the training and test rows of one fold together have the size of X
