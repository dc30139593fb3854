"""DaskRankSVMCV against RankSVMCV: the same folds, scores, choice and model; all values of C share each round."""

import dask.array as da
import numpy as np
import pytest

import ranksvm
from ranksvm import QueryKFold, RankSVM, RankSVMCV, metrics
from ranksvm.dask import DaskRankSVM, DaskRankSVMCV
from ranksvm.dask.backend import DaskBackend
from ranksvm.exceptions import DataError, OptionError

pytestmark = pytest.mark.usefixtures("client")

CS = [1e-4, 1e-2, 1.0]


def check_same(fit, expected):
    assert fit.C_ == expected.C_
    np.testing.assert_array_equal(fit.Cs_, expected.Cs_)
    np.testing.assert_allclose(fit.scores_, expected.scores_, rtol=1e-12)
    np.testing.assert_allclose(fit.mean_scores_, expected.mean_scores_, rtol=1e-12)
    np.testing.assert_allclose(fit.standard_errors_, expected.standard_errors_, rtol=1e-8)
    assert fit.best_score_ == pytest.approx(expected.best_score_, rel=1e-12)
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-8)


@pytest.mark.parametrize(
    "options",
    [{"cv": 3}, {"cv": QueryKFold(2, shuffle=True, random_state=1), "pair_weighting": "gain_gap", "loss": "huber"}],
    ids=["folds", "shuffled folds"],
)
def test_folds(data, parts_of, options, tmp_path):
    options = {"Cs": CS, "tol": 1e-8, **options}
    labels = data.y.astype(float)
    labels[data.qid == data.qid[0]] += 1.0  # the largest label is in one fold
    X, y, qid = parts_of(ranksvm.RankingData(data.X, labels, data.qid))
    fit = DaskRankSVMCV(**options).fit(X, y, qid=qid)
    check_same(fit, RankSVMCV(**options).fit(data.X, labels, qid=data.qid))
    local = fit.to_local()
    assert type(local) is RankSVMCV
    local.save(tmp_path / "model.rsvm")
    np.testing.assert_array_equal(ranksvm.load(tmp_path / "model.rsvm").coef_, fit.coef_)


def test_validation_data(data, parts_of, monkeypatch):
    n_rounds = []
    plain = DaskBackend.round
    monkeypatch.setattr(DaskBackend, "round", lambda self, jobs: n_rounds.append(len(jobs)) or plain(self, jobs))
    train, test = data.select(data.qid < 30), data.select(data.qid >= 30)
    X, y, qid = parts_of(train)
    X_test, y_test, qid_test = parts_of(test)
    options = {"Cs": CS, "tol": 1e-8, "rule": "one_standard_error"}
    fit = DaskRankSVMCV(**options).fit(X, y, qid=qid, eval_set=[(X_test, y_test)], eval_qid=[qid_test])
    expected = RankSVMCV(**options).fit(
        train.X, train.y, qid=train.qid, eval_set=[(test.X, test.y)], eval_qid=[test.qid]
    )
    check_same(fit, expected)
    assert fit.evals_result_["valid_0"]["ndcg@10"] == pytest.approx(expected.evals_result_["valid_0"]["ndcg@10"])
    assert max(n_rounds) == 3
    assert len(n_rounds) < 60


def test_early_stopping_leaves_out_the_same(data, parts_of):
    X, y, qid = parts_of(data)
    options = {"Cs": [1e-4, 1e-3, 1.0, 10.0, 100.0], "early_stopping_rounds": 1, "tol": 1e-6}
    fit = DaskRankSVMCV(**options).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    expected = RankSVMCV(**options).fit(data.X, data.y, qid=data.qid, eval_set=[(data.X, data.y)], eval_qid=[data.qid])
    np.testing.assert_array_equal(fit.Cs_, expected.Cs_)
    with pytest.raises(OptionError, match="early_stopping_rounds"):
        DaskRankSVMCV(early_stopping_rounds=1).fit(X, y, qid=qid)


