"""cross_validate against the loop written out."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranksvm
from ranksvm import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    QueryKFold,
    QueryStandardScaler,
    RankSVM,
    RankSVMCV,
    cross_validate,
    metrics,
)
from ranksvm.exceptions import DataError, OptionError


class MeanDifferenceRanker(BaseEstimator):
    """Scores by the (weighted) covariance of each feature with the label; keeps what it was given."""

    def __init__(self, sign=1.0):
        self.sign = sign

    def fit(self, X, y, *, qid=None, sample_weight=None, query_weight=None, propensity=None, note=None, marks=None):
        self.seen_ = {
            "qid": qid,
            "sample_weight": sample_weight,
            "query_weight": query_weight,
            "propensity": propensity,
        }
        self.note_, self.marks_ = note, marks
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
        self.coef_ = self.sign * X.T @ (weight * (y - np.mean(y)))
        return self

    def predict(self, X):
        return np.asarray(X @ self.coef_)


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    qid = rng.permutation(np.repeat([f"q{n}" for n in range(20)], 6))
    X = rng.normal(size=(120, 4))
    return X, np.digitize(X[:, 0] + rng.normal(size=120), [-1, 0, 1]), qid


def test_values_are_those_of_the_loop(data):
    X, y, qid = data
    names = ("ndcg@5", "map", "pairwise_accuracy")
    found = ranksvm.cross_validate(
        MeanDifferenceRanker(), X, y, qid=qid, metrics=names, cv=4, convention="letor", return_estimator=True
    )
    for fold, (train, test) in enumerate(QueryKFold(4).split(X, qid=qid)):
        model = MeanDifferenceRanker().fit(X[train], y[train], qid=qid[train])
        expected = metrics.evaluate(y[test], model.predict(X[test]), qid[test], names, convention="letor")
        assert found.folds[fold].means == expected.means
        np.testing.assert_array_equal(found.estimators[fold].coef_, model.coef_)
        np.testing.assert_array_equal(found.estimators[fold].seen_["qid"], qid[train])
    assert found.means["map"] == pytest.approx(np.mean([fold.means["map"] for fold in found.folds]))
    assert found["AP"] == found.means["map"]
    with pytest.raises(ranksvm.exceptions.OptionError, match="'mrr' was not evaluated: choose from"):
        found["mrr"]
    assert found.stds["map"] == pytest.approx(np.std(found.scores["map"], ddof=1))
    assert sorted(found.qid) == sorted(set(qid))
    assert len(found.per_query["map"]) == 20
    assert len(found.fit_seconds) == len(found.predict_seconds) == 4
    assert "mean ± standard deviation of 4 folds" in repr(found)
    assert json.loads(json.dumps(found.to_dict(per_query=True)))["folds"][3]["convention"] == "letor"


def test_means_leave_out_folds_in_which_a_metric_is_undefined():
    data = ranksvm.make_ranking(n_queries=6, n_docs=5, n_features=3, random_state=0)
    labels = np.where(np.arange(30) < 10, 1, data.y)  # the first of three test parts has no pairs
    found = cross_validate(RankSVM(C=0.01), data.X, labels, qid=data.qid, metrics="pairwise_accuracy", cv=3)
    first, *others = found.scores["pairwise_accuracy"]
    assert np.isnan(first)
    assert found["pairwise_accuracy"] == pytest.approx(np.mean(others))
    assert found.stds["pairwise_accuracy"] == pytest.approx(np.std(others, ddof=1))
    chosen = RankSVMCV(Cs=[0.01], cv=3, metric="pairwise_accuracy").fit(data.X, labels, qid=data.qid)
    assert chosen.best_score_ == pytest.approx(found["pairwise_accuracy"])


def test_kinds_of_X_and_of_cv_agree(data):
    X, y, qid = data
    expected = ranksvm.cross_validate(MeanDifferenceRanker(), X, y, qid=qid).means
    frame = pd.DataFrame(X)
    frame.columns = list("abcd")
    assert ranksvm.cross_validate(MeanDifferenceRanker(), frame, pd.Series(y), qid=qid).means == expected
    for sparse in (scipy.sparse.csr_matrix(X), scipy.sparse.coo_array(X)):
        assert ranksvm.cross_validate(MeanDifferenceRanker(), sparse, y, qid=qid).means == pytest.approx(expected)
    by_name = ranksvm.cross_validate(MeanDifferenceRanker(), frame.assign(query=qid), y, qid="query")
    assert by_name.means == expected
    splits = list(QueryKFold(5).split(X, qid=qid))
    for cv in (QueryKFold(5), splits, iter(splits)):
        assert ranksvm.cross_validate(MeanDifferenceRanker(), X, y, qid=qid, cv=cv).means == expected
    assert ranksvm.cross_validate(MeanDifferenceRanker(), X, y, qid=qid, n_jobs=2).means == expected
    assert len(ranksvm.cross_validate(MeanDifferenceRanker(), X, y, qid=qid, cv=GroupKFold(3)).folds) == 3


def test_weights_and_other_arguments_are_divided(data):
    X, y, qid = data
    rng = np.random.default_rng(0)
    sample_weight, query_weight, propensity, marks = rng.random((4, 120))
    found = ranksvm.cross_validate(
        MeanDifferenceRanker(),
        X,
        y,
        qid=qid,
        cv=2,
        sample_weight=sample_weight,
        query_weight=query_weight,
        propensity=propensity,
        fit_params={"note": "hello", "marks": marks},
        return_estimator=True,
    )
    for (train, test), model, fold in zip(QueryKFold(2).split(X, qid=qid), found.estimators, found.folds, strict=True):
        np.testing.assert_array_equal(model.seen_["sample_weight"], sample_weight[train])
        np.testing.assert_array_equal(model.seen_["query_weight"], query_weight[train])
        np.testing.assert_array_equal(model.seen_["propensity"], propensity[train])
        np.testing.assert_array_equal(model.marks_, marks[train])
        assert model.note_ == "hello"
        expected = metrics.evaluate(
            y[test], model.predict(X[test]), qid[test], "ndcg@10", sample_weight=sample_weight[test]
        )
        assert fold.means == expected.means


@pytest.mark.parametrize("routing", [True, False])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("scaler", [QueryStandardScaler(), StandardScaler()])
def test_a_pipeline_works_whatever_the_setting_of_routing(data, scaler, n_jobs, routing):
    X, y, qid = data
    X = X * np.array([1, 10, 100, 0.1])
    with sklearn.config_context(enable_metadata_routing=routing):
        found = ranksvm.cross_validate(make_pipeline(scaler, RankSVM()), X, y, qid=qid, cv=3, n_jobs=n_jobs)
        assert sklearn.get_config()["enable_metadata_routing"] is routing
    by_query = isinstance(scaler, QueryStandardScaler)
    for fold, (train, test) in zip(found.folds, QueryKFold(3).split(X, qid=qid), strict=True):
        scaler.fit(X[train])
        X_train, X_test = (
            scaler.transform(X[rows], qid=qid[rows]) if by_query else scaler.transform(X[rows])
            for rows in (train, test)
        )
        scores = RankSVM().fit(X_train, y[train], qid=qid[train]).predict(X_test)
        assert fold.means == pytest.approx(metrics.evaluate(y[test], scores, qid[test], "ndcg@10").means)


def test_the_estimator_stays_unfitted(data):
    X, y, qid = data
    estimator = MeanDifferenceRanker()
    found = ranksvm.cross_validate(estimator, X, y, qid=qid)
    assert not hasattr(estimator, "coef_")
    assert found.estimators is None


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cv": KFold(4)}, DataError, "split 0 of cv divides query 'q"),
        ({"cv": [([0], [])]}, DataError, "split 0 of cv has an empty part"),
        ({"cv": []}, OptionError, "cv gives no split"),
        ({"cv": "five"}, OptionError, "cv must be a number of folds"),
        ({"cv": QueryKFold}, OptionError, "cv must be a number of folds, a splitter, or .* got <class"),
        ({"cv": 50}, DataError, "only 20 queries"),
        ({"metrics": "auc"}, OptionError, "unknown metric 'auc'"),
        ({"sample_weight": [1.0]}, DataError, "sample_weight has 1 entries but X has"),
        ({"qid": ["a"]}, DataError, "qid has 1 entries"),
        ({"fit_params": {"qid": 1}}, OptionError, "fit_params holds 'qid'"),
        ({"n_jobs": 0}, OptionError, "n_jobs must be"),
    ],
)
def test_refused_before_the_first_fit(data, options, error, message):
    X, y, qid = data
    with pytest.raises(error, match=message):
        ranksvm.cross_validate(MeanDifferenceRanker(), X, y, **({"qid": qid} | options))


def test_labels_of_another_length(data):
    X, y, qid = data
    with pytest.raises(DataError, match="y has 119 entries but X has 120 rows"):
        ranksvm.cross_validate(MeanDifferenceRanker(), X, y[1:], qid=qid)


def test_pooled_is_one_evaluation_of_all_test_queries():
    data = ranksvm.make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(data.y))
    names = ["ndcg@5", "pairwise_accuracy"]
    scores = np.zeros(len(data.y))
    found = ranksvm.cross_validate(
        RankSVM(), data.X, data.y, qid=data.qid, cv=4, metrics=names, sample_weight=weight, return_estimator=True
    )
    for (_, test), estimator in zip(QueryKFold(4).split(data.X, qid=data.qid), found.estimators, strict=True):
        scores[test] = estimator.predict(data.X[test])
    expected = metrics.evaluate(data.y, scores, data.qid, names, sample_weight=weight)
    pooled = found.pooled()
    assert sorted(pooled.qid.tolist()) == sorted(expected.qid.tolist())
    assert pooled.means == pytest.approx(expected.means)
    assert (pooled.n_rows, pooled.n_without_relevant) == (expected.n_rows, expected.n_without_relevant)
    assert metrics.compare(expected, pooled, "ndcg@5").difference == pytest.approx(0, abs=1e-12)


class GroupRanker(MeanDifferenceRanker):
    """As a ranker of LightGBM: the rows of a query are consecutive, and their numbers are given."""

    def fit(self, X, y, sample_weight=None, group=None):
        super().fit(X, y, sample_weight=sample_weight)
        self.given_ = X, y, sample_weight, group
        return self


def test_an_estimator_that_takes_group_gets_rows_by_query_and_sizes(data):
    X, y, qid = data
    weight = np.arange(1.0, 121.0)
    given = {"qid": qid, "sample_weight": weight, "cv": 4, "return_estimator": True}
    found = ranksvm.cross_validate(GroupRanker(), X, y, **given)
    expected = ranksvm.cross_validate(MeanDifferenceRanker(), X, y, **given)
    np.testing.assert_allclose(found.scores["ndcg@10"], expected.scores["ndcg@10"])
    for model, (train, _) in zip(found.estimators, QueryKFold(4).split(X, qid=qid), strict=True):
        X_given, y_given, weight_given, group = model.given_
        rows = [np.flatnonzero((row == X).all(axis=1))[0] for row in X_given]
        assert sorted(rows) == sorted(train)
        np.testing.assert_array_equal(y_given, y[rows])
        np.testing.assert_array_equal(weight_given, weight[rows])
        parts = np.split(qid[rows], np.cumsum(group)[:-1])
        assert [len(set(part)) for part in parts] == [1] * 15
        assert len({part[0] for part in parts}) == 15


@pytest.mark.parametrize("cv", [5, ShuffleSplit(2)])
def test_labels_without_queries_are_refused(data, cv):
    X, y, _ = data
    with pytest.raises(DataError, match=r"cross_validate divides the data by query.* qid="):
        ranksvm.cross_validate(RankSVM(), X, y, cv=cv)


@pytest.mark.parametrize(
    ("cv", "error", "message"),
    [
        ([3], OptionError, r"split 0 of cv must be a pair \(train, test\) of rows, got 3"),
        ({"train": [0], "test": [1]}, OptionError, "split 0 of cv must be a pair .* got 'train'"),
        ([([0], [1, 120])], DataError, "the parts of cv must be numbers from 0 to 119, or masks of 120 values"),
        ([([-1], [0])], DataError, "the parts of cv must be numbers"),
        ([([0.0], [1.0])], DataError, "the parts of cv must be numbers"),
    ],
)
def test_invalid_splits_are_refused(data, cv, error, message):
    X, y, qid = data
    with pytest.raises(error, match=message):
        ranksvm.cross_validate(RankSVM(), X, y, qid=qid, cv=cv)
    with pytest.raises(error, match=message):
        ranksvm.cross_validate(RankSVM(), X, y, qid=qid, cv=SplitsAsGiven(cv))


def test_a_splitter_may_give_masks(data):
    X, y, qid = data
    splits = list(QueryKFold(3).split(X, qid=qid))
    masks = [tuple(np.isin(np.arange(len(y)), part) for part in split) for split in splits]
    by_rows, by_masks = (
        ranksvm.cross_validate(RankSVM(), pd.DataFrame(X), y, qid=qid, cv=SplitsAsGiven(cv)).scores["ndcg@10"]
        for cv in (splits, masks)
    )
    np.testing.assert_array_equal(by_rows, by_masks)


class SplitsAsGiven:
    """A splitter that gives prescribed splits."""

    def __init__(self, splits):
        self.splits = splits

    def split(self, X, y, groups):
        return iter(self.splits)


def test_an_estimator_that_takes_no_queries_is_refused(data):
    X, y, qid = data
    with pytest.raises(OptionError, match=r"Ridge.fit takes neither qid nor group.*metrics.evaluate"):
        ranksvm.cross_validate(Ridge(), X, y, qid=qid)
    for estimator in (RankSVM, "ranksvm"):
        with pytest.raises(OptionError, match="must be an object with fit and predict"):
            ranksvm.cross_validate(estimator, X, y, qid=qid)


@pytest.mark.parametrize("kind", ["dense", "sparse", "frame", "text"])
def test_a_value_of_an_additive_model_that_is_missing_in_one_test_part_only(kind):
    data = ranksvm.make_ranking(n_queries=30, n_docs=8, n_features=4, random_state=0)
    X, options = data.X.copy(), {"categorical": [3]}
    X[:, 3] = np.random.default_rng(0).integers(0, 2, len(X))
    X[5, 1] = X[77, 3] = np.nan
    if kind == "sparse":
        X = scipy.sparse.csr_matrix(X)
    elif kind != "dense":
        X = pd.DataFrame(X, columns=list("abcd"))
        if kind == "text":
            X["d"] = X["d"].map({0.0: "red", 1.0: "blue"})
    ranker = AdditiveRankSVM(C=0.1, tol=1e-8, **options)
    found = cross_validate(ranker, X, data.y, qid=data.qid, cv=3, return_estimator=True)
    search = AdditiveRankSVMCV(Cs=[0.1], step_weights=[1.0], tol=1e-8, cv=3, **options).fit(X, data.y, qid=data.qid)
    np.testing.assert_allclose(found.scores["ndcg@10"], search.scores_[0, 0], rtol=1e-12)
    assert all(each.has_missing_.tolist() == [0, 1, 0, 1] for each in found.estimators)
    for model in (ranker, *found.estimators):
        assert "_all_data" not in vars(model)
    first = slice(0, 40)
    assert found.estimators[0].fit(X[first], data.y[first], qid=data.qid[first]).has_missing_.tolist() == [0, 1, 0, 0]
    nested = AdditiveRankSVMCV(Cs=[0.1], step_weights=[1.0], cv=2, **options)
    assert np.isfinite(cross_validate(nested, X, data.y, qid=data.qid, cv=3)["ndcg@10"])


def test_lightgbm(data):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid = data
    found = ranksvm.cross_validate(lightgbm.LGBMRanker(n_estimators=5, verbose=-1, n_jobs=1), X, y, qid=qid, cv=3)
    assert 0.0 < found.means["ndcg@10"] < 1.0


def test_err_has_the_scale_of_all_labels():
    data = ranksvm.make_ranking(n_queries=12, n_docs=8, n_features=4, random_state=0)
    y = np.minimum(data.y, 1.0)
    y[np.argmax(data.qid == 5)] = 4.0  # the highest grade is in one fold
    found = cross_validate(RankSVM(C=0.01), data.X, y, qid=data.qid, cv=3, metrics="err", return_estimator=True)
    for (_, test), model, value in zip(
        QueryKFold(3).split(data.X, qid=data.qid), found.estimators, found.scores["err"], strict=True
    ):
        scores = model.predict(data.X[test])
        assert value == metrics.evaluate(y[test], scores, data.qid[test], "err", max_label=4)["err"]


def test_masks_of_rows(data):
    X, y, qid = data
    test = np.isin(qid, ["q1", "q2", "q3"])
    seen = []

    class BySizes(BaseEstimator):
        def fit(self, X, y, group=None):
            seen.append((len(y), group))
            return self

        def predict(self, X):
            return X[:, 0]

    masks, numbers = [(~test, test)], [(np.flatnonzero(~test), np.flatnonzero(test))]
    by_mask, by_number = (cross_validate(BySizes(), X, y, qid=qid, cv=cv) for cv in (masks, numbers))
    assert by_mask["ndcg@10"] == by_number["ndcg@10"]
    assert [n for n, _ in seen] == [102, 102]
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    shorter = [(~test[:-1], test)]
    for choose in (
        lambda: cross_validate(BySizes(), X, y, qid=qid, cv=shorter),
        lambda: ranksvm.RankSVMCV(cv=shorter).fit(X, y, qid=qid),
    ):
        with pytest.raises(DataError, match=f"a mask in cv has {len(y) - 1} values instead of {len(y)}"):
            choose()


def test_zeros_and_ones_are_row_numbers(data):
    X, y, qid = data
    with pytest.raises(DataError, match="divides query"):
        cross_validate(RankSVM(), X, y, qid=qid, cv=[([1] * 60 + [0] * 60, [0] * 60 + [1] * 60)])