# -- listed pairs ------------------------------------------------------------------------------------------------------


def listed(data, n_pairs, seed=3):
    """Pairs of rows of one query, mixed, and weights of pairs and of rows."""
    rng = np.random.default_rng(seed)
    by_query = np.argsort(data.qid, kind="stable")
    pairs = np.column_stack([by_query[:-1], by_query[1:]])
    pairs = rng.permutation(pairs[data.qid[pairs[:, 0]] == data.qid[pairs[:, 1]]])[:n_pairs]
    better = data.y[pairs[:, 0]] >= data.y[pairs[:, 1]]
    pairs[~better] = pairs[~better, ::-1]
    return pairs, rng.uniform(0.5, 2.0, n_pairs), rng.uniform(0.5, 2.0, data.n_rows)


@pytest.mark.parametrize(
    ("with_ids", "weighting"), [(True, "per_query"), (False, "uniform")], ids=["queries", "connected rows"]
)
def test_folds_of_listed_pairs(data, parts_of, with_ids, weighting):
    """The pairs of a query stay together; without ids, those that rows connect."""
    mixed = data.select(np.random.default_rng(0).permutation(data.n_rows))
    pairs, pair_weight, sample_weight = listed(mixed, 250)
    options = {"Cs": CS, "tol": 1e-10, "cv": QueryKFold(3, shuffle=True, random_state=1), "pair_weighting": weighting}
    weights = {"pair_weight": pair_weight, "sample_weight": sample_weight}
    X, _, qid = parts_of(mixed)
    ids = {"qid": qid} if with_ids else {}
    fit = DaskRankSVMCV(n_partitions=4, **options).fit(X, pairs=pairs, **weights, **ids)
    ids = {"qid": mixed.qid} if with_ids else {}
    expected = RankSVMCV(**options).fit(mixed.X, pairs=pairs, **weights, **ids)
    check_same(fit, expected)
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert fit.fitted_params_["metric"] == "pairwise_accuracy"
    score = fit.score(X, pairs=pairs, pair_weight=pair_weight, qid=qid if with_ids else None)
    assert float(score) == pytest.approx(expected.score(mixed.X, pairs=pairs, pair_weight=pair_weight, **ids))


def test_pairs_of_a_single_query(data, parts_of):
    """Folds then divide what rows connect, as without ids."""
    mixed = data.select(np.random.default_rng(0).permutation(data.n_rows))
    pairs, _, _ = listed(mixed, 120)
    options = {"Cs": CS, "tol": 1e-8, "cv": 3}
    one = ranksvm.RankingData(mixed.X, mixed.y, np.full(mixed.n_rows, 7))
    X, _, qid = parts_of(one)
    fit = DaskRankSVMCV(**options).fit(X, pairs=pairs, qid=qid)
    check_same(fit, RankSVMCV(**options).fit(one.X, pairs=pairs, qid=one.qid))


def test_preferences(data):
    rng = np.random.default_rng(5)
    chosen, rejected = rng.normal(0.3, 1.0, (90, 5)), rng.normal(0.0, 1.0, (90, 5))
    given = ranksvm.Preferences(chosen, rejected, prompt=np.arange(90) // 4, weight=rng.uniform(0.5, 2.0, 90))
    held_out = given.taken(np.arange(60, 90))
    options = {"Cs": CS, "tol": 1e-9, "cv": 3}
    check_same(DaskRankSVMCV(**options).fit(given), RankSVMCV(**options).fit(given))
    sets = {"eval_set": [held_out, (given.X, given.pairs)], "eval_qid": [None, given.qid], "eval_names": ["new", "all"]}
    fit = DaskRankSVM(C=0.01, tol=1e-9).fit(given, **sets)
    expected = RankSVM(C=0.01, tol=1e-9).fit(given, **sets)
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert fit.evals_result_ == expected.evals_result_
    with pytest.raises(DataError, match="qid is given in addition to Preferences"):
        DaskRankSVMCV().fit(given, qid=given.qid)


def test_pairs_in_evaluation_sets(data, parts_of):
    train, test = data.select(data.qid < 30), data.select(data.qid >= 30)
    test = test.select(np.random.default_rng(0).permutation(test.n_rows))
    pairs, _, _ = listed(test, 60)
    X, y, qid = parts_of(train)
    X_test, y_test, qid_test = parts_of(test, 40)
    options = {"Cs": CS, "tol": 1e-9}
    for ids in ([qid_test, qid_test], [None, qid_test]):
        plain = [None if each is None else test.qid for each in ids]
        fit = DaskRankSVMCV(**options).fit(
            X, y, qid=qid, eval_set=[(X_test, da.from_array(pairs, chunks=(40, 2))), (X_test, y_test)], eval_qid=ids
        )
        expected = RankSVMCV(**options).fit(
            train.X, train.y, qid=train.qid, eval_set=[(test.X, pairs), (test.X, test.y)], eval_qid=plain
        )
        check_same(fit, expected)
        assert fit.evals_result_["valid_0"].keys() == expected.evals_result_["valid_0"].keys()
        for name, found in expected.evals_result_.items():
            for metric, values in found.items():
                assert fit.evals_result_[name][metric] == pytest.approx(values, rel=1e-12)
    with pytest.raises(OptionError, match="needs labels: pairs are evaluated by 'pairwise_accuracy' only"):
        DaskRankSVMCV(metric="map").fit(X, y, qid=qid, eval_set=(X_test, pairs))
    with pytest.raises(DataError, match="eval_set, valid_0: eval_sample_weight applies to labels"):
        DaskRankSVM().fit(X, y, qid=qid, eval_set=(X_test, pairs), eval_sample_weight=y_test)


def test_censored_times_in_evaluation_sets(data, parts_of):
    event = np.random.default_rng(1).random(data.n_rows) < 0.6
    X, y, qid = parts_of(data)
    observed = da.from_array(event, chunks=100)
    fit = DaskRankSVM(C=0.01, tol=1e-9).fit(X, y, qid=qid, event=observed, eval_set=(X, y, observed), eval_qid=qid)
    sets = {"eval_set": (data.X, data.y, event), "eval_qid": data.qid}
    expected = RankSVM(C=0.01, tol=1e-9).fit(data.X, data.y, qid=data.qid, event=event, **sets)
    (values,) = expected.evals_result_["valid_0"].values()
    assert fit.evals_result_["valid_0"]["concordance_index"] == pytest.approx(values, rel=1e-12)
    with pytest.raises(DataError, match=r"give this set as \(X, time, event\)"):
        DaskRankSVM().fit(X, y, qid=qid, event=observed, eval_set=(X, y), eval_qid=qid)


def test_err_has_the_scale_of_all_labels(data, parts_of):
    labels = np.minimum(data.y, 1.0)
    labels[0] = 4.0  # the highest grade is in one part
    X, y, qid = parts_of(ranksvm.RankingData(data.X, labels, data.qid))
    options = {"Cs": [1e-2], "tol": 1e-8, "cv": 3, "metric": "err"}
    expected = RankSVMCV(**options).fit(data.X, labels, qid=data.qid)
    np.testing.assert_allclose(DaskRankSVMCV(**options).fit(X, y, qid=qid).scores_, expected.scores_, rtol=1e-6)
    sets = {"eval_set": (X, y), "eval_qid": qid, "eval_metric": "err"}
    found = DaskRankSVM(C=0.01, tol=1e-8).fit(X, y, qid=qid, **sets).evals_result_["valid_0"]["err"]
    ranker = RankSVM(C=0.01, tol=1e-8).fit(data.X, labels, qid=data.qid)
    np.testing.assert_allclose(
        found, metrics.evaluate(labels, ranker.predict(data.X), data.qid, "err").means["err"], rtol=1e-6
    )
